"""Draft a schema for a file: public facts are asked for or given by options.

The draft reads the names and types of columns and the number of records. Parquet, Arrow, DuckDB and PostgreSQL declare
types. Those of text files, workbooks, SQLite and partition folders are inferred from cells, so one cell can decide
whether a column is drafted as numbers; the draft says so, and `--types` states them instead. A release must not depend
on inferred types: with `--epsilon`, only columns that an option calls numbers are measured in such a source. Bounds and
categories are values of records, so they are always given, and a spread is given or paid for.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import typer

from wallflower.cli.domain import bounds_fact
from wallflower.cli.options import numbers, way_to_read
from wallflower.cli.show import notice, show, sign_of_life
from wallflower.data import Column, Schema, load, survey
from wallflower.data.people import most_rows_of_one
from wallflower.errors import DataError, ParameterError, SourceError
from wallflower.ledger import Ledger
from wallflower.machine.files import write_text
from wallflower.names import require_account_name
from wallflower.privacy import Loss
from wallflower.queries.scale import Scale
from wallflower.rehearsal import TYPES, Draft, labels_fact
from wallflower.release import check_shared_records, default_analyst, pay
from wallflower.schema import Person
from wallflower.schema.column import is_identifier_like
from wallflower.schema.columns import FORMAT, list_names, pick, split_list
from wallflower.schema.person import read_rollup
from wallflower.units import Protection

_DATES: Final = ("date", "time of day")


def init(arguments: dict[str, Any]) -> None:
    """Look at names and types, take or ask for what is public, write the schema and say what to do next."""
    written = way_to_read(arguments)
    output = arguments["output"] or Path(f"{_stem(arguments['source'])}.toml")
    if output.suffix.lower() != ".toml":
        raise ParameterError(f"{output}: a schema is drafted as TOML. Let the name end in .toml.")
    if output.exists() and not arguments["overwrite"]:
        raise SourceError(f"{output}: the file exists, and nothing was written. Name another, or pass --overwrite.")
    facts = survey(arguments["source"], **written)
    types = {column["name"]: column["type"] for column in facts["columns"]}
    name = require_account_name("dataset (pass --dataset NAME)", arguments["dataset"] or facts["name"])
    draft = Draft(name, facts["rows"], facts["declared"], types)
    if arguments["only"] is not None:
        _keep_only(draft, arguments["only"])
    person = _take_person(draft, arguments)
    _take(draft, arguments)
    is_asked = arguments["ask"] and sys.stdin.isatty()
    _set_identifiers_aside(draft, arguments, is_asked=is_asked)
    if person is None:
        person = _notice_repeats(draft, arguments, is_asked=is_asked)
    if is_asked:
        _ask(draft)
    protection = None if person is not None else _protection(arguments, is_asked)
    draft.person = person
    if arguments["location"] and arguments["epsilon"] is None:
        raise ParameterError("location: bounds and centres are paid for. Add an epsilon, or leave it out.")
    if arguments["epsilon"] is not None:
        _buy_spreads(draft, arguments, protection)
    if protection is None or protection.rows == "people":  # a watch's centre and threshold are in the stream's units
        draft.scale_by_bounds()
    schema = _schema(draft, arguments, protection)
    write_text(output, _text(draft, schema, arguments))
    _check(arguments["source"], schema)
    _finish(draft, output, arguments)


def _keep_only(draft: Draft, names: str) -> None:
    """Leave all columns out but these."""
    wanted = pick(split_list(names), tuple(draft.types))
    draft.types.update({name: "leave" for name in draft.types if name not in wanted})


def _set_identifiers_aside(draft: Draft, arguments: Mapping[str, Any], *, is_asked: bool) -> None:
    """Leave columns of numbers out of distances whose names are those of identifiers, unless somebody typed them."""
    typed = {name for name, _ in _stated_types(draft, arguments)}
    likely = [
        name
        for name, kind in draft.types.items()
        if kind in _NUMBERS and name not in typed and name not in draft.facts and is_identifier_like(name)
    ]
    if is_asked:
        likely = [name for name in likely if typer.confirm(f"{name}: is this an identifier?", default=True, err=True)]
    for name in likely:
        draft.types[name] = "identifier"
        draft.facts.setdefault(name, {})["identifier"] = True
    if likely:
        keep = f"To keep one as numbers: --types {shlex.quote(f'{likely[0]}=number')}."
        notice(f"Left out of distances, since their names are those of identifiers: {list_names(likely)}. {keep}")


def _take_person(draft: Draft, arguments: Mapping[str, Any]) -> Person | None:
    """Read who the rows belong to from options; columns that `count` makes are drafted as whole numbers."""
    if arguments["person"] is None:
        if arguments["rollup"] or arguments["max_rows"] or arguments["order"]:
            raise ParameterError("rollup, max-rows and order need the column that identifies a person. Add --person.")
        return None
    if arguments["rows"] == "time" or arguments["units_per_person"] != 1:
        raise ParameterError("person: rows of people are brought together. Omit --rows and --units-per-person.")
    (column,) = pick([arguments["person"]], tuple(draft.types))
    rollup = {name: part for text in arguments["rollup"] or () for name, part in read_rollup(text).items()}
    person = Person(id=column, rollup=rollup or None, max_rows=arguments["max_rows"], order=arguments["order"])
    _bring_together(draft, person)
    return person


def _bring_together(draft: Draft, person: Person) -> None:
    """Draft the columns of the records instead of those of the rows."""
    rollup = person.rollup
    if rollup is not None:
        known = {name for name in draft.types if name != person.id}
        pick([name for name, aggregate in rollup.items() if aggregate != "count"] or known, tuple(known))
        draft.types = {name: kind for name, kind in draft.types.items() if name in rollup}
        draft.types |= {name: "integer" for name, aggregate in rollup.items() if aggregate == "count"}
    else:
        draft.types.pop(person.id)
    draft.rows = None  # of people there are fewer than rows, and the table says how many


def _notice_repeats(draft: Draft, arguments: Mapping[str, Any], *, is_asked: bool) -> Person | None:
    """Tell the data steward that an identifier repeats: a row is not a person."""
    likely = [name for name, kind in draft.types.items() if kind == "identifier" or is_identifier_like(name)]
    for name in likely:
        repeats = most_rows_of_one(arguments["source"], name, **way_to_read(arguments))
        if repeats < 2:
            continue
        notice(f"{name} repeats, up to {repeats:,} rows: a row is not a person.")
        if not is_asked:
            notice(
                f"Declare who the rows belong to (--person {shlex.quote(name)} with --rollup NAME=AGGREGATE,... or "
                "--max-rows N), or accept that the budget protects one row."
            )
            continue
        text = typer.prompt(
            "One record per person, as NAME=AGGREGATE,... (pulse=max,visits=count), or the number of rows to keep; "
            "empty: protect one row",
            default="",
            show_default=False,
            err=True,
        ).strip()
        if text:
            stated: Any = {"max_rows": int(text)} if text.isdecimal() else {"rollup": read_rollup(text)}
            person = Person(id=name, **stated)
            _bring_together(draft, person)
            return person
    return None


def _take(draft: Draft, arguments: Mapping[str, Any]) -> None:
    """What options say of columns."""
    for name, kind in _stated_types(draft, arguments):
        if kind not in TYPES:
            raise ParameterError(f"types: {kind[:40]!r} is not a type; it is one of {', '.join(TYPES)}. Choose one.")
        draft.types[name] = kind
        if kind == "identifier":
            draft.facts.setdefault(name, {})["identifier"] = True
    for option, read in _FACTS.items():
        for text in arguments[option] or ():
            name, value = _pair(draft, text, option)
            draft.facts.setdefault(name, {}).update(read(name, value))


def _stated_types(draft: Draft, arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What `--types` says: NAME=TYPE, or NAME,NAME,...=TYPE."""
    for text in arguments["types"] or ():
        names, sign, kind = text.partition("=")
        is_one = names.strip().strip('"') in draft.types
        yield from (_pair(draft, f"{name}{sign}{kind}", "types") for name in ([names] if is_one else split_list(names)))


