"""The study of names: shares are of the names that were asked for, and its bound is the one that is proved."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from studies import who
from wallflower.papers.okada2015.names import bound_names, measure_names


def test_names_that_are_missing_count_as_wrong() -> None:
    values = np.random.default_rng(1).normal(size=(200, 2))
    everybody, nobody = np.ones(200, dtype=bool), np.zeros(200, dtype=bool)
    assert measure_names(values, nobody, 5, Fraction(1), 2).value == 0
    assert measure_names(values, everybody, 5, Fraction(50), 2).value == 1
    assert measure_names(values, everybody, 20, Fraction(1, 1000), 2).value < 1  # coins name 0.15 of 200, not 20


@pytest.mark.parametrize(("share", "most"), [(0.01, 0.0267), (260 / 11183, 0.0608), (3511 / 49097, 0.1731)])
def test_the_bound_is_that_of_plain_differential_privacy(share: float, most: float) -> None:
    assert bound_names(share) == pytest.approx(most, abs=5e-5)


def test_a_table_that_is_absent_is_skipped_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WALLFLOWER_DATA", str(tmp_path))
    reasons: list[str] = []
    with pytest.raises(IndexError):  # no row, no table
        list(who.study(tmp_path, True, reasons.append))
    assert reasons
