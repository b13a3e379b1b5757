"""A table that an engine keeps: read in parts, held to its schema, asked as the same table in memory is."""

import gzip
import sqlite3
from contextlib import closing
from dataclasses import replace

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import wallflower as wf
from scripted_noise import Scripted
from wallflower import progress
from wallflower.cli import build
from wallflower.data import Schema, TiledTable, load, scans
from wallflower.data import fingerprints as prints
from wallflower.data.scans import load_into
from wallflower.data.sources import texts
from wallflower.errors import DataError, EngineMismatch, ParameterError, SourceError
from wallflower.ledger import Ledger
from wallflower.neighbours import spreads
from wallflower.neighbours.noisy_count import exact_count, exact_steps
from wallflower.neighbours.radii import Tally, outlier_curve
from wallflower.noise import system_noise
from wallflower.privacy import Loss
from wallflower.queries import COMPANIONS, QUERIES
from wallflower.queries.count import Count
from wallflower.queries.count.exact import count_outliers
from wallflower.queries.profile import Profile
from wallflower.queries.radius import Radius
from wallflower.queries.scale import Scale
from wallflower.queries.subspaces import Subspaces
from wallflower.release.inputs import project
from wallflower.schema.columns import Selection

N = 3000
FACTS = Schema.of(
    ["x", "y", "ward"], scale={"x": 2.0}, bounds={"y": (-3, 3)}, categories={"ward": ["a", "b", "c"]}, clip=True, rows=N
)


@pytest.fixture
def records():
    made = np.random.default_rng(3)
    ward = pa.array(np.array(["a", "b", "c"])[made.integers(0, 3, N)])
    return pa.table({"x": made.normal(size=N), "y": made.normal(size=N), "ward": ward})


@pytest.fixture
def folder(records, tmp_path):
    place = tmp_path / "people"
    place.mkdir()
    for at in range(3):
        pq.write_table(records.slice(at * 1000, 1000), place / f"{at}.parquet", row_group_size=300)
    return place


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(scans, "CHUNK", 257)
    monkeypatch.setattr("wallflower.neighbours.tiles.tile_size", lambda dimension, neighbours: 400)


@pytest.mark.slow
def test_the_answer_before_noise_is_that_of_the_table_in_memory(folder):
    memory, tiled = load(folder, schema=FACTS), load_into(folder, "tiles", schema=FACTS)
    for columns in (["x", "y"], ["y"]):
        for radius, slack in ((0.1, 4), (0.2, 8)):
            asked = {"radius": radius, "neighbours": 4, "normalise": True}
            values, points = memory.points(columns).values, tiled.points(columns)
            steps = [exact_steps(records, slack=slack, **asked) for records in (values, points)]
            assert abs(steps[0] - steps[1]) <= 1  # (T): a contest is decided to within one step
            assert exact_count(points, **asked) == count_outliers(values, **asked)


@pytest.mark.parametrize("paired", [2**22, 2000, 500])
def test_scales_and_locations_are_chosen_by_the_errors_of_the_table_in_memory(folder, paired, monkeypatch):
    monkeypatch.setattr(spreads, "MAX_PAIRED_RECORDS", paired)
    asked = Scale(loss=Loss("1"), location=True)
    memory, tiled = (asked.view(load_into(folder, engine, schema=FACTS)) for engine in ("memory", "tiles"))
    pooled = Scale(loss=Loss("1"), columns=("y", "x"))
    for query in (asked, pooled):
        groups = query.groups(memory.columns)
        for _ in range(3):
            pairs = spreads.pair_up(memory.n, system_noise())
            both = zip(query.errors(memory, groups, pairs), query.errors(tiled, groups, pairs), strict=True)
            assert all(np.array_equal(*pair) for pair in both)
    located = (asked.location_errors(points, [0.7, 1.3]) for points in (memory, tiled))
    assert all(np.array_equal(*pair) for pair in zip(*located, strict=True))


