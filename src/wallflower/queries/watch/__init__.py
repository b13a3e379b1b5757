"""Watch a stream for outliers, and estimate the baseline that it compares with."""

from __future__ import annotations

from wallflower.queries.watch.baseline import Baseline
from wallflower.queries.watch.watch import LiveStream, Watch, WatchAnswer

__all__ = ["Baseline", "LiveStream", "Watch", "WatchAnswer"]
