"""Entries of older ledgers, which had an account for each kind of loss and unit: how they count today.

No row changes. What was charged is translated into the data set's one unit, what was granted for that unit is its
limit, and until a steward sets a new limit the old limits and shares bind as well, so nothing that was refused before
is answered now. Rules and reasons: proof.md, label (M).
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from wallflower.errors import Untranslatable
from wallflower.ledger.account import Account, Fence, Obstacle, Share
from wallflower.ledger.budget import start_of_year
from wallflower.ledger.limits import STARTER, Limit, Spending
from wallflower.ledger.store.statements import entries
from wallflower.machine.lazy import Lazy
from wallflower.names import account_name, nearest_name, require_account_name
from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.units import BASES, UNITS_OF_ROWS, Claim, Protection, price

if TYPE_CHECKING:
    import sqlalchemy as sa
else:
    sa = Lazy("sqlalchemy")

UNDECLARED: Final = "its older entries count for several units of protection, and none was declared its own"
CONCENTRATED: Final = "older entries are in rho, which only a limit with delta and concentrated accounting holds"
_SUMMED: Final = (Kind.PURE, Kind.APPROXIMATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class OldRow:
    """An entry of an older ledger, with the public facts of its release where there is one."""

    id: int
    time: str
    event: str
    dataset: str
    analyst: str | None
    loss: Loss
    label: str
    body: Mapping[str, Any]
    facts: Mapping[str, Any]

    @property
    def account(self) -> str:
        return self.loss.account

    @property
    def is_private(self) -> bool:
        """Whether it is about differential privacy: output-constrained losses are another matter."""
        return self.loss.kind is not Kind.OUTPUT_CONSTRAINED

    @property
    def claim(self) -> Claim:
        """What the question stated of itself, as far as the entry and its release tell."""
        body, columns, change = self.body, self.body.get("columns"), self.body.get("change")
        watched = self.label.startswith("outlier-watch/")
        return Claim(
            loss=self.loss,
            window=body.get("window"),
            columns=len(columns) if columns else self.facts.get("dimension") or None,
            steps=body.get("steps") or self.facts.get("n") or None,
            moves=1 if change is None else _moves(body, change),
            one_sign=bool(body.get("monotone")),
            separable=watched and self.loss.neighbours is Neighbours.ENTRY,
            names=body.get("record"),
        )


def _moves(body: Mapping[str, Any], change: float) -> int:
    if body.get("low") is None or body.get("high") is None:
        raise Untranslatable("no finite factor: an assumed change is booked without the range it is a part of")
    return math.ceil((Fraction(body["high"]) - Fraction(body["low"])) / Fraction(change))


class OldBook:
    """Rows that were booked before accounts were one, read once: nothing is added to them any more."""

    def __init__(self) -> None:
        self._names: frozenset[str] | None = None
        self._rows: dict[str, list[OldRow]] = {}

    def name(self, db: sa.Connection, dataset: str, what: str = "dataset") -> str:
        """The one spelling of a name; what an older ledger booked on, and has none, stays as it is."""
        if isinstance(dataset, str) and account_name(dataset) is None and dataset in self.names(db):
            return nearest_name(dataset) or dataset
        return require_account_name(what, dataset)

    def names(self, db: sa.Connection) -> frozenset[str]:
        """How data sets were spelt in a ledger that began before accounts were one."""
        if self._names is None:
            first = db.execute(sa.select(entries()).where(entries().c.id == 1)).mappings().one_or_none()
            if first is None:
                return frozenset()
            begun = first["event"] in ("grant", "allocate") or (first["event"] == "charge" and first["unit"] is None)
            self._names = frozenset(db.scalars(sa.select(entries().c.dataset).distinct()) if begun else ())
        return self._names

    def spellings(self, db: sa.Connection, name: str) -> tuple[str, ...]:
        """Every way in which a data set may be written in the ledger: what folds to one name shares its budget."""
        return tuple(sorted({name, *(old for old in self.names(db) if nearest_name(old) == name)}))

    def rows(self, db: sa.Connection, name: str) -> list[OldRow]:
        """Grants, allocations and charges that an older ledger booked on a data set."""
        if not self.names(db):
            return []
        if name not in self._rows:
            self._rows[name] = _read(db, self.spellings(db, name))
        return self._rows[name]


def _read(db: sa.Connection, names: Sequence[str]) -> list[OldRow]:
    entry, answer = entries().c, entries().alias("answer")
    granted = entry.event.in_(("grant", "allocate"))
    charged = sa.and_(entry.event == "charge", entry.unit.is_(None))
    found = (
        sa.select(entries(), answer.c.body.label("answered"))
        .select_from(entries().outerjoin(answer, answer.c.charge == entry.id))
        .where(entry.dataset.in_(names), sa.or_(granted, charged))
        .order_by(entry.id)
    )
    return [_row(dict(row)) for row in db.execute(found).mappings()]


def _row(stored: Mapping[str, Any]) -> OldRow:
    return OldRow(
        id=stored["id"],
        time=stored["time"],
        event=stored["event"],
        dataset=stored["dataset"],
        analyst=stored["analyst"],
        loss=Loss.from_json(stored),
        label=stored["label"] or "",
        body=json.loads(stored["body"] or "{}"),
        facts=json.loads(stored["answered"] or "{}").get("facts", {}),
    )


def old_protection(rows: Sequence[OldRow]) -> Protection | None:
    """The one unit that older entries count for; None where there are several."""
    units = {BASES[row.loss.neighbours] for row in rows if row.is_private and row.loss.neighbours in BASES}
    if not units:
        return Protection()
    unit = units.pop()
    if units:
        return None
    windows = [row.body["window"] for row in rows if row.body.get("window")]
    if unit == "window" and not windows:
        return None
    kind = "people" if unit in UNITS_OF_ROWS["people"] else "time"
    return Protection(rows=kind, unit=unit, window=min(windows) if unit == "window" else None)  # type: ignore[arg-type]


def carry_over(account: Account, rows: Mapping[str, Sequence[OldRow]], *, stated: Collection[str]) -> Account:
    """The account with what older entries say of it: `rows` of each member, of which some have `stated` their unit."""
    closed, members = account.closed, dict(account.members)
    for dataset, own in rows.items():
        if own and dataset not in stated:
            found = old_protection(own)
            closed = closed or (UNDECLARED if found is None else None)
            members[dataset] = found or members[dataset]
    spenders, problem, this_year = dict(account.spenders), None, {"": account.this_year}
    for dataset, own in rows.items():
        for row in own:
            problem = _book(row, members[dataset], spenders) or problem
            if account.pace is not None and row.time >= start_of_year():
                _book(row, members[dataset], this_year)
    every = [row for own in rows.values() for row in own]
    spent = sum(spenders.values(), start=Spending())
    made = replace(
        account,
        members=members,
        spenders=dict(sorted(spenders.items())),
        spent=spent,
        fence=_fence(account.fence, every),
        names=tuple(sorted({*account.names, *(row.body["record"] for row in _charges(every) if "record" in row.body)})),
        closed=closed or problem,
        this_year=sum(this_year.values(), start=Spending()),
    )
    if account.starter and every:
        made = replace(made, limit=_limit(made, rows), starter=not any(row.event == "grant" for row in every))
    if spent.unsummed and made.limit.accounting != "concentrated":
        made = replace(made, closed=made.closed or CONCENTRATED)
    return made


def _book(row: OldRow, declared: Protection, spenders: dict[str, Spending]) -> str | None:
    if row.event != "charge" or not row.is_private:
        return None
    try:
        cost = price(row.claim, declared)
    except Untranslatable as refusal:
        return refusal.why
    analyst = row.analyst or ""
    spenders[analyst] = spenders.get(analyst, Spending()).plus(cost)
    return None


def _charges(rows: Iterable[OldRow]) -> Iterator[OldRow]:
    return (row for row in rows if row.event == "charge")


def _fence(fence: Fence, rows: Sequence[OldRow]) -> Fence:
    fenced = [row for row in _charges(rows) if not row.is_private]
    if not fenced:
        return fence
    spent = sum((row.loss.amount for row in fenced), start=fence.spent)
    return Fence(allowed=fence.allowed, spent=spent, since=min(row.id for row in fenced))


def _limit(account: Account, rows: Mapping[str, Sequence[OldRow]]) -> Limit:
    """The least that any spelling was granted for the unit: the starter cap where nothing was ever granted."""
    found = [_smallest_grant(own, account.members[dataset]) for dataset, own in rows.items()]
    epsilon, delta = min(pair[0] for pair in found), min(pair[1] for pair in found)
    return Limit.of(epsilon, delta=delta, accounting="sum")


def _smallest_grant(rows: Sequence[OldRow], declared: Protection) -> tuple[Fraction, Fraction]:
    spellings = {row.dataset for row in rows}
    if not spellings:
        return STARTER.epsilon, STARTER.delta
    limits = [_sum_grants([row for row in rows if row.dataset == name], declared) for name in spellings]
    return min(pair[0] for pair in limits), min(pair[1] for pair in limits)


def _sum_grants(rows: Sequence[OldRow], declared: Protection) -> tuple[Fraction, Fraction]:
    grants = [row.loss for row in rows if row.event == "grant"]
    if not grants:
        return STARTER.epsilon, STARTER.delta
    own = [loss for loss in grants if loss.kind in _SUMMED and loss.neighbours is declared.neighbours]
    return sum((loss.amount for loss in own), Fraction()), sum((loss.delta for loss in own), Fraction())


@dataclass(frozen=True, slots=True, kw_only=True)
class OldLine:
    """One account as an older ledger would decide it, with all that was charged since."""

    limit: Loss
    spent: Loss
    shares: tuple[Share, ...]

    def left_for(self, analyst: str) -> Loss:
        free = left = self.limit.less(self.spent)
        for share in self.shares:
            if share.analyst == analyst:
                return _lesser(share.left, left)
            free = free.less(share.left)
        return free


def old_obstacle(
    rows: Sequence[OldRow], since: Iterable[tuple[str, Loss]], cost: Loss, analyst: str
) -> Obstacle | None:
    """What an older ledger would have refused: `since` are the losses stated in newer charges, with their analysts."""
    if not rows:
        return None
    left = reduce(_lesser, [line.left_for(analyst) for line in old_lines(rows, list(since), cost)])
    if cost <= left:
        return None
    words = f"the limits from before accounts were one still bind until a new one is set, and {cost.account} is short"
    return Obstacle(part="old limit", words=words, left=left)


def old_lines(rows: Sequence[OldRow], since: Sequence[tuple[str, Loss]], cost: Loss) -> Iterator[OldLine]:
    """The account of this loss as it was, once for each spelling: limits and shares of each, and what all spent."""
    nothing = cost.less(cost)
    mine = [row for row in rows if row.account == cost.account]
    later = [(analyst, loss) for analyst, loss in since if loss.account == cost.account]
    spent = _sum(nothing, [*(row.loss for row in _charges(mine)), *(loss for _, loss in later)])
    for name in sorted({row.dataset for row in rows}):
        own = [row for row in mine if row.dataset == name or row.event == "charge"]
        shares = tuple(_old_shares(own, later, nothing))
        yield OldLine(limit=_old_limit(rows, name, nothing), spent=spent, shares=shares)


def _old_limit(rows: Sequence[OldRow], name: str, nothing: Loss) -> Loss:
    grants = [row for row in rows if row.event == "grant" and row.dataset == name]
    if not grants and nothing.kind in _SUMMED:
        return Loss(STARTER.epsilon, neighbours=nothing.neighbours)
    return _sum(nothing, [row.loss for row in grants if row.account == nothing.account])


def _old_shares(rows: Sequence[OldRow], later: Sequence[tuple[str, Loss]], nothing: Loss) -> Iterator[Share]:
    kept = [row for row in rows if row.event == "allocate" and row.analyst is not None]
    for analyst in sorted({row.analyst or "" for row in kept}):
        own = [row for row in kept if row.analyst == analyst]
        charged = [row.loss for row in _charges(rows) if row.analyst == analyst and row.id > own[0].id]
        charged += [loss for whose, loss in later if whose == analyst]
        yield Share(analyst=analyst, allocated=_sum(nothing, [row.loss for row in own]), spent=_sum(nothing, charged))


def _sum(nothing: Loss, losses: Iterable[Loss]) -> Loss:
    return sum(losses, start=nothing)


def _lesser(one: Loss, other: Loss) -> Loss:
    amount, delta = min(one.amount, other.amount), min(one.delta, other.delta)
    return Loss(amount, delta=delta, kind=one.kind, neighbours=one.neighbours)
