"""Messages of a real broker: each is stored before it is acknowledged, has one number, and is handed on once."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path

import pytest

from brokers import Broker, Unavailable, free_port, running_broker
from wallflower.errors import ParameterError, SourceError, StateError
from wallflower.machine.mqtt import AUTHORITY, MAX_BYTES, PASSWORD, Address, Arrival, Inbox, Subscription

pytestmark = pytest.mark.slow  # a broker is started


def make_certificates(folder: Path) -> Path:
    """An authority and a certificate for localhost, good for a day."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    def name(text):
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    def issue(subject, key, issuer, signer, *, is_authority):
        now = datetime.datetime.now(datetime.UTC)
        day = datetime.timedelta(days=1)
        made = (
            x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name(issuer)).public_key(key.public_key())
        )
        made = made.serial_number(x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + day)
        made = made.add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        if not is_authority:
            made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        return made.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    authority, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    (folder / "ca.pem").write_bytes(issue("test CA", authority, "test CA", authority, is_authority=True))
    (folder / "server.pem").write_bytes(issue("localhost", server, "test CA", authority, is_authority=False))
    (folder / "server.key").write_bytes(
        server.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return folder


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    try:
        keys = make_certificates(tmp_path_factory.mktemp("keys"))
        with running_broker(tmp_path_factory.mktemp("broker"), certificates=keys) as running:
            yield running, keys
    except Unavailable as reason:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(reason))


@pytest.fixture
def inbox(tmp_path):
    with Inbox(tmp_path / "ward.inbox") as opened:
        yield opened


def take(subscription: Subscription, count: int) -> list[tuple[str, bytes]]:
    """The content of the next messages, which are settled; each must come once and in order."""
    found: list = []
    batches = subscription.batches()
    while len(found) < count:
        found += next(batches)
    subscription._inbox.settle(found[-1].number)
    numbers = [message.number for message in found]
    assert numbers == list(range(numbers[0], numbers[0] + len(found)))
    return [(message.topic, message.payload) for message in found]


def test_messages_come_in_order_and_are_numbered(broker, inbox):
    server: Broker = broker[0]
    with Subscription(Address.parse(server.url("order/#")), inbox) as source:
        server.publish("order/a", *range(300))
        assert take(source, 300) == [("order/a", str(number).encode()) for number in range(300)]
    assert inbox.settled == 300


def test_messages_that_were_not_acknowledged_are_delivered_again_and_stored_once(broker, tmp_path):
    server: Broker = broker[0]
    address = Address.parse(server.url("again/#"))
    with Inbox(tmp_path / "inbox") as inbox:
        with Subscription(address, inbox) as source:
            server.publish("again/a", *range(5))
            with source._changed:  # they have arrived, and nothing was stored: as if the process died here
                source._changed.wait_for(lambda: len(source._arrivals) == 5)
        assert inbox.pending() == []
        with Subscription(address, inbox) as source, source._changed:  # stored, and killed before the acknowledgement
            source._changed.wait_for(lambda: len(source._arrivals) == 5)
            assert inbox.add(source._arrivals) == 5
            source._arrivals.clear()
        with Subscription(address, inbox) as source:
            server.publish("again/a", "last")
            assert [json.loads(body) for _, body in take(source, 6)] == [0, 1, 2, 3, 4, "last"]


def test_what_is_published_while_nobody_is_connected_is_kept(broker, tmp_path):
    server: Broker = broker[0]
    address = Address.parse(server.url("away"))
    with Inbox(tmp_path / "inbox") as inbox:
        Subscription(address, inbox).close()
        server.publish("away", 1, 2)
        with Subscription(address, inbox) as source:
            assert [body for _, body in take(source, 2)] == [b"1", b"2"]


def test_a_broker_that_is_restarted_loses_nothing(tmp_path):
    folder = tmp_path / "broker"
    folder.mkdir()
    try:
        with (
            running_broker(folder) as server,
            Inbox(tmp_path / "inbox") as inbox,
            Subscription(Address.parse(server.url("restart")), inbox) as source,
        ):
            server.publish("restart", 1)
            assert take(source, 1) == [("restart", b"1")]
            server.stop()
            server.start()
            server.publish("restart", 2)
            assert take(source, 1) == [("restart", b"2")]
    except Unavailable as reason:
        pytest.skip(str(reason))


def test_members_of_a_shared_subscription_have_different_messages(broker, tmp_path):
    server: Broker = broker[0]
    address = Address.parse(server.url("$share/ward/shared/#"))
    assert address.topic == "$share/ward/shared/#"
    with (
        Inbox(tmp_path / "one") as one,
        Inbox(tmp_path / "two") as two,
        Subscription(address, one) as first,
        Subscription(address, two) as second,
    ):
        server.publish("shared/a", *range(20))
        found = [body for source in (first, second) for _, body in take(source, 10)]
    assert sorted(map(int, found)) == list(range(20))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Paho leaves a refused socket open
