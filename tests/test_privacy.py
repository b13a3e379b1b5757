"""Losses are exact, only like adds to like, and zCDP is shown as (ε, δ) on the safe side."""

from __future__ import annotations

import itertools
import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr

from wallflower.errors import LossMismatch, ParameterError
from wallflower.privacy import COMPOSE, Kind, Loss, Neighbours, epsilon_of_zcdp, exact, zcdp_of_epsilon

amounts = st.fractions(min_value=0, max_value=1000, max_denominator=10**9)
deltas = st.fractions(min_value=0, max_value=Fraction(1, 4), max_denominator=10**12)


def loss_of(kind: Kind, neighbours: Neighbours = Neighbours.REPLACE_ONE) -> Loss:
    delta = "1e-6" if kind is Kind.APPROXIMATE else 0
    return Loss("0.5", delta=delta, kind=kind, neighbours=neighbours)


ALL = [loss_of(kind, neighbours) for kind in Kind for neighbours in Neighbours]

# Exactness


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0.1", Fraction(1, 10)),
        (" 1/3 ", Fraction(1, 3)),
        ("1e-6", Fraction(1, 10**6)),
        ("2E+3", Fraction(2000)),
        (3, Fraction(3)),
        (Decimal("0.10"), Fraction(1, 10)),
        (Fraction(1, 10**400), Fraction(1, 10**400)),
        (Fraction(1, 10**5000), Fraction(1, 10**5000)),
    ],
    ids=lambda item: str(item)[:12] if isinstance(item, str) else type(item).__name__,
)
def test_a_number_is_read_as_it_was_written(written, value):
    assert exact(written) == value


@pytest.mark.parametrize("value", [0.5, 0.1, math.nan, math.inf, np.float64(0.25)])
def test_a_float_is_refused_with_the_reason(value):
    with pytest.raises(ParameterError, match=r"float and only nearly what you wrote; pass '.*' as text"):
        Loss(value)


HOSTILE = [
    *(
        "nan",
        "inf",
        "-inf",
        "-1",
        "+1",
        "1e999",
        "1e-999",
        "١",
        "٠.٥",
        "𝟏",
        "½",
        "",
        " ",
        ".",
        "1.",
        ".5",
        "1/0",
        "0/0",
        "1//2",
    ),
    *(
        "1_000",
        "0x10",
        "1e",
        "1e5.5",
        "1 2",
        "0.5\x00",
        "0.5; DROP TABLE",
        "９",
        "1/-2",
        "9" * 10**5,
        "0." + "1" * 10**5,
    ),
    *(True, False, None, b"0.5", [], "1000001", 10**7, -1, Fraction(-1, 2), 10**5000, -(10**5000), 1j),
    *(Decimal("NaN"), Decimal("Infinity"), Decimal("-1"), Decimal("1e999"), Decimal("sNaN")),
]


PLACES = {"epsilon": Loss, "delta": lambda text: Loss("1", delta=text), "rho": Loss.zcdp}


@pytest.mark.parametrize("text", HOSTILE, ids=[f"{type(text).__name__}{at}" for at, text in enumerate(HOSTILE)])
@pytest.mark.parametrize("place", PLACES)
def test_hostile_text_is_refused_as_a_parameter_and_never_echoed_at_length(place, text):
    with pytest.raises(ParameterError) as caught:
        PLACES[place](text)
    assert str(caught.value).startswith(f"{place}: ")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("delta", ["1", "1.5", 1])
def test_a_delta_of_one_protects_nobody(delta):
    with pytest.raises(ParameterError, match="protects nobody"):
        Loss("1", delta=delta)


@pytest.mark.parametrize("kind", [Kind.ZCDP, Kind.OUTPUT_CONSTRAINED, Kind.METRIC])
def test_only_an_approximate_loss_has_a_delta(kind):
    with pytest.raises(ParameterError, match="has no delta"):
        Loss("1", delta="1e-6", kind=kind)


def test_ten_tenths_are_one():
    total = Loss("0.1")
    for _ in range(9):
        total = total + Loss("0.1")
    assert total == Loss("0.1").times(10) == Loss("1")


@given(st.lists(st.tuples(amounts, deltas), min_size=2, max_size=4))
def test_sums_are_exact_in_any_order(parts):
    losses = [Loss(amount, delta=delta / 4) for amount, delta in parts]
    totals = set()
    for order in itertools.permutations(losses):
        total = order[0]
        for loss in order[1:]:
            total = total + loss
        totals.add(total)
    (total,) = totals
    assert total.epsilon == sum(amount for amount, _ in parts)
    assert total.delta == sum(delta / 4 for _, delta in parts)


# Only like adds to like


@pytest.mark.parametrize("operation", ["__add__", "__le__", "less"])
def test_only_like_meets_like(operation):
    for mine, other in itertools.product(ALL, ALL):
        alike = (mine.kind, other.kind) in COMPOSE and mine.neighbours is other.neighbours
        if alike:
            getattr(mine, operation)(other)
            assert mine.account == other.account
        else:
            assert mine.account != other.account
            with pytest.raises(LossMismatch, match="Only like adds to like"):
                getattr(mine, operation)(other)


