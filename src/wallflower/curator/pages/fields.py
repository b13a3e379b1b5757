"""A question as the fields of a web form, and the form as a question: a new question needs nothing here."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Final, Literal

from pydantic import ValidationError

from wallflower.columns import join_list, pieces_of, split_list
from wallflower.curator.api.bodies import Body, model, query_of
from wallflower.errors import ParameterError
from wallflower.forms import LOSS_HELP, REQUIRED, Blank, Question, blanks, entries_of, spends
from wallflower.queries.watch.seasons import Seasons
from wallflower.query import Condition, Query
from wallflower.schema import Schema

Control = Literal["text", "number", "choice", "long"]

_NUMBERS: Final = (int, float, Fraction)
_LISTS: Final = (tuple[str, ...], tuple[float, ...])
_TABLES: Final = (tuple[tuple[str, ...], ...], tuple[tuple[float, ...], ...])
_YES: Final = {"yes": True, "no": False}
_LABELS: Final = {"epsilon": "ε, the privacy loss", "delta": "δ", "rho": "ρ"}
_WAYS: Final[Mapping[Any, str]] = {
    **dict.fromkeys(_LISTS, "several: a, b, c"),
    **dict.fromkeys(_TABLES, "several: a, b; c"),
    Schema: "as JSON, as `wallflower data` has it",
    Seasons: "as JSON, the value of a release of baseline by phase",
}
_WRITTEN: Final = (Schema, Seasons)  # as JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One field of a form. `main`: it is shown at once, not among the further settings."""

    name: str
    label: str
    help: str
    control: Control
    value: str
    required: bool
    main: bool
    choices: tuple[str, ...] = ()
    when: Condition | None = None
    away: bool = False  # a setting of a mode that is not chosen


class EmptyFields(ParameterError):
    """A form with empty fields that are needed."""


def entries(question: Question, given: Mapping[str, str], schema: Schema) -> list[Entry]:
    """The fields of a question, filled with what is given, or else with its example as far as that fits."""
    example = {name: write_field(value) for name, value in entries_of(question.example()).items()}
    fitting = _fitting(question, schema)
    values = given or example | fitting
    shown = {*example, *(["columns"] if fitting.get("columns") else [])}
    found = [_entry(blank, values, shown=blank.name in shown) for blank in blanks(question)]
    for name, words in LOSS_HELP.items() if spends(question) else ():
        value, main = values.get(name, ""), name == "epsilon"
        found.append(
            Entry(name=name, label=_LABELS[name], help=words, control="text", value=value, required=False, main=main)
        )
    return found


def read_form(question: Question, form: Mapping[str, str]) -> Query[Any, Any]:
    """The question that a form asks, within the limits of the body that would ask it."""
    given: dict[str, Any] = {name: form[name].strip() for name in LOSS_HELP if form.get(name, "").strip()}
    for blank in blanks(question):
        text = form.get(blank.name, "").strip()
        if text:
            given[blank.name] = _plain(blank, text)
    missing = [blank.name for blank in blanks(question) if blank.default is REQUIRED and blank.name not in given]
    if missing:
        raise EmptyFields(
            f"{question.kind}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} still to be given."
        )
    try:
        return query_of(question, _model(question).model_validate(given))
    except ValidationError as error:
        told = (f"{'.'.join(map(str, one['loc']))[:200]}: {str(one['msg'])[:200]}" for one in error.errors()[:20])
        raise ParameterError(f"{'; '.join(told)}. Correct the form.") from None


