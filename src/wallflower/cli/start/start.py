"""First steps: draft a schema for a file (`init`), and try queries on made-up records (`rehearse`)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

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
    settle_source,
    way_to_read,
    with_signature,
)
from wallflower.cli.show import notice, show, show_json, sign_of_life
from wallflower.cli.start.draft import init
from wallflower.data import Schema, Table, survey
from wallflower.errors import ParameterError
from wallflower.ledger import Ledger
from wallflower.machine.lazy import Lazy
from wallflower.query.parameter import REQUIRED, Question
from wallflower.rehearsal import PLENTY, TYPES, USUAL, Trial, make_up, try_question
from wallflower.schema.schema import bounds_rows

_PUBLIC: Final = "What is public"
_INIT: Final = "Example: wallflower init people.csv --bounds age=0,120 --values sex=F,M --weight sex=1"
_LOCATION: Final = "spend half of the epsilon on medians, and write bounds ten spreads to either side of them"
_EPSILON: Final = (
    "ε to spend on private spreads of number columns without a scale; in text files, workbooks and SQLite, "
    "which declare no types, only of columns named by --types, --bounds or --date"
)
_ROLLUP: Final = (
    "with --person: one record per person; min, max, mean, sum, count, first, last, median, mode, any or all"
)
_MAX_ROWS: Final = "with --person: keep at most this many rows of each; every query costs that many times as much"
_ANYWAY: Final = "buy spreads even if the plan predicts mostly noise"
_REHEARSE: Final = "Example: wallflower rehearse --schema people.toml --records 5000 --neighbours 5 --radius 0.5"


def add(app: typer.Typer, questions: Iterable[Question]) -> None:
    """Add `init` and `rehearse`."""
    known = tuple(questions)
    app.command("init", epilog=_INIT, rich_help_panel="Try it")(_init_command())
    app.command("rehearse", epilog=_REHEARSE, rich_help_panel="Try it")(_rehearse_command(known))


def _public_option(name: str, metavar: str, words: str) -> Any:
    details = typer.Option(f"--{name}", metavar=metavar, help=words, rich_help_panel=_PUBLIC)
    return option(name, Annotated[list[str] | None, details])


def _init_command() -> Any:
    def draft(**arguments: Any) -> None:
        """Draft the schema of a file: names and types are read, public facts are asked for, nothing is guessed.

        In a terminal it asks; elsewhere, or with --no-ask, it takes what options say and leaves the rest open. No value
        of a record is written: bounds and categories are what you say.
        """
        init(arguments)

    return with_signature(
        draft,
        option("source", Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCE)], REQUIRED),
        option("only", _text_option("only", "A,B", "draft these columns only")),
        _public_option("types", "NAME,...=TYPE", f"type of columns, instead of what cells say: {', '.join(TYPES)}"),
        _public_option("bounds", "NAME=LOW,HIGH", "public bounds of a column of numbers"),
        _public_option("scale", "NAME=NUMBER", "what counts as one unit of distance in this column"),
        _public_option("values", "NAME=A,B,...", "public categories of a column of labels; years as year=2008..2013"),
        _public_option(
            "weight",
            "NAME=NUMBER",
            "include a column of labels in distances: NUMBER is the distance between two different labels",
        ),
        _public_option("date", "NAME=UNIT,SINCE[,LAYOUT]", "a column of dates as numbers, such as day=days,2000-01-01"),
        _public_option("other", "NAME=LABEL", "the category of all labels that are not listed"),
        _public_option("missing", "NAME=VALUE", "value that replaces an empty cell"),
        option(
            "rows",
            _text_option("rows", "people|time", "type of a row: data of a person, or an observation of a stream"),
        ),
        option("protects", _text_option("protects", "UNIT", "unit of protection: record, membership, entry, person")),
        option(
            "units_per_person",
            Annotated[int, typer.Option(min=1, help="max. rows per person", rich_help_panel=_PUBLIC)],
            1,
        ),
        option(
            "person",
            _text_option("person", "COLUMN", "the column that identifies a person, if people have several rows"),
        ),
        _public_option("rollup", "NAME=AGGREGATE,...", _ROLLUP),
        option(
            "max_rows",
            Annotated[int | None, typer.Option(min=1, help=_MAX_ROWS, rich_help_panel=_PUBLIC)],
        ),
        option("order", _text_option("order", "COLUMN", "the column that orders a person's rows, for first and last")),
        option(
            "account", _text_option("account", "NAME", "the budget it shares with other tables about the same people")
        ),
        option("epsilon", _text_option("epsilon", "NUMBER", _EPSILON)),
        option("location", Annotated[bool, typer.Option("--location", help=_LOCATION, rich_help_panel=_PUBLIC)], False),
        option("force", Annotated[bool, typer.Option("--force", help=_ANYWAY, rich_help_panel=_PUBLIC)], False),
        option("dataset", DatasetOption),
        option("ledger", LedgerOption),
        *(option(name, kind) for name, kind in READING.items()),
        option(
            "output",
            _output_option("--output", "-o", words="where to write the schema; default: the file's name with .toml"),
        ),
        option(
            "overwrite",
            Annotated[bool, typer.Option("--overwrite", help="replace an existing file", rich_help_panel=OUTPUT)],
            False,
        ),
        option("ask", Annotated[bool, typer.Option(help="ask in the terminal", rich_help_panel=OUTPUT)], True),
    )


def _text_option(name: str, metavar: str, words: str) -> Any:
    return Annotated[str | None, typer.Option(f"--{name}", metavar=metavar, help=words, rich_help_panel=_PUBLIC)]


def _output_option(*names: str, words: str) -> Any:
    return Annotated[Path | None, typer.Option(*names, metavar="FILE", help=words, rich_help_panel=OUTPUT)]


def _rehearse_command(questions: tuple[Question, ...]) -> Any:
    def trial(**arguments: Any) -> None:
        """Run every query on records made up from the public schema, to see what answers look like.

        Nothing is charged. A SOURCE is opened only to count its records, where the schema does not say how many there
        are.
        """
        rehearse(arguments, questions)

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
        option("report", _output_option("--report", words="write a page about it: .html")),
    )


if TYPE_CHECKING:
    import wallflower.report as _report
else:
    _report = Lazy("wallflower.report")


def rehearse(arguments: dict[str, Any], questions: Iterable[Question]) -> None:
    """Make up a table, run every query that can run on it, and show the answers."""
    settle_source(arguments)
    schema = _schema_of(arguments)
    table = make_up(schema, arguments["records"] or min(schema.rows or USUAL, USUAL), arguments["dataset"])
    with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder) / "rehearsal.db") as ledger:
        ledger.grant(table.name, PLENTY, by="rehearsal", reason="made-up records")
        trials = [_run_trial(question, table, ledger, arguments) for question in questions]
        if arguments["report"] is not None:
            _report.write(arguments["report"], [trial.made for trial in trials if trial.made is not None], ledger)
    _deliver(trials, table, schema, as_json=arguments["as_json"])


def _schema_of(arguments: dict[str, Any]) -> Schema:
    if arguments["schema"] is None:
        raise ParameterError(
            "a rehearsal is made up from public facts, and none are given. Pass --schema FILE; wallflower init "
            "drafts one."
        )
    schema = Schema.read(arguments["schema"])
    if arguments["source"] is not None and schema.rows is None and arguments["records"] is None:
        schema = replace(schema, rows=survey(arguments["source"], schema=schema, **way_to_read(arguments))["rows"])
    return schema


def _run_trial(question: Question, table: Table, ledger: Ledger, arguments: dict[str, Any]) -> Trial:
    settings = {name: arguments[name] for name in ("neighbours", "radius")}
    with sign_of_life(f"rehearsing {question.kind}"):
        return try_question(question, table, ledger, settings, arguments["epsilon"])


def _deliver(trials: Sequence[Trial], table: Table, schema: Schema, *, as_json: bool) -> None:
    if as_json:
        outcomes = [
            {"kind": t.kind, "refusal": t.refusal, "release": None if t.made is None else t.made.to_dict()}
            for t in trials
        ]
        show_json({"made_up": True, "records": table.n, "columns": list(table.columns), "trials": outcomes})
        return
    most = "up to " if bounds_rows(schema) else ""
    other = schema.rows is not None and schema.rows != table.n
    more = f" (the table has {most}{schema.rows:,}: with more of them, less noise)" if other else ""
    notice(f"{table.n:,} made-up records in {table.dimension} columns{more}. Nothing is charged, and nothing was read.")
    for trial in trials:
        show(Text(f"\n{trial.kind}, on made-up records", style="bold"))
        show(
            trial.made
            if trial.made is not None
            else Text(f"cannot run with these options: {trial.refusal}", style="dim")
        )
