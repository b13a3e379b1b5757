"""The rows of the ledger, and the chain of hashes that binds each to all before it.

A row's hash is SHA-256 over the canonical JSON of its columns, those that are empty left out, with the hash of the
row before it among them. A row that is changed, removed, inserted or moved breaks the chain at that place.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Final, Literal

from wallflower.errors import ChainBroken, ParameterError
from wallflower.privacy import Loss

GENESIS: Final = "0" * 64
_HEAD: Final = re.compile(r"[0-9a-f]{64}")
Event = Literal["charge", "release", "account", "limit", "quota", "allowance", "naming"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of the ledger, as stored. Amounts are text, so that they stay exact.

    id            its number
    time          when it was written
    event         what happened: charge, release, account, limit, quota, allowance or naming
    dataset       the data set, or the account where it is about one
    analyst       who asked, or whose quota it is
    kind          the guarantee of the stated loss
    amount        ε or ρ of the stated loss
    delta         δ of the stated loss
    neighbours    whose change the stated loss hides
    label         the lasting name of the question
    body          what was asked, decided or released, as JSON
    charge        of a release: the charge that paid for it
    idempotency_key  repeats the charge without paying again
    unit          the unit that the account protects
    factor        what the stated loss was multiplied by
    epsilon       ε that was booked
    booked_delta  δ that was booked
    rho           ρ that was booked
    names         the record that the question names
    claim         what the question states of itself, as JSON
    previous      the hash of the row before it
    hash          its own hash
    """

    id: int
    time: str
    event: Event
    dataset: str
    analyst: str | None = None
    kind: str | None = None
    amount: str | None = None
    delta: str | None = None
    neighbours: str | None = None
    label: str | None = None
    body: str | None = None
    charge: int | None = None
    idempotency_key: str | None = None
    unit: str | None = None
    factor: str | None = None
    epsilon: str | None = None
    booked_delta: str | None = None
    rho: str | None = None
    names: str | None = None
    claim: str | None = None
    previous: str
    hash: str

    @property
    def loss(self) -> Loss | None:
        """What was granted, shared out or stated by a question; a release has none."""
        return None if self.amount is None else Loss.from_json(self.to_json())

    @property
    def booked(self) -> Loss | None:
        """What a charge took from its account, in the account's unit; None where that is no loss of its own."""
        if self.epsilon is None and self.rho is None:
            return None
        if self.epsilon is None:
            return Loss.zcdp(Fraction(self.rho or "0"))
        return Loss(Fraction(self.epsilon), delta=Fraction(self.booked_delta or "0"))

    @property
    def details(self) -> dict[str, Any]:
        """The body, read: parameters of a charge, the public release, who granted and why."""
        stored: dict[str, Any] = json.loads(self.body or "{}")
        return stored

    def to_json(self) -> dict[str, Any]:
        """Every column as stored, enough to compute the hash again."""
        return {name: getattr(self, name) for name in COLUMNS}


COLUMNS: Final = tuple(item.name for item in fields(Entry))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """A chain that holds.

    entries  how many entries it has
    head     the hash of the last, to be noted elsewhere
    """

    entries: int
    head: str


def canonical(value: Mapping[str, Any]) -> str:
    """One text for one value.

    >>> canonical({"b": 1, "a": "ε"})
    '{"a":"\\\\u03b5","b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(row: Mapping[str, Any]) -> str:
    """The hash a row ought to have."""
    bound = {name: _plain(value) for name, value in row.items() if name != "hash" and value is not None}
    return hashlib.sha256(canonical(bound).encode("ascii")).hexdigest()


def _plain(value: Any) -> str | int:
    return value if isinstance(value, str | int) else repr(value)  # a forged row may hold bytes


def seal(**columns: Any) -> Entry:
    """An entry with its hash."""
    return Entry(**columns, hash=digest(columns))


def require_head(head: str) -> str:
    """A head as it is stored, or a refusal of what is none: a slip of the hand is no sign of fraud."""
    plain = head.strip().lower()
    if not _HEAD.fullmatch(plain):
        raise ParameterError(
            f"head: what was given has {len(plain)} characters and is no head. A head has 64 hexadecimal digits. Copy "
            "it whole; nothing was found wrong."
        )
    return plain


def walk(rows: Iterable[Mapping[str, Any]], *, head: str | None = None) -> Verification:
    """Check the chain from its start; with a `head` noted earlier, also that nothing was cut off since."""
    count, last, met = 0, GENESIS, head in (None, GENESIS)
    for count, row in enumerate(rows, start=1):
        _check(row, count, last)
        last = row["hash"]
        met = met or last == head
    if not met:
        raise ChainBroken(
            f"entry {count + 1}: the ledger has {count} entries, none with the head you noted ({str(head)[:12]}…). "
            "An honest ledger keeps every head it ever had. Later entries were cut off or the chain was rewritten: "
            "restore a backup.",
            entry=count + 1,
        )
    return Verification(entries=count, head=last)


def _check(row: Mapping[str, Any], expected: int, last: str) -> None:
    found = row["id"]
    if found != expected:
        entry, fault = (expected, "is missing") if found > expected else (found, "was inserted")
    elif row["previous"] != last:
        entry, fault = found, "does not follow the entry before it"
    elif row["hash"] != digest(row):
        entry, fault = found, "was changed"
    else:
        return
    raise ChainBroken(
        f"entry {entry} {fault}. Entries may only be added, each bound to the one before. "
        "Keep this ledger as evidence, restore a backup and compare their exports.",
        entry=entry,
    )
