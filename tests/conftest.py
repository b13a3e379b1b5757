"""The two backends every ledger test runs on, and the limit on every test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from limits import pytest_runtest_protocol as pytest_runtest_protocol
from postgres import Server, Unavailable, running
from wallflower.ledger import Ledger
from wallflower.papers import DATA_FOLDER

# Real data sets may lie beside the repository; what needs them is skipped elsewhere.
for above in Path(__file__).resolve().parents:
    if (above / "shared" / "data").is_dir():
        os.environ.setdefault(DATA_FOLDER, str(above / "shared" / "data"))


@pytest.fixture(scope="session", autouse=True)
def _home_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The key of fingerprints is made in the data home, and tests leave nothing in anybody's."""
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    try:
        with running() as server:
            yield server
    except Unavailable as reason:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(reason))


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a ledger may be opened: a new file, a new database."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    fresh: str = request.getfixturevalue("postgres").fresh()
    return fresh


@pytest.fixture
def ledger(place: str) -> Iterator[Ledger]:
    with Ledger.open(place) as opened:
        yield opened
