"""A clock for tokens, sessions and jobs that never goes back.

If the machine's clock is set back while the service runs, or jumps ahead and returns, no expired token or session
becomes valid again: time continues from the latest moment that this process has seen. A clock that was set back before
the process started is not noticed.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from threading import Lock
from typing import Final


def machine_time() -> float:
    """Return the time of the machine, in seconds since 1970; tests replace it."""
    return time.time()


_LOCK: Final = Lock()
_latest = (machine_time(), time.monotonic())  # the latest moment returned, by both clocks


def moment() -> datetime:
    """Return the present time, in UTC."""
    global _latest
    with _LOCK:
        latest, at = _latest
        steady = time.monotonic()
        now = max(machine_time(), latest + steady - at)
        _latest = (now, steady)
    return datetime.fromtimestamp(now, UTC)


def now() -> str:
    """Return the present time as ISO text, which sorts by time."""
    return moment().isoformat(timespec="milliseconds")
