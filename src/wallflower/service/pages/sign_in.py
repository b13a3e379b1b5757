"""Signing in and out, the own account, the second factor, and the confirmation before a sensitive act.

A visitor who has entered the token within `reauth_seconds` is not asked again. Otherwise a page asks for it and keeps
what the form said; a wrong token is counted and logged as one at the sign-in is. A person without a token is
authenticated once more by the provider that signed her in, in another tab.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Final

import segno
from anyio.to_thread import run_sync
from markupsafe import Markup
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from wallflower.errors import ParameterError, PrivacyError
from wallflower.service.api.callers import authenticate, client_address, require_code
from wallflower.service.core.access.factors import authenticator_address, new_factor_secret
from wallflower.service.core.access.people import TOKEN_SCOPES
from wallflower.service.core.facade import MAX_OWN_TOKEN_DAYS
from wallflower.service.core.logs import log_event
from wallflower.service.core.problems import Refusal, problem_document
from wallflower.service.pages.openid import REFUSALS, logout_url
from wallflower.service.pages.visit import NEXT, Visit, page, redirect, safe_place
from wallflower.text import t

_TYPED: Final = ("again", "code")  # fields that no form of ours has


def with_token(handler: Callable[[Visit], Response]) -> Callable[[Visit], Awaitable[Response]]:
    """Return the handler, for people who have entered their token lately or do so now."""

    async def confirm_and_handle(visit: Visit) -> Response:
        entered, code = (visit.form.get(name, "").strip() for name in _TYPED)
        kept = replace(visit, form={name: value for name, value in visit.form.items() if name not in _TYPED})
        if _TYPED[0] in visit.form:
            try:
                await _confirm(kept, entered, code)
            except Refusal as refusal:
                stated = problem_document(refusal)
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
    caller = await authenticate(visit.core, attempts, entered, client_address(visit.request))
    if caller.token != visit.by.token:
        log_event("another's token entered", by=visit.by.name, token=caller.token, address=caller.address)
        raise Refusal("forbidden", "This is not the token that you signed in with. Enter that one, or sign in again.")
    await require_code(visit.core, attempts, caller, entered, code)
    log_event("token entered again", by=caller.name, token=caller.token, address=caller.address)
    await run_sync(visit.sessions.confirm, visit.cookie)


def _is_vouched_for(visit: Visit) -> bool:
    """Whether a trusted proxy has authenticated the person of this very request."""
    return visit.by.is_person and visit.core.settings.trusted_header is not None


def _window(visit: Visit) -> timedelta:
    return timedelta(seconds=visit.core.settings.reauth_seconds)


def _ask(visit: Visit, status: int, words: str | None) -> Response:
    enrolled = not visit.by.is_person and visit.core.factors.is_enrolled(visit.by.token)
    made = visit.render("confirm.html", status, words=words, given=visit.form, enrolled=enrolled)
    if status == 429:
        made.headers["retry-after"] = "60"
    return made


def routes() -> list[Route]:
    """Where one signs in and out."""
    return [
        Route("/sign-in", page(sign_in_form, "anybody")),
        Route("/sign-in", page(sign_in, "anybody"), methods=["POST"]),
        Route("/sign-out", page(sign_out, "anybody"), methods=["POST"]),
        *_account_routes(),
        *_second_factor_routes(),
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
        caller = await authenticate(visit.core, visit.app.state.attempts, text, client_address(visit.request))
        if caller.is_monitor:
            raise Refusal("forbidden", "This token reads the metrics and nothing else. Sign in with another.")
        if caller.is_agent:
            raise Refusal("forbidden", "This token is for an agent, which confirms nothing. Sign in with your own.")
        await require_code(visit.core, visit.app.state.attempts, caller, text, visit.form.get("code", "").strip())
    except Refusal as refusal:
        stated = problem_document(refusal)
        return visit.render("sign-in.html", stated["status"], words=stated["detail"], place=place)
    log_event("signed in", by=caller.name, token=caller.token, address=caller.address)
    found = RedirectResponse(place, 303)
    visit.keep(found, await run_sync(visit.sessions.open, caller))
    return found


async def sign_out(visit: Visit) -> Response:
    """The session ends here, not only in the browser; a person who signed in at the directory signs out there too."""
    session = await run_sync(visit.sessions.person_session, visit.cookie)
    await run_sync(visit.sessions.end, visit.cookie)
    id_token = None if session is None else session.id_token
    url = None if id_token is None else await logout_url(visit, id_token)
    response = redirect("/sign-in") if url is None else RedirectResponse(url, 303)
    visit.forget(response)
    return response


def _account_routes() -> list[Route]:
    """The page of one's own account."""
    return [
        Route("/account", page(show_account)),
        Route("/account", page(with_token(create_own_token)), methods=["POST"]),
        Route("/account/revoke", page(revoke_own_token), methods=["POST"]),
    ]


def show_account(visit: Visit) -> Response:
    """Her role, groups and tokens, and the text of one that was issued just now."""
    _require_person(visit)
    text = visit.token_to_show
    holder = visit.core.tokens.caller(text)
    if holder is None or holder.name != visit.by.name:
        return _show(visit, 200)
    response = _show(visit, 200, text=text)
    visit.set_token_cookie(response, None, "account")
    return response


