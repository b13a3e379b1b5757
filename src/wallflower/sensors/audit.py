"""Attacks on sensors, which `wallflower audit sensors` runs: sound parts must hold, broken ones must be caught.

Devices are attacked in three ways. *Laws*: the law of a device's noise is read off the sampler itself, by counting
which words lead to which point. A word is a sign and 63 digits, and the larger the digits the smaller the number. The
words at which numbers change are found by bisection, for all of them at once, by letting the device perturb readings
with scripted words. In the plane a third word is the coin that accepts a candidate, and its edge is found the same way.
Nothing is estimated, and what lies far out is the rest. *Samples*: real noise is tested by the likelihood ratio of that
law, the most powerful statistic. *Tiny worlds*: the noise scale is checked on every pair of a few readings, and every
comparison of small scores is made. Keys are attacked by their bytes, which must look the same for every score.

Broken variants live here, are named broken, and cannot be reached by code that sends a reading.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.audit import Attack, Finding, Sampler, Way, World, audit, audit_bound, audit_exact
from wallflower.audit.laws import Law, PartialLaw, audit_law, law_of
from wallflower.machine.heavy import scipy_special as _special
from wallflower.noise import Noise, SystemNoise, system_noise
from wallflower.privacy import Loss
from wallflower.sensors import comparison, perturbation, threshold
from wallflower.sensors.comparison import Keys

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]
Reading = tuple[int, ...]  # in steps
Pair = tuple[Reading, Reading]
GridPoint = tuple[int, int]

TRIALS, QUICK_TRIALS, QUICK_HISTOGRAM_TRIALS = 200_000, 100_000, 20_000
VIEWS, QUICK_VIEWS = 20_000, 6_000
STEP: Final = Fraction(1, 8)
RANGE: Final = Fraction(10)  # of usual readings, in each of two columns
WIDTH: Final = 3 * RANGE  # of the box
SPAN: Final = int(RANGE / STEP)
BITS: Final = 8
ALARM_P_VALUE: Final = 1e-12  # below it, bytes count as different
DIAGONAL: Final = Fraction(SPAN * 2**0.5 * 1.000001) * STEP
LENGTH_BITS, COIN_BITS = 44, 30  # bits up to which the edges of a number and of a coin are found: off by 1e-13 and 1e-9
MAX_LENGTH: Final = 18  # steps from the reading: how far the law is followed
FAR_WORD: Final = 2**43 + 2**20  # a word for a point in the plane that is further away, and kept by such a coin
LAW_STEP, LAW_RANGE = Fraction(5), Fraction(10)  # a range is two steps, and at ε = 2 noise has a scale of one
SHORTFALL: Final = Fraction(10, 9)
WORLD_STEP, WORLD_RANGE, WORLD_EPSILON = Fraction(1, 8), Fraction(10), Fraction(1)
WORLD_SPAN: Final = int(WORLD_RANGE / WORLD_STEP)
WORLD: Final = World(tuple((float(x), float(y)) for x, y in product((0, WORLD_SPAN // 2, WORLD_SPAN), repeat=2)), 1)
WORLD_BITS: Final = 4
WORLD_DIAGONAL: Final = Fraction(math.isqrt(int(2 * WORLD_RANGE**2) * 10**12) + 1, 10**6)


def findings(*, quick: bool) -> Iterator[Finding]:
    """Run every attack, mechanism by mechanism: what must hold, then what must be caught."""
    for attack in ATTACKS.values():
        yield from attack(quick)


def _attack_devices(quick: bool) -> Iterator[Finding]:
    trials = QUICK_TRIALS if quick else TRIALS
    for name, (device, pair, claimed) in SOUND.items():
        yield _attack_device(name, device, pair, claimed, trials)
    for name, (device, pair, claimed) in BROKEN.items():
        yield _attack_device(f"broken: {name}", device, pair, claimed, trials, expected=True)
    yield _attack_retry(trials)


def _attack_keys(quick: bool) -> Iterator[Finding]:
    trials, views = (QUICK_TRIALS, QUICK_VIEWS) if quick else (TRIALS, VIEWS)
    yield from _sound_keys(trials, views)
    yield from _broken_keys(trials, views)


def _attack_histograms(quick: bool) -> Iterator[Finding]:
    trials = QUICK_HISTOGRAM_TRIALS if quick else TRIALS
    yield _histogram("histogram with one server's noise", "1", trials)
    yield _histogram("broken: noise for one bin, where a reading moves two", "2", trials, expected=True)


# Devices


def _as_it_is(points: Ints) -> Ints:
    return points


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """How readings, in steps, are prepared and perturbed; `norm` is the norm in the law of the noise."""

    prepare: Callable[[Ints], Ints] = _as_it_is
    perturb: Callable[[Ints], Ints]
    norm: int

    def ratios(self, reading: Reading, pair: Pair) -> Sampler:
        """Sample how much nearer a perturbed reading is to the first of a pair than to the second, in steps."""
        ends = [self.prepare(np.array([end])) for end in pair]

        def sample(size: int) -> Floats:
            sent = self.perturb(self.prepare(np.tile(reading, (size, 1))))
            near, far = (np.linalg.norm(sent - end, ord=self.norm, axis=1) for end in ends)
            return np.asarray(np.round(far - near, 6))

        return sample


def columns(column_epsilon: str = "1/2", **more: Any) -> Device:
    """Return a device with noise in every column, at this ε each."""

    def perturb(points: Ints) -> Ints:
        count = points.shape[1]
        return perturbation.add_column_noise(
            points, ranges=[RANGE] * count, epsilons=[column_epsilon] * count, step=STEP, noise=system_noise()
        )

    return Device(perturb=perturb, norm=1, **more)


def planar(diameter: Fraction = RANGE, epsilon: str = "1") -> Device:
    def perturb(points: Ints) -> Ints:
        return perturbation.add_planar_noise(
            points, diameter=diameter, epsilon=epsilon, step=STEP, noise=system_noise()
        )

    return Device(perturb=perturb, norm=2)


def clip_to_box(points: Ints) -> Ints:
    half = float(WIDTH / 2)
    return perturbation.clip(
        points * float(STEP), mean=[0.0] * 2, deviation=[1.0] * 2, low=[-half] * 2, high=[half] * 2, step=STEP
    )


def own_scale(points: Ints) -> Ints:
    """BROKEN: a batch of one column is scaled by its own mean and deviation, so that one reading moves all."""
    centred = points - points.mean(axis=1, keepdims=True)
    scaled = centred / points.std(axis=1, keepdims=True) * np.std(BATCHES[0])
    return np.asarray(np.floor(scaled + 0.5).astype(np.int64))


SIDES: Final[Pair] = (-SPAN // 2, 0), (SPAN // 2, 0)
CORNERS: Final[Pair] = (0, 0), (SPAN, SPAN)
EXTREMES: Final[Pair] = (-9 * SPAN, 9 * SPAN), (9 * SPAN, -9 * SPAN)
HALF_RANGE: Final[Pair] = (0, 0), (3 * SPAN // 10, 4 * SPAN // 10)  # half a range apart
BATCHES: Final[Pair] = (0, 0, 0, 5 * SPAN // 4), (0, 0, 0, -SPAN // 4)  # the last differs by 3/2 of a range

SOUND: Final[dict[str, tuple[Device, Pair, str]]] = {
    "columns, two normal readings": (columns(), CORNERS, "1"),
    "columns, one column differs": (columns(), SIDES, "1/2"),
    "columns, extremes in the box": (columns(prepare=clip_to_box), EXTREMES, "3"),
    "columns, scaled by public numbers": (columns(), BATCHES, "3/4"),
    "planar, two normal readings": (planar(), SIDES, "1"),
    "planar, half as far": (planar(), HALF_RANGE, "1/2"),
    "planar, any two in both ranges": (planar(DIAGONAL), CORNERS, "1"),
}
BROKEN: Final[dict[str, tuple[Device, Pair, str]]] = {
    "half the noise, columns": (columns("1"), CORNERS, "1"),
    "half the noise, planar": (planar(epsilon="2"), SIDES, "1"),
    "two columns sold at the ε of one": (columns(), CORNERS, "1/2"),
    "a round diameter for square ranges": (planar(), CORNERS, "1"),
    "no box": (columns("1/4"), EXTREMES, "3/2"),
    "scaled by its own deviation": (columns(prepare=own_scale), BATCHES, "3/4"),
}


def _attack_device(name: str, device: Device, pair: Pair, claimed: str, trials: int, **more: Any) -> Finding:
    first, second = (device.ratios(reading, pair) for reading in pair)
    return audit(first, second, claimed=Loss(claimed), trials=trials, name=name, **more)


def _attack_retry(trials: int) -> Finding:
    """BROKEN: a retry draws again, and both perturbed readings together reveal more."""

    def both(reading: Reading) -> Sampler:
        sample = planar().ratios(reading, SIDES)
        return lambda size: sample(size) + sample(size)

    name = "broken: noise drawn again for a retry"
    return audit(both(SIDES[0]), both(SIDES[1]), claimed=Loss("1"), trials=trials, name=name, expected=True)


# Laws


class _ScriptedWords:
    """Noise that returns scripted batches of words, padded with words for points far away."""

    def __init__(self, *batches: Words) -> None:
        self.batches, self.calls = batches, 0

    def words(self, size: int) -> Words:
        words = np.full(size, FAR_WORD, dtype=np.uint64)
        if self.calls < len(self.batches):
            batch = self.batches[self.calls].ravel()
            words[: len(batch)] = batch
        self.calls += 1
        return words

    def below(self, bound: int) -> int:
        """Return more digits, if the first are next to an edge."""
        return bound // 2


def _edges(is_beyond: Callable[[Words], NDArray[np.bool_]], count: int, bits: int) -> NDArray[Any]:
    """Return the first of 2^bits words that passes each of several rising tests; all by one bisection."""
    low, high = np.full(count, -1, dtype=object), np.full(count, 2**bits - 1, dtype=object)
    for _ in range(bits):
        middle = (low + high) // 2
        beyond = is_beyond(middle.astype(np.uint64))
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return np.asarray(high)


@dataclass(frozen=True, slots=True)
class Numbers:
    """The probability of each length of a candidate of one column, of longer ones, and a word for each length."""

    chances: NDArray[np.float64]
    beyond: float
    words: Words


def _numbers(lengths: Callable[[Words], Ints]) -> Numbers:
    reach = np.arange(MAX_LENGTH + 1)
    edges = _edges(lambda digits: lengths(digits << np.uint64(64 - LENGTH_BITS)) <= reach, len(reach), LENGTH_BITS)
    above = np.append(2**LENGTH_BITS, edges[:-1])
    chances = ((above - edges) / 2**LENGTH_BITS).astype(np.float64)
    middles = ((above + edges) // 2).astype(np.uint64)
    return Numbers(chances, float(edges[-1] / 2**LENGTH_BITS), middles << np.uint64(64 - LENGTH_BITS))


def attack_laws() -> Iterator[Finding]:
    """Check the exact laws of both devices and of a histogram."""
    for name, (law, readings, claimed) in LAWS.items():
        first, second = (law(reading, Fraction(1)) for reading in readings)
        yield audit_law(first, second, claimed=claimed, name=f"{name}, by law")
    yield audit_law(
        *(_histogram_law(bins, Fraction(1)) for bins in _BIN_COUNTS), claimed=Loss("2"), name="histogram, by law"
    )
    for name, (law, readings, claimed) in LAWS.items():
        first, second = (law(reading, SHORTFALL) for reading in readings)
        yield audit_law(first, second, claimed=claimed, name=f"broken: a tenth short, {name}", expected=True)
    short, name = (_histogram_law(bins, SHORTFALL) for bins in _BIN_COUNTS), "broken: a tenth short, histogram"
    yield audit_law(*short, claimed=Loss("2"), name=name, expected=True)


def _columns_law(reading: GridPoint, more: Fraction) -> Law:
    """Return the law of both columns together: a draw that both columns share shows in it."""

    def perturb(*batches: Words) -> tuple[Ints, int]:
        noise, points = _ScriptedWords(*batches), np.tile(reading, (len(batches[0]), 1))
        perturbed = perturbation.add_column_noise(
            points,
            ranges=[LAW_RANGE] * 2,
            epsilons=[2 * more] * 2,
            step=LAW_STEP,
            noise=noise,  # type: ignore[arg-type]
        )
        return perturbed, noise.calls

    def lengths(words: Words) -> Ints:
        return np.abs(perturb(words, words)[0][:, 0] - reading[0])

    numbers, every = _numbers(lengths), product(range(MAX_LENGTH + 1), (0, 1))
    signed = [(at, sign) for at, sign in every if _is_kept(lengths, numbers, at, sign)]
    both = np.array(list(product(signed, repeat=2)))  # lengths and signs of two numbers
    points, calls = perturb(*(numbers.words[both[:, at, 0]] | both[:, at, 1].astype(np.uint64) for at in (0, 1)))
    weights = numbers.chances[both[:, :, 0]]
    weights = weights.prod(axis=1) if calls > 1 else weights[:, 0] / len(signed)
    return _normalise(points, weights, 2 * numbers.beyond)


def _is_kept(lengths: Callable[[Words], Ints], numbers: Numbers, at: int, sign: int) -> bool:
    """Whether a candidate of this length and sign is accepted."""
    return int(lengths(np.array([numbers.words[at] | np.uint64(sign)]))[0]) == at


def _normalise(points: Ints, weights: NDArray[np.float64], beyond: float) -> Law:
    law: dict[Any, float] = {}
    for point, weight in zip(map(tuple, points.tolist()), weights.tolist(), strict=True):
        law[point] = law.get(point, 0.0) + weight
    whole = sum(law.values())
    return PartialLaw({point: weight / (whole + beyond) for point, weight in law.items()}, beyond / whole)


def _planar_law(reading: GridPoint, more: Fraction) -> Law:
    """Return the law of candidates of four signs, each with the coin that accepts it."""

    def perturb(rows: Words) -> Ints:
        places = np.tile(reading, (len(rows), 1))
        noise: Any = _ScriptedWords(rows)
        return (
            perturbation.add_planar_noise(places, diameter=LAW_RANGE, epsilon=2 * more, step=LAW_STEP, noise=noise)
            - reading
        )

    def lengths(words: Words) -> Ints:
        rows = np.zeros((len(words), 3), dtype=np.uint64)  # a coin of 0 keeps every candidate
        rows[:, 0], rows[:, 1] = words, 2**64 - 2
        return perturb(rows)[:, 0]

    numbers = _numbers(lengths)
    places = np.array(list(product(range(MAX_LENGTH + 1), repeat=2)))
    found: list[Ints] = []
    weights: list[NDArray[np.float64]] = []
    for signs in product((0, 1), repeat=2):
        words = numbers.words[places] | np.array(signs, dtype=np.uint64)
        points = places * (1 - 2 * np.array(signs))

        def is_lost(coins: Words, words: Words = words, points: Ints = points) -> NDArray[np.bool_]:
            seen = {
                tuple(point) for point in perturb(np.column_stack([words, coins << np.uint64(64 - COIN_BITS)])).tolist()
            }
            return np.array([tuple(point) not in seen for point in points.tolist()])

        kept = (_edges(is_lost, len(places), COIN_BITS) / 2**COIN_BITS).astype(np.float64)
        found.append(points)
        weights.append(kept * numbers.chances[places].prod(axis=1) / 4)
    return _normalise(np.concatenate(found) + reading, np.concatenate(weights), 2 * numbers.beyond)


def _code(points: Ints) -> Ints:
    return np.asarray(points @ np.array([10**6, 1]))


_BIN_COUNTS: Final = (1, 0), (0, 1)


def _histogram_law(bins: tuple[int, int], more: Fraction) -> Law:
    """Return the law of whether each of two noisy bins is at least 1, with one server's noise."""
    shares = np.array(bins, dtype=np.uint32)

    def sides(noise: Any) -> tuple[bool, bool]:
        left, right = threshold.add_noise(shares, 2 * more, noise).view(np.int32).tolist()
        return left >= 1, right >= 1

    return law_of(sides)


