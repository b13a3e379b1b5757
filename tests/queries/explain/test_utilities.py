"""Utilities: in blocks and one by one they are what their definitions say, in every context."""

import numpy as np
import pytest
from laws import table_of, world

from wallflower.errors import ParameterError
from wallflower.queries.explain.detectors import CustomDetector, Distance, Grubbs, Lof, Tukey
from wallflower.queries.explain.draws import utilities
from wallflower.queries.explain.draws.utilities import CustomUtility, Even, Overlap, Population
from wallflower.queries.explain.exact import evaluate
from wallflower.queries.explain.space import cubes
from wallflower.queries.explain.space.cubes import run_in_blocks
from wallflower.queries.explain.space.tables import rank_table


def scores_of(table, detector, utility):
    """Validity and scores of all contexts, from blocks."""
    valid, scores = np.empty(table.space.count, bool), np.empty(table.space.count, np.int64)

    def keep(first, here, found):
        valid[first : first + len(here)], scores[first : first + len(here)] = here, found

    for _ in run_in_blocks(table.space, utility.score_parts(table, detector.sweep(table)), np.bool_, keep):
        pass
    return valid, scores


def overlaps(codes, space, context):
    starts = np.cumsum([0, *space.sizes])[:-1]
    inside = np.array([bit == "1" for bit in context])[codes + starts].all(axis=1)
    return [int((inside & space.members(codes, index)).sum()) for index in range(space.count)]


@pytest.mark.parametrize("detector", [Distance(3, 1.0), Lof(3, 1.3), Tukey(tuple(range(30))), Grubbs(0.5)], ids=repr)
@pytest.mark.parametrize("context", ["11111111", "10010001", "01101010", "00000000", "10001000"])
def test_overlap_counts_the_records_that_two_contexts_share(detector, context):
    codes, sizes, metric, record = world()
    table, expected = table_of(), overlaps(codes, table_of().space, context)
    valid, scores = scores_of(table, detector, Overlap(context))
    assert scores.tolist() == expected
    assert valid.tolist() == evaluate(codes, sizes, metric, record, detector).valid.tolist()
    ask = Overlap(context).score_single(table, detector.examine(table))
    assert [ask(index) for index in range(table.space.count)] == list(zip(valid.tolist(), expected, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    "detector", [Grubbs(0.5), Tukey(tuple(range(40))), CustomDetector(Distance(9, 1.0).outlier)], ids=repr
)
@pytest.mark.parametrize(("leaf", "cells"), [(2, 1 << 20), (3, 60), (4, 200), (1, 8)])
def test_no_border_between_the_parts_of_two_cubes_shows(monkeypatch, detector, leaf, cells):
    draw, sizes = np.random.default_rng(leaf), (4, 3, 2, 5)
    codes = np.stack([draw.integers(0, size, 70) for size in sizes], axis=1)
    table = rank_table(codes, sizes, draw.integers(0, 40, 70), 11)
    context = "".join(draw.choice(["0", "1"], sum(sizes), p=[0.3, 0.7]))
    expected, valid = overlaps(codes, table.space, context), scores_of(table, detector, Population())[0]
    for module, name, value in (
        (cubes, "LEAF_BITS", leaf),
        (cubes, "MAX_CELLS", cells),
        (utilities, "LEAF_BITS", leaf),
    ):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(cubes, "MIN_BLOCK_CONTEXTS", 8)
    monkeypatch.setattr(cubes, "BLOCK_CONTEXTS", 16)
    found = scores_of(table, detector, Overlap(context))
    assert found[1].tolist() == expected
    assert found[0].tolist() == valid.tolist()


def spread(bits, values):
    return 10 * int(values[-1] - values[0]) - bits.count("1")


def test_a_function_rates_valid_contexts_by_their_bits_and_their_values_in_order():
    codes, _, metric, _ = world()
    table, utility, detector = table_of(), CustomUtility(spread, sensitivity=100), Lof(3, 1.3)
    valid, scores = scores_of(table, detector, utility)
    ask = utility.score_single(table, detector.examine(table))
    assert 0 < valid.sum() < len(valid)
    for index in range(table.space.count):
        expected = spread(table.space.bits(index), np.sort(metric[table.space.members(codes, index)]))
        if valid[index]:
            assert scores[index] == expected
        assert ask(index) == (valid[index], expected if valid[index] else 0)


def test_immense_ratings_count_as_the_largest():
    table, detector = table_of(), CustomDetector(lambda values, index: True)
    for huge, counted in ((10**30, 2**31 - 1), (-(10**30), -(2**31) + 1), (np.int64(7), 7)):
        assert set(scores_of(table, detector, CustomUtility(lambda bits, values, it=huge: it, 1))[1].tolist()) == {
            counted
        }


def test_population_and_even_are_what_they_say():
    codes, sizes, metric, record = world()
    table, detector = table_of(), Lof(3, 1.3)
    whole = evaluate(codes, sizes, metric, record, detector)
    assert scores_of(table, detector, Population())[1].tolist() == whole.populations.tolist()
    valid, scores = scores_of(table, detector, Even())
    assert valid.tolist() == whole.valid.tolist()
    assert not scores.any()
    ask = Even().score_single(table, detector.examine(table))
    assert [ask(index) for index in range(32)] == [(each, 0) for each in valid.tolist()]


@pytest.mark.parametrize("utility", [Population(), Overlap("10110111"), Even()], ids=repr)
def test_a_measure_adds_up_to_the_score(utility):
    table = table_of()
    measure, scores = utility.measure(table), scores_of(table, Distance(3, 1.0), utility)[1]
    assert [int(measure[table.members(index)].sum()) for index in range(table.space.count)] == scores.tolist()


@pytest.mark.parametrize("utility", [Population(), Overlap("10110111"), Overlap("00000000")], ids=repr)
def test_one_record_more_moves_counts_up_by_one_at_most(utility):
    assert (utility.sensitivity, utility.monotone) == (1, True)
    codes, sizes, metric, record = world(n=20)
    before = scores_of(rank_table(codes, sizes, metric, record), Distance(3, 1.0), utility)[1]
    moved = set()
    for cell in np.ndindex(*sizes):
        more = rank_table(np.append(codes, [cell], axis=0), sizes, np.append(metric, 3.0), record)
        moved |= set((scores_of(more, Distance(3, 1.0), utility)[1] - before).tolist())
    assert moved <= {0, 1}
    assert 0 in moved


def test_what_cannot_be_a_utility_is_refused():
    table, detector = table_of(), Distance(3, 1.0)
    for context in ("1" * 7, "1" * 9, "1111111x"):
        with pytest.raises(ParameterError, match=r"^context: .+; .+\.$"):
            scores_of(table, detector, Overlap(context))
    for sensitivity in (0, -1, 2**31, 0.5):
        with pytest.raises(ParameterError, match=r"^sensitivity: .+; .+\.$"):
            CustomUtility(spread, sensitivity)
    large = rank_table([[0]], [22], [1.0], 0)
    with pytest.raises(ParameterError, match="asked to rate"):
        next(CustomUtility(spread, 1).score_parts(large, detector.sweep(large)))