def create_own_token(visit: Visit) -> Response:
    """A token for her programs. The page that follows shows its text once."""
    _require_person(visit)
    days = visit.form.get("days", "").strip()
    try:
        if not (days.isascii() and days.isdigit() and len(days) < 8):
            raise ParameterError(f"days: your token is valid for 1 to {MAX_OWN_TOKEN_DAYS} days. Choose a number.")
        _, text = visit.core.issue_own_token(visit.by, visit.form.get("scope", ""), days=int(days))
    except PrivacyError as refusal:
        stated = problem_document(refusal)
        return _show(visit, stated["status"], words=stated["detail"])
    response = redirect("/account")
    visit.set_token_cookie(response, text, "account")
    return response


def revoke_own_token(visit: Visit) -> Response:
    """End a token of her own."""
    _require_person(visit)
    visit.core.revoke_own_token(visit.by, visit.form.get("token", ""))
    return redirect("/account")


def _require_person(visit: Visit) -> None:
    if not visit.by.is_person:
        raise Refusal("not-found", "You signed in with a token, which has no account. Its page is the second factor.")


def _show(visit: Visit, status: int, *, words: str | None = None, text: str | None = None) -> Response:
    person = visit.core.people.find(visit.by.name)
    return visit.render(
        "account.html",
        status,
        person=person,
        tokens=list(reversed(visit.core.own_tokens(visit.by))),
        uses=visit.core.tokens.uses(),
        scopes=TOKEN_SCOPES[person.role],
        max_days=MAX_OWN_TOKEN_DAYS,
        words=words,
        text=text,
    )


def _second_factor_routes() -> list[Route]:
    """The page of one's own second factor."""
    return [
        Route("/second-factor", page(show_factor)),
        Route("/second-factor", page(enrol_factor), methods=["POST"]),
    ]


def show_factor(visit: Visit) -> Response:
    """Whether the token has a second factor, or a new secret to enrol."""
    if visit.by.is_person:
        return redirect("/account")
    return _second_factor_show(visit, new_factor_secret(), 200, None)


async def enrol_factor(visit: Visit) -> Response:
    """Enrol the secret that the page has shown, for a person who enters the token of this session and a code."""
    secret = _secret_in(visit)
    try:
        text = visit.form.get("token", "").strip()
        caller = await authenticate(visit.core, visit.app.state.attempts, text, client_address(visit.request))
        if caller.token != visit.by.token:
            raise Refusal("forbidden", "This is not the token that you signed in with. Enter that one.")
        code = visit.form.get("code", "").strip()
        await run_sync(visit.core.enrol_factor, caller, text, secret, code)
    except Refusal as refusal:
        stated = problem_document(refusal)
        return await run_sync(_second_factor_show, visit, secret, stated["status"], stated["detail"])
    return redirect("/second-factor")


def _second_factor_show(visit: Visit, secret: bytes, status: int, words: str | None) -> Response:
    text, address = base64.b32encode(secret).decode(), authenticator_address(visit.by.name, secret)
    return visit.render(
        "second-factor.html",
        status,
        enrolled=visit.core.factors.is_enrolled(visit.by.token),
        secret=text,
        seal=_seal(visit, text),
        address=address,
        picture=draw_code(address),
        words=words,
    )


def draw_code(text: str) -> Markup:
    """A QR code as SVG, black on white in every theme; only its own numbers are in it, never the text."""
    drawing = segno.make(text, error="m").svg_inline(scale=5, border=4, dark="#000", light="#fff", omitsize=False)
    return Markup(drawing)  # noqa: S704 - made of numbers alone


def _secret_in(visit: Visit) -> bytes:
    text = visit.form.get("secret", "")
    if _seal(visit, text) != visit.form.get("seal"):
        raise Refusal("forbidden", "This secret does not come from a page you were given. Reload the page.")
    try:
        return base64.b32decode(text)
    except (ValueError, binascii.Error):
        raise Refusal("malformed", "The secret cannot be read. Reload the page.") from None


def _seal(visit: Visit, secret: str) -> str:
    return visit.sessions.proof(f"second factor {secret} {visit.cookie}")


_DONE: Final = {
    "registered": t("The data set is registered. Set its budget next: until then the default budget applies."),
    "grants": t("The budget is set."),
    "quotas": t("The quota is set."),
    "declaration": t("The unit of protection is declared."),
    "constrained": t("The allowance for output-constrained answers is set."),
    "factor": t("The second factor is removed: the token alone is enough from now on."),
    "proposed": t("This is above the ε in the settings, so a second data steward must confirm it."),
    "confirmed": t("The proposal is confirmed and recorded in the ledger."),
    "declined": t("The proposal is declined. Nothing was changed."),
    "disabled": t("The person is disabled: all sessions and personal tokens have ended."),
    "enabled": t("The person may sign in again."),
    "renamed": t("The next directory account that signs in under this name gets it."),
    "revoke": t("The token is revoked, and everyone signed in with it is signed out."),
}


def act_route(path: str, handler: Callable[[Visit], Response]) -> Route:
    """A change, for which the token is entered again."""
    return Route(path, page(with_token(handler), "steward"), methods=["POST"])


def done_text(visit: Visit) -> str | None:
    """What was done just now, as the address says."""
    return _DONE.get(visit.request.query_params.get("done", ""))
