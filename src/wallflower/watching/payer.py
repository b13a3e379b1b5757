"""Who pays for a watch, and whether one that was put down may be taken up again.

An epoch is one charge and the decisions made for it. Before a watch looks at observations it notes them in the ledger
(hold.py), and says how far its state had come. So a state that has not come so far is an older copy, and one that
has come further than all notes does not belong to this ledger as it is: either way its epoch is closed. Why a watch may
be charged as one step, whatever is asked while it runs: proof.md of `ledger`, (I) and (B).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from wallflower.errors import EpochClosed, KeyConflict, StateError
from wallflower.ledger import Block, Declaration, Ledger
from wallflower.ledger.chain import canonical
from wallflower.privacy import Chargeable
from wallflower.units import Claim
from wallflower.watching.hold import bounded_spending
from wallflower.watching.state import Epoch


class Memory(Protocol):
    """What remembers epochs: the state of a watch, or the store of a fleet."""

    def newest(self) -> Epoch | None: ...

    def begin(self, about: dict[str, Any], secret: tuple[int, ...]) -> Epoch: ...

    def close_epoch(self, why: str) -> EpochClosed: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEpoch:
    """An epoch to decide in, where it stands in the ledger, and whether it was there before."""

    epoch: Epoch
    block: Block
    resumed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Payer:
    """Pays in a ledger, and remembers in a state if there is one."""

    query: Chargeable
    claim: Claim
    declared: Declaration | None
    dataset: str
    analyst: str
    ledger: Ledger
    state: Memory | None
    heed: Callable[[], None]  # refuses, or warns of, what is of no use; asked before the charge alone

    def open_epoch(
        self,
        facts: Mapping[str, Any],
        secret: Callable[[], tuple[int, ...]],
        is_over: Callable[[int], bool],
        *,
        key: str,
        renew: bool,
    ) -> OpenEpoch:
        """An epoch that was paid for and can go on; else one is paid for, and its secret drawn."""
        about = {"dataset": self.dataset, "label": self.query.label, "query": self.query.to_json(), **facts}
        found = self._find_epoch(json.loads(canonical(about)), is_over, renew)
        return found or self._pay(about, secret, key)

    def _pay(self, about: dict[str, Any], secret: Callable[[], tuple[int, ...]], key: str) -> OpenEpoch:
        self.heed()
        try:
            receipt = self.ledger.charge(
                self.dataset, self.query, analyst=self.analyst, key=key, claim=self.claim, declared=self.declared
            )
        except KeyConflict:
            receipt = None
        if receipt is None or receipt.stored is not None:
            raise KeyConflict(
                f"{self.dataset}: key {key!r} was charged before, and this state has no epoch of that charge. A watch "
                "is resumed by its own state; without one it ends when it is closed. Open that state, or choose a new "
                "key, which is charged."
            ) from None
        epoch = self._hash(receipt.id)
        about |= {"charge": receipt.id, "epoch": epoch}
        made = Epoch(number=1, about=about, secret=secret())
        if self.state is not None:
            made = self.state.begin(about, made.secret)
        return OpenEpoch(epoch=made, block=Block(charge=receipt.id, epoch=epoch, hash=epoch), resumed=False)

    def _find_epoch(self, asked: Mapping[str, Any], is_over: Callable[[int], bool], renew: bool) -> OpenEpoch | None:
        try:
            epoch = None if self.state is None else self.state.newest()
            if self.state is None or epoch is None:
                return None
            self._require_same(epoch, asked)
            block = self._require_newest(epoch, self.state)
        except EpochClosed:
            if not renew:
                raise
            return None
        spent = bounded_spending(block, position=epoch.position, number=epoch.block, spent=epoch.spent)
        epoch = replace(epoch, spent=spent, exhausted=epoch.exhausted or is_over(spent))
        return None if renew and epoch.exhausted else OpenEpoch(epoch=epoch, block=block, resumed=True)

    def _require_same(self, epoch: Epoch, asked: Mapping[str, Any]) -> None:
        other = sorted(name for name, value in asked.items() if epoch.about.get(name) != value)
        if other:
            raise StateError(
                f"{self.dataset}: the state was made for another watch; its {', '.join(other)} differ. A state belongs "
                "to one question. Ask the same again, or give this one a state file of its own."
            )

    def _require_newest(self, epoch: Epoch, state: Memory) -> Block:
        block = self.ledger.latest_block(epoch.about["charge"], epoch.about["epoch"])
        if block is None:
            raise EpochClosed(
                f"{self.dataset}: the state was paid for in another ledger. An epoch goes on where it was paid. Open "
                "that ledger, or start a new epoch, which is paid for (renew=True, --renew)."
            )
        if epoch.exhausted:
            return block
        if epoch.position < block.settled:  # (B) whoever noted this had kept so many decisions
            raise state.close_epoch("it is an older copy: the ledger knows of later decisions")
        if epoch.position > block.last:
            raise state.close_epoch("it is newer than the ledger, which is an older copy")
        return block

    def _hash(self, charge: int) -> str:
        """By which the chain of the ledger knows this charge."""
        found = self.ledger.history(self.dataset, event="charge", before=charge + 1, last=1)
        return found[0].hash if found and found[0].id == charge else ""
