"""Attacks on tiny worlds of readings: what noise of the released scale lets them differ by, and every comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any, Final

import numpy as np

from wallflower.audit import Finding, Floats, World, audit_bound, audit_exact
from wallflower.sensors import comparison, perturbation

STEP, RANGE, EPSILON = Fraction(1, 8), Fraction(10), Fraction(1)
SPAN: Final = int(RANGE / STEP)
READINGS: Final = World(tuple((float(x), float(y)) for x, y in product((0, SPAN // 2, SPAN), repeat=2)), 1)
BITS: Final = 4
DIAGONAL: Final = Fraction(math.isqrt(int(2 * RANGE**2) * 10**12) + 1, 10**6)


def attack_worlds() -> Iterator[Finding]:
    for name, exponents in {"columns": _columns, "planar": _planar}.items():
        yield audit_bound(lambda _: float(EPSILON), exponents(Fraction(1)), READINGS, name=f"{name}: the law of noise")
        broken = f"broken: {name}, noise a tenth short"
        yield audit_bound(lambda _: float(EPSILON), exponents(Fraction(9, 10)), READINGS, name=broken, expected=True)
    scores = range(2 ** (BITS - 1))
    cases = list(product(scores, scores))
    yield audit_exact(_compare, lambda case: case[0] >= case[1], cases, name="comparison of every score")
    name = "broken: comparison, the threshold itself left out"
    yield audit_exact(_compare, lambda case: case[0] > case[1], cases, name=name, expected=True)
    yield audit_exact(_distance, lambda row: math.isqrt(sum(x * x for x in row)), cases, name="distances")


def _columns(share: Fraction) -> Callable[[Floats], Any]:
    """What noise makes of a reading, as exponents of e at places around: between two readings they differ by the loss.

    Noise with P(z) proportional to e^(-|z|/scale) in every column, at half of ε each.
    """
    scale = float(share * perturbation.noise_scale(RANGE, EPSILON / 2, STEP))
    return lambda reading: [float(np.abs(reading[0] - place).sum()) / scale for place in _places()]


def _planar(share: Fraction) -> Callable[[Floats], Any]:
    scale = float(share * perturbation.noise_scale(DIAGONAL, EPSILON, STEP))
    return lambda reading: [float(np.linalg.norm(reading[0] - place)) / scale for place in _places()]


def _places() -> list[Floats]:
    return [np.array(place) for place in product((-SPAN, 0, SPAN, 2 * SPAN), repeat=2)]


def _compare(case: tuple[int, int]) -> bool:
    score, threshold = case
    keys = comparison.deal(np.array([score]), BITS)
    shares = [int(comparison.evaluate(party, each, threshold)[0]) for party, each in enumerate(keys)]
    return sum(shares) % 2**32 == 1


def _distance(row: tuple[int, int]) -> int:
    return int(perturbation.distances([list(row)], [0, 0])[0])