def test_a_scale_of_tiles_is_what_a_count_of_tiles_takes(folder, tmp_path):
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        people = wf.open(folder, schema=FACTS, engine="tiles", ledger=ledger)
        spread = people.scale(epsilon="0.7", location=True)
        assert 0.7 < spread.value["scale"]["x"] < 1.4
        assert abs(spread.value["location"]["x"]) < 1
        assert people.count(neighbours=4, radius=0.2, epsilon="0.3", scale=spread).terms


def test_weighted_labels_are_coordinates_on_tiles_too(folder):
    facts = Schema.from_json({"columns": {"x": {}, "ward": {"categories": ["a", "b", "c"], "weight": 0.3}}})
    memory, tiled = load(folder, schema=facts), load_into(folder, "tiles", schema=facts)
    asked = {"radius": 0.1, "neighbours": 4, "normalise": False}
    values = memory.points(labels=True).values
    assert tiled.points(labels=True).width == values.shape[1] == 4
    assert exact_count(tiled.points(labels=True), **asked) == count_outliers(values, **asked)


def test_a_table_is_recognised_wherever_it_lies(folder, monkeypatch):
    monkeypatch.setattr(prints, "_BLOCK", 100)
    memory, tiled = load(folder, schema=FACTS), load_into(folder, "tiles", schema=FACTS)
    assert prints.fingerprint(memory, bytes(32)) == prints.fingerprint(tiled, bytes(32))


def test_folders_of_partitions_are_columns(records, tmp_path):
    for ward in ("a", "b", "c"):
        place = tmp_path / "hive" / f"ward={ward}"
        place.mkdir(parents=True)
        part = records.filter(pa.compute.equal(records["ward"], ward)).select(["x", "y"])
        pq.write_table(part, place / "part.parquet")
    memory, tiled = load(tmp_path / "hive", schema=FACTS), load_into(tmp_path / "hive", "tiles", schema=FACTS)
    assert prints.fingerprint(memory, bytes(32)) == prints.fingerprint(tiled, bytes(32))


def test_the_data_set_answers_and_pays_once(folder, tmp_path):
    with Ledger.open(tmp_path / "book.db") as book:
        people = wf.open(folder, schema=FACTS, ledger=book, engine="tiles")
        made = people.count(neighbours=4, radius=0.2, epsilon="0.5")
        assert made.facts.n == N
        assert 0 <= made.value <= N
        assert str(people.budget().left) == "ε = 0.5"
        assert people.plan.count(neighbours=4, radius=0.2, epsilon="0.5").useful
        rescaled = people.count(neighbours=4, radius=0.2, epsilon="0.1", mechanism="global", columns=("x",))
        assert rescaled.mechanism == "global"


@pytest.mark.parametrize("question", [*QUERIES, *COMPANIONS], ids=lambda question: question.kind)
def test_what_tiles_cannot_answer_is_refused_before_it_is_charged(question, folder, tmp_path):
    if question.supports_tiles:
        return
    with Ledger.open(tmp_path / "book.db") as book:
        people = wf.open(folder, schema=FACTS, ledger=book, engine="tiles")
        with pytest.raises(EngineMismatch, match=rf"{question.kind}: .*engine='memory'"):
            people.ask(question.example(), force=True)
        with pytest.raises(EngineMismatch):
            people.plan.of(question.example())
        assert book.history(people.name, event="charge") == []


@pytest.mark.parametrize(
    "asked",
    [{"mechanism": "smooth", "loss": Loss("1", delta="1e-6")}, {"interval": "two-sided"}],
    ids=["smooth", "two-sided"],
)
def test_parts_of_a_count_that_need_the_whole_table_are_refused(asked, folder, tmp_path):
    query = Count(**{"neighbours": 4, "radius": 0.2, "loss": Loss("1"), "columns": ("x", "y"), **asked})
    with Ledger.open(tmp_path / "book.db") as book:
        people = wf.open(folder, schema=FACTS, ledger=book, engine="tiles")
        with pytest.raises(EngineMismatch, match="count with"):
            people.ask(query, force=True)
        assert book.history(people.name, event="charge") == []


