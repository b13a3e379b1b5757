"""Who is signed in to the pages: a cookie that nobody can guess, kept only as its hash, for a working day at most, and
until the visitor has been idle for too long.

The cookie of a session is signed with a secret of the service, so that a forged one is refused without a look at the
database; the proof that a form carries is made with the same secret.

A session stands for a token and ends with it: one that is revoked or has expired signs out whoever came with it.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import timedelta
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from wallflower.curator.desk.access.tokens import Caller, Token, new_id, shared_secret
from wallflower.curator.desk.clock import moment, now
from wallflower.curator.desk.records import TOKENS, Records
from wallflower.ledger.store import Store

LIFETIME: Final = timedelta(hours=12)
_NOTED: Final = 20  # a visit is noted again once this part of the idle time has passed

_META: Final = sa.MetaData()
_SESSIONS: Final = sa.Table(
    "service_stays",
    _META,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("expires", sa.Text, nullable=False),
    sa.Column("seen", sa.Text, nullable=False),
    sa.Column("confirmed", sa.Text, nullable=False),
)


class Sessions:
    """The sessions of one service, shared by its workers."""

    def __init__(self, where: str | Path | None, records: Records, idle: timedelta) -> None:
        self._store, self._records, self._idle = Store(where), records, idle
        self._secret = shared_secret(records, "pages")
        with self._store.write() as db:
            _META.create_all(db)

    def open(self, caller: Caller) -> str:
        """The cookie of a new session; sessions that are over are forgotten."""
        random = new_cookie()
        cookie = f"{random}.{self._sign('session', random)}"
        row = {"id": _digest("session", cookie), "token": caller.token, "expires": _from_now(LIFETIME)}
        over = (_SESSIONS.c.expires < now()) | (_SESSIONS.c.seen < _from_now(-self._idle))
        with self._store.write() as db:
            db.execute(sa.delete(_SESSIONS).where(over))
            db.execute(sa.insert(_SESSIONS).values(**row, seen=now(), confirmed=now()))
        return cookie

    def caller(self, cookie: str) -> Caller | None:
        """Whoever is signed in with this cookie, as long as their token is valid."""
        if not self.is_signed(cookie):
            return None
        with self._store.read() as db:
            wanted = sa.select(_SESSIONS).where(_SESSIONS.c.id == _digest("session", cookie))
            row = db.execute(wanted).mappings().one_or_none()
        if row is None or row["expires"] <= now() or row["seen"] <= _from_now(-self._idle):
            return None
        if row["seen"] <= _from_now(-self._idle / _NOTED):
            with self._store.write() as db:
                db.execute(sa.update(_SESSIONS).where(_SESSIONS.c.id == row["id"]).values(seen=now()))
        stored = self._records.find(TOKENS, row["token"])
        if stored is None or not Token.of(stored).is_valid:
            return None
        return Caller(name=stored["name"], scope=stored["scope"], token=stored["id"])

    def is_signed(self, cookie: str) -> bool:
        """Whether this service gave out the cookie at a sign-in, whatever became of the session."""
        random, _, signature = cookie.partition(".")
        expected = self._sign("session", random)
        return hmac.compare_digest(expected.encode(), signature.encode("utf-8", "surrogatepass"))

    def proof(self, cookie: str) -> str:
        """What a form carries to show that it came from a page that was given to this cookie."""
        return self._sign("form", cookie)

    def is_proof(self, cookie: str, given: str) -> bool:
        """Whether a form came from a page that was given to this cookie."""
        known = self.proof(cookie).encode()
        return bool(cookie) and hmac.compare_digest(known, given.encode("utf-8", "surrogatepass"))

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.digest(self._secret, f"{purpose}:{text}".encode("utf-8", "surrogatepass"), "sha256").hex()[:40]

    def is_fresh(self, cookie: str, since: timedelta) -> bool:
        """Whether the token of this session was entered so lately."""
        wanted = sa.select(_SESSIONS.c.confirmed).where(_SESSIONS.c.id == _digest("session", cookie))
        with self._store.read() as db:
            entered = db.execute(wanted).scalar_one_or_none()
        return entered is not None and entered > _from_now(-since)

    def confirm(self, cookie: str) -> None:
        """Note that the token of this session was entered again."""
        with self._store.write() as db:
            own = _SESSIONS.c.id == _digest("session", cookie)
            db.execute(sa.update(_SESSIONS).where(own).values(confirmed=now()))

    def end(self, cookie: str) -> None:
        with self._store.write() as db:
            db.execute(sa.delete(_SESSIONS).where(_SESSIONS.c.id == _digest("session", cookie)))


def _from_now(time: timedelta) -> str:
    return (moment() + time).isoformat(timespec="milliseconds")


def new_cookie() -> str:
    """A text nobody can guess."""
    return new_id() + new_id()


def _digest(purpose: str, cookie: str) -> str:
    return hashlib.sha256(f"{purpose}:{cookie}".encode("utf-8", "surrogatepass")).hexdigest()
