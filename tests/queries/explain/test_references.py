"""Detectors: the printed definitions, refusals, and detectors of others."""

from dataclasses import fields
from importlib import import_module

import numpy as np
import pytest
from scipy import stats
from sklearn.neighbors import LocalOutlierFactor

from wallflower.errors import ParameterError
from wallflower.queries.explain.detectors import (
    ClampedGrubbs,
    CustomDetector,
    Distance,
    FixedBins,
    Grubbs,
    Histogram,
    Lof,
    Pyod,
    Tukey,
)
from wallflower.queries.explain.exact import valid_contexts


def samples():
    draw = np.random.default_rng(6)
    for n in (1, 2, 3, 4, 7, 12, 30, 80):
        for _ in range(25):
            values = draw.normal(size=n) if draw.random() < 0.5 else draw.integers(0, 9, n).astype(float)
            values[0] += draw.choice([0, 3, 6])
            yield values


def test_grubbs_is_the_printed_test():
    told = set()
    for x in samples():
        n, deviation = len(x), np.std(x, ddof=1) if len(x) > 1 else 0.0
        expected = False
        if n >= 3 and deviation > 0:
            t = stats.t.isf(0.05 / (2 * n), n - 2)
            expected = abs(x[0] - x.mean()) / deviation > (n - 1) / np.sqrt(n) * np.sqrt(t**2 / (n - 2 + t**2))
        assert Grubbs(0.05).outlier(x, 0) == expected
        told.add(bool(expected))
    assert told == {True, False}


def test_local_factors_are_those_of_scikit_learn_where_nothing_is_tied():
    draw = np.random.default_rng(2)
    for n in (6, 9, 25, 60):
        for _ in range(10):
            x = draw.normal(size=n)
            factor = -LocalOutlierFactor(n_neighbors=5).fit(x[:, None]).negative_outlier_factor_[0]
            assert Lof(5, factor * (1 - 1e-9)).outlier(x, 0)
            assert not Lof(5, factor * (1 + 1e-9)).outlier(x, 0)


DETECTORS = [
    Grubbs(), ClampedGrubbs(0, 5, 100), Lof(3, 1.2), Histogram(0.2), Distance(2, 0.5), FixedBins.equal(0, 9, 6, 0.2),
    Tukey(tuple(range(10))),
]  # fmt: skip


@pytest.mark.parametrize("detector", DETECTORS, ids=repr)
def test_the_order_of_records_changes_nothing(detector):
    draw, told = np.random.default_rng(7), set()
    for x in samples():
        order = draw.permutation(len(x))
        place = int(np.flatnonzero(order == 0)[0])
        assert detector.outlier(x, 0) == detector.outlier(x[order], place)
        told.add(detector.outlier(x, 0))
    assert told == {True, False}
    settings = {item.name: getattr(detector, item.name) for item in fields(detector)}
    assert hash(detector) == hash(type(detector)(**settings))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Grubbs(0.0), lambda: Grubbs(0.6), lambda: ClampedGrubbs(1, 1, 10), lambda: ClampedGrubbs(0, 1, 2),
        lambda: ClampedGrubbs(0, 1, 10, steps=1), lambda: Lof(0, 1.5), lambda: Lof(5, 0.0), lambda: Histogram(0.0),
        lambda: Histogram(1.0), lambda: Distance(0, 1.0), lambda: Distance(1, -1.0), lambda: Distance(1, float("nan")),
        lambda: FixedBins((1.0,), 0.1), lambda: FixedBins((1.0, 1.0), 0.1), lambda: FixedBins.equal(0, 1, 0),
        lambda: FixedBins((0.0, float("inf")), 0.1), lambda: Tukey((2.0, 1.0)), lambda: Tukey((1.0, 2.0), -1.0),
        lambda: Pyod("ECOD", 1.0), lambda: Pyod("ecod.ECOD", float("inf")), lambda: Pyod("ecod.ECOD", 1.0, 1),
        lambda: Pyod(3, 1.0),
    ],
)  # fmt: skip
def test_parameters_outside_their_range_are_refused_in_three_beats(wrong):
    with pytest.raises(ParameterError, match=r"^[a-z, ]+: .+; .+\.$"):
        wrong()


def test_any_function_is_a_detector():
    codes, metric = [[0], [0], [1], [1]], [5.0, 1.0, 9.0, 2.0]
    largest = CustomDetector(lambda values, index: values[index] == values.max())
    assert valid_contexts(codes, [2], metric, 0, largest) == {"10": 2}


@pytest.mark.filterwarnings("ignore")
def test_a_detector_of_pyod_is_asked_with_an_absolute_threshold():
    knn = import_module("pyod.models.knn")  # slow to import
    metric = np.append(np.linspace(0, 1, 30), [9.0, 9.05])
    codes = np.array([[0]] * 16 + [[1]] * 14 + [[0], [2]])
    for model in (knn.KNN(n_neighbors=1), knn.KNN(n_neighbors=1, contamination=0.4)):
        found = valid_contexts(codes, [3], metric, 30, Pyod(model, 1.0))
        assert found == {"100": 17, "110": 31}
    assert Pyod("knn.KNN", 1.0).outlier(metric, 30)
    assert not Pyod("knn.KNN", 1.0, least=33).outlier(metric, 30)
