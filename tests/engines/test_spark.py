"""Spark gives the answer of tiles and of memory, keeps records to itself, and survives what clusters do."""

import stat
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sparks import assert_that_kills_change_nothing, itself, mortal_tasks, spark
from typer.testing import CliRunner

import wallflower as wf
from scripted_noise import RecordedScript
from wallflower.audit.answers import Recorder
from wallflower.cli import build
from wallflower.data import Schema, TiledTable, load
from wallflower.data import fingerprints as prints
from wallflower.data.scans import load_into
from wallflower.engines.local import Tiling
from wallflower.engines.spark import engine as engines
from wallflower.engines.spark import tasks
from wallflower.errors import DataError, EngineMismatch, ParameterError, SourceError
from wallflower.ledger import Ledger
from wallflower.neighbours.extension import certify
from wallflower.neighbours.noisy_count import GAP, exact_steps
from wallflower.neighbours.pairs import build_tree
from wallflower.neighbours.radii import Tally, outlier_curve
from wallflower.neighbours.tiles import certify_tiles, count_inliers
from wallflower.noise import SystemNoise
from wallflower.privacy import Loss
from wallflower.queries import QUERIES
from wallflower.queries.count import Count
from wallflower.queries.detector.model import Model
from wallflower.queries.detector.tasks import cells_of, flags_by, numbers_above
from wallflower.queries.explain import Explain
from wallflower.queries.scale import Scale
from wallflower.queries.subspaces import Subspaces
from wallflower.release.inputs import project

pytestmark = pytest.mark.slow  # Java takes seconds to start

N = 1200
PLANTED = 471108.150625
FACTS = Schema.of(
    ["x", "y", "ward"], scale={"x": 2.0}, bounds={"y": (-3, 3)}, categories={"ward": ["a", "b", "c"]}, clip=True, rows=N
)


@pytest.fixture(scope="module")
def own():
    with spark() as (engine, folder):
        yield engine, Path(folder)


@pytest.fixture
def engine(own):
    return own[0]


@pytest.fixture
def records():
    made = np.random.default_rng(3)
    ward = pa.array(np.array(["a", "b", "c"])[made.integers(0, 3, N)])
    return pa.table({"x": made.normal(size=N), "y": made.normal(size=N), "ward": ward})


@pytest.fixture
def folder(records, tmp_path):
    place = tmp_path / "people [2020]"
    place.mkdir()
    for at in range(3):
        pq.write_table(records.slice(at * 400, 400), place / f"{at}.parquet")
    return place


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr("wallflower.neighbours.tiles.tile_size", lambda dimension, neighbours: 300)


def anyhow(seed, tiles):
    """Cuts that make little sense: any column, any value."""
    made = np.random.default_rng(seed)
    parts = made.integers(1, tiles + 1, 2)
    return lambda sample, n, size: Tiling(
        1,
        np.full(4, made.integers(0, sample.shape[1])),
        np.full(4, float(made.choice(sample.ravel()))),
        np.concatenate([[0], np.cumsum(parts)]),
    )


@pytest.mark.parametrize("seed", range(5))
def test_any_tiles_of_any_order_have_the_answer_of_memory(seed, engine, monkeypatch):
    """On a small lattice, so that there are ties and duplicates; with slacks of 2 and 3 suppliers are contested."""
    made = np.random.default_rng(seed)
    values = made.integers(0, 5, (40, 1 + seed % 3)).astype(float)
    k, reach, slack = 2 + seed % 3, 1.0, 2.0 + seed % 2
    total = ((values[:, None] - values[None]) ** 2).sum(-1) <= reach
    known = certify(build_tree(values, reach), k, slack, GAP / 100)
    monkeypatch.setattr(engines, "plan_tiles", anyhow(seed, 3))
    shuffled = values[made.permutation(40)]
    sheet = engine.keep("x", [list(shuffled[:15].T), list(shuffled[15:].T)], 2)
    with sheet.tile(range(values.shape[1]), np.column_stack, size=10) as tiles:
        assert count_inliers(tiles, reach, k) == int((total.sum(1) - 1 >= k).sum())
        found = certify_tiles(tiles, reach, k, slack, GAP)
    assert known.lower - GAP <= found.lower <= known.upper
    assert found.upper - found.lower <= GAP


