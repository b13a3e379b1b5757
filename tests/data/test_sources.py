"""Every source gives the same numbers, and every broken one gives one typed error that quotes no record."""

import gzip
import os
import sqlite3
import traceback
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wallflower.data import Schema, load
from wallflower.errors import DataError, ParameterError, SourceError

VALUES = np.array([[0.1, 0.0], [1 / 3, 1e-310], [2**53 - 1, 1.7976931348623157e308], [-7.25, 5.0]])
ARROW = pa.table({"a": VALUES[:, 0], "b": VALUES[:, 1]})
TEXT = "a,b\n" + "".join(f"{a!r},{b!r}\n" for a, b in VALUES.tolist())
SECRETS = ("SECRET-42", "8675309.125")


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def in_parquet_parts(folder):
    parts = folder / "parts"
    parts.mkdir()
    for position in (0, 1):
        pyarrow.parquet.write_table(ARROW.slice(2 * position, 2), parts / f"{position}.parquet")
    return parts


def in_parquet(folder):
    pyarrow.parquet.write_table(ARROW, folder / "t.parquet")
    return folder / "t.parquet"


def in_feather(folder):
    pyarrow.feather.write_feather(ARROW, folder / "t.feather")
    return str(folder / "t.feather")


def in_arrow_stream(folder):
    with pa.OSFile(str(folder / "t.arrow"), "wb") as sink, pa.ipc.new_stream(sink, ARROW.schema) as writer:
        writer.write_table(ARROW)
    return folder / "t.arrow"


def in_duckdb(folder):
    with duckdb.connect(folder / "warehouse.db") as database:
        database.register("arrow", ARROW)
        database.execute(
            "CREATE TABLE t AS SELECT * FROM arrow; CREATE SEQUENCE s;"
            "CREATE TABLE secret AS SELECT 'SECRET-42' x FROM t"
        )
    return f"duckdb:///{folder / 'warehouse.db'}?sql=SELECT a, b FROM t"


def in_sqlite(folder):
    with sqlite3.connect(folder / "lite.db") as database:
        database.execute("CREATE TABLE t (a REAL, b REAL)")
        database.executemany("INSERT INTO t VALUES (?, ?)", VALUES.tolist())
    database.close()
    return f"sqlite:///{folder / 'lite.db'}?table=t"


SOURCES = {
    "csv": lambda folder: written(folder, "t.csv", TEXT),
    "csv with byte order mark": lambda folder: written(folder, "t.csv", b"\xef\xbb\xbf" + TEXT.encode()),
    "csv with CRLF and spaces": lambda folder: written(folder, "T.CSV", TEXT.replace(",", " , ").replace("\n", "\r\n")),
    "csv.gz": lambda folder: written(folder, "t.csv.gz", gzip.compress(TEXT.encode())),
    "tsv": lambda folder: written(folder, "t.tsv", TEXT.replace(",", "\t")),
    "tsv.gz": lambda folder: written(folder, "t.tsv.gz", gzip.compress(TEXT.replace(",", "\t").encode())),
    "parquet": in_parquet,
    "parquet parts": in_parquet_parts,
    "feather": in_feather,
    "arrow stream": in_arrow_stream,
    "duckdb": in_duckdb,
    "sqlite": in_sqlite,
    "arrow table": lambda _: ARROW,
    "arrow batch": lambda _: ARROW.to_batches()[0],
    "pandas": lambda _: pd.DataFrame(VALUES, columns=["a", "b"]),
    "polars": lambda _: pl.DataFrame({"a": VALUES[:, 0], "b": VALUES[:, 1]}),
    "polars lazy": lambda _: pl.LazyFrame({"a": VALUES[:, 0], "b": VALUES[:, 1]}),
    "array": lambda _: VALUES,
}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_every_source_gives_the_same_numbers(kind, names, tmp_path):
    points = load(SOURCES[kind](tmp_path), schema=Schema.of(names)).points(["a", "b"])
    order = [0, 1] if kind != "array" else [names.index("a"), names.index("b")]
    assert points.values.tobytes() == np.ascontiguousarray(VALUES[:, order]).tobytes()


