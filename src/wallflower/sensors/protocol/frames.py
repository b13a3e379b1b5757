"""The wire format: frames of little-endian arrays behind a fixed header, signatures, and sealed messages.

magic  version  kind  columns  sensor  window  seq  count  SHA-256 of the parameter set       64 bytes in all
the arrays of the kind, in the order of `LAYOUT`

A body is decoded strictly: anything wrong with it raises `FrameError`, and nothing else does. A frame has one encoding,
so that a signature over its bytes is one over its meaning.

A signature is Ed25519 (RFC 8032). A sealed message is encrypted with X25519 (RFC 7748) and ChaCha20-Poly1305 (RFC
8439): a key pair made for this message alone gives, with the reader's public key, the one key that opens it. A
`context` is authenticated but not in the message, so that it cannot be passed off as one about something else.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from fractions import Fraction
from typing import Any, ClassVar, Final, Literal

import numpy as np
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from wallflower.errors import DataError, PrivacyError
from wallflower.sensors.comparison import TAG_KEY_BYTES
from wallflower.sensors.perturbation import MAX_STEPS

MAGIC: Final = b"WFsf"
VERSION: Final = 1
MAX_ROWS: Final = 2**24
MAX_NUMBER: Final = 2**63 - 1  # of a sensor or a window: what SQLite holds
PUBLIC_KEY_BYTES: Final = 32
SEAL_BYTES: Final = PUBLIC_KEY_BYTES + 16  # by how much a sealed message is longer than its content
_NONCE: Final = bytes(12)  # each key seals one message, so the nonce may be constant
_HEADER: Final = struct.Struct("<4sHBBQQII32s")
_COMMIT: Final = struct.Struct("<32sH")
_SPENT: Final = re.compile(r"\d{1,20}(/\d{1,40})?", re.ASCII)

Array = NDArray[Any]
Ids = NDArray[np.uint64]


class FrameError(DataError):
    """Bytes that are not a frame, or not one that belongs here."""


class Forgery(PrivacyError):
    """A signature, a seal or a certificate is not valid, or belongs to another party."""

    exit_code: ClassVar[int] = 5


class Kind(IntEnum):
    """The purpose of a frame."""

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
    """One array of a frame: how many numbers it has for each row. `bytes` takes the rest of the frame."""

    name: str
    dtype: str
    per: Literal["row", "columns", "bit", "bytes"] = "row"
    max_magnitude: int | None = None

    def size(self, count: int, columns: int, left: int) -> int:
        """Return the length in bytes, `left` bytes before the end of the frame."""
        width = np.dtype(self.dtype).itemsize
        sizes = {"row": width * count, "columns": width * count * columns, "bit": -(-count // 8), "bytes": left}
        return sizes[self.per]

    def decode(self, piece: bytes, frame: Frame) -> Array:
        """Return the array, or raise FrameError."""
        array: Array = np.frombuffer(piece, dtype=self.dtype)
        if self.per == "bit":
            bits = np.unpackbits(array, bitorder="little")
            if bits[frame.count :].any():
                raise FrameError(f"{self.name}: bits beyond the last row are set. Leave them 0.")
            return bits[: frame.count].astype(np.bool_)
        if self.dtype == "<f8" and not np.isfinite(array).all():
            raise FrameError(f"{self.name}: must be finite. Send finite numbers only.")
        limit = self.max_magnitude
        if limit is not None and array.size and max(-int(array.min()), int(array.max())) > limit:
            raise FrameError(f"{self.name}: outside the range that devices send. Cut it as devices do.")
        if self.name == "ids" and array.size and not np.diff(np.sort(array)).all():
            raise FrameError("ids: an id is there twice. Give each reading an id of its own.")
        return array.reshape(frame.count, frame.columns) if self.per == "columns" else array


_IDS: Final = Part("ids", "<u8")
_PERTURBED: Final = Part("perturbed", "<i4", "columns", MAX_STEPS)
_REST: Final = Part("rest", "u1", "bytes")
_SENSORS: Final = Part("sensors", "<u8")

LAYOUT: Final[Mapping[Kind, tuple[Part, ...]]] = {
    Kind.READINGS: (_IDS, _PERTURBED),
    Kind.MOVES: (_IDS, Part("moved", "<i4", max_magnitude=16 * MAX_STEPS)),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchId:
    """The sensor, the window and the number of a batch."""

    sensor: int
    window: int
    seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A sensor's statement at the end of a window: what it has sent, and what it has spent in its whole life.

    `sealed_key` is the key of its tags, sealed to the stream owner; empty without tags.
    """

    digest: bytes
    spent: Fraction
    sealed_key: bytes = b""

    def to_bytes(self) -> bytes:
        head = _COMMIT.pack(self.digest, len(self.sealed_key))
        return head + self.sealed_key + str(self.spent).encode("ascii")

    @staticmethod
    def from_bytes(raw: bytes) -> Commit:
        """Read what `to_bytes` wrote, or raise FrameError."""
        if len(raw) < _COMMIT.size:
            raise FrameError("commit: too short. Send all of it.")
        digest, size = _COMMIT.unpack_from(raw)
        sealed_key, text = raw[_COMMIT.size : _COMMIT.size + size], raw[_COMMIT.size + size :]
        spent = text.decode("ascii", "replace")
        if size not in (0, TAG_KEY_BYTES + SEAL_BYTES) or len(sealed_key) != size or not _SPENT.fullmatch(spent):
            raise FrameError("commit: not what a device sends. Send what `Commit.to_bytes` makes.")
        try:
            return Commit(digest=digest, spent=Fraction(spent), sealed_key=sealed_key)
        except ZeroDivisionError:
            raise FrameError("commit: what was spent divides by zero. Send what `Commit.to_bytes` makes.") from None


