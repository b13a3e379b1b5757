"""What time it is for tokens, sessions and jobs: as the machine says, but never earlier than it was before.

A clock that is set back while the service runs, or that leaps ahead and returns, brings back no token that has expired
and nobody who was signed out: time goes on from the latest moment that this process has seen. A clock that was set back
before the process started is believed.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from threading import Lock
from typing import Final


def machine_time() -> float:
    """What the machine says, in seconds."""
    return time.time()


_LOCK: Final = Lock()
_latest = (machine_time(), time.monotonic())  # the latest moment that was told, by either clock


def moment() -> datetime:
    """Now, in UTC."""
    global _latest
    with _LOCK:
        told, at = _latest
        steady = time.monotonic()
        now = max(machine_time(), told + steady - at)
        _latest = (now, steady)
    return datetime.fromtimestamp(now, UTC)


def now() -> str:
    """This moment, as text; texts like it sort by time."""
    return moment().isoformat(timespec="milliseconds")
