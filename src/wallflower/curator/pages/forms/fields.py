"""A question as the fields of a web form, and the form as a question: a new question needs nothing here."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from textwrap import shorten
from typing import Any, Final, Literal

from pydantic import ValidationError

from wallflower.curator.api.bodies import Body, Find, model, query_of
from wallflower.curator.pages.forms.faults import EmptyFields, faults_in
from wallflower.curator.pages.forms.pickers import Choice, offers_for, tick
from wallflower.curator.pages.forms.scales import OWN, Ruler, asides, is_typed_own, own_text, ruler_of
from wallflower.curator.pages.forms.suggestions import Suggestion
from wallflower.curator.pages.forms.translation import chosen_columns, translate
from wallflower.errors import ParameterError
from wallflower.queries.watch.seasons import ReleasedBaseline, Seasons
from wallflower.query import Condition, Query, ReleaseLike
from wallflower.query.forms import LOSS_HELP, REQUIRED, Blank, Question, blanks, entries_of, spends
from wallflower.release import Release
from wallflower.schema import Schema
from wallflower.schema.columns import join_list, pieces_of, split_list

Control = Literal["text", "number", "choice", "ticks", "kept"]

_NUMBERS: Final = (int, float, Fraction)
_LISTS: Final = (tuple[str, ...], tuple[float, ...])
_TABLES: Final = (tuple[tuple[str, ...], ...], tuple[tuple[float, ...], ...])
_YES: Final = {"yes": True, "no": False}
_LABELS: Final = {"epsilon": "ε, the privacy loss", "delta": "δ", "rho": "ρ"}
_WAYS: Final[Mapping[Any, str]] = {
    **dict.fromkeys(_LISTS, "several: a, b, c"),
    **dict.fromkeys(_TABLES, "several: a, b; c"),
}
_CUTS: Final = "where columns of numbers are cut into groups, if the schema does not say it: age: 18, 65; weight: 80"
_TICKED: Final = "tick the groups that belong to it"
_WRITTEN: Final = (Schema, Seasons)  # as JSON, or the number of a release
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
    aside: str = ""
    fault: str = ""
    none: str = ""  # what it means that nothing is ticked


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What a form knows of a data set: its schema, the records that may be named, and releases to build on."""

    schema: Schema = field(default_factory=Schema)
    records: tuple[str, ...] = ()
    released: Sequence[Release[Any]] = ()


def entries(question: Question, given: Mapping[str, str], table: Table | Schema) -> list[Entry]:
    """The fields of a question, filled with what is given, or else with what its example and the schema suggest."""
    table = Table(schema=table) if isinstance(table, Schema) else table
    asked = blanks(question)
    offers = {blank.name: _offers(blank, table) for blank in asked}
    example = {name: write_field(value) for name, value in entries_of(question.example()).items()}
    defaults = {blank.name: "" if blank.default is REQUIRED else write_field(blank.default) for blank in asked}
    of_table = Suggestion(
        question=question, example=example, defaults=defaults, schema=table.schema, records=table.records
    )
    values = given or of_table.values(offers)
    chosen = chosen_columns(question, values)
    shown = {*example, *(name for name in offers if offers[name])}
    found = [
        _entry(blank, values, offers[blank.name], table.schema, chosen, shown=blank.name in shown) for blank in asked
    ]
    for name, words in LOSS_HELP.items() if spends(question) else ():
        value, main = values.get(name, ""), name == "epsilon"
        found.append(
            Entry(
                name=name,
                field=name,
                label=_LABELS[name],
                help=words,
                control="text",
                value=value,
                required=False,
                main=main,
            )
        )
    return found


def read_form(
    question: Question, form: Mapping[str, str], find: Find | None = None, schema: Schema | None = None
) -> Query[Any, Any]:
    """The question that a form asks, within the limits of the body that would ask it; `find` as for that. With a
    `schema` the form may say it as the page of that data set does."""
    asked = blanks(question)
    form = form if schema is None else translate(question, form, schema)
    given: dict[str, Any] = {name: form[name].strip() for name in LOSS_HELP if form.get(name, "").strip()}
    for blank in asked:
        text = form.get(blank.name, "").strip()
        if text:
            given[blank.name] = _plain(blank, text)
    missing = [blank.name for blank in asked if blank.default is REQUIRED and blank.name not in given]
    if missing:
        words = f"{question.kind}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} still to be given."
        raise EmptyFields(dict.fromkeys(missing, "This is still to be given."), words)
    try:
        return query_of(question, _model(question).model_validate(given), find)
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


def restate(query: Query[Any, Any], released: Iterable[Release[Any]], *, anyway: bool) -> dict[str, Any]:
    """What a question was asked with; a baseline that was released is named by its number again. `anyway`: it was
    wanted though it is of no use."""
    found = entries_of(query) | ({"anyway": True} if anyway else {})
    numbers = [made.ledger_id for made in released if made.kind == "baseline" and made.value == found.get("baseline")]
    return found | ({"baseline": numbers[0]} if numbers else {})


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
    return model(question)


