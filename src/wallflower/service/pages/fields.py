"""A query as the fields of a web form, a form as a query, and what is wrong with it, field by field.

A new query needs nothing here.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from textwrap import shorten
from typing import Any, Final, Literal

from pydantic import ValidationError

from wallflower.errors import DataError, ParameterError, PrivacyError
from wallflower.query import Condition, Query
from wallflower.query.parameter import LOSS_HELP, REQUIRED, Parameter, Question, entries_of, list_parameters, spends
from wallflower.release import Release
from wallflower.schema import Schema
from wallflower.schema.columns import join_list, pieces_of, split_list
from wallflower.service.api.bodies import Body, FindRelease, body_model, parse_query
from wallflower.service.pages.choices import (
    OWN,
    Choice,
    Ruler,
    Suggestion,
    asides,
    bits_of,
    chosen_columns,
    cut,
    cut_names,
    is_typed_own,
    offers_for,
    own_text,
    ruler_of,
    scaled_text,
    tick,
)
from wallflower.service.pages.titles import LOSS_TITLES, title_of
from wallflower.text import Message, join, label, t

_NAMED: Final = re.compile(r"^(?:[\w-]+: )?(\w+)(?:, \w+)*: +")
_SHOWN: Final = 40  # characters of what was typed


class FieldFaults(ParameterError):
    """Fields that cannot be read: what to do about each, by name."""

    def __init__(self, fields: Mapping[str, str], words: str | None = None) -> None:
        super().__init__(words or " ".join(f"{name}: {told}" for name, told in fields.items()))
        self.fields = dict(fields)


class EmptyFields(FieldFaults):
    """A form with empty fields that are needed."""


def faults_of(refusal: PrivacyError, question: Question, words: str) -> dict[str, str]:
    """The fields that a refusal is about; `words` are the refusal as it may be told."""
    if isinstance(refusal, FieldFaults):
        return refusal.fields
    known = {parameter.name: parameter for parameter in list_parameters(question)}
    if isinstance(refusal, DataError) and refusal.column is not None:
        kinds = ("numbers", "measured", "groups", "labels")  # a column of a distance is named first
        naming = [name for kind in kinds for name, parameter in known.items() if parameter.names == kind]
        return dict.fromkeys(naming[:1], words)
    found = _NAMED.match(words)
    if found and (found[1] in known or found[1] in LOSS_HELP):
        told = words[found.end() :]
        return {found[1]: told[:1].upper() + told[1:]}
    return {"epsilon": words} if "privacy loss is stated" in words or "loss is stated once" in words else {}


def faults_in(error: ValidationError, question: Question, form: Mapping[str, str]) -> FieldFaults:
    """What a body refuses, as a person would be told."""
    known = {parameter.name: parameter for parameter in list_parameters(question)}
    told: dict[str, str] = {}
    for one in error.errors(include_url=False, include_context=True)[:20]:
        name = str(one["loc"][0]) if one["loc"] else ""
        text = form.get(name, "").strip()[:_SHOWN]
        told.setdefault(name, _words(one, known.get(name), text))
    return FieldFaults(told)


def _words(one: Mapping[str, Any], parameter: Parameter | None, text: str) -> str:
    limits = one.get("ctx", {})
    kind = str(one["type"])
    if kind in _LIMITS:
        return _LIMITS[kind](limits)
    if parameter is not None and parameter.choices:
        return t("{text!r} is not valid; choose one of {choices}.", text=text, choices=", ".join(parameter.choices))
    hint = None if parameter is None else parameter.hint
    return join(" ", (repr(text), _KINDS.get(hint, t("cannot be read. Correct it."))))


_KINDS: Final[Mapping[Any, Message]] = {
    int: t("is not a whole number. Write one, such as 5."),
    float: t("is not a number. Write one, such as 1.5."),
    Fraction: t("is not a number. Write one, such as 0.05 or 5%."),
    bool: t("is neither yes nor no. Choose one."),
    tuple[float, ...]: t("is not a list of numbers. Write them as 1, 2.5."),
    tuple[tuple[float, ...], ...]: t("is not rows of numbers. Write them as 1, 0; 0, 1."),
}
_LIMITS: Final[Mapping[str, Callable[[Mapping[str, Any]], Message]]] = {
    "less_than_equal": lambda limits: t("Must be at most {limit:,g}.", limit=limits["le"]),
    "greater_than_equal": lambda limits: t("Must be at least {limit:,g}.", limit=limits["ge"]),
    "finite_number": lambda _: t("Must be a finite number, such as 1.5."),
    "string_too_long": lambda limits: t("At most {n:,} characters are allowed.", n=limits["max_length"]),
    "too_long": lambda limits: t("At most {n:,} values are allowed.", n=limits["max_length"]),
}


def translate(question: Question, form: Mapping[str, str], schema: Schema) -> dict[str, str]:
    """The form as the question has its fields; what cannot be translated is refused, field by field."""
    found, faults = dict(form), dict[str, str]()
    for parameter in list_parameters(question):
        try:
            found |= _translate_field(parameter, question, found, schema)
        except ParameterError as refusal:
            words = str(refusal)
            faults[parameter.name] = words[:1].upper() + words[1:]
    if faults:
        raise FieldFaults(faults)
    return found


def _translate_field(
    parameter: Parameter, question: Question, form: Mapping[str, str], schema: Schema
) -> dict[str, str]:
    """What a field becomes, and with it others."""
    own, text = form.get(f"{parameter.name}{OWN}", "").strip(), form.get(parameter.name, "").strip()
    if own:
        return {parameter.name: scaled_text(own, parameter, ruler_of(schema, chosen_columns(question, form)))}
    if parameter.names == "record":
        return _record(parameter, question, text, form, schema)
    if parameter.hint is Schema and schema.columns and not text.startswith("{"):
        return _domain(parameter, question, text, form, schema)
    if parameter.names == "context" and text:
        stated = next((form.get(one.name, "") for one in list_parameters(question) if one.hint is Schema), "")
        domain = _schema_of(stated) if stated.startswith("{") else schema
        context = next((form.get(one.name, "") for one in list_parameters(question) if one.names == "groups"), "")
        return {parameter.name: bits_of(text, domain, split_list(context))}
    return {}


def _schema_of(stated: str) -> Schema:
    """A schema that a link carries as it is."""
    try:
        return Schema.from_json(json.loads(stated))
    except (ValueError, RecursionError):
        raise ParameterError(t("the public values in the link cannot be read. Start from the form again.")) from None


def _record(
    parameter: Parameter, question: Question, text: str, form: Mapping[str, str], schema: Schema
) -> dict[str, str]:
    """A record that is listed as `column=value` is looked up in that column."""
    column, mark, value = text.partition("=")
    lookup = next((one.name for one in list_parameters(question) if one.names == "identifiers"), None)
    known = [one.name for one in schema.columns or () if one.identifier]
    if lookup is None or not mark or column not in known or form.get(lookup, "").strip():
        return {}
    return {parameter.name: value, lookup: column}


def _domain(
    parameter: Parameter, question: Question, text: str, form: Mapping[str, str], schema: Schema
) -> dict[str, str]:
    """The public values of the columns that are named: as the schema has them, or cut as the field says."""
    made, context = cut(schema, text), next((one for one in list_parameters(question) if one.names == "groups"), None)
    ticked = [] if context is None else split_list(form.get(context.name, ""))
    groups = list(dict.fromkeys([*ticked, *cut_names(text)]))
    single = (
        form.get(one.name, "").strip()
        for one in list_parameters(question)
        if one.names == "numbers" and one.hint is str
    )
    names = dict.fromkeys([*groups, *filter(None, single)]) or dict.fromkeys(schema.numbers)
    domain = Schema(columns=made.only(list(names)).columns, rows=schema.rows, clip=True).bare()
    own = {} if context is None else {context.name: join_list(groups)}
    return own | {parameter.name: json.dumps(domain.to_json(), ensure_ascii=False)}


Control = Literal["text", "number", "choice", "ticks", "kept"]

_NUMBERS: Final = (int, float, Fraction)
_LISTS: Final = (tuple[str, ...], tuple[float, ...])
_TABLES: Final = (tuple[tuple[str, ...], ...], tuple[tuple[float, ...], ...])
_YES: Final = {"yes": True, "no": False}
_WAYS: Final[Mapping[Any, Message]] = {
    **dict.fromkeys(_LISTS, t("several: a, b, c")),
    **dict.fromkeys(_TABLES, t("several: a, b; c")),
}
_CUTS: Final = t("cut points of number columns that the schema does not cut into groups: age: 18, 65; weight: 80")
_WORDS: Final = 60  # characters of a release in a list of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One field of a form: `name` is what it is sent as, `field` what it is to the question. `main`: it is shown at
    once, not among the further settings. `aside` is what its number is on the scale of the question."""

    name: str
    field: str
    label: str
    help: str
    control: Control
    value: str
    required: bool
    main: bool
    choices: tuple[Choice, ...] = ()
    when: Condition | None = None
    away: bool = False  # a setting of a mode that is not chosen
    unit: str = ""
    counted: str = ""  # what the number counts, where it has no unit
    aside: str = ""
    fault: str = ""
    none: str = ""  # what it means that nothing is ticked
    code: str = ""  # how a program calls it, where the form has a title for it
    code_help: str = ""  # what a program is told of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What a form knows of a data set: its schema, the records that may be named, and releases to build on."""

    schema: Schema = field(default_factory=Schema)
    records: tuple[str, ...] = ()
    released: Sequence[Release[Any]] = ()


