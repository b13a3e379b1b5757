"""Plan several queries together: what all of them cost, which fit, and the ε at which all fit.

A batch is a list of queries or a file of them. Its plan looks at no record and charges nothing; `ask` charges each
query by itself, in the order of the list.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Self

from wallflower.dataset import Dataset
from wallflower.errors import ParameterError, PrivacyError, SourceError
from wallflower.ledger import Quote
from wallflower.ledger.decision import make_quote
from wallflower.ledger.limits import SHOWN_AT, Spending
from wallflower.privacy import Loss
from wallflower.queries import COMPANIONS, QUERIES
from wallflower.query import Plan, Query
from wallflower.query.parameter import LOSS_HELP, Question, fill, find
from wallflower.release import Release, require_useful

__all__ = ["BatchItem", "BatchPlan", "QuestionFile", "plan_all"]

MAX_QUESTIONS: Final = 1000
_SCALES: Final = 1000  # the common factor on every ε is a multiple of one over this
_SOURCE_KEYS: Final = ("source", "schema", "dataset")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchItem:
    """One query of a batch, its own plan, and its quote after all earlier ones that fit were charged."""

    query: Query[Any, Any]
    plan: Plan
    quote: Quote

    @property
    def fits(self) -> bool:
        """Whether the budget covers it after the earlier ones."""
        return self.quote.obstacle is None

    def to_json(self) -> dict[str, Any]:
        booked, obstacle = self.quote.booked, self.quote.obstacle
        return {
            "kind": self.query.kind,
            "cost": self.query.cost().to_json(),
            "booked": None if booked is None else booked.to_json(),
            "fits": self.fits,
            "why": None if obstacle is None else obstacle.text,
            "plan": self.plan.to_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """What several queries cost together, from public facts alone.

    dataset  whom they are asked of
    items    the queries in their order
    basic    the sum of what would be booked, by basic composition; None where a query has a cost in ρ alone
    zcdp     the sum of squares, by zCDP composition, as ρ
    scale    the largest common factor on every ε (and ρ) at which all fit; 1 where they fit already, None where no
             factor helps
    """

    dataset: Dataset = field(repr=False, compare=False)
    items: tuple[BatchItem, ...]
    basic: Loss | None
    zcdp: Loss
    scale: Fraction | None

    @property
    def fits(self) -> bool:
        """Whether the budget covers all of them."""
        return all(item.fits for item in self.items)

    @property
    def zcdp_shown(self) -> Loss:
        """The sum of squares as (ε, δ), at the δ that the account converts with, or at one in a million."""
        convert = self.items[0].quote.account.limit.convert
        return self.zcdp.at(convert or SHOWN_AT)

    @property
    def fitting(self) -> tuple[Query[Any, Any], ...]:
        """The same queries at the ε at which all fit; empty where there is none."""
        if self.scale is None:
            return ()
        return tuple(scale_loss(item.query, self.scale) for item in self.items)

    def ask(self, *, idempotency_key: str | None = None, force: bool = False) -> list[Release[Any]]:
        """Ask all of them, in order, if all fit and none is mostly noise; else refuse and charge nothing.

        Each is charged by itself. If another analyst spends in between, a later one can be refused; the earlier ones
        stay charged and answered, in `releases()`. With a key, a repeated call returns stored answers, free.

        idempotency_key  beginning of the key of each query
        force            run even if a plan predicts mostly noise
        """
        keys = [f"{idempotency_key}-{number}" if idempotency_key else None for number in range(1, len(self.items) + 1)]
        asked = [(item.query, key) for item, key in zip(self.items, keys, strict=True)]
        unpaid = [query for query, key in asked if key is None or not self.dataset.is_paid(key)]
        for item in plan_all(self.dataset, unpaid).items if unpaid else ():
            if item.quote.obstacle is not None:
                raise item.quote.refusal()
            require_useful(item.plan, force=force)
        return [self.dataset.ask(query, idempotency_key=key, force=force) for query, key in asked]

    def to_json(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset.name,
            "items": [item.to_json() for item in self.items],
            "fits": self.fits,
            "basic": None if self.basic is None else self.basic.to_json(),
            "zcdp": self.zcdp.to_json(),
            "zcdp_shown": self.zcdp_shown.to_json(),
            "scale": None if self.scale is None else str(self.scale),
            "fitting": [query.cost().to_json() for query in self.fitting],
        }


def plan_all(dataset: Dataset, queries: Iterable[Query[Any, Any]]) -> BatchPlan:
    """Plan several queries together; nothing is charged and no record is looked at.

    dataset  what `wf.open` returned
    queries  the queries in the order in which they would be asked, such as `[wf.Count(...), wf.Subspaces(...)]`
    """
    wanted = tuple(queries)
    if not 1 <= len(wanted) <= MAX_QUESTIONS:
        raise ParameterError(f"queries: a batch has 1 to {MAX_QUESTIONS:,} of them. Pass a list.")
    for query in wanted:
        if query.is_delivered_once:
            raise ParameterError(
                f"{query.kind}: its answer goes once to the person who asked, so it is asked by itself. Remove it."
            )
    quotes = [dataset.quote(query) for query in wanted]
    items = tuple(
        BatchItem(query=query, plan=dataset.plan.of(query), quote=quote)
        for query, quote in zip(wanted, _in_order(quotes), strict=True)
    )
    spent = _total(quotes)
    neighbours = quotes[0].protection.neighbours
    return BatchPlan(
        dataset=dataset,
        items=items,
        basic=None if spent.unsummed else Loss(spent.epsilon, delta=spent.delta, neighbours=neighbours),
        zcdp=Loss.zcdp(spent.rho, neighbours=neighbours),
        scale=Fraction(1) if all(item.fits for item in items) else _largest_scale(dataset, wanted),
    )


def scale_loss(query: Query[Any, Any], factor: Fraction) -> Query[Any, Any]:
    """Return the query at a multiple of its ε, or of its ρ; δ stays as it is."""
    loss = query.cost()
    if "loss" not in query.__dataclass_fields__:
        raise ParameterError(f"{query.kind}: it has no loss of its own to scale. State its cost another way.")
    scaled = Loss(loss.amount * factor, delta=loss.delta, kind=loss.kind, neighbours=loss.neighbours)
    return replace(query, loss=scaled)  # type: ignore[call-arg]


def _in_order(quotes: Sequence[Quote]) -> list[Quote]:
    """Quotes of the same claims, each after all earlier ones that fit."""
    account, found = quotes[0].account, []
    for quote in quotes:
        found.append(make_quote(account, quote.dataset, quote.cost, quote.claim, quote.analyst))
        account = found[-1].account_after
    return found


def _total(quotes: Iterable[Quote]) -> Spending:
    spent = Spending()
    for quote in quotes:
        spent = spent if quote.price is None else spent.plus(quote.price)
    return spent


def _largest_scale(dataset: Dataset, queries: Sequence[Query[Any, Any]]) -> Fraction | None:
    low, high = 0, _SCALES
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _fits_at(dataset, queries, Fraction(middle, _SCALES)) else (low, middle)
    return Fraction(low, _SCALES) if low else None


def _fits_at(dataset: Dataset, queries: Sequence[Query[Any, Any]], factor: Fraction) -> bool:
    try:
        quotes = [dataset.quote(scale_loss(query, factor)) for query in queries]
    except PrivacyError:  # a query that takes no such loss
        return False
    return all(quote.obstacle is None for quote in _in_order(quotes))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionFile:
    """A file of questions: where the data are, and what is asked of them.

    source, schema, dataset  as to `wf.open`; paths are relative to the file
    queries                  the questions in their order
    """

    source: str
    schema: str | None
    dataset: str | None
    queries: tuple[Query[Any, Any], ...]

    @classmethod
    def read(cls, path: str | Path, questions: Iterable[Question] = (*QUERIES, *COMPANIONS)) -> Self:
        """Read a TOML file: `source`, `schema`, and a table `[[questions]]` for each, with its `kind`."""
        place = Path(path)
        try:
            stored = tomllib.loads(place.read_text(encoding="utf-8"), parse_float=Decimal)
        except (OSError, UnicodeDecodeError):
            raise SourceError(f"{place.name}: the file cannot be read. Nothing was planned. Check the path.") from None
        except tomllib.TOMLDecodeError as error:
            raise ParameterError(f"{place.name}: it is not TOML ({error}). Correct it.") from None
        unknown = set(stored) - {*_SOURCE_KEYS, "questions"}
        tables = stored.get("questions")
        if unknown or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise ParameterError(
                f"{place.name}: it has {', '.join(_SOURCE_KEYS)}, and a table [[questions]] for each question. "
                "Correct it."
            )
        if not isinstance(stored.get("source"), str):
            raise ParameterError(f"{place.name}: source must be text: a path, a URL or a name. Add it.")
        known = tuple(questions)
        return cls(
            source=_relative(place, stored["source"]),
            schema=_relative(place, stored["schema"]) if "schema" in stored else None,
            dataset=stored.get("dataset"),
            queries=tuple(_query_of(table, known) for table in tables),
        )


def _relative(place: Path, text: str) -> str:
    beside = place.parent / text
    return str(beside) if "://" not in text and beside.exists() else text


def _query_of(table: Mapping[str, Any], questions: Iterable[Question]) -> Query[Any, Any]:
    kind = table.get("kind")
    if not isinstance(kind, str):
        raise ParameterError("questions: each one has a kind, such as count. Add it.")
    given = {name: value if name in LOSS_HELP else _plain(value) for name, value in table.items() if name != "kind"}
    return fill(find(kind, questions), given)


def _plain(value: Any) -> Any:
    """A value of TOML as Python passes it: tuples for lists, floats for numbers that are no losses."""
    if isinstance(value, list):
        return tuple(map(_plain, value))
    return float(value) if isinstance(value, Decimal) else value
