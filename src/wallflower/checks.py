"""The contract suite: what every question must keep, ours or a plugin's.

for check in CHECKS:
    check(MyQuestion.example())
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import FrozenInstanceError, fields, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.audit.answers import audit_cases
from wallflower.data import Points
from wallflower.drawing.picture import Bars, Ticks
from wallflower.errors import BudgetExhausted, PrivacyError
from wallflower.evidence import evidence, samples
from wallflower.ledger import Ledger
from wallflower.ledger.chain import canonical
from wallflower.noise import system_noise
from wallflower.privacy import Kind, Loss
from wallflower.query import Plan, Query, Status
from wallflower.release import Release, release
from wallflower.release.guarantee import Facts
from wallflower.schema import Schema

Check = Callable[[Query[Any, Any]], None]

FORBIDDEN: Final = frozenset(
    ("bias", "degrees", "duration", "elapsed", "noise", "raw", "records", "seconds", "sensitivity", "time", "truth")
)
LARGEST, SMALLEST = 1.7e308, 5e-324  # of what a float can be, and what it can be above 0
_ANALYST: Final = "check"
_ROWS: Final = 40


def names_itself(query: Query[Any, Any]) -> None:
    """One word for a kind, a label with its version, a question, a proof and its status."""
    assert query.kind.isidentifier(), "kind is one word: the verb, the folder, the page"
    assert query.label.rpartition("/")[2].isdigit(), "label ends in its version, such as outlier-count/1"
    assert query.question.endswith("?"), "question is a question"
    assert query.proof, "proof says where the proof is"
    assert isinstance(query.status, Status), "status says how far the proof reaches"


def explains_every_field(query: Query[Any, Any]) -> None:
    """Help for every parameter: it feeds the command line, the docs and the forms."""
    for item in fields(query):
        assert item.metadata.get("help"), f"field {item.name} has no help"


def is_a_frozen_value(query: Query[Any, Any]) -> None:
    """Hashable, equal to its copy, never changed."""
    copy = type(query).from_json(query.to_json())
    assert copy == query, "from_json(to_json()) is the same question"
    assert hash(copy) == hash(query), "equal questions have equal hashes"
    name = fields(query)[0].name
    try:
        setattr(query, name, getattr(query, name))
    except (FrozenInstanceError, TypeError):
        return
    raise AssertionError(f"field {name} can be set")


def survives_json(query: Query[Any, Any]) -> None:
    """Parameters and cost come back from the ledger's text exactly."""
    stored = json.loads(canonical(query.to_json()))
    assert type(query).from_json(stored) == query, "the question is not the one that was stored"
    cost = query.cost()
    assert Loss.from_json(json.loads(canonical(cost.to_json()))) == cost, "the cost is not the one that was stored"


def costs_without_data(query: Query[Any, Any]) -> None:
    """`cost` takes nothing, and a look does not change it."""
    assert not inspect.signature(query.cost).parameters, "cost takes no data"
    before = query.cost()
    for data in samples(query):
        query.answer(query.view(data), system_noise())
        assert query.cost() == before, "the cost changed with the data"


def claims_from_public_facts(query: Query[Any, Any]) -> None:
    """`claim` takes public facts only: tables of one shape, whatever is in them, have one claim."""
    assert set(inspect.signature(query.claim).parameters) == {"facts"}, "claim takes facts only"
    claims = [query.claim(query.view(data)) for data in samples(query)]
    assert claims.count(claims[0]) == len(claims), "the claim changed with the data"


def plans_from_public_facts(query: Query[Any, Any]) -> None:
    """`plan` takes sizes only, gives the same plan twice, and fits into JSON."""
    assert set(inspect.signature(query.plan).parameters) == {"n", "dimension"}, "plan takes n and dimension only"
    plan = query.plan(n=1000, dimension=3)
    assert isinstance(plan, Plan), "plan gives a Plan"
    assert plan == query.plan(n=1000, dimension=3), "plan depends on something else"
    assert plan.cost == query.cost(), "plan and cost disagree"
    assert plan.chosen in {option.mechanism for option in plan.options}, "the chosen mechanism is among the options"
    json.dumps(plan.to_json(), allow_nan=False)


