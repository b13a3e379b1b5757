"""Structured logs: one JSON object per line, without bodies, secrets of tokens, records and names of data sets.

Lines that belong to a request have its id (`request`). Messages of libraries may quote anything, so only their logger,
level and code location are logged; uvicorn's own messages hold no part of a request and are kept.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from wallflower.errors import error_place

log: Final = logging.getLogger("wallflower.service")
_SERVER: Final = "uvicorn.error"
_REQUEST: Final[ContextVar[str | None]] = ContextVar("request", default=None)


class _Lines(logging.Formatter):
    """Format a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"time": self.formatTime(record), "level": record.levelname.lower()}
        if record.name in (log.name, _SERVER):
            line["event"] = record.getMessage()
        else:
            location = f"{Path(record.pathname).name}:{record.lineno}"
            line |= {"event": "library message", "logger": record.name, "at": location}
        if record.exc_info and record.exc_info[1] is not None:
            line |= _failure_facts(record.exc_info[1])
        request = _REQUEST.get()
        if request is not None:
            line["request"] = request
        return json.dumps({**line, **getattr(record, "facts", {})}, ensure_ascii=True)


def start() -> None:
    """Start logging to stderr: our lines, those of the server, and warnings of all libraries."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    for name in (log.name, _SERVER):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.captureWarnings(True)
    sys.excepthook = _log_uncaught
    threading.excepthook = lambda failure: log_failure("thread", failure.exc_value or failure.exc_type())


def begin_request(request: str) -> None:
    """Set the request id of the log lines that follow in this context."""
    _REQUEST.set(request)


def log_event(event: str, **facts: Any) -> None:
    """Log an event; `facts` must be public."""
    log.info(event, extra={"facts": facts})


def log_failure(event: str, error: BaseException) -> None:
    """Log an error by its type and code locations: its message and variables may hold records."""
    log.error(f"{event} failed", extra={"facts": _failure_facts(error)})


def _failure_facts(error: BaseException) -> dict[str, str]:
    return {"error": type(error).__name__, "at": error_place(error.__traceback__)}


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    log_failure("process", error)