@pytest.mark.parametrize("question", [Radius, Profile])
def test_the_outlier_mass_needs_the_whole_table(question, folder):
    """A flow is not a sum over tiles."""
    asked = question.example()
    with pytest.raises(EngineMismatch, match="Omit graded"):
        project(replace(asked, slack=None, graded=True, columns=("x", "y")), load_into(folder, "tiles", schema=FACTS))


@pytest.mark.slow
def test_curves_and_radii_are_those_of_the_table_in_memory(records):
    """At a slack that nothing contests, so that every step agrees; the same noise then draws the same radius."""
    few = records.select(["x", "y"]).slice(0, 450)
    memory, tiled = load(few).points(), load_into(few, "tiles")
    points, tally = tiled.points(["x", "y"]), Tally(neighbours=4, slack=24)
    radii = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
    assert outlier_curve(points, radii, tally).tolist() == outlier_curve(memory.values, radii, tally).tolist()
    for asked in (
        Radius(neighbours=4, share="2%", slack=24, smallest=0.1, largest=1.0, columns=("x", "y"), loss=Loss("1")),
        Profile(neighbours=4, radii=radii, slack=24, columns=("x", "y"), loss=Loss("1")),
        Count(neighbours=4, share="2%", slack=24, columns=("x", "y"), loss=Loss("1")),
    ):
        told = [asked.answer(project(asked, table), Scripted()) for table in (memory, tiled)]
        assert told[0] == told[1]


GROUPED = Schema.from_json(
    {
        "columns": {
            "x": {},
            "y": {"edges": [-1, 0.5], "low": -3, "high": 3},
            "ward": {"categories": ["a", "b", "nobody", "c"], "public": True},
        },
        "clip": True,
    }
)


@pytest.mark.parametrize("by", [("ward",), ("y", "ward")])
def test_groups_are_counted_as_in_memory(by, records):
    """At a slack that nothing contests: by labels and by edges, a group without records among them."""
    memory, tiled = load(records, schema=GROUPED), load_into(records, "tiles", schema=GROUPED)
    public = by == ("ward",)
    asked = Count(neighbours=4, radius=0.1, by=by, columns=("x",), slack=24, loss=Loss("1"), public_groups=public)
    told = [asked.answer(project(asked, table), Scripted()) for table in (memory, tiled)]
    assert told[0] == told[1]
    assert len(told[0].value) == (4 if public else 12)


def test_progress_of_groups_says_the_same_of_other_records():
    made, told = np.random.default_rng(4), []
    facts = Schema.from_json({"columns": {"x": {}, "ward": {"categories": ["a", "b"]}}})
    asked = Count(neighbours=4, radius=0.1, by=("ward",), columns=("x",), loss=Loss("1"))
    for wards in (["a"] * 600, ["a", "b"] * 300):
        table = load_into(pa.table({"x": made.normal(size=600), "ward": wards}), "tiles", schema=facts)
        hearer = Hearer()
        with progress.report_to(hearer):
            asked.answer(project(asked, table), Scripted())
        told.append(hearer.heard)
    assert told[0] == told[1] != []


@pytest.mark.parametrize("asked", [{"counts": True}, {"score": "count", "columns": ("x", "y")}, {"upto": 2, "top": 2}])
def test_subspaces_are_chosen_as_in_memory(asked, records):
    facts = Schema.from_json({"columns": {"x": {}, "y": {}, "ward": {"categories": ["a", "b", "c"], "weight": 0.3}}})
    few = records.slice(0, 1600)
    memory, tiled = load(few, schema=facts), load_into(few, "tiles", schema=facts)
    query = Subspaces(**{"neighbours": 4, "radius": 0.05, "loss": Loss("2"), **asked})
    family = query.family.subspaces(project(query, memory).columns)
    scores = [query.score_family(project(query, table), family) for table in (memory, tiled)]
    assert scores[0] == scores[1]
    told = [query.answer(project(query, table), Scripted()) for table in (memory, tiled)]
    assert told[0] == told[1]


