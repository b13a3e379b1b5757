"""The detector in the shape of scikit-learn's outlier detectors, and by a flag of PyOD's.

`fit` pays: it is the one look at the records, charged to a ledger before it is taken. What follows is post-processing.
Whatever stands before it in a pipeline and learns from the records, `StandardScaler` for one, looks at them outside of
the budget: such a pipeline is refused unless it says that it may.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from wallflower.data import Points, Schema
from wallflower.data.sources import number_columns
from wallflower.errors import ParameterError
from wallflower.ledger import Ledger
from wallflower.privacy import Exact, Loss
from wallflower.queries.detector import OWN_RECORDS, Detector
from wallflower.release import Release, default_analyst, pay
from wallflower.schema import take_schema

__all__ = ["PrivateOutlierDetector"]

Floats = NDArray[np.float64]


class PrivateOutlierDetector(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """A detector of unusual records, fitted under ε-differential privacy.

    epsilon        what a fit costs, as text
    contamination  the share of the records to flag; None: scores, and no flags
    ledger         where the charge is booked: a path or URL; None: the default one
    dataset        the name that the budget hangs on; a fit needs one
    schema         public facts of the columns (bounds, scales): a Schema, the path of a schema file, or a mapping
    spreads        "private": measured within epsilon; "schema": the schema's scales, for nothing
    analyst        who asks; None: $WALLFLOWER_ANALYST, or you
    anyway         fit even if the plan says that it is of no use
    pyod           signs as in PyOD: greater scores and label 1 for outliers, 0 for others; else scikit-learn's
    unpaid_steps   allow steps of a pipeline that look at the records outside of the budget
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
        anyway: bool = False,
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
        self.anyway = anyway
        self.pyod = pyod
        self.unpaid_steps = unpaid_steps

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to these records, and pay for it."""
        del y
        if not self.unpaid_steps:
            _refuse_unpaid_steps()
        if self.dataset is None:
            raise ParameterError("dataset: a fit is charged to a data set, and none is named. Pass dataset='...'.")
        values = self._validate(X, ensure_min_samples=2)
        names = tuple(map(str, getattr(self, "feature_names_in_", number_columns(values.shape[1]))))
        schema = None if self.schema is None else take_schema(self.schema)
        points = Points.from_array(values, columns=names, name=self.dataset, schema=schema)
        share = None if self.contamination is None else str(self.contamination)
        query = Detector(loss=Loss(self.epsilon), contamination=share, spreads=self.spreads)  # type: ignore[arg-type]
        with Ledger.open(self.ledger) as ledger:
            analyst = self.analyst or default_analyst()
            self.release_: Release[Any] = pay(query, points, ledger, analyst=analyst, anyway=self.anyway).answer()
        self.model_ = self.release_.model
        self.offset_ = 0.0 if self.model_.threshold is None else -self.model_.threshold
        return self

    def fit_predict(self, X: Any, y: Any = None, **more: Any) -> Any:
        """Fit, and flag the same records: for whoever holds them, and nobody else."""
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


def _refuse_unpaid_steps() -> None:
    """A step does not know its pipeline, so the pipeline is looked for among those who call."""
    frame = inspect.currentframe()
    while frame is not None:
        caller = frame.f_locals.get("self")
        if isinstance(caller, Pipeline):
            for name, step in caller.steps[:-1]:
                if step not in (None, "passthrough") and get_tags(step).requires_fit:
                    raise ParameterError(
                        f"the step {name!r} of the pipeline learns from the records outside of the budget, so nothing "
                        "that follows it is private. State public scales in a schema, let the detector measure spreads "
                        "(it does unless told otherwise), or pass unpaid_steps=True if the step was fitted to public "
                        "data."
                    )
        frame = frame.f_back
