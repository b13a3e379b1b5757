"""Spark for tests: a session on this machine, where there is Java."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from wallflower.engines.spark import SparkEngine
from wallflower.engines.spark.session import start

MASTER = "local[2,4]"  # two cores, and every task is tried four times


def require_java() -> None:
    """Skip where there is none; `make test` installs it, so CI has it."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("Spark needs Java 17, and there is none")


@contextmanager
def spark() -> Iterator[tuple[SparkEngine, str]]:
    """An engine with a session of its own, and the folder that it writes to."""
    require_java()
    own = start(MASTER)
    try:
        yield SparkEngine(own.session), own.folder
    finally:
        own.close()
        assert not os.path.exists(own.folder)
