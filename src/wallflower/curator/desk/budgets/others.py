"""What an analyst sees of others: sums, under one name that no token can have."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from wallflower.curator.desk.access.tokens import Caller
from wallflower.curator.desk.datasets.shelf import Shelf
from wallflower.ledger import Account
from wallflower.ledger.account import Share
from wallflower.ledger.limits import Spending
from wallflower.names import account_name

OTHERS: Final = "(others)"


def visible_account(account: Account, caller: Caller, shelf: Shelf) -> Account:
    """An account as the caller may see it: of others only sums, of records only those that may be named."""
    if caller.reads_all:
        return account
    datasets = shelf.registrations()
    members = [one for one in datasets if (account_name(one.name) or one.name) in account.members]
    opened = {record for dataset in members for record in dataset.records}
    hidden = (OTHERS,) if set(account.names) - opened else ()
    names = (*(name for name in account.names if name in opened), *hidden)
    spenders = _merge_spenders(account, caller.name)
    return replace(account, shares=_merge_shares(account, caller.name), spenders=spenders, names=names)


def _merge_shares(account: Account, analyst: str) -> tuple[Share, ...]:
    """The analyst's own share, and those of others as one."""
    own = tuple(share for share in account.shares if share.analyst == analyst)
    rest = [share for share in account.shares if share.analyst != analyst]
    if not rest:
        return own
    spent = left = account.left.less(account.left)
    for share in rest:
        spent, left = spent + share.spent, left + share.left
    return (*own, Share(analyst=OTHERS, allocated=spent + left, spent=spent))


def _merge_spenders(account: Account, analyst: str) -> dict[str, Spending]:
    """What the analyst has spent, and what others have in all."""
    own = {name: spent for name, spent in account.spenders.items() if name == analyst}
    rest = [spent for name, spent in account.spenders.items() if name != analyst]
    return own | ({OTHERS: sum(rest, start=Spending())} if rest else {})
