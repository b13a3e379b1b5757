"""What a process that answers calls is made of, by the names that the server has for it: the others it starts load it
for themselves."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wallflower.errors import LedgerError
from wallflower.machine.garbage import load_for_good
from wallflower.machine.lazy import Lazy
from wallflower.machine.listener import end_with_parent

if TYPE_CHECKING:
    from fastapi import FastAPI

    import wallflower.curator.app as _app
    import wallflower.curator.desk.logs as _logs
    import wallflower.curator.settings as _settings
else:
    _app = Lazy("wallflower.curator.app")
    _logs = Lazy("wallflower.curator.desk.logs")
    _settings = Lazy("wallflower.curator.settings")


class Protocol(HttpToolsProtocol):
    """Hangs up on whoever does not send the head of a request in time."""

    _hanging: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait()

    def on_headers_complete(self) -> None:
        self._wait_no_more()
        super().on_headers_complete()

    def _wait(self) -> None:
        self._wait_no_more()
        self._hanging = self.loop.call_later(self.app_state["header_seconds"], self.transport.close)

    def _wait_no_more(self) -> None:
        if self._hanging is not None:
            self._hanging.cancel()
            self._hanging = None


def from_environment() -> FastAPI:
    """The service whose settings a server has left to its workers. One that finds no ledger ends, and whoever watches
    over it starts another; to fail any later would end the whole service."""
    _logs.start()
    end_with_parent()
    try:
        with load_for_good():
            app = _app.application(_settings.Settings.from_json(os.environ[_settings.VARIABLE]))
        app.state.desk.load()
    except LedgerError as error:
        _logs.log_failure("start", error)
        raise SystemExit(1) from None
    return app
