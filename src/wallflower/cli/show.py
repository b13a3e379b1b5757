"""How things look in a terminal: answers on stdout, everything else on stderr."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import singledispatch
from pathlib import Path
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.spinner import Spinner
from rich.table import Table as Grid
from rich.text import Text

from wallflower.errors import PrivacyError, SourceError
from wallflower.ledger import Account, Ledger, Quote
from wallflower.ledger.chain import Entry, Verification
from wallflower.ledger.limits import Spending
from wallflower.privacy import Kind
from wallflower.progress import report_to
from wallflower.query import Plan, Quality
from wallflower.query.accuracy import CHECK_FIRST
from wallflower.release import Release, starter_note
from wallflower.release.text import as_words, readable, rows_of, symbol
from wallflower.schema.column import TableWords, names_of
from wallflower.text import decimal
from wallflower.theorems import Evidence
from wallflower.units import basis_noun

_WIDE: Final = 160
_MAX_ROWS: Final = 20  # of a table; the file of --csv has them all
_SHADES: Final = {"low noise": "green", "moderate noise": "yellow", "mostly noise": "bold red"}


def show(thing: object) -> None:
    """Print an answer. A file or a pipe has no width of its own, so it gets a generous one and no padding; a plain
    sentence is left to the terminal to wrap, so that it can be copied."""
    if isinstance(thing, str):
        sys.stdout.write(f"{thing}\n")
        return
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDE, highlight=False)
    with console.capture() as captured:
        console.print(render(thing), crop=False)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def show_json(value: Mapping[str, Any]) -> None:
    """Print exactly one JSON object, in ASCII, so that every terminal and pipe can carry it."""
    sys.stdout.write(json.dumps(value) + "\n")


def make_output_encodable() -> None:
    """Print characters that the terminal's encoding lacks as escapes (`\\u03b5`) rather than fail on them."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError):  # a stream that cannot be flushed keeps its settings
                stream.reconfigure(errors="backslashreplace")


def require_output() -> None:
    """Refuse before the charge if there is no standard output for the answer."""
    try:
        sys.stdout.flush()
    except (AttributeError, OSError, ValueError):
        raise SourceError(
            "standard output is closed, so an answer could not be shown. Nothing was charged. Redirect it to a file."
        ) from None


def notice(words: str) -> None:
    """Say something beside the answer."""
    _stderr().print(Text(words, style="yellow"), soft_wrap=True)


def say_cap(ledger: Ledger, dataset: str) -> None:
    """Say whose limit holds while nobody has granted a budget."""
    if ledger.account(dataset).starter:
        notice(starter_note(dataset))


def price_words(quoted: Quote) -> str:
    """What a question would cost, what would be left, and how often it could be asked."""
    booked, after = quoted.booked, quoted.left_after
    is_same = booked is None or (booked.amount, booked.delta) == (quoted.cost.amount, quoted.cost.delta)
    unit = quoted.protection.unit_noun
    counts = "" if is_same else f" per {basis_noun(quoted.cost)}, booked as {booked} per {unit}"
    words = f"On {quoted.dataset} this would cost {quoted.analyst} {quoted.cost}{counts}, of {quoted.left}"
    if after is None:
        return f"{words}; it would be refused."
    times = f"{quoted.affords:,} such questions fit" if quoted.affords != 1 else "one such question fits"
    names = "" if quoted.names_left is None else f" {quoted.names_left:,} names are left in the steward's allowance."
    return f"{words}; {after} would be left. {times[0].upper()}{times[1:]} into the budget.{names}"


def failure(words: str) -> None:
    """Say in one line what went wrong."""
    _stderr().print(Text.assemble(("wallflower: ", "bold red"), words), soft_wrap=True)


@contextmanager
def sign_of_life(words: str) -> Iterator[None]:
    """A sign of life while something takes long, on a terminal only: a bar while steps are counted, else a spinner."""
    console = _stderr()
    if not console.is_terminal:
        yield
        return
    with _BarOrSpinner(words, console) as bars, report_to(bars):
        yield


