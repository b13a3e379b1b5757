"""A tally over records as they come: kept counts, totals that are released once, and copies of which one goes on."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import wallflower as wf
from wallflower.errors import ParameterError, SessionClosed, StateError
from wallflower.ledger import Ledger
from wallflower.queries.detector.tally import Tally
from wallflower.streams.tally import TallyStore, tallying

DRAW = np.random.default_rng(3)
RECORDS = DRAW.normal(size=(4_000, 2))
FAR, NEAR = np.full((1, 2), 60.0), np.zeros((1, 2))
SURE, COIN = wf.Loss.zcdp("5000"), wf.Loss.zcdp("0.001")  # nearly no noise; so much that a second draw would show


@pytest.fixture(scope="module")
def paid(tmp_path_factory):
    """A ledger with a detector of `ward`."""
    path = tmp_path_factory.mktemp("ward") / "ledger.db"
    with Ledger.open(path) as book:
        book.grant("ward", wf.Loss.zcdp("400000"), by="steward", reason="tests")
        points = wf.Points.from_array(RECORDS, columns=["x", "y"], name="ward")
        wf.open(points, ledger=book).detector(epsilon="100", contamination="1%")
    return path


@pytest.fixture
def ward(paid, tmp_path):
    path = tmp_path / "ledger.db"
    shutil.copy(paid, path)
    return path


def detector_of(path):
    with Ledger.open(path) as book:
        return next(entry.id for entry in book.history("ward", event="charge"))


def open_tally(ward, state, loss=SURE, periods=5, **more):
    query = Tally(detector=detector_of(ward), time="day", periods=periods, loss=loss)
    return tallying(query, ledger=ward, dataset="ward", checkpoint=state, force=True, **more)


def charges(ward):
    with Ledger.open(ward) as book:
        return sum(entry.label == Tally.label for entry in book.history("ward", event="charge"))


def test_totals_are_the_flags_so_far(ward, tmp_path):
    with open_tally(ward, tmp_path / "state") as tally:
        tally.add(np.repeat(FAR, 7, axis=0))
        tally.add(np.repeat(NEAR, 9, axis=0))
        assert tally.close_period().flagged == 7
        assert tally.close_period().flagged == 7
        tally.add(np.repeat(FAR, 2, axis=0))
        assert tally.close_period().flagged == 9
        assert tally.received == 18
        low, high = tally.totals[-1].interval
        assert low <= 9 <= high
        assert tally.columns == ("x", "y")


def test_a_tally_goes_on_where_it_stopped_and_is_charged_once(ward, tmp_path):
    with open_tally(ward, tmp_path / "state", COIN) as tally:
        tally.add(FAR)
        first = tally.close_period()
        tally.add(FAR)
    with open_tally(ward, tmp_path / "state", COIN) as tally:
        assert tally.resumed
        assert tally.totals == (first,)
        assert tally.received == 2
        second = tally.close_period()
        assert tally.totals == (first, second)
    assert charges(ward) == 1


def test_records_that_come_again_count_once(ward, tmp_path):
    with open_tally(ward, tmp_path / "state") as tally:
        assert tally.add(np.repeat(FAR, 3, axis=0), first=1) == 3
        assert tally.add(np.repeat(FAR, 5, axis=0), first=1) == 2
        assert tally.add(FAR, first=2) == 0
        with pytest.raises(StateError, match="next"):
            tally.add(FAR, first=9)
        assert tally.close_period().flagged == 5


def test_an_older_copy_releases_nothing(ward, tmp_path):
    state = tmp_path / "state"
    with open_tally(ward, state, COIN) as tally:
        tally.close_period()
    shutil.copy(state, tmp_path / "copy")
    with open_tally(ward, state, COIN) as tally:
        tally.close_period()
    with pytest.raises(SessionClosed):
        open_tally(ward, tmp_path / "copy", COIN)
    with open_tally(ward, state, COIN) as tally:
        assert len(tally.totals) == 2


def test_of_two_copies_that_go_on_one_releases_the_next_total(ward, tmp_path):
    state, copy = tmp_path / "state", tmp_path / "copy"
    with open_tally(ward, state, COIN) as tally:
        tally.close_period()
    shutil.copy(state, copy)
    with open_tally(ward, state, COIN) as tally, open_tally(ward, copy, COIN) as other:
        other.add(FAR)
        told = other.close_period()
        with pytest.raises(SessionClosed, match="elsewhere"):
            tally.close_period()
        assert other.totals[-1] == told
    with pytest.raises(SessionClosed):
        open_tally(ward, state, COIN)


def test_a_renewed_tally_is_charged_and_begins_anew(ward, tmp_path):
    with open_tally(ward, tmp_path / "state", periods=1) as tally:
        tally.add(FAR)
        tally.close_period()
        assert tally.exhausted
        with pytest.raises(StateError, match="all its totals"):
            tally.close_period()
        with pytest.raises(StateError, match="all its totals"):
            tally.add(FAR)
    with open_tally(ward, tmp_path / "state", periods=1, renew=True) as tally:
        assert not tally.resumed
        assert tally.close_period().flagged == 0
    assert charges(ward) == 2


def test_another_question_does_not_go_on_with_a_checkpoint(ward, tmp_path):
    open_tally(ward, tmp_path / "state").close()
    with pytest.raises(StateError, match="another"):
        open_tally(ward, tmp_path / "state", COIN)
    with pytest.raises(ParameterError, match="detector"):
        tallying(
            Tally(detector=999, time="day", periods=2, loss=SURE),
            ledger=ward,
            dataset="ward",
            checkpoint=tmp_path / "other",
        )


def test_a_count_that_is_released_once_more_would_show(ward, tmp_path, monkeypatch):
    """The noise is kept with the total: if it were drawn again after a restart, these coins would differ."""
    with open_tally(ward, tmp_path / "state", COIN) as tally:
        totals = [tally.close_period() for _ in range(3)]
    again = []
    for _ in range(3):
        with open_tally(ward, tmp_path / "state", COIN) as tally:
            again.append(list(tally.totals))
    assert again == [totals] * 3
    monkeypatch.setattr(TallyStore, "hidden", lambda _: DRAW.integers(-(10**6), 10**6, 3).tolist())  # drawn again
    with open_tally(ward, tmp_path / "state", COIN) as tally:
        assert list(tally.totals) != totals


SCRIPT = textwrap.dedent(
    """
    import os, signal, sys
    import numpy as np
    import wallflower as wf
    from wallflower.ledger import Ledger
    from wallflower.queries.detector.tally import Tally
    from wallflower.streams.tally import TallyStore, tallying

    ledger, state, detector, point = sys.argv[1:]

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

    around(TallyStore, "begin", "before the session", "after the session")
    around(TallyStore, "close_period", "before it is stored", "after it is stored")
    around(Ledger, "reserve", "before it is noted", "after it is noted")
    query = Tally(detector=int(detector), time="day", periods=5, loss=wf.Loss.zcdp("0.001"))
    with tallying(query, ledger=ledger, dataset="ward", checkpoint=state, force=True) as tally:
        tally.add(np.full((4, 2), 60.0), first=1)
        print(tally.close_period().flagged, flush=True)
        reach("after it is told")
    """
)
STEPS = {  # how often was charged by then, and how many totals are stored
    "before the session": (1, 0),
    "after the session": (1, 0),
    "before it is stored": (1, 0),
    "after it is stored": (1, 1),
    "before it is noted": (1, 1),
    "after it is noted": (1, 1),
    "after it is told": (1, 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("point", STEPS)
def test_after_a_kill_a_total_that_was_told_is_told_again_and_none_is_told_twice(point, ward, tmp_path):
    state = tmp_path / "state"
    asked = [sys.executable, "-c", SCRIPT, ward, state, str(detector_of(ward)), point]
    died = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    paid, stored = STEPS[point]
    assert charges(ward) == paid
    with open_tally(ward, state, COIN) as tally:
        assert len(tally.totals) == stored
        assert charges(ward) == paid + (point == "before the session")  # nobody knows of the first charge any more
        told = [int(line) for line in died.stdout.split()]
        assert told == [total.flagged for total in tally.totals][: len(told)]
        kept = tally.totals
        tally.add(np.full((4, 2), 60.0), first=1)
        tally.close_period()
        assert tally.totals[: len(kept)] == kept
        assert tally.received == 4