def test_a_table_is_the_same_wherever_it_lies(engine, folder, records, monkeypatch):
    """Spark reads Parquet by path and by URI, a table of its catalog and a frame; it is handed what is in memory."""
    memory = load(folder, schema=FACTS)
    known = prints.fingerprint(memory, bytes(32))
    frame = engine._sql.read.parquet(f"file://{folder}".replace("[", r"\[").replace("]", r"\]"))
    frame.write.saveAsTable("people")
    places = [folder, f"file://{folder}".replace("[", r"\[").replace("]", r"\]"), "catalog://people", frame, records]
    for source in places:
        kept = load_into(source, engine, schema=FACTS)
        assert isinstance(kept, TiledTable)
        assert (kept.n, kept.columns, kept.engine) == (N, ("x", "y", "ward"), "spark")
        assert prints.fingerprint(kept, bytes(32)) == known
    asked = {"radius": 0.2, "neighbours": 4, "normalise": True}
    steps = {
        exact_steps(load_into(folder, at, schema=FACTS).points(["x", "y"]), slack=8, **asked)
        for at in (engine, "tiles")
    }
    assert steps == {exact_steps(memory.points(["x", "y"]).values, slack=8, **asked)}
    tally, radii = Tally(neighbours=4, slack=24), (0.05, 0.2)
    kept = load_into(folder, engine, schema=FACTS).points(["x", "y"])
    assert (
        outlier_curve(kept, radii, tally).tolist()
        == outlier_curve(memory.points(["x", "y"]).values, radii, tally).tolist()
    )


def test_a_detector_counts_the_same_cells(engine, folder):
    memory, kept = load(folder, schema=FACTS), load_into(folder, engine, schema=FACTS)
    query = wf.Detector(loss=wf.Loss("100000"), contamination="2%", columns=("x", "y"), spreads="schema")
    one, two = query.view(memory), query.view(kept)
    model = Model.of(query.answer(one, SystemNoise()))
    assert (cells_of(one, model.grids) == cells_of(two, model.grids)).all()
    assert (numbers_above(one, model) == numbers_above(two, model)).all()
    flags = wf.Flags(detector=1, by=("ward",), loss=wf.Loss("1"))
    assert flags_by(kept, flags.by, [3], model).tolist() == flags_by(memory, flags.by, [3], model).tolist()
    assert project(flags, kept).groups == 3


def test_spreads_and_locations_are_measured_on_the_cluster(engine, folder, tmp_path):
    """Pairs are secret, so it does not matter in which order Spark has the records.  (P)"""
    memory, kept = (load_into(folder, where, schema=FACTS) for where in ("memory", engine))
    exact = Scale(loss=wf.Loss("100000"), location=True)
    one, two = (exact.answer(exact.view(table), SystemNoise()) for table in (memory, kept))
    for part in ("scale", "location"):
        assert one[part] == pytest.approx(two[part], rel=0.2, abs=0.2)  # pairs differ
    detector = wf.Detector(loss=wf.Loss("100000"), columns=("x", "y"))
    spreads = [detector.answer(detector.view(table), SystemNoise())["spreads"] for table in (memory, kept)]
    assert spreads[0] == pytest.approx(spreads[1], rel=0.2)
    with wf.Ledger.open(tmp_path / "ledger.db") as ledger:
        people = wf.open(folder, schema=FACTS, engine=engine, ledger=ledger)
        assert set(people.scale(epsilon="0.5", subset=True).value) == {"scale", "equal_pairs"}
        assert people.detector(epsilon="0.5", columns=("x", "y")).value["spreads"].keys() == {"x", "y"}


def test_folders_of_partitions_are_columns(engine, records, tmp_path):
    for ward in ("a", "b", "c"):
        place = tmp_path / "hive" / f"ward={ward}" / "year=2020"
        place.mkdir(parents=True)
        part = records.filter(pa.compute.equal(records["ward"], ward)).select(["x", "y"])
        pq.write_table(part, place / "part.parquet")
    facts = Schema.of(["x", "y", "ward", "year"], categories={"ward": ["a", "b", "c"]})
    kept = load_into(tmp_path / "hive", engine, schema=facts)
    assert prints.fingerprint(kept, bytes(32)) == prints.fingerprint(load(tmp_path / "hive", schema=facts), bytes(32))


