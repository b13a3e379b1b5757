"""A fleet under threads, lost answers, wrong clocks and odd names: one decision each, and no stream is silenced."""

from __future__ import annotations

import copy
import pickle
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from threading import Event, RLock, Thread
from typing import Any

import pytest
from watches import COIN, EVENT

import wallflower as wf
from postgres import Server
from wallflower.errors import ParameterError, SessionClosed, StateError, StateUnreachable
from wallflower.ledger import Ledger
from wallflower.queries.watch.detectors import Staircase
from wallflower.queries.watch.seasons import Season, SeasonalBaseline
from wallflower.streams.fleet import LATEST, Fleet, place_of
from wallflower.streams.fleet_store import FleetStore

module: Any = import_module("wallflower.streams.fleet")


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "fleet.db")
    server: Server = request.getfixturevalue("postgres")
    return server.fresh()


def opened(book: Ledger, store: str | Path, **more: Any) -> Fleet:
    query = more.pop("query", COIN)
    return wf.fleet(query, **{"columns": ["x"], "dataset": "meters", "ledger": book, "store": store} | more)


def die(fleet: Fleet) -> None:
    """Leave nothing in order, as a process that is killed."""
    fleet._process = None
    fleet._store.close()


def back_up(store: Path, copied: Path) -> Path:
    """A copy of a store that is in use."""
    with sqlite3.connect(store) as source, sqlite3.connect(copied) as target:
        source.backup(target)
    source.close()
    target.close()
    return copied


# The position


def test_the_position_never_falls(book: Ledger, store: str) -> None:
    with opened(book, store) as fleet:
        highest = 0
        for time in (11, 100, 11, 50, 100, 101, 3):
            fleet.decide(f"s{time}", time, 0.0)
            highest = max(highest, place_of(time))
            assert fleet._session.position == fleet._store.position_of(fleet._session) == highest
    block = book.latest_block(fleet.charge, fleet._session.about["session"])
    assert block is not None
    assert (block.settled, block.last) == (highest, highest)


def test_a_late_observation_does_not_let_an_older_copy_go_on(book: Ledger, tmp_path: Path) -> None:
    store = tmp_path / "fleet.db"
    with opened(book, store) as fleet:
        fleet.decide("a", 11, 0.0)
        copied = back_up(store, tmp_path / "copy.db")
        told = fleet.decide_many(["a"], [100], [0.0])
        fleet.decide("b", 11, 0.0)
    with pytest.raises(SessionClosed, match="older copy"):
        opened(book, copied)
    with opened(book, store) as fleet:
        assert fleet.decide_many(["a"], [100], [0.0]).scores.tolist() == told.scores.tolist()  # type: ignore[union-attr]


class WatchedLock:
    """The fleet's lock, which tells when somebody has to wait for it."""

    def __init__(self) -> None:
        self._lock, self.waits = RLock(), Event()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.waits.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@pytest.mark.parametrize("second", ["decide", "close"])
def test_threads_take_turns(book: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: str) -> None:
    store, looks, lock = tmp_path / "fleet.db", Event(), WatchedLock()
    real = Staircase.decide

    def decide(self: Staircase, *given: Any, **more: Any) -> Any:
        if not looks.is_set():
            looks.set()
            assert lock.waits.wait(20)  # until the other thread is here too
        return real(self, *given, **more)

    fleet = opened(book, store)
    fleet.decide("a", 11, 0.0)
    copied = back_up(store, tmp_path / "copy.db")
    fleet._lock = lock  # type: ignore[assignment]
    monkeypatch.setattr(Staircase, "decide", decide)
    told: list[Any] = []
    many = [f"s{number}" for number in range(50)]
    one = Thread(target=lambda: told.append(fleet.decide_many(many, [100] * 50, [0.0] * 50)))
    one.start()
    assert looks.wait(20)
    other = Thread(target=fleet.close if second == "close" else lambda: fleet.decide_many(["late"], [11], [0.0]))
    other.start()
    one.join()
    other.join()
    assert fleet._session.position == place_of(100)
    fleet.close()
    with pytest.raises(SessionClosed, match="older copy"):
        opened(book, copied)
    with opened(book, store) as fleet:
        again = fleet.decide_many(many, [100] * 50, [0.0] * 50)
        assert again.scores.tolist() == told[0].scores.tolist()  # type: ignore[union-attr]


@contextmanager
def lost_answer(self: FleetStore, session: Any, kept: Any) -> Iterator[None]:
    with _KEEP(self, session, kept):
        yield
    raise StateUnreachable("the connection was lost after COMMIT")


_KEEP = FleetStore.keep


