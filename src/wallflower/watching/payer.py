"""Who pays for a watch, and whether one that was put down may be taken up again.

An epoch is one charge and the decisions made for it. State and ledger both count how often an epoch was taken up or put
down: the state first, then the ledger, and only then is anything decided. So a state that counts less than the ledger
is an older copy, and later decisions were told already: its epoch is closed. Why a watch may be charged as one step,
whatever is asked while it runs: proof.md of `ledger`, (I).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from wallflower.errors import EpochClosed, KeyConflict, LedgerError, StateError
from wallflower.ledger import Declaration, Ledger
from wallflower.ledger.chain import Entry, canonical
from wallflower.privacy import Chargeable, Loss
from wallflower.units import Claim
from wallflower.watching.state import Epoch, State

_PAGE: Final = 1000  # entries of the ledger read at a time


@dataclass(frozen=True, slots=True)
class Mark:
    """A note in the ledger, at no cost, that an epoch was taken up or put down."""

    label: ClassVar[str] = "outlier-watch-resumed/1"
    epoch: str
    session: int
    paid: Loss

    def cost(self) -> Loss:
        return self.paid.less(self.paid)

    def to_json(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "session": self.session}


@dataclass(frozen=True, slots=True, kw_only=True)
class Payer:
    """Pays in a ledger, and remembers in a state if there is one."""

    query: Chargeable
    claim: Claim
    declared: Declaration | None
    dataset: str
    analyst: str
    ledger: Ledger
    state: State | None

    def opened(
        self, facts: Mapping[str, Any], secret: Callable[[], tuple[int, ...]], *, key: str, renew: bool
    ) -> tuple[Epoch, bool]:
        """An epoch to decide in, and whether it was there before; else it is paid for, and its secret drawn."""
        about = {"dataset": self.dataset, "label": self.query.label, "query": self.query.to_json(), **facts}
        found = self._found(json.loads(canonical(about)), renew)
        if found is not None:
            return self._marked(found), True
        receipt = self.ledger.charge(
            self.dataset, self.query, analyst=self.analyst, key=key, claim=self.claim, declared=self.declared
        )
        if receipt.stored is not None:
            raise KeyConflict(
                f"{self.dataset}: key {key!r} was used before, for the answer about a finished table. A key stands for "
                "one payment. Watch under a new key."
            )
        about |= {"charge": receipt.id, "epoch": self._hash(receipt.id)}
        if self.state is None:
            return Epoch(number=1, about=about, secret=secret()), False
        return self.state.begin(about, secret()), False

    def close(self, epoch: Epoch, *, changed: bool) -> None:
        """Put an epoch down. Without the mark, which needs the ledger, a copy would only be found out later."""
        if self.state is None:
            return
        with suppress(LedgerError):
            if changed:
                self._marked(epoch)
        self.state.close()

    def _marked(self, epoch: Epoch) -> Epoch:
        if self.state is None:
            return epoch
        counted = replace(epoch, session=epoch.session + 1)
        self.state.count_session(counted)
        mark = Mark(epoch.about["epoch"], counted.session, self.query.cost())
        self.ledger.charge(self.dataset, mark, analyst=self.analyst)
        return counted

    def _found(self, asked: Mapping[str, Any], renew: bool) -> Epoch | None:
        try:
            epoch = None if self.state is None else self.state.newest()
            if self.state is not None and epoch is not None:
                self._require_same(epoch, asked)
                self._require_newest(epoch, self.state)
        except EpochClosed:
            if not renew:
                raise
            return None
        return None if epoch is None or (renew and epoch.exhausted) else epoch

    def _require_same(self, epoch: Epoch, asked: Mapping[str, Any]) -> None:
        other = sorted(name for name, value in asked.items() if epoch.about.get(name) != value)
        if other:
            raise StateError(
                f"{self.dataset}: the state was made for another watch; its {', '.join(other)} differ. A state belongs "
                "to one question. Ask the same again, or give this one a state file of its own."
            )

    def _require_newest(self, epoch: Epoch, state: State) -> None:
        if self._hash(epoch.about["charge"]) != epoch.about["epoch"]:
            raise EpochClosed(
                f"{self.dataset}: the state was paid for in another ledger. An epoch goes on where it was paid. Open "
                "that ledger, or start a new epoch, which is paid for (renew=True, --renew)."
            )
        if self._sessions(epoch) > epoch.session:
            raise state.closed("it is an older copy: the ledger knows of later decisions")

    def _hash(self, charge: int) -> str:
        """By which the chain of the ledger knows this charge."""
        found = self.ledger.history(self.dataset, event="charge", before=charge + 1, last=1)
        return found[0].hash if found and found[0].id == charge else ""

    def _sessions(self, epoch: Epoch) -> int:
        """How often the ledger heard that the epoch was taken up or put down."""
        marks = (entry.details for entry in self._since(epoch.about["charge"]) if entry.label == Mark.label)
        return next((int(mark["session"]) for mark in marks if mark["epoch"] == epoch.about["epoch"]), 0)

    def _since(self, charge: int) -> Iterator[Entry]:
        """Charges of the data set after this one, the latest first."""
        before = None
        while page := self.ledger.history(self.dataset, event="charge", before=before, last=_PAGE):
            yield from (entry for entry in reversed(page) if entry.id > charge)
            before = page[0].id
            if before <= charge:
                return
