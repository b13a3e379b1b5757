"""`kill -9` at every step of a watch: what was told is told again, and what may have been told is not decided anew."""

from __future__ import annotations

import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest

from forks import COMMAND, Fork
from wallflower.errors import StateError
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.queries.watch import Watch
from wallflower.streams import watching

WALLFLOWER = Path(sys.executable).with_name("wallflower")
OPTIONS = ("--threshold", "2", "--low", "-5", "--high", "5", "--epsilon", "0.01", "--dataset", "ward", "--force")
COIN = Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("0.01"))  # as often true as false: a second look would show

SCRIPT = textwrap.dedent(
    """
    import os, signal, sys
    from wallflower.ledger import Ledger
    from wallflower.privacy import Loss
    from wallflower.queries.watch import Watch
    from wallflower.queries.watch.detectors import Staircase
    from wallflower.streams import watching
    from wallflower.streams.session import IntentLog
    from wallflower.streams.session import Checkpoint

    ledger, state, point = sys.argv[1:]

    def reach(name):
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(owner, method, before, after):
        real = getattr(owner, method)
        def wrapped(*given, **more):
            reach(before)
            value = real(*given, **more)
            reach(after)
            return value
        setattr(owner, method, wrapped)

    around(Checkpoint, "__init__", "before the lock", "after the lock")
    around(Ledger, "charge", "before the charge", "after the charge")
    around(Checkpoint, "begin", "before the session", "after the session")
    around(Ledger, "reserve", "before the note", "after the note")
    around(Staircase, "decide", "before the look", "after the look")
    around(Checkpoint, "keep", "before it is kept", "after it is kept")
    around(IntentLog, "release", "before the pause", "after the pause")

    query = Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("0.01"))
    with watching(query, columns=["x"], dataset="ward", ledger=ledger, checkpoint=state) as watch:
        print("told", watch.decide(1.0), flush=True)
        reach("after it is told")
    """
)

# How often was charged, how many decisions are on disk and how many observations are skipped when it dies there.
STEPS = {
    "before the lock": (0, None, 0),
    "after the lock": (0, None, 0),
    "before the charge": (0, None, 0),
    "after the charge": (1, None, 0),
    "before the session": (1, None, 0),
    "after the session": (1, 0, 0),
    "before the note": (1, 0, 0),
    "after the note": (1, 0, 1),
    "before the look": (1, 0, 1),
    "after the look": (1, 0, 1),
    "before it is kept": (1, 0, 1),
    "after it is kept": (1, 1, 0),
    "after it is told": (1, 1, 0),
    "before the pause": (1, 1, 0),
    "after the pause": (1, 1, 0),
    "never": (1, 1, 0),
}

QUICK = ("after the charge", "after the look", "after it is kept", "never")


def charges(ledger: Path | str) -> int:
    with Ledger.open(ledger) as book:
        book.verify()
        return sum(entry.label == "outlier-watch/1" for entry in book.history(event="charge"))


@pytest.mark.parametrize(
    "step", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in STEPS]
)
def test_a_killed_watch_loses_budget_at_most(tmp_path: Path, place: str, step: str) -> None:
    state = tmp_path / "state.db"
    with Fork(SCRIPT, place, str(state), step) as process:
        code, printed, complaints = process.finish()
    assert code == (0 if step == "never" else -signal.SIGKILL), complaints
    paid, kept, passed = STEPS[step]
    assert charges(place) == paid
    assert (printed != "") is (step in ("after it is told", "before the pause", "after the pause", "never"))
    with watching(COIN, columns=["x"], dataset="ward", ledger=place, checkpoint=state) as watch:
        assert watch.resumed is (kept is not None)
        assert (watch.position, watch.skipped_ahead) == (kept or 0, passed)
        if printed:
            assert printed == f"told {watch.decide_at(1, None)}\n"
        assert (watch.decide(1.0) is None) is bool(passed)
        assert watch.decide(1.0) is not None
    assert charges(place) == (1 if watch.resumed else paid + 1)


