"""Messages of an MQTT broker, each handled once: QoS 1, a persistent session, and an inbox on disk.

A broker delivers a message at least once. `Inbox` numbers messages, stores them and recognises one that is delivered
again; only then is it acknowledged. A consumer takes messages in order of their numbers, and settles what it has
handled. So whatever is killed, a message is lost neither before nor after it is acknowledged, and has one number.

with Inbox("ward.inbox") as inbox, Subscription(Address.parse("mqtt://broker/ward/#"), inbox) as subscription:
    for messages in subscription.batches():
        ...  # what was handled is settled when the next batch is asked for
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import ssl
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Condition
from typing import Any, Final, Self
from urllib.parse import unquote, urlsplit

from wallflower.errors import ParameterError, SourceError
from wallflower.machine.heavy import paho_mqtt_client as _client
from wallflower.machine.heavy import paho_mqtt_enums as _enums
from wallflower.machine.heavy import paho_mqtt_packettypes as _packets
from wallflower.machine.heavy import paho_mqtt_properties as _properties
from wallflower.machine.heavy import paho_mqtt_subscribeoptions as _options
from wallflower.machine.sqlite_file import FileFormat, SqliteFile

SCHEMES: Final = ("mqtt://", "mqtts://")
PASSWORD: Final = "WALLFLOWER_MQTT_PASSWORD"  # noqa: S105 - the name of a variable
AUTHORITY: Final = "WALLFLOWER_MQTT_CA"
CERTIFICATE: Final = "WALLFLOWER_MQTT_CERTIFICATE"
KEY: Final = "WALLFLOWER_MQTT_KEY"
PORTS: Final = {"mqtt": 1883, "mqtts": 8883}
MAX_BYTES: Final = 2**20  # of a message; a longer one is stored empty
MAX_UNACKNOWLEDGED: Final = 1_000  # messages that the broker sends ahead of acknowledgements
REMEMBERED: Final = 1_000_000  # messages that are recognised by their identifiers
SESSION_SECONDS: Final = 7 * 86_400  # for which the broker keeps messages while nobody is connected
KEEPALIVE_SECONDS: Final = 30
MAX_RECONNECT_SECONDS: Final = 60
_PACKET_IDS: Final = 2**16
_FORMAT: Final = FileFormat(
    application_id=0x77666C35,
    tables="""
CREATE TABLE inbox (client TEXT NOT NULL, session TEXT, base INTEGER NOT NULL, settled INTEGER NOT NULL);
CREATE TABLE messages (
    number INTEGER PRIMARY KEY,
    identity BLOB NOT NULL,
    packet INTEGER NOT NULL,
    topic TEXT,
    payload BLOB
);
CREATE INDEX identities ON messages (identity);
""",
    content="an inbox of messages",
    replace_hint="Move the file away or name another; messages that were acknowledged and not handled are in it.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where messages come from: a broker and a topic filter.

    >>> found = Address.parse("mqtts://ana@broker.example/plant/+/temperature/#")
    >>> found.host, found.port, found.user, found.topic
    ('broker.example', 8883, 'ana', 'plant/+/temperature/#')
    """

    host: str
    port: int
    topic: str
    is_secure: bool
    user: str | None = None

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read a URL such as mqtt://broker/topic/#, or $share/group/topic/# for a shared subscription."""
        scheme, _, rest = url.partition("://")
        authority, _, topic = rest.partition("/")
        try:
            place = urlsplit(f"//{authority}")
            host, port = place.hostname, place.port
        except ValueError:
            host, port = None, None
        if f"{scheme.lower()}://" not in SCHEMES or not host or not topic:
            raise ParameterError(
                "a broker is named by mqtt://HOST[:PORT]/TOPIC, or mqtts:// with TLS; the topic may have + and #. "
                "Correct the URL."
            )
        if place.password is not None:
            raise ParameterError(f"a URL has no password, which others could read. Set {PASSWORD}, and leave it out.")
        user = None if place.username is None else unquote(place.username)
        is_secure = scheme.lower() == "mqtts"
        return cls(host=host, port=port or PORTS[scheme.lower()], topic=topic, is_secure=is_secure, user=user)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def is_address(source: str) -> bool:
    """Whether a source is a broker."""
    return source.lower().startswith(SCHEMES)


