"""Keys and trust: a certificate authority for one stream, revocations, and the signed parameter set.

A party is identified by its certificate: its name (analyst, correction, owner, sensor-7) and its Ed25519 key, with
which it also signs what it sends. The folder of a party holds what that party needs and nothing of another; the folder
of the authority stays with the person who admits sensors.

Revoked certificates are on a list that the authority signs (RFC 5280), `revoked.pem`, beside a party's other keys. TLS
refuses a certificate on it in the handshake; open connections, and commitments that a server forwards, are checked
against the same list. A list is only ever replaced by a later one: one that is damaged, older or of another authority
changes nothing.

The parameter set is a file signed by the stream owner; the owner's certificate in it proves whose signature it is.
"""

from __future__ import annotations

import json
import os
import ssl
from base64 import b64decode, b64encode
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

from wallflower.errors import ParameterError, SourceError
from wallflower.machine.files import replacement
from wallflower.sensors.parameters import Parameters
from wallflower.sensors.protocol.frames import Forgery, verify_signature

ROLES: Final = ("analyst", "correction", "owner")
DEFAULT_HOSTS: Final = ("localhost", "127.0.0.1")
_ISSUED: Final = "issued"  # folder of the authority's copies of certificates, by name and number
_AUTHORITY: Final = "authority"
_VALID: Final = timedelta(days=825)
_KEY, _CERTIFICATE, _TRUSTED, _SEAL = "key.pem", "certificate.pem", "authority.pem", "seal.pem"
REVOCATIONS: Final = "revoked.pem"
_LIST_VALID: Final = timedelta(days=36_500)  # an expired list would shut out every party