def encode(frame: Frame) -> bytes:
    """Return the bytes of a frame.

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


def decode(body: bytes, *, parameters: bytes, kinds: tuple[Kind, ...] = tuple(Kind), max_rows: int = MAX_ROWS) -> Frame:
    """Return the frame of these bytes, if it is one of these kinds under this parameter set; else raise FrameError."""
    frame = _decode_header(body, max_rows)
    if frame.parameters != parameters:
        raise FrameError("parameters: the frame was made under another parameter set. Use the one in force.")
    if frame.kind not in kinds:
        raise FrameError(f"kind: a {frame.kind.name.lower()} frame does not belong here.")
    arrays: dict[str, Array] = {}
    rest, start = b"", _HEADER.size
    for part in LAYOUT[frame.kind]:
        size = part.size(frame.count, frame.columns, len(body) - start)
        piece = body[start : start + size]
        if len(piece) != size:
            raise FrameError("count: the frame is shorter than its header says. Send all of it.")
        start += size
        if part.per == "bytes":
            rest = piece
        else:
            arrays[part.name] = part.decode(piece, frame)
    if start != len(body):
        raise FrameError("count: the frame is longer than its header says. Send nothing after it.")
    return replace(frame, arrays=arrays, rest=rest)


def _decode_header(body: bytes, max_rows: int) -> Frame:
    if len(body) < _HEADER.size:
        raise FrameError(f"header: it takes {_HEADER.size} bytes, and fewer are there. Send the whole frame.")
    magic, version, kind, columns, sensor, window, seq, count, parameters = _HEADER.unpack_from(body)
    if magic != MAGIC or version != VERSION or kind not in tuple(Kind):
        raise FrameError(f"header: not a frame of version {VERSION}. Send what `frames.encode` makes.")
    if max(sensor, window) > MAX_NUMBER:
        raise FrameError("header: the number of a sensor or a window must be below 2**63.")
    if count > max_rows:
        raise FrameError(f"count: a frame here has at most {max_rows:,} rows. Send several smaller ones.")
    return Frame(
        kind=Kind(kind), parameters=parameters, window=window, columns=columns, sensor=sensor, seq=seq, count=count
    )


def digest_ids(ids: Ids) -> bytes:
    """Return the SHA-256 of sorted ids."""
    return hashlib.sha256(np.sort(ids).astype("<u8").tobytes()).digest()


def batch_context(parameters: bytes, batch: BatchId, ids: Ids) -> bytes:
    """Return the context of sealed bits: the batch, and its ids in their order."""
    rows = hashlib.sha256(np.asarray(ids, dtype="<u8").tobytes()).digest()
    return commit_context(parameters, batch.sensor, batch.window) + struct.pack("<I", batch.seq) + rows


def commit_context(parameters: bytes, sensor: int, window: int) -> bytes:
    """Return the context of a sealed tag key."""
    return parameters + struct.pack("<QQ", sensor, window)


def report_context(parameters: bytes, window: int, role: str) -> bytes:
    """Return the context of a server's sealed report."""
    return parameters + window.to_bytes(8, "little") + role.encode("ascii")


def verify_signature(key: bytes, signature: bytes, body: bytes) -> None:
    """Raise Forgery unless the holder of this public key has signed the body."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, body)
    except (InvalidSignature, ValueError):
        raise Forgery("the signature is not the sender's over these bytes. Send what was signed.") from None


def seal(reader: bytes, body: bytes, context: bytes) -> bytes:
    """Encrypt a message to the holder of the key whose public part is `reader`.

    >>> key = X25519PrivateKey.generate()
    >>> message = seal(public_bytes(key), b"bits", b"window 7")
    >>> unseal(key, message, b"window 7")
    b'bits'
    """
    once = X25519PrivateKey.generate()
    try:
        shared = once.exchange(X25519PublicKey.from_public_bytes(reader))
    except ValueError:
        raise Forgery("the reader's key cannot be used to seal. Take the one in the signed parameter set.") from None
    return public_bytes(once) + _cipher(shared, public_bytes(once), reader).encrypt(_NONCE, body, context)


def unseal(key: X25519PrivateKey, message: bytes, context: bytes) -> bytes:
    """Decrypt a message; raise Forgery if it was changed, or has another reader or context."""
    sender = message[:PUBLIC_KEY_BYTES]
    try:
        shared = key.exchange(X25519PublicKey.from_public_bytes(sender))
        return _cipher(shared, sender, public_bytes(key)).decrypt(_NONCE, message[PUBLIC_KEY_BYTES:], context)
    except (InvalidTag, ValueError):
        raise Forgery("the message is not sealed to this reader, or was changed. Ask its sender to seal it.") from None


def public_bytes(key: Ed25519PrivateKey | X25519PrivateKey) -> bytes:
    """Return the public part of a key, raw."""
    return key.public_key().public_bytes_raw()


def _cipher(shared: bytes, sender: bytes, reader: bytes) -> ChaCha20Poly1305:
    info = b"wallflower sealed letter 1" + sender + reader
    return ChaCha20Poly1305(HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(shared))
