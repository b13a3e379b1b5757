"""Outliers against the radius: a curve that one record moves little at every radius, and radii drawn from it.

The curve falls as the radius grows, since more pairs are near. Where both ends of a stretch have the same value, so has
all of it, and nothing is computed there; nothing else is ever left out.

Proved in proof.md of `radius`, labels (C) (E) (T).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower import progress
from wallflower.data import TiledPoints
from wallflower.engines.engine import Tiles
from wallflower.errors import ParameterError
from wallflower.mechanisms import choose_together
from wallflower.neighbours import extension, flow, pairs
from wallflower.neighbours import tiles as tiling
from wallflower.neighbours.limits import check_radius, per_column
from wallflower.neighbours.noisy_count import GAP, STEP
from wallflower.noise import Noise

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RADII_PER_OCTAVE: Final = 16  # radii in an octave, of a grid to choose from
WIDE_RADII_PER_OCTAVE: Final = 2  # and where radii are wide, and nearly all of them leave no outlier
SMALLEST_RADIUS, WIDE_RADIUS, LARGEST_RADIUS = 1 / 16, 4.0, 16.0  # of radii, where columns are scaled to a spread of 1
MAX_RADII: Final = 2000  # radii of a grid
NEGLIGIBLE_NATS: Final = (
    30.0  # candidates whose error is this many times 2Δ/ε have a chance below e^-30 each, beside the best
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How outliers are counted at any radius: by the extension, or with `slack` None graded, as the outlier mass."""

    neighbours: int
    slack: int | None
    normalise: bool = True
    columns: int | None = None  # where labels make some columns several coordinates

    @property
    def unit(self) -> int:
        """Steps of the grid in one record."""
        return STEP.denominator if self.slack is not None else self.neighbours

    @property
    def sensitivity(self) -> int:
        """Steps by which one record moves the curve, at every radius.  (C)"""
        return 2 * self.neighbours if self.slack is None else (self.slack + 1) * self.unit + 1

    @property
    def share(self) -> float:
        """The same in records."""
        return self.sensitivity / self.unit

    def steps(self, values: Floats, radius: float, most: int | None = None) -> int:
        """The outliers at one radius, in steps. With `most`, any number from there on where there are as many: the
        extension counts no fewer than there are, so nothing is decided where the curve is cut anyway.  (C)"""
        tree = pairs.build_tree(pairs.as_matrix(values), self.squared_reach(radius, values.shape[1]))
        if self.slack is None:
            return len(values) * self.neighbours - int(flow.largest_flow(tree, self.neighbours))  # (C)
        if most is not None:
            outliers = int(np.count_nonzero(pairs.count_neighbours(tree, self.neighbours) < self.neighbours))
            if outliers * self.unit >= most:
                return outliers * self.unit
        bounds = extension.certify(tree, self.neighbours, float(self.slack), GAP)
        return math.floor((len(values) - float(bounds.lower)) * self.unit + 0.5)  # (C)

    def steps_of_tiles(self, tiles: Tiles, n: int, radius: float) -> int:
        """The same of `n` records that are cut into tiles."""
        assert self.slack is not None  # the outlier mass is refused before it is charged
        reach = self.squared_reach(radius, tiles.low.shape[1])
        bounds = tiling.certify_tiles(tiles, reach, self.neighbours, float(self.slack), GAP)
        return math.floor((n - float(bounds.lower)) * self.unit + 0.5)  # (C)

    def squared_reach(self, radius: float, width: int) -> float:
        """Return the reach of a search over a number of coordinates."""
        reach, normalise = per_column(radius, self.columns or width, width, normalise=self.normalise)
        return float(pairs.squared_reach(reach, width, normalise=normalise))


