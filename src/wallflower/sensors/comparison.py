"""Two servers compare a secret score with a public threshold, and neither learns the score or the outcome.

The sensor deals one pair of one-time keys for each reading. A server evaluates its key at a threshold that may be
chosen later and sends the resulting share to the stream owner; two shares add up to 1 where score >= threshold and to 0
elsewhere, modulo 2^32. Servers do not talk to each other. Correctness is label (X) of proof.md, security (K) and (U):
semi-honest servers of different operators. Each threshold shows the stream owner one more bit of each reading.

With `tags`, numbers that only sensor and stream owner know, a second share is added that must sum to 0 or the tag: a
share that was tampered with is detected but for a chance of 1 in 2^32 - 1, label (V).

The keys are those of a distributed comparison function [BCG21]: f(x) = beta where x < alpha and 0 elsewhere is split
into two keys; each alone is pseudorandom, and their values at any x add up to f(x) modulo 2^32 (labels (F) and (K)).
Several values of beta, the `lanes`, share one tree. A seed is 128 bits. It expands by AES under a fixed, public key in
the construction of Matyas, Meyer and Oseas, H(s) = AES(s) ^ s, at s ^ 0 and s ^ 1 for its two children and at s ^ 2,
s ^ 3 for the lanes. Readings are processed in chunks that stay in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import DataError, ParameterError
from wallflower.machine.jit import kernel
from wallflower.noise import Noise, system_noise, words

Words = NDArray[np.uint64]
Shares = NDArray[np.uint32]
Bits = NDArray[np.uint8]
Flags = NDArray[np.bool_]

MIN_BITS, MAX_BITS = 2, 32  # of a masked score
TAG_KEY_BYTES: Final = 16
CHUNK_READINGS: Final = 2048
FIXED_KEY: Final = b"wallflower dcf 1"  # public: it stands for one random permutation, and hides nothing
_LOW: Final = 0xFFFFFFFF
_LOW_WORD: Final = np.uint64(_LOW)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Keys:
    """One server's keys for a batch of readings, useless without the other's. They do not show in logs.

    Arrays: `masked` (reading), `roots` (reading, 2), `seeds` (level, reading, 2), `values` (level and last, reading,
    lane), `steps` (reading), `offsets` (reading, lane), `tags` (reading, lane after the first).
    """

    bits: int
    masked: Shares
    roots: Words
    seeds: Words
    values: Shares
    steps: Words
    offsets: Shares
    tags: Shares

    @property
    def count(self) -> int:
        return len(self.masked)

    @property
    def has_tags(self) -> bool:
        return bool(self.tags.shape[1])

    def select(self, rows: NDArray[Any]) -> Keys:
        """Return the keys of some readings of the batch."""
        return Keys(
            self.bits,
            self.masked[rows],
            self.roots[rows],
            np.ascontiguousarray(self.seeds[:, rows]),
            np.ascontiguousarray(self.values[:, rows]),
            self.steps[rows],
            self.offsets[rows],
            self.tags[rows],
        )

    def to_bytes(self) -> bytes:
        """Return the arrays one after another, little-endian: 330 bytes a reading at 16 bits, 402 with tags."""
        arrays: list[NDArray[Any]] = [self.masked, self.roots, self.seeds, self.values, self.steps, self.offsets]
        layout = _layout(self.bits, self.count, tagged=self.has_tags)
        pairs = zip([*arrays, self.tags], layout, strict=True)
        return b"".join(array.astype(dtype).tobytes() for array, (dtype, _) in pairs)

    @staticmethod
    def from_bytes(raw: bytes, count: int, bits: int, *, tagged: bool = False) -> Keys:
        """Read the keys of `count` readings; raise DataError for anything that `to_bytes` does not write."""
        layout = _layout(_check_bits(bits), count, tagged=tagged)
        sizes = [np.dtype(dtype).itemsize * math.prod(shape) for dtype, shape in layout]
        if count < 0 or len(raw) != sum(sizes):
            raise DataError(f"keys: not the length of {count} readings of {bits} bits. Ask the sensor to send again.")
        masked, roots, seeds, values, steps, offsets, tags = (
            np.frombuffer(raw[start : start + size], dtype=dtype).reshape(shape)
            for start, size, (dtype, shape) in zip(accumulate(sizes, initial=0), sizes, layout, strict=False)
        )
        if (masked > 2**bits - 1).any() or (steps > 4 ** (bits - 1) - 1).any():
            raise DataError(f"keys: not made for {bits} bits. Ask the sensor to send again.")
        return Keys(
            bits,
            masked.astype(np.uint32),
            roots.astype(np.uint64),
            seeds.astype(np.uint64),
            values.astype(np.uint32),
            steps.astype(np.uint64),
            offsets.astype(np.uint32),
            tags.astype(np.uint32),
        )


def deal(
    values: ArrayLike, bits: int, *, tags: ArrayLike | None = None, noise: Noise | None = None
) -> tuple[Keys, Keys]:
    """Make fresh keys for both servers; `values` are scores in 0 … 2^(bits-1) - 1, `tags` 32-bit numbers above 0.

    >>> analyst, correction = deal([3, 20, 31], 6)
    >>> open_flags(evaluate(0, analyst, 20), evaluate(1, correction, 20))
    array([False,  True,  True])
    """
    levels = _check_bits(bits) - 1
    scores = _check_integers(values, "values", 0, 2**levels - 1)
    no_tags = np.empty((len(scores), 0), np.uint64)
    marks = no_tags if tags is None else _check_integers(tags, "tags", 1, 2**32 - 1)[:, None]
    if len(marks) != len(scores):
        raise DataError("tags: must be as many as values. Pass one tag for each reading.")
    count, lanes = len(scores), 1 + marks.shape[1]
    drawn = words(noise or system_noise(), (4 + lanes) * count).reshape(4 + lanes, count)
    masks = drawn[0] & np.uint64(2**bits - 1)  # (U)
    top, low = masks >> np.uint64(levels), masks & np.uint64(2**levels - 1)
    payloads = np.hstack([np.ones((count, 1), np.uint64), marks])
    betas = np.where(top[:, None] == 1, np.uint64(0) - payloads, payloads)
    roots = np.ascontiguousarray(drawn[lanes:].reshape(2, 2, count).transpose(0, 2, 1))
    shared = correction_words(low, _take_low(betas), roots, levels)
    offsets = drawn[:lanes].T >> np.uint64(32)
    tag_shares = drawn[1:lanes].T
    masked = _take_low((scores + masks) & np.uint64(2**bits - 1))
    other_offsets = _take_low(top[:, None] * payloads - offsets)
    return (
        Keys(bits, masked, roots[0], *shared, _take_low(offsets), _take_low(tag_shares)),
        Keys(bits, masked, roots[1], *shared, other_offsets, _take_low(marks - tag_shares)),
    )


def evaluate(party: int, keys: Keys, threshold: int) -> Shares:
    """Return a server's shares of [score >= threshold]; the analyst is party 0, the correction server party 1."""
    return _evaluate(party, keys, threshold, 1)[:, 0]


