"""Keys, certificates and letters: one authority, files for one pair of eyes, and nothing passes for another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from wallflower.errors import SourceError
from wallflower.sensors.parties import keys as keys_module
from wallflower.sensors.parties.keys import Identity, identify, make_keys
from wallflower.sensors.protocol.frames import (
    SEAL_BYTES,
    Forgery,
    public_bytes,
    seal,
    unseal,
    verify_signature,
)


def test_every_party_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    made = make_keys(tmp_path, sensors=2)
    assert [path.name for path in made] == ["analyst", "correction", "owner", "sensor-1", "sensor-2"]
    assert [Identity.read(path).name for path in made] == [path.name for path in made]
    for path in tmp_path.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
    assert [path.parent.name for path in tmp_path.rglob("seal.pem")] == ["owner"]


def test_sensors_can_be_added_and_the_rest_stays(tmp_path: Path) -> None:
    make_keys(tmp_path, sensors=1)
    before = Identity.read(tmp_path / "sensor-1").public
    assert [path.name for path in make_keys(tmp_path, sensors=2)] == ["sensor-2"]
    assert Identity.read(tmp_path / "sensor-1").public == before
    new = Identity.read(tmp_path / "sensor-2")
    assert identify(new.certificate, Identity.read(tmp_path / "owner").authority).name == "sensor-2"


def test_a_certificate_of_another_authority_is_nobodys(keys: Path, tmp_path: Path) -> None:
    make_keys(tmp_path, sensors=1)
    stranger = Identity.read(tmp_path / "sensor-1")
    with pytest.raises(Forgery):
        identify(stranger.certificate, Identity.read(keys / "owner").authority)
    for nonsense in (b"", b"\x30\x03\x02\x01\x00", stranger.certificate[:-5]):
        with pytest.raises(Forgery):
            identify(nonsense, stranger.authority)


def test_a_party_cannot_issue_certificates(keys: Path) -> None:
    sensor, owner = Identity.read(keys / "sensor-1"), Identity.read(keys / "owner")
    with pytest.raises(Forgery):
        identify(owner.certificate, sensor.certificate)


def test_a_certificate_ends(keys: Path, monkeypatch: Any) -> None:
    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(UTC) + timedelta(days=3000)

    sensor = Identity.read(keys / "sensor-1")
    monkeypatch.setattr(keys_module, "datetime", Later)
    with pytest.raises(Forgery, match="not valid today"):
        identify(sensor.certificate, sensor.authority)


def test_a_folder_that_is_none_is_refused(tmp_path: Path, keys: Path) -> None:
    with pytest.raises(SourceError):
        Identity.read(tmp_path)
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    for name in ("certificate.pem", "authority.pem"):
        (mixed / name).write_bytes((keys / "owner" / name).read_bytes())
    (mixed / "key.pem").write_bytes((keys / "analyst" / "key.pem").read_bytes())
    with pytest.raises(Forgery, match="do not belong together"):
        Identity.read(mixed)


def test_a_signature_is_over_exact_bytes() -> None:
    key, other = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    proof = key.sign(b"body")
    verify_signature(public_bytes(key), proof, b"body")
    for who_, signed, body in (
        (key, proof, b"bodY"),
        (other, proof, b"body"),
        (key, proof[:-1], b"body"),
        (key, b"", b"body"),
    ):
        with pytest.raises(Forgery):
            verify_signature(public_bytes(who_), signed, body)


def test_a_letter_opens_for_its_reader_and_its_matter_alone() -> None:
    reader, other = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    letter = seal(public_bytes(reader), b"secret", b"window 1")
    assert unseal(reader, letter, b"window 1") == b"secret"
    assert len(letter) == len(b"secret") + SEAL_BYTES
    assert seal(public_bytes(reader), b"secret", b"window 1") != letter
    damaged = letter[:-1] + bytes([letter[-1] ^ 1])
    for key, body, about in (
        (other, letter, b"window 1"),
        (reader, letter, b"window 2"),
        (reader, damaged, b"window 1"),
        (reader, letter[:20], b"window 1"),
        (reader, b"", b"window 1"),
    ):
        with pytest.raises(Forgery):
            unseal(key, body, about)


def test_a_reader_without_a_key_is_refused() -> None:
    with pytest.raises(Forgery, match="cannot be used to seal"):
        seal(bytes(32), b"secret", b"")
