"""Attacks on what is learnt of the usual: one entry, or one person, moves both noisy sums nearly as far as can be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np

from wallflower.audit import Finding, Floats, Sampler, ScriptedNoise, World, audit, audit_bound, audit_exact
from wallflower.audit.laws import Law, audit_law, law_of
from wallflower.data import Points
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.watch.baseline import Baseline
from wallflower.queries.watch.detectors import COARSE_STEPS

CLAIMED: Final = Loss("1")
HISTORIES: Final = World(tuple((x,) for x in (0.0, 0.5, 1.0, 2.0)), 4)  # observations of one entry in [0, 2]


@dataclass(frozen=True, slots=True)
class Histories:
    """Neighbours whose sums differ by nearly as much as they can: some observations are at one end of their bounds, the
    others at the other, so that the variance is large and what is released tells both sums."""

    query: Baseline
    ones: int  # observations of ones, before those of zeros
    zeros: int
    width: int
    changed: int  # of how many observations one entry becomes 0

    def tables(self) -> tuple[Floats, Floats]:
        rows = np.vstack([np.ones((self.ones, self.width)), np.zeros((self.zeros, self.width))])
        after = rows.copy()
        after[: self.changed, 0] = 0.0
        return rows, after

    def reach(self, data: Points, noise: Noise, query: Baseline) -> float:
        """By how many moves the sums exceed those of the first history, both of them."""
        value, n = query.answer(data, noise), self.ones + self.zeros
        total, squares = n * value["centre"], n * (value["variance"] + value["centre"] ** 2)
        return float(min(total - self.ones * self.width, (squares - self.ones * self.width**2) / (2 * self.width)))

    def laws(self, query: Baseline) -> list[Law]:
        """Whether both sums are at least about those of the first history."""
        tables = [Points.from_array(rows, name="made-up") for rows in self.tables()]
        return [law_of(partial(self._reaches, data, query)) for data in tables]

    def _reaches(self, data: Points, query: Baseline, noise: Noise) -> bool:
        return self.reach(data, noise, query) >= -1e-6

    def samplers(self, noise: Noise) -> list[Sampler]:
        tables = [Points.from_array(rows, name="made-up") for rows in self.tables()]
        return [partial(self._sample, data, noise) for data in tables]

    def _sample(self, data: Points, noise: Noise, size: int) -> Floats:
        return np.array([self.reach(data, noise, self.query) for _ in range(size)])


ENTRY: Final = Histories(Baseline(low=0.0, high=1.0, loss=CLAIMED), 4, 4, 16, 1)
PERSON: Final = Histories(Baseline(low=0.0, high=1.0, loss=Loss("16"), level="person"), 48, 1, 128, 48)


def attack_baselines(quick: bool, noise: Noise) -> Iterator[Finding]:
    for name, each in {"one entry": ENTRY, "one person": PERSON}.items():
        yield audit_law(*each.laws(each.query), claimed=each.query.loss, name=f"baseline, {name}")
    trials = 400 if quick else 6_000
    yield audit(*ENTRY.samplers(noise), claimed=CLAIMED, trials=trials, name="baseline, by draws")
    for at, name in enumerate(("sum", "sum of squares")):
        bound, truth = partial(_hidden, at), partial(_sums, at)
        yield audit_bound(bound, truth, HISTORIES, name=f"baseline: what the noise of its {name} hides")
    yield audit_exact(_quiet, _plain, _varied_histories(), name="baseline beside plain mean and variance")
    for name, each in {"one entry": ENTRY, "one person": PERSON}.items():
        loss, name = each.query.loss, f"broken: a tenth short, baseline, {name}"
        short = replace(each.query, loss=Loss(loss.epsilon * Fraction(10, 9)))
        yield audit_law(*each.laws(short), claimed=loss, name=name, expected=True)
    name = "broken: baseline, variance of a sample"
    yield audit_exact(_quiet, partial(_plain, less=1), _varied_histories(), name=name, expected=True)


# Tiny worlds: the answer with draws of 0, and what it asked for


_TINY: Final = Baseline(low=0.0, high=2.0, guess=1.0, loss=CLAIMED)
_UNIT: Final = 2.0 / COARSE_STEPS


def _answer(values: Floats) -> tuple[dict[str, float], ScriptedNoise]:
    script = ScriptedNoise()
    return _TINY.answer(Points.from_array(values, name="made-up"), script), script


def _hidden(at: int, values: Floats) -> float:
    """By how many steps the noise lets one entry move a sum, for half of the loss."""
    return float(_answer(values)[1].asked[at][1] * CLAIMED.epsilon / 2)


def _sums(at: int, values: Floats) -> float:
    value, n = _answer(values)[0], len(values)
    mean = (value["centre"] - 1.0) / _UNIT
    return (n * mean, n * (value["variance"] / _UNIT**2 + mean**2))[at]


def _varied_histories() -> Iterator[Floats]:
    """Histories whose variance is above that of one step, which is the least a baseline tells."""
    return (values for values in HISTORIES.arrays() if np.ptp(values) > 0)


def _quiet(values: Floats) -> list[float]:
    value = _answer(values)[0]
    return [round(value["centre"], 9), round(value["variance"], 9)]


def _plain(values: Floats, less: int = 0) -> list[float]:
    return [round(float(np.mean(values)), 9), round(float(np.var(values, ddof=less)), 9)]
