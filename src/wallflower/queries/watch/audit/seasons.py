"""Attacks on what is learnt phase by phase, and on what is judged by it.

Each part of the estimate is attacked where it shows the most: one entry of one phase moves as far as it can. The parts
see what the earlier ones released, so what they show adds up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np

from wallflower.audit import Finding, Floats, ScriptedNoise, Way, World, audit_bound, audit_exact
from wallflower.audit.laws import Law, audit_law, audit_laws, audit_parts, loss_between
from wallflower.data import Points, Schema
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.watch import Watch
from wallflower.queries.watch.seasons import Season, SeasonalBaseline, estimates
from wallflower.queries.watch.seasons.estimates import CHANGE_STEPS, SHARES, Cells, Ints
from wallflower.queries.watch.seasons.learner import Relearning
from wallflower.queries.watch.statistics import Statistic

CLAIMED: Final = Loss("1")
TOP: Final = CHANGE_STEPS
PLACES: Final = np.array([0, 1, 0, 1])
AT: Final = np.array([0, 0])
MIDDLE: Final = np.array([TOP // 2, TOP // 2])  # from where an entry goes as far both ways
FAR_STEPS: Final = TOP // 4
WIDTHS: Final = (0, 1, 40, TOP)  # distances of the tiny histories that the width is chosen of

Part = Callable[[Cells, Fraction, Noise], Floats]

PARTS: Final[dict[str, Part]] = {
    "rough": lambda cells, epsilon, noise: cells.rough_centres(epsilon, noise),
    "centre": lambda cells, epsilon, noise: cells.centres(MIDDLE, 1.0, FAR_STEPS, epsilon, noise),
    "spread": lambda cells, epsilon, noise: cells.spreads(AT, 1.0, FAR_STEPS, epsilon, noise),
}


def cells_of(*entries: int, places: Ints = PLACES) -> Cells:
    """A history of two phases without neighbours, so that nothing is smoothed."""
    return Cells(entries=np.array(entries), buckets=places, n_buckets=2, top=TOP, is_cycle=False)


FULL: Final = cells_of(TOP, TOP, TOP, TOP)
CHANGED: Final = cells_of(0, TOP, TOP, TOP)


class TwicePlaced(Cells):
    """Broken: every observation counts in its phase and in the next, as if they were smoothed before the noise."""

    def sum_up(self, amounts: Ints, reach: int, epsilon: Fraction, noise: Noise) -> tuple[Floats, Floats]:
        own = {name: getattr(self, name) for name in Cells.__slots__}
        both = Cells(**own | {"buckets": np.concatenate([self.buckets, (self.buckets + 1) % self.n_buckets])})
        return Cells.sum_up(both, np.concatenate([amounts, amounts]), reach, epsilon, noise)


def twice(cells: Cells) -> Cells:
    return TwicePlaced(**{name: getattr(cells, name) for name in Cells.__slots__})


class Draws:
    """A noise that says given words, one after another, and notes at which scale they were asked for."""

    def __init__(self, *given: int) -> None:
        self.given, self.scale = list(given), Fraction(1)

    def laplace(self, scale: Fraction) -> int:
        self.scale = scale
        return self.given.pop(0)

    def gaussian(self, scale: Fraction) -> int:
        raise NotImplementedError

    def below(self, bound: int) -> int:
        raise NotImplementedError

    def flip(self, exponent: Fraction) -> bool:
        raise NotImplementedError


def laws(part: Part, epsilon: Fraction, form: Callable[[Cells], Cells] = lambda cells: cells) -> tuple[Law, Law]:
    """Whether each phase is at least what the first history has there: the law of it, for both histories.

    A phase rises with its own draw and knows no other, so its chance is that of a draw from some word on.
    """
    edges = part(form(FULL), epsilon, ScriptedNoise())
    found: list[Law] = []
    for cells in (form(FULL), form(CHANGED)):
        one, other = (_chance(part, cells, epsilon, phase, float(edges[phase])) for phase in (0, 1))
        found.append(
            {
                (a, b): (one if a else 1 - one) * (other if b else 1 - other)
                for a in (True, False)
                for b in (True, False)
            }
        )
    return found[0], found[1]


def _chance(part: Part, cells: Cells, epsilon: Fraction, phase: int, edge: float) -> float:
    """The chance that a phase is at least so large, by the draws that make it so."""

    def reaches(word: int) -> tuple[bool, float]:
        noise = Draws(*(word if place == phase else 0 for place in range(cells.n_buckets)))
        return float(part(cells, epsilon, noise)[phase]) >= edge - 1e-9, float(noise.scale)

    low, high = -(2**22), 2**22
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle)[0] else (middle, high)
    scale = reaches(0)[1]
    tail = math.exp(-(high if high > 0 else 1 - high) / scale) / (1 + math.exp(-1 / scale))
    return tail if high > 0 else 1 - tail


def width_laws(epsilon: Fraction) -> Iterator[tuple[Law, Law]]:
    """The law of the width, for all neighbours of a tiny world whose first entry changes."""
    for rest in product(WIDTHS, repeat=3):
        found = [_width_law(epsilon, (first, *rest)) for first in (0, TOP)]
        yield found[0], found[1]


def _width_law(epsilon: Fraction, entries: tuple[int, ...]) -> Law:
    """The law of `exponential`, computed from the scores that it is given."""
    widths, scores = cells_of(*entries).scores(AT)
    weights = np.exp(float(epsilon) / (2 * estimates.QUARTERS) * np.array(scores, dtype=np.float64))
    return dict(zip(widths.tolist(), (weights / weights.sum()).tolist(), strict=True))


def attack_seasons() -> Iterator[Finding]:
    yield from _sound_parts()
    yield _sensitivity("what one entry moves in all phases together")
    for name, part in PARTS.items():
        yield audit_exact(partial(_quiet, part), partial(_plain, name), _histories(), name=f"seasons: {name}, plainly")
    yield from _sound_spreads()
    yield _learnings("drift: how often one entry is learnt of", CALM)
    yield from _broken_parts()
    yield _learnings("broken: drift, learnt of all that came before", EverLonger(**_DRIFT), expected=True)
    yield from _broken_spreads()


def _sound_parts() -> Iterator[Finding]:
    shown: dict[str, float] = {}
    for name, part in PARTS.items():
        own = Loss(SHARES[name] * CLAIMED.epsilon)
        pair = laws(part, own.epsilon)
        shown[name] = loss_between(*pair, own)
        yield audit_law(*pair, claimed=own, name=f"seasons: {name} of each phase")
    own = Loss(SHARES["width"] * CLAIMED.epsilon)
    pairs = list(width_laws(own.epsilon))
    shown["width"] = max(loss_between(*pair, own) for pair in pairs)
    yield audit_laws(pairs, claimed=own, name="seasons: width of all phases")
    yield audit_parts(shown, claimed=float(CLAIMED.epsilon), name="seasons: all parts together")


def _broken_parts() -> Iterator[Finding]:
    for name, part in PARTS.items():
        own = Loss(SHARES[name] * CLAIMED.epsilon)
        short = laws(part, own.epsilon * Fraction(10, 9))
        yield audit_law(*short, claimed=own, name=f"broken: a tenth short, seasons, {name}", expected=True)
    own = Loss(SHARES["rough"] * CLAIMED.epsilon)
    pair = laws(PARTS["rough"], own.epsilon, twice)
    name = "broken: one price for every phase, and an observation counted in two"
    yield audit_law(*pair, claimed=own, name=name, expected=True)
    yield _sensitivity("broken: an observation counted in two phases", twice, expected=True)
    own = Loss(SHARES["width"] * CLAIMED.epsilon)
    pairs = list(width_laws(estimates.QUARTERS * own.epsilon))
    yield audit_laws(pairs, claimed=own, name="broken: width, a count for a score of quarters", expected=True)


# Tiny worlds


def _histories() -> Iterator[tuple[int, ...]]:
    return product((0, FAR_STEPS // 2, TOP), repeat=4)


def _quiet(part: Part, entries: tuple[int, ...]) -> list[float]:
    found = part(cells_of(*entries), CLAIMED.epsilon, ScriptedNoise())
    return [round(float(value), 6) for value in found]


def _plain(name: str, entries: tuple[int, ...]) -> list[float]:
    low, high = {"rough": (0, TOP), "centre": (TOP // 2 - FAR_STEPS, TOP // 2 + FAR_STEPS), "spread": (0, FAR_STEPS)}[
        name
    ]
    own = [[min(max(entries[at], low), high) for at in np.flatnonzero(phase == PLACES)] for phase in (0, 1)]
    means = [sum(each) / len(each) for each in own]
    return [round(max(mean / 0.7979, 0.5) if name == "spread" else mean, 6) for mean in means]


def count_in_phase(cells: Cells) -> int:
    """How many observations a phase of these histories counts."""
    return 4 if isinstance(cells, TwicePlaced) else 2


def _sensitivity(name: str, form: Callable[[Cells], Cells] = lambda cells: cells, *, expected: bool = False) -> Finding:
    """The most that one entry moves the sums of all phases together, beside what their noise hides."""
    worst, claimed = 0.0, 0.0
    for entries in _histories():
        for changed in (0, FAR_STEPS // 2, TOP):
            script = ScriptedNoise()
            pair = [form(cells_of(*each)) for each in (entries, (changed, *entries[1:]))]
            sums = [cells.rough_centres(Fraction(1), script) * count_in_phase(cells) for cells in pair]
            worst = max(worst, float(np.abs(sums[0] - sums[1]).sum()))
            claimed = float(script.asked[0][1])
    return Finding(
        name=name if expected else f"seasons: {name}",
        way=Way.WORLD,
        claimed=claimed,
        lower=worst,
        caught=worst > claimed * (1 + 1e-9),
        text=f"claims {claimed:g} steps, is {worst:g}",
        expected=expected,
    )


# Re-estimation


class EverLonger(Relearning):
    """Broken: each season is learnt of all observations so far, so that the first ones pay every time."""

    def blocks(self, data: Points, noise: Noise) -> Iterator[tuple[slice, SeasonalBaseline]]:
        for block, _ in Relearning.blocks(self, data, noise):
            before = slice(0, max(block.start, self.block_size))
            yield block, self.learner.learn(data, noise, before, known=self.baseline.season)


class FirstDraws:
    """A noise whose draws are all 0."""

    def laplace(self, scale: Fraction) -> int:
        return 0

    def gaussian(self, scale: Fraction) -> int:
        return 0

    def below(self, bound: int) -> int:
        return bound // 2

    def flip(self, exponent: Fraction) -> bool:
        return True


_ALWAYS: Final = SeasonalBaseline(
    dataset="made-up",
    columns=("x",),
    season=Season(kind="always"),
    time=None,
    centre=((0.5,),),
    spread=((0.25,),),
    width=(0.25,),
)
_DRIFT: Final[dict[str, Any]] = {"baseline": _ALWAYS, "block_size": 2, "epsilon": Fraction(1), "change": None}
CALM: Final = Relearning(**_DRIFT)


def _learnings(name: str, drift: Relearning, *, expected: bool = False) -> Finding:
    """How many of the seasons that are learnt one entry has a say in, wherever it is in the stream."""
    schema = Schema.of(["x"], bounds={"x": (0.0, 1.0)})
    quiet = np.full((8, 1), 0.5)
    most = 0
    for place in range(len(quiet)):
        changed = quiet.copy()
        changed[place] = 1.0
        tables = [Points.from_array(rows, name="made-up", schema=schema) for rows in (quiet, changed)]
        one, other = ([season for _, season in drift.blocks(data, FirstDraws())] for data in tables)
        most = max(most, sum(a != b for a, b in zip(one, other, strict=True)))
    words = f"claims that an entry is in 1 of them, and it is in {most}"
    return Finding(
        name=name, way=Way.WORLD, claimed=1.0, lower=float(most), caught=most > 1, text=words, expected=expected
    )


# What is judged by a season

SEASON: Final = SeasonalBaseline(
    dataset="made-up",
    columns=("x",),
    season=Season(kind="as-written", labels=("calm", "busy")),
    time="time",
    centre=((0.5, 2.0),),
    spread=((0.25, 1.0),),
    width=(0.5,),
)
_CHANGE: Final = 0.5
NEAR_SITES: Final = World(tuple((x,) for x in (0.5, 0.625, 0.75, 1.0)), 1)  # no two further apart than the change
FAR_SITES: Final = World(tuple((x,) for x in (-90.0, 0.0, 0.5, 0.625, 1.0, 90.0)), 1)


def _watch(change: float | None, limit: float = 6.0) -> Watch:
    own: dict[str, Any] = {"change": change, "low": -limit, "high": limit}
    return Watch(threshold=1.0, baseline=SEASON, loss=CLAIMED, **own)


def _distance(made: Statistic, place: int, values: Floats) -> float:
    return float(made.measure(SEASON.standardise(values, np.array([place])))[0])


def _sound_spreads() -> Iterator[Finding]:
    for what, change, world in (("limits", None, FAR_SITES), ("a change", _CHANGE, NEAR_SITES)):
        made = _watch(change).statistic_on(1)
        for place, label in enumerate((*SEASON.season.labels, "unknown")):
            truth, name = partial(_distance, made, place), f"seasons: {what} in spreads, phase {label}"
            yield audit_bound(lambda _, sensitivity=made.sensitivity: float(sensitivity), truth, world, name=name)  # type: ignore[misc]


def _broken_spreads() -> Iterator[Finding]:
    made = _watch(_CHANGE).statistic_on(1)
    wrong = made.sensitivity * min(SEASON.spread[0]) / max(SEASON.spread[0])
    name = "broken: a change in spreads of the widest phase"
    yield audit_bound(lambda _: wrong, partial(_distance, made, 0), NEAR_SITES, name=name, expected=True)
    free = _watch(None, limit=600.0).statistic_on(1)
    wrong = made.sensitivity * made.step / free.step
    name = "broken: entries in spreads, cut off nowhere"
    yield audit_bound(lambda _: wrong, partial(_distance, free, 0), FAR_SITES, name=name, expected=True)