@pytest.mark.parametrize("kind", SOURCES)
def test_without_a_schema_every_column_is_read(kind, tmp_path):
    table = load(SOURCES[kind](tmp_path))
    assert table.columns == (("x1", "x2") if kind == "array" else ("a", "b"))
    assert (table.points().values == VALUES).all()


NAMES = {
    "csv.gz": "t", "tsv": "t", "parquet": "t", "parquet parts": "parts", "feather": "t",
    "duckdb": "warehouse", "sqlite": "lite", "pandas": "unnamed", "array": "unnamed",
}  # fmt: skip


@pytest.mark.parametrize("kind", NAMES)
def test_the_name_is_the_argument_or_the_schemas_or_the_files(kind, tmp_path):
    source = SOURCES[kind](tmp_path)
    assert load(source).name == NAMES[kind]
    assert load(source, schema=Schema(name="told")).name == "told"
    assert load(source, schema=Schema(name="told"), name="said").name == "said"


def refused(source, error, words, **options):
    with pytest.raises(error) as caught:
        load(source, **options)
    failure = caught.value
    assert words in str(failure)
    assert failure.__cause__ is None
    assert failure.__context__ is None
    told = str(failure) + repr(failure) + "".join(traceback.format_exception(failure))
    assert not [secret for secret in SECRETS if secret in told]


FILES = [
    ("t.csv", b"", SourceError, "empty"),
    ("t.csv", b"a,b\n", DataError, "no records"),
    ("t.csv", b"a,b", DataError, "no records"),
    ("t.csv", b"\n\n", DataError, "header"),
    ("t.csv", b"a,b\n1,2\n", DataError, "no neighbours"),
    ("t.csv", b"8675309.125,2\n3,4\n5,6\n", DataError, "header"),
    ("t.csv", b"SECRET-42,2020-01-02\nx,4\ny,6\n", DataError, "header"),
    ("t.csv", b"SECRET-42,Ada\nBob,Eve\nx,y\n", DataError, "every column"),
    ("t.csv", b"a,b,a\n1,2,3\n4,5,6\n", DataError, "more than once"),
    ("t.csv", b"SECRET-42,SECRET-42\n1,2\n3,4\n", DataError, "more than once"),
    ("t.csv", b"SECRET-42,?\nx,2\ny,4\n", DataError, "header"),
    ("t.csv", b",a\n0,2\n1,3\n", DataError, "no name"),
    ("t.csv", b"a;b\n1;2\n3;4\n", DataError, "not separated by ','"),
    ("t.csv", b"a,b\n1,2\n3\n8675309.125\n", SourceError, "as many cells"),
    ("t.csv", b"a,b\n1,2\n3,4,SECRET-42\n", SourceError, "as many cells"),
    ("t.csv", "a,b\n1,é SECRET-42\n2,x\n".encode("latin-1"), SourceError, "not UTF-8"),
    ("t.csv", b"a,b\n" + b"1,2\n" * 9000 + b"1,\xe9 SECRET-42\n", SourceError, "not UTF-8"),
    ("t.csv", "é,b\n1,2\n3,4\n".encode("latin-1"), SourceError, "not UTF-8"),
    ("t.csv", "a,b\n1,SECRET-42\n".encode("utf-16"), SourceError, "not UTF-8"),
    ("t.csv", bytes(range(256)) * 9, SourceError, "not UTF-8"),
    ("t.csv", gzip.compress(b"a,b\n1,2\n", mtime=0), SourceError, "not UTF-8"),
    ("t.csv", b'a,b\n1,2\n3,4\n5,"SECRET-42\n7,8\n', SourceError, "quotation mark"),
    ("t.csv.gz", gzip.compress(os.urandom(9000).hex().encode())[:-900], SourceError, "cut short"),
    ("t.csv.gz", gzip.compress(b"a,b\n" + b"1.5,SECRET-42\n" * 99999)[:-9], SourceError, "cut short"),
    ("t.csv.gz", b"a,b\n1,2\n3,4\n", SourceError, "cut short or damaged"),
    ("t.csv", b"a,b\n1,SECRET-42\n2,3\n", DataError, "column b holds text"),
    ("t.csv", b"a,b\n1,2024-01-01\n2,2024-01-02\n", DataError, "column b holds text"),
    ("t.csv", b"a,b\n1,?\n2,8675309.125\n", DataError, "column 'b' has missing"),
    ("t.csv", b"a,b\n1,\n2,8675309.125\n", DataError, "column 'b' has missing"),
    ("t.csv", b"a,b\n1,NA\n2,8675309.125\n", DataError, "column 'b' has missing"),
    ("t.csv", b"a,b\n1,nan\n2,8675309.125\n", DataError, "column 'b' has missing"),
    ("t.csv", b"a\n1\n\n8675309.125\n", DataError, "column 'a' has missing"),
    ("t.csv", b"a,b\n1,-inf\n2,8675309.125\n", DataError, "infinite"),
    ("t.csv", b"a,b\n1,1e400\n2,8675309.125\n", DataError, "infinite"),
    ("t.csv", b"a,b\n1,9007199254740993\n2,8675309.125\n", DataError, "2**53"),
    ("t.csv", b"a,b\n1,-99999999999999999999999\n2,3\n", DataError, "2**53"),
    ("t.parquet", b"PAR1 SECRET-42 PAR1", SourceError, "damaged"),
    ("t.feather", b"SECRET-42 and more of it", SourceError, "damaged"),
    ("t.arrow", b"ARROW1\0\0SECRET-42", SourceError, "damaged"),
    ("t.docx", b"SECRET-42", SourceError, ".parquet"),
    ("t.xlsx", b"SECRET-42", SourceError, "damaged"),
    ("t.xls", b"SECRET-42", SourceError, "damaged"),
    ("t.ods", b"SECRET-42", SourceError, "damaged"),
    ("t.jsonl", b'{"a": SECRET-42}', SourceError, "no JSON"),
    ("t.jsonl", b'{"a": 1}\n["SECRET-42"]', SourceError, "no JSON object"),
    ("t.ndjson.gz", b"SECRET-42", SourceError, "cut short"),
    ("t", b"SECRET-42", SourceError, ".csv.gz"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "error", "words"), FILES, ids=range(len(FILES)))
