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
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wallflower import progress
from wallflower.data import TiledPoints
from wallflower.mechanisms import Additive, calibrate
from wallflower.neighbours import certificate, extension, pairs
from wallflower.neighbours import tiles as tiling
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss

Floats = NDArray[np.float64]
Records: TypeAlias = "Floats | TiledPoints | pairs.Tree | pairs.Graph"  # the last two know who is near already

STEP: Final = Fraction(1, 128)
GAP: Final = 1 / 256  # how far the certified value may lie below E; two of them make one step of the grid
LARGE_TABLE_RECORDS: Final = 10_000  # from here on a programme may be solved less exactly, and the noise pays for it
GAP_SHARE: Final = Fraction(1, 32)  # of slack + 1, the sensitivity of E: what a large table may lie below E besides GAP
CONFIDENCE: Final = 0.95
CAPS_THAT_NEVER_BIND: Final[Mapping[int | None, int]] = {
    1: 2,
    2: 6,
}  # (K) by columns: a slack of that many neighbours never binds


def size_cap(n: int, neighbours: int, loss: Loss, *, dimension: int | None = None) -> int:
    """A slack that suits tables of this size: the more records, the less noise matters.

    Bias falls fast as the slack grows, so a logarithm is enough. Where the number of columns is known to be one or two
    there is a slack beyond which nothing changes (K).

    >>> size_cap(50, 5, Loss("1")), size_cap(5000, 5, Loss("1")), size_cap(10**6, 5, Loss("1"))
    (2, 5, 10)
    >>> size_cap(10**6, 3, Loss("1"), dimension=1)
    6
    """
    amount = float(loss.amount) if loss.kind is not Kind.ZCDP else math.sqrt(2 * float(loss.amount))
    wanted = max(2 if n * amount <= 100 else 3, round(math.log(n * amount) - 4))
    return min(wanted, CAPS_THAT_NEVER_BIND[dimension] * neighbours) if dimension in CAPS_THAT_NEVER_BIND else wanted


class TestOffer(NamedTuple):
    """A crowding test that the rule can make: what it costs, and what it leaves for a wider cap."""

    share: Fraction  # of the loss
    noise_factor: Fraction  # by how much the noise of a calm table may grow, besides what the share costs
    false_growth: float  # of that noise: the most that a calm table pays for a cap that grows by chance
    max_calm_share: float  # of the records: the test is made only if the cap can grow from there on
    min_records: int


