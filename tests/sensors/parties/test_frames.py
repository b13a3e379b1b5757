"""Frames: what goes in comes out, and whatever else comes in raises one error and no other."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallflower.sensors.perturbation import MAX_STEPS
from wallflower.sensors.protocol.findings import Report
from wallflower.sensors.protocol.frames import LAYOUT, MAGIC, Commit, Frame, FrameError, Kind, decode, encode

HASH = hashlib.sha256(b"set").digest()


@st.composite
def frames(draw: Any) -> Frame:
    kind = draw(st.sampled_from(list(Kind)))
    count, columns = draw(st.integers(0, 20)), draw(st.integers(0, 8))
    noise = np.random.default_rng(draw(st.integers(0, 2**32)))
    arrays = {part.name: filled(part, count, columns, noise) for part in LAYOUT[kind] if part.per != "bytes"}
    has_rest = any(part.per == "bytes" for part in LAYOUT[kind])
    return Frame(
        kind=kind,
        parameters=HASH,
        window=draw(st.integers(0, 2**63 - 1)),
        sensor=draw(st.integers(0, 2**63 - 1)),
        seq=draw(st.integers(0, 2**32 - 1)),
        columns=columns,
        count=count,
        arrays=arrays,
        rest=draw(st.binary(max_size=100)) if has_rest else b"",
    )


def filled(part: Any, count: int, columns: int, noise: np.random.Generator) -> np.ndarray:
    shape = (count, columns) if part.per == "columns" else (count,)
    if part.per == "bit":
        return noise.random(count) < 0.5
    if part.dtype == "<f8":
        return noise.normal(size=shape)
    if part.name == "ids":
        return np.sort(noise.choice(2**62, size=count, replace=False)).astype(np.uint64)[::-1]
    high = 100 if part.dtype == "u1" else 2**20
    return noise.integers(0, high, size=shape)


@given(frames())
def test_a_frame_survives_the_wire(frame: Frame) -> None:
    body = encode(frame)
    back = decode(body, parameters=HASH)
    for name in ("kind", "parameters", "window", "sensor", "seq", "columns", "count", "rest"):
        assert getattr(back, name) == getattr(frame, name)
    assert back.arrays.keys() == frame.arrays.keys()
    for name, array in frame.arrays.items():
        assert np.array_equal(back[name], array)
    assert encode(back) == body


@given(st.binary(max_size=400))
def test_any_bytes_are_a_frame_or_a_refusal(body: bytes) -> None:
    for start in (b"", MAGIC, struct.pack("<4sHBBQQII32s", MAGIC, 1, 1, 2, 1, 1, 0, 3, HASH)):
        try:
            frame = decode(start + body, parameters=HASH)
        except FrameError:
            continue
        assert encode(frame) == start + body


@given(frames(), st.data())
def test_a_damaged_frame_is_a_refusal_or_another_frame(frame: Frame, data: Any) -> None:
    body = bytearray(encode(frame))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(body) - 1))
        body[place] ^= data.draw(st.integers(1, 255))
    try:
        back = decode(bytes(body), parameters=HASH)
    except FrameError:
        return
    assert encode(back) == bytes(body)


@given(frames(), st.integers(1, 60))
def test_missing_and_trailing_bytes_are_refused(frame: Frame, amount: int) -> None:
    body = encode(frame)
    free = any(part.per == "bytes" for part in LAYOUT[frame.kind])
    if not free:
        for wrong in (body[:-amount], body + bytes(amount)):
            with pytest.raises(FrameError):
                decode(wrong, parameters=HASH)


def readings(perturbed: Any, ids: Any = (1, 2)) -> bytes:
    arrays = {"ids": np.array(ids, np.uint64), "perturbed": np.array(perturbed, np.int32)}
    return encode(Frame(kind=Kind.READINGS, parameters=HASH, window=0, columns=1, count=2, arrays=arrays))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (readings([[0], [MAX_STEPS + 1]]), "outside the range"),
        (readings([[-(2**31)], [0]]), "outside the range"),
        (readings([[0], [1]], ids=(7, 7)), "twice"),
        (b"XXXX" + readings([[0], [1]])[4:], "version"),
        (readings([[0], [1]])[:-1], "shorter"),
        (readings([[0], [1]]) + b"\0", "longer"),
        (readings([[0], [1]])[:40], "header"),
        (readings(np.array([np.nan, np.inf], "<f4").view("<i4").reshape(2, 1)), "outside the range"),
    ],
)
def test_what_is_outside_the_domain_is_refused(body: bytes, words: str) -> None:
    with pytest.raises(FrameError, match=words):
        decode(body, parameters=HASH)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_no_number_is_refused(value: float) -> None:
    frame = Frame(kind=Kind.CUT, parameters=HASH, window=0, count=1, arrays={"cut": np.array([value])})
    with pytest.raises(FrameError, match="finite"):
        decode(encode(frame), parameters=HASH)


def test_another_parameter_set_and_another_kind_are_refused() -> None:
    body = readings([[0], [1]])
    with pytest.raises(FrameError, match="another parameter set"):
        decode(body, parameters=bytes(32))
    with pytest.raises(FrameError, match="does not belong here"):
        decode(body, parameters=HASH, kinds=(Kind.MOVES,))
    with pytest.raises(FrameError, match="at most 1 rows"):
        decode(body, parameters=HASH, max_rows=1)


def test_bits_beyond_the_last_row_are_refused() -> None:
    arrays = {"present": np.ones(3, np.bool_)}
    body = bytearray(encode(Frame(kind=Kind.PRESENT, parameters=HASH, window=0, count=3, arrays=arrays)))
    body[-1] |= 0x80
    with pytest.raises(FrameError, match="beyond the last row"):
        decode(bytes(body), parameters=HASH)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_commit_or_a_refusal(raw: bytes) -> None:
    for body in (raw, bytes(32) + b"\0\0" + raw, bytes(32) + b"\0\0" + b"1/" + raw):
        try:
            commit = Commit.from_bytes(body)
        except FrameError:
            continue
        assert Commit.from_bytes(commit.to_bytes()) == commit


@given(st.binary(max_size=200))
def test_any_bytes_are_a_report_or_a_refusal(raw: bytes) -> None:
    class Set:
        hash, settings = HASH, None

    for body in (raw, struct.pack("<II", 0, 64) + raw):
        try:
            Report.from_bytes(body, Set())  # type: ignore[arg-type]
        except FrameError:
            continue