def explains_its_plan(query: Query[Any, Any]) -> None:
    """Every figure has a heading, a curve says what it measures, and its scale can show it."""
    plan = query.plan(n=1000, dimension=3)
    figures = {name for option in plan.options for name in option.figures}
    assert figures <= set(plan.headings), f"no heading for {', '.join(sorted(figures - set(plan.headings)))}"
    assert not {"mechanism", "note"} & figures, "a figure has the name of another part of an option"
    assert plan.measure or not plan.curve, "measure says what the curve shows"
    amounts = [amount for amount, _ in plan.curve]
    assert amounts == sorted(set(amounts)), "the curve goes from small losses to large ones"
    drawn = [*amounts, *(height for _, height in plan.curve if plan.scale == "log")]
    assert all(edge > 0 for edge in drawn), "what is drawn on a log scale is above 0"


def leaves_data_alone(query: Query[Any, Any]) -> None:
    """Viewing and answering do not write into the data."""
    for data in samples(query):
        before = data.values.tobytes()
        query.answer(query.view(data), system_noise())
        assert data.values.tobytes() == before, "the data was changed"


def answers_whatever_it_sees(query: Query[Any, Any]) -> None:
    """Equal records, records far apart, clusters: nothing raises because of what was seen."""
    for data in samples(query):
        query.answer(query.view(data), system_noise())


def raises_nothing_once_paid(query: Query[Any, Any]) -> None:
    """The same for extreme tables, in every mode: a refusal comes before the charge, and depends on public facts."""
    for mode in _modes_of(query):
        answers_extreme_tables(mode)


def answers_extreme_tables(query: Query[Any, Any]) -> None:
    """The same in this mode only."""
    with _ledger() as (ledger, _):
        for number, data in enumerate(extreme_tables(query)):
            data = replace(data, name=f"sample{number}")
            _afford(ledger, data.name, query.cost())
            failure = _failure(query, data, ledger)
            paid = bool(ledger.history(data.name, event="charge"))
            assert failure is None or (not paid and isinstance(failure, PrivacyError)), (
                f"{type(failure).__name__} {'after' if paid else 'before'} the charge, of {query!r}, {data.n} records "
                f"in {data.dimension} columns: {failure}"
            )


