"""Public facts are checked, scaling is exact, points cannot change, and nothing shows a value."""

import json
import pickle
import subprocess
import sys
import tomllib
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallflower.data import Column, Points, Schema, Table, describe, load
from wallflower.data.scans import load_into
from wallflower.errors import DataError, ParameterError, SourceError

PATIENTS = pd.DataFrame(
    {"age": [34, 61, 80], "bmi": [21.5, 30.25, 18.0], "sex": ["F", "M", "F"], "note": ["x", "y", "z"]}
)
SCHEMA = Schema.of(
    ["age", "bmi", "sex"],
    bounds={"age": (0, 120), "bmi": (10, 60)},
    center={"age": 60},
    scale={"age": 20, "bmi": 5},
    categories={"sex": ["F", "M"]},
    edges={"age": [18, 61]},
    rows=3,
    name="patients",
)
TOML = """\
name = "patients"
rows = 3

[columns."age"]
low = 0
high = 120
center = 60
scale = 20
edges = [18, 61]

[columns."bmi"]
low = 10
high = 60
scale = 5

[columns."sex"]
categories = ["F", "M"]
"""


def refused(words, call, *arguments, error=DataError, **options):
    with pytest.raises(error) as caught:
        call(*arguments, **options)
    assert words in str(caught.value)
    return caught.value


def test_a_table_is_scaled_by_public_constants():
    table = load(PATIENTS, schema=SCHEMA)
    points = table.points()
    assert points.columns == ("age", "bmi")
    assert points.values.tolist() == [[-1.3, 4.3], [0.05, 6.05], [1.0, 3.6]]
    assert table.points("bmi").values.tolist() == [[4.3], [6.05], [3.6]]
    assert (points.n, points.dimension, len(points), points.name) == (3, 2, 3, "patients")
    assert (table.n, table.dimension, table.columns) == (3, 3, ("age", "bmi", "sex"))
    assert table.numbers == ("age", "bmi")


def test_clipping_comes_before_scaling():
    schema = Schema.of(["age", "bmi"], bounds={"age": (40, 70)}, center={"age": 40}, scale={"age": 10}, clip=True)
    assert load(PATIENTS, schema=schema).points(["age"]).values.tolist() == [[0.0], [2.1], [3.0]]


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=9),
    st.floats(-1e3, 1e3),
    st.floats(1e-3, 1e3),
    st.floats(-1e6, 1e6),
    st.floats(0.5, 1e6),
)
def test_scaling_is_the_formula_to_the_last_bit(values, center, scale, low, width):
    schema = Schema(columns=(Column("a", low=low, high=low + width, center=center, scale=scale),), clip=True)
    expected = [(min(max(value, low), low + width) - center) / scale for value in values]
    array = np.array(values)[:, None]
    assert load(array, schema=schema).points().values[:, 0].tolist() == expected
    assert Points.from_array(array, schema=schema).values[:, 0].tolist() == expected


def test_labels_and_bins_have_public_codes():
    table = load(PATIENTS, schema=SCHEMA)
    assert table.codes("sex").tolist() == [0, 1, 0]
    assert table.codes("age").tolist() == [1, 2, 2]
    refused("no categories and no edges", table.codes, "bmi")
    refused("Did you mean 'sex'?", table.codes, "sexx")
    refused("holds labels", table.points, ["sex", "age"])


@pytest.mark.parametrize(
    "labels", [pa.array([0, 1, 0]), pa.array(["0", "1", "0"], pa.large_string()), pl.Series(["0", "1", "0"])]
)
def test_labels_may_be_text_or_whole_numbers(labels):
    schema = Schema.from_json({"columns": {"a": {"categories": [0, 1]}}})
    assert load(pa.table({"a": labels}), schema=schema).codes("a").tolist() == [0, 1, 0]


