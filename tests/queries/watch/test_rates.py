"""Rates equal closed forms in a hundred digits, vectors, and what brute force finds."""

import math
from dataclasses import astuple, replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import erfc

from vectors import vectors
from wallflower.errors import ParameterError
from wallflower.queries.watch.forecast.rates import (
    difference_of_exponentials,
    laplace_noise,
    rates,
    rates_of_tail,
    roc,
    run_interval,
    staircase_at,
    sum_of_laplaces,
    true_positive_at,
)

EXAMPLE = {"variance": 3.01e7, "truth": 9130, "rho": 500}
COARSE = {"variance": 1, "truth": 1.645, "rho": 1, "epsilon": 2}
MECHANISMS = ("paper", "laplace", "staircase", "svt-laplace", "svt-exponential")
VECTORS = ("two_laplace_svt_marginal", "staircase_event", "exponential_svt_user")
NAMES = dict(zip(VECTORS, ("paper", "staircase", "svt-exponential"), strict=True))


# The oracle: integrals in closed form, with enough digits that nothing is lost when they are subtracted

DIGITS = Context(prec=130, Emax=MAX_EMAX, Emin=MIN_EMIN)
D, ZERO, FAR = Decimal, Decimal(0), Decimal(60)


@pytest.fixture(autouse=True)
def digits():
    with localcontext(DIGITS):
        yield


@cache
def root_of_two_pi():
    def arctan(n):
        total = term = D(1) / n
        for k in range(3, 400, 2):
            term = -term / (n * n)
            total += term / k
        return total

    return (8 * (4 * arctan(5) - arctan(239))).sqrt()


@cache
def mills(x):
    """P(N > x) e^(x²/2) for x >= 0: a series of positive terms, or a continued fraction."""
    if x > 11:
        fraction = D(0)
        for k in range(200, 0, -1):
            fraction = k / (x + fraction)
        return 1 / (x + fraction) / root_of_two_pi()
    total, term, n = D(0), x, 1
    while total + term != total:
        total, n = total + term, n + 2
        term = term * x * x / n
    return (x * x / 2).exp() / 2 - total / root_of_two_pi()


def grown(a, b, rate=ZERO, anchor=ZERO):
    """The half-normal integral of e^(rate (x - anchor)) from a to b."""
    if a >= b:
        return D(0)
    low, high, shift = a - rate, b - rate, rate * rate / 2 - rate * anchor
    if high <= 0:
        low, high = -high, -low
    ends = [2 * (shift - x * x / 2).exp() * mills(abs(x)) for x in (low, high)]
    return ends[0] - ends[1] if low >= 0 else 2 * shift.exp() - sum(ends)


def laplaces(first, second=0):
    wide, narrow = max(D(first), D(second)), min(D(first), D(second))
    narrow = narrow if narrow < wide else wide * (1 - D("1e-40"))
    both = [(wide**2, wide), (-(narrow**2), narrow)] if narrow else [(wide**2, wide)]
    weights = [(weight / (2 * (wide**2 - narrow**2)), scale) for weight, scale in both]
    return weights, weights


def exponentials(query, threshold):
    both = D(query) + D(threshold)
    return [(D(query) / both, D(query))], [(D(threshold) / both, D(threshold))]


def oracle(law, variance, truth, threshold):
    """False positives, true positives, true negatives, false negatives."""
    spread = D(variance).sqrt()
    h, tau = D(truth) / spread, D(threshold) / spread
    return [share for flagged in (True, False) for share in _shares(law, spread, h, tau, flagged)]


def _shares(law, spread, h, tau, flagged):
    for a, b in ((D(0), h), (h, h + FAR)):
        cut = min(max(tau, a), b)
        short = sum(weight * grown(a, cut, spread / scale, tau) for weight, scale in law[0])
        beyond = sum(weight * grown(cut, b, -spread / scale, tau) for weight, scale in law[1])
        wanted = short + grown(cut, b) - beyond if flagged else beyond + grown(a, cut) - short
        yield wanted / grown(a, b)


