"""What may be said about a released count, read off it and public facts alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from wallflower.mechanisms import Additive
from wallflower.neighbours.noisy_count import SURE
from wallflower.query.accuracy import MODERATE

USEFUL: Final = MODERATE[1]  # of the records: more than moderate noise makes a plan not useful
EPSILONS: Final = ("0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "5")
ONE_SIDED: Final = (
    "Only the upper end is proved: the mechanism overcounts where many records have barely enough neighbours. "
    "interval='honest' proves both ends."
)
MUTE: Final = (
    "Whether there is any outlier cannot be told at this loss: yes begins above the number of records, so that a no "
    "means nothing."
)
HEADINGS: Final[Mapping[str, str]] = {
    "error": "typical error ±",
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
