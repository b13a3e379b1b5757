"""Any symmetric relation: who is near by each metric, how far one record moves the count, and what is refused."""

import math
import warnings
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from worlds import extension_of, neighbours_of, tables

import wallflower as wf
from wallflower.data import load
from wallflower.data.scans import load_into
from wallflower.errors import DataError, EngineMismatch, ParameterError
from wallflower.neighbours import relations
from wallflower.neighbours.extension import certify
from wallflower.neighbours.noisy_count import exact_steps
from wallflower.neighbours.pairs import count_neighbours, list_neighbours
from wallflower.neighbours.relations import EARTH_RADIUS_KM, Relation, relate
from wallflower.privacy import Loss

ONE = Loss("1")
GENERAL = {"neighbours": 2, "radius": 1.0, "loss": ONE}


class Silent:
    """Noise of 0."""

    def laplace(self, scale):
        return 0

    gaussian = laplace


def asked(**changes):
    return wf.Count(**GENERAL | changes)


def matrix_of(related):
    """The relation as a matrix, through the interface that solvers use."""
    near = np.zeros((related.n, related.n), dtype=bool)
    met, found = list_neighbours(related, related.n)
    order = getattr(related, "order", np.arange(related.n))
    for row, (others, many) in enumerate(zip(met, found, strict=True)):
        near[order[row], order[others[:many]]] = True
    return near


def great_circle(one, other):
    """The haversine formula itself."""
    (a, x), (b, y) = np.radians(one), np.radians(other)
    half = math.sin((a - b) / 2) ** 2 + math.cos(a) * math.cos(b) * math.sin((x - y) / 2) ** 2
    return 2 * EARTH_RADIUS_KM * math.asin(min(1.0, math.sqrt(half)))


# Who is near


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 30),
    dimension=st.integers(1, 4),
    seed=st.integers(0, 2**32),
    metric=st.sampled_from(["manhattan", "chebyshev"]),
)
def test_named_metrics_are_those_of_scipy(n, dimension, seed, metric):
    values = np.random.default_rng(seed).integers(-6, 6, (n, dimension)) / 4  # sums are exact, so ties are ties
    expected = cdist(values, values, {"manhattan": "cityblock"}.get(metric, metric)) <= 1.0
    np.fill_diagonal(expected, False)
    assert np.array_equal(matrix_of(relate(values, metric, 1.0)), expected)
    distance = {"manhattan": lambda a, b: abs(a - b).sum(), "chebyshev": lambda a, b: abs(a - b).max()}[metric]
    assert np.array_equal(matrix_of(relate(values, distance, 1.0)), expected)


def test_blocks_of_records_do_not_show(monkeypatch):
    values = np.random.default_rng(2).normal(size=(70, 2))
    whole = matrix_of(relate(values, "manhattan", 0.5))
    monkeypatch.setattr("wallflower.neighbours.relations.RECORDS_PER_BLOCK", 7)
    assert np.array_equal(matrix_of(relate(values, "manhattan", 0.5)), whole)


@pytest.mark.parametrize("radius", [1.0, 350.0, 5_000.0, 19_000.0, 20_100.0])
def test_haversine_is_the_distance_on_the_earth(radius):
    rng = np.random.default_rng(5)
    places = np.column_stack([rng.uniform(-90, 90, 60), rng.uniform(-180, 180, 60)])
    places[:20] = places[20:40] + rng.normal(0, 0.01, (20, 2))
    far = np.array([[great_circle(one, other) for other in places] for one in places])
    assert (np.abs(far - radius) > 1e-6).all()  # no tie, where the two formulas may round apart
    expected = far <= radius
    np.fill_diagonal(expected, False)
    assert np.array_equal(matrix_of(relate(places, "haversine", radius)), expected)


