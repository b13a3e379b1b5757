"""From the fields of a question to options of the command line, and back."""

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

from wallflower.config import ANALYST, LEDGER, find_config, find_ledger, settle
from wallflower.config import FILE as CONFIG
from wallflower.data import Schema
from wallflower.data.scans import MEMORY
from wallflower.errors import ParameterError
from wallflower.privacy import Kind, Loss
from wallflower.queries.watch.seasons import Seasons
from wallflower.query import Query
from wallflower.query.forms import LOSS_HELP, Blank, Question, blanks, fill, spends
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
        help=f"where the ledger is; default: ${LEDGER}, {CONFIG}, or a file in your data home",
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
        "--dataset", metavar="NAME", help="name the budget hangs on; default: the file's", rich_help_panel=DATA
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
        "--analyst", metavar="NAME", help=f"who asks; default: ${ANALYST}, {CONFIG}, or you", rich_help_panel=DATA
    ),
]


def _reading_option(name: str, metavar: str, words: str, hint: Any = str) -> Any:
    return Annotated[hint | None, typer.Option(f"--{name}", metavar=metavar, help=words, rich_help_panel=FILE)]


READING: Final[Mapping[str, Any]] = {
    "separator": _reading_option("separator", "MARK", "what separates the cells of a text file, such as ; or tab"),
    "encoding": _reading_option("encoding", "NAME", "how text is encoded, such as latin-1; default: UTF-8"),
    "decimal": _reading_option("decimal", "MARK", "the decimal mark of a text file: , or . (default: .)"),
    "thousands": _reading_option("thousands", "MARK", "the mark between thousands in a text file; default: none"),
    "sheet": _reading_option("sheet", "NAME", "of a workbook; default: the first"),
    "without": _reading_option("without", "COLUMN", "leave this column out; may be said again", list[str]),
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
    """The question's own options, as parameters of a command."""
    asked = [option(blank.name, _annotation(blank), _default(blank)) for blank in blanks(question)]
    stated = [option(name, kind) for name, kind in LOSSES.items()] if spends(question) else []
    return asked + stated


def with_signature(command: Any, *asked: inspect.Parameter) -> Any:
    """`command`, which takes keywords, with the signature Typer reads."""
    command.__signature__ = inspect.Signature(asked)
    command.__annotations__ = {item.name: item.annotation for item in asked}
    return command


def option(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    """One parameter of a command; REQUIRED is no default."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def query_of(question: Question, given: Mapping[str, Any]) -> Query[Any, Any]:
    """The question these options describe; they are taken out of `given`."""
    own = {blank.name: _value(blank, given[blank.name]) for blank in blanks(question)}
    losses = {name: given[name] for name in LOSSES if given.get(name) is not None}
    return fill(question, own | losses)


def way_to_read(given: Mapping[str, Any]) -> WayToRead:
    """What is said of how the source is written, and what is left out of it."""
    said: Any = {name: given[name] for name in READING if given.get(name)}
    return said  # type: ignore[no-any-return]


def names(given: str) -> tuple[str, ...]:
    """The names in `a, b`; one that holds a comma stands in double quotes."""
    return tuple(split_list(given))


def sets(given: str) -> tuple[tuple[str, ...], ...]:
    """The sets of names in `a,b; c`."""
    return tuple(found for found in map(names, pieces_of(given, ";")) if found)


def numbers(given: str) -> tuple[float, ...]:
    """The numbers in `1, 2.5`."""
    return tuple(map(_number, names(given)))


def rows(given: str) -> tuple[tuple[float, ...], ...]:
    """The rows of numbers in `1,0; 0,1`."""
    return tuple(found for found in map(numbers, given.split(";")) if found)


def facts_of(schema: str | None, wanted: Schema | None) -> Schema | None:
    """What a source is read with: the schema given, or what is wanted where that says nothing of columns."""
    if schema is None:
        return wanted
    facts = Schema.read(schema)
    return replace(facts, columns=wanted.columns) if wanted and facts.columns is None else facts


def narrow(facts: Schema | None, query: Query[Any, Any]) -> Schema | None:
    """The schema without the columns that a query names none of: what is not asked for is neither read nor checked."""
    names = query.needed_columns()
    if facts is None or facts.columns is None or names is None:
        return facts
    known = {column.name for column in facts.columns}
    return facts.only([name for name in names if name in known]) if known >= set(names) else facts


def settle_source(given: dict[str, Any]) -> None:
    """Fill in what the file of the project says of a data set that it names; a service has names of its own."""
    if given["source"] is not None and not given.get("server"):
        open_ended = {name: None for name in ("schema", "engine", "dataset", "ledger") if name not in given}
        given.update(settle({**open_ended, **given}, lambda place: Schema.read(place).name))
        for name in open_ended:
            del given[name]


def complete_name(incomplete: str) -> list[str]:
    """The data sets of the project that a half-typed word may become; a shell goes on with files."""
    try:
        config = find_config()
    except ParameterError:
        return []
    return [name for name in (config.datasets if config is not None else ()) if name.startswith(incomplete)]


def place_of(ledger: str | None, dataset: str | None) -> str | None:
    """Where the ledger of a data set is: as said, else by the environment, else by the file of the project."""
    return ledger or os.environ.get(LEDGER) or find_ledger(dataset)


def example(question: Question) -> str:
    """The options that would ask the question's own example."""
    asked = question.example()
    words = []
    for blank in blanks(question):
        value = getattr(asked, blank.name)
        if value != blank.default:
            words += _words(blank, value)
    loss = getattr(asked, "loss", None)
    return shlex.join([*words, *(_loss_words(loss) if isinstance(loss, Loss) else ())])


def _number(given: str) -> float:
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ParameterError(
            f"{given[:40]!r} is not a number, and a list of numbers takes nothing else. "
            "Write it as 1,2.5,-3, and the rows of a matrix as 1,0;0,1."
        )
    return number


def _annotation(blank: Blank) -> Any:
    text = _TEXTS.get(blank.hint)
    hint = Literal[blank.choices] if blank.choices else str if text else blank.hint
    optional = blank.optional or blank.default is None
    panel = QUESTION if blank.when is None else f"{QUESTION}, {blank.when.words}"
    details = typer.Option(help=blank.help, metavar=text.metavar if text else None, rich_help_panel=panel)
    return Annotated[hint | None if optional else hint, details]


def _default(blank: Blank) -> Any:
    text = _TEXTS.get(blank.hint)
    return text.write(blank.default) if text and isinstance(blank.default, tuple | Fraction) else blank.default


def _value(blank: Blank, given: Any) -> Any:
    text = _TEXTS.get(blank.hint)
    return text.read(given) if text and isinstance(given, str) else given


def _words(blank: Blank, value: Any) -> list[str]:
    name = f"--{blank.name.replace('_', '-')}"
    if isinstance(value, bool):
        return [name if value else name.replace("--", "--no-", 1)]
    text = _TEXTS.get(blank.hint)
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
    """How a value that is no single word is written in one."""

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
    Seasons: _Text("ID|FILE", str, lambda value: f"{value.dataset}.json"),  # `watch.lines` reads it
}