def stairs(variance, truth, threshold, rho, epsilon):
    """The same four, step by step."""
    spread, epsilon = D(variance).sqrt(), D(epsilon)
    h, tau, width = D(truth) / spread, D(threshold) / spread, D(rho) / spread
    found = []
    for a, b in ((D(0), h), (h, max(h, tau) + FAR / 3)):
        yes = no = D(0)
        for k in range(math.floor((a - tau) / width) + 1, math.floor((b - tau) / width) + 2):
            mass = grown(max(a, tau + (k - 1) * width), min(b, tau + k * width))
            rare = (-epsilon * abs(k if k <= 0 else k - 1)).exp() / (1 + epsilon.exp())
            yes, no = (
                (yes + mass * rare, no + mass * (1 - rare)) if k <= 0 else (yes + mass * (1 - rare), no + mass * rare)
            )
        found.append((yes / (yes + no), no / (yes + no)))
    return [found[0][0], found[1][0], found[0][1], found[1][1]]


def error(found, expected):
    """The largest relative error of the four; what is too small for a float only has to be small."""
    assert all(0 <= value <= 1 for value in astuple(found))
    pairs = list(zip(astuple(found), expected, strict=True))
    assert all(value < 1e-280 for value, wanted in pairs if wanted < D("1e-290"))
    return max(float(abs(D(value) / wanted - 1)) for value, wanted in pairs if wanted >= D("1e-290"))


LAWS = {
    "laplace": lambda b: (laplace_noise(b), laplaces(b)),
    "one and two": lambda b: (sum_of_laplaces(b, 2 * b), laplaces(b, 2 * b)),
    "equal": lambda b: (sum_of_laplaces(b, b), laplaces(b, b)),
    "nearly equal": lambda b: (sum_of_laplaces(b, b * (1 + 1e-12)), laplaces(b, b * (1 + 1e-12))),
    "unlike": lambda b: (sum_of_laplaces(b, b / 1000), laplaces(b, b / 1000)),
    "exponential": lambda b: (difference_of_exponentials(b, b / 2), exponentials(b, b / 2)),
    "exponential, threshold first": lambda b: (difference_of_exponentials(b, 1e4 * b), exponentials(b, 1e4 * b)),
}
TRUTHS, SHIFTS = (0.001, 1.664, 10.0, 35.0), (-1.01, -1.0, -0.3, 0.0, 1e-9, 2.0, 5.0)
WIDTHS = (1e-8, 1e-4, 0.09, 1.0, 30.0, 1e8)  # of the noise, in spreads: from rho = 1e-4, ε = 1e4 to rho = 100, ε = 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("truth", TRUTHS)
def test_rates_equal_the_closed_forms(law, truth):
    for turn, (width, shift) in enumerate(product(WIDTHS, SHIFTS)):
        if (turn + len(law)) % 3 == 0:
            tail, form = LAWS[law](width * 7.0)
            given = {"variance": 49.0, "truth": 7 * truth, "threshold": 7 * truth * (1 + shift)}
            assert error(rates_of_tail(tail, **given), oracle(form, **given)) < 1e-12, given


@pytest.mark.parametrize("law", LAWS)
def test_rates_equal_the_closed_forms_beside_the_threshold(law):
    for width, shift in product(WIDTHS[:4], (-3.0, 0.5, 40.0)):
        tail, form = LAWS[law](width)
        given = {"variance": 1.0, "truth": 1.5, "threshold": 1.5 + shift * width}
        assert error(rates_of_tail(tail, **given), oracle(form, **given)) < 1e-12, given


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.1, 0.7, 4.0, 100.0])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 3.0, 40.0, 1e4])
def test_the_staircase_equals_the_sum_over_its_steps(rho, epsilon):
    for truth, threshold in ((1.664, 1.664), (0.01, -0.001), (3.0, 8.0)):
        given = {"variance": 1.0, "truth": truth, "threshold": threshold, "rho": rho, "epsilon": epsilon}
        assert error(rates("staircase", **given), stairs(**given)) < 1e-12, given


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.02, 1.0])
def test_a_staircase_of_many_steps_is_summed_as_well(epsilon):
    rho, h, tau = 1e-4, 2.0, 1.3
    k = np.arange(math.floor(-tau / rho), math.ceil(14 / rho), dtype=np.longdouble) + 1
    ends = [np.clip(np.longdouble(tau) + (k + shift) * rho, 0, None) for shift in (-1, 0)]
    nodes, weights = np.polynomial.legendre.leggauss(6)
    rare = np.exp(-epsilon * np.where(k <= 0, -k, k - 1)) / (1 + np.exp(np.longdouble(epsilon)))
    found = rates("staircase", variance=1, truth=h, threshold=tau, rho=rho, epsilon=epsilon)
    for low, high, value in ((0, h, found.false_positive), (h, 14, found.true_positive)):
        left, right = (np.clip(end, low, high) for end in ends)
        x = left + (right - left) * (1 + nodes[:, None].astype(np.longdouble)) / 2
        mass = (right - left) * np.sum(weights[:, None] * np.exp(-(x**2) / 2), axis=0)
        expected = np.sum(mass * np.where(k <= 0, rare, 1 - rare)) / np.sum(mass)
        assert value == pytest.approx(float(expected), rel=1e-11)


