"""Authentication: the token of a request is checked before its body is read and its route is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Final

from anyio.to_thread import run_sync
from fastapi import Depends, FastAPI, Header, Request
from fastapi.security import HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param
from starlette.types import Scope

from wallflower.service.api.middleware import Admit, Attempts
from wallflower.service.api.routes.operation import is_scrape
from wallflower.service.core.access.tokens import Caller, token_id
from wallflower.service.core.facade import Core
from wallflower.service.core.logs import log_event
from wallflower.service.core.problems import Refusal

PAGES_PATH: Final = "/ui"
AGENTS_PATH: Final = "/mcp"
_HEALTH: Final = frozenset({"/healthz", "/readyz"})
LETTER_PATH: Final = "/v1/letter"  # it has tokens of its own
_OPEN: Final = frozenset({"/", "/docs", "/healthz", "/readyz", "/openapi.json", LETTER_PATH})
_METRICS: Final = "/metrics"
READ_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_FACTOR: Final = "second-factor"
_FACTOR_ROUTE: Final = f"/v1/{_FACTOR}"
Code = Annotated[
    str | None,
    Header(
        alias="Second-Factor",
        max_length=100,
        description="if the token has a second factor: a code, or the pass that a code has bought",
    ),
]
_BEARER = HTTPBearer(auto_error=False, description="A token that a steward has made: `wallflower serve token create`.")


async def get_core(request: Request) -> Core:
    """The core of this service."""
    core: Core = request.app.state.core
    return core


async def authenticate(core: Core, attempts: Attempts, text: str, address: str) -> Caller:
    """Return the holder of a token. Failures are counted by address and by token, and never lock out a valid token."""
    found, key = core.tokens.recent_caller(text), token_id(text)
    if found is None and key:  # malformed tokens are not looked up
        threads = None if core.tokens.was_valid(text) else core.strangers
        found = await run_sync(core.tokens.caller, text, limiter=threads)
    if found is not None:
        return replace(found, address=address)
    core.metrics.count("authentication_failures")
    log_event("authentication failed", address=address, token=key)
    if any([attempts.note(address), bool(key) and attempts.note(f"token {key}")]):
        raise Refusal("too-many-attempts", "Too many attempts without a valid token. Wait a minute.")
    raise Refusal("unauthenticated", "The token is missing, unknown, expired or revoked. Ask the steward for another.")


async def require_code(core: Core, attempts: Attempts, caller: Caller, text: str, code: str | None) -> None:
    """Refuse a caller whose token has a second factor and who shows no code. Wrong ones are counted as tokens are."""
    try:
        await run_sync(core.factors.require, text, code)
    except Refusal:
        core.metrics.count("authentication_failures")
        log_event("second factor failed", by=caller.name, token=caller.token, address=caller.address)
        if code and any([attempts.note(caller.address), attempts.note(f"token {caller.token}")]):
            raise Refusal("too-many-attempts", "Too many attempts without a valid code. Wait a minute.") from None
        raise


def doorman(app: FastAPI) -> Admit:
    """Whatever is not open to all needs a valid token before its body is read. The caller is noted for the route."""

    async def admit(scope: Scope) -> None:
        if is_open(scope["path"]):
            return
        request = Request(scope)
        if is_scrape(app, scope["path"], bearer_of(request)):
            return
        caller = await authenticate(app.state.core, app.state.attempts, bearer_of(request), client_address(request))
        if not may_enter(caller, scope["path"]):
            raise Refusal("forbidden", "A token for another purpose is needed. Ask the steward.")
        if caller.is_auditor and scope["method"] not in READ_METHODS and scope["path"] != _FACTOR_ROUTE:
            raise Refusal("forbidden", "An auditor reads and changes nothing. Ask the steward.")
        if caller.has_factor:
            code = request.headers.get(_FACTOR)
            await require_code(app.state.core, app.state.attempts, caller, bearer_of(request), code)
        request.state.caller = caller

    return admit


def stranger_test(app: FastAPI) -> Callable[[Scope], bool]:
    """Whether a request brings neither a session's cookie nor a token that was valid before; nothing is looked up."""

    def is_stranger(scope: Scope) -> bool:
        if scope["path"] in _HEALTH:
            return False
        request, core = Request(scope), app.state.core
        if is_page(scope["path"]):
            return not any(map(app.state.sessions.is_signed, request.cookies.values()))
        bearer = bearer_of(request)
        return not (is_scrape(app, scope["path"], bearer) or core.tokens.was_valid(bearer))

    return is_stranger


def bearer_of(request: Request) -> str:
    """The token that a request brings; an empty text: none."""
    scheme, text = get_authorization_scheme_param(request.headers.get("authorization"))
    return text if scheme.lower() == "bearer" else ""


def may_enter(caller: Caller, path: str) -> bool:
    """Metrics tell of everybody's questions, so no analyst reads them; a monitor reads nothing else. An agent enters
    the MCP server and nothing else: there is no way around the person who has to confirm."""
    if caller.is_agent or path == AGENTS_PATH:
        return caller.is_agent and path == AGENTS_PATH
    return caller.is_steward or caller.is_monitor is (path == _METRICS)


def client_address(request: Request) -> str:
    """Where a request comes from, as far as is known."""
    return request.client.host if request.client else ""


def is_open(path: str) -> bool:
    """Whether a path answers without a token: pages have sessions of their own.

    >>> is_open("/ui/sign-in"), is_open("/uid"), is_open("/v1/datasets")
    (True, False, False)
    """
    return path in _OPEN or is_page(path)


def is_page(path: str) -> bool:
    """Whether a path is a page, which has sessions and no token."""
    return path == PAGES_PATH or path.startswith(f"{PAGES_PATH}/")


async def _anybody(request: Request, _: Annotated[object, Depends(_BEARER)], code: Code = None) -> Caller:
    """Whom the doorman let in; the other parameters put the scheme and the second factor into OpenAPI."""
    caller: Caller = request.state.caller
    return caller


async def _steward(caller: Annotated[Caller, Depends(_anybody)]) -> Caller:
    if not caller.is_steward:
        raise Refusal("forbidden", "Only a steward may do this. Ask the steward.")
    return caller


async def _reader(caller: Annotated[Caller, Depends(_anybody)]) -> Caller:
    if not caller.reads_all:
        raise Refusal("forbidden", "Only a steward or an auditor may read this. Ask the steward.")
    return caller


async def _letter_token(request: Request, _: Annotated[object, Depends(_BEARER)]) -> str:
    """The token of a request whose path has tokens of its own; the other parameter puts the scheme into OpenAPI."""
    return bearer_of(request)


AnyCaller = Annotated[Caller, Depends(_anybody)]
LetterToken = Annotated[str, Depends(_letter_token)]
Steward = Annotated[Caller, Depends(_steward)]
Reader = Annotated[Caller, Depends(_reader)]
TheCore = Annotated[Core, Depends(get_core)]
