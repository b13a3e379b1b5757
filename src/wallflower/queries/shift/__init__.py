"""Detect a lasting change of the mean of a stream."""

from __future__ import annotations

from wallflower.queries.shift.shift import Shift, ShiftAnswer

__all__ = ["Shift", "ShiftAnswer"]
