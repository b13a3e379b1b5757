"""The detector in the shape of scikit-learn's outlier detectors, and by a flag of PyOD's.

`fit` pays: it is the one look at the records, charged to a ledger before it is taken. What follows is post-processing.
Before the charge, the records are compared with those of other data sets, as by `wf.open`: one content has one budget.

A step before the detector in a pipeline must treat each record by itself. A step that looks at several records, such as
`StandardScaler` or `FunctionTransformer(scale)`, lets one record change the others, and the detector's guarantee covers
one changed record. So every step is refused that is not on the list of `_find_objection`, unless `unpaid_steps=True`.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import scipy.special
from numpy.typing import NDArray
from sklearn import decomposition, impute, preprocessing
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from wallflower.data import Schema, load
from wallflower.data.sources.files import number_columns
from wallflower.errors import ParameterError
from wallflower.ledger import Ledger
from wallflower.privacy import Exact, Loss
from wallflower.queries.detector import OWN_RECORDS, Detector
from wallflower.release import Release, check_shared_records, default_analyst, pay
from wallflower.schema import take_schema

__all__ = ["PrivateOutlierDetector", "expected_failed_checks"]

Floats = NDArray[np.float64]


class PrivateOutlierDetector(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """A detector of unusual records, fitted under ε-differential privacy.

    epsilon        what a fit costs, as text
    contamination  the share of the records to flag; None: scores, and no flags
    ledger         where the charge is booked: a path or URL; None: the default one
    dataset        data set name; the budget is tracked under it, and a fit needs one
    schema         public facts of the columns (bounds, scales): a Schema, the path of a schema file, or a mapping
    spreads        "private": measured within epsilon; "schema": the schema's scales, free
    analyst        who asks; None: $WALLFLOWER_ANALYST, or you
    force          fit even if the plan predicts mostly noise
    pyod           signs as in PyOD: greater scores and label 1 for outliers, 0 for others; else scikit-learn's
    unpaid_steps   allow pipeline steps that may look at several records at once, outside of the budget
    """

    def __init__(
        self,
        epsilon: Exact = "1",
        contamination: float | str | None = 0.02,
        *,
        ledger: str | Path | None = None,
        dataset: str | None = None,
        schema: Schema | str | Path | Mapping[str, Any] | None = None,
        spreads: str = "private",
        analyst: str | None = None,
        force: bool = False,
        pyod: bool = False,
        unpaid_steps: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.contamination = contamination
        self.ledger = ledger
        self.dataset = dataset
        self.schema = schema
        self.spreads = spreads
        self.analyst = analyst
        self.force = force
        self.pyod = pyod
        self.unpaid_steps = unpaid_steps

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to these records, and pay for it.

        `SameRecords` is raised, and nothing is charged, if another data set of the ledger holds these records.
        """
        del y
        return self._pay_fit(X, None)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add these records to those that were fitted before, and pay for them; without any, fit.

        Columns, spreads and grids stay, so that all of epsilon but the part of the threshold is spent on counts. A
        threshold is chosen for the records of this call. What the calls cost adds up for a data set, also where
        each call has records of other people.
        """
        del y
        return self._pay_fit(X, getattr(self, "release_", None))

    def _pay_fit(self, X: Any, earlier: Release[Any] | None) -> Self:
        if not self.unpaid_steps:
            _refuse_unpaid_steps()
        if self.dataset is None:
            raise ParameterError("dataset: a fit is charged to a data set, and none is named. Pass dataset='...'.")
        values = self._validate(X, ensure_min_samples=2, reset=earlier is None)
        names = tuple(map(str, getattr(self, "feature_names_in_", number_columns(values.shape[1]))))
        facts = Schema() if self.schema is None else take_schema(self.schema)
        cells = pa.table(dict(zip(names, values.T, strict=True)))
        table = load(cells, schema=facts.only(names), name=self.dataset)
        points = table.points(names)  # not from_array: points of a table are compared by their unscaled cells
        share = None if self.contamination is None else str(self.contamination)
        settings = {"spreads": self.spreads} if earlier is None else {"like": earlier, "grow": True}
        query = Detector(loss=Loss(self.epsilon), contamination=share, **settings)  # type: ignore[arg-type]
        with Ledger.open(self.ledger) as ledger:
            check_shared_records(points, ledger)
            analyst = self.analyst or default_analyst()
            self.release_: Release[Any] = pay(query, points, ledger, analyst=analyst, force=self.force).answer()
        self.model_ = self.release_.model
        self.offset_ = 0.0 if self.model_.threshold is None else -self.model_.threshold
        return self

    def fit_predict(self, X: Any, y: Any = None, **more: Any) -> Any:
        """Fit, and flag the same records. The flags are not private: keep them with the data steward."""
        warnings.warn(OWN_RECORDS, stacklevel=2)
        return self.fit(X, y, **more).predict(X)

    def score_samples(self, X: Any) -> Floats:
        """How usual records are: the less, the more unusual."""
        found: Floats = -self._scores(X)
        return found

    def decision_function(self, X: Any) -> Floats:
        """Below 0 for the records that are flagged; with `pyod`, the score, which is greater for outliers."""
        scores = self._scores(X)
        return scores if self.pyod else -scores - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """-1 for the records that are flagged and 1 for the others; with `pyod`, 1 and 0."""
        scores = self._scores(X)
        is_flagged = scores > self.model_.require_threshold()
        return np.where(is_flagged, 1, 0) if self.pyod else np.where(is_flagged, -1, 1)

    def contributions(self, X: Any) -> Floats:
        """By how much each column adds to the score of each record."""
        values = self._values(X)
        found: Floats = self.model_.contributions(values)
        return found

    def _scores(self, X: Any) -> Floats:
        values = self._values(X)
        found: Floats = self.model_.decision_function(values)
        return found

    def _values(self, X: Any) -> Floats:
        check_is_fitted(self)
        return self._validate(X, reset=False)

    def _validate(self, X: Any, **checks: Any) -> Floats:
        """`X` as numbers. scikit-learn's own message about text would quote a cell."""
        try:
            found: Floats = validate_data(self, X, dtype=np.float64, **checks)
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
            raise ParameterError(
                "X: a column holds text, and the detector takes numbers only. Drop the column, or encode it by a "
                "public rule."
            ) from None
        return found


