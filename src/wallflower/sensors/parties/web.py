"""HTTP for a party: who calls, what is called, and which status says what went wrong.

With TLS a caller is known by the certificate of the connection. Without, which is for tests and benchmarks on
loopback, the certificate comes in a header and only the signature over a body proves who sent it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from base64 import b64decode
from binascii import Error as Misencoded
from collections.abc import Callable
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wallflower.errors import PrivacyError
from wallflower.machine.listener import Listener
from wallflower.sensors.parameters import Direct
from wallflower.sensors.parties.client import CERTIFICATE, SIGNATURE
from wallflower.sensors.parties.correction import CorrectionServer
from wallflower.sensors.parties.database import DiskFull
from wallflower.sensors.parties.intake import BadCall
from wallflower.sensors.parties.keys import Peer
from wallflower.sensors.parties.owner import Owner
from wallflower.sensors.parties.party import Party, log, place
from wallflower.sensors.protocol.frames import FrameError
from wallflower.sensors.protocol.seals import Forgery

MOST_BYTES: Final = 160 * 2**20
_BINARY: Final = "application/octet-stream"

Handler = Callable[[Request, bytes, Peer, bytes], Response]


class _Protocol(HttpToolsProtocol):
    """Hands the certificate of a TLS connection on to the application."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        own = None if tls is None else tls.getpeercert(binary_form=True)
        self.app_state = {**self.app_state, "certificate": own}


def serve(party: Party, listening: socket.socket, *, tls: bool) -> None:
    """Answer calls until a signal comes."""

    def context(*_: Any) -> ssl.SSLContext:
        return party.server_context()

    config = uvicorn.Config(
        application(party, tls=tls),
        http=_Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=5,
        ssl_context_factory=context if tls else None,
    )
    party.start()
    try:
        Listener(config).run(sockets=[listening])
    finally:
        party.stop()


def application(party: Party, *, tls: bool) -> Starlette:
    """The calls that this party answers."""
    base = f"/v1/{party.parameters.stream}"
    window = base + "/w/{window:int}"
    shared = [Route("/healthz", lambda _: Response("ok\n")), Route(f"{base}/parameters", _parameters(party))]
    calls: list[tuple[str, str, Handler]] = []
    if party.collector.kind is not None:
        calls.append((f"{window}/s/{{sensor:int}}/b/{{seq:int}}", "PUT", _batch(party)))
        calls.append((f"{window}/s/{{sensor:int}}/commit", "PUT", _commit(party)))
    if isinstance(party, CorrectionServer):
        calls.append((window + "/{step:str}", "POST", _step(party)))
    if isinstance(party, Owner):
        if not isinstance(party.parameters.settings, Direct):
            calls.append(("/v1/results", "POST", _report(party)))
        shared += [
            Route(f"{window}/result", _for_owner(party, _result, tls)),
            Route("/", _for_owner(party, _page, tls)),
        ]
    routes = [Route(path, _guard(party, call, tls), methods=[method]) for path, method, call in calls]
    return Starlette(routes=[*shared, *routes])


def _guard(party: Party, call: Handler, tls: bool) -> Callable[[Request], Any]:
    """A call as Starlette takes it: identity first, then the body, then the work in a thread."""

    async def endpoint(request: Request) -> Response:
        try:
            peer = _peer(party, request, tls)
            signature = _decode_header(request.headers.get(SIGNATURE, ""))
            body = await _body(request)
            return await run_in_threadpool(call, request, body, peer, signature)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:  # noqa: BLE001 - whatever happens, only public words may leave
            return _refusal(request, error)

    return endpoint


def _refusal(request: Request, error: Exception) -> Response:
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
    if isinstance(error, BadCall):
        status = error.status
    words = str(error) if isinstance(error, PrivacyError) else "internal error; the log has its place."
    if not isinstance(error, PrivacyError):
        log.error("%s: %s at %s", request.method, type(error).__name__, place(error))
    elif status not in (404, 410, 425):
        log.info("%s %s: refused (%d)", request.method, request.url.path, status)
    return JSONResponse({"status": status, "detail": words}, status, media_type="application/problem+json")


