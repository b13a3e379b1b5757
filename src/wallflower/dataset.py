"""A data set, opened: one method per question, built from the list of questions.

What an editor completes and a type checker reads is written down in `verbs`, from the same list.

people = wf.open("people.csv", schema="people.toml")
people.plan.count(neighbours=5, radius=1.3, epsilon="0.5")
people.count(neighbours=5, radius=1.3, epsilon="0.5")
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from wallflower.config import WAYS, resolve_source
from wallflower.data import Points, Schema, Table, TiledTable
from wallflower.data.people import count_repeats, repeat_notice
from wallflower.data.scans import load_into
from wallflower.engines.engine import Engine
from wallflower.errors import ParameterError
from wallflower.ledger import Account, Ledger, Quote
from wallflower.queries import COMPANIONS, QUERIES
from wallflower.query import A, Plan, Query
from wallflower.query.parameter import Question, answer_type, describe, fill, find, resolve_releases, signature
from wallflower.release import Release, check_shared_records, default_analyst, pay, plan_for, quote
from wallflower.release.inputs import Records, project
from wallflower.schema import Join, Person, WayToRead, take_schema

if TYPE_CHECKING:
    from wallflower.verbs import Plans, Questions
else:
    Plans = Questions = object  # `Verbs` makes these methods, those of plugins too

KEY = inspect.Parameter("idempotency_key", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=str | None)
ANYWAY = inspect.Parameter("force", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=bool)
KNOWN = (*QUERIES, *COMPANIONS)


class Verbs:
    """Attributes that are questions."""

    _extra: tuple[inspect.Parameter, ...] = ()

    def __init__(self, questions: Iterable[Question]) -> None:
        self._questions = tuple(questions)

    def _find_verb(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            question = find(name, self._questions)
        except ParameterError as unknown:
            raise AttributeError(str(unknown), name=name, obj=self) from None
        return _method(question, self._verb(question), self._extra, self._returns(question))

    if not TYPE_CHECKING:
        __getattr__ = _find_verb  # a type checker goes by `verbs`, so that a wrong word is an error there

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(question.kind for question in self._questions)]

    def _verb(self, question: Question) -> Callable[..., Any]:
        raise NotImplementedError

    def _returns(self, question: Question) -> Any:
        return Release[answer_type(question)]  # type: ignore[misc]


class Planner(Verbs, Plans):
    """What each question would give, before anything is spent."""

    def __init__(
        self,
        table: Records,
        questions: Iterable[Question],
        quote: Callable[[Query[Any, Any]], Quote] | None = None,
        find: Callable[[int], Mapping[str, Any] | None] = lambda _: None,
    ) -> None:
        super().__init__(questions)
        self._table, self._quote, self._find = table, quote, find

    def __call__(self, kind: str, **parameters: Any) -> Plan:
        return self._verb(find(kind, self._questions))(**parameters)

    def of(self, query: Query[Any, Any]) -> Plan:
        """What to expect of this query here, from public facts alone, and how often the budget affords it."""
        view = project(query, self._table)
        if self._quote is None:
            return plan_for(query, view)
        quoted, view = self._quote(query), query.take_releases(view, self._find)
        return replace(plan_for(query, view, quoted.protection), affords=quoted.affords)

    def _verb(self, question: Question) -> Callable[..., Plan]:
        return lambda **given: self.of(fill(question, resolve_releases(question, given, self._find)))

    def _returns(self, question: Question) -> Any:
        return Plan


class Dataset(Verbs, Questions):
    """A data set with its ledger. Each question is a method; `plan` has the same methods and spends nothing.

    `wf.open` makes one. What can be asked is under questions: `people.count(...)`, `people.plan.count(...)`.
    """

    _extra = (KEY, ANYWAY)

    def __init__(
        self,
        table: Records,
        ledger: Ledger,
        analyst: str,
        questions: Iterable[Question] = KNOWN,
        *,
        source: object = None,
    ) -> None:
        super().__init__(questions)
        self._table, self._ledger, self._analyst = table, ledger, analyst
        self._source: object = source
        self._is_compared = False
        self.plan = Planner(table, self._questions, self.quote, ledger.release)

    @property
    def name(self) -> str:
        """Data set name; the budget is tracked under it."""
        return self._table.name

    def ask(self, query: Query[Any, A], *, idempotency_key: str | None = None, force: bool = False) -> Release[A]:
        """Answer a query and pay for it; one whose plan predicts mostly noise only with `force`.

        The charge is on disk before anybody looks; a refusal costs nothing. A Release comes back.
        """
        if not self._is_compared:
            check_shared_records(self._table, self._ledger, source=self._source)
            self._is_compared = True
        return pay(
            query, self._table, self._ledger, analyst=self._analyst, idempotency_key=idempotency_key, force=force
        ).answer()

    def quote(self, query: Query[Any, Any]) -> Quote:
        """What a query would cost here, and how many more such questions the budget affords."""
        return quote(query, self._table, self._ledger, analyst=self._analyst)

    def is_paid(self, idempotency_key: str) -> bool:
        """Whether this analyst has paid for a query under this key: asked again, it is free."""
        charges = self._ledger.history(self.name, analyst=self._analyst, event="charge")
        return any(entry.idempotency_key == idempotency_key for entry in charges)

    def budget(self) -> Account:
        """Limit, spending and what is left, of the account that this data set spends from."""
        return self._ledger.account(self.name)

    def releases(self) -> list[Release[Any]]:
        """Everything this data set has released, oldest first."""
        return [Release.from_dict(entry.details) for entry in self._ledger.history(self.name, event="release")]

    def __repr__(self) -> str:
        verbs = ", ".join(question.kind for question in self._questions)
        return f"<{self.name}: {self._table.n} records, {self._table.dimension} columns; ask {verbs}; {self._ledger!r}>"

    def _verb(self, question: Question) -> Callable[..., Release[Any]]:
        def ask(*, idempotency_key: str | None = None, force: bool = False, **given: Any) -> Release[Any]:
            return self.ask(
                fill(question, resolve_releases(question, given, self._ledger.release)),
                idempotency_key=idempotency_key,
                force=force,
            )

        return ask


def open_dataset(
    source: object,
    *,
    schema: Schema | str | Path | Mapping[str, Any] | None = None,
    ledger: Ledger | str | Path | None = None,
    name: str | None = None,
    analyst: str | None = None,
    engine: str | Engine | None = None,
    person: Person | Mapping[str, Any] | None = None,
    join: Join | Mapping[str, Any] | None = None,
    **written: Unpack[WayToRead],
) -> Dataset:
    """Open a data set to ask questions of it.

    Nothing is charged and nothing is released by opening: each question is charged when it is asked.

    source   a Table, Points, anything `load` reads, or the name of a data set in `wallflower.toml`
    schema   its public facts: a Schema, the path of a file that states them, or the same as a mapping
    ledger   a Ledger, a path or a URL; None for the default one
    name     data set name in the ledger; default: the schema's, then the file's
    analyst  who asks; default: $WALLFLOWER_ANALYST, the project's, or you
    engine   where the records are kept: "memory", or "tiles", on disk and seen part by part; default: in memory, if a
             table in Parquet fits $WALLFLOWER_MEMORY by its metadata
    person   who the rows belong to, where a person has several: a Person, or what `[person]` of a schema holds
    join     a second table with one row per person: a Join, or what `[join]` of a schema holds
    written  how a file is written, as to `load`: `separator`, `encoding`, `decimal`, `thousands`, `sheet`, and
             `without` which columns
    """
    if person is not None:
        facts = Schema() if schema is None else take_schema(schema)
        schema = replace(facts, person=person if isinstance(person, Person) else Person.from_json(person))
    if join is not None:
        facts = Schema() if schema is None else take_schema(schema)
        schema = replace(facts, join=join if isinstance(join, Join) else Join.from_json(join))
    said = {"source": source, "schema": schema, "dataset": name, "ledger": ledger, "engine": engine, **written}
    told = resolve_source(said, lambda facts: take_schema(facts).name)
    ways: Any = {way: told[way] for way in WAYS if way in told}
    table = _load_records(told["source"], told["schema"], told["dataset"], told["engine"], ways)
    if isinstance(table, Table):
        for column, rows in count_repeats(table.arrow, table.schema).items():
            warnings.warn(repeat_notice(column, rows), stacklevel=2)
    book = told["ledger"] if isinstance(told["ledger"], Ledger) else Ledger.open(told["ledger"])
    return Dataset(table, book, analyst or default_analyst(), source=told["source"])


def _load_records(
    source: object,
    schema: Schema | str | Path | Mapping[str, Any] | None,
    name: str | None,
    engine: str | Engine | None,
    written: WayToRead,
) -> Records:
    if isinstance(source, Table | Points | TiledTable):
        if schema is not None or name is not None or engine is not None or written:
            raise ParameterError(
                f"a {type(source).__name__} brings its own schema and name, and where it is kept. "
                "Leave these out, or open the source instead."
            )
        return source
    return load_into(source, engine, schema=None if schema is None else take_schema(schema), name=name, **written)


def _method(
    question: Question, verb: Callable[..., Any], extra: tuple[inspect.Parameter, ...], returns: Any
) -> Callable[..., Any]:
    verb.__name__ = verb.__qualname__ = question.kind
    verb.__doc__ = describe(question)
    verb.__signature__ = signature(question, *extra, returns=returns)  # type: ignore[attr-defined]
    return verb
