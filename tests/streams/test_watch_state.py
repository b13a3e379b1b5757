"""What a watch with a state remembers, and when it refuses to go on."""

from __future__ import annotations

import json
import sqlite3
import stat
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from watches import COIN, EVENT, FAR, PERSON, labels, opened

from wallflower.data import Points
from wallflower.errors import ParameterError, SessionClosed, StateError
from wallflower.ledger import Ledger
from wallflower.machine.vault import SealedStore, make_key
from wallflower.privacy import Loss
from wallflower.queries.watch import Watch
from wallflower.release import release

door: Any = import_module("wallflower.streams.watch")  # the function of this name stands before it in the package


# Remembering


def test_a_watch_is_taken_up_where_it_stood(book: Ledger, tmp_path: Path) -> None:
    with opened(book, COIN, checkpoint=tmp_path / "s") as watch:
        told = watch.decide_many(FAR[:200])
        one = watch.decide(1.0)
    with opened(book, COIN, checkpoint=tmp_path / "s") as again:
        assert (again.position, again.resumed, again.charge) == (201, True, 1)
        nothing: list[Any] = ["what is replayed is not looked at"] * 200
        replayed = again.decide_many(nothing, first=1)
        assert replayed.flags.tolist() == told.flags.tolist()
        assert replayed.scores is not None
        assert told.scores is not None
        assert replayed.scores.tolist() == told.scores.tolist()
        assert again.decide_at(201, object()) == one  # type: ignore[arg-type]
        mixed = again.decide_many([object()] * 2 + [3.0], first=200)  # type: ignore[list-item]
        assert mixed.flags[:2].tolist() == [told.flags[-1], one]
        assert again.position == 202
        assert again.decide_at(202, None) == mixed.flags[2]
    assert labels(book)[0] == "outlier-watch/1"
    assert set(labels(book)[1:]) == {"outlier-watch-block/1"}
    assert len(labels(book)) == 6  # a batch, an observation, a stop; an observation, a stop


def test_a_sealed_secret_needs_its_key_and_costs_nothing_without(book: Ledger, tmp_path: Path) -> None:
    """A missing or another key is refused, and the session that was paid for goes on with the right one."""
    where, key, other = (tmp_path / name for name in ("s", "state.key", "other.key"))
    make_key(key)
    make_key(other)
    with opened(book, PERSON, checkpoint=where, checkpoint_key=key) as watch:
        told = [watch.decide(0.0), watch.decide(0.0)]
        secret = watch._session.secret
    assert secret
    for own, words in ((None, "is sealed. Name its key"), (other, "sealed with another key")):
        with pytest.raises(SealedStore, match=words):
            opened(book, PERSON, checkpoint=where, checkpoint_key=own)
    with opened(book, PERSON, checkpoint=where, checkpoint_key=str(key)) as again:
        assert (again.position, again.resumed, again._session.secret) == (2, True, secret)
        assert [again.decide_at(place, None) for place in (1, 2)] == told
    with sqlite3.connect(where) as db:
        (kept,) = db.execute("SELECT secret FROM sessions").fetchone()
    assert not kept.startswith("[")
    plain = json.dumps(list(secret))  # with its brackets: digits alone are in a cipher text by chance
    assert plain not in kept
    assert plain.encode() not in bytes.fromhex(kept.removeprefix("sealed "))
    with opened(book, PERSON, checkpoint=tmp_path / "open"):  # as every state was before
        pass
    with pytest.raises(SealedStore, match="is not sealed"):
        opened(book, PERSON, checkpoint=tmp_path / "open", checkpoint_key=key)
    with opened(book, PERSON, checkpoint=tmp_path / "open") as open_one:
        assert open_one.resumed
    with pytest.raises(ParameterError, match="seals a checkpoint, and none is given"):
        opened(book, PERSON, checkpoint_key=key)


@pytest.mark.parametrize("k", [0, 3, -1, True, 2.0])
def test_observations_are_decided_in_order(book: Ledger, tmp_path: Path, k: Any) -> None:
    with opened(book, checkpoint=tmp_path / "s") as watch:
        watch.decide_at(1, 5.0)
        with pytest.raises(StateError, match="2 is next"):
            watch.decide_at(k, 5.0)
        assert watch.decide_at(2, 5.0) is not None


def test_without_a_state_nothing_is_told_again(book: Ledger) -> None:
    with opened(book) as watch:
        assert watch.decide_at(1, 5.0) is not None
        with pytest.raises(StateError, match="without a checkpoint"):
            watch.decide_at(1, 5.0)


def test_a_watch_can_be_taken_up_when_the_budget_is_used_up(book: Ledger, tmp_path: Path) -> None:
    whole = Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("1"))
    opened(book, whole, checkpoint=tmp_path / "s").close()
    assert book.remaining("ward").amount == 0
    with opened(book, whole, checkpoint=tmp_path / "s") as watch:
        assert watch.resumed
    assert book.spent("ward").amount == whole.cost().amount
    book.verify()


