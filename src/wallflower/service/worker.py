"""Entry points imported by uvicorn's worker processes: the application, and the HTTP protocol with its limits."""

from __future__ import annotations

import asyncio
import json
import os
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wallflower.errors import LedgerError
from wallflower.machine.garbage import load_for_good
from wallflower.machine.lazy import Lazy
from wallflower.machine.listener import end_with_parent

if TYPE_CHECKING:
    from fastapi import FastAPI

    import wallflower.service.app as _app
    import wallflower.service.core.logs as _logs
    import wallflower.service.core.problems as _problems
    import wallflower.service.settings as _settings
else:
    _app = Lazy("wallflower.service.app")
    _logs = Lazy("wallflower.service.core.logs")
    _problems = Lazy("wallflower.service.core.problems")
    _settings = Lazy("wallflower.service.settings")


MAX_HEAD_BYTES: Final = 2**16
MAX_URL_BYTES: Final = 2**14
MAX_HEADERS: Final = 100
_HEAD_LIMITS: Final = {
    "url-too-long": f"A URL has at most {MAX_URL_BYTES:,} bytes here. Send the rest in a body.",
    "head-too-large": f"The head of a request has at most {MAX_HEAD_BYTES:,} bytes and {MAX_HEADERS} headers here. "
    "Send fewer.",
}
_DISCARDED_BYTES: Final = 2**20
_DISCARD_SECONDS: Final = 1.0


class Protocol(HttpToolsProtocol):
    """Bound the head of a request, in time (`header_seconds`) and in size, before anybody is authenticated.

    The parser keeps a header, a trailer or a URL until it is complete, so bytes are counted as they arrive: whatever
    does not end a head or bring a piece of a body counts towards `MAX_HEAD_BYTES`. A refused connection is read on for
    a moment, so that its client receives the answer instead of a reset.
    """

    _head_timer: asyncio.TimerHandle | None = None
    _pending_bytes = 0
    _head_bytes = 0
    _is_in_head = False
    _is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._pending_bytes += len(data)
        if self._is_refused:
            if self._pending_bytes > _DISCARDED_BYTES:
                self.transport.abort()
            return
        super().data_received(data)
        if self._pending_bytes > MAX_HEAD_BYTES and not self._is_refused:
            self._refuse("head-too-large")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._pending_bytes, self._head_bytes, self._is_in_head = 0, 0, True
        self._start_head_timer()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._head_bytes += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_in_head:  # trailers are not headers
            super().on_header(name, value)
            self._head_bytes += len(name) + len(value) + len(": \r\n")

    def on_headers_complete(self) -> None:
        self._stop_head_timer()
        self._pending_bytes, self._is_in_head = 0, False
        if len(self.url) > MAX_URL_BYTES:
            self._refuse("url-too-long")
        elif self._head_bytes > MAX_HEAD_BYTES or len(self.headers) > MAX_HEADERS:
            self._refuse("head-too-large")
        if not self._is_refused:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._pending_bytes = 0
        if not self._is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._pending_bytes = 0
        if not self._is_refused:
            super().on_message_complete()

    def _refuse(self, kind: str) -> None:
        """Answer, unless an earlier request of the connection is still being answered, and hang up."""
        self._is_refused, self._pending_bytes = True, 0
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(_refusal(kind))
        _logs.log_event("request refused", reason=kind)
        self.loop.call_later(_DISCARD_SECONDS, self.transport.close)

    def _start_head_timer(self) -> None:
        self._stop_head_timer()
        self._head_timer = self.loop.call_later(self.app_state["header_seconds"], self.transport.close)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def _refusal(kind: str) -> bytes:
    """A whole HTTP response that refuses the head of a request."""
    stated = _problems.make_document(kind, _HEAD_LIMITS[kind])
    content = json.dumps(stated).encode()
    title = HTTPStatus(stated["status"]).phrase
    head = (
        f"HTTP/1.1 {stated['status']} {title}\r\ncontent-type: {_problems.MEDIA}\r\ncontent-length: {len(content)}\r\n"
        "cache-control: no-store\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + content


def from_environment() -> FastAPI:
    """Make the application of a worker process, from the settings in the environment.

    A worker without a ledger exits, and the supervisor starts another; a later failure would end the whole service.
    """
    _logs.start()
    end_with_parent()
    try:
        with load_for_good():
            app = _app.application(_settings.Settings.from_json(os.environ[_settings.VARIABLE]))
        app.state.core.load(tolerant=True)
    except LedgerError as error:
        _logs.log_failure("start", error)
        raise SystemExit(1) from None
    return app
