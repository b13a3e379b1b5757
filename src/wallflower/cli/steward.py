"""What a data owner does: look at public facts, grant budgets, read the ledger."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from wallflower.cli.domain import domain
from wallflower.cli.options import (
    PRIVACY,
    SOURCE,
    Delta,
    Epsilon,
    JsonOption,
    LedgerOption,
    Rho,
    SchemaOption,
    facts_of,
    names,
)
from wallflower.cli.show import budgets, line_json, notice, show, show_json, table_facts
from wallflower.data import Schema, describe, load
from wallflower.forms import loss_of
from wallflower.ledger import Ledger
from wallflower.privacy import Loss, Unit, protect
from wallflower.release import default_analyst

data = typer.Typer(help="Look at the public facts of a table.", no_args_is_help=True)
budget = typer.Typer(help="Show, grant and share privacy budgets.", no_args_is_help=True)
ledger = typer.Typer(help="Read, check and export the ledger.", no_args_is_help=True)

Dataset = Annotated[str, typer.Argument(metavar="DATASET", help="name of the data set")]
Protects = Annotated[
    Unit,
    typer.Option(
        help="whose loss: one record of a table, replaced, or added or removed (membership; constrained: where the "
        "valid contexts of `explain --mode ocdp` stay equal); one entry, or one person, of a stream",
        rich_help_panel=PRIVACY,
    ),
]
DOMAIN: Final = "Example: wallflower data domain --values year=2008..2013 --bounds salary=0,500000 -o domain.toml"
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="who decides; left out: you")]


@data.command("describe", epilog="Example: wallflower data describe people.csv --schema people.toml")
def describe_(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCE)],
    columns: Annotated[str | None, typer.Option(metavar="A,B,...", help="only these; left out: all")] = None,
    schema: SchemaOption = None,
    as_json: JsonOption = False,
) -> None:
    """Columns, types and stated bounds, and the number of records; nothing else is taken from the records."""
    facts = describe(load(source, schema=facts_of(schema, None if columns is None else Schema.of(names(columns)))))
    if as_json:
        show_json(facts)
    else:
        show(table_facts(facts))


data.command("domain", epilog=DOMAIN)(domain)


@budget.command("show", epilog="Example: wallflower budget show people")
def show_budget(
    dataset: Annotated[str | None, typer.Argument(metavar="[DATASET]", help="left out: every data set")] = None,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Limit, spending and what is left."""
    with Ledger.open(ledger) as book:
        known = book.datasets() if dataset is None else [dataset]
        lines = {name: book.budget(name) for name in known}
    if as_json:
        show_json({"datasets": {name: [line_json(line) for line in accounts] for name, accounts in lines.items()}})
    elif lines:
        show(budgets(lines))
    else:
        notice("The ledger is empty: no data set has been granted a budget or asked a question.")


@budget.command(epilog='Example: wallflower budget grant people --epsilon 3 --reason "pilot study"')
def grant(
    dataset: Dataset,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    protects: Protects = "record",
    reason: Annotated[str, typer.Option(metavar="TEXT", help="why, for the record")] = "",
    by: By = None,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add to a data set's limit. The first grant replaces the starter cap; what was spent still counts."""
    loss = _stated("budget grant", protects, epsilon=epsilon, delta=delta, rho=rho)
    with Ledger.open(ledger) as book:
        entry = book.grant(dataset, loss, by=by or default_analyst(), reason=reason)
        _say(book, dataset, f"Granted {loss} to {dataset} (entry {entry.id}).", as_json)


@budget.command(epilog="Example: wallflower budget allocate people ana --epsilon 1")
def allocate(
    dataset: Dataset,
    analyst: Annotated[str, typer.Argument(metavar="ANALYST", help="who may spend it")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    protects: Protects = "record",
    by: By = None,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reserve part of a data set's limit for one analyst."""
    loss = _stated("budget allocate", protects, epsilon=epsilon, delta=delta, rho=rho)
    with Ledger.open(ledger) as book:
        entry = book.allocate(dataset, analyst, loss, by=by or default_analyst())
        _say(book, dataset, f"Allocated {loss} of {dataset} to {analyst} (entry {entry.id}).", as_json)


@ledger.command("list", epilog="Example: wallflower ledger list --dataset people --last 20")
def list_(
    dataset: Annotated[str | None, typer.Option("--dataset", metavar="NAME", help="of one data set only")] = None,
    last: Annotated[int | None, typer.Option(min=1, help="only the latest few")] = None,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Every grant, allocation, charge and release, oldest first."""
    with Ledger.open(ledger) as book:
        entries = book.history(dataset, last=last)
    if as_json:
        show_json({"entries": [entry.to_json() | {"body": entry.details} for entry in entries]})
    else:
        show(entries)


@ledger.command(epilog="Example: wallflower ledger verify --head 5f70bf18a08660...")
def verify(
    head: Annotated[str | None, typer.Option(metavar="HASH", help="a head you noted earlier")] = None,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Walk the chain of hashes: was an entry changed, removed, inserted, or cut off?"""
    with Ledger.open(ledger) as book:
        verified = book.verify(head=head)
    if as_json:
        show_json({"holds": True, "entries": verified.entries, "head": verified.head})
    else:
        show(verified)


@ledger.command(epilog="Example: wallflower ledger export -o ledger.jsonl")
def export(
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="left out: stdout")] = None,
    ledger: LedgerOption = None,
) -> None:
    """Every entry with its hashes, one JSON line each, so that anybody can check the chain."""
    with Ledger.open(ledger) as book:
        lines = (json.dumps(entry) + "\n" for entry in book.export())
        if output is None:
            sys.stdout.writelines(lines)
            return
        with output.open("w", encoding="utf-8") as file:
            file.writelines(lines)
    notice(f"wrote {output}")


def _stated(asker: str, protects: Unit, *, epsilon: str | None, delta: str | None, rho: str | None) -> Loss:
    return protect(loss_of(asker, epsilon=epsilon, delta=delta, rho=rho), protects)


def _say(book: Ledger, dataset: str, words: str, as_json: bool) -> None:
    lines: list[Any] = [line_json(line) for line in book.budget(dataset)]
    if as_json:
        show_json({"dataset": dataset, "accounts": lines})
    else:
        show(words)
        show(budgets({dataset: book.budget(dataset)}))
