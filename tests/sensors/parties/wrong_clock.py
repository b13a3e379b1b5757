"""Run the command line with a wrong clock: `wrong_clock.py FILE sensors analyst ...`; the file says how wrong.

The file is read at every look at the clock, so that a test can set the clock of a running process.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from wallflower.cli import main

right = time.time


def skew(file: Path) -> None:
    time.time = lambda: right() + float(file.read_text() or 0)


if __name__ == "__main__":
    skew(Path(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
