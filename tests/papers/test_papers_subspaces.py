"""Figures 5 to 7: simulated choices follow the law of released ones, and what was printed spends more than it says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from wallflower.errors import SourceError
from wallflower.mechanisms import exponential, peel, permute_and_flip
from wallflower.noise import system_noise
from wallflower.papers.data.tables import Sample, adult2, ionosphere, synthetic2_sample
from wallflower.papers.methods import NOT_PRIVATE
from wallflower.papers.okada2015.choosers import (
    ALGORITHM3,
    CHOOSERS,
    DEFAULT,
    EVERY_COUNT,
    FLIPPED,
    HALVED,
    Chooser,
    Search,
    exponential_law,
    find_best,
    find_containing,
    find_planted,
    flipping_law,
    noisy_counts_law,
    precision,
    search,
)
from wallflower.papers.okada2015.discovery import EPSILONS, RELEASED, figure5, precisions
from wallflower.papers.panels import Curve, Panel, draw_panels
from wallflower.queries.subspaces.exact import scores
from wallflower.synthetic import exponentials, gumbels, synthetic2

pytestmark = pytest.mark.slow  # together more than `make check` has room for

SCORES = (6, 4, 3, 0)
PAIRS = [(i, j) for i in range(4) for j in range(4) if i != j]
DRAWS = 16_000
ALARM = 1e-11  # both laws are further apart than that but for a chance below 1e-30


# The laws


@pytest.fixture(scope="module")
def released() -> dict[str, list[int]]:
    """How often each ordered pair is released, sensitivity 2 and ε=4."""
    noise = system_noise()
    found: dict[str, list[int]] = {}
    for name, choose in {"flip": permute_and_flip, "exponential": exponential}.items():
        draws = (peel(choose, SCORES, 2, sensitivity=2, epsilon=Fraction(2), noise=noise) for _ in range(DRAWS))
        seen = Counter(map(tuple, draws))
        found[name] = [seen[pair] for pair in PAIRS]
    return found


@pytest.mark.parametrize(("name", "chooser"), [("flip", DEFAULT), ("flip", FLIPPED), ("exponential", HALVED)])
@pytest.mark.parametrize(("stretch", "fits"), [(1 / 1.3, False), (1.0, True), (1.3, False)])
def test_simulated_choices_have_the_law_of_released_ones(
    released: dict[str, list[int]], name: str, chooser: Chooser, stretch: float, fits: bool
) -> None:
    values = np.array([SCORES]) * chooser.strength(4.0 * stretch, 2, 2)
    assert (chance(released[name], simulated(chooser.law, values)) > ALARM) is fits


def test_the_two_laws_are_told_apart(released: dict[str, list[int]]) -> None:
    values = np.array([SCORES]) * HALVED.strength(4.0, 2, 2)
    assert chance(released["flip"], simulated(exponential_law, values)) < ALARM
    assert chance(released["exponential"], simulated(flipping_law, values)) < ALARM


def simulated(law: Callable[..., np.ndarray], values: np.ndarray) -> np.ndarray:
    chosen = law(values, 2, 400_000, 0)[0]
    return np.array([np.mean((chosen == pair).all(axis=1)) for pair in PAIRS])


def chance(seen: list[int], law: np.ndarray) -> float:
    return float(chisquare(seen, law * sum(seen)).pvalue)


def test_every_choice_is_new() -> None:
    values = np.array([[5.0, 0.0, 0.0], [0.0, 0.0, 9.0]])
    for law in (exponential_law, flipping_law):
        assert (np.sort(law(values, 3, 50, 0), axis=2) == [0, 1, 2]).all()


def test_choices_are_made_for_each_table_on_its_own() -> None:
    values = np.array([[900.0, 0.0, 0.0], [0.0, 0.0, 900.0]])
    for law in (exponential_law, flipping_law):
        assert law(values, 1, 50, 0)[:, :, 0].tolist() == [[0] * 50, [2] * 50]


def test_one_choice_of_the_default_is_one_of_permute_and_flip() -> None:
    noise, values = system_noise(), np.array([[2.0, 1.0]])
    first = sum(permute_and_flip([2, 1], sensitivity=1, epsilon=Fraction(2), noise=noise) == 0 for _ in range(DRAWS))
    assert first / DRAWS == pytest.approx(np.mean(flipping_law(values, 1, 400_000, 0) == 0), abs=0.04)
    assert np.mean(flipping_law(values, 1, 400_000, 0) == 0) == pytest.approx(1 - math.exp(-1) / 2, abs=0.005)


# What was printed


@pytest.mark.parametrize(("chooser", "spent", "private"), [(ALGORITHM3, 1.55, False), (HALVED, 0.776, True)])
def test_algorithm_3_spends_more_than_it_claims(chooser: Chooser, spent: float, private: bool) -> None:
    around = np.repeat([[-1.0], [1.0]], 3, axis=0) * np.ones(34)  # all but one record: two clumps of three
    one, other = np.full(34, 9.0), np.zeros(34)
    one[0], other[0] = 0.0, 9.0
    family = [(column,) for column in range(34)]
    found = [scores(np.vstack([around, middle]), family, 1.0, 3, score="count") for middle in (one, other)]
    assert [here.tolist() for here in found] == [[0] + [7] * 33, [7] + [0] * 33]
    laws = [np.exp(here * chooser.strength(0.8, 1, 7)) for here in found]
    ratio = float(np.abs(np.log(laws[1] / laws[1].sum()) - np.log(laws[0] / laws[0].sum())).max())
    assert ratio == pytest.approx(spent, abs=0.005)
    assert (ratio <= 0.8) is private


def test_only_the_printed_curve_is_marked() -> None:
    assert [chooser.column for chooser in CHOOSERS if chooser.why] == ["printed_NOT_PRIVATE"]
    assert ALGORITHM3.guarantee == NOT_PRIVATE


def test_the_naive_way_takes_the_highest_of_noisy_counts() -> None:
    """With noise of scale 1 on two values 3 apart, by the law of a difference of two Laplace draws: (2 + 3)/4 e^-3."""
    found = noisy_counts_law(np.array([[3.0, 0.0]]), 1, 200_000, seed=1)
    wrong = 5 / 4 * np.exp(-3)
    assert float((found == 1).mean()) == pytest.approx(wrong, abs=6 * (wrong / 200_000) ** 0.5)
    assert EVERY_COUNT.strength(1.0, 1, 7) == EVERY_COUNT.strength(1.0, 4, 7) == 1 / 7  # how many are taken is free
    assert replace(EVERY_COUNT, subspaces=10).strength(1.0, 2, 7) == 1 / 70


def test_the_printed_curve_is_the_honest_one_at_twice_the_loss() -> None:
    where = search([synthetic2_sample(0)], 1, find_planted)
    assert precision(ALGORITHM3, where, 0.8, 2, 100) == precision(HALVED, where, 1.6, 2, 100)


# The numbers


@pytest.fixture(scope="module")
def single() -> Search:
    return search([synthetic2_sample(seed) for seed in range(50)], 1, find_planted)


@pytest.mark.parametrize(
    ("epsilon", "printed", "naive", "honest", "flip", "mass"),
    [(0.8, 0.31, 0.22, 0.24, 0.27, 0.42), (1.6, 0.42, 0.24, 0.28, 0.32, 0.62), (3.2, 0.63, 0.29, 0.42, 0.46, 0.88)],
)
def test_precision_of_the_pair_on_synthetic_2(
    single: Search, epsilon: float, printed: float, naive: float, honest: float, flip: float, mass: float
) -> None:
    found = [precision(chooser, single, epsilon, 2, 400) for chooser in CHOOSERS]
    assert found == pytest.approx([printed, naive, honest, flip, mass], abs=0.025)


def test_mass_finds_wider_subspaces_too(single: Search) -> None:
    wider = [
        search([synthetic2_sample(seed, radius) for seed in range(4)], size, find_planted)
        for size, radius in ((2, 0.3), (3, 0.6))
    ]
    sheet = precisions(single, wider).sheet
    assert [row[1] for row in sheet.rows] == [10, 10, 10, 45, 120]
    assert [row[3] for row in sheet.rows[2:]] == pytest.approx([1 / 5, 17 / 45, 64 / 120])
    flip, mass = zip(*(row[-2:] for row in sheet.rows[3:]), strict=True)
    assert flip == pytest.approx([0.48, 0.59], abs=0.05)
    assert mass == pytest.approx([0.95, 0.98], abs=0.03)


def test_recall_and_precision_count_the_same_hits(single: Search) -> None:
    section = figure5(single)
    assert len(section.sheet.rows) == len(RELEASED) * len(EPSILONS)
    for _, h, _, share, *found in section.sheet.rows:
        assert share == 0.2
        many = len(CHOOSERS)
        assert [value * float(h) / 2 for value in found[:many]] == pytest.approx(found[many:])
        assert max(found[:many]) <= min(1, 2 / float(h))


def test_scores_are_divided_by_what_a_release_divides_them_by(single: Search) -> None:
    assert (single.unit("mass"), single.unit("count")) == (2, 7)


def test_true_are_the_planted_those_with_outliers_or_the_best_with_their_ties() -> None:
    assert search([synthetic2_sample(0)], 1, find_planted).relevant.tolist() == [True] * 2 + [False] * 8
    assert search([synthetic2_sample(0)], 2, find_planted).relevant.sum() == 17
    assert search([synthetic2_sample(0)], 1, find_containing).relevant.all()
    spread = np.arange(4.0)[:, None] * [3, 3, 3, 3, 3, 0]  # five columns in which all four records are outliers
    sample = Sample(name="small", values=spread, neighbours=1, radius=1.0)
    for target in (find_best, find_containing):
        assert search([sample], 1, target).relevant.tolist() == [True] * 5 + [False]


def test_the_real_tables_are_those_of_the_figures_when_at_hand() -> None:
    try:
        adult, radar = adult2(), ionosphere()
    except SourceError as reason:
        pytest.skip(str(reason))
    assert (adult.n, adult.dimension, adult.radius) == (379, 7, 0.02)
    assert search([adult], 1, find_containing).scores["count"].tolist() == [[16, 5, 16, 6, 40, 0, 0]]
    counts = search([radar], 1, find_best)
    assert sorted(counts.scores["count"][0])[:-7:-1] == [46, 39, 37, 34, 34, 32]
    assert counts.relevant.sum() == 5
    assert search([radar], 1, find_containing).relevant.sum() == 33


# Made-up data and pictures


def test_synthetic_2_plants_ten_records_in_two_columns() -> None:
    values = np.array([synthetic2(seed) for seed in range(200)])
    assert values.shape == (200, 500, 10)
    planted, rest = values[:, 490:, :2], np.concatenate([values[:, 490:, 2:].ravel(), values[:, :490].ravel()])
    assert (planted.mean(), planted.std()) == pytest.approx((20, 10), rel=0.05)
    assert rest.mean() == pytest.approx(0, abs=0.01)
    assert rest.std() == pytest.approx(1, abs=0.01)


def test_simulated_noise_follows_its_seed() -> None:
    for draw in (gumbels, exponentials):
        assert (draw((3, 2), 1) == draw((3, 2), 1)).all()
        assert not (draw((3, 2), 1) == draw((3, 2), 2)).any()


def test_shares_are_drawn_from_zero_to_one() -> None:
    lines = (Curve(label="a", values=(0.2, 0.4, 1.0)), Curve(label="b", values=(0.2, 0.2, 0.3), why="wrong"))
    panel = Panel(title="", along=(0.2, 0.4, 0.8), curves=lines, across="ε", up="precision", chance=0.2)
    figure = draw_panels([panel] * 8, 4)
    axes = figure.axes[0]
    assert len(figure.axes) == 8
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
    assert axes.get_ylim() == pytest.approx((0, 1), abs=0.05)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.2", "0.4", "0.8"]
    assert axes.get_legend_handles_labels()[1] == ["a", "b", "by chance"]