def test_a_bad_file_is_refused_once_and_quotes_nothing(name, content, error, words, tmp_path):
    refused(written(tmp_path, name, content), error, words)


def test_columns_nobody_asked_for_may_be_odd(tmp_path):
    path = written(tmp_path, "t.csv", b",a,x,x,1stFlrSF,Na\n0,1,p,q,5,140\n1,2,r,s,6,141\n")
    assert load(path, schema=Schema.of(["Na", "1stFlrSF", "a"])).points().values.tolist() == [[140, 5, 1], [141, 6, 2]]
    refused(path, DataError, "column x is in the source more than once", schema=Schema.of(["a", "x"]))
    headless = written(tmp_path, "u.csv", b"SECRET-42,Ada\nx,y\nz,w\n")
    refused(headless, DataError, "none of them", schema=Schema.of(["a", "b"]))


def test_a_cut_parquet_file_is_refused(tmp_path):
    whole = in_parquet(tmp_path).read_bytes()
    refused(written(tmp_path, "cut.parquet", whole[:-20]), SourceError, "damaged")


def test_parts_that_differ_are_refused(tmp_path):
    parts = in_parquet_parts(tmp_path)
    pyarrow.parquet.write_table(pa.table({"a": ["SECRET-42"], "b": [1.0]}), parts / "2.parquet")
    refused(parts, SourceError, "differ")


def test_places_that_are_not_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    refused(tmp_path / "absent.csv", SourceError, "no such file")
    refused(tmp_path, SourceError, "directory without .parquet")
    refused(tmp_path / "pipe.csv", SourceError, "not a regular file")
    refused("a\0b.csv", SourceError, "cannot be opened")


