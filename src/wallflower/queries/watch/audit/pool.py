"""Attacks on what is learnt of several columns together: one entry is in a cell and in the whole, for one price."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Final

import numpy as np

from wallflower.audit import Finding, Floats, ScriptedNoise, Way, audit_exact
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.watch.seasons.estimates import CHANGE_STEPS, POOLED_SHARE, QUARTERS, SHARES, Cells, Ints, Pool

CLAIMED: Final = Loss("1")
TOP: Final = CHANGE_STEPS
FAR_STEPS: Final = TOP // 4
AMOUNTS: Final = (0, FAR_STEPS // 2, TOP)
PLACES: Final = np.array([0, 1])
MIDDLE: Final = np.full((2, 2), TOP // 2)
FLOOR: Final = np.zeros((2, 2), dtype=np.int64)
PLENTY: Final = Fraction(10**6)  # at such a loss nothing is shrunk

Part = Callable[[Pool, Fraction, Noise], Floats]
PARTS: Final[dict[str, Part]] = {
    "rough": lambda pool, epsilon, noise: pool.rough_centres(epsilon, noise),
    "centre": lambda pool, epsilon, noise: pool.centres(MIDDLE, 1.0, FAR_STEPS, epsilon, noise),
    "spread": lambda pool, epsilon, noise: pool.spreads(FLOOR, 1.0, FAR_STEPS, epsilon, noise),
}
LIMITS: Final = {"rough": (0, TOP), "centre": (TOP // 2 - FAR_STEPS, TOP // 2 + FAR_STEPS), "spread": (0, FAR_STEPS)}


def pool_of(entries: tuple[int, ...], form: type[Pool] = Pool) -> Pool:
    """Two columns of two observations, each in a phase of its own."""
    rows = np.array(entries).reshape(2, 2)
    return form(tuple(Cells(entries=row, buckets=PLACES, n_buckets=2, top=TOP, is_cycle=False) for row in rows))


class WholePrice(Pool):
    """Broken: the sum over all columns is taken at no cost, and every cell has the whole loss."""

    def means(
        self, amounts: Sequence[Ints] | Ints, reach: int, epsilon: Fraction, noise: Noise, deviation: float = 0.0
    ) -> Floats:
        return Pool.means(self, amounts, reach, epsilon / (1 - POOLED_SHARE), noise, deviation)


def attack_pool() -> Iterator[Finding]:
    for name in PARTS:
        yield _audit_price(f"pool: {name}, a cell and the whole", name)
        yield audit_exact(partial(_quiet, name), partial(_plain, name), _worlds(), name=f"pool: {name}, plainly")
    yield _width("pool: width, what one entry moves a score by", 1)
    yield _audit_price("broken: pool, the whole at no cost", "rough", WholePrice, expected=True)
    yield _width("broken: pool, a count for a score of quarters", QUARTERS, expected=True)


def _worlds() -> Iterator[tuple[int, ...]]:
    return product(AMOUNTS, repeat=4)


def _pairs() -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Histories, and the same with the first entry changed: all cells are alike."""
    return (((first, *rest), (other, *rest)) for first, other, *rest in product(AMOUNTS, repeat=5))


def _clip(name: str, entries: tuple[int, ...]) -> list[int]:
    low, high = LIMITS[name]
    return [min(max(entry, low), high) for entry in entries]


def _audit_price(name: str, part: str, form: type[Pool] = Pool, *, expected: bool = False) -> Finding:
    """The exact loss of all sums together: what each moves by, in scales of the noise that it was given.  (P6)"""
    own, worst = float(SHARES[part] * CLAIMED.epsilon), 0.0
    for one, other in _pairs():
        script = ScriptedNoise()
        PARTS[part](pool_of(one, form), SHARES[part] * CLAIMED.epsilon, script)
        moves = [abs(a - b) for a, b in zip(_clip(part, one), _clip(part, other), strict=True)]
        sums = [abs(sum(_clip(part, one)) - sum(_clip(part, other))), *moves]
        scales = [float(scale) for _, scale in script.asked]
        worst = max(worst, sum(moved / scale for moved, scale in zip(sums, scales, strict=True)))
    words = f"claims {own:g}, loses {worst:.6g}"
    caught = worst > own * (1 + 1e-9)
    return Finding(name=name, way=Way.WORLD, claimed=own, lower=worst, caught=caught, text=words, expected=expected)


def _quiet(name: str, entries: tuple[int, ...]) -> list[float]:
    found = PARTS[name](pool_of(entries), PLENTY, ScriptedNoise())
    return [round(float(value)) for value in found.ravel()]


def _plain(name: str, entries: tuple[int, ...]) -> list[float]:
    means = map(float, _clip(name, entries))
    return [round(max(mean / 0.7979, 0.5) if name == "spread" else mean) for mean in means]


def _width(name: str, unit: int, *, expected: bool = False) -> Finding:
    """The most that one entry moves any score by, beside the sensitivity of the choice."""
    worst = 0
    for pair in _pairs():
        one, other = (pool_of(entries).scores(FLOOR)[1] for entries in pair)
        worst = max(worst, *(abs(a - b) for a, b in zip(one, other, strict=True)))
    claimed = QUARTERS / unit
    words = f"claims {claimed:g}, is {worst:g}"
    return Finding(
        name=name,
        way=Way.WORLD,
        claimed=claimed,
        lower=float(worst),
        caught=worst > claimed,
        text=words,
        expected=expected,
    )
