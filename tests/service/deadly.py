"""A service whose workers are killed where a test wants it: the first who gets to the point that a file names."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wallflower.data import Points
from wallflower.ledger import Ledger
from wallflower.machine.listener import Listener
from wallflower.noise import system_noise
from wallflower.privacy import Loss
from wallflower.queries.count import Count
from wallflower.service import server
from wallflower.service.api.routes import analyst
from wallflower.service.app import application
from wallflower.service.core.facade import Core
from wallflower.service.settings import Settings

VARIABLE = "WALLFLOWER_TEST_POINT"  # the file


def reach(point: str) -> None:
    armed = Path(os.environ[VARIABLE])
    if armed.exists() and armed.read_text() == point:
        armed.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def around(owner: Any, name: str, before: str, after: str) -> None:
    real: Callable[..., Any] = getattr(owner, name)

    def call_between(*given: Any, **more: Any) -> Any:
        reach(before)
        value = real(*given, **more)
        reach(after)
        return value

    setattr(owner, name, call_between)


def lay_traps() -> None:
    around(Core, "admit", "before it is admitted", "after it is admitted")
    around(Ledger, "charge", "before the charge", "after the charge")
    around(Count, "answer", "before the look", "after the look")
    around(Ledger, "record", "before the record", "after the record")
    around(analyst, "_answer_response", "before it is told", "")


def work(stated: Settings, listening: socket.socket) -> None:
    """What one worker does until it dies."""
    made = application(stated)
    made.state.core.load()
    Listener(server._config(made, stated)).run(sockets=[listening])


def main(stated: Settings) -> None:
    """One worker after another, forked from a process that has imported all: a new one is there at once."""
    points = Points.from_array([[0.0], [1.0], [2.0], [9.0]], name="first")
    Count(neighbours=1, radius=1.0, loss=Loss("1")).answer(points, system_noise())  # whatever it needs is loaded
    lay_traps()
    with server._bind(stated) as listening:
        sys.stdout.write(f"{server._url(listening, stated)}\n")
        sys.stdout.flush()
        while True:
            worker = os.fork()
            if not worker:
                work(stated, listening)
                os._exit(0)
            if not os.WIFSIGNALED(os.waitpid(worker, 0)[1]):
                return


if __name__ == "__main__":
    main(Settings.from_json(sys.argv[1]))