def test_a_label_that_means_missing_elsewhere_may_be_a_category(tmp_path):
    (tmp_path / "t.csv").write_text("work\n ?\nPrivate\n01\n")
    table = load(tmp_path / "t.csv", schema=Schema.of(["work"], categories={"work": ["Private", "?", "01"]}))
    assert table.codes("work").tolist() == [1, 0, 2]
    refused("no column was asked for", table.points)


VALUES = [
    ({"columns": ["age", "ward"]}, "column 'ward' was asked for and is not there; there are age, bmi, sex, note"),
    ({"columns": ["agee"]}, "none of them"),
    ({"columns": ["age", "bmy"]}, "Did you mean 'bmi'?"),
    ({"columns": ["age", "note"]}, "column note holds text"),
    ({"columns": ["age"], "bounds": {"age": (0, 70)}}, "outside its public bounds [0, 70]"),
    ({"columns": ["age"], "rows": 4}, "the schema says 4 records"),
    ({"columns": ["sex"], "categories": {"sex": ["F", "D"]}}, "not among its public categories (F, D)"),
    ({"columns": ["bmi"], "categories": {"bmi": ["21.5"]}}, "neither text nor whole numbers"),
    ({"columns": ["bmi"], "scale": {"bmi": 1e-308}}, "leaves float64"),
]


@pytest.mark.parametrize(("facts", "words"), VALUES)
def test_data_that_does_not_fit_is_refused_without_a_value(facts, words):
    failure = refused(words, lambda: load(PATIENTS, schema=Schema.of(**facts)).points())
    assert not [value for value in ("80", "21.5,", "30.25", "'M'", "x, y") if value in str(failure)]


def test_whole_numbers_are_held_to_it():
    schema = Schema(columns=(Column("bmi", integer=True),))
    assert refused("whole numbers", load, PATIENTS, schema=schema).column == "bmi"
    assert load(PATIENTS, schema=schema.only(["age"])).n == 3


def test_require_refuses_from_public_facts():
    table = load(PATIENTS, schema=SCHEMA)
    assert table.require(["age"], rows=3) is table
    refused("needs 4 records", table.require, rows=4)
    refused("holds labels", table.require, ["sex"])
    refused("there are age, bmi, sex", table.require, ["height"])