@dataclass(frozen=True, slots=True)
class Message:
    """A message with its number in the inbox, from 1."""

    number: int
    topic: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message as the broker delivered it: `packet` is its packet identifier, 0 for QoS 0."""

    topic: str
    payload: bytes
    packet: int = 0
    is_repeated: bool = False


class Inbox:
    """Messages in the order of their arrival, numbered and durable until they are handled.

    id_field  a member of every message (a JSON object) that tells messages of a topic apart; a message with the same
              identifier as an earlier one is dropped. Without it, a message that the broker marks as delivered again is
              compared with those of the same packet identifier.
    """

    def __init__(self, path: str | Path, *, id_field: str | None = None) -> None:
        self._file = SqliteFile(path, _FORMAT)
        self._id_field = id_field
        with self._file.transaction() as db:
            if db.execute("SELECT 1 FROM inbox").fetchone() is None:
                place = f"{socket.gethostname()} {self._file.path}".encode()
                name = f"wallflower-{hashlib.sha256(place).hexdigest()[:16]}"  # another inbox is somewhere else
                db.execute("INSERT INTO inbox VALUES (?, NULL, 0, 0)", (name,))

    @property
    def client(self) -> str:
        """The name under which the broker keeps the session of this inbox."""
        return str(self._read()["client"])

    @property
    def settled(self) -> int:
        """The number of the last message that was handled."""
        return int(self._read()["settled"])

    def number_for(self, session: str, position: int) -> int:
        """The number of a session's first observation, less one: `number - number_for(...)` is an observation's.

        `position` is how many observations the session had decided when this inbox first served it.
        """
        with self._file.transaction() as db:
            row = db.execute("SELECT session, base, settled FROM inbox").fetchone()
            if row["session"] == session:
                return int(row["base"])
            base = int(row["settled"]) - position
            db.execute("UPDATE inbox SET session = ?, base = ?", (session, base))
            return base

    def add(self, arrivals: Iterable[Arrival]) -> int:
        """Store messages that are new, all of them or none; gives their number."""
        added = 0
        with self._file.transaction() as db:
            (last,) = db.execute(
                "SELECT max((SELECT coalesce(max(number), 0) FROM messages), (SELECT settled FROM inbox))"
            ).fetchone()
            for arrival in arrivals:
                identity = self._identify(arrival)
                if self._is_known(db, arrival, identity, last + added):
                    continue
                added += 1
                payload = arrival.payload if len(arrival.payload) <= MAX_BYTES else b""
                row = (last + added, identity, arrival.packet, arrival.topic, payload)
                db.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?)", row)
            db.execute("DELETE FROM messages WHERE number <= ? AND payload IS NULL", (last + added - REMEMBERED,))
        return added

    def pending(self, count: int = MAX_UNACKNOWLEDGED) -> list[Message]:
        """The first messages that were not handled."""
        with self._file.transaction() as db:
            rows = db.execute(
                "SELECT number, topic, payload FROM messages WHERE number > (SELECT settled FROM inbox) "
                "ORDER BY number LIMIT ?",
                (count,),
            ).fetchall()
        return [Message(row["number"], row["topic"], bytes(row["payload"])) for row in rows]

    def settle(self, number: int) -> None:
        """All messages up to this one were handled: their content is erased, and they are still recognised."""
        with self._file.transaction() as db:
            db.execute("UPDATE inbox SET settled = max(settled, ?)", (number,))
            db.execute(
                "UPDATE messages SET topic = NULL, payload = NULL WHERE number <= ? AND payload IS NOT NULL", (number,)
            )

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> Any:
        with self._file.transaction() as db:
            return db.execute("SELECT * FROM inbox").fetchone()

    def _identify(self, arrival: Arrival) -> bytes:
        content = arrival.payload
        if self._id_field is not None:
            with suppress(ValueError, RecursionError):
                entries = json.loads(content)
                if isinstance(entries, dict) and self._id_field in entries:
                    content = json.dumps(entries[self._id_field]).encode()
        return hashlib.sha256(f"{len(arrival.topic)} {arrival.topic} ".encode() + content).digest()

    def _is_known(self, db: Any, arrival: Arrival, identity: bytes, last: int) -> bool:
        if self._id_field is not None:
            return db.execute("SELECT 1 FROM messages WHERE identity = ?", (identity,)).fetchone() is not None
        if not arrival.is_repeated:
            return False
        found = db.execute(
            "SELECT 1 FROM messages WHERE identity = ? AND packet = ? AND number > ?",
            (identity, arrival.packet, last - _PACKET_IDS),
        )
        return found.fetchone() is not None


class Subscription:
    """A connection to a broker that fills an inbox, and goes on after every interruption until it is closed."""

    def __init__(self, address: Address, inbox: Inbox) -> None:
        """Connect and subscribe; raises SourceError where the broker cannot be reached or refuses."""
        self.address, self._inbox = address, inbox
        self._changed = Condition()
        self._arrivals: list[Arrival] = []
        self._is_ready = self._is_closed = False
        self._refusal: str | None = None
        self._connection = self._connect()
        with self._changed:
            self._changed.wait_for(lambda: self._is_ready or self._refusal)
        if not self._is_ready:
            self.close()
            raise self._refuse()

    def batches(self) -> Iterator[list[Message]]:
        """Messages in order, as many as have arrived. Asking for the next batch settles this one."""
        while True:
            messages = self._inbox.pending()
            if messages:
                yield messages
                self._inbox.settle(messages[-1].number)
            elif not self._store_arrivals():
                return

    def close(self) -> None:
        """Disconnect. The broker keeps what arrives from now on for the next connection of this inbox."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._connection.disconnect()
        self._connection.loop_stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _store_arrivals(self) -> bool:
        """Wait for messages, store them, and acknowledge them then; False where there will be no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._arrivals or self._is_closed or self._refusal is not None)
            arrivals, self._arrivals = self._arrivals, []
        if arrivals:
            self._inbox.add(arrivals)
            for arrival in arrivals:
                if arrival.packet:
                    self._connection.ack(arrival.packet, 1)
            return True
        if self._refusal is not None:
            raise self._refuse()
        return False

    def _connect(self) -> Any:
        address = self.address
        connection = make_client(address, self._inbox.client)
        connection.on_connect = self._on_connect
        connection.on_subscribe = self._on_subscribe
        connection.on_message = self._on_message
        properties = _properties.Properties(_packets.PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = SESSION_SECONDS
        properties.ReceiveMaximum = MAX_UNACKNOWLEDGED
        try:
            connection.connect(address.host, address.port, KEEPALIVE_SECONDS, clean_start=False, properties=properties)
        except OSError as error:
            raise SourceError(
                f"{address}: the broker cannot be reached ({type(error).__name__}). Check the address, the port and "
                "its certificate."
            ) from None
        connection.loop_start()
        return connection

    def _on_connect(self, connection: Any, _: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self._tell_refusal(f"the connection was refused ({reason})")
            return
        options = _options.SubscribeOptions(qos=1, retainHandling=_options.SubscribeOptions.RETAIN_DO_NOT_SEND)
        connection.subscribe(self.address.topic, options=options)

    def _on_subscribe(self, connection: Any, _: Any, packet: int, reasons: Any, properties: Any) -> None:
        if any(reason.is_failure for reason in reasons):
            self._tell_refusal("the topic was refused")
            return
        with self._changed:
            self._is_ready = True
            self._changed.notify_all()

    def _on_message(self, connection: Any, _: Any, message: Any) -> None:
        arrival = Arrival(message.topic, bytes(message.payload), message.mid if message.qos else 0, bool(message.dup))
        with self._changed:
            self._arrivals.append(arrival)
            self._changed.notify_all()

    def _tell_refusal(self, words: str) -> None:
        with self._changed:
            self._refusal = words
            self._changed.notify_all()

    def _refuse(self) -> SourceError:
        return SourceError(f"{self.address}: {self._refusal}. Check the topic, the user and {PASSWORD}.")


def make_client(address: Address, name: str) -> Any:
    """A client of MQTT 5 that acknowledges by itself nothing, with the user and the keys of the environment."""
    connection = _client.Client(
        _enums.CallbackAPIVersion.VERSION2, client_id=name, protocol=_client.MQTTv5, manual_ack=True
    )
    connection.reconnect_delay_set(1, MAX_RECONNECT_SECONDS)
    if address.user is not None:
        connection.username_pw_set(address.user, os.environ.get(PASSWORD))
    if address.is_secure:
        connection.tls_set_context(_make_context())
    return connection


def _make_context() -> ssl.SSLContext:
    """Trust in the authority that is named, or in those of the machine; with a client certificate if there is one."""
    try:
        context = ssl.create_default_context(cafile=os.environ.get(AUTHORITY))
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        certificate = os.environ.get(CERTIFICATE)
        if certificate:
            context.load_cert_chain(certificate, os.environ.get(KEY))
    except (OSError, ssl.SSLError):
        raise SourceError(
            f"{AUTHORITY}, {CERTIFICATE}, {KEY}: a file cannot be read as a certificate or its key. Check the paths."
        ) from None
    return context
