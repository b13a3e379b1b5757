"""Signing in with a token, and out again."""

from __future__ import annotations

from anyio.to_thread import run_sync
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from wallflower.curator.api.callers import address_of, authenticate, require_code
from wallflower.curator.desk.logs import tell
from wallflower.curator.desk.problems import Refusal, problem
from wallflower.curator.pages.visitors.comeback import NEXT, safe_place
from wallflower.curator.pages.visitors.directory import REFUSALS, logout_url
from wallflower.curator.pages.visitors.visits import Visit, page, to


def routes() -> list[Route]:
    """Where one signs in and out."""
    return [
        Route("/sign-in", page(sign_in_form, "anybody")),
        Route("/sign-in", page(sign_in, "anybody"), methods=["POST"]),
        Route("/sign-out", page(sign_out, "anybody"), methods=["POST"]),
    ]


def sign_in_form(visit: Visit) -> Response:
    """Where a token is asked for, on the way to somewhere."""
    place = safe_place(visit.request.query_params.get(NEXT, ""))
    if visit.caller is not None:
        return RedirectResponse(place, 303)
    refused = REFUSALS.get(visit.request.query_params.get("refused", ""))
    return visit.render("sign-in.html", words=refused, place=place)


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


async def sign_out(visit: Visit) -> Response:
    """The session ends here, not only in the browser; a person who signed in at the directory signs out there too."""
    session = await run_sync(visit.sessions.person_session, visit.cookie)
    await run_sync(visit.sessions.end, visit.cookie)
    id_token = None if session is None else session.id_token
    url = None if id_token is None else await logout_url(visit, id_token)
    response = to("/sign-in") if url is None else RedirectResponse(url, 303)
    visit.forget(response)
    return response
