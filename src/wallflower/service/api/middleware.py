"""Middleware before every route: limits on requests, allowed hosts, trusted proxies, compression, one log line each.

Callers without a session or a valid token share a few slots, so that a flood of them delays the others little.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from threading import Lock
from typing import Any, Final

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from wallflower.errors import PrivacyError
from wallflower.service.core.access.tokens import new_id
from wallflower.service.core.jobs import FairQueue
from wallflower.service.core.logs import begin_request, log_event, log_failure
from wallflower.service.core.metrics import Metrics
from wallflower.service.core.problems import Refusal, problem_document, problem_response, unanswered_refusal
from wallflower.service.settings import Settings, normalise_host

LARGE_BODY_BYTES: Final = 2**15
_MAX_JSON_DEPTH: Final = 32
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MAX_ANONYMOUS: Final = 8  # requests of callers that are not authenticated, at a time
# A string, closed or not; what is between; a bracket. Every byte is in one piece, and no piece gives back any.
_PIECES: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[^]["{}]++|[][{}]', re.DOTALL)
BRACKETS: Final = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}
_MAX_TRACKED_ADDRESSES: Final = 10_000
_WINDOW_SECONDS: Final = 60.0
_SAFE: Final = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
_OVER_TLS: Final = ((b"strict-transport-security", b"max-age=31536000"),)

Admit = Callable[[Scope], Awaitable[None]]


class Gate:
    """Asks who calls, then reads the body whole, within its limits, before any route sees it."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        settings: Settings,
        metrics: Metrics,
        admit: Admit,
        is_stranger: Callable[[Scope], bool],
        large_bodies: FairQueue,
    ) -> None:
        self._app, self._settings, self._metrics, self._admit = app, settings, metrics, admit
        self._is_stranger, self._large_bodies = is_stranger, large_bodies
        self._strangers = asyncio.Semaphore(_MAX_ANONYMOUS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, has_place = time.monotonic(), 0, False
        request_id = _stated_id(scope) or new_id()
        begin_request(request_id)
        safe = (*_SAFE, *_OVER_TLS) if self._settings.is_behind_tls or scope["scheme"] == "https" else _SAFE

        async def take_place() -> None:
            nonlocal has_place
            if not has_place and self._is_stranger(scope):
                await self._strangers.acquire()
                has_place = True
                await asyncio.sleep(0)  # lets authenticated requests pass in between

        def release_place() -> None:
            nonlocal has_place
            if has_place:
                self._strangers.release()
                has_place = False

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                release_place()  # to send is the client's pace, and holds up nobody else
                status = message["status"]
                known = {name for name, _ in message.get("headers", [])}
                added = (*safe, (b"x-request-id", request_id.encode()))
                message["headers"] = [*message.get("headers", []), *(one for one in added if one[0] not in known)]
            await send(message)

        try:
            await self._pass_on(scope, receive, send_with_headers, take_place, release_place)
        except Exception as error:  # noqa: BLE001 - whatever happens, only constant words may leave
            log_failure("request", error)
            if not status:
                await problem_response(problem_document(unanswered_refusal()))(scope, receive, send_with_headers)
        finally:
            release_place()
        route, method, seconds = _route(scope), _method(scope), time.monotonic() - began
        self._metrics.observe_request(route, method, status, seconds)
        milliseconds = round(seconds * 1000)
        log_event(
            "request", method=method, route=route, status=status, milliseconds=milliseconds, **_caller_facts(scope)
        )

    async def _pass_on(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        take_place: Callable[[], Awaitable[None]],
        release_place: Callable[[], None],
    ) -> None:
        """A stranger has a place while its token is checked and while its page is made, but not while its body arrives:
        a slow sender would block the slot for others."""
        try:
            require_host(scope, self._settings.office.address)
            await take_place()
            await self._admit(scope)
            release_place()
            body = await self._body(scope, receive)
            await take_place()
            if body is not None and is_large(body) and "caller" in scope.get("state", ()):
                async with self._large_bodies.turn(scope["state"]["caller"].name):
                    await self._large_bodies.run_in_thread(lambda: _require_flat(body))
                    await self._app(scope, _replay(body, receive), send)
                return
            if body and "caller" in scope.get("state", ()):  # forms have no brackets that count
                _require_flat(body)
        except PrivacyError as refusal:
            await problem_response(problem_document(refusal))(scope, receive, send)
            return
        if body is not None:
            await self._app(scope, _replay(body, receive), send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The body, or None when the caller has gone."""
        stated = dict(scope["headers"]).get(b"content-length", b"0")
        if not stated.isdigit() or int(stated[:20]) > self._settings.body_bytes:
            raise self._too_large()
        try:
            async with asyncio.timeout(self._settings.body_seconds):
                body = await self._read(receive)
        except TimeoutError:
            seconds = self._settings.body_seconds
            raise Refusal("timeout", f"The body did not arrive within {seconds:g} seconds. Send it again.") from None
        return body

    async def _read(self, receive: Receive) -> bytes | None:
        pieces, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > self._settings.body_bytes:
                raise self._too_large()
            more = message.get("more_body", False)
        return b"".join(pieces)

    def _too_large(self) -> Refusal:
        most = self._settings.body_bytes
        return Refusal("too-large", f"A body has at most {most:,} bytes here. Send less at a time.")


class Attempts:
    """How often an address, or a token, came without being valid in the last minute."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._failures: OrderedDict[str, list[float]] = OrderedDict()
        self._lock = Lock()

    def note(self, who: str) -> bool:
        """Count one more; says whether those before it were too many already."""
        with self._lock:
            before = self._recent(who)
            self._failures[who] = [*before, time.monotonic()][-self._most :]
            self._failures.move_to_end(who)
            while len(self._failures) > _MAX_TRACKED_ADDRESSES:
                self._failures.popitem(last=False)
            return len(before) >= self._most

    def _recent(self, who: str) -> list[float]:
        since = time.monotonic() - _WINDOW_SECONDS
        return [at for at in self._failures.get(who, ()) if at > since]


def is_large(body: bytes) -> bool:
    """Whether to parse a body would hold up other calls, so that it is done in a thread and in turn."""
    return len(body) > LARGE_BODY_BYTES


def _require_flat(body: bytes) -> None:
    if depth(body) > _MAX_JSON_DEPTH:
        raise Refusal("malformed", f"The body is nested more than {_MAX_JSON_DEPTH} deep. Send it flatter.")


def depth(body: bytes) -> int:
    """How deep brackets are nested outside of strings.

    >>> depth(b'{"a": [1, {"b]]": 2}]}')
    3
    """
    now = deepest = 0
    for piece in pieces(body):
        if piece in BRACKETS:
            now += BRACKETS[piece]
            deepest = max(deepest, now)
    return deepest


def pieces(body: bytes) -> Iterator[bytes]:
    """The strings, the brackets and what is between them: one after the other they are the body again.

    >>> list(pieces(b'{"a]": [1'))
    [b'{', b'"a]"', b': ', b'[', b'1']
    """
    return (found[0] for found in _PIECES.finditer(body))


def _replay(body: bytes, receive: Receive) -> Receive:
    waiting: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def _route(scope: Scope) -> str:
    """The template of the route, pages with the prefix that they are mounted under."""
    path = getattr(scope.get("route"), "path", None)
    return "none" if path is None else f"{scope.get('root_path', '')}{path}"


def _stated_id(scope: Scope) -> str | None:
    """The id that a proxy or a caller has given to the request, if it can stand in a log as it is."""
    text = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
    return text if _REQUEST_ID.fullmatch(text) else None


def _caller_facts(scope: Scope) -> dict[str, str]:
    """Who called: by the name and the id of the token, of a program or of a session."""
    state = scope.get("state", {})
    caller = state.get("caller") or state.get("visitor")
    return {} if caller is None else {"by": caller.name, "token": caller.token}


def _method(scope: Scope) -> str:
    known = ("GET", "POST", "DELETE", "HEAD", "PUT", "PATCH", "OPTIONS")
    return scope["method"] if scope["method"] in known else "other"


PEER: Final = "wallflower.peer"


class Proxies:
    """Reads `X-Forwarded-For` and `X-Forwarded-Proto` of listed proxies, and keeps the address of the peer as `PEER`:
    only the peer can show that another header comes from a proxy."""

    def __init__(self, app: ASGIApp, proxies: tuple[str, ...]) -> None:
        self._app: ASGIApp = app
        if proxies:
            self._app = ProxyHeadersMiddleware(app, trusted_hosts=list(proxies))  # type: ignore[arg-type, assignment]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope[PEER] = scope.get("client")
        await self._app(scope, receive, send)


_PUBLIC: Final = "/openapi.json"
MIN_COMPRESSED_BYTES: Final = 1000  # bytes: less is not worth it


class Compression:
    """Compresses answers that hold nothing of anybody."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._compressed = app, GZipMiddleware(app, minimum_size=MIN_COMPRESSED_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_public = scope["type"] == "http" and scope["path"] == _PUBLIC
        await (self._compressed if is_public else self._app)(scope, receive, send)


OPERATION: Final = frozenset({"/healthz", "/readyz", "/metrics"})
_PORT: Final = re.compile(r":[0-9]+$")
_LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


def require_host(scope: Scope, address: str) -> None:
    """Refuse a request without exactly one `Host`, or whose `Host` is not the service's.

    With an `address` in the settings only its host is right. Without one the service answers to `localhost`, and to
    the IP address that the connection came to. Paths of `OPERATION` answer to any host: probes and scrapers reach a
    process by its own address, and these answers hold no links.
    """
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    is_operation = scope["path"] in OPERATION
    if len(hosts) != 1 and not (is_operation and not hosts and scope["http_version"] == "1.0"):
        raise Refusal("malformed", "The request has no Host header, or several. Send one.")
    if is_operation:
        return
    scheme = scope["scheme"]
    if address:
        scheme, _, expected = address.partition("://")
        if normalise_host(hosts[0], scheme) != expected:
            raise Refusal("misdirected", f"This service is at {address}. Send the request there.")
    elif not _is_local(normalise_host(hosts[0], scheme), scope):
        raise Refusal(
            "misdirected",
            "The service does not know itself by this host. It answers to localhost, to the IP address that it "
            "listens on, and to the `address` in its settings ([office]). Use one of them, or state the address.",
        )


def _is_local(host: str, scope: Scope) -> bool:
    name = _PORT.sub("", host)
    server_ip, _ = scope.get("server") or ("", None)
    return name in _LOCAL_NAMES or (bool(name) and name.strip("[]") == server_ip)
