"""People in categories, each with one number: the registers in which [Sha21] explains outliers, as near as can be had.

The paper prints how many records and values it took (6.1, 6.5, 6.7), not which. The lists below were read once off the
public registers, by the rules stated, and are written down as a code list would be. Made-up salaries stand in where the
registers are missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from wallflower.machine.heavy import pyarrow_parquet as _parquet
from wallflower.papers.data.tables import find_file
from wallflower.synthetic import Floats, Ints, salaries

Values = Mapping[str, tuple[Any, ...]]  # of every attribute, in the order of contexts

# The last eight years there are. Of titles and employers, the nine and the eight with most records together; a name is
# what stands before " / ", where a second language or a second office follows.
SALARIES: Final[Values] = {
    "Job Title": (
        "Assistant Crown Attorney",
        "Assistant Professor",
        "Associate Professor",
        "Counsel",
        "Electrical & Control Technician",
        "Mechanical Technician",
        "Nuclear Operator",
        "Professor",
        "Senior Technical Engineer/Officer",
    ),
    "Employer": (
        "Attorney General",
        "McMaster University",
        "Ontario Power Generation",
        "Ryerson University",
        "University of Guelph",
        "University of Waterloo",
        "University of Western Ontario",
        "York University",
    ),
    "Calendar Year": tuple(range(2006, 2014)),
}
# The most frequent values of each, in the order of the letters.
HOMICIDES: Final[Values] = {
    "agency_type": ("Municipal police", "Primary state LE", "Sheriff", "Tribal"),
    "state_abbr": ("AZ", "CO", "NM", "NV", "OR", "WA"),
    "weapon": (
        "Blunt object - hammer, club, etc",
        "Firearm, type not stated",
        "Handgun - pistol, revolver, etc",
        "Knife or cutting instrument",
        "Other or type unknown",
        "Personal weapons, includes beating",
    ),
}
# Fourteen, and twelve, of these values: the most frequent of each attribute, split among the attributes so that every
# value occurs and as near as possible to 11,000 and 28,000 records are left.
FEWER_SALARIES: Final[Values] = {
    "Job Title": tuple(title for title in SALARIES["Job Title"] if title != "Mechanical Technician"),
    "Employer": ("Attorney General", "Ontario Power Generation", "York University"),
    "Calendar Year": (2011, 2012, 2013),
}
FEWER_HOMICIDES: Final[Values] = {
    "agency_type": ("Municipal police", "Primary state LE", "Sheriff"),
    "state_abbr": ("AZ", "CO", "WA"),
    "weapon": HOMICIDES["weapon"],
}
MIN_PUBLIC_SALARY: Final = 100_000.0  # incomes above this are public
UNKNOWN: Final = 999  # an age
SECOND: Final = " / "  # before a second language, or a second office


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Register:
    """Records as codes in public domains with a metric, its public bounds, and a public bound on their number."""

    name: str
    codes: Ints
    sizes: tuple[int, ...]
    metric: Floats
    low: float
    high: float
    most: int

    @property
    def n(self) -> int:
        return len(self.metric)


def ontario(values: Values = SALARIES) -> Register:
    """Public salaries of Ontario by title, employer and year; only those above 100,000 dollars."""
    metric = "Salary Paid"
    kept = [("Calendar Year", "in", values["Calendar Year"]), (metric, ">", MIN_PUBLIC_SALARY)]
    table = _read_table("ontario_salary/ontario_salary_1996_2013.parquet", [*values, metric], kept)
    return _register("Ontario salaries", table, values, metric, (MIN_PUBLIC_SALARY, 300_000.0), most=52_000)


def homicides(values: Values = HOMICIDES) -> Register:
    """Homicides in western states from 1976 to 2018, by agency, state and weapon; the metric is the victim's age."""
    metric = "vic_age"
    table = _read_table(
        "homicide/map_homicide_10states_1976_2018.parquet", [*values, metric], [(metric, "!=", UNKNOWN)]
    )
    return _register("homicides", table, values, metric, (0.0, 100.0), most=45_000)


def fewer_salaries() -> Register:
    """The reduced salaries of 6.5 and 6.7: 14 values in all."""
    return replace(ontario(FEWER_SALARIES), name="reduced salaries", most=12_000)


def fewer_homicides() -> Register:
    """The reduced homicides of 6.7: 12 values in all."""
    return replace(homicides(FEWER_HOMICIDES), name="reduced homicides", most=30_000)


def synthetic_salaries() -> Register:
    """Made-up salaries, 9 × 8 × 8."""
    return _synthetic_register("made-up salaries", 51_000, (9, 8, 8))


def fewer_synthetic_salaries() -> Register:
    """Made-up salaries, 8 × 3 × 3."""
    return _synthetic_register("fewer made-up salaries", 11_000, (8, 3, 3))


def _synthetic_register(name: str, n: int, sizes: tuple[int, ...]) -> Register:
    codes, metric, _ = salaries(n, sizes)
    return Register(name=name, codes=codes, sizes=sizes, metric=metric, low=50_000.0, high=400_000.0, most=n)


def _read_table(file: str, columns: list[str], kept: list[tuple[str, str, Any]]) -> Any:
    return _parquet.read_table(find_file(file), columns=columns, filters=kept)


def _register(
    name: str, table: Any, values: Values, metric: str, bounds: tuple[float, float], *, most: int
) -> Register:
    """The records that have one of the values in every attribute, in rising order of the metric."""
    codes = np.stack([_codes(table.column(each), known) for each, known in values.items()], axis=1)
    numbers = np.asarray(table.column(metric).to_numpy(), dtype=np.float64)
    kept = np.flatnonzero((codes >= 0).all(axis=1))
    kept = kept[np.argsort(numbers[kept], kind="stable")]
    return Register(
        name=name,
        codes=codes[kept],
        sizes=tuple(map(len, values.values())),
        metric=numbers[kept],
        low=bounds[0],
        high=bounds[1],
        most=most,
    )


def _codes(column: Any, known: tuple[Any, ...]) -> Ints:
    """The places of a column's values among those known, -1 for others; decided once for each that occurs."""
    places = {value: place for place, value in enumerate(known)}
    found = column.combine_chunks().dictionary_encode()
    named = (value.partition(SECOND)[0] if isinstance(value, str) else value for value in found.dictionary.to_pylist())
    codes: Ints = np.array([places.get(value, -1) for value in named])[found.indices.to_numpy()]
    return codes
