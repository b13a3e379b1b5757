"""The contract of detectors: all of the registry and those of users keep it, and what is incomplete never pays."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import mypy.api
import numpy as np
import pytest

import wallflower as wf
from wallflower.errors import ParameterError
from wallflower.noise import system_noise
from wallflower.queries.explain.audit.worlds import attack_detector
from wallflower.queries.explain.detectors import (
    ClampedGrubbs,
    CustomDetector,
    CustomMarginDetector,
    Detector,
    Distance,
    MarginDetector,
)
from wallflower.queries.explain.detectors.base import CellMarginDetector
from wallflower.queries.explain.detectors.registry import DETECTORS, make_detector, register
from wallflower.queries.explain.exact import margins
from wallflower.queries.explain.space.tables import rank_table
from wallflower.schema import Column

METRIC = Column("x", low=0.0, high=10.0)
CLASSES = (*DETECTORS.values(), CustomDetector, CustomMarginDetector)
EXAMPLES = [detector for cls in CLASSES for detector in cls.examples()]
WITH_TEXT = [detector for detector in EXAMPLES if detector.kind != "custom"]
WITH_MARGIN = [detector for detector in EXAMPLES if isinstance(detector, MarginDetector)]
DOMAIN = wf.Schema.of(["a", "x"], edges={"a": (0.5,)}, bounds={"x": (0, 10)}, clip=True)


def query(**settings: Any) -> wf.Explain:
    defaults = {"record": "0", "metric": "x", "context": ("a",), "domain": DOMAIN, "size": 100, "loss": wf.Loss("1")}
    return wf.Explain(**defaults | settings)


def points() -> wf.Points:
    rows = np.column_stack([np.arange(60) % 2, np.append(9.5, np.linspace(1, 3, 59))])
    return wf.Points.from_array(rows, columns=("a", "x"), name="made-up")


@pytest.mark.parametrize("detector", EXAMPLES, ids=str)
def test_an_attack_on_a_tiny_world_refutes_no_claim(detector: Detector) -> None:
    if detector.kind == "pyod":
        pytest.skip("fitting a model in thousands of contexts takes minutes")
    assert [finding for finding in attack_detector(detector) if not finding.ok] == []


@pytest.mark.parametrize("detector", WITH_TEXT, ids=str)
def test_text_leads_back_to_the_detector(detector: Detector) -> None:
    assert make_detector(str(detector), METRIC, 8) == detector
    assert str(query(detector=detector, mode="ocdp", size=8).detector) == str(detector)


@pytest.mark.parametrize("detector", EXAMPLES, ids=str)
def test_the_order_of_records_changes_nothing(detector: Detector) -> None:
    draw = np.random.default_rng(3)
    for _ in range(20):
        values = draw.choice([0.0, 1.0, 4.5, 5.0, 9.0], 6)
        order = draw.permutation(6)
        assert detector.outlier(values, 2) == detector.outlier(values[order], int(np.flatnonzero(order == 2)[0]))


@pytest.mark.parametrize("detector", WITH_MARGIN, ids=str)
def test_margins_are_few_enough_to_round_and_a_table_of_any_size_has_a_greatest(detector: MarginDetector) -> None:
    assert 0 <= detector.rounding(5.0) <= detector.max_rounding() < 1 / 512
    replacement = detector.replacement()
    assert replacement is None or 0 < replacement <= 2
    populations = np.array([1.0, 2.0, 3.0, 8.0])
    assert (np.diff(detector.greatest_margins(populations)) >= -1e-9).all()


@pytest.mark.parametrize("detector", WITH_MARGIN, ids=str)
def test_every_detector_with_a_margin_answers_in_mode_dp(detector: MarginDetector) -> None:
    asked = query(detector=detector, size=8)
    table = wf.Points.from_array(points().values[:8], columns=("a", "x"))
    assert asked.mode == "dp"
    assert asked.plan(n=8, dimension=2).options[0].figures["none"] >= 0
    assert asked.reading(asked.answer(asked.view(table), system_noise()), asked.view(table)).text


@pytest.mark.parametrize(
    "detector",
    [ClampedGrubbs(0, 1, 1000), ClampedGrubbs(-5, 3, 50_000, 0.4, 9), ClampedGrubbs(0, 1, 20, 0.5, 2)],
    ids=str,
)
def test_what_is_refused_for_its_rounding_is_refused_before_the_charge_whatever_the_record(detector: Any) -> None:
    """The largest rounding is neither at an end of the range nor in its middle."""
    owns = np.linspace(detector.low, detector.high, 1000).tolist()
    roundings = [detector.rounding(own) for own in owns]
    assert max(roundings) <= detector.max_rounding() <= 1.2 * max(roundings)


# A detector of the user's


def few_near(values: Any, index: int) -> float:
    return 12.0 - float(np.count_nonzero(np.abs(values - values[index]) <= 1.0))


def test_a_margin_of_ones_own_draws_by_the_law_of_the_same_margin_of_ours() -> None:
    table = rank_table([[0], [1]] * 30, [2], points().values[:, 1], 0)
    ours, theirs = Distance(11, 1.0), CustomMarginDetector(few_near, bound=1.0)
    assert [array.tolist() for array in margins(table, ours)] == [array.tolist() for array in margins(table, theirs)]
    halved = CustomMarginDetector(few_near, bound=2.0)
    assert (margins(table, halved)[0] == margins(table, ours)[0] / 2).all()


def test_a_bound_that_is_too_small_is_refuted() -> None:
    findings = list(attack_detector(CustomMarginDetector(few_near, bound=0.9)))
    assert [finding.name for finding in findings if finding.caught]


def test_a_margin_of_ones_own_is_released_with_what_its_guarantee_rests_on(tmp_path: Path) -> None:
    asked = query(detector=CustomMarginDetector(few_near, bound=1.0, name="near"), loss=wf.Loss("20"))
    with wf.Ledger.open(tmp_path / "book.db") as book:
        book.grant("made-up", wf.Loss("50"), by="steward")
        answer = wf.release(asked, points(), book, force=True)
        assert len(book.history("made-up", event="charge")) == 1
    assert answer.value
    assert "custom:near" in answer.notes[0]
    again = wf.Explain.from_json(answer.parameters)
    assert (again.mode, again.detector) == ("dp", "custom:near")
    with pytest.raises(ParameterError, match="names code"):
        again.view(points())


@pytest.mark.parametrize("margin", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_margins_without_a_finite_value_raise_nothing_after_the_charge(margin: float) -> None:
    asked = query(detector=CustomMarginDetector(lambda values, index: margin, bound=1.0))
    asked.answer(asked.view(points()), system_noise())
    fragile = CustomMarginDetector(lambda values, index: 1 / (len(values) - 60), bound=1.0)
    asked = query(detector=fragile)
    asked.answer(asked.view(points()), system_noise())


# What is incomplete


@dataclass(frozen=True)
class Incomplete(CellMarginDetector):
    """Lacks `rule`, `divide`, `greatest_margins` and more."""

    kind: ClassVar[str] = "incomplete"
    alpha: float = field(default=0.5)

    def outlier(self, values: Any, index: int, /) -> bool:
        return True


class Duck:
    """Looks like a detector with a margin, and is none."""

    def outlier(self, values: Any, index: int) -> bool:
        return True

    def margins(self, table: Any) -> Any:
        raise NotImplementedError


class Late(Distance):
    """Complete, but a method fails."""

    kind: ClassVar[str] = "custom"

    def greatest_margins(self, populations: Any) -> Any:
        raise NotImplementedError


def test_an_incomplete_class_can_be_neither_made_nor_registered() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Incomplete()  # type: ignore[abstract]
    with pytest.raises(TypeError, match="all methods"):
        register(Distance, Incomplete)  # type: ignore[type-abstract]
    with pytest.raises(TypeError, match="a name of its own"):
        register(Distance, Distance)


@pytest.mark.parametrize("detector", [Duck(), Late(2, 1.0)], ids=["duck", "late"])
def test_an_incomplete_detector_is_refused_before_the_charge(detector: Any, tmp_path: Path) -> None:
    with wf.Ledger.open(tmp_path / "book.db") as book:
        book.grant("made-up", wf.Loss("50"), by="steward")
        with pytest.raises(ParameterError, match=r"no margin|mode|fails on"):
            wf.release(query(detector=detector, mode="dp"), points(), book, force=True)
        assert book.history("made-up", event="charge") == []


def test_a_class_of_ones_own_cannot_take_the_name_of_another() -> None:
    class Impostor(Distance):
        def outlier(self, values: Any, index: int, /) -> bool:
            return False

    with pytest.raises(ParameterError, match="is taken"):
        query(detector=Impostor(2, 1.0))


INCOMPLETE = """
from wallflower.queries.explain.detectors.base import CellMarginDetector
from wallflower.queries.explain.detectors.registry import register

class Half(CellMarginDetector):
    kind = "half"

    def outlier(self, values, index, /):  # type: ignore[no-untyped-def]
        return True

Half()
register(Half)
"""


@pytest.mark.slow
def test_mypy_refuses_an_incomplete_detector(tmp_path: Path) -> None:
    source = tmp_path / "half.py"
    source.write_text(INCOMPLETE, encoding="utf-8")
    output, _, status = mypy.api.run([str(source)])
    assert status == 1
    assert 'Cannot instantiate abstract class "Half"' in output
    assert 'Only concrete class can be given where "type[Detector]" is expected' in output
