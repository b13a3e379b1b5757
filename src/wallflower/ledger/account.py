"""An account: its members, limit, spending and quotas, added up from the rows, and what stands in the way of a price.

An account is computed from the rows, exactly, and never stored. It belongs to one data set, or to several about the
same people: each declares its unit of protection, and all spend from one limit: proof.md, label (G).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from fractions import Fraction
from html import escape
from typing import Any, Final

from wallflower.drawing import cards
from wallflower.errors import LedgerError
from wallflower.ledger.chain import Entry, canonical
from wallflower.ledger.limits import STARTER, Limit, Spending
from wallflower.ledger.rows import (
    append,
    entries,
    find_bookings,
    find_bookings_since,
    find_constrained,
    find_decisions,
    find_declarations,
    find_naming_decisions,
    find_namings,
    find_public,
    latest_time,
)
from wallflower.machine.heavy import sqlalchemy as sa
from wallflower.names import account_name
from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.text import decimal
from wallflower.units import Naming, Price, Protection

_ROOT_GRID: Final = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What is known of one data set.

    dataset     its name
    account     which account it spends from
    protection  whose loss it counts there
    apart       data sets that the steward says are about other people
    stated      somebody has said so, rather than nobody anything else
    """

    dataset: str
    account: str
    protection: Protection = field(default_factory=Protection)
    apart: tuple[str, ...] = ()
    stated: bool = False

    @classmethod
    def of(cls, entry: Entry) -> Declaration:
        details = entry.details
        return cls(
            dataset=entry.dataset,
            account=details["account"],
            protection=Protection.from_json(details["protects"]),
            apart=tuple(details.get("apart", ())),
            stated=True,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """The part of a limit that is kept for one analyst; `spent` counts from the first time a quota was set."""

    analyst: str
    limit: Loss
    spent: Loss

    @property
    def left(self) -> Loss:
        return self.limit.less(self.spent)

    def under(self, neighbours: Neighbours) -> Quota:
        """The same quota, in the unit that the account counts today."""
        return replace(self, limit=self.limit.under(neighbours), spent=self.spent.under(neighbours))

    def to_json(self) -> dict[str, Any]:
        losses = {"limit": self.limit.to_json(), "spent": self.spent.to_json(), "left": self.left.to_json()}
        return {"analyst": self.analyst, **losses}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Quota:
        kept, spent = Loss.from_json(stored["limit"]), Loss.from_json(stored["spent"])
        return cls(analyst=stored["analyst"], limit=kept, spent=spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Output-constrained answers, which no sum covers: what is allowed, what was spent, and since which entry.  (O)"""

    allowed: Fraction = Fraction()
    spent: Fraction = Fraction()
    since: int | None = None

    @property
    def left(self) -> Fraction:
        return max(self.allowed - self.spent, Fraction())

    def to_json(self) -> dict[str, Any]:
        return {"allowed": str(self.allowed), "spent": str(self.spent), "since": self.since}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Fence:
        return cls(allowed=Fraction(stored["allowed"]), spent=Fraction(stored["spent"]), since=stored["since"])


@dataclass(frozen=True, slots=True, kw_only=True)
class NamingAllowance:
    """How many names a steward allows of one data set, in the order of one detector.

    dataset    the data set whose records may be named
    detector   the ledger entry of the detector, which decides by its columns who can lose protection
    most       names in all lists together
    requested  names that lists have requested, however many came out
    by_row     the steward says that rows keep their numbers, so a list may name these
    """

    dataset: str
    detector: int
    most: int
    requested: int = 0
    by_row: bool = False

    @property
    def left(self) -> int:
        return max(self.most - self.requested, 0)

    def to_json(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamingRecord:
    """What stewards allow of answers that name records, and since which entry answers do so.  (N)"""

    allowances: tuple[NamingAllowance, ...] = ()
    since: int | None = None

    def find(self, dataset: str, detector: int) -> NamingAllowance | None:
        """Return the allowance of a data set and a detector, if there is one."""
        matches = (known for known in self.allowances if (known.dataset, known.detector) == (dataset, detector))
        return next(matches, None)

    def request(self, dataset: str, naming: Naming) -> NamingRecord:
        """What it would be if one more list had been requested, without the number of its entry."""
        place = dataset, naming.detector
        allowances = tuple(
            replace(known, requested=known.requested + naming.most)
            if (known.dataset, known.detector) == place
            else known
            for known in self.allowances
        )
        return replace(self, allowances=allowances)

    def to_json(self) -> dict[str, Any]:
        return {"allowances": [allowance.to_json() for allowance in self.allowances], "since": self.since}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> NamingRecord:
        allowances = tuple(NamingAllowance(**allowance) for allowance in stored["allowances"])
        return cls(allowances=allowances, since=stored["since"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Why a question is not answered: which part is short, in words, and what would be allowed."""

    part: str
    text: str
    left: Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One account: who spends from it, what it may spend, and what was spent.

    name       its name
    members    the data sets that spend from it, and whose loss each counts
    limit      what it may spend in all, and how that is counted
    spent      what was spent
    starter    nobody has granted anything yet, and the starter cap applies
    quotas     what is kept for single analysts
    fence      the allowance of output-constrained answers
    naming     the allowances of answers that name records, and since when there are such answers
    names      records that a question named, which the limit does not cover
    public     by data set, columns whose cells an answer took for public: a change of these is not covered
    spenders   what each analyst has spent
    expires    the last day of the limit
    as_of      the day of the ledger's latest row: no earlier than that is it now
    pace       an epsilon that may be spent a year
    this_year  what was spent since the year began
    """

    name: str
    members: Mapping[str, Protection]
    limit: Limit
    spent: Spending
    starter: bool
    quotas: tuple[Quota, ...] = ()
    fence: Fence = Fence()
    naming: NamingRecord = NamingRecord()
    names: tuple[str, ...] = ()
    public: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spenders: Mapping[str, Spending]
    expires: str | None = None
    as_of: str = field(default="", compare=False)
    pace: Fraction | None = None
    this_year: Spending = field(default_factory=Spending)

    def __post_init__(self) -> None:
        counted = tuple(quota.under(self.protection.neighbours) for quota in self.quotas)
        object.__setattr__(self, "quotas", counted)

    @property
    def protection(self) -> Protection:
        """Whose loss is counted, where all members agree; else that of the first."""
        return next(iter(self.members.values()))

    @property
    def left(self) -> Loss:
        """The largest loss that still fits, one question more and nothing else."""
        return self._room_under(self.limit, self.spent)

    @property
    def free(self) -> Loss:
        """What is neither spent nor kept for somebody."""
        free = self.left
        for quota in self.quotas:
            free = free.less(quota.left)
        return free

    @property
    def used(self) -> dict[str, float]:
        """The share of each part of the limit that is used: a moment chosen by answers has no better theorem."""
        limit, spent = self.limit, self.spent
        parts = {"epsilon": (spent.epsilon, limit.epsilon), "rho": (spent.rho, limit.rho)}
        shown = {"sum": ("epsilon",), "concentrated": ("rho",), "either": ("epsilon", "rho")}[limit.accounting]
        if spent.unsquared and limit.accounting == "either":
            shown = ("epsilon",)  # (N)
        found = {name: _share(*parts[name]) for name in shown}
        return found | ({"delta": _share(spent.delta, limit.delta)} if limit.delta or spent.delta else {})

    def left_for(self, analyst: str) -> Loss:
        """What this analyst may spend: their quota if they have one, else what is free."""
        own = next((quota.left for quota in self.quotas if quota.analyst == analyst), None)
        return self.free if own is None else _smaller(own, self.left)

    def shut(self, left: Loss) -> Obstacle | None:
        """Why nothing at all is answered; None: something may be."""
        if self.is_expired:
            return Obstacle(part="expiry", text=f"its budget expired on {self.expires}", left=left)
        return None

    @property
    def is_expired(self) -> bool:
        """Whether its last day is over, by the clock or by the latest row: a clock that was set back opens nothing."""
        return self.expires is not None and max(datetime.now(UTC).date().isoformat(), self.as_of) > self.expires

    def obstacle(self, price: Price, analyst: str) -> Obstacle | None:
        """What stands in the way of one more such price; None: nothing. What costs nothing tells nothing."""
        if not any(price.loss):
            return None
        left = self.left_for(analyst)
        shut = self.shut(left)
        if shut is not None:
            return shut
        short = self.limit.shortage(self.spent, price)
        if short is not None:
            return Obstacle(part=short, text=_SHORT[short], left=left)
        if self.pace is not None and self._yearly().shortage(self.this_year, price) is not None:
            words = f"at most ε = {decimal(self.pace)} may be spent a year, and this year's part is short"
            return Obstacle(part="pace", text=words, left=left)
        if self.quotas and not self._fits_quota(price, left):
            own = any(quota.analyst == analyst for quota in self.quotas)
            words = "your own quota is short" if own else "the rest is kept for other analysts"
            return Obstacle(part="quota", text=words, left=left)
        return None

    def after(self, price: Price, analyst: str) -> Account:
        """Where it would stand if this analyst had paid this price too."""
        more = Spending().plus(price)
        quotas = tuple(
            replace(quota, spent=quota.spent + _as_loss(more, quota.limit, self)) if quota.analyst == analyst else quota
            for quota in self.quotas
        )
        spenders = {**self.spenders, analyst: self.spenders.get(analyst, Spending()).plus(price)}
        spent, this_year = self.spent.plus(price), self.this_year.plus(price)
        return replace(self, spent=spent, this_year=this_year, quotas=quotas, spenders=spenders)

    def affords(self, price: Price, analyst: str) -> int:
        """How many more such questions this analyst could ask, one after another."""
        if self.obstacle(price, analyst) is not None:
            return 0
        most = self.limit.affords(self.spent, price)
        if self.pace is not None:
            most = min(most, self._yearly().affords(self.this_year, price))
        if self.quotas:
            parts = self._parts_of_quota(price, self.left_for(analyst))
            most = min([most, *(int(have // need) for have, need in parts if need)])
        return most

    @property
    def text(self) -> str:
        """Where the account stands, for reading."""
        spent = {"sum": "epsilon", "concentrated": "rho", "either": "epsilon or of its squares"}[self.limit.accounting]
        share = min(self.used.get("epsilon", 1.0), self.used.get("rho", 1.0))
        return f"{share:.0%} of {self.limit.loss} is spent ({spent}); {self.left} is left"

    def protects(self, dataset: str | None = None) -> str:
        """Whom the account protects in one of its data sets, in words; default: in all of them."""
        unit = self.members.get(dataset or "", self.protection)
        apart = self.public.values() if dataset is None else [self.public.get(dataset, ())]
        return unit.text_but(sorted({column for columns in apart for column in columns}), named=self.naming.since)

    def to_json(self, dataset: str | None = None) -> dict[str, Any]:
        """Where the account stands, exactly, as plain JSON: with the unit of one of its data sets."""
        unit = self.members.get(dataset or "", self.protection)
        declared = unit.to_json()
        terms = {name: text for name, text in self.limit.to_json().items() if name != "accounting"}
        return {
            "account": self.name,
            **declared,
            "protects": self.protects(dataset),
            "members": {name: made.to_json() for name, made in self.members.items()},
            "accounting": self.limit.accounting,
            "limit": terms,
            "spent": self.spent.to_json(),
            "left": parts_of(self.left),
            "free": parts_of(self.free),
            "used": self.used,
            "starter": self.starter,
            "expires": self.expires,
            "pace": None if self.pace is None else str(self.pace),
            "this_year": self.this_year.to_json(),
            "quotas": [quota.to_json() for quota in self.quotas],
            "spenders": {analyst: spent.to_json() for analyst, spent in self.spenders.items()},
            "constrained": self.fence.to_json(),
            "naming": self.naming.to_json(),
            "names": list(self.names),
            "public": {name: list(columns) for name, columns in self.public.items()},
        }

    def lines(self) -> list[tuple[str, str]]:
        """Where the account stands, in words: what each line is about, and what it says."""
        rule = f"{self.limit.loss}, {self.limit.accounting}" + (f", until {self.expires}" if self.expires else "")
        starter = [("Granted", "nothing yet: the starter cap applies")] if self.starter else []
        kept = [(f"Kept for {quota.analyst}", f"{quota.left} of {quota.limit}") for quota in self.quotas]
        return [
            ("Left", f"{self.left} of {self.limit.loss}"),
            ("Limit", rule),
            *starter,
            *kept,
            ("Data sets", ", ".join(self.members) or "none yet"),
            ("Bounded", f"the loss of {self.protects()}"),
            *([] if self.protection.booking_text is None else [("Booked", self.protection.booking_text)]),
        ]

    def __str__(self) -> str:
        return "\n".join([f"Account {self.name}", *(f"  {name.lower()}: {words}" for name, words in self.lines())])

    def _repr_html_(self) -> str:
        title = f'<p class="question">Account {escape(self.name)}</p>'
        return cards.frame("budget", title + cards.tell(self.lines()))

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Account:
        """The account that `to_json` described."""
        return cls(
            name=stored["account"],
            members={name: Protection.from_json(made) for name, made in stored["members"].items()},
            limit=Limit.from_json({**stored["limit"], "accounting": stored["accounting"]}),
            spent=Spending.from_json(stored["spent"]),
            starter=stored["starter"],
            quotas=tuple(map(Quota.from_json, stored["quotas"])),
            fence=Fence.from_json(stored["constrained"]),
            naming=NamingRecord.from_json(stored["naming"]),
            names=tuple(stored["names"]),
            public={name: tuple(columns) for name, columns in stored.get("public", {}).items()},
            spenders={analyst: Spending.from_json(spent) for analyst, spent in stored["spenders"].items()},
            expires=stored["expires"],
            pace=None if stored["pace"] is None else Fraction(stored["pace"]),
            this_year=Spending.from_json(stored["this_year"]),
        )

    def _yearly(self) -> Limit:
        """A pace is a share of the limit, by the limit's own rule: a brake, not a promise."""
        return self.limit.scale((self.pace or Fraction()) / self.limit.epsilon if self.limit.epsilon else Fraction())

    def _fits_quota(self, price: Price, left: Loss) -> bool:
        return all(need <= have for have, need in self._parts_of_quota(price, left))

    def _parts_of_quota(self, price: Price, left: Loss) -> list[tuple[Fraction, Fraction]]:
        """What a quota has of each part, and what the price takes of it; a quota in ρ leaves delta to the limit."""
        if self.limit.accounting == "concentrated":
            return [(left.amount, price.rho or Fraction())]
        return [(left.amount, price.epsilon or Fraction()), (left.delta, price.delta)]

    def _room_under(self, limit: Limit, spent: Spending) -> Loss:
        neighbours = self.protection.neighbours
        squares = Fraction() if spent.unsquared else max(limit.rho - spent.rho, Fraction())
        if limit.accounting == "concentrated":
            return Loss.zcdp(squares, neighbours=neighbours)
        plain = max(limit.epsilon - spent.epsilon, Fraction()) if not spent.unsummed else Fraction()
        if limit.accounting == "either":
            plain = max(plain, _root_down(2 * squares))
        return Loss(plain, delta=max(limit.delta - spent.delta, Fraction()), neighbours=neighbours)


_SHORT: Final[Mapping[str, str]] = {
    "epsilon": "epsilon is short",
    "delta": "delta is short: the part of it that questions may spend",
    "rho": "the sum of squares is short",
    "squares": "answers that name records have no loss in squares, and this budget adds up squares alone",
}


def parts_of(loss: Loss) -> dict[str, str]:
    """The parts of a loss by their names."""
    if loss.kind is Kind.ZCDP:
        return {"rho": str(loss.rho)}
    return {"epsilon": str(loss.amount), "delta": str(loss.delta)}


def _share(spent: Fraction, limit: Fraction) -> float:
    return float(spent / limit) if limit else (1.0 if spent else 0.0)


def _smaller(one: Loss, other: Loss) -> Loss:
    amount, delta = min(one.amount, other.amount), min(one.delta, other.delta)
    return Loss(amount, delta=delta, kind=one.kind, neighbours=one.neighbours)


def _root_down(square: Fraction) -> Fraction:
    return Fraction(math.isqrt(math.floor(square * _ROOT_GRID**2)), _ROOT_GRID)


def protection_of(account: Account, dataset: str) -> Protection:
    """Whose loss is counted in one member of an account."""
    return account.members.get(account_name(dataset) or dataset, account.protection)


# Adding an account up from its rows


def declarations(db: sa.Connection) -> dict[str, Declaration]:
    """What stewards and schemas have said of data sets, the latest word on each."""
    rows = db.execute(find_declarations()).mappings()
    return {made.dataset: made for made in (Declaration.of(Entry(**row)) for row in rows)}


def members_of(account: str, stated: Mapping[str, Declaration]) -> dict[str, Declaration]:
    """The data sets that spend from an account; where none says so, the one of its name."""
    found = {name: made for name, made in sorted(stated.items()) if made.account == account}
    return found or {account: Declaration(dataset=account, account=account)}


def account_of(db: sa.Connection, name: str, members: Mapping[str, Declaration]) -> Account:
    """Where an account stands, by the rows that were booked on it."""
    names, decided = list(members), _decisions(db, name)
    limited = next((entry for entry in reversed(decided) if entry.event == "limit"), None)
    terms = {} if limited is None else limited.details
    spenders = _by_analyst(db.execute(find_bookings(), {"members": names}).all())
    pace = None if terms.get("pace") is None else Fraction(terms["pace"])
    account = Account(
        name=name,
        members={dataset: made.protection for dataset, made in members.items()},
        limit=STARTER if limited is None else Limit.from_json(terms["limit"]),
        spent=_total(spenders.values()),
        starter=limited is None,
        fence=_fence(db, names, [entry for entry in decided if entry.event == "allowance"]),
        naming=_naming(db, names),
        spenders=spenders,
        expires=terms.get("expires"),
        as_of=latest_time(db)[:10],
        public=_public_columns(db, names),
        pace=pace,
        this_year=Spending() if pace is None else _sum_bookings(db, find_bookings_since(start_of_year()), names),
    )
    quotas = [entry for entry in decided if entry.event == "quota"]
    return replace(account, quotas=tuple(_quotas(db, account, names, quotas))) if quotas else account


def _decisions(db: sa.Connection, account: str) -> list[Entry]:
    """What stewards decided of an account: limits, quotas, allowances, the oldest first."""
    return [Entry(**row) for row in db.execute(find_decisions(), {"account": account}).mappings()]


def start_of_year() -> str:
    """What every time of this year comes after, as text."""
    return f"{datetime.now(UTC).year}"


def _by_analyst(rows: Iterable[Any]) -> dict[str, Spending]:
    found: dict[str, Spending] = {}
    for row in rows:
        found[row.analyst] = found.get(row.analyst, Spending()).plus(_price(row), row.times)
    return dict(sorted(found.items()))


def _price(row: Any) -> Price:
    try:
        return Price(
            factor=Fraction(1),
            epsilon=None if row.epsilon is None else Fraction(row.epsilon),
            delta=Fraction(row.booked_delta),
            rho=None if row.rho is None else Fraction(row.rho),
        )
    except (TypeError, ValueError, ZeroDivisionError):
        raise LedgerError(
            "a charge holds an amount that is not a number. Entries are written once and exactly. Find it with "
            "`wallflower ledger verify`, then restore a backup."
        ) from None


def _sum_bookings(db: sa.Connection, booked: sa.Select[Any], names: Sequence[str]) -> Spending:
    return _total(_by_analyst(db.execute(booked, {"members": names}).all()).values())


def _total(parts: Iterable[Spending]) -> Spending:
    return sum(parts, start=Spending())


def _fence(db: sa.Connection, names: Sequence[str], allowed: Sequence[Entry]) -> Fence:
    """What a member was answered on an account of its own ends the bound of the one it joined, too."""
    charged = db.execute(find_constrained(), {"members": names}).all()
    return Fence(
        allowed=Fraction((allowed[-1].amount if allowed else None) or "0"),
        spent=sum((row.times * Fraction(row.amount) for row in charged), start=Fraction()),
        since=min((row.first for row in charged), default=None),
    )


def _naming(db: sa.Connection, names: Sequence[str]) -> NamingRecord:
    """Add up what was allowed of each data set and detector, and requested: the latest decision on each counts."""
    requested: dict[tuple[str, int], int] = {}
    charges = db.execute(find_namings(), {"members": names}).all()
    for row in charges:
        stated = json.loads(row.claim)["naming"]
        place = row.dataset, stated["detector"]
        requested[place] = requested.get(place, 0) + stated["most"]
    decided = {}
    for entry in (Entry(**row) for row in db.execute(find_naming_decisions(), {"members": names}).mappings()):
        terms = entry.details
        decided[entry.dataset, terms["detector"]] = NamingAllowance(
            dataset=entry.dataset,
            detector=terms["detector"],
            most=terms["most"],
            requested=requested.get((entry.dataset, terms["detector"]), 0),
            by_row=terms["by_row"],
        )
    return NamingRecord(
        allowances=tuple(decided[place] for place in sorted(decided)),
        since=min((row.id for row in charges), default=None),
    )


def named_records(db: sa.Connection, names: Sequence[str]) -> tuple[str, ...]:
    """The records that questions named, which no limit covers."""
    entry = entries().c
    found = sa.select(entry.names).where(entry.dataset.in_(names), entry.names.is_not(None))
    return tuple(sorted(db.scalars(found.distinct())))


def _public_columns(db: sa.Connection, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """By data set, columns whose cells an answer took for public: since then no limit covers a change of these.  (P)"""
    found: dict[str, set[str]] = {}
    for row in db.execute(find_public(), {"members": names}):
        found.setdefault(row.dataset, set()).update(json.loads(row.unit)["public"])
    return {dataset: tuple(sorted(columns)) for dataset, columns in sorted(found.items())}


def _quotas(db: sa.Connection, account: Account, names: Sequence[str], decided: Sequence[Entry]) -> Iterator[Quota]:
    first: dict[str, int] = {}
    kept: dict[str, Loss] = {}
    for entry in decided:
        if entry.analyst is not None and entry.loss is not None:
            first.setdefault(entry.analyst, entry.id)
            kept[entry.analyst] = entry.loss
    for analyst in sorted(kept):
        if not (kept[analyst].amount or kept[analyst].delta):
            continue
        since = find_bookings().where(entries().c.analyst == analyst, entries().c.id > first[analyst])
        spent = _sum_bookings(db, since, names)
        yield Quota(analyst=analyst, limit=kept[analyst], spent=_as_loss(spent, kept[analyst], account))


def _as_loss(spent: Spending, like: Loss, account: Account) -> Loss:
    neighbours = account.protection.neighbours
    if account.limit.accounting == "concentrated":
        return Loss.zcdp(spent.rho, neighbours=neighbours)
    return Loss(spent.epsilon, delta=spent.delta, neighbours=like.neighbours)


def append_declaration(db: sa.Connection, made: Declaration, *, by: str, reason: str) -> Entry:
    terms: dict[str, Any] = {"account": made.account, "protects": made.protection.to_json(), "by": by, "reason": reason}
    terms |= {"apart": list(made.apart)} if made.apart else {}
    return append(db, "account", made.dataset, body=canonical(terms))