def test_a_file_that_may_not_be_read_is_refused(tmp_path):
    path, mine = written(tmp_path, "t.csv", TEXT), os.geteuid()
    path.chmod(0)
    if mine == 0:
        os.seteuid(65534)
    try:
        refused(path, SourceError, "cannot be opened")
    finally:
        os.seteuid(mine)


def test_a_huge_file_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = written(tmp_path, "huge.csv", TEXT)
    os.truncate(path, 10 * 2**30)
    refused(path, SourceError, str(4 * 2**30))
    small = written(tmp_path, "small.csv", TEXT)
    refused(small, SourceError, "limit of 10 bytes", limit_bytes=10)
    monkeypatch.setenv("WALLFLOWER_MAX_BYTES", "20")
    refused(small, SourceError, "limit of 20 bytes")
    assert load(small, limit_bytes=1000).n == len(VALUES)
    monkeypatch.setenv("WALLFLOWER_MAX_BYTES", "much")
    refused(small, ParameterError, "whole number")


def test_what_unpacks_to_more_than_the_limit_is_refused(tmp_path):
    bomb = written(tmp_path, "t.csv.gz", gzip.compress(b"a\n" + b"1\n" * 500_000))
    refused(bomb, SourceError, "larger than the limit", limit_bytes=10_000)
    refused("duckdb:///:memory:?sql=SELECT range FROM range(100000)", SourceError, "limit", limit_bytes=10_000)
    url = in_sqlite(tmp_path).replace("table=t", "sql=SELECT x.a FROM t x, t y, t z, t w")
    refused(url, SourceError, "limit", limit_bytes=10_000)


def masked(values):
    return np.ma.masked_array(values, mask=values == 8675309.125)


OBJECTS = [
    (pd.DataFrame({"a": [1.0, 2.0], "b": [1.5, "SECRET-42"]}, dtype=object), DataError, "column b holds text"),
    (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), DataError, "more than once"),
    (pd.DataFrame({"a": [8675309.125, None]}), DataError, "missing"),
    (pd.DataFrame({"a": pd.to_datetime(["2024-01-01", "2024-01-02"])}), DataError, "public date"),
    (pd.DataFrame({"a": [1 + 2j, 8675309.125]}), DataError, "text"),
    (pd.DataFrame({"a": [2**60, 2]}), DataError, "2**53"),
    (pd.DataFrame({"a": [10**40, 1.5]}, dtype=object), DataError, "text"),
    (pd.DataFrame({"a": [1.5, "SECRET-42\ud800"]}, dtype=object), DataError, "not a table"),
    (pd.DataFrame({"a": [{"SECRET-42": 1}, {"x": 2}]}), DataError, "type struct,"),
    (pd.Series([8675309.125, 2.0]), DataError, "not a table"),
    (pl.DataFrame({"a": [8675309.125, float("nan")]}), DataError, "missing"),
    (pl.DataFrame({"a": [8675309.125, float("inf")]}), DataError, "infinite"),
    (pl.DataFrame({"a": [["SECRET-42"], ["x"]], "b": [1, 2]}), DataError, "type"),
    (pl.DataFrame({"a": ["SECRET-42", "x"], "b": [1, 2]}), DataError, "column a holds text"),
    (pl.LazyFrame({"a": ["SECRET-42", "x"]}).select(pl.col("a").cast(pl.Float64)), DataError, "not a table"),
    (pa.table({"a": pa.nulls(2)}), DataError, "missing"),
    (pa.table({"a": pa.array([2**64 - 1, 1], pa.uint64())}), DataError, "2**53"),
    (pa.table({"a": pa.array([b"SECRET-42", b"x"])}), DataError, "type binary"),
    (pa.table({"a": pa.DictionaryArray.from_arrays([0, 0], pa.array([["SECRET-42"]]))}), DataError, "type list"),
    (pa.table([[1, 2], [3, 4]], names=["a", "a"]), DataError, "more than once"),
    (pa.chunked_array([[8675309.125, 1.0]]), DataError, "not a table"),
    (masked(np.array([[1.0, 8675309.125], [2.0, 3.0]])), DataError, "masked"),
    (np.array([8675309.125, 1.0]), DataError, "2-D"),
    (np.array([["SECRET-42", "x"], ["y", "z"]]), DataError, "2-D array of numbers"),
    (np.array([[2**60, 1], [2, 3]]), DataError, "2**53"),
    (np.zeros((3, 0)), DataError, "2-D"),
    ([["SECRET-42"]], ParameterError, "a list is not a source"),
    (8675309.125, ParameterError, "a float is not a source"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "error", "words"), OBJECTS, ids=lambda item: type(item).__name__)