def evaluate_tagged(party: int, keys: Keys, threshold: int) -> Shares:
    """Return a server's shares of [score >= threshold] and of [score >= threshold]·tag, in two columns."""
    if not keys.has_tags:
        raise ParameterError("keys: they carry no tags. Deal them with tags, or use `evaluate`.")
    return _evaluate(party, keys, threshold, 2)


def judge(share_a: ArrayLike, share_b: ArrayLike) -> tuple[Flags, Flags]:
    """Return whether shares add up to 1, and for which readings the sum is sound: 0 or 1.

    >>> judge(np.array([5, 7], np.uint32), np.array([2**32 - 4, 7], np.uint32))
    (array([ True, False]), array([ True, False]))
    """
    total = _add_shares(share_a, share_b, 1)
    return np.asarray(total == 1), np.asarray(total <= 1)


def judge_tagged(share_a: ArrayLike, share_b: ArrayLike, tags: ArrayLike) -> tuple[Flags, Flags]:
    """Return whether the first column adds up to 1, and for which readings both are sound: (0, 0) or (1, tag).  (V)"""
    total, marks = _add_shares(share_a, share_b, 2), _check_integers(tags, "tags", 1, 2**32 - 1)
    if len(marks) != len(total):
        raise DataError("tags: must be as many as shares. Pass the tag of each reading.")
    flags = np.asarray(total[:, 0] == 1)
    return flags, np.asarray((total[:, 0] <= 1) & (total[:, 1] == np.where(flags, marks, 0)))


def open_flags(share_a: ArrayLike, share_b: ArrayLike) -> Flags:
    """Return the flags of `judge`; raise DataError if any reading is not sound."""
    flags, is_sound = judge(share_a, share_b)
    if not is_sound.all():
        raise DataError(
            "shares: some sums are neither 0 nor 1; keys or shares of a reading were changed, or belong to different "
            "thresholds. Use `judge`, and report those readings as unjudged."
        )
    return flags