def _pair(draft: Draft, text: str, option: str) -> tuple[str, str]:
    name, sign, rest = text.rpartition("=") if option == "weight" else text.partition("=")
    name = name.strip().strip('"')
    if not sign or name not in draft.types:
        raise ParameterError(
            f"{option}: {text[:40]!r} names no column; there are {', '.join(draft.types)}. Write it as NAME=..."
        )
    return name, rest.strip()


def _number_of(name: str, text: str) -> float:
    values = numbers(text)
    if len(values) != 1:
        raise ParameterError(f"{name}: one number is needed. Write it as {name}=1.5.")
    return values[0]


def _date_fact(name: str, text: str) -> dict[str, Any]:
    unit, _, rest = text.partition(",")
    since, _, layout = rest.partition(",")
    facts = {"unit": unit.strip(), "since": since.strip() or None, "layout": layout.strip() or None}
    return {key: value for key, value in facts.items() if value is not None}


def _filling_fact(_: str, text: str) -> dict[str, Any]:
    try:
        return {"missing": float(text)}
    except ValueError:
        return {"missing": text}


_FACTS: Final[Mapping[str, Callable[[str, str], dict[str, Any]]]] = {
    "bounds": bounds_fact,
    "values": labels_fact,
    "date": _date_fact,
    "missing": _filling_fact,
    "other": lambda _, text: {"other": text},
    "scale": lambda name, text: {"scale": _number_of(name, text)},
    "weight": lambda name, text: {"weight": _number_of(name, text)},
}


