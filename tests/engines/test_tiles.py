"""Whatever the tiles, the answer before noise is that of the table in memory."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from partitions import Partition

from wallflower.engines import local
from wallflower.engines.local import LocalEngine
from wallflower.neighbours import extension
from wallflower.neighbours.extension import certify
from wallflower.neighbours.noisy_count import GAP, STEP
from wallflower.neighbours.pairs import build_tree, find_near_points, list_neighbours
from wallflower.neighbours.tiles import certify_tiles, count_inliers, serve

TIGHT = 1e-7


@st.composite
def worlds(draw):
    """Records on a small lattice, so that there are ties and duplicates, and any partition of them."""
    n, dimension = draw(st.integers(2, 40)), draw(st.integers(1, 3))
    seed, side = draw(st.integers(0, 2**32 - 1)), draw(st.integers(1, 8))
    made = np.random.default_rng(seed)
    values = made.integers(0, side + 1, (n, dimension)).astype(float)
    labels = made.integers(0, draw(st.integers(1, 8)), n)
    return values, labels, draw(st.integers(1, 4)), draw(st.sampled_from([0.0625, 1.0, 2.0]))


def in_memory(values, reach, k, slack, tolerance=TIGHT):
    return certify(build_tree(values, reach), k, slack, tolerance)


@settings(max_examples=60, deadline=None)
@given(world=worlds(), order=st.randoms(use_true_random=False))
def test_any_partition_in_any_order_has_the_inliers_of_the_table(world, order):
    values, labels, k, reach = world
    shuffled = list(range(len(values)))
    order.shuffle(shuffled)
    total = ((values[:, None] - values[None]) ** 2).sum(-1) <= reach
    truth = int((total.sum(1) - 1 >= k).sum())
    assert count_inliers(Partition(values[shuffled], labels[shuffled], twice=True), reach, k) == truth


@settings(max_examples=60, deadline=None)
@given(world=worlds(), slack=st.sampled_from([1.0, 2.0, 3.0]))
def test_any_partition_has_the_extension_of_the_table(world, slack):
    values, labels, k, reach = world
    found, known = certify_tiles(Partition(values, labels), reach, k, slack, TIGHT), in_memory(values, reach, k, slack)
    assert found.upper - found.lower <= TIGHT
    assert found.lower == pytest.approx(known.lower, abs=3 * TIGHT)


@settings(max_examples=60, deadline=None)
@given(world=worlds())
@example(world=(np.zeros((50, 2)), np.arange(50) % 7, 3, 1.0))
def test_without_a_contest_tiles_and_memory_agree_to_the_bit(world):
    values, labels, k, reach = world
    found, known = certify_tiles(Partition(values, labels), reach, k, 60.0, GAP), in_memory(values, reach, k, 60.0, GAP)
    assert found == known


@settings(max_examples=60, deadline=None)
@given(world=worlds(), slack=st.sampled_from([1.0, 2.0, 60.0]), size=st.integers(1, 9))
def test_lists_that_are_not_kept_serve_as_those_that_are(world, slack, size):
    values, _, k, reach = world
    known = in_memory(values, reach, k, slack)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extension, "MAX_LISTED_RECORDS", 0)
        patch.setattr(extension, "CONSUMERS_PER_SLICE", size)
        assert in_memory(values, reach, k, slack) == known


def test_a_tree_leaves_its_records_as_they_came():
    values = np.random.default_rng(3).normal(size=(500, 3))
    before = values.copy()
    tree = build_tree(values, 1.0)
    leaves = [block[:, :size].T for block, size in zip(tree.blocks, np.diff(tree.starts), strict=True)]
    assert np.array_equal(values, before)
    assert np.array_equal(np.concatenate(leaves), values[tree.order])


CONTESTS = {  # table, squared reach, neighbours, slack
    "a star": (np.array([[0.0, 0.0]] + [[math.cos(a), math.sin(a)] for a in np.arange(5) * 1.2]), 1.0001, 1, 2.0),
    "sparse": (np.random.default_rng(5).uniform(0, 12, (150, 2)), 1.69, 4, 2.0),
    "sparser": (np.random.default_rng(6).uniform(0, 17, (150, 2)), 3.0, 5, 3.0),
    "a line": (np.random.default_rng(7).uniform(0, 50, (150, 1)), 1.0, 4, 2.0),
    "a cube": (np.random.default_rng(8).uniform(0, 5, (150, 3)), 1.7, 5, 2.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("tiles", [1, 3, 40])
@pytest.mark.parametrize("name", CONTESTS)
def test_contests_are_decided_alike(name, tiles):
    """By columns of the plane and by chance; and the steps that noise is put on are those of memory or next to them."""
    values, reach, k, slack = CONTESTS[name]
    known = in_memory(values, reach, k, slack, GAP / 100)
    service = serve(Partition(values, np.arange(len(values)) % tiles), reach, k, slack)
    assert name == "a star" or len(service.crowded) > 0
    for labels in (np.argsort(np.argsort(values[:, 0])) * tiles // len(values), np.arange(len(values)) % tiles):
        found = certify_tiles(Partition(values, labels), reach, k, slack, GAP)
        assert known.lower - GAP <= found.lower <= known.upper
        assert found.upper - found.lower <= GAP
        steps = [math.floor((len(values) - bounds.lower) * STEP.denominator + 0.5) for bounds in (found, known)]
        assert abs(steps[0] - steps[1]) <= 1


@settings(max_examples=40, deadline=None)
@given(world=worlds(), size=st.integers(1, 60), chunk=st.integers(1, 70), deals=st.sampled_from([1, 3, 1024]))
def test_the_engine_cuts_every_record_into_one_tile(world, size, chunk, deals):
    values, _, k, reach = world
    sheet = LocalEngine().keep("x", [list(values[at : at + chunk].T) for at in range(0, len(values), chunk)], 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "DEALS", deals)
        with sheet.tile(range(values.shape[1]), np.column_stack, size=size) as tiles:
            told = [found["rows"] for _, found in tiles.each("x", lambda rows, _: {"rows": rows}, lambda _: {})]
            assert count_inliers(tiles, reach, k) == round(in_memory(values, reach, k, 100.0).lower)
    for part in told:
        assert part.tolist() == sorted(part.tolist())
    assert sorted(np.concatenate(told).tolist()) == sorted(values.tolist())


def test_equal_records_do_not_fill_one_tile():
    values = np.concatenate([np.zeros((5000, 2)), np.random.default_rng(1).normal(size=(5000, 2))])
    sheet = LocalEngine().keep("x", [list(values.T)], 1)
    with sheet.tile([0, 1], np.column_stack, size=500) as tiles:
        sizes = [int(told["size"]) for _, told in tiles.each("x", lambda rows, _: {"size": len(rows)}, lambda _: {})]
    assert sum(sizes) == 10_000
    assert max(sizes) <= 2 * 500


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_visitors_meet_whom_the_tree_says(seed):
    """A point that is in the tree meets all its neighbours but itself; one from elsewhere meets all that are near."""
    made = np.random.default_rng(seed)
    values = made.integers(0, 6, (90, 2)).astype(float)
    tree = build_tree(values, 1.0)
    every = np.arange(90, dtype=np.int32)
    met, found = list_neighbours(tree, 89)
    again, count = find_near_points(tree, values[tree.order], 89, every)
    assert found.tolist() == count.tolist()
    assert all(set(a[:n]) == set(b[:n]) for a, b, n in zip(met, again, found, strict=True))
    _, strangers = find_near_points(tree, values[tree.order], 90, np.full(90, -1, dtype=np.int32))
    assert strangers.tolist() == (found + 1).tolist()


def test_broken_tiles_would_be_noticed(monkeypatch):
    """Strays that stay at home miss neighbours; strays that meet themselves have one too many."""
    line, labels = np.arange(10.0)[:, None] / 2, np.arange(10) % 2
    cut = Partition(line, labels)
    assert count_inliers(cut, 1.0, 3) == 8
    with monkeypatch.context() as broken:
        home = lambda tiles, records, reach: lambda tile: np.flatnonzero(records.tile == tile)  # noqa: E731
        broken.setattr("wallflower.neighbours.tiles.in_reach", home)
        assert count_inliers(cut, 1.0, 3) == 0
    with monkeypatch.context() as broken:
        broken.setattr("wallflower.neighbours.tiles.Records.skip", lambda records, tile: np.full(len(records), -1))
        assert count_inliers(cut, 1.0, 3) == 10
