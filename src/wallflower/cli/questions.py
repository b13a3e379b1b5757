"""One verb per query: run it, or plan it."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wallflower.cli import remote, scores
from wallflower.cli.help import Command
from wallflower.cli.options import (
    DATA,
    NAMED,
    OUTPUT,
    READING,
    AnalystOption,
    DatasetOption,
    EngineOption,
    JsonOption,
    LedgerOption,
    SchemaOption,
    complete_name,
    example,
    facts_of,
    narrow,
    option,
    parameters,
    query_of,
    settle_source,
    way_to_read,
    with_signature,
)
from wallflower.cli.show import (
    notice,
    price_words,
    require_output,
    say_cap,
    show,
    show_json,
    sign_of_life,
    summarise,
)
from wallflower.cli.watch import lines as watch_lines
from wallflower.data import Table
from wallflower.data.people import count_repeats, repeat_notice
from wallflower.data.scans import load_into
from wallflower.errors import BudgetExhausted, ParameterError, SourceError
from wallflower.ledger import Ledger
from wallflower.machine.files import replacement, write_text
from wallflower.machine.lazy import Lazy
from wallflower.query import Plan, Query
from wallflower.query.parameter import REQUIRED, Question
from wallflower.release import (
    Release,
    check_shared_records,
    default_analyst,
    guarantee_of,
    pay,
    plan_for,
    quote,
    require_budget,
)
from wallflower.release.inputs import Records, project

if TYPE_CHECKING:
    import wallflower.report as _report
    import wallflower.report.tradeoff as _tradeoff
else:
    _report = Lazy("wallflower.report")
    _tradeoff = Lazy("wallflower.report.tradeoff")

_PLOTS = (".png", ".svg", ".pdf")
_MODELS = (".json", ".arrow")
_PAGES = (".html", ".htm")
_TABLES = (".csv",)

FILES = {
    "plot": Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="draw the answer: .png, .svg or .pdf", rich_help_panel=OUTPUT),
    ],
    "csv": Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="write the answer as a table: .csv", rich_help_panel=OUTPUT),
    ],
    "report": Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="write a page about it: .html", rich_help_panel=OUTPUT),
    ],
}
_ASK = {
    "schema": SchemaOption,
    "dataset": DatasetOption,
    "ledger": LedgerOption,
    "analyst": AnalystOption,
    "idempotency_key": Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="repeat the query with this key and get the stored answer, free", rich_help_panel=DATA
        ),
    ],
    **READING,
    **remote.OPTIONS,
    "engine": EngineOption,
    "force": Annotated[
        bool,
        typer.Option("--force", help="run even if the plan predicts mostly noise", rich_help_panel=DATA),
    ],
    "as_json": JsonOption,
    "details": Annotated[
        bool,
        typer.Option(
            "--details", help="also show the guarantee, the mechanism and every setting", rich_help_panel=OUTPUT
        ),
    ],
    "dry_run": Annotated[
        bool,
        typer.Option("--dry-run", help="show cost and expected accuracy; spend nothing", rich_help_panel=OUTPUT),
    ],
    **FILES,
}
_FIT = {
    "model": Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="keep what was fitted, to score with: .json or .arrow", rich_help_panel=OUTPUT
        ),
    ],
}
_LIST = {
    "list_file": Annotated[
        Path | None,
        typer.Option(
            "--list",
            metavar="FILE",
            help="a new file for the list, which only you can read; its names are shown nowhere else",
            rich_help_panel=OUTPUT,
        ),
    ],
}
_FLAGS = ("force", "as_json", "details", "dry_run", *watch_lines.FLAGS)
_PLAN = {
    "records": Annotated[
        int | None, typer.Option(min=1, help="public number of records, without a source", rich_help_panel=DATA)
    ],
    "dimension": Annotated[
        int | None, typer.Option(min=1, help="number of columns, without a source", rich_help_panel=DATA)
    ],
    "schema": SchemaOption,
    "engine": EngineOption,
    **READING,
    **remote.OPTIONS,
    "as_json": JsonOption,
}
_PAGE = {
    "page": Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="write a page with a slider to choose by: .html", rich_help_panel=OUTPUT),
    ],
}


def add(app: typer.Typer, plans: typer.Typer, questions: Iterable[Question]) -> None:
    """Add a verb to `app`, and one to `plans`, for each query."""
    for question in questions:
        plan = f"plan {question.kind} --records 1000 --dimension 7"
        _add_verb(app, question)
        plans.command(question.kind, cls=_with_example(question, plan), help=f"What to expect: {question.question}")(
            _plan_command(question)
        )


def _add_verb(app: typer.Typer, question: Question) -> None:
    if question.is_model and question.companion_of is not None:  # a model of another one: a verb beside its `fit`
        group = next(found.typer_instance for found in app.registered_groups if found.name == question.companion_of)
        assert group is not None
        kind = _with_example(question, f"{question.companion_of} {question.kind} people.csv")
        group.command(question.kind, cls=kind, help=_help(question))(_ask_command(question))
        return
    if not question.is_model:
        kind = _with_example(question, f"{question.kind} people.csv")
        app.command(question.kind, cls=kind, help=_help(question), rich_help_panel="Questions")(_ask_command(question))
        return
    group = typer.Typer(help=question.question, no_args_is_help=True)
    kind = _with_example(question, f"{question.kind} fit people.csv")
    group.command("fit", cls=kind, help=_help(question))(_ask_command(question))
    scores.add(group)
    app.add_typer(group, name=question.kind, rich_help_panel="Questions")


def _with_example(question: Question, beginning: str) -> type[Command]:
    """Make a command class whose example is built when the help is shown, not at every start."""

    class WithExample(Command):
        @property
        def epilog(self) -> str:
            return f"Example: wallflower {beginning} {example(question)}"

        @epilog.setter
        def epilog(self, _: str | None) -> None:
            """Typer sets what it was given, which is nothing."""

    return WithExample


def _help(question: Question) -> str:
    return f"{question.question}\n\nThe answer is charged to the data set's privacy budget, whether or not you use it."


def _ask_command(question: Question) -> Any:
    def ask(**arguments: Any) -> None:
        settle_source(arguments)
        if question.accepts_stream:
            watch_lines.fill(arguments)
            watch_lines.require_fitting(arguments)
        query = query_of(question, arguments)
        require_output()
        if arguments.get("json_lines") and not arguments["server"]:
            watch_lines.decide(query, arguments)
            return
        require_files(arguments)
        if arguments["server"]:
            _ask_service(query, arguments)
            return
        table = _load_table(query, arguments, arguments["dataset"])
        analyst = arguments["analyst"] or default_analyst()
        with Ledger.open(arguments["ledger"]) as ledger:
            if arguments["dry_run"]:
                _rehearse(query, table, ledger, analyst, as_json=arguments["as_json"])
                return
            release = _pay_and_answer(query, table, ledger, analyst, arguments)
            deliver(release, arguments, ledger)

    words = f"{NAMED}; - for standard input" if question.accepts_stream else NAMED
    source = option(
        "source", Annotated[str, typer.Argument(metavar="SOURCE", help=words, autocompletion=complete_name)], REQUIRED
    )
    asked = {name: kind for name, kind in _ASK.items() if not (question.is_delivered_once and name == "csv")}
    more = {**(_FIT if question.is_model else {}), **(_LIST if question.is_delivered_once else {})}
    offered = {**asked, **more, **watch_lines.ask_options(question)}
    return with_signature(ask, source, *parameters(question), *_common(offered))


def _plan_command(question: Question) -> Any:
    def plan(**arguments: Any) -> None:
        settle_source(arguments)
        if question.accepts_stream:
            watch_lines.fill(arguments)
        query = query_of(question, arguments)
        _require_place(arguments.get("page"), _PAGES)
        expected = _make_plan(query, arguments)
        if arguments.get("page") is not None:
            _tradeoff.write(arguments["page"], query, dimension=expected.facts["dimension"])
        if arguments["as_json"]:
            show_json(expected.to_json())
        else:
            show(expected)

    source = option(
        "source", Annotated[str | None, typer.Argument(metavar="[SOURCE]", help=NAMED, autocompletion=complete_name)]
    )
    offered = {**_PLAN, **(_PAGE if question.tradeoffs is not Query.tradeoffs else {})}
    return with_signature(plan, source, *parameters(question), *_common(offered))


def _common(options: Mapping[str, Any]) -> list[inspect.Parameter]:
    return [option(name, kind, False if name in _FLAGS else None) for name, kind in options.items()]


def _ask_service(query: Query[Any, Any], arguments: Mapping[str, Any]) -> None:
    data = remote.open_remote(arguments)
    if arguments["dry_run"]:
        remote.rehearse(query, data, as_json=arguments["as_json"])
        return
    with sign_of_life(query.question):
        release = data.ask(query, idempotency_key=arguments["idempotency_key"], force=arguments["force"])
    deliver(release, arguments)


def _make_plan(query: Query[Any, Any], arguments: Mapping[str, Any]) -> Plan:
    if arguments["server"]:
        return remote.open_remote(arguments).plan.of(query)
    if arguments["source"] is not None:
        if arguments["records"] or arguments["dimension"]:
            raise ParameterError("the source has its own size. Leave out --records and --dimension, or the source.")
        return _plan_on(query, _load_table(query, arguments, None))
    dimension = arguments["dimension"] or len(getattr(query, "columns", None) or ())
    if not arguments["records"] or not dimension:
        raise ParameterError(
            "a plan needs the size of the table, which is public: a SOURCE, or --records N and --dimension D. Give one."
        )
    return query.plan(n=arguments["records"], dimension=dimension)


def _plan_on(query: Query[Any, Any], table: Records) -> Plan:
    return plan_for(query, project(query, table))


def _load_table(query: Query[Any, Any], arguments: Mapping[str, Any], dataset: str | None) -> Records:
    facts = narrow(facts_of(arguments["schema"], query.wants()), query)
    with sign_of_life("reading the data"):
        ways = way_to_read(arguments)
        table = load_into(arguments["source"], arguments["engine"], schema=facts, name=dataset, **ways)
    if isinstance(table, Table):
        for column, rows in count_repeats(table.arrow, table.schema).items():
            notice(repeat_notice(column, rows))
    return table


def _rehearse(query: Query[Any, Any], table: Records, ledger: Ledger, analyst: str, *, as_json: bool) -> None:
    quoted = quote(query, table, ledger, analyst=analyst)
    plan = plan_for(query, project(query, table, ledger), quoted.protection)
    left, after = quoted.left, quoted.left_after
    if as_json:
        words = {"dry_run": True, "kind": query.kind, "dataset": quoted.dataset, "analyst": analyst}
        words |= {"cost": guarantee_of(quoted).to_json(), "allowed": after is not None, "left": left.exact_text}
        words |= {"booked": None if quoted.booked is None else quoted.booked.exact_text, "affords": quoted.affords}
        show_json(words | {"left_after": None if after is None else after.exact_text, "plan": plan.to_json()})
    else:
        show(plan)
        show(f"Nothing was spent. {price_words(quoted)}")
    say_cap(ledger, table.name)
    require_budget(quoted)


def _pay_and_answer(
    query: Query[Any, Any], table: Records, ledger: Ledger, analyst: str, arguments: Mapping[str, Any]
) -> Release[Any]:
    before = _last_charge(ledger, table.name, analyst)
    check_shared_records(table, ledger, source=arguments["source"])
    try:
        with sign_of_life(query.question):
            return pay(
                query,
                table,
                ledger,
                analyst=analyst,
                idempotency_key=arguments["idempotency_key"],
                force=arguments["force"],
            ).answer()
    except BudgetExhausted:
        say_cap(ledger, table.name)
        raise
    except KeyboardInterrupt:
        after = _last_charge(ledger, table.name, analyst)
        fate = _fate(ledger, after, query.cost()) if after > before else "nothing was charged."
    raise watch_lines.QuestionInterruption(f"Interrupted; {fate}")


def _last_charge(ledger: Ledger, dataset: str, analyst: str) -> int:
    return max((entry.id for entry in ledger.history(dataset, analyst=analyst, event="charge", last=1)), default=0)


def _fate(ledger: Ledger, charge: int, cost: object) -> str:
    if ledger.release(charge) is not None:
        return f"{cost} was charged (entry {charge}) and the answer is kept: wallflower release show {charge}."
    return f"{cost} was charged (entry {charge}) and stays charged, since the look had begun. Ask again."


def deliver(release: Release[Any], arguments: Mapping[str, Any], ledger: Ledger | None = None) -> None:
    """Write the files that options name, then print the answer: a reader that stops early loses no file."""
    if release.replayed:
        notice(
            f"The key {arguments['idempotency_key']!r} was used before: this is the stored answer, "
            "and nothing was charged."
        )
    if "list_file" in arguments:
        release = _deliver_list(release, arguments["list_file"])
    try:
        _write_files(release, arguments)
        if arguments["report"] is not None and ledger is not None:
            _report.write(arguments["report"], [release], ledger)
    finally:  # a file that cannot be written does not hold the answer back
        try:
            _show_release(release, as_json=arguments["as_json"], details=arguments.get("details", True))
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise SourceError(
                f"standard output: {error.strerror or 'cannot be written'}. The answer is paid for and kept: "
                f"wallflower release show {release.ledger_id}."
            ) from None


def _deliver_list(release: Release[Any], place: Path) -> Release[Any]:
    """Write the list to its file, or find it there under a repeated key; return the release without the list."""
    if release.is_withheld:
        release.read_list(place)
        notice(f"The list of entry {release.ledger_id} is in {place}.")
        return release
    if place.exists():  # since it was looked for, or of another list: this one is kept nowhere else
        place = place.with_name(f"{place.stem}-{release.ledger_id}{place.suffix}")
    try:
        notice(f"The list is in {release.write_list(place)}, which only you can read.")
    except OSError as error:
        raise SourceError(
            f"{place}: {error.strerror or 'cannot be written'}. The list was charged and is lost. Ask again."
        ) from None
    return release.kept()


def _write_files(release: Release[Any], arguments: Mapping[str, Any]) -> None:
    if arguments.get("model") is not None:
        if arguments["model"].suffix.lower() == ".arrow":
            scores.write_arrow(release.model, arguments["model"])
        else:
            write_text(arguments["model"], release.to_json())
    if arguments.get("csv") is not None:
        write_text(arguments["csv"], release.to_csv())
    if arguments["plot"] is not None:
        with replacement(arguments["plot"]) as file:
            release.plot().savefig(file, dpi=200, format=arguments["plot"].suffix[1:].lower())


def _show_release(release: Release[Any], *, as_json: bool, details: bool) -> None:
    if not as_json:
        show(release if details else summarise(release))
        return
    for note in release.notes:
        notice(note)
    show_json(release.to_dict())


def require_files(arguments: Mapping[str, Any]) -> None:
    """Refuse, before anything is charged, a file that options name and that cannot be written."""
    for name, endings in (("plot", _PLOTS), ("report", _PAGES), ("csv", _TABLES), ("model", _MODELS)):
        _require_place(arguments.get(name), endings)
    if "list_file" in arguments and not arguments["dry_run"]:
        _require_list_place(arguments["list_file"], arguments["idempotency_key"])


def _require_list_place(place: Path | None, key: str | None) -> None:
    """Refuse, before the charge, to ask for a list that has nowhere to go."""
    if place is None:
        raise ParameterError("--list: the list goes to a file and nowhere else. Name a new one. Nothing was charged.")
    if place.exists() and key is None:
        raise SourceError(f"{place}: exists already. A list goes to a new file. Name another.")
    if not os.access(place.absolute().parent, os.W_OK):
        raise SourceError(f"{place}: cannot be written there. Nothing was charged. Name another place.")


def _require_place(path: Path | None, endings: tuple[str, ...]) -> None:
    """Refuse, before the charge, a path with the wrong suffix or without a directory."""
    if path is None:
        return
    if path.suffix.lower() not in endings:
        raise ParameterError(f"{path}: cannot be written as that. It must end in {' or '.join(endings)}. Rename it.")
    if not path.absolute().parent.is_dir():
        raise SourceError(f"{path}: there is no such directory. Nothing was asked. Create it first.")
