"""One visit to a page: who sent it, its form, where to return after signing in, and how it is answered.

Every page has the same policy: nothing from other sites, no inline script or style, no frame around it.
"""

from __future__ import annotations

import csv
import inspect
import io
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from anyio.to_thread import run_sync
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Match

from wallflower.errors import PrivacyError
from wallflower.privacy import Loss
from wallflower.release.text import sheet_cell
from wallflower.service.api.callers import PAGES_PATH, READ_METHODS, client_address
from wallflower.service.api.middleware import is_large
from wallflower.service.api.responses import FiniteJSONResponse
from wallflower.service.core.access.tokens import Caller
from wallflower.service.core.facade import Core
from wallflower.service.core.jobs import Jobs
from wallflower.service.core.logs import log_failure
from wallflower.service.core.problems import PREFIX, Refusal, problem_document, problem_headers, unanswered_refusal
from wallflower.service.pages.budget_text import ADVICE
from wallflower.service.pages.language import ENGLISH, LANGUAGES, Catalogue, environment_of, preferred_language
from wallflower.service.pages.sessions import (
    HeaderPerson,
    Sessions,
    is_current,
    new_cookie,
    open_header_session,
    person_in_header,
)
from wallflower.service.settings import Settings
from wallflower.text import t

NEXT: Final = "next"
TYPED: Final = "typed"  # ends the address of a page whose form was sent after the session had ended
_LONGEST: Final = 8000
_OUTSIDE: Final = ("/sign-in", "/sign-out", "/static")
_STEPS: Final = {
    "plan": "plan",
    "ask": "confirm",
    "confirm": "confirm",
}  # from where a form is sent to where it is seen
_QUESTION: Final = re.compile(rf"^{PAGES_PATH}/datasets/[^/]+/({'|'.join(_STEPS)})/[^/]+$")


def safe_place(text: str) -> str:
    """The place a text names, if it is one of our own pages; the first page otherwise.

    >>> safe_place("/ui/releases?before=3"), safe_place("https://evil.test/ui/"), safe_place("/ui/../../etc")
    ('/ui/releases?before=3', '/ui/', '/ui/')
    """
    first = f"{PAGES_PATH}/"
    if len(text) > _LONGEST or not text.startswith(first) or not text.isprintable() or "\\" in text:
        return first
    try:
        parts = urlsplit(text)
    except ValueError:
        return first
    inner = unquote(parts.path).removeprefix(PAGES_PATH)
    if parts.scheme or parts.netloc or "//" in inner or ".." in inner.split("/") or inner.startswith(_OUTSIDE):
        return first
    return parts._replace(fragment=TYPED if parts.fragment == TYPED else "").geturl()


def wanted_place(request: Request, form: Mapping[str, str]) -> str:
    """Where a request wanted to go: a page as it is, a question with what was typed, or the page that has the form."""
    path = str(request.scope.get("raw_path", b"").decode("ascii", "replace")) or request.url.path
    if request.method != "POST":
        query = request.url.query
        return safe_place(f"{path}?{query}" if query else path)
    found = _QUESTION.match(path)
    if found:
        kept = {name: value for name, value in form.items() if name not in ("proof", "tradeoff", "example") and value}
        steps = path.split("/")
        steps[-2] = _STEPS[found[1]]
        place = f"{'/'.join(steps)}?{urlencode(kept)}"
        return safe_place(place if kept and len(place) <= _LONGEST else "/".join(steps))
    return safe_place(f"{_page_of(request, path)}#{TYPED}")


def sign_in_at(place: str) -> str:
    """The page to sign in at, which leads there."""
    first = f"{PAGES_PATH}/sign-in"
    return first if place == f"{PAGES_PATH}/" else f"{first}?{urlencode({NEXT: place})}"


def _page_of(request: Request, path: str) -> str:
    """The nearest page above that can be looked at."""
    inner = path.removeprefix(PAGES_PATH)
    while inner:
        scope = {**request.scope, "method": "GET", "path": PAGES_PATH + unquote(inner), "root_path": PAGES_PATH}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes):
            return PAGES_PATH + inner
        inner = inner.rpartition("/")[0]
    return f"{PAGES_PATH}/"


