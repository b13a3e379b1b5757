"""What time it is for tokens, sessions and jobs: as the machine says, but never earlier than the time that has passed.

A clock that is set back while the service runs brings back no token that has expired and nobody who was signed out. One
that was set back before it started is believed.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final


def machine_time() -> float:
    """What the machine says, in seconds."""
    return time.time()


_BEGAN: Final = (machine_time(), time.monotonic())


def moment() -> datetime:
    """Now, in UTC."""
    began, steady = _BEGAN
    return datetime.fromtimestamp(max(machine_time(), began + time.monotonic() - steady), UTC)


def now() -> str:
    """This moment, as text; texts like it sort by time."""
    return moment().isoformat(timespec="milliseconds")
