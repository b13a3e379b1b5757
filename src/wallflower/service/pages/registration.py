"""Pages on which a steward registers a data set: choose a source, say what is public of it, rehearse, register.

The form carries everything that was said from step to step, so nothing is kept on the way and nothing typed is lost.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from wallflower.data.people import repeat_notice
from wallflower.errors import ParameterError, PrivacyError
from wallflower.rehearsal import TYPES, Draft, Trial, labels_fact
from wallflower.schema import Person, Schema
from wallflower.schema.column import ColumnWords, TableWords, names_of
from wallflower.schema.columns import split_list
from wallflower.schema.person import AGGREGATES, LABEL_AGGREGATES
from wallflower.service.core.catalog import (
    MAX_FORM_COLUMNS,
    REHEARSAL_RECORDS,
    draft_source,
    find_repeats,
    list_sources,
    rehearse,
)
from wallflower.service.core.problems import problem_document
from wallflower.service.pages.budgets import PROTECTIONS, read_protection
from wallflower.service.pages.sign_in import act_route, with_token
from wallflower.service.pages.visit import Visit, page, place, redirect
from wallflower.text import Message, t

_LONGEST: Final = 2000
_DIGITS: Final = 10
KINDS: Final[Mapping[str, str]] = {
    "number": t("numbers"),
    "integer": t("whole numbers"),
    "text": t("labels"),
    "date": t("dates"),
    "identifier": t("names a record"),
    "leave": t("not used"),
}
PERSON_WAYS: Final[Mapping[str, str]] = {
    "rollup": t("one record per person: an aggregate for each column"),
    "max_rows": t("keep at most some rows of each person"),
}
MISSING_IDS: Final[Mapping[str, str]] = {
    "own": t("a person of its own"),
    "refuse": t("an error: the table is refused"),
}
UNITS: Final = ("days", "hours", "minutes", "seconds", "weeks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One column of the form, with what was typed."""

    number: int
    name: str
    kind: str
    typed: Mapping[str, str]

    @property
    def key(self) -> str:
        return f"c{self.number}"


def routes() -> list[Route]:
    """The steps."""
    return [
        Route("/register", page(choose_source, "steward")),
        Route("/register", page(with_token(register), "steward"), methods=["POST"]),
        Route("/datasets/{dataset}/access", page(show_access, "reader")),
        act_route("/datasets/{dataset}/access", change_access),
        Route("/datasets/{dataset}/retire", page(confirm_retirement, "steward")),
        act_route("/datasets/{dataset}/retire", retire),
        Route("/register/draft", page(draft_schema, "steward"), methods=["POST"]),
        Route("/register/rehearsal", page(rehearse_schema, "steward", computes=True), methods=["POST"]),
    ]


def choose_source(visit: Visit) -> Response:
    """Which file, under which name."""
    return _start(visit)


def show_access(visit: Visit) -> Response:
    """Who may see a data set, and the forms that change it."""
    return _access(visit, 200, None)


def change_access(visit: Visit) -> Response:
    """Open a data set to an analyst, or close it again."""
    change = visit.core.take_access if "take" in visit.form else visit.core.give_access
    analyst = visit.form.get("take") or visit.form.get("analyst", "").strip()
    try:
        change(visit.by, visit.path("dataset"), analyst)
    except PrivacyError as refusal:
        stated = problem_document(refusal)
        return _access(visit, stated["status"], stated["detail"])
    return redirect(place("datasets", visit.path("dataset"), "access"))


def _access(visit: Visit, status: int, words: str | None) -> Response:
    found = visit.core.catalog.find(visit.path("dataset"))
    people = {token.name for token in visit.core.tokens.all() if token.is_valid and token.scope == "analyst"}
    people |= {person.name for person in visit.core.people.all() if person.role == "analyst" and not person.disabled}
    return visit.render(
        "access.html",
        status,
        name=found.name,
        analysts=visit.core.access.analysts(found),
        stated=found.analysts,
        groups=visit.core.access.groups_of(found),
        people=sorted(people),
        words=words,
    )


def confirm_retirement(visit: Visit) -> Response:
    """Whether a data set is really to be retired."""
    return visit.render("retire.html", shown=visit.core.dataset(visit.by, visit.path("dataset")))


def retire(visit: Visit) -> Response:
    """Retire a data set."""
    visit.core.retire(visit.by, visit.path("dataset"))
    return redirect("/")


