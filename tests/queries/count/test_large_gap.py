"""From 10,000 records on a programme may be solved less exactly, and the noise of the count pays for it."""

import numpy as np
import pytest

from wallflower import Count, Loss, Points
from wallflower.audit import ScriptedNoise
from wallflower.neighbours.extension import certify
from wallflower.neighbours.noisy_count import GAP, LARGE_TABLE_RECORDS, STEP, exact_steps, gap_steps
from wallflower.neighbours.pairs import build_tree, squared_reach


def gauss(n):
    return np.random.default_rng(0).normal(0, 1, (n, 2))


@pytest.mark.parametrize(
    ("n", "changes", "moves"),
    [
        (LARGE_TABLE_RECORDS, {}, 4 * 128 + 16 + 1),
        (LARGE_TABLE_RECORDS - 1, {}, 4 * 128 + 1),
        (LARGE_TABLE_RECORDS, {"neighbours": 3}, 4 * 128 + 1),
        (LARGE_TABLE_RECORDS, {"certify": True}, 4 * 128 + 1),
    ],
)
def test_the_noise_of_a_count_hides_how_far_its_value_may_be_off(n, changes, moves):
    query = Count(**{"neighbours": 4, "radius": 0.5, "slack": 3, "loss": Loss("1")} | changes)
    script, table = ScriptedNoise(), Points.from_array(gauss(n))
    query.answer(table, script)
    assert [scale for _, scale in script.asked] == [moves]
    assert query.variant.noise(n, 2).scale == moves


def test_the_value_of_a_large_table_is_below_the_extension_by_no_more_than_its_gap():
    values, radius, slack = gauss(LARGE_TABLE_RECORDS), 0.09, 6
    gap = gap_steps(len(values), 20, slack)
    tree = build_tree(values, squared_reach(radius, 2, normalise=True))
    exact = len(values) - certify(tree, 20, float(slack), GAP).upper
    off = exact_steps(values, radius, 20, slack, normalise=True, gap=gap) * float(STEP) - exact
    assert -1 / 128 <= off <= float(gap * STEP) + 3 / 256