# Questions in the terminal


def _ask(draft: Draft) -> None:
    """What no option has said, column by column; an empty answer leaves it open."""
    notice("What is public? Answer from a codebook, a form or a law, never from the data. Empty: nothing is.")
    for name, kind in draft.types.items():
        if kind == "leave" or name in draft.facts:
            continue
        if kind in ("number", "integer"):
            _prompt(draft, name, "bounds", f"{name}, numbers. Public bounds LOW,HIGH")
            if "low" not in draft.facts.get(name, {}):
                _prompt(draft, name, "scale", f"{name}. A public scale: what counts as one unit of distance")
            _prompt(draft, name, "missing", f"{name}. A public number that stands for empty cells")
        elif kind in _DATES:
            _prompt(draft, name, "date", f"{name}, dates. UNIT,SINCE such as days,2000-01-01")
        else:
            _prompt(draft, name, "values", f"{name}, text. Its public categories A,B,...")


def _prompt(draft: Draft, name: str, fact: str, words: str) -> None:
    while text := typer.prompt(words, default="", show_default=False, err=True).strip():
        try:
            facts = _FACTS[fact](name, text)
            Column(name, **facts)
        except ParameterError as refusal:
            notice(str(refusal))
            continue
        draft.facts.setdefault(name, {}).update(facts)
        return


def _protection(arguments: Mapping[str, Any], is_asked: bool) -> Protection | None:
    """What a row is and whose loss the budget bounds; left out where nobody says."""
    rows, unit = arguments["rows"], arguments["protects"]
    if is_asked and rows is None and unit is None:
        rows = typer.prompt("What is a row: people (one person's) or time (a moment of a stream)", "people", err=True)
    if rows is None and unit is None and arguments["units_per_person"] == 1:
        return None
    declared = {"rows": rows or "people", "unit": unit or "record", "units_per_person": arguments["units_per_person"]}
    return Protection.from_json(declared)


