"""The count that takes one pass, of the proof's (X): its bound is compared with every table of tiny worlds."""

from fractions import Fraction
from itertools import combinations_with_replacement, permutations

import pytest

PLACES = (-2, -1, 0, 1, 2)


def count_in_one_pass(records: tuple[int, ...], neighbours: int, pieces: int, supply: int) -> Fraction:
    """Σ y_j of the table: a supplier has `supply` pieces, a consumer wants `neighbours` - 1 + `pieces`."""
    left, got = [supply] * len(records), [0] * len(records)
    for j, i in permutations(range(len(records)), 2):  # in order; whoever is added last changes no order of the others
        if abs(records[i] - records[j]) <= 1 and left[i] > 0 and got[j] < neighbours - 1 + pieces:
            left[i], got[j] = left[i] - 1, got[j] + 1
    return sum((min(Fraction(1), max(Fraction(0), Fraction(g - neighbours + 1, pieces))) for g in got), Fraction(0))


def changes(neighbours: int, pieces: int, supply: int, size: int) -> list[Fraction]:
    """What one more record, wherever it is in the order, adds to the number."""
    added = []
    for shared in combinations_with_replacement(PLACES, size):
        without = count_in_one_pass(shared, neighbours, pieces, supply)
        for place in PLACES:
            for at in range(size + 1):
                table = (*shared[:at], place, *shared[at:])
                added.append(count_in_one_pass(table, neighbours, pieces, supply) - without)
    return added


@pytest.mark.parametrize(
    ("neighbours", "pieces", "supply"), [(1, 1, 1), (1, 1, 2), (2, 1, 2), (2, 2, 3), (3, 1, 3), (3, 2, 4), (2, 3, 3)]
)
def test_a_record_changes_a_count_in_one_pass_by_no_more_than_its_bound(neighbours, pieces, supply):
    added = changes(neighbours, pieces, supply, 4) + changes(neighbours, pieces, supply, 5)
    assert min(added) >= -Fraction(neighbours - 1, pieces)
    assert max(added) <= Fraction(supply, pieces) + 1


def test_both_ends_of_the_bound_are_reached():
    assert max(changes(1, 1, 2, 4)) == 3
    assert min(changes(2, 1, 2, 5)) == -1
