"""What to expect of a chart: how often it raises a false alarm, and how long a shift goes unnoticed.

Everything follows from public facts: observations of a stated Gaussian, clipped to the limits, with the noise of the
chart. For charts of noisy sums the law of a block is a convolution, and the chart a Markov chain on a grid. A chart
with a bounded memory has no such chain, so its law is simulated with synthetic observations. Amounts are in standard
deviations of the statistic. Proof: proof.md, label (F).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.machine.heavy import scipy_special as _special
from wallflower.synthetic import gaussians

Floats = NDArray[np.float64]

STATES: Final = 60  # of the Markov chain
CELLS_PER_WIDTH: Final = 16  # at least, of the grid on which laws are convolved
CELLS_PER_SPREAD: Final = 40
MAX_CELLS: Final = 256
SMOOTH_SPREADS: Final = 4.0  # in widths of a term: a sum that deviates by more is taken for Gaussian
SMOOTH_SCALES: Final = 16.0
SPREAD_REACH: Final = 9.0
NOISE_REACH: Final = 20  # scales beyond which noise is not counted
PHASES: Final = 8  # of a shift within a block, at most
LOOSE_LIMIT: Final = 4.0  # standard deviations: limits so far out clip nothing
MAX_THRESHOLD: Final = 1e7
NULL_LENGTH: Final = 20_000  # synthetic observations without a shift
SHIFTED_RUNS: Final = 300
SEARCH_STEPS: Final = 24
RUN_LENGTH_ERROR: Final = 1e-3  # relative
QUANTILES: Final = 16  # of the noise on a threshold
SEED: Final = 20261118


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a chart comes to.

    threshold   of the chart, in standard deviations
    run_length  the mean number of observations from one false alarm to the next
    delay       the mean number of observations from a shift to the alarm
    """

    threshold: float
    run_length: float
    delay: float


@dataclass(frozen=True, kw_only=True)
class BlockForecast:
    """The law of one chart of noisy sums, for a mean that rises by `size`.

    limits  where an observation is clipped
    drift   per block
    scale   of the Laplace noise on a block; 0: none
    """

    size: float
    limits: tuple[float, float]
    block: int
    drift: float
    scale: float

    def at_run_length(self, wanted: float) -> Outlook:
        """Return the outlook at the threshold whose false alarms are this far apart on average."""
        low, high = 0.0, max(1e-3, math.sqrt(self.block + 2 * self.scale**2))
        least, most = 0.0, math.log(self.run_length(high))
        while most < math.log(wanted) and high < MAX_THRESHOLD:
            low, high, least, most = high, 2 * high, most, math.log(self.run_length(2 * high))
        for step in range(SEARCH_STEPS):  # the logarithm of the run length is nearly a line
            share = (math.log(wanted) - least) / (most - least) if most > least and step % 3 else 0.5
            middle = low + (high - low) * min(0.95, max(0.05, share))
            value = math.log(self.run_length(middle))
            if value < math.log(wanted):
                low, least = middle, value
            else:
                high, most = middle, value
            if abs(value - math.log(wanted)) < RUN_LENGTH_ERROR:
                high = middle
                break
        return Outlook(threshold=high, run_length=self.run_length(high), delay=self.delay(high))

    def run_length(self, threshold: float) -> float:
        """Return the mean number of observations until a false alarm."""
        return self.block * float(_waiting_times(self._chain(threshold, 0))[0])

    def delay(self, threshold: float) -> float:
        """Return the mean delay of an alarm after a shift at any observation, long after the chart began."""
        before, after = self._chain(threshold, 0), self._chain(threshold, self.block)
        usual, waiting = _long_run(before), _waiting_times(after)
        phases = np.unique(np.linspace(1, self.block, min(self.block, PHASES)).round().astype(int)).tolist()
        delays = [phase + self.block * float(usual @ self._chain(threshold, phase) @ waiting) for phase in phases]
        return float(np.mean(delays))

    def _chain(self, threshold: float, shifted: int) -> Floats:
        """The chances of going from one state of the chart to another where `shifted` observations of a block are
        shifted; what is missing in a row is an alarm."""
        step = threshold / (STATES - 0.5)
        edges, below = self._law(shifted)
        moves = (np.arange(-STATES, STATES + 1) + 0.5) * step + self.drift
        chances = np.interp(moves, edges, below, left=0.0, right=1.0)
        here, there = np.arange(STATES)[:, None], np.arange(1, STATES)[None, :]
        distance = there - here + STATES
        chain = np.empty((STATES, STATES))
        chain[:, 1:] = chances[distance] - chances[distance - 1]
        chain[:, 0] = chances[STATES - np.arange(STATES)]
        return chain

    def _law(self, shifted: int) -> tuple[Floats, Floats]:
        return _law_of_block(self.size, self.limits, self.block, self.scale, shifted)


