"""The questions, one room each."""

from __future__ import annotations

from typing import Any, Final

from wallflower.queries.count import Count
from wallflower.queries.detector import Detector
from wallflower.queries.detector.flags import Flags
from wallflower.queries.detector.tally import Tally
from wallflower.queries.detector.threshold import Threshold
from wallflower.queries.explain import Explain
from wallflower.queries.profile import Profile
from wallflower.queries.radius import Radius
from wallflower.queries.scale import Scale
from wallflower.queries.shift import Shift
from wallflower.queries.subspaces import Subspaces
from wallflower.queries.watch import Watch
from wallflower.queries.watch.baseline import Baseline
from wallflower.queries.who import Who
from wallflower.query import Query

COMPANIONS: Final[tuple[type[Query[Any, Any]], ...]] = (
    Baseline,
    Flags,
    Who,
    Tally,
    Threshold,
)  # what serves a question, not one of its own
STREAM_ONLY: Final = ("sensors",)  # answers come from perturbed readings, not from a table
QUERIES: Final[tuple[type[Query[Any, Any]], ...]] = (
    Count,
    Subspaces,
    Watch,
    Shift,
    Explain,
    Scale,
    Radius,
    Profile,
    Detector,
)