def test_a_decision_is_on_disk_before_it_is_told(book: Ledger, tmp_path: Path, monkeypatch: Any) -> None:
    watch = opened(book, PERSON, checkpoint=tmp_path / "s")
    monkeypatch.setattr(door.Checkpoint, "keep", lambda *_: (_ for _ in ()).throw(StateError("disk full")))
    for _ in range(3):
        with pytest.raises(StateError, match="disk full"):
            watch.decide(5.0)
    assert watch.position == 0
    monkeypatch.undo()
    told = watch.decide_many(FAR[:50])
    with sqlite3.connect(tmp_path / "s") as db:
        flags = [bool(flag) for (flag,) in db.execute("SELECT flag FROM decisions ORDER BY observation")]
    db.close()
    assert flags == told.flags.tolist()
    watch.close()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_interruption_while_a_decision_is_kept_loses_nothing(
    book: Ledger, tmp_path: Path, monkeypatch: Any, moment: str
) -> None:
    real = door.Checkpoint.keep

    def interrupted(state: Any, *given: Any) -> None:
        if moment == "after":
            real(state, *given)
        raise KeyboardInterrupt

    with opened(book, EVENT, checkpoint=tmp_path / "s") as watch:
        watch.decide(5.0)
        monkeypatch.setattr(door.Checkpoint, "keep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            watch.decide_many(FAR[:3])
    monkeypatch.undo()
    with opened(book, EVENT, checkpoint=tmp_path / "s") as again:
        assert (again.position, again.skipped_ahead) == (4 if moment == "after" else 1, 0)
        assert None not in again.decide_many(FAR[:5], first=1).outliers


def test_a_state_is_for_its_owner_only(book: Ledger, tmp_path: Path) -> None:
    with opened(book, PERSON, checkpoint=tmp_path / "s") as watch:
        watch.decide(5.0)
        for path in tmp_path.glob("s*"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        secret = watch._session.secret
        shown = f"{watch!r} {watch._session!r} {vars(watch)}"
        assert "secret" not in shown
        assert not any(str(part) in repr(watch._session).split("position")[0] for part in secret if part > 999)


# Refusing to go on


def test_one_process_at_a_time(book: Ledger, tmp_path: Path) -> None:
    with opened(book, checkpoint=tmp_path / "s"):
        with pytest.raises(StateError, match="another process has it open"):
            opened(book, checkpoint=tmp_path / "s")
        assert labels(book) == ["outlier-watch/1"]
    opened(book, checkpoint=tmp_path / "s").close()


def test_a_state_belongs_to_one_question(book: Ledger, tmp_path: Path) -> None:
    opened(book, checkpoint=tmp_path / "s").close()
    for query, more in ((PERSON, {}), (EVENT, {"columns": ["y"]}), (EVENT, {"dataset": "icu"})):
        for renew in (False, True):
            with pytest.raises(StateError, match=r"another watch.*another checkpoint file"):
                opened(book, query, checkpoint=tmp_path / "s", renew=renew, **more)
    assert labels(book)[0] == "outlier-watch/1"
    assert labels(book).count("outlier-watch/1") == 1


DAMAGES = (
    "UPDATE sessions SET secret = NULL",
    "UPDATE sessions SET secret = '[-1]'",
    "UPDATE sessions SET checksum = NULL",
    "UPDATE sessions SET about = about || ' '",
    "DELETE FROM sessions",
    "DELETE FROM decisions WHERE observation = 2",
    "DELETE FROM decisions WHERE observation = 5",
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_state_closes_its_epoch(book: Ledger, tmp_path: Path, damage: str) -> None:
    query = Watch(threshold=2.0, low=-5.0, high=5.0, level="person", cutoff=9, loss=Loss("0.5"))
    with opened(book, query, checkpoint=tmp_path / "s") as watch:
        watch.decide_many([0.0] * 5)
    with sqlite3.connect(tmp_path / "s") as db:
        db.execute(damage)
    db.close()
    for _ in range(2):
        with pytest.raises(SessionClosed, match="renew"):
            opened(book, query, checkpoint=tmp_path / "s")
    assert labels(book).count("outlier-watch/1") == 1
    with opened(book, query, checkpoint=tmp_path / "s", renew=True) as again:
        assert (again.position, again.resumed) == (0, False)
        again.decide(0.0)
    assert labels(book).count("outlier-watch/1") == 2
    with opened(book, query, checkpoint=tmp_path / "s") as at_last:
        assert (at_last.position, at_last.resumed) == (1, True)


def test_a_file_that_is_no_state_is_refused(book: Ledger, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("x" * 5000)
    with sqlite3.connect(tmp_path / "other") as db:
        db.execute("CREATE TABLE things (a)")
    db.close()
    for name in ("text", "other"):
        for renew in (False, True):
            with pytest.raises(StateError, match="not the checkpoint of a watch"):
                opened(book, checkpoint=tmp_path / name, renew=renew)
    assert labels(book) == []


def test_an_epoch_goes_on_in_the_ledger_that_was_paid(book: Ledger, tmp_path: Path) -> None:
    opened(book, checkpoint=tmp_path / "s").close()
    with Ledger.open(tmp_path / "other.db") as other:
        release(EVENT, Points.from_array([[1.0], [2.0]], name="ward"), other, force=True)
        with pytest.raises(SessionClosed, match="another ledger"):
            opened(other, checkpoint=tmp_path / "s")
    opened(book, checkpoint=tmp_path / "s").close()  # a mistake closes nothing
    with Ledger.open(tmp_path / "other.db") as other:
        opened(other, checkpoint=tmp_path / "s", renew=True).close()
        assert labels(other).count("outlier-watch/1") == 2
    with pytest.raises(SessionClosed):
        opened(book, checkpoint=tmp_path / "s")
