"""Spark for tests: a session on this machine, where there is Java, and tasks that kill whoever runs them."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from pyspark import cloudpickle

from wallflower.data import Schema
from wallflower.data.scans import load_into
from wallflower.engines.spark import engine as engines
from wallflower.engines.spark.engine import SparkEngine, tasks
from wallflower.engines.spark.session import start
from wallflower.neighbours.tiles import certify_tiles

MASTER = "local[2,4]"  # two cores, and every task is tried four times

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import it


def require_java() -> None:
    """Skip where there is none; `make test` installs it, so CI has it."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("Spark needs Java 17, and there is none")
    os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")  # for a short life


@contextmanager
def spark(master: str = MASTER) -> Iterator[tuple[SparkEngine, str]]:
    """An engine with a session of its own, and the folder that it writes to."""
    require_java()
    own = start(master)
    try:
        yield SparkEngine(own.session), own.folder
    finally:
        own.close()
        assert not os.path.exists(own.folder)


def itself() -> int:
    """The process that runs a task."""
    return os.getpid()


def executor() -> int:
    """The Java of that process: it has one that makes such processes in between."""
    with open(f"/proc/{os.getppid()}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


def mortal_tasks(folder: Path, whom: Callable[[], int]) -> SimpleNamespace:
    """The tasks of Spark, each of which kills somebody the first time that it is run, and leaves a file."""
    names = ("Fitter", "Sampler", "Dealer", "Sorter", "Boxer", "Visitor")
    return SimpleNamespace(**vars(tasks) | {name: _mortal(name, str(folder), whom) for name in names})


def _mortal(name: str, folder: str, whom: Callable[[], int]) -> Callable[..., Callable[[object], object]]:
    def make(*given: object) -> Callable[[object], object]:
        made, mark = getattr(tasks, name)(*given), f"{folder}/{name} {getattr(given[0], '__name__', '')}".rstrip()

        def run(records: object) -> object:
            try:
                os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
                os.kill(whom(), signal.SIGKILL)
                signal.pause()  # whoever is killed takes this process along
            except FileExistsError:
                pass
            return made(records)

        return run

    return make


def assert_that_kills_change_nothing(engine, folder, tmp_path, monkeypatch, whom) -> None:
    """A table is read, and a contested one counted; every pass of both kills somebody, and the answers are the same."""
    values = np.random.default_rng(2).integers(0, 5, (40, 2)).astype(float)
    found, read = [], []
    for place in ("calm", "killed"):
        (tmp_path / place).mkdir()
        if place == "killed":
            monkeypatch.setattr(engines, "tasks", mortal_tasks(tmp_path / place, whom))
        table = load_into(folder, engine, schema=Schema.of(["x", "y"]))
        read.append(np.concatenate([cells[0] for cells in table.sheet.chunks([0])]).tolist())
        sheet = engine.keep("x", [list(values[:15].T), list(values[15:].T)], 2)
        with sheet.tile([0, 1], np.column_stack, size=20) as tiles:
            found.append(certify_tiles(tiles, 1.0, 3, 2.0, 1 / 128))
    assert found[0] == found[1]
    assert read[0] == read[1]
    visits = [f"Visitor {task}" for task in ("find_clients", "find_strays", "find_suppliers", "serve_home")]
    assert sorted(os.listdir(tmp_path / "killed")) == ["Boxer", "Dealer", "Fitter", "Sampler", "Sorter", *visits]