def radius_grid(smallest: float, largest: float, fine: int = RADII_PER_OCTAVE) -> tuple[float, ...]:
    """Public radii from the smallest to the largest, `fine` of them in an octave.

    >>> grid = radius_grid(0.5, 2.0, 2)
    >>> [round(radius, 4) for radius in grid]
    [0.5, 0.7071, 1.0, 1.4142, 2.0]
    """
    check_radius(smallest)
    check_radius(largest)
    octaves = math.log2(largest / smallest)
    if not octaves > 0 or octaves * fine > MAX_RADII:
        raise ParameterError(
            f"smallest, largest: {smallest!r} and {largest!r} are not the ends of a grid of at most {MAX_RADII} radii; "
            "pass the second above the first, and not too far."
        )
    return tuple(smallest * 2.0 ** (place / fine) for place in range(math.floor(octaves * fine + 1e-9) + 1))


DEFAULT_RADII: Final = (
    *radius_grid(SMALLEST_RADIUS, WIDE_RADIUS),
    *radius_grid(WIDE_RADIUS, LARGEST_RADIUS, WIDE_RADII_PER_OCTAVE)[1:],
)


def middle_radius(radii: Sequence[float], place: int) -> float:
    """Half a step beyond a radius of a grid: between it and the next the curve crosses what is wanted.  (E)

    >>> middle_radius((1.0, 4.0, 9.0), 1), middle_radius((1.0, 4.0, 9.0), 2)
    (6.0, 9.0)
    """
    return math.sqrt(radii[place] * radii[min(place + 1, len(radii) - 1)])


def outlier_curve(
    points: Floats | TiledPoints,
    radii: Sequence[float],
    tally: Tally,
    *,
    low: int | None = None,
    high: int | None = None,
) -> Ints:
    """The outliers at each of these rising radii, in steps, cut to `low` and `high`; every value falls or stays.

    One record moves each value by at most `tally.sensitivity`, all of them at once.
    """
    least, most = (0 if low is None else low), (_number_of(points) * tally.unit if high is None else high)
    with progress.steps("radii", len(radii)) as step, _looks(points, tally, most) as steps:

        def look(place: int) -> int:
            return min(max(steps(radii[place]), least), most)

        found = evaluate_falling(look, len(radii), step)
    return np.minimum.accumulate(np.array(found, dtype=np.int64))


def steps_at(points: Floats | TiledPoints, radius: float, tally: Tally) -> int:
    """The outliers at one radius, in steps and without noise: not private. One record moves it by `tally.sensitivity`
    at most.  (C)"""
    most = _number_of(points) * tally.unit
    with _looks(points, tally, most) as steps:
        return min(max(steps(radius), 0), most)


@contextmanager
def _looks(points: Floats | TiledPoints, tally: Tally, most: int) -> Iterator[Callable[[float], int]]:
    """How the outliers at a radius are counted; tiles are cut once, since they are the same for all radii."""
    if not isinstance(points, TiledPoints):
        yield lambda radius: tally.steps(points, radius, most)
        return
    with points.tile(size=tiling.tile_size(points.width, tally.neighbours)) as tiles, progress.hush():
        yield lambda radius: tally.steps_of_tiles(tiles, points.n, radius)


def _number_of(points: Floats | TiledPoints) -> int:
    return points.n if isinstance(points, TiledPoints) else len(points)


def evaluate_falling(
    look: Callable[[int], int], size: int, step: Callable[[int], object] = lambda count: None
) -> list[int]:
    """The values of a falling function at 0 … size-1, asked for only where its ends differ.  (C)

    >>> asked = []
    >>> evaluate_falling(lambda place: asked.append(place) or (9 if place < 6 else 2), 9), len(asked)
    ([9, 9, 9, 9, 9, 9, 2, 2, 2], 5)
    """
    found: list[int | None] = [None] * size
    for end in sorted({0, size - 1}):
        found[end] = look(end)
    stretches = [(0, size - 1)]
    while stretches:
        first, last = stretches.pop()
        if found[first] == found[last]:
            found[first:last] = [found[first]] * (last - first)
        elif last - first > 1:
            middle = (first + last) // 2
            found[middle] = look(middle)
            stretches += [(middle, last), (first, middle)]
    step(size)
    return [value for value in found if value is not None]


