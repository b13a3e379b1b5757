"""HTTP for a party: its process, its routes, who calls, and which status says what went wrong.

With TLS a caller is identified by the certificate of the connection. Without, which is for tests and benchmarks on
loopback, the certificate comes in a header and only the signature over a body proves who sent it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from base64 import b64decode
from binascii import Error as Misencoded
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wallflower.errors import ParameterError, PrivacyError, StateError, StateUnreachable, error_place
from wallflower.machine.listener import Listener, bind_socket
from wallflower.sensors.parameters import Direct
from wallflower.sensors.parties.client import CERTIFICATE_HEADER, LOOPBACK_HOSTS, SIGNATURE_HEADER
from wallflower.sensors.parties.keys import Identity, Peer, SignedParameters
from wallflower.sensors.parties.owner import Owner
from wallflower.sensors.parties.party import BadCall, Party, log
from wallflower.sensors.parties.servers import Analyst, CorrectionServer
from wallflower.sensors.protocol.frames import MAX_NUMBER, BatchId, Forgery, FrameError

MAX_BODY_BYTES: Final = 160 * 2**20
_BINARY: Final = "application/octet-stream"
_PROBLEM: Final = "application/problem+json"
_ROLES: Final[Mapping[str, Callable[..., Party]]] = {
    "analyst": Analyst,
    "correction": CorrectionServer,
    "owner": Owner,
}
_STATUS: Final[tuple[tuple[type[Exception], int], ...]] = (
    (Forgery, 403),
    (FrameError, 422),
    (StateUnreachable, 507),
    (PrivacyError, 500),
)

Handler = Callable[[Request, bytes, Peer, bytes], Response]  # from a request, its body, the caller and the signature


def run_party(
    role: str,
    identity: Identity,
    signed: SignedParameters,
    store: Path,
    address: tuple[str, int, bool],
    options: Mapping[str, Any],
    announce: Callable[[str], object],
) -> None:
    """Run one party until a signal comes; `announce` gets a sentence with its URL once it listens."""
    host, port, tls = address
    if identity.name != role or identity.public != getattr(signed.parameters, role):
        raise Forgery(f"{identity.folder}: not the keys of the {role} in the parameter set. Name the right folder.")
    if not tls and host not in LOOPBACK_HOSTS:
        raise ParameterError(f"--host {host}: only loopback is served without TLS. Omit --no-tls.")
    party = _ROLES[role](identity, signed, store, **options)
    try:
        listening = bind_socket(host, port)
    except OSError as error:
        party.stop()
        raise StateError(f"{host}:{port}: {error.strerror}. Choose another port.") from None
    url_host = f"[{host}]" if ":" in host else host
    announce(f"{role} listens at {'https' if tls else 'http'}://{url_host}:{listening.getsockname()[1]}")
    serve(party, listening, tls=tls)


class _Protocol(HttpToolsProtocol):
    """Passes the certificate of a TLS connection on to the application."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        certificate = None if tls is None else tls.getpeercert(binary_form=True)
        self.app_state = {**self.app_state, "certificate": certificate}


