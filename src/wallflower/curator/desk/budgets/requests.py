"""Requests for budget: an analyst asks for more and says why, a steward answers, the analyst reads what became of it.

A request promises nothing and stands in no ledger. What is granted does, as every limit and every share.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from typing import Any, Final, Self

from wallflower.curator.desk.access.tokens import Caller
from wallflower.curator.desk.budgets.proposals import Proposal
from wallflower.curator.desk.clock import moment, now
from wallflower.curator.desk.desk import Desk, require_spender
from wallflower.curator.desk.problems import Refusal
from wallflower.curator.desk.records import REQUESTS
from wallflower.errors import ParameterError, PrivacyError
from wallflower.ledger.chain import Entry
from wallflower.privacy import Exact, Loss, exact

LONGEST: Final = 1000  # letters of a reason or of a word
_DAILY: Final = 10  # requests of one analyst
_DAY: Final = timedelta(days=1)
_HAND: Final = timedelta(minutes=1)  # so long a request is in the hand of a steward who does not come to an end


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRequest:
    """What an analyst asked for, and what became of it: `word` and `by` are the steward's, `entry` is the ledger's.

    While it is open, `by` and `decided` say who has taken it in hand, and when.
    """

    id: str
    analyst: str
    dataset: str
    epsilon: str | None
    question: str | None
    reason: str
    state: str
    word: str | None
    by: str | None
    decided: str | None
    entry: str | None
    created: str

    @property
    def is_open(self) -> bool:
        return self.state == "open"

    @property
    def loss(self) -> Loss | None:
        """What they would like to spend."""
        return None if self.epsilon is None else Loss(self.epsilon)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"entry": None if self.entry is None else int(self.entry)}

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        return cls(**{item.name: row[item.name] for item in fields(cls)})


class Requests:
    """The requests of one service, shared by its workers."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def make(
        self, caller: Caller, dataset: str, reason: str, *, epsilon: Exact | None = None, question: str | None = None
    ) -> BudgetRequest:
        """Ask for more. One request for a data set waits at a time, so that nobody can flood a steward."""
        require_spender(caller)
        name = self._desk.find(caller, dataset).name
        words = _require_words("reason", reason)
        wanted = None if epsilon is None else exact(epsilon, "epsilon")
        if wanted is not None and wanted <= 0:
            raise ParameterError(
                "epsilon: it is what you would like to spend, above zero. Correct it, or leave it out."
            )
        kind = None if question is None else self._desk.question(question).kind
        own = [BudgetRequest.of(row) for row in self._desk.records.all(REQUESTS, analyst=caller.name)]
        _require_patience(own, name)
        key = _id(caller, name, sum(one.dataset == name for one in own))
        row = {
            "id": key,
            "analyst": caller.name,
            "dataset": name,
            "epsilon": None if wanted is None else str(wanted),
            "question": kind,
            "reason": words,
            "state": "open",
        }
        if not self._desk.records.add(REQUESTS, row):
            raise _waiting_refusal(name)
        return self.find(caller, key)

    def all(self, caller: Caller, *, dataset: str | None = None) -> list[BudgetRequest]:
        """The caller's requests, the latest first; a steward sees all."""
        whose = {} if caller.reads_all else {"analyst": caller.name}
        where = {} if dataset is None else {"dataset": dataset}
        return [BudgetRequest.of(row) for row in reversed(self._desk.records.all(REQUESTS, **whose, **where))]

    def count_open(self) -> int:
        """How many wait for a steward."""
        return len(self._desk.records.all(REQUESTS, state="open"))

    def find(self, caller: Caller, key: str) -> BudgetRequest:
        """One request, for whoever made it or a steward."""
        row = self._desk.records.find(REQUESTS, key)
        if row is None or not (caller.reads_all or row["analyst"] == caller.name):
            raise Refusal("not-found", "There is no request with this id, or it is not yours.")
        return BudgetRequest.of(row)

    def require_open(self, caller: Caller, key: str) -> BudgetRequest:
        """One that nobody has answered yet, nor is answering."""
        found = self.find(caller, key)
        if not found.is_open:
            raise Refusal("conflict", f"The request was {found.state} already. Nothing was changed.")
        if found.decided is not None and found.decided > _ago(_HAND):
            raise _in_hand_refusal()
        return found

    def grant(
        self, caller: Caller, key: str, change: Callable[[], Entry | Proposal], *, dataset: str, word: str = ""
    ) -> BudgetRequest:
        """Have a limit or a share written for it, and note the entry of the ledger. It is taken in hand before: of two
        stewards at once one changes the budget, and the other nothing. If a second steward has to confirm the limit,
        the request stays open until then."""
        taken = self._take(caller, key, dataset)
        try:
            entry = change()
        except PrivacyError:
            self._desk.records.swap(REQUESTS, key, _state(taken), by=None, decided=None)
            raise
        if isinstance(entry, Proposal):
            self._desk.proposals.link_request(entry.id, key)
            self._desk.records.swap(REQUESTS, key, _state(taken), by=None, decided=None)
            return self.find(caller, key)
        return self._settle(caller, taken, "granted", word=word.strip()[:LONGEST] or None, entry=str(entry.id))

    def settle_proposal(self, caller: Caller, proposal: Proposal, entry: Entry) -> None:
        """Note on the request that a proposal answers, if it is still open, that the limit was written."""
        if proposal.request is None:
            return
        request = self.find(caller, proposal.request)
        if request.is_open:
            self._settle(caller, request, "granted", entry=str(entry.id))

    def decline(self, caller: Caller, key: str, word: str) -> BudgetRequest:
        """Decline it, and say why."""
        return self._settle(caller, self.require_open(caller, key), "declined", word=_require_words("word", word))

    def _take(self, caller: Caller, key: str, dataset: str) -> BudgetRequest:
        found = self.require_open(caller, key)
        if found.dataset != dataset:
            raise Refusal("conflict", f"The request is about {found.dataset}. Nothing was changed. Answer it there.")
        if not self._desk.records.swap(REQUESTS, key, _state(found), by=caller.name, decided=now()):
            raise _in_hand_refusal()
        return self.find(caller, key)

    def _settle(self, caller: Caller, found: BudgetRequest, state: str, **more: Any) -> BudgetRequest:
        changes = {"state": state, "by": caller.name, "decided": now(), **more}
        if not self._desk.records.swap(REQUESTS, found.id, _state(found), **changes):
            raise _in_hand_refusal()
        self._desk.acts.note(f"request {state}", caller, found.id)
        return self.find(caller, found.id)


