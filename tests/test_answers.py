"""Accounts of the real answer: the instrument accepts what is right, and refutes what is a little off either way."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from above import ADJACENT, Above
from wallflower.audit.answers import (
    Accounts,
    Case,
    DrawRecord,
    LawCheck,
    Recorder,
    audit_cases,
    audit_claim,
    audit_draws,
    audit_law_check,
    exponential,
    gaussian,
    gaussian_at_delta,
    join,
    laplace,
)
from wallflower.audit.laws import law_of
from wallflower.data import Points
from wallflower.mechanisms import choose_together, exponential_level, gaussian_scale, permute_and_flip
from wallflower.noise import draws, sample, words
from wallflower.privacy import Loss
from wallflower.queries.count import Count
from wallflower.queries.count.audit.accounts import CASES as COUNT_CASES
from wallflower.queries.count.audit.accounts import WITHOUT_DRAWS

CASE: Case = Above.accounts().cases[0]


def with_parts(*parts: Any) -> Case:
    return replace(CASE, parts=parts)


def test_a_right_account_holds() -> None:
    assert all(finding.ok for finding in audit_cases([CASE]))


@pytest.mark.parametrize("factor", ["9/10", "11/10"])
def test_an_account_of_another_scale_is_refuted(factor: str) -> None:
    wrong = laplace("count", moves=1, epsilon=Fraction(factor))
    assert audit_draws(with_parts(replace(wrong, spends=Fraction(1)))).caught


def test_an_account_that_does_not_add_up_is_refuted() -> None:
    (right,) = CASE.parts
    assert audit_draws(with_parts(replace(right, spends=Fraction(1, 2)))).caught


def test_a_draw_that_is_not_in_the_account_is_refuted() -> None:
    right = CASE.parts[0]
    more = replace(laplace("more", moves=1, epsilon=1), spends=Fraction(0))
    assert audit_draws(with_parts(join("both", right, more))).caught


def test_a_law_that_shows_more_than_its_part_is_refuted() -> None:
    (right,) = CASE.parts
    cheap = with_parts(replace(right, spends=Fraction(9, 10)))
    assert audit_law_check(cheap, LawCheck(parts=("count",), least=0.0)).caught


def test_a_law_without_power_is_refuted() -> None:
    same = (ADJACENT[0], ADJACENT[0])
    finding = audit_law_check(CASE, LawCheck(parts=("count",), least=0.5, tables=same))
    assert finding.caught
    assert finding.lower == 0.0


def test_a_claim_of_another_rho_is_refuted() -> None:
    assert audit_claim(replace(CASE, rho=Fraction(1, 8))).caught


def test_modes_without_a_case_are_named() -> None:
    missing = Accounts(cases=(CASE,)).missing_modes(Above)
    assert missing == ["columns=given", "side=below", "clamp=False", "most=given"]


def test_each_choice_is_one_draw_whatever_it_reads() -> None:
    noise = Recorder()
    exponential_level(np.array([0, 3]), np.array([4, 2]), rate=Fraction(1, 2), noise=noise)
    choose_together([[0, 1], [2, 0, 1]], sensitivity=1, epsilon=Fraction(1), noise=noise)
    permute_and_flip([3, 1, 2], sensitivity=1, epsilon=Fraction(1), noise=noise)
    draws(noise, "laplace", Fraction(5), 2)
    words(noise, 3)
    sample(noise, 6, 4)
    noise.below(2**128)
    assert noise.draws == [
        DrawRecord("exponential", Fraction(1, 2), 6),
        DrawRecord("exponential", Fraction(1, 2), 6),
        DrawRecord("permute-and-flip", Fraction(1, 2), 3),
        *[DrawRecord("laplace", Fraction(5))] * 2,
        DrawRecord("words", size=3),
        DrawRecord("sample", Fraction(6), 4),
        DrawRecord("uniform", Fraction(2**128)),
    ]


def test_the_script_says_the_same_twice() -> None:
    first, second = (Recorder() for _ in range(2))
    assert first.below(1000) == second.below(1000)
    assert words(first, 5).tolist() == words(second, 5).tolist()
    assert sorted(sample(first, 9, 9).tolist()) == list(range(9))


@pytest.mark.parametrize("moves", [1, 385])
def test_gaussian_noise_at_delta_is_found_from_its_definition(moves: int) -> None:
    (drawn,) = gaussian_at_delta("count", moves=moves, epsilon="1/4", delta="1/5").draws
    released = gaussian_scale(moves, Fraction(1, 4), Fraction(1, 5))
    assert float(drawn.scale) <= float(released) <= 1.005 * float(drawn.scale)


def test_a_free_choice_has_the_chances_of_its_weights() -> None:
    def choose(noise: Any) -> int:
        return exponential_level(np.array([0, 1]), np.array([1, 3]), rate=Fraction(1), noise=noise)[0]

    law = law_of(lambda noise: choose(Recorder(noise=noise, free=[0])))
    assert law == pytest.approx(law_of(choose), rel=1e-9)


def test_parts_at_rho_and_by_choices_have_the_scales_of_their_theorems() -> None:
    assert gaussian("count", moves=3, rho="1/2").draws[0].scale == 3
    assert exponential("choice", epsilon=1, moves=2, candidates=5).draws == (
        DrawRecord("exponential", Fraction(1, 4), 5),
    )
    assert exponential("choice", epsilon=1, candidates=5, monotone=True).draws[0].scale == 1
    assert laplace("count", moves=2, epsilon="1/2").draws[0].scale == 4
    assert CASE.query.cost() == Loss("1")


# Errors of choices, and what is told beside noisy numbers


def choice_between(*tables: tuple[int, ...], moves: int = 1) -> Case:
    """A case whose query chooses one of its records as if they were errors."""

    class Chooses(Above):
        def answer(self, data: Points, noise: Any) -> int:
            errors = [data.values[:, 0].astype(np.int64)]
            return choose_together(errors, sensitivity=moves, epsilon=self.loss.epsilon, noise=noise)[0]

    points = [Points.from_array(np.array(table, dtype=np.float64)[:, None], name="made-up") for table in tables]
    part = exponential("choice", epsilon=1, moves=moves, candidates=len(tables[0]))
    query = Chooses(bar=1.5, loss=Loss("1"))
    return replace(CASE, query=query, tables=(points[0], points[1]), parts=(part,), released=None)


@pytest.mark.parametrize(
    ("first", "second", "is_caught"),
    [((0, 5, 5, 9), (1, 4, 6, 8), False), ((0, 5, 5, 9), (0, 5, 2, 9), True), ((0, 5, 5, 9), (0, 8, 5, 9), True)],
)
def test_errors_that_move_further_than_is_paid_for_are_noticed(
    first: tuple[int, ...], second: tuple[int, ...], is_caught: bool
) -> None:
    assert audit_draws(choice_between(first, second)).caught is is_caught


def test_settings_with_a_kind_of_loss_that_no_case_has_are_named() -> None:
    cases = tuple(case for case in COUNT_CASES if case.name != "two-sided interval at δ")
    missing = Accounts(cases=cases, without_draws=WITHOUT_DRAWS).missing_modes(Count)
    assert missing == ["interval=two-sided with a approximate loss"]
