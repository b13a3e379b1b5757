"""What goes over the wire: little-endian arrays behind a fixed header.

magic  version  kind  columns  sensor  window  seq  count  SHA-256 of the parameter set       64 bytes in all
the arrays of the kind, in the order of `LAYOUT`

A body is decoded strictly: whatever is wrong with it raises `FrameError`, and nothing else does. One frame has one
encoding, so that a signature over its bytes is one over its meaning.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import DataError
from wallflower.sensors.perturbation import LIMIT

MAGIC: Final = b"WFsf"
VERSION: Final = 1
MOST: Final = 2**24  # rows of a frame
BIGGEST: Final = 2**63 - 1  # number of a sensor or a window: what SQLite holds
_HEADER: Final = struct.Struct("<4sHBBQQII32s")

Array = NDArray[Any]


class FrameError(DataError):
    """Bytes that are no frame, or not one that belongs here."""


class Kind(IntEnum):
    """What a frame is for."""

    READINGS = 1
    MOVES = 2
    READINGS_AND_KEYS = 3
    KEYS = 4
    BITS = 5
    COMMIT = 6
    MANIFEST = 7
    PRESENT = 8
    PRESUMED = 9
    CUT = 10
    LAYERS = 11
    BINS = 12
    COUNTS = 13
    RESULT = 14
    DONE = 15
    SHARES = 16
    VERDICT = 17
    UNJUDGED = 18


@dataclass(frozen=True, slots=True)
class Part:
    """One array: how many numbers it has for each of the frame's rows. `bytes` takes what is left."""

    name: str
    dtype: str
    per: Literal["row", "columns", "bit", "bytes"] = "row"
    most: int | None = None  # how far from 0 its numbers may be

    def size(self, count: int, columns: int, left: int) -> int:
        width = np.dtype(self.dtype).itemsize
        return {
            "row": width * count,
            "columns": width * count * columns,
            "bit": -(-count // 8),
            "bytes": left,
        }[self.per]


_IDS: Final = Part("ids", "<u8")
_PERTURBED: Final = Part("perturbed", "<i4", "columns", LIMIT)
_REST: Final = Part("rest", "u1", "bytes")
_SENSORS: Final = Part("sensors", "<u8")

LAYOUT: Final[Mapping[Kind, tuple[Part, ...]]] = {
    Kind.READINGS: (_IDS, _PERTURBED),
    Kind.MOVES: (_IDS, Part("moved", "<i4", most=16 * LIMIT)),
    Kind.READINGS_AND_KEYS: (_IDS, _PERTURBED, _REST),
    Kind.KEYS: (_IDS, _REST),
    Kind.BITS: (_IDS, _REST),
    Kind.COMMIT: (_REST,),
    Kind.MANIFEST: (_IDS,),
    Kind.PRESENT: (Part("present", "u1", "bit"),),
    Kind.PRESUMED: (Part("presumed", "u1", "bit"),),
    Kind.CUT: (Part("cut", "<f8"),),
    Kind.LAYERS: (Part("second", "u1", "bit"), Part("third", "u1", "bit")),
    Kind.BINS: (Part("bins", "<u4"),),
    Kind.COUNTS: (Part("counts", "<u4"),),
    Kind.RESULT: (_REST,),
    Kind.DONE: (),
    Kind.SHARES: (_IDS, _SENSORS, Part("shares", "<u4", "columns")),
    Kind.VERDICT: (_IDS, _SENSORS, Part("layer", "u1")),
    Kind.UNJUDGED: (_IDS, _SENSORS),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frame:
    """A header and its arrays; `bit` arrays are booleans, one a row."""

    kind: Kind
    parameters: bytes
    window: int
    columns: int = 0
    sensor: int = 0
    seq: int = 0
    count: int = 0
    arrays: Mapping[str, Array] = field(default_factory=dict)
    rest: bytes = b""

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]


def encode(frame: Frame) -> bytes:
    """The bytes of a frame.

    >>> body = encode(Frame(kind=Kind.DONE, parameters=bytes(32), window=7))
    >>> len(body), decode(body, parameters=bytes(32)).window
    (64, 7)
    """
    head = (frame.kind, frame.columns, frame.sensor, frame.window, frame.seq, frame.count, frame.parameters)
    pieces = [_HEADER.pack(MAGIC, VERSION, *head)]
    for part in LAYOUT[frame.kind]:
        if part.per == "bytes":
            pieces.append(frame.rest)
        elif part.per == "bit":
            pieces.append(np.packbits(frame[part.name], bitorder="little").tobytes())
        else:
            pieces.append(np.ascontiguousarray(frame[part.name], dtype=part.dtype).tobytes())
    return b"".join(pieces)


def decode(body: bytes, *, parameters: bytes, kinds: tuple[Kind, ...] = tuple(Kind), most: int = MOST) -> Frame:
    """The frame these bytes are, if it is one of these kinds under this parameter set."""
    frame = _head(body, most)
    if frame.parameters != parameters:
        raise FrameError("parameters: the frame was made under another parameter set. Take the one in force.")
    if frame.kind not in kinds:
        raise FrameError(f"kind: a {frame.kind.name.lower()} frame does not belong here.")
    arrays: dict[str, Array] = {}
    rest, place = b"", _HEADER.size
    for part in LAYOUT[frame.kind]:
        size = part.size(frame.count, frame.columns, len(body) - place)
        piece = body[place : place + size]
        if len(piece) != size:
            raise FrameError("count: the frame is shorter than its header says. Send all of it.")
        place += size
        if part.per == "bytes":
            rest = piece
        else:
            arrays[part.name] = _array(piece, part, frame)
    if place != len(body):
        raise FrameError("count: the frame is longer than its header says. Send what belongs to it and no more.")
    return Frame(**_facts(frame), arrays=arrays, rest=rest)


def _facts(frame: Frame) -> dict[str, Any]:
    return {
        name: getattr(frame, name) for name in ("kind", "parameters", "window", "columns", "sensor", "seq", "count")
    }


def _head(body: bytes, most: int) -> Frame:
    if len(body) < _HEADER.size:
        raise FrameError(f"header: it takes {_HEADER.size} bytes and not all are there. Send the whole frame.")
    magic, version, kind, columns, sensor, window, seq, count, parameters = _HEADER.unpack_from(body)
    if magic != MAGIC or version != VERSION or kind not in tuple(Kind):
        raise FrameError(f"header: not a frame of version {VERSION}. Send what `frames.encode` makes.")
    if max(sensor, window) > BIGGEST:
        raise FrameError("header: the number of a sensor or a window is below 2**63.")
    if count > most:
        raise FrameError(f"count: a frame here has at most {most:,} rows. Send several smaller ones.")
    return Frame(
        kind=Kind(kind),
        parameters=parameters,
        window=window,
        columns=columns,
        sensor=sensor,
        seq=seq,
        count=count,
    )


def _array(piece: bytes, part: Part, frame: Frame) -> Array:
    found: Array = np.frombuffer(piece, dtype=part.dtype)
    if part.per == "bit":
        bits = np.unpackbits(found, bitorder="little")
        if bits[frame.count :].any():
            raise FrameError(f"{part.name}: bits beyond the last row are set. Leave them 0.")
        return bits[: frame.count].astype(np.bool_)
    if part.dtype == "<f8" and not np.isfinite(found).all():
        raise FrameError(f"{part.name}: not a finite number. Send finite numbers only.")
    if part.most is not None and found.size and max(-int(found.min()), int(found.max())) > part.most:
        raise FrameError(f"{part.name}: further out than a device sends anything. Cut it as devices do.")
    if part.name == "ids" and found.size and not np.diff(np.sort(found)).all():
        raise FrameError("ids: an id is there twice. Each reading has an id of its own.")
    return found.reshape(frame.count, frame.columns) if part.per == "columns" else found
