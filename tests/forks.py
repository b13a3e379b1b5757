"""Processes that begin with the library loaded: forked from one that has imported it, so that a test which needs dozens
of them to race or to be killed pays for what they do, and not for what they import. They share nothing else: the one
they are forked from has opened no ledger and drawn nothing."""

from __future__ import annotations

import multiprocessing
import os
import resource
import runpy
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.reduction import DupFd
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from wallflower.cli import main

FORKS: Final = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        *("psycopg", "pytest", "sqlalchemy.dialects.sqlite", "sqlalchemy.dialects.postgresql"),
        *("wallflower", "wallflower.queries.watch.detectors", "wallflower.streams", "wallflower.cli.program"),
        *("wallflower.sensors.parties.device", "wallflower.sensors.parties.servers", "wallflower.service.server"),
        *("opendp.domains", "opendp.measurements", "opendp.metrics"),  # the prelude would load scikit-learn and pandas
        *("numba", "pyarrow.csv", "pydantic", "scipy.optimize", "scipy.special"),
    ]
)
COMMAND: Final = """
import sys
from wallflower.cli import main
sys.argv[0] = "wallflower"
sys.exit(main())
"""


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What `wallflower` says to these arguments."""
    with Fork(COMMAND, *arguments) as running:
        code, printed, complaints = running.finish()
    return subprocess.CompletedProcess(["wallflower", *arguments], code, printed, complaints)


@dataclass(frozen=True)
class Place:
    """Where a test is: what it forks is there too, wherever the first one was."""

    folder: str
    environment: dict[str, str]

    @classmethod
    def here(cls) -> Place:
        return cls(os.getcwd(), dict(os.environ))

    def enter(self) -> None:
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)


class Fork:
    """A program in a process of its own, as `python -c` would run it, or `python file` if it is a path; what it prints
    can be read while it runs, and what it reads can be typed if it is to `listen`."""

    def __init__(self, program: str | Path, *arguments: str, listen: bool = False, log: str | None = None) -> None:
        """With `log` it leads a group of its own, and what it complains of is added to that file, as long as it is."""
        (typed, self._typing), (read, out), (self._complaints, err) = os.pipe(), os.pipe(), os.pipe()
        ends = [DupFd(end) for end in (typed, out, err)]
        self._process = FORKS.Process(target=_run, args=(Place.here(), program, arguments, ends, log))
        self._process.start()
        for end in (typed, out, err):
            os.close(end)
        self.stdin = open(self._typing, "w", encoding="utf-8")  # noqa: SIM115 - closed when the process is left
        self.stdout = open(read, encoding="utf-8")  # noqa: SIM115 - the same
        if not listen:
            self.stdin.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def terminate(self) -> None:
        self._process.terminate()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def wait(self) -> int:
        """The exit code; minus the number of the signal that ended it."""
        self._process.join()
        code = self._process.exitcode
        assert code is not None
        return code

    def finish(self, typed: str = "") -> tuple[int, str, str]:
        """The exit code, what was printed since and what was complained of, once it has ended. It may not print more
        than a pipe holds before it has read what is typed."""
        with suppress(BrokenPipeError):
            if typed:
                self.stdin.write(typed)
            self.stdin.close()
        printed, complaints = self.stdout.read(), b""
        while more := os.read(self._complaints, 2**16):
            complaints += more
        return self.wait(), printed, complaints.decode()

    def close(self) -> None:
        self.wait()
        with suppress(BrokenPipeError):
            self.stdin.close()
        self.stdout.close()
        os.close(self._complaints)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


class Script:
    """A script in a process of its own, as `python script arguments` would run it; None is the command line."""

    def __init__(self, script: Path | None, *arguments: str, log: Path, largest: int | None = None) -> None:
        """What it complains of is added to `log`; with `largest` no file of it grows beyond so many bytes."""
        asked = (Place.here(), script, arguments, str(log), largest)
        self._process = FORKS.Process(target=_run_script, args=asked)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int:
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def _run_script(place: Place, script: Path | None, arguments: tuple[str, ...], log: str, largest: int | None) -> None:
    place.enter()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in ((1, os.devnull), (2, log)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT), number)
    if largest is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))
    sys.argv = [str(script), *arguments]
    if script is None:
        sys.exit(main())
    runpy.run_path(str(script), run_name="__main__")


def _run(place: Place, program: str | Path, arguments: tuple[str, ...], ends: list[Any], log: str | None) -> None:
    place.enter()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, end in enumerate(ends):
        os.dup2(end.detach(), number)
    if log is not None:
        os.setsid()
        os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT), 2)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - multiprocessing gave it none
    if isinstance(program, Path):
        sys.argv = [str(program), *arguments]
        runpy.run_path(str(program), run_name="__main__")
        return
    sys.argv = ["-c", *arguments]
    exec(compile(program, "<program>", "exec", dont_inherit=True), {"__name__": "__main__"})  # noqa: S102 - ours
