"""Sessions of the pages: cookies, and people whom an OpenID provider or a trusted proxy has authenticated.

The cookie of a session is signed with a secret of the service, so that a forged one is refused without a query to the
database; only its hash is stored. The proof that a form carries is made with the same secret. A session belongs to a
token and ends with it; the session of a person ends when she is disabled or when the provider ends hers. Her ID token
is kept for the sign-out alone, encrypted under the cookie.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from cryptography.fernet import Fernet, InvalidToken
from starlette.requests import Request

from wallflower.ledger.store import Store
from wallflower.service.api.middleware import PEER
from wallflower.service.core.access.people import People
from wallflower.service.core.access.tokens import Caller, Token, Tokens, new_id, shared_secret
from wallflower.service.core.clock import moment, now
from wallflower.service.core.facade import Core
from wallflower.service.core.logs import log_event
from wallflower.service.core.records import TOKENS, Records
from wallflower.service.settings import Settings

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
        """Return the person who is signed in with this cookie, as long as their token is valid."""
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


_HEADER_ISSUER: Final = "trusted header"
_MAX_HEADER_LETTERS: Final = 8000


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTerms:
    """How long a session lasts, and how long after the sign-in personal tokens work."""

    session_hours: float
    token_days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderPerson:
    """A person as a trusted proxy names her."""

    name: str
    groups: tuple[str, ...]


def open_person_session(
    core: Core, sessions: Sessions, session: PersonSession, groups: Iterable[str], terms: SessionTerms, address: str
) -> str:
    """Record the sign-in, open a session, and return its cookie. Of her groups only those of the settings are kept."""
    known = {group.name: group for group in core.settings.groups}
    person = core.people.sign_in(
        issuer=session.issuer,
        subject=session.subject,
        name=session.person,
        groups=[known[group] for group in dict.fromkeys(groups) if group in known],
        token_days=terms.token_days,
    )
    caller = Caller(name=person.name, scope=person.role, token="", address=address, groups=person.groups)
    cookie = sessions.open(caller, timedelta(hours=terms.session_hours), person=session)
    log_event("signed in", by=person.name, token="", address=address)
    return cookie


def person_in_header(request: Request, settings: Settings) -> HeaderPerson | None:
    """The person whom a proxy of the settings names; None: nobody, or the request comes from somewhere else.

    A header that is there twice names nobody: a proxy that appends to what a client sent is not to be trusted.
    """
    header = settings.trusted_header
    if header is None or not _is_from_proxy(request, settings):
        return None
    users, groups = request.headers.getlist(header.user), request.headers.getlist(header.groups)
    if len(users) != 1 or len(groups) > 1 or len(users[0]) + sum(map(len, groups)) > _MAX_HEADER_LETTERS:
        return None
    name = users[0].strip()
    listed = (group.strip() for group in groups[0].split(",")) if groups else ()
    return HeaderPerson(name=name, groups=tuple(group for group in listed if group)) if name else None


def is_current(caller: Caller, person: HeaderPerson | None, settings: Settings) -> bool:
    """Whether a session fits what the proxy says now: the same person in the same groups. A token's always does."""
    if settings.trusted_header is None or not caller.is_person:
        return True
    known = {group.name for group in settings.groups}
    return person is not None and person.name == caller.name and set(person.groups) & known == set(caller.groups)


def open_header_session(core: Core, sessions: Sessions, person: HeaderPerson, address: str) -> str:
    """Open a session for the person whom the proxy names, and return its cookie."""
    header = core.settings.trusted_header
    assert header is not None
    session = PersonSession(person=person.name, issuer=_HEADER_ISSUER, subject=person.name)
    terms = SessionTerms(session_hours=header.session_hours, token_days=header.token_days)
    return open_person_session(core, sessions, session, person.groups, terms, address)


def _is_from_proxy(request: Request, settings: Settings) -> bool:
    peer = request.scope.get(PEER)
    if not peer:
        return False
    try:
        return any(ip_address(peer[0]) in ip_network(proxy) for proxy in settings.proxies)
    except ValueError:
        return False