def test_the_oracle_sees_an_error_in_the_ninth_digit():
    given = {"variance": 1.0, "truth": 1.664, "threshold": 1.7}
    for stretch in (1 - 1e-8, 1 + 1e-8):
        tail = replace(laplace_noise(0.3), wide=0.3 * stretch)
        assert error(rates_of_tail(tail, **given), oracle(laplaces(0.3), **given)) > 1e-9
    steps = {"variance": 1.0, "truth": 1.664, "threshold": 1.7, "rho": 0.3}
    assert error(rates("staircase", **steps, epsilon=1 + 1e-8), stairs(**steps, epsilon=1.0)) > 1e-9


# Vectors and the paper


@pytest.mark.parametrize("case", vectors("watch.json", lambda case: case["mechanism"] in NAMES))
def test_vectors(case):
    given, expected = case["params"], {name: float(value) for name, value in case["expected"].items()}
    asked = {"variance": float(given["var"]), "truth": float(given["h"]), "threshold": float(given["tau"])}
    loss = {"rho": float(given["rho"]), "epsilon": float(given.get("eps_total", given.get("eps")))}
    found = [rates(NAMES[case["mechanism"]], **asked, **loss, cutoff=given.get("c"))]
    if "b_query" in given:
        tail = difference_of_exponentials(float(given["b_query"]), float(given["b_thresh"]))
        found.append(rates_of_tail(tail, **asked))
    for each in found:
        assert each.false_positive == pytest.approx(expected["P_I"], rel=1e-12)
        assert each.true_positive == pytest.approx(expected["TPR"], rel=1e-12)
        assert each.false_negative == pytest.approx(expected["P_II"], rel=1e-12)


REACHED = {  # of the true positives, at a false positive rate of 10 % and of 1 %
    "paper": {0.4: (0.375, 0.046), 2: (0.960, 0.623), 4: (0.997, 0.873), 8: (1.000, 0.969)},
    "laplace": {0.1: (0.426, 0.046), 0.5: (0.971, 0.673), 1: (0.998, 0.904), 2: (1.000, 0.977)},
    "staircase": {0.1: (0.426, 0.046), 0.5: (0.972, 0.680), 1: (0.998, 0.929), 2: (1.000, 0.984)},
}


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", REACHED)
def test_true_positives_of_the_example(mechanism):
    for epsilon, reached in REACHED[mechanism].items():
        found = [true_positive_at(mechanism, level, **EXAMPLE, epsilon=epsilon)[1] for level in (0.1, 0.01)]
        assert found == pytest.approx(reached, abs=5.1e-4)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("level", [1e-9, 0.03, 0.5, 1 - 1e-6])
def test_the_threshold_found_has_the_false_positive_rate_wanted(mechanism, level):
    threshold, true_positive = true_positive_at(mechanism, level, **COARSE)
    found = rates(mechanism, threshold=threshold, **COARSE)
    assert found.false_positive == pytest.approx(level, rel=1e-10)
    assert found.true_negative == pytest.approx(1 - level, rel=1e-8)
    assert found.true_positive == true_positive


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_more_loss_is_better_and_the_limits_are_a_coin_and_the_truth(mechanism):
    blind, sure = (rates(mechanism, **EXAMPLE, threshold=9130, epsilon=epsilon) for epsilon in (1e-9, 1e9))
    assert blind.false_positive == pytest.approx(blind.true_positive, rel=1e-6)
    assert astuple(sure) == pytest.approx((0, 1, 1, 0), abs=1e-6)
    reached = [true_positive_at(mechanism, 0.05, **{**EXAMPLE, "epsilon": e})[1] for e in (0.1, 0.5, 2, 8)]
    assert reached == sorted(reached)


