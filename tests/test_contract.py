"""Every question keeps the contract."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest

import wallflower
import wallflower.checks as checks
from above import Above
from ranking import Ranking
from wallflower.audit import Way
from wallflower.checks import (
    CHECKS,
    accounts_for_every_draw,
    answers_extreme_tables,
    is_attacked,
    raises_nothing_once_paid,
)
from wallflower.errors import EvidenceMissing, ParameterError
from wallflower.neighbours.relations import METRICS
from wallflower.privacy import Loss
from wallflower.queries import COMPANIONS, QUERIES
from wallflower.queries.explain.detectors import CustomDetector, CustomMarginDetector
from wallflower.queries.explain.draws.ocdp import SEARCHES
from wallflower.queries.explain.draws.utilities import CustomUtility
from wallflower.query import Bars, Query, Reading
from wallflower.units import Claim

KNOWN = [*QUERIES, Above, Ranking]


CASES = [
    pytest.param(
        question,
        check,
        id=f"{question.kind}-{check.__name__}",
        marks=[pytest.mark.slow] if check in (is_attacked, raises_nothing_once_paid) and question in QUERIES else [],
    )
    for question in KNOWN
    for check in CHECKS
]


@pytest.mark.parametrize(("question", "check"), CASES)
def test_contract(
    question: type[Query[Any, Any]], check: Any, quick_findings: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if question in QUERIES:  # the same attacks that its room's tests judge
        monkeypatch.setattr(checks, "evidence", lambda asked: quick_findings(asked.kind))
    check(question.example())


@pytest.mark.parametrize("companion", COMPANIONS, ids=lambda companion: companion.kind)
def test_companions_account_for_every_draw(companion: type[Query[Any, Any]]) -> None:
    accounts_for_every_draw(companion.example())


def test_kinds_and_labels_are_unique_and_exported() -> None:
    assert len({question.kind for question in KNOWN}) == len({question.label for question in KNOWN}) == len(KNOWN)
    for question in QUERIES:
        assert getattr(wallflower, question.__name__) is question
        assert question.__name__ in wallflower.__all__
        assert question.__module__.startswith(f"wallflower.queries.{question.kind}")


def as_numpy(value: Any) -> Any:
    if isinstance(value, tuple):
        return np.array([as_numpy(item) for item in value])
    return np.asarray(value)[()] if isinstance(value, bool | int | float | str) else value


@pytest.mark.parametrize(
    "query",
    [
        *(question.example() for question in QUERIES),
        wallflower.Subspaces(neighbours=3, radius=0.5, columns=("a", "b"), size=1, gap=5.0, loss=Loss("1")),
        wallflower.Watch(threshold=3.0, mean=(0.0,), covariance=((1.0,),), low=-4.0, high=4.0, loss=Loss("1")),
        wallflower.Watch(threshold=3.0, low=-4.0, high=4.0, level="person", cutoff=3, loss=Loss("1")),
    ],
    ids=lambda query: query.kind,
)
def test_settings_may_come_from_numpy(query: Query[Any, Any]) -> None:
    given = {item.name: as_numpy(getattr(query, item.name)) for item in fields(query)}
    found = type(query)(**given)
    assert found == query
    assert hash(found) == hash(query)
    assert json.dumps(found.to_json()) == json.dumps(query.to_json())


@pytest.mark.parametrize("question", QUERIES)
def test_what_is_no_number_is_refused_as_such(question: type[Query[Any, Any]]) -> None:
    needed = [item.name for item in fields(question) if str(item.type).startswith("float")]
    for name in needed:
        with pytest.raises(ParameterError, match=f"{name}: 'near' is not a number"):
            replace(question.example(), **{name: "near"})


def test_no_question_takes_a_name_the_command_line_needs() -> None:
    taken = {
        "source",
        "schema",
        "dataset",
        "ledger",
        "analyst",
        "idempotency_key",
        "as_json",
        "dry_run",
        "plot",
        "report",
    }
    for question in KNOWN:
        assert not taken & {item.name for item in fields(question)}


DOMAIN = wallflower.Schema.of(["x1", "x2"], edges={"x1": (-0.5, 0.0, 0.5)}, bounds={"x2": (-4.0, 4.0)}, clip=True)
VAGUE = wallflower.Schema.of(["x1", "x2"], edges={"x1": (-0.5, 0.0, 0.5)})


def explained(detector: Any, domain: Any = DOMAIN, **given: Any) -> Any:
    usual = {"record": "3", "metric": "x2", "context": ("x1",), "size": 50, "loss": Loss("1")}
    return wallflower.Explain(detector=detector, domain=domain, **usual | given)


def watched(**given: Any) -> Any:
    return wallflower.Watch(**{"threshold": 3.0, "low": -4.0, "high": 4.0, "loss": Loss("1")} | given)


MARGINS = ("tukey:low=-4,high=4", "bins:low=-1e100,high=1e100", "distance:k=3,radius=1", "clamped-grubbs:low=-4,high=4")
NO_MARGINS = ("grubbs", "histogram", "lof:k=3", CustomDetector(lambda values, index: 1 / float(np.ptp(values)) > 1))
EXTREME = [
    *(wallflower.Count(neighbours=1, radius=radius, loss=Loss("1")) for radius in (1e-100, 1e100)),
    wallflower.Count(neighbours=2, radius=0.5, mechanism="smooth", loss=Loss("1", delta="1e-6")),
    wallflower.Count(neighbours=2, radius=0.5, loss=Loss.zcdp("1")),
    *(wallflower.Count(neighbours=2, radius=0.5, metric=metric, loss=Loss("1")) for metric in METRICS),
    wallflower.Count(neighbours=2, radius=0.5, metric=lambda a, b: 1 / float(a[0] - b[0]), loss=Loss("1")),
    wallflower.Subspaces(neighbours=2, radius=0.5, upto=2, top=2, loss=Loss("1"), counts=True),
    wallflower.Subspaces(neighbours=2, radius=0.5, upto=2, top=2, loss=Loss("1", delta="1e-6"), score="count"),
    wallflower.Baseline(low=-4.0, high=4.0, loss=Loss("1")),
    watched(statistic="mahalanobis", mean=(0.0, 0.0), covariance=((1.0, 0.0), (0.0, 1.0))),
    watched(statistic="weighted", weights=(1.0, -3.0)),
    watched(scores=True),
    *(watched(level="person", **more) for more in ({"adaptive": True}, {"monotone": True})),
    watched(level="person", steps=100, loss=Loss.zcdp("1")),
    *(explained(detector, domain) for detector in MARGINS for domain in (DOMAIN, VAGUE)),
    explained("distance:k=3,radius=1", VAGUE, top=3, doubt=0),
    explained(CustomMarginDetector(lambda values, index: 1 / float(np.ptp(values)), 1.0), VAGUE),
    *(explained(detector, VAGUE, mode="ocdp") for detector in NO_MARGINS),
    *(explained("grubbs", VAGUE, mode="ocdp", search=search, samples=4) for search in SEARCHES),
    explained("grubbs", mode="ocdp", search="bfs", start="0100", unseen=True),
    explained("grubbs", mode="ocdp", utility="overlap", near="0100"),
    explained("grubbs", mode="ocdp", utility=CustomUtility(lambda bits, values: int(1 / np.ptp(values)), 1)),
]


@pytest.mark.slow
@pytest.mark.parametrize("query", EXTREME, ids=lambda query: f"{query.kind} {query.to_json()}"[:90])
def test_no_extreme_table_raises_once_it_is_paid_for(query: Any) -> None:
    answers_extreme_tables(query)


# The suite has teeth: each broken question fails the check that is about it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken(Above):
    kind: ClassVar[str] = "broken"

    @classmethod
    def example(cls) -> Any:
        return cls(bar=1.0, loss=Loss("0.5"))


class Nameless(Broken):
    question: ClassVar[str] = "Records."


@dataclass(frozen=True, slots=True, kw_only=True)
class Mute(Broken):
    deep: int = field(default=1)


class Melting(Broken):
    __setattr__ = object.__setattr__


class Forgetful(Broken):
    def to_json(self) -> dict[str, Any]:
        return Above.to_json(self) | {"bar": 2.0}


class Greedy(Broken):
    def cost(self, data: Any = None) -> Loss:
        return self.loss


class Peeking(Broken):
    def plan(self, *, n: int, dimension: int, data: Any = None) -> Any:
        return Above.plan(self, n=n, dimension=dimension)


class Nosy(Broken):
    def claim(self, facts: Any) -> Claim:
        return replace(Above.claim(self, facts), steps=1 + int((facts.values > 0).sum()))


class Unnamed(Broken):
    def plan(self, *, n: int, dimension: int) -> Any:
        return replace(Above.plan(self, n=n, dimension=dimension), headings={})


class Unmeasured(Broken):
    def plan(self, *, n: int, dimension: int) -> Any:
        return replace(Above.plan(self, n=n, dimension=dimension), measure="")


class Flat(Broken):
    def plan(self, *, n: int, dimension: int) -> Any:
        return replace(Above.plan(self, n=n, dimension=dimension), curve=((0.1, 0.0), (1.0, 0.0)))


class Torn(Broken):
    def picture(self, value: int, facts: Any) -> Bars:
        return Bars(labels=("all",), lengths=(1.0, 2.0), across="records", marks=("1", "2"))


class Scribbling(Broken):
    def answer(self, data: Any, noise: Any) -> int:
        data.values.base.setflags(write=True)
        data.values.base[0, 0] += 1
        return 0


class Fragile(Broken):
    def answer(self, data: Any, noise: Any) -> int:
        return int(1 / float(np.ptp(data.values)))


class Brittle(Broken):
    def answer(self, data: Any, noise: Any) -> int:
        return min(data.n, abs(int(float(data.values[0, 0]) * 10)))


class Chatty(Broken):
    def reading(self, value: int, facts: Any) -> Reading:
        return Reading(mechanism="laplace", interval=None, text="", extras={"deep": [{"noise": 3}]})


class Unstorable(Broken):
    def answer(self, data: Any, noise: Any) -> Any:
        return np.int64(Above.answer(self, data, noise))


class Gratis(Broken):
    def cost(self) -> Loss:
        return Loss("0")


class Unattacked(Broken):
    @classmethod
    def audits(cls, *, quick: bool) -> Any:
        return ()


class WithoutOracle(Broken):
    @classmethod
    def audits(cls, *, quick: bool) -> Any:
        return (found for found in Above.audits(quick=quick) if found.way is not Way.ORACLE)


class WithoutWorld(Broken):
    @classmethod
    def audits(cls, *, quick: bool) -> Any:
        return (found for found in Above.audits(quick=quick) if found.way is not Way.WORLD)


class Toothless(Broken):
    @classmethod
    def audits(cls, *, quick: bool) -> Any:
        return (found for found in Above.audits(quick=quick) if not found.expected)


class Short(Broken):
    def answer(self, data: Any, noise: Any) -> int:
        above = int((data.values[:, 0] > self.bar).sum())
        return max(0, min(data.n, above + noise.laplace(Fraction(9, 10) / self.loss.amount)))


class Unaccounted(Broken):
    @classmethod
    def accounts(cls) -> Any:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMode(Broken):
    gently: bool = field(default=False, metadata={"help": "a mode that no account has"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewChoice(Broken):
    side: str = field(default="above", metadata={"help": "three sides", "choices": ("above", "below", "beside")})


class Following(Broken):
    def answer(self, data: Any, noise: Any) -> int:
        above = int((data.values[:, 0] > self.bar).sum())
        return above + noise.laplace((1 + Fraction(above, 10**6)) / self.loss.amount)


class Forgotten(Broken):
    def answer(self, data: Any, noise: Any) -> int:
        noise.laplace(1 / self.loss.amount)
        return int((data.values[:, 0] > self.bar).sum())


class Again(Broken):
    def answer(self, data: Any, noise: Any) -> int:
        return (Above.answer(self, data, noise) + Above.answer(self, data, noise)) // 2


class Modest(Broken):
    def claim(self, facts: Any) -> Claim:
        return replace(Above.claim(self, facts), rho=self.loss.amount**2 / 8)


class Separable(Broken):
    def claim(self, facts: Any) -> Claim:
        return replace(Above.claim(self, facts), separable=True)


class Cautious(Broken):
    def cautions(self, data: Any) -> tuple[str, ...]:
        return () if data.values.any() else ("All records are 0.",)


class Hasty(Broken):
    def plan_on(self, data: Any) -> Any:
        return replace(super().plan_on(data), useful=bool(data.values.any()))


class CutByTruth(Broken):
    def answer(self, data: Any, noise: Any) -> int:
        return max(min(1, int((data.values[:, 0] > self.bar).sum())), Above.answer(self, data, noise))


class QuietAtZero(Broken):
    def answer(self, data: Any, noise: Any) -> int:
        told = Above.answer(self, data, noise)
        return told if data.values.any() else 0


class Undrawn(Broken):
    no_picture_because: ClassVar[str | None] = None


BROKEN = [
    (Unattacked, "is_attacked"),
    (WithoutOracle, "is_attacked"),
    (WithoutWorld, "is_attacked"),
    (Toothless, "is_attacked"),
    (Short, "is_attacked"),
    (Unaccounted, "accounts_for_every_draw"),
    (NewMode, "accounts_for_every_draw"),
    (NewChoice, "accounts_for_every_draw"),
    (Short, "accounts_for_every_draw"),
    (Following, "accounts_for_every_draw"),
    (Forgotten, "accounts_for_every_draw"),
    (Again, "accounts_for_every_draw"),
    (Modest, "accounts_for_every_draw"),
    (Separable, "accounts_for_every_draw"),
    (Cautious, "accounts_for_every_draw"),
    (Hasty, "accounts_for_every_draw"),
    (CutByTruth, "accounts_for_every_draw"),
    (QuietAtZero, "accounts_for_every_draw"),
    (Undrawn, "has_a_picture_or_a_reason"),
    (Nameless, "names_itself"),
    (Mute, "explains_every_field"),
    (Melting, "is_a_frozen_value"),
    (Forgetful, "survives_json"),
    (Greedy, "costs_without_data"),
    (Peeking, "plans_from_public_facts"),
    (Nosy, "claims_from_public_facts"),
    (Unnamed, "explains_its_plan"),
    (Unmeasured, "explains_its_plan"),
    (Flat, "explains_its_plan"),
    (Torn, "pictures_what_was_released"),
    (Scribbling, "leaves_data_alone"),
    (Fragile, "answers_whatever_it_sees"),
    (Brittle, "raises_nothing_once_paid"),
    (Chatty, "releases_only_the_answer"),
    (Unstorable, "releases_only_the_answer"),
    (Gratis, "refusal_changes_nothing"),
]


@pytest.mark.parametrize(("question", "name"), BROKEN, ids=lambda item: getattr(item, "__name__", item))
def test_the_suite_catches(question: Any, name: str) -> None:
    check = next(check for check in CHECKS if check.__name__ == name)
    with pytest.raises((AssertionError, EvidenceMissing, ZeroDivisionError, TypeError)):
        check(question.example())
