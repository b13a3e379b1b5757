"""What may be said of subspaces before they are paid for and after, from public facts."""

from __future__ import annotations

import math
from typing import Any, Final

from wallflower.privacy import Kind
from wallflower.query import Label, Quality

NEAR_CHANCE: Final = 0.1  # of the way from chance to certainty
USEFUL: Final = 0.5
RIGHT: Final = 0.9  # of the names, for an answer to be called reliable
UNPROVED: Final = (
    "That the counts are no lower than the lower ends of their intervals is not proved: these cover the noise alone."
)


def verdict(query: Any, n: int, dimension: int, smallest: str | None) -> str:
    """Whether to ask, and why."""
    said, lift = _promise(query, n, dimension), query.lift(n, dimension)
    if lift >= USEFUL:
        return f"useful: {said}"
    symbol = "ρ" if query.loss.kind is Kind.ZCDP else "ε"
    advice = f"; from {symbol} = {smallest} on it would be useful" if smallest else "; no reasonable loss makes it so"
    return f"{'near chance' if lift < NEAR_CHANCE else 'weak'}: {said}{advice}"


def notes(query: Any, n: int, dimension: int) -> tuple[str, ...]:
    """Caveats of an answer."""
    needed = math.ceil(query.needed_lead(query.made(n, dimension), n, dimension))
    lead = f"Nine of ten names are right where the best stand out by {needed:,} records or more"
    found = f"{lead}, and there are {n:,}: no table is clear enough." if needed > n else f"{lead}."
    return (found, UNPROVED) if query.counts else (found,)


def quality(query: Any, n: int, dimension: int) -> Quality:
    """How far to rely on the names, where the best stand out as the plan assumes."""
    right, lift = query.precision(n, dimension), query.lift(n, dimension)
    label: Label = "reliable" if right >= RIGHT else "use with care" if lift >= USEFUL else "unreliable"
    return Quality(label, _promise(query, n, dimension))


def _promise(query: Any, n: int, dimension: int) -> str:
    wrong, chance = 1 - query.precision(n, dimension), 1 - query.top / query.candidates(dimension)
    lead = f"{query.lead(n):g} records" + (" (2 %)" if query.gap is None and n >= 50 else "")
    return (
        f"at most {100 * wrong:.0f} % of the names are expected to be wrong, where chance would give "
        f"{100 * chance:.0f} %, if the best stand out by {lead}"
    )
