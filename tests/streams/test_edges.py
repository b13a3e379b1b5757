"""Checkpoint machines on their edges: positions, bars and spending, one step before and one step after each bound."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from watches import COIN, opened

from wallflower.errors import PrivacyError, SessionClosed, StateUnreachable
from wallflower.ledger import Block, Ledger
from wallflower.streams import OpenWatch
from wallflower.streams.session import Checkpoint, IntentLog, Payer, Session, bounded_spending

FIRST = Block(charge=1, session="e", number=3, settled=4, last=10, spent=2, holder="other", hash="row 3")


class Notes:
    """A ledger's blocks in a list."""

    def __init__(self, latest: Block) -> None:
        self.rows = [latest]

    def reserve(self, asked: Block, *, after: Block) -> Block:
        assert self.rows[-1] == after
        self.rows.append(replace(asked, hash=f"row {asked.number}"))
        return self.rows[-1]


def held(latest: Block = FIRST, *, position: int = 4) -> tuple[IntentLog, Notes]:
    notes = Notes(latest)
    return IntentLog(notes, latest, position=position, holder="own"), notes


# IntentLog


@pytest.mark.parametrize(("position", "barred"), [(0, 10), (9, 1), (10, 0), (11, 0)])
def test_what_an_earlier_process_noted_is_barred(position: int, barred: int) -> None:
    assert held()[0].count_skipped(position) == barred


@pytest.mark.parametrize(
    ("last", "spent", "writes"),
    [(20, 1, False), (21, 1, True), (20, 2, True), (19, 0, False)],
    ids=["up to the note", "one beyond", "one more flag than noted", "less"],
)
def test_a_row_is_written_as_soon_as_the_last_one_does_not_cover(last: int, spent: int, writes: bool) -> None:
    hold, notes = held()
    assert hold.cover(10, 20, 1, lambda looks: 1)  # notes up to 20, and one more than was spent
    assert (hold.block.last, hold.block.spent) == (20, 2)
    rows = len(notes.rows)
    assert hold.cover(10, last, spent, lambda looks: 1)
    assert (len(notes.rows) > rows) is writes
    assert hold.block.last >= last
    assert hold.block.spent >= spent + 1


def test_a_row_never_notes_less_than_the_one_before() -> None:
    hold, _ = held()
    assert hold.cover(4, 5, 0, lambda looks: 0)  # fewer than the other process had noted
    assert hold.block.last == FIRST.last


@pytest.mark.parametrize(
    ("reach", "last"), [(None, 10_256 + 40), (100, 10_256 + 40), (40, 10_256 + 40), (39, 10_256 + 39), (0, 10_257)]
)
def test_what_is_noted_ahead_has_a_bound(reach: int | None, last: int) -> None:
    hold, _ = held(position=16)
    assert hold.cover(10_256, 10_257, 0, lambda looks: 0, reach=reach)
    assert hold.block.last == last


@pytest.mark.parametrize(("position", "last"), [(4, 10), (9, 10), (10, 10), (11, 11), (20, 20)])
def test_put_down_keeps_the_bar(position: int, last: int) -> None:
    hold, notes = held()
    assert hold.cover(4, 20, 0, lambda looks: 0)
    hold.release(position, 0)
    assert (notes.rows[-1].settled, notes.rows[-1].last) == (position, last)


def test_a_process_that_noted_nothing_puts_nothing_down() -> None:
    hold, notes = held()
    hold.release(4, 0)
    assert notes.rows == [FIRST]


@pytest.mark.parametrize(
    ("number", "position", "bound"),
    [(3, 10, 1), (3, 9, 2), (2, 10, 2), (3, 11, 2), (4, 10, 2)],
    ids=["has seen it all", "one short", "an earlier row", "one beyond", "a later row"],
)
def test_only_a_state_that_has_seen_the_last_row_to_its_end_knows_its_spending(
    number: int, position: int, bound: int
) -> None:
    assert bounded_spending(FIRST, position=position, number=number, spent=1) == bound
    assert bounded_spending(FIRST, position=position, number=number, spent=7) == 7


