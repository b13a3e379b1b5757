"""Public families: counted before they are listed, refused before anything is spent."""

import math

import pytest

from wallflower.errors import DataError, ParameterError
from wallflower.queries.subspaces.family import LIMIT, Family

COLUMNS = ("age", "hours", "sex", "gain")


@pytest.mark.parametrize(
    "family", [Family(), Family(size=2), Family(upto=3), Family(among=(("sex", "age"), ("gain",)))]
)
def test_a_family_has_as_many_members_as_it_says(family):
    listed = family.subspaces(COLUMNS)
    assert len(listed) == len(set(listed)) == family.count(4) == family.check(4)
    assert max(map(len, listed)) == family.widest(4)
    assert all(subspace == tuple(sorted(subspace)) for subspace in listed)


def test_names_become_places_in_the_order_of_the_table():
    assert Family(among=(("sex", "age"), ("gain",))).subspaces(COLUMNS) == [(0, 2), (3,)]


def test_a_family_that_is_too_large_is_refused_with_ways_to_narrow_it():
    with pytest.raises(ParameterError) as refusal:
        Family().check(34)
    words = str(refusal.value)
    assert f"{2**34 - 1:,}" in words
    assert "upto=4 (52,955)" in words
    assert "size=4 (46,376)" in words
    assert sum(math.comb(34, size) for size in range(1, 5)) <= LIMIT < sum(math.comb(34, size) for size in range(1, 6))
    assert Family(upto=4).check(34) == 52_955


def test_the_number_of_a_huge_family_is_known_at_once():
    assert Family().count(2000) == 2**2000 - 1
    with pytest.raises(ParameterError, match="with among"):
        Family(size=1).check(LIMIT + 1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"size": 1, "upto": 2}, "more than once"),
        ({"size": 0}, "from 1 on"),
        ({"upto": True}, "from 1 on"),
        ({"size": 1.5}, "from 1 on"),
        ({"among": ()}, "one column set or more"),
        ({"among": (("age",), ())}, "one column set or more"),
        ({"among": ("age",)}, "one column set or more"),
        ({"among": (("age", "age"),)}, "twice"),
        ({"among": (("age", "sex"), ("sex", "age"))}, "named twice"),
    ],
)
def test_what_makes_no_family_is_refused(given, words):
    with pytest.raises(ParameterError, match=words):
        Family(**given)


@pytest.mark.parametrize("given", [{"size": 5}, {"upto": 5}])
def test_more_columns_than_there_are_is_refused(given):
    with pytest.raises(ParameterError, match="the table has 4"):
        Family(**given).check(4)


def test_an_unknown_column_is_refused_with_those_there_are():
    with pytest.raises(DataError, match="age, hours, sex, gain"):
        Family(among=(("height",),)).subspaces(COLUMNS)