class _BarOrSpinner(Progress):
    """A bar for all work that is counted in steps, and a spinner when there is none."""

    def __init__(self, words: str, console: Console) -> None:
        self._spinner = Spinner("dots", Text(words), style="status.spinner")
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
        to_the_same = sys.stdout.isatty()  # else an answer that is piped on would be caught and shown here
        super().__init__(*columns, TimeElapsedColumn(), console=console, transient=True, redirect_stdout=to_the_same)

    def begin(self, words: str, total: int) -> TaskID:
        return self.add_task(words, total=total)

    def end(self, task: TaskID) -> None:
        self.remove_task(task)

    def get_renderables(self) -> Iterator[RenderableType]:
        tasks = self.tasks
        yield self.make_tasks_table(tasks) if tasks else self._spinner


@singledispatch
def render(thing: object) -> RenderableType:
    """What a thing looks like."""
    return Text(str(thing), no_wrap=True, overflow="ignore")


@render.register
def _(text: Text) -> RenderableType:
    return text


@render.register
def _(group: Group) -> RenderableType:
    return group


@render.register
def _(grid: Grid) -> RenderableType:
    return grid


def summarise(release: Release[Any]) -> RenderableType:
    """Render the answer, what it is worth and what it cost, without the small print; a list of rows is a table."""
    rows, promise = release.rows(), release.guarantee
    table = _rows_grid(rows) if len(rows) > 1 and isinstance(release.value, list) else None
    answer: RenderableType = Text(release.summary, style="bold green") if table is None else table
    more = f"--details, or wallflower release show {release.ledger_id}, has the guarantee and every setting"
    if len(rows) > _MAX_ROWS and table is not None:
        more = f"{len(rows) - _MAX_ROWS:,} more rows: --csv FILE has them all; {more}"
    facts = [
        ("answer", answer),
        ("reading", Text(release.text)),
        *_quality_rows(release.quality),
        *(("note", Text(note, style="yellow")) for note in release.notes),
        *([("guarantee", Text(promise.text))] if promise.kind is Kind.OUTPUT_CONSTRAINED else []),
        ("cost", Text(release.price)),
        *([("protects", Text(release.protects))] if release.protects else []),
        ("more", Text(more, style="dim")),
    ]
    return Group(Text(release.question, style="bold"), _facts(facts))