def test_composition_is_a_symmetric_table_within_a_family():
    for (left, right), result in COMPOSE.items():
        assert COMPOSE[right, left] is result
        assert (loss_of(left) + loss_of(right)).kind is result


@pytest.mark.parametrize("kind", list(Kind))
def test_a_loss_has_the_letter_of_its_kind_and_no_other(kind):
    loss = loss_of(kind)
    has, lacks = ("rho", "epsilon") if kind is Kind.ZCDP else ("epsilon", "rho")
    assert getattr(loss, has) == Fraction(1, 2)
    with pytest.raises(LossMismatch):
        getattr(loss, lacks)


def test_a_kind_given_as_text_is_that_kind():
    assert Loss("1", kind="zcdp").rho == 1  # type: ignore[arg-type]


# Order and what is left


def test_losses_are_partially_ordered():
    small, large = Loss("0.5", delta="1e-6"), Loss("1", delta="1e-9")
    assert not small <= large
    assert not large <= small
    assert small <= small + large


@given(*[st.builds(lambda amount, delta: Loss(amount, delta=delta), amounts, deltas)] * 3)
def test_the_order_is_an_order_and_addition_respects_it(one, two, three):
    assert one <= one + two
    assert not (one <= two and two <= one) or (one.amount, one.delta) == (two.amount, two.delta)
    assert not (one <= two and two <= three) or one <= three
    assert not one <= two or one + three <= two + three
    assert (one + two).less(two) == one
    assert one.less(one + two) == Loss(0)


# JSON


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.account + loss.kind)
def test_json_brings_back_the_same_loss(loss):
    assert Loss.from_json(json.loads(json.dumps(loss.to_json()))) == loss


@given(amounts, deltas)
def test_json_is_exact(amount, delta):
    loss = Loss(amount / 3, delta=delta / 7)
    assert Loss.from_json(json.loads(json.dumps(loss.to_json()))) == loss


# zCDP as (ε, δ)


def gaussian_epsilon(rho: float, delta: float) -> float:
    """The exact ε of the Gaussian mechanism with this ρ [BW18]: no bound for ρ-zCDP can be smaller."""
    shift = math.sqrt(2 * rho)

    def leak(epsilon: float) -> float:
        near, far = shift / 2 - epsilon / shift, -shift / 2 - epsilon / shift
        return math.exp(log_ndtr(near)) - math.exp(epsilon + log_ndtr(far))

    low, high = 0.0, 100.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if leak(middle) <= delta else (middle, high)
    return low


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 3.0])
def test_a_zcdp_loss_is_shown_between_the_gaussian_truth_and_the_simple_bound(rho, delta):
    shown = epsilon_of_zcdp(rho, delta)
    assert gaussian_epsilon(rho, delta) <= shown <= rho + 2 * math.sqrt(rho * math.log(1 / delta))


@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-9])
@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.1, 10.0])
def test_no_order_on_a_fine_grid_gives_a_smaller_epsilon(rho, delta):
    order = 1 + np.logspace(-8, 8, 200_001)
    oracle = (order * rho + np.log1p(-1 / order) - (math.log(delta) + np.log(order)) / (order - 1)).min()
    assert epsilon_of_zcdp(rho, delta) == pytest.approx(max(0.0, oracle), rel=1e-6, abs=1e-8)


def test_the_shown_epsilon_grows_with_rho_and_falls_with_delta():
    table = np.array(
        [[epsilon_of_zcdp(rho, delta) for rho in np.logspace(-5, 1, 25)] for delta in np.logspace(-12, -1, 12)]
    )
    assert (np.diff(table, axis=1) >= 0).all()
    assert (np.diff(table, axis=0) <= 0).all()


@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-6])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
def test_the_rho_for_an_epsilon_is_the_largest(epsilon, delta):
    rho = zcdp_of_epsilon(epsilon, delta)
    assert epsilon_of_zcdp(rho, delta) <= epsilon < epsilon_of_zcdp(rho * (1 + 1e-6), delta)


def test_at_rounds_up_to_six_digits():
    loss = Loss.zcdp("0.02").at("1e-6")
    assert loss.kind is Kind.APPROXIMATE
    assert 0 < loss.epsilon - Fraction(epsilon_of_zcdp(0.02, 1e-6)) < Fraction(2, 10**6)
    assert (loss.epsilon * 10**6).denominator == 1


@pytest.mark.parametrize("delta", ["0", "1", "1.5"])
def test_showing_zcdp_needs_a_delta_between_zero_and_one(delta):
    with pytest.raises(ParameterError, match="delta"):
        Loss.zcdp("0.1").at(delta)


def test_only_zcdp_can_be_shown_at_a_delta():
    with pytest.raises(LossMismatch):
        Loss("1").at("1e-6")
