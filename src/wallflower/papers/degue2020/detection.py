"""How well a private watch finds what is unusual in real streams, beside detectors that protect nobody.

Every threshold is set on the public history: there, `ALARMS` observations are flagged, on average over the
coins. The others are told how many alarms the plain threshold raises and take as many of their highest scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Final

import numpy as np

from wallflower.data import Points
from wallflower.machine.lazy import load
from wallflower.neighbours.pairs import Floats
from wallflower.noise import system_noise
from wallflower.papers.data.streams import Bools, Stream
from wallflower.papers.methods import NOT_PRIVATE
from wallflower.papers.page import Section, Sheet
from wallflower.papers.panels import Curve, Panel
from wallflower.privacy import Loss
from wallflower.queries.watch import Watch
from wallflower.queries.watch.statistics import Statistic

ALARMS: Final = 0.05
LOSSES: Final = ("0.1", "0.5", "1", "2")
ABSENT: Final = "not installed"
PLAIN: Final = "threshold"
POOLED: Final = "SKAB"  # its streams are too many to be shown one by one
APART: Final = "flights"  # its streams are the same days, not to be added up
SHOWN: Final = ("50 airports", "EWR", "SKAB", "NAB")
DETAIL: Final = "streams-detail.csv"
MEASURES: Final = ("alarms", "precision", "recall", "false_alarms", "f1", "lift")
WHY: Final = "it looks at the stream without noise, as River and PyOD do, and protects nobody"
CAPTION: Final = (
    "The share of outliers flagged less that of the others: 0 by chance, 1 at best. Event level: one entry of one "
    "observation is protected, whatever it was (the bounds enforce it), or only a change of it by so much (which is "
    "assumed): one flight of an airport's day (delays within 300 minutes, 15 flights a day or more; 500 for ATL and "
    "ORD, 100 for EWR), half the usual spread of a sensor, a tenth of that of a number, one taxi ride of 6 passengers. "
    "move: how far that moves the statistic, in spreads of it. Centre and threshold come from a history that is taken "
    "as public and is not judged (60 days of flights; the first 400 rows of a SKAB file and the first 15 % of a NAB "
    "file, as those benchmarks have it); the threshold is the lowest that flags 5 % of the history at most. SKAB's own "
    "anomaly-free file is another regime, after which nearly everything would be flagged, and is left out. Flights "
    "have no labels: right is what the threshold alone flags. river (GaussianScorer, on the statistic, learning on) "
    "and ecod (PyOD, on all columns, fitted to the history) flag as many as the threshold alone does. Where a whole "
    "entry is protected and there is only one, or the largest decides, next to nothing can be had at so few alarms: "
    "the entry is the answer. Each threshold is set on the history, so alarms differ on the stream, and a watch "
    "that is above the threshold alone owes it to that, not to its noise. "
    f"Counts are added over runs and files; {DETAIL} has precision, recall, false alarms, F1."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Counts over observations and runs: how many were outliers, were flagged, were both."""

    seen: int
    outliers: int
    flagged: int
    both: int

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            seen=self.seen + other.seen,
            outliers=self.outliers + other.outliers,
            flagged=self.flagged + other.flagged,
            both=self.both + other.both,
        )

    @property
    def alarms(self) -> float:
        return self.flagged / self.seen

    @property
    def precision(self) -> float:
        return self.both / max(1, self.flagged)

    @property
    def recall(self) -> float:
        return self.both / max(1, self.outliers)

    @property
    def false_alarms(self) -> float:
        return (self.flagged - self.both) / max(1, self.seen - self.outliers)

    @property
    def f1(self) -> float:
        return 2 * self.both / max(1, self.flagged + self.outliers)

    @property
    def lift(self) -> float:
        """Outliers found less false alarms: 0 by chance, however often flags are raised."""
        return self.recall - self.false_alarms


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Row:
    """One stream or one group under one protection; a tally for each detector, None for one that is not installed."""

    group: str
    name: str
    protects: str
    judged_by: str
    ratio: float
    tallies: Mapping[str, Tally | None]