def test_subspaces_that_memory_cannot_hold_are_refused_by_public_facts(folder, monkeypatch):
    table = load_into(folder, "tiles", schema=FACTS)
    query = Subspaces(neighbours=4, radius=0.05, loss=Loss("2"))
    monkeypatch.setenv("WALLFLOWER_MEMORY", str(N * (scans.ROW_BYTES + scans.CELL_BYTES)))
    with pytest.raises(EngineMismatch, match=r"subspaces of 2 columns .*WALLFLOWER_MEMORY"):
        project(query, table)
    assert project(replace(query, size=1), table).n == N


class Hearer:
    """Notes what is told of progress."""

    def __init__(self):
        self.heard = []

    def begin(self, words, total):
        self.heard.append((words, total))

    def advance(self, handle, steps):
        pass

    def end(self, handle):
        pass


def test_progress_says_the_same_of_other_records(tmp_path):
    """Whatever the records: where all coincide, where they contest, where all are apart."""
    made, told = np.random.default_rng(4), []
    for values in (np.zeros((500, 2)), made.uniform(0, 22, (500, 2)), made.normal(size=(500, 2)) * 1e6):
        hearer = Hearer()
        with progress.report_to(hearer):
            table = load_into(pa.table({"x": values[:, 0], "y": values[:, 1]}), "tiles")
            exact_steps(table.points(), 1.0, 4, 2, normalise=True)
            outlier_curve(table.points(), (0.5, 1.0, 2.0), Tally(neighbours=4, slack=2))
        told.append(hearer.heard)
    assert told[0] == told[1] == told[2] != []


def test_the_table_goes_to_tiles_by_itself_when_memory_is_short(folder, monkeypatch):
    """By rows and columns, which are public, not by what compression makes of the records."""
    need = N * (scans.ROW_BYTES + 3 * scans.CELL_BYTES)
    monkeypatch.setenv("WALLFLOWER_MEMORY", str(need))
    assert not isinstance(load_into(folder, None, schema=FACTS), TiledTable)
    monkeypatch.setenv("WALLFLOWER_MEMORY", str(need - 1))
    assert isinstance(load_into(folder, None, schema=FACTS), TiledTable)
    assert not isinstance(load_into(folder, "memory", schema=FACTS), TiledTable)
    monkeypatch.setenv("WALLFLOWER_MEMORY", "much")
    with pytest.raises(ParameterError, match="WALLFLOWER_MEMORY"):
        load_into(folder, None, schema=FACTS)


def test_the_limit_on_bytes_is_none_for_tiles(folder, monkeypatch):
    monkeypatch.setenv("WALLFLOWER_MAX_BYTES", "1000")
    with pytest.raises(SourceError, match="larger than the limit"):
        load(folder, schema=FACTS)
    assert load_into(folder, "tiles", schema=FACTS).n == N


REFUSALS = {
    "another number of rows": (Schema.of(["x", "y"], rows=N + 1), DataError, "the schema says"),
    "out of bounds": (Schema.of(["x"], bounds={"x": (-0.1, 0.1)}), DataError, "outside its public bounds"),
    "labels without categories": (Schema.of(["x", "ward"]), DataError, "holds text"),
    "an unknown label": (Schema.of(["ward"], categories={"ward": ["a"]}), DataError, "not among its public categories"),
    "an unknown column": (Schema.of(["x", "nix"]), DataError, "'nix' was asked for"),
}


@pytest.mark.parametrize("why", REFUSALS)
def test_tiles_refuse_what_memory_refuses_in_the_same_words(why, folder):
    facts, kind, words = REFUSALS[why]
    told = []
    for engine in ("memory", "tiles"):
        with pytest.raises(kind, match=words) as refused:
            load_into(folder, engine, schema=facts)
        told.append(str(refused.value))
    assert told[0] == told[1]


def test_sources_that_cannot_be_read_in_parts_are_refused(tmp_path):
    path = tmp_path / "people.xlsx"
    path.write_text("x,y\n1,2\n3,4\n")
    with pytest.raises(SourceError, match="an engine reads Parquet"):
        load_into(path, "tiles")
    with pytest.raises(ParameterError, match="'cluster' is not known; there are memory, tiles"):
        load_into(path, "cluster")
    with pytest.raises(SourceError, match="no such file"):
        load_into(tmp_path / "gone.parquet", "tiles")