def entries(question: Question, given: Mapping[str, str], table: Table | Schema) -> list[Entry]:
    """The fields of a question, filled with what is given, or else with what its example and the schema suggest."""
    table = Table(schema=table) if isinstance(table, Schema) else table
    asked = list_parameters(question)
    offers = {parameter.name: _offers(parameter, table) for parameter in asked}
    example = {name: write_field(value) for name, value in entries_of(question.example()).items()}
    defaults = {
        parameter.name: "" if parameter.default is REQUIRED else write_field(parameter.default) for parameter in asked
    }
    of_table = Suggestion(
        question=question, example=example, defaults=defaults, schema=table.schema, records=table.records
    )
    values = given or of_table.values(offers)
    chosen = chosen_columns(question, values)
    shown = {*example, *(name for name in offers if offers[name])}
    found = [
        _entry(question, parameter, values, offers[parameter.name], table.schema, chosen, shown=parameter.name in shown)
        for parameter in asked
    ]
    for name, words in LOSS_HELP.items() if spends(question) else ():
        value, main = values.get(name, ""), name == "epsilon"
        found.append(
            Entry(
                name=name,
                field=name,
                label=LOSS_TITLES[name].title,
                help=LOSS_TITLES[name].text,
                code=name,
                code_help=words,
                control="text",
                value=value,
                required=False,
                main=main,
            )
        )
    return found


