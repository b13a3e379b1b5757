"""The one door to entropy: scales are never rounded down, draws fit, and a fork repeats nothing."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wallflower.noise as noise_module
from scripted_noise import Scripted
from wallflower.errors import ParameterError
from wallflower.noise import SystemNoise, round_up, sample, system_noise

# Run in a fresh interpreter: forking a process that has threads is not what is being tested.
FORKED = """
import json, os, sys
from fractions import Fraction
from wallflower.noise import system_noise

def draws():
    noise, scale = system_noise(), Fraction(2**51)
    return {
        "laplace": [noise.laplace(scale) for _ in range(64)],
        "gaussian": [noise.gaussian(scale) for _ in range(64)],
        "vector": noise.laplaces(scale, 64),
        "below": [noise.below(2**64) for _ in range(64)],
        "flips": [sum(noise.flip(Fraction(1, 2)) << at for at in range(128))],
    }

first = [draws()] if sys.argv[1] == "warm" else []
pipes = []
for _ in range(8):
    read, write = os.pipe()
    if os.fork() == 0:
        os.close(read)
        with os.fdopen(write, "w") as out:
            json.dump(draws(), out)
        os._exit(0)
    os.close(write)
    pipes.append(read)
family = first + [draws()]
for read in pipes:
    with os.fdopen(read) as said:
        family.append(json.load(said))
for _ in pipes:
    assert os.wait()[1] == 0
print(json.dumps(family))
"""


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@given(scale=st.fractions(min_value=Fraction(1, 1000), max_value=10**6))
def test_a_sampler_is_made_for_the_scale_itself(law: str, scale: Fraction) -> None:
    made: list[float] = []

    def make(_: str, rounded: float) -> object:
        made.append(rounded)
        return lambda given: given

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise_module, "_sampler", make)
        patch.setattr(noise_module, "_vector_sampler", make)
        getattr(system_noise(), law)(scale)
        getattr(system_noise(), f"{law}s")(scale, 2)
    assert len(made) == 2
    assert all(scale <= Fraction(rounded) <= scale * (1 + Fraction(1, 2**50)) for rounded in made)


def test_every_bit_of_a_word_is_drawn() -> None:
    found = system_noise().words(1000)
    assert int(np.bitwise_or.reduce(found)) == 2**64 - 1
    assert int(np.bitwise_and.reduce(found)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("start", ["cold", "warm"])
def test_forked_children_never_repeat_each_other_or_their_parent(start):
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED, start],
        capture_output=True,
        text=True,
        check=True,
    )
    family = json.loads(done.stdout)
    assert len(family) == (9 if start == "cold" else 10)
    for source in ("laplace", "gaussian", "vector", "below", "flips"):
        values = [value for one in family for value in one[source]]
        # 2**51 leaves room for a chance repeat among 640 draws once in 10^10 runs
        assert len(set(values)) == len(values), source


# Scales


@given(st.fractions(min_value=Fraction(1, 10**12), max_value=2**51, max_denominator=10**15))
def test_a_scale_is_rounded_up_to_the_next_float_and_no_further(scale):
    up = round_up(scale)
    assert Fraction(math.nextafter(up, 0)) < scale <= Fraction(up)


@given(st.floats(min_value=1e-300, max_value=2.0**51))
def test_a_float_is_its_own_scale(scale):
    assert round_up(Fraction(scale)) == scale


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(2**52), Fraction(10**400)])
@pytest.mark.parametrize("use", [round_up, SystemNoise().laplace, SystemNoise().gaussian])
def test_an_impossible_scale_is_refused(use, scale):
    with pytest.raises(ParameterError, match="positive and below"):
        use(scale)


def test_a_scale_too_small_for_a_float_is_still_rounded_up():
    assert round_up(Fraction(1, 10**400)) > 0


# Draws


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("exponent", [40, 51])
def test_draws_of_a_large_scale_fit_64_bits_and_reach_beyond_the_scale(law, exponent):
    noise = system_noise()
    one, many = getattr(noise, law), getattr(noise, f"{law}s")
    values = [one(Fraction(2**exponent)) for _ in range(64)] + many(Fraction(2**exponent), 64)
    assert all(type(value) is int and abs(value) < 2**63 - 1 for value in values)
    assert max(values) > 2 ** (exponent - 3) > -(2 ** (exponent - 3)) > min(values)
    assert len({value % 2**10 for value in values}) > 90  # the low bits are random too


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_a_tiny_scale_draws_zero(law):
    assert {getattr(system_noise(), law)(Fraction(1, 100)) for _ in range(50)} == {0}


def test_a_coin_with_exponent_zero_always_shows_heads():
    assert all(system_noise().flip(Fraction(0)) for _ in range(200))


def test_a_coin_with_a_huge_exponent_is_quick_and_shows_tails():
    assert not any(system_noise().flip(Fraction(10**30, 7)) for _ in range(200))


def test_a_coin_with_a_negative_exponent_is_refused():
    with pytest.raises(ParameterError, match="exponent is below 0"):
        system_noise().flip(Fraction(-1, 2))


# Samples


class ListedWords(SystemNoise):
    """The words of one list after the other."""

    def __init__(self, *lists):
        self.lists = iter(lists)

    def words(self, size):
        drawn = np.array(next(self.lists), dtype=np.uint64)
        assert len(drawn) == size
        return drawn


@pytest.mark.parametrize("size", [2, 3])
def test_a_permutation_is_exactly_even(size):
    """All lists of three words of two bits: those without a tie decide evenly, the others are drawn again."""
    seen = Counter()
    for words in product(range(4), repeat=3):
        if len(set(words)) == 3:
            seen[tuple(ListedWords(words).sample(3, size).tolist())] += 1
        else:
            assert ListedWords(words, (9, 5, 9), (0, 2, 1)).sample(3, 3).tolist() == [0, 2, 1]
    assert len(seen) == 6
    assert set(seen.values()) == {4}


def test_a_small_sample_is_exactly_even():
    """All lists of five words of three bits: those that decide which two of five numbers it is decide evenly."""
    seen = Counter()
    for words in product(range(8), repeat=5):
        try:
            seen[tuple(ListedWords(words).sample(5, 2).tolist())] += 1
        except StopIteration:  # words from 5 on do not count, and a number that comes again is not enough
            continue
    assert len(seen) == 20
    assert len(set(seen.values())) == 1
    again = ListedWords((7, 3, 6, 5, 3), (3, 1), (3, 3, 0, 1), (2, 3, 0, 0))  # 3 five times, and then 2
    assert again.sample(5, 2).tolist() == [3, 2]


@given(st.integers(1, 300), st.data())
def test_a_sample_has_different_numbers_below_its_bound(bound, data):
    size = data.draw(st.integers(0, bound))
    for noise in (system_noise(), Scripted()):
        drawn = sample(noise, bound, size)
        assert drawn.dtype == np.int64
        assert len(set(drawn.tolist())) == len(drawn) == size
        assert all(0 <= number < bound for number in drawn.tolist())
    with pytest.raises(ParameterError, match="Ask for fewer"):
        system_noise().sample(bound, bound + 1)


def test_a_sample_of_a_long_range_is_in_random_order():
    drawn = system_noise().sample(10**12, 1000)
    assert 400 < (np.diff(drawn) < 0).sum() < 600  # 500 are expected, ±9: further off once in 10^20 runs
    assert drawn.max() > 9 * 10**11
    assert len(np.unique(drawn % 1024)) > 500


def test_nothing_takes_a_seed():
    with pytest.raises(TypeError):
        SystemNoise(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        system_noise(seed=1)  # type: ignore[call-arg]
