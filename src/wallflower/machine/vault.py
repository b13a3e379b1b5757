"""Values on disk that only who has a key can read: AES-SIV (RFC 5297), so that nothing has to be drawn.

A value is bound to its place in the file: moved to another row, or changed, it opens no more. Equal values at one place
look equal, and how long a value is shows. A key is a file of its own, readable by its owner only.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from wallflower.errors import SourceError, StateError
from wallflower.machine.heavy import cryptography_exceptions as _exceptions
from wallflower.machine.heavy import cryptography_hazmat_primitives_ciphers_aead as _aead

SIZE: Final = 64  # bytes of a key
_WHOLE: Final = b"\1"  # before every value, since SIV seals nothing that is empty


class SealedStore(StateError):
    """A sealed file without its key, with another one, or one whose values were moved or changed."""


class Vault:
    """Seals and opens values with one key.

    >>> vault = Vault(bytes(range(64)))
    >>> vault.unseal(vault.seal(b"reading", "frames", 7), "frames", 7)
    b'reading'
    """

    def __init__(self, key: bytes) -> None:
        self._cipher = _aead.AESSIV(key)

    def seal(self, value: bytes, *place: object) -> bytes:
        return self._cipher.encrypt(_WHOLE + value, _place_bytes(place))

    def unseal(self, value: bytes, *place: object) -> bytes:
        try:
            return self._cipher.decrypt(value, _place_bytes(place))[len(_WHOLE) :]
        except (_exceptions.InvalidTag, ValueError):
            raise SealedStore(
                "a sealed value does not open: the key is another one, or the file was changed. Name the key that the "
                "file was made with, or restore the file."
            ) from None


class OpenVault:
    """Leaves values as they are: for files that are not sealed."""

    def seal(self, value: bytes, *_: object) -> bytes:
        return value

    def unseal(self, value: bytes, *_: object) -> bytes:
        return value


def read_vault(path: Path | None) -> Vault | OpenVault:
    """The vault of a key file; without one, values are left as they are."""
    if path is None:
        return OpenVault()
    try:
        with path.open("rb") as file:
            mode, body = os.fstat(file.fileno()).st_mode, file.read(4 * SIZE)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}. Name a key that `wallflower sensors store-key` made.") from None
    if mode & 0o077:
        raise SourceError(f"{path}: others than its owner may read this key. Make a new one, or chmod 600 {path}.")
    try:
        key = bytes.fromhex(body.decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != SIZE:
        raise SourceError(f"{path}: not a key for stores. Name one that `wallflower sensors store-key` made.")
    return Vault(key)


def make_key(path: Path) -> None:
    """A new key in a file of its own; what is there stays."""
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        words = f"{path}: {error.strerror}. Name a file that is not there yet, in a folder that is."
        raise SourceError(words) from None
    with os.fdopen(made, "wb") as file:
        file.write(_aead.AESSIV.generate_key(8 * SIZE).hex().encode("ascii") + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _place_bytes(place: tuple[object, ...]) -> list[bytes]:
    return [part if isinstance(part, bytes) else str(part).encode("utf-8") for part in place]