def read_form(
    question: Question, form: Mapping[str, str], find: FindRelease | None = None, schema: Schema | None = None
) -> Query[Any, Any]:
    """The question that a form asks, within the limits of the body that would ask it; `find` as for that. With a
    `schema` the form may say it as the page of that data set does."""
    asked = list_parameters(question)
    form = form if schema is None else translate(question, form, schema)
    given: dict[str, Any] = {name: form[name].strip() for name in LOSS_HELP if form.get(name, "").strip()}
    for parameter in asked:
        text = form.get(parameter.name, "").strip()
        if text:
            given[parameter.name] = _plain(parameter, text)
    missing = [parameter.name for parameter in asked if parameter.default is REQUIRED and parameter.name not in given]
    if missing:
        words = t("{query}: required: {names}.", query=question.kind, names=", ".join(missing))
        raise EmptyFields(dict.fromkeys(missing, t("Required.")), words)
    try:
        return parse_query(question, _model(question).model_validate(given), find)
    except ValidationError as error:
        raise faults_in(error, question, form) from None


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


def restate(query: Query[Any, Any], released: Iterable[Release[Any]], *, force: bool) -> dict[str, Any]:
    """Return what a query was asked with; a value that was released is named by its ledger entry again.

    `force`: it was asked although the plan predicted mostly noise.
    """
    stated, earlier = entries_of(query) | ({"force": True} if force else {}), list(released)
    for parameter in list_parameters(type(query)):
        taken = parameter.release
        if taken is not None and taken.as_value and parameter.name in stated:
            value = stated[parameter.name]
            entries = [made.ledger_id for made in earlier if made.kind == taken.kind and made.value == value]
            stated |= {parameter.name: entries[0]} if entries else {}
    return stated