@lru_cache(maxsize=256)
def _law_of_block(
    size: float, limits: tuple[float, float], block: int, scale: float, shifted: int
) -> tuple[Floats, Floats]:
    """The ends of cells, and P(noisy sum below each), of a block with `shifted` shifted observations."""
    width = limits[1] - limits[0]
    parts = ((block - shifted, 0.0), (shifted, size))
    mean = sum(count * _clipped_mean(at, limits) for count, at in parts)
    spread = math.sqrt(sum(count * _clipped_variance(at, limits) for count, at in parts))
    total = math.hypot(spread, math.sqrt(2) * scale)
    # The sum is nearly a Gaussian, or it is little beside the noise.
    if spread > SMOOTH_SPREADS * width or scale > SMOOTH_SCALES * width:
        cell = total / CELLS_PER_SPREAD
        reach = math.ceil(SPREAD_REACH * spread / cell) + 1
        masses: Floats = np.diff(_special.ndtr((np.arange(-reach, reach + 2) - 0.5) * cell / max(spread, 1e-9 * cell)))
        first = mean - reach * cell
    else:
        cells = max(CELLS_PER_WIDTH, min(MAX_CELLS, round(width * CELLS_PER_SPREAD / total)))
        cell, first = width / cells, block * limits[0]
        inner = limits[0] + cell * (np.arange(cells) + 0.5)
        laws = [np.diff(_special.ndtr(inner - at), prepend=0.0, append=1.0) for _, at in parts]
        length = 1 << (block * cells).bit_length()
        spectra = (np.fft.rfft(law, length) ** count for law, (count, _) in zip(laws, parts, strict=True))
        masses = np.maximum(np.fft.irfft(math.prod(spectra), length)[: block * cells + 1], 0.0)
    noise_reach = math.ceil(NOISE_REACH * scale / cell)
    if noise_reach:
        noise = np.exp(-np.abs(np.arange(-noise_reach, noise_reach + 1)) * cell / scale)
        masses = np.convolve(masses, noise / noise.sum()).astype(np.float64)
    ends = first + (np.arange(len(masses)) - noise_reach + 0.5) * cell
    return np.asarray(ends, dtype=np.float64), np.asarray(np.cumsum(masses) / masses.sum())


def _clipped_variance(mean: float, limits: tuple[float, float]) -> float:
    """The variance of a clipped Gaussian, by its definition on a fine grid."""
    at = np.linspace(limits[0], limits[1], 257)
    below = _special.ndtr(at - mean)
    masses = np.diff(below, prepend=0.0, append=1.0)
    places = np.concatenate([[limits[0]], (at[1:] + at[:-1]) / 2, [limits[1]]])
    middle = float(places @ masses)
    return float((places - middle) ** 2 @ masses)


def _waiting_times(chain: Floats) -> Floats:
    """The mean number of blocks until an alarm, from each state."""
    waiting = np.linalg.solve(np.eye(len(chain)) - chain, np.ones(len(chain)))
    return np.asarray(np.where(waiting > 0, waiting, np.inf), dtype=np.float64)


def _long_run(chain: Floats) -> Floats:
    """The law of the state where there was no alarm for long."""
    state = np.zeros(len(chain))
    state[0] = 1.0
    for _ in range(400):
        state = state @ chain
        state /= state.sum()
    return state


@lru_cache(maxsize=64)
def exact_outlook(size: float, run_length: float) -> Outlook:
    """Return what the CUSUM without privacy comes to: every observation is looked at, and nothing is clipped."""
    limits = (size / 2 - LOOSE_LIMIT - size, size / 2 + LOOSE_LIMIT + size)
    chart = BlockForecast(size=size, limits=limits, block=1, drift=size / 2, scale=0.0)
    return chart.at_run_length(run_length)


