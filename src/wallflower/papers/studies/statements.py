"""How often what an answer says about its accuracy is true, on tables that are made to be hard.

Every label, verdict and headline is a statement. Each is released many times by the one door, on a ledger that is
thrown away, and held against the exact answer, which only a study may look at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.data import Table, load
from wallflower.ledger import Ledger
from wallflower.machine.lazy import Lazy
from wallflower.neighbours.noisy_count import exact_steps
from wallflower.papers.page import Section, Sheet, leave, write_page
from wallflower.privacy import Loss
from wallflower.queries.count import Count
from wallflower.queries.count.exact import count_outliers
from wallflower.queries.detector import Detector
from wallflower.queries.detector.model import Model
from wallflower.queries.subspaces import Subspaces
from wallflower.queries.subspaces.exact import scores
from wallflower.query import Query
from wallflower.query.accuracy import CHECK_FIRST
from wallflower.release import Release, plan_for, release
from wallflower.release.views import view_of
from wallflower.schema import Column, Schema
from wallflower.synthetic import exponentials, pick_labels, pick_rows, spread_numbers

if TYPE_CHECKING:
    import pyarrow as _pa
else:
    _pa = Lazy("pyarrow")

Floats = NDArray[np.float64]

RUNS, FEW_RUNS = 40, 4
RECORDS: Final = 600
NEIGHBOURS: Final = 5
PURSE: Final = Loss("1000000")
UNSCALED: Final = ("Patient No.", "age", "kappa")
TITLE: Final = "How often what answers say about their accuracy is true"
LEAD: Final = (
    "Every statement was released forty times at ε = 1 on each of seven made-up tables of 600 records and held against "
    "the exact answer. A statement with 95 % or 97.5 % confidence may be false in as many of a hundred runs as are "
    "left; a condition that is missing, and a ranking that is wrong, count as false."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HardTable:
    """A made-up table, with what is known of it: a radius for its counts, and whether its columns have scales."""

    name: str
    why: str
    values: Floats
    radius: float
    is_scaled: bool = True
    groups: tuple[str, ...] = ()

    def table(self) -> Table:
        names = (
            ["Patient No.", "age", "kappa"] if not self.is_scaled else [f"x{at + 1}" for at in range(self.dimension)]
        )
        facts = [Column(name, scale=2.0 if self.is_scaled else 1.0) for name in names]
        columns = dict(zip(names, self.values.T * (2.0 if self.is_scaled else 1.0), strict=True))
        if self.groups:
            facts.append(Column("ward", categories=tuple(sorted(set(self.groups)))))
            columns["ward"] = np.array(self.groups)
        return load(_pa.table(columns), schema=Schema(name=self.name, columns=tuple(facts)))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"x{at + 1}" for at in range(self.dimension)) if self.is_scaled else UNSCALED

    @property
    def dimension(self) -> int:
        return int(self.values.shape[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A statement as it was made once, and whether it is true."""

    query: str
    statement: str
    allowed: float
    is_true: bool


