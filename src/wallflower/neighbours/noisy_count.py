"""The private number of outliers: the extension on a grid, with noise, and the rule for its degree cap.

Proved in proof.md of `count`, labels (N) (K) (X). The cap (`slack`) follows from public facts, or from them and one
number that is released first: the share of records with barely enough neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wallflower import progress
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
Records: TypeAlias = "Floats | TiledPoints | _near.Tree | _near.Graph"  # the last two know who is near already

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


TEST_SHARE: Final = Fraction(1, 7)  # of the loss: what the crowding test costs where it is made
UNTESTED_FACTOR: Final = Fraction(3, 2)  # by how much the noise may grow where no test can be afforded
TESTED_FACTOR: Final = Fraction(6, 5)  # and beside a test: 6/5 of 7/6 is 7/5
FROM_NEIGHBOURS: Final = 10  # with fewer neighbours an untested cap stays as it is: bias is rare
CALM_SHARE: Final = 0.03  # of the records: a crowding that goes without bias
FIRST_SPAN, SECOND_SPAN = 0.15, 0.3  # of the records: over so much more crowding the cap grows halfway, and then to all
FALSE_GROWTH: Final = 0.07  # of the noise: the most that a calm table pays for a cap that grows by chance
LATEST_CALM: Final = 0.45  # of the records: no test is made where the cap could not grow before


@dataclass(frozen=True, slots=True, kw_only=True)
class CapRule:
    """How the degree cap is chosen: `narrow` for a calm table, up to `wide` as the released crowding grows.  (X)

    From a crowding of `calm` on the cap grows. `test` is the noise of the crowding, in steps, and None where the cap
    follows from public facts alone. `numbers` is the loss left for what is counted.
    """

    n: int
    narrow: int
    wide: int
    calm: float = 1.0
    test: Additive | None
    numbers: Loss
    reason: str

    def cap_at(self, crowding: float) -> int:
        """The cap for a released crowding, a share of the records: post-processing.

        >>> rule = cap_rule(6000, 20, Loss("1"))
        >>> [rule.cap_at(share) for share in (-0.1, 0.05, 0.2, 0.25, 0.36, 1.0)]
        [6, 6, 11, 13, 16, 20]
        """
        if self.test is None:
            return self.narrow
        return self.narrow + sum(crowding - self.calm >= beyond for beyond in self.growth)

    @property
    def growth(self) -> list[float]:
        """How far beyond `calm` the crowding is at which the cap grows by one, by two, and so on up to `wide`: first
        what uniform data need, half of the neighbours and two, then what lattices need, all of them."""
        middle = max(float(self.narrow), min(float(self.wide), self.wide / 2 + 2))
        first = 1 if middle == self.narrow else 0
        stops, crowding = [self.narrow, middle, self.wide][first:], [0.0, FIRST_SPAN, FIRST_SPAN + SECOND_SPAN][first:]
        grown: list[float] = np.interp(np.arange(self.narrow, self.wide) + 0.5, stops, crowding).tolist()
        return grown

    def choose(self, steps: int, noise: Noise) -> ChosenCap:
        """The cap of a table whose crowding is this many steps of the grid; the noisy crowding is released.  (X)"""
        assert self.test is not None
        share = float((steps + self.test.draw(noise)) * STEP / self.n)
        crowding = round(min(max(share, 0.0), 1.0), 4)
        return ChosenCap(self.cap_at(crowding), crowding, self.reason)

    def take_narrow(self) -> ChosenCap:
        """The cap where nothing is released to choose it."""
        return ChosenCap(self.narrow, None, self.reason)


@dataclass(frozen=True, slots=True)
class ChosenCap:
    """The degree cap of a release, the released crowding it follows from, if any, and why."""

    cap: int
    crowding: float | None
    reason: str

    @property
    def facts(self) -> dict[str, object]:
        """What a release states about its cap."""
        known: dict[str, object] = {"slack": self.cap, "slack_reason": self.reason}
        return known if self.crowding is None else known | {"crowding": self.crowding}


@lru_cache(maxsize=4096)
def cap_rule(
    n: int,
    neighbours: int,
    loss: Loss,
    *,
    dimension: int | None = None,
    slack: int | None = None,
    usual: int = 0,
    own: int = 1,
) -> CapRule:
    """The rule for tables of this size: a fixed cap where one is asked for, where it already reaches `neighbours`, or
    where no test can be afforded; otherwise the crowding test.  (X)

    `usual` is the cap that noise alone would ask for, and one record moves what is counted by the cap and `own`.

    >>> cap_rule(6000, 5, Loss("1")).test is None, cap_rule(6000, 20, Loss("1")).test is None
    (True, False)
    """
    if slack is not None:
        return CapRule(n=n, narrow=slack, wide=slack, test=None, numbers=loss, reason="asked for")
    usual = usual or usual_slack(n, neighbours, loss, dimension=dimension)
    if neighbours <= usual:
        return CapRule(n=n, narrow=usual, wide=usual, test=None, numbers=loss, reason=PUBLIC_REASON)
    spent, left = split_for_test(loss)
    test = calibrate(crowding_sensitivity(neighbours), spent, step=STEP)
    narrow = _grown(usual, neighbours, TESTED_FACTOR, own)
    rule = CapRule(n=n, narrow=narrow, wide=neighbours, test=test, numbers=left, reason=TESTED_REASON)
    if narrow == neighbours:
        return CapRule(n=n, narrow=narrow, wide=narrow, test=None, numbers=loss, reason=PUBLIC_REASON)
    calm = _calm_crowding(rule, own)
    if calm <= LATEST_CALM:
        return replace(rule, calm=calm)
    cap = _grown(usual, neighbours, UNTESTED_FACTOR, own) if neighbours >= FROM_NEIGHBOURS else usual
    return CapRule(n=n, narrow=cap, wide=cap, test=None, numbers=loss, reason=PUBLIC_REASON)


def _calm_crowding(rule: CapRule, own: int) -> float:
    """The least crowding from which the cap may grow so that on a table whose crowding is CALM_SHARE, where it grows by
    chance alone, the noise grows by FALSE_GROWTH at most: the expected growth is the sum of the tails of its steps."""
    assert rule.test is not None
    error = rule.test.mean_error() / rule.n
    tails = 0.5 * float(np.exp(-np.array(rule.growth) / error).sum())
    return CALM_SHARE + error * math.log(max(tails / (FALSE_GROWTH * (rule.narrow + own)), 1.0))


def public_cap(n: int, neighbours: int, loss: Loss, *, dimension: int | None = None) -> int:
    """The degree cap where many numbers are counted at once and none is released first, from public facts alone.

    >>> public_cap(6000, 5, Loss("1")), public_cap(6000, 20, Loss("1"))
    (5, 8)
    """
    usual = usual_slack(n, neighbours, loss, dimension=dimension)
    grows = neighbours > usual and neighbours >= FROM_NEIGHBOURS
    return _grown(usual, neighbours, UNTESTED_FACTOR, 1) if grows else usual


PUBLIC_REASON: Final = "from the number of records, the neighbours and the loss"
TESTED_REASON: Final = "from the number of records, the neighbours, the loss and the released crowding"


def _grown(usual: int, neighbours: int, factor: Fraction, own: int) -> int:
    """The cap whose noise is at most `factor` times the usual one; beyond `neighbours` it would gain little."""
    return max(usual, min(neighbours, math.floor(factor * (usual + own)) - own))


def split_for_test(loss: Loss) -> tuple[Loss, Loss]:
    """The loss of the crowding test, which needs no δ, and what is left.  (X)"""
    kind = Kind.PURE if loss.kind is Kind.APPROXIMATE else loss.kind
    left = Loss((1 - TEST_SHARE) * loss.amount, delta=loss.delta, kind=loss.kind, neighbours=loss.neighbours)
    return Loss(TEST_SHARE * loss.amount, kind=kind, neighbours=loss.neighbours), left


def crowded_neighbours(neighbours: int) -> int:
    """A record with fewer neighbours than this has barely enough: a quarter more than `neighbours`."""
    return neighbours + max(1, math.ceil(neighbours / 4))


def crowding_sensitivity(neighbours: int) -> int:
    """Steps of the grid by which one record moves the crowding.  (X)"""
    return (neighbours + crowded_neighbours(neighbours) + 2) * STEP.denominator + 4


def crowding_steps(tables: Iterable[Records], radius: float, neighbours: int, *, normalise: bool) -> int:
    """How many records have at least `neighbours` neighbours but not a quarter more, in steps and without noise: not
    private. Both are counted by the extension, with caps at which a table of equal degrees is never contested.  (X)"""
    total = 0
    with progress.hush():
        for points in tables:
            for wanted, sign in ((crowded_neighbours(neighbours), 1), (neighbours, -1)):
                total += sign * exact_steps(points, radius, wanted, wanted, normalise=normalise)
    return total


def count_noise(slack: int, loss: Loss) -> Additive:
    """The noise that hides one record in the extension.  (N)"""
    return calibrate((slack + 1) * STEP.denominator + 1, loss, step=STEP)


def noisy_steps(
    points: Records,
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


def exact_steps(points: Records, radius: float, neighbours: int, slack: int, *, normalise: bool) -> int:
    """The number of outliers by the extension, in steps of the grid and without noise: not private."""
    if isinstance(points, TiledPoints):
        n, reach = points.n, _near.squared_reach(radius, points.width, normalise=normalise)
        with points.tile(size=_tiles.tile_size(points.width, neighbours)) as tiles:
            bounds = _repair.certify_tiles(tiles, reach, neighbours, float(slack), GAP)  # (T)
    else:
        tree = _near.grow_tree(points, radius, normalise=normalise) if isinstance(points, np.ndarray) else points
        n = tree.n
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
