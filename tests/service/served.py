"""A HTTP service for the tests: in a thread of this process, or as a process that can be killed."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI

from forks import Fork
from wallflower.ledger import Ledger
from wallflower.schema import Column, Schema
from wallflower.service.app import application
from wallflower.service.core.access.tokens import Tokens
from wallflower.service.core.records import TOKENS, Records
from wallflower.service.server import _bind, _config, _url
from wallflower.service.settings import Registration, Settings
from wallflower.units import Protection

ROLES = ("anonymous", "analyst", "other", "auditor", "steward", "expired", "revoked")
HERE = Path(__file__).parent
TIMED = Protection(rows="time", unit="entry")
LONG = 3600.0  # seconds: on a busy machine an answer is no job, and a request not too slow, unless a test says so


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def problem(self) -> str:
        assert self.headers["content-type"] == "application/problem+json", self
        assert self.json["status"] == self.status
        return str(self.json["type"]).removeprefix("urn:wallflower:problem:")


@dataclass(frozen=True)
class Caller:
    """Somebody with a token, or without."""

    url: str
    token: str | None = None

    def __call__(self, method: str, path: str, body: Any = None, *, raw: bytes | None = None, **headers: str) -> Answer:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token is not None:
            given.setdefault("authorization", f"Bearer {self.token}")
        content = raw
        if body is not None:
            content = json.dumps(body).encode()
        if content is not None:
            given.setdefault("content-type", "application/json")
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc)
        try:
            connection.request(method, path, body=content, headers=given)
            found = connection.getresponse()
            return Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())
        finally:
            connection.close()

    def get(self, path: str, **more: Any) -> Answer:
        return self("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> Answer:
        return self("POST", path, body, **more)


@dataclass(frozen=True)
class Service:
    app: FastAPI
    url: str

    def __getitem__(self, token: str | None) -> Caller:
        return Caller(self.url, token)

    def token(self, name: str, scope: str = "analyst", days: int | None = 1) -> Caller:
        return Caller(self.url, self.app.state.core.tokens.create(name, scope, days=days)[1])

    def expired_token(self, name: str, scope: str) -> Caller:
        core = self.app.state.core
        made, text = core.tokens.create(name, scope)
        core.records.change(TOKENS, made.id, expires=made.created)
        return Caller(self.url, text)

    def roles(self) -> dict[str, Caller]:
        """One of each."""
        tokens = self.app.state.core.tokens
        gone, text = tokens.create("ana", "steward", days=1)
        tokens.revoke(gone.id)
        return {
            "anonymous": Caller(self.url),
            "analyst": self.token("ana"),
            "other": self.token("bo"),
            "auditor": self.token("aude", "auditor"),
            "steward": self.token("sue", "steward"),
            "expired": self.expired_token("ana", "steward"),
            "revoked": Caller(self.url, text),
        }


def ward(folder: Path, rows: int = 30) -> Registration:
    """A small table."""
    source = folder / "ward.csv"
    source.write_text("a,b\n" + "".join(f"{row},{row * row % 97}\n" for row in range(rows)))
    return Registration(analysts=("*",), name="ward", source=str(source), schema=Schema.of(["a", "b"]))


def settings(folder: Path, **more: Any) -> Settings:
    """A service of one table and one stream."""
    column = Column("t", low=-5, high=5)
    beds = Registration(analysts=("*",), name="beds", source=None, schema=Schema(columns=(column,), protects=TIMED))
    given: dict[str, Any] = {
        "port": 0,
        "ledger": str(folder / "ledger.db"),
        "roots": (str(folder),),
        "watches": str(folder / "watches"),
        "quantum_seconds": 0.02,
        "async_after_seconds": LONG,
        "body_seconds": LONG,
        "header_seconds": LONG,
        "reauth_seconds": LONG,
        "datasets": (ward(folder), beds),
    }
    return Settings(**given | more)


@contextmanager
def run_service(stated: Settings, **more: Any) -> Iterator[Service]:
    """The service in a thread."""
    app = application(stated, **more)
    app.state.core.load()
    with _bind(stated) as listening:
        server = uvicorn.Server(_config(app, stated))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            _wait(_url(listening, stated), thread.is_alive)
            yield Service(app, _url(listening, stated))
        finally:
            server.should_exit = True
            thread.join()


SCRIPT = """
import sys
from wallflower.service.server import serve
from wallflower.service.settings import Settings
serve(Settings.from_json(sys.argv[1]), lambda url: print(url, flush=True))
"""


@contextmanager
def process(
    stated: Settings, script: Path | None = None, *, is_fresh: bool = False
) -> Iterator[tuple[Fork | subprocess.Popen[str], str]]:
    """The service as a process of its own, with its workers in one group; or what a script makes of it. It is forked
    from one that has imported all, unless it is to be a fresh interpreter."""
    make = _interpreter if is_fresh else _fork
    with make(SCRIPT if script is None else script, stated.to_json()) as running:
        assert running.stdout is not None
        url = running.stdout.readline().strip()
        try:
            _wait(url, lambda: running.poll() is None)
            yield running, url
        finally:
            if running.poll() is None:
                running.terminate()
                running.wait()


def _fork(program: str | Path, *arguments: str) -> Fork:
    return Fork(program, *arguments, log=os.devnull)


def _interpreter(program: str | Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *(["-c", program] if isinstance(program, str) else [str(program)]), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def _wait(url: str, is_alive: Callable[[], bool]) -> None:
    """Until the service answers, as long as it lives."""
    while True:
        try:
            if Caller(url).get("/readyz").status == 200:
                return
        except OSError:
            assert is_alive(), "the service has ended"
        time.sleep(0.02)


def workers(parent: int) -> list[int]:
    """The processes that answer: children that are no helpers of multiprocessing."""
    found = []
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        try:
            command = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        if b"spawn_main" in command:
            found.append(int(child))
    return found


def make_token(stated: Settings) -> str:
    """A token that is there before the service is."""
    with Ledger.open(stated.ledger):
        records = Records(stated.ledger)
        text = Tokens(records).create("ana", "analyst")[1]
        records.close()
    return text
