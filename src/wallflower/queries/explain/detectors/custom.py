"""Detectors made of other people's code: a function, a function with a margin, or a model of PyOD."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np

from wallflower.errors import ParameterError
from wallflower.machine.lazy import load
from wallflower.names import check_label, name_callable
from wallflower.queries.explain.detectors.base import CUSTOM, Detector, MarginDetector, check_setting, require_records
from wallflower.queries.explain.space.cubes import Part
from wallflower.queries.explain.space.tables import AnyTable, Counts, Floats
from wallflower.text import Message, t

MAX_MARGIN: Final = 32_768.0  # scores end there


@dataclass(frozen=True, slots=True)
class CustomDetector(Detector):
    """Any function of (values, index): deterministic, indifferent to the order of records, safe in several threads.

    function  returns whether values[index] is an outlier among values
    name      name in a release; default: the module and the name of the function

    >>> str(CustomDetector(max)), str(CustomDetector(lambda values, index: True, name="always"))
    ('custom:builtins.max', 'custom:always')
    """

    function: Callable[[Floats, int], bool] = field(metadata={"help": "returns whether values[index] is an outlier"})
    name: str | None = field(default=None, metadata={"help": "name in a release; default: that of the function"})

    def __post_init__(self) -> None:
        _check_function(self.function, self.name)

    def __str__(self) -> str:
        return f"{CUSTOM}:{self.name or name_callable(self.function)}"

    def outlier(self, values: Floats, index: int, /) -> bool:
        return bool(self.function(values, index))

    @classmethod
    def examples(cls) -> tuple[CustomDetector, ...]:
        return (cls(lambda values, index: bool(values[index] > 2 * np.median(values)), "twice the median"),)


@dataclass(frozen=True, slots=True)
class CustomMarginDetector(MarginDetector):
    """A margin of your own, for mode dp: the record is an outlier where `function` is positive.

    The guarantee holds if one other record that joins or leaves moves the function by at most `bound`, whatever the
    other records are. That is your claim; `wallflower.queries.explain.audit.worlds.attack_detector` tries to refute it
    on every table of a tiny world. Where the function fails or returns no finite number its margin counts as 0, and the
    bound covers that too. It must be deterministic, indifferent to the order of records, and safe in several threads.

    function  margin of values[index] among values
    bound     the most that one other record moves it, rounding included
    name      name in a release; default: the module and the name of the function

    >>> def few_above(values, index):
    ...     return 10 - (values >= values[index]).sum()
    >>> detector = CustomMarginDetector(few_above, bound=1.0)
    >>> detector.outlier(np.array([5.0, 1.0, 2.0]), 0)
    True
    """

    function: Callable[[Floats, int], float] = field(metadata={"help": "margin of values[index] among values"})
    bound: float = field(metadata={"help": "the most that one other record moves it, rounding included"})
    name: str | None = field(default=None, metadata={"help": "name in a release; default: that of the function"})

    def __post_init__(self) -> None:
        _check_function(self.function, self.name)
        check_setting("bound", self.bound, 1e-100 <= self.bound <= 1e100, "1e-100 to 1e100", "pass a number such as 1")

    def __str__(self) -> str:
        return f"{CUSTOM}:{self.name or name_callable(self.function)}"

    def outlier(self, values: Floats, index: int, /) -> bool:
        return float(self.function(values, index)) > 0

    @classmethod
    def examples(cls) -> tuple[CustomMarginDetector, ...]:
        def lonely(values: Floats, index: int) -> float:
            return 6.0 - 2.0 * np.count_nonzero(np.abs(values - values[index]) <= 1.0)

        return (cls(lonely, 2.0, "twice the distance margin"),)

    def margin(self, values: Floats, index: int) -> float:
        """Return the margin in records, 0 where the function fails."""
        try:
            margin = float(self.function(values, index)) / self.bound
        except Exception:  # noqa: BLE001 - code of the user's that sees records: its error would reveal them
            return 0.0
        return max(-MAX_MARGIN, min(MAX_MARGIN, margin)) if not math.isnan(margin) else 0.0

    def margins(self, table: AnyTable) -> Iterator[Part]:
        ranked = require_records(table)

        def fill(start: int, margins: Floats, populations: Counts) -> None:
            for x in range(len(margins)):
                values, position = ranked.select(start + x)
                margins[x], populations[x] = self.margin(values, position), len(values)

        yield 0, table.space.count, fill

    def greatest_margins(self, populations: Floats) -> Floats:
        return np.full(len(populations), MAX_MARGIN)  # nothing better is known

    def rounding(self, own: float) -> float:
        return 2.0**-30  # one division, of quotients up to 2¹⁵

    def caution(self) -> Message:
        return t(
            "The guarantee rests on the claim that one other record moves the margin of {detector} by at most "
            "{bound:g}; nobody has proved it.",
            detector=str(self),
            bound=self.bound,
        )


@dataclass(frozen=True, slots=True)
class Pyod(Detector):
    """A detector of PyOD, fitted in every context, with a fixed threshold on its scores.

    PyOD's labels cut off a share of the records ("contamination"), so they depend on everybody; a score above an
    absolute threshold does not. Models that draw random numbers need a `random_state`.

    model      an unfitted detector, or its name such as "ecod.ECOD"
    threshold  records with a larger score are outliers
    least      contexts with fewer records hold no outlier

    >>> str(Pyod("ecod.ECOD", threshold=5.0))
    'pyod:model=ecod.ECOD,threshold=5.0'
    """

    kind: ClassVar[str] = "pyod"

    model: Any = field(metadata={"help": "an unfitted PyOD detector, or its name below pyod.models"})
    threshold: float = field(metadata={"help": "records with a larger score are outliers"})
    least: int = field(default=10, metadata={"help": "smaller contexts hold no outlier"})

    def __post_init__(self) -> None:
        check_setting("threshold", self.threshold, math.isfinite(self.threshold), "finite numbers", "pass one")
        fits = self.least >= 2
        check_setting("least", self.least, fits, "whole numbers from 2", "pass what the model needs to be fitted")
        if not (isinstance(self.model, str) and self.model.count(".") == 1) and not hasattr(self.model, "fit"):
            raise ParameterError(
                f'model: {self.model!r} is not a PyOD detector; pass one, or a name such as "ecod.ECOD".'
            )

    def outlier(self, values: Floats, index: int, /) -> bool:
        if len(values) < self.least:
            return False
        model = self._unfitted_model()
        model.fit(np.asarray(values, dtype=np.float64)[:, None])
        return bool(model.decision_scores_[index] > self.threshold)

    @classmethod
    def examples(cls) -> tuple[Pyod, ...]:
        return (cls("ecod.ECOD", 2.0, 3),)

    def _unfitted_model(self) -> Any:
        if not isinstance(self.model, str):
            return copy.deepcopy(self.model)
        module, _, name = self.model.partition(".")
        return getattr(load(f"pyod.models.{module}"), name)()


def _check_function(function: object, name: str | None) -> None:
    if not callable(function):
        raise ParameterError(f"function: a {type(function).__name__} cannot be called. Pass a function.")
    check_label(name)
