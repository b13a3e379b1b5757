"""How often what an answer says about its accuracy is true: on tables that are made to be hard, and on real ones.

Every label, verdict and headline is a statement. Each is made many times and compared with the exact answer, which only
a study may look at: through `release`, on a ledger that is thrown away, or by `answer` and `reading` alone, where the
study has to see the pairing, a stream or a context. `STATEMENTS` lists them with the
sentences that make them: a sentence of a release that no entry matches fails a test.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from wallflower.data import Points, Table, load
from wallflower.errors import SourceError
from wallflower.ledger import Ledger
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.neighbours.noisy_count import exact_steps
from wallflower.neighbours.radii import middle_radius, outlier_curve, radius_errors, target_steps
from wallflower.neighbours.spreads import DIVISORS, bins_of, bins_within, column_facts, gap_counts
from wallflower.noise import Noise, sample, system_noise
from wallflower.papers.data.tables import find_file
from wallflower.papers.page import Section, Sheet, leave, write_page
from wallflower.privacy import Loss
from wallflower.queries.count import Count
from wallflower.queries.count.at_radius import OneSidedCount
from wallflower.queries.count.exact import count_outliers
from wallflower.queries.detector import Detector
from wallflower.queries.detector.flags import Flags
from wallflower.queries.detector.model import Model
from wallflower.queries.detector.tally import Tally
from wallflower.queries.explain import Explain
from wallflower.queries.explain.exact import valid_contexts
from wallflower.queries.profile import Profile
from wallflower.queries.radius import Radius
from wallflower.queries.scale import Scale
from wallflower.queries.subspaces import Subspaces
from wallflower.queries.subspaces.exact import scores
from wallflower.queries.watch import Watch
from wallflower.queries.watch.baseline import Baseline
from wallflower.queries.who import Who
from wallflower.queries.who.walk import furthest_rank
from wallflower.query import Query
from wallflower.query.accuracy import CHECK_FIRST
from wallflower.release import Release, plan_for, release
from wallflower.release.guarantee import Facts
from wallflower.release.inputs import project
from wallflower.schema import Column, Schema
from wallflower.synthetic import exponentials, payroll, pick_labels, pick_rows, spread_numbers

Floats = NDArray[np.float64]

RUNS, FEW_RUNS = 40, 4
RECORDS: Final = 600
NEIGHBOURS: Final = 5
PURSE: Final = Loss("1000000")
UNSCALED: Final = ("Patient No.", "age", "kappa")
REAL_RECORDS: Final = 1000  # of each real table, at most
PAYROLL_RECORDS: Final = 2000
OBSERVATIONS: Final = 3000  # of a stream
TOLERANCE: Final = 4.0  # standard deviations by which a share of observations may miss a stated chance
TITLE: Final = "How often what answers say about their accuracy is true"
LEAD: Final = (
    "Every statement was made many times on each table and compared with the exact answer. A statement "
    "with 95 % or 97.5 % confidence may be false in as many of a hundred runs as are left; a condition that is "
    "missing, and a ranking that is wrong, count as false."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What answers say, the share of runs in which it may be false, and the sentences that say it (patterns)."""

    query: str
    says: str
    allowed: float
    sentences: tuple[str, ...]


