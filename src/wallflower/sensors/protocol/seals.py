"""Signatures over exact bytes, and letters that one reader can open.

A signature is Ed25519 (RFC 8032). A letter is sealed with X25519 (RFC 7748) and ChaCha20-Poly1305 (RFC 8439): a key
pair made for this letter alone gives, with the reader's public key, the one key that opens it. `about` is bound to the
letter but not in it, so that a letter cannot be passed off as one about something else.
"""

from __future__ import annotations

from typing import ClassVar, Final

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from wallflower.errors import PrivacyError

SIGNATURE: Final = 64  # bytes of a signature
KEY: Final = 32  # bytes of any public key here
OVERHEAD: Final = KEY + 16  # by how much a letter is longer than what is in it
_ONCE: Final = bytes(12)  # each key seals one letter, so the nonce may be constant


class Forgery(PrivacyError):
    """A signature, a seal or a certificate does not hold, or belongs to somebody else."""

    exit_code: ClassVar[int] = 5


def signature(key: Ed25519PrivateKey, body: bytes) -> bytes:
    """Who holds `key` stands for exactly these bytes."""
    return key.sign(body)


def require_signature(key: bytes, signed: bytes, body: bytes) -> None:
    """Refuse a body that the holder of this public key has not signed."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signed, body)
    except (InvalidSignature, ValueError):
        raise Forgery("the signature is not that of the sender over these bytes. Send what was signed.") from None


def seal(reader: bytes, body: bytes, about: bytes) -> bytes:
    """A letter to the holder of the key whose public part is `reader`.

    >>> key = X25519PrivateKey.generate()
    >>> letter = seal(public(key), b"bits", b"window 7")
    >>> unseal(key, letter, b"window 7")
    b'bits'
    """
    own = X25519PrivateKey.generate()
    try:
        shared = own.exchange(X25519PublicKey.from_public_bytes(reader))
    except ValueError:
        raise Forgery("the reader's key is no key to seal with. Take the one in the signed parameter set.") from None
    return public(own) + _cipher(shared, public(own), reader).encrypt(_ONCE, body, about)


def unseal(key: X25519PrivateKey, letter: bytes, about: bytes) -> bytes:
    """What is in a letter, or a refusal if it was changed, or is for another reader or about something else."""
    try:
        shared = key.exchange(X25519PublicKey.from_public_bytes(letter[:KEY]))
        return _cipher(shared, letter[:KEY], public(key)).decrypt(_ONCE, letter[KEY:], about)
    except (InvalidTag, ValueError):
        raise Forgery("the letter is not sealed to this reader, or was changed. Ask its sender to seal it.") from None


def public(key: Ed25519PrivateKey | X25519PrivateKey) -> bytes:
    """The public part of a key, raw."""
    return key.public_key().public_bytes_raw()


def _cipher(shared: bytes, sender: bytes, reader: bytes) -> ChaCha20Poly1305:
    bound = b"wallflower sealed letter 1" + sender + reader
    return ChaCha20Poly1305(HKDF(algorithm=SHA256(), length=32, salt=None, info=bound).derive(shared))
