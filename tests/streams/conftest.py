"""A ledger for every test of a watch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from wallflower.ledger import Ledger


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.db") as opened:
        yield opened
