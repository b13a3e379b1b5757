"""What records add up to, key by key: how many there are, and sums of floats that lose nothing.

A sum is kept as *terms*, floats that add up to it exactly, so it does not matter in which order records come or how
they were cut into chunks: `add_up` of parts gives what `add_up` of the whole would. What is rounded is rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.machine.jit import kernel

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Tally = dict[str, NDArray[Any]]  # `key` rising and each once, with its `count`; `place` of each `term`

LOWEST: Final = -1074  # the least power of two that a float has
LIMB: Final = 32  # bits of a sum that are kept in one number; 2⁵ of them
MASK: Final = (1 << LIMB) - 1
HALF: Final = 1 << LIMB - 1
FRACTION: Final = (1 << 52) - 1  # the bits of a float below its leading one
LIMBS: Final = (1024 - LOWEST) // LIMB + 4
SHORT: Final = 1 << 16  # numbers below are sorted by counting
ROOM: Final = 1 << 20  # terms and keys that wait before they are added up


def tally(key: Ints, numbers: Floats) -> Tally:
    """Count records by key, and add up the rows of `numbers`, one for each record; a term of row m of a key stands at
    place key · rows + m."""
    order = _order(key)
    rows, found = key[order], [(np.empty(0, np.int64), np.empty(0))]
    starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1])[: len(rows)])
    for row, each in enumerate(numbers):
        place, term = _split(rows, each[order])
        found.append((place * len(numbers) + row, term))
    return {
        "key": rows[starts],
        "count": np.diff(np.append(starts, len(rows))),
        "place": np.concatenate([place for place, _ in found]),
        "term": np.concatenate([term for _, term in found]),
    }


def add_up(parts: Iterable[Tally]) -> Tally:
    """One tally of all records."""
    waiting, size = list[Tally](), 0
    for part in parts:
        waiting.append(part)
        size += len(part["key"]) + len(part["term"])
        if size > ROOM:
            waiting = [_join(waiting)]
            size = 0
    return _join(waiting)


def round_sums(place: Ints, term: Floats, places: int) -> Floats:
    """The sums at places 0 … places-1, each the float next to it; terms come in order of their places."""
    edges, terms = np.searchsorted(place, np.arange(places + 1)).tolist(), term.tolist()
    return np.array([math.fsum(terms[edges[at] : edges[at + 1]]) for at in range(places)])


def _join(parts: list[Tally]) -> Tally:
    key, back = np.unique(np.concatenate([part["key"] for part in parts]), return_inverse=True)
    count = np.zeros(len(key), np.int64)
    np.add.at(count, back, np.concatenate([part["count"] for part in parts]))
    place = np.concatenate([part["place"] for part in parts])
    order = _order(place)
    place, term = _split(place[order], np.concatenate([part["term"] for part in parts])[order])
    return {"key": key, "count": count, "place": place, "term": term}


def _order(key: Ints) -> Ints:
    short = len(key) > 0 and int(key.max()) < SHORT
    return np.argsort(key.astype(np.uint16) if short else key, kind="stable")


def _split(place: Ints, numbers: Floats) -> tuple[Ints, Floats]:
    """Terms of the sums of numbers that stand in order of their places."""
    places, terms = np.empty(4 * len(place), np.int64), np.empty(4 * len(place))
    count = _fill_terms(place, np.ascontiguousarray(numbers).view(np.int64), places, terms)
    return places[:count].copy(), terms[:count].copy()


@kernel
def _fill_terms(place: Ints, bits: Ints, places: Ints, terms: Floats) -> int:
    """Add mantissas up as whole numbers of 32 bits at a time, each a multiple of one power of two; then carry.

    Digits are from -2³¹ to below 2³¹, so that a carry ends in the first limb that no number reached into. A number
    reaches into three limbs at most: four terms for each are enough.
    """
    sums, made, low, high = np.zeros(LIMBS, np.int64), 0, LIMBS, -1
    for i in range(len(place)):
        power, whole = (bits[i] >> 52) & 2047, bits[i] & FRACTION
        if power > 0:
            whole, power = whole | (FRACTION + 1), power - 1
        limb, off = power >> 5, power & 31
        sign, rest = (-1 if bits[i] < 0 else 1), whole >> (LIMB - off)
        sums[limb] += sign * ((whole << off) & MASK)
        sums[limb + 1] += sign * (rest & MASK)
        sums[limb + 2] += sign * (rest >> LIMB)
        low, high = min(low, limb), max(high, limb + 2)
        if i + 1 == len(place) or place[i + 1] != place[i]:
            carry = 0
            for at in range(low, high + 2):
                held, sums[at] = sums[at] + carry, 0
                digit = ((held + HALF) & MASK) - HALF
                carry = (held - digit) >> LIMB
                if digit != 0:
                    places[made], terms[made] = place[i], math.ldexp(float(digit), LIMB * at + LOWEST)
                    made += 1
            low, high = LIMBS, -1
    return made
