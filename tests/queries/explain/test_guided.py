"""Search by noisy counts: noise once per cell, contexts in falling order of their noisy score, few questions."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from laws import fits, table_of, world
from salaries import salaries

from wallflower.errors import ParameterError
from wallflower.noise import system_noise
from wallflower.queries.explain.detectors import CustomDetector, Distance, Lof
from wallflower.queries.explain.draws import ocdp as module
from wallflower.queries.explain.draws.ocdp import guided_search
from wallflower.queries.explain.draws.utilities import CustomUtility, Overlap, Population
from wallflower.queries.explain.exact import evaluate
from wallflower.queries.explain.space.tables import rank_table

EVER, NEVER = CustomDetector(lambda values, index: True), CustomDetector(lambda values, index: False)
CLEAR = Fraction(10**6)


class Noted:
    """Noise from a list, and a note of what was asked for."""

    def __init__(self, seed, most):
        self.draw, self.most, self.scales = np.random.default_rng(seed), most, []

    def laplace(self, scale):
        self.scales.append(scale)
        return int(self.draw.integers(-self.most, self.most + 1))


def by_hand(codes, table, noisy, wanted):
    """Noisy scores of all contexts, from noisy counts by cell."""
    return [
        sum(count for cell, count in noisy.items() if wanted(cell) and table.space.members(np.array([cell]), index)[0])
        for index in range(table.space.count)
    ]


@pytest.mark.parametrize("context", [None, "10110110"])
def test_contexts_come_in_falling_order_of_their_noisy_scores(context):
    codes, sizes, _, _ = world()
    table = table_of()
    utility = Overlap(context) if context else Population()
    for seed in range(5):
        order = guided_search(table, EVER, utility, epsilon=Fraction(1), evaluations=32, top=32, noise=Noted(seed, 9))
        noise = Noted(seed, 9)
        counts = Counter(map(tuple, codes.tolist()))
        slots = [
            [own, *(at for at in range(size) if at != own)] for size, own in zip(sizes, table.space.own, strict=True)
        ]
        noisy = {}
        for place in np.ndindex(*sizes):
            cell = tuple(each[at] for each, at in zip(slots, place, strict=True))
            noisy[cell] = counts[cell] + noise.laplace(None)
        bits = context or "1" * 8
        scores = by_hand(
            codes, table, noisy, lambda cell, bits=bits: all(bits[at] == "1" for at in np.add(cell, [0, 3, 6]))
        )
        assert order == sorted(range(32), key=lambda index: (-scores[index], index))


def test_every_cell_gets_noise_once_with_the_scale_of_one_record():
    noise = Noted(1, 3)
    guided_search(table_of(), EVER, Population(), epsilon=Fraction(2, 7), evaluations=5, top=5, noise=noise)
    assert noise.scales == [Fraction(7, 2)] * 18


def test_the_noise_in_a_cell_is_that_of_its_scale():
    table = rank_table([[0]] * 4, [1], [1.0] * 4, 0)
    sample = [int(module._noisy_cells(table, Population(), Fraction(1, 2), system_noise())[1][0]) for _ in range(2000)]
    for scale, same in ((1.4, False), (2.0, True), (2.8, False)):
        weights = {4 + z: float(np.exp(-abs(z) / scale)) for z in range(-80, 81)}
        assert fits(sample, {z: weight / sum(weights.values()) for z, weight in weights.items()}) is same


@pytest.mark.parametrize("detector", [Lof(3, 1.3), Distance(3, 1.0)], ids=repr)
def test_the_best_valid_contexts_are_found_where_noise_is_small(detector):
    table, whole = table_of(), evaluate(*world(), detector)
    valid = sorted(np.flatnonzero(whole.valid).tolist(), key=lambda index: (-whole.populations[index], index))
    for top in (1, 3, 99):
        given = {"epsilon": CLEAR, "evaluations": 32, "top": top, "noise": system_noise()}
        assert guided_search(table, detector, Population(), **given) == valid[:top]


def test_the_detector_is_asked_no_more_than_was_allowed():
    asked = []

    def slow(values, index):
        asked.append(len(values))
        return len(values) < 30

    table = table_of()
    assert (
        guided_search(
            table, CustomDetector(slow), Population(), epsilon=CLEAR, evaluations=4, top=1, noise=system_noise()
        )
        == []
    )
    assert asked == [60, 47, 42, 37]
    assert guided_search(table, NEVER, Population(), epsilon=CLEAR, evaluations=99, top=1, noise=system_noise()) == []
    asked.clear()
    assert (
        len(
            guided_search(
                table, CustomDetector(slow), Population(), epsilon=CLEAR, evaluations=99, top=2, noise=system_noise()
            )
        )
        == 2
    )
    assert len(asked) < 32


def test_useful_contexts_are_found_in_a_large_table():
    codes, metric, record = salaries(n=20_000)
    record = int(np.argsort(metric)[-21])
    table, detector = rank_table(codes, (9, 8, 8), metric, record), Lof()
    given = {"epsilon": Fraction(1, 5), "evaluations": 2000, "noise": system_noise()}
    found = guided_search(table, detector, Population(), top=2, **given)
    assert len(found) == 2
    for index in found:
        inside = table.members(index)
        assert detector.outlier(table.values[inside], int(inside[: table.record].sum()))
        assert inside.sum() > 0.6 * table.n


def test_immense_noise_overflows_nothing():
    table = table_of()
    found = guided_search(
        table, EVER, Population(), epsilon=Fraction(1, 10**12), evaluations=32, top=32, noise=system_noise()
    )
    assert sorted(found) == list(range(32))


def test_what_cannot_be_guided_is_refused(monkeypatch):
    given = {"epsilon": Fraction(1), "evaluations": 5, "top": 1, "noise": system_noise()}
    with pytest.raises(ParameterError, match=r"^utility: .+; .+\.$"):
        guided_search(table_of(), EVER, CustomUtility(lambda bits, values: 1, 1), **given)
    monkeypatch.setattr(module, "MAX_NOISY_CELLS", 17)
    with pytest.raises(ParameterError, match=r"^domain_sizes: .+; .+\.$"):
        guided_search(table_of(), EVER, Population(), **given)