def radius_errors(curve: Ints, target: int) -> Ints:
    """By how much each radius misses a wanted number of outliers: 0 where the curve crosses it.  (E)

    >>> radius_errors(np.array([50, 44, 30, 18, 9, 4, 1, 0]), 5).tolist()
    [39, 25, 13, 4, 0, 1, 4, 5]
    """
    after = np.append(curve[1:], curve[-1])
    missed: Ints = np.maximum(np.maximum(target - curve, after - target), 0)
    return missed


def choose_radii(
    points: Floats | TiledPoints,
    radii: Sequence[float],
    shares: Sequence[Fraction],
    tally: Tally,
    *,
    epsilon: Fraction,
    noise: Noise,
) -> list[float]:
    """Choose, for each share of the records, a radius at which about that share are outliers.

    All radii together have the price of one choice.

    Released    a radius for each share, half a step beyond one of the public grid
    Neighbours  replace one record, N public
    Guarantee   pure ε-DP, and ε²/8-zCDP                          Proof       proof.md of `radius`, label (T)
    """
    curve = curve_around(points, radii, shares, tally, epsilon)
    return pick_radii(curve, _number_of(points), radii, shares, tally, epsilon=epsilon, noise=noise)


def curve_around(
    points: Floats | TiledPoints, radii: Sequence[float], shares: Sequence[Fraction], tally: Tally, epsilon: Fraction
) -> Ints:
    """The curve as far as a choice of radii needs it: cut where every error is the same."""
    targets = [target_steps(share, _number_of(points), tally) for share in shares]
    reach = error_reach(tally, len(radii), len(shares), epsilon)
    low, high = max(0, min(targets) - reach), min(_number_of(points) * tally.unit, max(targets) + reach)
    return outlier_curve(points, radii, tally, low=low, high=high)


def pick_radii(
    curve: Ints,
    n: int,
    radii: Sequence[float],
    shares: Sequence[Fraction],
    tally: Tally,
    *,
    epsilon: Fraction,
    noise: Noise,
) -> list[float]:
    """The draw of `choose_radii`, from a curve of `n` records.  (T)"""
    reach = error_reach(tally, len(radii), len(shares), epsilon)
    targets = [target_steps(share, n, tally) for share in shares]
    errors = [np.minimum(radius_errors(curve, target), reach) for target in targets]
    places = choose_together(errors, sensitivity=tally.sensitivity, epsilon=epsilon, noise=noise)
    return [middle_radius(radii, place) for place in places]


def count_curve(values: Floats, radii: Sequence[float], neighbours: int, *, normalise: bool) -> list[int]:
    """How many outliers there are at each radius, without privacy."""
    trees = (pairs.index_points(values, radius, normalise=normalise) for radius in radii)
    return [int(np.count_nonzero(pairs.count_neighbours(tree, neighbours) < neighbours)) for tree in trees]


def read_share(share: object, name: str = "share") -> Fraction:
    """A share of the records as it is written: 1 %, 0.01 or 1/100.

    >>> read_share("2.5 %"), read_share(0.01), read_share("1/3")
    (Fraction(1, 40), Fraction(1, 100), Fraction(1, 3))
    """
    text = str(share).strip()
    try:
        found = Fraction(text.removesuffix("%").strip()) / (100 if text.endswith("%") else 1)
    except (ValueError, ZeroDivisionError):
        found = Fraction(0)
    if not 0 < found < 1:
        raise ParameterError(f"{name}: {text[:40]!r} is no share between 0 and 1; write it as 1%, 0.01 or 1/100.")
    return found


def target_steps(share: Fraction, n: int, tally: Tally) -> int:
    """A share of the records, in steps."""
    return math.floor(share * n * tally.unit + Fraction(1, 2))


def error_reach(tally: Tally, radii: int, shares: int, epsilon: Fraction) -> int:
    """Errors beyond this count as this: radii that have it are chosen less than once in e^30 times, all together."""
    nats = NEGLIGIBLE_NATS + shares * math.log(radii)
    return math.ceil(2 * tally.sensitivity * nats / float(epsilon))
