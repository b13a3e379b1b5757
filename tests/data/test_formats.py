"""Files as they are: how a file is written is said, not guessed; what is filled or left out is told without counts."""

import gzip
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import wallflower as wf
from wallflower.data import Column, Schema, describe, load, survey
from wallflower.errors import DataError, ParameterError, SourceError
from wallflower.ledger import Ledger
from wallflower.schema.columns import Format, join_list, split_list

SECRETS = ("SECRET-42", "8675309.125")


def written(folder, name, content, encoding="utf-8"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return path


def refusal(error, source, **options):
    with pytest.raises(error) as caught:
        load(source, **options)
    assert not [secret for secret in SECRETS if secret in str(caught.value)]
    return caught.value


WAYS = {
    "semicolons and decimal commas": ("a;b\n1,5;2\n-3,25;4\n", "utf-8", {"separator": ";", "decimal": ","}),
    "tab by name": ("a\tb\n1.5\t2\n-3.25\t4\n", "utf-8", {"separator": "tab"}),
    "pipes and a byte order mark": ("\ufeffa|b\n1.5|2\n-3.25|4\n", "utf-8", {"separator": "|"}),
    "Latin-1": ("a;b;größe\n1.5;2;3\n-3.25;4;5\n", "latin-1", {"separator": ";", "encoding": "latin-1"}),
    "UTF-16": ('a,b\n1.5,2\n-3.25,"4"\n', "utf-16", {"encoding": "utf-16"}),
    "UTF-16 with a Ģ, a byte of which is a quote": ("a,b,Ģ\n1.5,2,3\n-3.25,4,5\n", "utf-16", {"encoding": "utf-16"}),
    "cp1252 quotes": ('a,b,"x ""€"""\n1.5,2,3\n-3.25,4,5\n', "cp1252", {"encoding": "cp1252"}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_a_text_file_is_read_as_it_is_said_to_be_written(way, name, tmp_path):
    text, encoding, options = WAYS[way]
    content = text.encode(encoding)
    path = written(tmp_path, name, gzip.compress(content) if name.endswith(".gz") else content)
    table = load(path, schema=Schema.of(["a", "b"]), **options)
    assert table.points().values.tolist() == [[1.5, 2.0], [-3.25, 4.0]]
    by_schema = load(path, schema=Schema.from_json({"columns": ["a", "b"], "file": options}))
    assert by_schema.points().values.tolist() == table.points().values.tolist()


def test_long_files_are_decoded_across_blocks(tmp_path):
    lines = "".join(f"{number},ü{number}\n" for number in range(200_000))
    path = written(tmp_path, "t.csv", "a,b\n" + lines, "utf-16")
    assert load(path, schema=Schema.of(["a"]), encoding="utf-16").points().values[:, 0].tolist() == list(range(200_000))


@pytest.mark.parametrize(
    ("cells", "options", "numbers"),
    [
        (["1,234", "12,345,678.5"], {"thousands": ","}, [1234.0, 12345678.5]),
        (["1.234", "-1.234.567,25"], {"thousands": ".", "decimal": ","}, [1234.0, -1234567.25]),
        (["1 234", "999"], {"thousands": " "}, [1234.0, 999.0]),
        (["1'234.5", "7"], {"thousands": "'"}, [1234.5, 7.0]),
    ],
)
def test_thousands_are_read_where_they_are_said_to_be_marked(cells, options, numbers, tmp_path):
    path = written(tmp_path, "t.tsv", "a\n" + "".join(f"{cell}\n" for cell in cells))
    assert load(path, **options).points().values[:, 0].tolist() == numbers


@pytest.mark.parametrize("cells", [["12,34", "5"], ["1,2345", "5"], ["1.5,000", "5"]])
def test_a_mark_in_the_wrong_place_makes_no_number(cells, tmp_path):
    path = written(tmp_path, "t.tsv", "b\ta\n" + "".join(f"1\t{cell}\n" for cell in cells))
    assert refusal(DataError, path, thousands=",").column == "a"


def test_a_point_is_no_part_of_a_number_with_a_decimal_comma(tmp_path):
    path = written(tmp_path, "t.tsv", "b\ta\n1\t1.5\n1\t2.5\n")
    assert "--decimal" in str(refusal(DataError, path, decimal=","))


REFUSED = [
    ("a;b\n1;2\n3;4\n", {}, DataError, "--separator ';'"),
    ("a\tb\n1\t2\n3\t4\n", {}, DataError, "--separator 'tab'"),
    ("a,b\n1,SECRET-42\n3,4\n", {}, DataError, "column b holds text"),
    ("a,b\n1;2\n", {"separator": ";"}, DataError, "not separated by ';'"),
    ("größe,b\n1,2\n".encode("latin-1"), {}, SourceError, "--encoding latin-1"),
    ("a,b\n1,2\n3,4\n".encode("utf-16"), {}, SourceError, "--encoding utf-16"),
    ("a,b\n1,2\n3,ü\n".encode("latin-1"), {"encoding": "utf-16"}, SourceError, "encoding"),
    ("a,b\n1,2\n3,4\n", {"sheet": "x"}, ParameterError, "sheet says nothing"),
    ("a,b\n1,2\n3,4\n", {"separator": "ab"}, ParameterError, "one character"),
    ("a,b\n1,2\n3,4\n", {"separator": '"'}, ParameterError, "one character"),
    ("a,b\n1,2\n3,4\n", {"encoding": "klingon"}, ParameterError, "encoding"),
    ("a,b\n1,2\n3,4\n", {"encoding": "base64"}, ParameterError, "encoding"),
    ("a,b\n1,2\n3,4\n", {"decimal": "!"}, ParameterError, "decimal"),
    ("a,b\n1,2\n3,4\n", {"decimal": ",", "separator": ","}, ParameterError, "second meaning"),
    ("a,b\n1,2\n3,4\n", {"thousands": "."}, ParameterError, "second meaning"),
    ("a,b\n1,2\n3,4\n", {"without": ["c"]}, DataError, "none of them"),
    ("a,b\n1,2\n3,4\n", {"without": ["a", "c"]}, DataError, "'c'"),
    ("a,b\n1,2\n3,4\n", {"without": "a"}, ParameterError, "list of names"),
]


@pytest.mark.parametrize(("content", "options", "error", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_read_is_refused_with_what_to_say(content, options, error, words, tmp_path):
    assert words in str(refusal(error, written(tmp_path, "t.csv", content), **options))


def test_what_is_said_of_parquet_is_refused_rather_than_unheard(tmp_path):
    pa.parquet.write_table(pa.table({"a": [1.0, 2.0]}), tmp_path / "t.parquet")
    assert "Leave it out" in str(refusal(ParameterError, tmp_path / "t.parquet", separator=";"))


def test_json_lines_are_records_with_gaps(tmp_path):
    path = written(tmp_path, "t.jsonl", '\ufeff{"a": 1, "s": "x"}\n\n{"s": "y", "a": 2.5, "t": [1]}\n{"s": "x"}\n')
    schema = Schema(columns=(Column("a", missing=0), Column("s", categories=("x", "y"))))
    table = load(path, schema=schema)
    assert table.points().values[:, 0].tolist() == [1.0, 2.5, 0.0]
    assert table.codes("s").tolist() == [0, 1, 0]
    assert refusal(DataError, path, schema=Schema.of(["a"])).column == "a"


def test_partitioned_folders_are_columns(tmp_path):
    for year in (2019, 2020):
        for ward in ("north east", "__HIVE_DEFAULT_PARTITION__"):
            part = tmp_path / "visits" / f"year={year}" / f"ward={ward.replace(' ', '%20')}"
            part.mkdir(parents=True)
            pa.parquet.write_table(pa.table({"age": [1.5, 2.5]}), part / "0.parquet")
    schema = Schema(
        columns=(Column("age"), Column("year"), Column("ward", categories=("north east", "none"), missing="none"))
    )
    table = load(tmp_path / "visits", schema=schema)
    assert table.name == "visits"
    assert table.n == 8
    assert sorted(set(table.cells("year").tolist())) == [2019.0, 2020.0]
    assert sorted(table.codes("ward").tolist()) == [0, 0, 0, 0, 1, 1, 1, 1]
    (tmp_path / "visits" / "month=3").mkdir()
    pa.parquet.write_table(pa.table({"age": [1.5]}), tmp_path / "visits" / "month=3" / "0.parquet")
    pa.parquet.write_table(pa.table({"age": [1.5]}), tmp_path / "visits" / "year=2019" / "0.parquet")
    assert "key=value" in str(refusal(SourceError, tmp_path / "visits", schema=schema))


def workbook(path, sheets):
    """A workbook of the least that the format asks for, so that no writer is needed."""
    names = "".join(f'<sheet name="{name}" sheetId="{at}" r:id="r{at}"/>' for at, name in enumerate(sheets, start=1))
    relations = "".join(
        f'<Relationship Id="r{at}" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"'
        f' Target="worksheets/sheet{at}.xml"/>'
        for at in range(1, len(sheets) + 1)
    )
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{package}"><Relationship Id="a" Type="{office}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>{names}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}">{relations}</Relationships>',
    }
    for at, rows in enumerate(sheets.values(), start=1):
        lines = "".join(
            f'<row r="{y}">' + "".join(_cell(f"{'ABCDEF'[x]}{y}", cell) for x, cell in enumerate(row)) + "</row>"
            for y, row in enumerate(rows, start=1)
        )
        parts[f"xl/worksheets/sheet{at}.xml"] = f'<worksheet xmlns="{main}"><sheetData>{lines}</sheetData></worksheet>'
    with zipfile.ZipFile(path, "w") as file:
        for name, text in parts.items():
            file.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return path


def _cell(place, cell):
    if cell is None:
        return ""
    if isinstance(cell, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{cell}</t></is></c>'
    return f'<c r="{place}"><v>{cell}</v></c>'


def test_a_sheet_of_a_workbook_is_a_table(tmp_path):
    sheets = {"about": [["a text"]], "patients": [["age", "ward"], [34, 7], [None, " east "], [61.5, "east"]]}
    path = workbook(tmp_path / "t.xlsx", sheets)
    schema = Schema(columns=(Column("age", missing=0), Column("ward", categories=(7, "east"))))
    table = load(path, schema=schema, sheet="patients")
    assert table.cells("age").tolist() == [34.0, 0.0, 61.5]
    assert table.codes("ward").tolist() == [0, 1, 1]
    assert refusal(DataError, path, schema=Schema.of(["age"]), sheet="patients").column == "age"
    assert "about, patients" in str(refusal(DataError, path, sheet="SHEET"))
    assert "no records" in str(refusal(DataError, path))


def test_without_its_reader_a_workbook_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    monkeypatch.delattr("wallflower.data.sources.files._calamine.CalamineWorkbook", raising=False)
    monkeypatch.setattr("wallflower.data.sources.files._calamine", wf.machine.lazy.Lazy("python_calamine"))
    path = workbook(tmp_path / "t.xlsx", {"s": [["a"], [1], [2]]})
    assert "pip install 'wallflower[excel]'" in str(refusal(SourceError, path))


def test_columns_are_left_out_by_option_and_by_schema(tmp_path):
    path = written(tmp_path, "t.csv", "a,b,notes\n1,2,SECRET-42\n3,4,x\n")
    assert load(path, without=["notes"]).columns == ("a", "b")
    stated = load(path, schema=Schema.from_json({"without": ["notes", "b"]}))
    assert stated.columns == ("a",)
    assert describe(stated)["without"] == ["notes", "b"]
    assert load(path, schema=Schema.of(["a", "b"]), without=["b"]).columns == ("a",)
    assert "every column" in str(refusal(DataError, path, schema=Schema.of(["a"]), without=["a"]))


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["age", "Salary, paid"], 'age,"Salary, paid"'),
        (['a "b"', "c;d"], '"a ""b""","c;d"'),
        (["plain"], "plain"),
        ([" led"], '" led"'),
    ],
)
def test_names_with_commas_stand_in_quotes(names, text):
    assert join_list(names) == text
    assert split_list(text) == names


@pytest.mark.parametrize("text", ['a,"b', '"', '"a"b'])
def test_a_quote_that_is_not_closed_is_refused(text):
    with pytest.raises(ParameterError, match="quote"):
        split_list(text)


DAYS = {"unit": "days", "since": "2000-01-01"}
DATES = [
    (["2000-01-02", "1999-12-31"], DAYS, [1.0, -1.0]),
    (["2000-01-02 12:00:00", "2000-01-01"], DAYS, [1.5, 0.0]),
    (["2000-01-02T12:00:00Z", "2000-01-02T12:00:00+12:00"], DAYS, [1.5, 1.0]),
    (["31.12.2000", "01.01.2000"], {**DAYS, "layout": "%d.%m.%Y"}, [365.0, 0.0]),
    (["20001231", "20000101"], {**DAYS, "layout": "%Y%m%d"}, [365.0, 0.0]),
    (["23:59", "12:00"], {"unit": "hours"}, [23 + 59 / 60, 12.0]),
    (["2000-01-08", "?"], {"unit": "weeks", "since": "2000-01-01", "missing": 7}, [1.0, 7.0]),
]


@pytest.mark.parametrize(("cells", "facts", "numbers"), DATES, ids=range(len(DATES)))
def test_dates_are_numbers_by_a_stated_unit(cells, facts, numbers, tmp_path):
    path = written(tmp_path, "t.csv", "x,when\n" + "".join(f"1,{cell}\n" for cell in cells))
    table = load(path, schema=Schema(columns=(Column("when", **facts),)))
    assert table.cells("when").tolist() == numbers


def test_dates_of_a_typed_source_are_the_same_numbers():
    days = np.array(["2000-01-02", "1999-12-31"], dtype="datetime64[D]")
    for kind in (pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", tz="UTC")):
        source = pa.table({"when": pa.array(days).cast(kind)})
        table = load(source, schema=Schema(columns=(Column("when", **DAYS),)))
        assert table.cells("when").tolist() == [1.0, -1.0], kind


@pytest.mark.parametrize(
    ("cells", "facts", "words"),
    [
        (["2000-01-02", "SECRET-42"], DAYS, "layout"),
        (["2000-01-02", ""], DAYS, "missing"),
        (["2000-01-02", "2000-01-03"], {"unit": "days"}, "since"),
        (["1.5", "2.5"], DAYS, "dates as"),
        (["2000-01-02", "2000-01-03"], {}, "a unit and a since"),
    ],
)
def test_what_is_no_date_is_refused_by_column_and_never_shown(cells, facts, words, tmp_path):
    path = written(tmp_path, "t.csv", "x,when\n" + "".join(f"1,{cell}\n" for cell in cells))
    failure = refusal(DataError, path, schema=Schema(columns=(Column("x"), Column("when", **facts))))
    assert failure.column == "when"
    assert words in str(failure)


def test_a_date_of_a_typed_source_without_a_unit_is_refused():
    failure = refusal(DataError, pa.table({"when": pa.array([1, 2], pa.date32())}))
    assert 'unit = "days"' in str(failure)


def test_gaps_are_filled_by_a_public_constant(tmp_path):
    path = written(tmp_path, "t.csv", "a,s\n1,x\n?,\nNaN,N/A\n4,y\n")
    schema = Schema(columns=(Column("a", missing=-1), Column("s", categories=("x", "y", "none"), missing="none")))
    table = load(path, schema=schema)
    assert table.cells("a").tolist() == [1.0, -1.0, -1.0, 4.0]
    assert table.codes("s").tolist() == [0, 2, 2, 1]


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"missing": 5, "high": 4}, "outside of its bounds"),
        ({"missing": 0.5, "integer": True}, "no whole number"),
        ({"missing": "x"}, "not a finite number"),
        ({"missing": "x", "categories": ["y"]}, "no category"),
        ({"weight": 1.0}, "weight"),
        ({"weight": 0, "categories": ["y"]}, "weight"),
        ({"unit": "fortnights"}, "unit is one of"),
        ({"since": "2000-01-01"}, "belongs to a unit"),
        ({"unit": "days", "since": "soon"}, "since is a date"),
        ({"layout": "%Y"}, "belongs to a unit"),
        ({"unit": "days", "since": "2000-01-01", "layout": "iso"}, "layout is"),
    ],
)
def test_a_schema_that_contradicts_itself_is_refused(facts, words):
    with pytest.raises(ParameterError, match=words):
        Schema.from_json({"columns": {"a": facts}})


