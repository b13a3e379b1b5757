"""The public test module offers every reference function by its promised name."""

from __future__ import annotations

import importlib
from fractions import Fraction

import numpy as np
import pytest

from wallflower import testing
from wallflower.queries import QUERIES

PROMISED = """
    count_outliers degrees inliers lower_count global_bound local_bounds smooth_bound rates valid_contexts correct deal
    evaluate choose_together cube_noise CHECKS Tukey Distance FixedBins ClampedGrubbs
    Grubbs Histogram Lof CustomDetector CustomMarginDetector audit audit_bound audit_exact law_of ScriptedNoise
"""


@pytest.mark.parametrize("name", PROMISED.split())
def test_a_promised_name_is_public(name: str) -> None:
    assert name in testing.__all__
    assert getattr(testing, name) is not None


def test_reference_functions_agree_with_each_other() -> None:
    points = np.array([[0.0], [0.2], [0.4], [9.0]])
    assert testing.count_outliers(points, 1.0, 2, normalise=False) == 1
    assert testing.degrees(points, 1.0, normalise=False).tolist() == [2, 2, 2, 0]
    assert testing.lower_count(points, 1.0, 2, sensitivity=Fraction(2)) <= 1


def test_the_contract_suite_takes_every_query() -> None:
    cheap = [
        check for check in testing.CHECKS if check.__name__ in ("names_itself", "survives_json", "costs_without_data")
    ]
    assert len(cheap) == 3
    for query in QUERIES:
        for check in cheap:
            check(query.example())


@pytest.mark.parametrize("name", ["accounting_vectors", "setup_vectors"])
def test_the_vector_checks_are_modules_that_run(name: str) -> None:
    assert callable(importlib.import_module(f"wallflower.testing.{name}").main)
