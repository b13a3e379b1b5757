"""`wallflower watch` beside a real broker, and with hooks: what is told, once, and after `kill -9`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from brokers import Broker, Unavailable, running_broker
from wallflower import cli
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.units import Protection

pytestmark = pytest.mark.slow  # a broker is started, and programs beside it

WALLFLOWER = Path(sys.executable).with_name("wallflower")
SURE = ("--threshold", "2", "--low", "-5", "--high", "5", "--epsilon", "64")
COIN = ("--threshold", "2", "--low", "-5", "--high", "5", "--epsilon", "0.01", "--force")


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    try:
        with running_broker(tmp_path_factory.mktemp("broker")) as running:
            yield running
    except Unavailable as reason:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(reason))


@pytest.fixture(autouse=True)
def town(tmp_path):
    """A budget for `ward`; programs that a failed test leaves behind are ended."""
    with Ledger.open(tmp_path / "ledger.db") as book:
        book.declare("ward", Protection(rows="time", unit="entry"), by="steward")
        book.grant("ward", Loss("1000"), by="steward", reason="tests")
    yield
    while PROGRAMS:
        process = PROGRAMS.pop()
        process.kill()
        process.wait()


PROGRAMS: list[subprocess.Popen] = []


class Program:
    """`wallflower watch` in a process of its own."""

    def __init__(self, folder: Path, *words: str) -> None:
        environment = {**os.environ, "WALLFLOWER_LEDGER": str(folder / "ledger.db"), "WALLFLOWER_ANALYST": "ana"}
        self.process = subprocess.Popen(
            [WALLFLOWER, "watch", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
            env=environment,
        )  # fmt: skip
        self.notices: list[str] = []
        PROGRAMS.append(self.process)

    def wait_connected(self) -> None:
        for line in self.process.stderr:
            self.notices.append(line)
            if "topic" in line:
                return
        raise AssertionError("".join(self.notices))

    def read(self, count: int) -> list[dict]:
        return [json.loads(self.process.stdout.readline()) for _ in range(count)]

    def kill(self) -> list[dict]:
        """End it as a power failure would; gives what it had written until then, in whole lines."""
        self.process.kill()
        lines = self.process.stdout.read().splitlines(keepends=True)
        self.end()
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def end(self, how: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(how)
        code = self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
        return code


def listen(broker: Broker, folder: Path, topic: str, *more: str) -> Program:
    words = (broker.url(topic), "--json-lines", "--dataset", "ward", "--checkpoint", "ward.watch", *more)
    program = Program(folder, *words)
    program.wait_connected()
    return program


def test_messages_are_decided_one_by_one(broker, tmp_path):
    program = listen(broker, tmp_path, "ward/#", *SURE)
    broker.publish("ward/bed", 0.0, {"value": 5.0}, [-5.0], {"value": "4,2"}, b"no JSON", 5.0)
    found = program.read(6)
    assert program.end() == 130
    assert [line["observation"] for line in found] == [1, 2, 3, 4, 5, 6]
    assert [line["outlier"] for line in found] == [False, True, True, False, False, True]


def test_after_a_kill_every_message_has_its_one_decision(broker, tmp_path):
    """Decisions are coins here, so that a second look would show; what was told before is told again."""
    topic, count = "kill/#", 60
    program, told = listen(broker, tmp_path, topic, *COIN), {}
    for part in range(2):
        broker.publish("kill/a", *([1.0] * (count // 2)))
        lines = program.read(3) + program.kill()
        for line in lines:
            assert told.setdefault(line["observation"], line["outlier"]) == line["outlier"], part
        program = listen(broker, tmp_path, topic, *COIN)
    broker.publish("kill/a", 1.0)
    while len(told) < count + 1:
        (line,) = program.read(1)
        assert told.setdefault(line["observation"], line["outlier"]) == line["outlier"]
    assert program.end() == 130
    count += 1
    assert sorted(told) == list(range(1, count + 1))
    with Ledger.open(tmp_path / "ledger.db") as book:
        assert [entry.label for entry in book.history("ward", event="charge")].count("outlier-watch/1") == 1


def test_a_fleet_decides_a_reading_once_though_it_is_sent_twice(broker, tmp_path):
    program = listen(broker, tmp_path, "meters/+", *COIN, "--fleet")
    readings = [{"time": second, "value": 1.0} for second in range(40)]
    broker.publish("meters/kitchen", *readings, *readings)
    broker.publish("meters/hall", {"time": 7, "value": 1.0}, b"{", {"stream": "attic", "time": 1, "value": 0})
    found = program.read(83)
    assert program.end() == 130
    kitchen = [line for line in found if line["stream"] == "meters/kitchen"]
    assert [line["outlier"] for line in kitchen[:40]] == [line["outlier"] for line in kitchen[40:]]
    assert [line["stream"] for line in found[80:]] == ["meters/hall", "meters/hall", "attic"]
    assert found[81]["fault"] == "time"


def test_every_flag_is_told_to_a_command_and_nothing_else(broker, tmp_path):
    script = tmp_path / "told.py"
    script.write_text("import sys\nopen('told', 'a').write(sys.stdin.read() + '\\n')\n")
    program = listen(broker, tmp_path, "hook", *SURE, "--on-flag", f"{sys.executable} {script}")
    broker.publish("hook", 5.0, 0.0, 5.0)
    program.read(3)
    assert program.end() == 130
    told = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
    charge = told[0]["charge"]
    assert told == [
        {"id": f"ward/{charge}/{at}", "dataset": "ward", "charge": charge, "observation": at, "outlier": True}
        for at in (1, 3)
    ]


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (("mqtt://localhost/a", "--json-lines"), "--checkpoint"),
        (("mqtt://localhost/a", "--checkpoint", "x"), "--json-lines"),
        (("mqtt://localhost/a", "--json-lines", "--checkpoint", "x", "--from", "3"), "--from"),
        (("-", "--json-lines", "--message-id", "id"), "--message-id"),
        (("-", "--json-lines", "--on-flag", "true"), "--checkpoint"),
        (("-", "--json-lines", "--webhook", "https://example.org/x", "--checkpoint", "x"), "WEBHOOK_SECRET"),
        (("-", "--json-lines", "--on-flag", "no-such-program", "--checkpoint", "x"), "command"),
        (("mqtt://localhost/", "--json-lines", "--checkpoint", "x"), "mqtt://HOST"),
    ],
)
def test_what_does_not_go_together_is_refused_before_a_charge(words, match, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WALLFLOWER_LEDGER", str(tmp_path / "ledger.db"))
    monkeypatch.delenv("WALLFLOWER_WEBHOOK_SECRET", raising=False)
    assert cli.main(("watch", *words, *SURE, "--dataset", "ward")) == 2
    assert match in capsys.readouterr().err
    with Ledger.open(tmp_path / "ledger.db") as book:
        assert book.history("ward", event="charge") == []
