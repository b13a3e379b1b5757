"""Joins: a second table adds columns to records, and neither adds nor multiplies people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wallflower as wf
from wallflower.data import Column, Schema, load
from wallflower.data.joins import SecondTable
from wallflower.data.people import PersonRows
from wallflower.data.scans import load_into
from wallflower.data.sources.files import select
from wallflower.errors import DataError, ParameterError
from wallflower.schema import Join, Person

FILL = -7.0
IDS = ["a", "A", " a", "b", "B ", "c", "", "NA", "J\u030c", "\u01f0", "12345678901234567890", "12345678901234567891"]
FIRST = st.lists(st.tuples(st.sampled_from(IDS), st.integers(-3, 3)), min_size=3, max_size=12)
SECOND = st.lists(
    st.tuples(st.sampled_from(IDS), st.integers(-3, 3), st.sampled_from(["x", "y"])), min_size=1, max_size=6
)


def plain(identifier: str) -> str | None:
    """The identifier as people compare it, by a table of what IDS has."""
    text = identifier.strip().lower().replace("j\u030c", "\u01f0")
    return None if text in ("", "na") else text


def first_table(rows: Sequence[tuple[str, float]]) -> Any:
    return pa.table({"who": [row[0] for row in rows], "pulse": [float(row[1]) for row in rows]})


def second_file(path: Path, rows: Sequence[tuple[str, float, str]]) -> Path:
    lines = ["who,income,ward", *(f'"{name}",{income},{ward}' for name, income, ward in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def schema(table: Path, person: Person | None, *, fill: bool = True, **join: Any) -> Schema:
    columns = (
        Column("pulse", low=-100, high=100),
        Column("income", low=-100, high=100, missing=FILL if fill else None),
        Column("ward", categories=("x", "y", "none"), missing="none" if fill else None),
    )
    return Schema(columns=columns, person=person, join=Join(table=str(table), on="who", **join))


def oracle(first: Sequence[tuple[str, float]], second: Sequence[tuple[str, float, str]], rolled: bool) -> list[Any]:
    """The records, one person at a time in plain Python."""
    right = {plain(name): (float(income), ward) for name, income, ward in second if plain(name) is not None}
    people: dict[Any, list[float]] = {}
    for place, (name, pulse) in enumerate(first):
        key = plain(name)
        people.setdefault((key, place if key is None or not rolled else 0), []).append(float(pulse))
    return sorted((max(pulses), *right.get(key, (FILL, "none"))) for (key, _), pulses in people.items())


def records(table: Any) -> list[Any]:
    if hasattr(table, "arrow"):
        return sorted(zip(*(table.arrow[name].to_pylist() for name in ("pulse", "income", "ward")), strict=True))
    places = [table.columns.index(name) for name in ("pulse", "income", "ward")]
    cells = [np.concatenate(part) for part in zip(*table.sheet.chunks(places), strict=True)]
    labels = ("x", "y", "none")
    return sorted((pulse, income, labels[ward]) for pulse, income, ward in zip(*cells, strict=True))


def repeats(names: Sequence[str]) -> bool:
    known = [key for key in map(plain, names) if key is not None]
    return len(set(known)) < len(known)


@pytest.mark.parametrize("engine", ["memory", "tiles"])
@pytest.mark.parametrize("mode", ["rollup", "max_rows", "rows"])
@given(first=FIRST, second=SECOND)
def test_the_join_is_that_of_the_oracle(
    tmp_path_factory: pytest.TempPathFactory, mode: str, engine: str, first: list[Any], second: list[Any]
) -> None:
    path = second_file(tmp_path_factory.mktemp("join") / "second.csv", second)
    modes = {"rollup": Person(id="who", rollup={"pulse": "max"}), "max_rows": Person(id="who", max_rows=1000)}
    facts, table = schema(path, modes.get(mode)), first_table(first)
    if repeats([row[0] for row in second]) or (mode == "rows" and repeats([row[0] for row in first])):
        with pytest.raises(DataError, match="repeats"):
            load_into(table, engine, schema=facts)
        return
    expected = oracle(first, second, mode == "rollup")
    if len(expected) < 2:
        return
    joined = load_into(table, engine, schema=facts)
    assert joined.n == len(expected)
    assert records(joined) == expected
    assert joined.schema.join is None
    assert joined.schema.protects == facts.protects


VALUES = (0.0, 1.0)


@pytest.mark.parametrize("own_rows", [(), (0,), (1,), (0, 1), (1, 1)])
def test_replacing_a_person_in_both_tables_replaces_one_record(tmp_path: Path, own_rows: tuple[int, ...]) -> None:
    """(Y3) on worlds of two fixed people and one whose rows in both tables are replaced, or not there at all."""
    seen, sizes = set(), set()
    person = Person(id="who", rollup={"pulse": "max"})
    for income, is_there in product(VALUES, (True, False)):
        second = [("b", 1, "x"), ("z", 5, "y"), *([("a", income, "y")] if is_there else [])]
        path = second_file(tmp_path / "second.csv", second)
        first = [("b", 0.0), *(("A ", float(value)) for value in own_rows), ("c", 2.0), ("b", 1.0)]
        table = load(first_table(first), schema=schema(path, person))
        rows = table.arrow.to_pylist()
        seen.add(tuple(sorted(str(row) for row in rows if row["who"] != "a")))
        assert sum(row["who"] == "a" for row in rows) == bool(own_rows)
        sizes.add(table.n)
    assert len(seen) == 1
    assert sizes == {2 + bool(own_rows)}


def test_drawn_rows_do_not_depend_on_the_second_table(tmp_path: Path) -> None:
    """(Y3) with `max_rows`: for every secret order, at most that many rows change, and all of them are hers."""
    first = first_table([("a", 0), ("a", 1), ("b", 2), ("a", 3), ("c", 4)])
    for limit, order in product((1, 2), permutations(range(5))):
        kept, others = set(), set()
        for income in (0, 1, 2):
            path = second_file(tmp_path / "second.csv", [("a", income, "x"), ("b", 5, "y")])
            facts = schema(path, Person(id="who", max_rows=limit))
            rows = load(first, schema=facts).draw(lambda bound, size, order=order: np.array(order)).arrow.to_pylist()
            assert sum(row["who"] == "a" for row in rows) == limit
            kept.add(tuple(row["pulse"] for row in rows))
            others.add(tuple(str(row) for row in rows if row["who"] != "a"))
        assert len(kept) == len(others) == 1


def test_without_a_person_a_second_row_is_in_one_record_only(tmp_path: Path) -> None:
    path = second_file(tmp_path / "second.csv", [("a", 1, "x"), ("b", 2, "y")])
    facts = schema(path, None)
    assert records(load(first_table([("b", 0), ("A", 1), ("q", 2)]), schema=facts)) == [
        (0.0, 2.0, "y"),
        (1.0, 1.0, "x"),
        (2.0, FILL, "none"),
    ]
    for repeated in ("a", "q"):  # with a row in the second table, and without one
        with pytest.raises(DataError, match="first table repeats"):
            load(first_table([(repeated, 0), ("b", 1), (f"{repeated} ", 2)]), schema=facts)


def test_an_identifier_that_repeats_in_another_part_is_noticed(tmp_path: Path) -> None:
    path = second_file(tmp_path / "second.csv", [("a", 1, "x"), ("b", 2, "y")])
    facts, _ = select(schema(path, None))
    for repeated in ("a", "q"):
        second = SecondTable.read(facts)
        second.join(first_table([(repeated, 0), ("b", 1)]))
        with pytest.raises(DataError, match="first table repeats"):
            second.join(first_table([(repeated.upper(), 2), ("c", 1)]))


def test_a_record_without_a_row_is_refused_unless_constants_are_public(tmp_path: Path) -> None:
    path = second_file(tmp_path / "second.csv", [("a", 1, "x"), ("secret-id", 2, "y")])
    facts = schema(path, Person(id="who", rollup={"pulse": "max"}), fill=False)
    for name in ("secret-name", ""):
        for engine in ("memory", "tiles"):
            with pytest.raises(DataError, match="lacks a row") as refusal:
                load_into(first_table([("a", 1), (name, 2)]), engine, schema=facts)
            assert "secret" not in str(refusal.value)
    assert load(first_table([("a", 1), ("SECRET-ID", 2)]), schema=facts).n == 2


def test_columns_are_those_stated_or_all_of_the_second_table(tmp_path: Path) -> None:
    path = second_file(tmp_path / "second.csv", [("a", 1, "x"), ("b", 2, "y")])
    first, person = first_table([("a", 3), ("b", 4)]), Person(id="who", rollup={"pulse": "max"})
    assert load(first, schema=schema(path, person)).columns == ("who", "pulse", "income", "ward")
    assert load(first, schema=schema(path, person, columns=["income"])).columns == ("who", "pulse", "income")
    bare = Schema(join=Join(table=str(path), on="who", columns=["income"]))
    assert load(first, schema=bare).columns == ("pulse", "income")
    assert load_into(first, "tiles", schema=bare).columns == ("pulse", "income")


def test_a_query_of_few_columns_reads_no_more(tmp_path: Path) -> None:
    path = second_file(tmp_path / "second.csv", [("a", 1, "x"), ("b", 2, "y")])
    facts = schema(path, Person(id="who", rollup={"pulse": "max"}), columns=["income", "ward"])
    assert facts.only(["pulse"]).join is None
    narrow = facts.only(["income"])
    assert narrow.join == replace(facts.join, columns=("income",))  # type: ignore[type-var]
    table = load(first_table([("a", 3), ("b", 4), ("a", 5)]), schema=narrow)
    assert table.n == 2
    assert sorted(table.cells("income").tolist()) == [1.0, 2.0]


@pytest.mark.parametrize(
    ("person", "join"),
    [
        (Person(id="who", rollup={"pulse": "max"}), {"on": "pulse"}),
        (Person(id="who", rollup={"pulse": "max"}), {"on": "who", "columns": ["pulse"]}),
        (Person(id="who", rollup={"pulse": "max"}, time="hour"), {"on": "who"}),
        (None, {"on": "who", "columns": ["who"]}),
        (None, {"on": "who", "columns": []}),
        (None, {"on": "who", "columns": "income"}),
        (None, {"on": ""}),
        (None, {"on": "pulse"}),
    ],
)
def test_an_unclear_join_is_refused(person: Person | None, join: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Schema(columns=(Column("pulse"),), person=person, join=Join(table="second.csv", **join))


def test_the_second_table_needs_the_identifier_and_other_names(tmp_path: Path) -> None:
    path = tmp_path / "second.csv"
    path.write_text("who,pulse\na,1\nb,2\n")
    first = first_table([("a", 3), ("b", 4)])
    with pytest.raises(DataError, match="same name"):
        load(first, schema=Schema(join=Join(table=str(path), on="who")))
    with pytest.raises(DataError, match="identifies"):
        load(first, schema=Schema(join=Join(table=str(path), on="name")))


def test_the_declaration_survives_a_file_and_paths_are_relative_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    second_file(tmp_path / "second.csv", [("a", 1, "x"), ("b", 2, "y")])
    facts = schema(Path("second.csv"), Person(id="who", rollup={"pulse": "max"}), columns=["income"])
    (tmp_path / "people.toml").write_text(facts.to_toml())
    assert Schema.read("people.toml") == facts
    assert Schema.from_json(facts.to_json()) == facts
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert load(first_table([("a", 3), ("b", 4)]), schema=Schema.read("../people.toml")).n == 2
    url = replace(facts, join=Join(table="sqlite:///clinic.db?table=people", on="who"))
    (tmp_path / "url.toml").write_text(url.to_toml())
    assert Schema.read(tmp_path / "url.toml") == url


def test_a_question_keeps_no_place_of_a_second_table() -> None:
    facts = schema(Path("second.csv"), None)
    assert facts.bare().join is None


def test_a_data_set_is_opened_with_a_join(tmp_path: Path) -> None:
    path = second_file(tmp_path / "second.csv", [("a", 1, "x"), ("b", 2, "y")])
    dataset = wf.open(
        first_table([("a", 3), ("b", 4), ("a", 5)]),
        name="visits",
        ledger=tmp_path / "ledger.db",
        schema=Schema.of(["pulse", "income"], bounds={"pulse": (0, 9), "income": (0, 9)}),
        person={"id": "who", "rollup": {"pulse": "max"}},
        join={"table": str(path), "on": "who", "columns": ["income"]},
    )
    release = dataset.count(columns=["pulse", "income"], neighbours=1, radius=1.0, epsilon="0.5", force=True)
    assert release.value is not None
    assert dataset.budget().spent.epsilon == release.guarantee.loss.epsilon


@given(texts=st.lists(st.text(max_size=4), min_size=1, max_size=6))
def test_identifiers_are_compared_alike_before_and_after_a_roll_up(texts: list[str]) -> None:
    person = Person(id="who", max_rows=1)
    once = PersonRows(pa.array(texts), person).ids
    assert PersonRows(once, person).ids.to_pylist() == once.to_pylist()