def draft_schema(visit: Visit) -> Response:
    """The columns of the source, with a form for what is public of each."""
    if "c0-name" in visit.form:
        return _form(visit, _entries(visit.form))
    name, source = _text(visit, "name"), _text(visit, "source")
    try:
        if not name:
            raise ParameterError(t("name: required; the budget is tracked under it."))
        types = draft_source(visit.core.catalog, name, source).types if source else _read_columns(visit)
        repeats = find_repeats(visit.core.catalog, source) if source else {}
    except PrivacyError as refusal:
        stated = problem_document(refusal)
        return _start(visit, stated["status"], stated["detail"])
    entries = [
        Entry(number=number, name=column, kind=kind, typed={}) for number, (column, kind) in enumerate(types.items())
    ]
    return _form(replace(visit, form={**visit.form, "repeats": json.dumps(repeats)}), entries)


def rehearse_schema(visit: Visit) -> Response:
    """What answers would look like, on records that are made up from what was said."""
    entries = _entries(visit.form)
    try:
        trials = rehearse(visit.core.questions, read_schema(visit, entries))
    except PrivacyError as refusal:
        return _form(visit, entries, refusal=refusal)
    return _form(visit, entries, trials=trials)


def register(visit: Visit) -> Response:
    """Put the data set on the catalog; its limit comes next."""
    entries = _entries(visit.form)
    try:
        schema = read_schema(visit, entries)
        records = tuple(split_list(_text(visit, "records")))
        given: dict[str, Any] = {"source": _text(visit, "source") or None, "records": records}
        name = visit.core.register(visit.by, _text(visit, "name"), schema=schema.to_json(), **given)
    except PrivacyError as refusal:
        return _form(visit, entries, refusal=refusal)
    return redirect(f"{place('datasets', name, 'budget')}?done=registered")


def read_schema(visit: Visit, entries: list[Entry]) -> Schema:
    """The schema that a form states."""
    draft = Draft(_text(visit, "name") or "unnamed", None, True, {entry.name: entry.kind for entry in entries})
    for entry in entries:
        facts = _FACTS[entry.kind](entry)
        words = {name: entry.typed[name] for name in names_of(ColumnWords) if entry.typed.get(name)}
        if entry.kind != "leave" and (facts or entry.kind in ("number", "integer")):
            draft.facts[entry.name] = facts | words
    draft.person = _read_person(visit, entries)
    if draft.person is not None:
        _bring_together(draft, draft.person, visit)
    draft.scale_by_bounds()
    numbers = any(_text(visit, name) for name in ("window", "units_per_person", "times"))
    usual = {"protects": PROTECTIONS[0][0]} if numbers and not _text(visit, "protects") else {}
    protection = read_protection(replace(visit, form={**visit.form, **usual}))
    schema = draft.schema(account=_text(visit, "account") or None, protection=protection)
    said: dict[str, Any] = {name: text for name in names_of(TableWords) if (text := _text(visit, name))}
    return replace(schema, **said)


def _read_person(visit: Visit, entries: list[Entry]) -> Person | None:
    """Who the rows belong to, as the form states it; None: a row is a person."""
    identifier, way = _text(visit, "person"), _text(visit, "person-way")
    if not identifier:
        return None
    if identifier not in {entry.name for entry in entries}:
        raise ParameterError(t("person.id must be the name of a column. Choose one of them."))
    aggregates = {entry.name: entry.typed["aggregate"] for entry in entries if entry.typed.get("aggregate")}
    if counted := _text(visit, "person-count"):
        aggregates[counted] = "count"
    stated: dict[str, Any] = {"id": identifier}
    if way == "rollup":
        stated |= {"rollup": aggregates, "order": _text(visit, "person-order") or None}
    elif way == "max_rows":
        rows = _text(visit, "person-max-rows")
        stated["max_rows"] = int(rows) if rows.isascii() and rows.isdigit() and len(rows) < _DIGITS else None
        if stated["max_rows"] is None:
            raise ParameterError(t("person.max_rows must be a whole number above zero. State how many rows to keep."))
    return Person.from_json(stated | {"missing_id": _text(visit, "person-missing") or "own"})


