"""Certificates that were taken back: refused in a real handshake, on kept connections, and in forwarded commitments."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from stage import Stage
from test_forgery import Witness
from test_wire import greeted

from wallflower import cli
from wallflower.errors import ParameterError, SourceError
from wallflower.sensors.parties.keys import REVOCATIONS, Identity, Revocations, identify, make_keys, revoke
from wallflower.sensors.parties.owner import verify_commits
from wallflower.sensors.protocol.findings import FORGED, NO_COMMITMENT, Doubt
from wallflower.sensors.protocol.frames import Forgery


@pytest.mark.slow
def test_a_running_server_turns_a_revoked_sensor_away_in_the_handshake(tmp_path: Path) -> None:
    with Stage(tmp_path, tls=True) as stage:
        stage.start("correction")
        port, first, second = stage.ports["correction"], *(stage.identity(f"sensor-{number}") for number in (1, 2))
        with closing(stage.link("sensor-2", "correction")) as kept:
            assert kept.call("PUT", "/v1/hall/w/0/s/2/b/0", b"x")[0] == 422
            revoke(stage.keys, ["sensor-2"])
            while greeted(port, second.client_context()):
                stage._require_alive("correction", "it lets a revoked sensor in")
            assert kept.call("PUT", "/v1/hall/w/0/s/2/b/0", b"x")[0] == 403  # connected before
        while not greeted(port, first.client_context()).startswith(b"HTTP/1.1 200"):  # devices try again, too
            stage._require_alive("correction", "it turns everybody away")
        revoke(stage.keys, ["sensor-1"])  # a second list, within the same second
        while greeted(port, first.client_context()):
            stage._require_alive("correction", "it lets a revoked sensor in")
        stage.kill("correction")
        stage.start("correction")
        for one in (first, second):
            assert greeted(port, one.client_context()) == b""
        assert greeted(port, stage.identity("owner").client_context()).startswith(b"HTTP/1.1 200")


def test_a_commitment_under_a_revoked_certificate_is_not_believed(tmp_path: Path) -> None:
    make_keys(tmp_path / "keys", sensors=1)
    made = Witness(tmp_path / "keys", tmp_path)
    report = made.report(made.signed)
    revoke(tmp_path / "keys", ["sensor-1"])
    heeded = Revocations(tmp_path / "keys" / "owner", made.identity.authority)
    words, doubts = verify_commits(
        made.stated, 0, {"analyst": report}, lambda shown: heeded.check_peer(identify(shown, made.identity.authority))
    )
    assert (words, doubts) == ({}, [Doubt(1, FORGED, "analyst"), Doubt(1, NO_COMMITMENT)])


def test_a_sensor_that_got_new_keys_is_let_in_again_and_its_old_ones_are_not(tmp_path: Path) -> None:
    make_keys(tmp_path, sensors=1)
    old, owner = Identity.read(tmp_path / "sensor-1"), Identity.read(tmp_path / "owner")
    (tmp_path / "sensor-1").rename(tmp_path / "stolen")  # the authority has its own copy of what it issued
    written = revoke(tmp_path, ["sensor-1"])
    assert {path.parent.name for path in written} == {"authority", "analyst", "correction", "owner"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in written)
    make_keys(tmp_path, sensors=1)
    new, heeded = Identity.read(tmp_path / "sensor-1"), Revocations(owner.folder, owner.authority)
    assert heeded.check_peer(identify(new.certificate, owner.authority)).name == "sensor-1"
    with pytest.raises(Forgery, match="sensor-1: the certificate was revoked"):
        heeded.check_peer(identify(old.certificate, owner.authority))


def test_only_a_later_list_of_the_authority_counts(tmp_path: Path) -> None:
    make_keys(tmp_path / "ours", sensors=3)
    make_keys(tmp_path / "theirs", sensors=1)
    owner = Identity.read(tmp_path / "ours" / "owner")
    heeded, path = Revocations(owner.folder, owner.authority), owner.folder / REVOCATIONS
    peers = [
        identify(Identity.read(tmp_path / "ours" / f"sensor-{at}").certificate, owner.authority) for at in (1, 2, 3)
    ]
    revoke(tmp_path / "ours", ["sensor-1"])
    assert heeded.refresh()
    first = path.read_bytes()
    revoke(tmp_path / "ours", ["sensor-2"])
    assert heeded.refresh()
    revoke(tmp_path / "theirs", ["sensor-1"])
    for body, error in (
        (first, None),
        (b"", SourceError),
        ((tmp_path / "theirs" / "owner" / REVOCATIONS).read_bytes(), Forgery),
    ):
        path.write_bytes(body)
        if error is None:
            assert not heeded.refresh()
        else:
            with pytest.raises(error):
                heeded.refresh()
            assert not heeded.refresh()  # said once
            with pytest.raises(error):
                Revocations(owner.folder, owner.authority)
        for peer in peers[:2]:
            with pytest.raises(Forgery):
                heeded.check_peer(peer)
        assert heeded.check_peer(peers[2]) is peers[2]


def test_a_list_is_valid_by_a_clock_that_is_behind(tmp_path: Path) -> None:
    """From the authority's first seconds on: a server with an old clock goes on letting sensors in."""
    make_keys(tmp_path, sensors=1)
    revoke(tmp_path, ["sensor-1"])
    found = x509.load_pem_x509_crl((tmp_path / "owner" / REVOCATIONS).read_bytes())
    authority = x509.load_pem_x509_certificate((tmp_path / "owner" / "authority.pem").read_bytes())
    assert (found.last_update_utc - authority.not_valid_before_utc).total_seconds() == 1
    assert found.next_update_utc is not None
    assert found.next_update_utc > authority.not_valid_after_utc > datetime.now(UTC)


def test_the_command_says_what_it_wrote_and_what_it_cannot(tmp_path: Path, capsys: Any) -> None:
    make_keys(tmp_path, sensors=1)
    assert cli.main(["sensors", "revoke", str(tmp_path), "sensor-1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["revoked"] == ["sensor-1"]
    for name, code, words in (("sensor-9", 4, "has no certificate"), ("analyst", 2, "only sensors can be revoked")):
        assert cli.main(["sensors", "revoke", str(tmp_path), name]) == code
        assert words in " ".join(capsys.readouterr().err.split())
    with pytest.raises(SourceError, match="not the authority's key"):
        revoke(tmp_path / "owner", ["sensor-1"])
    with pytest.raises(ParameterError):
        revoke(tmp_path, ["owner"])