def expected_failed_checks(estimator: object = None) -> dict[str, str]:
    """The checks of `sklearn.utils.estimator_checks` that no private fit can pass, with the reason of each.

    estimator  any; the checks are the same for all. `parametrize_with_checks` passes one

    >>> sorted(expected_failed_checks())[:2]
    ['check_classifier_data_not_an_array', 'check_fit_idempotent']
    """
    del estimator  # the same for every setting
    own_noise, private_number = "each fit draws its own noise", "the number of flagged records is private"
    return {
        "check_fit_idempotent": own_noise,
        "check_classifier_data_not_an_array": own_noise,
        "check_outliers_train": private_number,
        "check_outliers_fit_predict": private_number,
    }


def _refuse_unpaid_steps() -> None:
    """Refuse to be fitted in a pipeline whose earlier steps may look at several records at once.

    A step does not know its pipeline, so the pipeline is looked for among the callers.
    """
    frame = inspect.currentframe()
    while frame is not None:
        caller = frame.f_locals.get("self")
        if isinstance(caller, Pipeline):
            for name, step in caller.steps[:-1]:
                objection = _find_objection(step)
                if objection is not None:
                    raise ParameterError(
                        f"the step {name!r} of the pipeline is refused: {objection}. One record could then change the "
                        "others outside of the budget, and ε would not bound what is released. Drop the step and state "
                        "public scales in a schema (by default the detector measures spreads itself), wrap a step that "
                        "was fitted to public data in FrozenEstimator, or take the responsibility with "
                        "unpaid_steps=True."
                    )
        frame = frame.f_back