LAWS: Final[dict[str, tuple[Callable[[GridPoint, Fraction], Law], tuple[GridPoint, GridPoint], Loss]]] = {
    "columns": (_columns_law, ((0, 0), (2, 2)), Loss("4")),
    "planar": (_planar_law, ((0, 0), (2, 0)), Loss("2")),
    "planar, across": (_planar_law, ((0, 0), (1, 1)), Loss("1.4142136")),
}


# Tiny worlds


def attack_worlds() -> Iterator[Finding]:
    for name, exponents in {"columns": _column_exponents, "planar": _planar_exponents}.items():
        yield audit_bound(
            lambda _: float(WORLD_EPSILON), exponents(Fraction(1)), WORLD, name=f"{name}: the law of noise"
        )
        broken = f"broken: {name}, noise a tenth short"
        yield audit_bound(lambda _: float(WORLD_EPSILON), exponents(Fraction(9, 10)), WORLD, name=broken, expected=True)
    scores = range(2 ** (WORLD_BITS - 1))
    cases = list(product(scores, scores))
    yield audit_exact(_compare, lambda case: case[0] >= case[1], cases, name="comparison of every score")
    name = "broken: comparison, the threshold itself left out"
    yield audit_exact(_compare, lambda case: case[0] > case[1], cases, name=name, expected=True)
    yield audit_exact(_distance, lambda row: math.isqrt(sum(x * x for x in row)), cases, name="distances")