@dataclass(frozen=True, slots=True)
class Peer:
    """A party with a valid certificate: its name and the public key that signs for it."""

    name: str
    key: bytes = field(repr=False)
    certificate: bytes = field(repr=False)
    serial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The keys of one party, from its folder."""

    name: str
    folder: Path
    key: Ed25519PrivateKey = field(repr=False)
    certificate: bytes = field(repr=False)
    authority: bytes = field(repr=False)
    seal: X25519PrivateKey | None = field(default=None, repr=False)

    @classmethod
    def read(cls, folder: Path) -> Identity:
        """Read a folder that `make_keys` wrote; raise Forgery if key and certificate do not belong together."""
        try:
            authority, certificate = (
                x509.load_pem_x509_certificate((folder / name).read_bytes()) for name in (_TRUSTED, _CERTIFICATE)
            )
            key = load_pem_private_key((folder / _KEY).read_bytes(), password=None)
            seal_file = folder / _SEAL
            seal = load_pem_private_key(seal_file.read_bytes(), password=None) if seal_file.exists() else None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "a file in it is not a key or certificate"
            raise SourceError(
                f"{folder}: {reason}. Name a folder that `wallflower sensors keys` made, such as keys/owner."
            ) from None
        der, trusted = certificate.public_bytes(Encoding.DER), authority.public_bytes(Encoding.DER)
        peer = identify(der, trusted)
        if not isinstance(key, Ed25519PrivateKey) or key.public_key().public_bytes_raw() != peer.key:
            raise Forgery(f"{folder}: key and certificate do not belong together. Make the keys again.")
        seal = seal if isinstance(seal, X25519PrivateKey) else None
        return cls(name=peer.name, folder=folder, key=key, certificate=der, authority=trusted, seal=seal)

    @property
    def public(self) -> str:
        """The key that signs for this party, in hexadecimal."""
        return self.key.public_key().public_bytes_raw().hex()

    @property
    def seal_public(self) -> str:
        """The key that messages to this party are sealed with, in hexadecimal."""
        if self.seal is None:
            raise SourceError(f"{self.folder}: only the stream owner's folder has a key that unseals. Name that one.")
        return self.seal.public_key().public_bytes_raw().hex()

    def server_context(self) -> ssl.SSLContext:
        """Return TLS settings that require a certificate of the authority from every caller."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED
        return self._load_keys(context)

    def client_context(self) -> ssl.SSLContext:
        """Return TLS settings that present this party's certificate and trust the authority alone."""
        return self._load_keys(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def _load_keys(self, context: ssl.SSLContext) -> ssl.SSLContext:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(self.folder / _CERTIFICATE, self.folder / _KEY)
        context.load_verify_locations(self.folder / _TRUSTED)
        return context


def identify(certificate: bytes, authority: bytes) -> Peer:
    """Return the party of a certificate (DER); raise Forgery if it is not of the authority, or not valid today."""
    peer, first, last = _read_certificate(certificate, authority)
    if not first <= datetime.now(UTC) <= last:
        raise Forgery(f"{peer.name}: the certificate is not valid today. Ask the authority for a new one.")
    return peer


@lru_cache(maxsize=1024)
def _read_certificate(certificate: bytes, authority: bytes) -> tuple[Peer, datetime, datetime]:
    try:
        read, issuer = x509.load_der_x509_certificate(certificate), x509.load_der_x509_certificate(authority)
        read.verify_directly_issued_by(issuer)
        (name,) = read.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        key = read.public_key()
    except (InvalidSignature, ValueError, TypeError):
        raise Forgery("the certificate is not of this stream's authority. Use the keys that it made.") from None
    if not isinstance(key, Ed25519PublicKey) or read.not_valid_before_utc < issuer.not_valid_before_utc:
        raise Forgery(
            "the certificate is not of the form that this stream's authority makes. Use the keys that it made."
        )
    peer = Peer(str(name.value), key.public_bytes_raw(), certificate, read.serial_number)
    return peer, read.not_valid_before_utc, read.not_valid_after_utc


@dataclass(frozen=True, slots=True)
class SignedParameters:
    """A parameter set together with the file that proves the stream owner's signature."""

    parameters: Parameters
    body: bytes = field(repr=False)

    def check_peer(self, peer: Peer) -> Peer:
        """Return a party; raise Forgery if its key is not the one in the set, which names all but sensors."""
        if peer.name in ROLES and peer.key.hex() != getattr(self.parameters, peer.name):
            raise Forgery(f"{peer.name}: its key is not the one in the parameter set. Sign a set that names it.")
        return peer


def sign_parameters(parameters: Parameters, owner: Identity) -> SignedParameters:
    """Sign a set with the stream owner's key."""
    if owner.name != "owner" or owner.public != parameters.owner:
        raise Forgery("only the stream owner that the parameter set names can sign it. Use the stream owner's keys.")
    content = {
        "parameters": parameters.to_json(),
        "signature": b64encode(owner.key.sign(parameters.body)).decode("ascii"),
        "certificate": b64encode(owner.certificate).decode("ascii"),
    }
    return SignedParameters(parameters, (json.dumps(content, indent=1) + "\n").encode("ascii"))


def verify_parameters(body: bytes, authority: bytes) -> SignedParameters:
    """Read a signed file; raise Forgery if the stream owner did not sign exactly that."""
    try:
        content: dict[str, Any] = json.loads(body)
        stored = content["parameters"]
        signature, der = (b64decode(content[name], validate=True) for name in ("signature", "certificate"))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ParameterError("parameters: not a signed set. Use the file that `sensors sign` wrote.") from None
    owner = identify(der, authority)
    parameters = Parameters.from_json(stored)
    if owner.name != "owner" or owner.key.hex() != parameters.owner:
        raise Forgery("the parameter set is not signed by the stream owner that it names. Ask for the right one.")
    verify_signature(owner.key, signature, parameters.body)
    return SignedParameters(parameters, body)


class Revocations:
    """The revocation list in one party's folder, read again when it changes."""

    def __init__(self, folder: Path, authority: bytes) -> None:
        self.path = folder / REVOCATIONS
        self._authority = x509.load_der_x509_certificate(authority)
        self._stamp: tuple[int, int, int] | None = None
        self._list: x509.CertificateRevocationList | None = None
        if self.path.exists():
            self.refresh()

    def refresh(self) -> bool:
        """Read the list again if its file has changed; return whether there is a newer one."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return False
        stamp = (status.st_mtime_ns, status.st_ino, status.st_size)
        if stamp == self._stamp:
            return False
        self._stamp = stamp  # an invalid list is reported once, not at every look
        revoked = _read_list(self.path, self._authority)
        if self._list is not None and _list_number(revoked) <= _list_number(self._list):
            return False
        self._list = revoked
        return True

    def check_peer(self, peer: Peer) -> Peer:
        """Return a party; raise Forgery if its certificate was revoked."""
        if self._list is not None and self._list.get_revoked_certificate_by_serial_number(peer.serial) is not None:
            raise Forgery(f"{peer.name}: the certificate was revoked. Ask the authority for a new one.")
        return peer

    def apply(self, context: ssl.SSLContext) -> None:
        """Have TLS refuse certificates on the list, from the next handshake on."""
        if self._list is not None:
            context.load_verify_locations(self.path)
            context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF


def make_keys(folder: Path, *, sensors: int, hosts: Sequence[str] = DEFAULT_HOSTS) -> list[Path]:
    """Make keys for the authority, the parties and sensors 1 to `sensors`; return the new folders, old ones stay."""
    issuer = _make_authority(folder / _AUTHORITY)
    names = (*ROLES, *(f"sensor-{number}" for number in range(1, sensors + 1)))
    return [_make_member(folder / name, name, issuer, hosts) for name in names if not (folder / name).exists()]


def read_authority(folder: Path) -> tuple[x509.Certificate, Ed25519PrivateKey]:
    """Return the authority's certificate and key."""
    try:
        key = load_pem_private_key((folder / _KEY).read_bytes(), password=None)
        certificate = x509.load_pem_x509_certificate((folder / _CERTIFICATE).read_bytes())
    except (OSError, ValueError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise SourceError(f"{folder}: not the authority's keys. Name the folder that `sensors keys` made.")
    return certificate, key


def _make_authority(folder: Path) -> tuple[x509.Certificate, Ed25519PrivateKey]:
    if folder.exists():
        return read_authority(folder)
    key = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "wallflower stream authority")])
    usage = x509.KeyUsage(**_NO_USES | {"key_cert_sign": True, "crl_sign": True})
    builder = _begin_certificate(name, name, key).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    certificate = builder.add_extension(usage, critical=True).sign(key, None)
    _write(folder, {_KEY: _pem(key), _CERTIFICATE: certificate.public_bytes(Encoding.PEM)})
    return certificate, key


