"""The private number of outliers: the extension on a grid, with noise.

Proved in proof.md of `count`, labels (N) (K). Which slack and which noise follow from public facts alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.data import TiledPoints
from wallflower.machine.lazy import Lazy
from wallflower.mechanisms import Additive, calibrate
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss

if TYPE_CHECKING:
    import wallflower.neighbours.extension as _extension
    import wallflower.neighbours.pairs as _near
    import wallflower.neighbours.tiles.inliers as _tiles
    import wallflower.neighbours.tiles.repair as _repair
else:
    _extension = Lazy("wallflower.neighbours.extension")
    _near = Lazy("wallflower.neighbours.pairs")
    _repair = Lazy("wallflower.neighbours.tiles.repair")
    _tiles = Lazy("wallflower.neighbours.tiles.inliers")

Floats = NDArray[np.float64]

STEP: Final = Fraction(1, 128)
GAP: Final = 1 / 256  # eta: how far the certified value may lie below E; two of them make one step of the grid
SURE: Final = 0.95
ENOUGH: Final[Mapping[int | None, int]] = {1: 2, 2: 6}  # (K) by columns: a slack of so many neighbours never binds


def usual_slack(n: int, neighbours: int, loss: Loss, *, dimension: int | None = None) -> int:
    """A slack that suits tables of this size: the more records, the less noise matters.

    Bias falls fast as the slack grows, so a logarithm is enough. Where the number of columns is known to be one or two
    there is a slack beyond which nothing changes (K).

    >>> usual_slack(50, 5, Loss("1")), usual_slack(5000, 5, Loss("1")), usual_slack(10**6, 5, Loss("1"))
    (2, 5, 10)
    >>> usual_slack(10**6, 3, Loss("1"), dimension=1)
    6
    """
    amount = float(loss.amount) if loss.kind is not Kind.ZCDP else math.sqrt(2 * float(loss.amount))
    wanted = max(2 if n * amount <= 100 else 3, round(math.log(n * amount) - 4))
    return min(wanted, ENOUGH[dimension] * neighbours) if dimension in ENOUGH else wanted


def count_noise(slack: int, loss: Loss) -> Additive:
    """The noise that hides one record in the extension.  (N)"""
    return calibrate((slack + 1) * STEP.denominator + 1, loss, step=STEP)


def noisy_steps(
    points: Floats | TiledPoints,
    radius: float,
    neighbours: int,
    slack: int,
    loss: Loss,
    noise: Noise,
    *,
    normalise: bool,
) -> int:
    """The number of outliers with noise, in steps of the grid."""
    steps = exact_steps(points, radius, neighbours, slack, normalise=normalise)
    return steps + count_noise(slack, loss).draw(noise)  # (N)


def exact_steps(points: Floats | TiledPoints, radius: float, neighbours: int, slack: int, *, normalise: bool) -> int:
    """The number of outliers by the extension, in steps of the grid and without noise: not private."""
    if isinstance(points, TiledPoints):
        n, reach = points.n, _near.squared_reach(radius, points.width, normalise=normalise)
        with points.tile(size=_tiles.tile_size(points.width, neighbours)) as tiles:
            bounds = _repair.certify_tiles(tiles, reach, neighbours, float(slack), GAP)  # (T)
    else:
        n, tree = len(points), _near.grow_tree(points, radius, normalise=normalise)
        bounds = _extension.certify(tree, neighbours, float(slack), GAP)
    return math.floor((n - float(bounds.lower)) * STEP.denominator + 0.5)


def exact_count(points: TiledPoints, radius: float, neighbours: int, *, normalise: bool) -> int:
    """The number of outliers of a table that is cut into tiles, without noise: not private."""
    reach = _near.squared_reach(radius, points.width, normalise=normalise)
    with points.tile(size=_tiles.tile_size(points.width, neighbours)) as tiles:
        return points.n - int(_tiles.count_inliers(tiles, reach, neighbours))


def whole(steps: Fraction, n: int) -> int:
    """Steps of the grid as a number of records: post-processing.

    >>> whole(Fraction(300), 367), whole(Fraction(-40), 367)
    (2, 0)
    """
    return min(max(math.floor(steps * STEP + Fraction(1, 2)), 0), n)


def interval(value: int, n: int, law: Additive) -> tuple[int, int]:
    """The interval around a released number that covers the noise with 95 %. The truth is at most its upper end with
    97.5 %, always; for the extension, which may count too many, the lower end says nothing of the truth (A)."""
    width = law.half_width(SURE) + 0.5
    return max(0, math.ceil(value - width)), min(n, math.floor(value + width))
