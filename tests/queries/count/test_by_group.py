"""Counts by group: one price, every group of the public domain, and how far one record can move them all together."""

import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from worlds import outliers

import wallflower as wf
from wallflower import Count, Loss, Schema
from wallflower.data import Column
from wallflower.errors import DataError, LossMismatch, ParameterError
from wallflower.queries.count.audit.by_group import BROKEN
from wallflower.queries.count.by_group import GroupCounts
from wallflower.query import Bars, HeatMap
from wallflower.release import Release

WARDS = ("A", "B", "C")
SCHEMA = Schema.of(["x", "y", "ward", "age"], categories={"ward": WARDS}, edges={"age": (18, 65)})


class Silence:
    """Draws that are all 0, and the scales that were asked for."""

    def __init__(self):
        self.scales = []

    def laplace(self, scale):
        self.scales.append(scale)
        return 0


def table(n=300, seed=0, schema=SCHEMA):
    draw = np.random.default_rng(seed)
    cells = {
        "x": draw.standard_normal(n),
        "y": draw.standard_normal(n),
        "ward": np.array(WARDS[:2])[draw.integers(0, 2, n)],
        "age": draw.uniform(0, 99, n),
    }
    return wf.load(pa.table(cells), schema=schema, name="people")


def asked(**changes):
    return Count(**{"neighbours": 3, "radius": 0.5, "loss": Loss("1"), "by": ("ward",), **changes})


def told(query, data, noise=None):
    return query.answer(query.view(data), noise or Silence()).value


def test_without_noise_every_group_has_its_own_outliers_and_size():
    data = table()
    rows = told(asked(slack=1000, columns=("x", "y")), data)
    points, codes = data.points(("x", "y")).values, data.codes("ward")
    for code, row in enumerate(rows):
        here = points[codes == code]
        assert row["ward"] == WARDS[code]
        assert row["size"] == len(here)
        assert row["outliers"] == (outliers(here, 0.5, 3) if len(here) else 0)


def test_an_empty_group_of_the_domain_is_told_like_any_other():
    rows = told(asked(), table())
    assert [row["ward"] for row in rows] == list(WARDS)
    assert rows[2] == {"ward": "C", "outliers": 0, "size": 0}


def test_noise_is_for_twice_the_slack_and_a_tenth_of_the_loss_goes_to_sizes():
    noise = Silence()
    told(asked(slack=4, loss=Loss("2")), table(), noise)
    assert noise.scales == [Fraction(2 * (4 * 128 + 1)) / Fraction(9, 5), Fraction(2) / Fraction(1, 5)] * 3


OPEN = Schema(
    columns=(
        *(Column(name) for name in ("x", "y")),
        Column("ward", categories=WARDS, public=True),
        Column("age", edges=(18, 65)),
    )
)


def test_public_groups_have_exact_sizes_and_noise_for_one_more_than_the_slack():
    noise, data = Silence(), table(schema=OPEN)
    query = asked(slack=4, loss=Loss("2"), public_groups=True)
    rows = told(query, data, noise)
    assert noise.scales == [Fraction(5 * 128 + 1, 2)] * 3
    assert [row["size"] for row in rows] == np.bincount(data.codes("ward"), minlength=3).tolist()
    assert "another of the same group" in " ".join(query.reading(GroupCounts(rows), query.view(data)).notes)
    plan = query.plan_on(query.view(data))
    assert plan.options[0].figures["sizes"] == 0
    assert plan.options[0].figures["half_width"] < asked(slack=4, loss=Loss("2")).variant.reach * 0.6


def test_groups_are_public_only_where_the_schema_says_so():
    for by in (("ward",), ("ward", "age")):
        with pytest.raises(DataError, match="is not marked `public = true`"):
            asked(by=by, public_groups=True).view(table(schema=SCHEMA if len(by) == 1 else OPEN))
    with pytest.raises(ParameterError, match="Omit public_groups, or pass by"):
        asked(by=None, public_groups=True)


def test_labels_that_are_not_listed_form_one_group():
    listed = Column("ward", categories=("A",), other="other")
    schema = Schema(columns=(Column("x"), Column("y"), listed, Column("age")))
    rows = told(asked(columns=("x", "y")), table(schema=schema))
    sizes = np.bincount(table().codes("ward"), minlength=3)
    assert [(row["ward"], row["size"]) for row in rows] == [("A", sizes[0]), ("other", sizes[1:].sum())]


def test_bins_make_groups_and_two_columns_make_a_map():
    query = asked(by=("ward", "age"))
    rows = told(query, table())
    assert [(row["ward"], row["age"]) for row in rows[:3]] == [
        ("A", "below 18"),
        ("A", "18 to 65"),
        ("A", "65 and more"),
    ]
    picture = query.picture(json.loads(json.dumps(rows)), query.view(table()))
    assert isinstance(picture, HeatMap)
    assert (picture.down, len(picture.across)) == (WARDS, 3)
    assert picture.values[2] == (None, None, None), "groups that are too small have no colour"


def test_distances_leave_out_the_columns_that_make_groups():
    assert asked(by=("age",)).view(table()).columns == ("x", "y")


