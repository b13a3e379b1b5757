"""Requests for budget: an analyst asks for more with a reason, a steward answers, the analyst sees the answer.

A request spends and promises nothing, and is not in the ledger. A granted limit or quota is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from typing import Any, Final, Self

from wallflower.errors import ParameterError, PrivacyError
from wallflower.ledger.chain import Entry
from wallflower.privacy import Exact, Loss, exact
from wallflower.service.core.access.tokens import Caller
from wallflower.service.core.clock import moment, now
from wallflower.service.core.facade import Core, require_spender
from wallflower.service.core.problems import Refusal
from wallflower.service.core.proposals import Proposal
from wallflower.service.core.records import REQUESTS

MAX_REASON_LETTERS: Final = 1000
MAX_REQUESTS_PER_DAY: Final = 10  # of one analyst
_DAY: Final = timedelta(days=1)
_CLAIM_TIMEOUT: Final = timedelta(minutes=1)  # after it another steward may answer a request that one began to answer


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRequest:
    """A request and its answer: `word` and `by` are the steward's, `entry` is a number of the ledger.

    While it is open, `by` and `decided` say which steward began to answer it, and when.
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
        """The loss that the analyst would like to spend."""
        return None if self.epsilon is None else Loss(self.epsilon)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"entry": None if self.entry is None else int(self.entry)}

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        return cls(**{item.name: row[item.name] for item in fields(cls)})


class Requests:
    """The requests of one service, shared by its workers."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def make(
        self, caller: Caller, dataset: str, reason: str, *, epsilon: Exact | None = None, question: str | None = None
    ) -> BudgetRequest:
        """Make a request. An analyst has at most one open request for a data set, and a few per day."""
        require_spender(caller)
        name = self._core.find(caller, dataset).name
        text = _require_text("reason", reason)
        amount = None if epsilon is None else exact(epsilon, "epsilon")
        if amount is not None and amount <= 0:
            raise ParameterError("epsilon: must be above zero. Correct it, or omit it.")
        kind = None if question is None else self._core.question(question).kind
        earlier = [BudgetRequest.of(row) for row in self._core.records.all(REQUESTS, analyst=caller.name)]
        _require_rate(earlier, name)
        key = _request_id(caller, name, sum(request.dataset == name for request in earlier))
        row = {
            "id": key,
            "analyst": caller.name,
            "dataset": name,
            "epsilon": None if amount is None else str(amount),
            "question": kind,
            "reason": text,
            "state": "open",
        }
        if not self._core.records.add(REQUESTS, row):
            raise _open_refusal(name)
        return self.find(caller, key)

    def all(self, caller: Caller, *, dataset: str | None = None) -> list[BudgetRequest]:
        """Return the caller's requests, latest first; for a steward or an auditor all of them."""
        conditions = {} if caller.reads_all else {"analyst": caller.name}
        conditions |= {} if dataset is None else {"dataset": dataset}
        return [BudgetRequest.of(row) for row in reversed(self._core.records.all(REQUESTS, **conditions))]

    def count_open(self) -> int:
        """Return the number of open requests."""
        return len(self._core.records.all(REQUESTS, state="open"))

    def find(self, caller: Caller, key: str) -> BudgetRequest:
        """Return a request, for its analyst, a steward or an auditor."""
        row = self._core.records.find(REQUESTS, key)
        if row is None or not (caller.reads_all or row["analyst"] == caller.name):
            raise Refusal("not-found", "There is no request with this id, or it is not yours.")
        return BudgetRequest.of(row)

    def require_open(self, caller: Caller, key: str) -> BudgetRequest:
        """Return a request that nobody has answered or is answering."""
        request = self.find(caller, key)
        if not request.is_open:
            raise Refusal("conflict", f"The request was {request.state} already. Nothing was changed.")
        if request.decided is not None and request.decided > _time_before(_CLAIM_TIMEOUT):
            raise _claimed_refusal()
        return request

    def grant(
        self, caller: Caller, key: str, change: Callable[[], Entry | Proposal], *, dataset: str, word: str = ""
    ) -> BudgetRequest:
        """Write a limit or a quota with `change`, and note the ledger entry on the request.

        The request is claimed first: of two stewards at once only one changes the budget. If a second steward has to
        confirm the limit, the request stays open until then.
        """
        claimed = self._claim(caller, key, dataset)
        try:
            entry = change()
        except PrivacyError:
            self._core.records.swap(REQUESTS, key, _state(claimed), by=None, decided=None)
            raise
        if isinstance(entry, Proposal):
            self._core.proposals.link_request(entry.id, key)
            self._core.records.swap(REQUESTS, key, _state(claimed), by=None, decided=None)
            return self.find(caller, key)
        remark = word.strip()[:MAX_REASON_LETTERS] or None
        return self._settle(caller, claimed, "granted", word=remark, entry=str(entry.id))

    def settle_proposal(self, caller: Caller, proposal: Proposal, entry: Entry) -> None:
        """Note on the open request that a confirmed proposal answers, if any, that the limit was written."""
        if proposal.request is None:
            return
        request = self.find(caller, proposal.request)
        if request.is_open:
            self._settle(caller, request, "granted", entry=str(entry.id))

    def decline(self, caller: Caller, key: str, word: str) -> BudgetRequest:
        """Decline a request, with a reason."""
        return self._settle(caller, self.require_open(caller, key), "declined", word=_require_text("word", word))

    def _claim(self, caller: Caller, key: str, dataset: str) -> BudgetRequest:
        request = self.require_open(caller, key)
        if request.dataset != dataset:
            raise Refusal("conflict", f"The request is about {request.dataset}. Nothing was changed. Answer it there.")
        if not self._core.records.swap(REQUESTS, key, _state(request), by=caller.name, decided=now()):
            raise _claimed_refusal()
        return self.find(caller, key)

    def _settle(self, caller: Caller, request: BudgetRequest, state: str, **columns: Any) -> BudgetRequest:
        changes = {"state": state, "by": caller.name, "decided": now(), **columns}
        if not self._core.records.swap(REQUESTS, request.id, _state(request), **changes):
            raise _claimed_refusal()
        self._core.acts.note(f"request {state}", caller, request.id)
        return self.find(caller, request.id)


