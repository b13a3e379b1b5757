"""Whether draws have the law they claim, and small worlds to draw in.

A sampler that is right fails a check once in about 10⁹ runs.
"""

from collections import Counter
from itertools import permutations

import numpy as np
from scipy.stats import chisquare

from wallflower.queries.explain.space.tables import rank_table

ALARM = 1e-9


def fits(sample, law):
    """Whether a sample could come from this law; outcomes expected less than 30 times are taken together."""
    seen, size = Counter(sample), len(sample)
    if not set(seen) <= {outcome for outcome, chance in law.items() if chance > 0}:
        return False
    common = [outcome for outcome, chance in law.items() if chance * size >= 30]
    observed, expected = [seen[outcome] for outcome in common], [law[outcome] * size for outcome in common]
    rest = size - sum(expected)
    if rest >= 30:
        observed, expected = [*observed, size - sum(observed)], [*expected, rest]
    assert len(expected) > 1, "too few draws to tell"
    expected = np.array(expected) * (sum(observed) / sum(expected))
    return bool(chisquare(observed, expected).pvalue > ALARM)


def exponential_law(scores, rate, top=1):
    """Of the ordered choices of `top` keys of `scores`, without replacement."""
    weights = {key: float(np.exp(rate * (score - max(scores.values())))) for key, score in scores.items()}
    law = {}
    for chosen in permutations(scores, min(top, len(scores))):
        chance, left = 1.0, sum(weights.values())
        for key in chosen:
            chance, left = chance * weights[key] / left, left - weights[key]
        law[chosen] = chance
    return law


def world(n=60, sizes=(3, 3, 2), seed=5):
    """A table with one record that stands out in some contexts."""
    draw = np.random.default_rng(seed)
    codes = np.stack([draw.integers(0, size, n) for size in sizes], axis=1)
    metric = np.round(draw.normal(10, 2, n) + 3 * codes[:, 0], 1)
    metric[0] = 20.0
    return codes, sizes, metric, 0


def table_of(*given, **changes):
    return rank_table(*world(*given, **changes))


class Replayed:
    """Words that are the same every time."""

    def __init__(self, seed):
        self.draw = np.random.default_rng(seed)

    def below(self, bound):
        return int.from_bytes(self.draw.bytes(32), "little") % bound
