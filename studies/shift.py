"""How long a shift goes unnoticed: private charts beside those without privacy.

python -m studies.shift [--quick]

Every chart is set to as many false alarms on synthetic observations, then timed on shifts of one deviation. The sparse
vector is the textbook way to a private CUSUM; it lives here, since no release uses it at level entry.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.noise import system_noise
from wallflower.privacy import Loss
from wallflower.queries.shift import Shift

Floats = NDArray[np.float64]
RUN_LENGTH: Final = 1000
WARM_UP: Final = 200
LONGEST: Final = 800
WIDTH: Final = 6.0  # deviations of an entry within its bounds
Alarm = Callable[[Floats, float], int]  # the first alarm of a stream at a threshold; its length if there is none


def chart_without_privacy(x: Floats, threshold: float) -> int:
    state = 0.0
    for place, value in enumerate(x.tolist()):
        state = max(0.0, state + value - 0.5)
        if state >= threshold:
            return place + 1
    return len(x)


def sparse_vector(epsilon: float, movement: float, every: int, rng: np.random.Generator) -> Alarm:
    """Above-threshold on S_t, with one-sided noise, at half the noise on tests, since all S_t move in one direction."""
    clip = 0.5 if movement > 2 else 2.0
    width = min(movement, 2 * clip)
    threshold_scale, query_scale = 2 * width / epsilon, 2 * width / epsilon

    def first(x: Floats, threshold: float) -> int:
        state, level = 0.0, threshold + rng.exponential(threshold_scale)
        noise = rng.exponential(query_scale, len(x))
        clipped = np.clip(x, 0.5 - clip, 0.5 + clip).tolist()
        for place, value in enumerate(clipped):
            state = max(0.0, state + value - 0.5)
            if (place + 1) % every == 0 and state + noise[place] >= level:
                return place + 1
        return len(x)

    return first


def threshold_of(first: Alarm, rng: np.random.Generator, runs: int) -> float:
    """The threshold by which within a run length a false alarm has the chance 1 - 1/e."""
    streams, low, high = rng.normal(size=(runs, RUN_LENGTH)), 0.0, 200.0
    for _ in range(12):
        middle = (low + high) / 2
        share = np.mean([first(x, middle) < RUN_LENGTH for x in streams])
        low, high = (middle, high) if share > 1 - np.exp(-1) else (low, middle)
    return high


def delay_of(first: Alarm, threshold: float, rng: np.random.Generator, runs: int) -> float:
    delays = []
    for _ in range(runs):
        start = WARM_UP + int(rng.integers(0, 64))
        x = rng.normal(size=start + LONGEST)
        x[start:] += 1.0
        at = first(x, threshold)
        if at > start:
            delays.append(at - start)
    return float(np.mean(delays))


def released(columns: int, rng: np.random.Generator, runs: int, epsilon: str = "1") -> tuple[float, float, float]:
    """The plan, and what the released chart comes to, in runs as above."""
    query = Shift(
        low=-WIDTH / 2,
        high=WIDTH / 2,
        variance=float(columns),
        direction="up",
        run_length=RUN_LENGTH,
        loss=Loss(epsilon),
    )
    statistic = query.statistic_on(columns)
    chart, tuning = query.chart(statistic), query.tuning(statistic)

    def first(x: Floats, threshold: float) -> int:
        steps = np.round(x * np.sqrt(columns) / statistic.step).astype(np.int64)
        alarms = chart.decide(steps, 1, chart.start(), system_noise()).alarms
        return alarms.index(True) + 1 if any(alarms) else len(x)

    return tuning.outlook.delay, delay_of(first, 0.0, rng, runs), tuning.exact.delay


def write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    runs = 60 if parser.parse_args().quick else 400
    rng = np.random.default_rng(20261118)
    exact = delay_of(chart_without_privacy, threshold_of(chart_without_privacy, rng, runs), rng, runs)
    write(f"Without privacy: {exact:.1f} observations ({runs} runs)\n")
    write("| columns | plan | measured | times without privacy | sparse vector on every S_t | on every 8th |")
    write("| --- | --- | --- | --- | --- | --- |")
    for columns in (1, 10, 30, 100, 1000):
        plan, measured, usual = released(columns, rng, runs)
        movement = WIDTH / np.sqrt(columns)
        others = []
        for every in (1, 8):
            alarm = sparse_vector(1.0, movement, every, rng)
            others.append(delay_of(alarm, threshold_of(alarm, rng, runs), rng, runs))
        cells = " | ".join(f"{value:.1f}" for value in (plan, measured))
        rest = " | ".join(f"{value:.1f}" for value in others)
        write(f"| {columns:,} | {cells} | {measured / usual:.2f} | {rest} |")


if __name__ == "__main__":
    main()