_BESIDE: Final = r"the noise \(±.*\) is .* % of .* of the records; low noise is at most"
STATEMENTS: Final[Mapping[str, Statement]] = {
    "useful": Statement(query="plan", says="*useful* only where nothing is to be checked", allowed=0.0, sentences=()),
    "unscaled": Statement(
        query="count",
        says="*check first* names unscaled columns and identifiers",
        allowed=0.0,
        sentences=(
            r"Nothing public says how the columns compare",
            r"looks like an identifier",
            r"reaches over .* times",
        ),
    ),
    "slack": Statement(
        query="count",
        says="*check first* names a slack below ten or more neighbours",
        allowed=0.0,
        sentences=(r"(A slack of|The slack may be as low as) \d+.* below the \d+ neighbours",),
    ),
    "at most": Statement(
        query="count, radius",
        says="at most H",
        allowed=0.025,
        sentences=(
            r"^(At a radius of [\d.e-]+:? )?[Aa]t most [\d,]+ of [\d,]+ records are outliers \(97.5 % confidence\)",
            r"^at most [\d,]+ \(97.5 % confidence\); estimate",
            r"Only the upper end is proved",
        ),
    ),
    "noise": Statement(query="count", says="the noise is within ±w", allowed=0.05, sentences=(_BESIDE,)),
    "both ends": Statement(
        query="count",
        says="L to H, both ends proved",
        allowed=0.05,
        sentences=(r"^(At a radius of .*: )?[\d,]+ to [\d,]+ of [\d,]+ records are outliers \(95 % confidence\)",),
    ),
    "any": Statement(
        query="count",
        says="there is an outlier: false alarm proved",
        allowed=0.05,
        sentences=(r"has no power: it could never say yes",),
    ),
    "share": Statement(
        query="count, radius",
        says="a share that the radius does not have is named",
        allowed=0.05,
        sentences=(r"was asked for, about .* came out",),
    ),
    "mass at a radius": Statement(
        query="radius",
        says="the outlier mass is L to H",
        allowed=0.05,
        sentences=(r"^At a radius of .* the outlier mass of .* is .* to .* \(95 % confidence\)",),
    ),
    "share, conditional": Statement(
        query="radius, profile",
        says="if a radius of the grid has the share, it is within s of it there",
        allowed=0.05,
        sentences=(
            r"^If a radius of the grid has the share, which is not verified",
            r"^If every share is crossed inside the grid of radii, which is not verified",
            r"^Nothing verifies that the share is crossed between the radii",
        ),
    ),
    "groups": Statement(
        query="count, by",
        says="each group at most H (all at once)",
        allowed=0.075,
        sentences=(
            r"In .* at most [\d,]+ of (about )?[\d,]+ records are outliers \(97.5 % confidence\)",
            r"Each upper end is proved with 97.5 % confidence",
            r"beside the count and the size of each group",
        ),
    ),
    "highest": Statement(
        query="count, by; compare",
        says="has the highest count; is higher than noise explains",
        allowed=0.05,
        sentences=(
            r"has the highest count, by more than noise",
            r"highest counts differ by no more than noise explains",
        ),
    ),
    "flags": Statement(
        query="flags",
        says="in the group with the most, L to H are flagged",
        allowed=0.05,
        sentences=(r"[\d,]+ to [\d,]+ of about [\d,]+ records are flagged \(95 % confidence",),
    ),
    "most flags": Statement(
        query="flags",
        says="has the most flags",
        allowed=0.05,
        sentences=(r"has the most flags, by more than noise", r"highest numbers of flags differ by no more than noise"),
    ),
    "names": Statement(
        query="who",
        says="nobody is named beyond rank K",
        allowed=0.0,
        sentences=(r"beyond rank [\d,]+ nobody is named more than once in 10⁹",),
    ),
    "tally": Statement(
        query="tally",
        says="by the last period L to H records were flagged",
        allowed=0.05,
        sentences=(
            r"By .* about [\d,]+ of [\d,]+ records were flagged \([\d,]+ to [\d,]+, 95 % confidence",
            r"^[\d,]+ by [\d.T:-]+$",
        ),
    ),
    "stands out": Statement(
        query="subspaces",
        says="stands out from the median of the others",
        allowed=0.05,
        sentences=(
            r"^Drawn for their outliers: .*(standing out|none is shown|Chosen from)",
            r"Not shown to stand out, and perhaps drawn at random",
            r"leads are within their noise",
            r"Nothing verifies that the names stand out",
            r"Nine of ten names are right where the best stand out by",
            r"of the names are expected to be wrong, where chance would give",
            r"(so its name tells nothing|only their order tells anything)",
        ),
    ),
    "counts of subspaces": Statement(
        query="subspaces",
        says="at most H in a subspace",
        allowed=0.025,
        sentences=(
            r"In .* about [\d,]+ of [\d,]+ records are outliers, and with 97.5 % at most",
            r"the noise of each count is within",
            r"^Only the upper ends of the intervals of counts are proved",
        ),
    ),
    "spreads": Statement(
        query="scale",
        says="no spread misses its quantile by more than q pairs",
        allowed=0.05,
        sentences=(r"With 95 % none misses its quantile by more than", r"every spread misses its quantile by at most"),
    ),
    "equal pairs": Statement(
        query="scale",
        says="shares of equal pairs within p points",
        allowed=0.05,
        sentences=(
            r"Pairs with equal values are ignored: (about .* \(95 %: all columns within|at most)",
            r"Mostly repeated values: ",
            r"Pairs with equal values are ignored, and their share is not known",
        ),
    ),
    "curve": Statement(
        query="profile",
        says="the whole curve within w of the one without noise; its upper edge holds",
        allowed=0.05,
        sentences=(r"with 95 % all are within .* of what they are without noise", r"^The band covers the noise alone"),
    ),
    "flagged": Statement(
        query="detector",
        says="flags L to H of the fitted records",
        allowed=0.05,
        sentences=(
            r"It flags [\d,]+ to [\d,]+ of these \(95 % confidence, ties aside\)",
            r"The threshold may miss by as many as are asked for",
            r"the noise of a cell is .* of the records, in each of",
            r"columns are looked at, drawn at random",
        ),
    ),
    "rates": Statement(
        query="watch",
        says="beyond the threshold at least p are flagged, of the others at most q",
        allowed=0.05,
        sentences=(
            r"at least .* of the observations beyond the threshold and at most .* of the others would be flagged",
            r"How many flags would be right depends on how the statistic spreads",
        ),
    ),
    "forecast": Statement(
        query="watch",
        says="for observations as stated, p of outliers and q of the others are flagged",
        allowed=0.05,
        sentences=(
            r"for observations as stated, .* of outliers and .* of the others",
            r"of flags like these are false alarms",
        ),
    ),
    "usual": Statement(
        query="baseline",
        says="the mean within ±w, the spread L to H",
        allowed=0.1,
        sentences=(
            r"^The sum is typically .* \(95 % interval ±.*\), give or take .* \(95 % interval",
            r"the mean is within .* of the spread and the variance within",
        ),
    ),
    "buckets": Statement(
        query="baseline",
        says="the centres of buckets within w spreads",
        allowed=0.05,
        sentences=(r"^Typical values in each of .* buckets", r"the noise of the centre of a bucket is within"),
    ),
    "context": Statement(
        query="explain",
        says="the record is an outlier in the named context",
        allowed=0.05,
        sentences=(
            r"^In .*, the record is an outlier among",
            r"^If the record is an outlier anywhere",
            r"^None: no context",
            r"it is invalid with a chance of at most",
            r"A context is named whether or not anything stands out",
            r"^Where nothing stands out, at most .* of answers name a context nevertheless",
            r"^At this ε at least .* of answers are none, however clear the outlier",
            r"^none is answered .* of the time where",
            r"^this mode names only contexts in which the record is an outlier",
            r"^(every context was examined|not every context need have been examined)",
            r"^by this detector every record is an outlier",
        ),
    ),
}
# Sentences of a release that state a setting or a use, and claim nothing about how near an answer is to the truth.
WITHOUT_CLAIM: Final = (
    r"^The degree cap is \d+",
    r"^Who has which .* is public by the schema",
    r"observations were flagged",
    r"Then the watch was exhausted|The watch was exhausted",
    r"^Entries are divided by|^By the schema, entries are divided by",
    r"^A detector of \d+ grids over .* fitted to [\d,]+ records\. Scoring records with it costs nothing",
    r"^a detector of \d+ grids",
    r"^a list of up to [\d,]+ names, given once to the person who asked",
    r"^Scoring costs nothing",
    r"The sum adds columns that hardly share a unit",
    r"^What noise was added to comes from a certificate checked in whole numbers",
    r"^a threshold of [\d.]+$",
    r"^[\d.e-]+$",
)
# Claims that this bench does not measure: `studies.shift` measures delays and false alarms; how often the interval of
# a chosen threshold holds has only its theorem.
NOT_MEASURED_HERE: Final = (
    r"^No shift was detected in [\d,]+ observations",
    r"^A shift|shift.* detected after .* observations on average",
    r"^Above [\d.]+ the detector of release \d+ flags",
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
    """A statement, by its name in `STATEMENTS`, as it was made once, and whether it is true."""

    name: str
    is_true: bool

    @property
    def statement(self) -> Statement:
        return STATEMENTS[self.name]


Ask = Callable[[Query[Any, Any]], Release[Any]]


def hard_tables(seed: int = 1) -> list[HardTable]:
    """The tables, the same every time."""
    plane = np.column_stack([_bell(seed), _bell(seed + 1)])
    side = math.isqrt(RECORDS)
    lattice = np.array([(at // side, at % side) for at in range(side * side)], dtype=float)
    clusters = np.repeat(np.arange(RECORDS // 6, dtype=float)[:, None] * [9.0, 7.0], 6, axis=0)
    repeats = np.where(np.arange(RECORDS) % 20 > 0, 45.0, 45.0 + 8 * _bell(seed + 2))
    unscaled = np.column_stack(
        [np.arange(RECORDS, dtype=float), 60 + 9 * _bell(seed + 3), exponentials((RECORDS,), seed)]
    )
    uniform = np.column_stack([np.exp(-exponentials((RECORDS,), seed + at)) for at in (4, 5)])
    few = plane.copy()
    few[pick_rows(RECORDS, 30, seed)] *= 6
    wards = pick_labels(RECORDS, ("north", "south", "west"), seed=seed)
    return [
        HardTable(name="bell", why="an ordinary cloud", values=plane, radius=0.4),
        HardTable(name="planted", why="thirty records far out", values=few, radius=0.6),
        HardTable(name="uniform", why="evenly spread", values=uniform, radius=0.05),
        HardTable(
            name="unscaled", why="an identifier, years and milligrams", values=unscaled, radius=1.0, is_scaled=False
        ),
        HardTable(name="lattice", why="all records alike", values=lattice, radius=1.1),
        HardTable(name="micro-clusters", why="groups of six, no outlier", values=clusters, radius=0.5),
        HardTable(
            name="repeats", why="19 of 20 values equal", values=np.column_stack([repeats, plane[:, 0]]), radius=0.4
        ),
        HardTable(name="groups", why="three wards alike", values=plane, radius=0.4, groups=tuple(wards)),
    ]


REAL_TABLES: Final[Mapping[str, str]] = {
    "Pima": "adbench/29_Pima.npz",
    "thyroid": "adbench/38_thyroid.npz",
    "mammography": "adbench/23_mammography.npz",
    "shuttle": "adbench/32_shuttle.npz",
}


def real_tables(say: Callable[[str], None]) -> Iterator[HardTable]:
    """The first records of real tables, each column divided by its spread; a table that is absent is skipped with the
    reason."""
    for name, place in REAL_TABLES.items():
        try:
            with np.load(find_file(place)) as stored:
                values = stored["X"][:REAL_RECORDS].astype(np.float64)
        except SourceError as refusal:
            say(f"{name} is skipped: {refusal}")
            continue
        spreads = values.std(axis=0)
        values = values[:, spreads > 0] / spreads[spreads > 0]
        yield HardTable(name=name, why=f"{len(values):,} real records", values=values, radius=0.4)


def _bell(seed: int) -> Floats:
    return spread_numbers(RECORDS, center=0.0, spread=1.0, seed=seed, share=0.0)


# What is said, and whether it is so


def check_count(here: HardTable, ask: Ask) -> Iterator[Check]:
    """The upper end, the noise, both ends where they are proved, and the conditions."""
    query = Count(neighbours=NEIGHBOURS, radius=here.radius, loss=Loss("1"))
    truth, made = count_outliers(here.values, here.radius, NEIGHBOURS), ask(query)
    plain = OneSidedCount(neighbours=NEIGHBOURS, radius=here.radius, loss=Loss("1"))
    capped = plain.as_released(made.extras, made.facts)
    bare = exact_steps(here.values, here.radius, NEIGHBOURS, made.extras["slack"], normalise=True) / 128
    width = capped.noise(len(here.values), here.dimension).half_width() + 0.5
    yield Check(name="at most", is_true=truth <= made.extras["at_most"])
    yield Check(name="noise", is_true=abs(made.value - min(max(bare, 0), len(here.values))) <= width)
    yield _check_scales(here, made)
    both = ask(replace(query, interval="two-sided"))
    low, high = both.interval or (0, 0)
    yield Check(name="both ends", is_true=low <= truth <= high)
    yield Check(name="any", is_true=truth > 0 or not both.extras["any"]["says"])
    narrow = ask(replace(query, neighbours=12, slack=3))
    yield Check(name="slack", is_true=any("below the 12 neighbours" in words for words in _conditions(narrow)))


def _conditions(made: Release[Any]) -> tuple[str, ...]:
    assert made.quality is not None
    return made.quality.conditions


def _check_scales(here: HardTable, made: Release[Any]) -> Check:
    """Columns without a scale, and identifiers, are named before and after."""
    assert made.quality is not None
    found = made.quality.conditions
    is_true = here.is_scaled or (
        made.quality.verdict in (CHECK_FIRST, "mostly noise")
        and any("no column has a scale" in words for words in found)
        and any("identifier" in words for words in found)
    )
    return Check(name="unscaled", is_true=is_true)


def check_share(here: HardTable, ask: Ask) -> Iterator[Check]:
    """A share that is missed by far is a condition, whatever radius was drawn."""
    share, wanted = Fraction(1, 10), len(here.values) / 10
    counted = ask(Count(neighbours=NEIGHBOURS, share=share, loss=Loss("1")))
    drawn = ask(Radius(neighbours=NEIGHBOURS, share=share, loss=Loss("1")))
    for made, radius in ((counted, counted.extras["radius"]), (drawn, drawn.value["radius"])):
        truth = count_outliers(here.values, radius, NEIGHBOURS)
        is_named = any("was asked for" in words for words in _conditions(made))
        yield Check(name="share", is_true=is_named or truth <= 6 * wanted)  # further off than radius and noise can be
        yield Check(name="at most", is_true=truth <= made.extras["at_most"])
    yield from _check_mass(here, ask)


def _check_mass(here: HardTable, ask: Ask) -> Iterator[Check]:
    """The outlier mass at a drawn radius, and a radius that nothing verifies."""
    query = Radius(neighbours=NEIGHBOURS, share=Fraction(1, 10), graded=True, loss=Loss("1"))
    made, n = ask(query), len(here.values)
    tally, law = query.tally(n, here.dimension), query.count_noise(n, here.dimension)
    mass = tally.steps(here.values, made.value["radius"]) / tally.unit
    yield Check(name="mass at a radius", is_true=abs(made.value["mass"] - mass) <= law.half_width() + 0.5)
    bare = replace(query, verify=False)
    radius = ask(bare).value["radius"]
    place = next(at for at in range(len(bare.grid)) if middle_radius(bare.grid, at) == radius)
    curve = outlier_curve(here.values, bare.grid, tally)
    errors, target = radius_errors(curve, target_steps(bare.share, n, tally)), bare.off(n, here.dimension)
    is_crossed = bool((errors == 0).any())
    yield Check(name="share, conditional", is_true=not is_crossed or errors[place] / tally.unit <= target)


def check_groups(here: HardTable, ask: Ask) -> Iterator[Check]:
    """The upper end of every group, flags of the group that has most, and a ranking only where there is one."""
    made = ask(Count(neighbours=NEIGHBOURS, radius=here.radius, by=("ward",), loss=Loss("1")))
    wards = np.array(here.groups)
    truth = {ward: count_outliers(here.values[wards == ward], here.radius, NEIGHBOURS) for ward in sorted(set(wards))}
    ends = zip(made.value, made.extras["intervals"], strict=True)
    yield Check(name="groups", is_true=all(truth[row["ward"]] <= high for row, (_, high) in ends))
    highest = made.extras["highest"]
    is_first = highest is None or truth[highest["group"]] == max(truth.values())
    names = list(truth)
    test = made.compare(names[0], names[1])
    is_apart = truth[names[0]] != truth[names[1]] or not test.is_beyond_noise
    yield Check(name="highest", is_true=is_first)
    yield Check(name="highest", is_true=is_apart)
    fitted = ask(Detector(loss=Loss("1"), contamination=Fraction(1, 10), columns=here.columns))
    flagged = Model.of(fitted).predict(here.table()) > 0
    found = ask(Flags(detector=fitted.ledger_id, by=("ward",), loss=Loss("1")))
    most = max(found.value, key=lambda row: int(row["flagged"]))
    low, high = found.extras["highest_interval"]
    yield Check(name="flags", is_true=low <= int(flagged[wards == most["ward"]].sum()) <= high)
    leader, sums = found.extras["highest"], {ward: int(flagged[wards == ward].sum()) for ward in truth}
    yield Check(name="most flags", is_true=leader is None or sums[leader["group"]] == max(sums.values()))
    yield _check_names(here, fitted)
    yield _check_tally(here, fitted, flagged)


def _check_names(here: HardTable, fitted: Release[Any]) -> Check:
    """Every name stands within the ranks that a list states, which follow from its parameters."""
    query = Who(detector=fitted.ledger_id, most=10, above=-1e9, loss=Loss("1"))
    view = query.take_releases(query.view(here.table()), {fitted.ledger_id: fitted.to_dict()}.get)
    scores = Model.of(fitted).decision_function(here.table())
    ranks = [
        1 + int((scores > scores[row["record"]]).sum()) for row in query.answer(view, system_noise())
    ]  # a tie takes the first rank of those that tie
    furthest = furthest_rank(query.most, query.loss.epsilon)
    return Check(name="names", is_true=all(rank <= furthest for rank in ranks))


def _check_tally(here: HardTable, fitted: Release[Any], flagged: Any) -> Check:
    """The interval of the last total, with a column of the table as if it were a time."""
    name, table = here.columns[0], here.table()
    query = Tally(detector=1, time=name, start="-100", every="10", periods=20, loss=Loss.zcdp("1/2"))
    view = query.take_releases(query.view(table), {1: fitted.to_dict()}.get)
    reading = query.reading(query.answer(view, system_noise()), Facts.of(view, query.cost()))
    low, high = reading.extras["last_interval"]
    times = table.cells(name)
    truth = int((flagged & (times >= -100) & (times < 100)).sum())
    return Check(name="tally", is_true=low <= truth <= high)


def check_subspaces(here: HardTable, ask: Ask) -> Iterator[Check]:
    """A name stands out only if its score is above the median of the others; its count is at most H."""
    columns = here.columns[:6]
    query = Subspaces(
        neighbours=NEIGHBOURS, radius=here.radius, upto=2, top=1, counts=True, columns=columns, loss=Loss("1")
    )
    made = ask(query)
    family, values = query.family.subspaces(columns), here.values[:, : len(columns)]
    found = scores(values, family, here.radius, NEIGHBOURS, score="mass")
    named = family.index(tuple(columns.index(name) for name in made.value[0]["columns"]))
    others = sorted(score for at, score in enumerate(found) if at != named)
    is_clear = found[named] > others[(len(others) - 1) // 2]
    is_said = made.value[0]["lead"] > made.extras["lead_within"]
    yield Check(name="stands out", is_true=is_clear or not is_said)
    truth = count_outliers(values[:, list(family[named])], here.radius, NEIGHBOURS)
    yield Check(name="counts of subspaces", is_true=truth <= made.extras["intervals"][0][1])


class _Witness:
    """The system's noise, which remembers the pairing it drew: for a study, never for an answer."""

    def __init__(self) -> None:
        self.noise, self.order = system_noise(), np.zeros(0, dtype=np.int64)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.noise, name)

    def sample(self, bound: int, size: int) -> Any:
        self.order = sample(self.noise, bound, size)
        return self.order


def check_scale(here: HardTable, ask: Ask) -> Iterator[Check]:
    """Spreads beside their quantiles, and shares of equal pairs, of the pairing that the answer drew."""
    query, witness = Scale(loss=Loss("3")), _Witness()
    points = query.view(here.table())
    value = query.answer(points, cast("Noise", witness))
    half = len(witness.order) // 2
    pairs = witness.order[:half], witness.order[half : 2 * half]
    share, groups = query.share_for(points.n, points.dimension), query.groups(points.columns)
    facts = Facts.of(points, query.cost())
    errors = query.errors(points, groups, pairs)
    scales = [float(column_facts(points, at).scale) for at in range(points.dimension)]
    places = [
        int(bins_of(spread / scale * DIVISORS[share])) - bins_within(points, [at]).start
        for at, (spread, scale) in enumerate(zip(value["scale"].values(), scales, strict=True))
    ]
    missed = max(int(row[place]) for row, place in zip(errors, places, strict=True))
    yield Check(name="spreads", is_true=missed <= query.off(points.n, points.dimension))
    if "equal_pairs" in value:
        reach = query.reading(value, facts).extras["equal_pairs_within"]
        zeros = [float(count[0]) / half for count in gap_counts(points, groups, pairs)]
        off = [abs(told - zero) for told, zero in zip(value["equal_pairs"].values(), zeros, strict=True)]
        yield Check(name="equal pairs", is_true=max(off) <= reach + 1e-4)


def check_profile(here: HardTable, ask: Ask) -> Iterator[Check]:
    """All radii at once: the noise, and the upper edge beside the exact numbers."""
    query = Profile(neighbours=NEIGHBOURS, radii=(0.1, 0.2, 0.4, 0.8), loss=Loss("1"))
    made, n = ask(query), len(here.values)
    tally = replace(query.tally(n, here.dimension), slack=made.extras["slack"])
    bare, reach = outlier_curve(here.values, query.grid, tally) / tally.unit, made.extras["reach"]
    truth = [count_outliers(here.values, radius, NEIGHBOURS) for radius in query.grid]
    near = all(abs(count - exact) <= reach for count, exact in zip(made.value["outliers"], bare, strict=True))
    below = all(exact <= count + reach for count, exact in zip(made.value["outliers"], truth, strict=True))
    yield Check(name="curve", is_true=near and below)


def check_detector(here: HardTable, ask: Ask) -> Iterator[Check]:
    """The number of fitted records that are flagged; the range of a release is cut to the table."""
    query = Detector(loss=Loss("1"), contamination=Fraction(1, 10), columns=here.columns)
    made, n = ask(query), len(here.values)
    off, wanted = query.off(n, here.dimension), n // 10
    flagged = int(Model.of(made).predict(here.table()).sum())
    yield Check(name="flagged", is_true=wanted - off <= flagged <= wanted + off)


def check_streams(seed: int) -> Iterator[Check]:
    """A watch at both sides of its threshold, one of observations as stated, and baselines of the stream."""
    usual: dict[str, Any] = {"threshold": 2.0, "low": -8.0, "high": 8.0, "loss": Loss("4"), "columns": ("x1",)}
    query, stated = Watch(**usual), Watch(**usual, variance=1.0)
    limits = query.plan(n=OBSERVATIONS, dimension=1).options[0].figures
    beside = np.where(np.arange(OBSERVATIONS) % 2 > 0, 2.0, 1.99)
    flags, _ = _watch(query, beside)
    is_kept = _is_near(flags[1::2], limits["found"], above=False) and _is_near(
        flags[::2], limits["alarms"], above=False
    )
    yield Check(name="rates", is_true=is_kept)
    cloud = spread_numbers(OBSERVATIONS, center=0.0, spread=1.0, seed=seed, share=0.0)
    flags, ahead = _watch(stated, cloud)
    outliers = np.abs(cloud) >= 2.0
    is_near = _is_near(flags[outliers], ahead["true_positive_rate"])
    yield Check(name="forecast", is_true=is_near and _is_near(flags[~outliers], ahead["false_positive_rate"]))
    yield _check_baseline(cloud)
    yield _check_buckets(cloud)


def _watch(query: Watch, stream: Floats) -> tuple[NDArray[np.bool_], Mapping[str, Any]]:
    """The flags of one answer, and what it expects of them."""
    points = query.view(Points.from_array(stream[:, None], columns=("x1",)))
    value = query.answer(points, system_noise())
    flags = np.zeros(len(stream), dtype=np.bool_)
    flags[np.array(value["flagged"], dtype=np.int64) - 1] = True
    return flags, query.reading(value, Facts.of(points, query.cost())).extras


def _is_near(flags: NDArray[np.bool_], chance: float, *, above: bool = True, below: bool = True) -> bool:
    """Whether the share of flags is as stated, but for the luck of so many observations."""
    luck = TOLERANCE * math.sqrt(max(chance * (1 - chance), 1e-4) / max(1, len(flags)))
    share = float(flags.mean())
    return (not below or share >= chance - luck) and (not above or share <= chance + luck)


def _check_baseline(stream: Floats) -> Check:
    query = Baseline(low=-8.0, high=8.0, loss=Loss("4"), columns=("x1",))
    points = query.view(Points.from_array(stream[:, None], columns=("x1",)))
    words = query.reading(query.answer(points, system_noise()), Facts.of(points, query.cost())).text
    found = re.findall(r"-?\d[\d.]*(?:e[+-]?\d+)?", words.replace("95 %", ""))
    centre, within, _, low, high = map(float, found)
    is_near = abs(centre - float(stream.mean())) <= within + 1e-3 and low <= float(stream.std()) + 1e-3
    return Check(name="usual", is_true=is_near and float(stream.std()) <= high + 1e-3)


def _check_buckets(stream: Floats) -> Check:
    """One bucket, which no neighbour smooths."""
    query = Baseline(low=-8.0, high=8.0, loss=Loss("4"), columns=("x1",), season="always")
    points = query.view(Points.from_array(stream[:, None], columns=("x1",)))
    value = query.answer(points, system_noise())
    quality = query.reading(value, Facts.of(points, query.cost())).quality
    assert quality is not None
    within = float(re.findall(r"within (\d[\d.]*) spreads", quality.rule)[0]) + 0.005  # as it is rounded
    spread = float(value["spread"][0][0])
    return Check(name="buckets", is_true=abs(value["centre"][0][0] - float(stream.mean())) <= within * spread)


def check_explain(seed: int) -> Iterator[Check]:
    """The record that stands out, by its exact contexts."""
    table, size = payroll(PAYROLL_RECORDS, seed=seed), PAYROLL_RECORDS
    labels = {name: sorted(set(map(str, table[name]))) for name in ("job", "site")}
    domain = Schema.of(["job", "site", "salary"], categories=labels, bounds={"salary": (0, 500_000)})
    data = load(
        _pa.table({name: list(map(str, table[name])) for name in labels} | {"salary": table["salary"]}), schema=domain
    )
    query = Explain(record="17", metric="salary", context=("job", "site"), domain=domain, size=size, loss=Loss("4"))
    value = query.answer(query.view(data), system_noise())
    codes = np.column_stack([[labels[name].index(str(cell)) for cell in table[name]] for name in labels])
    valid = valid_contexts(
        codes, [len(names) for names in labels.values()], table["salary"], 17, query.detector_for(size)
    )
    yield Check(name="context", is_true=all(item["bits"] in valid for item in value))


def check_plan(here: HardTable) -> Check:
    """A plan is useful only where nothing is to be checked first."""
    table, query = here.table(), Count(neighbours=NEIGHBOURS, radius=here.radius, loss=Loss("1"))
    plan = plan_for(query, project(query, table))
    return Check(name="useful", is_true=here.is_scaled or plan.grade != "useful")


CHECKS: Final[tuple[Callable[[HardTable, Ask], Iterator[Check]], ...]] = (
    check_count,
    check_share,
    check_subspaces,
    check_scale,
    check_profile,
    check_detector,
)


def check_all(here: HardTable) -> Iterator[Check]:
    """Every statement about one table, released once."""
    table = here.table()
    with TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.db") as ledger:
        ledger.grant(table.name, PURSE, by="study", reason="a made-up table")

        def ask(query: Query[Any, Any]) -> Release[Any]:
            if not here.is_scaled and getattr(query, "columns", here.columns) is None:
                settings: Any = {"columns": here.columns}  # an identifier takes part only where it is named
                query = replace(query, **settings)
            return release(query, table, ledger, analyst="study", force=True)

        yield check_plan(here)
        for check in (check_groups,) if here.groups else CHECKS:
            yield from check(here, ask)


def check_beside(seed: int) -> Iterator[Check]:
    """Statements about streams and single records, released once."""
    yield from check_streams(seed)
    yield from check_explain(seed)


def count_false(checks: Iterable[Check]) -> dict[str, tuple[int, int]]:
    """For each statement, in how many runs it was made and in how many it was false."""
    found: dict[str, tuple[int, int]] = {}
    for check in checks:
        made, false = found.get(check.name, (0, 0))
        found[check.name] = made + 1, false + (not check.is_true)
    return found


def study(folder: Path, quick: bool, say: Callable[[str], None]) -> Iterator[Path]:
    """Write the table of all statements and its page into `folder`; quick: four runs instead of forty."""
    runs, rows, every = FEW_RUNS if quick else RUNS, [], list[Check]()
    tables: dict[str, Callable[[int], Iterator[Check]]] = {
        here.name: partial(_check_table, here) for here in (*hard_tables(), *real_tables(say))
    }
    tables["streams and records"] = check_beside
    for name, check in tables.items():
        say(name)
        found = [made for run in range(runs) for made in check(run)]
        every += found
        rows += _rows(name, found)
    heading = ("table", "query", "statement", "runs", "false", "allowed")
    section = Section(
        name="statements",
        title=TITLE,
        caption=LEAD,
        sheet=Sheet(heading=heading, rows=(*_rows("all", every), *rows)),
        panels=(),
    )
    yield from leave(folder, section, say)
    yield write_page(folder / "statements.html", TITLE, LEAD, [section])


def _check_table(here: HardTable, run: int) -> Iterator[Check]:
    return check_all(here)


def _rows(table: str, checks: list[Check]) -> list[tuple[Any, ...]]:
    return [
        (table, STATEMENTS[name].query, STATEMENTS[name].says, made, false, f"{STATEMENTS[name].allowed:.1%}")
        for name, (made, false) in count_false(checks).items()
    ]
