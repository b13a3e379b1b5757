"""Attacks on what is learnt of the usual: one entry moves both noisy sums at once, nearly as far as it can.

Half of the history is at one end of its bounds and half at the other: the variance is large, and what is released
tells both sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from wallflower.audit import Finding, Floats, Sampler, audit
from wallflower.data import Points
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.watch.baseline import Baseline

LENGTH, WIDTH = 8, 16  # observations, and entries of each
CLAIMED: Final = Loss("1")


def sound_baselines(trials: int, noise: Noise) -> Iterator[Finding]:
    yield _attacked(CLAIMED, trials, noise, "baseline")


def broken_baselines(trials: int, noise: Noise) -> Iterator[Finding]:
    yield _attacked(CLAIMED.times(2), trials, noise, "broken: half the noise, baseline", expected=True)


def _attacked(spent: Loss, trials: int, noise: Noise, name: str, *, expected: bool = False) -> Finding:
    query, rows = Baseline(low=0.0, high=1.0, loss=spent), np.zeros((LENGTH, WIDTH))
    rows[::2] = 1.0
    changed = rows.copy()
    changed[0, 0] = 0.0
    first, second = (_reach(query, history, noise) for history in (rows, changed))
    return audit(first, second, claimed=CLAIMED, trials=trials, name=name, expected=expected)


def _reach(query: Baseline, rows: Floats, noise: Noise) -> Sampler:
    """By how many moves the sums exceed those of the first history, both of them."""
    data, ones = Points.from_array(rows, name="made-up"), LENGTH // 2

    def one() -> float:
        value = query.answer(data, noise)
        total = LENGTH * value["centre"]
        squares = LENGTH * (value["variance"] + value["centre"] ** 2)
        return min(total - ones * WIDTH, (squares - ones * WIDTH**2) / (2 * WIDTH))

    return lambda size: np.array([one() for _ in range(size)])
