"""What an analyst sees of others: sums, under one name that no token can have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from wallflower.curator.desk.access.tokens import Caller
from wallflower.curator.settings import Registration
from wallflower.ledger import Account
from wallflower.ledger.account import Share
from wallflower.ledger.limits import Spending
from wallflower.names import account_name

OTHERS: Final = "(others)"


def visible_account(account: Account, caller: Caller, datasets: Sequence[Registration]) -> Account:
    """An account as an analyst may see it: of others only sums, of its members only `datasets`, of records only those
    that may be named."""
    shown = {account_name(dataset.name) or dataset.name for dataset in datasets}
    members = {name: unit for name, unit in account.members.items() if name in shown}
    opened = {record for dataset in datasets for record in dataset.records}
    hidden = (OTHERS,) if set(account.names) - opened else ()
    names = (*(name for name in account.names if name in opened), *hidden)
    spenders = _merge_spenders(account, caller.name)
    shares = _merge_shares(account, caller.name)
    return replace(account, members=members, shares=shares, spenders=spenders, names=names)


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
