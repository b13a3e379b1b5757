"""Who is signed in to the pages: a cookie that nobody can guess, kept only as its hash, for a working day at most, and
until the visitor has been idle for too long.

The cookie of a session is signed with a secret of the service, so that a forged one is refused without a look at the
database; the proof that a form carries is made with the same secret.

A session stands for a token and ends with it: one that is revoked or has expired signs out whoever came with it. The
session of a person who signed in with the account of her office ends when she is disabled, or when the directory ends
hers. Her ID token is kept for the sign-out alone, encrypted under the cookie, which is kept only as its hash.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from cryptography.fernet import Fernet, InvalidToken

from wallflower.curator.desk.access.people import People
from wallflower.curator.desk.access.tokens import Caller, Token, Tokens, new_id, shared_secret
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
_PEOPLE: Final = sa.Table(
    "service_session_people",
    _META,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("person", sa.Text, nullable=False),
    sa.Column("issuer", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("session", sa.Text),
    sa.Column("sealed", sa.Text),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSession:
    """A session of a person at the directory: its own id there, and the ID token that ends it; None: it has none."""

    person: str
    issuer: str
    subject: str
    session: str | None = None
    id_token: str | None = None


class Sessions:
    """The sessions of one service, shared by its workers."""

    def __init__(self, where: str | Path | None, records: Records, idle: timedelta) -> None:
        self._store, self._records, self._idle = Store(where), records, idle
        self._people, self._tokens = People(records), Tokens(records)
        self._secret = shared_secret(records, "pages")
        with self._store.write() as db:
            _META.create_all(db)

    def open(self, caller: Caller, lifetime: timedelta = LIFETIME, *, person: PersonSession | None = None) -> str:
        """The cookie of a new session; sessions that are over are forgotten."""
        random = new_cookie()
        cookie = f"{random}.{self._sign('session', random)}"
        row = {"id": _digest("session", cookie), "token": caller.token, "expires": _from_now(lifetime)}
        over = (_SESSIONS.c.expires < now()) | (_SESSIONS.c.seen < _from_now(-self._idle))
        with self._store.write() as db:
            db.execute(sa.delete(_SESSIONS).where(over))
            db.execute(sa.delete(_PEOPLE).where(_PEOPLE.c.id.not_in(sa.select(_SESSIONS.c.id))))
            db.execute(sa.insert(_SESSIONS).values(**row, seen=now(), confirmed=now()))
            if person is not None:
                stated = {"issuer": person.issuer, "subject": person.subject, "session": person.session}
                sealed = None if person.id_token is None else _seal(cookie).encrypt(person.id_token.encode()).decode()
                db.execute(sa.insert(_PEOPLE).values(id=row["id"], person=person.person, sealed=sealed, **stated))
        return cookie

    def person_session(self, cookie: str) -> PersonSession | None:
        """The session at the directory behind this cookie; None: there is none."""
        with self._store.read() as db:
            query = sa.select(_PEOPLE).where(_PEOPLE.c.id == _digest("session", cookie))
            row = db.execute(query).mappings().one_or_none()
        if row is None:
            return None
        try:
            id_token = None if row["sealed"] is None else _seal(cookie).decrypt(row["sealed"].encode()).decode()
        except InvalidToken:
            id_token = None
        stated = {name: row[name] for name in ("person", "issuer", "subject", "session")}
        return PersonSession(**stated, id_token=id_token)

    def end_at_directory(self, *, issuer: str, subject: str | None, session: str | None) -> int:
        """End the sessions that the directory has ended: those of its session, or all of a subject."""
        which = [_PEOPLE.c.issuer == issuer]
        which += [] if subject is None else [_PEOPLE.c.subject == subject]
        which += [] if session is None else [_PEOPLE.c.session == session]
        ended = sa.select(_PEOPLE.c.id).where(*which)
        with self._store.write() as db:
            count = db.execute(sa.delete(_SESSIONS).where(_SESSIONS.c.id.in_(ended))).rowcount
            db.execute(sa.delete(_PEOPLE).where(*which))
        return int(count)

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
        if not row["token"]:
            return self._person_caller(row["id"])
        stored = self._records.find(TOKENS, row["token"])
        if stored is None or not Token.of(stored).is_valid:
            return None
        groups = self._tokens.groups_of(stored)
        if groups is None:
            return None
        return Caller(name=stored["name"], scope=stored["scope"], token=stored["id"], groups=groups)

    def _person_caller(self, key: str) -> Caller | None:
        """The person of a session, with the rights of her last sign-in, unless she is disabled."""
        with self._store.read() as db:
            name = db.execute(sa.select(_PEOPLE.c.person).where(_PEOPLE.c.id == key)).scalar_one_or_none()
        person = None if name is None else self._people.active(name)
        return None if person is None else Caller(name=person.name, scope=person.role, token="", groups=person.groups)

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

    def confirm_person(self, key: str, issuer: str, subject: str) -> bool:
        """Note that the person of the session with this key was authenticated again; False: it is another's."""
        whose = sa.select(_PEOPLE.c.id).where(_PEOPLE.c.issuer == issuer, _PEOPLE.c.subject == subject)
        which = (_SESSIONS.c.id == key, _SESSIONS.c.id.in_(whose))
        with self._store.write() as db:
            return bool(db.execute(sa.update(_SESSIONS).where(*which).values(confirmed=now())).rowcount)

    def end(self, cookie: str) -> None:
        key = _digest("session", cookie)
        with self._store.write() as db:
            db.execute(sa.delete(_SESSIONS).where(_SESSIONS.c.id == key))
            db.execute(sa.delete(_PEOPLE).where(_PEOPLE.c.id == key))


def _from_now(time: timedelta) -> str:
    return (moment() + time).isoformat(timespec="milliseconds")


def _seal(cookie: str) -> Fernet:
    """Encryption under a cookie, which has 192 random bits and a signature."""
    return Fernet(urlsafe_b64encode(hashlib.sha256(f"id token:{cookie}".encode()).digest()))


def new_cookie() -> str:
    """A text nobody can guess."""
    return new_id() + new_id()


def session_key(cookie: str) -> str:
    """What the session of a cookie is stored under."""
    return _digest("session", cookie)


def _digest(purpose: str, cookie: str) -> str:
    return hashlib.sha256(f"{purpose}:{cookie}".encode("utf-8", "surrogatepass")).hexdigest()
