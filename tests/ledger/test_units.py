"""Prices in a declared unit: shared vectors, laws of the table, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from account_cases import account_cases, claim_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from wallflower.errors import ParameterError, Untranslatable
from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.units import (
    BROKEN_STEPS,
    CONSTRAINED,
    DELTA_GRID,
    ENDLESS,
    HIDDEN_SIZE,
    LOCAL,
    NEIGHBOURS,
    NO_COLUMNS,
    NOTHING,
    RHO_GRID,
    UNITS_OF_ROWS,
    Claim,
    Price,
    Protection,
    exp_bounds,
    price,
)

always = settings(derandomize=True, deadline=None, max_examples=60)

REASONS = {
    "no finite factor: N": HIDDEN_SIZE,
    "endless": ENDLESS,
    "output-constrained": CONSTRAINED,
}


def stated(epsilon: str, protects: str = "record", *, delta: str = "0", **said: Any) -> Claim:
    return Claim(loss=Loss(epsilon, delta=delta, neighbours=NEIGHBOURS[protects]), **said)


def over(window: int, **said: Any) -> Protection:
    return Protection(rows="time", unit="window", window=window, **said)


ENTRY = Protection(rows="time", unit="entry")
PERSON = Protection(rows="time", unit="person")
HIDDEN = Protection(unit="membership")


# Vectors


@pytest.mark.parametrize("case", account_cases("prices"))
def test_prices_of_the_vectors(case: dict[str, Any]) -> None:
    expected, declared = case["price"], Protection.from_json(case["data"])
    if not expected["accepted"]:
        with pytest.raises(Untranslatable) as caught:
            price(claim_of(case["question"]), declared)
        assert caught.value.why == next(why for words, why in REASONS.items() if expected["why"].startswith(words))
        return
    found = price(claim_of(case["question"]), declared)
    epsilon = None if expected["epsilon"] is None else Fraction(expected["epsilon"])
    assert found.factor == expected["k"]
    assert found.loss == (epsilon, Fraction(expected["delta"]), Fraction(expected["rho"]))


# What the table says beyond the vectors


@pytest.mark.parametrize(
    ("claim", "declared", "factor"),
    [
        (stated("1", "membership"), Protection(), 2),
        (stated("1", "membership"), HIDDEN, 1),
        (stated("1", "membership", steps=7), over(3), 6),
        (stated("1", "membership", steps=7), PERSON, 14),
        (stated("1", "record", steps=2), over(3), 2),
        (stated("1", "entry", columns=5), Protection(), 5),
        (stated("1", "window", window=4, steps=9), PERSON, 3),
        (stated("1", "window", window=4), over(3), 1),
        (stated("1", "window"), over(3), 3),
        (stated("1", "window", window=2, steps=7), replace(PERSON, times=3), 3),
        (stated("1", "window", window=2, steps=7), over(7, times=3), 3),
        (stated("1", "window", window=4, steps=7), replace(PERSON, times=3), 2),
        (stated("1", "window", window=5), replace(PERSON, times=3), 3),
        (stated("1", "entry"), replace(PERSON, times=3), 3),
        (stated("1", "record", steps=2), replace(PERSON, times=3), 2),
        (stated("1", "membership"), over(9, times=3), 6),
        (stated("1", "entry", moves=10, columns=2), Protection(), 20),
        (stated("1", "person", one_sign=True, columns=2), Protection(), 2),
        (stated("1", "person", one_sign=True), ENTRY, 1),
        (stated("1", "record", one_sign=True), ENTRY, 1),
        (stated("1", "record", one_sign=True), Protection(), 2),
        (stated("1", "membership", one_sign=True), Protection(), 2),
        (stated("1", "person", one_sign=True), over(1), 1),
        (stated("1", "person", one_sign=True), over(2), 2),
        (stated("1", "person", one_sign=True, moves=3), PERSON, 6),
        (stated("1", "membership", moves=3), HIDDEN, 3),
        (stated("1", own=(("record", Fraction(4, 3)),)), Protection(units_per_person=3), 4),
        (stated("1", "entry", own=(("membership", Fraction(1)),)), HIDDEN, 1),
    ],
)
def test_factors_of_the_table(claim: Claim, declared: Protection, factor: int) -> None:
    found = price(claim, declared)
    assert found.factor == factor
    assert found.epsilon == factor
    assert found.rho == Fraction(factor**2, 2)


def test_independent_factors_add_squares_and_a_group_multiplies_them() -> None:
    apart, together = stated("1", "entry", separable=True), stated("1", "entry")
    assert price(apart, over(4)).rho == Fraction(4, 2)
    assert price(together, over(4)).rho == Fraction(16, 2)
    assert price(replace(apart, moves=3), over(4)).rho == Fraction(4 * 9, 2)
    assert price(apart, over(4, units_per_person=2)).rho == Fraction(4 * 4, 2)
    assert price(apart, over(4)).epsilon == price(together, over(4)).epsilon == 4


def test_a_price_in_squares_of_its_own_takes_the_place_of_half_the_square() -> None:
    assert price(stated("1", rho=Fraction(1, 8)), Protection(units_per_person=3)).rho == Fraction(9, 8)


def test_a_price_in_squares_of_its_own_adds_up_over_independent_factors() -> None:
    claim = stated("1", "entry", separable=True, rho=Fraction(1, 8), steps=10)
    assert price(claim, Protection(rows="time", unit="person")).rho == Fraction(10, 8)


def test_a_price_in_squares_of_its_own_does_not_chain_beside_delta() -> None:
    claim = stated("1", delta="1e-6", rho=Fraction(1, 8))
    assert price(claim, Protection()).rho == Fraction(1, 8)
    assert price(claim, Protection(units_per_person=2)).rho == Fraction(4, 2)


def test_squares_are_rounded_up() -> None:
    third = price(stated("1/3"), Protection()).rho
    assert third == Fraction(math.ceil(Fraction(RHO_GRID, 18)), RHO_GRID)
    assert Fraction(1, 18) < third < Fraction(1, 18) + Fraction(1, RHO_GRID)


# What no theorem translates


@pytest.mark.parametrize(
    ("claim", "declared", "why"),
    [
        (stated("1"), HIDDEN, HIDDEN_SIZE),
        (stated("1", "person"), HIDDEN, HIDDEN_SIZE),
        (stated("1", "membership", one_sign=True), HIDDEN, HIDDEN_SIZE),
        (stated("1", "entry"), PERSON, ENDLESS),
        (stated("1", "record"), PERSON, ENDLESS),
        (stated("1", "window", window=10**6), PERSON, ENDLESS),
        (stated("1", "entry"), Protection(), NO_COLUMNS),
        (stated("1", "person"), Protection(), NO_COLUMNS),
        (Claim(loss=Loss("1", kind=Kind.OUTPUT_CONSTRAINED, neighbours=Neighbours.ADD_REMOVE)), HIDDEN, CONSTRAINED),
        (Claim(loss=Loss("1", kind=Kind.METRIC, neighbours=Neighbours.READING)), ENTRY, LOCAL),
        (Claim(loss=Loss("1", neighbours=Neighbours.READING)), ENTRY, LOCAL),
    ],
)
def test_what_no_theorem_translates_is_refused(claim: Claim, declared: Protection, why: str) -> None:
    with pytest.raises(Untranslatable) as caught:
        price(claim, declared)
    assert caught.value.why == why


def test_nothing_costs_nothing_but_where_the_number_of_records_is_secret() -> None:
    """To tell N costs a replaced record nothing at all, and one that is added or removed everything."""
    assert price(stated("0"), Protection()) == price(stated("0", "entry"), PERSON) == NOTHING
    assert price(stated("0", "membership"), HIDDEN) == NOTHING
    for protects in ("record", "entry", "window", "person"):
        with pytest.raises(Untranslatable) as caught:
            price(stated("0", protects), HIDDEN)
        assert caught.value.why == HIDDEN_SIZE


@pytest.mark.parametrize("own", [Fraction(1, 2), Fraction(3, 2)])
@pytest.mark.parametrize("each", [1, 2])
def test_half_a_step_has_no_delta_however_many_of_them_a_person_is(own: Fraction, each: int) -> None:
    with pytest.raises(Untranslatable) as caught:
        price(stated("1", delta="1e-6", own=(("record", own),)), Protection(units_per_person=each))
    assert caught.value.why == BROKEN_STEPS


@pytest.mark.parametrize(("epsilon", "delta", "each"), [("1", "0.5", 2), ("0", "0.5", 2), ("50", "1e-6", 10)])
def test_a_delta_of_one_protects_nobody(epsilon: str, delta: str, each: int) -> None:
    with pytest.raises(Untranslatable, match="protects nobody"):
        price(stated(epsilon, delta=delta), Protection(units_per_person=each))


# Delta against a series of its own


def taylor(power: Fraction, places: int = 90) -> tuple[Fraction, Fraction]:
    """e^power between two rationals, by its series alone; what is left out is less than the last term."""
    term = total = Fraction(1)
    count = 0
    while 2 * power > count + 1 or term * 10**places > 1:
        count += 1
        term = term * power / count
        total += term
    return total, total + term


def series(epsilon: Fraction, delta: Fraction, count: int) -> Fraction:
    bounds = [taylor(j * epsilon) for j in range(count)]
    low, high = (Fraction(math.ceil(delta * sum(side) * DELTA_GRID), DELTA_GRID) for side in zip(*bounds, strict=True))
    assert low == high
    return low


@pytest.mark.parametrize(
    ("epsilon", "delta", "count"),
    [
        ("0.5", "1e-6", 2),
        ("0.1", "1e-6", 4),
        ("1", "1e-9", 10),
        ("3", "1e-20", 7),
        ("0.01", "1e-7", 40),
        ("1/3", "1/7000", 3),
    ],
)
def test_delta_is_the_series_rounded_up(epsilon: str, delta: str, count: int) -> None:
    found = price(stated(epsilon, delta=delta), Protection(units_per_person=count)).delta
    assert found == series(Fraction(epsilon), Fraction(delta), count)


@pytest.mark.parametrize("epsilon", ["1e-30", "1e-60", "1.5e-79", "1e-80", "1e-90", "1e-99"])
@pytest.mark.parametrize("delta", ["1e-6", "1e-45", "1e-99"])
def test_delta_of_a_very_small_loss_is_never_less_than_a_multiple_of_it(epsilon: str, delta: str) -> None:
    found = price(stated(epsilon, delta=delta), Protection(units_per_person=3)).delta
    least = 3 * Fraction(delta)
    assert least <= found <= least * (1 + 3 * Fraction(epsilon)) + Fraction(1, DELTA_GRID)


@always
@given(power=st.fractions(min_value=0, max_value=20, max_denominator=1000))
def test_an_exponential_lies_between_its_bounds(power: Fraction) -> None:
    low, high = exp_bounds(power, 60)
    below, above = taylor(power)
    assert low <= above
    assert below <= high
    assert high - low <= high / 10**57


# Laws


amounts = st.fractions(min_value=0, max_value=3, max_denominator=100)
counts = st.integers(1, 12)
declared_units = st.sampled_from(
    [Protection(rows=rows, unit=unit, window=3 if unit == "window" else None)  # type: ignore[arg-type]
     for rows, units in UNITS_OF_ROWS.items() for unit in units]
)  # fmt: skip


@st.composite
def claims(draw: st.DrawFn, protects: str | None = None) -> Claim:
    protects = protects or draw(st.sampled_from(sorted(NEIGHBOURS)))
    delta = draw(st.sampled_from(["0", "1e-12", "1/1000000"]))
    kind = draw(st.sampled_from([Kind.PURE, Kind.ZCDP])) if delta == "0" else Kind.APPROXIMATE
    return Claim(
        loss=Loss(draw(amounts), delta=delta, kind=kind, neighbours=NEIGHBOURS[protects]),
        window=draw(counts) if protects == "window" else None,
        columns=draw(st.none() | counts),
        steps=draw(st.none() | counts),
        moves=draw(st.integers(1, 3)),
        one_sign=draw(st.booleans()),
        separable=draw(st.booleans()),
    )


def priced(claim: Claim, declared: Protection) -> Price:
    """The price, where there is one."""
    try:
        return price(claim, declared)
    except Untranslatable:
        assume(False)
        raise


def at_most(one: Price, other: Price) -> bool:
    pairs = zip(one.loss, other.loss, strict=True)
    return one.factor <= other.factor and all((left or 0) <= (right or 0) for left, right in pairs)


@always
@given(claim=claims(), declared=declared_units)
def test_a_price_is_never_below_the_loss_that_was_stated(claim: Claim, declared: Protection) -> None:
    found, loss = priced(claim, declared), claim.loss
    if not loss.amount and not loss.delta:
        assert found == NOTHING
        return
    assert found.factor >= 1
    assert found.delta >= loss.delta * found.factor
    if loss.kind is Kind.ZCDP:
        assert found.epsilon is None
        assert found.rho >= loss.amount
    else:
        assert found.epsilon == found.factor * loss.amount
        assert found.rho >= loss.amount**2 / 2


@always
@given(data=st.data(), declared=declared_units)
def test_one_step_is_the_loss_itself(data: st.DataObject, declared: Protection) -> None:
    claim = replace(data.draw(claims(declared.unit)), window=3, moves=1, one_sign=False)
    found = price(claim, declared)
    assume(found != NOTHING)
    assert found.factor == 1
    square = claim.loss.amount if claim.loss.kind is Kind.ZCDP else claim.loss.amount**2 / 2
    assert found.delta == claim.loss.delta
    assert found.epsilon == (None if claim.loss.kind is Kind.ZCDP else claim.loss.amount)
    assert 0 <= found.rho - square < Fraction(1, RHO_GRID)


@always
@given(claim=claims(), declared=declared_units, more=amounts)
def test_who_states_more_pays_more(claim: Claim, declared: Protection, more: Fraction) -> None:
    loss = claim.loss
    larger = Loss(loss.amount + more, delta=loss.delta, kind=loss.kind, neighbours=loss.neighbours)
    assume(loss.amount or loss.delta)
    assert at_most(priced(claim, declared), priced(replace(claim, loss=larger), declared))


@always
@given(claim=claims(), declared=declared_units, more=counts, what=st.sampled_from(["steps", "columns", "moves"]))
def test_who_reads_more_pays_no_less(claim: Claim, declared: Protection, more: int, what: str) -> None:
    fewer: dict[str, Any] = {what: getattr(claim, what) or more}
    greater: dict[str, Any] = {what: fewer[what] + more}
    assert at_most(priced(replace(claim, **fewer), declared), priced(replace(claim, **greater), declared))


@always
@given(claim=claims(), window=counts, more=counts)
def test_a_longer_window_costs_no_less_and_a_person_most(claim: Claim, window: int, more: int) -> None:
    short, long, whole = (
        priced(claim, unit) for unit in (over(window), over(window + more), replace(PERSON, times=30))
    )
    assert at_most(priced(claim, ENTRY), short)
    assert at_most(short, long)
    assert at_most(long, whole)


@always
@given(claim=claims("window"), window=counts, shorter=counts)
def test_a_loss_for_a_longer_window_costs_no_more(claim: Claim, window: int, shorter: int) -> None:
    assert at_most(
        priced(replace(claim, window=window + shorter), over(9)), priced(replace(claim, window=window), over(9))
    )


@always
@given(claim=claims(), declared=declared_units, each=st.integers(2, 5))
def test_units_of_a_person_multiply(claim: Claim, declared: Protection, each: int) -> None:
    one, several = priced(claim, declared), priced(claim, replace(declared, units_per_person=each))
    assume(one != NOTHING)
    assert several.factor == each * one.factor
    if one.epsilon is not None:
        assert several.epsilon == each * one.epsilon
    assert 0 <= one.rho * each**2 - several.rho < Fraction(each**2, RHO_GRID)
    assert several.delta >= each * one.delta - Fraction(each, DELTA_GRID)


# What cannot be declared or stated: each message says what was asked, what is allowed, and what to do


@pytest.mark.parametrize(
    ("said", "asked", "allowed", "remedy"),
    [
        ({"rows": "cells"}, "rows: 'cells'", "people, or of time", "Say which"),
        ({"rows": ["people"]}, "rows: ['people']", "people, or of time", "Say which"),
        ({"unit": "entry"}, "unit: 'entry'", "record, membership", "Choose one"),
        ({"rows": "time", "unit": "membership"}, "unit: 'membership'", "record, entry, window, person", "Choose one"),
        ({"rows": "time", "unit": []}, "unit: []", "record, entry, window, person", "Choose one"),
        ({"rows": "time", "unit": "window"}, "window:", "has a length", "both or neither"),
        ({"rows": "time", "unit": "entry", "window": 3}, "window:", "no other unit has", "both or neither"),
        ({"rows": "time", "unit": "window", "window": 0}, "window: '0'", "from 1 to 1,000,000,000", "Pass one"),
        ({"units_per_person": 0}, "units_per_person: '0'", "from 1 to 1,000,000,000", "Pass one"),
        ({"units_per_person": True}, "units_per_person: 'True'", "whole number", "Pass one"),
        ({"units_per_person": 1.5}, "units_per_person: '1.5'", "whole number", "Pass one"),
        ({"times": "100"}, "times: '100'", "whole number", "Pass one"),
        ({"times": 10**9 + 1}, "times: '1000000001'", "from 1 to 1,000,000,000", "Pass one"),
    ],
)
def test_what_cannot_be_declared(said: dict[str, Any], asked: str, allowed: str, remedy: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Protection(**said)
    message = str(caught.value)
    assert message.startswith(asked)
    assert allowed in message
    assert remedy in message
    with pytest.raises(ParameterError) as stored:
        Protection.from_json(said)
    assert str(stored.value) == message


@pytest.mark.parametrize("stored", [None, [], "record", {"unit": "record", "colour": "red"}])
def test_a_stored_declaration_is_a_table_of_what_is_known(stored: Any) -> None:
    with pytest.raises(ParameterError, match=r"protects: it is a table of rows, unit, .*Correct it"):
        Protection.from_json(stored)


@pytest.mark.parametrize(
    ("said", "asked", "allowed"),
    [
        ({"moves": 0}, "moves: '0'", "from 1 to 1,000,000,000. Pass one"),
        ({"moves": -2}, "moves: '-2'", "from 1 to 1,000,000,000. Pass one"),
        ({"columns": 0}, "columns: '0'", "from 1 to 1,000,000,000. Pass one"),
        ({"steps": 0}, "steps: '0'", "from 1 to 1,000,000,000. Pass one"),
        ({"steps": 2.5}, "steps: '2.5'", "from 1 to 1,000,000,000. Pass one"),
        ({"window": True}, "window: 'True'", "from 1 to 1,000,000,000. Pass one"),
        ({"rho": Fraction(-1, 2)}, "rho: -1/2", "0 or more. Pass what was proved"),
        ({"own": (("record", Fraction(0)),)}, "own: 0 for 'record'", "above 0, for one of record, membership"),
        ({"own": (("row", Fraction(1)),)}, "own: 1 for 'row'", "above 0, for one of record, membership"),
    ],
)
def test_what_cannot_be_stated(said: dict[str, Any], asked: str, allowed: str) -> None:
    with pytest.raises(ParameterError) as caught:
        stated("1", **said)
    assert str(caught.value).startswith(asked)
    assert allowed in str(caught.value)


@always
@given(declared=declared_units, each=counts, times=st.none() | counts)
def test_a_declaration_survives_its_storage(declared: Protection, each: int, times: int | None) -> None:
    whole = replace(declared, units_per_person=each, times=times)
    assert Protection.from_json(whole.to_json()) == whole
    assert whole.neighbours is NEIGHBOURS[whole.unit]
    assert ("of these per person" in whole.text) is (each > 1)


def test_a_claim_is_stored_with_what_it_said_and_nothing_else() -> None:
    assert set(stated("1").to_json()) == {"loss"}
    said = stated("1", rho=Fraction(1, 8), own=(("record", Fraction(4, 3)),), names="17", steps=4).to_json()
    assert {name: said[name] for name in ("rho", "own", "names", "steps")} == {
        "rho": "1/8",
        "own": {"record": "4/3"},
        "names": "17",
        "steps": 4,
    }
