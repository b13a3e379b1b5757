"""How good spreads, radii and profiles are on real tables: the tables of docs/scale.md, radius.md and profile.md.

`python setup.py available` prints the names of the tables that are here; `python setup.py thyroid` one JSON object.
Laws are exact where they can be: the mean error of a radius is added up from the law of the choice, that of a spread
and of a curve is a mean over draws.
"""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.data import Points
from wallflower.errors import SourceError
from wallflower.neighbours.radii import DEFAULT_RADII, Tally, middle_radius, outlier_curve, radius_errors, target_steps
from wallflower.neighbours.spreads import bins_of, histogram, middle_of_bin, pair_up, quantile_errors
from wallflower.noise import system_noise
from wallflower.papers.data.tables import find_file
from wallflower.privacy import Loss
from wallflower.queries.profile.profile import RADII, Profile
from wallflower.queries.scale import Scale
from wallflower.queries.scale.audit import spreads_of

Floats = NDArray[np.float64]

FILES: Final = {
    "Pima": "29_Pima",
    "cardio": "6_cardio",
    "thyroid": "38_thyroid",
    "pendigits": "28_pendigits",
    "satimage-2": "31_satimage-2",
    "mammography": "23_mammography",
}
NEIGHBOURS, SLACK = 5, 3
EPSILONS: Final = ("0.1", "0.3", "1", "3")
SHARES: Final = ("1/100", "1/20")
DRAWS, SPREADS = 200, 10
HALF, UPPER = Fraction(1, 2), Fraction(3, 4)
SEED: Final = 0  # of the pairs that columns are scaled by, where the scaling is given


def available() -> list[str]:
    found = []
    for name, file in FILES.items():
        try:
            find_file(f"adbench/{file}.npz")
        except SourceError:
            continue
        found.append(name)
    return found


def table(name: str) -> Floats:
    with np.load(find_file(f"adbench/{FILES[name]}.npz")) as stored:
        values = stored["X"].astype(np.float64)
    return values[:, values.std(axis=0) > 0]


class Median(Scale):
    """The same question, by the median whatever the number of records, as the table compares it."""

    def share_for(self, n: int, dimension: int) -> Fraction:
        return HALF


def spreads(values: Floats, epsilon: str) -> tuple[float, float]:
    """The median of |log2(spread/true)|, and the share of columns that are wrong by more than a factor of 2."""
    points, query, off = Points.from_array(values), Median(loss=Loss(epsilon), verify=False), []
    groups = query.groups(points.columns)
    for _ in range(SPREADS):
        first, second = pairs = pair_up(points.n, system_noise())
        chosen = query.choose(query.errors(points, groups, pairs), points, groups, system_noise())
        for column, spread in enumerate(chosen.values()):
            errors = quantile_errors(histogram(values[:, [column]], first, second), HALF, 1)
            right = np.flatnonzero(errors == errors.min()) + 1
            place = int(bins_of(spread * 0.9538725524))
            nearest = right[np.argmin(np.abs(right - place))]
            off.append(abs(np.log2(middle_of_bin(place) / middle_of_bin(int(nearest)))))
    return float(np.median(off)), float(np.mean(np.array(off) > 1))


def radius_error(curve: Any, told: Any, n: int, tally: Tally, share: str, epsilon: str) -> tuple[float, float]:
    """Mean and deviation of |share of outliers at the radius - share asked for|, in percentage points, by the law of
    the choice; `told` has the outliers at what is released where each radius of the grid is chosen."""
    errors = radius_errors(curve, target_steps(Fraction(share), n, tally))
    weights = np.exp(-(errors - errors.min()) * float(Fraction(epsilon)) / (2 * tally.sensitivity))
    weights /= weights.sum()
    missed = 100 * np.abs(told / tally.unit / n - float(Fraction(share)))
    mean = float(missed @ weights)
    return mean, float(np.sqrt((missed - mean) ** 2 @ weights))


def radius_errors_of(values: Floats, tally: Tally) -> dict[str, Any]:
    """What a radius misses by: as it is released, half a step further, and at the grid itself."""
    further = [middle_radius(DEFAULT_RADII, place) for place in range(len(DEFAULT_RADII))]
    fine, between = outlier_curve(values, DEFAULT_RADII, tally), outlier_curve(values, further, tally)
    found = {s: [radius_error(fine, between, len(values), tally, s, e) for e in EPSILONS] for s in SHARES}
    edge = {s: [radius_error(fine, fine, len(values), tally, s, e)[0] for e in EPSILONS] for s in SHARES}
    return {
        "radius": {share: [mean for mean, _ in row] for share, row in found.items()},
        "radius deviation": {share: [deviation for _, deviation in row] for share, row in found.items()},
        "radius at the grid": edge,
    }


def profile_error(curve: Any, n: int, tally: Tally, epsilon: str, *, graded: bool) -> float:
    """The mean over radii and draws of the error of a released curve, in percentage points."""
    query = Profile(neighbours=NEIGHBOURS, loss=Loss(epsilon), slack=None if graded else SLACK, graded=graded)
    made, off = query.noise(n, tally.columns or 1), []
    for _ in range(DRAWS):
        noisy = [int(step) + more for step, more in zip(curve, made.draw(system_noise()), strict=True)]
        off.append(np.abs(np.array(query.finish(noisy, n, tally)["outliers"]) - curve / tally.unit).mean())
    return float(100 * np.mean(off) / n)


def measure(name: str) -> dict[str, Any]:
    raw = table(name)
    first, second = np.random.default_rng(SEED).permutation(len(raw))[: len(raw) // 2 * 2].reshape(2, -1)
    spread = spreads_of(raw, (first, second), UPPER, [[column] for column in range(raw.shape[1])])
    values, n = raw / np.array(spread), len(raw)
    told: dict[str, Any] = {"n": n, "columns": raw.shape[1]}
    told["scale"] = {epsilon: spreads(raw, epsilon) for epsilon in EPSILONS[:3]}
    tally = Tally(neighbours=NEIGHBOURS, slack=SLACK, columns=raw.shape[1])
    told |= radius_errors_of(values, tally)
    for word, graded in (("cube", False), ("graded", True)):
        counted = Tally(neighbours=NEIGHBOURS, slack=None if graded else SLACK, columns=raw.shape[1])
        curve = outlier_curve(values, RADII, counted)
        told[word] = [profile_error(curve, n, counted, e, graded=graded) for e in EPSILONS]
    return told


if __name__ == "__main__":
    print(json.dumps(available() if sys.argv[1] == "available" else measure(sys.argv[1])))
