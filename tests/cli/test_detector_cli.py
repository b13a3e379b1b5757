"""`wallflower detector fit` and `score`, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import wallflower as wf
from wallflower.cli import main

RECORDS = np.random.default_rng(4).normal(size=(3000, 3)) * (1, 10, 0.1)
NEW = np.array([[0.1, 3.0, 0.02], [9.0, -80.0, 0.9]])


def write(path: Path, rows: np.ndarray) -> str:
    np.savetxt(path, rows, fmt="%.17g", delimiter=",", comments="", header="a,b,c")
    return str(path)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("detector")
    path, people = folder / "people.json", write(folder / "people.csv", RECORDS)
    ledger = folder / "ledger.db"
    with wf.Ledger.open(ledger) as book:
        book.grant("people", wf.Loss("100"), by="steward", reason="tests")
    words = ["detector", "fit", people, "--contamination", "2%", "--epsilon", "100"]
    assert main([*words, "--ledger", str(ledger), "--model", str(path)]) == 0
    return str(path)


@pytest.mark.slow
def test_scores_are_written_in_three_ways_and_agree(model, tmp_path, capsys):
    new, made = write(tmp_path / "new.csv", NEW), wf.Release.from_dict(json.loads(Path(model).read_text())).model
    expected = made.decision_function(NEW).tolist()
    assert main(["detector", "score", model, new]) == 0
    told = capsys.readouterr()
    heading, *rows = told.out.splitlines()
    assert heading == "score,flagged,largest,largest_column"
    assert [float(row.split(",")[0]) for row in rows] == expected
    assert [row.split(",")[1] for row in rows] == ["0", "1"]
    assert "is not covered" in told.err
    assert main(["detector", "score", model, new, "--json-lines", "--contributions"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["by a"] + line["by b"] + line["by c"] for line in lines] == pytest.approx(expected)
    out, plot = tmp_path / "scores.parquet", tmp_path / "scores.png"
    assert main(["detector", "score", model, new, "--parquet", "--out", str(out), "--plot", str(plot)]) == 0
    assert pq.read_table(out)["score"].to_pylist() == expected
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_a_parquet_file_is_scored_part_by_part(model, tmp_path, capsys):
    table = wf.load(wf.Points.from_array(RECORDS, columns=["a", "b", "c"]).values, schema=wf.Schema.of(["a", "b", "c"]))
    pq.write_table(table.arrow, tmp_path / "people.parquet", row_group_size=700)
    csv = write(tmp_path / "people.csv", RECORDS)
    assert main(["detector", "score", model, str(tmp_path / "people.parquet")]) == 0
    by_part = capsys.readouterr().out
    assert main(["detector", "score", model, csv]) == 0
    assert capsys.readouterr().out == by_part


def test_drift_is_told_batch_by_batch(model, tmp_path, capsys):
    usual = write(tmp_path / "monday.csv", np.random.default_rng(5).normal(size=(2000, 3)) * (1, 10, 0.1))
    wild = write(tmp_path / "tuesday.csv", np.random.default_rng(6).normal(size=(2000, 3)) * (8, 80, 0.8))
    assert main(["detector", "drift", model, usual, wild]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert "of 2,000 records are flagged" in first
    assert "more than" in second
    assert main(["detector", "drift", model, usual, wild, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["batches"]
    assert told[1]["has_drifted"]
    assert told[0]["expected"] == pytest.approx([0.02 - 3 / 3000, 0.02 + 3 / 3000], abs=1e-3)


@pytest.mark.slow
def test_why_and_map_draw_what_they_tell(model, tmp_path, capsys):
    new = write(tmp_path / "new.csv", NEW)
    plot = tmp_path / "why.png"
    assert main(["detector", "why", model, new, "--row", "2", "--plot", str(plot), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert sum(told["contributions"].values()) == pytest.approx(told["score"])
    assert told["score"] > told["threshold"]
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert main(["detector", "why", model, new]) == 0
    assert "flagged above" in capsys.readouterr().out
    asked = ["detector", "map", model, "--columns", "a,b", "--plot", str(tmp_path / "map.svg")]
    assert main([*asked, "--between=-3,3", "--between=-30,30"]) == 0
    assert "<svg" in (tmp_path / "map.svg").read_text()
    for words, said in (
        (asked, "no public bounds"),
        ([*asked, "--between=near"], "is not a range"),
        (["detector", "why", model, new, "--row", "9"], "no record 9"),
    ):
        assert main(words) == 2
        assert said in capsys.readouterr().err


def test_a_detector_is_kept_as_an_arrow_file(tmp_path, capsys):
    people, book = write(tmp_path / "people.csv", RECORDS), str(tmp_path / "ledger.db")
    words = ["detector", "fit", people, "--contamination", "2%", "--epsilon", "0.9", "--ledger", book]
    assert main([*words, "--model", str(tmp_path / "people.arrow")]) == 0
    assert main(["detector", "score", str(tmp_path / "people.arrow"), write(tmp_path / "new.csv", NEW)]) == 0
    assert "score,flagged,largest,largest_column" in capsys.readouterr().out


def test_what_is_refused(model, tmp_path, capsys):
    new = write(tmp_path / "new.csv", NEW)
    (tmp_path / "no.json").write_text("[1, 2")
    (tmp_path / "other.csv").write_text("x,y\n1,2\n3,4\n")
    for words, said in (
        ([model, new, "--csv", "--json-lines"], "Choose one"),
        ([model, new, "--parquet"], "--out FILE"),
        ([model, new, "--plot", "scores.txt"], "Rename it"),
        ([str(tmp_path / "no.json"), new], "it is not one"),
        ([str(tmp_path / "none.json"), new], "No such file"),
        ([model, str(tmp_path / "other.csv")], "none of them"),
    ):
        assert main(["detector", "score", *words]) in (2, 4)
        assert said in capsys.readouterr().err
