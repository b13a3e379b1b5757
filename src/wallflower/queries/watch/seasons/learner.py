"""Estimate a seasonal baseline, plan it, describe it, and re-estimate it block by block.

Released    centre and spread of every column in every bucket     Adjacency   one entry of one observation
Guarantee   pure ε-DP, for all buckets and columns together       Arithmetic  whole-number sums, discrete Laplace
Proof       proof.md of `watch`, labels (P1) (P2) (P3) (P5) (P6)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from wallflower.data import Points
from wallflower.drawing.picture import Band
from wallflower.errors import ParameterError
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.watch.seasons.estimates import (
    CHANGE_STEPS,
    CLIP_SPREADS,
    SHARES,
    Cells,
    Estimate,
    Ints,
    Pool,
    needs_pool,
)
from wallflower.queries.watch.seasons.seasons import (
    ALWAYS,
    CALENDARS,
    WRITTEN,
    Season,
    SeasonalBaseline,
    check_season,
    round_constants,
)
from wallflower.queries.watch.statistics import Bounds, Statistic, check_bounds, make_statistic
from wallflower.query import Option, Plan, PublicFacts, Quality, Reading, least_amount
from wallflower.query.accuracy import rate_errors
from wallflower.schema import Schema
from wallflower.text import join, t
from wallflower.units import Claim

MAX_CENTRE_ERROR: Final = 0.5  # of a spread: a larger error of a centre moves the threshold
MIN_OBSERVATIONS: Final = 4  # of a bucket, to say anything about it
MAX_CHANGES: Final = 2**24  # that fit between the bounds
MAX_PLANNED_BUCKETS: Final = 100_000
_LAPLACE_SCALES_95: Final = math.log(20)  # scales of Laplace noise within which it is with 95 %


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonLearner:
    """Estimates a seasonal baseline.

    kind      the season: always, a calendar such as hour-of-week, or as-written
    time      the column of times; None for always
    low, high public bounds of every entry; default: the schema's
    change    assume that an entry changes by no more; default: the bounds enforce it
    variance  public guess of the variance in a bucket, for the plan
    loss      the cost of everything that is released
    """

    kind: str
    time: str | None
    low: float | None
    high: float | None
    change: float | None
    variance: float | None
    loss: Loss

    def __post_init__(self) -> None:
        check_season(self.kind)
        if (self.time is None) != (self.kind == ALWAYS):
            raise ParameterError(
                f"time: season {self.kind} {'needs no times' if self.time else 'is read from a column of times'}, "
                "which the schema makes public. Pass both, or season always and no time."
            )
        if self.change is not None and not 0 < self.change <= 1e100:
            raise ParameterError(f"change: {self.change!r} is not a positive number; pass one, or omit it.")

    def check(self, data: Points) -> None:
        """Refuse by public facts what cannot be estimated: no bounds, no times."""
        self.statistics(data.dimension, data.schema)
        self.buckets(data)

    def buckets(self, data: Points, known: Season | None = None) -> tuple[Season, Ints]:
        """Return the season of the data, or the known one, and the bucket of each observation."""
        if self.time is None:
            return Season(kind=ALWAYS), np.zeros(data.n, dtype=np.int64)
        times = data.times(self.time)
        season = known or Season.among(self.kind, times)
        return season, season.buckets(times)

    def statistics(self, dimension: int, schema: Schema | None) -> list[Statistic]:
        """Return, for each column, the statistic that puts its entries on a grid."""
        check_bounds(self.low, self.high, dimension, schema)
        bounds = Bounds.of(self.low, self.high, dimension, schema)
        ends = zip(bounds.low, bounds.high, strict=True)
        grids = [make_statistic("sum", Bounds(low=(low,), high=(high,)), change=self.change) for low, high in ends]
        if any(grid.range_sensitivity > MAX_CHANGES * grid.sensitivity for grid in grids):
            raise ParameterError("change: it is too small for bounds so wide. Narrow the bounds, or pass a larger one.")
        return grids

    def cells(self, data: Points, rows: Ints, season: Season, buckets: Ints) -> list[tuple[Cells, Statistic]]:
        """Return the entries of each column as whole numbers, of which one change is at most `CHANGE_STEPS`.  (P1)"""
        columns = []
        for grid, entries in zip(self.statistics(data.dimension, data.schema), data.values[rows].T, strict=True):
            first, last = grid.measure(np.array([*grid.bounds.low, *grid.bounds.high])).tolist()
            steps, (top,) = (
                _coarsen(amounts - first, grid.sensitivity) for amounts in (grid.measure(entries), np.array([last]))
            )
            cells = Cells(
                entries=steps,
                buckets=buckets[rows],
                n_buckets=season.size,
                top=int(top),
                is_cycle=season.is_cycle,
            )
            columns.append((cells, grid))
        return columns

    def answer(self, data: Points, noise: Noise) -> dict[str, Any]:
        """Release the baseline of the whole history, as JSON."""
        return self.learn(data, noise, slice(None)).to_json()

    def learn(self, data: Points, noise: Noise, block: slice, known: Season | None = None) -> SeasonalBaseline:
        """Estimate the baseline of a block of observations. An entry is in one column.  (P1)"""
        season, buckets = self.buckets(data, known)
        rows = np.arange(data.n)[block]
        rows = rows[buckets[rows] >= 0]  # by public times: an unknown bucket is not estimated
        centre, spread, width = [], [], []
        cells, grids = zip(*self.cells(data, rows, season, buckets), strict=True)
        for estimate, grid in zip(self._estimate(cells, noise), grids, strict=True):
            unit = grid.sensitivity * grid.step / CHANGE_STEPS
            (low,) = grid.bounds.low
            centre.append(low + estimate.centre * unit)
            spread.append(estimate.spread * unit)
            width.append([estimate.width * unit])
        return SeasonalBaseline(
            dataset=data.name,
            columns=data.columns,
            season=season,
            time=self.time,
            centre=round_constants(np.array(centre)),
            spread=round_constants(np.array(spread)),
            width=tuple(row[0] for row in round_constants(np.array(width))),
        )

    def _estimate(self, columns: tuple[Cells, ...], noise: Noise) -> list[Estimate]:
        """Each column by itself, or pooled where observations are few."""
        epsilon = self.loss.epsilon
        if needs_pool(len(columns), len(columns[0].entries), epsilon):
            return Pool(columns).estimate(epsilon, noise)  # (P6)
        return [cells.estimate(epsilon, noise) for cells in columns]

    def claim(self, facts: PublicFacts, schema: Schema | None) -> Claim:
        """One entry pays the loss once, in any bucket; a person with several entries pays for each.  (P2)"""
        grids = self.statistics(facts.dimension, schema)
        return Claim(
            loss=self.loss,
            columns=facts.dimension,
            steps=facts.n or None,
            moves=max(-(-grid.range_sensitivity // grid.sensitivity) for grid in grids),
            rho=sum(((share * self.loss.epsilon) ** 2 / 2 for share in SHARES.values()), Fraction()),
        )

    def picture(self, value: dict[str, Any]) -> Band:
        return SeasonalBaseline.from_json(value).picture()

    def reading(self, value: dict[str, Any], facts: PublicFacts) -> Reading:
        baseline = SeasonalBaseline.from_json(value)
        size = facts.n / baseline.season.size
        error = max(self._centre_error(size, width=width) for width in baseline.width)
        widths = ", ".join(f"{name} {width:.4g}" for name, width in zip(baseline.columns, baseline.width, strict=True))
        return Reading(
            mechanism=f"noisy sums of each {baseline.season.kind}",
            interval=None,
            text=t(
                "Typical values in each of {buckets:,} buckets, from about {size:,.1f} observations each. Common "
                "spread of all buckets: {widths}.",
                buckets=baseline.season.size,
                size=size,
                widths=widths,
            ),
            quality=_quality(error, size),
        )

    def plan(self, query: str, *, n: int, dimension: int) -> Plan:
        buckets = CALENDARS[self.kind].size if self.kind in CALENDARS else 1
        size, most = n / buckets, self._max_buckets(n)
        error = self._centre_error(size, width=self._planned_spread)
        return Plan(
            query=query,
            cost=self.loss,
            facts={"n": n, "dimension": dimension},
            chosen="noisy sums per bucket",
            headings={
                "each": "observations per bucket",
                "centre": "centre, 95 % within ±",
                "most": "largest useful number of buckets",
            },
            options=(
                Option(
                    mechanism="noisy sums per bucket",
                    figures={"each": size, "centre": error * self._planned_spread, "most": float(most)},
                ),
            ),
            useful=most > 1 if self.kind == WRITTEN else self._is_useful(size),
            reason=join("; ", self._clauses(n, dimension, buckets, error, most)),
            smallest_useful_epsilon=least_amount(lambda amount: self._is_useful(size, Fraction(amount))),
        )

    def _clauses(self, n: int, dimension: int, buckets: int, error: float, most: int) -> Iterator[str]:
        if self.kind == WRITTEN:
            yield t("the accuracy depends on how many buckets are written in the data")
        else:
            yield t(
                "{buckets:,} buckets of about {size:,.1f} observations, the noise of each centre within {error:.2f} "
                "spreads (95 %, before adjacent buckets are smoothed)",
                buckets=buckets,
                size=n / buckets,
                error=error,
            )
        yield t(
            "useful means at most {error} spreads and at least {size} observations: up to {most:,} buckets here",
            error=MAX_CENTRE_ERROR,
            size=MIN_OBSERVATIONS,
            most=most,
        )
        if self.change is not None:
            yield t("assumed: an entry changes by at most {change:g}", change=self.change)
        if self.variance is None:
            yield t("assumed: entries anywhere in their bounds")
        if needs_pool(dimension, n, self.loss.epsilon):  # figures are those of a column by itself
            yield t("{columns} columns with so few observations are pooled", columns=dimension)

    @property
    def _planned_spread(self) -> float:
        """The spread of an entry in its bucket that the plan assumes."""
        return math.sqrt(self.variance) if self.variance is not None else self._range / math.sqrt(12)

    @property
    def _range(self) -> float:
        return 1.0 if self.low is None or self.high is None else self.high - self.low

    def _centre_error(self, size: float, *, width: float, epsilon: Fraction | None = None) -> float:
        """How far noise moves the centre of a bucket of `size` observations, with 95 %, in spreads of this width."""
        loss = float(self.loss.epsilon if epsilon is None else epsilon)
        change = self._range if self.change is None else min(self.change, self._range)
        rough = math.sqrt(2) * change / (float(SHARES["rough"]) * loss * size)
        far = CLIP_SPREADS * math.hypot(width, rough)
        return _LAPLACE_SCALES_95 * min(2 * far, change) / (float(SHARES["centre"]) * loss * size) / width

    def _is_useful(self, size: float, epsilon: Fraction | None = None) -> bool:
        if size < MIN_OBSERVATIONS:
            return False
        return self._centre_error(size, width=self._planned_spread, epsilon=epsilon) <= MAX_CENTRE_ERROR

    def _max_buckets(self, n: int) -> int:
        """The largest number of buckets that would be useful with `n` observations."""
        low, high = 0, min(n, MAX_PLANNED_BUCKETS)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._is_useful(n / middle) else (low, middle - 1)
        return low


def _coarsen(distances: Ints, sensitivity: int) -> Ints:
    """Whole steps, `CHANGE_STEPS` per sensitivity: rounding is monotone, and a change shifts it by exactly as many."""
    return np.asarray((2 * CHANGE_STEPS * distances + sensitivity) // (2 * sensitivity))


def _quality(error: float, size: float) -> Quality:
    rule = t(
        "the noise of the centre of a bucket is within {error:.2f} spreads (95 %, before adjacent buckets are "
        "smoothed), from about {size:,.1f} observations",
        error=error,
        size=size,
    )
    return rate_errors(error if size >= MIN_OBSERVATIONS else 1.0, rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relearning:
    """Re-estimates a seasonal baseline from every block of observations, for the next block, at `epsilon` in all.

    An observation is in one block, and its block is used for one estimate. So learning costs its part of the loss once
    for the whole stream, however many blocks there are; and each observation is judged once, for the rest.  (P5)
    """

    baseline: SeasonalBaseline
    block_size: int
    epsilon: Fraction
    change: float | None

    @property
    def learner(self) -> SeasonLearner:
        """The learner: its bounds are those of the schema, since those of the watch are in spreads."""
        return SeasonLearner(
            kind=self.baseline.season.kind,
            time=self.baseline.time,
            low=None,
            high=None,
            change=self.change,
            variance=None,
            loss=Loss(self.epsilon),
        )

    @property
    def observations_per_bucket(self) -> float:
        return self.block_size / self.baseline.season.size

    @property
    def is_useful(self) -> bool:
        """Whether a block has enough observations of each bucket."""
        return self.observations_per_bucket >= MIN_OBSERVATIONS

    def describe(self, n: int) -> str:
        """Return a clause for the plan of a watch over `n` observations."""
        clause = t(
            "ε = {epsilon:g} of the loss re-estimates the baseline {times:,} times, from about {size:,.1f} "
            "observations per bucket",
            epsilon=float(self.epsilon),
            times=max(0, -(-n // self.block_size) - 1),
            size=self.observations_per_bucket,
        )
        if self.is_useful:
            return clause
        return join(", ", (clause, t("fewer than the {least} that are needed", least=MIN_OBSERVATIONS)))

    def blocks(self, data: Points, noise: Noise) -> Iterator[tuple[slice, SeasonalBaseline]]:
        """Yield blocks of observations, in order, with the baseline that each is judged by.  (P5)"""
        baseline = self.baseline
        for start in range(0, data.n, self.block_size):
            block = slice(start, min(start + self.block_size, data.n))
            yield block, baseline
            if block.stop < data.n:
                baseline = self.learner.learn(data, noise, block, known=self.baseline.season)