ROW_WISE: Final = (preprocessing.Binarizer, preprocessing.Normalizer, preprocessing.PolynomialFeatures)
"""Steps that learn at most the number of columns and treat each row by itself, whatever their parameters."""

ROW_WISE_ONCE_FITTED: Final = (
    *ROW_WISE,
    decomposition.PCA,
    decomposition.TruncatedSVD,
    impute.SimpleImputer,
    preprocessing.KBinsDiscretizer,
    preprocessing.MaxAbsScaler,
    preprocessing.MinMaxScaler,
    preprocessing.OneHotEncoder,
    preprocessing.OrdinalEncoder,
    preprocessing.PowerTransformer,
    preprocessing.QuantileTransformer,
    preprocessing.RobustScaler,
    preprocessing.SplineTransformer,
    preprocessing.StandardScaler,
)
"""Steps whose `fit` learns from all rows, and whose `transform` treats each row by itself."""


def _find_objection(step: Any) -> str | None:
    """Why a step may let one record change another; None: it treats each record by itself.

    Types are compared exactly: a subclass may do anything. A frozen step was fitted before, to data that the caller
    answers for, as the caller answers for constants in parameters.
    """
    kind = type(step)
    if step is None or step in ("passthrough", "drop") or kind in ROW_WISE:
        return None
    if kind is Pipeline:
        return _first_objection(inner for _, inner in step.steps)
    if kind is FeatureUnion:
        return _first_objection(inner for _, inner in step.transformer_list)
    if kind is ColumnTransformer:
        if any(callable(columns) for _, _, columns in step.transformers):
            return "its ColumnTransformer chooses columns by a function of the records; name the columns"
        return _first_objection((*(inner for _, inner, _ in step.transformers), step.remainder))
    if kind is impute.SimpleImputer and step.strategy == "constant":
        return _find_imputer_objection(step)
    if kind is preprocessing.FunctionTransformer:
        return _find_function_objection(step)
    if kind.__module__.startswith("sklearn.frozen") and kind.__name__ == "FrozenEstimator":  # scikit-learn 1.6
        return None if type(step.estimator) in ROW_WISE_ONCE_FITTED else _find_objection(step.estimator)
    if kind in ROW_WISE_ONCE_FITTED:
        return f"{kind.__name__} learns from all records"
    return f"{kind.__name__} is not on the list of steps that are known to treat each record by itself"


def _first_objection(steps: Iterable[Any]) -> str | None:
    return next(filter(None, map(_find_objection, steps)), None)


def _find_imputer_objection(step: impute.SimpleImputer) -> str | None:
    """Even by a constant, scikit-learn drops columns that are empty in all records, and marks those that are not."""
    if step.add_indicator:
        return "with add_indicator, SimpleImputer adds a column for each one that has a missing cell"
    if not step.keep_empty_features:
        return "SimpleImputer drops columns that are empty in all records; pass keep_empty_features=True"
    return None


def _find_function_objection(step: preprocessing.FunctionTransformer) -> str | None:
    """A function may do anything with the table; the elementwise ones of NumPy and SciPy do not."""
    if step.func is not None and not any(step.func is known for known in _elementwise_functions()):
        return "FunctionTransformer calls a function that is no elementwise one of NumPy or SciPy (a ufunc)"
    if step.kw_args:
        return "FunctionTransformer passes kw_args, which may hold a value for each record"
    if step.check_inverse and None not in (step.func, step.inverse_func):
        return "FunctionTransformer warns if the functions are not inverse on the records; pass check_inverse=False"
    return None


def _elementwise_functions() -> list[np.ufunc]:
    """The functions of one argument that NumPy and SciPy apply to each cell, and none that `frompyfunc` made."""
    named = (*vars(np).values(), *vars(scipy.special).values())
    return [known for known in named if isinstance(known, np.ufunc) and (known.nin, known.nout) == (1, 1)]
