"""The one table, which can be added to and not changed."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_NUMBER: Final = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_WORDS: Final = ("analyst", "account", "kind", "amount", "delta", "neighbours", "label", "body", "key")

# REPLACE deletes the row it replaces without firing the trigger on DELETE, hence the one on INSERT.
_FORBIDDEN: Final = {
    "update": "UPDATE ON entries",
    "delete": "DELETE ON entries",
    "replace": "INSERT ON entries WHEN EXISTS (SELECT 1 FROM entries WHERE id = NEW.id OR charge = NEW.charge "
    "OR (dataset = NEW.dataset AND key = NEW.key))",
}


def upgrade() -> None:
    op.create_table(
        "entries",
        sa.Column("id", _NUMBER, primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("time", "event", "dataset")),
        *(sa.Column(name, sa.Text) for name in _WORDS),
        sa.Column("charge", _NUMBER, sa.ForeignKey("entries.id"), unique=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("previous", "hash")),
        sa.CheckConstraint("event IN ('grant', 'allocate', 'charge', 'release')"),
        sa.UniqueConstraint("dataset", "key"),
    )
    _GUARD[op.get_bind().dialect.name]()


def _guard_sqlite() -> None:
    for name, change in _FORBIDDEN.items():
        refusal = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        op.execute(f"CREATE TRIGGER entries_no_{name} BEFORE {change} {refusal}")


def _guard_postgresql() -> None:
    refusal = "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$"
    op.execute(f"CREATE FUNCTION entries_append_only() RETURNS trigger LANGUAGE plpgsql AS {refusal}")
    op.execute(
        "CREATE TRIGGER entries_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON entries "
        "FOR EACH STATEMENT EXECUTE FUNCTION entries_append_only()"
    )


_GUARD: Final = {"sqlite": _guard_sqlite, "postgresql": _guard_postgresql}
