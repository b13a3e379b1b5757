"""How many of the names on a list are right: on public tables with known outliers, everything inside of ε.

A quarter of ε fits the detector, without a threshold, and three quarters toss the coins. A name is right if the table
calls its record an outlier; the share is of the names that were asked for, so that one that is missing counts as wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from statistics import mean
from typing import Final

import numpy as np

from studies.detector import Flags, Floats, LabelledTable, table_of
from wallflower.data import Points
from wallflower.errors import SourceError
from wallflower.machine.heavy import pyarrow_csv as _csv
from wallflower.machine.lazy import load
from wallflower.papers.data.tables import find_file
from wallflower.papers.okada2015.names import Precision, bound_names, fit_model, measure_names
from wallflower.papers.page import Section, Sheet, leave, write_page
from wallflower.privacy import Loss

EPSILONS: Final = ("0.1", "0.5", "1")
FITS, FEW_FITS = 40, 4
NO_PRIVACY: Final = Loss("1000000")
WANTED: Final = {"mammography": 20, "shuttle": 20, "adult": 20, "WDBC": 5}
ADULT_COLUMNS: Final = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
ADULT_RADIUS: Final = 1.0  # in standard deviations
ADULT_SHARE: Final = 0.01
TITLE: Final = "How many of the names on a list are right"
LEAD: Final = (
    "A detector was fitted with a quarter of ε and a list was made with the rest; the labels of the table say which "
    "names are right. The bound is the largest share that any mechanism can reach with differential privacy for "
    "everybody at ε = 1, if records are independent."
)


def study(folder: Path, quick: bool, say: Callable[[str], None]) -> Iterator[Path]:
    """Write the table and the page into `folder`; quick: the small table only, and few fits."""
    rows = []
    for name in ("WDBC",) if quick else WANTED:
        try:
            rows.append(_row(labelled(name), FEW_FITS if quick else FITS))
        except SourceError as reason:
            say(f"skipped: {reason}")
    heading = ("table", "records", "outliers", "names", *(f"ε = {epsilon}" for epsilon in EPSILONS))
    sheet = Sheet(heading=(*heading, "standard error", "no privacy", "plain DP at ε = 1, at most"), rows=tuple(rows))
    section = Section(
        name="right-names",
        title="Share of the wanted names that are right",
        caption="Lists of `who` without a bar. The last column is a bound, not a mechanism.",
        sheet=sheet,
    )
    yield from leave(folder, section, say)
    yield write_page(folder / "who.html", TITLE, LEAD, [section])


def labelled(name: str) -> LabelledTable:
    """A table with its outliers; of adult, those with the fewest records near them."""
    return adult() if name == "adult" else table_of(name)


def adult() -> LabelledTable:
    """Five columns of numbers of UCI Adult; the outliers are the 1 % with the fewest records within a radius."""
    table = _csv.read_csv(find_file("adult/adult.csv.gz"))
    values = np.column_stack([table[name].to_numpy().astype(np.float64) for name in ADULT_COLUMNS])
    scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    sites, place = np.unique(scaled, axis=0, return_inverse=True)
    counts = np.bincount(place.ravel())
    near = np.array(
        [counts[each].sum() for each in load("scipy.spatial").cKDTree(sites).query_ball_point(sites, ADULT_RADIUS)]
    )
    crowd = near[place.ravel()]
    outliers: Flags = np.zeros(len(values), dtype=np.bool_)
    outliers[np.argsort(crowd, kind="stable")[: round(ADULT_SHARE * len(values))]] = True
    return LabelledTable(name="adult", values=values, outliers=outliers)


def measure(table: LabelledTable, most: int, epsilon: Fraction, fits: int) -> Precision:
    """The share of right names over fits, each with several lists."""
    return measure_names(table.values, table.outliers, most, epsilon, fits)


def best_without_privacy(table: LabelledTable, most: int, fits: int) -> float:
    """The share of right names among the first ones of a detector whose noise is negligible."""
    points, shares = Points.from_array(table.values), []
    for _ in range(fits):
        scores: Floats = fit_model(points, NO_PRIVACY).score(points.values)
        shares.append(float(table.outliers[np.argsort(-scores, kind="stable")[:most]].mean()))
    return mean(shares)


def _row(table: LabelledTable, fits: int) -> tuple[str | float, ...]:
    most, outliers = WANTED[table.name], int(table.outliers.sum())
    found = [measure(table, most, Fraction(epsilon), fits) for epsilon in EPSILONS]
    return (
        table.name,
        len(table.values),
        outliers,
        most,
        *(precision.value for precision in found),
        max(precision.error for precision in found),
        best_without_privacy(table, most, fits),
        bound_names(outliers / len(table.values)),
    )
