"""Before a sensitive act the token is entered again: a session that somebody else has got hold of is not enough.

Whoever entered it a short while ago (`fresh` in the settings) is not asked. Otherwise a page asks for it, and carries
what the form said; a wrong token loses nothing, and is counted and logged as one at the sign-in is. A person without a
token is authenticated once more by the directory that signed her in, in another tab.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Final

from anyio.to_thread import run_sync
from starlette.responses import Response

from wallflower.curator.api.callers import address_of, authenticate, require_code
from wallflower.curator.desk.logs import tell
from wallflower.curator.desk.problems import Refusal, problem
from wallflower.curator.pages.visitors.visits import Visit

_TYPED: Final = ("again", "code")  # fields that no form of ours has


def with_token(handler: Callable[[Visit], Response]) -> Callable[[Visit], Awaitable[Response]]:
    """The handler, for whoever has entered their token lately or does so now."""

    async def confirm_and_handle(visit: Visit) -> Response:
        entered, code = (visit.form.get(name, "").strip() for name in _TYPED)
        kept = replace(visit, form={name: value for name, value in visit.form.items() if name not in _TYPED})
        if _TYPED[0] in visit.form:
            try:
                await _confirm(kept, entered, code)
            except Refusal as refusal:
                stated = problem(refusal)
                return await run_sync(_ask, kept, stated["status"], stated["detail"])
        elif not _is_vouched_for(visit) and not await run_sync(visit.sessions.is_fresh, visit.cookie, _window(visit)):
            return await run_sync(_ask, kept, 401, None)
        return await run_sync(handler, kept)

    return confirm_and_handle


async def _confirm(visit: Visit, entered: str, code: str) -> None:
    """Refuse whatever is not the very token of this session, with its second factor if it has one."""
    if visit.by.is_person:
        raise Refusal("forbidden", "You signed in without a token. Confirm at your office's directory.")
    attempts = visit.app.state.attempts
    caller = await authenticate(visit.desk, attempts, entered, address_of(visit.request))
    if caller.token != visit.by.token:
        tell("another's token entered", by=visit.by.name, token=caller.token, address=caller.address)
        raise Refusal("forbidden", "This is not the token that you signed in with. Enter that one, or sign in anew.")
    await require_code(visit.desk, attempts, caller, entered, code)
    tell("token entered again", by=caller.name, token=caller.token, address=caller.address)
    await run_sync(visit.sessions.confirm, visit.cookie)


def _is_vouched_for(visit: Visit) -> bool:
    """Whether a trusted proxy has authenticated the person of this very request."""
    return visit.by.is_person and visit.desk.settings.trusted_header is not None


def _window(visit: Visit) -> timedelta:
    return timedelta(seconds=visit.desk.settings.fresh)


def _ask(visit: Visit, status: int, words: str | None) -> Response:
    enrolled = not visit.by.is_person and visit.desk.factors.is_enrolled(visit.by.token)
    made = visit.render("confirm.html", status, words=words, given=visit.form, enrolled=enrolled)
    if status == 429:
        made.headers["retry-after"] = "60"
    return made
