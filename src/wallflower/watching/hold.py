"""Which observations this process may look at: those it noted in the ledger, and nobody before it.

A state can be copied, restored and run on two machines; the ledger cannot know which copy looked at what. So a process
notes a block of observations before it looks at the first of them, and looks at no other. What an earlier process has
noted and this state does not know of is passed over: it may have been told. Proof: proof.md of `ledger`, (B).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from wallflower.ledger.blocks import Block

SHARE: Final = 256  # of so many that were decided, one is noted ahead: that many rows, and a crash costs no more


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
        share = (position - self._begun_at) // SHARE
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