def test_one_name_is_a_list_of_one() -> None:
    assert asked(by="age") == asked(by=("age",)) == asked(by=["age"])
    assert asked(columns="x", by="age").columns == ("x",)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"by": ()}, ParameterError, "one column or by two"),
        ({"by": ("ward", "ward")}, ParameterError, "two different"),
        ({"by": ("ward", "age", "x")}, ParameterError, "not by 3"),
        ({"by": ("x",), "columns": ("x", "y")}, ParameterError, "cannot make groups"),
        ({"by": ("size",)}, ParameterError, "part of the answer"),
        ({"loss": Loss("1", delta="1e-6")}, LossMismatch, "epsilon alone"),
        ({"loss": Loss.zcdp("1")}, LossMismatch, "epsilon alone"),
        ({"interval": "two-sided"}, ParameterError, "does not take it"),
        ({"mechanism": "global"}, ParameterError, "does not take it"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, error, words):
    with pytest.raises(error, match=words):
        asked(**changes)


@pytest.mark.parametrize(
    ("by", "words"), [(("x",), "must be public"), (("bed",), "is not there"), (("wrad",), "Did you mean 'ward'")]
)
def test_groups_that_are_not_public_are_refused(by, words):
    with pytest.raises(DataError, match=words):
        asked(by=by).view(table())


def test_numbers_alone_have_no_groups():
    with pytest.raises(DataError, match="numbers only"):
        asked().view(wf.Points.from_array(np.zeros((9, 2))))


def test_too_many_groups_are_refused():
    many = [str(number) for number in range(101)]
    cells = {"x": [0.0, 1.0], "a": many[:2], "b": many[:2]}
    schema = Schema.of(["x", "a", "b"], categories={"a": many, "b": many})
    with pytest.raises(ParameterError, match="10,201 groups"):
        asked(by=("a", "b"), neighbours=1).view(wf.load(pa.table(cells), schema=schema, name="wide"))


@pytest.fixture
def made(tmp_path):
    people = wf.open(table(3000), ledger=tmp_path / "ledger.db")
    return people.count(neighbours=3, radius=0.5, epsilon="0.8", by=("ward",))


def test_one_price_for_all_groups(made):
    assert str(made.booked) == "ε = 0.8"
    assert [row["ward"] for row in made.value] == list(WARDS)
    assert len(made.extras["intervals"]) == 3


def test_the_release_survives_the_ledger_and_is_drawn(made):
    again = Release.from_dict(json.loads(made.to_json()))
    assert again.value == made.value
    assert isinstance(asked().picture(again.value, again.facts), Bars)
    assert made.plot() is not None


def test_the_release_as_a_table(made):
    header, *rows = made.to_csv().splitlines()
    assert header == "ward,outliers,size,low,high"
    assert [row.split(",")[0] for row in rows] == list(WARDS)


def test_the_plan_knows_how_many_groups_there_are():
    query = asked()
    plan = query.plan_on(query.view(table()))
    assert plan.facts["groups"] == 3
    assert not plan.useful
    assert "3 groups of 100 records on average" in plan.verdict
    assert query.plan(n=300, dimension=2).curve == plan.curve
    assert float(plan.smallest_useful_epsilon) > 1


def test_the_plan_states_the_law_of_the_noise():
    query = asked(loss=Loss("3"))
    half_width, law = query.plan_on(query.view(table())).options[0].figures["half_width"], query.variant.law
    assert law.upper_tail(half_width + 1 / 128) <= 0.025 < law.upper_tail(half_width)


@pytest.mark.parametrize(("slack", "counts"), [(2, ([2, 4], [4, 2])), (3, ([1, 4], [4, 1]))])
def test_a_record_that_changes_its_group_moves_both_counts_by_the_slack(slack, counts):
    before = [*(("A", x) for x in (0, 1, 1, -1, -1)), *(("B", x) for x in (1, 1, -1, -1))]
    schema = Schema.of(["x", "g"], categories={"g": ["A", "B"]})
    query = asked(by=("g",), neighbours=2, radius=1.0, slack=slack)
    for records, expected in zip((before, [("B", 0), *before[1:]]), counts, strict=True):
        cells = {"x": [float(x) for _, x in records], "g": [group for group, _ in records]}
        rows = told(query, wf.load(pa.table(cells), schema=schema, name="example"))
        assert [row["outliers"] for row in rows] == expected


@pytest.mark.slow
def test_what_is_sound_holds_and_what_is_broken_is_caught(quick_findings):
    found = {finding.name: finding for finding in quick_findings("count")}
    sound = ("exact counts of two groups", "groups: what their noise hides together", "groups, pure")
    for name in (*sound, "groups that are public"):
        assert not found[name].caught
    public = ("public groups, a tenth short", "public groups, and a record changes its group")
    for name in ("groups, a tenth short", "neighbours of other groups count", *public, *BROKEN):
        assert found[f"broken: {name}"].caught


def test_no_ward_is_ranked_first_where_noise_explains_the_differences():
    """The statement that was false: "maternity has the highest count", of 183, 172, 163 and 151 at ±25."""
    schema = Schema.of(["x", "y", "ward"], categories={"ward": ("maternity", "children", "surgery", "heart")})
    cells = {"x": [0.0, 1.0], "y": [0.0, 1.0], "ward": ["heart", "surgery"]}
    query = asked(slack=3, loss=Loss("1"), neighbours=1)
    view = query.view(wf.load(pa.table(cells), schema=schema))
    counts = zip(schema.columns[2].categories, (183, 172, 163, 151), strict=True)
    reading = query.reading(
        GroupCounts([{"ward": ward, "outliers": count, "size": 2000} for ward, count in counts]), view
    )
    assert 15 < query.variant.reach < 35
    assert "has the highest count" not in reading.text
    assert "the highest counts differ by no more than noise explains" in reading.text
    assert reading.extras["highest"] is None
