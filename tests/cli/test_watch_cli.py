"""`wallflower watch --json-lines`: what comes in, what goes out, and when."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wallflower import cli
from wallflower.ledger import Ledger
from wallflower.privacy import Loss, Neighbours

pytestmark = pytest.mark.slow  # together more than `make check` has room for

WALLFLOWER = Path(sys.executable).with_name("wallflower")
ASK = ("--threshold", "2", "--low", "-5", "--high", "5", "--epsilon", "64")  # so much that decisions are sure
STREAM = (*ASK, "--json-lines", "--dataset", "ward")


class Shell:
    """Runs the command line in this process, in a folder of its own."""

    def __init__(self, capsys: Any, monkeypatch: Any) -> None:
        self._capsys, self._monkeypatch = capsys, monkeypatch
        self.out = self.err = ""

    def __call__(self, *arguments: str, stdin: str | bytes = b"") -> int:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))
        self._capsys.readouterr()
        code = cli.main(arguments)
        self.out, self.err = self._capsys.readouterr()
        return code

    def flags(self, *arguments: str, stdin: str | bytes = b"", code: int = 0) -> list[bool | None]:
        assert self(*arguments, stdin=stdin) == code, self.err
        lines = [json.loads(line) for line in self.out.splitlines()]
        assert [line["observation"] for line in lines] == list(range(1, len(lines) + 1))
        return [line["outlier"] for line in lines]


@pytest.fixture
def shell(tmp_path: Path, capsys: Any, monkeypatch: Any) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setenv("WALLFLOWER_LEDGER", str(tmp_path / "ledger.db"))
    monkeypatch.setenv("WALLFLOWER_ANALYST", "ana")
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        for dataset in ("ward", "rows"):
            ledger.grant(dataset, Loss("1000", neighbours=Neighbours.ENTRY), by="owner")
    return Shell(capsys, monkeypatch)


# What comes in


@pytest.mark.parametrize(
    "stdin",
    [
        "x\n0\n5\n-5\n1.5\n",
        "x\n0\n5\n-5\n1.5",
        "x\r\n0\r\n5\r\n-5\r\n1.5\r\n",
        '\ufeff"x"\n"0"\n5\n -5 \n1.5\n',
        "x\n\n1e999\n-inf\nno number\n",
        '{"x": 0}\n{"x": 5}\n{"x": -5}\n{"x": 1.5}\n',
        '\n{"x": null}\n\n{"x": 1e999}\n{"x": "-7"}\n{}',
        '{"x": [0]}\n{"x": ' + "9" * 5000 + '}\n{"x": -Infinity}\n{"x": true}\n',
        "[0]\n[5]\n[-5]\n[null]\n",
    ],
)
def test_lines_of_csv_and_json_are_read(shell: Shell, stdin: str) -> None:
    assert shell.flags("watch", "-", *STREAM, stdin=stdin) == [False, True, True, False]
    assert "ε = 64 was charged to ward for the whole stream" in shell.err


def test_files_are_read_by_their_kind(shell: Shell, tmp_path: Path) -> None:
    text = "when\ta\tb\nmon\t1\t0\ntue\t2\t2\nwed\t\t-3\n"
    (tmp_path / "rows.tsv").write_text(text)
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(text.replace("\t", ",").encode()))
    (tmp_path / "rows.jsonl").write_text('{"a": 1, "b": 0, "when": 3}\n{"b": 2, "a": 2}\n{"b": -3}\n')
    pq.write_table(pa.table({"when": ["m", "t", "w"], "b": [0, 2, -3], "a": [1.0, 2.0, None]}), "rows.parquet")
    for name in ("rows.tsv", "rows.csv.gz", "rows.jsonl", "rows.parquet"):
        flags = shell.flags("watch", name, *ASK, "--json-lines", "--columns", "a,b")
        assert flags == [False, True, True], name
        assert "charged to rows" in shell.err


def test_a_long_parquet_file_comes_in_pieces(shell: Shell) -> None:
    values = np.where(np.arange(20_000) % 3, 0.0, 5.0)
    pq.write_table(pa.table({"x": values}), "rows.parquet")
    assert shell.flags("watch", "rows.parquet", *ASK, "--json-lines") == (values == 5).tolist()


def test_a_schema_says_columns_bounds_scale_and_name(shell: Shell, tmp_path: Path) -> None:
    schema = (
        'name = "rows"\n[columns.a]\nlow = 0\nhigh = 100\ncenter = 50\nscale = 10\n[columns.b]\nlow = -1\nhigh = 1\n'
    )
    (tmp_path / "s.toml").write_text(schema)
    stdin = "b,other,a\n0,7,50\n0,7,90\n0,7,9000\nnone,7,none\n"
    asked = ("watch", "-", "--threshold", "2", "--epsilon", "64", "--json-lines", "--schema", "s.toml")
    assert shell.flags(*asked, stdin=stdin) == [False, True, True, False]
    assert "charged to rows" in shell.err


@pytest.mark.parametrize(
    ("stdin", "line", "told"),
    [
        ("a,b\n1,0\n4711\n1,0\n", 3, 1),
        ("a,b\n1,0\n1,0,4711\n", 3, 1),
        ('a,b\n1,"4711\n', 2, 0),
        ('{"a": 1, "b": 0}\n{"a": 4711\n', 2, 1),
        ('{"a": 1, "b": 0}\n[4711, 4711]\n', 2, 1),
        ("[1, 0]\n\n[4711]\n", 3, 1),
        ("[1, 0]\n" + "[" * 100_000 + "\n", 2, 1),
        ("a,b\n1,0\n" + "4711," * 300_000, 3, 1),
    ],
)
def test_a_misbuilt_line_is_named_after_those_before_it(shell: Shell, stdin: str, line: int, told: int) -> None:
    assert shell.flags("watch", "-", *STREAM, stdin=stdin, code=2) == [False] * told
    assert f"line {line}: " in shell.err
    assert "4711" not in shell.err


@pytest.mark.parametrize(
    ("source", "more", "stdin", "code", "words"),
    [
        ("-", ("--json-lines",), "x\n1\n", 2, "--dataset"),
        ("-", (), "x\n1\n", 2, "--json-lines"),
        ("-", STREAM[8:], "", 2, "nothing in it"),
        ("-", STREAM[8:], "1\n2\n", 2, "must be a header"),
        ("-", STREAM[8:], "[1\n", 2, "line 1: it is not JSON"),
        ("-", (*STREAM[8:], "--columns", "y"), "x\n1\n", 2, "none of them"),
        ("-", (*STREAM[8:], "--dry-run"), "x\n1\n", 2, "--dry-run: does not go with"),
        ("-", (*STREAM[8:], "--continue"), "x\n1\n", 2, "--checkpoint"),
        ("rows.csv", ("--checkpoint", "s"), "", 2, "--checkpoint: does not go without"),
        ("none.csv", STREAM[8:], "", 4, "cannot be read"),
        ("none.parquet", STREAM[8:], "", 4, "cannot be read as Parquet"),
        ("-", (*STREAM[8:], "--checkpoint", "no/s"), "x\n1\n", 4, "No such file"),
        ("-", (*STREAM[8:], "--mean", "1,a"), "x\n1\n", 2, "'a' is not a number"),
        ("-", (*STREAM[8:], "--covariance", "1,0;inf,1"), "x\n1\n", 2, "'inf' is not a number"),
        ("-", ("--json-lines", "--dataset", "poor"), "x\n1\n", 3, "is left"),
    ],
)
def test_a_refusal_comes_before_anything_is_paid(
    shell: Shell, source: str, more: tuple[str, ...], stdin: str, code: int, words: str
) -> None:
    assert shell("watch", source, *ASK, *more, stdin=stdin) == code
    assert words in shell.err
    assert shell.out == ""
    with Ledger.open() as ledger:
        assert not ledger.history(event="charge")


def test_text_columns_of_a_parquet_file_are_refused(shell: Shell) -> None:
    pq.write_table(pa.table({"x": ["4711", "b"]}), "rows.parquet")
    assert shell("watch", "rows.parquet", *ASK, "--json-lines") == 2
    assert "column 'x' holds no numbers" in shell.err
    assert "4711" not in shell.err


# What goes out


def test_scores_go_out_beside_the_flags(shell: Shell) -> None:
    assert shell("watch", "-", *STREAM, "--scores", stdin="x\n0\n5\n") == 0
    first, second = map(json.loads, shell.out.splitlines())
    assert list(first) == ["observation", "outlier", "score"]
    assert (first["score"] >= 1, second["score"] >= 1) == (first["outlier"], second["outlier"]) == (False, True)


def test_an_exhausted_watch_says_so_once_and_stops(shell: Shell) -> None:
    sure = (*ASK[:-1], "400", *STREAM[len(ASK) :])  # at 64 a person's noise hides such a flag once in 600 times
    person = (*sure, "--level", "person", "--cutoff", "2", "--checkpoint", "s")
    stdin = "x\n" + "5\n" * 50
    flags = shell.flags("watch", "-", *person, stdin=stdin)
    assert flags == [True, True, None]
    assert json.loads(shell.out.splitlines()[-1]) == {"observation": 3, "outlier": None, "exhausted": True}
    assert "exhausted and looks no further" in shell.err
    before = shell.out
    assert shell.flags("watch", "-", *person, "--from", "1", stdin=stdin) == flags
    assert shell.out == before
    assert "nothing was charged" in shell.err
    assert shell.flags("watch", "-", *person, "--renew", stdin=stdin) == flags
    assert "ε = 400 was charged" in shell.err


def test_a_state_replays_and_goes_on(shell: Shell) -> None:
    coin = ("watch", "-", *ASK[:-1], "0.01", "--json-lines", "--force")
    coin += ("--dataset", "ward", "--checkpoint", "s")
    told = shell.flags(*coin, stdin="x\n" + "1\n" * 50)
    assert shell.flags(*coin, "--from", "1", stdin="x\n" + "5\n" * 60)[:50] == told
    assert "Taken up again after 50 decisions" in shell.err
    assert shell(*coin, "--continue", stdin="x\n1\n1\n") == 0
    assert [json.loads(line)["observation"] for line in shell.out.splitlines()] == [61, 62]
    assert shell(*coin, "--threshold", "3", stdin="x\n1\n") == 4
    assert "another watch; its query differ" in shell.err


def test_a_finished_table_is_still_one_release(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("x\n0\n5\n-5\n1\n")
    assert shell("watch", "rows.csv", *ASK, "--json", "--plot", "p.png", "--report", "r.html") == 0
    made = json.loads(shell.out)
    assert made["value"] == {"flagged": [2, 3], "decided": 4}
    assert made["ledger_id"] == 5
    assert (tmp_path / "p.png").exists()
    assert (tmp_path / "r.html").exists()


# Baselines


def test_a_baseline_fills_what_no_option_says(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(json.dumps({"mean": [1, 2], "covariance": [[1, 0.5], [0.5, 2]]}))
    (tmp_path / "b.toml").write_text("centre = 3.0\nvariance = 4.0\n")
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n1,5\n")

    def parameters(*more: str) -> Any:
        assert shell("watch", "rows.csv", *ASK, "--json", *more) == 0, shell.err
        return json.loads(shell.out)["parameters"]

    found = parameters("--baseline", "b.json", "--statistic", "mahalanobis")
    assert (found["mean"], found["covariance"]) == ([1.0, 2.0], [[1.0, 0.5], [0.5, 2.0]])
    assert parameters("--baseline", "b.json", "--mean", "0,0")["mean"] == [0.0, 0.0]
    found = parameters("--baseline", "b.toml", "--variance", "9")
    assert (found["centre"], found["variance"]) == (3.0, 9.0)
    assert parameters("--baseline", "b.toml", "--mean", "0,0")["centre"] is None
    assert shell("plan", "watch", "--records", "9", "--dimension", "2", *ASK, "--baseline", "b.toml", "--json") == 0
    assert "outliers" in json.loads(shell.out)["verdict"]
    assert shell.flags("watch", "rows.csv", *ASK, "--json-lines", "--baseline", "b.json") == [False, True]


@pytest.mark.parametrize(
    ("name", "text", "code", "words"),
    [
        ("b.json", '{"mena": [1]}', 2, "mena is not known; a baseline has mean, covariance, centre, variance"),
        ("b.json", "[1]", 2, "a baseline has"),
        ("b.json", '{"mean": ["1"]}', 2, "its mean holds something that is no number"),
        ("b.json", "{", 4, "not what its name says"),
        ("b.txt", "", 4, "ends in .toml, .json"),
    ],
)
def test_a_baseline_that_is_none_is_refused(shell: Shell, name: str, text: str, code: int, words: str) -> None:
    Path(name).write_text(text)
    assert shell("watch", "-", *STREAM, "--baseline", name) == code
    assert words in shell.err


# As a process of its own


def start(folder: Path, *more: str, **streams: Any) -> subprocess.Popen[str]:
    command = [str(WALLFLOWER), "watch", "-", *STREAM, *more]
    environment = os.environ | {"WALLFLOWER_LEDGER": str(folder / "ledger.db")}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, **pipes)


@pytest.fixture
def granted(tmp_path: Path) -> Path:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.grant("ward", Loss("1000", neighbours=Neighbours.ENTRY), by="owner")
    return tmp_path


def test_a_decision_is_told_before_the_next_line_comes(granted: Path) -> None:
    process = start(granted)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("x\n")
    for place, (line, flag) in enumerate([("0", False), ("5", True), ("what", False)], start=1):
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline()) == {"observation": place, "outlier": flag}
    _, errors = process.communicate()
    assert process.returncode == 0
    assert "Traceback" not in errors


@pytest.mark.slow
def test_ctrl_c_is_clean_and_what_was_decided_stays(granted: Path) -> None:
    process = start(granted, "--checkpoint", "s")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("x\n5\n")
    process.stdin.flush()
    told = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    assert (process.returncode, output) == (130, "")
    assert "Interrupted; 1 observations were decided and stay charged (entry 3); the same --checkpoint takes" in errors
    assert "Traceback" not in errors
    output, _ = start(granted, "--checkpoint", "s", "--from", "1").communicate("x\n0\n")
    assert output == told


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(granted: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = start(granted, "--checkpoint", "s", stdout=writing)
    os.close(writing)
    _, errors = process.communicate("x\n5\n")
    assert process.returncode == 141
    assert "Broken" not in errors
    output, _ = start(granted, "--checkpoint", "s", "--from", "1").communicate("x\n0\n")
    assert json.loads(output) == {"observation": 1, "outlier": True}


def test_the_pipe_on_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    """But that the file ends: `tail -f` would wait for more."""
    page = (Path(__file__).parents[2] / "docs" / "watch.md").read_text(encoding="utf-8")
    (block,) = [part for part in re.findall(r"^```sh\n(.*?)^```", page, re.M | re.S) if "watch - --json-lines" in part]
    rows = np.full((4, 30), 10.0)
    rows[2] = 15.0
    (tmp_path / "meters.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows.tolist()))
    place = os.environ | {"WALLFLOWER_LEDGER": str(tmp_path / "l.db"), "PATH": f"{WALLFLOWER.parent}:{os.defpath}"}
    script = "set -e -o pipefail\n" + block.replace("tail -f", "tail -n +1")
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [line["observation"] for line in told] == [1, 2, 3, 4]
    assert (tmp_path / "live.db").exists()


# What is usual


def test_a_learnt_baseline_goes_straight_into_a_watch(shell: Shell, tmp_path: Path) -> None:
    rows = np.random.default_rng(1).normal(4.0, 0.5, 4000)
    (tmp_path / "past.csv").write_text("x\n" + "\n".join(map(str, rows)) + "\n")
    learn = ("--low", "-5", "--high", "5", "--guess", "0", "--epsilon", "100", "--dataset", "ward", "--json")
    assert shell("baseline", "past.csv", *learn) == 0, shell.err
    (tmp_path / "learnt.json").write_text(shell.out)
    assert json.loads(shell.out)["value"]["centre"] == pytest.approx(4.0, abs=0.1)
    asked = (*STREAM, "--force", "--baseline", "learnt.json")  # the bounds hide outliers above
    found = shell.flags("watch", "-", *asked, stdin="x\n4.1\n0\n3.9\n")
    assert found == [False, True, False]
    assert shell("plan", "baseline", "--records", "4000", "--dimension", "1", *learn[:-3]) == 0, shell.err


@pytest.mark.parametrize("unit", ["entry", "person"])
def test_a_first_grant_may_declare_the_unit_and_a_second_may_not_change_it(shell: Shell, unit: str) -> None:
    grant = ("budget", "grant", "live", "--epsilon", "7", "--reason", "pilot", "--yes")
    assert shell(*grant, "--protects", unit) == 0, shell.err
    assert shell("budget", "show", "live", "--json") == 0
    shown = json.loads(shell.out)
    assert (shown["unit"], shown["rows"], shown["limit"]["epsilon"]) == (unit, "time", "7")
    assert shell(*grant, "--protects", "membership") == 2
    assert "One account has one unit" in shell.err


SEASON = ("--schema", "rides.toml", "--ledger", "seasons.db")


def _write_rides() -> None:
    rides = [(20 if place % 24 < 6 else 80) + place // 24 % 5 for place in range(480)]
    rides[50] = 50
    rows = [f"2024-01-{1 + at // 24:02} {at % 24:02}:00,{value}" for at, value in enumerate(rides)]
    Path("rides.csv").write_text("\n".join(["at,rides", *rows]) + "\n")
    Path("rides.toml").write_text(
        'name = "rides"\n[protects]\nrows = "time"\nunit = "entry"\n[columns.at]\ntime = true\n'
        "[columns.rides]\nlow = 0\nhigh = 100\n"
    )
    with Ledger.open("seasons.db") as ledger:
        ledger.grant("rides", Loss("1000"), by="owner")


def test_a_baseline_by_phase_is_named_by_its_entry_or_its_file(shell: Shell) -> None:
    _write_rides()
    learn = ("--season", "hour-of-day", "--time", "at", "--epsilon", "300", "--json")
    assert shell("baseline", "rides.csv", *SEASON, *learn) == 0, shell.err
    made = json.loads(shell.out)
    Path("learnt.json").write_text(shell.out)
    for named in (str(made["ledger_id"]), "learnt.json"):
        asked = ("--baseline", named, "--threshold", "5", "--epsilon", "64", "--json", "--plot", "flags.svg")
        assert shell("watch", "rides.csv", *SEASON, *asked) == 0, shell.err
        assert json.loads(shell.out)["value"] == {"flagged": [51], "decided": 480, "buckets": [3]}
        assert "hour of day" in Path("flags.svg").read_text()


def test_a_baseline_by_phase_is_refused_where_it_cannot_serve(shell: Shell) -> None:
    _write_rides()
    assert shell("watch", "rides.csv", *SEASON, "--baseline", "7", "--threshold", "5", "--epsilon", "1") == 2
    assert "entry 7 released no baseline" in shell.err
    season = {"season": "hour-of-day", "dataset": "rides", "time": "at", "columns": ["rides"], "width": [1.0]}
    Path("b.json").write_text(json.dumps(season | {"centre": [[0.0] * 24], "spread": [[1.0] * 24]}))
    live = ("watch", "-", *SEASON, "--baseline", "b.json", "--json-lines", *ASK)
    for lines in ("rides\n1\n", '{"rides": 1}\n', "[1]\n"):
        assert shell(*live, stdin=lines) != 0
        assert "there is no column 'at'" in shell.err
    assert shell(*live, stdin="at,rides\nnoon,1\n") != 0
    assert "a time cannot be parsed" in shell.err
    assert "noon" not in shell.err


def test_observations_are_judged_by_the_phase_they_come_in(shell: Shell) -> None:
    _write_rides()
    learn = ("--season", "hour-of-day", "--time", "at", "--epsilon", "300", "--json")
    assert shell("baseline", "rides.csv", *SEASON, *learn) == 0, shell.err
    asked = ("--baseline", str(json.loads(shell.out)["ledger_id"]), "--threshold", "5", "--epsilon", "64")
    frame = pd.read_csv("rides.csv")
    frame.assign(at=pd.to_datetime(frame["at"])).to_parquet("rides.parquet")
    lines = frame.to_json(orient="records", lines=True)
    for source, piped in (("rides.csv", ""), ("rides.parquet", ""), ("-", lines)):
        found = shell.flags("watch", source, *SEASON, *asked, "--json-lines", stdin=piped)
        assert [place for place, flag in enumerate(found, 1) if flag] == [51], "as of a table"


# Taken up again from a pipe


def test_a_pipe_that_is_taken_up_again_brings_new_observations(shell: Shell) -> None:
    first = "x\n" + "0\n" * 20
    assert shell("watch", "-", *STREAM, "--checkpoint", "live.db", stdin=first) == 0
    assert shell("watch", "-", *STREAM, "--checkpoint", "live.db", stdin="x\n" + "5\n" * 5) == 0
    lines = [json.loads(line) for line in shell.out.splitlines()]
    assert [line["observation"] for line in lines] == [21, 22, 23, 24, 25]
    assert [line["outlier"] for line in lines] == [True] * 5
    assert "goes on with observation 21" in shell.err


def test_stored_decisions_are_told_again_only_by_number(shell: Shell) -> None:
    assert shell("watch", "-", *STREAM, "--checkpoint", "live.db", stdin="x\n0\n5\n0\n") == 0
    assert shell("watch", "-", *STREAM, "--checkpoint", "live.db", "--from", "2", stdin="x\n0\n0\n5\n") == 0
    lines = [json.loads(line) for line in shell.out.splitlines()]
    assert [(line["observation"], line["outlier"]) for line in lines] == [(2, True), (3, False), (4, True)]
    assert shell("watch", "-", *STREAM, "--checkpoint", "live.db", "--from", "2", "--continue", stdin="x\n") == 2


def test_a_file_starts_again_unless_it_is_said_to_go_on(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "ward.csv").write_text("x\n0\n5\n")
    assert shell.flags("watch", "ward.csv", *STREAM, "--checkpoint", "live.db") == [False, True]
    assert shell.flags("watch", "ward.csv", *STREAM, "--checkpoint", "live.db") == [False, True]
    assert "answered as stored" in shell.err


def test_unknown_names_and_unreadable_numbers_are_counted_and_warned_of_once(shell: Shell) -> None:
    lines = ['{"x": 0}', '{"x": 5, "note": 1}', '{"x": "4,2"}', '{"x": 5, "other": 1}', '{"x": "4,2"}', '{"x": null}']
    assert shell.flags("watch", "-", *STREAM, stdin="\n".join(lines)) == [False, True, False, True, False, False]
    assert shell.err.count("Such entries count as missing") == 1
    assert shell.err.count("Such names are ignored") == 1
    assert "2 entries that were not numbers, 2 lines with names that the first lacked" in shell.err
    assert "4,2 for 4.2" in shell.err  # an example of ours, whatever the cell holds
    assert shell.flags("watch", "-", *STREAM, stdin='{"x": 0}\n{"x": null}\n{}\n{"x": ""}') == [False] * 4
    assert "Ignored" not in shell.err
    assert shell.flags("watch", "-", *STREAM, stdin='{"x": 0}\n{"x": "4,2"}\n') == [False] * 2
    assert "Ignored: 1 entry that was not a number." in shell.err
