"""A check is made of what was released, and a pipeline can tell a failed check from a broken one."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import ibis
import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest

import wallflower as wf
from forks import call
from wallflower.data_checks import check_records, check_release, flag_records, read_release
from wallflower.errors import CheckFailed, ParameterError, SourceError
from wallflower.queries.detector.model import Model
from wallflower.synthetic import mixture

VALUES = mixture(1500, 2, seed=1)
SCHEMA = {"columns": {name: {"low": -9, "high": 9} for name in "ab"}, "clip": True}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checks")
    frame = pandas.DataFrame(VALUES, columns=["a", "b"])
    people = wf.open(frame, schema=SCHEMA, name="people", ledger=folder / "ledger.db")
    fitted = people.detector(epsilon="1", contamination="0.05", force=True)
    (folder / "model.json").write_text(fitted.to_json())
    frame.to_csv(folder / "people.csv", index=False)
    return folder / "model.json"


def frames() -> dict[str, object]:
    table = pa.table({"a": VALUES[:, 0], "b": VALUES[:, 1]})
    return {
        "arrow": table,
        "batch": table.to_batches()[0],
        "pandas": table.to_pandas(),
        "polars": polars.from_arrow(table),
        "lazy polars": polars.from_arrow(table).lazy(),
        "duckdb": duckdb.connect().from_arrow(table),
        "ibis": ibis.memtable(table).filter(ibis._.a > -99),
    }


@pytest.mark.parametrize("kind", frames())
def test_every_frame_is_read_through_the_capsules_of_arrow(kind: str) -> None:
    loaded = wf.load(frames()[kind], name="people")
    assert loaded.n == len(VALUES)
    assert np.array_equal(loaded.points(("a", "b")).values, VALUES)


@pytest.mark.parametrize("kind", frames())
def test_flags_are_those_of_the_detector_whatever_the_frame(released: Path, kind: str) -> None:
    model = Model.of(read_release(released))
    flags = flag_records(released, frames()[kind])
    assert flags == [bool(flag) for flag in model.predict(VALUES)]
    assert flags == flag_records(model, VALUES) == flag_records(read_release(released), VALUES)
    assert {type(flag) for flag in flags} == {bool}


def test_a_share_passes_up_to_the_limit_and_not_above(released: Path) -> None:
    flagged = sum(flag_records(released, VALUES))
    assert check_records(released, VALUES, max_share=f"{flagged}/{len(VALUES)}").passed
    above = check_records(released, VALUES, max_share=f"{flagged - 1}/{len(VALUES)}")
    assert not above.passed
    with pytest.raises(CheckFailed):
        above.require()


@pytest.mark.parametrize("share", ["2", "-1", "x"])
def test_a_limit_that_is_no_share_is_refused(released: Path, share: str) -> None:
    with pytest.raises(ParameterError):
        check_records(released, VALUES, max_share=share)


def test_a_count_passes_by_the_upper_end_of_its_interval(tmp_path: Path) -> None:
    people = wf.open(wf.Points.from_array(VALUES, name="people"), ledger=tmp_path / "ledger.db")
    count = people.count(neighbours=5, radius=0.5, epsilon="1")
    assert check_release(count, at_most=count.interval[1]).passed
    assert not check_release(count, at_most=count.interval[1] - 1).passed
    (tmp_path / "count.json").write_text(count.to_json())
    assert check_release(tmp_path / "count.json", at_most=10**6).passed


def test_what_is_no_release_is_refused_without_its_content(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"secret": 871234}')
    with pytest.raises(ParameterError) as refusal:
        read_release(tmp_path / "x.json")
    assert "871234" not in str(refusal.value)
    with pytest.raises(SourceError):
        read_release(tmp_path / "nothing.json")


def test_exit_codes_tell_a_failed_check_from_a_broken_one(released: Path) -> None:
    source = str(released.with_name("people.csv"))
    passed = call("check", str(released), source, "--max-share", "0.5", "--json")
    assert (passed.returncode, json.loads(passed.stdout)["passed"]) == (0, True)
    assert call("check", str(released), source, "--max-share", "0").returncode == 6
    assert call("check", str(released), "nothing.csv", "--max-share", "0.5").returncode == 4
    assert call("check", str(released), source).returncode == 2
