"""The application: routes, gate, problems and OpenAPI put together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from anyio.to_thread import run_sync
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Route

from wallflower.errors import PrivacyError
from wallflower.machine.heavy import require_package
from wallflower.machine.lazy import Lazy
from wallflower.machine.version import VERSION
from wallflower.queries import COMPANIONS, QUERIES
from wallflower.query.parameter import Question
from wallflower.service.api import callers
from wallflower.service.api.middleware import Attempts, Compression, Gate, Proxies
from wallflower.service.api.responses import FiniteJSONResponse, describe_service, route_name
from wallflower.service.api.routes import agents, analyst, budgets, letters, operation, steward
from wallflower.service.core.access.tokens import Caller
from wallflower.service.core.agents import Agents
from wallflower.service.core.facade import Core
from wallflower.service.core.jobs import Jobs
from wallflower.service.core.problems import KINDS, make_document, problem_document, problem_response
from wallflower.service.core.requests import Requests
from wallflower.service.core.watches import Watches
from wallflower.service.pages import app as pages
from wallflower.service.settings import Settings

if TYPE_CHECKING:
    import mcp.server.streamable_http_manager as _sessions

    import wallflower.service.api.agent_server as _agent_server
else:
    _sessions = Lazy("mcp.server.streamable_http_manager", extra="mcp")
    _agent_server = Lazy("wallflower.service.api.agent_server", extra="mcp")

ASKED: Final[tuple[Question, ...]] = (*QUERIES, *COMPANIONS)
_STATUSES = {400: "malformed", 404: "not-found", 405: "method", 413: "too-large"}


def application(settings: Settings, questions: tuple[Question, ...] = ASKED) -> FastAPI:
    """The service for these settings."""
    core = Core(settings, questions)
    app = FastAPI(
        title="wallflower",
        summary="Questions about outliers in private data, answered under differential privacy",
        version=VERSION,
        lifespan=_lifespan,
        docs_url=None,
        redoc_url=None,
        default_response_class=FiniteJSONResponse,
        generate_unique_id_function=route_name,
    )
    app.state.core = core
    app.state.attempts = Attempts(settings.failures)
    app.state.watches = Watches(core)
    app.state.requests = Requests(core)
    kinds = (analyst.ROUTER, agents.ROUTER, budgets.ROUTER, letters.ROUTER, steward.ROUTER)
    for router in (analyst.query_router(questions), *kinds):
        app.router.routes.extend(router.routes)  # to include a router would be to make each of its routes again
    operation.add_routes(app)
    app.state.agents = Agents(core)
    app.state.agent_sessions = None if settings.agents is None else _mount_agents(app)
    pages.mount(app)
    app.add_middleware(Compression)
    app.add_middleware(
        Gate,
        settings=settings,
        metrics=core.metrics,
        admit=callers.doorman(app),
        is_stranger=callers.stranger_test(app),
        large_bodies=core.large_bodies,
    )
    app.add_middleware(Proxies, proxies=settings.proxies)
    app.add_exception_handler(PrivacyError, _refusal_response)
    app.add_exception_handler(RequestValidationError, _unfit)
    app.add_exception_handler(HTTPException, _http)
    app.openapi = lambda: describe_service(app)  # type: ignore[method-assign]
    return app


def _mount_agents(app: FastAPI) -> Any:
    """Add the MCP server at /mcp. Requests keep no state between them, so any worker answers any of them."""
    require_package("mcp")
    server = _agent_server.AgentServer(app.state.core, lambda: app.state.jobs, _caller_of_agent)
    sessions = _sessions.StreamableHTTPSessionManager(
        server.server, json_response=True, stateless=True, max_request_body_size=app.state.core.settings.body_bytes
    )
    app.router.routes.append(Route(callers.AGENTS_PATH, _sessions.StreamableHTTPASGIApp(sessions)))
    return sessions


def _caller_of_agent(context: Any) -> Caller:
    """The person whom an agent asks for: her name and her groups, and the rights of an analyst."""
    found: Caller = context.request.state.caller
    return replace(found, scope="analyst")


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
    core: Core = app.state.core  # its tables are read before anybody listens
    app.state.jobs = Jobs(core.settings, core.records, core.metrics.queue("questions"))
    background = [asyncio.create_task(loop) for loop in (operation.keep_datasets(core), operation.keep_gauges(app))]
    async with AsyncExitStack() as stack:
        if app.state.agent_sessions is not None:
            await stack.enter_async_context(app.state.agent_sessions.run())
        yield {"header_seconds": core.settings.header_seconds}
    for task in background:
        task.cancel()
    await app.state.jobs.close()
    await run_sync(app.state.watches.close)
    core.close()


async def _refusal_response(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, PrivacyError)
    return problem_response(problem_document(error))


async def _unfit(_: Request, error: Exception) -> JSONResponse:
    """What does not fit, by place and rule; what was sent is not repeated."""
    assert isinstance(error, RequestValidationError)
    errors = error.errors()
    if any(item["type"] == "json_invalid" for item in errors):
        return problem_response(
            make_document("malformed", "The body is not JSON, or names something twice. Send one JSON object.")
        )
    shown = [{"at": ".".join(map(str, item["loc"]))[:200], "words": str(item["msg"])[:200]} for item in errors[:20]]
    words = "; ".join(f"{item['at']}: {item['words']}" for item in shown)
    return problem_response(make_document("parameter", f"{words}. Correct the request.", errors=shown))


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    kind = _STATUSES.get(error.status_code, "malformed")
    made = problem_response(make_document(kind, f"{KINDS[kind][1]}. See /openapi.json for what there is."))
    for name, value in (error.headers or {}).items():
        made.headers[name] = value
    if error.status_code == 405:
        made.headers["allow"] = pages.allowed_methods(request)
    return made
