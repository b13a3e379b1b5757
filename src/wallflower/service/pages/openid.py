"""Sign-in with the account of an office: by an OpenID provider.

A sign-in begins with a cookie of its own, which the browser brings along when the provider sends it back. State, nonce
and PKCE verifier are derived from the cookie with a secret of the service: nothing is stored for a visitor who has not
signed in yet, and a callback without the cookie, or with another state, is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from wallflower.errors import PrivacyError
from wallflower.machine.lazy import Lazy
from wallflower.service.api.callers import PAGES_PATH, client_address
from wallflower.service.core.access.tokens import shared_secret
from wallflower.service.core.logs import log_event, log_failure
from wallflower.service.core.problems import Refusal, problem_document
from wallflower.service.pages.language import ENGLISH, environment_of
from wallflower.service.pages.sessions import PersonSession, SessionTerms, new_cookie, open_person_session, session_key
from wallflower.service.pages.visit import NEXT, Visit, cookie_flags, is_secure, page, safe_place
from wallflower.service.settings import Settings

if TYPE_CHECKING:
    import wallflower.service.core.access.openid as _openid
else:
    _openid = Lazy("wallflower.service.core.access.openid")

# Why a sign-in failed, by the kind of refusal. The words are constant: they repeat nothing that the provider sent.
REFUSALS: Final = {
    "unauthenticated": "The sign-in at your office's directory was not accepted. Sign in again.",
    "forbidden": "Your account may not use this service. It needs a group that has access, and a data steward who has "
    "not disabled it. Ask a data steward.",
    "conflict": "Another account has signed in under your name before. Ask a data steward.",
    "busy": "Your office's directory cannot be reached. Try again, or sign in with a token.",
}
CALLBACK: Final = f"{PAGES_PATH}/sign-in/callback"
MAX_SIGN_IN_SECONDS: Final = 600
MAX_PLACE_LETTERS: Final = 1500
MAX_LOGOUT_BODY_BYTES: Final = 2**16
_MAX_COOKIE_LETTERS: Final = 4000
_FORM: Final = "application/x-www-form-urlencoded"
_COOKIE: Final = "wallflower-sign-in"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """A sign-in that has begun, as its cookie holds it."""

    random: str
    began: int
    place: str
    session: str = ""  # key of the session whose person is authenticated once more

    def derive(self, secret: bytes, purpose: str) -> str:
        """A text for one purpose of this sign-in, which nobody without the cookie and the secret can know."""
        digest = hmac.digest(secret, f"{purpose}:{self.random}".encode(), "sha256")
        return urlsafe_b64encode(digest).rstrip(b"=").decode()

    def to_cookie(self, secret: bytes) -> str:
        body = json.dumps([self.random, self.began, self.place, self.session]).encode()
        return f"{urlsafe_b64encode(body).decode()}.{_sign(secret, body)}"

    @classmethod
    def from_cookie(cls, secret: bytes, text: str) -> Self | None:
        """The sign-in of a cookie that this service made lately; None otherwise."""
        encoded, _, signature = text[:_MAX_COOKIE_LETTERS].partition(".")
        try:
            body = urlsafe_b64decode(encoded.encode())
        except ValueError:
            return None
        if not hmac.compare_digest(_sign(secret, body).encode(), signature.encode("utf-8", "surrogatepass")):
            return None
        random, began, place, session = json.loads(body)
        is_recent = -1 <= time.time() - began <= MAX_SIGN_IN_SECONDS
        return cls(random=random, began=began, place=place, session=session) if is_recent else None


def routes() -> list[Route]:
    """The sign-in with the account of an office."""
    return [
        Route("/sign-in/directory", page(begin, "anybody")),
        Route("/sign-in/callback", page(finish, "anybody")),
        Route("/sign-in/confirmed", page(show_confirmed)),
        Route("/sign-in/logout", back_channel_logout, methods=["POST"]),
    ]


def provider_of(settings: Settings) -> _openid.Provider | None:
    """The OpenID provider of the settings; None: there is none."""
    if settings.openid is None:
        return None
    return _openid.Provider(settings.openid, f"{settings.office.address}{CALLBACK}")


async def begin(visit: Visit) -> Response:
    """Send the browser to the provider, with a cookie that knows the sign-in when it comes back."""
    provider, secret = _provider(visit), await run_sync(_secret, visit)
    place = safe_place(visit.request.query_params.get(NEXT, ""))
    again = "again" in visit.request.query_params and visit.caller is not None and visit.caller.is_person
    session = session_key(visit.cookie) if again else ""
    is_short = len(place) <= MAX_PLACE_LETTERS  # a longer one does not fit into a cookie
    kept = place if is_short else f"{PAGES_PATH}/"
    sign_in = SignIn(random=new_cookie(), began=int(time.time()), place=kept, session=session)
    derived = {name: sign_in.derive(secret, name) for name in ("state", "nonce", "verifier")}
    try:
        url = await provider.authorization_url(**derived, again=again)
    except Refusal as refusal:
        return _refuse(refusal, place)
    response = RedirectResponse(url, 303)
    _set_cookie(visit, response, sign_in.to_cookie(secret))
    return response


def show_confirmed(visit: Visit) -> Response:
    """Say that the person was authenticated again, in a tab of its own."""
    return visit.render("confirmed.html")


async def finish(visit: Visit) -> Response:
    """Take the person back from the provider: check the state, redeem the code, open a session with a new cookie."""
    query, secret = visit.request.query_params, await run_sync(_secret, visit)
    sign_in = SignIn.from_cookie(secret, visit.request.cookies.get(_cookie_name(visit.request), ""))
    place = f"{PAGES_PATH}/" if sign_in is None else sign_in.place
    try:
        if sign_in is None:
            raise Refusal("unauthenticated", "This sign-in took too long, or began in another browser. Sign in again.")
        state = sign_in.derive(secret, "state").encode()
        if not hmac.compare_digest(state, query.get("state", "").encode("utf-8", "surrogatepass")):
            raise Refusal("unauthenticated", "This sign-in did not begin here. Sign in again.")
        if "error" in query or not query.get("code"):
            raise Refusal("unauthenticated", "The directory did not sign you in. Sign in again.")
        identity = await _provider(visit).redeem(
            query["code"], nonce=sign_in.derive(secret, "nonce"), verifier=sign_in.derive(secret, "verifier")
        )
        response = await _accept(visit, identity, sign_in)
    except Refusal as refusal:
        visit.core.metrics.count("authentication_failures")
        log_event("sign-in failed", address=client_address(visit.request), reason=refusal.kind)
        response = _refuse(refusal, place)
    _set_cookie(visit, response, None)
    return response


async def _accept(visit: Visit, identity: _openid.Identity, sign_in: SignIn) -> Response:
    openid = visit.core.settings.openid
    assert openid is not None
    if sign_in.session:
        return await _confirm_again(visit, identity, sign_in)
    session = PersonSession(
        person=identity.name,
        issuer=identity.issuer,
        subject=identity.subject,
        session=identity.session,
        id_token=identity.id_token,
    )
    terms = SessionTerms(session_hours=openid.session_hours, token_days=openid.token_days)
    address = client_address(visit.request)
    cookie = await run_sync(open_person_session, visit.core, visit.sessions, session, identity.groups, terms, address)
    response = _go_on(sign_in.place)
    visit.keep(response, cookie)
    return response


async def _confirm_again(visit: Visit, identity: _openid.Identity, sign_in: SignIn) -> Response:
    """Note that the person of a session was authenticated again. The browser does not bring the cookie of the session
    from the provider, so the sign-in knows the session by its key."""
    authenticated = identity.authenticated or 0.0
    if authenticated < sign_in.began - _openid.MAX_CLOCK_SKEW_SECONDS:
        raise Refusal("unauthenticated", "The directory did not authenticate you again. Sign out, and sign in again.")
    confirm = visit.sessions.confirm_person
    if not await run_sync(confirm, sign_in.session, identity.issuer, identity.subject):
        raise Refusal("unauthenticated", "Another account signed in. Use the one that you signed in with.")
    return _go_on(f"{PAGES_PATH}/sign-in/confirmed")


async def back_channel_logout(request: Request) -> Response:
    """End the sessions that the provider says are over. The token that says so is signed, so it needs no proof."""
    service = request.app.state.service
    provider: _openid.Provider | None = service.state.openid
    address = client_address(request)
    headers = {"cache-control": "no-store"}
    try:
        if provider is None:
            raise Refusal("not-found", "Nobody signs in with a directory here.")
        body = await request.body()
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
            raise Refusal("malformed", "A logout is a form with a logout_token.")
        if len(body) > MAX_LOGOUT_BODY_BYTES:
            raise Refusal("malformed", "The logout token is too large.")
        form = dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=10))
        logout = await provider.read_logout(form.get("logout_token", ""))
        ended = await run_sync(
            lambda: request.app.state.sessions.end_at_directory(
                issuer=logout.issuer, subject=logout.subject, session=logout.session
            )
        )
    except PrivacyError as refusal:
        too_many = service.state.attempts.note(address)
        log_event("logout by the directory failed", address=address)
        stated = problem_document(refusal)
        status = 404 if stated["status"] == 404 else 429 if too_many else 400
        return Response(status_code=status, headers=headers)
    except ValueError as error:
        log_failure("logout", error)
        return Response(status_code=400, headers=headers)
    log_event("signed out by the directory", sessions=ended, address=address)
    return Response(status_code=200, headers=headers)


async def logout_url(visit: Visit, id_token: str) -> str | None:
    """Where the browser signs out at the provider too; None: nowhere, or the provider cannot be reached."""
    provider: _openid.Provider | None = visit.app.state.openid
    if provider is None:
        return None
    try:
        return await provider.logout_url(
            id_token=id_token, return_to=f"{visit.core.settings.office.address}{PAGES_PATH}/sign-in"
        )
    except Refusal:
        return None


def form_targets(settings: Settings) -> str:
    """Where forms may lead: to our own pages, and at the sign-out on to the provider."""
    if settings.openid is None:
        return "'self'"
    parts = urlsplit(settings.openid.issuer)
    return f"'self' {parts.scheme}://{parts.netloc}"


def _provider(visit: Visit) -> _openid.Provider:
    provider: _openid.Provider | None = visit.app.state.openid
    if provider is None:
        raise Refusal("not-found", "Nobody signs in with a directory here. Sign in with a token.")
    return provider


def _go_on(place: str, status: int = 200) -> Response:
    """A page of ours that goes on to a place. A redirect would still count as coming from the provider, and the browser
    would not bring the cookie of the session along."""
    return HTMLResponse(environment_of(ENGLISH).get_template("arrival.html").render({"place": place}), status)


def _refuse(refusal: Refusal, place: str) -> Response:
    """Go on to the page of the sign-in, which says why. It is not rendered here, where it would replace the cookie of
    a session that the browser has not brought along."""
    stated = {"refused": refusal.kind, NEXT: place}
    return _go_on(f"{PAGES_PATH}/sign-in?{urlencode(stated)}", problem_document(refusal)["status"])


def _secret(visit: Visit) -> bytes:
    return shared_secret(visit.core.records, "directory")


def _sign(secret: bytes, body: bytes) -> str:
    return hmac.new(secret, b"sign-in:" + body, hashlib.sha256).hexdigest()


def _cookie_name(request: Request) -> str:
    return f"__Host-{_COOKIE}" if is_secure(request) else _COOKIE


def _set_cookie(visit: Visit, response: Response, value: str | None) -> None:
    """Keep the cookie of a sign-in for some minutes, or take it back. The browser brings it from the provider too."""
    flags = {**cookie_flags(visit.request), "samesite": "lax"}
    response.set_cookie(_cookie_name(visit.request), value or "", max_age=MAX_SIGN_IN_SECONDS if value else 0, **flags)
