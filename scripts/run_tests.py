"""Run the tests, and what failed a second time, each test alone in a process of its own.

A test that fails twice fails the run. One that passes the second time is named as flaky, never in silence. When the
first run ended for another reason (nothing could be collected, it was interrupted, pytest failed) there is no second
one. The last line is a summary, pytest's own or ours: CI reads it.

What tests write they write into memory, where there is room: ledgers wait for the disk at every charge, and no test can
cut the power. What a killed process has written, the kernel has in either place.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

MOST = 50  # more failures than this are no accident
MEMORY, ROOM = Path("/dev/shm"), 2**31  # noqa: S108 - what is made there has a name of its own


class Outcomes:
    """What became of each test, as pytest tells it."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}
        self.is_collected = True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.of[report.nodeid] = "failed"
        elif report.skipped or report.when == "call":
            self.of.setdefault(report.nodeid, report.outcome)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.is_collected &= not report.failed

    @property
    def failed(self) -> list[str]:
        return [test for test, outcome in self.of.items() if outcome == "failed"]


def main(arguments: Sequence[str]) -> int:
    """Run the tests that the arguments choose, and return the exit code."""
    first = Outcomes()
    # neighbours in a file share what it sets up, so each worker begins with a part, and who is done takes of the rest
    workers = str((os.cpu_count() or 1) + 1)  # a third of the time tests wait for processes that they started
    code = int(pytest.main(["-n", workers, "--dist", "worksteal", "--durations=25", *arguments], plugins=[first]))
    if code != pytest.ExitCode.TESTS_FAILED or not first.is_collected:
        return code
    if not 0 < len(first.failed) <= MOST:
        say(f"{len(first.failed)} tests failed; up to {MOST} would have been run again.")
        say(summary(first, flaky=[]))
        return code
    flaky = [test for test in first.failed if passes(test)]
    say("")
    for test in first.failed:
        say(f"{'flaky' if test in flaky else 'failed twice'}: {test}")
    say(summary(first, flaky))
    return 0 if flaky == first.failed else code


@contextmanager
def scratch() -> Iterator[None]:
    """A folder for whatever the tests write, in memory if it has room, and gone afterwards."""
    has_room = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM
    if "TMPDIR" in os.environ or not has_room:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="tests-", dir=MEMORY, ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # the database server is another user
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        try:
            yield
        finally:
            del os.environ["TMPDIR"]
            tempfile.tempdir = None


def passes(test: str) -> bool:
    """Whether a test passes alone."""
    say(f"\nOnce more, alone: {test}")
    return subprocess.run([sys.executable, "-m", "pytest", test], check=False).returncode == pytest.ExitCode.OK


def summary(first: Outcomes, flaky: Sequence[str]) -> str:
    """How it ended, in the words that CI reads."""
    count = Counter(first.of.values())
    passed, failed = count["passed"] + len(flaky), count["failed"] - len(flaky)
    return f"{passed} passed, {failed} failed, {count['skipped']} skipped"


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    with scratch():
        ended = main(sys.argv[1:])
    sys.exit(ended)
