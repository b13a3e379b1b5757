"""The correction of the paper: its vectors, its edges, and the definitions read word by word."""

import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vectors import vectors
from wallflower.errors import DataError, ParameterError
from wallflower.sensors.correction import GAPS, candidates, correct, find_cut, layers

SETS = {
    "TP": "tp",
    "FP": "fp",
    "I2": "i2",
    "I3": "i3",
    "FN_L1": "fn1",
    "FN_L2": "fn2",
    "FN_L3": "fn3",
    "output": "output",
}


def by_hand(distances, moved, presumed, width, gap):
    """The paper's sentences with the rules for its edges, in plain Python."""
    n, inside = len(moved), sorted(presumed, key=lambda i: moved[i])
    gaps = [
        (moved[b] - moved[a], place)
        for place, (a, b) in enumerate(pairwise(inside))
        if gap == "literal" or moved[a] >= 0
    ]
    fp = set()
    if gaps:
        t = max(gaps)[1]  # of equal gaps the last
        fp = {i for i in inside if moved[i] > moved[inside[t]]}
    d_tp = min((moved[i] for i in inside), default=None)
    others = [i for i in range(n) if i not in presumed]
    i2 = [] if d_tp is None else [i for i in others if distances[i] >= d_tp]
    i3 = [] if d_tp is None else [i for i in others if distances[i] >= d_tp + width]
    found = {
        "tp": sorted(set(presumed) - fp),
        "fp": sorted(fp),
        "i2": i2,
        "i3": i3,
        "fn1": [i for i in others if moved[i] < 0],
        "fn2": [i for i in i2 if 0 <= moved[i] <= d_tp],
        "fn3": [i for i in i3 if d_tp <= moved[i] <= d_tp + width],
    }
    output = sorted(set(found["tp"]).union(found["fn1"], found["fn2"], found["fn3"]))
    return d_tp, {**found, "output": output}


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("case", vectors("sensors.json"))
def test_vectors(case, gap):
    expected = case["expect"][gap]
    found = correct(expected["d_c_perturbed"], expected["d_diff"], case["O_presumed"], case["w_O"], gap=gap)
    assert found.d_tp == expected["d_TP"]
    assert {name: getattr(found, own).tolist() for name, own in SETS.items()} == {name: expected[name] for name in SETS}
    presumed = np.array(expected["d_diff"])[np.array(case["O_presumed"], dtype=int)]
    assert find_cut(presumed, gap=gap) == (expected["threshold"], expected["d_TP"])


@pytest.mark.parametrize("gap", GAPS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_it_does_what_the_sentences_say(gap, data):
    n = data.draw(st.integers(1, 12))
    small = st.integers(-4, 6)
    moved = data.draw(st.lists(small, min_size=n, max_size=n))
    distances = data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    presumed = data.draw(st.lists(st.integers(0, n - 1), unique=True))
    width = data.draw(st.integers(0, 4))
    d_tp, sets = by_hand(distances, moved, presumed, width, gap)
    found = correct(distances, moved, presumed, width, gap=gap)
    assert found.d_tp == d_tp
    assert {name: getattr(found, name).tolist() for name in sets} == sets


def test_equal_gaps_take_the_last_and_no_gap_removes_none():
    assert find_cut([0, 2, 4, 6]) == (4.0, 0.0)
    assert find_cut([5, 5, 5]) == (5.0, 5.0)
    assert find_cut([7]) == (7.0, 7.0)
    assert find_cut([-3, -2, -1], gap="upper") == (-1.0, -3.0)
    assert find_cut([-9, 4], gap="upper") == (4.0, -9.0)
    assert find_cut([-9, 4], gap="literal") == (-9.0, -9.0)


def test_the_two_servers_find_what_one_call_finds():
    draw = np.random.default_rng(3)
    distances, moved = draw.gamma(2.0, 20.0, 500), draw.normal(5.0, 20.0, 500)
    presumed = np.flatnonzero(distances > 70)
    whole = correct(distances, moved, presumed, 3.0)
    cut, d_tp = find_cut(moved[presumed])
    i2, i3 = candidates(distances, presumed, d_tp, 3.0)
    fn1, fn2, fn3 = layers(moved, presumed, i2, i3, d_tp, 3.0)
    kept = presumed[moved[presumed] <= cut]
    assert np.array_equal(np.unique(np.concatenate([kept, fn1, fn2, fn3])), whole.output)
    assert not set(whole.fp) & set(whole.output)


def test_places_may_come_in_any_order():
    one = correct([5, 13, 60, 10, 52], [5, 12, 58, 9, 12], [2, 4], 2.0)
    other = correct([5, 13, 60, 10, 52], [5, 12, 58, 9, 12], np.array([4, 2], dtype=np.uint32), 2.0)
    assert np.array_equal(one.tp, other.tp)
    assert np.array_equal(one.output, other.output)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1.0], [1.0, 2.0], [0], 1.0), "equally many"),
        (([1.0, np.nan], [1.0, 2.0], [0], 1.0), "finite"),
        (([1.0, 2.0], [1.0, 2.0], [0, 0], 1.0), "different"),
        (([1.0, 2.0], [1.0, 2.0], [2], 1.0), "from 0 to 1"),
        (([1.0, 2.0], [1.0, 2.0], [-1], 1.0), "from 0 to 1"),
        (([1.0, 2.0], [1.0, 2.0], [True, False], 1.0), "whole numbers"),
        (([1.0, 2.0], [1.0, 2.0], [0.5], 1.0), "whole numbers"),
    ],
)
def test_refusals(arguments, words):
    with pytest.raises(DataError, match=words):
        correct(*arguments)


@pytest.mark.parametrize("width", [-1.0, np.nan, np.inf])
def test_a_width_that_is_none_is_refused(width):
    with pytest.raises(ParameterError, match="width"):
        correct([1.0, 2.0], [1.0, 2.0], [], width)


def test_an_unknown_rule_is_refused():
    with pytest.raises(ParameterError, match="upper, literal"):
        find_cut([1.0], gap="widest")


def test_a_window_of_100_000_readings_takes_no_longer_than_it_may():
    draw = np.random.default_rng(0)
    distances, moved = draw.gamma(2.0, 50.0, 100_000), draw.normal(20.0, 40.0, 100_000)
    presumed = draw.choice(100_000, 20_000, replace=False)
    spent = []
    for _ in range(5):
        start = time.process_time()
        correct(distances, moved, presumed, 3.0)
        spent.append(time.process_time() - start)
    assert min(spent) < 0.015
