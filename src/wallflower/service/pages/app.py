"""The pages as one application under /ui, beside the routes for programs and with the same core."""

from __future__ import annotations

from datetime import timedelta
from os import PathLike, stat_result
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wallflower.service.api.middleware import MIN_COMPRESSED_BYTES
from wallflower.service.core.previews import Tradeoffs
from wallflower.service.core.problems import KINDS, Refusal
from wallflower.service.pages import (
    budgets,
    datasets,
    lists,
    openid,
    planner,
    publications,
    reference,
    registration,
    releases,
    requests,
    sign_in,
    spending,
    streams,
    tokens,
)
from wallflower.service.pages.display import Displays
from wallflower.service.pages.language import STATIC_FILES, version_of
from wallflower.service.pages.planner import Samples
from wallflower.service.pages.sessions import Sessions
from wallflower.service.pages.visit import BASE, CONTENT_POLICY, EMBED_POLICY, FILE_POLICY, page, refusal_page
from wallflower.text import t

_FOR_EVER: Final = "public, max-age=31536000, immutable"
_ASK_AGAIN: Final = "no-cache"  # it is kept, and asked about each time by its ETag


class Assets(StaticFiles):
    """Files that a browser keeps for ever if their address has their version, and else asks about each time."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC_FILES)

    def file_response(
        self, full_path: str | PathLike[str], stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        found = super().file_response(full_path, stat_result, scope, status_code)
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("v", [""])[0]
        is_named = asked == version_of(Path(full_path).name)
        found.headers["cache-control"] = _FOR_EVER if is_named else _ASK_AGAIN
        return found


_MODULES: Final = (
    sign_in,
    openid,
    datasets,
    planner,
    releases,
    publications,
    lists,
    requests,
    streams,
    budgets,
    spending,
    registration,
    tokens,
    reference,
)


class PolicyMiddleware:
    """Middleware that adds the content security policy to every response.

    A response may bring one of two policies of its own: that of the page that other sites may frame, which has no
    form and no cookie, and that of pictures, which are opened without scripts.
    """

    def __init__(self, app: ASGIApp, form_targets: str) -> None:
        self._app = app
        self._policy = CONTENT_POLICY.replace("form-action 'self'", f"form-action {form_targets}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                stated = headers.get("content-security-policy")
                headers["content-security-policy"] = stated if stated in (EMBED_POLICY, FILE_POLICY) else self._policy
                if stated != EMBED_POLICY:
                    headers["x-frame-options"] = "DENY"
                headers["cross-origin-opener-policy"] = "same-origin"
            await send(message)

        await self._app(scope, receive, send_with_policy)


def routes() -> list[Route]:
    """Return the routes of every page."""
    return [route for module in _MODULES for route in module.routes()]


def mount(service: FastAPI) -> None:
    """Add the pages to a service."""
    settings, core = service.state.core.settings, service.state.core
    app = Starlette(
        routes=[
            Mount("/static", GZipMiddleware(Assets(), minimum_size=MIN_COMPRESSED_BYTES)),
            *routes(),
        ],
        middleware=[Middleware(PolicyMiddleware, form_targets=openid.form_targets(settings))],
        exception_handlers={HTTPException: _http},
    )
    app.state.service = service
    service.state.openid = openid.provider_of(settings)
    app.state.sessions = service.state.sessions = Sessions(
        settings.ledger, core.records, timedelta(seconds=settings.idle_seconds)
    )
    sessions: Sessions = app.state.sessions
    core.end_sessions = lambda person: sessions.end_at_directory(
        issuer=person.issuer, subject=person.subject, session=None
    )
    app.state.tradeoffs = Tradeoffs()
    app.state.displays = Displays(service.version)
    app.state.samples = Samples()
    service.router.routes.append(Route("/", RedirectResponse(f"{BASE}/", 303)))
    service.router.routes.append(Route("/docs", RedirectResponse(f"{BASE}/api", 303)))
    service.mount(BASE, app)


async def _http(request: Request, error: Exception) -> Response:
    """Answer a path or method without a route with a page."""
    assert isinstance(error, HTTPException)
    kind = "method" if error.status_code == 405 else "not-found"
    words = t("{problem}. Start from the list of data sets.", problem=KINDS[kind][1])
    get = Request({**request.scope, "method": "GET"}, request.receive)
    made = await page(lambda visit: refusal_page(visit, Refusal(kind, words)), "anybody")(get)
    if kind == "method":
        made.headers["allow"] = allowed_methods(request)
    return made


def allowed_methods(request: Request) -> str:
    """Return the methods that the routes of a path have."""
    fitting = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    return ", ".join(sorted({method for route in fitting for method in getattr(route, "methods", None) or ()}))
