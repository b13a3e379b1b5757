"""Sessions of people whom somebody else has authenticated: the OpenID provider, or a trusted proxy by its header."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address, ip_network
from typing import Final

from starlette.requests import Request

from wallflower.curator.api.proxies import PEER
from wallflower.curator.desk.access.tokens import Caller
from wallflower.curator.desk.desk import Desk
from wallflower.curator.desk.logs import tell
from wallflower.curator.pages.visitors.sessions import PersonSession, Sessions
from wallflower.curator.settings import Settings

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
    desk: Desk, sessions: Sessions, session: PersonSession, groups: Iterable[str], terms: SessionTerms, address: str
) -> str:
    """Record the sign-in, open a session, and return its cookie. Of her groups only those of the settings are kept."""
    known = {group.name: group for group in desk.settings.groups}
    person = desk.people.sign_in(
        issuer=session.issuer,
        subject=session.subject,
        name=session.person,
        groups=[known[group] for group in dict.fromkeys(groups) if group in known],
        token_days=terms.token_days,
    )
    caller = Caller(name=person.name, scope=person.role, token="", address=address, groups=person.groups)
    cookie = sessions.open(caller, timedelta(hours=terms.session_hours), person=session)
    tell("signed in", by=person.name, token="", address=address)
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


def open_header_session(desk: Desk, sessions: Sessions, person: HeaderPerson, address: str) -> str:
    """Open a session for the person whom the proxy names, and return its cookie."""
    header = desk.settings.trusted_header
    assert header is not None
    session = PersonSession(person=person.name, issuer=_HEADER_ISSUER, subject=person.name)
    terms = SessionTerms(session_hours=header.session_hours, token_days=header.token_days)
    return open_person_session(desk, sessions, session, person.groups, terms, address)


def _is_from_proxy(request: Request, settings: Settings) -> bool:
    peer = request.scope.get(PEER)
    if not peer:
        return False
    try:
        return any(ip_address(peer[0]) in ip_network(proxy) for proxy in settings.proxies)
    except ValueError:
        return False