def _state(found: BudgetRequest) -> dict[str, str | None]:
    """What nobody else may have changed meanwhile."""
    return {"state": found.state, "by": found.by, "decided": found.decided}


def _in_hand_refusal() -> Refusal:
    return Refusal("conflict", "Somebody else answers the request just now. Look at it again.")


def _ago(time: timedelta) -> str:
    return (moment() - time).isoformat(timespec="milliseconds")


def _require_words(name: str, text: str) -> str:
    words = text.strip()
    if not words:
        raise ParameterError(f"{name}: none is given, and whoever reads it wants to know why. Say it in a sentence.")
    if len(words) > LONGEST:
        raise ParameterError(f"{name}: it has more than {LONGEST:,} letters. Say it more briefly.")
    return words


def _require_patience(own: list[BudgetRequest], name: str) -> None:
    if any(one.is_open and one.dataset == name for one in own):
        raise _waiting_refusal(name)
    since = _ago(_DAY)
    if sum(one.created > since for one in own) >= _DAILY:
        raise Refusal("too-many-requests", f"You made {_DAILY} requests within a day, which is the most. Wait a day.")


def _waiting_refusal(name: str) -> Refusal:
    return Refusal(
        "too-many-requests", f"{name}: a request of yours waits for the steward already. One at a time is taken."
    )


def _id(caller: Caller, dataset: str, count: int) -> str:
    """The same id for two requests of one moment, of which one is taken. It is no secret: only its analyst and stewards
    may see a request."""
    return hashlib.sha256(json.dumps([caller.name, dataset, count]).encode("ascii")).hexdigest()[:24]
