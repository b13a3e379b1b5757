"""A question as the fields of a web form, and the form as a question: a new question needs nothing here."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from textwrap import shorten
from typing import Any, Final, Literal

from pydantic import ValidationError

from wallflower.columns import join_list, pieces_of, split_list
from wallflower.curator.api.bodies import Body, Find, model, query_of
from wallflower.errors import ParameterError
from wallflower.forms import LOSS_HELP, REQUIRED, Blank, Question, blanks, entries_of, spends
from wallflower.queries.watch.seasons import ReleasedBaseline, Seasons
from wallflower.query import Condition, Query, ReleaseLike
from wallflower.release import Release
from wallflower.schema import Column, Schema

Control = Literal["text", "number", "choice", "long", "ticks"]

_NUMBERS: Final = (int, float, Fraction)
_LISTS: Final = (tuple[str, ...], tuple[float, ...])
_TABLES: Final = (tuple[tuple[str, ...], ...], tuple[tuple[float, ...], ...])
_YES: Final = {"yes": True, "no": False}
_LABELS: Final = {"epsilon": "ε, the privacy loss", "delta": "δ", "rho": "ρ"}
_WAYS: Final[Mapping[Any, str]] = {
    **dict.fromkeys(_LISTS, "several: a, b, c"),
    **dict.fromkeys(_TABLES, "several: a, b; c"),
    Schema: "as JSON, as `wallflower data` has it",
}
_SHARE: Final = "2%"  # of the records, where no radius can be suggested
_WRITTEN: Final = (Schema, Seasons)  # as JSON, or the number of a release
_WORDS: Final = 60  # characters of a release in a list of them


@dataclass(frozen=True, slots=True)
class Choice:
    """What may be chosen in a field, as it is sent and as it is shown."""

    value: str
    words: str
    chosen: bool = False


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
    choices: tuple[Choice, ...] = ()
    when: Condition | None = None
    away: bool = False  # a setting of a mode that is not chosen


class EmptyFields(ParameterError):
    """A form with empty fields that are needed."""


def entries(
    question: Question, given: Mapping[str, str], schema: Schema, released: Sequence[Release[Any]] = ()
) -> list[Entry]:
    """The fields of a question, filled with what is given, or else with its example as far as that fits. `released` are
    releases of the same data set that the question may build on."""
    example = {name: write_field(value) for name, value in entries_of(question.example()).items()}
    offers = {blank.name: _offers(blank, schema, released) for blank in blanks(question)}
    fitting = _fitting(question, schema)
    values = given or example | fitting | _suggestions(question, example, schema, offers)
    shown = {*example, *(["columns"] if fitting.get("columns") else []), *(name for name in offers if offers[name])}
    found = [_entry(blank, values, offers[blank.name], shown=blank.name in shown) for blank in blanks(question)]
    for name, words in LOSS_HELP.items() if spends(question) else ():
        value, main = values.get(name, ""), name == "epsilon"
        found.append(
            Entry(name=name, label=_LABELS[name], help=words, control="text", value=value, required=False, main=main)
        )
    return found


def read_form(question: Question, form: Mapping[str, str], find: Find | None = None) -> Query[Any, Any]:
    """The question that a form asks, within the limits of the body that would ask it; `find` as for that."""
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
        return query_of(question, _model(question).model_validate(given), find)
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


def restate(query: Query[Any, Any], released: Iterable[Release[Any]], *, anyway: bool) -> dict[str, Any]:
    """What a question was asked with; a release that it was given by its number again. `anyway`: it is of no use."""
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


def _suggestions(
    question: Question, example: Mapping[str, str], schema: Schema, offers: Mapping[str, Sequence[Choice]]
) -> dict[str, str]:
    """Of the example's numbers only those that mean something in this table: bounds are its own, a threshold is kept
    only within the same bounds, and a radius only where every column is in spreads."""
    known = [column for column in schema.columns or () if column.name in schema.numbers]
    own: dict[str, str] = {}
    if known and {"low", "high"} <= example.keys():
        ends = {_ends(column) for column in known}
        (low, high) = next(iter(ends)) if len(ends) == 1 else ("", "")
        if not low or (float(low), float(high)) != (float(example["low"]), float(example["high"])):
            own |= {"low": low, "high": high} if question.prepares else {"low": "", "high": ""}
            own |= {name: "" for name in ("threshold", "variance") if name in example}
    if known and "radius" in example and all(column.scale == 1 for column in known):
        own["radius"] = ""
        own |= {"share": _SHARE} if "share" in offers else {}
        own |= {"scale": offers["scale"][0].value} if offers.get("scale") else {}
    return own


def _ends(column: Column) -> tuple[str, str]:
    """The public bounds of a column, as a question sees them."""
    if column.low is None or column.high is None:
        return "", ""
    low, high = ((float(end) - float(column.center)) / float(column.scale) for end in (column.low, column.high))
    return f"{low:g}", f"{high:g}"


def _offers(blank: Blank, schema: Schema, released: Sequence[Release[Any]]) -> tuple[Choice, ...]:
    """What a table, or what was released about it, offers for a field; the latest release first."""
    if takes_release(blank):
        fitting = [made for made in reversed(released) if made.kind == blank.name and _is_taken(blank, made.value)]
        return tuple(Choice(str(made.ledger_id), f"release {made.ledger_id}: {_short(made)}") for made in fitting)
    kind = {"labels": "category", "times": "time"}.get(blank.names or "")
    return tuple(Choice(join_list([one.name]), one.name) for one in schema.columns or () if one.kind == kind)


def takes_release(blank: Blank) -> bool:
    """Whether a field takes a release, of the kind that it is called."""
    return bool({ReleaseLike, ReleasedBaseline} & set(blank.also))


def _is_taken(blank: Blank, value: Any) -> bool:
    return blank.hint is not Seasons or "phase" in value


def _short(made: Release[Any]) -> str:
    return shorten(made.words.partition(". ")[0], _WORDS, placeholder=" …")


def _entry(blank: Blank, values: Mapping[str, str], offers: tuple[Choice, ...], *, shown: bool) -> Entry:
    required = blank.default is REQUIRED
    default = "" if required else write_field(blank.default)
    way = _WAYS.get(blank.hint)
    value = values.get(blank.name, default)
    control = _control(blank, offers)
    return Entry(
        name=blank.name,
        label=blank.name.replace("_", " "),
        help=f"{blank.help} ({way})" if way and control != "ticks" else blank.help,
        control=control,
        value=value,
        required=required,
        main=required or shown,
        choices=_choices(blank, offers, value) if control in ("choice", "ticks") else (),
        when=blank.when,
        away=blank.when is not None
        and blank.when.choice is not None
        and values.get(blank.when.chooser) not in (None, "", blank.when.choice),
    )


def _choices(blank: Blank, offers: tuple[Choice, ...], value: str) -> tuple[Choice, ...]:
    """What may be chosen; what stands there already is kept, and nothing is one of them where it may be left out."""
    own = ("yes", "no") if blank.hint is bool else blank.choices
    known = tuple(Choice(word, word) for word in own) or offers
    is_list = blank.hint in _LISTS
    chosen = {join_list([name]) for name in split_list(value)} if is_list else {value}
    strange = tuple(Choice(one, one) for one in sorted(chosen - {"", *(choice.value for choice in known)}))
    empty = () if is_list or not (blank.optional or blank.default is None) else (Choice("", "left out"),)
    strange = () if own else strange
    return tuple(replace(choice, chosen=choice.value in chosen) for choice in (*empty, *known, *strange))


def _control(blank: Blank, offers: tuple[Choice, ...]) -> Control:
    if blank.choices or blank.hint is bool or takes_release(blank):
        return "choice"
    if offers:
        return "ticks" if blank.hint in _LISTS else "choice"
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