def start(folder: Path, *more: str) -> Fork:
    command = ["watch", "-", "--json-lines", "--checkpoint", str(folder / "state.db"), *OPTIONS, *more]
    return Fork(COMMAND, *command, "--ledger", str(folder / "ledger.db"), listen=True)


def killed(process: Fork, known: int, rng: random.Random) -> dict[int, bool | None]:
    """Feed a stream in single lines and in a burst, kill the process somewhere, and collect what it published."""
    heard = []
    for lines in ("x\n" + "1\n" * known, *["1\n"] * rng.randint(1, 20)):
        process.stdin.write(lines)
        process.stdin.flush()
        heard += [process.stdout.readline() for _ in range(lines.count("1"))]
    process.stdin.write("1\n" * 3000)
    process.stdin.flush()
    time.sleep(rng.choice((0.0, 0.001, 0.003, 0.01, 0.03)))
    process.kill()
    heard += process.stdout.readlines()
    process.close()
    return published([line for line in heard if line.endswith("\n")])


def published(lines: Iterable[str]) -> dict[int, bool | None]:
    """What was said of each observation, None where it was skipped."""
    told = [json.loads(line) for line in lines]
    assert all(line.get("skipped", False) is (line["outlier"] is None) for line in told)
    return {line["observation"]: line["outlier"] for line in told}


def stored(folder: Path) -> dict[int, bool | None]:
    db = sqlite3.connect(folder / "state.db")
    rows = db.execute("SELECT observation, flag FROM decisions").fetchall()
    db.close()
    return {place: None if flag is None else bool(flag) for place, flag in rows}


@pytest.mark.slow
def test_what_was_published_never_changes(tmp_path: Path) -> None:
    rng, told = random.Random(), dict[int, bool | None]()
    for _ in range(8):
        now = killed(start(tmp_path, "--from", "1"), len(told), rng)
        assert all(now[place] is flag for place, flag in told.items())
        told |= now
        assert sorted(told) == list(range(1, len(told) + 1))
        assert told.items() <= stored(tmp_path).items()
    assert any(flag is not None for flag in told.values())  # how many were skipped is left to the kills
    assert charges(tmp_path / "ledger.db") == 1
    with start(tmp_path, "--from", "1") as last:
        _, output, _ = last.finish("x\n" + "1\n" * len(told))
    assert published(output.splitlines()) == told


@pytest.mark.slow
def test_a_second_process_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    with start(tmp_path) as first:
        first.stdin.write("x\n1\n")
        first.stdin.flush()
        assert json.loads(first.stdout.readline())["observation"] == 1
        code, output, errors = run(tmp_path)
        assert (code, output) == (4, "")
        assert "another process has it open" in errors
        with pytest.raises(StateError, match="another process"):
            watching(
                COIN, columns=["x"], dataset="ward", ledger=tmp_path / "ledger.db", checkpoint=tmp_path / "state.db"
            )
        first.kill()
    command = [
        str(WALLFLOWER),
        *["watch", "-", "--json-lines", "--checkpoint", "state.db"],
        *OPTIONS,
        "--ledger",
        "ledger.db",
    ]
    third = subprocess.run(command, cwd=tmp_path, input=b"x\n1\n1\n", capture_output=True, check=True)
    assert b"Taken up again after 1 decisions; nothing was charged" in third.stderr
    assert third.stdout.count(b"\n") == 2
    assert charges(tmp_path / "ledger.db") == 1


def run(folder: Path, *more: str) -> tuple[int, str, str]:
    """What the command says to three observations."""
    with start(folder, *more) as process:
        return process.finish("x\n1\n1\n1\n")


