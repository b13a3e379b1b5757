"""One verb per question: ask it, or plan it."""

from __future__ import annotations

import inspect
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
from wallflower.cli.show import notice, price_words, require_output, say_cap, show, show_json, sign_of_life
from wallflower.cli.watch import lines as watch_lines
from wallflower.data.scans import load_into
from wallflower.errors import BudgetExhausted, ParameterError, SourceError
from wallflower.ledger import Ledger
from wallflower.machine.files import replacement, write_text
from wallflower.machine.lazy import Lazy
from wallflower.query import Plan, Query
from wallflower.query.forms import REQUIRED, Question
from wallflower.release import Release, default_analyst, pay, plan_for, quote, require_room
from wallflower.release import notice as notice_records
from wallflower.release.guarantee import Guarantee
from wallflower.release.views import Records, view_of

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
    "key": Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="asked again under this key, it is not paid again", rich_help_panel=DATA),
    ],
    **READING,
    **remote.OPTIONS,
    "engine": EngineOption,
    "anyway": Annotated[
        bool,
        typer.Option("--anyway", help="answer even if the plan says that it is of no use", rich_help_panel=DATA),
    ],
    "as_json": JsonOption,
    "dry_run": Annotated[
        bool,
        typer.Option("--dry-run", help="say the cost and what to expect; spend nothing", rich_help_panel=OUTPUT),
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
_FLAGS = ("anyway", "as_json", "dry_run", *watch_lines.FLAGS)
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
    """A verb on `app`, and one on `plans`, for each question."""
    for question in questions:
        plan = f"plan {question.kind} --records 1000 --dimension 7"
        _add_verb(app, question)
        plans.command(question.kind, cls=_with_example(question, plan), help=f"What to expect: {question.question}")(
            _plan_command(question)
        )


def _add_verb(app: typer.Typer, question: Question) -> None:
    if not question.fits:
        kind = _with_example(question, f"{question.kind} people.csv")
        app.command(question.kind, cls=kind, help=_help(question), rich_help_panel="Questions")(_ask_command(question))
        return
    group = typer.Typer(help=question.question, no_args_is_help=True)
    kind = _with_example(question, f"{question.kind} fit people.csv")
    group.command("fit", cls=kind, help=_help(question))(_ask_command(question))
    scores.add(group)
    app.add_typer(group, name=question.kind, rich_help_panel="Questions")


def _with_example(question: Question, beginning: str) -> type[Command]:
    """A command that works its example out when somebody reads its help, and not at every start."""

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
    def ask(**given: Any) -> None:
        settle_source(given)
        if question.streams:
            watch_lines.fill(given)
            watch_lines.require_fitting(given)
        query = query_of(question, given)
        require_output()
        if given.get("json_lines") and not given["server"]:
            watch_lines.decide(query, given)
            return
        require_files(given)
        if given["server"]:
            _ask_service(query, given)
            return
        table = _load_table(query, given, given["dataset"])
        analyst = given["analyst"] or default_analyst()
        with Ledger.open(given["ledger"]) as ledger:
            if given["dry_run"]:
                _rehearse(query, table, ledger, analyst, as_json=given["as_json"])
                return
            made = _pay_and_answer(query, table, ledger, analyst, given)
            deliver(made, given, ledger)

    words = f"{NAMED}; - for standard input" if question.streams else NAMED
    source = option(
        "source", Annotated[str, typer.Argument(metavar="SOURCE", help=words, autocompletion=complete_name)], REQUIRED
    )
    offered = {**_ASK, **(_FIT if question.fits else {}), **watch_lines.ask_options(question)}
    return with_signature(ask, source, *parameters(question), *_common(offered))


def _plan_command(question: Question) -> Any:
    def plan(**given: Any) -> None:
        settle_source(given)
        if question.streams:
            watch_lines.fill(given)
        query = query_of(question, given)
        _require_place(given.get("page"), _PAGES)
        expected = _make_plan(query, given)
        if given.get("page") is not None:
            _tradeoff.write(given["page"], query, dimension=expected.facts["dimension"])
        if given["as_json"]:
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


def _ask_service(query: Query[Any, Any], given: Mapping[str, Any]) -> None:
    data = remote.open_remote(given)
    if given["dry_run"]:
        remote.rehearse(query, data, as_json=given["as_json"])
        return
    with sign_of_life(query.question):
        made = data.ask(query, key=given["key"], anyway=given["anyway"])
    deliver(made, given)


def _make_plan(query: Query[Any, Any], given: Mapping[str, Any]) -> Plan:
    if given["server"]:
        return remote.open_remote(given).plan.of(query)
    if given["source"] is not None:
        if given["records"] or given["dimension"]:
            raise ParameterError("the source has its own size. Leave out --records and --dimension, or the source.")
        return _plan_on(query, _load_table(query, given, None))
    dimension = given["dimension"] or len(getattr(query, "columns", None) or ())
    if not given["records"] or not dimension:
        raise ParameterError(
            "a plan needs the size of the table, which is public: a SOURCE, or --records N and --dimension D. Give one."
        )
    return query.plan(n=given["records"], dimension=dimension)


def _plan_on(query: Query[Any, Any], table: Records) -> Plan:
    return plan_for(query, view_of(query, table))


def _load_table(query: Query[Any, Any], given: Mapping[str, Any], dataset: str | None) -> Records:
    facts = narrow(facts_of(given["schema"], query.wants()), query)
    with sign_of_life("reading the data"):
        return load_into(given["source"], given["engine"], schema=facts, name=dataset, **way_to_read(given))


def _rehearse(query: Query[Any, Any], table: Records, ledger: Ledger, analyst: str, *, as_json: bool) -> None:
    plan, quoted = _plan_on(query, table), quote(query, table, ledger, analyst=analyst)
    cost, left, after = quoted.cost, quoted.left, quoted.left_after
    if as_json:
        words = {"dry_run": True, "kind": query.kind, "dataset": quoted.dataset, "analyst": analyst}
        promise = Guarantee(cost, public=query.public_columns())
        words |= {"cost": promise.to_json(), "allowed": after is not None, "left": str(left)}
        words |= {"booked": None if quoted.booked is None else str(quoted.booked), "affords": quoted.affords}
        show_json(words | {"left_after": None if after is None else str(after), "plan": plan.to_json()})
    else:
        show(plan)
        show(f"Nothing was spent. {price_words(quoted)}")
    say_cap(ledger, table.name)
    require_room(quoted)


def _pay_and_answer(
    query: Query[Any, Any], table: Records, ledger: Ledger, analyst: str, given: Mapping[str, Any]
) -> Release[Any]:
    before = _last_charge(ledger, table.name, analyst)
    notice_records(table, ledger, source=given["source"])
    try:
        with sign_of_life(query.question):
            return pay(query, table, ledger, analyst=analyst, key=given["key"], anyway=given["anyway"]).answer()
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


def deliver(made: Release[Any], given: Mapping[str, Any], ledger: Ledger | None = None) -> None:
    """Write the files that options name, then print the answer: a reader that stops early loses no file."""
    if made.replayed:
        notice(f"This was asked before under the key {given['key']!r}: the same answer again, and nothing was charged.")
    try:
        _write_files(made, given)
        if given["report"] is not None and ledger is not None:
            _report.write(given["report"], [made], ledger)
    finally:  # a file that cannot be written does not hold the answer back
        try:
            _show_release(made, as_json=given["as_json"])
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise SourceError(
                f"standard output: {error.strerror or 'cannot be written'}. The answer is paid for and kept: "
                f"wallflower release show {made.ledger_id}."
            ) from None


def _write_files(made: Release[Any], given: Mapping[str, Any]) -> None:
    if given.get("model") is not None:
        if given["model"].suffix.lower() == ".arrow":
            scores.write_arrow(made.model, given["model"])
        else:
            write_text(given["model"], made.to_json())
    if given["csv"] is not None:
        write_text(given["csv"], made.to_csv())
    if given["plot"] is not None:
        with replacement(given["plot"]) as file:
            made.plot().savefig(file, dpi=200, format=given["plot"].suffix[1:].lower())


def _show_release(made: Release[Any], *, as_json: bool) -> None:
    if not as_json:
        show(made)
        return
    for note in made.notes:
        notice(note)
    show_json(made.to_dict())


def require_files(given: Mapping[str, Any]) -> None:
    """Refuse, before anything is charged, a file that options name and that cannot be written."""
    for name, endings in (("plot", _PLOTS), ("report", _PAGES), ("csv", _TABLES), ("model", _MODELS)):
        _require_place(given.get(name), endings)


def _require_place(path: Path | None, endings: tuple[str, ...]) -> None:
    """Refuse before anything is paid."""
    if path is None:
        return
    if path.suffix.lower() not in endings:
        raise ParameterError(f"{path}: cannot be written as that. It must end in {' or '.join(endings)}. Rename it.")
    if not path.absolute().parent.is_dir():
        raise SourceError(f"{path}: there is no such directory. Nothing was asked. Create it first.")
