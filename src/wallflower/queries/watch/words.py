"""What may be said of the flags of a watch, read off them and public facts alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from wallflower.machine.lazy import Lazy
from wallflower.queries.watch.modes import mode_of
from wallflower.queries.watch.parameters import WatchSettings
from wallflower.query import PublicFacts, Reading

if TYPE_CHECKING:
    import wallflower.queries.watch.forecast.plans as _plans
else:
    _plans = Lazy("wallflower.queries.watch.forecast.plans")

SPOKEN: Final = 12  # times of flagged observations
STAYS: Final = (1, 10, 100)  # for how many observations a person's loss is stated


def reading(query: WatchSettings, value: Mapping[str, Any], facts: PublicFacts) -> Reading:
    """How many were flagged, when, and what may be relied on."""
    flags, decided = len(value["flagged"]), value["decided"]
    over = "" if decided == facts.n else f" Then the watch was exhausted; {facts.n - decided:,} were not looked at."
    stays = {f"{steps}": str(found) for steps in STAYS if (found := query.loss_of_staying(steps)) is not None}
    ahead = _plans.prospect(query, facts.dimension)
    return Reading(
        mechanism=f"{mode_of(query)} on the {query.statistic}",
        interval=None,
        words=f"{flags:,} of {decided:,} observations were flagged{at_times(value, SPOKEN)}.{over}",
        extras=({} if ahead is None else _plans.figures_of(ahead))
        | ({"present_in_so_many": stays} if stays else {})
        | ({"assumed": assumed} if (assumed := _assumptions(query)) else {}),
        notes=_plans.notes_of(query, facts.dimension, ahead),
        quality=_plans.quality_of(query, facts.dimension, ahead, decided=decided, n=facts.n),
    )


def at_times(value: Mapping[str, Any], most: int) -> str:
    """The first times of flagged observations, in words."""
    times = value.get("times") or ()
    more = f" and {len(times) - most:,} more" if len(times) > most else ""
    return f": {', '.join(times[:most])}{more}" if times else ""


def _assumptions(query: WatchSettings) -> list[str]:
    """What the guarantee takes for granted and nothing enforces."""
    rules = {
        f"one entry changes by at most {query.change:g}" if query.change else "": query.change is not None,
        "a person changes all observations in one direction": query.monotone,
    }
    return [rule for rule, taken in rules.items() if taken]
