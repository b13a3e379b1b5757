"""Pages for everybody with a token: sign in, data sets, the planner, questions, jobs, releases."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlencode

from anyio.to_thread import run_sync
from markupsafe import Markup
from starlette.responses import Response
from starlette.routing import Route

from wallflower.curator.api.analyst import release_arrow
from wallflower.curator.api.bodies import Find
from wallflower.curator.api.callers import address_of, authenticate, require_code
from wallflower.curator.api.views import Plain
from wallflower.curator.desk.desk import DatasetView
from wallflower.curator.desk.logs import tell
from wallflower.curator.desk.problems import Refusal, problem
from wallflower.curator.desk.tokens import new_id
from wallflower.curator.desk.tradeoffs import Tradeoffs
from wallflower.curator.pages import charts, datasets, fields
from wallflower.curator.pages.numbers import is_brief, numbers_of
from wallflower.curator.pages.standing import ADVICE, factor_words
from wallflower.curator.pages.visits import BASE, Visit, page, place, problem_page, refusal_page, to
from wallflower.errors import ParameterError, PrivacyError
from wallflower.forms import LOSS_HELP, Question, blanks
from wallflower.ledger import Quote
from wallflower.ledger.chain import canonical
from wallflower.query import Plan, Query, Tradeoff
from wallflower.release import Release
from wallflower.release.words import rough, rows_of, symbol


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A plan as it is shown: what it promises, what it costs here, and how often the budget affords it."""

    plan: Plan
    letter: str
    rows: list[tuple[str, ...]]
    quote: Quote
    factor: str | None
    curve: Markup | None
    tradeoff: Markup | None
    tradeoff_at: str
    offers_tradeoff: bool
    expected: list[tuple[str, str]]


def routes() -> list[Route]:
    """The pages for everybody."""
    return [
        Route("/sign-in", page(sign_in_form, "anybody")),
        Route("/sign-in", page(sign_in, "anybody"), methods=["POST"]),
        Route("/sign-out", page(sign_out, "anybody"), methods=["POST"]),
        *datasets.routes(),
        Route("/datasets/{dataset}/plan/{kind}", page(planner)),
        Route("/datasets/{dataset}/plan/{kind}", page(plan_sent_form), methods=["POST"]),
        Route("/datasets/{dataset}/ask/{kind}", page(ask), methods=["POST"]),
        Route("/jobs/{job}", page(job)),
        Route("/releases/{number}", page(release)),
        Route("/releases/{number}/json", page(release_json)),
        Route("/releases/{number}/arrow", page(arrow)),
    ]


def sign_in_form(visit: Visit) -> Response:
    """Where a token is asked for."""
    return to("/") if visit.caller is not None else visit.render("sign-in.html", words=None)


async def sign_in(visit: Visit) -> Response:
    """A token for a session: with a new cookie, whatever the old one was."""
    text = visit.form.get("token", "").strip()
    try:
        caller = await authenticate(visit.desk, visit.app.state.attempts, text, address_of(visit.request))
        if caller.is_monitor:
            raise Refusal("forbidden", "This token reads the metrics and nothing else. Sign in with another.")
        await require_code(visit.desk, visit.app.state.attempts, caller, text, visit.form.get("code", "").strip())
    except Refusal as refusal:
        stated = problem(refusal)
        return visit.render("sign-in.html", stated["status"], words=stated["detail"])
    tell("signed in", by=caller.name, token=caller.token, address=caller.address)
    found = to("/")
    visit.keep(found, await run_sync(visit.sessions.open, caller))
    return found


def sign_out(visit: Visit) -> Response:
    """The session ends here, not only in the browser."""
    visit.sessions.end(visit.cookie)
    found = to("/sign-in")
    visit.forget(found)
    return found


def planner(visit: Visit) -> Response:
    """The form of a question, with its plan; the address may fill it in."""
    return _planned(visit, {name: value[:2000] for name, value in visit.request.query_params.items()})


def plan_sent_form(visit: Visit) -> Response:
    """The same for a form that was sent: the whole page, or only the plan for a page that is open."""
    if "x-fragment" not in visit.request.headers:
        return _planned(visit, visit.form)
    question, shown = _asked(visit)
    plan_at = _plan_at(shown, question)
    return visit.render("plan.html", plan_at=plan_at, **_outlook(visit, shown, question, visit.form))


async def ask(visit: Visit) -> Response:
    """Pay and answer; a form that is sent twice is paid once."""
    question, shown = await run_sync(_asked, visit)
    caller, desk, name = visit.by, visit.desk, shown.name
    try:
        query = await run_sync(fields.read_form, question, visit.form, _find(visit))
        key = _key(visit, query)
        admitted = await run_sync(partial(desk.admit, anyway=is_ticked(visit)), caller, name, query, key)
        work, later = partial(desk.ask, admitted), admitted.is_long
        found = await visit.jobs.answer(work, caller, name, query.kind, later=later)
    except PrivacyError as refusal:
        again = f"{_plan_at(shown, question)}?{urlencode(_typed(question, visit.form))}"
        return refusal_page(visit, refusal, again=again, dataset=name, question=question.kind)
    return to(f"/releases/{found.ledger_id}" if isinstance(found, Release) else f"/jobs/{found.id}")


