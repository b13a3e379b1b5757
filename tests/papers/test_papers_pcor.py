"""The registers of PCOR and the page of its tables: what is read, what is printed, and that both stay beside ours."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wallflower.errors import SourceError
from wallflower.papers import PAPERS, page, pcor2021
from wallflower.papers.data import registers
from wallflower.papers.data.registers import Register
from wallflower.papers.facts import printed_facts, printed_table
from wallflower.papers.pcor2021 import margins
from wallflower.papers.pcor2021.searches import NOT_DP
from wallflower.synthetic import salaries


def made(n: int = 2000, sizes: tuple[int, ...] = (4, 4, 4)) -> Register:
    codes, metric, _ = salaries(n=n, sizes=sizes)
    return Register(name="made-up", codes=codes, sizes=sizes, metric=metric, low=5e4, high=4e5, most=n)


# Registers


@pytest.fixture
def borrowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the right shape, filled with made-up records, some of them of no interest."""
    folder = tmp_path / "data"
    names = [*registers.SALARIES, "Salary Paid"]
    rows = [[*values, 100_000.5 + at] for at, values in enumerate(product(*registers.SALARIES.values()))]
    bilingual = ["Counsel / Avocat", "Attorney General / Procureur général", 2010, 5e5]
    other = [["Dean", *rows[0][1:]], [*rows[0][:3], 100_000.0], [*rows[0][:2], 1999, 2e5]]
    write(folder / "ontario_salary/ontario_salary_1996_2013.parquet", names, [*rows, bilingual, *other])
    names = [*registers.HOMICIDES, "vic_age", "year"]
    rows = [[*values, at % 90, 1990] for at, values in enumerate(product(*registers.HOMICIDES.values()))]
    write(folder / "homicide/map_homicide_10states_1976_2018.parquet", names, [*rows, [*rows[0][:3], 999, 1990]])
    monkeypatch.setenv("WALLFLOWER_DATA", str(folder))
    return folder