def _make_member(
    folder: Path, name: str, issuer: tuple[x509.Certificate, Ed25519PrivateKey], hosts: Sequence[str]
) -> Path:
    authority, signer = issuer
    key = Ed25519PrivateKey.generate()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH])
    builder = _begin_certificate(subject, authority.subject, key).add_extension(names, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(x509.KeyUsage(**_NO_USES | {"digital_signature": True}), critical=True)
    certificate = builder.add_extension(usage, critical=False).sign(signer, None)
    files = {
        _KEY: _pem(key),
        _CERTIFICATE: certificate.public_bytes(Encoding.PEM),
        _TRUSTED: authority.public_bytes(Encoding.PEM),
    }
    _write(folder, files | ({_SEAL: _pem(X25519PrivateKey.generate())} if name == "owner" else {}))
    _write(folder.parent / _AUTHORITY / _ISSUED, {f"{name}.{certificate.serial_number:x}.pem": files[_CERTIFICATE]})
    return folder


_NO_USES: Final[dict[str, Any]] = dict.fromkeys(
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
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now).not_valid_after(now + _VALID)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: Ed25519PrivateKey | X25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, mode=0o700, exist_ok=folder.name == _ISSUED)
    for name, content in files.items():
        with os.fdopen(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)


def _read_list(path: Path, authority: x509.Certificate) -> x509.CertificateRevocationList:
    """Read a list; raise Forgery if the authority did not sign it."""
    try:
        revoked = x509.load_pem_x509_crl(path.read_bytes())
    except (OSError, ValueError):
        raise SourceError(
            f"{path}: not a list of revoked certificates. Use the one that `sensors revoke` wrote."
        ) from None
    if not revoked.is_signature_valid(authority.public_key()):  # type: ignore[arg-type]
        raise Forgery(f"{path}: not signed by this stream's authority. Use the one that `sensors revoke` wrote.")
    return revoked


def revoke(folder: Path, names: list[str]) -> list[Path]:
    """Revoke every certificate that was issued under these names; return the lists that were written."""
    authority, key = read_authority(folder / _AUTHORITY)
    for name in names:
        if not name.startswith("sensor-"):
            raise ParameterError(
                f"{name}: only sensors can be revoked. To replace a party, sign a set that names another key."
            )
    serials = {name: _find_serials(folder, name) for name in names}
    path = folder / _AUTHORITY / REVOCATIONS
    before = _read_list(path, authority) if path.exists() else None
    after = _sign_list(authority, key, before, [serial for numbers in serials.values() for serial in numbers])
    body = after.public_bytes(Encoding.PEM)
    folders = [folder / _AUTHORITY, *(folder / role for role in ROLES)]
    written = [place / REVOCATIONS for place in folders if place.is_dir()]
    for path in written:
        with replacement(path) as file:
            file.write(body)
    return written


def _find_serials(folder: Path, name: str) -> set[int]:
    files = [*(folder / _AUTHORITY / _ISSUED).glob(f"{name}.*.pem"), folder / name / "certificate.pem"]
    serials = {x509.load_pem_x509_certificate(file.read_bytes()).serial_number for file in files if file.exists()}
    if not serials:
        raise SourceError(f"{name}: {folder} has no certificate of that name. Name the folder that issued it.")
    return serials


def _sign_list(
    authority: x509.Certificate,
    key: Ed25519PrivateKey,
    before: x509.CertificateRevocationList | None,
    serials: list[int],
) -> x509.CertificateRevocationList:
    """Make the next list: all that was on the one before, and these."""
    now, number = datetime.now(UTC).replace(microsecond=0), 1 if before is None else _list_number(before) + 1
    # TLS takes the later of two lists, and none that lies ahead of its clock: a server whose clock is behind would
    # refuse every caller. So a list is dated by its number, in seconds from the authority's first.
    dated = authority.not_valid_before_utc + timedelta(seconds=number)
    builder = x509.CertificateRevocationListBuilder().issuer_name(authority.subject)
    builder = builder.last_update(dated).next_update(dated + _LIST_VALID)
    builder = builder.add_extension(x509.CRLNumber(number), critical=False)
    known = {entry.serial_number: entry for entry in before or ()}
    for entry in known.values():
        builder = builder.add_revoked_certificate(entry)
    for serial in sorted(set(serials) - set(known)):
        fresh = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now)
        builder = builder.add_revoked_certificate(fresh.build())
    return builder.sign(key, None)


def _list_number(revoked: x509.CertificateRevocationList) -> int:
    return int(revoked.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number)
