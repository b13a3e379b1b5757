"""Two servers compare a secret score with a public threshold, and neither learns the score or the outcome.

The sensor deals one pair of one-time keys for each reading. A server evaluates its key at a threshold that may be
chosen later and sends the resulting share to the owner; two shares add up to 1 where score >= threshold and to 0
elsewhere, modulo 2^32. Servers do not talk to each other. Correctness is label (X) of proof.md, security (K) and
(U): semi-honest servers of different operators. Each threshold shows the owner one more bit of each reading.

With `tags`, numbers that only sensor and owner know, a second share rides along that must add up to 0 or the tag: a
share that was tampered with is refused but for a chance of 1 in 2^32 - 1, label (V).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import DataError, ParameterError
from wallflower.noise import Noise, system_noise, words
from wallflower.sensors.dcf import Shares, Words, correction_words, walk_key

Flags = NDArray[np.bool_]

FEWEST, MOST = 2, 32  # bits of a masked score
_LOW: Final = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Keys:
    """One server's keys for a batch of readings, of no use without the other's. They do not show in logs.

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

    def to_bytes(self) -> bytes:
        """The arrays one after another, little-endian: 330 bytes a reading at 16 bits, 402 with tags."""
        arrays: list[NDArray[Any]] = [self.masked, self.roots, self.seeds, self.values, self.steps, self.offsets]
        forms = _forms(self.bits, self.count, tagged=self.has_tags)
        written = zip([*arrays, self.tags], forms, strict=True)
        return b"".join(array.astype(form).tobytes() for array, (form, _) in written)

    @staticmethod
    def from_bytes(raw: bytes, count: int, bits: int, *, tagged: bool = False) -> Keys:
        """The keys of `count` readings, or a refusal of anything that `to_bytes` does not write."""
        forms = _forms(_require_bits(bits), count, tagged=tagged)
        sizes = [np.dtype(form).itemsize * math.prod(shape) for form, shape in forms]
        if count < 0 or len(raw) != sum(sizes):
            raise DataError(f"keys: not the length of {count} readings of {bits} bits; ask the sensor to send again.")
        masked, roots, seeds, values, steps, offsets, tags = (
            np.frombuffer(raw[start : start + size], dtype=form).reshape(shape)
            for start, size, (form, shape) in zip(accumulate(sizes, initial=0), sizes, forms, strict=False)
        )
        if (masked > 2**bits - 1).any() or (steps > 4 ** (bits - 1) - 1).any():
            raise DataError(f"keys: not made for {bits} bits; ask the sensor to send again.")
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
    """Fresh keys for both servers; `values` are scores in 0 … 2^(bits-1) - 1, `tags` 32-bit numbers above 0.

    >>> analyst, correction = deal([3, 20, 31], 6)
    >>> open_flags(evaluate(0, analyst, 20), evaluate(1, correction, 20))
    array([False,  True,  True])
    """
    levels = _require_bits(bits) - 1
    scores = _whole(values, "values", 0, 2**levels - 1)
    marks = np.empty((len(scores), 0), np.uint64) if tags is None else _whole(tags, "tags", 1, 2**32 - 1)[:, None]
    if len(marks) != len(scores):
        raise DataError("tags: not as many as values; pass one tag for each reading.")
    count, lanes = len(scores), 1 + marks.shape[1]
    drawn = words(noise or system_noise(), (4 + lanes) * count).reshape(4 + lanes, count)
    masks = drawn[0] & np.uint64(2**bits - 1)  # (U)
    top, low = masks >> np.uint64(levels), masks & np.uint64(2**levels - 1)
    payloads = np.hstack([np.ones((count, 1), np.uint64), marks])
    betas = np.where(top[:, None] == 1, np.uint64(0) - payloads, payloads)
    roots = np.ascontiguousarray(drawn[lanes:].reshape(2, 2, count).transpose(0, 2, 1))
    shared = correction_words(low, _low(betas), roots, levels)
    offsets = drawn[:lanes].T >> np.uint64(32)
    ours = drawn[1:lanes].T
    mine = Keys(bits, _low((scores + masks) & np.uint64(2**bits - 1)), roots[0], *shared, _low(offsets), _low(ours))
    rest = _low(top[:, None] * payloads - offsets)
    return mine, Keys(bits, mine.masked, roots[1], *shared, rest, _low(marks - ours))


def evaluate(party: int, keys: Keys, threshold: int) -> Shares:
    """A server's shares of [score >= threshold]; the analyst is party 0, the correction server party 1."""
    return _evaluate(party, keys, threshold, 1)[:, 0]


def evaluate_tagged(party: int, keys: Keys, threshold: int) -> Shares:
    """A server's shares of [score >= threshold] and of [score >= threshold]·tag, in two columns."""
    if not keys.has_tags:
        raise ParameterError("keys: they carry no tags; deal them with tags, or use `evaluate`.")
    return _evaluate(party, keys, threshold, 2)


