"""No test runs for ever: one that hangs fails, and its traceback says where.

Tests wait for what they need as long as whoever makes it lives; this is the one limit in seconds. A hang in compiled
code, which no signal interrupts, ends the process: see `faulthandler_timeout` in pyproject.toml.
"""

from __future__ import annotations

import signal
from collections.abc import Generator
from types import FrameType
from typing import Any

import pytest

QUICK, SLOW, AGAIN = 300, 900, 30  # seconds; AGAIN is for a clean-up that hangs too


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    seconds = SLOW if item.get_closest_marker("slow") or item.get_closest_marker("heavy") else QUICK

    def fail(_: int, __: FrameType | None) -> None:
        pytest.fail(f"it hangs: not done after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