def test_tasks_on_chunks_and_groups_see_every_record_once(engine, records):
    kept = load_into(records, engine, schema=FACTS).sheet
    told = list(
        kept.each("x", [0], lambda cells, given: {"sum": cells[0].sum() + given["more"]}, {"more": np.array(1.0)})
    )
    assert sum(float(each["sum"]) for each in told) == pytest.approx(np.asarray(records["x"]).sum() + len(told))
    groups = [np.concatenate([c[0] for c in one.chunks([0])]) for one in kept.group([2], lambda cells: cells[0] * 1, 3)]
    for label, found in zip("abc", groups, strict=True):
        truth = records.filter(pa.compute.equal(records["ward"], label))["x"]
        assert sorted(found) == sorted(np.asarray(truth))


REFUSALS = {
    "another number of rows": (Schema.of(["x", "y"], rows=N + 1), DataError, "the schema says"),
    "out of bounds": (Schema.of(["x"], bounds={"x": (-0.1, 0.1)}), DataError, "outside its public bounds"),
    "labels without categories": (Schema.of(["x", "ward"]), DataError, "holds text"),
    "an unknown label": (Schema.of(["ward"], categories={"ward": ["a"]}), DataError, "not among its public categories"),
    "an unknown column": (Schema.of(["x", "nix"]), DataError, "'nix' was asked for"),
}


@pytest.mark.parametrize("why", REFUSALS)
def test_workers_refuse_what_memory_refuses_in_the_same_words(why, engine, folder):
    facts, kind, words = REFUSALS[why]
    told = []
    for at in ("memory", engine):
        with pytest.raises(kind, match=words) as refused:
            load_into(folder, at, schema=facts)
        told.append((str(refused.value), refused.value.column))
    assert told[0] == told[1]


def test_what_spark_does_not_find_or_read_is_refused_without_its_words(engine, folder, tmp_path):
    with pytest.raises(SourceError, match="no such file"):
        load_into(tmp_path / "gone.parquet", engine)
    for gone in ("catalog://nobody.there", "file:///nowhere/at/all"):
        with pytest.raises(SourceError, match="Spark finds no table there"):
            load_into(gone, engine)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 4711 PAR1")
    with pytest.raises(SourceError) as told:
        load_into(tmp_path / "broken.parquet", engine)
    assert "4711" not in str(told.value)
    assert told.value.__context__ is None


def test_there_is_one_session_a_process(own, monkeypatch):
    with pytest.raises(ParameterError, match="there can be one only"):
        engines.connect("local[1]")
    monkeypatch.setitem(engines._started, "local[2,4]", own[0])
    assert engines.connect("local[2,4]") is own[0]


def test_the_command_line_names_a_cluster(own, folder, tmp_path, monkeypatch):
    monkeypatch.setitem(engines._started, "local[2,4]", own[0])
    asked = [str(folder), "--neighbours", "4", "--radius", "0.2", "--epsilon", "0.5", "--engine", "local[2,4]"]
    asked += ["--ledger", str(tmp_path / "book.db"), "--without", "ward", "--slack", "4", "--json"]
    told = CliRunner().invoke(build(QUERIES), ["count", *asked])
    assert told.exit_code == 0, told.output
    assert f'"n": {N}' in told.output


def test_a_worker_that_is_killed_in_each_pass_changes_nothing(engine, folder, tmp_path, monkeypatch):
    """Reading, sampling, dealing, sorting, boxes, and all four tasks on tiles: each kills its worker."""
    assert_that_kills_change_nothing(engine, folder, tmp_path, monkeypatch, itself)


def test_noise_is_drawn_once_although_workers_are_killed(engine, folder, tmp_path, monkeypatch):
    draws, draw = [], SystemNoise.laplace

    def counted(noise, scale):
        draws.append(scale)
        return draw(noise, scale)

    monkeypatch.setattr(SystemNoise, "laplace", counted)
    monkeypatch.setattr(engines, "tasks", mortal_tasks(tmp_path, itself))
    with Ledger.open(tmp_path / "book.db") as book:
        people = wf.open(folder, schema=FACTS, ledger=book, engine=engine)
        people.count(neighbours=4, radius=0.2, epsilon="0.5", columns=("x", "y"), slack=4)
        assert [entry.event for entry in book.history(people.name)].count("charge") == 1
    assert len(draws) == 1
    assert (tmp_path / "Visitor serve_home").exists()


