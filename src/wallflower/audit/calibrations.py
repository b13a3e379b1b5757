"""Attacks on the noise itself: the laws of `mechanisms.calibrate` and of smooth noise, as far apart as they may be.

Here nothing is clamped and nothing is a table, so nearly the whole loss shows: whatever a question adds up from these
is short by as much as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

import numpy as np

from wallflower.audit.attacks import Finding, audit_exact
from wallflower.audit.laws import Law, audit_law, law_of
from wallflower.audit.scripts import ShortNoise
from wallflower.mechanisms import Additive, calibrate, gaussian_scale, smooth_additive, smooth_beta
from wallflower.privacy import Loss, zcdp_of_epsilon

MOVED: Final = 8  # steps
STEP: Final = Fraction(1)
LOSSES: Final = {
    "pure": Loss("1"),
    "zCDP": Loss.zcdp("1/2"),
    "approximate": Loss("1/2", delta="1/1000000"),
    "approximate, wide": Loss("1/4", delta="1/5"),
}
SMOOTH: Final = Loss("1", delta=Fraction(1, 10**12))
GAUSSIAN: Final = Loss("1", delta=Fraction(1, 10**6))
NINE_TENTHS: Final = Fraction(9, 10)


def attack_calibrations() -> Iterator[Finding]:
    """Additive noise for every kind of loss."""
    for name, loss in LOSSES.items():
        noise = calibrate(MOVED, loss, step=STEP)
        yield audit_law(_law(0, noise), _law(MOVED, noise), claimed=loss, name=f"noise, {name}")
    noise = Additive("gaussian", gaussian_scale(MOVED, GAUSSIAN.epsilon, GAUSSIAN.delta), STEP)
    yield audit_law(_law(0, noise), _law(MOVED, noise), claimed=GAUSSIAN, name="noise, Gaussian at δ")
    for name in ("pure", "zCDP"):
        noise = calibrate(MOVED, LOSSES[name], step=STEP)
        short = _law(0, noise, Fraction(99, 100)), _law(MOVED, noise, Fraction(99, 100))
        yield audit_law(*short, claimed=LOSSES[name], name=f"broken: noise a hundredth short, {name}", expected=True)


def attack_smooth_noise() -> Iterator[Finding]:
    """Smooth noise, where the bound changes as fast as it may and the value moves as far as it says."""
    yield audit_law(*_smooth_laws(), claimed=SMOOTH, name="smooth noise")
    short = _smooth_laws(NINE_TENTHS)
    yield audit_law(*short, claimed=SMOOTH, name="broken: smooth noise a tenth short", expected=True)


def attack_conversion() -> Iterator[Finding]:
    """What an ε and a δ are worth in squares."""
    cases = [(epsilon, delta) for epsilon in (0.1, 1.0, 8.0) for delta in (1e-9, 1e-6, 1e-2)]
    yield audit_exact(_largest_rho, lambda case: True, cases, name="the largest ρ of an ε and a δ, beside brute force")


def _law(value: int, noise: Additive, share: Fraction = STEP) -> Law:
    return law_of(lambda source: value + noise.draw(source if share == 1 else ShortNoise(source, share)))


def _smooth_laws(share: Fraction = STEP) -> tuple[Law, Law]:
    beta = smooth_beta(SMOOTH.epsilon, SMOOTH.delta, least=MOVED // 2, step=STEP)
    bounds = MOVED * math.exp(beta), float(MOVED)
    noises = (smooth_additive(bound, SMOOTH.epsilon, step=STEP) for bound in bounds)
    first, second = (_law(value, noise, share) for value, noise in zip((MOVED, 0), noises, strict=True))
    return first, second


def _largest_rho(case: tuple[float, float]) -> bool:
    """Whether ρ keeps (ε, δ) by the best of many orders [CKS20, Prop 12], and a thousandth more would not."""
    epsilon, delta = case
    rho = zcdp_of_epsilon(epsilon, delta)
    return _leak(rho, epsilon) <= delta * (1 + 1e-6) and _leak(rho * 1.001, epsilon) > delta


def _leak(rho: float, epsilon: float) -> float:
    """The least δ over many orders α: e^((α-1)(αρ-ε)) (1 - 1/α)^α / (α - 1)."""
    beyond = np.geomspace(1e-4, 1e5, 200_001)
    order = 1 + beyond
    logs = beyond * (order * rho - epsilon) + order * np.log1p(-1 / order) - np.log(beyond)
    return float(np.exp(logs.min()))
