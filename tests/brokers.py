"""A real MQTT broker of our own, Debian's mosquitto, on a free port of this machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

MOSQUITTO = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


class Unavailable(Exception):
    """No mosquitto here, or no client for it."""


@dataclass
class Broker:
    """A broker that can be stopped and started again with what it has kept."""

    folder: Path
    port: int
    secure_port: int | None = None
    process: Any = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            [MOSQUITTO, "-c", self.folder / "mosquitto.conf"], stderr=subprocess.PIPE, text=True
        )
        assert any("running" in line for line in self.process.stderr), "the broker ended before it ran"

    def stop(self) -> None:
        """End the broker; what it has not delivered is on its disk."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.process.stderr.close()

    def url(self, topic: str, *, secure: bool = False) -> str:
        port = self.secure_port if secure else self.port
        return f"{'mqtts' if secure else 'mqtt'}://localhost:{port}/{topic}"

    def publish(self, topic: str, *payloads: Any) -> None:
        """Publish with QoS 1; returns when the broker has acknowledged all."""
        import paho.mqtt.client as paho  # noqa: PLC0415 - an extra

        client, connected = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5), Event()
        client.on_connect = lambda *_: connected.set()
        client.max_inflight_messages_set(0)
        client.connect("localhost", self.port)
        client.loop_start()
        connected.wait()
        sent = [client.publish(topic, body if isinstance(body, bytes) else json.dumps(body), 1) for body in payloads]
        for message in sent:
            message.wait_for_publish()
        client.disconnect()
        client.loop_stop()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_broker(folder: Path, *, certificates: Path | None = None) -> Iterator[Broker]:
    """A broker; with a folder of `ca.pem`, `server.pem` and `server.key` it listens with TLS too."""
    try:
        import paho.mqtt.client  # noqa: F401, PLC0415 - an extra
    except ImportError:
        raise Unavailable("paho-mqtt is not installed") from None
    if MOSQUITTO is None:
        raise Unavailable("mosquitto is not installed: scripts/setup mosquitto")
    broker = Broker(folder, free_port(), None if certificates is None else free_port())
    lines = [
        *("per_listener_settings false", "allow_anonymous true", "persistence true"),
        *(f"persistence_location {folder}/", "max_queued_messages 0", "log_dest stderr"),
        f"listener {broker.port} 127.0.0.1",
    ]
    if certificates is not None:
        lines += [
            f"listener {broker.secure_port} 127.0.0.1",
            *(
                f"{name} {certificates}/{file}"
                for name, file in (("certfile", "server.pem"), ("keyfile", "server.key"))
            ),
        ]
    if os.geteuid() == 0:
        lines.append("user root")
    (folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
