"""Processes that begin with the library loaded: forked from one that has imported it, so that a test which needs dozens
of them to race or to be killed pays for what they do, and not for what they import. They share nothing else: the one
they are forked from has opened no ledger and drawn nothing."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from multiprocessing.reduction import DupFd
from types import TracebackType
from typing import Any, Final, Self

FORKS: Final = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        *("alembic.command", "psycopg", "pytest", "sqlalchemy.dialects.sqlite", "sqlalchemy.dialects.postgresql"),
        *("wallflower", "wallflower.queries.watch.detectors", "wallflower.watching", "wallflower.cli"),
        *("numba", "opendp.prelude", "pyarrow.csv", "pydantic", "scipy.optimize", "scipy.stats"),
    ]
)
COMMAND: Final = """
import json, os, sys
from wallflower.cli import main
folder, environment = json.loads(sys.argv.pop(1))
os.chdir(folder)
os.environ.clear()
os.environ.update(environment)
sys.argv[0] = "wallflower"
sys.exit(main())
"""


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What `wallflower` says to these arguments, in the folder and the environment of the test."""
    with Fork(COMMAND, json.dumps([os.getcwd(), dict(os.environ)]), *arguments) as running:
        code, printed, complaints = running.finish()
    return subprocess.CompletedProcess(["wallflower", *arguments], code, printed, complaints)


class Fork:
    """A program in a process of its own, as `python -c` would run it; what it prints can be read while it runs."""

    def __init__(self, program: str, *arguments: str) -> None:
        (read, out), (self._complaints, err) = os.pipe(), os.pipe()
        self._process = FORKS.Process(target=_run, args=(program, arguments, DupFd(out), DupFd(err)))
        self._process.start()
        for end in (out, err):
            os.close(end)
        self.stdout = open(read, encoding="utf-8")  # noqa: SIM115 - closed when the process is left

    def kill(self) -> None:
        self._process.kill()

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def wait(self) -> int:
        """The exit code; minus the number of the signal that ended it."""
        self._process.join()
        code = self._process.exitcode
        assert code is not None
        return code

    def finish(self) -> tuple[int, str, str]:
        """The exit code, what was printed since and what was complained of, once it has ended."""
        printed, complaints = self.stdout.read(), b""
        while more := os.read(self._complaints, 2**16):
            complaints += more
        return self.wait(), printed, complaints.decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.wait()
        self.stdout.close()
        os.close(self._complaints)


def _run(program: str, arguments: tuple[str, ...], out: Any, err: Any) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for given, place in ((out, 1), (err, 2)):
        os.dup2(given.detach(), place)
    sys.argv = ["-c", *arguments]
    exec(compile(program, "<program>", "exec", dont_inherit=True), {"__name__": "__main__"})  # noqa: S102 - ours
