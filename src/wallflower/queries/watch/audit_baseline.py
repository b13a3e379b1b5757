"""Attacks on what is learnt of the usual: one entry moves both noisy sums at once, nearly as far as it can.

Half of the history is at one end of its bounds and half at the other: the variance is large, and what is released
tells both sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np

from wallflower.audit import Finding, Floats, Sampler, ScriptedNoise, World, audit, audit_bound, audit_exact
from wallflower.audit.laws import Law, audit_law, law_of
from wallflower.data import Points
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.watch.baseline import COARSE, Baseline

LENGTH, WIDTH = 8, 16  # observations, and entries of each
CLAIMED: Final = Loss("1")
HISTORIES: Final = World(tuple((x,) for x in (0.0, 0.5, 1.0, 2.0)), 4)  # observations of one entry in [0, 2]


def sound_baselines(trials: int, noise: Noise) -> Iterator[Finding]:
    first, second = (_law(CLAIMED, rows) for rows in _histories())
    yield audit_law(first, second, claimed=CLAIMED, name="baseline")
    samplers = [_sampler(CLAIMED, rows, noise) for rows in _histories()]
    yield audit(samplers[0], samplers[1], claimed=CLAIMED, trials=trials, name="baseline, by draws")
    for at, name in enumerate(("sum", "sum of squares")):
        bound, truth = partial(_hidden, at), partial(_sums, at)
        yield audit_bound(bound, truth, HISTORIES, name=f"baseline: what the noise of its {name} hides")
    yield audit_exact(_quiet, _plain, _varied(), name="baseline beside plain mean and variance")


def broken_baselines() -> Iterator[Finding]:
    first, second = (_law(Loss(CLAIMED.epsilon * Fraction(10, 9)), rows) for rows in _histories())
    yield audit_law(first, second, claimed=CLAIMED, name="broken: a tenth short, baseline", expected=True)
    name = "broken: baseline, variance of a sample"
    yield audit_exact(_quiet, partial(_plain, less=1), _varied(), name=name, expected=True)


def _histories() -> tuple[Floats, Floats]:
    rows = np.zeros((LENGTH, WIDTH))
    rows[::2] = 1.0
    changed = rows.copy()
    changed[0, 0] = 0.0
    return rows, changed


def _reach(query: Baseline, data: Points, noise: Noise) -> float:
    """By how many moves the sums exceed those of the first history, both of them."""
    value, ones = query.answer(data, noise), LENGTH // 2
    total = LENGTH * value["centre"]
    squares = LENGTH * (value["variance"] + value["centre"] ** 2)
    return min(total - ones * WIDTH, (squares - ones * WIDTH**2) / (2 * WIDTH))


def _law(spent: Loss, rows: Floats) -> Law:
    """Whether both sums are at least about those of the first history."""
    query, data = Baseline(low=0.0, high=1.0, loss=spent), Points.from_array(rows, name="made-up")
    return law_of(lambda noise: _reach(query, data, noise) >= -1e-6)


def _sampler(spent: Loss, rows: Floats, noise: Noise) -> Sampler:
    query, data = Baseline(low=0.0, high=1.0, loss=spent), Points.from_array(rows, name="made-up")
    return lambda size: np.array([_reach(query, data, noise) for _ in range(size)])


# Tiny worlds: the answer with draws of 0, and what it asked for


_TINY: Final = Baseline(low=0.0, high=2.0, guess=1.0, loss=CLAIMED)
_UNIT: Final = 2.0 / COARSE


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


def _varied() -> Iterator[Floats]:
    """Histories whose variance is above that of one step, which is the least a baseline tells."""
    return (values for values in HISTORIES.arrays() if np.ptp(values) > 0)


def _quiet(values: Floats) -> list[float]:
    value = _answer(values)[0]
    return [round(value["centre"], 9), round(value["variance"], 9)]


def _plain(values: Floats, less: int = 0) -> list[float]:
    return [round(float(np.mean(values)), 9), round(float(np.var(values, ddof=less)), 9)]
