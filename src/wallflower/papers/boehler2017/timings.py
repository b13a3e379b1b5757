"""How long each phase takes, beside what the paper took for its correction."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any, Final

import numpy as np

from wallflower.papers.boehler2017.modes import FACTS, perturb_points, presumed_outliers, threshold
from wallflower.papers.data.readings import BITS, STEP, make_stream, steps
from wallflower.papers.page import Section, Sheet
from wallflower.sensors import comparison, perturbation
from wallflower.sensors.correction import correct, flag_by_rings, ring_numbers

SEPARATION: Final = 220
EPSILON: Final = "0.1"
CENTRE: Final = (0, 0)
PAPER: Final = FACTS["time of the correction"]
CORRECTION: Final = "correction (paper)"
UNKNOWN: Final = ""


def timings(points: int, repetitions: int) -> Section:
    """The median of some repetitions, each phase by itself."""
    rows = []
    for phase, (party, act, paper) in _phases(points).items():
        seconds = _seconds(act, repetitions)
        rows.append((phase, party, 1000 * seconds, points / seconds, paper))
    return Section(
        name="timings",
        title=f"Time for {points:,} readings",
        caption=f"Median of {repetitions} on this machine, at separation {SEPARATION} and ε={EPSILON} a column; keys "
        f"of {BITS} bits. Every phase is computed in memory; sending is left out. The paper states {PAPER.value} for "
        f"its correction, on a {FACTS['machine'].value}.",
        sheet=Sheet(heading=("phase", "party", "milliseconds", "readings_a_second", "printed"), rows=tuple(rows)),
    )


def milliseconds(sheet: Sheet) -> float:
    """How many milliseconds the paper's correction takes."""
    (taken,) = (float(row[2]) for row in sheet.rows if row[0] == CORRECTION)
    return taken


def _phases(points: int) -> dict[str, tuple[str, Callable[[], Any], str]]:
    """What each party does, on inputs that were made before the clock starts."""
    stream = make_stream(SEPARATION, points, seed=0)
    placed = stream.points
    seen = perturb_points(stream, placed, "columns", EPSILON)
    distances, moved = perturbation.distances(seen, CENTRE), perturbation.d_diff(placed, seen, CENTRE)
    places, width, ring = np.flatnonzero(presumed_outliers(seen)), float(stream.width / STEP), steps(stream.ring)
    bins, scores = ring_numbers(distances, ring), perturbation.scores(placed, CENTRE, stream.unit, BITS)
    mine, yours = comparison.deal(scores, BITS)
    shares = [comparison.evaluate(party, keys, threshold(stream)) for party, keys in ((0, mine), (1, yours))]
    return {
        "clipping": ("device", lambda: stream.points, UNKNOWN),
        "perturbation, columns": ("device", lambda: perturb_points(stream, placed, "columns", EPSILON), UNKNOWN),
        "perturbation, planar": ("device", lambda: perturb_points(stream, placed, "planar", EPSILON), UNKNOWN),
        "d_diff (paper, grid)": ("device", lambda: perturbation.d_diff(placed, seen, CENTRE), UNKNOWN),
        "DBSCAN (paper)": ("analyst", lambda: presumed_outliers(seen), UNKNOWN),
        CORRECTION: ("both servers", lambda: correct(distances, moved, places, width), PAPER.value),
        "rings (grid)": ("analyst", lambda: ring_numbers(perturbation.distances(seen, CENTRE), ring), UNKNOWN),
        "flags (grid)": ("correction server", lambda: flag_by_rings(moved, bins, ring, steps(stream.bound)), UNKNOWN),
        "key generation (exact)": ("device", lambda: comparison.deal(scores, BITS), UNKNOWN),
        "evaluation (exact)": ("each server", lambda: comparison.evaluate(0, mine, threshold(stream)), UNKNOWN),
        "opening (exact)": ("owner", lambda: comparison.open_flags(*shares), UNKNOWN),
    }


def _seconds(act: Callable[[], Any], repetitions: int) -> float:
    act()  # compiled, and in memory
    taken = []
    for _ in range(repetitions):
        start = perf_counter()
        act()
        taken.append(perf_counter() - start)
    return median(taken)