def test_a_sparse_vector_that_is_monotone_or_stops_sooner_is_better():
    asked = {**EXAMPLE, "epsilon": 20}
    for mechanism in ("svt-laplace", "svt-exponential"):
        reached = [true_positive_at(mechanism, 0.1, **asked, cutoff=cutoff)[1] for cutoff in (None, 1, 2, 10)]
        assert reached[0] == reached[1] > reached[2] > reached[3]
        assert true_positive_at(mechanism, 0.1, **asked, cutoff=2, monotone=True)[1] > reached[2]
    same = rates("svt-laplace", threshold=9000, **asked, monotone=True)  # both scales are 2 rho / epsilon
    assert same == rates_of_tail(sum_of_laplaces(50, 50), variance=3.01e7, truth=9130, threshold=9000)


# The frontier


def test_a_coin_between_two_staircases_beats_one():
    found = staircase_at(0.05, **COARSE)
    assert (found.lower, found.upper, round(found.true_positive, 3)) == (1.645, 2.645, 0.709)
    assert round(true_positive_at("laplace", 0.05, **COARSE)[1], 3) == 0.509
    assert round(true_positive_at("staircase", 0.05, **COARSE)[1], 3) == 0.614
    low, high = (rates("staircase", threshold=at, **COARSE).false_positive for at in (found.lower, found.upper))
    assert found.share * low + (1 - found.share) * high == pytest.approx(0.05, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("rho", "epsilon"), [(0.1, 0.3), (0.7, 1.0), (2.0, 2.0), (9.0, 0.5)])
def test_no_single_staircase_is_above_the_frontier(rho, epsilon):
    asked = {"variance": 1.0, "truth": 1.3, "rho": rho, "epsilon": epsilon}
    for level in (1e-4, 0.02, 0.3, 0.9):
        best, single = staircase_at(level, **asked).true_positive, true_positive_at("staircase", level, **asked)[1]
        assert best >= single - 1e-12


@pytest.mark.parametrize("level", [0.02, 0.05, 0.3])
def test_no_private_rule_at_all_is_above_the_frontier(level):
    """The best rule on cells of rho/10 is a linear programme."""
    h, step, epsilon, near = 1.6, 0.1, 2.0, 10
    edges = np.append(np.arange(70) * step, 50.0)
    mass = -np.diff(erfc(edges / math.sqrt(2)))
    outlier = edges[:-1] >= h - step / 2
    i, j = np.array([(i, j) for i in range(70) for j in range(70) if 0 < abs(i - j) <= near]).T
    rule = np.eye(70)[i] - math.exp(epsilon) * np.eye(70)[j]  # p_i <= e^ε p_j, and the same for what is not flagged
    limits = np.repeat([0.0, math.exp(epsilon) - 1], len(i))
    gain, price = mass * outlier / mass[outlier].sum(), mass * ~outlier / mass[~outlier].sum()
    best = linprog(-gain, A_ub=np.vstack([rule, -rule]), b_ub=limits, A_eq=price[None], b_eq=[level], bounds=(0, 1))
    found = staircase_at(level, variance=1, truth=h, rho=step * near, epsilon=epsilon)
    assert found.true_positive == pytest.approx(-best.fun, abs=1e-6)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_curve_rises_and_spans_the_levels(mechanism):
    curve = roc(mechanism, **EXAMPLE, epsilon=1, points=60)
    assert len(curve.thresholds) == 60
    assert curve.false_positive[0] == pytest.approx(1e-4, rel=0.05)
    assert curve.false_positive[-1] == pytest.approx(1 - 1e-4, abs=1e-5)
    for values in (curve.false_positive, curve.true_positive, -curve.thresholds):
        assert np.all(np.diff(values) >= 0)
    middle = rates(mechanism, **EXAMPLE, epsilon=1, threshold=float(curve.thresholds[30]))
    assert middle.false_positive == pytest.approx(curve.false_positive[30], rel=1e-12)