def test_what_is_filled_weighed_and_left_out_is_told_with_the_answer_and_never_how_often(tmp_path):
    path = written(tmp_path, "t.csv", "a,s,notes\n" + "".join(f"{i % 7 if i % 9 else ''},x,n\n" for i in range(900)))
    facts = {"a": {"missing": 3}, "s": {"categories": ["x", "y", "z"], "weight": 0.5}}
    schema = Schema.from_json({"columns": facts, "without": []})
    with Ledger.open(tmp_path / "l.db") as ledger:
        data = wf.open(path, schema=schema, ledger=ledger)
        made = data.count(neighbours=3, radius=0.2, epsilon="0.5")
    told = " ".join(made.notes)
    assert "Missing values are read by a public rule: a as 3." in told
    assert "Labels that differ count as a distance: s 0.5." in told
    assert "100" not in told


def test_a_table_with_text_is_surveyed_and_shows_no_value(tmp_path):
    path = written(tmp_path, "t.csv", "a,name,flag\n1,SECRET-42,true\n8675309.125,x,false\n")
    told = survey(path)
    assert [(one["name"], one["type"]) for one in told["columns"]] == [
        ("a", "number"),
        ("name", "text"),
        ("flag", "number"),
    ]
    assert told["rows"] == 2
    assert told["declared"] is False
    assert not [secret for secret in SECRETS if secret in str(told)]
    with pytest.raises(DataError, match="every column"):
        survey(written(tmp_path, "u.csv", "SECRET-42,Ada\nBob,Eve\nx,y\n"))


def test_a_schema_with_all_of_it_is_written_and_read_back(tmp_path):
    stored = {
        "name": "visits",
        "without": ["notes"],
        "file": {"separator": ";", "encoding": "latin-1", "decimal": ","},
        "columns": {
            "when": {"unit": "days", "since": "2000-01-01", "layout": "%d.%m.%Y"},
            "ward": {"categories": ["a", "b", "c"], "missing": "a", "weight": 2.0},
        },
    }
    schema = Schema.from_json(stored)
    assert schema.to_json() == stored
    assert Schema.read(written(tmp_path, "s.toml", schema.to_toml())) == schema
    assert Format(separator="tab").separator == "\t"


def test_reading_from_memory_needs_no_format():
    with pytest.raises(ParameterError, match="brings its own"):
        wf.open(load(np.zeros((3, 1))), separator=";")
