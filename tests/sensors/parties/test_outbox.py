"""The device: pays once, draws once, and remembers both before anything leaves."""

from __future__ import annotations

import hashlib
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stage import ENVIRONMENT, parameters, readings, small_files

from wallflower.errors import BudgetExhausted, DataError, StateError
from wallflower.noise import system_noise
from wallflower.sensors.comparison import derive_tags
from wallflower.sensors.parameters import Direct, Grid
from wallflower.sensors.parties import outbox
from wallflower.sensors.parties.device import cut_batches
from wallflower.sensors.parties.keys import Identity
from wallflower.sensors.parties.outbox import Outbox, WindowError
from wallflower.sensors.protocol.frames import Commit, Kind, decode, digest_ids, verify_signature

ROWS, _ = readings(1, 20)
LIMIT = "100"
ALWAYS: dict[str, Any] = {"starts": 0, "grace": Fraction(10**10)}  # every window is open


def opened(keys: Path, folder: Path, number: int = 1, **changes: Any) -> Outbox:
    identity = Identity.read(keys / f"sensor-{number}")
    stated = parameters(keys, **ALWAYS | changes)
    box = Outbox(folder / "sensor.db", identity=identity, parameters=stated, noise=system_noise())
    box.set_limit(LIMIT)
    return box


def drained(box: Outbox, target: str) -> list[Any]:
    found = []
    while (frame := box.next_frame(target)) is not None:
        found.append(frame)
        box.settle(frame.id, "sent", 201)
    return found


def test_a_batch_is_paid_for_and_finished_before_it_is_sent(keys: Path, tmp_path: Path) -> None:
    box = opened(keys, tmp_path)
    assert box.add(0, 0, ROWS)
    assert (box.spent, box.left) == (Fraction(4), Fraction(96))
    key = bytes.fromhex(Identity.read(keys / "sensor-1").public)
    stated = parameters(keys, **ALWAYS)
    frames = {}
    for target, kind in (("analyst", Kind.READINGS_AND_KEYS), ("correction", Kind.KEYS)):
        pending = box.next_frame(target)
        assert pending is not None
        verify_signature(key, pending.signature, pending.body)
        frames[target] = decode(pending.body, parameters=stated.hash, kinds=(kind,))
    assert np.array_equal(frames["analyst"]["ids"], frames["correction"]["ids"])
    assert set(box.ids(0).tolist()) == set(frames["analyst"]["ids"].tolist())
    assert not np.array_equal(box.ids(0), frames["analyst"]["ids"])  # shuffled: 1 in 20! that it is not
    box.close()


def test_a_batch_that_is_there_is_never_made_again(keys: Path, tmp_path: Path) -> None:
    box = opened(keys, tmp_path)
    box.add(0, 0, ROWS)
    before = box.next_frame("analyst")
    box.close()
    box = opened(keys, tmp_path)
    assert not box.add(0, 0, ROWS)
    assert box.next_frame("analyst") == before
    assert box.spent == 4
    box.close()


def test_other_readings_at_the_same_place_are_refused_not_dropped(keys: Path, tmp_path: Path) -> None:
    """As many other readings were taken for the same ones, and lost without a word."""
    box = opened(keys, tmp_path)
    box.add(0, 0, ROWS)
    for other in (ROWS[:3], ROWS + 1, ROWS[::-1]):
        with pytest.raises(DataError, match="of other readings"):
            box.add(0, 0, other)
    assert not box.add(0, 0, ROWS)
    assert (box.spent, len(box.ids(0))) == (4, 20)
    box.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("sensor.db*"))
    assert hashlib.sha256(ROWS.tobytes()).digest() not in stored  # who has the file cannot try readings out


def test_a_new_version_that_counts_windows_anew_has_places_of_its_own(keys: Path, tmp_path: Path) -> None:
    """Window 0 of the new version was taken for the old one: its readings were neither paid for nor sent."""
    box = opened(keys, tmp_path)
    box.add(0, 0, ROWS)
    box.finish(0)
    for target in ("analyst", "correction"):
        drained(box, target)
    before = box.ids(0)
    box.close()
    box = opened(keys, tmp_path, version=2, starts=1)
    assert box.add(0, 0, ROWS + 1)
    assert box.finish(0)
    assert (box.spent, len(box.ids(0)), box.count_frames()["analyst"]) == (8, 20, {"sent": 2, "pending": 2})
    assert not set(box.ids(0).tolist()) & set(before.tolist())
    box.close()


