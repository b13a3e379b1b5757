"""The simplex method in fractions, against HiGHS."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from wallflower.neighbours.simplex import maximise


@pytest.mark.parametrize("seed", range(8))
def test_optimum_and_prices_agree_with_highs_and_prove_each_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, limits, gain = rng.integers(-1, 4, (6, 5)), rng.integers(0, 5, 6), rng.integers(-1, 4, 5)
    matrix = np.vstack([matrix, np.ones(5, dtype=np.int64)])
    limits = np.append(limits, 7)
    rows = [{c: Fraction(int(x)) for c, x in enumerate(row) if x} for row in matrix]
    x, prices = maximise({c: Fraction(int(g)) for c, g in enumerate(gain)}, rows, limits.tolist())
    value = sum(Fraction(int(gain[c])) * amount for c, amount in x.items())
    assert abs(float(value) + linprog(-gain, A_ub=matrix, b_ub=limits, method="highs").fun) < 1e-9
    assert value == sum(price * int(limit) for price, limit in zip(prices, limits, strict=True))
    assert min(prices) >= 0
    for c in range(5):
        assert sum(price * int(matrix[r, c]) for r, price in enumerate(prices)) >= int(gain[c])


def test_a_degenerate_programme_that_cycles_without_blands_rule_ends() -> None:
    """Beale's example: the largest improvement, always, comes back to where it began."""
    rows = [
        {0: Fraction(1, 4), 1: Fraction(-60), 2: Fraction(-1, 25), 3: Fraction(9)},
        {0: Fraction(1, 2), 1: Fraction(-90), 2: Fraction(-1, 50), 3: Fraction(3)},
        {2: Fraction(1)},
    ]
    gain = {0: Fraction(3, 4), 1: Fraction(-150), 2: Fraction(1, 50), 3: Fraction(-6)}
    x, _ = maximise(gain, rows, [0, 0, 1])
    assert sum(gain[c] * amount for c, amount in x.items()) == Fraction(1, 20)


def test_a_programme_without_a_largest_value_is_refused() -> None:
    with pytest.raises(ArithmeticError, match="largest"):
        maximise({0: Fraction(1)}, [{0: Fraction(-1)}], [1])
