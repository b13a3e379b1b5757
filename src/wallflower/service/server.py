"""Run the service: bind the address, read the data sets, and serve with one or several workers until a signal."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from typing import Final

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from wallflower.errors import SourceError
from wallflower.machine.listener import Listener, bind_socket
from wallflower.schema.columns import call_or_refuse
from wallflower.service.app import ASKED, application
from wallflower.service.core import logs
from wallflower.service.core.facade import Core
from wallflower.service.core.metrics import shared_folder
from wallflower.service.settings import VARIABLE, Settings

_FACTORY: Final = "wallflower.service.worker:from_environment"
_HEALTH_CHECK_SECONDS: Final = 60  # a worker that does not respond for this long is killed; busy machines are slow
_TLS_1_2_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"  # forward secrecy and authenticated encryption alone
_PROTOCOL: Final = "wallflower.service.worker:Protocol"


def serve(settings: Settings, announce: Callable[[str], None]) -> None:
    """Listen, say where, and answer until a signal comes. Every data set is read before anything is answered."""
    _require_certificate(settings)
    app = application(settings) if settings.workers == 1 else None  # workers make their own
    core = Core(settings, ASKED) if app is None else app.state.core
    core.load()
    with _bind(settings) as listening:
        logs.start()
        announce(_url(listening, settings))
        if app is not None:
            Listener(_config(app, settings)).run(sockets=[listening])
            return
        core.close()
        del core
        os.environ[VARIABLE] = settings.to_json()
        with shared_folder():
            Multiprocess(_config(_FACTORY, settings), sockets=[listening]).run()


def _config(app: FastAPI | str, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        factory=isinstance(app, str),
        http=_PROTOCOL,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
        ssl_ciphers=_TLS_1_2_CIPHERS,
        proxy_headers=False,  # the application reads them itself, and remembers whose they are
        workers=settings.workers,
        timeout_graceful_shutdown=settings.shutdown_seconds,
        timeout_worker_healthcheck=_HEALTH_CHECK_SECONDS,
    )


def _bind(settings: Settings) -> socket.socket:
    try:
        made = bind_socket(settings.host, settings.port)
    except OSError as error:
        raise SourceError(
            f"{settings.host}:{settings.port}: {error.strerror}. The service listens on an address of this machine and "
            "a free port. Choose another."
        ) from None
    made.listen(1024)
    made.set_inheritable(True)
    return made


def _require_certificate(settings: Settings) -> None:
    """Refuse files that no handshake could be made with, before anything is read or announced."""
    if settings.tls_cert is None or settings.tls_key is None:
        return
    refusal = SourceError(
        "tls_cert, tls_key: they cannot be opened, or are no certificate (with its chain) and its key, as PEM and "
        "without a password. Check the files."
    )
    loaded = (settings.tls_cert, settings.tls_key, lambda: "")  # nobody is asked for a password
    call_or_refuse(lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*loaded), lambda _: refusal)


def _url(listening: socket.socket, settings: Settings) -> str:
    scheme = "http" if settings.tls_cert is None else "https"
    host, port = listening.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