def serve(party: Party, listening: socket.socket, *, tls: bool) -> None:
    """Serve requests until a signal comes."""

    def context(*_: Any) -> ssl.SSLContext:
        return party.server_context()

    config = uvicorn.Config(
        make_application(party, tls=tls),
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


def make_application(party: Party, *, tls: bool) -> Starlette:
    """Return the routes of a party."""
    base = f"/v1/{party.parameters.stream}"
    window = base + "/w/{window:int}"
    routes = [Route("/healthz", lambda _: Response("ok\n")), Route(f"{base}/parameters", _serve_parameters(party))]

    def add(path: str, method: str, handler: Handler) -> None:
        routes.append(Route(path, _guard(party, handler, tls), methods=[method]))

    if isinstance(party, Owner):
        routes.append(Route(f"{window}/result", _for_owner(party, _show_result, tls)))
        routes.append(Route("/", _for_owner(party, _show_page, tls)))
        if not isinstance(party.parameters.settings, Direct):
            add("/v1/results", "POST", _take_report(party))
    if party.collector.kind is not None:
        add(f"{window}/s/{{sensor:int}}/b/{{seq:int}}", "PUT", _take_batch(party))
        add(f"{window}/s/{{sensor:int}}/commit", "PUT", _take_commit(party))
    if isinstance(party, CorrectionServer):
        add(window + "/{step:str}", "POST", _take_step(party))
    return Starlette(routes=routes)


def _guard(party: Party, handler: Handler, tls: bool) -> Callable[[Request], Any]:
    """Return an endpoint that checks the caller first, then reads the body, then works in a thread."""

    async def endpoint(request: Request) -> Response:
        try:
            peer = _identify_caller(party, request, tls)
            signature = _decode_header(request.headers.get(SIGNATURE_HEADER, ""))
            body = await _read_body(request)
            return await run_in_threadpool(handler, request, body, peer, signature)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:  # noqa: BLE001 - an unforeseen message may hold a reading, and must not leave
            return _refuse(request, error)

    return endpoint


def _refuse(request: Request, error: Exception) -> Response:
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
    if isinstance(error, BadCall):
        status = error.status
    detail = str(error) if isinstance(error, PrivacyError) else "internal error; see the log."
    if not isinstance(error, PrivacyError):
        log.error("%s: %s at %s", request.method, type(error).__name__, error_place(error.__traceback__))
    elif status not in (404, 410, 425):
        log.info("%s %s: refused (%d)", request.method, request.url.path, status)
    return JSONResponse({"status": status, "detail": detail}, status, media_type=_PROBLEM)


def _identify_caller(party: Party, request: Request, tls: bool) -> Peer:
    header = request.headers.get(CERTIFICATE_HEADER, "")
    return party.identify((request.state.certificate if tls else _decode_header(header)) or b"")


def _decode_header(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (Misencoded, ValueError):
        raise Forgery("a header cannot be decoded. Send signature and certificate as base64.") from None


async def _read_body(request: Request) -> bytes:
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > MAX_BODY_BYTES:
            raise BadCall(413, "the body is too large. Send smaller batches.")
        pieces.append(piece)
    return b"".join(pieces)


def _read_number(request: Request, name: str) -> int:
    value: int = request.path_params[name]
    if value > MAX_NUMBER:
        raise FrameError(f"{name}: must be below 2**63.")
    return value


def _take_batch(party: Party) -> Handler:
    def take(request: Request, body: bytes, peer: Peer, signature: bytes) -> Response:
        batch = BatchId(**{name: _read_number(request, name) for name in ("window", "sensor", "seq")})
        return Response(status_code=party.collector.add_batch(peer, signature, body, batch))

    return take


def _take_commit(party: Party) -> Handler:
    def take(request: Request, body: bytes, peer: Peer, signature: bytes) -> Response:
        batch = BatchId(**{name: _read_number(request, name) for name in ("window", "sensor")})
        status = party.collector.add_commit(peer, signature, body, batch)
        party.wake()
        log.info("window %d: sensor %d has finished (%d)", batch.window, batch.sensor, status)
        return Response(status_code=status)

    return take


def _take_step(party: CorrectionServer) -> Handler:
    def take(request: Request, body: bytes, peer: Peer, signature: bytes) -> Response:
        window, name = _read_number(request, "window"), request.path_params["step"]
        return Response(party.respond(peer, signature, body, window, name), media_type=_BINARY)

    return take


def _take_report(party: Owner) -> Handler:
    def take(request: Request, body: bytes, peer: Peer, signature: bytes) -> Response:
        status = party.add_report(peer, signature, body)
        party.wake()
        return Response(status_code=status)

    return take


def _serve_parameters(party: Party) -> Callable[[Request], Response]:
    """Return the endpoint of the signed set, for a sensor that joins; 409 for a sensor that has another."""

    def endpoint(request: Request) -> Response:
        expected = request.query_params.get("hash")
        if expected is not None and expected != party.parameters.hash.hex():
            detail = "another parameter set is in force. Take it from here and start again."
            return JSONResponse({"status": 409, "detail": detail}, 409, media_type=_PROBLEM)
        return Response(party.signed.body, media_type="application/json")

    return endpoint


def _for_owner(party: Owner, handler: Callable[[Owner, Request], Response], tls: bool) -> Callable[[Request], Response]:
    """Return an endpoint for the stream owner only: with TLS, for the holder of the stream owner's certificate."""

    def endpoint(request: Request) -> Response:
        try:
            if tls and _identify_caller(party, request, tls).name != "owner":
                raise Forgery("results are for the stream owner. Use the stream owner's certificate.")
            return handler(party, request)
        except Exception as error:  # noqa: BLE001 - an unforeseen message may hold a reading, and must not leave
            return _refuse(request, error)

    return endpoint


def _show_result(party: Owner, request: Request) -> Response:
    window = _read_number(request, "window")
    result = party.result(window)
    if result is None or party.store.state(window) == "exchanged":  # its files are not written yet
        raise BadCall(404, "no result yet. Ask again when the window is over.")
    return JSONResponse(result)


def _show_page(party: Owner, _: Request) -> Response:
    policy = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'", "cache-control": "no-store"}
    return HTMLResponse(party.page(), headers=policy)
