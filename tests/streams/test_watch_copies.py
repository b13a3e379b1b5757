"""A state that is copied, restored or run twice: what may have been told is not decided again, on either database."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from watches import COIN, EVENT, FAR, labels, opened

from wallflower.errors import ChainBroken, KeyConflict, LedgerError, SessionClosed
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.queries.watch import Watch
from wallflower.streams import OpenWatch
from wallflower.streams import session as hold

SPARSE: dict[str, Any] = {"threshold": 2.0, "low": -5.0, "high": 5.0, "level": "person", "loss": Loss("0.5")}


def copied(state: Path, to: Path) -> None:
    to.mkdir(exist_ok=True)
    for path in state.parent.glob(f"{state.name}*"):
        shutil.copy(path, to / path.name)


def restored(state: Path, to: Path, *, lock: bool) -> None:
    for path in state.parent.glob(f"{state.name}*"):
        if lock or not path.name.endswith(".lock"):
            path.unlink()
    for path in to.glob("*"):
        if lock or not path.name.endswith(".lock"):
            shutil.copy(path, state.parent / path.name)


def die(watch: OpenWatch) -> None:
    """As if killed: the ledger hears nothing."""
    assert watch._payer.checkpoint is not None
    watch._payer.checkpoint.close()
    watch._is_open = False


def payments(ledger: Ledger) -> int:
    return labels(ledger).count("outlier-watch/1")


# Older copies


def test_a_copy_put_back_is_found_out_by_the_lock_beside_it(book: Ledger, tmp_path: Path) -> None:
    state = tmp_path / "s"
    watch = opened(book, checkpoint=state)
    watch.decide(1.0)
    copied(state, tmp_path / "copy")
    watch.decide(1.0)
    die(watch)
    restored(state, tmp_path / "copy", lock=False)
    with pytest.raises(SessionClosed, match="older copy"):
        opened(book, checkpoint=state)


def test_a_copy_put_back_with_its_lock_is_found_out_by_the_ledger(ledger: Ledger, tmp_path: Path) -> None:
    state = tmp_path / "s"
    watch = opened(ledger, checkpoint=state)
    watch.decide(1.0)
    copied(state, tmp_path / "copy")
    watch.decide(1.0)
    watch.close()
    restored(state, tmp_path / "copy", lock=True)
    for _ in range(2):
        with pytest.raises(SessionClosed, match=r"the ledger knows of later|given up"):
            opened(ledger, checkpoint=state)
    with opened(ledger, checkpoint=state, renew=True) as again:
        assert again.position == 0
    assert payments(ledger) == 2


@pytest.mark.parametrize("lock", ["restored", "lost"])
def test_a_copy_from_before_a_crash_passes_over_what_may_have_been_told(
    ledger: Ledger, tmp_path: Path, lock: str
) -> None:
    state = tmp_path / "s"
    watch = opened(ledger, COIN, checkpoint=state)
    told = watch.decide_many(FAR[:20])
    copied(state, tmp_path / "copy")
    watch.decide_many(FAR[:30])
    die(watch)
    for passed in (30, 31, 32):  # the same copy again and again
        restored(state, tmp_path / "copy", lock=True)
        if lock == "lost":
            (tmp_path / "s.lock").unlink()
        again = opened(ledger, COIN, checkpoint=state)
        assert (again.position, again.skipped_ahead, again.resumed) == (20, passed, True)
        unseen: list[Any] = ["what was told or skipped is not looked at"] * (20 + passed)
        found = again.decide_many([*unseen, 5.0], first=1)
        assert found.outliers[:20] == told.outliers
        assert found.outliers[20:-1] == [None] * passed
        assert found.outliers[-1] is not None
        assert (found.scores is None, again.skipped_ahead) == (False, 0)
        assert again.decide_many(unseen, first=1).outliers == found.outliers[:-1]  # on disk like any other
        die(again)
    assert payments(ledger) == 1
    ledger.verify()


def test_what_was_passed_over_stays_so_after_a_clean_stop(ledger: Ledger, tmp_path: Path) -> None:
    state = tmp_path / "s"
    watch = opened(ledger, EVENT, checkpoint=state)
    watch.decide(1.0)
    copied(state, tmp_path / "copy")
    watch.decide_many(FAR[:4])
    die(watch)
    restored(state, tmp_path / "copy", lock=True)
    with opened(ledger, EVENT, checkpoint=state) as again:
        assert again.decide_at(2, 5.0) is None
    with opened(ledger, EVENT, checkpoint=state) as again:
        assert (again.position, again.skipped_ahead) == (2, 3)
        assert [again.decide(5.0) for _ in range(3)] == [None] * 3
        assert again.decide(5.0) is not None
        assert again.decide_many(FAR[:6], first=1).skipped.tolist() == [False, True, True, True, True, False]


def test_old_copies_never_tell_more_flags_than_were_paid_for(book: Ledger, tmp_path: Path) -> None:
    state, query = tmp_path / "s", Watch(**{**SPARSE, "cutoff": 6})
    opened(book, query, checkpoint=state).close()
    copied(state, tmp_path / "copy")
    flags, runs = 0, 0
    while True:
        watch = opened(book, query, checkpoint=state)
        if watch.exhausted:
            watch.close()
            break
        told = watch.decide_many(FAR[: watch.skipped_ahead + 3])
        flags, runs = flags + int(told.flags.sum()), runs + 1
        die(watch)
        restored(state, tmp_path / "copy", lock=True)
    assert flags <= 6
    assert runs >= 1
    assert payments(book) == 1


# Two at a time


def test_of_two_copies_one_goes_on(ledger: Ledger, tmp_path: Path) -> None:
    state = tmp_path / "s"
    first = opened(ledger, EVENT, checkpoint=state)
    first.decide(1.0)
    copied(state, tmp_path / "copy")
    second = opened(ledger, EVENT, checkpoint=tmp_path / "copy" / "s")
    assert second.decide(1.0) is not None
    for _ in range(2):
        with pytest.raises(SessionClosed, match="taken up elsewhere"):
            first.decide(1.0)
    assert second.decide(1.0) is not None
    first.close()
    second.close()
    with pytest.raises(SessionClosed):
        opened(ledger, EVENT, checkpoint=state)
    with opened(ledger, EVENT, checkpoint=tmp_path / "copy" / "s") as at_last:
        assert (at_last.position, at_last.skipped_ahead) == (3, 0)


def test_a_copy_of_a_running_watch_keeps_off_its_block(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hold, "OBSERVATIONS_PER_INTENT", 1)
    state = tmp_path / "s"
    first = opened(ledger, EVENT, checkpoint=state)
    first.decide_many(FAR[:10])
    first.decide(1.0)  # and nine more are noted
    copied(state, tmp_path / "copy")
    second = opened(ledger, EVENT, checkpoint=tmp_path / "copy" / "s")
    assert second.skipped_ahead == 9
    assert second.decide_many(FAR[:10]).outliers[:9] == [None] * 9
    assert None not in first.decide_many(FAR[:9]).outliers
    with pytest.raises(SessionClosed):
        first.decide(1.0)
    first.close()
    second.close()


# The ledger


def test_a_ledger_that_cannot_be_reached_stops_the_look_and_no_more(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = opened(ledger, EVENT, checkpoint=tmp_path / "s")
    watch.decide(1.0)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "reserve", lambda *_, **__: (_ for _ in ()).throw(LedgerError("away")))
        patch.setattr(type(watch._rule.detector), "decide", lambda *_, **__: pytest.fail("looked"))
        for _ in range(2):
            with pytest.raises(LedgerError, match="away"):
                watch.decide(1.0)
    assert watch.decide(1.0) is not None
    assert watch.position == 2
    watch.close()
    ledger.verify()


def test_a_note_that_was_written_though_it_seemed_to_fail_is_ours(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Ledger.reserve

    def lose_the_line(book: Ledger, asked: Any, *, after: Any) -> Any:
        real(book, asked, after=after)
        raise LedgerError("the connection was lost")

    watch = opened(ledger, EVENT, checkpoint=tmp_path / "s")
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "reserve", lose_the_line)
        for rows in (FAR[:5], FAR[:2]):
            with pytest.raises(LedgerError):
                watch.decide_many(rows)
    assert None not in watch.decide_many(FAR[:7]).outliers
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "reserve", lose_the_line)
        watch.close()
    with opened(ledger, EVENT, checkpoint=tmp_path / "s") as again:
        assert (again.position, again.skipped_ahead) == (7, 0)


def backed_up(ledger: Path, copy: Path) -> None:
    source, target = sqlite3.connect(ledger), sqlite3.connect(copy)
    source.backup(target)
    source.close()
    target.close()


def test_a_ledger_older_than_the_state_closes_the_epoch(book: Ledger, tmp_path: Path) -> None:
    with opened(book, EVENT, checkpoint=tmp_path / "s") as watch:
        watch.decide(1.0)
        backed_up(tmp_path / "ledger.db", tmp_path / "old.db")
        watch.decide_many(FAR[:3])
        backed_up(tmp_path / "old.db", tmp_path / "ledger.db")
        with pytest.raises(SessionClosed, match="an older copy was put in its place"):
            watch.decide(1.0)
    for _ in range(2):
        with pytest.raises(SessionClosed, match=r"newer than the ledger|given up"):
            opened(book, EVENT, checkpoint=tmp_path / "s")
    with opened(book, EVENT, checkpoint=tmp_path / "s", renew=True) as again:
        assert (again.position, again.resumed) == (0, False)


def test_ledger_and_state_of_one_old_moment_are_shown_by_a_head_that_was_noted(book: Ledger, tmp_path: Path) -> None:
    with opened(book, EVENT, checkpoint=tmp_path / "s") as watch:
        watch.decide(1.0)
        backed_up(tmp_path / "ledger.db", tmp_path / "old.db")
        copied(tmp_path / "s", tmp_path / "copy")
        watch.decide(1.0)
        head = book.verify().head
    restored(tmp_path / "s", tmp_path / "copy", lock=True)
    backed_up(tmp_path / "old.db", tmp_path / "ledger.db")
    with opened(book, EVENT, checkpoint=tmp_path / "s") as again:
        assert again.skipped_ahead == 0  # nothing there knows better
    with pytest.raises(ChainBroken):
        book.verify(head=head)


def test_notes_are_few_and_free(book: Ledger, tmp_path: Path) -> None:
    with opened(book, EVENT, checkpoint=tmp_path / "s") as watch:
        watch.decide_many(FAR)
        notes = len(labels(book))
        for x in range(30):
            watch.decide(float(x % 5))
        assert len(labels(book)) - notes == -(-30 // (len(FAR) // hold.OBSERVATIONS_PER_INTENT))
        spent = book.spent("ward")
        die(watch)
    assert spent.amount == EVENT.cost().amount
    with opened(book, EVENT, checkpoint=tmp_path / "s") as again:
        assert again.skipped_ahead <= len(FAR) // hold.OBSERVATIONS_PER_INTENT
    assert book.spent("ward") == spent


def test_a_block_is_found_among_many_charges(ledger: Ledger, tmp_path: Path) -> None:
    cheap = Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("0.01"))
    watches = [opened(ledger, cheap, checkpoint=tmp_path / name) for name in "st"]
    for watch in (*watches, *watches, opened(ledger, cheap)):
        watch.decide_many(FAR[:2])
    for watch in watches:
        watch.close()
        block = ledger.latest_block(watch.charge, watch._session.about["session"])
        assert block is not None
        assert (block.number, block.settled, block.last) == (3, 4, 4)
    assert ledger.latest_block(1, "another hash") is None
    assert ledger.latest_block(10**6, "another hash") is None


def test_a_key_that_belongs_to_a_block_is_not_mistaken_for_one(ledger: Ledger, tmp_path: Path) -> None:
    watch = opened(ledger, EVENT, checkpoint=tmp_path / "s")
    key = f"{watch._session.about['session']}#1"
    opened(ledger, EVENT, idempotency_key=key).close()
    with pytest.raises(KeyConflict, match="belongs to a watch"):
        watch.decide(1.0)
    watch.close()
