"""Turn the fields of a query into command-line options, and options into a query."""

from __future__ import annotations

import inspect
import math
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, Final, Literal

import typer

from wallflower.config import ANALYST, LEDGER, find_config, find_ledger, resolve_source
from wallflower.config import FILE as CONFIG
from wallflower.data import Schema
from wallflower.data.scans import MEMORY
from wallflower.errors import ParameterError
from wallflower.privacy import Kind, Loss
from wallflower.query import Query
from wallflower.query.parameter import LOSS_HELP, Parameter, Question, fill, list_parameters, spends
from wallflower.schema import WayToRead
from wallflower.schema.columns import join_list, pieces_of, split_list

QUESTION: Final = "The question"
PRIVACY: Final = "Its privacy"
DATA: Final = "Data and ledger"
FILE: Final = "How the file is read"
OUTPUT: Final = "Output"

SOURCE: Final = "a CSV, JSON lines, Excel, Parquet or Arrow file, or a database URL with ?table=NAME or ?sql=SELECT ..."
NAMED: Final = f"{SOURCE}; or the name of a data set in {CONFIG}"

LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="PATH|URL",
        help=f"path or URL of the ledger; default: ${LEDGER}, {CONFIG}, or a file in your data home",
        rich_help_panel=DATA,
    ),
]
SchemaOption = Annotated[
    str | None,
    typer.Option("--schema", metavar="FILE", help="public facts: a .toml or .json file", rich_help_panel=DATA),
]
DatasetOption = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        metavar="NAME",
        help="data set name; the budget is tracked under it [default: file name]",
        rich_help_panel=DATA,
    ),
]
EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="memory; tiles: on disk, part by part; or a cluster of Spark, such as spark://host:7077; default: "
        f"memory, if Parquet fits ${MEMORY}",
        rich_help_panel=DATA,
    ),
]
AnalystOption = Annotated[
    str | None,
    typer.Option(
        "--analyst",
        metavar="NAME",
        help=f"analyst name; default: ${ANALYST}, {CONFIG}, or your user name",
        rich_help_panel=DATA,
    ),
]


def _reading_option(name: str, metavar: str, words: str, hint: Any = str) -> Any:
    return Annotated[hint | None, typer.Option(f"--{name}", metavar=metavar, help=words, rich_help_panel=FILE)]


READING: Final[Mapping[str, Any]] = {
    "separator": _reading_option("separator", "MARK", "what separates the cells of a text file, such as ; or tab"),
    "encoding": _reading_option("encoding", "NAME", "how text is encoded, such as latin-1; default: UTF-8"),
    "decimal": _reading_option("decimal", "MARK", "the decimal mark of a text file: , or . (default: .)"),
    "thousands": _reading_option("thousands", "MARK", "the mark between thousands in a text file; default: none"),
    "sheet": _reading_option("sheet", "NAME", "sheet of a workbook; default: the first"),
    "without": _reading_option("without", "COLUMN", "skip this column; may be repeated", list[str]),
}
JsonOption = Annotated[bool, typer.Option("--json", help="print one JSON object", rich_help_panel=OUTPUT)]


def _loss_option(name: str) -> Any:
    help_ = LOSS_HELP[name]
    return Annotated[str | None, typer.Option(f"--{name}", metavar="NUMBER", help=help_, rich_help_panel=PRIVACY)]


Epsilon = _loss_option("epsilon")
Delta = _loss_option("delta")
Rho = _loss_option("rho")
LOSSES: Final[Mapping[str, Any]] = {"epsilon": Epsilon, "delta": Delta, "rho": Rho}


def parameters(question: Question) -> list[inspect.Parameter]:
    """Return the query's options, as parameters of a command."""
    options = [
        option(parameter.name, _annotation(parameter), _default(parameter)) for parameter in list_parameters(question)
    ]
    stated = [option(name, kind) for name, kind in LOSSES.items()] if spends(question) else []
    return options + stated


def with_signature(command: Any, *accepted: inspect.Parameter) -> Any:
    """Give `command`, which takes keywords, the signature that Typer reads."""
    command.__signature__ = inspect.Signature(accepted)
    command.__annotations__ = {item.name: item.annotation for item in accepted}
    return command


