"""Privacy budgets: an append-only ledger of limits, charges and releases, with one account for each data set."""

from __future__ import annotations

from wallflower.ledger.account import Account, Declaration
from wallflower.ledger.blocks import Block
from wallflower.ledger.chain import Entry, Verification
from wallflower.ledger.decision import Quote, Receipt
from wallflower.ledger.ledger import Ledger

__all__ = ["Account", "Block", "Declaration", "Entry", "Ledger", "Quote", "Receipt", "Verification"]
