"""Paying for a watch, resuming one, and which observations a process may look at.

An epoch is one charge and the decisions made for it. A state can be copied, restored and run on two machines, and the
ledger cannot know which copy looked at what. So a process writes a block of observations to the ledger before it looks
at the first of them (`Hold`), together with how far its state had come, and looks at no other observation. A state that
has not come so far is an older copy; one that has come further than all blocks does not belong to this ledger. Either
way its epoch is closed. Observations that an earlier process noted and this state does not know are skipped: they may
have been released.

Why a watch may be charged as one step, whatever is asked while it runs: proof.md of `ledger`, (I) and (B).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from wallflower.errors import EpochClosed, KeyConflict, StateError
from wallflower.ledger import Block, Declaration, Ledger
from wallflower.ledger.chain import canonical
from wallflower.privacy import Chargeable
from wallflower.streams.state import Epoch
from wallflower.units import Claim

OBSERVATIONS_PER_BLOCK: Final = 256  # of this many decided, one is noted ahead: a crash costs no more


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
    check_useful: Callable[[], None]  # refuses, or warns of, what is of no use; asked before the charge alone

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
        self.check_useful()
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


class Notes(Protocol):
    """The part of a ledger that keeps blocks."""

    def reserve(self, asked: Block, *, after: Block) -> Block: ...


class Hold:
    """What one open watch holds of its epoch, from where its state stood when it was opened."""

    def __init__(self, notes: Notes, latest: Block, *, position: int, holder: str) -> None:
        self.block = latest
        self._notes, self._holder, self._begun_at = notes, holder, position
        self._barred = latest.last  # (B) whoever noted these may have looked at them

    def count_barred(self, position: int) -> int:
        """How many observations after this one are not looked at."""
        return max(0, self._barred - position)

    def cover(
        self, position: int, last: int, spent: int, ahead: Callable[[int], int], *, reach: int | None = None
    ) -> bool:
        """Hold all that comes after `position`, which is kept, up to `last`. False where somebody else goes on.

        `ahead` says what so many looks may spend; it is noted with them, and more must not be spent. `reach` bounds how
        far beyond `position` is noted before it is needed.
        """
        if self._is_own and last <= self.block.last and spent + ahead(1) <= self.block.spent:
            return True
        share = (position - self._begun_at) // OBSERVATIONS_PER_BLOCK
        end = max(last, self.block.last, position + (share if reach is None else min(share, reach)))
        looks = end - max(position, self._barred)
        return self._note(settled=position, last=end, spent=spent + ahead(looks))

    def put_down(self, position: int, spent: int) -> None:
        """Give back what was held and not looked at; nothing may be looked at afterwards."""
        if self._is_own:
            self._note(settled=position, last=max(position, self._barred), spent=spent)

    @property
    def _is_own(self) -> bool:
        return self.block.holder == self._holder

    def _note(self, *, settled: int, last: int, spent: int) -> bool:
        said = replace(self.block, settled=settled, last=last, spent=spent, holder=self._holder, hash="")
        while not (self._is_own and self.block.is_as(said)):
            asked = replace(said, number=self.block.number + 1)
            found = self._notes.reserve(asked, after=self.block)
            if found.holder != self._holder:
                return False
            self.block = found  # it may be an earlier note of ours, of which we were told that it failed
        return True


def bounded_spending(latest: Block, *, position: int, number: int, spent: int) -> int:
    """What may have been spent, by a state at this position whose last decisions were made under block `number`.

    A state that has seen the last block to its end has seen all of its decisions; any other may lack some.  (B)
    """
    return spent if (number, position) == (latest.number, latest.last) else max(spent, latest.spent)