_STATUS: Final[tuple[tuple[type[Exception], int], ...]] = (
    (Forgery, 403),
    (FrameError, 422),
    (DiskFull, 507),
    (PrivacyError, 500),
)


def _peer(party: Party, request: Request, tls: bool) -> Peer:
    shown = request.state.certificate if tls else _decode_header(request.headers.get(CERTIFICATE, ""))
    return party.identify(shown or b"")


def _decode_header(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (Misencoded, ValueError):
        raise Forgery("a header is not what it should be. Send signature and certificate as base64.") from None


async def _body(request: Request) -> bytes:
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > MOST_BYTES:
            raise BadCall(413, "the body is too large. Send smaller batches.")
        pieces.append(piece)
    return b"".join(pieces)


def _number(request: Request, name: str) -> int:
    value: int = request.path_params[name]
    if value >= 2**63:
        raise FrameError(f"{name}: numbers here are below 2**63.")
    return value


def _batch(party: Party) -> Handler:
    def batch(request: Request, body: bytes, peer: Peer, signature: bytes) -> Response:
        place = (_number(request, "window"), _number(request, "sensor"), _number(request, "seq"))
        return Response(status_code=party.collector.batch(peer, signature, body, place))

    return batch


def _commit(party: Party) -> Handler:
    def commit(request: Request, body: bytes, peer: Peer, signature: bytes) -> Response:
        window, sensor = _number(request, "window"), _number(request, "sensor")
        status = party.collector.commit(peer, signature, body, (window, sensor))
        party.wake()
        log.info("window %d: sensor %d has finished (%d)", window, sensor, status)
        return Response(status_code=status)

    return commit


def _step(party: CorrectionServer) -> Handler:
    def step(request: Request, body: bytes, peer: Peer, signature: bytes) -> Response:
        window, name = _number(request, "window"), request.path_params["step"]
        return Response(party.answer(peer, signature, body, window, name), media_type=_BINARY)

    return step


def _report(party: Owner) -> Handler:
    def report(request: Request, body: bytes, peer: Peer, signature: bytes) -> Response:
        status = party.report(peer, signature, body)
        party.wake()
        return Response(status_code=status)

    return report


def _parameters(party: Party) -> Callable[[Request], Response]:
    """The signed set, for a sensor that joins; 409 to one that has another."""

    def parameters(request: Request) -> Response:
        asked = request.query_params.get("hash")
        if asked is not None and asked != party.parameters.hash.hex():
            words = "another parameter set is in force. Take it from here and start again."
            return JSONResponse({"status": 409, "detail": words}, 409, media_type="application/problem+json")
        return Response(party.signed.body, media_type="application/json")

    return parameters


def _for_owner(party: Owner, call: Callable[[Owner, Request], Response], tls: bool) -> Callable[[Request], Response]:
    """For the owner's eyes: with TLS, whoever shows the owner's certificate."""

    def endpoint(request: Request) -> Response:
        try:
            if tls and _peer(party, request, tls).name != "owner":
                raise Forgery("results are for the owner. Use the owner's certificate.")
            return call(party, request)
        except Exception as error:  # noqa: BLE001 - whatever happens, only public words may leave
            return _refusal(request, error)

    return endpoint


def _result(party: Owner, request: Request) -> Response:
    window = _number(request, "window")
    found = party.result(window)
    if found is None or party.store.state(window) == "exchanged":  # not before its files are there
        raise BadCall(404, "no result yet. Ask again when the window is over.")
    return JSONResponse(found)


def _page(party: Owner, _: Request) -> Response:
    policy = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'", "cache-control": "no-store"}
    return HTMLResponse(party.page(), headers=policy)