def test_paris_is_344_km_from_london():
    cities = np.array([[48.8566, 2.3522], [51.5074, -0.1278]])
    assert [int(count_neighbours(relate(cities, "haversine", km), 9).sum()) for km in (343.0, 345.0)] == [0, 2]


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 25), seed=st.integers(0, 2**32), length=st.integers(1, 30), cap=st.integers(1, 9))
def test_counts_and_lists_are_those_of_the_matrix(n, seed, length, cap):
    rng = np.random.default_rng(seed)
    near = np.triu(rng.random((n, n)) < 0.4, 1)
    near |= near.T
    related = Relation(n=n, rows=np.packbits(near, axis=1))
    assert count_neighbours(related, cap).tolist() == np.minimum(near.sum(1), cap).tolist()
    some = rng.permutation(n)[: n // 2 + 1].astype(np.int32)
    met, found = list_neighbours(related, length, some)
    for row, record in enumerate(some.tolist()):
        cyclic = [other % n for other in range(record + 1, record + n) if near[record, other % n]]
        assert met[row, : found[row]].tolist() == cyclic[:length]


# Functions of the user's


def test_a_function_is_asked_both_ways_and_one_yes_is_enough():
    values = np.arange(4.0)[:, None]
    one_way = matrix_of(relate(values, lambda a, b: 0.0 if a[0] == 0 and b[0] == 3 else 9.0, 1.0))
    assert np.argwhere(one_way).tolist() == [[0, 3], [3, 0]]
    truth = matrix_of(relate(values, lambda a, b: bool(a[0] + b[0] == 5), 1.0))
    assert np.argwhere(truth).tolist() == [[2, 3], [3, 2]]


def test_a_failing_function_says_not_near_and_nothing_else():
    def odd(a, b):
        if a[0] == 1:
            raise ZeroDivisionError(str(a))
        if a[0] == 2:
            warnings.warn("a record", stacklevel=1)
            return np.float64(1) / np.float64(0) - np.float64("inf")
        return "text" if a[0] == 3 else None if a[0] == 4 else 0.5

    values = np.arange(7.0)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        near = matrix_of(relate(values, odd, 1.0))
    # whoever is asked by 0, 5 or 6 is near, since one yes is enough
    assert np.array_equal(near, [[i != j and bool({i, j} & {0, 5, 6}) for j in range(7)] for i in range(7)])


def test_a_function_cannot_change_records():
    def grab(a, b):
        a[0] = 100.0
        return 0.0

    assert not matrix_of(relate(np.zeros((3, 1)), grab, 1.0)).any()


# One record


RELATIONS = [
    {pair for pair, is_near in zip(list(combinations(range(3), 2)), bits, strict=True) if is_near}
    for bits in product([False, True], repeat=3)
]


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize(("k", "slack"), [(1, 1), (2, 2)])
def test_by_every_relation_of_three_kinds_one_record_moves_the_count_as_proved(relation, own, k, slack):
    """Every table of four records of three kinds, every symmetric relation among the kinds, kin included or not."""

    def is_near(a, b):
        one, other = sorted((int(a[0]), int(b[0])))
        return own if one == other else (one, other) in relation

    sites, value, steps = [(0.0,), (1.0,), (2.0,)], {}, {}
    for choice in tables(sites, 4):
        related = relate(np.array([sites[i] for i in choice]), is_near, 1.0)
        near = matrix_of(related)
        assert np.array_equal(near, near.T)
        value[choice] = certify(related, k, float(slack)).lower
        assert value[choice] == pytest.approx(extension_of(near, k, slack), abs=1e-6)
        assert value[choice] <= (near.sum(1) >= k).sum() + 1e-9
        steps[choice] = exact_steps(related, 1.0, k, slack, normalise=True)
    moves = [
        (abs(value[choice] - value[other]), abs(steps[choice] - steps[other]))
        for choice in value
        for other in neighbours_of(choice, sites)
    ]
    assert max(move for move, _ in moves) <= slack + 1 + 1e-6
    assert max(move for _, move in moves) <= 128 * (slack + 1) + 1


def test_a_relation_with_a_hub_moves_by_slack_plus_one():
    """A relation of no metric: the hub is near all, and nobody else is near anyone."""

    def is_near(a, b):
        return 0.0 in (float(a[0]), float(b[0]))

    with_hub = relate(np.arange(8.0)[:, None], is_near, 1.0)
    without = relate(np.arange(1.0, 9.0)[:, None], is_near, 1.0)
    assert certify(with_hub, 1, 3.0).lower - certify(without, 1, 3.0).lower == pytest.approx(4.0, abs=1e-6)


# The query


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev", lambda a, b: float(np.abs(a - b).max())])
def test_the_answer_counts_by_its_metric(metric):
    values = np.vstack([np.random.default_rng(1).normal(0, 0.1, (60, 2)), [[3.0, 3.0], [-4.0, 1.0]]])
    data = wf.Points.from_array(values, name="t")
    assert asked(metric=metric, slack=9).answer(data, Silent()).value == 2


def test_a_corner_is_near_by_one_metric_and_not_by_another():
    """(0, 0) and (0.8, 0.8): 0.8 apart by chebyshev, 1.6 by manhattan, 0.8 by the mean of squares."""
    data = wf.Points.from_array(np.repeat([[0.0, 0.0], [0.8, 0.8]], 2, axis=0), name="t")
    found = {metric: asked(metric=metric, slack=9).answer(data, Silent()).value for metric in relations.METRICS[:3]}
    assert found == {"euclidean": 0, "manhattan": 4, "chebyshev": 0}


def is_close(a, b):
    return float(abs(a - b).sum())


def test_a_release_names_the_metric(tmp_path):
    data = wf.Points.from_array(np.random.default_rng(1).normal(size=(80, 2)), name="t")
    with wf.Ledger.open(tmp_path / "l.db") as book:
        book.grant("t", Loss("3"), by="owner")
        named = wf.release(asked(metric="manhattan"), data, book, force=True)
        own = wf.release(asked(metric=is_close, loss=Loss("1/2")), data, book, force=True)
    assert named.parameters["metric"] == "manhattan"
    assert own.parameters["metric"].startswith("custom:")
    assert own.parameters["metric"].endswith(".is_close")
    assert wf.Count.from_json(named.parameters) == asked(metric="manhattan")
    with pytest.raises(ParameterError, match="is not known"):
        wf.Count.from_json(own.parameters)


def test_the_plan_is_that_of_any_dimension():
    assert asked(metric="manhattan").plan(n=5000, dimension=2).options[0].figures
    assert [option.mechanism for option in asked(metric="manhattan").plan(n=5000, dimension=2).options] == ["extension"]
    assert asked(metric="manhattan").variant.rule(5000, 1) == asked(metric="manhattan").variant.rule(5000, 30)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"metric": "cosine"}, "euclidean, manhattan, chebyshev, haversine"),
        ({"metric": 7}, "is not known"),
        ({"metric": "manhattan", "interval": "two-sided"}, "needs euclidean distances"),
        ({"metric": "manhattan", "by": ("ward",)}, "needs euclidean distances"),
        ({"metric": "manhattan", "radius": None, "share": "2%"}, "needs euclidean distances"),
        ({"metric": "manhattan", "mechanism": "global"}, "needs euclidean distances"),
        ({"metric": is_close, "mechanism": "global"}, "needs euclidean distances"),
    ],
)
def test_what_needs_euclid_is_refused_with_the_reason(changes, words):
    with pytest.raises(ParameterError, match=words):
        asked(**changes)


