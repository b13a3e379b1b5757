"""A released detector as an expectation of Great Expectations: `ExpectFewOutliers`. It needs great_expectations.

>>> from wallflower.great_expectations import ExpectFewOutliers  # doctest: +SKIP
>>> ExpectFewOutliers(model="people.json", max_share=0.05)  # doctest: +SKIP
"""

from __future__ import annotations

from typing import Any, ClassVar

from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.execution_engine import PandasExecutionEngine
from great_expectations.expectations.expectation import BatchExpectation
from great_expectations.expectations.metrics.metric_provider import metric_value
from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider

from wallflower.data_checks import flag_records
from wallflower.errors import PrivacyError

__all__ = ["ExpectFewOutliers"]

_METRIC = "table.wallflower.flags"


class FlagMetric(TableMetricProvider):  # type: ignore[misc] # without its package, its types are Any
    """How many records of a batch a released detector flags, and how many there are."""

    metric_name = _METRIC
    value_keys = ("model",)

    @metric_value(engine=PandasExecutionEngine)  # type: ignore[untyped-decorator]
    def _pandas(
        cls,  # noqa: N805 - the decorator makes it a class method
        execution_engine: PandasExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any],
    ) -> tuple[int, int]:
        frame, _, _ = execution_engine.get_compute_domain(metric_domain_kwargs, domain_type=MetricDomainTypes.TABLE)
        try:
            flags = flag_records(metric_value_kwargs["model"], frame)
        except PrivacyError as refusal:
            raise ValueError(str(refusal)) from None
        return sum(flags), len(flags)


class ExpectFewOutliers(BatchExpectation):  # type: ignore[misc]
    """Expect that a released detector flags at most a share of the records of a batch.

    model      the path of what `wallflower detector fit --model` wrote
    max_share  the largest share that passes
    """

    model: str
    max_share: float = 0.05

    metric_dependencies: ClassVar[tuple[str, ...]] = (_METRIC,)
    success_keys: ClassVar[tuple[str, ...]] = ("model", "max_share")
    args_keys: ClassVar[tuple[str, ...]] = ("model", "max_share")

    def _validate(
        self, metrics: dict[str, Any], runtime_configuration: Any = None, execution_engine: Any = None
    ) -> dict[str, Any]:
        flagged, records = metrics[_METRIC]
        share = flagged / records if records else 0.0
        details = {"flagged": flagged, "records": records, "share": share}
        return {"success": share <= self.max_share, "result": {"observed_value": share, "details": details}}
