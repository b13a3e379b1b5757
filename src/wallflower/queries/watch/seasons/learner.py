"""How what is usual at each phase is learnt, planned and told: the part of `baseline` that has a `phase`.

Released    centre and spread of every column at every phase      Neighbours  one entry of one observation
Guarantee   pure ε-DP, for all phases and columns together        Arithmetic  whole-number sums, discrete Laplace
Proof       proof.md of `watch`, labels (P1) (P2) (P3)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from wallflower.data import Points
from wallflower.errors import ParameterError
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.watch.gauge import Bounds, Gauge, gauge
from wallflower.queries.watch.modes import bounds_of, require_bounds_in_schema
from wallflower.queries.watch.seasons import Seasons, round_constants
from wallflower.queries.watch.seasons.estimates import FAR, MOVE, SHARES, Cells, Estimate, Ints
from wallflower.queries.watch.seasons.phases import ALWAYS, CALENDARS, WRITTEN, Phases, require_kind
from wallflower.queries.watch.seasons.pool import Pool, is_needed
from wallflower.query import Option, Plan, PublicFacts, Quality, Reading, least_amount
from wallflower.query.accuracy import rate_errors
from wallflower.schema import Schema
from wallflower.units import Claim

NEAR: Final = 0.5  # of a spread: a centre that is further off moves the threshold
FEWEST: Final = 4  # observations of a phase that tell anything of it
FINEST: Final = 2**24  # changes that fit between the bounds
MOST_PHASES: Final = 100_000
_SURE: Final = math.log(20)  # scales of Laplace noise within which it is 95 times of 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """A season to be learnt. `low` and `high` are left out where the schema has them; `change` is assumed."""

    kind: str
    time: str | None
    low: float | None
    high: float | None
    change: float | None
    variance: float | None
    loss: Loss

    def __post_init__(self) -> None:
        require_kind(self.kind)
        if (self.time is None) != (self.kind == ALWAYS):
            raise ParameterError(
                f"time: phase {self.kind} {'needs no times' if self.time else 'is read off a column of times'}, which "
                "the schema makes public. Pass both, or phase always and no time."
            )
        if self.change is not None and not 0 < self.change <= 1e100:
            raise ParameterError(f"change: {self.change!r} is not a positive number; pass one, or leave it out.")

    def require_fitting(self, data: Points) -> None:
        """Refuse by public facts what cannot be learnt: no bounds, no times."""
        self.gauges(data.dimension, data.schema)
        self.phases(data)

    def phases(self, data: Points, known: Phases | None = None) -> tuple[Phases, Ints]:
        """The phases there are, or that are known, and that of each observation."""
        if self.time is None:
            return Phases(kind=ALWAYS), np.zeros(data.n, dtype=np.int64)
        times = data.times(self.time)
        found = known or Phases.among(self.kind, times)
        return found, found.places(times)

    def gauges(self, dimension: int, schema: Schema | None) -> list[Gauge]:
        """How the entries of each column are put on a grid."""
        require_bounds_in_schema(self, dimension, schema)
        bounds = bounds_of(self, dimension, schema)
        ends = zip(bounds.low, bounds.high, strict=True)
        made = [gauge("sum", Bounds(low=(low,), high=(high,)), rho=self.change) for low, high in ends]
        if any(each.widest > FINEST * each.move for each in made):
            raise ParameterError("change: it is too small for bounds so wide. Narrow the bounds, or pass a larger one.")
        return made

    def cells(self, data: Points, rows: Ints, phases: Phases, places: Ints) -> list[tuple[Cells, Gauge]]:
        """The entries of each column as whole numbers, of which one change is `MOVE` at most.  (P1)"""
        found = []
        for made, entries in zip(self.gauges(data.dimension, data.schema), data.values[rows].T, strict=True):
            first, last = made.measure(np.array([*made.bounds.low, *made.bounds.high])).tolist()
            steps, (top,) = (
                _coarse(amounts - first, made.move) for amounts in (made.measure(entries), np.array([last]))
            )
            own = Cells(entries=steps, places=places[rows], phases=phases.size, top=int(top), is_cycle=phases.is_cycle)
            found.append((own, made))
        return found

    def answer(self, data: Points, noise: Noise) -> dict[str, Any]:
        return self.learn(data, noise, slice(None)).to_json()

    def learn(self, data: Points, noise: Noise, block: slice, known: Phases | None = None) -> Seasons:
        """What is usual in a block of observations, every column by itself: an entry is in one of them.  (P1)"""
        phases, places = self.phases(data, known)
        rows = np.arange(data.n)[block]
        rows = rows[places[rows] >= 0]  # by public times: a phase that is not known is not learnt
        centre, spread, width = [], [], []
        cells, gauges = zip(*self.cells(data, rows, phases, places), strict=True)
        for found, made in zip(self._estimates(cells, noise), gauges, strict=True):
            unit = made.move * made.step / MOVE
            (low,) = made.bounds.low
            centre.append(low + found.centre * unit)
            spread.append(found.spread * unit)
            width.append([found.width * unit])
        return Seasons(
            dataset=data.name,
            columns=data.columns,
            phases=phases,
            time=self.time,
            centre=round_constants(np.array(centre)),
            spread=round_constants(np.array(spread)),
            width=tuple(row[0] for row in round_constants(np.array(width))),
        )

    def _estimates(self, columns: tuple[Cells, ...], noise: Noise) -> list[Estimate]:
        """What is usual in each column: by itself, or with the others where observations are few."""
        epsilon = self.loss.epsilon
        if is_needed(len(columns), len(columns[0].entries), epsilon):
            return Pool(columns).estimate(epsilon, noise)  # (P6)
        return [cells.estimate(epsilon, noise) for cells in columns]

    def claim(self, facts: PublicFacts, schema: Schema | None) -> Claim:
        """One entry pays the loss once, whichever phase it is in; whoever has several entries pays for each.  (P2)"""
        return Claim(
            loss=self.loss,
            columns=facts.dimension,
            steps=facts.n or None,
            moves=max(-(-made.widest // made.move) for made in self.gauges(facts.dimension, schema)),
            rho=sum(((share * self.loss.epsilon) ** 2 / 2 for share in SHARES.values()), Fraction()),
        )

    def reading(self, value: dict[str, Any], facts: PublicFacts) -> Reading:
        found = Seasons.from_json(value)
        each = facts.n / found.phases.size
        off = max(self._off(each, width=width) for width in found.width)
        widths = ", ".join(f"{name} {width:.4g}" for name, width in zip(found.columns, found.width, strict=True))
        return Reading(
            mechanism=f"noisy sums of each {found.phases.kind}",
            interval=None,
            words=f"What is usual at each of {found.phases.size:,} phases, of about {each:,.1f} observations. Spread "
            f"of all phases together: {widths}.",
            quality=_quality(off, each),
        )

    def plan(self, query: str, *, n: int, dimension: int) -> Plan:
        size = CALENDARS[self.kind].size if self.kind in CALENDARS else 1
        each, most = n / size, self._most_phases(n)
        off = self._off(each, width=self._planned_spread)
        useful = self._is_near(each)
        said = (
            f"{size:,} phases of about {each:,.1f} observations, the noise of each centre within {off:.2f} spreads (95 "
            "%, before neighbouring phases are smoothed)"
        )
        if self.kind == WRITTEN:
            useful, said = most > 1, "it depends on how many phases are written there"
        assumed = self._assumptions() + self._together(n, dimension)
        rule = f"; useful is {NEAR} and {FEWEST} observations or more: up to {most:,} phases here"
        return Plan(
            query=query,
            cost=self.loss,
            facts={"n": n, "dimension": dimension},
            chosen="noisy sums by phase",
            headings={"each": "observations of a phase", "centre": "centre, 95 % within ±", "most": "most phases"},
            options=(
                Option(
                    mechanism="noisy sums by phase",
                    figures={"each": each, "centre": off * self._planned_spread, "most": float(most)},
                ),
            ),
            useful=useful,
            reason=f"{said}{rule}{assumed}",
            smallest_useful_epsilon=least_amount(lambda amount: self._is_near(each, Fraction(amount))),
        )

    def _together(self, n: int, dimension: int) -> str:
        """A remark where columns are learnt of together: the figures are those of a column by itself."""
        needed = is_needed(dimension, n, self.loss.epsilon)
        return f"; {dimension} columns of so few observations are learnt of together" if needed else ""

    def _assumptions(self) -> str:
        change = "" if self.change is None else f"; assumed: an entry changes by at most {self.change:g}"
        return change + ("" if self.variance is not None else "; assumed: entries anywhere in their bounds")

    @property
    def _planned_spread(self) -> float:
        """The spread of an entry around its phase that the plan goes by."""
        return math.sqrt(self.variance) if self.variance is not None else self._reach / math.sqrt(12)

    @property
    def _reach(self) -> float:
        return 1.0 if self.low is None or self.high is None else self.high - self.low

    def _off(self, each: float, *, width: float, epsilon: Fraction | None = None) -> float:
        """How far noise puts the centre of a phase off, 95 times of 100, in spreads of this width."""
        loss = float(self.loss.epsilon if epsilon is None else epsilon)
        move = self._reach if self.change is None else min(self.change, self._reach)
        rough = math.sqrt(2) * move / (float(SHARES["rough"]) * loss * each)
        far = FAR * math.hypot(width, rough)
        return _SURE * min(2 * far, move) / (float(SHARES["centre"]) * loss * each) / width

    def _is_near(self, each: float, epsilon: Fraction | None = None) -> bool:
        return each >= FEWEST and self._off(each, width=self._planned_spread, epsilon=epsilon) <= NEAR

    def _most_phases(self, n: int) -> int:
        """The largest number of phases that would be useful with so many observations."""
        low, high = 0, min(n, MOST_PHASES)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._is_near(n / middle) else (low, middle - 1)
        return low


def _coarse(distances: Ints, move: int) -> Ints:
    """Whole steps of which a move has `MOVE`: rounding is monotone, and a move shifts it by exactly as many."""
    return np.asarray((2 * MOVE * distances + move) // (2 * move))


def _quality(off: float, each: float) -> Quality:
    rule = (
        f"the noise of the centre of a phase is within {off:.2f} spreads (95 %, before neighbouring phases are "
        f"smoothed), from about {each:,.1f} observations"
    )
    return rate_errors(off if each >= FEWEST else 1.0, rule)
