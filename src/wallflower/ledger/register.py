"""How the account of a data set is found, and what may be declared, moved, kept and asked on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from wallflower.errors import BudgetExhausted, ParameterError, SameRecords
from wallflower.ledger.account import (
    Account,
    Declaration,
    account_of,
    append_declaration,
    declarations,
    members_of,
    start_of_year,
)
from wallflower.ledger.decision import Quote, make_quote
from wallflower.ledger.fingerprints import Tags, is_seen, matches
from wallflower.ledger.rows import has_terms, is_charged, is_known, is_limited, last_hash, require_bookable
from wallflower.machine.heavy import sqlalchemy as sa
from wallflower.names import require_account_name
from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.units import BASES, UNITS_OF_ROWS, Claim, Protection


class Register:
    """The accounts of one ledger, each found within a transaction of the caller's."""

    def __init__(self) -> None:
        self._added_up: dict[tuple[str, bool], tuple[tuple[str, str], Account]] = {}

    def find(
        self, db: sa.Connection, name: str, adopted: Declaration | None = None, *, asking: bool = False
    ) -> Account:
        """The account of a data set, or of this name; `asking` is a data set that belongs to it.

        The last hash stands for all rows before it, so what was added up under it need not be added up again.
        """
        moment = (last_hash(db), start_of_year())
        known = self._added_up.get((name, asking)) if adopted is None else None
        if known is not None and known[0] == moment:
            return known[1]
        account = self._add_up(db, name, adopted, asking=asking)
        if adopted is None:
            self._added_up[name, asking] = moment, account
        return account

    def _add_up(self, db: sa.Connection, name: str, adopted: Declaration | None, *, asking: bool) -> Account:
        stated = declarations(db) | ({} if adopted is None else {name: adopted})
        place = stated[name].account if name in stated else name
        members = members_of(place, stated)
        if place not in stated and place not in members and (self._is_member(db, place) or (asking and name == place)):
            members[place] = Declaration(dataset=place, account=place)
        return account_of(db, place, members)

    def _is_member(self, db: sa.Connection, name: str) -> bool:
        """Whether there is a data set of this name, though nobody has declared it: it was loaded, or asked."""
        return is_seen(db, name) or is_charged(db, name)

    def quote(
        self,
        db: sa.Connection,
        name: str,
        cost: Loss,
        claim: Claim,
        analyst: str,
        declared: Declaration | None = None,
    ) -> Quote:
        adopted = None if declared is None else self.adopt(db, replace(declared, dataset=name))
        account = self.find(db, name, adopted, asking=True)
        return make_quote(account, name, cost, claim, analyst)

    def adopt(self, db: sa.Connection, declared: Declaration) -> Declaration | None:
        """What a schema says counts for a data set of which nothing is known; from then on it must agree.

        It takes no data set away from an account that others share or that a steward has set terms on. A schema that
        names no unit, and no account but the data set's own, changes nothing.
        """
        name, account = declared.dataset, self.find(db, declared.dataset, asking=True)
        target = account.name if declared.account == name else self.target(db, declared.account)
        if not declared.stated and declared.protection == Protection():
            declared = replace(declared, protection=account.members[name], stated=True)
        bound = has_terms(db, name) or set(account.members) != {name}
        if _is_fresh(db, account, name) and (account.name == target or not bound):
            return replace(declared, account=target)
        if account.members[name] != declared.protection or account.name != target:
            raise ParameterError(
                f"{name}: the schema says that it counts {declared.protection.text} on the account {target}; the "
                f"ledger knows it as {account.members[name].text} on the account {account.name}. What was declared "
                "once holds. Correct the schema, or have the steward declare it again (wallflower budget declare)."
            )
        return None

    def target(self, db: sa.Connection, account: str, *, own: str | None = None) -> str:
        """The account that is meant: where a data set of this name spends from another, that one, but for its `own`."""
        name = require_account_name("account", account)
        known = None if name == own else declarations(db).get(name)
        return known.account if known else name

    def require_one(self, db: sa.Connection, name: str, tags: Tags, account: str | None) -> None:
        """Refuse records that another data set holds, unless both spend from one account or are said to be others."""
        stated = declarations(db)
        own = stated[name].account if name in stated else self.target(db, account or name)
        for match in matches(db, name, tags):
            if not _is_apart(name, match.dataset, stated) and own != self.target(db, match.dataset):
                raise SameRecords(name, other=match.dataset)

    def require_movable(self, db: sa.Connection, made: Declaration, before: Account) -> None:
        """A unit stays once a price was booked in it, and what was spent stays with whom it was spent on."""
        declared = before.members[made.dataset]
        if made.protection != declared and is_charged(db, made.dataset):
            raise ParameterError(
                f"{made.dataset}: it has been asked as one that counts {declared.text}, and prices once booked stay. "
                "A unit is declared once, before the first question. Go on with it."
            )
        spent = is_charged(db, made.dataset)
        if made.account == before.name:
            return
        if not (before.starter or is_limited(db, made.account)):
            raise ParameterError(
                f"{made.dataset}: its account {before.name} has a limit, and {made.account} has none but the starter "
                f"cap. Set the limit of {made.account} first (wallflower budget grant)."
            )
        if spent and set(before.members) != {made.dataset}:
            raise ParameterError(
                f"{made.dataset}: it has spent from the account {before.name}, which others share. What was spent "
                "stays there. Go on with that account, or put the others on another one first."
            )

    def settle_unit(self, db: sa.Connection, name: str, loss: Loss, by: str) -> Protection:
        """The unit a limit is about: a limit that names one declares it, where nothing is known of the data set."""
        account = self.find(db, name)
        declared = account.members.get(name, account.protection)
        if loss.neighbours in (Neighbours.REPLACE_ONE, declared.neighbours):
            return declared
        unit = BASES.get(loss.neighbours)
        if unit in (None, "window") or not _is_fresh(db, account, name):
            raise ParameterError(
                f"{name}: a limit for {loss.neighbours} was given, and its account counts {declared.text}. One "
                "account has one unit. Leave it out, or declare another before the first question (wallflower budget "
                "declare)."
            )
        rows = "people" if unit in UNITS_OF_ROWS["people"] else "time"
        made = Declaration(
            dataset=name,
            account=account.name,
            protection=Protection(rows=rows, unit=unit),  # type: ignore[arg-type]
        )
        append_declaration(db, made, by=by, reason="its first limit says so")
        return made.protection

    def settle_quota(self, db: sa.Connection, name: str, loss: Loss, analyst: str) -> tuple[Account, Loss]:
        """The account, and what is kept of it for an analyst in its own unit; refused where so much is not free."""
        account = self.find(db, name)
        if account.limit.accounting == "either":
            raise ParameterError(
                f"{name}: where either the sum or the squares count, no quota can be kept free. Quotas need one "
                "of them. Set the limit again with accounting sum or concentrated."
            )
        kept = require_bookable(loss).under(account.protection.neighbours)
        is_concentrated = account.limit.accounting == "concentrated"
        if is_concentrated and kept.kind is Kind.PURE:
            kept = Loss.zcdp(account.limit.share_of_rho(kept.epsilon), neighbours=kept.neighbours)
        if (kept.kind is Kind.ZCDP) != is_concentrated:
            raise ParameterError(
                f"{name}: its limit counts {'rho, and delta is shared by all' if is_concentrated else 'epsilon'}. "
                f"State the quota in epsilon{' alone, or in rho' if is_concentrated else ''}."
            )
        others = replace(account, quotas=tuple(quota for quota in account.quotas if quota.analyst != analyst))
        own = next((quota.spent for quota in account.quotas if quota.analyst == analyst), kept.less(kept))
        if not kept.less(own) <= others.free:
            raise BudgetExhausted(
                name,
                asked=kept,
                left=others.free,
                part="quota",
                remedy="Keep less for them, or set a higher limit first (wallflower budget grant).",
            )
        return account, kept


def _is_fresh(db: sa.Connection, account: Account, name: str) -> bool:
    """Whether nothing was declared of a data set or booked on it."""
    return not is_known(db, name) and account.members.get(name) == Protection()


def _is_apart(one: str, other: str, stated: Mapping[str, Declaration]) -> bool:
    """Whether the steward has said that two data sets are about different people."""
    pairs = ((one, other), (other, one))
    return any(name in stated and whom in stated[name].apart for name, whom in pairs)
