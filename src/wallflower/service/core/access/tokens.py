"""Who may call: bearer tokens, shown once and kept only as hashes.

A token is `wf_ID_SECRET`. The id is public; of the secret, which has 256 random bits, the SHA-256 hash is stored.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from threading import Lock
from typing import Any, Final, Literal, Self, get_args

from wallflower.errors import LedgerError, ParameterError
from wallflower.service.core.access.people import TOKEN_SCOPES, People
from wallflower.service.core.clock import moment, now
from wallflower.service.core.problems import Refusal
from wallflower.service.core.records import FACTORS, RIGHTS, SECRETS, TOKENS, USES, Records

Scope = Literal["analyst", "steward", "auditor", "monitor", "agent"]
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)

_TOKEN: Final = re.compile(r"wf_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_MAX_NAME_LETTERS: Final = 80
_CACHE_SECONDS: Final = 2.0  # a check is cached this long, so another worker honours a revoked token that long
_MAX_CACHED_CHECKS: Final = 4096
_USE_RECORD_SECONDS: Final = 600.0  # between two records of the use of a token
_EMPTY_DIGEST: Final = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The holder of a valid token, or a person who signed in. The ledger knows an analyst by `name`.

    An auditor reads what a steward reads and changes nothing; a monitor reads the metrics, no more. An agent asks for
    the person `name` over the MCP server, no more. `token` is empty for a person who signed in with the account of her
    office.
    """

    name: str
    scope: Scope
    token: str
    address: str = ""
    has_factor: bool = False
    groups: tuple[str, ...] = ()

    @property
    def is_steward(self) -> bool:
        return self.scope == "steward"

    @property
    def is_auditor(self) -> bool:
        return self.scope == "auditor"

    @property
    def reads_all(self) -> bool:
        """Whether the caller may read what belongs to others: the ledger, acts, budgets, every release."""
        return self.scope in ("steward", "auditor")

    @property
    def is_person(self) -> bool:
        """Whether the caller signed in with the account of an office, and not with a token."""
        return not self.token

    @property
    def is_agent(self) -> bool:
        return self.scope == "agent"

    @property
    def is_monitor(self) -> bool:
        return self.scope == "monitor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token as its steward sees it: everything but the secret."""

    id: str
    name: str
    scope: Scope
    created: str
    expires: str | None
    revoked: str | None

    @property
    def is_valid(self) -> bool:
        return self.revoked is None and (self.expires is None or now() < self.expires)

    def to_json(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("id", "name", "scope", "created", "expires", "revoked")}
        return own | {"valid": self.is_valid}

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        return cls(**{name: value for name, value in row.items() if name != "digest"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUse:
    """Who issued a token, and when it was used last, to some minutes."""

    by: str | None
    used: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRights:
    """The groups of a token; `person` is the owner of a personal one, who has her own groups."""

    person: str | None
    groups: tuple[str, ...]

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        return cls(person=row["person"], groups=tuple(json.loads(row["groups"] or "[]")))


class Tokens:
    """The tokens of one service."""

    def __init__(self, records: Records) -> None:
        self._records, self._people = records, People(records)
        self._checked: OrderedDict[str, tuple[float, Caller]] = OrderedDict()
        self._noted: dict[str, float] = {}
        self._lock = Lock()

    def create(
        self,
        name: str,
        scope: str,
        *,
        days: int | None = 90,
        by: str | None = None,
        groups: Sequence[str] = (),
        is_personal: bool = False,
    ) -> tuple[Token, str]:
        """A new token and its text, which is never shown again; without `days` it does not expire. `by` is the steward
        who issued it; None: the person who runs the service. `groups` are groups of the settings whose data sets it may
        see. A personal token is of the person of this name and has her groups, as long as she may use tokens."""
        _require(name, scope, days)
        key, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        expires = None
        if days is not None:
            expires = (moment() + timedelta(days=days)).isoformat(timespec="milliseconds")
        row = {"id": key, "digest": _digest(secret), "name": name, "scope": scope, "expires": expires}
        if groups or is_personal:
            stated = {"person": name if is_personal else None, "groups": json.dumps(list(groups))}
            self._records.add(RIGHTS, {"id": key, **stated})  # before the token, which without them would have more
        self._records.add(TOKENS, row)
        self._records.add(USES, {"id": key, "by": by})
        found = self._records.find(TOKENS, key)
        return Token.of(found or row), f"wf_{key}_{secret}"

    def all(self) -> list[Token]:
        """Every token there ever was, oldest first."""
        return [Token.of(row) for row in self._records.all(TOKENS)]

    def uses(self) -> dict[str, TokenUse]:
        """Who issued each token and when it was used last, as far as it was noted."""
        return {row["id"]: TokenUse(by=row["by"], used=row["used"]) for row in self._records.all(USES)}

    def rights(self) -> dict[str, TokenRights]:
        """The groups of tokens that have some, and whose personal token is which, by the id of the token."""
        return {row["id"]: TokenRights.of(row) for row in self._records.all(RIGHTS)}

    def find(self, key: str) -> Token:
        """The token with this id."""
        row = self._records.find(TOKENS, key)
        if row is None:
            raise Refusal("not-found", "There is no token with this id. `list` shows them.")
        return Token.of(row)

    def others(self, made: Token) -> list[Token]:
        """The valid tokens beside this one that go by the same name."""
        return [one for one in self.all() if one.is_valid and one.name == made.name and one.id != made.id]

    def require_other_steward(self, key: str) -> None:
        """Refuse to end the last valid token of a steward."""
        valid = [token.id for token in self.all() if token.is_valid and token.scope == "steward"]
        if valid == [key]:
            raise Refusal(
                "conflict",
                "This is the last valid token of a steward: without it nobody could change anything here. Issue "
                "another first, or revoke it at the command line (`wallflower serve token revoke`).",
            )

    def require_person(self, name: str) -> None:
        """Refuse a name that no valid token has: what is kept for it could not be spent."""
        names = {token.name for token in self.all() if token.is_valid and token.scope not in ("monitor", "auditor")}
        names |= {person.name for person in self._people.all() if person.disabled is None and person.role != "auditor"}
        if name not in names:
            near = get_close_matches(name, names, 1)
            advice = f"Did you mean {near[0]}?" if near else "Issue a token for it first, or correct the name."
            raise ParameterError(f"analyst: no valid token has this name. A quota needs a person with one. {advice}")

    def revoke(self, key: str) -> Token:
        """End a token at once; one that is revoked stays so."""
        if self.find(key).revoked is None:
            self._records.change(TOKENS, key, revoked=now())
        self.forget_checks()
        return self.find(key)

    def forget_checks(self) -> None:
        """Look every token up again: what is known of one has changed."""
        with self._lock:
            self._checked.clear()

    def recent_caller(self, text: str) -> Caller | None:
        """Return the holder of a token that was checked within the last seconds."""
        with self._lock:
            at, caller = self._checked.get(_digest(text), (-_CACHE_SECONDS, None))
        return caller if time.monotonic() - at < _CACHE_SECONDS else None

    def was_valid(self, text: str) -> bool:
        """Whether this token was valid when it was last seen, however long ago."""
        with self._lock:
            return _digest(text) in self._checked

    def caller(self, text: str) -> Caller | None:
        """Return the holder of a token, if it is valid."""
        found = self.recent_caller(text)
        if found is not None:
            return found
        parts = _TOKEN.fullmatch(text)
        key, secret = parts.groups() if parts else ("", "")
        row = self._records.find(TOKENS, key) if parts else None
        is_right = hmac.compare_digest(_digest(secret), row["digest"] if row else _EMPTY_DIGEST)
        if row is None or not is_right or not Token.of(row).is_valid:
            return None
        groups = self.groups_of(row)
        if groups is None:
            return None
        has_factor = self._records.find(FACTORS, key) is not None
        caller = Caller(name=row["name"], scope=row["scope"], token=row["id"], has_factor=has_factor, groups=groups)
        with self._lock:
            self._checked[_digest(text)] = (time.monotonic(), caller)
            while len(self._checked) > _MAX_CACHED_CHECKS:
                self._checked.popitem(last=False)
        self._note_use(caller.token)
        return caller

    def groups_of(self, row: dict[str, Any]) -> tuple[str, ...] | None:
        """The groups of a token; None: it is personal, and its owner has lost the right to it."""
        stored = self._records.find(RIGHTS, row["id"])
        if stored is None:
            return ()
        rights = TokenRights.of(stored)
        if rights.person is None:
            return rights.groups
        person = self._people.active(rights.person)
        if person is None or not person.may_use_tokens or row["scope"] not in TOKEN_SCOPES[person.role]:
            return None
        return person.groups

    def _note_use(self, key: str) -> None:
        """Write down that a token is used, once in a while: a call must not cost a write, nor fail for want of one."""
        with self._lock:
            if time.monotonic() - self._noted.get(key, -_USE_RECORD_SECONDS) < _USE_RECORD_SECONDS:
                return
            self._noted[key] = time.monotonic()
        with suppress(LedgerError):
            if not self._records.change(USES, key, used=now()):
                self._records.add(USES, {"id": key, "used": now()})


def token_id(text: str) -> str:
    """The public part of a token; an empty text where there is no token in it."""
    parts = _TOKEN.fullmatch(text)
    return parts[1] if parts else ""


def new_id() -> str:
    """Return an id that cannot be guessed."""
    return secrets.token_hex(12)


def new_secret(count: int) -> bytes:
    """Return `count` random bytes."""
    return secrets.token_bytes(count)


def shared_secret(records: Records, name: str) -> bytes:
    """The secret of this name, which all processes of the service share; made when it is first wanted."""
    records.add(SECRETS, {"id": name, "value": new_secret(32).hex()})
    row = records.find(SECRETS, name)
    assert row is not None
    return bytes.fromhex(row["value"])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _require(name: str, scope: str, days: int | None) -> None:
    is_plain = name.isprintable() and name == name.strip() and "/" not in name and not name.startswith("(")
    if not (1 <= len(name) <= _MAX_NAME_LETTERS and is_plain):
        raise ParameterError(
            f"name: must have 1 to {_MAX_NAME_LETTERS} printable characters, no /, no space at either end and no ( at "
            "the beginning. Choose another."
        )
    if scope not in SCOPES:
        raise ParameterError(
            f"scope: {scope[:40]!r} is not one; it is {', '.join(SCOPES[:-1])} or {SCOPES[-1]}. Choose one."
        )
    if days is not None and not 1 <= days <= 3650:
        raise ParameterError("days: a token lives 1 to 3,650 days. Choose a number, or leave it out for the default.")
