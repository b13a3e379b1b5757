"""Keys of a distributed comparison function [BCG21], for a whole batch at once.

f(x) = beta where x < alpha and 0 elsewhere is split into two keys; each alone is pseudorandom, and what the two say of
any x adds up to f(x) modulo 2^32 (proof.md, labels (F) and (K)). `lanes` values of beta ride on one tree.

A seed is 128 bits. It grows by AES under a fixed, public key in the construction of Matyas, Meyer and Oseas,
H(s) = AES(s) ^ s, at s ^ 0 and s ^ 1 for its two children and at s ^ 2, s ^ 3 for the lanes. Readings are taken in
parts that stay in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from wallflower.machine.jit import kernel

Words = NDArray[np.uint64]
Shares = NDArray[np.uint32]
Bits = NDArray[np.uint8]

PART: Final = 2048  # readings at a time
FIXED_KEY: Final = b"wallflower dcf 1"  # public: it stands for one random permutation, and hides nothing
_LOW: Final = 0xFFFFFFFF


class Grower:
    """Room for one part, and the cipher: what a part of the batch is grown in."""

    def __init__(self, blocks: int) -> None:
        # ECB is the bare permutation: blocks are seeds, never text.
        self._cipher = Cipher(algorithms.AES(FIXED_KEY), modes.ECB()).encryptor()  # noqa: S305
        self.sown = np.empty((blocks, 2), dtype=np.uint64)
        self.grown = np.empty((blocks + 1, 2), dtype=np.uint64)  # the cipher wants room for one block more

    def grow(self) -> None:
        """Encrypt what was sown."""
        self._cipher.update_into(self.sown.view(np.uint8).data.cast("B"), self.grown.view(np.uint8).data.cast("B"))


def parts(count: int) -> Iterator[slice]:
    for start in range(0, count, PART):
        yield slice(start, min(count, start + PART))


def correction_words(alphas: Words, betas: Shares, roots: Words, levels: int) -> tuple[Words, Shares, Words]:
    """The correction words of both keys: seeds (level, reading, 2), values (level and last, reading, lane), and steps,
    two bits for each level of a reading.

    `roots` (party, reading, 2) are the seeds that the keys start from, `betas` (reading, lane) the payloads.
    """
    count, lanes = betas.shape
    seeds = np.empty((levels, count, 2), dtype=np.uint64)
    values = np.empty((levels + 1, count, lanes), dtype=np.uint32)
    steps = np.zeros(count, dtype=np.uint64)
    blocks = 2 + lanes
    for part in parts(count):
        size = part.stop - part.start
        room, now = Grower(2 * size * blocks), roots[:, part].reshape(2 * size, 2).copy()
        controls = np.repeat(np.array([0, 1], dtype=np.uint8), size)
        totals = np.zeros((size, lanes), dtype=np.uint32)
        for level in range(levels):
            _sow_all(now, blocks, room.sown)
            room.grow()
            bits = ((alphas[part] >> np.uint64(levels - 1 - level)) & np.uint64(1)).astype(np.uint8)
            steps[part] |= _deal_level(
                room.sown,
                room.grown,
                blocks,
                bits,
                betas[part],
                now,
                controls,
                totals,
                seeds[level, part],
                values[level, part],
            ) << np.uint64(2 * level)
        _deal_last(now, controls, totals, values[levels, part])
    return seeds, values, steps


def walk_key(party: int, at: Words, roots: Words, seeds: Words, values: Shares, steps: Words, lanes: int) -> Shares:
    """What one key says of each x in `at`: shares of f(x), one a lane."""
    levels, count = seeds.shape[:2]
    found = np.empty((count, lanes), dtype=np.uint32)
    for part in parts(count):
        size = part.stop - part.start
        room, now = Grower(size * (1 + lanes)), roots[part].copy()
        controls = np.full(size, party, dtype=np.uint8)
        totals = np.zeros((size, lanes), dtype=np.uint32)
        for level in range(levels):
            bits = ((at[part] >> np.uint64(levels - 1 - level)) & np.uint64(1)).astype(np.uint8)
            _sow_one(now, bits, lanes, room.sown)
            room.grow()
            turns = ((steps[part] >> np.uint64(2 * level)) & np.uint64(3)).astype(np.uint8)
            _walk_level(
                room.sown, room.grown, bits, turns, seeds[level, part], values[level, part], now, controls, totals
            )
        _walk_last(party, now, controls, values[levels, part], totals)
        found[part] = totals
    return found


@kernel
def _sow_all(seeds: Words, blocks: int, sown: Words) -> None:
    for i in range(len(seeds)):
        for j in range(blocks):
            sown[i * blocks + j, 0] = seeds[i, 0] ^ np.uint64(j)
            sown[i * blocks + j, 1] = seeds[i, 1]


@kernel
def _sow_one(seeds: Words, bits: Bits, lanes: int, sown: Words) -> None:
    for i in range(len(seeds)):
        at = i * (1 + lanes)
        sown[at, 0], sown[at, 1] = seeds[i, 0] ^ np.uint64(bits[i]), seeds[i, 1]
        for lane in range(lanes):
            sown[at + 1 + lane, 0], sown[at + 1 + lane, 1] = seeds[i, 0] ^ np.uint64(2 + lane), seeds[i, 1]


@kernel
def _side(word: np.uint64, side: int | np.int64) -> np.int64:
    """The left or the right half of a block's first word."""
    return np.int64((word >> np.uint64(32 * side)) & np.uint64(_LOW))