def _buy_spreads(draft: Draft, arguments: Mapping[str, Any], protection: Protection | None) -> None:
    """Measure spreads, and bounds with `location`, of the number columns without a scale: one charge for all.

    The ledger shows which columns were measured. So where cells decide what is a number column, only those are measured
    that an option calls one.
    """
    stated = {name for name, facts in draft.facts.items() if "scale" in facts}
    open_ = tuple(name for name, column in draft.columns.items() if column.kind in _NUMBERS and name not in stated)
    wanted = open_ if draft.declared else tuple(name for name in open_ if _is_called_number(draft, arguments, name))
    if not wanted and not draft.declared:
        raise ParameterError(
            "epsilon: the source declares no types, so its cells would decide which columns are measured, and the "
            "ledger would show it. Nothing was spent. Name the columns to measure (--types NAME=number; there are "
            f"{', '.join(draft.types)}), or state their scales (--scale NAME=NUMBER)."
        )
    for name in set(open_) - set(wanted):
        draft.notes[name] = "scale: not measured, since only its cells say that it is a number (--types NAME=number)"
    if not wanted:
        raise ParameterError("epsilon: every column of numbers has a scale already. Leave it out; nothing was spent.")
    query = Scale(loss=Loss(arguments["epsilon"]), columns=wanted, location=arguments["location"])
    table = load(arguments["source"], schema=_schema(draft, arguments, protection))
    with Ledger.open(arguments["ledger"]) as ledger, sign_of_life(query.question):
        check_shared_records(table, ledger, source=arguments["source"])
        released = pay(query, table, ledger, analyst=default_analyst(), force=arguments["force"]).answer()
    draft.left = released.left
    for name, spread in released.value["scale"].items():
        draft.facts.setdefault(name, {})["scale"] = float(f"{spread:.4g}")
        draft.notes[name] = f"scale: released under {query.loss}, entry {released.ledger_id} of the ledger"
    for name, (low, high) in released.extras.get("bounds", {}).items():
        facts = {"low": low, "high": high} | draft.facts[name] | {"center": (low + high) / 2}
        if _is_sound(name, facts):  # what was said of the column comes first
            draft.facts[name], draft.notes[name] = facts, f"bounds, center and {draft.notes[name]}"
    notice(f"{released.text} {released.price}")


def _is_called_number(draft: Draft, arguments: Mapping[str, Any], name: str) -> bool:
    """Whether an option, or an answer in the terminal, says that a column is numbers: its cells are not asked."""
    return dict(_stated_types(draft, arguments)).get(name) in _NUMBERS or bool(
        {"low", "high", "unit"} & set(draft.facts.get(name, {}))
    )


def _is_sound(name: str, facts: Mapping[str, Any]) -> bool:
    try:
        Column(name, **facts)
    except ParameterError:
        return False
    return True


# The text of the schema


def _schema(draft: Draft, arguments: Mapping[str, Any], protection: Protection | None) -> Schema:
    schema = draft.schema(account=arguments["account"], protection=protection)
    stated: Any = {name: value for name, value in way_to_read(arguments).items() if name in FORMAT}
    return schema.but_read(stated)


def _text(draft: Draft, schema: Schema, arguments: Mapping[str, Any]) -> str:
    """The schema as TOML, with a reason for each line and the columns that are left out."""
    head = [
        "# What is public about this table. Every value here was given, or paid for. The names of the columns, their",
        "# types and the number of records were read from the source.",
        *(
            []
            if draft.declared
            else ["# It declares no types: those that no option stated were inferred from its cells."]
        ),
        "#",
        "# clip: a value outside its bounds is moved to the nearest bound. scale: what counts as one unit of distance.",
        "",
    ]
    lines: list[str] = []
    for line in schema.to_toml().splitlines():
        lines.append(line)
        name = next((name for name in draft.notes if line == f"[columns.{_quote_name(name)}]"), None)
        if name is not None:
            lines.append(f"# {draft.notes[name]}")
    hints = _HINTS if draft.declared else _HINTS | {"text": _HINTS["text"] + "; " + _HINTS["date"]}
    open_ = [
        f"# [columns.{_quote_name(name)}]  {hints.get(kind, hints['text'])}"
        for name, kind in draft.types.items()
        if name not in draft.columns and kind != "leave"
    ]
    left = ["", "# Not read, until something public is said of them:", *open_] if open_ else []
    return "\n".join([*head, *lines, *left]) + "\n"