def _bring_together(draft: Draft, person: Person, visit: Visit) -> None:
    """Describe the columns of the records instead of those of the rows."""
    draft.types.pop(person.id, None)
    draft.facts.pop(person.id, None)
    if person.rollup is None:
        return
    draft.types = {name: kind for name, kind in draft.types.items() if name in person.rollup and kind != "leave"}
    draft.facts = {name: facts for name, facts in draft.facts.items() if name in draft.types}
    counted = _text(visit, "person-count")
    if not counted:
        return
    most = _text(visit, "person-count-high")
    if counted in draft.types or not (most.isascii() and most.isdigit() and 0 < len(most) < _DIGITS and int(most)):
        raise ParameterError(
            t(
                "person.rollup: the column that counts rows needs a name of its own and a public maximum, a whole "
                "number above zero. State both."
            )
        )
    draft.types[counted] = "integer"
    draft.facts[counted] = {"low": 0, "high": int(most)}


def _repeat_notices(form: Mapping[str, str]) -> list[Message]:
    """What the steward is told of identifiers that repeat, as the first step counted them."""
    try:
        repeats = json.loads(form.get("repeats", "") or "{}")
        return [repeat_notice(str(column), int(rows)) for column, rows in repeats.items()]
    except (ValueError, TypeError, AttributeError):
        return []


def _numbers(entry: Entry) -> dict[str, Any]:
    given = {name: _number(entry, name) for name in ("low", "high", "scale")}
    return {name: value for name, value in given.items() if value is not None}


def _labels(entry: Entry) -> dict[str, Any]:
    text, weight = entry.typed.get("categories", ""), _number(entry, "weight")
    if not text:
        return {}
    return labels_fact(entry.name, text) | ({} if weight is None else {"weight": weight})


def _dates(entry: Entry) -> dict[str, Any]:
    given = {name: entry.typed[name] for name in ("unit", "since") if entry.typed.get(name)}
    return given if "unit" in given else {}


_FACTS: Final[Mapping[str, Callable[[Entry], dict[str, Any]]]] = {
    "number": _numbers,
    "integer": _numbers,
    "text": _labels,
    "date": _dates,
    "identifier": lambda _: {"identifier": True},
    "leave": lambda _: {},
}


def _number(entry: Entry, name: str) -> float | None:
    text = entry.typed.get(name, "")
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ParameterError(
            t("column {column!r}: {name} must be a number such as 12.5.", column=entry.name, name=name)
        )
    return value


def _read_columns(visit: Visit) -> dict[str, str]:
    """The columns of a stream, as they were typed."""
    names = split_list(_text(visit, "columns").replace("\n", ","))
    if not names:
        raise ParameterError(t("columns: required for a stream. Name the columns, or choose a source."))
    return dict.fromkeys(names[:MAX_FORM_COLUMNS], "number")


def _text(visit: Visit, name: str) -> str:
    return visit.form.get(name, "").strip()[:_LONGEST]


def _entries(form: Mapping[str, str]) -> list[Entry]:
    found = []
    for number in range(MAX_FORM_COLUMNS):
        own = {name.partition("-")[2]: text.strip() for name, text in form.items() if name.startswith(f"c{number}-")}
        if "name" not in own:
            break
        kind = own.get("kind", "")
        found.append(Entry(number=number, name=own["name"], kind=kind if kind in TYPES else "leave", typed=own))
    return found


def _start(visit: Visit, status: int = 200, words: str | None = None) -> Response:
    return visit.render(
        "register.html", status, sources=list_sources(visit.core.catalog), given=visit.form, words=words
    )


def _form(
    visit: Visit, entries: list[Entry], *, trials: list[Trial] | None = None, refusal: PrivacyError | None = None
) -> Response:
    stated = None if refusal is None else problem_document(refusal)
    return visit.render(
        "register-draft.html",
        200 if stated is None else stated["status"],
        entries=entries,
        kinds=KINDS,
        units=UNITS,
        protections=PROTECTIONS,
        notices=[] if _text(visit, "person") else _repeat_notices(visit.form),
        ways=PERSON_WAYS,
        missing_ids=MISSING_IDS,
        aggregates={"text": LABEL_AGGREGATES},
        all_aggregates=tuple(name for name in AGGREGATES if name != "count"),
        rolls_up=bool(_text(visit, "person")) and _text(visit, "person-way") == "rollup",
        described=any(_text(visit, name) for name in names_of(TableWords)),
        given=visit.form,
        words=None if stated is None else stated["detail"],
        trials=trials,
        questions={question.kind: question.question for question in visit.core.questions},
        made_up=REHEARSAL_RECORDS,
    )
