"""People in categories, each with one number: the tables in which [Sha21] explains outliers, or ones like them.

The text of the paper was not at hand, so which values it took is not known. The lists below were read once off these
public registers, by the rules stated, and are written down as a code list would be. Made-up salaries stand in where the
registers are missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from wallflower.lazy import Lazy
from wallflower.papers.data.tables import find_file
from wallflower.queries.explain.space.contexts import Domain
from wallflower.synthetic import Floats, Ints, salaries

if TYPE_CHECKING:
    import pyarrow.parquet as _parquet
else:
    _parquet = Lazy("pyarrow.parquet")

# From 2006 to 2013: the nine most frequent titles at these employers, who are the eight with most records of these
# titles; of several choices of which that is true, the one with most records.
SALARIES: Final[Mapping[str, tuple[Any, ...]]] = {
    "Job Title": (
        "Assistant Professor",
        "Associate Professor",
        "Detective",
        "Electrical & Control Technician",
        "Mechanical Technician",
        "Nuclear Operator",
        "Police Constable",
        "Professor",
        "Senior Technical Engineer/Officer",
    ),
    "Employer": (
        "City of Toronto - Police Service",
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
HOMICIDES: Final[Mapping[str, tuple[Any, ...]]] = {
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
YEARS: Final = (1980, 2014)  # of the homicide records the paper used
UNKNOWN: Final = 999  # an age


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


def ontario() -> Register:
    """Public salaries of Ontario, 9 titles × 8 employers × 8 years; only those from 100,000 dollars on are listed."""
    table = _read("ontario_salary/ontario_salary_1996_2013.parquet", SALARIES, "Salary Paid")
    return _register("Ontario salaries", table, SALARIES, "Salary Paid", (100_000.0, 300_000.0), most=50_000)


def homicides() -> Register:
    """Homicides in western states, 4 kinds of agency × 6 states × 6 weapons; the metric is the victim's age."""
    file = "homicide/map_homicide_10states_1976_2018.parquet"
    first, last = YEARS
    known = [("vic_age", "!=", UNKNOWN), ("year", ">=", first), ("year", "<=", last)]
    table = _read(file, HOMICIDES, "vic_age", known)
    return _register("homicides", table, HOMICIDES, "vic_age", (0.0, 100.0), most=40_000)


def synthetic_salaries() -> Register:
    """Made-up salaries, 9 × 8 × 8."""
    codes, metric, _ = salaries()
    bounds = {"low": 50_000.0, "high": 400_000.0}
    return Register(name="made-up salaries", codes=codes, sizes=(9, 8, 8), metric=metric, most=51_000, **bounds)


def _read(
    file: str, domains: Mapping[str, tuple[Any, ...]], metric: str, kept: list[tuple[str, str, Any]] | None = None
) -> Any:
    among = [(name, "in", values) for name, values in domains.items()]
    return _parquet.read_table(find_file(file), columns=[*domains, metric], filters=among + (kept or []))


def _register(
    name: str,
    table: Any,
    domains: Mapping[str, tuple[Any, ...]],
    metric: str,
    bounds: tuple[float, float],
    *,
    most: int,
) -> Register:
    codes = [Domain(each, values).encode(table.column(each).to_pylist()) for each, values in domains.items()]
    return Register(
        name=name,
        codes=np.stack(codes, axis=1),
        sizes=tuple(map(len, domains.values())),
        metric=np.asarray(table.column(metric).to_numpy(), dtype=np.float64),
        low=bounds[0],
        high=bounds[1],
        most=most,
    )