def _offers(blank: Blank, table: Table) -> tuple[Choice, ...]:
    """What a table, or what was released about it, offers for a field; the latest release first."""
    if takes_release(blank):
        fitting = [
            made for made in reversed(table.released) if made.kind == blank.name and _is_taken(blank, made.value)
        ]
        return tuple(Choice(str(made.ledger_id), f"release {made.ledger_id}: {_short(made)}") for made in fitting)
    return offers_for(blank, table.schema, table.records)


def takes_release(blank: Blank) -> bool:
    """Whether a field takes a release, of the kind that it is called."""
    return bool({ReleaseLike, ReleasedBaseline} & set(blank.also))


def _is_taken(blank: Blank, value: Any) -> bool:
    return blank.hint is not Seasons or "phase" in value


def _short(made: Release[Any]) -> str:
    return shorten(made.words.partition(". ")[0], _WORDS, placeholder=" …")


def _entry(
    blank: Blank,
    values: Mapping[str, str],
    offers: tuple[Choice, ...],
    schema: Schema,
    chosen: list[str],
    *,
    shown: bool,
) -> Entry:
    required = blank.default is REQUIRED
    default = "" if required else write_field(blank.default)
    given = values.get(blank.name, default)
    control = _control(blank, offers, given)
    name, unit, aside = blank.name, "", ""
    if blank.span is not None:
        ruler = ruler_of(schema, chosen)
        unit = _unit(blank, ruler)
        if is_typed_own(blank, schema):
            name = f"{blank.name}{OWN}"
            given = values.get(name) or own_text(values.get(blank.name, ""), blank, ruler)
            aside = asides((blank,), {name: given}, schema, chosen).get(blank.name, "")
    return Entry(
        name=name,
        field=blank.name,
        label=_label(blank, schema),
        help=_help(blank, control, schema),
        control=control,
        value=given,
        required=required and not _is_cut(blank, schema),
        main=required or shown,
        choices=_choices(blank, offers, given) if control in ("choice", "ticks") else (),
        when=blank.when,
        away=blank.when is not None and _is_away(blank.when, blank, values, default),
        unit=unit,
        aside=aside,
        none=_none(blank, offers) if control == "ticks" and not required else "",
    )


def _is_cut(blank: Blank, schema: Schema) -> bool:
    """Whether a field asks for public values that the table's own schema has."""
    return blank.hint is Schema and bool(schema.columns)


def _label(blank: Blank, schema: Schema) -> str:
    return "cuts" if _is_cut(blank, schema) else blank.name.replace("_", " ")


def _help(blank: Blank, control: Control, schema: Schema) -> str:
    if _is_cut(blank, schema):
        return _CUTS
    if control == "ticks" and blank.names == "context":
        return f"{blank.help.removesuffix(', as bits').replace(', as bits', '')}: {_TICKED}"
    way = _WAYS.get(blank.hint)
    return f"{blank.help} ({way})" if way and control != "ticks" else blank.help


def _none(blank: Blank, offers: tuple[Choice, ...]) -> str:
    if blank.names in ("numbers", "measured"):
        return f"None ticked: all {len(offers)}."
    return "None ticked: left out."


def _unit(blank: Blank, ruler: Ruler | None) -> str:
    """The unit that a number is typed in; distances over several columns have none."""
    if ruler is None or not ruler.unit or blank.span == "radius" or (blank.span == "sum" and ruler.columns > 1):
        return ""
    return f"({ruler.unit})²" if blank.span == "square" else ruler.unit


def _is_away(when: Condition, blank: Blank, values: Mapping[str, str], default: str) -> bool:
    """Whether a setting is hidden, as another mode than its own is chosen; where none is, what differs from its default
    is shown."""
    chosen = values.get(when.chooser, "")
    if not chosen:
        return values.get(blank.name, default) == default
    return when.choice is not None and chosen != when.choice


def _choices(blank: Blank, offers: tuple[Choice, ...], value: str) -> tuple[Choice, ...]:
    """What may be chosen: with what the field holds already, and with an empty choice where it may be left out."""
    own = ("yes", "no") if blank.hint is bool else blank.choices
    known = tuple(Choice(word, word) for word in own) or offers
    is_list = blank.hint in _LISTS or blank.names == "context"
    chosen = _ticked_names(value) if is_list else {value}
    strange = tuple(Choice(one, one) for one in sorted(chosen - {"", *(choice.value for choice in known)}))
    left = blank.optional or blank.default is None
    empty = () if is_list else (Choice("", "left out"),) if left else (Choice("", "choose"),)
    empty = empty if left or (blank.default is REQUIRED and not own) else ()
    return tick((*empty, *known, *(() if own else strange)), chosen)


def _ticked_names(value: str) -> set[str]:
    try:
        return {join_list([name]) for name in split_list(value)}
    except ParameterError:
        return set()


def _control(blank: Blank, offers: tuple[Choice, ...], value: str) -> Control:
    if blank.choices or blank.hint is bool or takes_release(blank):
        return "choice"
    if blank.hint in _WRITTEN:
        return "kept" if value.startswith("{") else "text"
    if blank.names == "context" and offers and set(value) - {"0", "1"} == set(value):
        return "ticks"
    if offers and blank.names != "context":
        return "ticks" if blank.hint in _LISTS else "choice"
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
