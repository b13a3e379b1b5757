"""Limits and their certificates, the one rule of acceptance, and the best adversary against it and against others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from account_cases import account_cases, claim_of
from hypothesis import given, settings
from hypothesis import strategies as st

from wallflower.errors import ParameterError
from wallflower.ledger.limits import Accounting, Limit, Spending, certificate, limit_of
from wallflower.privacy import Loss
from wallflower.units import Price, Protection, price

always = settings(derandomize=True, deadline=None, max_examples=60)
EVERY: tuple[Accounting, ...] = ("sum", "concentrated", "either")
NIL = Fraction()


def costs(epsilon: Fraction | str, delta: Fraction | str = "0") -> Price:
    loss = Fraction(epsilon)
    return Price(factor=Fraction(1), epsilon=loss, delta=Fraction(delta), rho=loss**2 / 2)


def squares(rho: str) -> Price:
    return Price(factor=Fraction(1), epsilon=None, delta=NIL, rho=Fraction(rho))


# How many fit

THREE = Limit.of("3", delta="1e-6")


@pytest.mark.parametrize(
    ("epsilon", "counts"),
    [
        ("0.01", (300, 3514, 3514)),
        ("0.05", (60, 140, 140)),
        ("0.1", (30, 35, 35)),
        ("0.3", (10, 3, 10)),
        ("0.5", (6, 1, 6)),
        ("1", (3, 0, 3)),
    ],
)
def test_how_many_fit_into_three(epsilon: str, counts: tuple[int, int, int]) -> None:
    limits = [replace(THREE, accounting=accounting) for accounting in EVERY]
    assert tuple(limit.affords(Spending(), costs(epsilon)) for limit in limits) == counts
    assert tuple(one_by_one(limit, costs(epsilon)) for limit in limits) == counts


def one_by_one(limit: Limit, price: Price, spent: Spending | None = None) -> int:
    spent, count = spent or Spending(), 0
    while limit.shortage(spent, price) is None:
        spent, count = spent.plus(price), count + 1
    return count


def test_the_parts_of_three() -> None:
    assert (THREE.delta, THREE.convert, THREE.accounting) == (Fraction(1, 2000000), Fraction(1, 2000000), "either")
    assert Fraction("0.175749908264") - Fraction(1, 10**9) <= THREE.rho <= Fraction("0.175749908264")
    assert THREE.loss == Loss("3", delta="1e-6")
    assert str(THREE) == "ε = 3, δ = 1e-06, either"
    assert Limit.from_json(THREE.to_json()) == THREE


def test_a_sum_without_delta_is_the_default() -> None:
    assert Limit.of("1") == Limit(epsilon=Fraction(1))
    assert Limit.of("1").holds


@pytest.mark.parametrize("case", account_cases("runs"))
def test_runs_of_the_vectors(case: dict[str, Any]) -> None:
    """What is asked and limited; what the ledger adds to that (output-constrained answers, names) is tested there."""
    declared = Protection.from_json(case["data"])
    limit, spent = limit_from(case["limit"]), Spending()
    for step in case["steps"]:
        if "limit" in step:
            limit = limit_from(step["limit"])
        if "ask" not in step or step["ask"]["kind"] == "output-constrained":
            continue
        asked = price(claim_of(step["ask"]), declared)
        accepted = min(limit.affords(spent, asked), step.get("times", 1))
        assert accepted == step["accepted"]
        spent = spent.plus(asked, accepted)
        totals = step["totals"]
        assert (spent.delta, spent.rho) == (Fraction(totals["delta"]), Fraction(totals["rho"]))
        assert totals["epsilon"] is None or spent.epsilon == Fraction(totals["epsilon"])


def limit_from(said: dict[str, str]) -> Limit:
    convert = Fraction(said.get("convert", "0"))
    whole = Fraction(said.get("delta", "0")) + convert
    gauge: Any = said.get("gauge")
    return Limit.of(Fraction(said["epsilon"]), delta=whole, convert=convert, accounting=gauge)


@pytest.mark.parametrize("case", account_cases("groups"))
def test_groups_of_the_vectors(case: dict[str, Any]) -> None:
    limit, spent = limit_from(case["limit"]), Spending()
    for step in case["steps"]:
        asked = price(claim_of(step["ask"]), Protection.from_json(case["members"][step["data"]]))
        assert asked.epsilon == Fraction(step["price"])
        fits = limit.shortage(spent, asked) is None
        assert fits is step["accepted"]
        spent = spent.plus(asked) if fits else spent
        assert spent.epsilon == Fraction(step["spent"])


# Certificates, verified by their own formula with other logarithms


def logarithm(number: Fraction) -> Decimal:
    """ln by the area of (1+t)/(1-t): a series with terms of one sign, after halving."""
    with localcontext() as context:
        context.prec = 90
        halvings = 0
        while number > Fraction(3, 2):
            number, halvings = number / 2, halvings + 1
        while number < Fraction(2, 3):
            number, halvings = number * 2, halvings - 1
        return atanh_twice(number) + halvings * atanh_twice(Fraction(2))


@cache
def atanh_twice(number: Fraction) -> Decimal:
    ratio = (number - 1) / (number + 1)
    step = Decimal(ratio.numerator) / Decimal(ratio.denominator)
    return 2 * sum((step ** (2 * n + 1) / (2 * n + 1) for n in range(110)), Decimal())


def implied(rho: Fraction, order: Fraction, convert: Fraction) -> Decimal:
    with localcontext() as context:
        context.prec = 90
        product, beyond = order * rho, order - 1
        fraction = Decimal(product.numerator) / Decimal(product.denominator)
        over = (logarithm(convert) + logarithm(order)) * Decimal(beyond.denominator) / Decimal(beyond.numerator)
        return fraction + logarithm(1 - 1 / order) - over


def is_implied(limit: Limit) -> bool:
    with localcontext() as context:
        context.prec = 90
        whole = Decimal(limit.epsilon.numerator) / Decimal(limit.epsilon.denominator)
        return implied(limit.rho, limit.order, limit.convert) <= whole


def test_the_logarithm_of_the_test_is_one() -> None:
    for number in (Fraction(1, 2000000), Fraction(9356, 1000), Fraction(8356, 9356), Fraction(1)):
        assert float(logarithm(number)) == pytest.approx(math.log(number), abs=1e-14)


@pytest.mark.parametrize("case", account_cases("limits"))
def test_limits_of_the_vectors(case: dict[str, str]) -> None:
    rho, order = certificate(Fraction(case["epsilon"]), Fraction(case["convert"]))
    assert 0 <= Fraction(case["rho"]) - rho <= Fraction(1, 10**9)
    assert (order == 0) is (rho == 0)
    if rho:
        limit = Limit.of(case["epsilon"], delta=2 * Fraction(case["convert"]))
        assert (limit.rho, limit.order) == (rho, order)
        assert limit.holds
        assert is_implied(limit)


losses = st.fractions(min_value=Fraction(1, 100), max_value=20, max_denominator=100)
deltas = st.sampled_from([Fraction(1, 10), Fraction(1, 1000), Fraction(1, 10**6), Fraction(1, 10**12)])


@always
@given(epsilon=losses, delta=deltas)
def test_a_certificate_holds_and_a_little_more_does_not(epsilon: Fraction, delta: Fraction) -> None:
    limit = Limit.of(epsilon, delta=delta)
    if not limit.rho:
        return
    assert limit.holds
    assert is_implied(limit)
    larger = replace(limit, rho=limit.rho + Fraction(1, 10**9))
    assert not larger.holds
    assert not is_implied(larger)
    assert limit.rho.denominator <= 10**12


@always
@given(epsilon=losses, delta=deltas, order=st.fractions(min_value=0, max_value=100, max_denominator=50))
def test_an_order_proves_what_its_formula_says(epsilon: Fraction, delta: Fraction, order: Fraction) -> None:
    limit = replace(Limit.of(epsilon, delta=delta), order=order)
    assert limit.holds is (not limit.rho or (order > 1 and is_implied(limit)))


@pytest.mark.parametrize("order", [Fraction(-3), NIL, Fraction(1, 2), Fraction(1), Fraction(1001, 1000), Fraction(50)])
def test_a_wrong_order_proves_nothing(order: Fraction) -> None:
    assert not replace(THREE, order=order).holds


def test_squares_need_a_delta() -> None:
    assert not replace(THREE, convert=NIL).holds
    assert certificate(Fraction(3), NIL) == certificate(NIL, Fraction(1, 10)) == (NIL, NIL)


@pytest.mark.parametrize("rho", ["1e-9", "0.001", "0.02", "1/3", "1", "7.5", "1000"])
def test_a_limit_in_squares_is_shown_with_a_certificate(rho: str) -> None:
    limit = limit_of(Loss.zcdp(rho))
    assert (limit.rho, limit.accounting) == (Fraction(rho), "concentrated")
    assert limit.holds
    assert is_implied(limit)
    assert limit.epsilon <= limit.loss.epsilon


@pytest.mark.parametrize(
    ("said", "beats"),
    [
        ({"accounting": "rényi"}, ("accounting: 'rényi'", "sum, either, concentrated", "Choose one")),
        ({"accounting": "either"}, ("delta: either", "needs a part of delta", "Pass a delta such as 1e-6")),
        ({"accounting": "concentrated"}, ("delta: concentrated", "needs a part of delta", "choose sum")),
        ({"delta": "1"}, ("delta, convert:", "below 1", "Pass less")),
        ({"delta": "0.1", "convert": "0.2"}, ("delta, convert:", "a part of it", "Pass less")),
        ({"delta": "0.1", "convert": "0"}, ("delta: either", "needs a part of delta", "choose sum")),
    ],
)
def test_what_is_no_limit(said: dict[str, Any], beats: tuple[str, ...]) -> None:
    with pytest.raises(ParameterError) as caught:
        Limit.of("1", **said)
    assert str(caught.value).startswith(beats[0])
    assert all(beat in str(caught.value) for beat in beats)


@pytest.mark.parametrize("said", [{"convert": "0.1"}, {"accounting": "sum"}, {"accounting": "either"}])
def test_a_limit_in_squares_is_concentrated(said: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=r"rho: a limit in rho is concentrated, .* Leave the rest out"):
        limit_of(Loss.zcdp("0.1"), **said)


# The rule


prices = st.builds(
    lambda epsilon, delta, alone: replace(costs(epsilon, delta), epsilon=None) if alone else costs(epsilon, delta),
    st.fractions(min_value=0, max_value=1, max_denominator=20),
    st.sampled_from([NIL, NIL, Fraction(1, 10**7), Fraction(1, 5 * 10**6)]),
    st.sampled_from([False, False, False, True]),
)
accountings = st.sampled_from(EVERY)


def is_within(limit: Limit, spent: Spending) -> bool:
    adds = spent.epsilon <= limit.epsilon and not spent.unsummed
    flat = spent.rho <= limit.rho
    rules = {"sum": adds, "concentrated": flat, "either": adds or (flat and not spent.unsummed)}
    return spent.delta <= limit.delta and rules[limit.accounting]


@always
@given(accounting=accountings, asked=st.lists(prices, max_size=40))
def test_what_is_accepted_stays_within(accounting: Accounting, asked: list[Price]) -> None:
    limit, spent = replace(THREE, accounting=accounting), Spending()
    for one in asked:
        fits = limit.shortage(spent, one) is None
        assert fits is is_within(limit, spent.plus(one))
        spent = spent.plus(one) if fits else spent
        assert is_within(limit, spent)


@always
@given(accounting=accountings, asked=st.lists(prices, max_size=30))
def test_refusals_change_nothing(accounting: Accounting, asked: list[Price]) -> None:
    """What was accepted is accepted again when what was refused is not asked, and refused again when it comes last."""
    limit, spent = replace(THREE, accounting=accounting), Spending()
    accepted: list[Price] = []
    refused: list[Price] = []
    for one in asked:
        fits = limit.shortage(spent, one) is None
        (accepted if fits else refused).append(one)
        spent = spent.plus(one) if fits else spent
    alone = Spending()
    for one in accepted:
        assert limit.shortage(alone, one) is None
        alone = alone.plus(one)
    assert alone == spent
    assert all(limit.shortage(alone, one) is not None for one in refused)


@always
@given(accounting=accountings, before=st.lists(prices, max_size=4), one=prices)
def test_how_many_fit_is_what_one_by_one_finds(accounting: Accounting, before: list[Price], one: Price) -> None:
    limit = replace(THREE, accounting=accounting)
    spent = sum((Spending().plus(each) for each in before), Spending())
    if (one.epsilon or 0) < Fraction(1, 20) and not one.delta:
        one = costs("1/20")
    assert limit.affords(spent, one) == one_by_one(limit, one, spent)


def test_nothing_fits_a_billion_times() -> None:
    assert THREE.affords(Spending(), costs("0")) == 10**9


def test_losses_in_squares_alone_fit_a_concentrated_limit_only() -> None:
    assert [replace(THREE, accounting=each).affords(Spending(), squares("1/100")) for each in EVERY] == [0, 17, 0]
    mixed = Spending().plus(squares("1/100"))
    assert mixed.unsummed == 1
    assert [replace(THREE, accounting=each).shortage(mixed, costs("0.01")) for each in EVERY] == [
        "epsilon",
        None,
        "epsilon",
    ]


def test_the_part_that_does_not_suffice_is_named() -> None:
    assert THREE.shortage(Spending(), costs("1", "1e-6")) == "delta"
    assert THREE.shortage(Spending(), costs("4")) == "epsilon"
    assert replace(THREE, accounting="concentrated").shortage(Spending(), costs("1")) == "rho"


# The best adversary


class Game:
    """Questions chosen one after another, each after all answers; `allowed` is told how often each was asked.

    A question (ε, δ) shows everything with probability δ and is else right with odds e^ε: none at (ε, δ) tells more.
    Losses are whole tenths. What is computed is the largest P(S) - e^E Q(S) over all plans, in floats: the sums have
    under a thousand terms of one sign, so that they are right to nine digits.
    """

    def __init__(self, promised: Fraction, questions: Sequence[tuple[str, str]]) -> None:
        self.promised = promised
        self.questions = [(Fraction(epsilon), Fraction(delta)) for epsilon, delta in questions]
        self.tenths = [int(10 * epsilon) for epsilon, _ in self.questions]
        assert all(tenths == 10 * epsilon for tenths, (epsilon, _) in zip(self.tenths, self.questions, strict=True))

    def spent(self, asked: tuple[int, ...]) -> Spending:
        total = Spending()
        for count, (epsilon, delta) in zip(asked, self.questions, strict=True):
            total = total.plus(costs(epsilon, delta), count)
        return total

    def leak(self, tenths: int) -> float:
        """What an answer leaks whose log-ratio is so many tenths."""
        return max(0.0, -math.expm1(float(self.promised) - tenths / 10))

    def worst(self, allowed: Callable[[tuple[int, ...]], bool]) -> float:
        permitted = cache(allowed)

        @cache
        def best(tenths: int, asked: tuple[int, ...]) -> float:
            found = self.leak(tenths)
            for index, (step, (_, delta)) in enumerate(zip(self.tenths, self.questions, strict=True)):
                after = tuple(count + (index == place) for place, count in enumerate(asked))
                if permitted(after):
                    right = 1 / (1 + math.exp(-step / 10))
                    told = right * best(tenths + step, after) + (1 - right) * best(tenths - step, after)
                    found = max(found, float(delta) + (1 - float(delta)) * told)
            return found

        return best(0, (0,) * len(self.questions))

    def planned(self, asked: tuple[int, ...]) -> float:
        """What these questions leak when all were declared beforehand."""
        law = {0: 1.0}
        for count, step in zip(asked, self.tenths, strict=True):
            right = 1 / (1 + math.exp(-step / 10))
            for _ in range(count):
                moved: dict[int, float] = {}
                for tenths, chance in law.items():
                    moved[tenths + step] = moved.get(tenths + step, 0.0) + right * chance
                    moved[tenths - step] = moved.get(tenths - step, 0.0) + (1 - right) * chance
                law = moved
        return math.fsum(chance * self.leak(tenths) for tenths, chance in law.items())


SETTINGS = [
    ("1", "0.1", [("0.1", "0"), ("0.5", "0"), ("0", "0.05")]),
    ("1", "0.1", [("0.3", "0"), ("0.5", "0"), ("0", "0.05")]),
    ("1", "0.1", [("0.2", "0"), ("1", "0"), ("0.2", "0.025")]),
    ("2", "0.1", [("0.2", "0"), ("1", "0"), ("0", "0.05")]),
    ("0.5", "0.1", [("0.1", "0"), ("0.3", "0"), ("0", "0.05")]),
    ("0.5", "0.01", [("0.1", "0"), ("0.3", "0"), ("0.1", "0.001")]),
    ("3", "0.3", [("0.5", "0"), ("1", "0"), ("0.5", "0.05")]),
]


@pytest.mark.parametrize(("epsilon", "delta", "questions"), SETTINGS)
def test_no_adversary_exceeds_the_promise(epsilon: str, delta: str, questions: list[tuple[str, str]]) -> None:
    game = Game(Fraction(epsilon), questions)
    whole = Limit.of(epsilon, delta=delta)
    found = {}
    for accounting in EVERY:
        limit = replace(whole, accounting=accounting)
        found[accounting] = game.worst(lambda asked, limit=limit: is_within(limit, game.spent(asked)))  # type: ignore[misc]
    assert 0 < max(found["sum"], found["concentrated"]) <= found["either"] <= float(delta)
    assert found["sum"] <= float(whole.delta) * (1 + 1e-9)


def test_both_gauges_with_all_of_delta_are_too_much() -> None:
    """Each alone keeps the promise; who chooses between them after the answers gets a part of both deltas."""
    game, delta = Game(Fraction(1), [("0.3", "0"), ("0.5", "0"), ("0", "0.1")]), Fraction(1, 10)
    rho, _ = certificate(Fraction(1), delta)

    def adds(asked: tuple[int, ...]) -> bool:
        spent = game.spent(asked)
        return spent.epsilon <= 1 and spent.delta <= delta

    def adds_squares(asked: tuple[int, ...]) -> bool:
        spent = game.spent(asked)
        return spent.rho <= rho and not spent.delta

    assert game.worst(adds) <= 0.1 + 1e-9
    assert game.worst(adds_squares) <= 0.1
    assert game.worst(lambda asked: adds(asked) or adds_squares(asked)) == pytest.approx(0.11994, abs=1e-5)


def test_what_was_asked_so_far_may_fit_as_a_plan_and_be_too_much() -> None:
    """Each list of questions, declared beforehand, leaks a tenth at most; the one that the answers chose leaks more."""
    game = Game(Fraction(1), [("0.1", "0"), ("0.5", "0")])
    assert game.worst(lambda asked: game.planned(asked) <= 0.1) == pytest.approx(0.11383, abs=1e-5)


def test_one_question_after_another_leaks_what_was_planned_where_nothing_is_chosen() -> None:
    game = Game(Fraction(1), [("0.3", "0")])
    leaks = [game.worst(lambda asked, most=most: asked[0] <= most) for most in range(1, 30)]  # type: ignore[misc]
    assert leaks == pytest.approx(
        [max(game.planned((n,)) for n in range(most + 1)) for most in range(1, 30)], abs=1e-12
    )
    assert all(one <= other for one, other in pairwise(leaks))
