"""Attacks on charts of shifts: what we release, and broken charts that an audit has to catch.

The laws are those of the real `answer`, added up branch by branch on pairs of streams that show the most. Entries are
in [0, 1], and so one entry moves a distance by one unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial, partialmethod
from itertools import product
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from wallflower.audit import Attack, Finding, Floats, World, audit_bound, audit_exact
from wallflower.audit.answers import Accounts, Case, DrawRecord, LawCheck, Part, audit_cases, laplace
from wallflower.audit.laws import Law, audit_laws, law_of
from wallflower.data import Points
from wallflower.privacy import Loss
from wallflower.queries.shift.charts import BoundedChart, Limits, NoisySums
from wallflower.queries.shift.exact import exact_cusum
from wallflower.queries.shift.shift import Shift
from wallflower.queries.watch.detectors import Sparse
from wallflower.queries.watch.seasons import Season, SeasonalBaseline

UNIT: Final = 2**20  # grid steps of an entry from one end of its bounds to the other
COARSE: Final = 64  # coarse steps of a test of the sparse vector to a sensitivity
OFFSET_UNITS: Final = 8  # units by which every observation is above the middle of a chart
STEEP: Final = Fraction(8)  # an ε at which few branches of a secret are likely


def findings(*, quick: bool) -> Iterator[Finding]:
    """Every attack: what must hold, then what must be caught."""
    for attack in ATTACKS.values():
        yield from attack(quick)


# Exact charts


WORLD: Final = World(tuple((float(x),) for x in (0, 1, 3)), 4)
DRIFT: Final = 1


def _attack_oracle(quick: bool) -> Iterator[Finding]:
    streams = [list(stream) for stream in product((0, 1, 3), repeat=4)]
    for memory in (None, 2):
        exact = partial(exact_cusum, drift=DRIFT, memory=memory)
        yield audit_exact(exact, partial(_brute, memory=memory), streams, name=f"exact chart, memory {memory}")
    wrong = partial(exact_cusum, drift=DRIFT + 1)
    yield audit_exact(wrong, _brute, streams, name="broken: another drift", expected=True)
    chart = _bounded(memory=2)
    exact = partial(exact_cusum, drift=DRIFT, memory=2)
    yield audit_exact(partial(_released_chart, chart), exact, streams, name="released chart with a bounded memory")


def _brute(stream: list[int], memory: int | None = None) -> list[int]:
    """Every sum of last terms, and the largest."""
    length = len(stream) if memory is None else memory
    return [
        max([0, *(sum(x - DRIFT for x in stream[start:end]) for start in range(max(0, end - length), end))])
        for end in range(1, len(stream) + 1)
    ]


def _bounded(memory: int) -> BoundedChart:
    sparse = Sparse(threshold=4, sensitivity=3 * memory, epsilon=Fraction(1), cutoff=1)
    limits = Limits(low=0, high=3)
    return BoundedChart(limits=limits, drift=DRIFT, threshold=4, signs=(1,), memory=memory, every=1, sparse=sparse)


def _released_chart(chart: BoundedChart, stream: list[int]) -> list[int]:
    return [chart.value(stream[max(0, end - chart.memory) : end]) for end in range(1, len(stream) + 1)]


# Sensitivity


def _attack_sensitivity(quick: bool) -> Iterator[Finding]:
    """One observation moves every later S_t by at most the width, and with a memory a person moves it by as much for
    every observation that is looked back.  (K) (M)"""
    chart = partial(_chart_of_table, memory=None)
    yield audit_bound(lambda values: 3.0, chart, WORLD, name="what one observation moves a chart by")
    yield audit_bound(lambda values: 2.0, chart, WORLD, name="broken: less than the width", expected=True)
    yield _audit_person(memory=2, claimed=6)
    yield _audit_person(memory=2, claimed=3, expected=True)


def _chart_of_table(values: Floats, memory: int | None) -> list[int]:
    """The charts of every order of the records, so that the replaced one stands at every place."""
    records = [int(value) for value in values[:, 0]]
    return [max(exact_cusum([*records[place:], *records[:place]], drift=DRIFT, memory=memory)) for place in range(4)]


def _audit_person(*, memory: int, claimed: int, expected: bool = False) -> Finding:
    """Two streams of which all observations differ."""
    chart = _bounded(memory)
    streams = list(product((0, 3), repeat=4))
    charts = np.array([_released_chart(chart, list(stream)) for stream in streams])
    moved = float(np.abs(charts[:, None] - charts[None, :]).max())
    world = World(((0.0,), (1.0,)), 1)
    name = "broken: a person counts once" if expected else "what a person moves a chart by"
    return audit_bound(
        lambda values: float(claimed), lambda values: values[0] * moved, world, name=name, expected=expected
    )


# Laws of the answer


def _query(epsilon: Fraction | int | str = 1, **details: Any) -> Shift:
    """A chart of entries in [0, 1], of which one entry moves the distance by one unit."""
    usual: dict[str, Any] = {
        "low": 0.0,
        "high": 1.0,
        "centre": 0.0,
        "variance": 1.0,
        "clip": 10.0,
        "direction": "up",
        "run_length": 1000,
        "block": 1,
    }
    return Shift(loss=Loss(epsilon), **usual | details)


def _stream(*entries: float) -> Points:
    return Points.from_array(np.array(entries)[:, None], columns=("x",), name="made-up")


def _alarms(value: Any) -> tuple[tuple[int, str], ...]:
    return tuple((alarm["at"], alarm.get("direction", "")) for alarm in value["alarms"])


def _law(query: Shift, stream: Points, least: float = 0.0) -> Law:
    return law_of(lambda noise: _alarms(query.answer(stream, noise)), least=least)


def _attack_sums(quick: bool) -> Iterator[Finding]:
    pairs = [(_stream(0, 0), _stream(0, 1)), (_stream(1, 0), _stream(0, 0))]
    for name, query in {"up": _query(block=2), "in both directions": _query(block=2, direction="both")}.items():
        laws = [(_law(query, first), _law(query, second)) for first, second in pairs]
        yield audit_laws(laws, claimed=Loss("1"), name=f"alarms of noisy sums, {name}")
    query, (first, second) = _query(block=2), pairs[0]
    short = replace(query, loss=Loss("10/9"))
    laws = [(_law(short, first), _law(short, second))]
    yield audit_laws(laws, claimed=Loss("1"), name=_broken("a tenth short"), expected=True)
    tight = replace(query, clip=0.25)
    laws = [(_law(tight, first), _law(tight, second))]
    yield audit_laws(laws, claimed=Loss("1"), name="alarms of noisy sums, tight limits")
    with patch.object(Limits, "clip", lambda self, distances: distances):
        laws = [(_law(tight, first), _law(tight, second))]
    yield audit_laws(laws, claimed=Loss("1"), name=_broken("distances beyond the limits"), expected=True)
    with patch.object(NoisySums, "decide", _decide_twice):
        laws = [(_law(query, first), _law(query, second))]
    yield audit_laws(laws, claimed=Loss("1"), name=_broken("a block is summed by two copies"), expected=True)
    window, moved = _query(2, level="window", window=2, block=2), (_stream(0, 0), _stream(1, 1))
    laws = [(_law(window, moved[0]), _law(window, moved[1]))]
    yield audit_laws(laws, claimed=Loss("2"), name="alarms, window of two")
    alone = replace(query, loss=Loss("2"))
    laws = [(_law(alone, moved[0]), _law(alone, moved[1]))]
    yield audit_laws(laws, claimed=Loss("2"), name=_broken("a window at the price of an entry"), expected=True)


def _broken(mistake: str) -> str:
    return f"broken: {mistake}"


_decide = NoisySums.decide


def _decide_twice(self: NoisySums, distances: Any, first: int, memory: Any, noise: Any, **more: Any) -> Any:
    """BROKEN: what a restored copy would do if it looked at the last observation of a block again."""
    before = _decide(self, distances[:-1], first, memory, noise, **more)
    told = [_decide(self, distances[-1:], first + before.count, before.memory, noise, **more) for _ in range(2)]
    return replace(told[1], alarms=[told[0].alarms[0], told[1].alarms[0]], onsets=[1, 1])


def _attack_persons(quick: bool) -> Iterator[Finding]:
    claimed, pair = Loss(STEEP), (_meters(2, 1, 1), _meters(3, 0, 0))
    query = _person(STEEP)
    laws = [(_law(query, pair[0], 1e-7), _law(query, pair[1], 1e-12))]
    yield audit_laws(laws, claimed=claimed, name="alarms of a bounded chart")
    for name, change in {
        "a tenth short": {"epsilon": STEEP * Fraction(10, 9)},
        "the cutoff is forgotten": {"epsilon": 2 * STEEP},
        "a person counts half": {"sensitivity": UNIT // 2},
    }.items():
        with patch.object(Shift, "chart", partialmethod(_broken_chart, change)):
            laws = [(_law(query, pair[0], 1e-7), _law(query, pair[1], 1e-12))]
        yield audit_laws(laws, claimed=claimed, name=_broken(name), expected=True)


_chart = Shift.chart


def _broken_chart(query: Shift, change: dict[str, Any], statistic: Any) -> Any:
    chart: Any = _chart(query, statistic)
    return replace(chart, sparse=replace(chart.sparse, **change))


def _person(epsilon: Fraction, **details: Any) -> Shift:
    """A chart of three meters that reaches its threshold where two of them show 1."""
    usual: dict[str, Any] = {"level": "person", "memory": 1, "run_length": 1000}
    query = _query(epsilon, **usual | details)
    threshold = query.tuning(query.statistic_on(3)).outlook.threshold
    return replace(query, centre=2.0 - query.size / 2 - threshold)


def _meters(*sums: int) -> Points:
    """Observations of three meters, and how many of them show 1."""
    rows = np.array([[float(place < count) for place in range(3)] for count in sums])
    return Points.from_array(rows, name="made-up")


# Accounts of what an answer draws


WITHOUT_DRAWS: Final = frozenset(
    {"columns", "time", "low", "high", "change", "centre", "variance", "clip", "size", "run_length"}
)
ADJACENT: Final = (_stream(0, 1, 1), _stream(1, 1, 1))
KNOWN: Final = SeasonalBaseline(
    dataset="made-up",
    columns=("x",),
    season=Season(kind="always"),
    time=None,
    centre=((0.0,),),
    spread=((1.0,),),
    width=(1.0,),
)
OWN: Final = {"own": (("record", Fraction(1)),)}


def _sums(draws: int, epsilon: Fraction | int = 1, moves: int = UNIT) -> Part:
    return laplace("sums", moves=moves, epsilon=epsilon, draws=draws, is_released=False)


def _tests(epsilon: Fraction, count: int) -> tuple[Part, ...]:
    """Noise on the threshold, whose part of ε is 1 of 1 + 2^(2/3), and a coin for every test."""
    part = epsilon / (1 + Fraction(2 ** (2 / 3)))
    threshold = replace(laplace("threshold", moves=COARSE, epsilon=part, is_released=False), spends=part)
    coins = Part(name="coins", spends=epsilon - part, draws=(DrawRecord("words", size=1),) * count)
    return threshold, coins


CASES: Final = (
    Case(
        name="noisy sums",
        query=_query(),
        tables=ADJACENT,
        parts=(_sums(3),),
        claimed=OWN,
        laws=(LawCheck(parts=("sums",), draws=(0,), least=0.99, seen=_alarms),),
    ),
    Case(
        name="noisy sums, the path",
        query=_query(path=True, centre=-OFFSET_UNITS, run_length=10**9),
        tables=ADJACENT,
        parts=(laplace("sums", moves=UNIT, epsilon=1, draws=3),),
        claimed=OWN,
        laws=(LawCheck(parts=("sums",), draws=(0,), least=0.99, seen=lambda value: value["path"][0] > 9 * UNIT),),
    ),
    *(
        Case(
            name=f"noisy sums, {direction}",
            query=_query(direction=direction),
            tables=ADJACENT,
            parts=(_sums(3),),
            claimed=OWN,
            laws=(LawCheck(parts=("sums",), draws=(0,), least=0.99, seen=_alarms),),
        )
        for direction in ("down", "both")
    ),
    Case(
        name="noisy sums of blocks by the rule",
        query=_query(block=None, size=5.0),
        tables=ADJACENT,
        parts=(_sums(3),),
        claimed=OWN,
        laws=(LawCheck(parts=("sums",), draws=(0,), least=0.99, seen=_alarms),),
    ),
    Case(
        name="window of three",
        query=_query(3, level="window", window=3, block=3),
        tables=(_stream(0, 0, 0), _stream(1, 1, 1)),
        parts=(laplace("sums", moves=3 * UNIT, epsilon=3, is_released=False),),
        claimed=OWN,
        stated=Fraction(1),
        laws=(LawCheck(parts=("sums",), least=0.99, seen=_alarms),),
    ),
    Case(
        name="noisy sums, by a season",
        query=Shift(loss=Loss("1"), baseline=KNOWN, low=0.0, high=1.0, clip=10.0, block=1),
        tables=ADJACENT,
        parts=(_sums(3),),
        claimed=OWN,
        laws=(LawCheck(parts=("sums",), draws=(0,), least=0.99, seen=_alarms),),
    ),
    *(
        Case(
            name=name,
            query=query,
            tables=(_meters(1), _meters(2)),
            parts=_tests(STEEP, 1),
            claimed={"steps": None, "own": (("record", Fraction(3)),)},
            laws=(
                LawCheck(
                    parts=("threshold", "coins"),
                    draws=(0, 1, 2, 3),
                    least=least,
                    seen=_alarms,
                    tables=(_meters(2, 1, 1), _meters(3, 0, 0)),
                    rare=(1e-7, 1e-12),
                ),
            ),
        )
        for name, query, least in (
            ("person", _person(STEEP), 0.99),
            ("person, memory by the rule", _person(STEEP, memory=None, size=4.0), 0.1),
        )
    ),
)
ACCOUNTS: Final = Accounts(cases=CASES, without_draws=WITHOUT_DRAWS)


ATTACKS: Final[dict[str, Attack]] = {
    "answers": lambda quick: audit_cases(ACCOUNTS.cases),
    "sums": _attack_sums,
    "persons": _attack_persons,
    "sensitivity": _attack_sensitivity,
    "exact": _attack_oracle,
}