def _state(request: BudgetRequest) -> dict[str, str | None]:
    """Return the columns that nobody else may have changed meanwhile."""
    return {"state": request.state, "by": request.by, "decided": request.decided}


def _claimed_refusal() -> Refusal:
    return Refusal("conflict", "Somebody else is answering the request. Look at it again.")


def _open_refusal(name: str) -> Refusal:
    return Refusal("too-many-requests", f"{name}: you have an open request already. Wait for the steward's answer.")


def _time_before(duration: timedelta) -> str:
    return (moment() - duration).isoformat(timespec="milliseconds")


def _require_text(name: str, text: str) -> str:
    stripped = text.strip()
    if not stripped:
        raise ParameterError(f"{name}: it is empty. Give the reason in a sentence.")
    if len(stripped) > MAX_REASON_LETTERS:
        raise ParameterError(f"{name}: it has more than {MAX_REASON_LETTERS:,} letters. Shorten it.")
    return stripped


def _require_rate(earlier: list[BudgetRequest], name: str) -> None:
    if any(request.is_open and request.dataset == name for request in earlier):
        raise _open_refusal(name)
    since = _time_before(_DAY)
    if sum(request.created > since for request in earlier) >= MAX_REQUESTS_PER_DAY:
        raise Refusal(
            "too-many-requests",
            f"You made {MAX_REQUESTS_PER_DAY} requests within a day, which is the maximum. Wait a day.",
        )


def _request_id(caller: Caller, dataset: str, count: int) -> str:
    """Return the same id for two simultaneous requests, of which one is accepted.

    It is not a secret: only its analyst, stewards and auditors may see a request.
    """
    return hashlib.sha256(json.dumps([caller.name, dataset, count]).encode("ascii")).hexdigest()[:24]
