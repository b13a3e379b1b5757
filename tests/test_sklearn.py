"""The detector in the shape of scikit-learn: its checks, its signs, its pipelines, and what it pays."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.special
from sklearn import impute, preprocessing
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import KernelPCA
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import wallflower as wf
from wallflower.errors import BudgetExhausted, ParameterError, SameRecords
from wallflower.queries.detector.grids import count_cells
from wallflower.schema import Column
from wallflower.sklearn import PrivateOutlierDetector, expected_failed_checks

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
        told = check_estimator(made(ledger, force=True), expected_failed_checks=expected_failed_checks())
    assert sum(check["status"] == "passed" for check in told) >= 40
    failed = {check["check_name"] for check in told if check["status"] == "xfail"}
    assert failed <= set(expected_failed_checks())
    assert "check_fit_idempotent" in failed  # so that the list is no longer than it must be


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
    with pytest.raises(ParameterError, match=r"'standardscaler'.*learns from all records.*outside of the budget"):
        make_pipeline(StandardScaler(), made(ledger)).fit(RECORDS)
    with wf.Ledger.open(ledger) as book:
        assert not book.history("people", event="charge")
    make_pipeline(StandardScaler(), made(ledger, unpaid_steps=True)).fit(RECORDS)
    kept = make_pipeline(FunctionTransformer(np.abs), "passthrough", made(ledger, epsilon="100")).fit(RECORDS)
    assert kept.predict(FAR).tolist() == [-1]


MEAN = impute.SimpleImputer(strategy="mean")
CONSTANT = impute.SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)
REFUSED = {
    "scale": (FunctionTransformer(preprocessing.scale), "no elementwise one"),
    "lambda": (FunctionTransformer(lambda rows: rows - rows.mean(axis=0)), "no elementwise one"),
    "frompyfunc": (FunctionTransformer(np.frompyfunc(abs, 1, 1)), "no elementwise one"),
    "kw_args": (FunctionTransformer(np.abs, kw_args={"where": True}), "kw_args"),
    "check_inverse": (FunctionTransformer(np.exp, inverse_func=np.log), "check_inverse=False"),
    "scaler": (StandardScaler(), "learns from all records"),
    "mean": (MEAN, "learns from all records"),
    "empty columns": (impute.SimpleImputer(strategy="constant"), "keep_empty_features=True"),
    "indicator": (
        impute.SimpleImputer(strategy="constant", keep_empty_features=True, add_indicator=True),
        "add_indicator",
    ),
    "unknown": (KernelPCA(), "KernelPCA is not on the list"),
    "subclass": (type("Normalizer", (preprocessing.Normalizer,), {})(), "Normalizer is not on the list"),
    "nested": (make_pipeline(preprocessing.Normalizer(), StandardScaler()), "StandardScaler learns"),
    "union": (make_union(preprocessing.Normalizer(), StandardScaler()), "StandardScaler learns"),
    "columns": (make_column_transformer((StandardScaler(), [0])), "StandardScaler learns"),
    "remainder": (make_column_transformer(("drop", [0]), remainder=StandardScaler()), "StandardScaler learns"),
    "chosen columns": (
        make_column_transformer(("passthrough", lambda rows: [int(rows[:, 0].sum() > 0)])),
        "by a function of the records",
    ),
    "frozen function": (FrozenEstimator(FunctionTransformer(preprocessing.scale)), "no elementwise one"),
}
ALLOWED = {
    "passthrough": "passthrough",
    "normalizer": preprocessing.Normalizer(),
    "binarizer": preprocessing.Binarizer(),
    "polynomials": preprocessing.PolynomialFeatures(2, include_bias=False),
    "constant": CONSTANT,
    "identity": FunctionTransformer(),
    "ufunc": FunctionTransformer(np.arctan),
    "special": FunctionTransformer(scipy.special.expit, inverse_func=scipy.special.logit, check_inverse=False),
    "frozen": FrozenEstimator(StandardScaler().fit(np.random.default_rng(9).normal(size=(50, 3)))),
    "nested": make_pipeline(CONSTANT, preprocessing.Normalizer()),
    "union": make_union(preprocessing.Normalizer(), FunctionTransformer(np.abs)),
    "columns": make_column_transformer((FunctionTransformer(np.cbrt), [0, 1]), ("drop", [2])),
    "remainder": make_column_transformer(("passthrough", [0]), remainder=preprocessing.Binarizer()),
}


@pytest.mark.parametrize("step", REFUSED)
def test_a_step_that_may_look_at_several_records_is_refused_for_its_true_reason(step: str, ledger: Path) -> None:
    transformer, reason = REFUSED[step]
    with pytest.raises(ParameterError, match=re.escape(reason)):
        make_pipeline(clone(transformer), made(ledger)).fit(RECORDS[:300])
    with wf.Ledger.open(ledger) as book:
        assert not book.history("people", event="charge")


@pytest.mark.parametrize("step", ALLOWED)
def test_a_step_on_the_list_treats_each_record_by_itself(step: str, ledger: Path) -> None:
    """One record is replaced: no other row of what the detector sees may change, whatever the step was fitted to."""
    before, after = RECORDS[:200].copy(), RECORDS[:200].copy()
    after[17] = (1e6, np.nan, -1e9) if step in ("constant",) else (1e6, -3.0, -1e9)
    steps = ALLOWED[step]
    seen = [
        rows if steps == "passthrough" else clone(steps).fit(rows, None).transform(rows) for rows in (before, after)
    ]
    assert (np.delete(seen[0], 17, axis=0) == np.delete(seen[1], 17, axis=0)).all()
    kept = make_pipeline(steps if steps == "passthrough" else clone(steps), made(ledger, force=True)).fit(before)
    assert kept.predict(after[:2]).shape == (2,)


def share_kept(model: Any, rows: Any, _: Any = None) -> float:
    return float((model.predict(rows) == 1).mean())


def test_a_grid_search_pays_for_each_fit_of_its_pipeline(ledger: Path) -> None:
    pipeline = make_pipeline(preprocessing.Normalizer(), made(ledger, force=True))
    search = GridSearchCV(
        pipeline,
        {"privateoutlierdetector__contamination": [0.01, 0.05]},
        scoring=share_kept,
        cv=2,
        error_score="raise",
    ).fit(RECORDS)
    assert search.best_score_ > 0
    with wf.Ledger.open(ledger) as book:
        assert len(book.history("people", event="charge")) == 5, "two settings on two folds, and the refit"
    refused = GridSearchCV(
        make_pipeline(StandardScaler(), made(ledger)), {}, cv=2, scoring=share_kept, error_score="raise"
    )
    with pytest.raises(ParameterError, match="learns from all records"):
        refused.fit(RECORDS)


def fit_as(ledger: Path, name: str, records: Any, **more: Any) -> PrivateOutlierDetector:
    return made(ledger, dataset=name, epsilon="0.2", force=True, **more).fit(records)


OTHER_FORMS = {
    "the array": RECORDS,
    "a frame": pd.DataFrame(RECORDS, columns=["a", "b", "c"]),
    "another order": RECORDS[::-1, [2, 0, 1]],
    "a part": RECORDS[:2500],
    "more": np.vstack([RECORDS, RECORDS + 1e-3]),
}


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_the_same_records_under_another_name_are_refused_before_they_are_paid_for(form: str, ledger: Path) -> None:
    fit_as(ledger, "people", RECORDS)
    with pytest.raises(SameRecords):
        fit_as(ledger, "others", OTHER_FORMS[form])
    with pytest.raises(SameRecords):
        wf.open(RECORDS, name="others", ledger=ledger).scale(epsilon="0.1")
    with wf.Ledger.open(ledger) as book:
        assert not book.history("others")
    fit_as(ledger, "people", OTHER_FORMS[form])  # a refit under the same name is one more charge
    with wf.Ledger.open(ledger) as book:
        assert len(book.history("people", event="charge")) == 2


def test_scales_of_a_schema_do_not_hide_that_records_are_the_same(ledger: Path) -> None:
    wf.open(RECORDS, name="people", ledger=ledger).scale(epsilon="0.2", force=True)
    schema = wf.Schema(columns=(Column("x1", scale=2.0), Column("x2", scale=3.0), Column("x3", center=1.0)))
    with pytest.raises(SameRecords):
        fit_as(ledger, "others", RECORDS, schema=schema)
    with wf.Ledger.open(ledger) as book:
        book.declare("others", by="steward", apart=("people",), reason="a test")
    fit_as(ledger, "others", RECORDS, schema=schema)


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
            "5", dataset=f"two{at}", schema=schema, spreads="schema", ledger=tmp_path / f"{at}.db", force=True
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


def test_partial_fits_add_up_and_each_is_paid(tmp_path):
    """Three parts of a table, at an ε that leaves no noise: the counts are those of the whole."""
    draw = np.random.default_rng(5)
    records = draw.normal(size=(3000, 3))
    with wf.Ledger.open(tmp_path / "parts.db") as ledger:
        ledger.grant("parts", wf.Loss("1000000"), by="steward", reason="tests")
        model = PrivateOutlierDetector(epsilon="300000", dataset="parts", ledger=tmp_path / "parts.db")
        grids = None
        for part in np.split(records, 3):
            model.partial_fit(part)
            grids = grids or model.model_.grids
            assert model.model_.grids == grids
        assert ledger.account("parts").spent.epsilon == 900000
    exact = count_cells(records, grids)
    assert np.abs(model.model_.counts - exact).max() <= 3
    assert (model.predict(records) == -1).sum() == pytest.approx(60, abs=40)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(records[:, :2])