def hard_tables(seed: int = 1) -> list[HardTable]:
    """The tables, the same every time."""
    plane = np.column_stack([_bell(seed), _bell(seed + 1)])
    side = math.isqrt(RECORDS)
    lattice = np.array([(at // side, at % side) for at in range(side * side)], dtype=float)
    crowds = np.repeat(np.arange(RECORDS // 6, dtype=float)[:, None] * [9.0, 7.0], 6, axis=0)
    repeats = np.where(np.arange(RECORDS) % 20 > 0, 45.0, 45.0 + 8 * _bell(seed + 2))
    unscaled = np.column_stack(
        [np.arange(RECORDS, dtype=float), 60 + 9 * _bell(seed + 3), exponentials((RECORDS,), seed)]
    )
    few = plane.copy()
    few[pick_rows(RECORDS, 30, seed)] *= 6
    wards = pick_labels(RECORDS, ("north", "south", "west"), seed=seed)
    return [
        HardTable(name="bell", why="an ordinary cloud", values=plane, radius=0.4),
        HardTable(name="planted", why="thirty records far out", values=few, radius=0.6),
        HardTable(
            name="unscaled", why="an identifier, years and milligrams", values=unscaled, radius=1.0, is_scaled=False
        ),
        HardTable(name="lattice", why="all records alike", values=lattice, radius=1.1),
        HardTable(name="micro-clusters", why="groups of six, no outlier", values=crowds, radius=0.5),
        HardTable(
            name="repeats", why="19 of 20 values equal", values=np.column_stack([repeats, plane[:, 0]]), radius=0.4
        ),
        HardTable(name="groups", why="three wards alike", values=plane, radius=0.4, groups=tuple(wards)),
    ]


def _bell(seed: int) -> Floats:
    return spread_numbers(RECORDS, center=0.0, spread=1.0, seed=seed, share=0.0)


# What is said, and whether it is so


def check_count(here: HardTable, ask: Callable[[Query[Any, Any]], Release[Any]]) -> Iterator[Check]:
    """The upper end, the noise, and both ends where they are proved."""
    query = Count(neighbours=NEIGHBOURS, radius=here.radius, loss=Loss("1"))
    truth, made = count_outliers(here.values, here.radius, NEIGHBOURS), ask(query)
    slack = query.slack_for(len(here.values), here.dimension)
    bare = exact_steps(here.values, here.radius, NEIGHBOURS, slack, normalise=True) / 128
    width = query.noise(len(here.values), here.dimension).half_width() + 0.5
    yield Check(query="count", statement="at most H", allowed=0.025, is_true=truth <= made.extras["at_most"])
    yield Check(query="count", statement="noise within ±w", allowed=0.05, is_true=abs(made.value - bare) <= width)
    yield _check_conditions(here, "count", made)
    both = ask(Count(neighbours=NEIGHBOURS, radius=here.radius, interval="two-sided", loss=Loss("1")))
    low, high = both.interval or (0, 0)
    yield Check(query="count", statement="L to H, both ends", allowed=0.05, is_true=low <= truth <= high)


def check_share(here: HardTable, ask: Callable[[Query[Any, Any]], Release[Any]]) -> Iterator[Check]:
    """A share that is missed by more than noise is a condition, and one that is met is none."""
    made = ask(Count(neighbours=NEIGHBOURS, share=Fraction(1, 10), loss=Loss("1")))
    truth, wanted = count_outliers(here.values, made.extras["radius"], NEIGHBOURS), len(here.values) / 10
    assert made.quality is not None
    said = any("was asked for" in words for words in made.quality.conditions)
    is_missed = truth > 5 * wanted  # further than radius and count are off together
    yield Check(query="count, share", statement="share not met", allowed=0.05, is_true=said or not is_missed)
    yield Check(query="count, share", statement="at most H", allowed=0.025, is_true=truth <= made.extras["at_most"])


def check_groups(here: HardTable, ask: Callable[[Query[Any, Any]], Release[Any]]) -> Iterator[Check]:
    """The upper end of every group, and a ranking only where there is one."""
    made = ask(Count(neighbours=NEIGHBOURS, radius=here.radius, by=("ward",), loss=Loss("1")))
    wards = np.array(here.groups)
    truth = {ward: count_outliers(here.values[wards == ward], here.radius, NEIGHBOURS) for ward in sorted(set(wards))}
    ends = zip(made.value, made.extras["intervals"], strict=True)
    ok = [truth[row["ward"]] <= high for row, (_, high) in ends]
    yield Check(query="count, by", statement="each group at most H", allowed=0.075, is_true=all(ok))
    highest = made.extras["highest"]
    is_first = highest is None or truth[highest["group"]] == max(truth.values())
    yield Check(query="count, by", statement="highest count", allowed=0.05, is_true=is_first)
    names = list(truth)
    test = made.compare(names[0], names[1])
    close = abs(truth[names[0]] - truth[names[1]]) > 0 or not test.is_beyond_noise
    yield Check(query="compare", statement="higher than noise explains", allowed=0.05, is_true=close)


def check_subspaces(here: HardTable, ask: Callable[[Query[Any, Any]], Release[Any]]) -> Iterator[Check]:
    """A name stands out only if its score is above the median of the others."""
    query = Subspaces(neighbours=NEIGHBOURS, radius=here.radius, upto=2, top=1, loss=Loss("1"))
    made = ask(query)
    columns = here.columns
    family = query.family.subspaces(columns)
    found = scores(here.values, family, here.radius, NEIGHBOURS, score="mass")
    named = family.index(tuple(columns.index(name) for name in made.value[0]["columns"]))
    others = sorted(score for at, score in enumerate(found) if at != named)
    is_clear = found[named] > others[(len(others) - 1) // 2]
    said = made.value[0]["lead"] > made.extras["lead_within"]
    yield Check(query="subspaces", statement="stands out", allowed=0.05, is_true=is_clear or not said)


def check_detector(here: HardTable, ask: Callable[[Query[Any, Any]], Release[Any]]) -> Iterator[Check]:
    """The number of fitted records that are flagged; ties aside, so only where no two scores tie."""
    query = Detector(loss=Loss("1"), contamination=Fraction(1, 10))
    made = ask(query)
    model = Model.of(made)
    n = len(here.values)
    off, wanted = query.off(n, here.dimension), n // 10
    flagged = int(model.predict(here.table()).sum())
    yield Check(
        query="detector", statement="flags L to H", allowed=0.05, is_true=wanted - off <= flagged <= wanted + off
    )


def _check_conditions(here: HardTable, kind: str, made: Release[Any]) -> Check:
    """Columns without a scale, and identifiers, are named before and after."""
    assert made.quality is not None
    is_true = here.is_scaled or (
        made.quality.verdict in (CHECK_FIRST, "mostly noise")
        and any("no column has a scale" in words for words in made.quality.conditions)
        and any("identifier" in words for words in made.quality.conditions)
    )
    return Check(query=kind, statement="check first where it is due", allowed=0.0, is_true=is_true)


def check_plan(here: HardTable) -> Check:
    """A plan is useful only where nothing is to be checked first."""
    table, query = here.table(), Count(neighbours=NEIGHBOURS, radius=here.radius, loss=Loss("1"))
    plan = plan_for(query, view_of(query, table))
    is_true = here.is_scaled or plan.grade != "useful"
    return Check(query="plan", statement="useful", allowed=0.0, is_true=is_true)


CHECKS: Final[Mapping[str, Callable[[HardTable, Callable[[Query[Any, Any]], Release[Any]]], Iterator[Check]]]] = {
    "count": check_count,
    "share": check_share,
    "subspaces": check_subspaces,
    "detector": check_detector,
}


def check_all(here: HardTable) -> Iterator[Check]:
    """Every statement about one table, released once."""
    table = here.table()
    with TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.db") as ledger:
        ledger.grant(table.name, PURSE, by="study", reason="a made-up table")

        def ask(query: Query[Any, Any]) -> Release[Any]:
            return release(query, table, ledger, analyst="study", anyway=True)

        yield check_plan(here)
        if here.groups:
            yield from check_groups(here, ask)
        else:
            for check in CHECKS.values():
                yield from check(here, ask)


def study(folder: Path, quick: bool, say: Callable[[str], None]) -> Iterator[Path]:
    """Write the table of all statements and its page into `folder`; quick: four runs instead of forty."""
    runs, rows = FEW_RUNS if quick else RUNS, []
    for here in hard_tables():
        say(f"{here.name}: {here.why}")
        found = [check for _ in range(runs) for check in check_all(here)]
        for query, statement in dict.fromkeys((check.query, check.statement) for check in found):
            own = [check for check in found if (check.query, check.statement) == (query, statement)]
            false = sum(not check.is_true for check in own)
            rows.append((here.name, query, statement, len(own), false, f"{own[0].allowed:.1%}"))
    heading = ("table", "query", "statement", "runs", "false", "allowed")
    section = Section(
        name="statements", title=TITLE, caption=LEAD, sheet=Sheet(heading=heading, rows=tuple(rows)), panels=()
    )
    yield from leave(folder, section, say)
    yield write_page(folder / "statements.html", TITLE, LEAD, [section])
