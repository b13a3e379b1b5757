"""What is written stays written: reading the ledger back, and finding out who meddled with it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import get_args

import pytest
import sqlalchemy as sa
from ledgers import ROWS, Question, ask, engine_of, filled, meddle, unguarded

from wallflower.errors import ChainBroken, LedgerError
from wallflower.ledger import Ledger
from wallflower.ledger.chain import COLUMNS, Event
from wallflower.privacy import Loss

# Reading


def test_history_can_be_narrowed(ledger: Ledger) -> None:
    filled(ledger)
    ask(ledger, "0.5", dataset="ward")
    ids = lambda **by: [entry.id for entry in ledger.history(**by)]  # noqa: E731
    assert ids() == list(range(1, ROWS + 2))
    assert ids(dataset="ward") == ids(dataset="WARD") == [11]
    assert ids(analyst="bo") == [8, 9]
    assert ids(event="release") == [6, 9]
    assert ids(event="naming") == [10]
    assert ids(last=2) == [10, 11]
    assert ids(last=2, before=7) == [5, 6]


def test_entries_are_read_back_as_they_were_meant(ledger: Ledger) -> None:
    filled(ledger)
    account, limit, share, allowance, charge, release = ledger.history(before=7)
    assert (account.event, account.details["protects"]["units_per_person"]) == ("account", 2)
    said = {name: limit.details[name] for name in ("by", "reason")}
    assert (limit.loss, said) == (Loss("3", delta="1e-6"), {"by": "steward", "reason": "pilot"})
    assert (share.analyst, share.loss, share.details) == ("ana", Loss("2"), {"by": "steward", "reason": ""})
    assert (allowance.event, allowance.amount) == ("allowance", "1")
    assert (charge.label, charge.idempotency_key, charge.details) == (
        "outlier-count/1",
        "k1",
        Question(Loss("0.25")).to_json(),
    )
    assert (charge.loss, charge.factor, charge.booked, charge.rho) == (Loss("0.25"), "2", Loss("0.5"), "1/8")
    assert (release.charge, release.details, release.loss) == (5, {"value": 7}, None)


def test_a_filled_ledger_uses_every_event_of_today_and_every_column(ledger: Ledger) -> None:
    filled(ledger)
    rows = list(ledger.export())
    assert len(rows) == ROWS
    assert {row["event"] for row in rows} == set(get_args(Event))
    assert {name for row in rows for name, value in row.items() if value is not None} == set(COLUMNS)


def test_an_export_can_be_checked_by_anybody(ledger: Ledger) -> None:
    filled(ledger)
    last = "0" * 64
    for line in (json.dumps(entry) for entry in ledger.export()):
        entry = json.loads(line)
        assert entry["previous"] == last
        bound = {name: value for name, value in entry.items() if value is not None and name != "hash"}
        last = hashlib.sha256(json.dumps(bound, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        assert entry["hash"] == last
    assert ledger.verify().head == last


# Tampering


def test_an_empty_ledger_verifies(ledger: Ledger) -> None:
    empty = ledger.verify()
    assert empty.entries == 0
    filled(ledger)
    assert ledger.verify(head=empty.head).entries == ROWS


@pytest.mark.parametrize("change", ["UPDATE entries SET amount = '0'", "DELETE FROM entries", "TRUNCATE entries"])
def test_rows_cannot_be_changed_or_removed(ledger: Ledger, place: str, change: str) -> None:
    filled(ledger)
    unknown = "://" not in place and change.startswith("TRUNCATE")  # SQLite does not know the word
    words = "syntax error" if unknown else "append-only"
    with pytest.raises(sa.exc.DBAPIError, match=words), engine_of(place).begin() as db:
        db.exec_driver_sql(change)
    assert ledger.verify().entries == ROWS


@pytest.mark.parametrize("found", ["id = 1", "idempotency_key = 'k1'", "charge = 5"])
def test_sqlite_rows_cannot_be_replaced(tmp_path: Path, found: str) -> None:
    place = str(tmp_path / "ledger.db")
    with Ledger.open(place) as ledger:
        filled(ledger)
        names = ", ".join(COLUMNS)
        values = names if "id" in found else names.replace("id,", "99,", 1)
        with pytest.raises(sa.exc.DBAPIError, match="append-only"), engine_of(place).begin() as db:
            db.exec_driver_sql(f"INSERT OR REPLACE INTO entries ({names}) SELECT {values} FROM entries WHERE {found}")
        assert ledger.verify().entries == ROWS


FORGED = {"id": 17, "event": "limit", "charge": 2}


@pytest.mark.parametrize("row", [5, 9])
def test_a_change_of_any_column_is_found(ledger: Ledger, place: str, row: int) -> None:
    filled(ledger)
    honest = list(ledger.export())[row - 1]
    for column in COLUMNS:
        change = sa.text(f"UPDATE entries SET {column} = :value WHERE hash = :hash OR previous = :previous")
        this = {"hash": honest["hash"], "previous": honest["previous"]}
        with unguarded(place) as db:
            db.execute(change, {"value": FORGED.get(column, "forged"), **this})
        with pytest.raises(ChainBroken, match=f"entry {row} ") as caught:
            ledger.verify()
        assert caught.value.entry == row
        with unguarded(place) as db:
            db.execute(change, {"value": honest[column], **this})
        assert ledger.verify().entries == ROWS


INSERT = "INSERT INTO entries (id, time, event, dataset, previous, hash) VALUES ({}, '', 'limit', 'icu', '', '')"


@pytest.mark.parametrize(
    ("statements", "entry"),
    [
        (["DELETE FROM entries WHERE id = 1"], 1),
        (["DELETE FROM entries WHERE id = 5"], 5),
        (["UPDATE entries SET id = -1 WHERE id = 5", "UPDATE entries SET id = 5 WHERE id = 6",
          "UPDATE entries SET id = 6 WHERE id = -1"], 5),
        ([INSERT.format(11)], 11),
        ([INSERT.format(0)], 0),
    ],
    ids=["first removed", "removed", "swapped", "appended", "inserted"],
)  # fmt: skip
def test_removed_moved_and_inserted_rows_are_found(ledger: Ledger, place: str, statements, entry: int) -> None:
    filled(ledger)
    meddle(place, *statements)
    with pytest.raises(ChainBroken) as caught:
        ledger.verify()
    assert caught.value.entry == entry


def test_a_cut_off_tail_is_found_with_a_head_noted_earlier(ledger: Ledger, place: str) -> None:
    filled(ledger)
    noted = ledger.verify().head
    ask(ledger, "0.1", dataset="ward")
    assert ledger.verify(head=noted).entries == ROWS + 1
    meddle(place, "DELETE FROM entries WHERE id >= 6")
    assert ledger.verify().entries == 5
    with pytest.raises(ChainBroken, match="cut off") as caught:
        ledger.verify(head=noted)
    assert caught.value.entry == 6


@pytest.mark.parametrize("column", ["epsilon", "booked_delta", "rho"])
def test_bytes_and_nonsense_in_a_row_are_reported_not_tripped_over(tmp_path: Path, column: str) -> None:
    place = str(tmp_path / "ledger.db")
    with Ledger.open(place) as ledger:
        filled(ledger)
        meddle(place, f"UPDATE entries SET {column} = x'00ff' WHERE id = 5")
        with pytest.raises(ChainBroken):
            ledger.verify()
        with pytest.raises(LedgerError, match="ledger verify"):
            ledger.remaining("icu")
