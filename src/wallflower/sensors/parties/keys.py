"""Who is who: a certificate authority for one stream, and a folder of keys for each party.

A party is known by its certificate: its name (analyst, correction, owner, sensor-7) and its Ed25519 key, with which it
also signs what it sends. Folders hold what their party needs and nothing of another; the authority's own stays with
whoever admits sensors.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from wallflower.errors import SourceError
from wallflower.sensors.protocol.seals import Forgery

PARTIES: Final = ("analyst", "correction", "owner")
HOSTS: Final = ("localhost", "127.0.0.1")
ISSUED: Final = "issued"  # the authority's copies of certificates, by name and number
_AUTHORITY: Final = "authority"
_VALID: Final = timedelta(days=825)
_KEY, _CERTIFICATE, _TRUSTED, _SEAL = "key.pem", "certificate.pem", "authority.pem", "seal.pem"


@dataclass(frozen=True, slots=True)
class Peer:
    """Somebody the authority knows: a name and the public key that signs for it."""

    name: str
    key: bytes = field(repr=False)
    certificate: bytes = field(repr=False)
    serial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One party's own folder, read."""

    name: str
    folder: Path
    key: Ed25519PrivateKey = field(repr=False)
    certificate: bytes = field(repr=False)
    authority: bytes = field(repr=False)
    seal: X25519PrivateKey | None = field(default=None, repr=False)

    @classmethod
    def read(cls, folder: Path) -> Identity:
        """What `make` left there; refuses a folder whose key and certificate do not belong together."""
        try:
            authority, certificate = (
                x509.load_pem_x509_certificate((folder / name).read_bytes()) for name in (_TRUSTED, _CERTIFICATE)
            )
            key = load_pem_private_key((folder / _KEY).read_bytes(), password=None)
            seal_file = folder / _SEAL
            seal = load_pem_private_key(seal_file.read_bytes(), password=None) if seal_file.exists() else None
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else "holds a file that is no key or certificate"
            raise SourceError(
                f"{folder}: {words}. A party's folder is made by `wallflower sensors keys`. Name one, as in keys/owner."
            ) from None
        der, trusted = certificate.public_bytes(Encoding.DER), authority.public_bytes(Encoding.DER)
        peer = who(der, trusted)
        if not isinstance(key, Ed25519PrivateKey) or key.public_key().public_bytes_raw() != peer.key:
            raise Forgery(f"{folder}: its key is not that of its certificate. Make the keys again.")
        own = seal if isinstance(seal, X25519PrivateKey) else None
        return cls(name=peer.name, folder=folder, key=key, certificate=der, authority=trusted, seal=own)

    @property
    def public(self) -> str:
        """The key that signs for this party, in hexadecimal."""
        return self.key.public_key().public_bytes_raw().hex()

    @property
    def seal_public(self) -> str:
        """The key that letters to this party are sealed with, in hexadecimal."""
        if self.seal is None:
            raise SourceError(f"{self.folder}: only the owner's folder has a key that opens letters. Name that one.")
        return self.seal.public_key().public_bytes_raw().hex()

    def server_context(self) -> ssl.SSLContext:
        """TLS that asks every caller for a certificate of the authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED
        return self._load_keys(context)

    def client_context(self) -> ssl.SSLContext:
        """TLS that shows this party's certificate and trusts the authority alone."""
        return self._load_keys(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def _load_keys(self, context: ssl.SSLContext) -> ssl.SSLContext:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(self.folder / _CERTIFICATE, self.folder / _KEY)
        context.load_verify_locations(self.folder / _TRUSTED)
        return context


def who(certificate: bytes, authority: bytes) -> Peer:
    """Whose certificate this is (DER), or a refusal if the authority did not issue it or its time is over."""
    peer, first, last = _read_certificate(certificate, authority)
    if not first <= datetime.now(UTC) <= last:
        raise Forgery(f"{peer.name}: the certificate is not valid today. Ask the authority for a new one.")
    return peer


@lru_cache(maxsize=1024)
def _read_certificate(certificate: bytes, authority: bytes) -> tuple[Peer, datetime, datetime]:
    try:
        found, issuer = x509.load_der_x509_certificate(certificate), x509.load_der_x509_certificate(authority)
        found.verify_directly_issued_by(issuer)
        (name,) = found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        key = found.public_key()
    except (InvalidSignature, ValueError, TypeError):
        raise Forgery("the certificate is not one of this stream's authority. Use the keys that it made.") from None
    if not isinstance(key, Ed25519PublicKey) or found.not_valid_before_utc < issuer.not_valid_before_utc:
        raise Forgery("the certificate is not one that this stream's authority makes. Use the keys that it made.")
    peer = Peer(str(name.value), key.public_bytes_raw(), certificate, found.serial_number)
    return peer, found.not_valid_before_utc, found.not_valid_after_utc


def make(folder: Path, *, sensors: int, hosts: Sequence[str] = HOSTS) -> list[Path]:
    """Keys for the authority, the parties and so many sensors; what is there already stays. Gives what is new."""
    issuer = _authority(folder / _AUTHORITY)
    names = (*PARTIES, *(f"sensor-{number}" for number in range(1, sensors + 1)))
    return [_member(folder / name, name, issuer, hosts) for name in names if not (folder / name).exists()]


def read_authority(folder: Path) -> tuple[x509.Certificate, Ed25519PrivateKey]:
    """The authority's certificate and key."""
    try:
        key = load_pem_private_key((folder / _KEY).read_bytes(), password=None)
        certificate = x509.load_pem_x509_certificate((folder / _CERTIFICATE).read_bytes())
    except (OSError, ValueError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise SourceError(f"{folder}: not the authority's key. Name the folder that `sensors keys` made.")
    return certificate, key


def _authority(folder: Path) -> tuple[x509.Certificate, Ed25519PrivateKey]:
    if folder.exists():
        return read_authority(folder)
    key = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "wallflower stream authority")])
    only = x509.KeyUsage(**_USES | {"key_cert_sign": True, "crl_sign": True})
    made = _begin_certificate(name, name, key).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    certificate = made.add_extension(only, critical=True).sign(key, None)
    _write(folder, {_KEY: _pem(key), _CERTIFICATE: certificate.public_bytes(Encoding.PEM)})
    return certificate, key


