"""Labels in distances: records that differ in a label are `weight` apart in that column, whatever else is measured."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import wallflower as wf
from wallflower.data import Column, Schema, load
from wallflower.errors import DataError
from wallflower.neighbours.limits import per_column
from wallflower.noise import system_noise
from wallflower.privacy import Loss
from wallflower.queries.count.exact import count_outliers
from wallflower.queries.subspaces.exact import units

ROWS = 60
WARDS = ("a", "b", "c", "d")


def made(seed=5):
    draw = np.random.default_rng(seed)
    cells = {"x": draw.normal(size=ROWS), "ward": draw.integers(0, 4, ROWS), "sex": draw.integers(0, 2, ROWS)}
    lines = [f"{x!r},{WARDS[w]},{'FM'[s]}" for x, w, s in zip(*(c.tolist() for c in cells.values()), strict=True)]
    return cells, "x,ward,sex\n" + "\n".join(lines) + "\n"


def facts(weight=1.25, other=0.5):
    return Schema(
        columns=(
            Column("x", scale=2),
            Column("ward", categories=WARDS, weight=weight),
            Column("sex", categories=("F", "M"), weight=other),
        )
    )


def table(folder, **weights):
    (folder / "t.csv").write_text(made()[1])
    return load(folder / "t.csv", schema=facts(**weights))


def distance(cells, i, j, columns, *, weight=1.25, other=0.5, normalise=True):
    """The distance as it is stated, from the cells themselves: the oracle."""
    parts = {
        "x": ((cells["x"][i] - cells["x"][j]) / 2) ** 2,
        "ward": weight**2 * (cells["ward"][i] != cells["ward"][j]),
        "sex": other**2 * (cells["sex"][i] != cells["sex"][j]),
    }
    total = sum(parts[name] for name in columns)
    return math.sqrt(total / len(columns) if normalise else total)


def outliers(cells, columns, radius, neighbours, **options):
    near = [
        sum(distance(cells, i, j, columns, **options) <= radius for j in range(ROWS) if j != i) for i in range(ROWS)
    ]
    return sum(count < neighbours for count in near)


@pytest.mark.parametrize("weight", [1.0, 0.1, 1.25, 3.0, 1e-3, 12345.678])
def test_points_are_as_far_apart_as_stated(weight, tmp_path):
    cells, _ = made()
    points = table(tmp_path, weight=weight).points(labels=True)
    assert points.columns == ("x", "ward", "sex")
    assert points.dimension == 3
    assert points.places == ((0,), (1, 2, 3, 4), (5,))
    for i, j in combinations(range(20), 2):
        found = math.dist(points.values[i], points.values[j])
        assert found == pytest.approx(distance(cells, i, j, points.columns, weight=weight, normalise=False), rel=1e-14)


@pytest.mark.parametrize("weight", [1.0, 0.1, 0.3, 1 / 3, 2.0, 7.7, 1e6])
@pytest.mark.parametrize("labels", [2, 3, 7])
def test_labels_that_differ_are_within_a_radius_of_the_weight_and_of_no_smaller_one(weight, labels, tmp_path):
    (tmp_path / "t.csv").write_text("s\n" + "".join(f"L{at}\n" for at in range(labels)))
    column = Column("s", categories=tuple(f"L{at}" for at in range(labels)), weight=weight)
    values = load(tmp_path / "t.csv", schema=Schema(columns=(column,))).points(labels=True).values
    assert count_outliers(values, weight, 1, normalise=False) == 0
    assert count_outliers(values, weight * (1 - 1e-12), 1, normalise=False) == labels


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("radius", [0.2, 0.5, 0.71, 0.9])
def test_counts_are_those_of_the_stated_distance(normalise, radius, tmp_path):
    cells, _ = made()
    points = table(tmp_path).points(labels=True)
    reach, per = per_column(radius, 3, points.values.shape[1], normalise=normalise)
    expected = outliers(cells, points.columns, radius, 3, normalise=normalise)
    assert count_outliers(points.values, reach, 3, normalise=per) == expected


@pytest.mark.parametrize("normalise", [True, False])
def test_the_answer_of_count_goes_by_the_stated_distance(normalise, tmp_path):
    cells, _ = made()
    query = wf.Count(neighbours=3, radius=0.71, loss=Loss("100000"), slack=50, normalise=normalise)
    view = query.view(table(tmp_path))
    assert query.answer(view, system_noise()).value == outliers(cells, view.columns, 0.71, 3, normalise=normalise)


@pytest.mark.parametrize("normalise", [True, False])
def test_subspaces_are_made_of_columns_and_scored_by_the_stated_distance(normalise, tmp_path):
    cells, _ = made()
    query = wf.Subspaces(neighbours=3, radius=0.6, upto=3, loss=Loss("1"), normalise=normalise, verify=False)
    view = query.view(table(tmp_path))
    family = query.family.subspaces(view.columns)
    assert len(family) == 7
    wide = [tuple(place for column in here for place in view.places[column]) for here in family]
    sizes = list(map(len, family))
    found = units(view.values, wide, 0.6, 3, score="count", normalise=normalise, sizes=sizes)
    names = [[view.columns[column] for column in here] for here in family]
    assert found.tolist() == [outliers(cells, here, 0.6, 3, normalise=normalise) for here in names]
    named = query.answer(view, system_noise())
    assert set(named[0]) <= {"x", "ward", "sex"}


def test_labels_without_a_weight_take_no_part(tmp_path):
    (tmp_path / "t.csv").write_text(made()[1])
    bare = Schema(columns=(Column("x"), Column("ward", categories=WARDS), Column("sex", categories=("F", "M"))))
    found = load(tmp_path / "t.csv", schema=bare)
    assert wf.Count.example().view(found).columns == ("x",)
    with pytest.raises(DataError, match="without a weight"):
        wf.Count(neighbours=3, radius=1, loss=Loss("1"), columns=("x", "ward")).view(found)


def test_bounds_that_go_by_the_dimension_refuse_columns_of_several_coordinates(tmp_path):
    loaded = table(tmp_path)
    for asked in (
        wf.Count(neighbours=3, radius=1, loss=Loss("1"), mechanism="global"),
        wf.Count(neighbours=3, radius=1, loss=Loss("1", delta="1e-6"), mechanism="smooth"),
        wf.Subspaces(neighbours=3, radius=1, upto=2, loss=Loss("1"), score="count"),
    ):
        with pytest.raises(DataError, match="ward has more than two labels") as caught:
            asked.view(loaded)
        assert caught.value.column == "ward"
    two = wf.Count(neighbours=3, radius=1, loss=Loss("1"), mechanism="global", columns=("x", "sex"))
    assert two.view(loaded).values.shape == (ROWS, 2)


def test_a_stream_of_numbers_leaves_labels_out(tmp_path):
    loaded = table(tmp_path)
    assert loaded.points().columns == ("x",)


def test_groups_are_counted_by_the_stated_distance(tmp_path):
    cells, _ = made()
    query = wf.Count(neighbours=3, radius=0.71, loss=Loss("100000"), slack=50, by=("sex",))
    view = query.view(table(tmp_path))
    found = {row["sex"]: row["outliers"] for row in query.answer(view, system_noise()).value}
    for code, label in enumerate("FM"):
        rows = np.flatnonzero(cells["sex"] == code)
        near = [sum(distance(cells, i, j, ("x", "ward")) <= 0.71 for j in rows if j != i) for i in rows]
        assert found[label] == sum(count < 3 for count in near)


@pytest.mark.parametrize("normalise", [True, False])
def test_curves_and_radii_go_by_the_stated_distance(normalise, tmp_path):
    """At this loss any error above 0 has a chance below e^-100."""
    cells, _ = made()
    radii = (0.3, 0.5, 0.71, 0.9, 1.3)
    asked = {"neighbours": 3, "loss": Loss("100000"), "slack": 50, "normalise": normalise}
    curve = wf.Profile(radii=radii, **asked)
    view = curve.view(table(tmp_path))
    expected = [outliers(cells, view.columns, radius, 3, normalise=normalise) for radius in radii]
    assert curve.answer(view, system_noise())["outliers"] == expected
    wanted = next(count for count in reversed(expected) if 0 < count < ROWS)
    share = Fraction(wanted, ROWS)
    for query in (wf.Radius(share=share, **asked), wf.Count(share=share, **asked)):
        value = query.answer(query.view(table(tmp_path)), system_noise())
        radius = value["radius"] if isinstance(value, dict) else value.radius
        before, after = (
            outliers(cells, view.columns, radius * 2 ** (step / 32), 3, normalise=normalise) for step in (-1, 1)
        )
        assert after <= wanted <= before


@pytest.mark.slow
def test_attacks_on_labels_end_as_they_must(quick_findings):
    found = {finding.name: finding for finding in quick_findings("count")}
    assert not found["exact counts with labels in distances"].caught
    assert not found["labels: what the noise hides"].caught
    assert found["broken: labels taken for numbers"].caught
    assert found["broken: a mean over coordinates instead of columns"].caught
