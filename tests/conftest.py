"""The two backends every ledger test runs on, attacks that are run once, and the limit on every test."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from limits import pytest_runtest_protocol as pytest_runtest_protocol
from postgres import Server, Unavailable, running
from wallflower.ledger import Ledger
from wallflower.machine.lazy import load
from wallflower.papers import DATA_FOLDER

if TYPE_CHECKING:
    from wallflower.audit import Finding

# On a busy machine every example is slow: that says nothing about a test. What runs for ever has its limit.
settings.register_profile("ours", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ours")

# Real data sets may lie beside the repository; what needs them is skipped elsewhere.
for above in Path(__file__).resolve().parents:
    if (above / "shared" / "data").is_dir():
        os.environ.setdefault(DATA_FOLDER, str(above / "shared" / "data"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first, whole, so that no worker is left with a long one when all else is done."""
    slow = {item.path for item in items if item.get_closest_marker("slow") or item.get_closest_marker("heavy")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session", autouse=True)
def _home_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The key of fingerprints is made in the data home, and tests leave nothing in anybody's."""
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
def quick_findings(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Finding]]:
    """What the quick attacks on a question find, run once for all tests and all workers that ask."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def found(kind: str) -> list[Finding]:
        with (shared / f"findings-{kind}").open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # who comes second waits
            file.seek(0)
            if not file.read(1):
                pickle.dump(list(load("wallflower.evidence").audits(kind, quick=True)), file)
                file.flush()
            file.seek(0)
            findings: list[Finding] = pickle.load(file)  # noqa: S301 - written above
            return findings

    return found


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    try:
        with running() as server:
            yield server
    except Unavailable as reason:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(reason))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
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