def _member(folder: Path, name: str, issuer: tuple[x509.Certificate, Ed25519PrivateKey], hosts: Sequence[str]) -> Path:
    authority, signer = issuer
    key = Ed25519PrivateKey.generate()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    places = x509.SubjectAlternativeName([_place(host) for host in hosts])
    both = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH])
    made = _begin_certificate(subject, authority.subject, key).add_extension(places, critical=False)
    made = made.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    made = made.add_extension(x509.KeyUsage(**_USES | {"digital_signature": True}), critical=True)
    certificate = made.add_extension(both, critical=False).sign(signer, None)
    files = {
        _KEY: _pem(key),
        _CERTIFICATE: certificate.public_bytes(Encoding.PEM),
        _TRUSTED: authority.public_bytes(Encoding.PEM),
    }
    _write(folder, files | ({_SEAL: _pem(X25519PrivateKey.generate())} if name == "owner" else {}))
    kept = folder.parent / _AUTHORITY / ISSUED
    _write(kept, {f"{name}.{certificate.serial_number:x}.pem": files[_CERTIFICATE]})
    return folder


_USES: Final[dict[str, Any]] = dict.fromkeys(
    (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
        "encipher_only",
        "decipher_only",
    ),
    False,
)


def _begin_certificate(subject: x509.Name, issuer: x509.Name, key: Ed25519PrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC).replace(microsecond=0)
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number())
    return made.not_valid_before(now).not_valid_after(now + _VALID)


def _place(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: Ed25519PrivateKey | X25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, mode=0o700, exist_ok=folder.name == ISSUED)
    for name, content in files.items():
        with os.fdopen(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
