"""Commands of the data steward: show public facts, grant budgets, read the ledger."""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from wallflower.cli.domain import domain
from wallflower.cli.options import (
    NAMED,
    PRIVACY,
    READING,
    AnalystOption,
    Delta,
    Epsilon,
    JsonOption,
    LedgerOption,
    Rho,
    SchemaOption,
    facts_of,
    names,
    option,
    place_of,
    settle_source,
    way_to_read,
    with_signature,
)
from wallflower.cli.show import budgets, notice, show, show_json, table_facts
from wallflower.data import Schema, describe, load, survey
from wallflower.errors import ParameterError
from wallflower.external import charge_external
from wallflower.ledger import Ledger
from wallflower.machine.files import replacement
from wallflower.privacy import Kind, Loss, Unit, protect
from wallflower.query.parameter import REQUIRED, loss_of
from wallflower.release import default_analyst
from wallflower.units import Protection


class Decline(Exception):
    """A confirmation was answered with no; nothing has been changed."""


data = typer.Typer(help="Look at the public facts of a table.", no_args_is_help=True)
budget = typer.Typer(help="Show and grant privacy budgets, and set quotas of analysts.", no_args_is_help=True)
ledger = typer.Typer(help="Read, check and export the ledger.", no_args_is_help=True)

Dataset = Annotated[str, typer.Argument(metavar="DATASET", help="name of the data set, or of the account it shares")]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="why, for the record")]
Yes = Annotated[bool, typer.Option("--yes", help="do not ask whether it is meant: for scripts")]
Protects = Annotated[
    str | None,
    typer.Option(
        "--protects",
        metavar="UNIT",
        help="unit of protection, if not declared yet: record, membership, entry or person",
        rich_help_panel=PRIVACY,
    ),
]
LARGE: Final = 10  # an epsilon above this needs a confirmation
DOMAIN: Final = "Example: wallflower data domain --values year=2008..2013 --bounds salary=0,500000 -o domain.toml"
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="who decides; default: you")]


def _describe(**arguments: Any) -> None:
    """Columns, types and stated bounds, and the number of records; nothing else is taken from the records."""
    settle_source(arguments)
    columns, written = arguments["columns"], way_to_read(arguments)
    stated = facts_of(arguments["schema"], None if columns is None else Schema.of(names(columns)))
    is_held = arguments["schema"] is not None and stated is not None and stated.columns is not None
    if is_held:
        facts = describe(load(arguments["source"], schema=stated, **written))
    else:
        facts = survey(arguments["source"], schema=stated, **written)
    if arguments["as_json"]:
        show_json(facts)
    else:
        show(table_facts(facts))


data.command("describe", epilog="Example: wallflower data describe people.csv --schema people.toml")(
    with_signature(
        _describe,
        option("source", Annotated[str, typer.Argument(metavar="SOURCE", help=NAMED)], REQUIRED),
        option("columns", Annotated[str | None, typer.Option(metavar="A,B,...", help="only these; default: all")]),
        option("schema", SchemaOption),
        *(option(name, kind) for name, kind in READING.items()),
        option("as_json", JsonOption, False),
    )
)
data.command("domain", epilog=DOMAIN)(domain)