def test_tls_is_checked(broker, inbox, monkeypatch):
    server, keys = broker
    address = Address.parse(server.url("secure", secure=True))
    monkeypatch.delenv(AUTHORITY, raising=False)
    with pytest.raises(SourceError, match="cannot be reached"):
        Subscription(address, inbox)
    monkeypatch.setenv(AUTHORITY, str(keys / "ca.pem"))
    with Subscription(address, inbox) as source:
        server.publish("secure", "over TLS")
        assert take(source, 1) == [("secure", b'"over TLS"')]
    monkeypatch.setenv(AUTHORITY, str(keys / "nothing.pem"))
    with pytest.raises(SourceError, match="certificate"):
        Subscription(address, inbox)


def test_a_broker_that_does_not_answer_is_an_error(inbox):
    pytest.importorskip("paho.mqtt.client")
    with pytest.raises(SourceError, match="cannot be reached"):
        Subscription(Address.parse(f"mqtt://localhost:{free_port()}/a"), inbox)


# Inbox


def test_a_repeated_packet_is_stored_once_and_equal_readings_are_not_merged(inbox):
    assert inbox.add([Arrival("t", b"20.5", 1), Arrival("t", b"20.5", 2)]) == 2
    assert inbox.add([Arrival("t", b"20.5", 2, is_repeated=True), Arrival("t", b"20.5", 2)]) == 1
    assert inbox.add([Arrival("t", b"20.6", 2, is_repeated=True)]) == 1
    assert [message.number for message in inbox.pending()] == [1, 2, 3, 4]


def test_an_identifier_makes_a_message_that_is_sent_twice_one(tmp_path):
    with Inbox(tmp_path / "inbox", id_field="id") as inbox:
        assert inbox.add([Arrival("t", b'{"id": 1, "x": 2}', 1), Arrival("t", b'{"x": 2, "id": 1}', 9)]) == 1
        assert inbox.add([Arrival("u", b'{"id": 1, "x": 2}', 1), Arrival("t", b'{"id": 2, "x": 2}', 1)]) == 2
        inbox.settle(3)
        assert inbox.add([Arrival("t", b'{"id": 2, "x": 7}', 5)]) == 0


def test_what_was_handled_is_erased_and_what_was_not_is_there_after_a_restart(tmp_path):
    path = tmp_path / "inbox"
    with Inbox(path) as inbox:
        inbox.add([Arrival("t", b"a secret reading", 1), Arrival("t", b"the next", 2)])
        inbox.settle(1)
        client = inbox.client
    with Inbox(path) as inbox:
        assert inbox.client == client
        assert [message.payload for message in inbox.pending()] == [b"the next"]
        assert inbox.settled == 1
        inbox.settle(2)
        assert inbox.add([Arrival("t", b"third", 3)]) == 1
        assert inbox.pending()[0].number == 3
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"a secret reading" not in kept
    assert path.stat().st_mode & 0o777 == 0o600


def test_numbers_of_a_session_begin_where_it_did(inbox):
    inbox.add([Arrival("t", b"1", at) for at in range(1, 6)])
    assert inbox.number_for("first", 0) == 0
    inbox.settle(3)
    assert inbox.number_for("first", 2) == 0
    assert inbox.number_for("renewed", 0) == 3  # message 4 is observation 1
    assert inbox.number_for("renewed", 1) == 3


def test_an_inbox_without_a_past_follows_the_observations_of_its_session(inbox):
    assert inbox.number_for("session", 10) == -10  # message 1 is observation 11


def test_a_message_that_is_too_long_is_stored_empty(inbox):
    inbox.add([Arrival("t", b"x" * (MAX_BYTES + 1), 1)])
    assert inbox.pending()[0].payload == b""


def test_one_process_has_an_inbox(inbox, tmp_path):
    with pytest.raises(StateError, match="another process"):
        Inbox(tmp_path / "ward.inbox")


@pytest.mark.parametrize(
    "url", ["mqtt://", "mqtt://broker", "mqtt://broker/", "mqtt://broker:x/t", "http://broker/t", "mqtt:///t"]
)
def test_what_names_no_broker_is_refused(url):
    with pytest.raises(ParameterError, match="broker"):
        Address.parse(url)


def test_a_password_does_not_belong_into_a_url():
    with pytest.raises(ParameterError, match=PASSWORD):
        Address.parse("mqtt://ana:sesame@broker/t")
    assert Address.parse("MQTTS://a%40b@broker/t") == Address(
        host="broker", port=8883, topic="t", is_secure=True, user="a@b"
    )