def derive_tags(tag_key: bytes, ids: Words) -> Shares:
    """Return the tag of each id, from 1 to 2^32 - 1: AES is the pseudorandom function, so guessing needs the key."""
    function = Cipher(algorithms.AES(tag_key), modes.ECB()).encryptor()  # noqa: S305 - one block each, all different

    def draw(rows: NDArray[np.int64], turn: int) -> Shares:
        blocks = np.full((len(rows), 2), turn, dtype="<u8")
        blocks[:, 0] = ids[rows]
        numbers = np.frombuffer(function.update(blocks.tobytes()), dtype="<u4")
        return np.asarray(numbers.reshape(-1, 4)[:, 0])

    return first_above_zero(draw, len(ids))


def first_above_zero(draw: Callable[[NDArray[np.int64], int], Shares], count: int) -> Shares:
    """Return the first draw of each row that is not 0: uniform above 0, if draws are uniform.  (V)

    >>> first_above_zero(lambda rows, turn: np.full(len(rows), turn, np.uint32), 2)
    array([1, 1], dtype=uint32)
    """
    numbers, turn = draw(np.arange(count), 0).copy(), 0
    while len(zero := np.flatnonzero(numbers == 0)):
        turn += 1
        numbers[zero] = draw(zero, turn)
    return numbers


def _evaluate(party: int, keys: Keys, threshold: int, lanes: int) -> Shares:
    levels = keys.bits - 1
    if party not in (0, 1):
        raise ParameterError(f"party: {party!r} must be 0 for the analyst or 1 for the correction server.")
    if isinstance(threshold, bool) or not isinstance(threshold, int | np.integer) or not 0 <= threshold <= 2**levels:
        raise ParameterError(f"threshold: {threshold!r} must be a whole number from 0 to {2**levels}. Pass one.")
    shifted = (keys.masked.astype(np.uint64) - np.uint64(threshold)) & np.uint64(2**keys.bits - 1)
    at = shifted & np.uint64(2**levels - 1)
    shares = evaluate_key(party, at, keys.roots, keys.seeds, keys.values[:, :, :lanes], keys.steps, lanes)
    shares += keys.offsets[:, :lanes]
    ones = np.hstack([np.full((keys.count, 1), 1 - party, dtype=np.uint32), keys.tags[:, : lanes - 1]])
    return np.where((shifted >> np.uint64(levels) == 1)[:, None], shares, ones - shares)  # (X)


def _add_shares(share_a: ArrayLike, share_b: ArrayLike, columns: int) -> Shares:
    a, b = np.asarray(share_a), np.asarray(share_b)
    for share in (a, b):
        if share.dtype != np.uint32 or share.ndim != columns or (columns > 1 and share.shape[1] != columns):
            raise DataError("shares: must be 32-bit numbers as a server computes them. Pass what both servers sent.")
    if a.shape != b.shape:
        raise DataError("shares: must be as many of one server as of the other. Pass both for every reading.")
    return np.asarray(a + b)


def _check_bits(bits: int) -> int:
    if isinstance(bits, bool) or not isinstance(bits, int) or not MIN_BITS <= bits <= MAX_BITS:
        raise ParameterError(f"bits: {bits!r} must be a whole number from {MIN_BITS} to {MAX_BITS}. 16 suits most.")
    return bits


def _check_integers(values: ArrayLike, name: str, low: int, high: int) -> Words:
    numbers: NDArray[Any] = np.asarray(values)
    if numbers.size == 0:
        return np.empty(0, dtype=np.uint64)
    if numbers.ndim != 1 or not np.issubdtype(numbers.dtype, np.integer) or numbers.min() < low or numbers.max() > high:
        raise DataError(f"{name}: must be whole numbers from {low} to {high}. Clip and round them to that.")
    return np.asarray(numbers.astype(np.uint64))


def _take_low(numbers: Words) -> Shares:
    return np.asarray((numbers & _LOW_WORD).astype(np.uint32))


def _layout(bits: int, count: int, *, tagged: bool) -> list[tuple[str, tuple[int, ...]]]:
    """Return how each array of `Keys` is written: type and shape, in order."""
    levels, lanes = bits - 1, 2 if tagged else 1
    return [
        ("<u2" if bits <= 16 else "<u4", (count,)),
        ("<u8", (count, 2)),
        ("<u8", (levels, count, 2)),
        ("<u4", (levels + 1, count, lanes)),
        ("<u4" if levels <= 16 else "<u8", (count,)),
        ("<u4", (count, lanes)),
        ("<u4", (count, lanes - 1)),
    ]