@pytest.mark.slow
def test_a_lost_secret_or_an_old_copy_is_paid_for_again(tmp_path: Path) -> None:
    assert run(tmp_path)[0] == 0
    copy = (tmp_path / "state.db").read_bytes()
    assert run(tmp_path, "--continue")[0] == 0
    (tmp_path / "state.db").write_bytes(copy)
    (tmp_path / "state.db.lock").unlink()
    code, output, errors = run(tmp_path)
    assert (code, output) == (4, "")
    assert "older copy" in errors
    assert "--renew" in errors
    assert run(tmp_path, "--renew")[0] == 0
    db = sqlite3.connect(tmp_path / "state.db")
    db.execute("UPDATE sessions SET secret = NULL")
    db.commit()
    db.close()
    assert run(tmp_path)[:2] == (4, "")
    assert run(tmp_path, "--renew")[0] == 0
    assert run(tmp_path, "--renew")[0] == 0  # nothing to renew
    assert charges(tmp_path / "ledger.db") == 3


STORM = textwrap.dedent(
    """
    import sys
    from wallflower.privacy import Loss
    from wallflower.queries.watch import Watch
    from wallflower.streams import session as hold, watching

    ledger, state = sys.argv[1:]
    hold.OBSERVATIONS_PER_INTENT = 1  # long blocks: a copy is taken in the middle of one
    query = Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("0.00001"), scores=True)
    with watching(query, columns=["x"], dataset="ward", ledger=ledger, checkpoint=state) as watch:
        for _ in sys.stdin:
            told = watch.decide_many([1.0])
            for place, score in enumerate(told.noisy_scores, told.first):
                print(place, score, flush=True)
    """
)


class Storm:
    """Processes that are killed in the middle of something, and states that are copied while they wait."""

    def __init__(self, folder: Path, ledger: str) -> None:
        self.folder, self.ledger, self.rng = folder, ledger, random.Random(5)
        self.told: dict[int, set[str]] = {}

    def start(self, machine: str) -> Fork:
        (self.folder / machine).mkdir(exist_ok=True)
        log = self.folder / f"{machine}.log"
        log.write_text("")
        return Fork(STORM, self.ledger, str(self.folder / machine / "s"), listen=True, log=str(log))

    def ask(self, process: Fork, times: int) -> None:
        with suppress(BrokenPipeError):  # it was refused
            process.stdin.write("go on\n" * times)
            process.stdin.flush()

    def hear(self, process: Fork, lines: int) -> None:
        self.ask(process, lines)
        for _ in range(lines):
            self.note(process.stdout.readline())

    def end(self, machine: str, process: Fork) -> None:
        """Kill a process while it decides, and hear what it had said."""
        self.ask(process, 50)
        process.kill()
        for line in process.stdout.read().splitlines(keepends=True):
            self.note(line)
        process.close()
        errors = (self.folder / f"{machine}.log").read_text()
        assert process.returncode == -signal.SIGKILL or "SessionClosed" in errors, errors

    def note(self, line: str) -> None:
        if line.endswith("\n") and "None" not in line:
            place, score = line.split()
            self.told.setdefault(int(place), set()).add(score)

    def copy(self, machine: str, to: str) -> None:
        shutil.rmtree(self.folder / to, ignore_errors=True)
        shutil.copytree(self.folder / machine, self.folder / to)


@pytest.mark.slow
def test_no_kill_and_no_copy_makes_two_decisions_of_one(tmp_path: Path, place: str) -> None:
    storm = Storm(tmp_path, place)
    for _ in range(3):
        first = storm.start("a")
        storm.hear(first, storm.rng.randint(5, 12))
        storm.copy("a", "b")
        storm.copy("a", "old")
        second = storm.start("b")
        storm.hear(second, storm.rng.randint(1, 5))
        storm.hear(first, storm.rng.randint(1, 5))
        storm.end("a", first)
        storm.end("b", second)
        storm.copy("old", "a")
        third = storm.start("a")
        storm.hear(third, 2)
        storm.end("a", third)
        storm.copy("b", "a")
    assert storm.told
    assert max(map(len, storm.told.values())) == 1
    assert charges(place) == 1
