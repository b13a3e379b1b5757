"""One JSON object a line: what was called, by whom, and how it ended. No body, no secret of a token, no record, no name
of a data set.

Lines that belong to a request have its id (`request`). Libraries log too, and their messages may quote anything, so of
them only the logger, the level and the place in the code are kept; uvicorn's own messages hold no request and are kept.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import traceback
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any, Final

log: Final = logging.getLogger("wallflower.curator")
_SERVER: Final = "uvicorn.error"
_REQUEST: Final[ContextVar[str | None]] = ContextVar("request", default=None)


class _Lines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"time": self.formatTime(record), "level": record.levelname.lower()}
        if record.name in (log.name, _SERVER):
            line["event"] = record.getMessage()
        else:
            place = f"{Path(record.pathname).name}:{record.lineno}"
            line |= {"event": "library message", "logger": record.name, "at": place}
        if record.exc_info and record.exc_info[1] is not None:
            line |= _failure_facts(record.exc_info[1])
        request = _REQUEST.get()
        if request is not None:
            line["request"] = request
        return json.dumps({**line, **getattr(record, "facts", {})}, ensure_ascii=True)


def start() -> None:
    """Write to stderr from now on: our lines, those of the server and the warnings of every library."""
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
    """Give the lines that follow in this context the id of a request."""
    _REQUEST.set(request)


def tell(event: str, **facts: Any) -> None:
    """Something happened; `facts` are public."""
    log.info(event, extra={"facts": facts})


def log_failure(event: str, error: BaseException) -> None:
    """A bug. Its message and its variables may hold records, so only its place is kept."""
    log.error(f"{event} failed", extra={"facts": _failure_facts(error)})


def _failure_facts(error: BaseException) -> dict[str, str]:
    frames = reversed(traceback.extract_tb(error.__traceback__))
    places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames)
    return {"error": type(error).__name__, "at": places}


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    log_failure("process", error)