@pytest.mark.parametrize("ahead", [-8_000, 2], ids=["over", "not begun"])
def test_a_window_that_takes_nothing_costs_nothing(keys: Path, tmp_path: Path, ahead: int) -> None:
    """WindowStore of a second; the docs' own example lay in the future, and was paid for and destroyed."""
    start = int(time.time())
    identity = Identity.read(keys / "sensor-1")
    stated = parameters(keys, starts=start, length=Fraction(1000), grace=Fraction(10))
    box = Outbox(
        tmp_path / "s.db",
        identity=identity,
        parameters=replace(stated, starts=start + ahead * 1000),
        noise=system_noise(),
    )
    box.set_limit(LIMIT)
    with pytest.raises(WindowError, match=r"window 0: it takes readings from 20.* UTC\. Nothing was charged"):
        box.add(0, 0, ROWS)
    with pytest.raises(WindowError, match="beyond the calendar"):
        box.add(2**62, 0, ROWS)
    assert (box.spent, box.count_frames()) == (0, {})
    box.close()


def test_a_paid_batch_is_known_after_its_window(keys: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Started again when the window is over, or with the clock set back: the same batch is not paid again."""
    box = opened(keys, tmp_path, starts=1000, grace=Fraction(100))
    for now, fresh in ((1000.0, True), (5000.0, False), (3.0, False)):
        monkeypatch.setattr(outbox.time, "time", lambda now=now: now)
        assert box.add(0, 0, ROWS) is fresh
        assert box.spent == 4
    box.close()


def test_an_older_version_of_the_set_is_not_taken_back(keys: Path, tmp_path: Path) -> None:
    """Whoever serves an old signed set could have the sensor send under it again."""
    opened(keys, tmp_path, version=3).close()
    with pytest.raises(StateError, match="version 2 of the parameter set was replaced by 3"):
        opened(keys, tmp_path, version=2)


def test_a_budget_that_is_used_up_refuses_and_changes_nothing(keys: Path, tmp_path: Path) -> None:
    box = opened(keys, tmp_path)
    box.set_limit("5")
    box.add(0, 0, ROWS)
    with pytest.raises(BudgetExhausted, match=r"sensor-1: asked for ε = 4 for 20 readings, ε = 1 is left"):
        box.add(0, 1, ROWS)
    assert (box.spent, len(box.ids(0))) == (4, 20)
    assert box.add(0, 1, ROWS[:5])
    assert box.left == 0
    box.set_limit("10")
    assert box.left == 5
    box.close()


@pytest.mark.parametrize(
    ("limit", "readings", "fits"),
    [("5", 5, True), ("5", 6, False), ("24/5", 4, True), ("24/5", 5, False), ("4", 1, False), ("3", 1, False)],
)
def test_a_budget_is_spent_to_its_end_and_not_one_reading_beyond(
    keys: Path, tmp_path: Path, limit: str, readings: int, fits: bool
) -> None:
    box = opened(keys, tmp_path)
    box.add(0, 0, ROWS)  # ε = 4
    box.set_limit(limit)
    if fits:
        assert box.add(0, 1, ROWS[:readings])
        assert box.spent == Fraction(4) + Fraction(readings, 5) <= Fraction(limit)
    else:
        with pytest.raises(BudgetExhausted):
            box.add(0, 1, ROWS[:readings])
        assert box.spent == 4
    box.close()


def test_without_a_budget_nothing_leaves(keys: Path, tmp_path: Path) -> None:
    identity = Identity.read(keys / "sensor-1")
    box = Outbox(tmp_path / "x.db", identity=identity, parameters=parameters(keys), noise=system_noise())
    with pytest.raises(BudgetExhausted):
        box.add(0, 0, ROWS)
    box.close()


def test_mode_direct_spends_nothing_and_sends_one_letter(keys: Path, tmp_path: Path) -> None:
    box = opened(keys, tmp_path, settings=Direct(threshold=Fraction(20)))
    box.add(0, 0, ROWS)
    assert box.spent == 0
    assert box.next_frame("analyst") is None
    assert box.next_frame("owner") is not None
    box.close()


def test_a_commit_ends_a_window_once(keys: Path, tmp_path: Path) -> None:
    box = opened(keys, tmp_path)
    box.add(7, 0, ROWS)
    box.add(7, 1, ROWS[:5])
    assert box.finish(7)
    assert not box.finish(7)
    assert not box.finish(8)
    with pytest.raises(DataError, match="committed"):
        box.add(7, 2, ROWS)
    stated = parameters(keys, **ALWAYS)
    *_, last = drained(box, "analyst")
    frame = decode(last.body, parameters=stated.hash, kinds=(Kind.COMMIT,))
    commit = Commit.from_bytes(frame.rest)
    assert (frame.seq, frame.count, commit.spent) == (2, 25, Fraction(5))
    assert commit.digest == digest_ids(box.ids(7))
    box.close()


def test_what_has_arrived_is_forgotten(keys: Path, tmp_path: Path) -> None:
    box = opened(keys, tmp_path)
    box.add(0, 0, ROWS)
    drained(box, "analyst")
    box.close()
    with sqlite3.connect(tmp_path / "sensor.db") as db:
        assert db.execute("SELECT target FROM frames WHERE body IS NOT NULL").fetchall() == [("correction",)]


def test_charges_cannot_be_taken_back(keys: Path, tmp_path: Path) -> None:
    box = opened(keys, tmp_path)
    box.add(0, 0, ROWS)
    box.close()
    with sqlite3.connect(tmp_path / "sensor.db") as db:
        for change in ("DELETE FROM charges", "UPDATE charges SET readings = 0", "DELETE FROM limits"):
            with pytest.raises(sqlite3.IntegrityError):
                db.execute(change)


def test_a_store_belongs_to_one_sensor_and_one_process(keys: Path, tmp_path: Path) -> None:
    box = opened(keys, tmp_path)
    with pytest.raises(StateError, match="another process"):
        opened(keys, tmp_path)
    box.close()
    with pytest.raises(StateError, match="another sensor"):
        opened(keys, tmp_path, number=2)


def test_a_new_set_waits_for_the_frames_of_the_old_one(keys: Path, tmp_path: Path) -> None:
    box = opened(keys, tmp_path)
    box.add(0, 0, ROWS)
    box.close()
    with pytest.raises(StateError, match="still to be sent"):
        opened(keys, tmp_path, version=2)
    box = opened(keys, tmp_path)
    for target in ("analyst", "correction"):
        drained(box, target)
    box.close()
    box = opened(keys, tmp_path, version=2)
    assert box.spent == 4
    box.close()


def test_a_new_set_does_not_wait_for_frames_whose_time_is_over(keys: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """A server that went over to the new set takes them no more; the sensor was stuck between the two."""
    box = opened(keys, tmp_path, starts=1000, grace=Fraction(100))
    monkeypatch.setattr(outbox.time, "time", lambda: 1000.0)
    box.add(0, 0, ROWS)
    box.close()
    with pytest.raises(StateError, match="until 1970-01-01 00:18:21 UTC"):
        opened(keys, tmp_path, version=2)
    monkeypatch.setattr(outbox.time, "time", lambda: 2000.0)
    box = opened(keys, tmp_path, version=2)
    assert box.count_frames() == {"analyst": {"late": 1}, "correction": {"late": 1}}
    box.close()


DYING = textwrap.dedent(
    """
    import os, signal, sys
    from pathlib import Path
    import wallflower.sensors.parties.outbox as outbox
    from test_outbox import opened, ROWS

    keys, folder, point = sys.argv[1:]

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

    around(outbox, "prepare_batch", "before the noise", "after the noise")
    around(outbox.Outbox, "_insert_frame", "charge written", "first frame written")
    box = opened(Path(keys), Path(folder))
    reach("before")
    box.add(0, 0, ROWS)
    reach("stored")
    frame = box.next_frame("analyst")
    print(frame.body.hex(), flush=True)
    reach("sent")
    """
)
STEPS = {
    "before": 0,
    "before the noise": 0,
    "after the noise": 0,
    "charge written": 0,
    "first frame written": 0,
    "stored": 4,
    "sent": 4,
}


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_kill_anywhere_and_no_noise_is_drawn_twice_for_what_was_seen(keys: Path, tmp_path: Path, step: str) -> None:
    command = [sys.executable, "-c", DYING, str(keys), str(tmp_path), step]
    first = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert first.returncode == -signal.SIGKILL, first.stderr
    box = opened(keys, tmp_path)
    assert box.spent == STEPS[step]
    assert box.add(0, 0, ROWS) is (STEPS[step] == 0)
    frame = box.next_frame("analyst")
    assert frame is not None
    assert box.spent == 4
    if first.stdout:
        assert frame.body.hex() == first.stdout.strip()
    box.close()


FULL = textwrap.dedent(
    """
    import resource, sys
    from pathlib import Path
    import numpy as np
    from test_outbox import opened
    from wallflower.errors import StateUnreachable

    box = opened(Path(sys.argv[1]), Path(sys.argv[2]))
    for seq in range(1000):
        try:
            box.add(0, seq, np.zeros((40, 2)))
        except StateUnreachable as refusal:
            print(seq, box.spent, "disk is full" in str(refusal))
            break
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(box.add(0, seq, np.zeros((40, 2))), box.spent)
    """
)


def test_a_full_disk_is_a_clean_refusal(keys: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL, str(keys), str(tmp_path)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, preexec_fn=small_files(800_000))
    assert done.returncode == 0, done.stderr
    seq, spent, said, again, after = done.stdout.split()
    made = int(seq)
    assert made > 0
    assert (said, spent) == ("True", str(8 * made))
    assert (again, after) == ("True", str(8 * made + 8))  # there is room again, and the same process goes on
    box = opened(keys, tmp_path)
    assert box.spent == 8 * made + 8
    assert box.count_frames() == {"analyst": {"pending": made + 1}, "correction": {"pending": made + 1}}
    box.close()


def test_tags_are_never_zero_and_depend_on_key_and_id() -> None:
    ids = np.arange(1000, dtype=np.uint64)
    found = derive_tags(bytes(16), ids)
    assert found.min() > 0
    assert len(np.unique(found)) > 990
    assert not np.array_equal(found, derive_tags(bytes(15) + b"\1", ids))


def test_batches_are_the_same_however_a_source_arrives() -> None:
    rows = np.arange(60.0).reshape(30, 2)
    pieces = [rows[:1], rows[1:2], rows[2:17], rows[17:]]
    one, many = (list(cut_batches(source, 8, 3)) for source in ([rows], pieces))
    assert [(window, seq, len(part)) for window, seq, part in one] == [(3, 0, 8), (3, 1, 8), (3, 2, 8), (3, 3, 6)]
    for left, right in zip(one, many, strict=True):
        assert left[:2] == right[:2]
        assert np.array_equal(left[2], right[2])


def test_a_column_says_the_window() -> None:
    column = np.repeat([0.0, 1.0, 5.0], [5, 3, 4])[:, None]
    rows = np.hstack([column, np.arange(24.0).reshape(12, 2)])
    found = [(window, seq, len(part)) for window, seq, part in cut_batches([rows[:6], rows[6:]], 4, None)]
    assert found == [(0, 0, 4), (0, 1, 1), (1, 0, 3), (5, 0, 4)]
    with pytest.raises(DataError, match="not all together"):
        list(cut_batches([rows, rows[:1]], 4, None))
    with pytest.raises(DataError, match="whole number"):
        list(cut_batches([rows + 0.5], 4, None))


def test_grid_frames_hold_no_keys(keys: Path, tmp_path: Path) -> None:
    stated = parameters(keys, Grid(bound=Fraction(10), step=Fraction(10)), **ALWAYS)
    box = opened(keys, tmp_path, settings=stated.settings)
    box.add(0, 0, ROWS)
    for target, kind in (("analyst", Kind.READINGS), ("correction", Kind.MOVES)):
        pending = box.next_frame(target)
        assert pending is not None
        assert decode(pending.body, parameters=stated.hash).kind is kind
    box.close()
