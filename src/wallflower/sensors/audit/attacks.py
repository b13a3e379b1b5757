"""Attacks on sensors: what a device and the keys must hold, and broken ones that an audit has to catch.

A device is attacked by the law of its sampler (`laws.py`), and with real noise by the likelihood ratio of that
law, the best statistic there is. A key is attacked by its bytes, which must look the same whatever the score.

The broken ones live here, named broken, and nothing that sends a reading can reach them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.audit import Attack, Finding, Sampler, Way, audit
from wallflower.machine.lazy import Lazy
from wallflower.noise import Noise, SystemNoise, system_noise
from wallflower.privacy import Loss
from wallflower.sensors import comparison, perturbation, threshold
from wallflower.sensors.audit.laws import attack_laws
from wallflower.sensors.audit.worlds import attack_worlds
from wallflower.sensors.comparison import Keys

if TYPE_CHECKING:
    import scipy.special as _special
else:
    _special = Lazy("scipy.special")

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Reading = tuple[int, ...]  # in steps
Pair = tuple[Reading, Reading]

TRIALS, QUICK_TRIALS, HISTOGRAMS = 200_000, 100_000, 20_000
VIEWS, QUICK_VIEWS = 20_000, 6_000
STEP: Final = Fraction(1, 8)
RANGE: Final = Fraction(10)  # of what is normal, in each of two columns
WIDTH: Final = 3 * RANGE  # of the box
SPAN: Final = int(RANGE / STEP)
BITS: Final = 8
ALARM: Final = 1e-12  # how unlikely bytes must be to be called different
DIAGONAL: Final = Fraction(SPAN * 2**0.5 * 1.000001) * STEP


def findings(*, quick: bool) -> Iterator[Finding]:
    """Every attack, mechanism by mechanism: what must hold, then what must be caught."""
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
    trials = HISTOGRAMS if quick else TRIALS
    yield _histogram("histogram with one server's noise", "1", trials)
    yield _histogram("broken: noise for one bin, where a reading moves two", "2", trials, expected=True)


# Devices


def _as_it_is(points: Ints) -> Ints:
    return points


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What is done to readings in steps, before the noise and by it; `norm` is the length that the noise goes by."""

    prepare: Callable[[Ints], Ints] = _as_it_is
    perturb: Callable[[Ints], Ints]
    norm: int

    def ratios(self, reading: Reading, pair: Pair) -> Sampler:
        """How much nearer perturbed copies of a reading are to the first of a pair than to the second, in steps."""
        ends = [self.prepare(np.array([end])) for end in pair]

        def sample(size: int) -> Floats:
            sent = self.perturb(self.prepare(np.tile(reading, (size, 1))))
            near, far = (np.linalg.norm(sent - end, ord=self.norm, axis=1) for end in ends)
            return np.asarray(np.round(far - near, 6))

        return sample


def columns(each: str = "1/2", **more: Any) -> Device:
    """Noise in every column, at this ε each."""

    def perturb(points: Ints) -> Ints:
        count = points.shape[1]
        return perturbation.columns(
            points, ranges=[RANGE] * count, epsilons=[each] * count, step=STEP, noise=system_noise()
        )

    return Device(perturb=perturb, norm=1, **more)