def python_text(kind: str, entries: Mapping[str, Any], url: str, dataset: str) -> str:
    """The same question in Python."""
    given = ", ".join(f"{name}={_literal(value)}" for name, value in entries.items())
    return (
        "import wallflower as wf\n\n"
        f"service = wf.connect({_literal(url)})  # your token is read from $WALLFLOWER_TOKEN\n"
        f"service.open({_literal(dataset)}).{kind}({given})"
    )


def command_text(kind: str, entries: Mapping[str, Any], url: str, dataset: str) -> str:
    """The same question on the command line."""
    lines = [shlex.join(["wallflower", kind, dataset]), shlex.join(["--server", url])]
    for name, value in entries.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            lines.append(option if value else option.replace("--", "--no-", 1))
        else:
            lines.append(shlex.join([option, f"{name}.json" if isinstance(value, dict) else write_field(value)]))
    return " \\\n  ".join(lines)


@cache
def _model(question: Question) -> type[Body]:
    return body_model(question)


def _offers(parameter: Parameter, table: Table) -> tuple[Choice, ...]:
    """What a table, or what was released about it, offers for a field; the latest release first."""
    if parameter.release is not None:
        fitting = [made for made in reversed(table.released) if parameter.release.accepts(made.kind, made.value)]
        return tuple(
            Choice(str(made.ledger_id), t("release {entry}: {summary}", entry=made.ledger_id, summary=_short(made)))
            for made in fitting
        )
    return offers_for(parameter, table.schema, table.records)


def takes_release(parameter: Parameter) -> bool:
    """Return whether a field takes an earlier release."""
    return parameter.release is not None


def _short(made: Release[Any]) -> str:
    return shorten(made.text.partition(". ")[0], _WORDS, placeholder=" …")


def _entry(
    question: Question,
    parameter: Parameter,
    values: Mapping[str, str],
    offers: tuple[Choice, ...],
    schema: Schema,
    chosen: list[str],
    *,
    shown: bool,
) -> Entry:
    required = parameter.default is REQUIRED
    default = "" if required else write_field(parameter.default)
    given = values.get(parameter.name, default)
    control = _control(parameter, offers, given)
    name, unit, aside = parameter.name, "", ""
    if parameter.span is not None:
        ruler = ruler_of(schema, chosen)
        unit = _unit(parameter, ruler)
        if is_typed_own(parameter, schema):
            name = f"{parameter.name}{OWN}"
            given = values.get(name) or own_text(values.get(parameter.name, ""), parameter, ruler)
            aside = asides((parameter,), {name: given}, schema, chosen).get(parameter.name, "")
    title = None if _is_cut(parameter, schema) else title_of(question.kind, parameter.name)
    help_ = _help(parameter, control, schema)
    return Entry(
        name=name,
        field=parameter.name,
        label=_label(parameter, schema) if title is None else title.title,
        help=help_ if title is None else title.text,
        code="" if title is None else parameter.name,
        code_help="" if title is None else help_,
        control=control,
        value=given,
        required=required and not _is_cut(parameter, schema),
        main=required or shown,
        choices=_choices(parameter, offers, given) if control in ("choice", "ticks") else (),
        when=parameter.when,
        away=parameter.when is not None and _is_away(parameter.when, parameter, values, default),
        unit=unit,
        counted="" if title is None or title.unit is None else title.unit,
        aside=aside,
        none=_none(parameter, offers) if control == "ticks" and not required else "",
    )