def write(path: Path, names: list[str], rows: list[list[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(zip(names, zip(*rows, strict=True), strict=True))), path)


def test_registers_are_read_as_they_are_stored(borrowed: Path) -> None:
    paid, killed = registers.ontario(), registers.homicides()
    assert (paid.n, paid.sizes, killed.n, killed.sizes) == (577, (9, 8, 8), 144, (4, 6, 6))
    assert (paid.codes[0].tolist(), paid.codes[-2].tolist()) == ([0, 0, 0], [8, 7, 7])
    assert paid.codes[-1].tolist() == [3, 0, 4]
    assert killed.metric.max() == 89
    few, fewer = registers.fewer_salaries(), registers.fewer_homicides()
    assert (few.n, few.sizes, fewer.n, fewer.sizes) == (72, (8, 3, 3), 54, (3, 3, 6))


def test_the_values_are_as_many_as_the_paper_prints() -> None:
    facts = printed_facts("pcor2021")
    for values, item in ((registers.SALARIES, "salary attributes"), (registers.HOMICIDES, "homicide attributes")):
        assert [int(word.split()[-1]) for word in facts[item].value.split(";")[0].split(",")] == [
            *map(len, values.values())
        ]
    for values, whole, item in (
        (registers.FEWER_SALARIES, registers.SALARIES, "salary reduced"),
        (registers.FEWER_HOMICIDES, registers.HOMICIDES, "homicide reduced"),
    ):
        assert f"{sum(map(len, values.values()))} values in total" in facts[item].value
        assert all(set(values[name]) <= set(whole[name]) for name in whole)


@pytest.mark.slow
def test_the_real_registers_are_those_described_when_at_hand() -> None:
    try:
        full, reduced = (
            (registers.ontario(), registers.homicides()),
            (registers.fewer_salaries(), registers.fewer_homicides()),
        )
    except SourceError as reason:
        pytest.skip(str(reason))
    assert [register.n for register in (*full, *reduced)] == [51_393, 42_532, 11_320, 27_973]
    for register in (*full, *reduced):
        assert register.n <= register.most
        assert all(len(np.unique(codes)) == size for codes, size in zip(register.codes.T, register.sizes, strict=True))
    assert full[0].metric.min() > full[0].low


# The reproduction

Tables = dict[str, list[dict[str, str]]]
OTHERS = {
    "compared",
    "ratios",
    "chosen",
    "inconsistencies",
    "full-match",
    "searches",
    "detectors",
    "direct",
    "locality",
}
NAMES = OTHERS | {f"table{n}" for n in range(1, 13)} | {f"figure{n}" for n in range(1, 6)} | {"private"}


def reproduced(folder: Path) -> tuple[Tables, str]:
    said: list[str] = []
    folder.mkdir()
    paths = list(PAPERS["pcor2021"](folder, True, said.append))
    assert {path.name for path in paths} == {path.name for path in folder.iterdir()}
    text = (folder / "pcor2021.html").read_text(encoding="utf-8")
    assert text.index("What is printed, and what is here") < text.index('id="table1"') < text.index('id="table2"')
    for word in (NOT_DP, "by chance", "output-constrained"):
        assert word in text
    assert "<script" not in text
    tables = {}
    for path in folder.glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            tables[path.stem] = list(csv.DictReader(file))
    return tables, "\n".join(said)


def check(tables: Tables) -> None:
    for row in (*tables["detectors"], *tables.get("homicides", [])):
        assert float(row["direct_NOT_DP"]) >= 0.8
        assert float(row["by_chance"]) <= float(row["direct_NOT_DP"]) + 1e-9
        assert float(row["bfs_NOT_DP"]) <= float(row["direct_NOT_DP"]) + 0.01
    for row in (*tables["table12"], *tables.get("table13", [])):
        assert 0 <= float(row["our_equal"]) <= float(row["our_shared"]) + 1e-9 <= 1 + 1e-8
    for row in tables["private"]:
        assert 0 <= float(row["utility"]) <= float(row["valid"]) + 1e-9 <= 1 + 1e-8
        assert math.isnan(float(row["valid_then"])) or float(row["valid_then"]) >= 0.99
    for number in (3, 5, 7, 9, 11):
        assert all(0 < float(row["our_utility_NOT_DP"]) <= 1 for row in tables[f"table{number}"])
    check_printed(tables)


def check_printed(tables: Tables) -> None:
    """Every row of the files of printed values is on the page, in columns that say so."""
    for item, fact in printed_facts("pcor2021").items():
        assert [(row["printed"], row["where"]) for row in tables["compared"] if row["item"] == item] == [
            (fact.value, fact.where)
        ]
    for name in ("table1", "inconsistencies"):
        known = [*map(dict, printed_table("pcor2021", name))]
        assert [{key: row[key] for key in known[0]} for row in tables[name]] == known
    for number in range(2, 12):
        for row, printed in zip(tables[f"table{number}"], printed_table("pcor2021", f"table{number}"), strict=True):
            assert next(iter(row.values())) == next(iter(printed.values()))
            if "utility" in printed:
                assert row["printed_utility"] == printed["utility"]
                assert row["printed_ci90"] == f"({printed['ci90_low']}, {printed['ci90_high']})"
            else:
                assert [row[f"printed_t_{which}"] for which in ("min", "max", "avg")] == [
                    printed[f"t_{which}"] for which in ("min", "max", "avg")
                ]
    for number in (12, 13):
        rows = [
            (each["algorithm"], removed, each[f"delta_{removed}"])
            for each in printed_table("pcor2021", f"table{number}")
            for removed in ("1", "5", "10", "25")
        ]
        assert f"table{number}" not in tables or rows == [
            (row["algorithm"], row["removed"], row["printed_match"]) for row in tables[f"table{number}"]
        ]


@pytest.fixture
def one_panel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every picture the first panel is drawn: all of them take a minute, and a heavy test draws them."""
    draw = page.draw_panels
    monkeypatch.setattr(page, "draw_panels", lambda panels, across: draw(panels[:1], 1))


@pytest.mark.slow
@pytest.mark.usefixtures("one_panel")
def test_every_printed_value_stands_beside_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On small made-up registers in the place of the four."""
    for name in ("ontario", "homicides"):
        monkeypatch.setattr(pcor2021, name, partial(named, name, 2000, (4, 4, 4)))
    for name in ("fewer_salaries", "fewer_homicides"):
        monkeypatch.setattr(pcor2021, name, partial(named, name, 900, (3, 3, 3)))
    monkeypatch.setattr(margins, "synthetic_salaries", made)
    monkeypatch.setattr(margins, "salaries", partial(salaries, n=2000, sizes=(4, 4, 4)))
    tables, said = reproduced(tmp_path / "out")
    check(tables)
    assert tables.keys() == NAMES | {"table13", "homicides"}
    assert "skipped" not in said
    pictures = {path.stem for path in (tmp_path / "out").glob("*.png")}
    assert pictures == {"table9", "table11", "table12", "table13", "private"} | {f"figure{n}" for n in range(1, 6)}


def named(name: str, n: int, sizes: tuple[int, ...]) -> Register:
    return replace(made(n, sizes), name=name)


@pytest.mark.slow
@pytest.mark.usefixtures("one_panel")
def test_without_data_the_tables_are_of_made_up_salaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WALLFLOWER_DATA", str(tmp_path / "nowhere"))
    for module in (pcor2021, margins):
        monkeypatch.setattr(module, "synthetic_salaries", made)
    monkeypatch.setattr(pcor2021, "fewer_synthetic_salaries", partial(made, 900, (3, 3, 3)))
    monkeypatch.setattr(margins, "salaries", partial(salaries, n=2000, sizes=(4, 4, 4)))
    tables, said = reproduced(tmp_path / "out")
    check(tables)
    assert tables.keys() == NAMES
    assert said.count("Set WALLFLOWER_DATA") == 2
    missing = [row["item"] for row in tables["compared"] if row["ours"].startswith("none: the register")]
    assert len(missing) == 4
    assert {row["data"] for row in tables["full-match"]} == {"made-up"}


@pytest.mark.heavy
def test_the_registers_are_reproduced_when_at_hand(tmp_path: Path) -> None:
    try:
        registers.ontario(), registers.homicides()
    except SourceError as reason:
        pytest.skip(str(reason))
    tables, said = reproduced(tmp_path / "out")
    check(tables)
    assert tables.keys() == NAMES | {"table13", "homicides"}
    assert "skipped" not in said
    tukey = [row for row in tables["private"] if row["detector"] == "Tukey" and row["epsilon"] == "0.2"]
    assert all(float(row["valid_then"]) >= 0.99 for row in tukey if int(row["stand_out"]))


COLLECTION = Path(__file__).parents[2].parent / "shared" / "papers" / "printed"


@pytest.mark.skipif(not COLLECTION.exists(), reason="the collection of printed numbers is not at hand")
def test_the_printed_values_are_those_of_the_collection() -> None:
    def collected(name: str) -> list[dict[str, str]]:
        with (COLLECTION / f"pcor_{name}.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    for name in ("table1_example", *(f"table{number}" for number in range(2, 14))):
        ours = printed_table("pcor2021", name.removesuffix("_example"))
        assert [*map(dict, ours)] == collected(name)
    facts = printed_facts("pcor2021")
    for row in collected("setup"):
        assert (facts[row["item"]].value, facts[row["item"]].where) == (row["value"], row["where"])
    listed = printed_table("pcor2021", "inconsistencies")
    assert all(row in [*map(dict, listed)] for row in collected("inconsistencies"))
