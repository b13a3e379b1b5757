"""A device clips, rounds and perturbs as its public parameters say; distances are exact whole numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wallflower.errors import DataError, ParameterError
from wallflower.noise import system_noise
from wallflower.privacy import Kind, Neighbours
from wallflower.sensors.perturbation import (
    MAX_STEPS,
    add_column_noise,
    add_planar_noise,
    clip,
    columns_losses,
    d_diff,
    distances,
    planar_losses,
    scores,
)

BOX = {"mean": [10.0, -5.0], "deviation": [2.0, 0.5], "low": [-3.0, -4.0], "high": [3.0, 4.0], "step": "1/16"}


def test_readings_are_scaled_rounded_and_clipped():
    placed = clip([[10.0, -5.0], [12.0, -4.5], [1e9, -1e9], [np.inf, -np.inf]], **BOX)
    assert placed.tolist() == [[0, 0], [16, 16], [48, -64], [48, -64]]


def test_halves_go_up_and_what_is_no_number_is_the_middle():
    box = {"mean": [0.0], "deviation": [1.0], "low": [-1.0], "high": [3.0], "step": 1}
    assert clip([[0.5], [-0.5], [0.49], [np.nan]], **box).ravel().tolist() == [1, 0, 0, 1]


@settings(max_examples=200, deadline=None)
@given(pair=st.tuples(*[st.floats(allow_nan=False)] * 2))
def test_what_is_larger_is_never_placed_lower(pair):
    """So two readings within an interval with ends on the grid are placed within it.  (B)"""
    low, high = clip(
        [[min(pair)], [max(pair)]], mean=[1.0], deviation=[3.0], low=[-9.0], high=[9.0], step="1/8"
    ).ravel()
    assert -72 <= low <= high <= 72


@settings(max_examples=300, deadline=None)
@given(
    points=st.lists(st.tuples(*[st.integers(-MAX_STEPS, MAX_STEPS)] * 3), min_size=1, max_size=8),
    centre=st.tuples(*[st.integers(-MAX_STEPS, MAX_STEPS)] * 3),
)
def test_distances_are_exact(points, centre):
    exact = [math.isqrt(sum((a - b) ** 2 for a, b in zip(point, centre, strict=True))) for point in points]
    assert distances(points, centre).tolist() == exact


def test_distances_are_exact_around_squares():
    roots = np.array([1, 2, 1000, 2**20 + 1, 2**26 - 1])
    assert distances(np.stack([roots, np.zeros_like(roots)], axis=1), [0, 0]).tolist() == roots.tolist()
    assert distances(np.stack([roots, np.ones_like(roots)], axis=1), [0, 0]).tolist() == roots.tolist()
    assert distances([[MAX_STEPS] * 64], [-MAX_STEPS] * 64).tolist() == [math.isqrt(64 * (2 * MAX_STEPS) ** 2)]


def test_d_diff_undoes_the_noise():
    points = np.random.default_rng(0).integers(-500, 500, (400, 2))
    sent = add_planar_noise(points, diameter="20", epsilon="0.2", step="1/8", noise=system_noise())
    assert np.array_equal(distances(sent, [3, 4]) - d_diff(points, sent, [3, 4]), distances(points, [3, 4]))


def test_scores_fit_their_bits():
    found = scores([[0, 0], [99, 0], [100, 0], [10**6, 0]], [0, 0], 100, 8)
    assert found.tolist() == [0, 0, 1, 127]


class Asked:
    """Notes that words were drawn, and draws them."""

    def __init__(self):
        self.count = 0

    def below(self, bound):
        self.count += 1
        return system_noise().below(bound)


@pytest.mark.parametrize(("stretch", "same"), [(0.9, False), (1.0, True), (1.1, False)])
def test_noise_has_the_size_that_the_parameters_say(stretch, same):
    """Six standard errors of the mean length are two in a hundred."""
    points = np.zeros((40_000, 2), dtype=np.int64)
    sent = add_planar_noise(points, diameter="13", epsilon="0.2", step="1/64", noise=system_noise())
    mean = np.sqrt((sent.astype(float) ** 2).sum(axis=1)).mean()
    wanted = 2 * 13 / 0.2 * 64 * stretch
    assert bool(abs(mean / wanted - 1) < 6 * math.sqrt(2) / 2 / math.sqrt(40_000)) is same
    sent = add_column_noise(points, ranges=["13", "26"], epsilons=["0.1", "0.4"], step="1/64", noise=system_noise())
    means = np.abs(sent).mean(axis=0) / (np.array([13 / 0.1, 26 / 0.4]) * 64 * stretch)
    assert (np.abs(means - 1) < 6 / math.sqrt(40_000)).tolist() == [same] * 2


def test_columns_are_perturbed_independently():
    sent = add_column_noise(
        np.zeros((40_000, 2), int), ranges=["1"] * 2, epsilons=["1"] * 2, step="1/64", noise=system_noise()
    )
    assert abs(np.corrcoef(sent.T)[0, 1]) < 0.03
    assert abs(np.corrcoef(np.abs(sent).T)[0, 1]) < 0.03


def test_planar_noise_is_alike_in_all_directions():
    sent = add_planar_noise(np.zeros((40_000, 2), int), diameter="1", epsilon="1", step="1/256", noise=system_noise())
    angles = np.arctan2(*sent.T)
    for turns in (1, 2, 4, 8):
        assert abs(np.exp(1j * turns * angles).mean()) < 0.03


def test_planar_noise_is_less_than_that_of_columns_at_the_same_promise():
    """A seventh less where both promise ε for any two readings in a square, or both for any two in a disc."""
    points = np.zeros((60_000, 2), dtype=np.int64)
    noise = system_noise()

    def size(sent):
        return np.sqrt((sent.astype(float) ** 2).sum(axis=1).mean())

    square = Fraction(round(2**0.5 * 10**9), 10**9)
    both = size(add_planar_noise(points, diameter=square, epsilon="0.2", step="1/64", noise=noise))
    each = size(add_column_noise(points, ranges=["1", "1"], epsilons=["0.1", "0.1"], step="1/64", noise=noise))
    assert both / each == pytest.approx(3**0.5 / 2, rel=0.03)


def test_noise_comes_from_the_noise_that_is_handed_over():
    noise = Asked()
    add_planar_noise([[0, 0]], diameter="1", epsilon="1", step="1/8", noise=noise)
    assert noise.count >= 3
    before = noise.count
    add_column_noise([[0, 0]], ranges=["1", "1"], epsilons=["1", "1"], step="1/8", noise=noise)
    assert noise.count >= before + 2


def test_far_out_is_cut_after_the_noise():
    sent = add_column_noise(
        [[MAX_STEPS, -MAX_STEPS]] * 50, ranges=["1", "1"], epsilons=["1", "1"], step="1/8", noise=system_noise()
    )
    assert np.abs(sent).max() == MAX_STEPS


def test_losses_are_metric_and_rounded_up():
    usual, worst = columns_losses(["2", "4"], ["0.1", "0.3"], ["20", "20"])
    assert (usual.epsilon, worst.epsilon) == (Fraction(2, 5), Fraction(5, 2))
    assert usual.kind is Kind.METRIC
    assert usual.neighbours is Neighbours.READING
    usual, worst = planar_losses("1", "1", ["1", "1"])
    assert usual.epsilon == 1
    assert worst.epsilon**2 >= 2
    assert float(worst.epsilon) == pytest.approx(2**0.5, abs=1e-6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mean": [1.0]}, "one of each"),
        ({"deviation": [0.0, 1.0]}, "deviations above 0"),
        ({"low": [5.0, 0.0]}, "low must be below high"),
        ({"high": [1e9, 1.0]}, "within"),
        ({"step": "0"}, "step"),
        ({"step": 0.1}, "as text"),
        ({"low": [np.nan, 0.0]}, "low must be below high"),
    ],
)
def test_clip_refuses_parameters_that_make_no_box(change, words):
    with pytest.raises(ParameterError, match=words):
        clip([[0.0, 0.0]], **BOX | change)


def test_other_refusals():
    noise = system_noise()
    with pytest.raises(DataError, match="2 columns"):
        clip([[1.0]], **BOX)
    with pytest.raises(DataError, match="whole numbers"):
        add_planar_noise([[0.5, 1.0]], diameter="1", epsilon="1", step="1", noise=noise)
    with pytest.raises(DataError, match="2\\*\\*26"):
        distances([[MAX_STEPS + 1]], [0])
    with pytest.raises(DataError, match="rows"):
        distances([1, 2], [0])
    with pytest.raises(ParameterError, match="centre"):
        distances([[1, 2]], [0])
    with pytest.raises(ParameterError, match="centre"):
        distances([[1, 2]], [0.0, 0.5])
    with pytest.raises(ParameterError, match="centre"):
        distances([[1, 2]], [2 * MAX_STEPS, 0])
    with pytest.raises(ParameterError, match="resolution"):
        scores([[1, 2]], [0, 0], 0, 8)
    with pytest.raises(ParameterError, match="epsilon"):
        add_planar_noise([[1, 2]], diameter="1", epsilon="0", step="1", noise=noise)
    with pytest.raises(ParameterError, match="ranges, epsilons"):
        add_column_noise([[1, 2]], ranges=["1"], epsilons=["1", "1"], step="1", noise=noise)
