"""Ledgers of the version before: no row changes, nothing more may be spent, and every rule of the migration holds."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from ledgers import Question, ask, engine_of
from old_ledgers import COLUMNS, NAMES, old_row, old_rows, sealed, write_old

from wallflower.errors import BudgetExhausted, KeyConflict, LedgerError, ParameterError, SameRecords
from wallflower.ledger import Ledger
from wallflower.ledger.old import CONCENTRATED, UNDECLARED
from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.units import Claim, Protection

ENTRY = Protection(rows="time", unit="entry")
PERSON = Protection(rows="time", unit="person")


def opened(place: str, name: str) -> Ledger:
    write_old(place, old_rows(name))
    return Ledger.open(place)


@dataclass(frozen=True)
class Replayed:
    """A question exactly as an old row has it."""

    label: str
    body: str
    loss: Loss

    @classmethod
    def of(cls, row: dict[str, Any]) -> Replayed:
        return cls(row["label"], row["body"], Loss.from_json(row))

    def cost(self) -> Loss:
        return self.loss

    def to_json(self) -> dict[str, Any]:
        stored: dict[str, Any] = json.loads(self.body)
        return stored


# Nothing changes


@pytest.mark.parametrize("name", NAMES)
def test_rows_and_head_are_the_same_before_and_after(place: str, name: str) -> None:
    rows = old_rows(name)
    with opened(place, name) as ledger:
        verified = ledger.verify(head=rows[2]["hash"])
        assert (verified.entries, verified.head) == (len(rows), rows[-1]["hash"])
        found = list(ledger.export())
    assert [{column: row[column] for column in COLUMNS} for row in found] == rows
    assert not any(value for row in found for column, value in row.items() if column not in COLUMNS)
    with Ledger.open(place) as again:
        assert again.verify() == verified


def test_a_ledger_of_the_first_revision_is_brought_over_too(place: str) -> None:
    rows = old_rows("one_unit")
    write_old(place, rows)
    with engine_of(place).begin() as db:
        db.exec_driver_sql("DROP INDEX entries_spent")
        db.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
    with Ledger.open(place) as ledger, engine_of(place).connect() as db:
        assert ledger.verify().head == rows[-1]["hash"]
        indexes = {index["name"] for index in sa.inspect(db).get_indexes("entries")}
        assert {"entries_spent", "entries_booked", "entries_event", "entries_names"} <= indexes


def test_an_old_ledger_goes_on_as_one_chain(place: str) -> None:
    rows = old_rows("one_unit")
    with opened(place, "one_unit") as ledger:
        ledger.record(ask(ledger, "0.25"), {"value": 1})
        ledger.grant("icu", Loss("4"), by="steward")
        assert ledger.verify(head=rows[-1]["hash"]).entries == len(rows) + 3


@pytest.mark.parametrize("change", ["UPDATE entries SET amount = '0'", "DELETE FROM entries"])
def test_rows_that_were_brought_over_stay_guarded(place: str, change: str) -> None:
    opened(place, "one_unit").close()
    with pytest.raises(sa.exc.DBAPIError, match="append-only"), engine_of(place).begin() as db:
        db.exec_driver_sql(change)


def test_brought_over_rows_cannot_be_replaced_in_sqlite(tmp_path: Path) -> None:
    place, names = str(tmp_path / "ledger.db"), ", ".join(COLUMNS)
    opened(place, "one_unit").close()
    with pytest.raises(sa.exc.DBAPIError, match="append-only"), engine_of(place).begin() as db:
        db.exec_driver_sql(f"INSERT OR REPLACE INTO entries ({names}) SELECT {names} FROM entries WHERE id = 3")


@pytest.mark.parametrize("event", ["grant", "allocate", "charge"])
def test_an_old_program_that_still_has_it_open_can_book_nothing(place: str, event: str) -> None:
    """Nobody reads the revision again once a ledger is open, so the database itself refuses what has no unit."""
    rows = old_rows("one_unit")
    more = sealed([*rows, old_row(event, "icu", Loss("1"), analyst="ana")])[-1]
    with opened(place, "one_unit") as ledger:
        table = sa.table("entries", *(sa.column(name) for name in COLUMNS))
        with pytest.raises(sa.exc.DBAPIError, match="upgrade wallflower"), engine_of(place).begin() as db:
            db.execute(sa.insert(table).values(more))
        assert ledger.verify().entries == len(rows)


def test_a_migration_that_fails_leaves_the_old_ledger(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    write_old(str(place), old_rows("one_unit"))
    db = sqlite3.connect(place)
    db.execute("CREATE TABLE fingerprints (id INTEGER)")
    db.commit()
    before = list(db.execute("SELECT * FROM entries")), list(db.execute("SELECT name, sql FROM sqlite_master"))
    with pytest.raises(LedgerError):
        Ledger.open(place)
    assert before == (
        list(db.execute("SELECT * FROM entries")),
        list(db.execute("SELECT name, sql FROM sqlite_master")),
    )
    assert list(db.execute("SELECT version_num FROM alembic_version")) == [("0002",)]
    db.close()


# What the account says, rule by rule


@pytest.mark.parametrize(
    ("name", "dataset", "declared", "limit", "spent", "starter"),
    [
        ("one_unit", "icu", Protection(), Loss("3"), "7/4", False),
        ("constrained", "icu", Protection(unit="membership"), Loss("2"), "1/2", False),
        ("windows", "meters", Protection(rows="time", unit="window", window=4), Loss("4"), "2", False),
        ("persons", "meters", PERSON, Loss("3", delta="1e-6"), "15/4", False),
        ("several", "icu", Protection(), Loss("2"), "1/2", False),
        ("several", "ward", Protection(), Loss("1", delta="1e-6"), "3/4", False),
        ("several", "clinic", Protection(), Loss("1"), "1/8", True),
        ("several", "meters", ENTRY, Loss("1"), "17/4", True),
        ("several", "unused", Protection(), Loss("5"), "0", False),
        ("several", "new", Protection(), Loss("1"), "0", True),
        ("squares", "icu", Protection(), Loss("1"), "1/4", False),
    ],
)
def test_one_unit_is_the_unit_and_its_limit_the_limit(  # rules 1 to 3
    place: str, name: str, dataset: str, declared: Protection, limit: Loss, spent: str, starter: bool
) -> None:
    with opened(place, name) as ledger:
        account = ledger.account(dataset)
        assert (account.closed, account.protection, account.starter) == (None, declared, starter)
        assert (account.limit.accounting, account.limit.convert) == ("sum", 0)
        assert ledger.limit(dataset) == limit.under(declared.neighbours)
        assert account.spent.epsilon == Fraction(spent)


@pytest.mark.parametrize(
    ("name", "declared", "limit", "spent"),
    [
        ("explained", Protection(), "3", "5/2"),
        ("starter", Protection(), "1", "9"),
        ("starter", ENTRY, "1", "6"),
        ("starter", Protection(rows="time", unit="window", window=5), "1", "22"),
        ("starter", PERSON, "1", "333"),
    ],
)
def test_several_units_are_closed_until_one_is_declared(
    place: str, name: str, declared: Protection, limit: str, spent: str
) -> None:
    with opened(place, name) as ledger:
        assert ledger.account("icu").closed == UNDECLARED
        for loss in (Loss("1/1000"), Loss("1/1000", neighbours=Neighbours.ADD_REMOVE)):
            with pytest.raises(BudgetExhausted, match="several units"):
                ledger.charge("icu", Question(loss), analyst="ana")
        ledger.declare("icu", declared, by="steward")
        account = ledger.account("icu")
        assert (account.closed, account.protection) == (None, declared)
        assert (account.limit.epsilon, account.spent.epsilon) == (Fraction(limit), Fraction(spent))


def test_a_limit_alone_opens_nothing_that_has_several_units(place: str) -> None:
    with opened(place, "explained") as ledger:
        ledger.grant("icu", Loss("100"), by="steward")
        assert ledger.account("icu").closed == UNDECLARED
        with pytest.raises(BudgetExhausted, match="several units"):
            ask(ledger, "1/1000")
        ledger.declare("icu", Protection(), by="steward")
        assert ask(ledger, "1").left == Loss("96.5")


def test_what_has_no_factor_stays_closed(place: str) -> None:
    with opened(place, "starter") as ledger:
        ledger.declare("icu", Protection(unit="membership"), by="steward")
        assert "the number of records is secret" in (ledger.account("icu").closed or "")
        ledger.grant("icu", Loss("100"), by="steward")
        with pytest.raises(BudgetExhausted, match="secret"):
            ledger.charge("icu", Question(Loss("1/1000", neighbours=Neighbours.ADD_REMOVE)), analyst="ana")
        ledger.declare("icu", Protection(), by="steward")
        assert ledger.account("icu").closed is None


def test_squares_wait_for_a_limit_that_holds_them(place: str) -> None:
    with opened(place, "squares") as ledger:
        assert ledger.account("meters").closed == CONCENTRATED
        for more in ({"accounting": "sum"}, {"accounting": "either"}):
            ledger.grant("meters", Loss("3", delta="1e-6"), by="steward", **more)
            assert ledger.account("meters").closed == CONCENTRATED
        ledger.grant("meters", Loss("3", delta="1e-6"), by="steward", accounting="concentrated")
        account = ledger.account("meters")
        assert (account.closed, account.spent.rho, account.spent.unsummed) == (None, Fraction(1, 8), 1)
        asked = Question(Loss.zcdp("0.05", neighbours=Neighbours.PERSON))
        ledger.charge("meters", asked, analyst="ana")
        with pytest.raises(BudgetExhausted):
            ledger.charge("meters", asked, analyst="ana")


def test_constrained_answers_of_before_are_told_and_fenced_off(place: str) -> None:
    with opened(place, "constrained") as ledger:
        account = ledger.account("icu")
        assert (account.fence.spent, account.fence.since, account.fence.allowed) == (Fraction(3, 4), 3, 0)
        assert account.names == ("3", "7")
        asked = Question(Loss("0.25", kind=Kind.OUTPUT_CONSTRAINED, neighbours=Neighbours.ADD_REMOVE))
        with pytest.raises(BudgetExhausted, match="the steward has not allowed"):
            ledger.charge("icu", asked, analyst="ana")
        ledger.allow_constrained("icu", "1", by="steward")
        ledger.charge("icu", asked, analyst="ana")
        assert ledger.account("icu").fence.left == 0


def test_old_limits_bind_until_the_first_new_one(place: str) -> None:  # rule 4
    with opened(place, "explained") as ledger:
        ledger.declare("icu", Protection(), by="steward")
        member = Claim(loss=Loss("2.5", neighbours=Neighbours.ADD_REMOVE), own=(("record", Fraction(1, 10)),))
        with pytest.raises(BudgetExhausted, match="limits from before accounts were one") as caught:
            ledger.charge("icu", Question(member.loss), analyst="ana", claim=member)
        assert (caught.value.part, caught.value.left) == ("old limit", Loss("2.25", neighbours=Neighbours.ADD_REMOVE))
        ledger.grant("icu", Loss("3"), by="steward")
        ledger.charge("icu", Question(member.loss), analyst="ana", claim=member)


def test_old_shares_bind_until_the_first_new_limit(place: str) -> None:
    with opened(place, "shares") as ledger:
        for analyst, left in (("ana", "0.25"), ("bo", "0.25"), ("cy", "0.25")):
            with pytest.raises(BudgetExhausted) as caught:
                ask(ledger, "1.25", analyst=analyst)
            assert (caught.value.part, caught.value.left) == ("old limit", Loss(left))
        ask(ledger, "0.25", dataset="ICU")
        with pytest.raises(BudgetExhausted):
            ask(ledger, "1/1000", dataset="ICU")
        ledger.grant("icu", Loss("2"), by="steward")
        assert ask(ledger, "0.5", analyst="bo").left == Loss("0.5")


def test_a_pace_counts_what_was_spent_this_year_by_the_old_rules_too(place: str) -> None:
    this, last = (f"{date.today().year - years}-01-01T00:00:00+00:00" for years in (0, 1))
    rows = [
        old_row("charge", "icu", Loss("0.25"), analyst="ana", label="x/1", body="{}", time=time)
        for time in (last, this)
    ]
    write_old(place, sealed(rows))
    with Ledger.open(place) as ledger:
        ledger.grant("icu", Loss("3"), by="steward", pace="0.5")
        assert ledger.account("icu").this_year.epsilon == Fraction(1, 4)
        with pytest.raises(BudgetExhausted, match="this year's part is short"):
            ask(ledger, "0.5")
        ask(ledger, "0.25")


def test_an_answer_about_an_empty_table_closes_nothing(place: str) -> None:
    charge = old_row("charge", "icu", Loss("0.25"), analyst="ana", label="outlier-count/1", body="{}")
    answer = {
        "event": "release",
        "dataset": "icu",
        "charge": 1,
        "body": json.dumps({"facts": {"n": 0, "dimension": 0}}),
    }
    write_old(place, sealed([charge, answer]))
    with Ledger.open(place) as ledger:
        assert (ledger.account("icu").closed, ledger.remaining("icu")) == (None, Loss("0.75"))


# Names


def test_spellings_of_one_name_are_one_account_with_the_least_limit(place: str) -> None:
    with opened(place, "spelt") as ledger:
        assert ledger.datasets() == ["icu", "my-data", "іcu"]
        for names, limit, spent in ((("ICU", "icu", "iCu"), 1, "7/8"), (("my data", "my-data", "MY-DATA"), 1, "1/2")):
            for name in names:
                account = ledger.account(name)
                assert (account.limit.epsilon, account.spent.epsilon) == (limit, Fraction(spent))
        assert len(ledger.history("icu")) == 7
        assert [entry.dataset for entry in ledger.history("my data", event="charge")] == ["my data", "my-data"]
        with pytest.raises(BudgetExhausted):
            ask(ledger, "0.25", dataset="Icu")
        assert ask(ledger, "0.125", dataset="ICU").left == Loss("0")
        assert ledger.datasets() == ["icu", "my-data", "іcu"]


def test_a_name_that_can_be_no_name_any_more_keeps_its_account(place: str) -> None:
    with opened(place, "spelt") as ledger:
        assert ledger.account("іcu").spent.epsilon == Fraction(1, 2)
        ledger.declare("іcu", by="steward", apart=["icu"])
        ledger.declare("new", by="steward", account="іcu", apart=["my data"])
        assert ask(ledger, "0.25", dataset="new").left == Loss("0.25")
        assert ask(ledger, "0.25", dataset="іcu").left == Loss("0")
        for name in ("ісu", "my  data", "患者"):
            with pytest.raises(ParameterError):
                ask(ledger, "0.1", dataset=name)


@dataclass(frozen=True)
class Content:
    """Tags of a table, equal or not."""

    rows: str
    least: tuple[str, ...] = ()
    source: str | None = None

    def share(self, least: object) -> float:
        return 0.0


def test_content_is_noticed_under_an_old_name(place: str) -> None:
    with opened(place, "spelt") as ledger:
        ledger.notice("іcu", Content("a"))
        ledger.notice("ICU", Content("b"))
        ledger.notice("my data", Content("c"))
        for other, rows in (("іcu", "a"), ("icu", "b"), ("my-data", "c")):
            with pytest.raises(SameRecords) as caught:
                ledger.notice("new", Content(rows))
            assert caught.value.other == other
        for name, rows in (("іcu", "a"), ("icu", "b"), ("MY-DATA", "c")):
            ledger.notice(name, Content(rows))


# Keys


SPELLINGS = {"my data": ["my data", "my-data", "My-Data"], "іcu": ["іcu"]}


@pytest.mark.parametrize("name", NAMES)
def test_an_old_answer_is_replayed_and_costs_nothing(place: str, name: str) -> None:
    rows = old_rows(name)
    answers = {row["charge"]: json.loads(row["body"]) for row in rows if row["event"] == "release"}
    with opened(place, name) as ledger:
        for row in rows:
            if row["event"] != "charge" or row["key"] is None:
                continue
            again = {"analyst": row["analyst"], "key": row["key"]}
            if row["id"] in answers:
                for spelling in SPELLINGS.get(row["dataset"], [row["dataset"], row["dataset"].upper()]):
                    receipt = ledger.charge(spelling, Replayed.of(row), **again)
                    assert (receipt.id, receipt.stored) == (row["id"], answers[row["id"]])
            else:
                with pytest.raises(KeyConflict, match="not recorded"):
                    ledger.charge(row["dataset"], Replayed.of(row), **again)
            with pytest.raises(KeyConflict, match="another question"):
                ledger.charge(row["dataset"], Question(Loss("1/1000")), **again)
        assert ledger.verify().entries == len(rows)