def test_a_bad_frame_is_refused_once_and_quotes_nothing(source, error, words):
    refused(source, error, words)


def test_booleans_decimals_and_small_numbers_become_floats(tmp_path):
    text = b"yes,n\ntrue,1\nFALSE,2\nTrue,-3\n"
    assert load(written(tmp_path, "t.csv", text)).points().values.tolist() == [[1, 1], [0, 2], [1, -3]]
    decimal = pa.array([Decimal("9007199254740993.01"), Decimal("0.10")])
    small = pa.table({"d": decimal, "f": pa.array([0.5, 2], pa.float32()), "b": [True, False]})
    assert load(small).points().values.tolist() == [[9007199254740994.0, 0.5, 1.0], [0.1, 2.0, 0.0]]
    assert load(pd.DataFrame({"c": pd.Categorical([3, 5, 3])})).points().values.tolist() == [[3.0], [5.0], [3.0]]


def test_quoted_cells_may_hold_commas_and_lines(tmp_path):
    path = written(tmp_path, "t.csv", b'a,"note, long"\n1,"x\ny"\n2,"z, w"\n')
    assert load(path, schema=Schema.of(["a"])).points().values.tolist() == [[1.0], [2.0]]


URLS = [
    ("duckdb:///{db}?sql=SELECT * FROM 'secret.csv'", SourceError, "PermissionException"),
    ("duckdb:///{db}?sql=SELECT * FROM read_text('secret.csv')", SourceError, "PermissionException"),
    ("duckdb:///{db}?sql=SELECT * FROM ARROW", SourceError, "CatalogException"),
    ("duckdb:///{db}?sql=SELECT nextval('s')", SourceError, "did not answer"),
    ("duckdb:///{db}?sql=WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", SourceError, "did not answer"),
    ("duckdb:///{db}?sql=SELECT CAST(x AS DOUBLE) FROM secret", SourceError, "ConversionException"),
    ("duckdb:///{db}?sql=SELECT 1; DROP TABLE t", ParameterError, "one query"),
    ("duckdb:///{db}?sql=SELECT 1; SELECT 'SECRET-42'", ParameterError, "one query"),
    ("duckdb:///{db}?sql=COPY t TO 'out.csv'", ParameterError, "SELECT or WITH"),
    ("duckdb:///{db}?sql=SELECT%20a%20FROM%20t", ParameterError, "SELECT or WITH"),
    ("duckdb:///{db}?table=t; DROP TABLE t", ParameterError, "plain name"),
    ("duckdb:///{db}?table=absent", SourceError, "CatalogException"),
    ("duckdb:///{db}?table=secret", DataError, "every column"),
    ("duckdb:///{db}", ParameterError, "?table="),
    ("duckdb:///{db}?mode=rw&table=t", ParameterError, "no options"),
    ("duckdb://{db}?table=t", ParameterError, "three slashes"),
    ("duckdb:///absent.db?table=t", SourceError, "no such database"),
    ("duckdb:///secret.csv?table=t", SourceError, "did not answer"),
    ("sqlite:///{lite}?sql=SELECT 1; DROP TABLE t", SourceError, "did not answer"),
    ("sqlite:///{lite}?sql=WITH x AS (SELECT 1) DELETE FROM t", SourceError, "DatabaseError"),
    ("sqlite:///{lite}?sql=SELECT * FROM pragma_table_info('t')", SourceError, "did not answer"),
    ("sqlite:///{lite}?sql=SELECT 1.5 a UNION ALL SELECT 'SECRET-42'", DataError, "every column"),
    ("sqlite:///{lite}?sql=SELECT CAST(x'53454352ff' AS TEXT) a", SourceError, "OperationalError"),
    ("sqlite:///secret.csv?table=t", SourceError, "DatabaseError"),
    ("postgresql://ada:SECRET-42@127.0.0.1:1/db?table=t", SourceError, "OperationalError"),
    ("postgresql://ada:SECRET-42@[bad/db?table=t", SourceError, "did not answer"),
    ("https://ada:SECRET-42@host/t.csv", ParameterError, "duckdb://"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("url", "error", "words"), URLS)
def test_a_database_is_only_read_by_one_query_and_tells_nothing(url, error, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "secret.csv", "x\nSECRET-42\n" * 99)
    in_duckdb(tmp_path), in_sqlite(tmp_path)
    refused(url.format(db="warehouse.db", lite="lite.db"), error, words)
    assert load("duckdb:///warehouse.db?table=main.t").n == len(VALUES)
    assert load("sqlite:///lite.db?sql=select a+b as c, a%2 as d from t;\n").columns == ("c", "d")
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.slow
def test_postgresql_is_read_through_one_read_only_query(postgres):
    place = postgres.fresh()
    with psycopg.connect(place) as database:
        database.execute("CREATE TABLE t (a float8, b numeric, s text)")
        database.cursor().executemany("INSERT INTO t VALUES (%s, %s, 'SECRET-42')", [(a, "0.10") for a in VALUES[:, 0]])
    url = f"{place}?connect_timeout=9&sql="
    table = load(url + "SELECT a, b FROM t")
    assert table.name == place.rpartition("/")[2]
    assert table.points().values.tolist() == [[a, 0.1] for a in VALUES[:, 0]]
    refused(url + "SELECT 1; DELETE FROM t", SourceError, "SyntaxError")
    refused(url + "WITH x AS (DELETE FROM t RETURNING a) SELECT a FROM x", SourceError, "did not answer")
    refused(url + "SELECT set_config('transaction_read_only', 'off', false)", SourceError, "did not answer")
    refused(url + "SELECT s::float8 FROM t", SourceError, "did not answer")
    refused(f"{place.replace('postgresql:', 'postgres:')}?table=public.t", DataError, "column s holds text")
    wrong = place.replace(place.split(":")[2].split("@")[0], "SECRET-42")
    refused(wrong + "?table=t", SourceError, "OperationalError")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    secret=st.sampled_from(SECRETS),
    spoiler=st.sampled_from(["{}", "{} x", "é{}", '"{}', "{},{}", "{}\n", "?", "1e999{}", "\0{}", "nan", "", "{}\0"]),
    place=st.integers(0, 5),
    encoding=st.sampled_from(["utf-8", "latin-1", "utf-16", "utf-8-sig"]),
    suffix=st.sampled_from(["csv", "csv.gz", "tsv", "parquet", "feather", "arrow"]),
    bounds=st.sampled_from([{}, {"a": (0, 9)}]),
)
def test_no_error_ever_holds_a_planted_secret(tmp_path, secret, spoiler, place, encoding, suffix, bounds):
    cells = ["1", "2", secret, "4", "5", "6"]
    cells[place] = spoiler.format(secret, secret)
    content = "a,b\n{},{}\n{},{}\n{},{}\n".format(*cells).encode(encoding)
    path = written(tmp_path, f"t.{suffix}", gzip.compress(content) if suffix == "csv.gz" else content)
    for schema in (None, Schema.of(["a", "b"], bounds=bounds), Schema.of(["a"], categories={"a": ["1"]})):
        failure = failure_of(path, schema)
        assert secret not in "".join(traceback.format_exception(failure))
        assert failure is None or failure.__context__ is None


def failure_of(path, schema):
    try:
        load(path, schema=schema)
    except (DataError, SourceError) as failure:
        return failure
