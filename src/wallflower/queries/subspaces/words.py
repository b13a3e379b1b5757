"""What may be said of subspaces before they are paid for and after, from public facts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Protocol

from wallflower.privacy import Kind, Loss
from wallflower.queries.subspaces.choice import Draws
from wallflower.query.accuracy import MODERATE, Quality, rate_errors
from wallflower.schema.columns import list_names

NEAR_CHANCE: Final = 0.1  # of the way from chance to certainty
USEFUL: Final = 0.5
BLURRED: Final = MODERATE[1]  # of the records: more than moderate noise makes counts not useful
RIGHT: Final = 0.9  # of the names: low noise
UNVERIFIED: Final = (
    "Nothing verifies that the names stand out: where no subspace does, they are drawn at random. Ask with `verify`."
)
UNPROVED: Final = (
    "That the counts are no lower than the lower ends of their intervals is not proved: these cover the noise alone."
)
HEADINGS: Final = {
    "precision": "right, at least",
    "wrong": "wrong, at most",
    "chance": "by chance",
    "needed": "90 % right from",
    "each": "ε of each choice",
}
LEAD_HEADINGS: Final = {"lead": "leads, all within ±"}
COUNT_HEADINGS: Final = {"half_width": "counts, 95 % within ±"}
MECHANISM_NOTES: Final = {
    "permute-and-flip": "the better one at equal loss",
    "exponential": "each choice may spend more when δ or ρ is given",
}


class SubspacesSettings(Protocol):
    """The question as these words see it. The front door imports them, so they cannot name its class."""

    @property
    def loss(self) -> Loss: ...
    @property
    def top(self) -> int: ...
    @property
    def counts(self) -> bool: ...
    @property
    def gap(self) -> float | None: ...

    def candidates(self, dimension: int) -> int: ...
    def pick_draws(self, n: int, dimension: int) -> Draws: ...
    def lead(self, n: int) -> float: ...
    def needed_lead(self, way: Draws, n: int, dimension: int) -> float: ...
    def precision(self, n: int, dimension: int) -> float: ...
    def lift(self, n: int, dimension: int) -> float: ...
    def blur(self, n: int, dimension: int) -> float: ...


def is_useful(query: SubspacesSettings, n: int, dimension: int) -> bool:
    """Whether names are better than chance, and counts, if there are any, tell something among so many records."""
    return query.lift(n, dimension) >= USEFUL and not _is_blurred(query, n, dimension)


def reason(query: SubspacesSettings, n: int, dimension: int, smallest: str | None) -> str:
    """Why a plan is useful or not."""
    said, lift = _promise(query, n, dimension), query.lift(n, dimension)
    if is_useful(query, n, dimension):
        return said
    symbol = "ρ" if query.loss.kind is Kind.ZCDP else "ε"
    advice = f"; from {symbol} = {smallest} on it would be useful" if smallest else "; no reasonable loss makes it so"
    how = "near chance: " if lift < NEAR_CHANCE else "weak: " if lift < USEFUL else ""
    return f"{how}{said}{advice}"


def notes(query: SubspacesSettings, n: int, dimension: int) -> tuple[str, ...]:
    """Caveats of an answer."""
    counted = (UNPROVED,) if query.counts else ()
    if query.top == query.candidates(dimension):
        return counted
    needed = math.ceil(query.needed_lead(query.pick_draws(n, dimension), n, dimension))
    lead = f"Nine of ten names are right where the best stand out by {needed:,} records or more"
    found = f"{lead}, and there are {n:,}: no table is clear enough." if needed > n else f"{lead}."
    return (found, *counted)


def headline(names: Sequence[str], leads: Sequence[int], reach: float) -> str:
    """The names, and which of them stand out from the median of the others by more than noise explains."""
    named = ", then ".join(names)
    if not leads:
        return f"Drawn for their outliers: {named}."
    told = ", ".join(f"{name} {lead:,}" for name, lead in zip(names, leads, strict=True))
    clear = [name for name, lead in zip(names, leads, strict=True) if lead > reach]
    which = f"standing out from the median of the others: {', '.join(clear)}" if clear else "none is shown to stand out"
    return f"Drawn for their outliers: {named}; {which}. Leads in records of outlier mass: {told} (±{reach:.3g}, 95 %)."


def unclear(names: Sequence[str], leads: Sequence[int], reach: float) -> tuple[str, ...]:
    """The condition that some names are not shown to stand out."""
    lost = [name for name, lead in zip(names, leads, strict=False) if lead <= reach]
    if not lost:
        return ()
    return (f"Not shown to stand out, and perhaps drawn at random: {list_names(lost)}. Spend more, or ask for fewer.",)


def quality(
    query: SubspacesSettings, n: int, dimension: int, leads: Sequence[int], reach: float, conditions: tuple[str, ...]
) -> Quality:
    """The noise of the names: mostly noise where a released lead is within its noise, as names are then perhaps drawn
    at random; else where the best stand out as the plan assumes."""
    if lost := sum(lead <= reach for lead in leads):
        rule = f"{lost} of {len(leads)} leads are within their noise (±{reach:.3g} records, 95 %)"
        return rate_errors(1.0, rule, conditions=conditions)
    wrong = 1 - query.precision(n, dimension) if query.top < query.candidates(dimension) else MODERATE[0]
    error = wrong if is_useful(query, n, dimension) else 1.0
    return rate_errors(error, _promise(query, n, dimension), conditions=conditions)


def _promise(query: SubspacesSettings, n: int, dimension: int) -> str:
    candidates = query.candidates(dimension)
    if query.top < candidates:
        wrong, chance = 1 - query.precision(n, dimension), 1 - query.top / candidates
        lead = f"{query.lead(n):g} records" + (" (2 %)" if query.gap is None and n >= 50 else "")
        said = (
            f"{_at_most(wrong)} of the names are expected to be wrong, where chance would give {100 * chance:.0f} %, "
            f"if the best stand out by {lead}"
        )
    elif candidates == 1:
        said = "there is one subspace to choose, so its name tells nothing"
    else:
        said = f"all {candidates:,} subspaces are named, so that only their order tells anything, which is not forecast"
    if not query.counts:
        return said
    return f"{said}; the noise of each count is within ±{query.blur(n, dimension):.3g} (95 %) among {n:,} records"


def _is_blurred(query: SubspacesSettings, n: int, dimension: int) -> bool:
    return bool(query.counts and query.blur(n, dimension) > BLURRED * n)


def _at_most(share: float) -> str:
    """A bound in words: rounded up, and never to none.

    >>> _at_most(0.7549), _at_most(0.0004), _at_most(0.7)
    ('at most 76 %', 'under 1 %', 'at most 70 %')
    """
    whole = math.ceil(100 * share - 1e-9)
    return "under 1 %" if 0 <= share < 0.01 else f"at most {whole} %"