def option(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    """Make one parameter of a command; pass REQUIRED for one without a default."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def query_of(question: Question, arguments: Mapping[str, Any]) -> Query[Any, Any]:
    """Build the query that these options describe."""
    fields = {parameter.name: _value(parameter, arguments[parameter.name]) for parameter in list_parameters(question)}
    losses = {name: arguments[name] for name in LOSSES if arguments.get(name) is not None}
    return fill(question, fields | losses)


def way_to_read(arguments: Mapping[str, Any]) -> WayToRead:
    """Return the options about the format of the source and the columns to skip."""
    reading: Any = {name: arguments[name] for name in READING if arguments.get(name)}
    return reading  # type: ignore[no-any-return]


def names(text: str) -> tuple[str, ...]:
    """Split `a, b` into names; a name with a comma stands in double quotes."""
    return tuple(split_list(text))


def sets(text: str) -> tuple[tuple[str, ...], ...]:
    """Split `a,b; c` into sets of names."""
    return tuple(group for group in map(names, pieces_of(text, ";")) if group)


def numbers(text: str) -> tuple[float, ...]:
    """Parse `1, 2.5` as numbers."""
    return tuple(map(_number, names(text)))


def rows(text: str) -> tuple[tuple[float, ...], ...]:
    """Parse `1,0; 0,1` as rows of numbers."""
    return tuple(row for row in map(numbers, text.split(";")) if row)


def facts_of(schema: str | None, wanted: Schema | None) -> Schema | None:
    """Return the schema for reading a source: the file's, with the wanted columns if it names none."""
    if schema is None:
        return wanted
    facts = Schema.read(schema)
    return replace(facts, columns=wanted.columns) if wanted and facts.columns is None else facts


def narrow(facts: Schema | None, query: Query[Any, Any]) -> Schema | None:
    """Drop the columns that a query does not use, so that they are neither read nor checked."""
    names = query.needed_columns()
    if facts is None or facts.columns is None or names is None:
        return facts
    known = {column.name for column in facts.columns}
    return facts.only([name for name in names if name in known]) if known >= set(names) else facts


def settle_source(arguments: dict[str, Any]) -> None:
    """Fill missing arguments from the project file, if it names the data set; a service has its own names."""
    if arguments["source"] is not None and not arguments.get("server"):
        open_ended = {name: None for name in ("schema", "engine", "dataset", "ledger") if name not in arguments}
        arguments.update(resolve_source({**open_ended, **arguments}, lambda path: Schema.read(path).name))
        for name in open_ended:
            del arguments[name]


def complete_name(incomplete: str) -> list[str]:
    """Complete a half-typed data set name from the project file; the shell adds file names."""
    try:
        config = find_config()
    except ParameterError:
        return []
    return [name for name in (config.datasets if config is not None else ()) if name.startswith(incomplete)]


def place_of(ledger: str | None, dataset: str | None) -> str | None:
    """Return the path of a data set's ledger: the option, else the environment, else the project file."""
    return ledger or os.environ.get(LEDGER) or find_ledger(dataset)


def example(question: Question) -> str:
    """Return the options that run the query's own example."""
    query = question.example()
    words = []
    for parameter in list_parameters(question):
        value = getattr(query, parameter.name)
        if value != parameter.default:
            words += _words(parameter, value)
    loss = getattr(query, "loss", None)
    return shlex.join([*words, *(_loss_words(loss) if isinstance(loss, Loss) else ())])


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ParameterError(
            f"{text[:40]!r} is not a number, and a list of numbers takes nothing else. "
            "Write it as 1,2.5,-3, and the rows of a matrix as 1,0;0,1."
        )
    return number


def _annotation(parameter: Parameter) -> Any:
    text = _text_of(parameter)
    hint = Literal[parameter.choices] if parameter.choices else str if text else parameter.hint
    optional = parameter.optional or parameter.default is None
    panel = QUESTION if parameter.when is None else f"{QUESTION}, {parameter.when.text}"
    details = typer.Option(help=parameter.help, metavar=text.metavar if text else None, rich_help_panel=panel)
    return Annotated[hint | None if optional else hint, details]


def _default(parameter: Parameter) -> Any:
    text = _text_of(parameter)
    return (
        text.write(parameter.default) if text and isinstance(parameter.default, tuple | Fraction) else parameter.default
    )


def _value(parameter: Parameter, value: Any) -> Any:
    text = _text_of(parameter)
    return text.read(value) if text and isinstance(value, str) else value


def _words(parameter: Parameter, value: Any) -> list[str]:
    name = f"--{parameter.name.replace('_', '-')}"
    if isinstance(value, bool):
        return [name if value else name.replace("--", "--no-", 1)]
    text = _text_of(parameter)
    return [name, text.write(value) if text else str(value)]


def _loss_words(loss: Loss) -> list[str]:
    if loss.kind is Kind.ZCDP:
        return ["--rho", _number_text(loss.amount)]
    return ["--epsilon", _number_text(loss.amount), *(["--delta", _number_text(loss.delta)] if loss.delta else [])]


def _number_text(number: Any) -> str:
    nearest = f"{float(number):g}"
    return nearest if type(number)(nearest) == number else str(number)


@dataclass(frozen=True, slots=True)
class _Text:
    """Reader and writer of a value that takes one word on the command line."""

    metavar: str
    read: Callable[[str], Any]
    write: Callable[[Any], str]


_TEXTS: Final[Mapping[Any, _Text]] = {
    tuple[str, ...]: _Text("A,B,...", names, join_list),
    tuple[tuple[str, ...], ...]: _Text("A,B;C;...", sets, lambda value: ";".join(map(join_list, value))),
    tuple[float, ...]: _Text("1,2,...", numbers, lambda value: ",".join(map(str, value))),
    tuple[tuple[float, ...], ...]: _Text(
        "1,0;0,1;...", rows, lambda value: ";".join(",".join(map(str, row)) for row in value)
    ),
    Fraction: _Text("NUMBER", str, _number_text),  # the question reads it, exactly
    Schema: _Text("FILE", Schema.read, lambda value: f"{value.name or 'domain'}.toml"),
}
_RELEASED: Final = _Text("ID|FILE", str, lambda value: f"{value.dataset}.json")  # the command reads it


def _text_of(parameter: Parameter) -> _Text | None:
    """Return how a parameter is written in one word, if its type is not one that a word can be."""
    is_released = parameter.release is not None and parameter.release.as_value
    return _RELEASED if is_released else _TEXTS.get(parameter.hint)
