"""The ρ that detectors, flags and counts by group state: never exceeded by the laws they draw from, and not by much.

Rényi divergences are computed from the scales that the real answers ask their noise for. One record moves the numbers
as the sensitivity proofs say; moves are tried in full.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import wallflower as wf
from scripted_noise import Scripted
from wallflower.neighbours.noisy_count import STEP
from wallflower.queries.count import Count
from wallflower.queries.detector.detector import Detector
from wallflower.units import Protection, price

ORDERS = 1 + np.geomspace(1e-3, 1e3, 40)
DRAW = np.random.default_rng(3)
RECORDS = wf.Points.from_array(DRAW.normal(size=(3000, 3)), columns=("a", "b", "c"), name="people")


class Recorder(Scripted):
    """Notes every scale that Laplace noise is asked for."""

    def __init__(self):
        super().__init__()
        self.scales = []

    def laplace(self, scale):
        self.scales.append(scale)
        return 0


def divergences(logs, ratios):
    """The Rényi divergence at all orders, of chances and log-ratios; without loss of digits where it is small."""
    beyond = ORDERS[:, None] - 1
    most = np.max(beyond * ratios, axis=1)
    sums = np.logaddexp.reduce(logs + beyond * ratios, axis=1)
    with np.errstate(over="ignore"):
        small = np.log1p((np.exp(logs) * np.expm1(np.minimum(beyond * ratios, 20.0))).sum(axis=1))
    return np.where(most < 10, small, sums) / (ORDERS - 1)


def laplace_divergences(move, scale):
    """Of discrete Laplace laws that are `move` steps apart: number by number between the two centres, and beyond them,
    where the ratio is constant, by the geometric series."""
    p, numbers = np.exp(-1 / float(scale)), np.arange(move + 1)
    whole = np.log1p(-p) - np.log1p(p)
    left = np.log(p) - np.log1p(p)
    logs = np.concatenate([[left], whole - numbers / float(scale), [left - move / float(scale)]])
    ratios = np.concatenate([[move], move - 2 * numbers, [-move]]) / float(scale)
    return divergences(logs, ratios)


def test_the_divergence_is_that_of_the_law():
    numbers, scale = np.arange(-300, 300), Fraction(7, 2)
    one, two = (np.exp(-np.abs(numbers - at) / 3.5) for at in (0, 5))
    one, two = one / one.sum(), two / two.sum()
    assert laplace_divergences(5, scale) == pytest.approx(divergences(np.log(one), np.log(one / two)), rel=1e-9)
    assert divergences(np.log(one), np.log(one / two))[0] == pytest.approx((one * np.log(one / two)).sum(), rel=1e-2)


def worst_rho(moves):
    """The largest D_α/α of independent draws, of moves and scales."""
    return float((sum(laplace_divergences(move, scale) for move, scale in moves) / ORDERS).max())


@pytest.mark.parametrize("epsilon", ["0.05", "0.3", "1", "4"])
@pytest.mark.parametrize("more", [{}, {"contamination": "2%"}, {"spreads": "schema"}], ids=str)
def test_the_squares_of_a_detector(epsilon, more):
    query = Detector(loss=wf.Loss(epsilon), **more)
    split, noise = query.split(3000, 3), Recorder()
    query.answer(RECORDS, noise)
    assert len(noise.scales) == 256 * split.grids
    (scale,) = set(noise.scales)
    counts = worst_rho([(1, scale)] * 2 * split.grids)
    stated = query.claim(RECORDS).rho
    square = split.counts.epsilon**2 / (4 * split.grids)
    assert stated == (split.spreads**2 + split.threshold**2) / 8 + square
    assert 0.95 * float(square) < counts <= float(square)
    short = replace(split, counts=wf.Loss(split.counts.epsilon * Fraction(10, 9)))
    assert worst_rho([(1, short.law.scale)] * 2 * split.grids) > float(square)


def test_a_choice_has_an_eighth_of_its_square():
    """Of spreads and of thresholds: two errors that move against each other by 1 are the worst there is."""
    epsilon, worst = 0.45, 0.0
    for many in (1, 3, 30, 300):
        for first in (0.0, 1.0, 2.0):
            errors = np.array([first] + [0.0] * many)
            one, two = (np.exp(-epsilon * (errors + move) / 2) for move in (np.r_[1, [0] * many], np.r_[0, [1] * many]))
            one, two = one / one.sum(), two / two.sum()
            worst = max(worst, (divergences(np.log(one), np.log(one / two)) / ORDERS).max())
    assert 0.95 * epsilon**2 / 8 < worst <= epsilon**2 / 8


@pytest.mark.parametrize("epsilon", ["0.05", "1", "4"])
def test_the_squares_of_flags(epsilon):
    query = wf.Flags(detector=1, by=("ward",), loss=wf.Loss(epsilon))
    stated = query.claim(RECORDS).rho
    assert stated == Fraction(epsilon) ** 2 / 4
    worst = worst_rho([(1, query.law.scale)] * 2)
    assert worst <= float(stated)
    assert worst > {"0.05": 0.95, "1": 0.8, "4": 0.3}[epsilon] * float(stated)


@pytest.mark.parametrize("epsilon", ["0.05", "1", "4"])
@pytest.mark.parametrize(
    ("slack", "part"), [(2, "81/100*148225/528392"), (3, "41/200"), (10, "41/200"), (200, "41/200")]
)
def test_the_squares_of_counts_by_group(epsilon, slack, part):
    query = Count(neighbours=3, radius=0.5, by=("ward",), slack=slack, loss=wf.Loss(epsilon))
    first, *rest = map(Fraction, part.split("*"))
    share = first * (rest[0] if rest else 1)
    stated = query.claim(RECORDS).rho
    assert stated == share * Fraction(epsilon) ** 2
    assert price(query.claim(RECORDS), Protection()).rho == pytest.approx(stated, abs=1e-23)
    counts, sizes = query.variant.law.scale, query.variant.size_law.scale
    steps = STEP.denominator
    leaves = worst_rho([(slack * steps + 1, counts)] * 2 + [(1, sizes)] * 2)
    stays = worst_rho([((slack + 1) * steps + 1, counts)])
    assert max(leaves, stays) <= float(stated)
    assert max(leaves, stays) > {"0.05": 0.98, "1": 0.8, "4": 0.3}[epsilon] * float(stated)


def test_public_groups_and_plain_counts_state_no_squares_of_their_own():
    by = Count(neighbours=3, radius=0.5, by=("ward",), loss=wf.Loss("1"), public_groups=True)
    for query in (by, replace(by, by=None, public_groups=False)):
        assert query.claim(RECORDS).rho is None
        assert price(query.claim(RECORDS), Protection()).rho == Fraction(1, 2)


def test_fifty_six_detectors_fit_where_ten_did(tmp_path):
    query = Detector(loss=wf.Loss("0.3"))
    with wf.Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.grant("people", wf.Loss("3", delta="1e-6"), by="steward")
        quote = ledger.quote("people", query, analyst="ana", claim=query.claim(RECORDS))
        assert quote.affords == 56
        plain = ledger.quote("people", query, analyst="ana", claim=replace(query.claim(RECORDS), rho=None))
        assert plain.affords == 10


def test_a_release_of_a_detector_is_booked_by_its_squares(tmp_path):
    with wf.Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.grant("people", wf.Loss("3", delta="1e-6"), by="steward")
        people = wf.open(RECORDS, ledger=ledger)
        people.detector(epsilon="0.3")
        (charge,) = [entry for entry in ledger.history("people") if entry.event == "charge"]
        assert Fraction(charge.rho) == Fraction("0.15") ** 2 / 8 + Fraction("0.15") ** 2 / 80