def judge(share_a: ArrayLike, share_b: ArrayLike) -> tuple[Flags, Flags]:
    """What two columns of shares add up to, and for which readings that is sound: 0 or 1.

    >>> judge(np.array([5, 7], np.uint32), np.array([2**32 - 4, 7], np.uint32))
    (array([ True, False]), array([ True, False]))
    """
    total = _sum(share_a, share_b, 1)
    return np.asarray(total == 1), np.asarray(total <= 1)


def judge_tagged(share_a: ArrayLike, share_b: ArrayLike, tags: ArrayLike) -> tuple[Flags, Flags]:
    """What the first of two columns adds up to, and for which readings both are sound: (0, 0) or (1, tag).  (V)"""
    total, marks = _sum(share_a, share_b, 2), _whole(tags, "tags", 1, 2**32 - 1)
    if len(marks) != len(total):
        raise DataError("tags: not as many as shares; pass the tag of each reading.")
    flags = np.asarray(total[:, 0] == 1)
    return flags, np.asarray((total[:, 0] <= 1) & (total[:, 1] == np.where(flags, marks, 0)))


def open_flags(share_a: ArrayLike, share_b: ArrayLike) -> Flags:
    """The flags of `judge`, or a refusal where any is not sound."""
    return _all_sound(*judge(share_a, share_b))


def open_tagged_flags(share_a: ArrayLike, share_b: ArrayLike, tags: ArrayLike) -> Flags:
    """The flags of `judge_tagged`, or a refusal where any is not sound."""
    return _all_sound(*judge_tagged(share_a, share_b, tags))


def _evaluate(party: int, keys: Keys, threshold: int, lanes: int) -> Shares:
    levels = keys.bits - 1
    if party not in (0, 1):
        raise ParameterError(f"party: {party!r} is neither server; pass 0 for the analyst, 1 for the correction.")
    if isinstance(threshold, bool) or not isinstance(threshold, int | np.integer) or not 0 <= threshold <= 2**levels:
        raise ParameterError(
            f"threshold: {threshold!r} is not a whole number from 0 to {2**levels}; take one of these."
        )
    shifted = (keys.masked.astype(np.uint64) - np.uint64(threshold)) & np.uint64(2**keys.bits - 1)
    at = shifted & np.uint64(2**levels - 1)
    found = walk_key(party, at, keys.roots, keys.seeds, keys.values[:, :, :lanes], keys.steps, lanes)
    found += keys.offsets[:, :lanes]
    ones = np.hstack([np.full((keys.count, 1), 1 - party, dtype=np.uint32), keys.tags[:, : lanes - 1]])
    return np.where((shifted >> np.uint64(levels) == 1)[:, None], found, ones - found)  # (X)


def _sum(share_a: ArrayLike, share_b: ArrayLike, columns: int) -> Shares:
    one, other = np.asarray(share_a), np.asarray(share_b)
    for share in (one, other):
        if share.dtype != np.uint32 or share.ndim != columns or (columns > 1 and share.shape[1] != columns):
            raise DataError("shares: not 32-bit numbers as a server computes them; pass what both servers sent.")
    if one.shape != other.shape:
        raise DataError("shares: not as many of one server as of the other; pass both for every reading.")
    return np.asarray(one + other)


def _all_sound(flags: Flags, sound: Flags) -> Flags:
    if not sound.all():
        raise DataError(
            "shares: some add up to what no honest servers send; the keys or shares of a reading were changed, or "
            "belong to different thresholds. Use `judge`, and report those readings as unjudged."
        )
    return flags


def _require_bits(bits: int) -> int:
    if isinstance(bits, bool) or not isinstance(bits, int) or not FEWEST <= bits <= MOST:
        raise ParameterError(f"bits: {bits!r} is not a whole number from {FEWEST} to {MOST}; 16 suits most streams.")
    return bits


def _whole(values: ArrayLike, name: str, least: int, most: int) -> Words:
    found: NDArray[Any] = np.asarray(values)
    if found.size == 0:
        return np.empty(0, dtype=np.uint64)
    if found.ndim != 1 or not np.issubdtype(found.dtype, np.integer) or found.min() < least or found.max() > most:
        raise DataError(f"{name}: not whole numbers from {least} to {most}; clip and round them to that.")
    return np.asarray(found.astype(np.uint64))


def _low(numbers: Words) -> Shares:
    return np.asarray((numbers & _LOW).astype(np.uint32))


def _forms(bits: int, count: int, *, tagged: bool) -> list[tuple[str, tuple[int, ...]]]:
    """How each array of `Keys` is written: type and shape, in order."""
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