class _SeedExpander:
    """The cipher, with buffers for one chunk: `inputs` are encrypted into `outputs`."""

    def __init__(self, blocks: int) -> None:
        # ECB is the bare permutation: blocks are seeds, never text.
        self._cipher = Cipher(algorithms.AES(FIXED_KEY), modes.ECB()).encryptor()  # noqa: S305
        self.inputs = np.empty((blocks, 2), dtype=np.uint64)
        self.outputs = np.empty((blocks + 1, 2), dtype=np.uint64)  # the cipher wants a buffer of one block more

    def expand(self) -> None:
        self._cipher.update_into(self.inputs.view(np.uint8).data.cast("B"), self.outputs.view(np.uint8).data.cast("B"))


def _chunks(count: int) -> Iterator[slice]:
    for start in range(0, count, CHUNK_READINGS):
        yield slice(start, min(count, start + CHUNK_READINGS))


def correction_words(alphas: Words, betas: Shares, roots: Words, levels: int) -> tuple[Words, Shares, Words]:
    """Return the correction words of both keys.

    These are seeds (level, reading, 2), values (level and last, reading, lane), and steps, two bits for each level of a
    reading. `roots` (party, reading, 2) are the seeds that the keys start from, `betas` (reading, lane) the payloads.
    """
    count, lanes = betas.shape
    seeds = np.empty((levels, count, 2), dtype=np.uint64)
    values = np.empty((levels + 1, count, lanes), dtype=np.uint32)
    steps = np.zeros(count, dtype=np.uint64)
    blocks = 2 + lanes
    for chunk in _chunks(count):
        size = chunk.stop - chunk.start
        expander, now = _SeedExpander(2 * size * blocks), roots[:, chunk].reshape(2 * size, 2).copy()
        controls = np.repeat(np.array([0, 1], dtype=np.uint8), size)
        totals = np.zeros((size, lanes), dtype=np.uint32)
        for level in range(levels):
            _fill_all(now, blocks, expander.inputs)
            expander.expand()
            bits = ((alphas[chunk] >> np.uint64(levels - 1 - level)) & np.uint64(1)).astype(np.uint8)
            steps[chunk] |= _deal_level(
                expander.inputs,
                expander.outputs,
                blocks,
                bits,
                betas[chunk],
                now,
                controls,
                totals,
                seeds[level, chunk],
                values[level, chunk],
            ) << np.uint64(2 * level)
        _deal_last(now, controls, totals, values[levels, chunk])
    return seeds, values, steps


def evaluate_key(party: int, at: Words, roots: Words, seeds: Words, values: Shares, steps: Words, lanes: int) -> Shares:
    """Return the value of one key at each x of `at`: shares of f(x), one a lane."""
    levels, count = seeds.shape[:2]
    shares = np.empty((count, lanes), dtype=np.uint32)
    for chunk in _chunks(count):
        size = chunk.stop - chunk.start
        expander, now = _SeedExpander(size * (1 + lanes)), roots[chunk].copy()
        controls = np.full(size, party, dtype=np.uint8)
        totals = np.zeros((size, lanes), dtype=np.uint32)
        for level in range(levels):
            bits = ((at[chunk] >> np.uint64(levels - 1 - level)) & np.uint64(1)).astype(np.uint8)
            _fill_path(now, bits, lanes, expander.inputs)
            expander.expand()
            turns = ((steps[chunk] >> np.uint64(2 * level)) & np.uint64(3)).astype(np.uint8)
            _walk_level(
                expander.inputs,
                expander.outputs,
                bits,
                turns,
                seeds[level, chunk],
                values[level, chunk],
                now,
                controls,
                totals,
            )
        _walk_last(party, now, controls, values[levels, chunk], totals)
        shares[chunk] = totals
    return shares


@kernel
def _fill_all(seeds: Words, blocks: int, inputs: Words) -> None:
    """Write the cipher's inputs for both children and all lanes."""
    for i in range(len(seeds)):
        for j in range(blocks):
            inputs[i * blocks + j, 0] = seeds[i, 0] ^ np.uint64(j)
            inputs[i * blocks + j, 1] = seeds[i, 1]


@kernel
def _fill_path(seeds: Words, bits: Bits, lanes: int, inputs: Words) -> None:
    """Write the cipher's inputs for the child that `bits` takes, and all lanes."""
    for i in range(len(seeds)):
        at = i * (1 + lanes)
        inputs[at, 0], inputs[at, 1] = seeds[i, 0] ^ np.uint64(bits[i]), seeds[i, 1]
        for lane in range(lanes):
            inputs[at + 1 + lane, 0], inputs[at + 1 + lane, 1] = seeds[i, 0] ^ np.uint64(2 + lane), seeds[i, 1]