def planar(diameter: Fraction = RANGE, epsilon: str = "1") -> Device:
    def perturb(points: Ints) -> Ints:
        return perturbation.planar(points, diameter=diameter, epsilon=epsilon, step=STEP, noise=system_noise())

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
FAR: Final[Pair] = (-9 * SPAN, 9 * SPAN), (9 * SPAN, -9 * SPAN)
NEAR: Final[Pair] = (0, 0), (3 * SPAN // 10, 4 * SPAN // 10)  # half a range apart
BATCHES: Final[Pair] = (0, 0, 0, 5 * SPAN // 4), (0, 0, 0, -SPAN // 4)  # the last differs by 3/2 of a range

SOUND: Final[dict[str, tuple[Device, Pair, str]]] = {
    "columns, two normal readings": (columns(), CORNERS, "1"),
    "columns, one column differs": (columns(), SIDES, "1/2"),
    "columns, extremes in the box": (columns(prepare=clip_to_box), FAR, "3"),
    "columns, scaled by public numbers": (columns(), BATCHES, "3/4"),
    "planar, two normal readings": (planar(), SIDES, "1"),
    "planar, half as far": (planar(), NEAR, "1/2"),
    "planar, any two in both ranges": (planar(DIAGONAL), CORNERS, "1"),
}
BROKEN: Final[dict[str, tuple[Device, Pair, str]]] = {
    "half the noise, columns": (columns("1"), CORNERS, "1"),
    "half the noise, planar": (planar(epsilon="2"), SIDES, "1"),
    "two columns sold at the ε of one": (columns(), CORNERS, "1/2"),
    "a round diameter for square ranges": (planar(), CORNERS, "1"),
    "no box": (columns("1/4"), FAR, "3/2"),
    "scaled by its own deviation": (columns(prepare=own_scale), BATCHES, "3/4"),
}


def _attack_device(name: str, device: Device, pair: Pair, claimed: str, trials: int, **more: Any) -> Finding:
    first, second = (device.ratios(reading, pair) for reading in pair)
    return audit(first, second, claimed=Loss(claimed), trials=trials, name=name, **more)


def _attack_retry(trials: int) -> Finding:
    """BROKEN: a retry draws again, and who has both perturbed readings knows more."""

    def both(reading: Reading) -> Sampler:
        sample = planar().ratios(reading, SIDES)
        return lambda size: sample(size) + sample(size)

    name = "broken: noise drawn again for a retry"
    return audit(both(SIDES[0]), both(SIDES[1]), claimed=Loss("1"), trials=trials, name=name, expected=True)


# Keys


class _ShortMasks(SystemNoise):
    """BROKEN: masks one bit too short, so that a masked score tells where the score is."""

    def words(self, size: int) -> NDArray[np.uint64]:
        return super().words(size) & ~np.uint64(1 << (BITS - 1))


class _StuckMasks(SystemNoise):
    """BROKEN: two readings under one mask."""

    def words(self, size: int) -> NDArray[np.uint64]:
        return np.repeat(super().words(size // 2), 2)


def view(keys: Keys) -> NDArray[np.uint8]:
    """What a server holds of each reading, as a row of bytes."""
    parts = [keys.masked, keys.roots, *keys.seeds, *keys.values, keys.steps, keys.offsets, keys.tags]
    return np.hstack([np.ascontiguousarray(part).view(np.uint8).reshape(keys.count, -1) for part in parts])


def unlikeness(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    """How likely the most different byte of two samples is, if they come from one law: a bound over all bytes."""
    least = 1.0
    for a, b in zip(one.T, other.T, strict=True):
        counts = np.array([np.bincount(a, minlength=256), np.bincount(b, minlength=256)])
        counts = counts[:, counts.sum(axis=0) > 0]
        expected = counts.sum(axis=0) / 2
        statistic = float(((counts - expected) ** 2 / expected).sum())
        least = min(least, float(_special.chdtrc(max(1, counts.shape[1] - 1), statistic)))
    return least * len(one.T)


def _same_bytes(name: str, party: int, views: int, *, noise: Noise | None = None, expected: bool = False) -> Finding:
    """Whether one server's keys for the smallest and the largest score can be told apart, byte by byte."""
    low, high = (
        view(comparison.deal(np.full(views, score), BITS, tags=np.full(views, tag), noise=noise)[party])
        for score, tag in ((0, 1), (2 ** (BITS - 1) - 1, 2**32 - 1))
    )
    chance = unlikeness(low, high)
    words = f"the most different of {low.shape[1]} bytes has a chance of {chance:.2g} among all, alarm below {ALARM:g}"
    caught = chance < ALARM
    return Finding(name=name, way=Way.OUTPUTS, claimed=None, lower=None, caught=caught, words=words, expected=expected)


def _attack_masks(
    name: str, scores: tuple[int, int], trials: int, *, noise: Noise | None = None, **more: Any
) -> Finding:
    """Whether masked scores tell anything of the score: claimed is nothing at all."""

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
    """One reading moves from one bin to another: what the noise of one server, the other's being known, still hides."""
    bins = ((1, 0), (0, 1))

    def sampler(counts: tuple[int, int]) -> Sampler:
        def sample(size: int) -> Ints:
            shares = np.tile(np.array(counts, dtype=np.uint32), size)
            drawn = threshold.noisy(shares, spent, system_noise()).view(np.int32).astype(np.int64).reshape(size, 2)
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
