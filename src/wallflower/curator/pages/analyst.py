"""Pages for everybody with a token: sign in, data sets, the planner, questions, jobs, releases."""

from __future__ import annotations

from typing import Any

from anyio.to_thread import run_sync
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from wallflower.curator.api.analyst import release_arrow
from wallflower.curator.api.callers import address_of, authenticate, require_code
from wallflower.curator.api.views import Plain
from wallflower.curator.desk.logs import tell
from wallflower.curator.desk.problems import Refusal, problem
from wallflower.curator.pages import charts, datasets, fields, payment, planner
from wallflower.curator.pages.comeback import NEXT, safe_place
from wallflower.curator.pages.numbers import is_brief, numbers_of
from wallflower.curator.pages.planner import bases
from wallflower.curator.pages.visits import Visit, page, problem_page, to
from wallflower.release import Release


def routes() -> list[Route]:
    """The pages for everybody."""
    return [
        Route("/sign-in", page(sign_in_form, "anybody")),
        Route("/sign-in", page(sign_in, "anybody"), methods=["POST"]),
        Route("/sign-out", page(sign_out, "anybody"), methods=["POST"]),
        *datasets.routes(),
        *planner.routes(),
        *payment.routes(),
        Route("/jobs/{job}", page(job)),
        Route("/releases/{number}", page(release)),
        Route("/releases/{number}/json", page(release_json)),
        Route("/releases/{number}/arrow", page(arrow)),
    ]


def sign_in_form(visit: Visit) -> Response:
    """Where a token is asked for, on the way to somewhere."""
    place = safe_place(visit.request.query_params.get(NEXT, ""))
    if visit.caller is not None:
        return RedirectResponse(place, 303)
    return visit.render("sign-in.html", words=None, place=place)


async def sign_in(visit: Visit) -> Response:
    """A token for a session: with a new cookie, whatever the old one was."""
    text, place = visit.form.get("token", "").strip(), safe_place(visit.form.get(NEXT, ""))
    try:
        caller = await authenticate(visit.desk, visit.app.state.attempts, text, address_of(visit.request))
        if caller.is_monitor:
            raise Refusal("forbidden", "This token reads the metrics and nothing else. Sign in with another.")
        await require_code(visit.desk, visit.app.state.attempts, caller, text, visit.form.get("code", "").strip())
    except Refusal as refusal:
        stated = problem(refusal)
        return visit.render("sign-in.html", stated["status"], words=stated["detail"], place=place)
    tell("signed in", by=caller.name, token=caller.token, address=caller.address)
    found = RedirectResponse(place, 303)
    visit.keep(found, await run_sync(visit.sessions.open, caller))
    return found


def sign_out(visit: Visit) -> Response:
    """The session ends here, not only in the browser."""
    visit.sessions.end(visit.cookie)
    found = to("/sign-in")
    visit.forget(found)
    return found


def job(visit: Visit) -> Response:
    """A question on its way: the page looks again by itself until there is an answer."""
    found = visit.jobs.find(visit.by, visit.path("job"))
    if found.release is not None:
        return to(f"/releases/{found.release}")
    if found.problem is not None:
        return problem_page(visit, found.problem, dataset=found.dataset)
    return visit.render("job.html", job=found)


def release(visit: Visit) -> Response:
    """One release: the value, its picture, what was promised, and how to ask the same again."""
    made = _release(visit)
    question = next((one for one in visit.desk.questions if one.label == made.label), None)
    query = None if question is None else question.from_json(made.parameters)
    texts = None
    if query is not None:
        anyway = not query.plan(n=made.facts.n, dimension=made.facts.dimension).useful
        given = fields.restate(query, bases(visit, made.dataset, type(query)), anyway=anyway)
        place = (query.kind, given, visit.origin, made.dataset)
        texts = (fields.python_text(*place), fields.command_text(*place))
    return visit.render(
        "release.html",
        made=made,
        brief=is_brief(made.value),
        numbers=numbers_of(made.value),
        picture=charts.picture(made),
        texts=texts,
        query=query,
    )


def release_json(visit: Visit) -> Response:
    """The release, as a program would get it."""
    made = _release(visit)
    name = f'attachment; filename="release-{made.ledger_id}.json"'
    return Plain(made.to_dict(), headers={"content-disposition": name})


def arrow(visit: Visit) -> Response:
    """The release as an Arrow stream."""
    return release_arrow(_release(visit).ledger_id, visit.by, visit.desk)


def number_of(visit: Visit, name: str) -> int | None:
    """A number from the address, if it is one."""
    text = visit.request.query_params.get(name, "")
    return whole(text)


def whole(text: str) -> int | None:
    """The number of an entry that a text is, if it is one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 11 and 0 < int(text) < 2**31 else None


def _release(visit: Visit) -> Release[Any]:
    return visit.desk.release(visit.by, whole(visit.path("number")) or 0)
