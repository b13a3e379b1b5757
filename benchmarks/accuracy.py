"""The accuracy table of the specification again: `python accuracy.py 2000` prints it as JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from wallflower.papers.okada2015.accuracy import CASES, QUICK, accuracy_table


def main(repetitions: int, quick: bool) -> None:
    rows = accuracy_table(repetitions, cases=QUICK[:2] if quick else CASES)
    json.dump([asdict(row) | {"errors": dict(row.errors)} for row in rows], sys.stdout)


if __name__ == "__main__":
    main(int(sys.argv[1]), quick="--quick" in sys.argv)
