"""Hooks: every flag that was released is told to a command or to a URL, at least once, without holding up decisions.

A notice is on disk before the decision is printed, and stays there until its receiver has taken it. A thread delivers
it and tries again after failures, later and later. A notice has an `id`, by which a receiver recognises one that comes
twice. A webhook is signed: `wallflower-signature: t=SECONDS,v1=HEX`, the HMAC-SHA-256 of "SECONDS.BODY" with the key
in WALLFLOWER_WEBHOOK_SECRET.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ipaddress
import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Condition, Thread
from typing import Any, Final, Protocol, Self
from urllib.parse import urlsplit

from wallflower.errors import ParameterError
from wallflower.machine.sqlite_file import FileFormat, SqliteFile

SECRET: Final = "WALLFLOWER_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable
SIGNATURE: Final = "wallflower-signature"
MIN_SECRET_CHARACTERS: Final = 16
FIRST_RETRY_SECONDS: Final = 1.0
MAX_RETRY_SECONDS: Final = 300.0
DELIVERY_SECONDS: Final = 30.0  # for a command or a request
_FORMAT: Final = FileFormat(
    application_id=0x77666C36,
    tables="""
CREATE TABLE notices (
    id TEXT NOT NULL,
    target TEXT NOT NULL,
    body TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    due REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (id, target)
) WITHOUT ROWID;
CREATE INDEX pending ON notices (due) WHERE body IS NOT NULL;
""",
    content="the notices of a hook",
    replace_hint="Move the file away or name another; notices that were not delivered are in it.",
)


class Target(Protocol):
    """Who is told."""

    @property
    def name(self) -> str: ...

    def deliver(self, body: str) -> bool:
        """Whether a notice was taken. Nothing is raised."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that reads a notice from standard input, and has taken it where it ends with 0; no shell is used."""

    words: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a command line as a shell would; refused where there is no such program."""
        try:
            words = tuple(shlex.split(text))
        except ValueError:
            words = ()
        if not words or shutil.which(words[0]) is None:
            raise ParameterError("--on-flag: there is no such command. Name a program that can be run.")
        return cls(words)

    @property
    def name(self) -> str:
        return "command"

    def deliver(self, body: str) -> bool:
        try:
            done = subprocess.run(  # noqa: S603 - the steward's own command
                self.words, input=body.encode(), stdout=subprocess.DEVNULL, timeout=DELIVERY_SECONDS, check=False
            )
        except (OSError, subprocess.SubprocessError):
            return False
        return done.returncode == 0


@dataclass(frozen=True, slots=True)
class Webhook:
    """A URL that takes a signed notice by POST, with any answer from 200 to 299; redirects are not followed."""

    url: str
    secret: bytes

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read a URL and the key of the environment; refused where what is sent could be read or forged on the way."""
        try:
            place = urlsplit(url)
            host, _ = place.hostname or "", place.port
            host.encode("idna")  # a name that no resolver takes
        except ValueError:
            place, host = urlsplit(""), ""
        is_sendable = url.isascii() and url.isprintable() and " " not in url
        if not host or not is_sendable or place.scheme not in ("https", "http") or place.username is not None:
            raise ParameterError(
                "--webhook: expected https://HOST[:PORT]/PATH in ASCII, without a user. Correct the URL; other letters "
                "are percent-encoded."
            )
        if place.scheme == "http" and not _is_loopback(host):
            raise ParameterError("--webhook: http is not encrypted, and allowed on this machine only. Use https.")
        secret = os.environ.get(SECRET, "")
        if len(secret) < MIN_SECRET_CHARACTERS:
            raise ParameterError(
                f"--webhook: notices are signed, and {SECRET} has no key of at least {MIN_SECRET_CHARACTERS} "
                "characters. Set it here and at the receiver."
            )
        return cls(url, secret.encode())

    @property
    def name(self) -> str:
        return "webhook"

    def deliver(self, body: str) -> bool:
        place = urlsplit(self.url)
        kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
        path = (place.path or "/") + (f"?{place.query}" if place.query else "")
        headers = {"content-type": "application/json", SIGNATURE: sign(self.secret, body, int(time.time()))}
        connection = kind(place.hostname or "", place.port, timeout=DELIVERY_SECONDS)
        try:
            connection.request("POST", path, body.encode(), headers)
            return 200 <= connection.getresponse().status < 300
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def sign(secret: bytes, body: str, seconds: int) -> str:
    """The signature of a notice.

    >>> sign(b"a key of sixteen", "{}", 0)[:12]
    't=0,v1=ae783'
    """
    return f"t={seconds},v1={hmac.new(secret, f'{seconds}.{body}'.encode(), hashlib.sha256).hexdigest()}"


