"""One account for each data set: what was booked beside what was stated, and a table of fingerprints to erase from.

No row changes, and a hash leaves out what is empty, so the chain has the same head before and after.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_NUMBER: Final = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_WORDS: Final = ("analyst", "account", "kind", "amount", "delta", "neighbours", "label", "body", "key")
_NEW: Final = ("unit", "factor", "epsilon", "booked_delta", "rho", "names", "claim")
_OLD: Final = ", ".join(("id", "time", "event", "dataset", *_WORDS, "charge", "previous", "hash"))
_EVENTS: Final = "event IN ('grant', 'allocate', 'charge', 'release', 'account', 'limit', 'share', 'allowance')"
# A program that had the ledger open while it was brought over would go on by its own rules.
_OUTDATED: Final = "NEW.event IN ('grant', 'allocate') OR (NEW.event = 'charge' AND NEW.unit IS NULL)"
_REFUSAL: Final = "this ledger has one account for each data set now, upgrade wallflower"
_BOOKED: Final = ["dataset", "event", "unit", "analyst", "epsilon", "booked_delta", "rho", "id"]


def upgrade() -> None:
    _WIDEN[op.get_bind().dialect.name]()
    op.create_index("entries_booked", "entries", _BOOKED)
    op.execute("CREATE INDEX entries_names ON entries (dataset, names) WHERE names IS NOT NULL")
    op.create_index("entries_event", "entries", ["event", "dataset", "id"])
    op.create_table(
        "fingerprints",
        *(sa.Column(name, sa.Text, primary_key=True) for name in ("dataset", "kind", "tag")),
        sa.CheckConstraint("kind IN ('rows', 'least', 'source')"),
    )
    op.create_index("fingerprints_tag", "fingerprints", ["tag"])


def _widen_sqlite() -> None:
    """SQLite cannot alter a check: the table is made anew, its rows copied as they are, its guards put back."""
    kept = "SELECT name, sql FROM sqlite_master WHERE tbl_name = 'entries' AND sql IS NOT NULL AND type <> 'table'"
    guards: dict[str, str] = {row.name: row.sql for row in op.get_bind().exec_driver_sql(kept)}
    for name, text in guards.items():
        op.execute(f"DROP {text.split()[1]} {name}")
    op.rename_table("entries", "entries_before")
    op.create_table(
        "entries",
        sa.Column("id", _NUMBER, primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("time", "event", "dataset")),
        *(sa.Column(name, sa.Text) for name in (*_WORDS, *_NEW)),
        sa.Column("charge", _NUMBER, sa.ForeignKey("entries.id"), unique=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("previous", "hash")),
        sa.CheckConstraint(_EVENTS),
        sa.UniqueConstraint("dataset", "key"),
    )
    op.execute(f"INSERT INTO entries ({_OLD}) SELECT {_OLD} FROM entries_before ORDER BY id")  # noqa: S608 - constants
    op.drop_table("entries_before")
    for text in guards.values():
        op.execute(text)
    refusal = f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
    op.execute(f"CREATE TRIGGER entries_no_outdated BEFORE INSERT ON entries WHEN {_OUTDATED} {refusal}")


def _widen_postgresql() -> None:
    for name in _NEW:
        op.add_column("entries", sa.Column(name, sa.Text))
    op.drop_constraint("entries_event_check", "entries")
    op.create_check_constraint("entries_event_check", "entries", sa.text(_EVENTS))
    refusal = f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$"
    op.execute(f"CREATE FUNCTION entries_outdated() RETURNS trigger LANGUAGE plpgsql AS {refusal}")
    op.execute(
        "CREATE TRIGGER entries_no_outdated BEFORE INSERT ON entries "
        f"FOR EACH ROW WHEN ({_OUTDATED}) EXECUTE FUNCTION entries_outdated()"
    )


_WIDEN: Final = {"sqlite": _widen_sqlite, "postgresql": _widen_postgresql}