@pytest.mark.parametrize("asks_again", [False, True])
def test_a_lost_answer_to_commit_does_not_close_the_epoch(
    book: Ledger, store: str, monkeypatch: pytest.MonkeyPatch, asks_again: bool
) -> None:
    with opened(book, store) as fleet:
        fleet.decide("a", 11, 0.0)
        monkeypatch.setattr(FleetStore, "keep", lost_answer)
        with pytest.raises(StateUnreachable):
            fleet.decide("a", 100, 0.0)
        monkeypatch.setattr(FleetStore, "keep", _KEEP)
        if asks_again:  # the decision is stored, so it is released as it is
            found = fleet.decide_many(["a", "b"], [100, 12], [0.0, 0.0])
            assert found.again.tolist() == [True, False]
            assert not found.skipped.any()
            assert fleet._session.position == place_of(100)
    with opened(book, store) as fleet:
        found = fleet.decide_many(["a"], [100], [0.0])
        assert found.again.tolist() == [True]
        assert fleet.charge == 1


# Clocks


def test_one_wrong_clock_silences_no_other_stream(book: Ledger, store: str) -> None:
    fleet = opened(book, store)
    sent = ["2026-01-01T00:00Z", "9999-12-31T23:59Z"]
    found = fleet.decide_many(["a", "faulty"], sent, [0.0, 0.0])
    assert found.faults == (None, "ahead")
    assert found.skipped.tolist() == [False, True]
    die(fleet)
    with opened(book, store) as fleet:
        found = fleet.decide_many(["a", "b"], ["2026-01-01T01:00Z"] * 2, [0.0, 0.0])
        assert not found.skipped.any()
        assert fleet.streams == 2


def test_one_wrong_counter_silences_no_other_stream(book: Ledger, tmp_path: Path) -> None:
    fleet = opened(book, tmp_path / "s")
    assert fleet.decide_many(["faulty", "a"], [2**61, 5], [0.0, 0.0]).faults == ("ahead", None)
    assert fleet.decide_many(["faulty"], [2**61], [0.0]).faults == ("ahead",)
    die(fleet)
    with opened(book, tmp_path / "s") as fleet:
        assert fleet.decide("a", 6, 0.0) is not None


def test_a_clock_that_was_reset_makes_no_note_far_ahead(book: Ledger, tmp_path: Path) -> None:
    """What is noted ahead grows with the time that was covered: with one clock at the year 1, by eight years."""
    fleet = opened(book, tmp_path / "s")
    fleet.decide("reset", "0001-01-01T00:00Z", 0.0)
    fleet.decide("a", "2026-01-01T00:00Z", 0.0)
    fleet.decide("a", "2026-01-01T00:15Z", 0.0)
    die(fleet)
    with opened(book, tmp_path / "s") as fleet:
        assert fleet.decide("a", "2026-01-02T00:00Z", 0.0) is None  # within the day that was noted ahead
        assert fleet.decide("a", "2026-01-02T00:01Z", 0.0) is not None


def test_a_date_may_be_a_day_ahead_and_no_more(book: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 5, 1, 12, tzinfo=UTC)
    monkeypatch.setattr(module, "_now", lambda: now)
    edge, more = now + timedelta(days=1), timedelta(microseconds=1)
    with opened(book, tmp_path / "s") as fleet:
        assert fleet.decide_many(["a", "b"], [edge.isoformat(), (edge + more).isoformat()], [0.0] * 2).faults == (
            None,
            "ahead",
        )
    with opened(book, tmp_path / "s", look_ahead=0) as fleet:
        assert fleet.decide_many(["a", "b"], [now.isoformat(), (now + more).isoformat()], [0.0] * 2).faults == (
            None,
            "ahead",
        )
        assert fleet.decide_many(["a"], [edge.isoformat()], [0.0]).again.tolist() == [True]  # it was decided


@pytest.mark.parametrize(
    ("look_ahead", "before", "stream", "last"),
    [
        (10, {"a": 100}, "b", 110),  # beyond any other stream
        (10, {"a": 100, "b": 200}, "a", 210),
        (10, {"a": 100, "b": 105}, "b", 115),  # or beyond what was decided of its own
        (0, {"a": 100}, "b", 100),
        (10, {"a": 100}, "a", LATEST - 1),  # there is no other
        (None, {"a": 7}, "b", 7 + 10**6),
        (None, {"a": 10**9 - 1}, "b", 2 * 10**9 - 1),
    ],
)
def test_a_whole_number_may_be_ahead_of_the_others_by_a_bound(
    book: Ledger, tmp_path: Path, look_ahead: int | None, before: dict[str, int], stream: str, last: int
) -> None:
    with opened(book, tmp_path / "s") as fleet:
        for name, time in before.items():
            fleet.decide(name, time, 0.0)
    with opened(book, tmp_path / "s", look_ahead=look_ahead) as fleet:
        beyond = "time" if last == LATEST - 1 else "ahead"
        assert fleet.decide_many([stream], [last + 1], [0.0]).faults == (beyond,)
        assert fleet.decide_many([stream], [last], [0.0]).faults == (None,)


