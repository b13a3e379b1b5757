"""Ledgers as the version before wrote them, with an account for each kind of loss and unit: fixtures, and made ones.

The files in fixtures/ hold the rows of real ledgers, one JSON object a line, as that version exported them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import alembic.command
import alembic.config
import sqlalchemy as sa
from ledgers import engine_of

from wallflower.ledger.chain import GENESIS, digest
from wallflower.privacy import Loss

FOLDER = Path(__file__).parent / "fixtures"
NAMES = sorted(path.stem for path in FOLDER.glob("*.jsonl"))
COLUMNS = (
    *("id", "time", "event", "dataset", "analyst", "account", "kind", "amount", "delta", "neighbours", "label"),
    *("body", "charge", "key", "previous", "hash"),
)


def old_rows(name: str) -> list[dict[str, Any]]:
    """The rows of a fixture."""
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def write_old(place: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """A database at the revision before, with these rows in it."""
    table = sa.table("entries", *(sa.column(name) for name in COLUMNS))
    with engine_of(place).begin() as db:
        config = alembic.config.Config(attributes={"connection": db})
        config.set_main_option("script_location", "wallflower.ledger.store:migrations")
        alembic.command.upgrade(config, "0002")
        for row in rows:
            db.execute(sa.insert(table).values({name: row[name] for name in COLUMNS}))


def sealed(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows with their numbers and hashes."""
    made: list[dict[str, Any]] = []
    for number, row in enumerate(rows, start=1):
        whole = dict.fromkeys(COLUMNS) | {"id": number, "time": "2026-01-01T00:00:00+00:00", **row}
        whole["previous"] = made[-1]["hash"] if made else GENESIS
        made.append(whole | {"hash": digest(whole)})
    return made


def old_row(event: str, dataset: str, loss: Loss, *, analyst: str | None = None, **more: Any) -> dict[str, Any]:
    """A grant, an allocation or a charge."""
    losses = {name: str(value) for name, value in loss.to_json().items()}
    return {"event": event, "dataset": dataset, "account": loss.account, "analyst": analyst, **losses, **more}
