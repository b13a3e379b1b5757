"""What operators call: liveness, readiness and metrics.

None of them waits for the ledger longer than it must: an office reads its metrics above all when the ledger is down.
"""

from __future__ import annotations

import asyncio
import hmac
from pathlib import Path
from typing import Final

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import FastAPI, Request
from starlette.responses import PlainTextResponse, Response

from wallflower.errors import PrivacyError, SourceError
from wallflower.schema.columns import call_or_refuse
from wallflower.service.api.responses import problem_docs
from wallflower.service.core.facade import Core
from wallflower.service.core.logs import log_failure
from wallflower.service.core.metrics import MEDIA, LedgerState

METRICS: Final = "/metrics"
MIN_TOKEN_CHARACTERS: Final = 32
_LEDGER_SECONDS: Final = 1.0
_REFRESH_SECONDS: Final = 10.0
_UPDATE_SECONDS: Final = 2.0


def add_routes(app: FastAPI) -> None:
    """Put the routes of operation into a service, with the state they need."""
    core: Core = app.state.core
    app.state.metrics_token = read_token(core.settings.metrics_token_file)
    app.state.ledger_reader = LedgerReader(core)
    for path, endpoint in (("/healthz", healthz), ("/readyz", readyz), (METRICS, metrics)):
        app.get(path, tags=["operation"], response_class=PlainTextResponse, responses=problem_docs(403))(endpoint)


async def healthz() -> Response:
    """The process answers; it waits for no thread."""
    return PlainTextResponse("ok\n")


def readyz(request: Request) -> Response:
    """The ledger can be read and is of this version; the second line says how many data sets cannot be read."""
    core: Core = request.app.state.core
    core.ledger.require_version()
    unreadable = core.catalog.unreadable()
    detail = f"{unreadable} data sets cannot be read\n" if unreadable else ""
    return PlainTextResponse(f"ready\n{detail}")


async def metrics(request: Request) -> Response:
    """Metrics for Prometheus, over all workers: for the token of `metrics_token_file`, a token of the scope `monitor`
    or a steward's. Data sets are named only if the settings allow it."""
    state = await request.app.state.ledger_reader.read()
    update_gauges(request.app)
    content = await run_sync(request.app.state.core.metrics.text, state)
    return Response(content, media_type=MEDIA)


class LedgerReader:
    """Read the ledger's part of the metrics, one reader at a time, and give up after a second."""

    def __init__(self, core: Core) -> None:
        self._core, self._threads = core, CapacityLimiter(1)
        self._reading: asyncio.Task[LedgerState] | None = None

    async def read(self) -> LedgerState:
        """Return the state of the ledger; if it does not answer in time, that it is down."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(
                run_sync(self._core.ledger_state, limiter=self._threads, abandon_on_cancel=True)
            )
        done, _ = await asyncio.wait({self._reading}, timeout=_LEDGER_SECONDS)
        return self._reading.result() if done else LedgerState()


def update_gauges(app: FastAPI) -> None:
    """Write down what this process is like at the moment."""
    core: Core = app.state.core
    core.metrics.update(under_way=app.state.jobs.under_way, unreadable=core.catalog.unreadable())


async def keep_gauges(app: FastAPI) -> None:
    """Update the gauges of a worker that another worker is scraped for."""
    while True:
        update_gauges(app)
        await asyncio.sleep(_UPDATE_SECONDS)


async def keep_datasets(core: Core) -> None:
    """Read what another process registered before anybody asks for it, and forget what it retired."""
    while True:
        await asyncio.sleep(_REFRESH_SECONDS)
        try:
            await run_sync(core.catalog.refresh)
        except PrivacyError as error:
            log_failure("refresh", error)


def read_token(file: str | None) -> bytes | None:
    """Read the token that opens the metrics without the ledger; None: there is no such file in the settings."""
    if file is None:
        return None
    refusal = SourceError(
        f"metrics_token_file: it cannot be opened, or is not one line of at least {MIN_TOKEN_CHARACTERS} printable "
        "ASCII characters. Write one, for example with `openssl rand -hex 32`."
    )
    content = call_or_refuse(lambda: Path(file).read_bytes(), lambda _: refusal)
    token = content.strip()
    if len(token) < MIN_TOKEN_CHARACTERS or not all(33 <= byte <= 126 for byte in token):
        raise refusal
    return token


def is_scrape(app: FastAPI, path: str, bearer: str) -> bool:
    """Whether a request reads the metrics with the token of the settings, which needs no look at the ledger."""
    expected: bytes | None = app.state.metrics_token
    return path == METRICS and expected is not None and hmac.compare_digest(bearer.encode(), expected)
