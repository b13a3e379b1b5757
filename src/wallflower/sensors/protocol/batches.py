"""From readings to finished frames: clipped, perturbed, keys dealt, shuffled. Noise is drawn once for each reading.

What comes out is all that ever leaves a sensor. A frame that has to be sent again is sent as it is; calling this twice
for one batch would draw twice and cost twice (proof.md, label (R)), which is what the outbox is for.
"""

from __future__ import annotations

import hashlib
import math
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import DataError
from wallflower.noise import Noise, words
from wallflower.privacy import Loss
from wallflower.sensors import comparison, perturbation
from wallflower.sensors.parameters import MOST_BATCH, Direct, Exact, Parameters
from wallflower.sensors.protocol.frames import Frame, FrameError, Kind, encode
from wallflower.sensors.protocol.seals import OVERHEAD, seal

Ids = NDArray[np.uint64]
Ints = NDArray[np.int64]

TAG_KEY: Final = 16  # bytes of the secret that tags are made of
_ROOT_DIGITS: Final = 10**6
_COMMIT: Final = struct.Struct("<32sH")
_SPENT: Final = re.compile(r"\d{1,20}(/\d{1,40})?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which batch this is: the sensor, its window, and the number of the batch in it."""

    sensor: int
    window: int
    seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Frames by who gets them, and the id of each reading in the order the readings came."""

    ids: Ids
    frames: Mapping[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What a sensor says when a window is finished: what it has sent, and what it has spent in its whole life."""

    digest: bytes
    spent: Fraction
    letter: bytes = b""

    def to_bytes(self) -> bytes:
        return _COMMIT.pack(self.digest, len(self.letter)) + self.letter + str(self.spent).encode("ascii")

    @staticmethod
    def from_bytes(raw: bytes) -> Commit:
        """The same back, or a refusal."""
        if len(raw) < _COMMIT.size:
            raise FrameError("commit: shorter than it can be. Send all of it.")
        digest, size = _COMMIT.unpack_from(raw)
        letter, text = raw[_COMMIT.size : _COMMIT.size + size], raw[_COMMIT.size + size :]
        spent = text.decode("ascii", "replace")
        if size not in (0, TAG_KEY + OVERHEAD) or len(letter) != size or not _SPENT.fullmatch(spent):
            raise FrameError("commit: not what a device sends. Send what `Commit.to_bytes` makes.")
        try:
            return Commit(digest=digest, spent=Fraction(spent), letter=letter)
        except ZeroDivisionError:
            raise FrameError("commit: what was spent divides by zero. Send what `Commit.to_bytes` makes.") from None


def targets(parameters: Parameters) -> tuple[str, ...]:
    """Who gets frames from sensors."""
    return ("owner",) if isinstance(parameters.settings, Direct) else ("analyst", "correction")


def prepare_batch(parameters: Parameters, readings: ArrayLike, place: Place, tag_key: bytes, noise: Noise) -> Batch:
    """Everything that leaves a sensor for one batch. Draws noise: store what it gives before you send any of it."""
    points = clip_readings(parameters, readings)
    ids = _fresh_ids(len(points), noise)
    order = np.argsort(words(noise, len(points)), kind="stable")
    mixed, named = points[order], ids[order]
    frames = {
        name: encode(
            Frame(
                kind=kind,
                parameters=parameters.hash,
                columns=len(parameters.columns),
                sensor=place.sensor,
                window=place.window,
                seq=place.seq,
                count=len(ids),
                arrays={"ids": named} | arrays,
                rest=rest,
            )
        )
        for name, (kind, arrays, rest) in _contents(parameters, place, mixed, named, tag_key, noise).items()
    }
    return Batch(ids=ids, frames=frames)


def commit_frame(parameters: Parameters, place: Place, ids: Ids, spent: Fraction, tag_key: bytes) -> bytes:
    """The frame that ends a sensor's window; its `seq` is the number of batches."""
    letter = b""
    if isinstance(parameters.settings, Exact) and parameters.settings.tags:
        bound = about_commit(parameters, place.sensor, place.window)
        letter = seal(bytes.fromhex(parameters.seal), tag_key, bound)
    return encode(
        Frame(
            kind=Kind.COMMIT,
            parameters=parameters.hash,
            sensor=place.sensor,
            window=place.window,
            seq=place.seq,
            count=len(ids),
            rest=Commit(digest=digest(ids), spent=spent, letter=letter).to_bytes(),
        )
    )


def clip_readings(parameters: Parameters, readings: ArrayLike) -> Ints:
    """Readings as whole steps of the grid, within the box."""
    values = np.asarray(readings, dtype=np.float64)
    if values.ndim != 2 or not 0 < len(values) <= MOST_BATCH:
        raise DataError(f"a batch has 1 to {MOST_BATCH:,} readings. Split what is more.")
    own = parameters.columns
    return perturbation.clip(
        values,
        mean=[float(column.center) for column in own],
        deviation=[float(column.scale) for column in own],
        low=[float((column.low - column.center) / column.scale) for column in own],
        high=[float((column.high - column.center) / column.scale) for column in own],
        step=parameters.grid,
    )


def perturb_points(parameters: Parameters, points: Ints, noise: Noise) -> Ints:
    """Points with the stream's noise: what the analyst may see."""
    ranges = [column.range / column.scale for column in parameters.columns]
    if parameters.noise == "columns":
        shares = [parameters.epsilon / len(ranges)] * len(ranges)
        return perturbation.columns(points, ranges=ranges, epsilons=shares, step=parameters.grid, noise=noise)
    return perturbation.planar(
        points, diameter=diameter(ranges), epsilon=parameters.epsilon, step=parameters.grid, noise=noise
    )


def losses(parameters: Parameters) -> tuple[Loss, Loss]:
    """What a perturbed reading costs: between two usual readings, and between any two in the box."""
    ranges = [column.range / column.scale for column in parameters.columns]
    widths = [(column.high - column.low) / column.scale for column in parameters.columns]
    if parameters.noise == "columns":
        return perturbation.columns_losses(ranges, [parameters.epsilon / len(ranges)] * len(ranges), widths)
    return perturbation.planar_losses(diameter(ranges), parameters.epsilon, widths)


def diameter(ranges: list[Fraction]) -> Fraction:
    """How far apart usual readings are at most, rounded up.

    >>> diameter([Fraction(3), Fraction(4)])
    Fraction(5, 1)
    """
    square = math.ceil(sum(one**2 for one in ranges) * _ROOT_DIGITS**2)
    return Fraction(math.isqrt(square - 1) + 1, _ROOT_DIGITS)


def tags(tag_key: bytes, ids: Ids) -> NDArray[np.uint32]:
    """The tag of each id, from 1 to 2^32 - 1: AES is the pseudorandom function, so who lacks the key cannot guess."""
    function = Cipher(algorithms.AES(tag_key), modes.ECB()).encryptor()  # noqa: S305 - one block each, all different

    def draw(rows: NDArray[np.int64], turn: int) -> NDArray[np.uint32]:
        blocks = np.full((len(rows), 2), turn, dtype="<u8")
        blocks[:, 0] = ids[rows]
        words = np.frombuffer(function.update(blocks.tobytes()), dtype="<u4")
        return np.asarray(words.reshape(-1, 4)[:, 0])

    return first_above_zero(draw, len(ids))


def first_above_zero(draw: Callable[[NDArray[np.int64], int], NDArray[np.uint32]], count: int) -> NDArray[np.uint32]:
    """The first draw of each row that is not 0: uniform on what is above 0, if draws are uniform.  (V)

    >>> first_above_zero(lambda rows, turn: np.full(len(rows), turn, np.uint32), 2)
    array([1, 1], dtype=uint32)
    """
    found, turn = draw(np.arange(count), 0).copy(), 0
    while len(zero := np.flatnonzero(found == 0)):
        turn += 1
        found[zero] = draw(zero, turn)
    return found


def digest(ids: Ids) -> bytes:
    """SHA-256 of sorted ids."""
    return hashlib.sha256(np.sort(ids).astype("<u8").tobytes()).digest()


def about(parameters: Parameters, place: Place, ids: Ids) -> bytes:
    """What a letter with bits is bound to: the batch, and its ids in their order."""
    rows = hashlib.sha256(np.asarray(ids, dtype="<u8").tobytes()).digest()
    return about_commit(parameters, place.sensor, place.window) + struct.pack("<I", place.seq) + rows


def about_commit(parameters: Parameters, sensor: int, window: int) -> bytes:
    """What a letter with a tag key is bound to."""
    return parameters.hash + struct.pack("<QQ", sensor, window)


Content = tuple[Kind, dict[str, Any], bytes]


def _contents(
    parameters: Parameters, place: Place, points: Ints, ids: Ids, tag_key: bytes, noise: Noise
) -> dict[str, Content]:
    """What each reader's frame holds besides ids."""
    settings, middle = parameters.settings, parameters.middle
    if isinstance(settings, Direct):
        far = perturbation.distances(points, middle) >= parameters.steps(settings.threshold)
        bits = np.packbits(far, bitorder="little").tobytes()
        letter = seal(bytes.fromhex(parameters.seal), bits, about(parameters, place, ids))
        return {"owner": (Kind.BITS, {}, letter)}
    noisy = perturb_points(parameters, points, noise)
    if isinstance(settings, Exact):
        scores = perturbation.scores(points, middle, parameters.steps(settings.unit), settings.bits)
        marks = tags(tag_key, ids) if settings.tags else None
        ours, theirs = comparison.deal(scores, settings.bits, tags=marks, noise=noise)
        return {
            "analyst": (Kind.READINGS_AND_KEYS, {"perturbed": noisy}, ours.to_bytes()),
            "correction": (Kind.KEYS, {}, theirs.to_bytes()),
        }
    moved = perturbation.d_diff(points, noisy, middle)
    return {
        "analyst": (Kind.READINGS, {"perturbed": noisy}, b""),
        "correction": (Kind.MOVES, {"moved": moved}, b""),
    }


def _fresh_ids(count: int, noise: Noise) -> Ids:
    """Random ids, all different."""
    while len(np.unique(found := words(noise, count))) < count:
        pass
    return found
