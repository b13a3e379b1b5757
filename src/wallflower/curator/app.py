"""The application: routes, gate, problems and OpenAPI put together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from anyio.to_thread import run_sync
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from wallflower.curator.api import callers
from wallflower.curator.api.bodies import name_of
from wallflower.curator.api.compression import Compression
from wallflower.curator.api.description.docs import flatten
from wallflower.curator.api.gate import Attempts, Gate
from wallflower.curator.api.proxies import Proxies
from wallflower.curator.api.routes import analyst, operation, requests, steward, watch
from wallflower.curator.api.views import Plain
from wallflower.curator.desk.budgets.requests import Requests
from wallflower.curator.desk.desk import Desk
from wallflower.curator.desk.problems import KINDS, document, problem, response
from wallflower.curator.desk.questions.jobs import Jobs
from wallflower.curator.desk.questions.watches import Watches
from wallflower.curator.pages import mount
from wallflower.curator.settings import Settings
from wallflower.errors import PrivacyError
from wallflower.machine.version import VERSION
from wallflower.queries import COMPANIONS, QUERIES
from wallflower.query.forms import Question

ASKED: Final[tuple[Question, ...]] = (*QUERIES, *COMPANIONS)
_STATUSES = {400: "malformed", 404: "not-found", 405: "method", 413: "too-large"}


def application(settings: Settings, questions: tuple[Question, ...] = ASKED) -> FastAPI:
    """The service for these settings."""
    desk = Desk(settings, questions)
    app = FastAPI(
        title="wallflower",
        summary="Questions about outliers in private data, answered under differential privacy",
        version=VERSION,
        lifespan=_lifespan,
        docs_url=None,
        redoc_url=None,
        default_response_class=Plain,
        generate_unique_id_function=name_of,
    )
    app.state.desk = desk
    app.state.attempts = Attempts(settings.failures)
    app.state.watches = Watches(desk)
    app.state.requests = Requests(desk)
    for router in (analyst.router(questions), steward.router(), watch.router(questions), requests.router()):
        app.router.routes.extend(router.routes)  # to include a router would be to make each of its routes again
    operation.add_routes(app)
    mount.mount(app)
    app.add_middleware(Compression)
    app.add_middleware(
        Gate,
        settings=settings,
        metrics=desk.metrics,
        admit=callers.doorman(app),
        is_stranger=callers.stranger_test(app),
        large_bodies=desk.large_bodies,
    )
    app.add_middleware(Proxies, proxies=settings.proxies)
    app.add_exception_handler(PrivacyError, _refusal_response)
    app.add_exception_handler(RequestValidationError, _unfit)
    app.add_exception_handler(HTTPException, _http)
    app.openapi = lambda: _describe(app)  # type: ignore[method-assign]
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
    desk: Desk = app.state.desk  # its tables are read before anybody listens
    app.state.jobs = Jobs(desk.settings, desk.records, desk.metrics.queue("questions"))
    background = [asyncio.create_task(loop) for loop in (operation.keep_datasets(desk), operation.keep_gauges(app))]
    yield {"header_seconds": desk.settings.header_seconds}
    for task in background:
        task.cancel()
    await app.state.jobs.close()
    await run_sync(app.state.watches.close)
    desk.close()


async def _refusal_response(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, PrivacyError)
    return response(problem(error))


async def _unfit(_: Request, error: Exception) -> JSONResponse:
    """What does not fit, by place and rule; what was sent is not repeated."""
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(one["type"] == "json_invalid" for one in found):
        return response(document("malformed", "The body is not JSON, or names something twice. Send one JSON object."))
    told = [{"at": ".".join(map(str, one["loc"]))[:200], "words": str(one["msg"])[:200]} for one in found[:20]]
    words = "; ".join(f"{one['at']}: {one['words']}" for one in told)
    return response(document("parameter", f"{words}. Correct the request.", errors=told))


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    kind = _STATUSES.get(error.status_code, "malformed")
    made = response(document(kind, f"{KINDS[kind][1]}. See /openapi.json for what there is."))
    for name, value in (error.headers or {}).items():
        made.headers[name] = value
    if error.status_code == 405:
        made.headers["allow"] = mount.allowed_methods(request)
    return made


def _describe(app: FastAPI) -> dict[str, Any]:
    """OpenAPI, with the schema of problems."""
    if app.openapi_schema is None:
        made = FastAPI.openapi(app)
        text = {"type": "string"}
        made["components"]["schemas"]["Problem"] = {
            "type": "object",
            "description": "What went wrong [RFC 9457]; `type` ends in one of: " + ", ".join(KINDS),
            "properties": {"type": text, "title": text, "status": {"type": "integer"}, "detail": text},
            "required": ["type", "title", "status", "detail"],
            "example": document("budget-exhausted", "tumours: asked for ε=1, ε=1/2 is left."),
        }
        app.openapi_schema = flatten(made)
    return app.openapi_schema
