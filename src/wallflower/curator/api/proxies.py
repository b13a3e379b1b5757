"""What a trusted proxy says of the client behind it, and where the connection itself comes from."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

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