def write_field(value: Any) -> str:
    """A plain value as it stands in a field."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            nested = any(isinstance(item, list | tuple) for item in value)
            texts = map(write_field, value)
            return "; ".join(texts) if nested else ", ".join(join_list([text]) for text in texts)
        case dict():
            return json.dumps(value, ensure_ascii=False, indent=1)
        case str() | Fraction():
            return decimal(value)
        case _:
            return str(value)


def decimal(value: str | Fraction) -> str:
    """An exact number as a decimal where that is exact too; any other text as it is.

    >>> decimal("1/2"), decimal("1/3"), decimal("age")
    ('0.5', '1/3', 'age')
    """
    try:
        exact = Fraction(value)
        short = f"{float(exact):g}"
        return short if Fraction(short) == exact else str(value)
    except (ValueError, ZeroDivisionError, OverflowError):
        return str(value)


def python_text(query: Query[Any, Any], url: str, dataset: str, *, anyway: bool = False) -> str:
    """The same question in Python; `anyway`: its answer is of no use."""
    entries = entries_of(query) | ({"anyway": True} if anyway else {})
    given = ", ".join(f"{name}={_literal(value)}" for name, value in entries.items())
    return (
        "import wallflower as wf\n\n"
        f"service = wf.connect({_literal(url)})  # your token is read from $WALLFLOWER_TOKEN\n"
        f"service.open({_literal(dataset)}).{query.kind}({given})"
    )


def command_text(query: Query[Any, Any], url: str, dataset: str, *, anyway: bool = False) -> str:
    """The same question on the command line; `anyway`: its answer is of no use."""
    lines = [shlex.join(["wallflower", query.kind, dataset]), shlex.join(["--server", url])]
    for name, value in (entries_of(query) | ({"anyway": True} if anyway else {})).items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            lines.append(option if value else option.replace("--", "--no-", 1))
        else:
            lines.append(shlex.join([option, f"{name}.json" if isinstance(value, dict) else write_field(value)]))
    return " \\\n  ".join(lines)


@cache
def _model(question: Question) -> type[Body]:
    return model(question)


def _fitting(question: Question, schema: Schema) -> dict[str, str]:
    """Words of the example that name columns or records of its own are left empty; a schema is the data set's."""
    own: dict[str, str] = {}
    is_timed = schema.protects is not None and schema.protects.rows == "time"
    for blank in blanks(question):
        if blank.hint is Schema:
            own[blank.name] = write_field({**schema.to_json(), "clip": True}) if schema.columns else ""
        elif blank.hint not in (*_NUMBERS, bool) and not blank.choices:
            own[blank.name] = write_field(None if blank.default is REQUIRED else blank.default)
        if blank.name == "columns" and (question.streams or question.prepares) and not is_timed:
            own[blank.name] = write_field(schema.numbers[:1])  # each column more costs as much again
    return own


def _entry(blank: Blank, values: Mapping[str, str], *, shown: bool) -> Entry:
    required = blank.default is REQUIRED
    default = "" if required else write_field(blank.default)
    choices = ("yes", "no") if blank.hint is bool else blank.choices
    optional = blank.optional or blank.default is None
    way = _WAYS.get(blank.hint)
    return Entry(
        name=blank.name,
        label=blank.name.replace("_", " "),
        help=f"{blank.help} ({way})" if way else blank.help,
        control=_control(blank),
        value=values.get(blank.name, default),
        required=required,
        main=required or shown,
        choices=("", *choices) if choices and optional else choices,
        when=blank.when,
        away=blank.when is not None
        and blank.when.choice is not None
        and values.get(blank.when.chooser) not in (None, "", blank.when.choice),
    )


def _control(blank: Blank) -> Control:
    if blank.choices or blank.hint is bool:
        return "choice"
    if blank.hint in _WRITTEN:
        return "long"
    return "number" if blank.hint in _NUMBERS else "text"


def _plain(blank: Blank, text: str) -> Any:
    """What was typed, as the JSON that a program would send; what does not fit is left for the body to refuse."""
    try:
        if blank.hint in (int, float):
            return blank.hint(text)
        if blank.hint is bool:
            return _YES.get(text, text)
        if blank.hint in _WRITTEN:
            return json.loads(text)
    except (ValueError, RecursionError):
        return text
    if blank.hint in _LISTS:
        return _items(text, numbers=blank.hint == _LISTS[1])
    if blank.hint in _TABLES:
        return [_items(part, numbers=blank.hint == _TABLES[1]) for part in pieces_of(text, ";")]
    return text


def _items(text: str, *, numbers: bool) -> list[Any]:
    parts = split_list(text)
    try:
        return list(map(float, parts)) if numbers else list(parts)
    except ValueError:
        return list(parts)


def _literal(value: Any) -> str:
    if isinstance(value, dict):
        return f"wf.Schema.from_json({value!r})"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