def test_points_cannot_be_changed():
    source = np.arange(6.0).reshape(3, 2)
    points = Points.from_array(source)
    source[0, 0] = 99
    assert points.values[0, 0] == 0
    assert points.values.flags.c_contiguous
    assert points.values.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        points.values[0, 0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        points.values.setflags(write=True)
    with pytest.raises(FrozenInstanceError):
        points.name = "other"
    with pytest.raises(FrozenInstanceError):
        load(PATIENTS, schema=SCHEMA).name = "other"
    assert (pickle.loads(pickle.dumps(points)).values == points.values).all()  # noqa: S301


def test_a_subspace_is_named_columns_in_that_order():
    points = Points.from_array([[1, 2, 3], [4, 5, 6]], columns=["a", "b", "c"], name="toy")
    assert points.subspace(["c", "a"]).values.tolist() == [[3, 1], [6, 4]]
    assert points.subspace(["c", "a"]).schema.names == ("c", "a")
    assert points.subspace("b").columns == ("b",)
    refused("there are a, b, c", points.subspace, ["d"])
    refused("more than once", points.subspace, ["a", "a"])
    refused("no column was asked for", points.subspace, [])


ARRAYS = [
    ([[1.0, np.nan]], {}, "missing"),
    ([[1.0, np.inf]], {}, "infinite"),
    ([[1.0, 2.0]], {"columns": ["a"]}, "a name for each"),
    (np.zeros((0, 2)), {}, "needs a record"),
    ([[1.0], [2.0, 3.0]], {}, "2-D"),
    ([["SECRET-42"]], {}, "2-D array of numbers"),
    ([[2**60]], {}, "2**53"),
    ([[1.0]], {"schema": Schema.of(["a"], bounds={"a": (2, 3)})}, "bounds [2, 3]"),
    ([[1.0]], {"schema": Schema.of(["a"], categories={"a": ["1"]})}, "'a' was asked for"),
    ([[1.0]], {"columns": ["b"], "schema": Schema.of(["a"])}, "'b' was asked for"),
    ([[1e308]], {"schema": Schema.of(["x1"], center={"x1": -1e308})}, "leaves float64"),
]


@pytest.mark.parametrize(("array", "options", "words"), ARRAYS)
def test_a_bad_array_is_refused(array, options, words):
    refused(words, Points.from_array, array, **options)


def test_points_made_by_hand_are_checked_too():
    for values in (np.array([[np.nan]]), np.zeros((0, 1)), np.zeros((2, 2)), np.zeros(3)):
        refused("finite", Points, values=values, columns=("a",), name="t", schema=Schema())


def test_only_public_facts_are_shown():
    table = load(pd.DataFrame({"a": [8675309.125, 1.0], "b": [2.0, 3.0]}), name="icu")
    assert repr(table) == "Table(name='icu', n=2, columns=('a', 'b'))"
    assert repr(table.points()) == str(table.points()) == "Points(name='icu', n=2, columns=('a', 'b'))"
    assert "8675309" not in json.dumps(describe(table))


def test_describe_tells_the_schema_and_nothing_of_the_records():
    told = describe(load(PATIENTS, schema=SCHEMA))
    other = pd.DataFrame({"age": [1, 2, 3], "bmi": [11, 12, 13], "sex": ["M", "M", "M"]})
    assert told == describe(load(other, schema=SCHEMA)) == json.loads(json.dumps(told))
    assert (told["name"], told["rows"], told["clip"]) == ("patients", 3, False)
    assert told["columns"] == [
        {"name": "age", "type": "number", "center": 60, "scale": 20, "low": 0, "high": 120, "edges": [18, 61]},
        {"name": "bmi", "type": "number", "center": 0, "scale": 5, "low": 10, "high": 60},
        {"name": "sex", "type": "category", "categories": ["F", "M"]},
    ]


def test_a_schema_is_written_and_read(tmp_path):
    assert SCHEMA.to_toml() == TOML
    (tmp_path / "s.toml").write_text(TOML)
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA.to_json()))
    assert Schema.read(tmp_path / "s.toml") == Schema.read(str(tmp_path / "s.json")) == SCHEMA
    assert Schema.from_json({"columns": ["a", "b"]}) == Schema.of(["a", "b"])
    assert Schema.from_json({"clip": True}) == Schema(clip=True)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
NUMBERS = st.floats(-1e300, 1e300) | st.integers(-(10**20), 10**20)


WORDS = {"title": "Ward", "owner": "us", "period": "2023", "population": "adults", "licence": "CC0", "description": "d"}


def test_words_for_readers_are_kept_and_change_nothing(tmp_path):
    said = Schema(columns=(Column("a", low=0, meaning="weight", measure="kg"), Column("id", identifier=True)), **WORDS)
    plain = Schema(columns=(Column("a", low=0), Column("id", identifier=True)))
    (tmp_path / "s.toml").write_text(said.to_toml())
    read = Schema.read(tmp_path / "s.toml")
    assert read.to_json() == said.to_json() == Schema.from_json(said.to_json()).to_json()
    assert read.words() == WORDS
    assert read.columns[0].words() == {"meaning": "weight", "measure": "kg"}
    assert read == plain
    assert hash(read) == hash(plain)
    assert read.bare().to_json() == plain.to_json()
    table = Table(arrow=pa.table({"a": [1.0, 2.0], "id": ["x", "y"]}), schema=said, name="t")
    assert WORDS.items() <= describe(table).items()
    for wrong in ({"title": 3}, {"owner": " "}):
        refused("is not a text", Schema, error=ParameterError, **wrong)
    refused("a.meaning is not a text", Column, "a", error=ParameterError, meaning=1)


