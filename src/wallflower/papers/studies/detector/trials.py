"""One fit after another: how well its scores tell outliers from the others, and how many records it flags.

Ours is asked through the one door and paid for, spreads and threshold included, on a ledger that is thrown away. The
others are PyOD's, with its defaults, on columns of mean 0 and variance 1, and are not private.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import numpy as np

from wallflower.data import Points
from wallflower.ledger import Ledger
from wallflower.machine.lazy import Lazy, load
from wallflower.papers.data.tables import standardise
from wallflower.papers.studies.detector.sets import Floats, LabelledTable, table_of
from wallflower.privacy import Loss
from wallflower.progress import count_cores
from wallflower.queries.detector import Detector
from wallflower.queries.detector.model import Model
from wallflower.release import release

if TYPE_CHECKING:
    import sklearn.metrics as _metrics
else:
    _metrics = Lazy("sklearn.metrics")

OURS: Final = "wallflower"
RIVALS: Final = ("IForest", "ECOD", "HBOS", "KNN", "LOF")
SEEDED: Final = ("IForest",)  # the others give the same scores every time
COMPILED: Final = ("ECOD", "HBOS")
WANTED: Final = Fraction(1, 50)  # the share to flag
PURSE: Final = Loss("1000000")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A fit that is wanted: of a table, by whom, at which ε if that means anything, the how-manieth."""

    table: str
    who: str
    epsilon: str | None
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of it: two scores of ranks, and the share of the records that is flagged."""

    job: Job
    auroc: float
    precision: float
    flagged: float | None


def plan_jobs(tables: Iterable[str], epsilons: Sequence[str], rivals: Sequence[str], times: int) -> list[Job]:
    """Every fit, those that take longest first."""
    jobs = []
    for table in tables:
        for who in reversed(rivals):
            repeated = range(times if who in SEEDED else 1)
            jobs += [Job(table=table, who=who, epsilon=None, number=number) for number in repeated]
        for epsilon in epsilons:
            jobs += [Job(table=table, who=OURS, epsilon=epsilon, number=number) for number in range(times)]
    return sorted(jobs, key=lambda job: -len(table_of(job.table).values) * (job.who in ("KNN", "LOF")))


def run(jobs: Sequence[Job], *, alone: bool) -> Iterator[Trial]:
    """The trials, on all cores, or in this process alone."""
    if alone:
        yield from map(try_once, jobs)
        return
    with ProcessPoolExecutor(count_cores(), mp_context=get_context("spawn")) as pool:
        yield from pool.map(try_once, jobs)


def try_once(job: Job) -> Trial:
    """Fit once, and score the fitted records."""
    table = table_of(job.table)
    if job.who == OURS:
        scores, flagged = _fit_ours(table, str(job.epsilon))
    else:
        scores, flagged = _fit_rival(table, job.who, job.number), None
    return Trial(
        job=job,
        auroc=float(_metrics.roc_auc_score(table.outliers, scores)),
        precision=float(_metrics.average_precision_score(table.outliers, scores)),
        flagged=flagged,
    )


def _fit_ours(table: LabelledTable, epsilon: str) -> tuple[Floats, float]:
    points = Points.from_array(table.values, name="table")
    query = Detector(loss=Loss(epsilon), contamination=WANTED)
    with TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.db") as ledger:
        ledger.grant(points.name, PURSE, by="study", reason="a public table")
        model = Model.of(release(query, points, ledger, analyst="study", anyway=True))
    scores = model.score(points.values)
    return scores, float((scores > model.require_threshold()).mean())


def _fit_rival(table: LabelledTable, who: str, seed: int) -> Floats:
    settings = {"random_state": seed} if who in SEEDED else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of theirs
        fitted = getattr(load(f"pyod.models.{who.lower()}"), who)(**settings).fit(standardise(table.values))
    return np.asarray(fitted.decision_scores_, dtype=np.float64)


def rivals_here(quick: bool, say: Callable[[str], None]) -> tuple[str, ...]:
    """Those that can be had here, and quick: that need no compiler."""
    try:
        load("pyod.models.base")
    except ImportError:
        say("skipped: PyOD is not installed, so nothing stands beside ours. Install wallflower[bench].")
        return ()
    return tuple(rival for rival in RIVALS if not quick or rival not in COMPILED)
