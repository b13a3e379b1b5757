"""`kill -9` at every step of a watch: a decision that was told is told again, and nothing is decided unpaid."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from wallflower.errors import StateError
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.queries.watch import Watch
from wallflower.watching import watching

WALLFLOWER = Path(sys.executable).with_name("wallflower")
OPTIONS = ("--threshold", "2", "--low", "-5", "--high", "5", "--epsilon", "0.01", "--dataset", "ward")
COIN = Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("0.01"))  # as often true as false: a second look would show

SCRIPT = textwrap.dedent(
    """
    import os, signal, sys
    from wallflower.watching.payer import Payer
    from wallflower.ledger import Ledger
    from wallflower.privacy import Loss
    from wallflower.queries.watch import Watch
    from wallflower.queries.watch.detectors import Staircase
    from wallflower.watching import watching
    from wallflower.watching.state import State

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

    around(State, "__init__", "before the lock", "after the lock")
    around(Ledger, "charge", "before the charge", "after the charge")
    around(State, "begin", "before the epoch", "after the epoch")
    around(Staircase, "decide", "before the look", "after the look")
    around(State, "keep", "before it is kept", "after it is kept")
    around(State, "count_session", "before the pause", "after the pause")

    query = Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("0.01"))
    with watching(query, columns=["x"], dataset="ward", ledger=ledger, state=state) as watch:
        print("told", watch.decide(1.0), flush=True)
        reach("after it is told")
    """
)

# How often was charged, and how many decisions are on disk, when the process dies there.
STEPS = {
    "before the lock": (0, 0),
    "after the lock": (0, 0),
    "before the charge": (0, 0),
    "after the charge": (1, None),
    "before the epoch": (1, None),
    "after the epoch": (1, 0),
    "before the look": (1, 0),
    "after the look": (1, 0),
    "before it is kept": (1, 0),
    "after it is kept": (1, 1),
    "after it is told": (1, 1),
    "before the pause": (1, 1),
    "after the pause": (1, 1),
    "never": (1, 1),
}

QUICK = ("after the charge", "after it is kept", "never")


def charges(ledger: Path) -> int:
    with Ledger.open(ledger) as book:
        book.verify()
        return sum(entry.label == "outlier-watch/1" for entry in book.history(event="charge"))


@pytest.mark.parametrize(
    "step", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in STEPS]
)
def test_a_killed_watch_loses_budget_at_most(tmp_path: Path, step: str) -> None:
    ledger, state = tmp_path / "ledger.db", tmp_path / "state.db"
    command = [sys.executable, "-c", SCRIPT, str(ledger), str(state), step]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == (0 if step == "never" else -signal.SIGKILL), done.stderr
    paid, kept = STEPS[step]
    assert charges(ledger) == paid
    assert (done.stdout != "") is (step in ("after it is told", "before the pause", "after the pause", "never"))
    with watching(COIN, columns=["x"], dataset="ward", ledger=ledger, state=state) as watch:
        assert watch.resumed is (paid == 1 and kept is not None)
        assert watch.position == (kept or 0)
        if done.stdout:
            assert done.stdout == f"told {watch.decide_at(1, None)}\n"
    assert charges(ledger) == (1 if watch.resumed else paid + 1)


def start(folder: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [str(WALLFLOWER), "watch", "-", "--json-lines", "--state", "state.db", *OPTIONS, *more]
    environment = os.environ | {"WALLFLOWER_LEDGER": str(folder / "ledger.db")}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, stderr=pipe)


def killed(process: subprocess.Popen[bytes], known: int, rng: random.Random) -> dict[int, bool]:
    """Feed a stream in single lines and in a burst, kill the process somewhere, and collect what it published."""
    assert process.stdin is not None
    assert process.stdout is not None
    heard = []
    for lines in (b"x\n" + b"1\n" * known, *[b"1\n"] * rng.randint(1, 20)):
        process.stdin.write(lines)
        process.stdin.flush()
        heard += [process.stdout.readline() for _ in range(lines.count(b"1"))]
    process.stdin.write(b"1\n" * 3000)
    process.stdin.flush()
    time.sleep(rng.choice((0.0, 0.001, 0.003, 0.01, 0.03)))
    process.kill()
    heard += process.stdout.readlines()
    process.communicate()
    told = [json.loads(line) for line in heard if line.endswith(b"\n")]
    return {line["observation"]: line["outlier"] for line in told}


def stored(folder: Path) -> dict[int, bool]:
    db = sqlite3.connect(folder / "state.db")
    rows = db.execute("SELECT observation, flag FROM decisions").fetchall()
    db.close()
    return {place: bool(flag) for place, flag in rows}


@pytest.mark.slow
def test_what_was_published_never_changes(tmp_path: Path) -> None:
    rng, published = random.Random(), dict[int, bool]()
    for _ in range(8):
        told = killed(start(tmp_path), len(published), rng)
        assert all(told[place] is flag for place, flag in published.items())
        published |= told
        assert sorted(published) == list(range(1, len(published) + 1))
        assert published.items() <= stored(tmp_path).items()
    assert 0.3 < sum(published.values()) / len(published) < 0.7
    assert charges(tmp_path / "ledger.db") == 1
    last = start(tmp_path)
    output, _ = last.communicate(b"x\n" + b"1\n" * len(published))
    assert {line["observation"]: line["outlier"] for line in map(json.loads, output.splitlines())} == published


@pytest.mark.slow
def test_a_second_process_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    first = start(tmp_path)
    assert first.stdin is not None
    assert first.stdout is not None
    first.stdin.write(b"x\n1\n")
    first.stdin.flush()
    assert json.loads(first.stdout.readline())["observation"] == 1
    second = start(tmp_path)
    output, errors = second.communicate(b"x\n1\n")
    assert (second.returncode, output) == (4, b"")
    assert b"another process is watching" in errors
    with pytest.raises(StateError, match="another process"):
        watching(COIN, columns=["x"], dataset="ward", ledger=tmp_path / "ledger.db", state=tmp_path / "state.db")
    first.kill()
    first.communicate()
    third = start(tmp_path)
    output, errors = third.communicate(b"x\n1\n1\n")
    assert third.returncode == 0
    assert b"Taken up again after 1 decisions; nothing was charged" in errors
    assert output.count(b"\n") == 2
    assert charges(tmp_path / "ledger.db") == 1


@pytest.mark.slow
def test_a_lost_secret_or_an_old_copy_is_paid_for_again(tmp_path: Path) -> None:
    def run(*more: str) -> tuple[int, bytes, bytes]:
        process = start(tmp_path, *more)
        output, errors = process.communicate(b"x\n1\n1\n1\n")
        return process.returncode, output, errors

    assert run()[0] == 0
    copy = (tmp_path / "state.db").read_bytes()
    assert run()[0] == 0
    (tmp_path / "state.db").write_bytes(copy)
    code, output, errors = run()
    assert (code, output) == (4, b"")
    assert b"older copy" in errors
    assert b"--renew" in errors
    assert run("--renew")[0] == 0
    db = sqlite3.connect(tmp_path / "state.db")
    db.execute("UPDATE epochs SET secret = NULL")
    db.commit()
    db.close()
    assert run()[:2] == (4, b"")
    assert run("--renew")[0] == 0
    assert run("--renew")[0] == 0  # nothing to renew
    assert charges(tmp_path / "ledger.db") == 3