def judge_stream(stream: Stream, runs: int) -> list[Row]:
    """The stream under both protections: all of an entry, and a change of it."""
    whole = _watch(stream, None, 0.0, LOSSES[0])
    gauge = whole.statistic_on(stream.values.shape[1])
    past, now = (gauge.measure(values).astype(np.float64) * gauge.step for values in (stream.history, stream.values))
    plain = np.abs(now) >= lowest(np.abs(past), lambda beyond: beyond >= 0, float(np.abs(past).max()))
    truth = plain if stream.labels is None else stream.labels
    known: dict[str, Tally | None] = {PLAIN: _tally(plain, truth)}
    for name, scores in OTHERS.items():
        known[name] = _tally_highest(partial(scores, stream, past, now), truth, int(plain.sum()))
    rows = []
    for protects, change in ((stream.whole, None), (stream.part, stream.change)):
        own = _watch(stream, change, 0.0, LOSSES[0]).statistic_on(stream.values.shape[1])
        private = {f"E={loss}": _private(stream, change, own, truth, loss, runs) for loss in LOSSES}
        rows.append(
            Row(
                group=stream.group,
                name=stream.name,
                protects=protects,
                judged_by="the threshold" if stream.labels is None else "labels",
                ratio=own.sensitivity * own.step / float(past.std()),
                tallies=known | private,
            )
        )
    return rows


def pool_rows(rows: Iterable[Row], name: str) -> Row:
    """All counts added: one row for several streams."""
    each = list(rows)
    added = {detector: reduce(_add, [row.tallies[detector] for row in each]) for detector in each[0].tallies}
    return Row(
        group=each[0].group,
        name=name,
        protects=each[0].protects,
        judged_by=each[0].judged_by,
        ratio=float(np.median([row.ratio for row in each])),
        tallies=added,
    )


def setting(distances: Floats, move: float, epsilon: float) -> float:
    """The lowest threshold at which the staircase flags `ALARMS` of these distances or fewer, on average.

    >>> round(setting(np.linspace(0, 100, 1001), 1.0, 10.0))
    95
    """
    far = float(distances.max()) + move * (2 - math.log(ALARMS) / epsilon)
    return lowest(distances, lambda beyond: chance(np.floor(beyond / move) + 1, epsilon), far)


def lowest(distances: Floats, flag: Callable[[Floats], Floats | Bools], far: float) -> float:
    """The lowest threshold up to `far` where no more than `ALARMS` are flagged, by how far each is beyond it."""
    low, high = 0.0, math.nextafter(far, math.inf)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if float(flag(distances - middle).mean()) > ALARMS else (low, middle)
    return high


def chance(steps: Floats, epsilon: float) -> Floats:
    """The chance that the staircase flags, by how many moves the distance is beyond the threshold."""
    below: Floats = np.exp(epsilon * np.minimum(steps, 1 - steps)) / (1 + np.exp(epsilon))
    return np.where(steps <= 0, below, 1 - below)


def _watch(stream: Stream, change: float | None, threshold: float, loss: str) -> Watch:
    return Watch(threshold=threshold, statistic=stream.statistic, change=change, loss=Loss(loss), **stream.public)


def _private(stream: Stream, change: float | None, gauge: Statistic, truth: Bools, loss: str, runs: int) -> Tally:
    past = np.abs(gauge.measure(stream.history)) * gauge.step
    query = _watch(stream, change, setting(past, gauge.sensitivity * gauge.step, float(loss)), loss)
    points = Points.from_array(stream.values)
    return reduce(Tally.__add__, (_tally(flags(query, points), truth) for _ in range(runs)))


def flags(query: Watch, points: Points) -> Bools:
    """What one release flags."""
    raised = np.zeros(points.n, dtype=np.bool_)
    raised[np.array(query.answer(points, system_noise())["flagged"], dtype=np.int64) - 1] = True
    return raised


def _tally(flagged: Bools, truth: Bools) -> Tally:
    return Tally(
        seen=len(truth), outliers=int(truth.sum()), flagged=int(flagged.sum()), both=int((flagged & truth).sum())
    )


def _add(one: Tally | None, other: Tally | None) -> Tally | None:
    return None if one is None or other is None else one + other