# In order: the first that can tell calm from crowded is made. In all the noise of a calm table grows to 7/5. In a large
# table the noise is a small part of any count, a cheaper test is sharp enough, and a narrow cap is slow: there it grows
# to 3/2, and the cap grows sooner.
TEST_OFFERS: Final = (
    TestOffer(Fraction(1, 10), Fraction(27, 20), 0.2, 0.12, 50_000),
    TestOffer(Fraction(1, 7), Fraction(6, 5), 0.06, 0.12, 0),
    TestOffer(Fraction(2, 7), Fraction(1), 0.06, 0.6, 0),
)
USUAL_TEST_SHARE: Final = TEST_OFFERS[1].share
UNTESTED_FACTOR: Final = Fraction(3, 2)  # by how much the noise may grow where no test can be afforded
MIN_NEIGHBOURS_OF_WIDER_CAP: Final = 10  # with fewer neighbours an untested cap stays as it is: bias is rare
CALM_SHARE, LEAST_CALM_SHARE = 0.07, 0.012  # of the records: a crowding that goes without bias, by size of the table
CALM_RECORDS: Final = 150  # records per neighbour: in larger tables less crowding goes without bias
CALM_EXPONENT: Final = 0.55
FIRST_SPAN, SECOND_SPAN = 0.15, 0.3  # of the records: over so much more crowding the cap grows halfway, and then to all
BIAS_AT_FIFTH, BIAS_DECAY = 0.1, 16.0  # bias per crowded record at a cap of k/5, and its decay in cap over k: the study
CROWDED_SHARE: Final = 0.36  # of the records have barely enough neighbours where 30 % of a uniform table are outliers
MAX_CALM_SHARE_OF_FEW: Final = (
    0.45  # with fewer than MIN_NEIGHBOURS_OF_WIDER_CAP only the first test is made, and up to here
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapRule:
    """How the degree cap is chosen: `narrow` for a calm table, up to `wide` as the released crowding grows.  (X)

    From a crowding of `calm` on the cap grows. `test` is the noise of the crowding, in steps, and None where the cap
    follows from public facts alone. `test_share` is the part of the loss that pays for it, and `numbers` the loss left
    for what is counted.
    """

    n: int
    narrow: int
    wide: int
    calm: float = 1.0
    test: Additive | None
    test_share: Fraction = Fraction(0)
    numbers: Loss
    reason: str

    def cap_at(self, crowding: float) -> int:
        """The cap for a released crowding, a share of the records: post-processing.

        >>> rule = cap_rule(6000, 20, Loss("1"))
        >>> [rule.cap_at(share) for share in (-0.1, 0.05, 0.2, 0.25, 0.36, 1.0)]
        [6, 6, 9, 12, 15, 20]
        """
        if self.test is None:
            return self.narrow
        return self.narrow + sum(crowding - self.calm >= beyond for beyond in self.growth)

    @property
    def growth(self) -> list[float]:
        """How far beyond `calm` the crowding is at which the cap grows by one, by two, and so on up to `wide`.

        First it grows with the number of crowded records, to where one more neighbour in the cap would add as much
        noise as it takes off the bias of the study, BIAS_AT_FIFTH exp(-BIAS_DECAY (cap/k - 1/5)) for each crowded
        record. At FIRST_SPAN it is at least what uniform data need, half of the neighbours and two, and from there it
        grows with the share of crowded records to what lattices need, all of them.
        """
        k, caps = self.wide, np.arange(self.narrow, self.wide) + 0.5
        middle = max(float(self.narrow), min(float(k), k / 2 + 2))
        noise = count_noise(1, self.numbers).mean_error() / 2  # of one more neighbour in the cap
        by_number = noise * k / (BIAS_AT_FIFTH * BIAS_DECAY) * np.exp(BIAS_DECAY * (caps / k - 0.2)) / self.n
        by_share = np.interp(caps, [middle, k], [FIRST_SPAN, FIRST_SPAN + SECOND_SPAN])
        grown: list[float] = np.minimum(by_share, by_number).tolist()
        return grown

    def cap_chances(self, crowding: float) -> dict[int, float]:
        """How often each cap is chosen where the crowding without noise is this share of the records.

        >>> chances = cap_rule(6000, 20, Loss("1")).cap_chances(0.0)
        >>> max(chances, key=chances.__getitem__), round(sum(chances.values()), 6)
        (6, 1.0)
        """
        if self.test is None:
            return {self.narrow: 1.0}
        above = [1.0, *(self._tail(self.n * (self.calm + beyond - crowding)) for beyond in self.growth), 0.0]
        return {self.narrow + step: more - less for step, (more, less) in enumerate(pairwise(above))}

    def likely_cap(self, crowding: float = CROWDED_SHARE) -> ChosenCap:
        """The cap that a table of this crowding most likely gets; default: one like uniform data with 30 % outliers."""
        chances = self.cap_chances(crowding)
        return ChosenCap(max(chances, key=chances.__getitem__), crowding, self.reason, self.test_share)

    def _tail(self, records: float) -> float:
        """The chance that the noise of the test is at least this."""
        assert self.test is not None
        return self.test.upper_tail(records) if records > 0 else 1 - self.test.upper_tail(-records)

    def choose(self, steps: int, noise: Noise) -> ChosenCap:
        """The cap of a table whose crowding is this many steps of the grid; the noisy crowding is released.  (X)"""
        assert self.test is not None
        share = float((steps + self.test.draw(noise)) * STEP / self.n)
        crowding = round(min(max(share, 0.0), 1.0), 4)
        return ChosenCap(self.cap_at(crowding), crowding, self.reason, self.test_share)

    def take_narrow(self) -> ChosenCap:
        """The cap where nothing is released to choose it."""
        return ChosenCap(self.narrow, None, self.reason)


@dataclass(frozen=True, slots=True)
class ChosenCap:
    """The degree cap of a release, the released crowding it follows from, if any, why, and the part of the loss that
    the test had."""

    cap: int
    crowding: float | None
    reason: str
    test_share: Fraction = Fraction(0)

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
    usual = usual or size_cap(n, neighbours, loss, dimension=dimension)
    if neighbours <= usual:
        return CapRule(n=n, narrow=usual, wide=usual, test=None, numbers=loss, reason=PUBLIC_REASON)
    for offer in (offer for offer in TEST_OFFERS if n >= offer.min_records):
        narrow = _widen_cap(usual, neighbours, offer.noise_factor, own)
        if narrow == neighbours:
            return CapRule(n=n, narrow=narrow, wide=narrow, test=None, numbers=loss, reason=PUBLIC_REASON)
        spent, left = split_for_test(loss, offer.share)
        test = calibrate(crowding_sensitivity(neighbours), spent, step=STEP)
        rule = CapRule(
            n=n, narrow=narrow, wide=neighbours, test=test, test_share=offer.share, numbers=left, reason=TESTED_REASON
        )
        calm, is_few = _calm_crowding(rule, own, offer.false_growth), neighbours < MIN_NEIGHBOURS_OF_WIDER_CAP
        if calm <= (MAX_CALM_SHARE_OF_FEW if is_few else offer.max_calm_share):
            return replace(rule, calm=calm)
        if is_few:
            break
    cap = _widen_cap(usual, neighbours, UNTESTED_FACTOR, own) if neighbours >= MIN_NEIGHBOURS_OF_WIDER_CAP else usual
    return CapRule(n=n, narrow=cap, wide=cap, test=None, numbers=loss, reason=PUBLIC_REASON)


def _calm_crowding(rule: CapRule, own: int, false_growth: float) -> float:
    """The least crowding from which the cap may grow so that on a calm table, where it grows by chance alone, the noise
    grows by `false_growth` at most: the expected growth is the sum of the tails of its steps."""
    assert rule.test is not None
    error = rule.test.mean_error() / rule.n
    tails = 0.5 * float(np.exp(-np.array(rule.growth) / error).sum())
    beyond = error * math.log(max(tails / (false_growth * (rule.narrow + own)), 1.0))
    return calm_share(rule.n, rule.wide) + beyond


def calm_share(n: int, neighbours: int) -> float:
    """The share of crowded records that goes without bias: less in large tables, where the surroundings of a record are
    more alike.

    >>> round(calm_share(6000, 20), 3), round(calm_share(100_000, 50), 4)
    (0.048, 0.0168)
    """
    shrunk = CALM_SHARE * math.pow(CALM_RECORDS * neighbours / n, CALM_EXPONENT)
    return min(CALM_SHARE, max(LEAST_CALM_SHARE, shrunk))


def public_cap(n: int, neighbours: int, loss: Loss, *, dimension: int | None = None) -> int:
    """The degree cap where many numbers are counted at once and none is released first, from public facts alone.

    >>> public_cap(6000, 5, Loss("1")), public_cap(6000, 20, Loss("1"))
    (5, 8)
    """
    usual = size_cap(n, neighbours, loss, dimension=dimension)
    grows = neighbours > usual and neighbours >= MIN_NEIGHBOURS_OF_WIDER_CAP
    return _widen_cap(usual, neighbours, UNTESTED_FACTOR, 1) if grows else usual


PUBLIC_REASON: Final = "from the number of records, the neighbours and the loss"
TESTED_REASON: Final = "from the number of records, the neighbours, the loss and the released crowding"


def _widen_cap(usual: int, neighbours: int, factor: Fraction, own: int) -> int:
    """The cap whose noise is at most `factor` times the usual one; beyond `neighbours` it would gain little."""
    return max(usual, min(neighbours, math.floor(factor * (usual + own)) - own))


def join_widths(calm: float, crowded: float) -> str:
    """How far the noise reaches by either outcome of the test; one figure where both are the same.

    >>> join_widths(28.04, 28.04), join_widths(28.04, 60.3)
    ('±28 (95 %)', '±28 (95 %; on a crowded table ±60.3)')
    """
    more = "" if calm == crowded else f"; on a crowded table ±{crowded:.3g}"
    return f"±{calm:.3g} (95 %{more})"


def split_for_test(loss: Loss, share: Fraction = USUAL_TEST_SHARE) -> tuple[Loss, Loss]:
    """The loss of the crowding test, which needs no δ, and what is left.  (X)"""
    kind = Kind.PURE if loss.kind is Kind.APPROXIMATE else loss.kind
    left = Loss((1 - share) * loss.amount, delta=loss.delta, kind=loss.kind, neighbours=loss.neighbours)
    return Loss(share * loss.amount, kind=kind, neighbours=loss.neighbours), left


def crowded_neighbours(neighbours: int) -> int:
    """A record with fewer neighbours than this has barely enough: a quarter more than `neighbours`."""
    return neighbours + max(1, math.ceil(neighbours / 4))


def crowding_sensitivity(neighbours: int) -> int:
    """Steps of the grid by which one record moves the crowding.  (X)"""
    return (neighbours + crowded_neighbours(neighbours) + 2) * STEP.denominator + 4


def crowding_steps(
    tables: Iterable[Records], radius: float, neighbours: int, *, normalise: bool, certify: bool = False
) -> int:
    """How many records have at least `neighbours` neighbours but not a quarter more, in steps and without noise: not
    private. Both are counted by the extension, with caps at which a table of equal degrees is never contested.  (X)"""
    total = 0
    with progress.hush():
        for points in tables:
            for wanted, sign in ((crowded_neighbours(neighbours), 1), (neighbours, -1)):
                total += sign * exact_steps(points, radius, wanted, wanted, normalise=normalise, certify=certify)
    return total


def gap_steps(n: int, neighbours: int, slack: int) -> int:
    """Steps of the grid by which the value of a table may lie below E, besides GAP. A programme that need not be solved
    so exactly takes a half to a fifth of the time, and the noise grows by GAP_SHARE. With a slack of at least
    `neighbours` programmes are rare, and in small tables they are small: there it is 0.  (N)

    >>> gap_steps(9_999, 20, 5), gap_steps(10_000, 20, 5), gap_steps(10_000, 5, 5)
    (0, 24, 0)
    """
    is_wide = n >= LARGE_TABLE_RECORDS and slack < neighbours
    return math.floor(GAP_SHARE * (slack + 1) * STEP.denominator) if is_wide else 0


def count_noise(slack: int, loss: Loss, *, gap: int = 0) -> Additive:
    """The noise that hides one record in the extension, whose value may lie `gap` steps and GAP below E.  (N)"""
    return calibrate((slack + 1) * STEP.denominator + gap + 1, loss, step=STEP)


def noisy_steps(
    points: Records,
    radius: float,
    neighbours: int,
    slack: int,
    loss: Loss,
    noise: Noise,
    *,
    normalise: bool,
    certify: bool = False,
) -> int:
    """The number of outliers with noise, in steps of the grid."""
    n = points.shape[0] if isinstance(points, np.ndarray) else points.n
    gap = 0 if certify else gap_steps(n, neighbours, slack)
    steps = exact_steps(points, radius, neighbours, slack, normalise=normalise, gap=gap, certify=certify)
    return steps + count_noise(slack, loss, gap=gap).draw(noise)  # (N)


def exact_steps(
    points: Records,
    radius: float,
    neighbours: int,
    slack: int,
    *,
    normalise: bool,
    gap: int = 0,
    certify: bool = False,
) -> int:
    """The number of outliers by the extension, in steps of the grid and without noise: not private. The value is at
    most `gap` steps and GAP below E. With `certify` it follows from an accepted certificate, for records in memory, and
    is at most GAP below E.  (C5)"""
    if certify:
        assert isinstance(points, np.ndarray)
        index = pairs.index_points(points, radius, normalise=normalise)
        return certificate.count_steps(index.n, certificate.serve_parts(index, neighbours, slack), STEP.denominator)
    tolerance = GAP + float(gap * STEP)
    if isinstance(points, TiledPoints):
        n, reach = points.n, pairs.squared_reach(radius, points.width, normalise=normalise)
        with points.tile(size=tiling.tile_size(points.width, neighbours)) as tiles:
            bounds = tiling.certify_tiles(tiles, reach, neighbours, float(slack), tolerance)  # (T)
    else:
        tree = pairs.index_points(points, radius, normalise=normalise) if isinstance(points, np.ndarray) else points
        n = tree.n
        bounds = extension.certify(tree, neighbours, float(slack), tolerance)
    return math.floor((n - float(bounds.lower)) * STEP.denominator + 0.5)


def exact_count(points: TiledPoints, radius: float, neighbours: int, *, normalise: bool) -> int:
    """The number of outliers of a table that is cut into tiles, without noise: not private."""
    reach = pairs.squared_reach(radius, points.width, normalise=normalise)
    with points.tile(size=tiling.tile_size(points.width, neighbours)) as tiles:
        return points.n - int(tiling.count_inliers(tiles, reach, neighbours))


def round_to_records(steps: Fraction, n: int) -> int:
    """Steps of the grid as a number of records: post-processing.

    >>> round_to_records(Fraction(300), 367), round_to_records(Fraction(-40), 367)
    (2, 0)
    """
    return min(max(math.floor(steps * STEP + Fraction(1, 2)), 0), n)


def interval(value: int, n: int, law: Additive) -> tuple[int, int]:
    """The interval around a released number that covers the noise with 95 %. The truth is at most its upper end with
    97.5 %, always; for the extension, which may count too many, the lower end says nothing of the truth (A)."""
    width = law.half_width(CONFIDENCE) + 0.5
    return max(0, math.ceil(value - width)), min(n, math.floor(value + width))