def test_a_table_of_duckdb_is_read_in_parts(records, folder, tmp_path):
    path = tmp_path / "clinic.db"
    with duckdb.connect(str(path)) as database:
        database.register("given", records)
        database.sql("CREATE TABLE patients AS SELECT * FROM given")
    tiled = load_into(f"duckdb:///{path}?table=patients", "tiles", schema=FACTS)
    assert prints.fingerprint(load(folder, schema=FACTS), bytes(32)) == prints.fingerprint(tiled, bytes(32))
    part = load_into(f"duckdb:///{path}?sql=SELECT x, ward FROM patients WHERE x > 0", "tiles", without=["ward"])
    assert part.columns == ("x",)
    assert part.n == int((np.asarray(records["x"]) > 0).sum())
    with pytest.raises(SourceError, match="did not answer the query"):
        load_into(f"duckdb:///{path}?table=nobody", "tiles")
    with pytest.raises(SourceError, match="a database in a file"):
        load_into("duckdb:///:memory:?sql=SELECT 1 AS x", "tiles")


@pytest.mark.parametrize("kind", ["identifier", "time"])
def test_identifiers_and_times_are_kept_and_no_coordinates(kind, records):
    """Texts of several lengths, of other alphabets, that read as numbers, and none at all where that is allowed."""
    names = ["ä" * (at % 5) + str(at) for at in range(N - 1)]
    named = records.select(["x"]).append_column("name", pa.array([*names, None if kind == "identifier" else "7"]))
    facts = Schema.from_json({"columns": {"x": {}, "name": {kind: True}}})
    memory, tiled = load(named, schema=facts), load_into(named, "tiles", schema=facts)
    assert tiled.columns == ("x", "name")
    assert tiled.points().columns == ("x",)
    assert prints.fingerprint(memory, bytes(32)) == prints.fingerprint(tiled, bytes(32))
    asked = {"radius": 0.1, "neighbours": 4, "normalise": True}
    assert exact_count(tiled.points(), **asked) == count_outliers(memory.points().values, **asked)


def test_a_frame_may_be_kept_by_tiles(records):
    assert load_into(records.select(["x", "y"]), "tiles").n == N


def test_the_command_line_takes_an_engine(folder, tmp_path):
    asked = [str(folder), "--neighbours", "4", "--radius", "0.2", "--epsilon", "0.5", "--engine", "tiles"]
    asked += ["--ledger", str(tmp_path / "book.db"), "--without", "ward", "--json"]
    told = CliRunner().invoke(build(QUERIES), ["count", *asked])
    assert told.exit_code == 0, told.output
    assert '"n": 3000' in told.output
    dry = CliRunner().invoke(build(QUERIES), ["count", *asked, "--dry-run"])
    assert dry.exit_code == 0, dry.output


def same_cells(memory, tiled):
    """Whether an engine keeps what memory holds: public facts, and the cells in order."""
    kept = tiled.points().gather()
    return memory.columns == tiled.columns and np.array_equal(memory.points().values, kept)


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz", "people.tsv"])
def test_delimited_text_is_kept_as_memory_reads_it(records, tmp_path, monkeypatch, name):
    monkeypatch.setattr(texts, "_BLOCK", 4096)
    path = tmp_path / name
    mark = "\t" if ".tsv" in name else ","
    rows = zip(*(records[column].to_pylist() for column in ("x", "y", "ward")), strict=True)
    written = "x,y,ward\n".replace(",", mark) + "".join(f"{x!r}{mark}{y!r}{mark}{ward}\n" for x, y, ward in rows)
    path.write_bytes(gzip.compress(written.encode()) if name.endswith(".gz") else written.encode())
    tiled = load_into(path, "tiles", schema=FACTS)
    assert tiled.name == "people"
    assert same_cells(load(path, schema=FACTS), tiled)


