"""What is the same for everybody is compressed on its way out; what is not, never.

A page holds what proves that a form is ours, and it repeats what an address says. Whoever could have a browser ask for
many such addresses and see how long the answers are would find out the proof letter by letter if they were compressed,
an attack called BREACH. Files of the pages and the description of the service hold no secret, and are the long ones.
That a file is not there is told on a page, so files are compressed where they are found and not by their address.
"""

from __future__ import annotations

from typing import Final

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

_PUBLIC: Final = "/openapi.json"
LEAST: Final = 1000  # bytes: less is not worth it


class Compression:
    """Compresses answers that hold nothing of anybody."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._compressed = app, GZipMiddleware(app, minimum_size=LEAST)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_public = scope["type"] == "http" and scope["path"] == _PUBLIC
        await (self._compressed if is_public else self._app)(scope, receive, send)
