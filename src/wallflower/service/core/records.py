"""Tables of the service, in the database of the ledger: tokens, second factors, people, data sets, jobs, watches,
requests for budget, proposals, public releases, acts of stewards and questions of agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from wallflower.ledger.store import Store
from wallflower.service.core.clock import now

_META: Final = sa.MetaData()


def _table(name: str, *columns: str, needed: tuple[str, ...]) -> sa.Table:
    rest = (sa.Column(column, sa.Text, nullable=column not in needed) for column in columns)
    return sa.Table(name, _META, sa.Column("id", sa.Text, primary_key=True), *rest)


TOKENS: Final = _table(
    "service_tokens", "digest", "name", "scope", "created", "expires", "revoked", needed=("digest", "name", "scope")
)
DATASETS: Final = _table("service_datasets", "body", "by", "created", needed=("body", "by"))
JOBS: Final = _table(
    "service_jobs", "analyst", "dataset", "kind", "state", "worker", "outcome", "created", needed=("analyst", "state")
)
FACTORS: Final = _table(
    "service_factors", "nonce", "sealed", "used", "wrong", "tried", "created", needed=("nonce", "sealed")
)
ACTS: Final = _table("service_acts", "act", "by", "token", "address", "about", "created", needed=("act", "by"))
WATCHES: Final = _table(
    "service_watches", "analyst", "dataset", "kind", "query", "created", needed=("analyst", "dataset", "query")
)
REQUESTS: Final = _table(
    "service_requests",
    *("analyst", "dataset", "epsilon", "question", "reason", "state", "word", "by", "decided", "entry", "created"),
    needed=("analyst", "dataset", "reason", "state"),
)
ACCESS: Final = _table("service_access", "dataset", "analyst", "by", "created", needed=("dataset", "analyst", "by"))
SECRETS: Final = _table("service_secrets", "value", "created", needed=("value",))
PEOPLE: Final = _table(
    "service_people",
    *("issuer", "subject", "role", "groups", "signed_in", "tokens_until", "disabled", "created"),
    needed=("issuer", "subject", "role", "groups", "signed_in", "tokens_until"),
)
RIGHTS: Final = _table("service_token_rights", "person", "groups", "created", needed=())
PROPOSALS: Final = _table(
    "service_proposals",
    *("dataset", "body", "by", "token", "request", "state", "decided", "decided_by", "entry", "created"),
    needed=("dataset", "body", "by", "state"),
)
AGENT_QUESTIONS: Final = _table(
    "service_agent_questions",
    *("analyst", "token", "agent", "account", "dataset", "kind", "body", "epsilon", "state"),
    *("decided_by", "decided", "created"),
    needed=("analyst", "agent", "account", "dataset", "kind", "body", "state"),
)
PUBLICATIONS: Final = _table(
    "service_publications", "dataset", "by", "withdrawn", "reason", "created", needed=("dataset", "by")
)
USES: Final = _table("service_token_uses", "by", "used", "created", needed=())


class Records:
    """Rows by their id. A row is durable when `add` or `change` returns."""

    def __init__(self, where: str | Path | None) -> None:
        self._store = Store(where)
        with self._store.write() as db:
            _META.create_all(db)

    def add(self, table: sa.Table, row: Mapping[str, Any]) -> bool:
        """Add a row, unless its id is there already."""
        with self._store.write() as db:
            if db.execute(sa.select(table.c.id).where(table.c.id == row["id"])).first() is not None:
                return False
            db.execute(sa.insert(table).values(created=now(), **row))
            return True

    def add_if(
        self, table: sa.Table, row: Mapping[str, Any], fits: Callable[[Sequence[Mapping[str, Any]]], bool]
    ) -> bool:
        """Add a row if all rows of the table allow it, and its id is new; reading and writing are one transaction."""
        with self._store.write() as db:
            rows = [dict(one) for one in db.execute(sa.select(table)).mappings()]
            if any(one["id"] == row["id"] for one in rows) or not fits(rows):
                return False
            db.execute(sa.insert(table).values(created=now(), **row))
            return True

    def change(self, table: sa.Table, key: str, **columns: Any) -> bool:
        """Change columns of a row, if it is there."""
        with self._store.write() as db:
            return bool(db.execute(sa.update(table).where(table.c.id == key).values(**columns)).rowcount)

    def swap(self, table: sa.Table, key: str, before: Mapping[str, Any], **columns: Any) -> bool:
        """Compare and swap: change columns of a row if other columns still have the values of `before`."""
        unchanged = (table.c[name] == value for name, value in before.items())
        with self._store.write() as db:
            query = sa.update(table).where(table.c.id == key, *unchanged).values(**columns)
            return bool(db.execute(query).rowcount)

    def remove(self, table: sa.Table, key: str) -> bool:
        """Remove a row, if it is there."""
        with self._store.write() as db:
            return bool(db.execute(sa.delete(table).where(table.c.id == key)).rowcount)

    def find(self, table: sa.Table, key: str) -> dict[str, Any] | None:
        """Return the row with this id."""
        if not key.isprintable():
            return None  # no id has control characters, and PostgreSQL refuses some of them
        with self._store.read() as db:
            row = db.execute(sa.select(table).where(table.c.id == key)).mappings().one_or_none()
        return None if row is None else dict(row)

    def all(self, table: sa.Table, **wanted: Any) -> list[dict[str, Any]]:
        """Return rows with these values, oldest first."""
        conditions = (table.c[name] == value for name, value in wanted.items())
        with self._store.read() as db:
            rows = db.execute(sa.select(table).where(*conditions).order_by(table.c.created, table.c.id)).mappings()
            return [dict(row) for row in rows]

    def page(self, table: sa.Table, count: int, *, before: str | None = None, **wanted: str) -> list[dict[str, Any]]:
        """Return up to `count` rows with these values, latest id first, with an id below `before`."""
        conditions = [table.c[name] == value for name, value in wanted.items()]
        if before is not None:
            conditions.append(table.c.id < before)
        query = sa.select(table).where(*conditions).order_by(table.c.id.desc()).limit(count)
        with self._store.read() as db:
            return [dict(row) for row in db.execute(query).mappings()]

    def distinct(self, table: sa.Table, column: str) -> list[str]:
        """Return the values of a column, in order."""
        query = sa.select(table.c[column]).distinct().order_by(table.c[column])
        with self._store.read() as db:
            return [value for value in db.execute(query).scalars() if value is not None]

    def observe_errors(self, observer: Callable[[], None]) -> None:
        """Call `observer` whenever the database refuses a transaction or does not answer."""
        self._store.on_error = observer

    def close(self) -> None:
        self._store.close()
