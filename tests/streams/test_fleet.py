"""A fleet: many streams, one charge, and one decision an observation, whatever is killed, copied or put back."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import textwrap
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from watches import COIN, EVENT, PERSON, SCORES, labels

import wallflower as wf
from postgres import Server
from wallflower.cli import main
from wallflower.data import Schema
from wallflower.errors import DataError, ParameterError, SessionClosed, StateError
from wallflower.ledger import Ledger
from wallflower.ledger.blocks import LABEL
from wallflower.noise import system_noise
from wallflower.queries.watch import Watch
from wallflower.queries.watch.seasons import Season, SeasonalBaseline
from wallflower.queries.watch.statistics import Statistic
from wallflower.streams.fleet import Fleet, place_of
from wallflower.streams.rule import Rule

pytestmark = pytest.mark.slow  # together more than `make check` has room for

Key = tuple[str, int]


def opened(book: Ledger | Path, store: str | Path, query: Watch = EVENT, **more: Any) -> Fleet:
    return wf.fleet(query, **{"columns": ["x"], "dataset": "meters", "ledger": book, "store": store} | more)


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "fleet.db")
    server: Server = request.getfixturevalue("postgres")
    return server.fresh()


# What is decided


def test_one_charge_covers_all_streams_and_what_is_sent_again_is_told_again(book: Ledger, store: str) -> None:
    streams, times = ["a", "b", "a", "b"] * 50, [place for place in range(100) for _ in range(2)]
    rows = [0.0, 5.0, -5.0, 0.0] * 50
    with opened(book, store, SCORES) as fleet:
        told = fleet.decide_many(streams, times, rows)
        assert not told.skipped.any()
        assert not told.again.any()
        assert ((told.scores >= 1) == told.flags).all()  # type: ignore[operator]
        again = fleet.decide_many(streams[::-1], times[::-1], [np.nan] * 200)
        assert again.again.all()
        assert again.scores[::-1].tolist() == told.scores.tolist()  # type: ignore[index,union-attr]
        assert fleet.streams == 2
    with opened(book, store, SCORES) as fleet:
        assert fleet.resumed
        assert not fleet.may_skip
        assert fleet.decide_many(streams, times, rows).scores.tolist() == told.scores.tolist()  # type: ignore[union-attr]
        late = fleet.decide_many(["c", "c"], [7, 7], [5.0, 5.0])  # older than others, and of a stream nobody knew
        assert late.again.tolist() == [False, True]
        assert not late.skipped.any()
    assert [label for label in labels(book) if label != LABEL] == [SCORES.label]


class Scripted:
    """Noise whose words are given."""

    def __init__(self, words: list[int]) -> None:
        self._words = iter(words)

    def below(self, bound: int) -> int:
        return next(self._words)


def test_decisions_are_those_of_a_watch(book: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = [int(word) for word in system_noise().words(502)]
    rows = np.linspace(-6, 6, 500)
    rule = Rule(EVENT, Schema.of(["x"]))
    expected = rule.detector.decide(rule.measure(rows), (), 0, Scripted(script[2:])).flags
    monkeypatch.setattr(import_module("wallflower.streams.fleet"), "system_noise", lambda: Scripted(script))
    with opened(book, tmp_path / "s") as fleet:
        told = fleet.decide_many([f"m{place % 7}" for place in range(500)], list(range(500)), rows)
    assert told.flags.tolist() == expected.tolist()


def test_bad_batches_are_refused_before_anything_is_looked_at(book: Ledger, store: str) -> None:
    with opened(book, store) as fleet:
        for streams, times, rows in (
            (["a"], [1, 2], [0.0, 0.0]),
            (["a", "b"], [1, 2], [0.0]),
            (["a"], [1], np.zeros((1, 2))),
        ):
            with pytest.raises(DataError):
                fleet.decide_many(streams, times, rows)
        assert fleet.streams == 0
    with pytest.raises(StateError, match="closed"):
        fleet.decide("a", 1, 0.0)
    for unfit in (PERSON, Watch(threshold=2.0, low=-5.0, high=5.0, level="window", window=3, loss=wf.Loss("1"))):
        with pytest.raises(ParameterError, match="level=entry"):
            opened(book, store, unfit)
    with pytest.raises(StateError, match="another watch"):
        opened(book, store, SCORES)
    with opened(book, store), pytest.raises(StateError, match="another process"):
        opened(book, store)
    with pytest.raises(StateError, match="cannot be opened"):
        opened(book, "mysql://nobody@nowhere/x")


def test_times_are_in_one_order() -> None:
    texts = ["2025-12-31T23:59:59.999999", "2026-01-01", "2026-01-01T00:00:00.000001Z", "2026-01-01T01:00+00:30"]
    places = [place_of(text) for text in texts]
    assert places == sorted(places)
    assert len(set(places)) == 4
    assert [place_of(0), place_of(41)] == [1, 42]


def test_a_phase_is_read_off_the_time(book: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hourly = SeasonalBaseline(
        dataset="meters",
        columns=("x",),
        season=Season(kind="hour-of-day"),
        time="when",
        centre=(tuple(10.0 * hour for hour in range(24)),),
        spread=((2.0,) * 24,),
        width=(1.0,),
    )
    query = Watch(threshold=3.0, loss=wf.Loss("0.5"), baseline=hourly)
    seen: list[list[list[float]]] = []
    measure = Statistic.measure
    monkeypatch.setattr(Statistic, "measure", lambda self, rows: seen.append(rows.tolist()) or measure(self, rows))
    with opened(book, tmp_path / "s", query, columns=None, force=True) as fleet:
        fleet.decide_many(["a", "b"], ["2026-01-01T05:30", "2026-01-01T23:00"], [[54.0], [230.0]])
    assert seen[-1] == [[2.0], [0.0]]


# What is left of it


def test_an_older_copy_decides_nothing_anew(book: Ledger, tmp_path: Path) -> None:
    store, copy = tmp_path / "fleet.db", tmp_path / "copy.db"
    with opened(book, store, COIN) as fleet:
        fleet.decide_many(["a"] * 20, list(range(20)), [0.0] * 20)
    shutil.copy(store, copy)
    with opened(book, store, COIN) as fleet:
        told = fleet.decide_many(["b"] * 60, list(range(60)), [0.0] * 60)
        assert not told.skipped.any()
    shutil.copy(copy, store)
    with pytest.raises(SessionClosed, match="older copy"):
        opened(book, store, COIN)


def test_what_a_process_passes_over_stays_passed_over(book: Ledger, tmp_path: Path) -> None:
    store, copy = tmp_path / "fleet.db", tmp_path / "copy.db"
    fleet = opened(book, store, COIN)
    fleet.decide_many(["a"] * 20, list(range(20)), [0.0] * 20)
    shutil.copy(store, copy)
    late = fleet.decide_many(["b"] * 20, list(range(20)), [0.0] * 20)  # told, and not in the copy
    assert not late.skipped.any()
    die(fleet)
    shutil.copy(copy, store)
    for _ in range(3):  # the first finds no mark, the others one that says what the first skipped
        with opened(book, store, COIN) as fleet:
            assert fleet.may_skip
            assert fleet.decide_many(["b"] * 20, list(range(20)), [0.0] * 20).skipped.all()
            assert not fleet.decide_many(["a"] * 20, list(range(20)), [0.0] * 20).skipped.any()
            after = fleet.decide("c", 1_000_000, 0.0)
            assert after is not None
    assert len(labels(book)) - labels(book).count(LABEL) == 1


def die(fleet: Fleet) -> None:
    """Leave nothing in order, as a process that is killed."""
    fleet._process = None
    fleet._store.close()


@pytest.mark.parametrize("seed", range(8))
def test_no_observation_has_two_decisions_whatever_is_copied_killed_and_put_back(
    book: Ledger, tmp_path: Path, seed: int
) -> None:
    draw, store = random.Random(seed), tmp_path / "fleet.db"
    told: dict[Key, int] = {}
    fleet: Fleet | None = None
    copies: list[Path] = []
    for step in range(40):
        if fleet is None:
            with suppress(SessionClosed):
                fleet = opened(book, store, COIN)
            if fleet is None:  # for good: a new session is paid for, and may decide all of it anew
                break
        keys = [(draw.choice("abc"), draw.randrange(step, step + 8)) for _ in range(4)]
        sent = [*keys, ("clock", 10**15)]  # one meter whose clock is wrong
        found = fleet.decide_many([key[0] for key in sent], [key[1] for key in sent], [0.0] * 5)
        assert found.scores is not None
        assert found.faults == (None,) * 4 + ("ahead",)
        for key, score, skipped in zip(sent, found.scores.tolist(), found.skipped.tolist(), strict=True):
            if not skipped:
                assert told.setdefault(key, score) == score  # scores of this loss hardly ever agree by chance
        match draw.randrange(6):
            case 0:
                fleet = fleet.close()  # type: ignore[func-returns-value]
            case 1:
                fleet = die(fleet)  # type: ignore[func-returns-value]
            case 2:
                fleet = die(fleet)  # type: ignore[func-returns-value]
                copies.append(Path(shutil.copy(store, tmp_path / f"copy{step}.db")))
            case 3 if copies:
                fleet = die(fleet)  # type: ignore[func-returns-value]
                shutil.copy(draw.choice(copies), store)
    if fleet is not None:
        fleet.close()
    assert told
    assert ("clock", 10**15) not in told


SCRIPT = textwrap.dedent(
    """
    import json, os, signal, sys
    import wallflower as wf
    from wallflower.ledger import Ledger
    from wallflower.queries.watch.detectors import Staircase
    from wallflower.streams.fleet_store import FleetStore
    from wallflower.streams.session import IntentLog

    folder, where = sys.argv[1:]
    query = wf.Watch(threshold=2.0, low=-5.0, high=5.0, loss=wf.Loss("0.001"), scores=True)

    def around(owner, method, before, after, point):
        real = getattr(owner, method)
        def kill_at(name):
            if name == point:
                os.kill(os.getpid(), signal.SIGKILL)
        def run(*given, **more):
            kill_at(before)
            value = real(*given, **more)
            kill_at(after)
            return value
        setattr(owner, method, run)

    def work(point, dataset):
        around(Ledger, "charge", "before the charge", "after the charge", point)
        around(Ledger, "reserve", "before the note", "after the note", point)
        around(Staircase, "decide", "before the look", "after the look", point)
        around(Fleet, "_decide_fresh", "", "after it is kept", point)
        around(IntentLog, "release", "before the pause", "after the pause", point)
        around(FleetStore, "mark", "before the mark", "after the mark", point)
        with open_fleet(dataset) as fleet:
            told = fleet.decide_many(["a", "b"], [1, 2], [0.0, 5.0])
            os.write(1, (json.dumps([point, told.scores.tolist()]) + "\\n").encode())

    def open_fleet(dataset):
        return wf.fleet(query, columns=["x"], dataset=dataset, ledger=folder + "/ledger.db", store=where)

    from wallflower.streams.fleet import Fleet
    for number, point in enumerate(sys.stdin.read().split("\\n")):
        if not (child := os.fork()):
            work(point, f"d{number}")
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, point
        with open_fleet(f"d{number}") as fleet:
            told = fleet.decide_many(["a", "b"], [1, 2], [0.0, 5.0])
            found = [None if gone else score for score, gone in zip(told.scores.tolist(), told.skipped.tolist())]
            os.write(1, (json.dumps(["then " + point, found]) + "\\n").encode())
    """
)
# Whether it was told when it died there, and what the next process says of it: the same, nothing, or something new.
POINTS = {
    "before the charge": (False, "new"),
    "after the charge": (False, "new"),  # paid, and the store had no session yet: it is paid for again
    "before the note": (False, "new"),
    "after the note": (False, "nothing"),
    "before the look": (False, "nothing"),
    "after the look": (False, "nothing"),
    "after it is kept": (False, "kept"),
    "before the pause": (True, "same"),
    "after the pause": (True, "same"),
    "before the mark": (True, "same"),
    "after the mark": (True, "same"),
}


def test_killed_at_every_step_it_tells_nothing_twice(tmp_path: Path, store: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path), store],
        input="\n".join(POINTS),
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": "0"},
    )
    assert done.returncode == 0, done.stderr
    said = dict(map(json.loads, done.stdout.splitlines()))
    for point, (told, then) in POINTS.items():
        assert (point in said) is told, point
        found = said[f"then {point}"]
        assert (found == [None, None]) is (then == "nothing"), point
        assert then != "same" or found == said[point], point
    with Ledger.open(tmp_path / "ledger.db") as book:
        paid = [entry.dataset for entry in book.history(event="charge") if entry.label != LABEL]
    assert sorted(paid) == sorted([*(f"d{number}" for number in range(len(POINTS))), "d1"])


# On the command line


ASK = ("--fleet", "--threshold", "2", "--low", "-5", "--high", "5", "--epsilon", "0.5", "--dataset", "m", "--force")


@pytest.fixture
def shell(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setenv("WALLFLOWER_LEDGER", str(tmp_path / "ledger.db"))

    def run(*words: str) -> tuple[int, str, str]:
        code = main(("watch", "lines.jsonl", *ASK, *words))
        return (code, *capsys.readouterr())

    return run


def test_lines_in_and_decisions_out(tmp_path: Path, shell: Any) -> None:
    sent = [
        {"stream": stream, "time": f"2026-01-01T00:{minute:02}:00Z", "value": 3.0}
        for minute in range(30)
        for stream in ("m1", "m2")
    ]
    lines = "".join(json.dumps(one) + "\n" for one in sent)
    (tmp_path / "lines.jsonl").write_text(lines)
    code, out, err = shell("--checkpoint", "fleet.db")
    assert code == 0, err
    assert "for the whole fleet" in err
    told = [json.loads(line) for line in out.splitlines()]
    assert [(one["stream"], one["time"]) for one in told] == [(one["stream"], one["time"]) for one in sent]
    assert all(one["outlier"] in (True, False) for one in told)
    for bad in ('{"stream": "m1", "value": 4}', '{"stream": "m1", "time": 1, "other": 4}', "[1, 2]", '{"time": 3.5}'):
        (tmp_path / "lines.jsonl").write_text(lines + bad + "\n")
        code, again, err = shell("--checkpoint", "fleet.db")
        assert code != 0
        assert "line 61" in err
        assert "nothing was charged" in err
        assert again == out


def test_one_bad_line_is_reported_and_does_not_end_the_run(tmp_path: Path, shell: Any) -> None:
    digits = "9" * 5_000
    lines = {
        f'{{"stream": "m1", "time": 1, "value": {digits}}}': None,
        f'{{"stream": "m1", "time": {digits}, "value": 1}}': "time",
        '{"stream": "m1", "time": "yesterday", "value": 1}': "time",
        '{"stream": "\\ud800", "time": 2, "value": 1}': "stream",
        '{"stream": "m2", "time": 10000000000000, "value": 1}': "ahead",
        '{"stream": "m2", "time": "9999-12-31T23:59Z", "value": 1}': "ahead",
        '{"stream": "m2", "time": 2, "value": 1}': None,
    }
    (tmp_path / "lines.jsonl").write_text("\n".join(lines) + "\n")
    code, out, err = shell("--checkpoint", "fleet.db")
    assert code == 0, err
    told = [json.loads(line) for line in out.splitlines()]
    assert [one.get("fault") for one in told] == list(lines.values())
    assert [one["outlier"] is None for one in told] == [fault is not None for fault in lines.values()]
    code, again, err = shell("--checkpoint", "fleet.db", "--look-ahead", "20000000000000")
    assert code == 0, err
    assert json.loads(again.splitlines()[4])["outlier"] is not None


def test_a_look_ahead_belongs_to_a_fleet(shell: Any, tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").write_text('{"value": 1}\n')
    words = [word for word in ASK if word != "--fleet"]
    assert main(("watch", "lines.jsonl", *words, "--json-lines", "--look-ahead", "5")) != 0


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "--checkpoint"),
        (("--checkpoint", "s.db", "--continue"), "--continue"),
        (("--checkpoint", "s.db", "--json"), "--json"),
    ],
    ids=str,
)
def test_what_does_not_go_with_a_fleet_is_refused_before_it_is_paid(shell: Any, words: Any, named: str) -> None:
    code, out, err = shell(*words)
    assert code != 0
    assert named in err
    assert out == ""
