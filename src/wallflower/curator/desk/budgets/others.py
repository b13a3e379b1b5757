"""What an analyst sees of others: sums, under one name that no token can have."""

from __future__ import annotations

from typing import Final

from wallflower.ledger import Account
from wallflower.ledger.account import Share
from wallflower.ledger.limits import Spending

OTHERS: Final = "(others)"


def merge_shares(account: Account, analyst: str) -> tuple[Share, ...]:
    """The analyst's own share, and those of others as one."""
    own = tuple(share for share in account.shares if share.analyst == analyst)
    rest = [share for share in account.shares if share.analyst != analyst]
    if not rest:
        return own
    spent = left = account.left.less(account.left)
    for share in rest:
        spent, left = spent + share.spent, left + share.left
    return (*own, Share(analyst=OTHERS, allocated=spent + left, spent=spent))


def merge_spenders(account: Account, analyst: str) -> dict[str, Spending]:
    """What the analyst has spent, and what others have in all."""
    own = {name: spent for name, spent in account.spenders.items() if name == analyst}
    rest = [spent for name, spent in account.spenders.items() if name != analyst]
    return own | ({OTHERS: sum(rest, start=Spending())} if rest else {})
