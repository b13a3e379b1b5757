"""One JSON object a line: what was called and how it ended. No body, no token, no record, no name of a data set."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from pathlib import Path
from typing import Any, Final

log: Final = logging.getLogger("wallflower.curator")


class _Lines(logging.Formatter):
    """Structured lines; messages of libraries are kept only from the server itself."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {"time": self.formatTime(record), "level": record.levelname.lower()}
        return json.dumps({**told, "event": record.getMessage(), **getattr(record, "facts", {})}, ensure_ascii=True)


def start() -> None:
    """Write to stderr from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    for name in (log.name, "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)


def tell(event: str, **facts: Any) -> None:
    """Something happened; `facts` are public."""
    log.info(event, extra={"facts": facts})


def log_failure(event: str, error: BaseException) -> None:
    """A bug. Its message and its variables may hold records, so only its place is kept."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames)
    log.error(f"{event} failed", extra={"facts": {"error": type(error).__name__, "at": places}})
