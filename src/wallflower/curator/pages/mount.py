"""The pages as one application under /ui, beside the routes for programs and with the same desk behind it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wallflower.curator.api.compression import LEAST
from wallflower.curator.desk.problems import KINDS, Refusal
from wallflower.curator.desk.questions.tradeoffs import Tradeoffs
from wallflower.curator.pages.analyst import datasets, lists, payment, planner, releases, requests, streams
from wallflower.curator.pages.analyst.samples import Samples
from wallflower.curator.pages.assets import Assets
from wallflower.curator.pages.figures.displays import Displays
from wallflower.curator.pages.public import office
from wallflower.curator.pages.steward import acts_list, budgets, expenses, proposals, registration, review, tokens
from wallflower.curator.pages.visitors import account, directory, second_factor, sign_in
from wallflower.curator.pages.visitors.sessions import Sessions
from wallflower.curator.pages.visitors.visits import BASE, POLICY, page, refusal_page

_ROOMS: Final = (
    sign_in,
    directory,
    account,
    second_factor,
    datasets,
    planner,
    payment,
    releases,
    lists,
    budgets,
    tokens,
    acts_list,
    proposals,
    review,
    requests,
    expenses,
    registration,
    streams,
    office,
)


class Strict:
    """Puts the policy on everything that leaves."""

    def __init__(self, app: ASGIApp, form_targets: str) -> None:
        self._app = app
        self._policy = POLICY.replace("form-action 'self'", f"form-action {form_targets}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["content-security-policy"] = self._policy
                headers["x-frame-options"] = "DENY"
                headers["cross-origin-opener-policy"] = "same-origin"
            await send(message)

        await self._app(scope, receive, send_with_policy)


def routes() -> list[Route]:
    """Every page there is."""
    return [route for room in _ROOMS for route in room.routes()]


def mount(service: FastAPI) -> None:
    """Put the pages beside the routes of this service."""
    settings, desk = service.state.desk.settings, service.state.desk
    app = Starlette(
        routes=[
            Mount("/static", GZipMiddleware(Assets(), minimum_size=LEAST)),
            *routes(),
        ],
        middleware=[Middleware(Strict, form_targets=directory.form_targets(settings))],
        exception_handlers={HTTPException: _http},
    )
    app.state.service = service
    service.state.openid = directory.provider_of(settings)
    app.state.sessions = service.state.sessions = Sessions(
        settings.ledger, desk.records, timedelta(seconds=settings.idle)
    )
    sessions: Sessions = app.state.sessions
    desk.end_sessions = lambda person: sessions.end_at_directory(
        issuer=person.issuer, subject=person.subject, session=None
    )
    app.state.tradeoffs = Tradeoffs()
    app.state.displays = Displays(service.version)
    app.state.samples = Samples()
    service.router.routes.append(Route("/", RedirectResponse(f"{BASE}/", 303)))
    service.router.routes.append(Route("/docs", RedirectResponse(f"{BASE}/api", 303)))
    service.mount(BASE, app)


async def _http(request: Request, error: Exception) -> Response:
    """Whatever has no page here, as a page."""
    assert isinstance(error, HTTPException)
    kind = "method" if error.status_code == 405 else "not-found"
    words = f"{KINDS[kind][1]}. Start from the list of data sets."
    get = Request({**request.scope, "method": "GET"}, request.receive)
    made = await page(lambda visit: refusal_page(visit, Refusal(kind, words)), "anybody")(get)
    if kind == "method":
        made.headers["allow"] = allowed_methods(request)
    return made


def allowed_methods(request: Request) -> str:
    """Every method that a path has, whichever route has it."""
    fitting = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    return ", ".join(sorted({method for route in fitting for method in getattr(route, "methods", None) or ()}))
