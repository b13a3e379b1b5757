"""What an explanation claims: its squares, and the factor for a record that is replaced, against every tiny table."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from wallflower.data import Points
from wallflower.errors import Untranslatable
from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.queries.explain import Explain
from wallflower.queries.explain.detectors import ClampedGrubbs, Distance, FixedBins, Tukey
from wallflower.queries.explain.draws.dp import STEPS, greatest_margin, record_factor, step_scores
from wallflower.queries.explain.space.tables import rank_table
from wallflower.units import Claim, Protection, price

CAP = 10_000  # steps
SITES = tuple(product((0, 1), (0.0, 4.5, 9.0)))  # a value of the context attribute, and the metric; V is (0, 5)
DETECTORS = {
    "distance": Distance(2, 1.0),
    "rare bins": FixedBins((0.0, 2.0, 4.0, 6.0)),
    "bins": FixedBins((0.0, 2.0, 4.0, 6.0), 0.4),
    "half bins": FixedBins((0.0, 2.0, 4.0, 6.0), 0.5),
    "full bins": FixedBins((0.0, 2.0, 4.0, 6.0), 0.8),
    "tukey": Tukey((0.0, 1.0, 2.0, 4.0)),
    "tukey from above": Tukey((6.0, 7.0, 8.0), 0.1),
}
REACHED = {"distance": 256, "rare bins": 257, "bins": 427, "half bins": 512, "full bins": 320, "tukey": 342}
REACHED |= {"tukey from above": 341}
LOWEST = {"distance": 1, "rare bins": 1, "bins": Fraction(427, 257), "half bins": Fraction(513, 257)}
LOWEST |= {"full bins": Fraction(321, 257), "tukey": Fraction(342, 257), "tukey from above": Fraction(342, 257)}


def scores(detector, others, scale=Fraction(1)):
    """The score of every context in steps, and the largest margin, which decides whether to say none."""
    rows = [(0, 5.0), *others]
    table = rank_table([[value] for value, _ in rows], [2], [x for _, x in rows], 0)
    (found,) = step_scores(table, detector, scale, CAP)(lambda first, taking, here: here.astype(np.int64))
    return np.append(found, greatest_margin(table, detector))


def replacements(detector, size, scale=Fraction(1)):
    """Scores of every table of so many others, and of every table with one of them replaced."""
    found = {table: scores(detector, table, scale) for table in combinations_with_replacement(SITES, size)}
    pairs = [
        (table, tuple(sorted((*table[:at], site, *table[at + 1 :]))))
        for table in found
        for at in range(size)
        for site in SITES
    ]
    return np.array([[found[one], found[other]] for one, other in pairs])


@pytest.mark.parametrize("name", DETECTORS)
def test_a_record_that_is_replaced_moves_scores_by_the_factor_at_most_and_nearly_does(name):
    detector = DETECTORS[name]
    factor = record_factor(detector)
    assert factor == LOWEST[name]
    moved = max(
        int(np.abs(np.diff(replacements(detector, size, scale), axis=1)).max())
        for size, scale in ((1, Fraction(1)), (3, Fraction(1)), (2, Fraction(7, 3)))
    )
    assert moved == REACHED[name]
    assert moved <= factor * STEPS
    assert factor == 1 or moved > factor * STEPS - 2  # a factor that is two steps less is too small


def test_without_its_factor_a_replaced_record_would_not_be_covered():
    for name in ("bins", "half bins", "full bins", "tukey"):
        assert np.abs(np.diff(replacements(DETECTORS[name], 3), axis=1)).max() > STEPS


def test_clamped_grubbs_has_no_factor_of_its_own_and_twice_is_enough():
    detector = ClampedGrubbs(0.0, 10.0, 5, 0.4)
    assert record_factor(detector) is None
    assert np.abs(np.diff(replacements(detector, 3), axis=1)).max() <= 2 * STEPS


@pytest.mark.parametrize("name", ["bins", "tukey"])
def test_the_law_of_a_draw_keeps_epsilon_and_rho_times_the_factor(name):
    each, factor = 1.0, float(LOWEST[name])
    weights = replacements(DETECTORS[name], 3)[:, :, :-1] * each / (2 * STEPS)
    logs = weights - np.log(np.exp(weights).sum(axis=2, keepdims=True))
    ratio = logs[:, 0] - logs[:, 1]
    assert np.abs(ratio).max() <= factor * each
    for order in (1.01, 2.0, 8.0, 64.0):
        worst = np.log((np.exp(logs[:, 1] + order * ratio)).sum(axis=1)).max() / (order - 1)
        assert worst <= order * factor**2 * each**2 / 8 * (1 + 1e-9)


# What is stated


def facts():
    return Explain.example().view(Points.from_array(np.zeros((9, 2)), columns=("x1", "x2")))


@pytest.mark.parametrize(
    ("detector", "factor"),
    [
        ("tukey", Fraction(342, 257)),
        ("distance:k=2,radius=1", Fraction(1)),
        ("bins", Fraction(1)),
        ("bins:fraction=0.4", Fraction(427, 257)),
    ],
)
def test_mode_dp_states_a_loss_for_who_joins_and_a_factor_for_who_is_replaced(detector, factor):
    query = replace(Explain.example(), detector=detector, top=2, doubt="1/5", loss=Loss("1"))
    assert query.claim(facts()) == Claim(
        loss=Loss("1", neighbours=Neighbours.ADD_REMOVE),
        columns=2,
        steps=1000,
        rho=Fraction(1, 50) + 2 * Fraction(2, 5) ** 2 / 8,
        own=(("record", factor),),
        names="3",
    )
    assert query.claim(facts()).loss == query.cost()
    assert price(query.claim(facts()), Protection()).epsilon == factor
    assert price(query.claim(facts()), Protection()).rho >= factor**2 * query.claim(facts()).rho
    assert price(query.claim(facts()), Protection(unit="membership")).epsilon == 1
    assert price(query.claim(facts()), Protection(rows="time", unit="entry")).epsilon == 2


def test_clamped_grubbs_states_no_factor_and_pays_twice():
    claim = replace(Explain.example(), detector="clamped-grubbs").claim(facts())
    assert claim.own == ()
    assert price(claim, Protection()).factor == 2


def test_whoever_never_says_none_spends_nothing_on_it():
    assert replace(Explain.example(), doubt=0).claim(facts()).rho == Fraction(1, 8)


def test_mode_ocdp_states_its_kind_and_whom_it_names_and_no_more():
    query = replace(Explain.example(), mode="ocdp", doubt="1/10")
    claim = query.claim(facts())
    assert claim == Claim(loss=query.cost(), columns=2, steps=1000, names="3")
    assert claim.loss.kind is Kind.OUTPUT_CONSTRAINED
    with pytest.raises(Untranslatable):
        price(claim, Protection())


def test_a_claim_names_the_record_by_its_identifier():
    query = replace(Explain.example(), identifier="name", record="Ann")
    assert query.claim(facts()).names == "name=Ann"


def test_a_claim_does_not_know_how_many_records_there_are():
    tables = (np.zeros((9, 2)), np.ones((70, 2)), np.arange(40.0).reshape(20, 2))
    views = [Explain.example().view(Points.from_array(table, columns=("x1", "x2"))) for table in tables]
    assert len({Explain.example().claim(view) for view in views}) == 1
