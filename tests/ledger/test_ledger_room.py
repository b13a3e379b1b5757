"""A SQLite ledger that may not grow: what does not fit is refused and leaves nothing, and later it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from ledgers import ask

from wallflower.errors import LedgerUnreachable
from wallflower.ledger import Ledger
from wallflower.privacy import Loss


def ask_or_fail(ledger: Ledger) -> bool:
    try:
        ask(ledger, "1/100")
    except LedgerUnreachable:
        return False
    return True


def test_a_ledger_without_room_refuses_and_goes_on_when_there_is_some(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.grant("icu", Loss("9"), by="steward")
        paid = ask(ledger, "1/100", idempotency_key="first")
        most = [0]

        def limit(connection: Any, _: Any) -> None:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {pages + most[0]}")

        sa.event.listen(ledger._store._engine, "connect", limit)
        with pytest.raises(LedgerUnreachable, match="full"):
            ledger.record(paid, {"value": "x" * 100_000})
        before = list(ledger.export())
        assert [row["event"] for row in before] == ["limit", "charge"]
        while ask_or_fail(ledger):
            pass
        ledger.verify()
        spent = ledger.spent("icu").amount
        assert spent == sum(entry.loss.amount for entry in ledger.history("icu", event="charge") if entry.loss)
        most[0] = 1000
        ledger.record(paid, {"value": "x" * 100_000})
        ledger.record(paid, {"value": "x" * 100_000})
        assert len(ledger.history("icu", event="release")) == 1
        ledger.verify()