# Runs


def test_runs_of_the_paper_lie_far_apart():
    low, high = run_interval("paper", **EXAMPLE, epsilon=1, threshold=9130)
    assert (round(low, 4), round(high, 4)) == (0.0215, 0.1892)
    noise = oracle(laplaces(2000), 3.01e7, 9130, 9130 - 1000 * math.log(10))
    assert high == pytest.approx(float(noise[0]), rel=1e-12)


@pytest.mark.parametrize("mechanism", ["paper", "svt-laplace", "svt-exponential"])
def test_the_rate_is_the_mean_over_runs(mechanism):
    asked = {**EXAMPLE, "epsilon": 3, "threshold": 9000}
    levels, weights = np.polynomial.legendre.leggauss(60)
    ends = [run_interval(mechanism, **asked, level=(1 + level) / 2) for level in levels]
    mean = sum(weight * (low + high) / 4 for weight, (low, high) in zip(weights, ends, strict=True))
    assert mean == pytest.approx(rates(mechanism, **asked).false_positive, rel=1e-3)


@pytest.mark.parametrize("mechanism", ["laplace", "staircase"])
def test_runs_without_a_shared_draw_agree(mechanism):
    asked = {**EXAMPLE, "epsilon": 1, "threshold": 9130}
    low, high = run_interval(mechanism, **asked)
    assert low == high == rates(mechanism, **asked).false_positive


# Extremes and refusals


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_parameter_in_range_gives_nonsense(mechanism):
    extremes = product((1e-9, 1e3), (1e-9, 1e9), (1e-9, 1e9), (-1e15, -1e-9, 0.0, 1e-9, 1.0, 1e15))
    for truth, rho, epsilon, threshold in extremes:
        found = rates(mechanism, variance=1, truth=truth, rho=rho, epsilon=epsilon, threshold=threshold)
        assert all(0 <= value <= 1 for value in astuple(found))
        assert found.false_positive + found.true_negative == pytest.approx(1, rel=1e-8)
        assert found.true_positive + found.false_negative == pytest.approx(1, rel=1e-8)


def test_one_sided_noise_never_hides_a_score_beyond_the_threshold():
    found = rates_of_tail(difference_of_exponentials(1, 0), variance=1, truth=2, threshold=1)
    assert found.false_negative == 0
    assert found.true_positive == pytest.approx(1, rel=1e-13)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variance": math.nan}, "variance: nan is outside"),
        ({"truth": 1e8}, "count it in standard deviations"),
        ({"rho": 0}, "rho: 0 is outside"),
        ({"epsilon": 0}, "epsilon: 0 is outside .* such as 1"),
        ({"threshold": math.inf}, "threshold: inf is outside"),
        ({"cutoff": 3}, "paper: cutoff and monotone"),
        ({"monotone": True}, "choose an svt"),
        ({"mechanism": "gauss"}, "'gauss' is unknown; choose from paper"),
        ({"mechanism": "svt-laplace", "cutoff": 0}, "cutoff: 0 is not a whole number"),
        ({"mechanism": "svt-laplace", "cutoff": 1.5}, "the most flags wanted"),
    ],
)
def test_refusals_say_what_to_do(change, message):
    with pytest.raises(ParameterError, match=message):
        rates(**{"mechanism": "paper", **EXAMPLE, "epsilon": 1, "threshold": 9130, **change})


def test_other_refusals():
    for message, asked in {
        "false_positive: 0 is outside": lambda: true_positive_at("paper", 0, **COARSE),
        "level: 1 is outside": lambda: run_interval("paper", level=1, threshold=1, **COARSE),
        "points: 1 is outside": lambda: roc("paper", points=1, **COARSE),
        "0 and 1 are not noise scales": lambda: sum_of_laplaces(0, 1),
        "nan and 0.0 are not noise scales": lambda: laplace_noise(math.nan),
    }.items():
        with pytest.raises(ParameterError, match=message):
            asked()