@budget.command("show", epilog="Example: wallflower budget show people")
def show_budget(
    dataset: Annotated[str | None, typer.Argument(metavar="[DATASET]", help="default: every data set")] = None,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a data set's budget: limit, spent, remaining, unit of protection, spending by analyst."""
    with Ledger.open(place_of(ledger, dataset)) as book:
        known = book.datasets() if dataset is None else [dataset]
        accounts = {name: book.account(name) for name in known}
    if as_json:
        lines = {name: {"dataset": name, **account.to_json(name)} for name, account in accounts.items()}
        show_json({"datasets": lines} if dataset is None else lines[dataset])
    elif accounts:
        show(budgets(accounts))
    else:
        notice("The ledger is empty: no data set has been granted a budget or asked a question.")


@budget.command(epilog='Example: wallflower budget grant people --epsilon 3 --reason "pilot study" --yes')
def grant(
    dataset: Dataset,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    accounting: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="composition: sum (basic), concentrated (zCDP), or either (the better of both, needs delta); "
            "default: sum without delta, either with it",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    convert: Annotated[
        str | None,
        typer.Option(metavar="DELTA", help="part of delta for zCDP; default: half", rich_help_panel=PRIVACY),
    ] = None,
    pace: Annotated[
        str | None, typer.Option(metavar="EPSILON", help="max. ε per year", rich_help_panel=PRIVACY)
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="DATE", help="the last day, such as 2027-12-31", rich_help_panel=PRIVACY)
    ] = None,
    protects: Protects = None,
    reason: Reason = None,
    by: By = None,
    yes: Yes = False,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set a data set's total privacy budget. Replaces the previous limit; does not add to it.

    It may be lowered, below what is spent too: then nothing more is answered. A raised limit is the promise to
    everybody, back to the first answer.
    """
    loss = protect(loss_of("budget grant", epsilon=epsilon, delta=delta, rho=rho), _unit(protects))
    why, last = _reason(reason), _day(expires)
    with Ledger.open(place_of(ledger, dataset)) as book:
        _confirm_large(loss, yes)
        _confirm_known(book, dataset, yes)
        entry = book.grant(
            dataset,
            loss,
            by=by or default_analyst(),
            reason=why,
            accounting=accounting,  # type: ignore[arg-type]
            convert=convert,
            pace=pace,
            expires=last,
        )
        _say(book, dataset, f"{dataset} may lose {book.limit(dataset)} in all (entry {entry.id}).", as_json)


@budget.command(epilog='Example: wallflower budget declare meters --rows time --protects person --reason "one house"')
def declare(
    dataset: Dataset,
    rows: Annotated[
        str | None,
        typer.Option(metavar="people|time", help="type of a row: data of a person, or an observation of a stream"),
    ] = None,
    protects: Annotated[
        str | None,
        typer.Option(
            "--protects",
            metavar="UNIT",
            help="unit of protection: record or membership (people); record, entry, window or person (time)",
        ),
    ] = None,
    window: Annotated[
        int | None, typer.Option(min=1, help="with --protects window: its length in observations")
    ] = None,
    units_per_person: Annotated[int, typer.Option(min=1, help="max. rows or entries per person")] = 1,
    times: Annotated[
        int | None, typer.Option(min=1, help="max. observations a person is in, wherever they are [default: no limit]")
    ] = None,
    account: Annotated[
        str | None, typer.Option(metavar="NAME", help="the budget it shares with other data sets about the same people")
    ] = None,
    apart: Annotated[
        list[str] | None, typer.Option(metavar="DATASET", help="a data set that looks the same and is about others")
    ] = None,
    reason: Reason = None,
    by: By = None,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Declare the unit of protection (before the first query), or share another data set's budget."""
    protection = _protection(rows, protects, window, units_per_person, times)
    with Ledger.open(place_of(ledger, dataset)) as book:
        why = _reason(reason)
        entry = book.declare(
            dataset, protection, by=by or default_analyst(), account=account, apart=apart or (), reason=why
        )
        declared = book.account(dataset)
        whom = declared.members[entry.dataset].text
        words = f"{entry.dataset} spends from the account {declared.name}, which bounds the loss of {whom}."
        _say(book, dataset, f"{words} (entry {entry.id})", as_json)


@budget.command(epilog="Example: wallflower budget quota people ana --epsilon 1")
def quota(
    dataset: Dataset,
    analyst: Annotated[str, typer.Argument(metavar="ANALYST", help="who may spend it")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    reason: Reason = None,
    by: By = None,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reserve a part of a data set's budget for one analyst; --epsilon 0 removes the quota."""
    loss = loss_of("budget quota", epsilon=epsilon, delta=delta, rho=rho)
    with Ledger.open(place_of(ledger, dataset)) as book:
        entry = book.set_quota(dataset, analyst, loss, by=by or default_analyst(), reason=reason or "")
        _say(book, dataset, f"{entry.loss} of {dataset} is kept for {analyst} (entry {entry.id}).", as_json)


@budget.command(
    epilog='Example: wallflower budget charge people --epsilon 0.5 --measurement "mean age" --library "tumult 0.21"'
)
def charge(
    dataset: Dataset,
    measurement: Annotated[str, typer.Option(metavar="TEXT", help="what is measured, for the record")],
    library: Annotated[str, typer.Option(metavar="TEXT", help="who measures, with the version")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    protects: Protects = None,
    whole_person: Annotated[
        bool, typer.Option("--whole-person", help="the loss covers all rows of one person", rich_help_panel=PRIVACY)
    ] = False,
    schema: SchemaOption = None,
    analyst: AnalystOption = None,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Charge the budget for one measurement of another library, before it runs.

    You vouch for the loss: see docs/guides/one-budget.md. Charge again before each further run.
    """
    loss = protect(loss_of("budget charge", epsilon=epsilon, delta=delta, rho=rho), _unit(protects))
    with Ledger.open(place_of(ledger, dataset)) as book:
        receipt = charge_external(
            dataset,
            loss,
            measurement=measurement,
            library=library,
            ledger=book,
            schema=schema,
            analyst=analyst,
            whole_person=whole_person,
        )
        words = f"{receipt.dataset} was charged {receipt.booked} for {measurement} (entry {receipt.id})."
        _say(book, dataset, words, as_json)


@budget.command(
    "allow-constrained",
    epilog='Example: wallflower budget allow-constrained people --epsilon 1 --reason "the paper\'s experiment" --yes',
)
def allow_constrained(
    dataset: Dataset,
    epsilon: Annotated[str, typer.Option(metavar="EPSILON", help="in all; 0 closes it again")],
    reason: Reason = None,
    by: By = None,
    yes: Yes = False,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Allow output-constrained answers (`explain --mode ocdp`), which no budget bounds: off unless you say so.

    The first such answer ends the account's DP guarantee: it no longer covers any record whose change would alter the
    set of valid contexts, and nobody can know which records those are.
    """
    why = _reason(reason)
    with Ledger.open(place_of(ledger, dataset)) as book:
        _confirm_known(book, dataset, yes)
        _confirm("Such answers are not differentially private, and no budget covers them. Allow them?", yes)
        entry = book.allow_constrained(dataset, epsilon, by=by or default_analyst(), reason=why)
        _say(book, dataset, f"{dataset}: output-constrained answers up to ε = {epsilon} (entry {entry.id}).", as_json)


@budget.command(
    "allow-naming",
    epilog='Example: wallflower budget allow-naming people --detector 12 --most 50 --reason "review of records" --yes',
)
def allow_naming(
    dataset: Dataset,
    detector: Annotated[int, typer.Option(min=1, metavar="ENTRY", help="ledger entry of the detector")],
    most: Annotated[int, typer.Option(min=0, metavar="N", help="names that all lists together may request; 0: none")],
    by_row: Annotated[
        bool,
        typer.Option("--by-row", help="rows are in order of arrival, so lists may name row numbers"),
    ] = False,
    reason: Reason = None,
    by: By = None,
    yes: Yes = False,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Allow lists of names (`who`), which protect nobody whom they name: off unless you say so.

    The detector's columns decide who can be named. Letters to each person, and a review of your own, need no allowance.
    """
    why = _reason(reason)
    with Ledger.open(place_of(ledger, dataset)) as book:
        _confirm_known(book, dataset, yes)
        if most:
            _confirm("No guarantee will cover anybody whom a list names. Allow names?", yes)
        entry = book.allow_naming(dataset, detector, most, by=by or default_analyst(), reason=why, by_row=by_row)
        words = f"{entry.dataset}: lists may request {most:,} names in all, by the detector of entry {detector}"
        _say(book, dataset, f"{words} (entry {entry.id}).", as_json)


@ledger.command("list", epilog="Example: wallflower ledger list --dataset people --last 20")
def list_(
    dataset: Annotated[str | None, typer.Option("--dataset", metavar="NAME", help="of one data set only")] = None,
    last: Annotated[int | None, typer.Option(min=1, help="only the latest few")] = None,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Every declaration, limit, quota, charge and release, oldest first."""
    with Ledger.open(place_of(ledger, dataset)) as book:
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
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="default: stdout")] = None,
    ledger: LedgerOption = None,
) -> None:
    """Every entry with its hashes, one JSON line each, so that anybody can check the chain."""
    with Ledger.open(ledger) as book:
        lines = (json.dumps(entry) + "\n" for entry in book.export())
        if output is None:
            sys.stdout.writelines(lines)
            return
        with replacement(output) as file:
            file.writelines(line.encode() for line in lines)
    notice(f"wrote {output}")


def _unit(protects: str | None) -> Unit:
    known = ("record", "membership", "entry", "person")
    if protects is not None and protects not in known:
        raise ParameterError(
            f"protects: {protects[:40]!r} is not a unit that a grant can declare. It is one of {', '.join(known)}. "
            "Choose one; a window is declared with its length (wallflower budget declare)."
        )
    return protects or "record"  # type: ignore[return-value]


def _protection(
    rows: str | None, unit: str | None, window: int | None, units_per_person: int, times: int | None
) -> Protection | None:
    """What was declared; None where nothing but an account was."""
    if (rows, unit, window, units_per_person, times) == (None, None, None, 1, None):
        return None
    basis = unit or ("window" if window else "record")
    kind = rows or ("time" if basis in ("entry", "window", "person") else "people")
    return Protection.from_json(
        {"rows": kind, "unit": basis, "window": window, "units_per_person": units_per_person, "times": times}
    )


def _reason(text: str | None) -> str:
    """Why: asked for on a terminal, required elsewhere."""
    if text is None and sys.stdin.isatty():
        text = typer.prompt("Why (for the record)", err=True)
    if not (text or "").strip():
        raise ParameterError("reason: what changes a budget is kept with its reason for ever. Pass --reason TEXT.")
    return str(text)


def _confirm_large(loss: Loss, yes: bool) -> None:
    if loss.kind is not Kind.ZCDP and loss.amount > LARGE:
        _confirm(f"An epsilon of {loss.amount} promises next to nothing (more than {LARGE}). Set it anyway?", yes)


def _confirm_known(book: Ledger, dataset: str, yes: bool) -> None:
    if not book.knows(dataset):
        _confirm(f"The ledger does not know {dataset}. Is that its name?", yes)


def _confirm(words: str, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise ParameterError(f"{words} Nothing was changed. Pass --yes if it is meant.")
    if not typer.confirm(words, err=True):
        raise Decline


def _day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ParameterError(f"expires: {text[:40]!r} is not a day. Write it as 2027-12-31.") from None


def _say(book: Ledger, dataset: str, words: str, as_json: bool) -> None:
    account = book.account(dataset)
    if as_json:
        show_json({"dataset": dataset, **account.to_json(dataset)})
    else:
        show(words)
        show(budgets({dataset: account}))
