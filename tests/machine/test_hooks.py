"""Hooks: a flag is told at least once, signed, and nobody waits for who is told."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Condition, Event, Thread

import pytest

import wallflower.machine.hooks as hooks
from wallflower.errors import ParameterError
from wallflower.machine.hooks import SECRET, SIGNATURE, Command, Hooks, Webhook, sign, verify

KEY = "a key of sixteen characters"


class Listener:
    """Takes notices once the first `failures` of them were turned away; `gate` holds answers up."""

    name = "test"

    def __init__(self, failures=0, gate=None):
        self.failures, self.gate, self.taken, self.tried = failures, gate, [], 0
        self.changed = Condition()

    def deliver(self, body):
        if self.gate is not None:
            self.gate.wait()
        with self.changed:
            self.tried += 1
            is_taken = self.tried > self.failures
            if is_taken:
                self.taken.append(json.loads(body))
            self.changed.notify_all()
        return is_taken

    def wait(self, count):
        with self.changed:
            self.changed.wait_for(lambda: len(self.taken) >= count)
        return self.taken


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(hooks, "FIRST_RETRY_SECONDS", 0.0)


def test_each_notice_is_taken_once_however_often_it_is_noted(tmp_path):
    listener = Listener()
    with Hooks(tmp_path / "hooks", [listener]) as told:
        told.note({"ward/1/3": {"observation": 3}, "ward/1/5": {"observation": 5}})
        told.note({"ward/1/5": {"observation": 5}, "ward/1/8": {"observation": 8}})
        listener.wait(3)
        assert told.close() == 0
    assert [notice["id"] for notice in listener.taken] == ["ward/1/3", "ward/1/5", "ward/1/8"]


def test_a_failure_is_tried_again(tmp_path, at_once):
    listener = Listener(failures=3)
    with Hooks(tmp_path / "hooks", [listener]) as told:
        told.note({"a": {}, "b": {}})
        assert sorted(notice["id"] for notice in listener.wait(2)) == ["a", "b"]
        assert listener.tried == 5


def test_pauses_grow_up_to_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(hooks, "FIRST_RETRY_SECONDS", 10.0)
    listener = Listener(failures=100)
    with Hooks(tmp_path / "hooks", [listener]) as told:
        told.note({"a": {}})
        with listener.changed:
            listener.changed.wait_for(lambda: listener.tried)
        assert told.close() == 1
    found = []
    for attempts in (0, 1, 2, 40):
        made = Hooks.__new__(Hooks)
        made._targets, made._file = {"test": Listener(failures=9)}, Recording()
        before = time.time()
        made._deliver({"target": "test", "id": "a", "body": "{}", "attempts": attempts})
        found.append(round(made._file.due - before))
    assert found == [10, 20, 40, 300]


class Recording:
    """A file that remembers when a notice is due again."""

    due = 0.0

    @contextmanager
    def transaction(self):
        yield self

    def execute(self, _, values):
        self.due = values[0]


def test_who_is_slow_holds_nothing_up(tmp_path):
    gate = Event()
    listener = Listener(gate=gate)
    told = Hooks(tmp_path / "hooks", [listener])
    for number in range(20):
        told.note({str(number): {}})  # returns although nobody has answered
    assert told.waiting == 20
    gate.set()
    listener.wait(20)
    told.close()


def test_what_was_not_taken_is_told_after_a_restart(tmp_path):
    with Hooks(tmp_path / "hooks", [Listener(failures=10**6)]) as told:
        told.note({"a": {"observation": 1}})
        assert told.close() == 1
    database = tmp_path / "hooks"
    import sqlite3  # noqa: PLC0415

    with sqlite3.connect(database) as db:
        db.execute("UPDATE notices SET due = 0")
    db.close()
    listener = Listener()
    with Hooks(database, [listener]) as told:
        assert listener.wait(1) == [{"id": "a", "observation": 1}]
        told.note({"a": {"observation": 1}})
        assert told.close() == 0
    assert len(listener.taken) == 1


def test_a_command_reads_the_notice_and_a_failing_one_is_run_again(tmp_path, at_once):
    script = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n')"
    command = Command.parse(f'{sys.executable} -c "{script}" {tmp_path}/said')
    assert command.deliver('{"id": "a"}')
    assert (tmp_path / "said").read_text() == '{"id": "a"}\n'
    assert not Command((sys.executable, "-c", "raise SystemExit(3)")).deliver("{}")
    with pytest.raises(ParameterError, match="command"):
        Command.parse("a-program-that-is-not-there")
    with pytest.raises(ParameterError, match="command"):
        Command.parse("'")


class Receiver(BaseHTTPRequestHandler):
    """Answers as `server.answers` says, and keeps what came."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self.server.seen.append((self.path, dict(self.headers), body))
        self.send_response(self.server.answers.pop(0) if self.server.answers else 204)
        self.send_header("location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    server.seen, server.answers = [], []
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_webhook_is_signed_and_redirects_are_not_followed(receiver, monkeypatch):
    monkeypatch.setenv(SECRET, KEY)
    webhook = Webhook.parse(f"http://127.0.0.1:{receiver.server_port}/flags?ward=1")
    receiver.answers[:] = [500, 302, 200]
    assert [webhook.deliver('{"id": "a"}') for _ in range(4)] == [False, False, True, True]
    path, headers, body = receiver.seen[0]
    assert (path, body) == ("/flags?ward=1", '{"id": "a"}')
    lowered = {name.lower(): value for name, value in headers.items()}
    assert verify(KEY.encode(), body, lowered[SIGNATURE], now=time.time())
    assert not verify(KEY.encode(), body + " ", lowered[SIGNATURE], now=time.time())
    assert not verify(b"another key", body, lowered[SIGNATURE], now=time.time())
    assert {path for path, *_ in receiver.seen} == {"/flags?ward=1"}


def test_a_receiver_that_is_away_is_a_failure_and_no_error(monkeypatch, receiver):
    monkeypatch.setenv(SECRET, KEY)
    url = f"http://127.0.0.1:{receiver.server_port}/"
    receiver.server_close()
    assert not Webhook.parse(url).deliver("{}")


def test_an_old_signature_is_refused():
    signature = sign(KEY.encode(), "{}", 1_000)
    assert verify(KEY.encode(), "{}", signature, now=1_300.0)
    assert not verify(KEY.encode(), "{}", signature, now=1_301.0)
    assert not verify(KEY.encode(), "{}", "v1=0", now=0.0)
    assert not verify(KEY.encode(), "{}", "t=1000,v1=\u00e9", now=1_000.0)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/x",
        "ftp://localhost/x",
        "https://",
        "https://ana@host/x",
        "x",
        "https://host/fl\u00e4gge",
        "https://host/a flag",
        f"https://{'a' * 70}.example/x",
    ],
)
def test_where_a_notice_could_be_read_it_is_not_sent(url, monkeypatch):
    monkeypatch.setenv(SECRET, KEY)
    with pytest.raises(ParameterError, match="webhook"):
        Webhook.parse(url)


def test_a_webhook_needs_a_key(monkeypatch):
    monkeypatch.setenv(SECRET, "short")
    with pytest.raises(ParameterError, match=SECRET):
        Webhook.parse("https://example.org/x")
