"""Ranges of usual readings from a public history: percentiles, as text that a parameter set takes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import wallflower as wf
from wallflower.errors import DataError, ParameterError
from wallflower.sensors.device import reading_losses
from wallflower.sensors.parameters import usual_ranges

BOX = {"centre": "0", "scale": "1", "low": "-1000", "high": "1000"}


@pytest.mark.parametrize(("share", "ends"), [("0", (0, 100)), ("0.1", (5, 95)), ("1/2", (25, 75)), ("0.9", (45, 55))])
def test_half_of_the_share_is_left_out_at_either_end(share: str, ends: tuple[int, int]) -> None:
    history = np.arange(101.0)[:, None]
    assert usual_ranges(history, outlier_share=share) == (str(ends[1] - ends[0]),)


def test_a_range_is_never_below_the_span_and_hardly_above_it() -> None:
    history = np.random.default_rng(5).normal(0.0, [0.003, 1.0, 7e5], (1000, 3))
    spans = np.diff(np.percentile(history, (2.5, 97.5), axis=0), axis=0)[0]
    for text, span in zip(usual_ranges(history, outlier_share="0.05"), spans.tolist(), strict=True):
        assert span * (1 - 1e-11) <= Fraction(text) <= span * (1 + 1e-5)


def test_columns_are_judged_apart() -> None:
    history = np.column_stack([np.arange(101.0), 10 * np.arange(101.0)])
    assert usual_ranges(history, outlier_share="0.1") == ("90", "900")


def test_a_stream_takes_the_range_and_its_loss_between_extremes_follows_it() -> None:
    """Theorem 2 of the paper: ε for usual readings, ε GS/RS for the rest."""
    (usual,) = usual_ranges(np.arange(101.0)[:, None], outlier_share="0.2")
    assert usual == "80"
    column = {**BOX, "range": usual}
    sent = wf.sensors.perturb(
        [[0.0]], columns={"x": column}, epsilon="0.4", threshold="900", grid="0.5", noise="columns"
    )
    normal, extremes = reading_losses(sent.parameters)
    assert (normal.epsilon, extremes.epsilon) == (Fraction("0.4"), Fraction("0.4") * 2000 / 80)
    assert wf.sensors.usual_ranges is usual_ranges


@pytest.mark.parametrize("share", ["1", "2", "-0.1", 0.1, "a tenth"])
def test_no_share_is_refused(share: Any) -> None:
    with pytest.raises(ParameterError, match="outlier_share"):
        usual_ranges([[1.0], [2.0]], outlier_share=share)


@pytest.mark.parametrize(
    "history", [[], [[1.0]], [1.0, 2.0], [[1.0], [np.nan]], [[1.0], [np.inf]], [["warm"], ["cold"]], [[], []]]
)
def test_no_history_is_refused(history: Any) -> None:
    with pytest.raises(DataError, match="history"):
        usual_ranges(history, outlier_share="0.1")


@pytest.mark.parametrize("column", [[41.75] * 9, [0.0, 1e-12] * 5, [0.0, 1e12] * 5])
def test_a_column_without_a_usable_span_is_refused_and_no_reading_is_shown(column: list[float]) -> None:
    history = np.column_stack([np.arange(len(column)), column])
    with pytest.raises(DataError, match="column 2") as refused:
        usual_ranges(history, outlier_share="0.1")
    assert refused.value.column == "2"
    assert "41.75" not in str(refused.value)
