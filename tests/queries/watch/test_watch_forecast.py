"""What a plan promises is what comes out: rates of random watches whose bounds clip, and the laws they are made of."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from wallflower import Loss, Points, Watch
from wallflower.noise import SystemNoise

SETTINGS = 50
SURE = 5.0  # standard errors; the draws below are the same every time
MODES: dict[str, dict[str, Any]] = {
    "event": {},
    "scores": {"scores": True},
    "paper": {"level": "paper"},
    "person": {"level": "person"},
    "monotone": {"level": "person", "monotone": True},
    "adaptive": {"level": "person", "adaptive": True},
    "both": {"level": "person", "monotone": True, "adaptive": True},
    "window": {"level": "person", "window": 3},
    "window, gaussian": {"level": "person", "window": 5},
    "gaussian": {"level": "person"},
}
SHARED = ("paper", "person", "monotone", "adaptive", "both")  # what is drawn once is drawn anew for every run
STATISTICS = ("sum", "weighted", "mahalanobis", "max")
PAIRS = [(mode, statistic) for mode in MODES for statistic in STATISTICS]


class SameNoise(SystemNoise):
    """The laws of the system's noise, the same draws every time."""

    def __init__(self, seed: int) -> None:
        self.draw = np.random.default_rng(seed)

    def words(self, size: int) -> Any:
        return self.draw.integers(0, 2**64, size, dtype=np.uint64)

    def laplaces(self, scale: Fraction, size: int) -> Any:
        falls = self.draw.geometric(-math.expm1(-1 / float(scale)), (2, size))
        return falls[0] - falls[1]

    def gaussians(self, scale: Fraction, size: int) -> Any:
        reach = math.ceil(10 * scale) + 1
        whole = np.arange(-reach, reach + 1)
        masses = np.exp(-(whole**2) / (2 * float(scale) ** 2))
        return whole[np.searchsorted(np.cumsum(masses) / masses.sum(), self.draw.random(size))]

    def laplace(self, scale: Fraction) -> int:
        return int(self.laplaces(scale, 1)[0])

    def gaussian(self, scale: Fraction) -> int:
        return int(self.gaussians(scale, 1)[0])


def covariance_of(draw: Any, columns: int) -> Any:
    """Any correlation, spreads that differ by some."""
    mixed = draw.normal(size=(columns, columns + 1))
    return mixed @ mixed.T / columns + 0.05 * np.eye(columns)


def random_watch(seed: int, mode: str, statistic: str) -> Watch:
    """Bounds that clip entries within one or two of their deviations, a threshold within reach, any loss."""
    draw = np.random.default_rng(seed)
    if MODES[mode].get("monotone") and statistic in ("mahalanobis", "max"):
        statistic = "sum"
    columns = int(draw.integers(1, 7))
    covariance, mean = covariance_of(draw, columns), draw.normal(0, 1, columns)
    spread = math.sqrt(np.diag(covariance).mean())
    weights = draw.uniform(0.3, 1.5, columns) * (1 if "monotone" in MODES[mode] else draw.choice([-1, 1], columns))
    amount = f"{math.exp(draw.uniform(math.log(0.4), math.log(8))):.3f}"
    loss = Loss.zcdp(amount) if mode.endswith("gaussian") else Loss(amount)
    own = {"cutoff": int(draw.integers(3, 9))} if MODES[mode].get("level") == "person" else {}
    if mode == "gaussian":
        own |= {"steps": 60_000, "loss": Loss.zcdp(str(600 * float(amount)))}
    public: dict[str, Any] = {
        "statistic": statistic,
        "low": float(mean.min() - draw.uniform(0.7, 2.0) * spread),
        "high": float(mean.max() + draw.uniform(0.7, 2.0) * spread),
        "mean": tuple(mean.tolist()),
        "covariance": tuple(map(tuple, covariance.tolist())),
        "loss": loss,
        "threshold": 0.1,
        **({"weights": tuple(weights.tolist())} if statistic == "weighted" else {}),
        **MODES[mode],
        **own,
    }
    if statistic in ("sum", "weighted") and draw.random() < 0.5:
        factors = weights if statistic == "weighted" else np.ones(columns)
        public["centre"] = float(factors @ mean + draw.normal(0, 0.3) * spread)
    made = Watch(**public).gauge(columns)
    if draw.random() < 0.5:
        public["change"] = float(draw.uniform(0.05, 0.5) * (public["high"] - public["low"]))
    distances = np.abs(made.measure(draw.multivariate_normal(mean, covariance, 2000))) * made.step
    public["threshold"] = float(np.quantile(distances, draw.uniform(0.6, 0.97)))
    if draw.random() < 0.5:
        public["outlier_from"] = float(public["threshold"] * draw.uniform(0.8, 1.2))
    return Watch(**public)


def raw_statistic(query: Watch, rows: Any) -> Any:
    """What decides whether an observation is an outlier: its entries as they are, not clipped."""
    columns = rows.shape[1]
    off = rows - np.array(query.mean)
    if query.statistic == "mahalanobis":
        return np.sqrt(np.einsum("ij,jk,ik->i", off, np.linalg.inv(query.covariance), off))
    if query.statistic == "max":
        return np.max(np.abs(off) / np.sqrt(np.diag(query.covariance)), axis=1)
    weights = np.array(query.weights or (1.0,) * columns)
    centre = weights @ np.array(query.mean) if query.centre is None else query.centre
    return np.abs(rows @ weights - centre)


def simulated(query: Watch, mode: str, seed: int, size: int) -> Any:
    """Of outliers and of others: the share flagged, and its standard error over runs."""
    draw, noise = np.random.default_rng(seed), SameNoise(seed)
    runs = size // query.cutoff // 4 if mode in SHARED else 1
    rows = draw.multivariate_normal(query.mean, query.covariance, runs * query.cutoff if runs > 1 else size)
    is_outlier = raw_statistic(query, rows) >= (query.outlier_from or query.threshold)
    flags = np.zeros(len(rows), dtype=bool)
    for places in np.array_split(np.arange(len(rows)), runs):
        found = query.answer(query.view(Points.from_array(rows[places])), noise)
        assert found["decided"] == len(places)
        flags[places[np.array(found["flagged"], dtype=int) - 1]] = True
    told = {}
    for name, crowd in (("true_positive", is_outlier), ("false_positive", ~is_outlier)):
        share, total = flags[crowd].mean(), crowd.sum()
        excess = np.where(crowd, flags - share, 0.0)
        by_run = excess.reshape(runs, -1).sum(axis=1) if runs > 1 else excess
        told[name] = share, max(math.sqrt(np.sum(by_run**2)), 1.0) / total
    return told


def worst(place: int, size: int = 60_000) -> float:
    """By how many standard errors plan and simulation differ, at most."""
    mode, statistic = PAIRS[(7 * place) % len(PAIRS)]
    query = random_watch(place, mode, statistic)
    figures = query.plan(n=size, dimension=len(query.mean)).options[0].figures
    told = simulated(query, mode, 1000 + place, size)
    return max(abs(figures[name] - share) / error for name, (share, error) in told.items())


@pytest.mark.parametrize("place", range(SETTINGS))
def test_planned_and_simulated_rates_agree_where_bounds_clip(place: int) -> None:
    assert worst(place) <= SURE
