"""The law of a device's noise, read off the sampler itself: which words lead to which point, counted.

A word is a sign and 63 digits, and the larger the digits the smaller the number. Where numbers change is found by
halving, for all of them at once, by letting the device perturb readings with words that were written down. In the plane
a third word is the coin that keeps a candidate, and its edge is found the same way. Nothing is estimated, and what lies
far out is the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.audit import Finding
from wallflower.audit.laws import Law, PartialLaw, audit_law, law_of
from wallflower.privacy import Loss
from wallflower.sensors import perturbation, threshold

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Reading = tuple[int, int]

DIGITS, COIN = 44, 30  # bits up to which the edges of a number and of a coin are found: off by 1e-13 and 1e-9
FURTHEST: Final = 18  # steps from the reading: how far the law is followed
FAR_AWAY: Final = 2**43 + 2**20  # a word for a point in the plane that is further away, and kept by such a coin
STEP, RANGE = Fraction(5), Fraction(10)  # a range is two steps, and at ε = 2 noise has a scale of one
SHORT: Final = Fraction(10, 9)


class _WrittenWords:
    """Says batches of words in the order they were written down, with words for points far away behind them."""

    def __init__(self, *batches: Words) -> None:
        self.batches, self.asked = batches, 0

    def words(self, size: int) -> Words:
        found = np.full(size, FAR_AWAY, dtype=np.uint64)
        if self.asked < len(self.batches):
            batch = self.batches[self.asked].ravel()
            found[: len(batch)] = batch
        self.asked += 1
        return found

    def below(self, bound: int) -> int:
        """More digits, where the first are next to an edge."""
        return bound // 2


def _edges(is_beyond: Callable[[Words], NDArray[np.bool_]], count: int, bits: int) -> NDArray[Any]:
    """For each of several rising tests the first of 2^bits words that passes; all are found at once."""
    low, high = np.full(count, -1, dtype=object), np.full(count, 2**bits - 1, dtype=object)
    for _ in range(bits):
        middle = (low + high) // 2
        beyond = is_beyond(middle.astype(np.uint64))
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return np.asarray(high)


@dataclass(frozen=True, slots=True)
class Numbers:
    """How likely candidates of one column are by their length, how likely longer ones, and a word for each length."""

    chances: NDArray[np.float64]
    beyond: float
    words: Words


def _numbers(lengths: Callable[[Words], Ints]) -> Numbers:
    reach = np.arange(FURTHEST + 1)
    edges = _edges(lambda digits: lengths(digits << np.uint64(64 - DIGITS)) <= reach, len(reach), DIGITS)
    above = np.append(2**DIGITS, edges[:-1])
    chances = ((above - edges) / 2**DIGITS).astype(np.float64)
    middles = ((above + edges) // 2).astype(np.uint64)
    return Numbers(chances, float(edges[-1] / 2**DIGITS), middles << np.uint64(64 - DIGITS))


def attack_laws() -> Iterator[Finding]:
    """The exact laws of both devices and of a histogram."""
    for name, (law, readings, claimed) in LAWS.items():
        first, second = (law(reading, Fraction(1)) for reading in readings)
        yield audit_law(first, second, claimed=claimed, name=f"{name}, by law")
    yield audit_law(*(_histogram(bins, Fraction(1)) for bins in _BINS), claimed=Loss("2"), name="histogram, by law")
    for name, (law, readings, claimed) in LAWS.items():
        first, second = (law(reading, SHORT) for reading in readings)
        yield audit_law(first, second, claimed=claimed, name=f"broken: a tenth short, {name}", expected=True)
    short, name = (_histogram(bins, SHORT) for bins in _BINS), "broken: a tenth short, histogram"
    yield audit_law(*short, claimed=Loss("2"), name=name, expected=True)


# Columns


def _columns_law(reading: Reading, more: Fraction) -> Law:
    """The law of both columns together: a draw that both columns share shows in it."""

    def perturb(*batches: Words) -> tuple[Ints, int]:
        noise, places = _WrittenWords(*batches), np.tile(reading, (len(batches[0]), 1))
        found = perturbation.columns(places, ranges=[RANGE] * 2, epsilons=[2 * more] * 2, step=STEP, noise=noise)  # type: ignore[arg-type]
        return found, noise.asked

    def lengths(words: Words) -> Ints:
        return np.abs(perturb(words, words)[0][:, 0] - reading[0])

    numbers, every = _numbers(lengths), product(range(FURTHEST + 1), (0, 1))
    signed = [(at, sign) for at, sign in every if _is_kept(lengths, numbers, at, sign)]
    both = np.array(list(product(signed, repeat=2)))  # lengths and signs of two numbers
    points, asked = perturb(*(numbers.words[both[:, at, 0]] | both[:, at, 1].astype(np.uint64) for at in (0, 1)))
    weights = numbers.chances[both[:, :, 0]]
    weights = weights.prod(axis=1) if asked > 1 else weights[:, 0] / len(signed)
    return _normalise(points, weights, 2 * numbers.beyond)


def _is_kept(lengths: Callable[[Words], Ints], numbers: Numbers, at: int, sign: int) -> bool:
    """Whether a candidate of this length and sign is a point, or passed over for the one behind it."""
    return int(lengths(np.array([numbers.words[at] | np.uint64(sign)]))[0]) == at


def _normalise(points: Ints, weights: NDArray[np.float64], beyond: float) -> Law:
    law: dict[Any, float] = {}
    for point, weight in zip(map(tuple, points.tolist()), weights.tolist(), strict=True):
        law[point] = law.get(point, 0.0) + weight
    whole = sum(law.values())
    return PartialLaw({point: weight / (whole + beyond) for point, weight in law.items()}, beyond / whole)


# The plane


def _planar_law(reading: Reading, more: Fraction) -> Law:
    """Candidates of four signs, each with the coin that keeps it."""

    def perturb(rows: Words) -> Ints:
        places = np.tile(reading, (len(rows), 1))
        noise: Any = _WrittenWords(rows)
        return perturbation.planar(places, diameter=RANGE, epsilon=2 * more, step=STEP, noise=noise) - reading

    def lengths(words: Words) -> Ints:
        rows = np.zeros((len(words), 3), dtype=np.uint64)  # a coin of 0 keeps every candidate
        rows[:, 0], rows[:, 1] = words, 2**64 - 2
        return perturb(rows)[:, 0]

    numbers = _numbers(lengths)
    places = np.array(list(product(range(FURTHEST + 1), repeat=2)))
    found: list[Ints] = []
    weights: list[NDArray[np.float64]] = []
    for signs in product((0, 1), repeat=2):
        words = numbers.words[places] | np.array(signs, dtype=np.uint64)
        points = places * (1 - 2 * np.array(signs))

        def is_lost(coins: Words, words: Words = words, points: Ints = points) -> NDArray[np.bool_]:
            seen = {tuple(point) for point in perturb(np.column_stack([words, coins << np.uint64(64 - COIN)])).tolist()}
            return np.array([tuple(point) not in seen for point in points.tolist()])

        kept = (_edges(is_lost, len(places), COIN) / 2**COIN).astype(np.float64)
        found.append(points)
        weights.append(kept * numbers.chances[places].prod(axis=1) / 4)
    return _normalise(np.concatenate(found) + reading, np.concatenate(weights), 2 * numbers.beyond)


def _code(points: Ints) -> Ints:
    return np.asarray(points @ np.array([10**6, 1]))


# A histogram


_BINS: Final = (1, 0), (0, 1)


def _histogram(bins: tuple[int, int], more: Fraction) -> Law:
    """On which side of where they differ the numbers of two bins are, with one server's noise."""
    shares = np.array(bins, dtype=np.uint32)

    def sides(noise: Any) -> tuple[bool, bool]:
        left, right = threshold.noisy(shares, 2 * more, noise).view(np.int32).tolist()
        return left >= 1, right >= 1

    return law_of(sides)


LAWS: Final[dict[str, tuple[Callable[[Reading, Fraction], Law], tuple[Reading, Reading], Loss]]] = {
    "columns": (_columns_law, ((0, 0), (2, 2)), Loss("4")),
    "planar": (_planar_law, ((0, 0), (2, 0)), Loss("2")),
    "planar, across": (_planar_law, ((0, 0), (1, 1)), Loss("1.4142136")),
}