@pytest.mark.parametrize(
    ("cells", "written"),
    [
        (["1", "0", "2"], {}),
        (["true", "FALSE", "true"], {}),
        (["1.234,5", "-2", "7.000"], {"decimal": ",", "thousands": ".", "separator": ";"}),
        (["café", "true", "1"], {"encoding": "latin-1"}),
        (["", "true", "1"], {}),
        (["1", "2", "?"], {}),
        (["9007199254740993", "1", "2"], {}),
    ],
)
def test_the_kind_of_a_column_is_told_by_all_cells_of_the_file(tmp_path, monkeypatch, cells, written):
    monkeypatch.setattr(texts, "_BLOCK", 256)
    path, mark = tmp_path / "people.csv", written.get("separator", ",")
    lines = [f"{cells[0]}{mark}1\n"] * 400 + [f"{cells[1]}{mark}1\n"] * 400 + [f"{cells[2]}{mark}1\n"] * 3
    path.write_bytes(f"x{mark}y\n{''.join(lines)}".encode(written.get("encoding", "utf-8")))
    found = []
    for engine in ("memory", "tiles"):
        try:
            table = load_into(path, engine, **written)
            found.append((table.points().gather() if engine == "tiles" else table.points().values).tolist())
        except DataError as refusal:
            found.append(str(refusal))
    assert found[0] == found[1]


def test_a_line_that_lacks_a_cell_is_refused_in_the_words_of_memory(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("x,y\n" + "1,2\n" * 500 + "3\n")
    for engine in ("memory", "tiles"):
        with pytest.raises(SourceError, match="not every line has as many cells"):
            load_into(path, engine)


def test_a_table_of_sqlite_is_read_in_parts_and_counted_in_the_same_view(records, tmp_path):
    path = tmp_path / "clinic.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE patients (x REAL, y REAL, ward TEXT)")
        database.executemany(
            "INSERT INTO patients VALUES (?, ?, ?)", [tuple(row.values()) for row in records.to_pylist()]
        )
        database.commit()
    url = f"sqlite:///{path}?table=patients"
    assert same_cells(load(url, schema=FACTS), load_into(url, "tiles", schema=FACTS))
    part = f"sqlite:///{path}?sql=SELECT x FROM patients WHERE x > 0"
    assert same_cells(load(part), load_into(part, "tiles"))
    for sql in (
        "SELECT 1 AS x); DROP TABLE patients; SELECT (1",
        "WITH a AS (SELECT load_extension('z') AS x) SELECT * FROM a",
    ):
        with pytest.raises(SourceError, match="did not answer"):
            load_into(f"sqlite:///{path}?sql={sql}", "tiles")


@pytest.mark.slow
def test_a_table_of_postgresql_is_read_in_parts_by_one_query(records, postgres):
    place = postgres.fresh()
    with psycopg.connect(place) as database:
        database.execute("CREATE TABLE patients (x double precision, y double precision, ward text)")
        with database.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO patients VALUES (%s, %s, %s)", [tuple(row.values()) for row in records.to_pylist()]
            )
    url = f"{place}?sql=SELECT * FROM patients ORDER BY x"
    assert same_cells(load(url, schema=FACTS), load_into(url, "tiles", schema=FACTS))
    for sql in (
        "SELECT 1 AS x; DELETE FROM patients",
        "WITH gone AS (DELETE FROM patients RETURNING x) SELECT x FROM gone",
    ):
        with pytest.raises(SourceError, match="did not answer"):
            load_into(f"{place}?sql={sql}", "tiles")
    with psycopg.connect(place) as database:
        assert database.execute("SELECT count(*) FROM patients").fetchone() == (N,)


def test_reading_parquet_holds_some_records_at_a_time_and_not_the_file(tmp_path):
    rows = np.random.default_rng(5).normal(size=400_000)
    pq.write_table(pa.table({"x": rows}), tmp_path / "long.parquet", row_group_size=4000)
    before, most = pa.total_allocated_bytes(), 0
    for _ in scans.scan_of(tmp_path / "long.parquet", Selection()).chunks:
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < rows.nbytes / 8
