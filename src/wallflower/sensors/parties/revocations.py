"""Certificates that the authority took back: a list that it signs, and that parties read again when it changes.

The list is a certificate revocation list (RFC 5280), `revoked.pem`, beside a party's other keys. TLS refuses a
certificate on it in the handshake; whoever is connected already, and whose commitment a server forwards, is refused by
the same list. A list is only ever replaced by a later one: one that is damaged, older or of another authority changes
nothing.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding

from wallflower.errors import ParameterError, SourceError
from wallflower.machine.files import replacement
from wallflower.sensors.parties.keys import ISSUED, PARTIES, Peer, read_authority
from wallflower.sensors.protocol.seals import Forgery

LIST: Final = "revoked.pem"
_VALID: Final = timedelta(days=36_500)  # a list that ends would shut out everybody


class Revocations:
    """The list in one party's folder, as it is now."""

    def __init__(self, folder: Path, authority: bytes) -> None:
        self.path = folder / LIST
        self._authority = x509.load_der_x509_certificate(authority)
        self._seen: tuple[int, int, int] | None = None
        self._list: x509.CertificateRevocationList | None = None
        if self.path.exists():
            self.refresh()

    def refresh(self) -> bool:
        """Read the list again if its file has changed; whether there is a newer one."""
        try:
            now = self.path.stat()
        except FileNotFoundError:
            return False
        stamp = (now.st_mtime_ns, now.st_ino, now.st_size)
        if stamp == self._seen:
            return False
        self._seen = stamp  # a list that is not believed is said to be so once, not at every look
        found = read_list(self.path, self._authority)
        if self._list is not None and _number(found) <= _number(self._list):
            return False
        self._list = found
        return True

    def require(self, peer: Peer) -> Peer:
        """Refuse somebody whose certificate was taken back."""
        if self._list is not None and self._list.get_revoked_certificate_by_serial_number(peer.serial) is not None:
            raise Forgery(f"{peer.name}: the certificate was taken back. Ask the authority for a new one.")
        return peer

    def apply(self, context: ssl.SSLContext) -> None:
        """Have TLS refuse what is on the list, from the next handshake on."""
        if self._list is not None:
            context.load_verify_locations(self.path)
            context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF


def read_list(path: Path, authority: x509.Certificate) -> x509.CertificateRevocationList:
    """The list in a file, or a refusal if the authority did not sign it."""
    try:
        found = x509.load_pem_x509_crl(path.read_bytes())
    except (OSError, ValueError):
        raise SourceError(f"{path}: not a list of revoked certificates. Take the one `sensors revoke` wrote.") from None
    if not found.is_signature_valid(authority.public_key()):  # type: ignore[arg-type]
        raise Forgery(f"{path}: not signed by this stream's authority. Take the one `sensors revoke` wrote.")
    return found


def revoke(folder: Path, names: list[str]) -> list[Path]:
    """Take back every certificate that was issued under these names; gives the lists that were written."""
    authority, key = read_authority(folder / "authority")
    for name in names:
        if not name.startswith("sensor-"):
            raise ParameterError(
                f"{name}: only sensors are revoked. A party is replaced by a set that names another key."
            )
    serials = {name: _find_serials(folder, name) for name in names}
    own = folder / "authority" / LIST
    before = read_list(own, authority) if own.exists() else None
    made = _sign_list(authority, key, before, [serial for found in serials.values() for serial in found])
    body = made.public_bytes(Encoding.PEM)
    places = [folder / "authority", *(folder / party for party in PARTIES)]
    written = [place / LIST for place in places if place.is_dir()]
    for path in written:
        with replacement(path) as file:
            file.write(body)
    return written


def _find_serials(folder: Path, name: str) -> set[int]:
    files = [*(folder / "authority" / ISSUED).glob(f"{name}.*.pem"), folder / name / "certificate.pem"]
    found = {x509.load_pem_x509_certificate(file.read_bytes()).serial_number for file in files if file.exists()}
    if not found:
        raise SourceError(f"{name}: {folder} knows no certificate of that name. Name the folder that issued it.")
    return found


def _sign_list(
    authority: x509.Certificate,
    key: Ed25519PrivateKey,
    before: x509.CertificateRevocationList | None,
    serials: list[int],
) -> x509.CertificateRevocationList:
    """The next list: all that was on the one before, and these."""
    now, number = datetime.now(UTC).replace(microsecond=0), 1 if before is None else _number(before) + 1
    # TLS takes the later of two lists, and none that lies ahead of its clock: a server whose clock is behind would let
    # nobody in. So a list is dated by its number, in seconds from the authority's first.
    dated = authority.not_valid_before_utc + timedelta(seconds=number)
    made = x509.CertificateRevocationListBuilder().issuer_name(authority.subject)
    made = made.last_update(dated).next_update(dated + _VALID)
    made = made.add_extension(x509.CRLNumber(number), critical=False)
    known = {one.serial_number: one for one in before or ()}
    for one in known.values():
        made = made.add_revoked_certificate(one)
    for serial in sorted(set(serials) - set(known)):
        fresh = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now)
        made = made.add_revoked_certificate(fresh.build())
    return made.sign(key, None)


def _number(found: x509.CertificateRevocationList) -> int:
    return int(found.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number)
