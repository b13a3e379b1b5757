"""Four eyes: a limit above the ε that the settings name waits until a second steward confirms it.

The second steward is another person. A token can be used by its holder and by each steward who issued it, or the token
it was issued with: they have seen its text. So the possible users of the two tokens must have nobody in common. Nothing
is written to the ledger before the confirmation, and a proposal that waits too long expires.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final, Literal, Self

from wallflower.errors import PrivacyError
from wallflower.ledger import Ledger
from wallflower.ledger.chain import Entry
from wallflower.ledger.limits import Limit
from wallflower.privacy import Exact, Loss, exact
from wallflower.service.core.access.tokens import Caller, Tokens, new_id
from wallflower.service.core.clock import moment, now
from wallflower.service.core.problems import Refusal
from wallflower.service.core.records import PROPOSALS, Records
from wallflower.service.settings import Settings

Kind = Literal["limit", "allowance", "naming"]
MAX_WAITING_PROPOSALS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A change of a budget that one steward wants and another has to confirm."""

    id: str
    dataset: str
    kind: Kind
    terms: Mapping[str, Any]
    by: str
    token: str
    request: str | None
    state: str
    created: str
    expires: str
    decided_by: str | None = None
    decided: str | None = None
    entry: int | None = None

    @property
    def waits(self) -> bool:
        """Whether it can still be confirmed."""
        return self.state == "waiting" and now() < self.expires

    @property
    def epsilon(self) -> str:
        """The ε that it states, exactly."""
        return str(self.terms["epsilon"])

    @property
    def reason(self) -> str:
        if self.kind == "naming":
            names = f"up to {self.terms['most']:,} names by the detector of entry {self.terms['detector']}"
            names += ", which may be row numbers" if self.terms["by_row"] else ""
            return f"{self.terms['reason']} ({names})"
        return str(self.terms["reason"])

    def to_json(self) -> dict[str, Any]:
        names = ("id", "dataset", "kind", "by", "created", "expires", "decided_by", "decided", "entry", "epsilon")
        state = "expired" if self.state == "waiting" and not self.waits else self.state
        return {**{name: getattr(self, name) for name in names}, "state": state, "reason": self.reason}

    @classmethod
    def of(cls, row: Mapping[str, Any], hours: float) -> Self:
        body = json.loads(row["body"])
        expires = moment().fromisoformat(row["created"]) + timedelta(hours=hours)
        return cls(
            id=row["id"],
            dataset=row["dataset"],
            kind=body["kind"],
            terms=body["terms"],
            by=row["by"],
            token=row["token"] or "",
            request=row["request"],
            state=row["state"],
            created=row["created"],
            expires=expires.isoformat(timespec="milliseconds"),
            decided_by=row["decided_by"],
            decided=row["decided"],
            entry=None if row["entry"] is None else int(row["entry"]),
        )