_MAX_CELL_LETTERS: Final = 30_000  # as many as a spreadsheet takes


def csv_file(name: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> Response:
    """A table to download. No cell begins as a formula does: a spreadsheet would run it."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(head)
    writer.writerows([_cell(value) for value in row] for row in rows)
    headers = {"content-disposition": f'attachment; filename="{name}.csv"'}
    return Response("\ufeff" + text.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


def json_file(name: str, content: Mapping[str, Any]) -> Response:
    """The same for programs."""
    return FiniteJSONResponse(content, headers={"content-disposition": f'attachment; filename="{name}.json"'})


def _cell(value: object) -> object:
    return sheet_cell(value[:_MAX_CELL_LETTERS].replace("\x00", "") if isinstance(value, str) else value)


BASE: Final = PAGES_PATH
COOKIE: Final = "wallflower"
LANGUAGE: Final = "wallflower-language"
CONTENT_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
EMBED_POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'none'; frame-ancestors *; base-uri 'none'"
)
FILE_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"

Who = Literal["public", "anybody", "caller", "reader", "steward"]  # a "public" page looks at no session

# Forms that an auditor may send: they change nothing but the auditor's own sign-in.
_OWN_FORMS: Final = frozenset({"/sign-in", "/sign-out", "/language", "/second-factor", "/account", "/account/revoke"})

_HANDED: Final = "wallflower-issued"
_MOST_FIELDS: Final = 200
_MOST_OF_STEWARDS: Final = 2000  # who say what is public of every column of a table
_FORM: Final = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request for a page."""

    request: Request
    cookie: str
    caller: Caller | None = None
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def app(self) -> FastAPI:
        service: FastAPI = self.request.app.state.service
        return service

    @property
    def core(self) -> Core:
        core: Core = self.app.state.core
        return core

    @property
    def jobs(self) -> Jobs:
        jobs: Jobs = self.app.state.jobs
        return jobs

    @property
    def sessions(self) -> Sessions:
        sessions: Sessions = self.request.app.state.sessions
        return sessions

    @property
    def by(self) -> Caller:
        """The person who is signed in."""
        if self.caller is None:
            raise Refusal("unauthenticated", t("You are not signed in. Sign in with a token."))
        return self.caller

    @property
    def origin(self) -> str:
        """The public URL of the service: the `address` of the settings, else the one that the visitor uses."""
        return self.core.settings.office.address or f"{self.request.url.scheme}://{self.request.url.netloc}"

    @property
    def language(self) -> str:
        """What was chosen, or what the browser likes best, or what the settings say."""
        chosen = self.request.cookies.get(LANGUAGE, "")
        usual = self.core.settings.office.language
        wanted = (
            chosen
            if chosen in LANGUAGES
            else preferred_language(self.request.headers.get("accept-language", ""), LANGUAGES)
        )
        return wanted or (usual if usual in LANGUAGES else ENGLISH)

    @property
    def catalogue(self) -> Catalogue:
        """The messages in the language of the visitor."""
        return LANGUAGES[self.language]

    @property
    def place(self) -> str:
        """The address of this page under /ui; after a form was sent, that of the first page."""
        query = f"?{self.request.url.query}" if self.request.url.query else ""
        return self.request.url.path.removeprefix(BASE) + query if self.request.method == "GET" else "/"

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])

    def render(self, template: str, status: int = 200, **context: Any) -> Response:
        """A page, with what every page needs."""
        known: dict[str, Any] = {
            "base": BASE,
            "caller": self.caller,
            "proof": self.sessions.proof(self.cookie),
            "version": self.app.version,
        }
        catalogue = self.catalogue
        known |= {"office": self.core.settings.office, "place": self.place, "openid": self.core.settings.openid}
        known |= {"has_proposals": self.core.settings.four_eyes_above is not None}
        known |= {"language": catalogue.code, "languages": list(LANGUAGES.values())}
        page = HTMLResponse(environment_of(catalogue.code).get_template(template).render({**known, **context}), status)
        if self.request.cookies.get(cookie_name(self.request)) != self.cookie:
            self.keep(page, self.cookie)
        return page

    def keep(self, response: Response, cookie: str) -> None:
        """Have the browser keep this cookie, for this service alone."""
        response.set_cookie(cookie_name(self.request), cookie, **cookie_flags(self.request))

    @property
    def token_to_show(self) -> str:
        """The token that this page is given to show; its reader checks that it is one."""
        return self.request.cookies.get(_HANDED, "")

    def set_token_cookie(self, response: Response, token: str | None, to_page: str = "tokens") -> None:
        """Have the browser bring a token to a page that shows it, once, within a minute; None takes it back."""
        flags = {**cookie_flags(self.request), "path": f"{BASE}/{to_page}"}
        response.set_cookie(_HANDED, token or "", max_age=60 if token else 0, **flags)

    def set_language(self, response: Response, code: str) -> None:
        """Have the browser keep a language."""
        flags = {**cookie_flags(self.request), "path": BASE}
        response.set_cookie(LANGUAGE, code, max_age=31_536_000, **flags)

    def forget(self, response: Response) -> None:
        """Have the browser forget the cookie."""
        response.delete_cookie(cookie_name(self.request), **cookie_flags(self.request))


