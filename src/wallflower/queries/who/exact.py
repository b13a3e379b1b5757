"""What a list says without coins: the records above the bar in their order, record by record, for the audit."""

from __future__ import annotations

from collections.abc import Sequence


def exact_order(scores: Sequence[float], names: Sequence[str], above: float | None = None) -> list[int]:
    """Return the rows above the bar by the definition: the place of a row is the number of rows that come before it.

    >>> exact_order([1.0, 3.0, 2.0, 3.0], ["d", "c", "b", "a"], above=1.0)
    [3, 1, 2]
    """

    def comes_before(one: int, other: int) -> bool:
        if scores[one] != scores[other]:
            return scores[one] > scores[other]
        return (names[one], one) < (names[other], other)

    rows = [row for row, score in enumerate(scores) if above is None or score > above]
    return sorted(rows, key=lambda row: sum(comes_before(other, row) for other in rows))
