"""An index that holds all that a sum of losses needs, so that the table itself is not read."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_index("entries_spent", "entries", ["dataset", "account", "event", "analyst", "amount", "delta", "id"])