def drift_of(size: float, limits: tuple[float, float]) -> float:
    """Return the middle between the means of a clipped observation without and with the shift."""
    return (_clipped_mean(0.0, limits) + _clipped_mean(size, limits)) / 2


def _clipped_mean(mean: float, limits: tuple[float, float]) -> float:
    low, high = limits[0] - mean, limits[1] - mean
    density = (math.exp(-low * low / 2) - math.exp(-high * high / 2)) / math.sqrt(2 * math.pi)
    below, above = float(_special.ndtr(low)), float(_special.ndtr(-high))
    return mean + density + low * below + high * above


# A bounded memory


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedValues:
    """The values of a chart with a bounded memory where it is tested, on synthetic observations.

    drift  per observation
    """

    size: float
    limits: tuple[float, float]
    drift: float
    signs: tuple[int, ...]
    memory: int
    every: int

    def usual(self) -> Floats:
        """Return the chart without a shift."""
        return _null_values(self)

    def shifted(self) -> Floats:
        """Return the chart at the tests after a shift, in many runs."""
        return _shifted_values(self)

    def of(self, observations: Floats) -> Floats:
        """Return the chart at the end of every window of the last axis that is as long as the memory."""
        clipped = np.clip(observations, *self.limits)
        windows = np.lib.stride_tricks.sliding_window_view(clipped, self.memory, axis=-1)[..., ::-1]
        sums = [np.cumsum(sign * windows - self.drift, axis=-1).max(axis=-1) for sign in self.signs]
        return np.asarray(np.maximum(0.0, np.maximum.reduce(sums)))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedForecast:
    """The law of a chart with a bounded memory, by simulation.

    query_scale      of the one-sided noise on every test
    threshold_scale  of the one-sided noise on the threshold, drawn once
    """

    values: BoundedValues
    query_scale: float
    threshold_scale: float

    def at_run_length(self, wanted: float) -> Outlook:
        """Return the outlook at the threshold by which within this many observations a false alarm is as likely as for
        alarms that come by themselves, this far apart: 1 - 1/e."""
        low, high = -50.0 * self.query_scale, 100.0 * self.query_scale + 10 * self.values.memory
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if self.false_alarm(middle, wanted) > 1 - math.exp(-1) else (low, middle)
        return Outlook(threshold=high, run_length=wanted, delay=self.delay(high))

    def false_alarm(self, threshold: float, within: float) -> float:
        """Return the chance of a false alarm within N observations."""
        rates = [self._chances(self.values.usual(), threshold + shift).mean() for shift in self._shifts()]
        return float(
            np.mean([1 - math.exp(math.log1p(-min(rate, 1 - 1e-12)) * within / self.values.every) for rate in rates])
        )

    def delay(self, threshold: float) -> float:
        """Return the mean delay of an alarm; a shift that lasts and is not noticed for long counts until then."""
        values, every = self.values.shifted(), self.values.every
        passed = np.mean(
            [np.cumprod(1 - self._chances(values, threshold + shift), axis=1) for shift in self._shifts()], axis=0
        )
        first = (every + 1) / 2  # from a shift at any observation to the next test
        return float(np.mean(first + every * passed.sum(axis=1)))

    def _shifts(self) -> Floats:
        """Quantiles of the noise on the threshold."""
        return -self.threshold_scale * np.log1p(-(np.arange(QUANTILES) + 0.5) / QUANTILES)

    def _chances(self, values: Floats, threshold: float) -> Floats:
        return np.asarray(np.exp(-np.maximum(threshold - values, 0.0) / self.query_scale))


@lru_cache(maxsize=16)
def _null_values(chart: BoundedValues) -> Floats:
    path = gaussians((NULL_LENGTH,), SEED)
    starts: Sequence[int] = range(0, NULL_LENGTH - chart.memory - 4096, 4096)
    parts = [chart.of(path[start : start + 4096 + chart.memory]) for start in starts]
    return np.concatenate(parts)[:: chart.every]


@lru_cache(maxsize=16)
def _shifted_values(chart: BoundedValues) -> Floats:
    """The chart at the tests after a shift, in many runs."""
    after = max(64, 8 * chart.memory)
    runs = gaussians((SHIFTED_RUNS, chart.memory + after), SEED + 1)
    runs[:, chart.memory :] += chart.size
    values = chart.of(runs)[:, 1:]
    lag = (chart.every + 1) // 2 - 1
    return values[:, lag :: chart.every]