@given(st.lists(NAMES, min_size=1, unique=True), NAMES, st.lists(NUMBERS, min_size=1, unique=True), st.booleans())
def test_any_schema_survives_its_file(names, label, edges, clip):
    first, *rest = names
    columns = (Column(first, edges=sorted(edges), scale=0.1), *(Column(name, categories=[label]) for name in rest))
    schema = Schema(name=label, columns=columns, rows=7, clip=clip)
    assert Schema.from_json(tomllib.loads(schema.to_toml())) == schema


SCHEMAS = [
    ({"columns": []}, "at least one"),
    ({"columns": ["a", "a"]}, "must differ"),
    ({"columns": [" "]}, "no name"),
    ({"columns": ["a"], "scale": {"a": 0}}, "above zero"),
    ({"columns": ["a"], "scale": {"a": -1.5}}, "above zero"),
    ({"columns": ["a"], "scale": {"a": float("inf")}}, "a.scale is not a finite number"),
    ({"columns": ["a"], "scale": {"a": None}}, "a.scale is not a finite number"),
    ({"columns": ["a"], "scale": {"a": Fraction(10**400)}}, "a.scale is not a finite number"),
    ({"columns": ["a"], "center": {"a": float("nan")}}, "a.center is not a finite number"),
    ({"columns": ["a"], "center": {"a": "60"}}, "a.center is not a finite number"),
    ({"columns": ["a"], "center": {"a": True}}, "a.center is not a finite number"),
    ({"columns": ["a"], "bounds": {"a": (1, 1)}}, "low must be below high"),
    ({"columns": ["a"], "bounds": {"a": (2, 10**400)}}, "a.high is not a finite number"),
    ({"columns": ["a"], "bounds": {"b": (0, 1)}}, "b is not known; there are a"),
    ({"columns": ["a"], "edges": {"a": []}}, "edges must increase"),
    ({"columns": ["a"], "edges": {"a": [2, 1]}}, "edges must increase"),
    ({"columns": ["a"], "categories": {"a": []}}, "categories must differ"),
    ({"columns": ["a"], "categories": {"a": ["x", "x"]}}, "categories must differ"),
    ({"columns": ["a"], "categories": {"a": "xy"}}, "are lists"),
    ({"columns": ["a"], "categories": {"a": [""]}}, "not empty"),
    ({"columns": ["a"], "categories": {"a": [1.5]}}, "whole number"),
    ({"columns": ["a"], "categories": {"a": ["x"]}, "scale": {"a": 2}}, "no numbers"),
    ({"columns": ["a"], "rows": 0}, "above zero"),
    ({"columns": ["a"], "rows": 2.0}, "above zero"),
    ({"columns": ["a"], "name": " "}, "budget is tracked under it"),
    ({"columns": ["a"], "clip": "yes"}, "true or false"),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "words"), SCHEMAS)
def test_a_wrong_schema_is_refused(facts, words):
    refused(words, Schema.of, error=ParameterError, **facts)


FILES = [
    ("s.toml", "nmae = 'x'", ParameterError, "nmae is not known; there are name, columns, rows, clip"),
    ("s.toml", "[columns.a]\nmin = 0", ParameterError, "column 'a': min is not known; there are low, high, center"),
    ("s.toml", "columns = [1]", ParameterError, "no name"),
    ("s.toml", "columns = 1", ParameterError, "columns is not a table"),
    ("s.toml", "columns = ['a', 'a']", ParameterError, "must differ"),
    ("s.toml", "[columns]\na = 1", ParameterError, "column 'a' is not a table"),
    ("s.toml", "[columns.a]\ninteger = 1", ParameterError, "integer is true or false"),
    ("s.toml", "this is not toml", SourceError, "not the format"),
    ("s.json", "[1]", ParameterError, "the schema is not a table"),
    ("s.json", "{", SourceError, "not the format"),
    ("s.yaml", "a: 1", SourceError, ".toml, .json"),
]


