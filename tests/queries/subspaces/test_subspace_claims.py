"""What a choice of subspaces claims: its squares beside its loss, against the law of the choice itself."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from wallflower.data import Points
from wallflower.privacy import Loss
from wallflower.queries.subspaces import Subspaces
from wallflower.queries.subspaces.choice import draws, rho_of
from wallflower.units import Claim, Protection, price

EXAMPLE = replace(Subspaces.example(), loss=Loss("1.6"), verify=False)
SHAPE = Points.from_array(np.zeros((64, 3)), columns=("a", "b", "c"))


def law(scores, each, top):
    """How likely each order is, by the exponential mechanism on scores in sensitivities."""
    found = []
    for order in permutations(range(len(scores)), top):
        left, chance = dict(enumerate(scores)), 1.0
        for place in order:
            chance *= math.exp(each * left[place] / 2) / sum(math.exp(each * score / 2) for score in left.values())
            del left[place]
        found.append(chance)
    return np.array(found)


def divergence(one, other, order):
    return math.log((one**order * other ** (1 - order)).sum()) / (order - 1)


def test_draws_of_the_exponential_mechanism_have_the_squares_that_are_stated():
    top = 2
    made = draws("exponential", Loss("1.6"), top)
    rho, each = float(rho_of(made, top)), float(made.each)
    assert rho == pytest.approx(1.6**2 / (8 * top))
    worst = dict.fromkeys((1.001, 2.0, 16.0), 0.0)
    for scores in product((0.0, 1.0, 2.5), repeat=3):
        for moves in product((-1.0, 0.0, 1.0), repeat=3):
            before, after = (law(at, each, top) for at in (scores, np.add(scores, moves)))
            for order in worst:
                worst[order] = max(worst[order], divergence(before, after, order) / order)
    assert max(worst.values()) <= rho
    assert worst[1.001] > 0.75 * rho  # so half of it would be too little


@pytest.mark.parametrize(("mechanism", "rho"), [("exponential", "4/25"), ("permute-and-flip", "16/25")])
def test_a_pure_choice_states_its_squares(mechanism, rho):
    query = replace(EXAMPLE, mechanism=mechanism)
    assert query.claim(SHAPE) == Claim(loss=Loss("1.6"), columns=3, steps=64, rho=Fraction(rho))
    assert price(query.claim(SHAPE), Protection()).rho == Fraction(rho)


def test_a_choice_that_is_left_open_states_the_squares_of_the_one_that_is_taken():
    taken = EXAMPLE.pick_draws(SHAPE.n, SHAPE.dimension).mechanism
    assert EXAMPLE.claim(SHAPE) == replace(EXAMPLE, mechanism=taken).claim(SHAPE)


@pytest.mark.parametrize(("mechanism", "part"), [("exponential", 8), ("permute-and-flip", 2)])
def test_counts_add_half_their_squares(mechanism, part):
    query = replace(EXAMPLE, mechanism=mechanism, counts=True, share="1/4")
    choice, counts = Fraction("0.4"), Fraction("1.2")
    assert query.claim(SHAPE).rho == choice**2 / (2 * part) + counts**2 / 4


@pytest.mark.parametrize("loss", [Loss("1", delta="1e-6"), Loss.zcdp("0.1")])
def test_other_losses_state_no_squares_of_their_own(loss):
    assert replace(EXAMPLE, loss=loss).claim(SHAPE) == Claim(loss=loss, columns=3, steps=64)


def test_leads_add_half_their_squares():
    """Three quarters of the loss for two names, a quarter for two leads of 1/5 each."""
    query = replace(EXAMPLE, mechanism="exponential", verify=True)
    names, lead = Fraction(6, 5) ** 2 / 16, Fraction(1, 5) ** 2 / 2
    assert query.claim(SHAPE).rho == names + 2 * lead