def fail(a, b):
    raise KeyError("a record")


@pytest.mark.parametrize(
    ("metric", "shape", "words"),
    [
        ("haversine", (50, 3), "two columns, latitude and longitude"),
        ("manhattan", (relations.MAX_RECORDS + 1, 1), "up to 20,000 records"),
        (is_close, (relations.MAX_RECORDS_OF_FUNCTION + 1, 1), "up to 2,000 records"),
        (fail, (50, 2), "fails on two made-up records of 2 numbers, with KeyError"),
        (lambda a, b: "far", (50, 2), "with ValueError"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_the_charge(metric, shape, words, tmp_path):
    data = wf.Points.from_array(np.zeros(shape), name="t")
    with wf.Ledger.open(tmp_path / "l.db") as book:
        with pytest.raises((DataError, ParameterError), match=words):
            wf.release(asked(metric=metric), data, book, force=True)
        assert not book.history("t", event="charge")


def test_degrees_that_the_schema_scales_are_refused():
    schema = wf.Schema.of(["lat", "lon"], scale={"lon": 10})
    data = wf.Points.from_array(np.zeros((9, 2)), columns=["lat", "lon"], name="t", schema=schema)
    with pytest.raises(DataError, match="the schema scales lon"):
        asked(metric="haversine").view(data)


def test_tiles_refuse_other_metrics_before_the_charge(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i},{i}\n" for i in range(50)))
    with pytest.raises(EngineMismatch, match="manhattan"):
        asked(metric="manhattan").view(load_into(tmp_path / "t.csv", "tiles"))
    assert asked(metric="manhattan").view(load(tmp_path / "t.csv")).n == 50