GROUPED = Schema.from_json(
    {
        "rows": N,
        "columns": {
            "x": {"low": -5, "high": 5},
            "y": {"edges": [0]},
            "ward": {"categories": ["a", "b", "nobody", "c"], "public": True},
            "id": {"identifier": True},
        },
        "clip": True,
    }
)
EXPLAINED = Explain(record="p7", identifier="id", metric="x", context=("y", "ward"), domain=GROUPED, loss=Loss("5"))
ASKED = {
    "groups": Count(neighbours=4, radius=0.1, by=("ward",), columns=("x",), slack=24, loss=Loss("1")),
    "subspaces": Subspaces(neighbours=4, radius=0.05, loss=Loss("2"), columns=("x", "y"), counts=True),
    "explain": EXPLAINED,
    "by Grubbs": replace(EXPLAINED, detector="grubbs", mode="ocdp"),
}


@pytest.mark.parametrize("question", ASKED)
def test_the_same_noise_is_asked_for_and_gives_the_answer_of_memory(question, engine, records):
    query = ASKED[question]
    named = records.append_column("id", pa.array([f"p{at}" for at in range(N)]))
    tables = load(named, schema=GROUPED), load_into(named, engine, schema=GROUPED)
    scripts = RecordedScript(), RecordedScript()
    answers = [query.answer(project(query, table), noise) for table, noise in zip(tables, scripts, strict=True)]
    assert answers[0] == answers[1]
    assert scripts[0].asked == scripts[1].asked


def test_a_record_is_not_named_by_its_row_where_records_can_move_others(engine, records):
    """Spark packs files by their sizes, so one record can move all: the seventh would be another."""
    table = load_into(records, engine, schema=GROUPED.but_read({"without": ("id",)}))
    with pytest.raises(EngineMismatch, match=r"Name it by a column of identifiers"):
        project(replace(EXPLAINED, record="7", identifier=None), table)


def test_a_task_that_fails_quotes_nothing(engine):
    """What it stumbled over is in no message, not in one of Spark's either."""
    sheet = engine.keep("x", [[np.full(4, PLANTED)]], 1)

    def fail(values, given):
        raise RuntimeError(f"{values[0, 0]} is no good")

    with (
        sheet.tile([0], np.column_stack, size=4) as tiles,
        pytest.raises(SourceError, match="Spark could not finish") as told,
    ):
        list(tiles.each("x", fail, lambda _: {}))
    assert told.value.__context__ is None
    with pytest.raises(tasks.TaskFailed, match=r"^a task of wallflower failed \(RuntimeError\)$") as told:
        tasks.guard(lambda: fail(np.full((1, 1), PLANTED), {}))
    assert told.value.__context__ is None


def bytes_of(path):
    """What is in a file; Spark may remove one of an earlier table while we look."""
    with suppress(FileNotFoundError):
        return path.read_bytes()
    return b""


def test_scratch_is_private_and_shows_no_record(own):
    """While a table is kept and its tiles are; the same look finds the number where files are not encrypted, below."""
    engine, place = own
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    sheet = engine.keep("x", [[np.full(1000, PLANTED), np.arange(1000.0)]], 1)
    with sheet.tile([0, 1], np.column_stack, size=300) as tiles:
        count_inliers(tiles, 1.0, 3)
        files = [path for path in place.rglob("*") if path.is_file()]
        assert any(path.name.startswith("shuffle") for path in files)
        assert any(path.name.startswith("rdd") for path in files)
        assert not any(np.float64(PLANTED).tobytes() in bytes_of(path) for path in files)


def test_new_modes_of_a_detector_draw_on_spark_as_in_memory(folder, records, engine):
    """Labels, δ, growth and another threshold: the same draws among the same candidates, and the same answers."""
    many = Loss("40", delta="1e-6")
    fitted = wf.Detector(loss=many, spreads="schema")
    memory = load(records, schema=FACTS, name="people")
    kept = load_into(folder, engine, schema=FACTS, name="people")
    first = fitted.answer(fitted.view(memory), Recorder())
    releases = {1: {"kind": "detector", "dataset": "people", "value": first}}.get
    for query in (
        fitted,
        wf.Detector(loss=many, like=first, grow=True, contamination="5%"),
        wf.Detector(loss=Loss.zcdp("9"), like=first),
        wf.Threshold(detector=1, contamination="5%", loss=Loss("4")),
    ):
        answers, drawn = [], []
        for table in (memory, kept):
            noise = Recorder()
            answers.append(query.answer(query.take_releases(query.view(table), releases), noise))
            drawn.append(noise)
        assert answers[0] == answers[1]
        assert drawn[0].draws == drawn[1].draws
        assert drawn[0].errors == drawn[1].errors
    assert first["labels"] == ["ward"]
