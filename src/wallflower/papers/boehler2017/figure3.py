"""Figure 3 of [Boe17]: accuracy and subset size, run by run, and what the printed gap rule throws away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Final

from wallflower.papers.boehler2017.modes import (
    ALONE,
    EPSILONS,
    EXACT,
    GRID,
    LITERAL,
    MODES,
    NOISES,
    UPPER,
    Run,
    exact,
    run,
)
from wallflower.papers.data.readings import GENERATOR, make_stream
from wallflower.papers.degue2020.detection import Tally
from wallflower.papers.methods import CurveLabel
from wallflower.papers.page import Section, Sheet
from wallflower.papers.panels import Panel, curve

SEPARATIONS: Final = tuple(GENERATOR)
DRAWN: Final = (LITERAL, UPPER, ALONE, EXACT)
WORDS: Final = {"columns": "noise in every column", "planar": "planar noise"}
LOST: Final = 0.5  # a run is lost where a rule throws away more of the correct hits than this

Key = tuple[str, int, str]  # noise, separation, ε of each column


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One of the two numbers of Figure 3."""

    name: str
    words: str
    of: Callable[[Tally], float]
    scale: str
    floor: float | None = None


ACCURACY: Final = Measure(
    name="accuracy", words="outliers in the output", of=lambda found: found.recall, scale="shares"
)
SUBSET: Final = Measure(
    name="subset", words="output / all readings", of=lambda found: found.alarms, scale="rates", floor=5e-4
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure3:
    """All runs of all cells; a run of `exact` belongs to both noises, which it does not depend on."""

    points: int
    runs: Mapping[Key, Sequence[Run]]
    exact: Mapping[tuple[int, str], Sequence[Tally]]

    def tallies(self, key: Key, mode: CurveLabel) -> list[Tally]:
        if mode is EXACT:
            return list(self.exact[key[1:]])
        return [each.tallies[mode.key] for each in self.runs[key]]

    def mean(self, key: Key, mode: CurveLabel, measure: Measure) -> float:
        """Over runs: all have as many readings and outliers, so counts may be added."""
        return measure.of(reduce(add, self.tallies(key, mode)))


def figure3(points: int, runs: int) -> Figure3:
    """Every run has readings of its own, the same for all ε and both noises, and noise and keys of its own."""
    noisy: dict[Key, list[Run]] = {(n, s, e): [] for n in NOISES for s in SEPARATIONS for e in EPSILONS}
    keyed: dict[tuple[int, str], list[Tally]] = {(s, e): [] for s in SEPARATIONS for e in EPSILONS}
    for separation in SEPARATIONS:
        for seed in range(runs):
            stream = make_stream(separation, points, seed)
            for epsilon in EPSILONS:
                keyed[separation, epsilon].append(exact(stream))
                for noise in NOISES:
                    noisy[noise, separation, epsilon].append(run(stream, noise, epsilon))
    return Figure3(points=points, runs=noisy, exact=keyed)


def figure_section(found: Figure3, measure: Measure) -> Section:
    """One half of Figure 3, for both noises."""
    heading = ("noise", "separation", "epsilon", "total", *(mode.column for mode in MODES), "upper_from", "upper_to")
    part, number = ("a", "accuracy") if measure is ACCURACY else ("b", "subset size")
    return Section(
        name=f"figure3-{measure.name}",
        title=f"Figure 3{part}: {number}, against the separation of the outliers",
        caption=_caption(found, measure),
        sheet=Sheet(heading=heading, rows=tuple(_row(found, key, measure) for key in found.runs)),
        panels=tuple(_panel(found, noise, epsilon, measure) for noise in NOISES for epsilon in EPSILONS),
        across=len(EPSILONS),
    )


def gaps(found: Figure3) -> Section:
    """Which of DBSCAN's correct hits the two gap rules keep."""
    heading = ("noise", "separation", "epsilon", "hits", *(f"kept_{mode.column}" for mode in (LITERAL, UPPER)))
    rows: tuple[tuple[str | float, ...], ...] = tuple(
        (*_lead(key), *_hit_row(each)) for key, each in found.runs.items()
    )
    return Section(
        name="gaps",
        title="What the printed gap rule throws away",
        caption="hits: outliers that DBSCAN presumed rightly, mean over runs, and how many of them each rule keeps. "
        f"lost: runs, of {_count(found)}, in which a rule throws away more than half of them. The printed rule cuts at "
        "the widest gap between the d_diff of presumed outliers. Where detection is easy and nearly all of them are "
        "right, noise moves as many inwards as outwards, and the widest gap may be at the bottom: what is above it, "
        "nearly everything, is then called a false positive. The repaired rule counts only gaps that start at 0 or "
        "above.",
        sheet=Sheet(heading=(*heading, "lost_literal", "lost_upper"), rows=rows),
    )


def detail(found: Figure3) -> Sheet:
    """Every run of every mode."""
    rows = tuple(
        (*_lead(key), number, mode.column, each.recall, each.alarms)
        for key in found.runs
        for mode in MODES
        for number, each in enumerate(found.tallies(key, mode), start=1)
    )
    return Sheet(heading=("noise", "separation", "epsilon", "run", "mode", "accuracy", "subset"), rows=rows)


def _caption(found: Figure3, measure: Measure) -> str:
    count = _count(found)
    same = sum(found.mean(k, GRID, m) == found.mean(k, EXACT, m) for k in found.runs for m in (ACCURACY, SUBSET))
    grid = f"grid equals exact in {same} of {2 * len(found.runs)} numbers of both tables, so its lines are left out."
    if measure is SUBSET:
        return f"One in ten is an outlier, so 0.1 with all outliers in it is the best there is. {grid}"
    return (
        f"{found.points:,} readings, mean of {count} {'run' if count == 1 else 'runs'}; upper_from and upper_to are "
        "the least and the most of one run. epsilon is that of one column, as the paper states it; two columns cost "
        "total, and planar noise is for the same total and the same ranges. The paper's d_TP is the smallest d_diff of "
        "a presumed outlier, one extreme value, so its runs differ. With noise in every column, separation 400 and "
        "ε=0.5, there are two regimes: the ring of outliers is a cluster of its own and is found, or noise bridges the "
        "gap and only what moved inwards is found, about half. exact and grid have their threshold in the border that "
        f"is known to be empty. {grid}"
    )


def _panel(found: Figure3, noise: str, epsilon: str, measure: Measure) -> Panel:
    return Panel(
        title=f"{WORDS[noise]}, ε={epsilon} a column",
        along=tuple(map(float, SEPARATIONS)),
        curves=tuple(
            curve(mode, tuple(found.mean((noise, s, epsilon), mode, measure) for s in SEPARATIONS), ours=mode is EXACT)
            for mode in DRAWN
        ),
        across="separation",
        up=measure.words,
        scale=measure.scale,
        floor=measure.floor,
    )


def _row(found: Figure3, key: Key, measure: Measure) -> tuple[str | float, ...]:
    values = [found.mean(key, mode, measure) for mode in MODES]
    of_runs = [measure.of(each) for each in found.tallies(key, UPPER)]
    return *_lead(key), 2 * float(key[2]), *values, min(of_runs), max(of_runs)


def _lead(key: Key) -> tuple[str, int, float]:
    noise, separation, epsilon = key
    return noise, separation, float(epsilon)


def _hit_row(runs: Sequence[Run]) -> tuple[float, ...]:
    hits = [sum(each.hits for each in runs) / len(runs)]
    kept = [sum(each.kept[mode.key] for each in runs) / len(runs) for mode in (LITERAL, UPPER)]
    lost = [sum(each.kept[mode.key] < LOST * each.hits for each in runs) for mode in (LITERAL, UPPER)]
    return *hits, *kept, *lost


def _count(found: Figure3) -> int:
    return len(next(iter(found.runs.values())))