def _column_exponents(share: Fraction) -> Callable[[Floats], Any]:
    """Return the log-likelihood of outcomes around a reading: between two readings it differs by at most ε.

    Noise with P(z) proportional to e^(-|z|/scale) in every column, at half of ε each.
    """
    scale = float(share * perturbation.noise_scale(WORLD_RANGE, WORLD_EPSILON / 2, WORLD_STEP))
    return lambda reading: [float(np.abs(reading[0] - place).sum()) / scale for place in _outcomes()]


def _planar_exponents(share: Fraction) -> Callable[[Floats], Any]:
    scale = float(share * perturbation.noise_scale(WORLD_DIAGONAL, WORLD_EPSILON, WORLD_STEP))
    return lambda reading: [float(np.linalg.norm(reading[0] - place)) / scale for place in _outcomes()]


def _outcomes() -> list[Floats]:
    return [np.array(place) for place in product((-WORLD_SPAN, 0, WORLD_SPAN, 2 * WORLD_SPAN), repeat=2)]


def _compare(case: tuple[int, int]) -> bool:
    score, level = case
    pair = comparison.deal(np.array([score]), WORLD_BITS)
    shares = [int(comparison.evaluate(party, keys, level)[0]) for party, keys in enumerate(pair)]
    return sum(shares) % 2**32 == 1