def page(
    handler: Callable[[Visit], Response] | Callable[[Visit], Awaitable[Response]],
    who: Who = "caller",
    *,
    computes: bool = False,
) -> Callable[[Request], Awaitable[Response]]:
    """A route for this handler: it runs only for people who may see the page, with a form that is ours.

    A page that `computes` takes processor time, so it waits in the queue of computations. Visitors who are not signed
    in share a few threads, so that a flood of them leaves the others free.
    """

    async def endpoint(request: Request) -> Response:
        visit = Visit(request=request, cookie=request.cookies.get(cookie_name(request), "")[:100] or new_cookie())
        try:
            is_signed = who != "public" and visit.sessions.is_signed(visit.cookie)
            known = await run_sync(visit.sessions.caller, visit.cookie) if is_signed else None
            if visit.core.settings.trusted_header is not None and who != "public":
                person = person_in_header(request, visit.core.settings)
                known = known if known is not None and is_current(known, person, visit.core.settings) else None
                if known is None and person is not None and request.method == "GET":
                    return await _sign_in_by_header(visit, person)
            visit = replace(visit, caller=known and replace(known, address=client_address(request)))
            request.state.visitor = visit.caller  # for the log
            if who not in ("public", "anybody") and visit.caller is None:
                return await _sign_in_first(visit)
            if request.method == "POST":
                visit = replace(visit, form=await _form(visit))
            _require_role(visit, who)
            if inspect.iscoroutinefunction(handler):
                answered: Response = await handler(visit)
                return answered
            work: Callable[[], Response] = partial(handler, visit)  # type: ignore[assignment]
            if computes:
                return await _compute(visit, work)
            return await run_sync(work, limiter=visit.core.strangers if visit.caller is None else None)
        except PrivacyError as refusal:
            return refusal_page(visit, refusal)
        except Exception as error:  # noqa: BLE001 - whatever happens, only constant words may leave
            log_failure("page", error)
            return refusal_page(visit, unanswered_refusal())

    return endpoint


def _require_role(visit: Visit, who: Who) -> None:
    """Refuse a visitor whose role does not reach; an auditor sends no form but those of her own sign-in."""
    if who == "steward" and not visit.by.is_steward:
        raise Refusal("forbidden", t("Only a data steward may do this. Ask the data steward."))
    if who == "reader" and not visit.by.reads_all:
        raise Refusal("forbidden", t("Only a data steward or an auditor may read this. Ask the data steward."))
    is_form = visit.request.method not in READ_METHODS
    path = visit.request.url.path.removeprefix(BASE)
    if is_form and visit.caller is not None and visit.caller.is_auditor and path not in _OWN_FORMS:
        raise Refusal("forbidden", t("An auditor may read but not change anything. Ask the data steward."))


async def _compute(visit: Visit, work: Callable[[], Response]) -> Response:
    """Work in the turn of the visitor, unless the browser has given up meanwhile."""
    queue = visit.core.computations
    async with queue.turn(visit.by.name):
        if await visit.request.is_disconnected():
            return Response(status_code=204)
        return await queue.run_in_thread(work)


