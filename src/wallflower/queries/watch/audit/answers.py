"""Attacks on whole answers of a watch, added up: every word that a short stream draws is tried."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np

from wallflower.audit import Finding, Floats, World, audit_exact
from wallflower.audit.laws import Law, audit_law, law_of
from wallflower.data import Points
from wallflower.privacy import Loss
from wallflower.queries.watch import Watch
from wallflower.queries.watch.audit.oracle import law
from wallflower.queries.watch.statistics import Statistic

_ROWS: Final = [[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
CROSSING: Final = _ROWS, [[1.0, 0.0, 0.0], _ROWS[1]]  # an entry goes, and with it a sum from 2 to 1
CLAIMED: Final = Loss("1")
ENTRIES: Final = World(tuple((x,) for x in (-9.0, 0.0, 0.5, 1.5, 9.0, math.nan)), 2)  # of one observation, in [0, 1.5]


def attack_answers() -> Iterator[Finding]:
    yield from _oracles()
    first, second = map(_law_of_answer, CROSSING)
    yield audit_law(first, second, claimed=CLAIMED, name="answer, event, added up")
    spent = Loss(CLAIMED.epsilon * Fraction(10, 9))
    first, second = (_law_of_answer(rows, spent) for rows in CROSSING)
    yield audit_law(first, second, claimed=CLAIMED, name="broken: a tenth short, answer, event", expected=True)


def _law_of_answer(rows: Any, spent: Loss = CLAIMED) -> Law:
    """What is flagged, by the answer itself."""
    query, data = Watch(threshold=2.0, low=0.0, high=1.0, loss=spent), Points.from_array(np.array(rows), name="made-up")
    return law_of(lambda noise: tuple(query.answer(data, noise)["flagged"]))


# The exact answer


def _oracles() -> Iterator[Finding]:
    for name, query in _GAUGES.items():
        made, plain = query.statistic_on(2), _PLAIN[name]
        exact, brute = partial(_measure, made), partial(_round_to_step, made, plain)
        yield audit_exact(exact, brute, _cases(), name=f"exact distance: {name}")
    made = _GAUGES["sum"].statistic_on(2)
    name, brute = (
        "broken: exact distance, entries not held to their bounds",
        partial(_round_to_step, made, _broken_distance),
    )
    yield audit_exact(partial(_measure, made), brute, _cases(), name=name, expected=True)
    event = Watch(threshold=2.0, low=0.0, high=1.0, loss=CLAIMED)
    detector = event.detector(event.statistic_on(1))
    streams = [[k * detector.sensitivity for k in stream] for stream in product((0, 1, 2, 3), repeat=2)]
    yield audit_exact(
        partial(_sorted_chances, detector),
        partial(_every_word, detector),
        streams,
        name="law of bits beside every word",
    )


def _cases() -> Iterator[Floats]:
    return (table.T for table in ENTRIES.arrays())


_SPREAD: Final[dict[str, Any]] = {"mean": (0.5, 0.5), "covariance": ((4.0, 0.0), (0.0, 1.0))}
_USUAL: Final[dict[str, Any]] = {"threshold": 1.0, "low": 0.0, "high": 1.5, "loss": CLAIMED}
_GAUGES: Final = {
    "sum": Watch(**_USUAL, centre=1.0),
    "max": Watch(**_USUAL, statistic="max", **_SPREAD),
}


def _clip_entries(rows: Floats) -> list[float]:
    return [0.75 if math.isnan(entry) else min(max(entry, 0.0), 1.5) for entry in rows[0]]


def _broken_distance(rows: Floats) -> float:
    """BROKEN: an entry counts as what it is."""
    return float(np.nansum(rows) - 1.0)


_PLAIN: Final = {
    "sum": lambda rows: sum(_clip_entries(rows)) - 1.0,
    "max": lambda rows: max(abs(_clip_entries(rows)[0] - 0.5) / 2, abs(_clip_entries(rows)[1] - 0.5)),
}


def _measure(made: Statistic, rows: Floats) -> int:
    return int(made.measure(rows)[0])


def _round_to_step(made: Statistic, distance: Any, rows: Floats) -> int:
    return math.floor(Fraction(distance(rows)) / Fraction(made.step) + Fraction(1, 2))


def _sorted_chances(detector: Any, stream: list[int]) -> list[float]:
    found = law(detector, stream)
    return [round(found[flags], 9) for flags in sorted(found)]


def _every_word(detector: Any, stream: list[int]) -> list[float]:
    """The same chances from the detector itself, word by word."""
    distances = np.array(stream, dtype=np.int64)
    found = law_of(lambda noise: tuple(detector.decide(distances, (), 0, noise).flags.tolist()))
    return [round(chance, 9) for _, chance in sorted(found.items())]
