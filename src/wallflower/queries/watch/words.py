"""What may be said of the flags of a watch, read off them and public facts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from wallflower.data import Points
from wallflower.machine.lazy import Lazy
from wallflower.privacy import Neighbours
from wallflower.queries.watch.modes import mode_of
from wallflower.queries.watch.parameters import WatchSettings
from wallflower.query import PublicFacts, Reading
from wallflower.schema import Schema

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
        | ({} if query.kappa is None else {"threshold": query.flag_distance})
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


def change_words(change: float | None, neighbours: Neighbours, schema: Schema, *, by_phase: bool) -> str:
    """The change that a stated loss hides where it is assumed to be at most `change`; empty where none is assumed."""
    if change is None:
        return ""
    is_scaled = not by_phase and any(scale != 1 for _, scale in _shift_and_scale(schema, schema.numbers))
    size = f"at most {change:g}" + (" (after division by the scale of its column)" if is_scaled else "")
    person = "any one person's contributions to"
    return {
        Neighbours.ENTRY: f"any one entry of one observation changed by {size}",
        Neighbours.PERSON: f"{person} the whole stream changed, each by {size}",
        Neighbours.WINDOW: f"{person} a window of consecutive observations changed, each by {size}",
    }[neighbours]


def unit_note(query: WatchSettings, data: Points) -> str:
    """What entries are divided by, and centre and threshold in the units of the columns where there is one for all."""
    pairs = _shift_and_scale(data.schema, data.columns)
    if all(pair == (0, 1) for pair in pairs):
        return "Entries are divided by 1: centre and threshold are in the units of the columns."
    divided = _scale_words(data.columns, pairs)
    scales = {scale for _, scale in pairs}
    if query.statistic not in ("sum", "weighted") or len(scales) > 1:
        return f"{divided} Centre and threshold are of what that gives, not of the columns as they are written."
    weights = query.weights or (1.0,) * data.dimension
    (scale,), usual = scales, query.statement(data.dimension).centre
    middle = usual * scale + sum(weight * center for weight, (center, _) in zip(weights, pairs, strict=True))
    return (
        f"{divided} So the centre {usual:g} is {middle:.6g} and the threshold {query.flag_distance:g} is "
        f"{query.flag_distance * scale:.6g} in the units of the column{'s' if data.dimension > 1 else ''}."
    )


def baseline_unit_note(data: Points, *, by_phase: bool) -> str:
    """How the learnt numbers follow from those of the columns, where the schema scales any; else nothing."""
    pairs = _shift_and_scale(data.schema, data.columns)
    if all(pair == (0, 1) for pair in pairs):
        return ""
    divided, scales = _scale_words(data.columns, pairs), {scale for _, scale in pairs}
    if by_phase or len(scales) > 1:
        return f"{divided} What was learnt is of the numbers that this gives, not of the columns as they are written."
    (scale,), shift = scales, sum(center for center, _ in pairs)
    added = f" and {shift:g} added to it" if shift else ""
    return f"{divided} In the units of the columns, the sum is multiplied by {scale:g}{added}, its spread by {scale:g}."


def _scale_words(names: Sequence[str], pairs: Sequence[tuple[float, float]]) -> str:
    named = [
        f"{name} {scale:g}" + (f" after subtracting {center:g}" if center else "")
        for name, (center, scale) in zip(names, pairs, strict=True)
    ]
    return f"By the schema, entries are divided by: {', '.join(named)}."


def _shift_and_scale(schema: Schema, names: Sequence[str]) -> list[tuple[float, float]]:
    """What is subtracted from each column, and what it is divided by then."""
    known = {column.name: column for column in schema.columns or ()}
    return [(float(known[name].center), float(known[name].scale)) if name in known else (0.0, 1.0) for name in names]


def _assumptions(query: WatchSettings) -> list[str]:
    """What the guarantee takes for granted and nothing enforces."""
    rules = {
        f"one entry changes by at most {query.change:g}" if query.change else "": query.change is not None,
        "a person changes all observations in one direction": query.monotone,
    }
    return [rule for rule, taken in rules.items() if taken]
