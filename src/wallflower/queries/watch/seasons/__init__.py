"""Seasonal baselines: what is typical in each bucket of a season, how it is estimated, and how it is updated."""

from __future__ import annotations

from wallflower.queries.watch.seasons.seasons import LIMIT_SPREADS, ReleasedBaseline, Season, SeasonalBaseline

__all__ = ["LIMIT_SPREADS", "ReleasedBaseline", "Season", "SeasonalBaseline"]
