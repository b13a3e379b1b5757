"""Open streams, paid for once: a watch over one stream, a fleet over many, a tally of what a detector flags."""

from __future__ import annotations

from wallflower.streams.fleet import Fleet, FleetDecisions, fleet
from wallflower.streams.tally import OpenTally, Total, tallying
from wallflower.streams.watch import DEFAULT_PLAN_ROWS, Decisions, OpenWatch, watching

__all__ = [
    "DEFAULT_PLAN_ROWS",
    "Decisions",
    "Fleet",
    "FleetDecisions",
    "OpenTally",
    "OpenWatch",
    "Total",
    "fleet",
    "tallying",
    "watching",
]
