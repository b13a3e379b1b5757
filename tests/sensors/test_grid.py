"""Mode grid: nobody inside the core is ever flagged, nobody one step beyond it is ever missed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wallflower.errors import DataError, ParameterError
from wallflower.sensors.correction import MAX_DISTANCE, flag_by_rings, ring_numbers

whole = st.integers(0, 2**40)


@settings(max_examples=300, deadline=None)
@given(
    pairs=st.lists(st.tuples(whole, whole), min_size=1, max_size=20),
    step=st.integers(1, 2**30),
    bound=whole.map(lambda b: b + 1),
)
def test_what_is_promised_of_every_distance(pairs, step, bound):
    before, after = np.array(pairs).T
    found = flag_by_rings(after - before, ring_numbers(after, step), step, bound)
    assert not found[before < bound].any()
    assert found[before >= bound + step].all()


def test_every_distance_of_a_small_world():
    before, after = (side.ravel() for side in np.meshgrid(np.arange(60), np.arange(60)))
    for step in (1, 3, 7, 20):
        for bound in (1, 10, 33):
            found = flag_by_rings(after - before, ring_numbers(after, step), step, bound)
            assert not found[before < bound].any()
            assert found[before >= bound + step].all()
            border = (before >= bound) & (before < bound + step)
            assert step == 1 or 0 < found[border].mean() < 1


def test_with_an_empty_border_the_answer_is_exact():
    draw = np.random.default_rng(1)
    before = np.concatenate([draw.integers(0, 100, 900), draw.integers(150, 400, 100)])
    after = np.abs(before + draw.integers(-500, 500, 1000))
    found = flag_by_rings(after - before, ring_numbers(after, 50), 50, 100)
    assert np.array_equal(found, before >= 150)


@pytest.mark.parametrize("step", [0, -3, 2.0, True, 2**61])
def test_steps_are_whole_numbers(step):
    with pytest.raises(ParameterError, match="step"):
        ring_numbers([1, 2], step)
    with pytest.raises(ParameterError, match="step"):
        flag_by_rings([1], [1], step, 1)


def test_other_refusals():
    with pytest.raises(ParameterError, match="bound"):
        flag_by_rings([1], [1], 1, 1.5)
    with pytest.raises(DataError, match="whole numbers below"):
        ring_numbers([1.5], 1)
    with pytest.raises(DataError, match="whole numbers below"):
        ring_numbers([2 * MAX_DISTANCE], 1)
    with pytest.raises(DataError, match="belong together"):
        flag_by_rings([1, 2], [1], 1, 1)
    with pytest.raises(DataError, match="belong together"):
        flag_by_rings([1], [MAX_DISTANCE], 2**20, 1)
    assert len(ring_numbers([], 3)) == 0