@kernel
def _hash_word(sown: Words, grown: Words, at: int | np.int64, word: int) -> np.uint64:
    return np.uint64(grown[at, word] ^ sown[at, word])


@kernel
def _deal_level(
    sown: Words,
    grown: Words,
    blocks: int,
    bits: Bits,
    betas: Shares,
    now: Words,
    controls: Bits,
    totals: Shares,
    seeds: Words,
    values: Shares,
) -> Words:
    """Correct one level: the side that alpha does not take becomes equal for both, the other stays independent."""
    count = len(bits)
    steps = np.empty(count, np.uint64)
    for i in range(count):
        keep, a, b = np.int64(bits[i]), i * blocks, (count + i) * blocks
        for w in range(2):
            seeds[i, w] = _hash_word(sown, grown, a + 1 - keep, w) ^ _hash_word(sown, grown, b + 1 - keep, w)
        turns = _hash_word(sown, grown, a + 2, 1), _hash_word(sown, grown, b + 2, 1)
        steps[i] = (turns[0] ^ turns[1] ^ np.uint64(1 + keep)) & np.uint64(3)  # left: keep ^ 1, right: keep
        sign = -1 if controls[count + i] else 1
        for lane in range(betas.shape[1]):
            first, second = _hash_word(sown, grown, a + 2 + lane, 0), _hash_word(sown, grown, b + 2 + lane, 0)
            gap = _side(second, 1 - keep) - _side(first, 1 - keep) - np.int64(totals[i, lane])
            value = sign * (gap + np.int64(betas[i, lane]) * keep)
            total = np.int64(totals[i, lane]) + _side(first, keep) - _side(second, keep) + sign * value
            values[i, lane], totals[i, lane] = np.uint32(value & _LOW), np.uint32(total & _LOW)
        for party in range(2):
            row, at = party * count + i, (a, b)[party] + keep
            turn, control = turns[party], controls[row]
            for w in range(2):
                now[row, w] = _hash_word(sown, grown, at, w) ^ (seeds[i, w] if control else np.uint64(0))
            turn ^= steps[i] if control else np.uint64(0)
            controls[row] = (turn >> np.uint64(keep)) & np.uint64(1)
    return steps


@kernel
def _deal_last(now: Words, controls: Bits, totals: Shares, values: Shares) -> None:
    count = len(totals)
    for i in range(count):
        sign = -1 if controls[count + i] else 1
        for lane in range(totals.shape[1]):
            gap = _side(now[count + i, 0], lane) - _side(now[i, 0], lane) - np.int64(totals[i, lane])
            values[i, lane] = np.uint32((sign * gap) & _LOW)


@kernel
def _walk_level(
    sown: Words,
    grown: Words,
    bits: Bits,
    turns: Bits,
    seeds: Words,
    values: Shares,
    now: Words,
    controls: Bits,
    totals: Shares,
) -> None:
    lanes = totals.shape[1]
    for i in range(len(bits)):
        at, control = i * (1 + lanes), controls[i]
        side = np.int64(bits[i])
        for lane in range(lanes):
            word = _hash_word(sown, grown, at + 1 + lane, 0)
            total = np.int64(totals[i, lane]) + _side(word, side) + (np.int64(values[i, lane]) if control else 0)
            totals[i, lane] = np.uint32(total & _LOW)
        turn = np.uint64(turns[i]) if control else np.uint64(0)
        turn ^= _hash_word(sown, grown, at + 1, 1)
        for w in range(2):
            now[i, w] = _hash_word(sown, grown, at, w) ^ (seeds[i, w] if control else np.uint64(0))
        controls[i] = (turn >> np.uint64(side)) & np.uint64(1)


@kernel
def _walk_last(party: int, now: Words, controls: Bits, values: Shares, totals: Shares) -> None:
    sign = -1 if party else 1
    for i in range(len(totals)):
        for lane in range(totals.shape[1]):
            total = (
                np.int64(totals[i, lane]) + _side(now[i, 0], lane) + (np.int64(values[i, lane]) if controls[i] else 0)
            )
            totals[i, lane] = np.uint32((sign * total) & _LOW)
