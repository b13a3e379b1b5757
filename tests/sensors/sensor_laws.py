"""Whether a sample has a law, and noise from a script."""

from __future__ import annotations

from collections import Counter

import numpy as np
from scipy.stats import chisquare

ALARM = 1e-9  # of the 60,000 draws of a test, those of a scale a tenth off are far below it


def fits(sample, law):
    """Whether a sample could come from this law; outcomes expected less than 20 times are taken together."""
    seen = Counter(sample)
    size = sum(seen.values())
    common = [outcome for outcome, chance in law.items() if chance * size >= 20]
    observed = [seen[outcome] for outcome in common]
    expected = [law[outcome] * size for outcome in common]
    observed, expected = [*observed, size - sum(observed)], [*expected, size - sum(expected)]
    if expected[-1] < 20:
        observed, expected = observed[:-1], expected[:-1]
    scaled = np.array(expected) * (sum(observed) / sum(expected))
    return bool(chisquare(observed, scaled).pvalue > ALARM)


class Script:
    """A noise that hands out words one by one."""

    def __init__(self, words):
        self.left = list(words)

    def below(self, bound):
        assert bound == 2**64
        return self.left.pop(0)