def _distance(row: tuple[int, int]) -> int:
    return int(perturbation.distances([list(row)], [0, 0])[0])


# Keys


class _ShortMasks(SystemNoise):
    """BROKEN: masks one bit too short, so that a masked score reveals the score."""

    def words(self, size: int) -> NDArray[np.uint64]:
        return super().words(size) & ~np.uint64(1 << (BITS - 1))


class _StuckMasks(SystemNoise):
    """BROKEN: two readings under one mask."""

    def words(self, size: int) -> NDArray[np.uint64]:
        return np.repeat(super().words(size // 2), 2)


def view(keys: Keys) -> NDArray[np.uint8]:
    """Return what a server holds of each reading, as a row of bytes."""
    parts = [keys.masked, keys.roots, *keys.seeds, *keys.values, keys.steps, keys.offsets, keys.tags]
    return np.hstack([np.ascontiguousarray(part).view(np.uint8).reshape(keys.count, -1) for part in parts])


def unlikeness(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    """Return a bound on the p-value of the most different byte of two samples, over all bytes."""
    least = 1.0
    for a, b in zip(one.T, other.T, strict=True):
        counts = np.array([np.bincount(a, minlength=256), np.bincount(b, minlength=256)])
        counts = counts[:, counts.sum(axis=0) > 0]
        expected = counts.sum(axis=0) / 2
        statistic = float(((counts - expected) ** 2 / expected).sum())
        least = min(least, float(_special.chdtrc(max(1, counts.shape[1] - 1), statistic)))
    return least * len(one.T)


def _same_bytes(name: str, party: int, views: int, *, noise: Noise | None = None, expected: bool = False) -> Finding:
    """Whether one server's keys for the smallest and the largest score can be distinguished, byte by byte."""
    low, high = (
        view(comparison.deal(np.full(views, score), BITS, tags=np.full(views, tag), noise=noise)[party])
        for score, tag in ((0, 1), (2 ** (BITS - 1) - 1, 2**32 - 1))
    )
    chance = unlikeness(low, high)
    text = f"the most different of {low.shape[1]} bytes has p = {chance:.2g} among all, alarm below {ALARM_P_VALUE:g}"
    caught = chance < ALARM_P_VALUE
    return Finding(name=name, way=Way.OUTPUTS, claimed=None, lower=None, caught=caught, text=text, expected=expected)


def _attack_masks(
    name: str, scores: tuple[int, int], trials: int, *, noise: Noise | None = None, **more: Any
) -> Finding:
    """Whether masked scores reveal anything of the score; the claim is ε = 0."""

    def sampler(score: int) -> Sampler:
        return lambda size: comparison.deal(np.full(size, score), BITS, noise=noise)[0].masked.astype(np.int64)

    first, second = (sampler(score) for score in scores)
    return audit(first, second, claimed=Loss("0"), trials=trials // 4, name=name, **more)


def _pairs(trials: int, noise: Noise) -> Finding:
    def sampler(score: int) -> Sampler:
        def sample(size: int) -> Ints:
            masked = comparison.deal(np.tile([0, score], size), BITS, noise=noise)[0].masked.astype(np.int64)
            return (masked[1::2] - masked[::2]) % 2**BITS

        return sample

    name = "broken: one mask for two readings"
    return audit(sampler(1), sampler(9), claimed=Loss("0"), trials=trials // 8, name=name, expected=True)


def _sound_keys(trials: int, views: int) -> Iterator[Finding]:
    yield _attack_masks("masked scores", (0, 2 ** (BITS - 1) - 1), trials)
    yield _same_bytes("the analyst's key", 0, views)
    yield _same_bytes("the correction server's key", 1, views)


def _broken_keys(trials: int, views: int) -> Iterator[Finding]:
    yield _attack_masks(
        "broken: a mask one bit short", (0, 2 ** (BITS - 1) - 1), trials, noise=_ShortMasks(), expected=True
    )
    name = "broken: a mask one bit short, by bytes"
    yield _same_bytes(name, 0, views, noise=_ShortMasks(), expected=True)
    yield _pairs(trials, _StuckMasks())


# A threshold


def _histogram(name: str, spent: str, trials: int, **more: Any) -> Finding:
    """Attack a histogram in which one reading changes its bin, when one server's noise is known."""
    bins = ((1, 0), (0, 1))

    def sampler(counts: tuple[int, int]) -> Sampler:
        def sample(size: int) -> Ints:
            shares = np.tile(np.array(counts, dtype=np.uint32), size)
            drawn = threshold.add_noise(shares, spent, system_noise()).view(np.int32).astype(np.int64).reshape(size, 2)
            near, far = (np.abs(drawn - end).sum(axis=1) for end in bins)
            return np.asarray(far - near)

        return sample

    return audit(sampler(bins[0]), sampler(bins[1]), claimed=Loss("1"), trials=trials, name=name, **more)


ATTACKS: Final[dict[str, Attack]] = {
    "laws": lambda quick: attack_laws(),
    "devices": _attack_devices,
    "worlds": lambda quick: attack_worlds(),
    "keys": _attack_keys,
    "histograms": _attack_histograms,
}