@kernel
def _half(word: np.uint64, side: int | np.int64) -> np.int64:
    """The left or the right half of a block's first word."""
    return np.int64((word >> np.uint64(32 * side)) & np.uint64(_LOW))


@kernel
def _hash_word(inputs: Words, outputs: Words, at: int | np.int64, word: int) -> np.uint64:
    return np.uint64(outputs[at, word] ^ inputs[at, word])


@kernel
def _deal_level(
    inputs: Words,
    outputs: Words,
    blocks: int,
    bits: Bits,
    betas: Shares,
    now: Words,
    controls: Bits,
    totals: Shares,
    seeds: Words,
    values: Shares,
) -> Words:
    """Correct one level: the side that alpha does not take becomes equal for both, the other stays independent.

    `totals` is how far the two parties' sums differ along alpha so far; the value of the level brings it to beta where
    a path leaves alpha to the left, and to 0 where it leaves to the right.  (F)
    """
    count = len(bits)
    steps = np.empty(count, np.uint64)
    for i in range(count):
        keep, a, b = np.int64(bits[i]), i * blocks, (count + i) * blocks
        for w in range(2):
            seeds[i, w] = _hash_word(inputs, outputs, a + 1 - keep, w) ^ _hash_word(inputs, outputs, b + 1 - keep, w)
        turns = _hash_word(inputs, outputs, a + 2, 1), _hash_word(inputs, outputs, b + 2, 1)
        steps[i] = (turns[0] ^ turns[1] ^ np.uint64(1 + keep)) & np.uint64(3)  # left: keep ^ 1, right: keep
        sign = -1 if controls[count + i] else 1
        for lane in range(betas.shape[1]):
            first, second = _hash_word(inputs, outputs, a + 2 + lane, 0), _hash_word(inputs, outputs, b + 2 + lane, 0)
            gap = _half(second, 1 - keep) - _half(first, 1 - keep) - np.int64(totals[i, lane])
            value = sign * (gap + np.int64(betas[i, lane]) * keep)
            total = np.int64(totals[i, lane]) + _half(first, keep) - _half(second, keep) + sign * value
            values[i, lane], totals[i, lane] = np.uint32(value & _LOW), np.uint32(total & _LOW)
        for party in range(2):
            row, at = party * count + i, (a, b)[party] + keep
            turn, control = turns[party], controls[row]
            for w in range(2):
                now[row, w] = _hash_word(inputs, outputs, at, w) ^ (seeds[i, w] if control else np.uint64(0))
            turn ^= steps[i] if control else np.uint64(0)
            controls[row] = (turn >> np.uint64(keep)) & np.uint64(1)
    return steps


@kernel
def _deal_last(now: Words, controls: Bits, totals: Shares, values: Shares) -> None:
    """Correct the sum of the path that is alpha itself to 0."""
    count = len(totals)
    for i in range(count):
        sign = -1 if controls[count + i] else 1
        for lane in range(totals.shape[1]):
            gap = _half(now[count + i, 0], lane) - _half(now[i, 0], lane) - np.int64(totals[i, lane])
            values[i, lane] = np.uint32((sign * gap) & _LOW)


@kernel
def _walk_level(
    inputs: Words,
    outputs: Words,
    bits: Bits,
    turns: Bits,
    seeds: Words,
    values: Shares,
    now: Words,
    controls: Bits,
    totals: Shares,
) -> None:
    """Take one step along x: add the value of the side it takes, and move to that child's seed."""
    lanes = totals.shape[1]
    for i in range(len(bits)):
        at, control = i * (1 + lanes), controls[i]
        side = np.int64(bits[i])
        for lane in range(lanes):
            word = _hash_word(inputs, outputs, at + 1 + lane, 0)
            total = np.int64(totals[i, lane]) + _half(word, side) + (np.int64(values[i, lane]) if control else 0)
            totals[i, lane] = np.uint32(total & _LOW)
        turn = np.uint64(turns[i]) if control else np.uint64(0)
        turn ^= _hash_word(inputs, outputs, at + 1, 1)
        for w in range(2):
            now[i, w] = _hash_word(inputs, outputs, at, w) ^ (seeds[i, w] if control else np.uint64(0))
        controls[i] = (turn >> np.uint64(side)) & np.uint64(1)


@kernel
def _walk_last(party: int, now: Words, controls: Bits, values: Shares, totals: Shares) -> None:
    sign = -1 if party else 1
    for i in range(len(totals)):
        for lane in range(totals.shape[1]):
            total = (
                np.int64(totals[i, lane]) + _half(now[i, 0], lane) + (np.int64(values[i, lane]) if controls[i] else 0)
            )
            totals[i, lane] = np.uint32((sign * total) & _LOW)