async def _sign_in_by_header(visit: Visit, person: HeaderPerson) -> Response:
    """Open a session for the person whom a trusted proxy names, and come back to the page with its cookie."""
    request = visit.request
    cookie = await run_sync(open_header_session, visit.core, visit.sessions, person, client_address(request))
    response = RedirectResponse(wanted_place(request, {}), 303)
    visit.keep(response, cookie)
    return response


async def _sign_in_first(visit: Visit) -> Response:
    """Where to sign in, and then back; a form that is ours keeps what was typed. A link from elsewhere
    comes without the cookie, which is for our own pages alone: a page of ours goes on from there, with it."""
    request, form = visit.request, dict[str, str]()
    if request.method == "POST":
        with suppress(Refusal):
            form = dict(await _form(visit))
    elif request.headers.get("sec-fetch-site") == "cross-site" and cookie_name(request) not in request.cookies:
        return HTMLResponse(environment_of(ENGLISH).get_template("arrival.html").render())
    return RedirectResponse(sign_in_at(wanted_place(request, form)), 303)


def cookie_name(request: Request) -> str:
    """What our cookie is called: over TLS so that a browser takes it from this very host alone, and only over TLS
    [RFC 6265bis]."""
    return f"__Host-{COOKIE}" if is_secure(request) else COOKIE


def cookie_flags(request: Request) -> Any:
    """How every cookie of ours is set: for this host, our own pages and no script; over TLS alone if there is TLS."""
    secure = is_secure(request)
    return {"path": "/" if secure else BASE, "httponly": True, "samesite": "strict", "secure": secure}


def is_secure(request: Request) -> bool:
    """Whether visitors come over TLS: as the request says, or as the settings do of the proxy in front."""
    settings: Settings = request.app.state.service.state.core.settings
    return settings.is_behind_tls or request.url.scheme == "https"


def place(*parts: str) -> str:
    """A path under /ui."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def redirect(place: str) -> Response:
    """Redirect to another page."""
    return RedirectResponse(f"{BASE}{place}", 303)


def number_of(visit: Visit, name: str) -> int | None:
    """A number from the address, if it is one."""
    text = visit.request.query_params.get(name, "")
    return entry_number(text)


def entry_number(text: str) -> int | None:
    """A text as the number of an entry of the ledger; None: it is no such number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 11 and 0 < int(text) < 2**31 else None


def refusal_page(visit: Visit, refusal: PrivacyError, **context: Any) -> Response:
    """A refusal as a page, in the words that a program would be told."""
    return problem_page(visit, problem_document(refusal), **context)


def problem_page(visit: Visit, stated: Mapping[str, Any], **context: Any) -> Response:
    """A problem as a page."""
    kind = str(stated["type"]).removeprefix(PREFIX)
    losses = {name: Loss.from_json(stated[name]) for name in ("asked", "left", "booked") if stated.get(name)}
    advice = ADVICE.get(stated.get("part") or "epsilon")
    made = visit.render("problem.html", stated["status"], problem=stated, kind=kind, advice=advice, **losses, **context)
    if "retry-after" in problem_headers(stated):
        made.headers["retry-after"] = problem_headers(stated)["retry-after"]
    return made


def _parse_form(body: bytes, most: int) -> list[tuple[str, str]]:
    return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=most)


async def _form(visit: Visit) -> Mapping[str, str]:
    if visit.request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise Refusal("malformed", t("The body is not a form. Use the form on the page."))
    if visit.request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refusal("forbidden", t("This form was sent from another site. Use the form on the page."))
    most = _MOST_OF_STEWARDS if visit.caller is not None and visit.caller.is_steward else _MOST_FIELDS
    body = await visit.request.body()
    parse = partial(_parse_form, body, most)
    try:
        pairs = await run_sync(parse) if is_large(body) else parse()
    except ValueError:
        raise Refusal("malformed", t("The form cannot be read. Go back, reload the page and try again.")) from None
    form: dict[str, str] = {}
    for name, value in pairs:  # boxes that are ticked have one name
        text = value.replace("\r\n", "\n")
        form[name] = f"{form[name]}, {text}" if name in form else text
    if not visit.sessions.is_proof(visit.cookie, form.pop("proof", "")):
        raise Refusal(
            "forbidden",
            t("This form does not come from a page you were given. Go back, reload the page and try again."),
        )
    return form