def extreme_tables(query: Query[Any, Any]) -> Iterator[Points]:
    """Equal, immense, tiny and mixed numbers, the bounds and edges that the question states, and few or many of all."""
    columns = getattr(query, "columns", None) or ("x1", "x2")
    line, stated = np.linspace(-1.0, 1.0, _ROWS), np.resize(_stated_numbers(query), _ROWS)
    shapes: tuple[NDArray[np.float64], ...] = (
        line,
        np.zeros(_ROWS),
        stated,
        np.where(line < 0, -LARGEST, LARGEST),
        np.where(line < 0, SMALLEST, -SMALLEST),
        np.where(np.arange(_ROWS) == _ROWS // 10, LARGEST, line),
        10.0 ** np.linspace(-300, 300, _ROWS),
        np.repeat(stated[:2], _ROWS // 2),
        np.full(_ROWS, LARGEST),
    )
    for first in range(len(shapes)):
        for turn in (0, 4):  # the same in every column, and not
            mixed = [shapes[(first + turn * column) % len(shapes)] for column in range(len(columns))]
            yield Points.from_array(np.column_stack(mixed), columns=columns)
    for rows in (1, 2, 3):
        yield Points.from_array(np.column_stack([shapes[3][-rows:]] * len(columns)), columns=columns)
    if getattr(query, "columns", None) is None:
        yield Points.from_array(np.column_stack([shapes[at % len(shapes)] for at in range(12)]))


def pays_before_looking(query: Query[Any, Any]) -> None:
    """When `answer` runs, another connection already sees the charge."""
    seen: list[int] = []
    with _ledger() as (ledger, path):
        ledger.grant("sample", query.cost(), by=_ANALYST)

        def look(data: Any, noise: Any) -> Any:
            with Ledger.open(path) as other:
                seen.append(len(other.history("sample", event="charge")))
            return query.answer(data, noise)

        release(_WatchedQuestion(query, look), next(samples(query)), ledger, analyst=_ANALYST, force=True)  # type: ignore[arg-type]
    assert seen == [1], "answer ran before the charge was durable"


def refusal_changes_nothing(query: Query[Any, Any]) -> None:
    """Without budget there is no look and no entry, and the next grant works."""
    looks: list[bool] = []

    def look(data: Any, noise: Any) -> Any:
        looks.append(True)
        return query.answer(data, noise)

    with _ledger() as (ledger, _):
        ledger.grant("sample", _zero_of(query.cost()), by=_ANALYST)
        head = ledger.verify().head
        try:
            release(_WatchedQuestion(query, look), next(samples(query)), ledger, analyst=_ANALYST, force=True)  # type: ignore[arg-type]
        except BudgetExhausted:
            assert not looks, "the data was looked at"
            assert ledger.verify().head == head, "the refusal left a trace"
        else:
            raise AssertionError("the question was answered without budget")
        ledger.grant("sample", query.cost(), by=_ANALYST)
        release(query, next(samples(query)), ledger, analyst=_ANALYST, force=True)


def releases_only_the_answer(query: Query[Any, Any]) -> None:
    """The release survives JSON and holds no word that belongs to the records."""
    with _ledger() as (ledger, _):
        ledger.grant("sample", query.cost(), by=_ANALYST)
        answer = release(query, next(samples(query)), ledger, analyst=_ANALYST, force=True)
        assert Release.from_dict(json.loads(answer.to_json())) == answer, "the release is not the one that was stored"
        assert ledger.release(answer.ledger_id) == json.loads(answer.to_json()), "the ledger holds another release"
    leaked = sorted(
        FORBIDDEN & set(_keys(answer.to_dict() | {"parameters": {}, "quality": {}}))
    )  # which are public as they are
    assert not leaked, f"the release tells {', '.join(leaked)}"


def pictures_what_was_released(query: Query[Any, Any]) -> None:
    """`picture` works on a value that comes back from the ledger, and every bar has all its parts."""
    data = query.view(next(samples(query)))
    value = json.loads(json.dumps(query.released(query.answer(data, system_noise()))))
    bars = query.picture(value, Facts(n=data.n, dimension=data.dimension, columns=tuple(data.columns)))
    if isinstance(bars, Ticks):
        assert all(1 <= tick <= bars.known <= bars.until for tick in bars.places), "ticks stand where was looked"
    if isinstance(bars, Bars):
        parts = (bars.labels, bars.lengths, bars.marks, bars.lengths if bars.intervals is None else bars.intervals)
        assert len({len(part) for part in parts}) == 1, "a bar has a label, a length, a mark and perhaps an interval"


def has_a_picture_or_a_reason(query: Query[Any, Any]) -> None:
    """A value that the question does not draw itself has a reason for it."""
    data = query.view(next(samples(query)))
    value = json.loads(json.dumps(query.released(query.answer(data, system_noise()))))
    drawn = query.picture(value, Facts(n=data.n, dimension=data.dimension, columns=tuple(data.columns)))
    assert drawn is not None or query.no_picture_because, (
        f"{query.kind}: there is no picture and no reason for none. A released value is drawn. "
        "Return one from `picture`, or say in `no_picture_because` why the report draws it better."
    )


def is_attacked(query: Query[Any, Any]) -> None:
    """An oracle, a bound on tiny worlds, answers to neighbouring tables: what is sound holds, what is broken is caught.

    The slowest check: every attack is run, with few trials.
    """
    failed = [f"{finding.name}: {finding.text}" for finding in evidence(type(query)) if not finding.ok]
    assert not failed, (
        f"{query.kind}: {len(failed)} attacks did not end as they must: {'; '.join(failed)}. What is sound holds, and "
        "what is broken on purpose is caught. Find out whether the mechanism is wrong or the attack is."
    )


def accounts_for_every_draw(query: Query[Any, Any]) -> None:
    """A case for every mode, and in each the draws of `answer` and its claim are those that were written by hand.

    Laws are added up by the audit, which takes longer.
    """
    accounts = type(query).accounts()
    assert accounts is not None, (
        f"{query.kind} has no account of what `answer` draws. Declare ACCOUNTS in its audit, or override `accounts` "
        "(wallflower.audit.answers)."
    )
    missing = accounts.missing_modes(type(query))
    assert not missing, (
        f"{query.kind}: no account for {', '.join(missing)}. Every mode has a case. Add one to ACCOUNTS, or name the "
        "field in `without_draws` if it changes no draw."
    )
    missing = accounts.missing_laws(type(query))
    assert not missing, (
        f"{query.kind}: no law of {', '.join(missing)}. Every part that spends something has one. Add a LawCheck to "
        "its case, or state in `without_law` why its law cannot be added up."
    )
    failed = [
        f"{finding.name}: {finding.text}"
        for finding in audit_cases(accounts.of(type(query)), laws=False)
        if not finding.ok
    ]
    assert not failed, f"{query.kind}: {'; '.join(failed)}"


def has_a_page(query: Query[Any, Any]) -> None:
    """docs/KIND.md exists, with a link in README.md and a row in docs/index.md; checked inside the repository only."""
    root = Path(__file__).parents[2]
    if not (root / "pyproject.toml").exists() or not type(query).__module__.startswith("wallflower."):
        return
    assert (root / "docs" / f"{query.kind}.md").exists(), (
        f"docs/{query.kind}.md is missing. Every question has a page of its word. Write it."
    )
    for page, row in {
        "README.md": f"[`{query.kind}`](docs/{query.kind}.md)",
        "docs/index.md": f"| [{query.kind}]({query.kind}.md) |",
    }.items():
        assert row in (root / page).read_text(encoding="utf-8"), (
            f"{page} does not lead to {query.kind}. Every question is in its table. Add it with {row!r}."
        )


CHECKS: Final[tuple[Check, ...]] = (
    names_itself,
    explains_every_field,
    is_a_frozen_value,
    survives_json,
    costs_without_data,
    claims_from_public_facts,
    plans_from_public_facts,
    explains_its_plan,
    leaves_data_alone,
    answers_whatever_it_sees,
    raises_nothing_once_paid,
    pays_before_looking,
    refusal_changes_nothing,
    releases_only_the_answer,
    pictures_what_was_released,
    has_a_picture_or_a_reason,
    is_attacked,
    accounts_for_every_draw,
    has_a_page,
)


class _WatchedQuestion:
    """A question whose answer is watched; everything else is its own."""

    def __init__(self, query: Query[Any, Any], answer: Callable[..., Any]) -> None:
        self._query = query
        self.answer = answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)


@contextmanager
def _ledger() -> Iterator[tuple[Ledger, str]]:
    with TemporaryDirectory() as folder:
        path = f"{folder}/ledger.db"
        with Ledger.open(path) as ledger:
            yield ledger, path


def _modes_of(query: Query[Any, Any]) -> Iterator[Query[Any, Any]]:
    """The question, and as it is with each other choice that it offers and that suits its other parameters."""
    yield query
    for item in fields(query):
        for choice in item.metadata.get("choices", ()):
            with suppress(PrivacyError):
                yield replace(query, **{item.name: choice})


def _stated_numbers(query: Query[Any, Any]) -> list[float]:
    """What the question and its schema say of numbers: values there are on the edge of something."""
    facts = [(column.low, column.high, *(column.edges or ())) for column in (query.wants() or Schema()).columns or ()]
    values = [getattr(query, name, None) for name in ("low", "high", "radius", "threshold")]
    return [float(number) for number in (*values, *chain(*facts)) if number is not None] or [-1.0, 1.0]


def _failure(query: Query[Any, Any], data: Points, ledger: Ledger) -> Exception | None:
    """What went wrong, if anything; a warning about numbers tells as much as an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            release(query, data, ledger, analyst=_ANALYST, force=True)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what the check is about
            return error
    return None


def _afford(ledger: Ledger, dataset: str, cost: Loss) -> None:
    if cost.kind is Kind.OUTPUT_CONSTRAINED:
        ledger.allow_constrained(dataset, str(cost.amount), by=_ANALYST)
    else:
        ledger.grant(dataset, cost + cost + cost, by=_ANALYST)  # an account may book more than a question states


def _zero_of(cost: Loss) -> Loss:
    return cost.less(cost)


def _keys(value: Any) -> Iterator[str]:
    match value:
        case Mapping():
            for name, item in value.items():
                yield str(name)
                yield from _keys(item)
        case list() | tuple():
            for item in value:
                yield from _keys(item)
