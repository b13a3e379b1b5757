"""`wallflower plan --file`: plan several questions together, and ask them after one confirmation."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as Grid

from wallflower.batch import BatchPlan, QuestionFile, plan_all
from wallflower.cli.options import DATA, OUTPUT, AnalystOption, LedgerOption
from wallflower.cli.show import show, show_json, sign_of_life
from wallflower.cli.steward import Decline
from wallflower.dataset import open_dataset
from wallflower.errors import ParameterError
from wallflower.query.parameter import Question


def add(plans: typer.Typer, questions: Iterable[Question]) -> None:
    """Add `--file` to the group of plans."""
    known = tuple(questions)

    def plan_file(
        context: typer.Context,
        file: Annotated[
            Path | None,
            typer.Option("--file", metavar="FILE", help="plan all questions of a .toml file", rich_help_panel=DATA),
        ] = None,
        ask: Annotated[
            bool, typer.Option("--ask", help="with --file: ask them all after one confirmation", rich_help_panel=DATA)
        ] = False,
        force: Annotated[
            bool, typer.Option("--force", help="run even if a plan predicts mostly noise", rich_help_panel=DATA)
        ] = False,
        yes: Annotated[
            bool, typer.Option("--yes", help="do not ask whether it is meant", rich_help_panel=DATA)
        ] = False,
        idempotency_key: Annotated[
            str | None,
            typer.Option(
                metavar="TEXT", help="repeat with this key and get stored answers, free", rich_help_panel=DATA
            ),
        ] = None,
        ledger: LedgerOption = None,
        analyst: AnalystOption = None,
        as_json: Annotated[bool, typer.Option("--json", help="print one JSON object", rich_help_panel=OUTPUT)] = False,
    ) -> None:
        """What an answer would cost and how good it would be; spends nothing."""
        if context.invoked_subcommand is not None:
            if file is not None:
                raise ParameterError("file: it has questions of its own. Leave out the question after it.")
            return
        if file is None:
            raise ParameterError("Name a question, such as count, or a file of questions with --file.")
        _plan(QuestionFile.read(file, known), ledger, analyst, ask, force, yes, idempotency_key, as_json)

    plans.callback(invoke_without_command=True)(plan_file)


def _plan(
    stated: QuestionFile,
    ledger: str | None,
    analyst: str | None,
    ask: bool,
    force: bool,
    yes: bool,
    key: str | None,
    as_json: bool,
) -> None:
    with sign_of_life("reading the data"):
        data = open_dataset(stated.source, schema=stated.schema, name=stated.dataset, ledger=ledger, analyst=analyst)
    batch = plan_all(data, stated.queries)
    if not ask:
        _show_plan(batch, as_json)
        return
    if not as_json:
        _show_plan(batch, as_json)
    _confirm(batch, yes, key)
    with sign_of_life("asking"):
        releases = batch.ask(idempotency_key=key, force=force)
    if as_json:
        show_json(batch.to_json() | {"releases": [release.to_dict() for release in releases]})
        return
    for release in releases:
        show(release)


def _confirm(batch: BatchPlan, yes: bool, key: str | None) -> None:
    words = f"Ask {len(batch.items)} questions of {batch.dataset.name}, for {_cost_text(batch)} in all?"
    if yes:
        return
    if not sys.stdin.isatty():
        raise ParameterError(f"{words} Nothing was charged. Pass --yes if it is meant.")
    if not typer.confirm(words, err=True):
        raise Decline


def _cost_text(batch: BatchPlan) -> str:
    return str((batch.basic or batch.zcdp).text)


def _show_plan(batch: BatchPlan, as_json: bool) -> None:
    if as_json:
        show_json(batch.to_json())
        return
    grid = Grid("", "question", "costs", "booked", "fits", "expected", box=None, pad_edge=False, header_style="bold")
    for number, item in enumerate(batch.items, start=1):
        booked = item.quote.booked
        words = "yes" if item.fits else "no"
        cost = item.query.cost().text
        grid.add_row(str(number), item.query.kind, cost, booked.text if booked else "-", words, item.plan.verdict)
    show(grid)
    basic = "not defined: a question costs ρ alone" if batch.basic is None else batch.basic.text
    show(f"Together: {basic} by basic composition; {batch.zcdp.text}, which is {batch.zcdp_shown.text}, by zCDP.")
    account = batch.items[0].quote.account
    show(f"The account adds up by {account.limit.accounting}; {batch.items[0].quote.left.text} is left.")
    _show_remedy(batch)


def _show_remedy(batch: BatchPlan) -> None:
    if batch.fits:
        show("All fit. Nothing was spent.")
        return
    count = sum(item.fits for item in batch.items)
    show(f"{count} of {len(batch.items)} fit, asked in this order. Nothing was spent.")
    if batch.scale is not None:
        costs = "; ".join(f"{query.kind} {query.cost().text}" for query in batch.fitting)
        show(f"All fit at {float(batch.scale):.3g} times the stated ε: {costs}.")