def _quote_name(name: str) -> str:
    text = Schema.of([name]).to_toml()
    return text.partition("[columns.")[2].rpartition("]")[0]


_HINTS: Final = {
    "text": 'text: categories = ["...", "..."], and a weight to let it into distances',
    "date": 'date: unit = "days", since = "2000-01-01"',
    "time of day": 'time of the day: unit = "hours"',
}


def _check(source: str, schema: Schema) -> None:
    """Whether the file fits what was said; if not, the draft is there to be corrected."""
    try:
        load(source, schema=schema)
    except (DataError, SourceError) as refusal:
        notice(f"The file does not fit the draft yet: {refusal}")


def _finish(draft: Draft, output: Path, arguments: Mapping[str, Any]) -> None:
    notice(f"wrote {output}: {len(draft.columns)} columns can be read, {len(draft.types)} are there.")
    notice("Read it, correct it, and then:")
    bare = [name for name, column in draft.columns.items() if column.kind in _NUMBERS and column.scale == 1]
    if arguments["rows"] == "time":
        _propose_baseline(draft, output, arguments)
        return
    if bare:
        notice(f"Distances need a scale for each column; without one: {list_names(bare)}.")
        _propose_scales(draft, output, arguments)
        return
    show(next_command(arguments["source"], output, arguments, draft.left))


def _propose_baseline(draft: Draft, output: Path, arguments: Mapping[str, Any]) -> None:
    """What to type where a row is an observation: a plan, which is free, of what a watch needs first."""
    column = next((column for column in draft.columns.values() if column.low is not None), None)
    if column is None:
        notice("A watch and its baseline need public bounds of the columns: state them (--bounds COLUMN=LOW,HIGH).")
        return
    ends = ["--low", f"{float(column.low or 0):g}", "--high", f"{float(column.high or 0):g}"]
    show(
        _command(
            "plan baseline", arguments, output, ["--columns", column.name, *ends, "--epsilon", f"{float(_SPREADS):g}"]
        )
    )


def _propose_scales(draft: Draft, output: Path, arguments: Mapping[str, Any]) -> None:
    """What to type before distances mean anything: private spreads, where there are records enough for them."""
    numbers = sum(column.kind in _NUMBERS for column in draft.columns.values())
    least = Scale(loss=Loss(_SPREADS)).plan(n=max(2, draft.rows or 2), dimension=numbers).smallest_useful_epsilon
    if least is None or Fraction(least) > _FIRST:
        notice("There are too few records to measure spreads privately: state scales or bounds (--scale, --bounds).")
        return
    notice("Release spreads first, and pass their ledger entry to a count (--scale ENTRY):")
    show(_command("scale", arguments, output, ["--epsilon", f"{float(max(_SPREADS, Fraction(least))):g}"]))


def _command(verb: str, arguments: Mapping[str, Any], schema: Path, asked: list[str]) -> str:
    ledger = ["--ledger", str(arguments["ledger"])] if arguments.get("ledger") else []
    return shlex.join(["wallflower", *verb.split(), str(arguments["source"]), "--schema", str(schema), *asked, *ledger])


def next_command(source: str, schema: Path, arguments: Mapping[str, Any], left: Loss | None = None) -> str:
    """What to type next where every column has a scale: a count at the radius where one in fifty is an outlier."""
    amount = _FIRST if left is None else min(_FIRST, left.amount)
    parameters = ["--neighbours", "5", "--share", "2%", "--epsilon", f"{float(amount):g}"]
    return _command("count", {**arguments, "source": source}, schema, parameters)


_FIRST: Final = Fraction(9, 10)  # within the starter cap
_SPREADS: Final = Fraction(3, 10)  # for spreads, if it does, so that a count still fits
_NUMBERS: Final = ("number", "integer")


def _stem(source: str) -> str:
    path = source.partition("?")[0].rstrip("/")
    return Path(path).name.partition(".")[0] or "schema"
