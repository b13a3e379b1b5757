"""What may be said about a released count, read off it and public facts alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from wallflower.mechanisms import Additive
from wallflower.neighbours.noisy_count import CROWDED_SHARE, SURE, CapRule, ChosenCap, crowded_neighbours
from wallflower.query.accuracy import MODERATE

# Bias, as a share of the records, by cap over neighbours: the study's mean of calm tables, and that of uniform data
CALM_BIAS: Final = ((0.0, 0.0002), (0.5, 0.0002), (1.0, 0.0))
RARE_CHANCE: Final = 1e-6  # a cap that is chosen less often adds nothing to an expected error
CROWDED_BIAS: Final = ((0.0, 0.7), (0.25, 0.053), (0.3, 0.026), (0.4, 0.003), (0.5, 0.0003), (0.6, 0.0))
USEFUL: Final = MODERATE[1]  # of the records: more than moderate noise makes a plan not useful
EPSILONS: Final = ("0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "5")
ONE_SIDED: Final = (
    "Only the upper end is proved: the mechanism overcounts where many records have barely enough neighbours. "
    "interval='two-sided' proves both ends."
)
MUTE: Final = "At this ε the test whether there is any outlier has no power: it could never say yes."
TOTALS: Final[Mapping[str, str]] = {"total": "expected error, calm ±", "crowded": "crowded ±"}
HEADINGS: Final[Mapping[str, str]] = {
    **TOTALS,
    "error": "typical noise ±",
    "half_width": "95 % within ±",
    "deviation": "deviation",
}
MECHANISM_NOTES: Final[Mapping[str, str]] = {
    "extension": "may overcount where many records have barely enough neighbours",
    "global": "noise grows with the dimension and the number of neighbours",
    "smooth": "the most it can be; calm data get less",
}


def any_outlier(value: int, noise: Additive) -> dict[str, Any]:
    """Scenario 1, is there any outlier at all: read off the released count, which costs nothing more (A).

    `says` is yes from `threshold` on. Without any outlier it says yes with probability `false_alarm` at most; with at
    least `found_from` of them it says no with probability 1 - `SURE` at most. `p_value` is how often a count this high
    or higher is released when there is none.
    """
    threshold = max(1, math.ceil(noise.half_width(1 - 2 * (1 - SURE)) + 0.5))
    return {
        "says": value >= threshold,
        "threshold": threshold,
        "false_alarm": noise.upper_tail(threshold - 0.5),
        "found_from": 2 * threshold,
        "p_value": noise.upper_tail(value - 0.5) if value > 0 else 1.0,
    }


def cap_notes(chosen: ChosenCap, neighbours: int) -> tuple[str, ...]:
    """What a release states about a degree cap that was chosen by the crowding test.  (X)"""
    if chosen.crowding is None:
        return ()
    note = (
        f"The degree cap is {chosen.cap}: about {chosen.crowding:.1%} of the records have from {neighbours} to "
        f"{crowded_neighbours(neighbours) - 1} neighbours, by a noisy test that {name_part(chosen.test_share)} paid "
        "for."
    )
    return (note,)


def name_part(share: Fraction) -> str:
    """The part of the loss that a test had, in words.

    >>> name_part(Fraction(1, 7)), name_part(Fraction(2, 7))
    ('a seventh of the loss', 'two sevenths of the loss')
    """
    named = {Fraction(1, 7): "a seventh", Fraction(2, 7): "two sevenths"}.get(share, str(share))
    return f"{named} of the loss"


def total_errors(rule: CapRule, neighbours: int, noise_error: Callable[[ChosenCap], float]) -> tuple[float, float]:
    """The expected total error, mean noise and the study's bias, on a calm table and on a crowded one: the mean over
    the caps that the test may choose there."""
    totals = []
    for crowding, studies in ((0.0, (CALM_BIAS,)), (CROWDED_SHARE, (CALM_BIAS, CROWDED_BIAS))):
        total = 0.0
        for cap, chance in rule.cap_chances(crowding).items():
            chosen = ChosenCap(cap, crowding, rule.reason, rule.test_share)
            if chance > RARE_CHANCE:
                bias = max(expected_bias(study, cap / neighbours) for study in studies)
                total += chance * (noise_error(chosen) + bias * rule.n)
        totals.append(total)
    return totals[0], totals[1]


def expected_bias(study: Sequence[tuple[float, float]], ratio: float) -> float:
    """The share of records by which the extension overcounts, by cap over neighbours, on tables of the study.

    >>> expected_bias(CROWDED_BIAS, 0.25), expected_bias(CROWDED_BIAS, 1.0)
    (0.053, 0.0)
    """
    ratios, shares = zip(*study, strict=True)
    return float(np.interp(ratio, ratios, shares))


def plan_notes(rule: CapRule, neighbours: int) -> tuple[str, ...]:
    """What a plan states about the degree cap and what it does to crowded tables."""
    if rule.test is None:
        return (f"The degree cap is {rule.narrow}, {rule.reason}.",)
    note = (
        f"The degree cap is from {rule.narrow} on a calm table to {rule.wide} on a crowded one, by a noisy test that "
        f"{name_part(rule.test_share)} pays for: how many records have from {neighbours} to "
        f"{crowded_neighbours(neighbours) - 1} neighbours."
    )
    return (note,)
