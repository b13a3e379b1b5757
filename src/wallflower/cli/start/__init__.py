"""The verbs of a beginning: draft a schema for a file, and rehearse a plan on made-up records."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from wallflower.cli.options import (
    DATA,
    NAMED,
    OUTPUT,
    QUESTION,
    READING,
    SOURCE,
    DatasetOption,
    Epsilon,
    JsonOption,
    LedgerOption,
    SchemaOption,
    option,
    with_signature,
)
from wallflower.cli.start.draft import init
from wallflower.cli.start.rehearse import rehearse
from wallflower.query.forms import REQUIRED, Question
from wallflower.rehearsal import TYPES

_PUBLIC: Final = "What is public"
_INIT: Final = "Example: wallflower init people.csv --bounds age=0,120 --values sex=F,M --weight sex=1"
_LOCATION: Final = "spend half of the epsilon on medians, and write bounds ten spreads to either side of them"
_EPSILON: Final = (
    "ε to spend on private spreads of number columns without a scale; in text files, workbooks and SQLite, "
    "which declare no types, only of columns named by --types, --bounds or --date"
)
_ANYWAY: Final = "buy spreads even if the plan says that they are of no use"
_REHEARSE: Final = "Example: wallflower rehearse --schema people.toml --records 5000 --neighbours 5 --radius 0.5"


def add(app: typer.Typer, questions: Iterable[Question]) -> None:
    """`init` and `rehearse`."""
    known = tuple(questions)
    app.command("init", epilog=_INIT, rich_help_panel="Try it")(_init_command())
    app.command("rehearse", epilog=_REHEARSE, rich_help_panel="Try it")(_rehearse_command(known))


def _public_option(name: str, metavar: str, words: str) -> Any:
    details = typer.Option(f"--{name}", metavar=metavar, help=words, rich_help_panel=_PUBLIC)
    return option(name, Annotated[list[str] | None, details])


def _init_command() -> Any:
    def draft(**given: Any) -> None:
        """Draft the schema of a file: its names and types are read, what is public is asked for, nothing is guessed.

        In a terminal it asks; elsewhere, or with --no-ask, it takes what options say and leaves the rest open. No value
        of a record is written: bounds and categories are what you say.
        """
        init(given)

    return with_signature(
        draft,
        option("source", Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCE)], REQUIRED),
        option("only", _one("only", "A,B", "draft these columns only, and leave the others out")),
        _public_option("types", "NAME,...=TYPE", f"type of columns, instead of what cells say: {', '.join(TYPES)}"),
        _public_option("bounds", "NAME=LOW,HIGH", "public bounds of a column of numbers"),
        _public_option("scale", "NAME=NUMBER", "what counts as one unit of distance in this column"),
        _public_option("values", "NAME=A,B,...", "public categories of a column of labels; years as year=2008..2013"),
        _public_option("weight", "NAME=NUMBER", "let labels into distances: so far apart are two that differ"),
        _public_option("date", "NAME=UNIT,SINCE[,LAYOUT]", "a column of dates as numbers, such as day=days,2000-01-01"),
        _public_option("other", "NAME=LABEL", "the category of all labels that are not listed"),
        _public_option("missing", "NAME=VALUE", "what stands for a cell that is empty"),
        option("rows", _one("rows", "people|time", "what a row is: of a person, or a moment of a stream")),
        option("protects", _one("protects", "UNIT", "whose loss the budget bounds: record, membership, entry, person")),
        option(
            "units_per_person",
            Annotated[int, typer.Option(min=1, help="rows of one person", rich_help_panel=_PUBLIC)],
            1,
        ),
        option("account", _one("account", "NAME", "the budget it shares with other tables about the same people")),
        option("epsilon", _one("epsilon", "NUMBER", _EPSILON)),
        option("location", Annotated[bool, typer.Option("--location", help=_LOCATION, rich_help_panel=_PUBLIC)], False),
        option("anyway", Annotated[bool, typer.Option("--anyway", help=_ANYWAY, rich_help_panel=_PUBLIC)], False),
        option("dataset", DatasetOption),
        option("ledger", LedgerOption),
        *(option(name, kind) for name, kind in READING.items()),
        option("output", _place("--output", "-o", words="where to write the schema; default: the file's name, .toml")),
        option(
            "force", Annotated[bool, typer.Option("--force", help="write over a file", rich_help_panel=OUTPUT)], False
        ),
        option("ask", Annotated[bool, typer.Option(help="ask in the terminal", rich_help_panel=OUTPUT)], True),
    )


def _one(name: str, metavar: str, words: str) -> Any:
    return Annotated[str | None, typer.Option(f"--{name}", metavar=metavar, help=words, rich_help_panel=_PUBLIC)]


def _place(*names: str, words: str) -> Any:
    return Annotated[Path | None, typer.Option(*names, metavar="FILE", help=words, rich_help_panel=OUTPUT)]


def _rehearse_command(questions: tuple[Question, ...]) -> Any:
    def trial(**given: Any) -> None:
        """Ask every question of records that are made up from the public schema: what answers would look like.

        Nothing is charged. A SOURCE is opened only to count its records, where the schema does not say how many there
        are.
        """
        rehearse(given, questions)

    neighbours = Annotated[int | None, typer.Option(min=1, help="for questions that take it", rich_help_panel=QUESTION)]
    radius = Annotated[float | None, typer.Option(help="for questions that take it", rich_help_panel=QUESTION)]
    records = Annotated[
        int | None, typer.Option(min=10, help="how many to make up; default: 10,000 at most", rich_help_panel=DATA)
    ]
    return with_signature(
        trial,
        option("source", Annotated[str | None, typer.Argument(metavar="[SOURCE]", help=NAMED)]),
        option("schema", SchemaOption),
        option("records", records),
        option("neighbours", neighbours),
        option("radius", radius),
        option("epsilon", Epsilon),
        option("dataset", DatasetOption),
        *(option(name, kind) for name, kind in READING.items()),
        option("as_json", JsonOption, False),
        option("report", _place("--report", words="write a page about it: .html")),
    )
