"""The detector in the shape of scikit-learn: its checks, its signs, its pipelines, and what it pays."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import wallflower as wf
from wallflower.errors import BudgetExhausted, ParameterError
from wallflower.sklearn import PrivateOutlierDetector

BEYOND = {
    "check_fit_idempotent": "each fit draws its own noise",
    "check_classifier_data_not_an_array": "each fit draws its own noise",
    "check_outliers_train": "how many are flagged is private, and not met exactly",
    "check_outliers_fit_predict": "how many are flagged is private, and not met exactly",
}
DRAW = np.random.default_rng(3)
RECORDS = DRAW.normal(size=(4000, 3)) * (1.0, 10.0, 0.1)
FAR = np.array([[12.0, 100.0, 1.3]])


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    with wf.Ledger.open(path) as book:
        book.grant("people", wf.Loss("1000"), by="steward", reason="tests")
    return path


def made(ledger: Path, **more: Any) -> PrivateOutlierDetector:
    return PrivateOutlierDetector(**{"ledger": str(ledger), "dataset": "people"} | more)


@pytest.mark.slow
def test_it_passes_the_checks_that_a_private_fit_can(ledger: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told = check_estimator(made(ledger, anyway=True), on_fail=None)
    assert {check["check_name"] for check in told if check["status"] == "failed"} <= set(BEYOND)
    assert sum(check["status"] == "passed" for check in told) >= 40


def test_signs_are_those_of_scikit_learn_or_of_pyod(ledger: Path) -> None:
    usual = made(ledger, epsilon="100").fit(RECORDS)
    assert usual.predict(FAR).tolist() == [-1]
    assert usual.decision_function(FAR)[0] < 0 < usual.decision_function(np.zeros((1, 3)))[0]
    assert usual.score_samples(FAR) - usual.offset_ == pytest.approx(usual.decision_function(FAR))
    other = made(ledger, epsilon="100", pyod=True).fit(RECORDS)
    assert other.predict(np.vstack([FAR, np.zeros((1, 3))])).tolist() == [1, 0]
    assert other.decision_function(FAR)[0] > other.decision_function(np.zeros((1, 3)))[0]
    assert other.contributions(FAR).sum() == pytest.approx(other.decision_function(FAR)[0])


def test_a_pipeline_that_learns_outside_of_the_budget_is_refused(ledger: Path) -> None:
    with pytest.raises(ParameterError, match=r"'standardscaler'.*outside of the budget"):
        make_pipeline(StandardScaler(), made(ledger)).fit(RECORDS)
    with wf.Ledger.open(ledger) as book:
        assert not book.history("people", event="charge")
    make_pipeline(StandardScaler(), made(ledger, unpaid_steps=True)).fit(RECORDS)
    kept = make_pipeline(FunctionTransformer(np.abs), "passthrough", made(ledger, epsilon="100")).fit(RECORDS)
    assert kept.predict(FAR).tolist() == [-1]


def test_every_fit_pays_and_a_name_is_needed(ledger: Path) -> None:
    with pytest.raises(ParameterError, match="none is named"):
        PrivateOutlierDetector(ledger=str(ledger)).fit(RECORDS)
    for _ in range(2):
        with pytest.warns(UserWarning, match="not covered"):
            made(ledger, epsilon="400").fit_predict(RECORDS)
    with pytest.raises(BudgetExhausted):
        made(ledger, epsilon="400").fit(RECORDS)
    assert wf.sklearn.PrivateOutlierDetector is PrivateOutlierDetector


def test_a_schema_is_given_as_a_file_or_a_mapping_too(tmp_path: Path) -> None:
    place = tmp_path / "two.toml"
    place.write_text(wf.Schema.of(["x1", "x2"], scale={"x1": 2.0, "x2": 3.0}).to_toml())
    records = np.random.default_rng(0).normal(size=(400, 2))
    for at, schema in enumerate((str(place), place, wf.Schema.read(place).to_json(), wf.Schema.read(place))):
        kind = PrivateOutlierDetector(
            "5", dataset=f"two{at}", schema=schema, spreads="schema", ledger=tmp_path / f"{at}.db", anyway=True
        )
        with wf.Ledger.open(tmp_path / f"{at}.db") as ledger:
            ledger.grant(f"two{at}", wf.Loss(10), by="owner", reason="test")
        kind.fit(records)
    frame = pd.DataFrame(records, columns=["x1", "x2"])
    opened = wf.open(frame, schema=wf.Schema.read(place).to_json(), name="two", ledger=tmp_path / "open.db")
    assert opened.name == "two"
    with pytest.raises(ParameterError, match="schema: a list is not one"):
        wf.open(frame, schema=["x1"], ledger=tmp_path / "open.db")  # type: ignore[arg-type]


def test_text_in_a_table_is_refused_without_quoting_a_cell(tmp_path: Path) -> None:
    frame = pd.DataFrame({"debt": [1.0, 2.0, 3.0], "defaulted": ["No", "Secret", "No"]})
    with pytest.raises(ValueError, match="holds text") as refusal:
        PrivateOutlierDetector("5", dataset="two", ledger=tmp_path / "ledger.db").fit(frame)
    assert "Secret" not in str(refusal.value)
    assert "No" not in str(refusal.value).split()