def _rows_grid(rows: Sequence[Mapping[str, Any]]) -> Grid:
    """Make a table of the first rows of an answer; numbers stand on the right."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    is_number = {name: all(isinstance(row.get(name, 0), int | float) for row in rows) for name in names}
    grid = _grid(*(f">{as_words(name)}" if is_number[name] else as_words(name) for name in names))
    for row in rows[:_MAX_ROWS]:
        grid.add_row(*(readable(row[name]) if name in row else "" for name in names))
    return grid


@render.register
def _(release: Release) -> RenderableType:  # type: ignore[type-arg]
    promise = release.guarantee
    facts = [
        ("answer", Text(release.summary, style="bold green")),
        ("reading", Text(release.text)),
        *_quality_rows(release.quality),
        *(("note", Text(note, style="yellow")) for note in release.notes),
        *([("asked", Text(release.terms))] if release.terms else []),
        ("guarantee", Text(promise.text)),
        ("mechanism", Text(f"{release.mechanism}; {release.proof}; {release.status}")),
        *([("theorems", Text(promise.evidence))] if Evidence.MACHINE_CHECKED in promise.theorems else []),
        ("data set", Text(f"{release.dataset}: {release.facts}")),
        ("ledger", Text(f"{_entry_words(release)}. {release.price}")),
        *([("protects", Text(release.protects))] if release.protects else []),
    ]
    facts += [(as_words(name), Text(readable(value))) for name, value in release.extras.items()]
    return Group(Text(release.question, style="bold"), _facts(facts))


def _quality_rows(quality: Quality | None) -> list[tuple[str, RenderableType]]:
    """The conditions first, then the noise and what of the interval is proved."""
    if quality is None:
        return []
    return [
        *((CHECK_FIRST, Text(words, style="bold yellow")) for words in quality.conditions),
        ("noise", Text(f"{quality.noise}: {quality.rule}", style=_SHADES[quality.noise])),
        ("proved", Text(quality.interval)),
    ]


def _entry_words(release: Release[Any]) -> str:
    when = f", charged {release.charged_at_text}" if release.charged_at_text else ""
    return f"entry {release.ledger_id} by {release.analyst}{when}"


@render.register
def _(plan: Plan) -> RenderableType:
    grid = _grid("mechanism", *(f">{heading}" for heading in plan.headings.values()), "")
    for option, cells in zip(plan.options, rows_of(plan), strict=True):
        grid.add_row(*cells, style="bold" if option.mechanism == plan.chosen else "")
    facts = [
        ("cost", Text(plan.cost_text or str(plan.cost))),
        ("public facts", Text(", ".join(f"{as_words(name)} = {value:,}" for name, value in plan.facts.items()))),
        ("verdict", Text(plan.verdict, style="green" if plan.grade == "useful" else "yellow")),
        *((CHECK_FIRST, Text(words, style="bold yellow")) for words in plan.conditions),
    ]
    facts += [("note", Text(note, style="yellow")) for note in plan.notes]
    if plan.smallest_useful_epsilon is not None:
        facts.append(("useful from", Text(f"{symbol(plan.cost)} = {plan.smallest_useful_epsilon}")))
    if plan.affords is not None:
        facts.append(("affords", Text(f"{plan.affords:,} more queries like this within your budget")))
    return Group(Text(f"What to expect of {plan.query}", style="bold"), _facts(facts), _indent(grid))


@render.register
def _(verified: Verification) -> RenderableType:
    words = f"The chain holds: {verified.entries} entries. Note its head elsewhere, to find cuts later:"
    return Group(Text(words, style="green"), Text(f"  {verified.head}"))


@render.register
def _(refusal: PrivacyError) -> RenderableType:
    return Text.assemble(("refused: ", "bold red"), str(refusal))


@render.register
def _(path: Path) -> RenderableType:
    return Text(str(path), style="cyan", no_wrap=True, overflow="ignore")


@render.register(list)
@render.register(tuple)
def _(things: Sequence[object]) -> RenderableType:
    if not things:
        return Text("nothing yet")
    if isinstance(things[0], Entry):
        return _entries([thing for thing in things if isinstance(thing, Entry)])
    return Group(*map(render, things))


def budgets(accounts: Mapping[str, Account]) -> RenderableType:
    """One line for each data set: what it may spend, what is spent and left, for whom, and who spent it."""
    grid = _grid("data set", ">limit", ">spent", ">left", "bounds the loss of", "")
    for dataset, account in accounts.items():
        limit, spent = str(account.limit.loss), _spent_text(account)
        unit = account.members.get(dataset, account.protection).text
        grid.add_row(dataset, limit, spent, str(account.left), unit, "; ".join(_remarks(dataset, account)))
        for analyst, spending in account.spenders.items():
            quota = next((quota for quota in account.quotas if quota.analyst == analyst), None)
            kept = "" if quota is None else f"{quota.left} of a quota of {quota.limit} is left"
            grid.add_row(f"  {analyst}", "", _parts(spending, account), "", "", kept)
        for quota in account.quotas:
            if quota.analyst not in account.spenders:
                grid.add_row(f"  {quota.analyst}", "", "", str(quota.left), "", f"a quota of {quota.limit}")
    return grid


def _spent_text(account: Account) -> str:
    return _parts(account.spent, account)


def _parts(spent: Spending, account: Account) -> str:
    """What was spent, in what the limit counts."""
    delta = f", δ = {decimal(spent.delta)}" if spent.delta else ""
    if account.limit.accounting == "sum":
        return f"ε = {decimal(spent.epsilon)}{delta}"
    squares = f"ρ = {float(spent.rho):.4g} of {float(account.limit.rho):.4g}"
    return (
        f"{squares}{delta}"
        if account.limit.accounting == "concentrated"
        else f"ε = {decimal(spent.epsilon)} or {squares}{delta}"
    )


def _remarks(dataset: str, account: Account) -> Iterator[str]:
    if account.starter:
        yield "starter cap, nobody granted"
    others = [name for name in account.members if name != dataset]
    if others or account.name != dataset:
        yield f"account {account.name}" + (f", shared with {', '.join(others)}" if others else "")
    booking = account.members.get(dataset, account.protection).booking_text
    if booking is not None:
        yield booking
    if account.pace is not None:
        yield f"at most ε = {decimal(account.pace)} a year"
    if account.expires is not None:
        yield f"until {account.expires}"
    if account.names:
        yield f"does not cover the {len(account.names)} records that were named"
    if account.public.get(dataset):
        yield f"does not cover a change of {', '.join(account.public[dataset])}, which the schema calls public"
    if account.naming.since is not None:
        yield f"since entry {account.naming.since} answers name records; no guarantee covers anybody who is named"
    for allowance in account.naming.allowances:
        if allowance.dataset == dataset:
            names = f"{allowance.left:,} of {allowance.most:,} names are left"
            yield f"{names}, by the detector of entry {allowance.detector}"
    if account.fence.since is not None:
        yield f"no bound since entry {account.fence.since}, which was output-constrained"
    elif account.fence.allowed:
        yield f"output-constrained answers up to ε = {decimal(account.fence.allowed)} are allowed"


def table_facts(facts: Mapping[str, Any]) -> RenderableType:
    """The public facts of a table."""
    stated = sorted({name for column in facts["columns"] for name in column} - {"name", "type"})
    grid = _grid("column", "type", *(f">{name}" for name in stated))
    for column in facts["columns"]:
        grid.add_row(column["name"], column["type"], *(readable(column.get(name, "")) for name in stated))
    clip = "values are moved into their bounds" if facts["clip"] else "values outside their bounds are refused"
    heading = Text(f"{facts['name']}: {facts['rows']:,} records; {clip}", style="bold")
    reading = [f"{name.capitalize()}: {facts[name]}" for name in names_of(TableWords) if name in facts]
    left = [f"Columns not read: {', '.join(facts['without'])}."] if facts.get("without") else []
    guess = [] if facts.get("declared", True) else ["The source declares no types: they are inferred from its cells."]
    return Group(heading, grid, *(Text(words, style="dim") for words in (*reading, *left, *guess)))


def _stderr() -> Console:
    return Console(file=sys.stderr, highlight=False)


def _entries(entries: Sequence[Entry]) -> RenderableType:
    grid = _grid(">id", "time", "event", "data set", "analyst", "question", "stated", "booked", "hash")
    for entry in entries:
        what = entry.label or ""
        if entry.charge is not None:
            what = f"{what} (answers {entry.charge})"
        loss = "" if entry.loss is None else str(entry.loss)
        booked = "" if entry.booked is None else str(entry.booked)
        who = entry.analyst or str(entry.details.get("by", ""))
        grid.add_row(str(entry.id), entry.time, entry.event, entry.dataset, who, what, loss, booked, entry.hash[:12])
    return grid


def _grid(*headings: str) -> Grid:
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in headings:
        grid.add_column(heading.lstrip(">"), justify="right" if heading.startswith(">") else "left", overflow="fold")
    return grid


def _facts(rows: Sequence[tuple[str, RenderableType]]) -> RenderableType:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(name, value)
    return _indent(grid)


def _indent(grid: Grid) -> RenderableType:
    return Padding(grid, (0, 0, 0, 2), expand=False)
