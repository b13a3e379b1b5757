"""Spending over time against every window there is."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from account_cases import account_cases
from hypothesis import given, settings
from hypothesis import strategies as st

from wallflower.errors import ParameterError
from wallflower.ledger.spans import SpanCharge, largest_window_loss

always = settings(derandomize=True, deadline=None, max_examples=150)


def charge(first: int, last: int, epsilon: str = "1", protects: str = "entry") -> SpanCharge:
    return SpanCharge(first=first, last=last, epsilon=Fraction(epsilon), protects=protects)  # type: ignore[arg-type]


def by_every_window(window: int, charges: list[SpanCharge]) -> Fraction:
    """What each run of observations meets, one observation after another."""
    if not charges:
        return Fraction()
    places = range(min(each.first for each in charges) - window, max(each.last for each in charges) + 2)
    return max(sum((met(each, range(start, start + window)) for each in charges), Fraction()) for start in places)


def met(charge: SpanCharge, run: range) -> Fraction:
    shared = sum(1 for place in run if charge.first <= place <= charge.last)
    return charge.epsilon * (shared if charge.protects == "entry" else min(shared, 1))


@pytest.mark.parametrize("case", account_cases("spans"))
def test_vectors(case: dict[str, Any]) -> None:
    charges = [SpanCharge(**{**each, "epsilon": Fraction(each["epsilon"])}) for each in case["charges"]]
    assert largest_window_loss(case["window"], charges) == Fraction(case["spent"])
    assert by_every_window(case["window"], charges) == Fraction(case["spent"])


spans = st.builds(
    lambda first, length, loss, protects: charge(first, first + length, str(loss), protects),
    st.integers(-3, 12),
    st.integers(0, 9),
    st.fractions(min_value=0, max_value=2, max_denominator=6),
    st.sampled_from(["entry", "window", "person"]),
)


@pytest.mark.parametrize(
    ("window", "charges", "start"),
    [
        (8, [charge(4, 13, "2"), charge(-20, 10)], 4),
        (8, [charge(1, 10, "2"), charge(4, 30)], 3),
        (5, [charge(1, 10), charge(11, 18, "5", "person")], 7),
        (5, [charge(11, 20), charge(3, 10, "5", "person")], 10),
    ],
    ids=["starts at a first", "ends at a last", "ends at a first", "starts at a last"],
)
def test_each_kind_of_edge_may_be_the_only_worst_one(window: int, charges: list[SpanCharge], start: int) -> None:
    runs = {s: sum(met(each, range(s, s + window)) for each in charges) for s in range(-40, 40)}
    assert [s for s, spent in runs.items() if spent == max(runs.values())] == [start]
    assert largest_window_loss(window, charges) == runs[start]


@pytest.mark.slow
@always
@given(window=st.integers(1, 14), charges=st.lists(spans, max_size=6))
def test_the_worst_run_is_found(window: int, charges: list[SpanCharge]) -> None:
    assert largest_window_loss(window, charges) == by_every_window(window, charges)


@always
@given(window=st.integers(1, 14), charges=st.lists(spans, max_size=6), one=spans)
def test_more_charges_and_longer_windows_spend_no_less_and_never_more_than_the_sum(
    window: int, charges: list[SpanCharge], one: SpanCharge
) -> None:
    spent = largest_window_loss(window, charges)
    assert spent <= largest_window_loss(window, [*charges, one])
    assert spent <= largest_window_loss(window + 1, charges)
    assert spent <= sum(each.epsilon * (window if each.protects == "entry" else 1) for each in charges)


def test_one_watch_a_day_for_ever_spends_what_one_day_does() -> None:
    daily = [charge(24 * day, 24 * day + 23, "1/100") for day in range(3000)]
    assert largest_window_loss(24, daily) == Fraction(24, 100)


def test_a_gap_between_spans_is_not_bridged_by_a_short_window() -> None:
    apart = [charge(1, 1, protects="person"), charge(10, 10, protects="person")]
    assert [largest_window_loss(window, apart) for window in (9, 10)] == [1, 2]


@pytest.mark.parametrize(
    ("said", "beats"),
    [
        ({"first": 3, "last": 2}, ("first, last: 3 to 2", "later", "Pass them in order")),
        ({"epsilon": Fraction(-1)}, ("epsilon: -1", "0 or more", "Pass what was charged")),
        ({"protects": "record"}, ("protects: 'record'", "entry, window, person", "as a sum")),
    ],
)
def test_what_is_no_charge_with_a_span(said: dict[str, Any], beats: tuple[str, ...]) -> None:
    whole: dict[str, Any] = {"first": 1, "last": 2, "epsilon": Fraction(1), "protects": "entry"}
    with pytest.raises(ParameterError) as caught:
        SpanCharge(**{**whole, **said})
    assert str(caught.value).startswith(beats[0])
    assert all(beat in str(caught.value) for beat in beats)


@pytest.mark.parametrize("window", [0, -1, 1.5, True, "3"])
def test_what_is_no_window(window: Any) -> None:
    with pytest.raises(ParameterError, match=r"window: .* is not a whole number from 1\. Pass the declared length"):
        largest_window_loss(window, [])