class Proposals:
    """The changes of one service that wait for a second steward, and those that were decided."""

    def __init__(self, settings: Settings, records: Records, ledger: Ledger, tokens: Tokens) -> None:
        self._settings, self._records, self._ledger, self._tokens = settings, records, ledger, tokens

    def needs_second_steward(
        self, name: str, limit: Limit, *, pace: Exact | None = None, expires: date | None = None
    ) -> bool:
        """Whether a limit is above the ε of the settings, and allows something that the present one does not: more ε or
        δ, more ε a year, or queries after its last day."""
        if self._settings.four_eyes_above is None:
            return False
        present = self._ledger.account(name)
        allows_more = (
            limit.epsilon > present.limit.epsilon
            or limit.delta > present.limit.delta
            or (present.pace is not None and (pace is None or exact(pace, "pace") > present.pace))
            or (present.expires is not None and (expires is None or expires.isoformat() > present.expires))
        )
        return allows_more and limit.epsilon > exact(self._settings.four_eyes_above, "four_eyes_above")

    def needs_second_steward_for(self, epsilon: Exact) -> bool:
        """Whether output-constrained answers up to an ε need a second steward."""
        above = self._settings.four_eyes_above
        return above is not None and exact(epsilon, "epsilon") > exact(above, "four_eyes_above")

    def propose_limit(self, caller: Caller, name: str, loss: Loss, limit: Limit, terms: Mapping[str, Any]) -> Proposal:
        """Note a limit that a second steward has to confirm."""
        stated = {key: _plain(value) for key, value in terms.items()}
        return self._add(caller, name, "limit", {**stated, "loss": loss.to_json(), "epsilon": str(limit.epsilon)})

    def propose_allowance(self, caller: Caller, name: str, epsilon: Exact, reason: str) -> Proposal:
        """Note an allowance of output-constrained answers that a second steward has to confirm."""
        return self._add(caller, name, "allowance", {"epsilon": str(exact(epsilon, "epsilon")), "reason": reason})

    def propose_naming(self, caller: Caller, name: str, terms: Mapping[str, Any], reason: str) -> Proposal:
        """Note an allowance of names that a second steward has to confirm; it states no ε."""
        return self._add(caller, name, "naming", {**terms, "epsilon": "0", "reason": reason})

    def all(self) -> list[Proposal]:
        """Every proposal, the latest first."""
        rows = self._records.all(PROPOSALS)
        return [Proposal.of(row, self._settings.four_eyes_hours) for row in reversed(rows)]

    def find(self, key: str) -> Proposal:
        """The proposal with this id."""
        row = self._records.find(PROPOSALS, key)
        if row is None:
            raise Refusal("not-found", "There is no proposal with this id. The list of proposals has them all.")
        return Proposal.of(row, self._settings.four_eyes_hours)

    def link_request(self, key: str, request: str) -> None:
        """Note the request of an analyst that a proposal answers."""
        self._records.change(PROPOSALS, key, request=request)

    def confirm(self, caller: Caller, key: str) -> tuple[Proposal, Entry]:
        """Write the proposed change into the ledger. Of two stewards at once one does."""
        proposal = self._require_waiting(key)
        self._require_second_person(caller, proposal)
        changes = {"decided_by": caller.name, "decided": now()}
        if not self._records.swap(PROPOSALS, key, {"state": "waiting"}, state="confirmed", **changes):
            raise _decided()
        try:
            entry = self._write(proposal, caller)
        except PrivacyError:
            before = {"state": "confirmed", "decided_by": caller.name}
            self._records.swap(PROPOSALS, key, before, state="waiting", decided_by=None, decided=None)
            raise
        self._records.change(PROPOSALS, key, entry=str(entry.id))
        return self.find(key), entry

    def decline(self, caller: Caller, key: str) -> Proposal:
        """Refuse a proposal, or take one's own back."""
        self._require_waiting(key)
        changes = {"state": "declined", "decided_by": caller.name, "decided": now()}
        if not self._records.swap(PROPOSALS, key, {"state": "waiting"}, **changes):
            raise _decided()
        return self.find(key)

    def _write(self, proposal: Proposal, caller: Caller) -> Entry:
        terms = proposal.terms
        reason = f"{proposal.reason} (confirmed by {caller.name})"
        if proposal.kind == "allowance":
            return self._ledger.allow_constrained(proposal.dataset, terms["epsilon"], by=proposal.by, reason=reason)
        if proposal.kind == "naming":
            stated = {"detector": terms["detector"], "most": terms["most"], "by_row": terms["by_row"]}
            return self._ledger.allow_naming(proposal.dataset, **stated, by=proposal.by, reason=reason)
        expires = None if terms["expires"] is None else date.fromisoformat(terms["expires"])
        return self._ledger.grant(
            proposal.dataset,
            Loss.from_json(terms["loss"]),
            by=proposal.by,
            reason=reason,
            accounting=terms["accounting"],
            convert=terms["convert"],
            pace=terms["pace"],
            expires=expires,
        )

    def _add(self, caller: Caller, name: str, kind: Kind, terms: Mapping[str, Any]) -> Proposal:
        if sum(proposal.waits for proposal in self.all()) >= MAX_WAITING_PROPOSALS:
            raise Refusal("conflict", "Too many proposals wait already. Decide some of them first.")
        key = new_id()
        body = json.dumps({"kind": kind, "terms": terms})
        row = {"id": key, "dataset": name, "body": body, "by": caller.name, "token": caller.token, "state": "waiting"}
        self._records.add(PROPOSALS, row)
        return self.find(key)

    def _require_waiting(self, key: str) -> Proposal:
        proposal = self.find(key)
        if proposal.state != "waiting":
            raise _decided()
        if not proposal.waits:
            raise Refusal("conflict", "The proposal has expired. Nothing was changed. Propose it again.")
        return proposal

    def _require_second_person(self, caller: Caller, proposal: Proposal) -> None:
        if caller.name == proposal.by:
            raise Refusal("forbidden", "You proposed this yourself. Another steward has to confirm it.")
        proposers = self._possible_users(proposal.by, proposal.token)
        if proposers & self._possible_users(caller.name, "" if caller.is_person else caller.token):
            raise Refusal(
                "forbidden",
                "One steward issued your token or the one that proposed this, directly or by way of another token, and "
                "has seen its text. Sign in with the account of your office, or use a token that was made at the "
                "command line.",
            )

    def _possible_users(self, name: str, token: str) -> set[str]:
        """The stewards who may have used a token: its holder, its issuer, and the possible users of the issuer's
        tokens. Nobody but the holder has seen a personal token; without a token it was the session of a person."""
        rights = self._tokens.rights()
        issuers = {
            key: use.by
            for key, use in self._tokens.uses().items()
            if use.by is not None and not (key in rights and rights[key].person is not None)
        }
        issuers_by_name: dict[str, set[str]] = {}
        for known in self._tokens.all():
            if known.id in issuers:
                issuers_by_name.setdefault(known.name, set()).add(issuers[known.id])
        users, unvisited = {name}, {issuers[token]} if token in issuers else set()
        while unvisited:
            issuer = unvisited.pop()
            users.add(issuer)
            unvisited |= issuers_by_name.get(issuer, set()) - users
        return users


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    return value.isoformat() if isinstance(value, date) else str(value)


def _decided() -> Refusal:
    return Refusal("conflict", "The proposal was decided already. Nothing was changed.")
