"""The simplex method in fractions: slow, and exact whatever the numbers.

Bland's rule takes the first column that helps and, of equal rows, the first, so no basis comes twice and the search
ends [Bla77]. It is the last resort of `certificate.py`, for programmes that floats do not solve.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

Row: TypeAlias = dict[int, Fraction]


def maximise(gain: Row, rows: Sequence[Row], limits: Sequence[int]) -> tuple[Row, list[Fraction]]:
    """Maximise `gain`·x over x ≥ 0 with each row·x at most its limit, which is not negative; return x without its zeros
    and the price of each limit.

    Columns are numbered from 0. Raises ArithmeticError if x can grow without end.

    >>> one, two = Fraction(1), Fraction(2)
    >>> x, prices = maximise({0: one, 1: one}, [{0: two, 1: one}, {1: one}], [4, 2])
    >>> x, [str(price) for price in prices]
    ({0: Fraction(1, 1), 1: Fraction(2, 1)}, ['1/2', '1/2'])
    """
    slack = 1 + max((column for row in (gain, *rows) for column in row), default=-1)  # the first slack column
    table = [row | {slack + r: Fraction(1)} for r, row in enumerate(rows)]
    level, basis, left = [Fraction(limit) for limit in limits], [slack + r for r in range(len(rows))], dict(gain)
    while enters := [column for column, amount in left.items() if amount > 0]:
        column = min(enters)
        ratios = [(level[r] / row[column], basis[r], r) for r, row in enumerate(table) if row.get(column, 0) > 0]
        if not ratios:
            raise ArithmeticError("the programme has no largest value")
        _, _, pivot = min(ratios)
        unit = table[pivot][column]
        table[pivot] = {c: amount / unit for c, amount in table[pivot].items()}
        level[pivot] /= unit
        basis[pivot] = column
        for r, row in enumerate(table):
            if r != pivot and column in row:
                level[r] -= row[column] * level[pivot]
                table[r] = _subtract(row, table[pivot], row[column])
        left = _subtract(left, table[pivot], left[column])
    values = {column: level[r] for r, column in enumerate(basis) if column < slack and level[r]}
    return dict(sorted(values.items())), [-left.get(slack + r, Fraction(0)) for r in range(len(rows))]


def _subtract(row: Row, other: Row, factor: Fraction) -> Row:
    """Return row - factor·other without zeros."""
    changed = row | {column: row.get(column, Fraction(0)) - factor * amount for column, amount in other.items()}
    return {column: amount for column, amount in changed.items() if amount}