@pytest.mark.parametrize(("name", "text", "error", "words"), FILES)
def test_a_wrong_schema_file_is_refused(name, text, error, words, tmp_path):
    (tmp_path / name).write_text(text)
    refused(words, Schema.read, tmp_path / name, error=error)


def test_a_missing_schema_file_is_refused(tmp_path):
    refused("cannot be opened", Schema.read, tmp_path / "absent.toml", error=SourceError)


def test_public_numbers_of_any_kind_are_kept_as_plain_ones():
    column = Column("a", low=np.int64(0), high=np.float32(1.5), scale=Fraction(1, 2))
    assert [type(fact) for fact in (column.low, column.high, column.scale)] == [int, float, float]


def test_a_table_made_by_hand_is_held_to_its_schema():
    refused("missing", Table, arrow=pa.table({"a": [1.0, None]}), schema=Schema(), name="t")


def test_the_room_opens_without_loading_a_reader():
    heavy = "{'pyarrow', 'duckdb', 'pandas', 'polars', 'psycopg'}"
    program = (
        "import sys; from wallflower.data import Points, Schema; Points.from_array([[1.0], [2.0]]); "
        f"sys.exit(bool({heavy} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_scale_that_overflows_is_refused_when_the_table_is_loaded():
    """Not later, between the question and the charge."""
    schema = Schema.of(["a"], scale={"a": 1e-20})
    with pytest.raises(DataError, match="larger scale"):
        load(np.array([[1e300], [1.0]]), schema=schema)


def test_labels_that_are_not_listed_are_one_category_where_the_schema_names_it(tmp_path):
    (tmp_path / "t.csv").write_text("ward,x\neast,1\nnorth,2\n,3\nwest,4\n")
    facts = Column("ward", categories=("east", "west"), other="elsewhere")
    assert facts.labels == ("east", "west", "elsewhere")
    assert Column("ward", **facts.facts()) == facts
    table = load(tmp_path / "t.csv", schema=Schema(columns=(facts, Column("x"))))
    assert table.codes("ward").tolist() == [0, 2, 2, 1]
    filled = replace(facts, missing="west")
    assert load(tmp_path / "t.csv", schema=Schema(columns=(filled, Column("x")))).codes("ward").tolist() == [0, 2, 1, 1]
    assert any("ward as elsewhere" in note for note in table.schema.notes(["ward"]))
    with pytest.raises(DataError, match=r"other = \.\.\."):
        load(tmp_path / "t.csv", schema=Schema(columns=(Column("ward", categories=("east",)), Column("x"))))


@pytest.mark.parametrize(
    "wrong",
    [{"other": "rest"}, {"public": True}, {"public": "yes", "edges": (1.0,)}, {"other": "", "categories": ("a",)}],
)
def test_other_and_public_belong_to_labels(wrong):
    with pytest.raises(ParameterError):
        Column("x", **wrong)


@pytest.mark.parametrize("in_tiles", [False, True])
def test_columns_called_as_identifiers_are_measured_only_if_somebody_asks(in_tiles: bool, tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("patient_no,age\n" + "".join(f"{900 + place},{place}\n" for place in range(8)))
    described = Schema(columns=(Column("patient_no", low=0, high=2000), Column("age")))
    table, stated = (
        load_into(path, "tiles" if in_tiles else "memory", schema=facts) for facts in (Schema(), described)
    )
    for labels in (False, True):
        assert table.points(labels=labels).columns == ("age",)
        assert table.points(["patient_no", "age"], labels=labels).columns == ("patient_no", "age")
        assert stated.points(labels=labels).columns == ("patient_no", "age")


def test_a_table_of_identifiers_alone_needs_columns() -> None:
    table = load(pa.table({"patient_no": [1.0, 2.0], "case id": [3.0, 4.0]}))
    with pytest.raises(DataError, match="State `columns`"):
        table.points()
    assert table.points(["case id"]).columns == ("case id",)
