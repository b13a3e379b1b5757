"""Accuracy statements: each label is what its rule says, and nothing is ranked that noise explains."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wallflower as wf
from wallflower.data import Points, Schema
from wallflower.errors import ParameterError
from wallflower.mechanisms import calibrate
from wallflower.neighbours.noisy_count import count_noise
from wallflower.privacy import Loss
from wallflower.queries.explain.explain import percent
from wallflower.query.accuracy import (
    NoiseLaw,
    Quality,
    check_distances,
    check_share,
    check_slack_size,
    compare_numbers,
    difference_tail,
    label_noise,
    rank_highest,
    rate_groups,
    rate_number,
    show_chance,
)
from wallflower.schema.column import Column, is_identifier_like

LAW = NoiseLaw(law="laplace", scale=Fraction(8), step=Fraction(1))


def points(*columns: Column) -> Points:
    return Points.from_array(np.zeros((3, len(columns))), schema=Schema(columns=columns))


# Noise


@pytest.mark.parametrize(
    ("half_width", "number", "records", "label"),
    [
        (10, 100, 1000, "low noise"),
        (11, 100, 10_000, "moderate noise"),  # above a tenth of the number
        (11, 1000, 1000, "moderate noise"),  # above a hundredth of the records
        (51, 100, 10_000, "mostly noise"),
        (101, 1000, 1000, "mostly noise"),
        (24, 22, 367, "mostly noise"),  # the answer of the README
        (12, 0, 600, "mostly noise"),  # no outlier at all: nothing of the number is left
    ],
)
def test_the_noise_label_goes_by_the_number_and_by_the_records(
    half_width: float, number: float, records: float, label: str
) -> None:
    assert label_noise(half_width, number=number, records=records) == label
    assert rate_number(half_width, number=number, records=records, interval="two-sided").noise == label


def test_the_label_of_groups_is_that_of_the_worst() -> None:
    quality = rate_groups(12, [(0, 600), (130, 1300), (200, 1300)], interval="two-sided")
    assert quality.noise == "mostly noise"
    assert "Low noise in 2" in quality.rule
    assert rate_groups(12, [(130, 1300)], interval="two-sided").noise == "low noise"


def test_a_condition_caps_the_verdict_and_survives_json() -> None:
    quality = Quality("low noise", "a rule", "two-sided", ("Scale the columns.",))
    assert quality.verdict == "check first"
    assert Quality("mostly noise", "a rule", conditions=("x",)).verdict == "mostly noise"
    assert Quality.from_json(quality.to_json()) == quality
    assert str(quality) == "Check first: Scale the columns. Low noise: a rule."


# Conditions


def test_columns_without_a_scale_are_named() -> None:
    none, some = points(Column("a"), Column("b")), points(Column("depth", scale=2.0), Column("mass"))
    assert "no column has a scale" in check_distances(none)[0]
    assert "no scale is stated for mass" in check_distances(some)[0]
    assert check_distances(none, scale=3) == ()
    assert check_distances(points(Column("a"))) == ()
    assert check_distances(points(Column("a", scale=2.0), Column("b", low=0, high=6))) == ()
    metres = Column("x", measure="m"), Column("y", measure="m")
    assert check_distances(points(*metres)) == ()
    assert check_distances(points(metres[0], Column("y", measure="s")))


def test_an_identifier_in_a_distance_is_a_condition() -> None:
    found = check_distances(points(Column("Patient No.", scale=2.0), Column("age", scale=9.0)))
    assert found == ("Patient No. looks like an identifier and takes part in distances: remove it from `columns`.",)
    assert not is_identifier_like("age at no. of visits taken")


def test_a_column_that_was_left_out_is_named() -> None:
    schema = Schema(columns=(Column("subject_id"), Column("age", scale=9.0)))
    (left_out,) = check_distances(SimpleNamespace(columns=("age",), schema=schema))
    assert left_out.startswith("subject_id was left out of distances")
    assert check_distances(SimpleNamespace(columns=("age",), schema=schema.only(["age"]))) == ()


def test_unlike_ranges_are_a_condition() -> None:
    found = check_distances(points(Column("income", low=0, high=1e5), Column("age", low=0, high=100)))
    assert "1,000 times" in found[0]


def test_a_slack_below_the_neighbours_is_a_condition_from_ten_on() -> None:
    assert check_slack_size(3, 9) == check_slack_size(20, 20) == check_slack_size(None, 50) == ()
    assert "3 is below the 20 neighbours" in check_slack_size(3, 20)[0]


def test_no_chance_is_shown_as_certain() -> None:
    """The statement that was false: 100 %, of chances that are below 1."""
    assert show_chance(math.nextafter(1.0, 0.0)) == show_chance(1.0) == "over 99.9%"
    assert percent(math.nextafter(1.0, 0.0)) == percent(1.0) == "over 99.9 %"
    assert show_chance(0.0) == "0.0%"


def test_a_share_that_was_not_met_is_a_condition() -> None:
    two = Fraction(1, 50)
    assert check_share(two, 200, 7874, 90.0) == ()
    assert "2.0 % was asked for, about 100 % came out" in check_share(two, 7874, 7874, 90.0)[0]


# Comparisons


@pytest.mark.parametrize("least", [-30, -1, 0, 1, 5, 17, 60])
def test_the_tail_of_a_difference_is_exact(least: int) -> None:
    """Two Laplace laws on different grids, summed term by term."""
    fine = NoiseLaw(law="laplace", scale=Fraction(9), step=Fraction(1, 4))
    at = np.arange(-400, 401)
    coarse, small = np.exp(-np.abs(at) / 8), np.exp(-np.abs(at) / 9)
    gaps = at[:, None] - at[None, :] / 4
    chances = np.outer(coarse / coarse.sum(), small / small.sum())
    assert difference_tail(LAW, fine, least) == pytest.approx(float(chances[gaps >= least].sum()), abs=1e-12)


@pytest.mark.parametrize("loss", [Loss("0.3"), Loss.zcdp("0.02")])
def test_the_laws_are_those_that_noise_is_drawn_from(loss: Loss) -> None:
    noise = count_noise(3, loss)
    at, masses = NoiseLaw.of(noise).masses()
    for place in (0.5, 3.0, 20.0):
        assert masses[at * float(noise.step) >= place].sum() == pytest.approx(noise.upper_tail(place), rel=1e-6)


def test_the_p_value_is_never_too_small() -> None:
    """Of equal counts, at most a share of p has a p-value of p or less: rounding and clamping included."""
    rng, law = np.random.default_rng(5), count_noise(2, Loss("1"))
    scale, step = float(law.scale), float(law.step)
    steps = rng.geometric(-math.expm1(-1 / scale), (2, 40_000, 2))
    noisy = np.clip(np.floor(3.4 + step * (steps[0] - steps[1]) + 0.5), 0, 1000).astype(int)
    known = NoiseLaw.of(law)
    values = {gap: compare_numbers(("a", gap), ("b", 0), (known, known)).p_value for gap in range(int(noisy.max()) + 1)}
    drawn = np.array([values[gap] for gap in np.abs(noisy[:, 0] - noisy[:, 1]).tolist()])
    for level in (0.01, 0.05, 0.2):
        assert (drawn <= level).mean() <= level + 4 * math.sqrt(level / len(drawn))


def test_words_rank_only_beyond_the_noise() -> None:
    near, far = (compare_numbers(("a", count), ("b", 100), (LAW, LAW)) for count in (130, 190))
    assert "within the noise" in near.text
    assert "the count of a is higher by more than the noise explains" in far.text
    assert not near.is_beyond_noise


def test_no_group_is_called_the_highest_by_chance() -> None:
    """Twelve equal groups: the headline names one in at most a twentieth of the runs."""
    rng = np.random.default_rng(7)
    steps = rng.geometric(-math.expm1(-1 / 8), (2, 4000, 12))
    runs = (100 + steps[0] - steps[1]).tolist()
    named = sum(rank_highest(((str(at), count) for at, count in enumerate(run)), LAW) is not None for run in runs)
    assert named / len(runs) <= 0.05
    assert rank_highest([("a", 300), ("b", 100), ("c", 90)], LAW)[0] == "a"  # type: ignore[index]


def grouped(tmp_path: Any, epsilon: str) -> Any:
    rng = np.random.default_rng(1)
    names = np.array(["north", "south", "west"])[rng.integers(3, size=900)]
    rows = pd.DataFrame({"x": rng.normal(size=900), "ward": names})
    schema = Schema(
        columns=(Column("x", low=-9, high=9, scale=1.0), Column("ward", categories=("north", "south", "west")))
    )
    wards = wf.open(rows, schema=schema, name="wards", ledger=tmp_path / "l.db")
    return wards.count(neighbours=5, radius=0.01, by=("ward",), epsilon=epsilon, force=True)


def test_groups_that_are_alike_are_not_ranked_and_can_be_compared(tmp_path: Any) -> None:
    made = grouped(tmp_path, "0.1")
    assert "highest count, by more" not in made.text
    test = made.compare("north", "south")
    assert 0.0 <= test.p_value <= 1.0
    assert made.compare("north", "north").p_value == 1.0
    with pytest.raises(ParameterError, match="no group 'east'"):
        made.compare("north", "east")
    with pytest.raises(ParameterError, match="name two groups"):
        made.compare("north")
    with pytest.raises(ParameterError, match="number for each group"):
        wf.compare(made, made)


def test_two_counts_are_compared_and_a_model_is_refused(tmp_path: Any) -> None:
    rng = np.random.default_rng(2)
    a = wf.open(rng.normal(size=(400, 2)), name="a", ledger=tmp_path / "l.db")
    few = a.count(neighbours=5, radius=2.0, epsilon="0.4")
    many = a.count(neighbours=5, radius=0.01, epsilon="0.4", mechanism="extension")
    test = wf.Release.compare(few, many)
    assert test.p_value < 1e-6
    assert test.is_beyond_noise
    assert wf.compare(few, many) == test
    assert "Overcounting" in test.text
    law = NoiseLaw.from_json(few.extras["noise_law"])
    assert law == NoiseLaw.of(calibrate(int(law.scale * Fraction(2, 5)), Loss("0.4"), step=law.step))


@pytest.mark.parametrize("by", [None, ("ward",)])
def test_the_condition_on_the_slack_names_the_slack_that_the_answer_chose(
    tmp_path: Path, by: tuple[str, ...] | None
) -> None:
    sites = np.random.default_rng(5).random((2000, 2))
    columns = {"x": sites[:, 0], "y": sites[:, 1], "ward": ["a", "b"] * 1000}
    schema = Schema.of(["x", "y", "ward"], bounds={"x": (0, 1), "y": (0, 1)}, categories={"ward": ["a", "b"]})
    ledger = wf.Ledger(tmp_path / "box.db")
    ledger.grant("box", Loss("3"), by="steward")
    opened = wf.open(pd.DataFrame(columns), name="box", schema=schema, ledger=ledger)
    asked = {"neighbours": 20, "radius": 0.05, "epsilon": "3", "columns": ("x", "y"), "by": by}
    (condition,) = opened.plan.count(**asked).conditions
    released = opened.count(**asked)
    assert "crowding" in released.extras
    assert "The slack may be as low as" in condition
    wide = opened.plan.count(**asked, slack=20)
    assert wide.conditions == ()
    noise = next(option.figures["half_width"] for option in wide.options if option.mechanism == wide.chosen)
    assert f"A slack of 20 rarely has this bias; its noise is within ±{noise:,.3g} (95 %)." in condition
    assert released.quality.conditions == check_slack_size(released.extras["slack"], 20, wide_noise=noise)
