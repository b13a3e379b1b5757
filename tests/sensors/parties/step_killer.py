"""Run the command line, and `kill -9` this process at one step.

`step_killer.py WindowStore.advance:after:2 sensors analyst ...`

A step is a method of a class of the service, before or after its n-th call.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys

from wallflower.cli import main
from wallflower.sensors.parties.client import Link
from wallflower.sensors.parties.outbox import Outbox
from wallflower.sensors.parties.store import WindowStore

CLASSES = {"WindowStore": WindowStore, "Link": Link, "Outbox": Outbox}


def arm(step: str) -> None:
    name, when, count = step.split(":")
    owner, method = name.split(".")
    real = getattr(CLASSES[owner], method)
    calls = itertools.count(1)

    def wrapped(*given, **more):
        last = next(calls) == int(count)
        if when == "before" and last:
            os.kill(os.getpid(), signal.SIGKILL)
        value = real(*given, **more)
        if when == "after" and last:
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    setattr(CLASSES[owner], method, wrapped)


if __name__ == "__main__":
    arm(sys.argv[1])
    sys.exit(main(sys.argv[2:]))
