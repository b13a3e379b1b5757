"""Open streams: a watch over one stream and a fleet over many, paid for once, decided as observations arrive."""

from __future__ import annotations

from wallflower.streams.fleet import Fleet, FleetDecisions, fleet
from wallflower.streams.watch import DEFAULT_PLAN_ROWS, Decisions, OpenWatch, watching

__all__ = ["DEFAULT_PLAN_ROWS", "Decisions", "Fleet", "FleetDecisions", "OpenWatch", "fleet", "watching"]