def _is_cut(parameter: Parameter, schema: Schema) -> bool:
    """Whether a field asks for public values that the table's own schema has."""
    return parameter.hint is Schema and bool(schema.columns)


def _label(parameter: Parameter, schema: Schema) -> str:
    return t("cut points") if _is_cut(parameter, schema) else parameter.name.replace("_", " ")


def _help(parameter: Parameter, control: Control, schema: Schema) -> str:
    if _is_cut(parameter, schema):
        return _CUTS
    if control == "ticks" and parameter.names == "context":
        return t("{help}: tick the groups that belong to it", help=label(parameter.help))
    way = _WAYS.get(parameter.hint)
    return (
        t("{help} ({format})", help=label(parameter.help), format=way) if way and control != "ticks" else parameter.help
    )


def _none(parameter: Parameter, offers: tuple[Choice, ...]) -> str:
    if parameter.names in ("numbers", "measured"):
        return t("None ticked: all {n:,}.", n=len(offers))
    return t("None ticked: default.")


def _unit(parameter: Parameter, ruler: Ruler | None) -> str:
    """The unit that a number is typed in; distances over several columns have none."""
    if ruler is None or not ruler.unit or parameter.span == "radius" or (parameter.span == "sum" and ruler.columns > 1):
        return ""
    return f"({ruler.unit})²" if parameter.span == "square" else ruler.unit


def _is_away(when: Condition, parameter: Parameter, values: Mapping[str, str], default: str) -> bool:
    """Whether a setting is hidden, as another mode than its own is chosen; where none is, what differs from its default
    is shown."""
    chosen = values.get(when.chooser, "")
    if not chosen:
        return values.get(parameter.name, default) == default
    return when.choice is not None and chosen != when.choice


def _choices(parameter: Parameter, offers: tuple[Choice, ...], value: str) -> tuple[Choice, ...]:
    """What may be chosen: with what the field holds already, and with an empty choice where it may be left out."""
    own = ("yes", "no") if parameter.hint is bool else parameter.choices
    known = tuple(Choice(word, word) for word in own) or offers
    is_list = parameter.hint in _LISTS or parameter.names == "context"
    chosen = _ticked_names(value) if is_list else {value}
    strange = tuple(Choice(one, one) for one in sorted(chosen - {"", *(choice.value for choice in known)}))
    left = parameter.optional or parameter.default is None
    empty = () if is_list else (Choice("", t("default")),) if left else (Choice("", t("choose")),)
    empty = empty if left or (parameter.default is REQUIRED and not own) else ()
    return tick((*empty, *known, *(() if own else strange)), chosen)


def _ticked_names(value: str) -> set[str]:
    try:
        return {join_list([name]) for name in split_list(value)}
    except ParameterError:
        return set()


def _is_written(parameter: Parameter) -> bool:
    """Return whether a field is written as JSON, or as the number of a release."""
    return parameter.hint is Schema or (parameter.release is not None and parameter.release.as_value)


def _control(parameter: Parameter, offers: tuple[Choice, ...], value: str) -> Control:
    if parameter.choices or parameter.hint is bool or takes_release(parameter):
        return "choice"
    if _is_written(parameter):
        return "kept" if value.startswith("{") else "text"
    if parameter.names == "context" and offers and set(value) - {"0", "1"} == set(value):
        return "ticks"
    if offers and parameter.names != "context":
        return "ticks" if parameter.hint in _LISTS else "choice"
    return "number" if parameter.hint in _NUMBERS else "text"


def _plain(parameter: Parameter, text: str) -> Any:
    """What was typed, as the JSON that a program would send; what does not fit is left for the body to refuse."""
    try:
        if parameter.hint in (int, float):
            return parameter.hint(text)
        if parameter.hint is bool:
            return _YES.get(text, text)
        if _is_written(parameter):
            return json.loads(text)
    except (ValueError, RecursionError):
        return text
    if parameter.hint in _LISTS:
        return _items(text, numbers=parameter.hint == _LISTS[1])
    if parameter.hint in _TABLES:
        return [_items(part, numbers=parameter.hint == _TABLES[1]) for part in pieces_of(text, ";")]
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
