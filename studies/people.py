"""The same question for a row and for a person, on real rows that repeat: what is booked, and how often intervals hold.

    WALLFLOWER_DATA=DIRECTORY python -m studies.people [--runs 40]

Homicide reports have a row for each pair of a victim and an offender, up to ten of one incident. An incident takes the
part of a person here. Without the data, visits of synthetic patients with up to twenty rows are asked.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

import wallflower as wf
from wallflower.data import Column, load
from wallflower.errors import SourceError
from wallflower.ledger import Ledger
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.machine.heavy import pyarrow_compute as _compute
from wallflower.machine.heavy import pyarrow_parquet as _parquet
from wallflower.papers.data.tables import find_file
from wallflower.privacy import Loss
from wallflower.queries.count.exact import count_outliers
from wallflower.synthetic import mixture, pick_labels

HOMICIDE: Final = "homicide/map_homicide_10states_1976_2018.parquet"
UNKNOWN_AGE: Final = 999
EPSILON: Final = "0.5"
RUNS: Final = 40
MAX_ROWS: Final = 2


@dataclass(frozen=True, slots=True)
class RepeatedRows:
    """A table in which people have several rows, and a question about its outliers."""

    name: str
    rows: Any
    id: str
    columns: tuple[Column, ...]
    rollup: dict[str, str]
    neighbours: int
    radius: float

    def schema(self, person: wf.Person | None) -> wf.Schema:
        return wf.Schema(columns=self.columns, person=person, clip=True)

    def units(self) -> Iterator[tuple[str, wf.Schema]]:
        """What is protected, and the schema that declares it."""
        yield "row", self.schema(None)
        yield "person, one record", self.schema(wf.Person(id=self.id, rollup=self.rollup))
        yield f"person, at most {MAX_ROWS} rows", self.schema(wf.Person(id=self.id, max_rows=MAX_ROWS))


@dataclass(frozen=True, slots=True)
class Result:
    """What one unit of protection costs, and how the answers lie about the exact count."""

    table: str
    unit: str
    records: int
    exact: int | None  # None: each answer is about other rows
    mean_answer: float
    covered: int
    runs: int
    booked: str
    promise: str

    def __str__(self) -> str:
        exact = "varies" if self.exact is None else f"{self.exact:,}"
        held = "" if self.exact is None else f"{self.covered} of {self.runs}"
        cells = (self.table, self.unit, f"{self.records:,}", exact, f"{self.mean_answer:,.1f}", held, self.booked)
        return "| " + " | ".join((*cells, self.promise)) + " |"


HEADER: Final = "| table | unit | records | exact | mean answer | interval holds | booked ε | promise |\n|" + "---|" * 8


def homicide() -> RepeatedRows:
    """Victims' ages and years by incident; incidents with an unknown age are left out, row by row, beforehand."""
    rows = _parquet.read_table(find_file(HOMICIDE), columns=["mapid", "vic_age", "year"])
    rows = rows.filter(_compute.less(rows["vic_age"], UNKNOWN_AGE))
    columns = (Column("vic_age", low=0, high=99, scale=2.0), Column("year", low=1976, high=2018, scale=1.0))
    rollup = {"vic_age": "max", "year": "first"}
    return RepeatedRows("homicide reports", rows, "mapid", columns, rollup, neighbours=5, radius=0.9)


def visits() -> RepeatedRows:
    """Visits of 3,000 synthetic patients, of whom some have twenty."""
    counts = [int(count) for count in pick_labels(3000, ["1", "2", "3", "20"], seed=4)]
    usual = mixture(3000, 2, seed=1, share=0.03, spread=6.0)
    person = np.repeat(np.arange(3000), counts)
    names = _pa.array([f"P{number:05d}" for number in person])
    rows = _pa.table({"patient_no": names, "pulse": usual[person, 0], "temperature": usual[person, 1]})
    columns = (Column("pulse", low=-50, high=50), Column("temperature", low=-50, high=50))
    rollup = {"pulse": "max", "temperature": "mean"}
    return RepeatedRows("synthetic visits", rows, "patient_no", columns, rollup, neighbours=5, radius=0.4)


def measure(table: RepeatedRows, runs: int) -> Iterator[Result]:
    """Ask the question for each unit of protection, many times, with a ledger of its own."""
    names = tuple(column.name for column in table.columns)
    for unit, schema in table.units():
        with TemporaryDirectory() as folder:
            book = Ledger.open(Path(folder) / "ledger.db")
            data = wf.open(table.rows, schema=schema, name="people", ledger=book)
            book.grant("people", Loss(runs * MAX_ROWS), by="study", reason="runs of a study")
            releases = [
                data.count(
                    neighbours=table.neighbours,
                    radius=table.radius,
                    columns=names,
                    interval="two-sided",
                    epsilon=EPSILON,
                    force=True,
                )
                for _ in range(runs)
            ]
        exact = None
        if schema.person is None or schema.person.rollup is not None:
            records = load(table.rows, schema=schema).points(names).values
            exact = count_outliers(records, table.radius, table.neighbours)
        covered = sum(exact is not None and _covers(release.interval, exact) for release in releases)
        first = releases[0]
        yield Result(
            table=table.name,
            unit=unit,
            records=first.facts.n,
            exact=exact,
            mean_answer=float(np.mean([release.value for release in releases])),
            covered=covered,
            runs=runs,
            booked=str(first.booked),
            promise=str(first.protects),
        )


def _covers(interval: tuple[float, float] | None, number: int) -> bool:
    return interval is not None and interval[0] <= number <= interval[1]


def tables() -> Iterator[RepeatedRows]:
    try:
        yield homicide()
    except SourceError as error:
        sys.stdout.write(f"Homicide reports were not measured: {error}\n")
    yield visits()


def main() -> None:
    """Print the table of results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=RUNS, help="times each question is asked")
    runs = parser.parse_args().runs
    sys.stdout.write(f"{HEADER}\n")
    for table in tables():
        for result in measure(table, runs):
            sys.stdout.write(f"{result}\n")


if __name__ == "__main__":
    main()
