"""People who sign in with the account of their office, as the directory described them at their last sign-in.

The ledger knows a person by name. The name belongs to the subject that signed in under it first: another subject with
the same name is refused, so that an account that is reused in the directory inherits no releases. A steward can give
the name to another account, for instance after a move to another provider.

Her rights are those of her groups at the last sign-in. They end when a steward disables her, and for her personal
tokens also `token_days` after the last sign-in: someone whom the directory no longer lets in cannot renew them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Self

from wallflower.service.core.clock import moment, now
from wallflower.service.core.problems import Refusal
from wallflower.service.core.records import PEOPLE, Records
from wallflower.service.settings import Group, Role, strongest_role

MAX_NAME_LETTERS: Final = 80
MAX_SUBJECT_LETTERS: Final = 255

# The scopes that a personal token may have, by the role of its owner.
TOKEN_SCOPES: Final[Mapping[Role, tuple[str, ...]]] = {
    "steward": ("analyst", "auditor", "steward", "agent"),
    "auditor": ("auditor",),
    "analyst": ("analyst", "agent"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person at her last sign-in."""

    name: str
    issuer: str
    subject: str
    role: Role
    groups: tuple[str, ...]
    signed_in: str
    tokens_until: str
    disabled: str | None = None

    @property
    def may_use_tokens(self) -> bool:
        """Whether her personal tokens work: she is not disabled, and signed in lately."""
        return self.disabled is None and now() < self.tokens_until

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        return cls(
            name=row["id"],
            issuer=row["issuer"],
            subject=row["subject"],
            role=row["role"],
            groups=tuple(json.loads(row["groups"])),
            signed_in=row["signed_in"],
            tokens_until=row["tokens_until"],
            disabled=row["disabled"],
        )


class People:
    """The people of one service, by name."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def sign_in(
        self,
        *,
        issuer: str,
        subject: str,
        name: str,
        groups: Iterable[Group],
        token_days: int,
    ) -> Person:
        """Record a sign-in, and return the person with her rights.

        `groups` are those of her groups that the settings know. Raises `Refusal` if there is none, if the name cannot
        stand in the ledger or belongs to another subject, or if a steward disabled her.
        """
        known = tuple(groups)
        role = strongest_role(known)
        if role is None:
            raise Refusal("forbidden", "Your account is in no group that may use this service. Ask a data steward.")
        require_name(name)
        if not (1 <= len(subject) <= MAX_SUBJECT_LETTERS and subject.isprintable()):
            raise Refusal("forbidden", "The directory states no usable subject. Tell the person who runs the service.")
        until = (moment() + timedelta(days=token_days)).isoformat(timespec="milliseconds")
        rights = {"role": role, "groups": json.dumps(sorted(group.name for group in known))}
        columns = {**rights, "signed_in": now(), "tokens_until": until}
        if not self._records.add(PEOPLE, {"id": name, "issuer": issuer, "subject": subject, **columns}):
            is_free = {"issuer": "", "subject": "", "disabled": None}
            self._records.swap(PEOPLE, name, is_free, issuer=issuer, subject=subject)
            stored = self.find(name)
            if (stored.issuer, stored.subject) != (issuer, subject):
                raise Refusal("conflict", "Another account has signed in under this name. Ask a data steward.")
            if stored.disabled is not None:
                raise Refusal("forbidden", "A data steward has disabled your access. Ask a data steward.")
            self._records.change(PEOPLE, name, **columns)
        return self.find(name)

    def find(self, name: str) -> Person:
        """The person of this name; raises `Refusal` if nobody signed in under it."""
        row = self._records.find(PEOPLE, name)
        if row is None:
            raise Refusal("not-found", "Nobody has signed in under this name. The list of people has them all.")
        return Person.of(row)

    def active(self, name: str) -> Person | None:
        """The person of this name, unless she is unknown or disabled."""
        row = self._records.find(PEOPLE, name)
        return None if row is None or row["disabled"] is not None else Person.of(row)

    def all(self) -> list[Person]:
        """Every person who ever signed in, in the order of their first sign-in."""
        return [Person.of(row) for row in self._records.all(PEOPLE)]

    def disable(self, name: str) -> Person:
        """End her sessions and personal tokens, and refuse her at the next sign-in."""
        if self.find(name).disabled is None:
            self._records.change(PEOPLE, name, disabled=now())
        return self.find(name)

    def enable(self, name: str, *, another_account: bool = False) -> Person:
        """Let a disabled person sign in again; with `another_account` the name belongs to the account of the directory
        that signs in under it next."""
        person = self.find(name)
        if another_account and person.disabled is None:
            raise Refusal(
                "conflict", "The person is not disabled. Disable her first: this ends her sessions and tokens."
            )
        freed = {"issuer": "", "subject": ""} if another_account else {}
        self._records.change(PEOPLE, name, disabled=None, **freed)
        return self.find(name)


def require_name(name: str) -> None:
    """Refuse a name from the directory that a token could not have either."""
    is_plain = name.isprintable() and name == name.strip() and "/" not in name and not name.startswith("(")
    if not (1 <= len(name) <= MAX_NAME_LETTERS and is_plain):
        raise Refusal(
            "forbidden",
            f"The directory states no usable name: 1 to {MAX_NAME_LETTERS} printable letters, no /, no leading (. "
            "Tell the person who runs the service.",
        )