def is_ticked(visit: Visit) -> bool:
    """Whether the box was ticked that asks for an answer of no use."""
    return visit.form.get("anyway") == "yes"


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
        given = fields.restate(query, _bases(visit, made.dataset, type(query)), anyway=anyway)
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


def _asked(visit: Visit) -> tuple[Question, DatasetView]:
    shown = visit.desk.dataset(visit.by, visit.path("dataset"))
    try:
        return visit.desk.question(visit.path("kind")), shown
    except ParameterError:
        raise Refusal(
            "not-found", "There is no question of this name. The page of the data set has them all."
        ) from None


def _plan_at(shown: DatasetView, question: Question) -> str:
    return BASE + place("datasets", shown.name, "plan", question.kind)


def _planned(visit: Visit, given: Mapping[str, str]) -> Response:
    question, shown = _asked(visit)
    schema = visit.desk.shelf.find(shown.name).schema
    entries = fields.entries(question, given, schema, _bases(visit, shown.name, question))
    values = {entry.name: entry.value for entry in entries}
    return visit.render(
        "planner.html",
        question=question,
        shown=shown,
        entries=entries,
        nonce=new_id(),
        plan_at=_plan_at(shown, question),
        columns=[column["name"] for column in shown.facts["columns"]],
        **_outlook(visit, shown, question, values),
    )


def _bases(visit: Visit, dataset: str, question: Question) -> list[Release[Any]]:
    """What was released of a data set that a question may build on, such as scales: to an analyst their own."""
    if not any(map(fields.takes_release, blanks(question))):
        return []
    return visit.desk.releases(visit.by, dataset)


def _find(visit: Visit) -> Find:
    """Releases by their numbers, if they are the visitor's."""
    return partial(visit.desk.release, visit.by)


def _outlook(visit: Visit, shown: DatasetView, question: Question, form: Mapping[str, str]) -> dict[str, Any]:
    """The plan of what a form asks, or why there is none."""
    try:
        query = fields.read_form(question, form, _find(visit))
        plan = visit.desk.plan(visit.by, shown.name, query)
        quote = visit.desk.quote(visit.by, shown.name, query)
    except PrivacyError as refusal:
        return {
            "outlook": None,
            "words": problem(refusal)["detail"],
            "begun": not isinstance(refusal, fields.EmptyFields),
        }
    chosen = next((option for option in plan.options if option.mechanism == plan.chosen), None)
    figures = {} if chosen is None else chosen.figures
    tradeoff = _tradeoff(visit, query, plan)
    outlook = Outlook(
        plan=plan,
        letter=symbol(plan.cost),
        rows=list(rows_of(plan)),
        quote=quote,
        factor=factor_words(quote),
        curve=charts.curve(plan),
        tradeoff=charts.tradeoff(tradeoff) if tradeoff else None,
        tradeoff_at=tradeoff.amount if tradeoff else "",
        offers_tradeoff=_curves(visit).known(query, plan.facts.get("dimension", 1)) is None,
        expected=[(words, rough(figures[name])) for name, words in plan.headings.items() if name in figures],
    )
    told = {"outlook": outlook, "words": None, "begun": True, "advice": ADVICE}
    return told | {"anyway": form.get("anyway") == "yes"}


def _tradeoff(visit: Visit, query: Query[Any, Any], plan: Plan) -> Tradeoff | None:
    """The curve at about this loss, if it is known, or asked for in so many words: it takes seconds."""
    dimension, amount = plan.facts.get("dimension", 1), float(plan.cost.amount)
    wanted = "tradeoff" in visit.form and "x-fragment" not in visit.request.headers
    curves = _curves(visit).made(query, dimension) if wanted else _curves(visit).known(query, dimension)
    return charts.nearest_to(amount, curves) if curves and amount else None


def _curves(visit: Visit) -> Tradeoffs:
    curves: Tradeoffs = visit.request.app.state.tradeoffs
    return curves


def _typed(question: Question, form: Mapping[str, str]) -> dict[str, str]:
    """What was typed into the fields of a question, and nothing else of the form."""
    known = {*LOSS_HELP, *(blank.name for blank in blanks(question))}
    return {name: value for name, value in form.items() if name in known and value}


def _key(visit: Visit, query: Query[Any, Any]) -> str:
    """One key for one form and one question: sent twice, it is paid once; changed, it is another."""
    asked = hashlib.sha256(canonical(query.to_json()).encode("ascii")).hexdigest()[:16]
    nonce = "".join(letter for letter in visit.form.get("nonce", "")[:40] if letter.isalnum() and letter.isascii())
    return f"page-{nonce or new_id()}-{asked}"


def _release(visit: Visit) -> Release[Any]:
    return visit.desk.release(visit.by, whole(visit.path("number")) or 0)