# Payer


class LedgerOf:
    def __init__(self, block: Block) -> None:
        self.block = block

    def latest_block(self, charge: int, session: str) -> Block:
        return self.block


class Closable:
    def close_session(self, why: str) -> SessionClosed:
        return SessionClosed(why)


@pytest.mark.parametrize(
    ("position", "refused"),
    [(3, "older copy"), (4, None), (5, None), (10, None), (11, "newer than the ledger"), (12, "newer than the ledger")],
)
@pytest.mark.parametrize("exhausted", [False, True])
def test_a_state_goes_on_between_what_is_settled_and_what_is_noted(
    position: int, refused: str | None, exhausted: bool
) -> None:
    blank: Any = None
    payer = Payer(
        query=blank,
        claim=blank,
        declared=None,
        dataset="w",
        analyst="a",
        ledger=LedgerOf(FIRST),  # type: ignore[arg-type]
        checkpoint=blank,
        check_useful=lambda: None,
    )
    session = Session(number=1, about={"charge": 1, "session": "e"}, secret=(), position=position, exhausted=exhausted)
    if refused is None or exhausted:
        assert payer._require_newest(session, Closable()) is FIRST  # type: ignore[arg-type]
    else:
        with pytest.raises(SessionClosed, match=refused):
            payer._require_newest(session, Closable())  # type: ignore[arg-type]


# Blocks of a ledger


def test_a_block_follows_the_very_row_it_names(tmp_path: Path) -> None:
    """A ledger that was put back while a watch runs, and in which another process has written the row since."""
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as book:
        watch = opened(book, COIN, checkpoint=tmp_path / "s")
        kill(watch)
        paid = Block(charge=watch.charge, session=watch._session.about["session"], hash=watch._session.about["session"])
    back_up(path, tmp_path / "earlier.db")
    with Ledger.open(path) as book:
        ours = book.reserve(replace(paid, number=1, last=5, holder="own"), after=paid)
        same = book.reserve(replace(paid, number=1, last=9, holder="other"), after=paid)
        assert same == ours  # the number is taken
    with Ledger.open(tmp_path / "earlier.db") as book:
        after = replace(ours, number=2, last=9, hash="")
        with pytest.raises(SessionClosed, match="older copy"):  # the row is not there
            book.reserve(after, after=ours)
        theirs = book.reserve(replace(paid, number=1, last=5, holder="other"), after=paid)
        assert theirs.hash != ours.hash
        with pytest.raises(SessionClosed, match="older copy"):  # a row is there, and it is another one
            book.reserve(after, after=ours)
        assert book.latest_block(paid.charge, paid.session) == theirs


def kill(watch: OpenWatch) -> None:
    """End a watch without putting it down."""
    assert watch._checkpoint is not None
    watch._is_open = False
    watch._checkpoint.close()


def back_up(store: Path, copied: Path) -> None:
    source, target = sqlite3.connect(store), sqlite3.connect(copied)
    source.backup(target)
    source.close()
    target.close()


# All of it together


def test_a_copy_whose_first_write_fails_decides_nothing_a_second_time(
    book: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older copy is opened, the disk is full after its note, it is closed in good order, and opened again."""
    state, copied = tmp_path / "s", tmp_path / "copy"
    first = opened(book, COIN, checkpoint=state)
    first.decide_many([0.0] * 5)
    back_up(state, copied)
    shutil.copy(tmp_path / "s.lock", tmp_path / "copy.lock")
    first.decide_many([0.0] * 5)  # 6 to 10 are released
    kill(first)

    def full(*_: object) -> None:
        raise StateUnreachable("disk full")

    keep = Checkpoint.keep
    with opened(book, COIN, checkpoint=copied) as second:
        monkeypatch.setattr(Checkpoint, "keep", full)
        with pytest.raises(PrivacyError):
            second.decide_many([0.0] * 7)
    monkeypatch.setattr(Checkpoint, "keep", keep)
    with opened(book, COIN, checkpoint=copied) as third:
        assert third.decide_many([0.0] * 5).skipped.all()