def verify(secret: bytes, body: str, signature: str, *, now: float, tolerance_seconds: float = 300.0) -> bool:
    """Whether a signature is that of a notice, and not old: for receivers in Python.

    >>> verify(b"a key of sixteen", "{}", sign(b"a key of sixteen", "{}", 7), now=8.0)
    True
    """
    with suppress(ValueError):
        seconds = int(signature.partition(",")[0].removeprefix("t="))
        is_ours = hmac.compare_digest(sign(secret, body, seconds).encode(), signature.encode())
        return is_ours and abs(now - seconds) <= tolerance_seconds
    return False


class Hooks:
    """Notices that wait on disk, and the thread that delivers them."""

    def __init__(self, path: str | Path, targets: Iterable[Target]) -> None:
        self._targets = {target.name: target for target in targets}
        self._file = SqliteFile(path, _FORMAT)
        self._changed = Condition()
        self._is_closed = False
        self._left: int | None = None  # how many notices waited when it was closed
        self._thread = Thread(target=self._run, name="hooks", daemon=True)
        self._thread.start()

    def note(self, notices: Mapping[str, Mapping[str, Any]]) -> None:
        """Store what is to be told, by its identifier; what was stored before is not stored again."""
        rows = [(key, name, json.dumps({"id": key, **body})) for key, body in notices.items() for name in self._targets]
        if not rows:
            return
        with self._file.transaction() as db:
            db.executemany("INSERT OR IGNORE INTO notices (id, target, body) VALUES (?, ?, ?)", rows)
        with self._changed:
            self._changed.notify_all()

    @property
    def waiting(self) -> int:
        """How many notices were not taken yet."""
        with self._file.transaction() as db:
            return int(db.execute("SELECT count(*) FROM notices WHERE body IS NOT NULL").fetchone()[0])

    def close(self) -> int:
        """Deliver what can be delivered now, and stop; gives how many notices wait for the next time."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()
        if self._left is None:
            self._left = self.waiting
            self._file.close()
        return self._left

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                row = self._next()
                while not self._is_closed and (row is None or row["due"] > time.time()):
                    self._changed.wait(None if row is None else row["due"] - time.time())
                    row = self._next()
            if row is None or row["due"] > time.time():
                return
            if not self._deliver(row) and self._is_closed:
                return

    def _next(self) -> Any:
        """The notice that is due first, of those that somebody takes now."""
        marks = ", ".join("?" * len(self._targets))
        asked = f"SELECT * FROM notices WHERE body IS NOT NULL AND target IN ({marks}) ORDER BY due, id LIMIT 1"  # noqa: S608
        with self._file.transaction() as db:
            return db.execute(asked, tuple(self._targets)).fetchone()

    def _deliver(self, row: Any) -> bool:
        is_taken = self._targets[row["target"]].deliver(row["body"])
        pause = min(MAX_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** min(row["attempts"], 30))
        with self._file.transaction() as db:
            if is_taken:
                db.execute("UPDATE notices SET body = NULL WHERE id = ? AND target = ?", (row["id"], row["target"]))
            else:
                db.execute(
                    "UPDATE notices SET attempts = attempts + 1, due = ? WHERE id = ? AND target = ?",
                    (time.time() + pause, row["id"], row["target"]),
                )
        return is_taken


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"