def _tally_highest(scores: Callable[[], Floats], truth: Bools, alarms: int) -> Tally | None:
    try:
        found = scores()
    except ModuleNotFoundError:
        return None
    flagged = np.zeros(len(truth), dtype=np.bool_)
    flagged[np.argsort(-found, kind="stable")[:alarms]] = True
    return _tally(flagged, truth)


def _gaussian(stream: Stream, past: Floats, now: Floats) -> Floats:
    """River learns a Gaussian as it goes, from the statistic."""
    scorer = load("river.anomaly").GaussianScorer(grace_period=min(100, len(past)))
    for value in past.tolist():
        scorer.learn_one(None, value)
    found = []
    for value in now.tolist():
        found.append(float(scorer.score_one(None, value)))
        scorer.learn_one(None, value)
    return np.array(found)


def _copula(stream: Stream, past: Floats, now: Floats) -> Floats:
    """PyOD's ECOD on all columns, fitted to the history."""
    scorer = load("pyod.models.ecod").ECOD().fit(stream.history)
    return np.asarray(scorer.decision_function(stream.values), dtype=np.float64)


OTHERS: Final[Mapping[str, Callable[[Stream, Floats, Floats], Floats]]] = {"river": _gaussian, "ecod": _copula}


def judgements(streams: Iterable[Stream], runs: int) -> list[Row]:
    """A row for every stream and protection; of SKAB, and after those of NAB, one for all of them together."""
    groups: dict[str, list[Stream]] = {}
    for stream in streams:
        groups.setdefault(stream.group, []).append(stream)
    rows: list[Row] = []
    for name, members in groups.items():
        found = [judge_stream(stream, runs) for stream in members]
        together = [pool_rows(each, f"{name}, {len(members)} streams") for each in zip(*found, strict=True)]
        rows += [] if name == POOLED else [row for each in found for row in each]
        rows += together if name != APART else []
    return rows


def comparison_section(rows: Sequence[Row]) -> Section:
    """What every detector finds in every stream, less its false alarms, and a picture of some."""
    cells: tuple[tuple[str | float, ...], ...] = tuple(
        (
            row.name,
            row.protects,
            row.judged_by,
            row.ratio,
            _plain(row).outliers / _plain(row).seen,
            *(ABSENT if tally is None else tally.lift for tally in row.tallies.values()),
        )
        for row in rows
    )
    heading = ("data", "protected", "judged_by", "move", "outliers", *rows[0].tallies)
    return Section(
        name="streams",
        title="Ours: real streams, outliers found less false alarms",
        caption=CAPTION,
        sheet=Sheet(heading=heading, rows=cells),
        panels=tuple(
            _panel(pair) for name in SHOWN for pair in [[row for row in rows if row.name.startswith(name)]] if pair
        ),
    )


def detail_sheet(rows: Iterable[Row]) -> Sheet:
    """Every rate of every detector on every stream."""
    cells: list[tuple[str | float, ...]] = []
    for row in rows:
        for name, tally in row.tallies.items():
            measured = [ABSENT] * len(MEASURES) if tally is None else [getattr(tally, measure) for measure in MEASURES]
            cells.append((row.name, row.protects, row.judged_by, row.ratio, name, *measured))
    return Sheet(heading=("data", "protected", "judged_by", "move", "detector", *MEASURES), rows=tuple(cells))


def _plain(row: Row) -> Tally:
    tally = row.tallies[PLAIN]
    assert tally is not None
    return tally


def _panel(pair: Sequence[Row]) -> Panel:
    whole, part = pair[:2]
    curves = [
        Curve(
            label=label, values=tuple(tally.lift for loss in LOSSES if (tally := row.tallies[f"E={loss}"])), ours=ours
        )
        for label, row, ours in (
            ("wallflower, small changes protected", part, True),
            ("wallflower, whole entries protected", whole, False),
        )
    ]
    plain = Curve(label=f"the threshold alone: {NOT_PRIVATE}", values=(_plain(whole).lift,) * len(LOSSES), why=WHY)
    return Panel(
        title=f"{whole.name}: {whole.protects}, or {part.protects}",
        along=tuple(map(float, LOSSES)),
        curves=(plain, *curves),
        across="E, of one entry of one observation",
        up="found less false alarms",
        chance=0.0,
    )