def test_after_a_pause_two_streams_that_agree_go_on(book: Ledger, tmp_path: Path) -> None:
    with opened(book, tmp_path / "s", look_ahead=10) as fleet:
        fleet.decide_many(["a", "b", "c"], [0, 0, 0], [0.0] * 3)
        assert fleet.decide_many(["a"], [1000], [0.0]).faults == ("ahead",)
        assert fleet.decide_many(["b"], [1001], [0.0]).faults == (None,)  # `a` said so too
        assert fleet.decide_many(["a"], [1000], [0.0]).faults == (None,)  # sent again


def test_a_look_ahead_is_a_whole_number(book: Ledger, tmp_path: Path) -> None:
    for unfit in (-1, True, 1.5, "1d", LATEST):
        with pytest.raises(ParameterError, match="look_ahead"):
            opened(book, tmp_path / "s", look_ahead=unfit)
    assert book.history() == []


# Names, times, copies


def test_an_odd_name_or_time_is_one_fault_and_not_the_end_of_a_batch(book: Ledger, store: str) -> None:
    names = ["\ud800", "a\0b", "x" * 1025, "x" * 1024, "é" * 512, "a", "b"]
    with opened(book, store) as fleet:
        found = fleet.decide_many(names, [1] * len(names), [0.0] * len(names))
        assert found.faults == ("stream",) * 3 + (None,) * 4
        assert found.skipped.tolist() == [True] * 3 + [False] * 4
        assert not found.again.any()
        odd: list[Any] = [-1, True, "yesterday", None, 10**5000, LATEST, 1.5, "0001-01-01T00:00+01:00", "\ud800", 2]
        found = fleet.decide_many(["a"] * len(odd), odd, [0.0] * len(odd))
        assert found.faults == ("time",) * 9 + (None,)
        assert fleet.decide_many(names, [1] * len(names), [9.0] * len(names)).again.tolist() == [False] * 3 + [True] * 4


def test_a_batch_may_be_empty_or_all_faults(book: Ledger, tmp_path: Path) -> None:
    with opened(book, tmp_path / "s") as fleet:
        before = len(book.history())
        assert len(fleet.decide_many([], [], [])) == 0
        assert fleet.decide_many(["a"], ["never"], [0.0]).faults == ("time",)
        assert len(book.history()) == before  # nothing is noted


def test_a_calendar_needs_dates_and_reports_other_times(book: Ledger, tmp_path: Path) -> None:
    hourly = SeasonalBaseline(
        dataset="meters",
        columns=("x",),
        season=Season(kind="hour-of-day"),
        time="when",
        centre=((0.0,) * 24,),
        spread=((2.0,) * 24,),
        width=(1.0,),
    )
    query = wf.Watch(threshold=3.0, loss=wf.Loss("0.5"), baseline=hourly)
    with opened(book, tmp_path / "s", query=query, columns=None, force=True) as fleet:
        found = fleet.decide_many(["a", "b", "c"], ["2026-01-01T05:30", 41, "then"], [[1.0]] * 3)
    assert found.faults == (None, "time", "time")


def test_an_open_fleet_or_watch_is_not_copied(book: Ledger, tmp_path: Path) -> None:
    for door in (opened(book, tmp_path / "s"), wf.watching(EVENT, columns=["x"], dataset="w", ledger=book)):
        with door:  # type: ignore[attr-defined]
            for make in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(StateError, match="cannot be copied"):
                    make(door)


@pytest.mark.parametrize("marked", [False, True])
def test_after_a_crash_the_bar_is_the_last_time_that_was_noted(book: Ledger, tmp_path: Path, marked: bool) -> None:
    fleet = opened(book, tmp_path / "s")
    fleet.decide("a", 10, 0.0)
    die(fleet)
    if marked:  # whoever opens it next passes the bar on, when it has looked at something and is put down
        with opened(book, tmp_path / "s") as fleet:
            assert fleet.decide("a", 12, 0.0) is not None
    with opened(book, tmp_path / "s") as fleet:
        assert fleet.may_skip
        found = fleet.decide_many(["a", "b", "b", "b"], [10, 9, 10, 11], [0.0] * 4)
        assert found.skipped.tolist() == [False, True, True, False]
        assert found.again.tolist() == [True, False, False, False]
        assert not any(found.faults)
