"""How things look in a terminal: answers on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import singledispatch
from pathlib import Path
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.spinner import Spinner
from rich.table import Table as Grid
from rich.text import Text

from wallflower.errors import PrivacyError
from wallflower.ledger import Ledger
from wallflower.ledger.budget import Line
from wallflower.ledger.chain import Entry, Verification
from wallflower.progress import report_to
from wallflower.query import Plan
from wallflower.release import Release, starter_note
from wallflower.release.words import as_words, readable, rows_of, symbol

_WIDE: Final = 160


def show(thing: object) -> None:
    """Print an answer. A file or a pipe has no width of its own, so it gets a generous one and no padding."""
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDE, highlight=False)
    with console.capture() as captured:
        console.print(render(thing), crop=False)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def show_json(value: Mapping[str, Any]) -> None:
    """Print exactly one JSON object."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def notice(words: str) -> None:
    """Say something beside the answer."""
    _stderr().print(Text(words, style="yellow"), soft_wrap=True)


def say_cap(ledger: Ledger, dataset: str) -> None:
    """Say whose limit holds while nobody has granted a budget."""
    if any(line.starter for line in ledger.budget(dataset)):
        notice(starter_note(dataset))


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
    with _Waiting(words, console) as bars, report_to(bars):
        yield


class _Waiting(Progress):
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
    """What a thing looks like; a plain sentence is left to the terminal to wrap, so that it can be copied."""
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


@render.register
def _(release: Release) -> RenderableType:  # type: ignore[type-arg]
    promise = release.guarantee
    facts = [
        ("answer", Text(release.said, style="bold green")),
        ("reading", Text(release.words)),
        ("guarantee", Text(promise.words)),
        ("mechanism", Text(f"{release.mechanism}; {release.proof}; {release.status}")),
        ("data set", Text(f"{release.dataset}: {release.facts}")),
        ("ledger", Text(f"entry {release.ledger_id} by {release.analyst}; {release.left} is left")),
    ]
    facts += [(as_words(name), Text(readable(value))) for name, value in release.extras.items()]
    return Group(Text(release.question, style="bold"), _facts(facts))


@render.register
def _(plan: Plan) -> RenderableType:
    grid = _grid("mechanism", *(f">{heading}" for heading in plan.headings.values()), "")
    for option, cells in zip(plan.options, rows_of(plan), strict=True):
        grid.add_row(*cells, style="bold" if option.mechanism == plan.chosen else "")
    facts = [
        ("cost", Text(str(plan.cost))),
        ("public facts", Text(", ".join(f"{as_words(name)} = {value:,}" for name, value in plan.facts.items()))),
        ("verdict", Text(plan.verdict, style="green" if plan.useful else "yellow")),
    ]
    if plan.smallest_useful_epsilon is not None:
        facts.append(("useful from", Text(f"{symbol(plan.cost)}={plan.smallest_useful_epsilon}")))
    return Group(Text(f"What to expect of {plan.query}", style="bold"), _facts(facts), _indented(grid))


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


def budgets(lines: Mapping[str, Sequence[Line]]) -> RenderableType:
    """Limits, spending and shares of data sets."""
    grid = _grid("data set", "account", ">limit", ">spent", ">left", ">free", "")
    for dataset, accounts in lines.items():
        for line in accounts:
            losses = map(str, (line.limit, line.spent, line.left, line.free))
            grid.add_row(dataset, line.account, *losses, "starter cap, nobody granted" if line.starter else "")
            for share in line.shares:
                grid.add_row("", f"  {share.analyst}", *map(str, (share.allocated, share.spent, share.left)), "", "")
    return grid


def table_facts(facts: Mapping[str, Any]) -> RenderableType:
    """The public facts of a table."""
    stated = sorted({name for column in facts["columns"] for name in column} - {"name", "type"})
    grid = _grid("column", "type", *(f">{name}" for name in stated))
    for column in facts["columns"]:
        grid.add_row(column["name"], column["type"], *(readable(column.get(name, "")) for name in stated))
    clip = "values are moved into their bounds" if facts["clip"] else "values outside their bounds are refused"
    return Group(Text(f"{facts['name']}: {facts['rows']:,} records; {clip}", style="bold"), grid)


def line_json(line: Line) -> dict[str, Any]:
    """One account, exactly."""
    losses = {name: str(getattr(line, name)) for name in ("limit", "spent", "left", "free")}
    shares = [
        {"analyst": share.analyst} | {name: str(getattr(share, name)) for name in ("allocated", "spent", "left")}
        for share in line.shares
    ]
    return {"account": line.account, "starter": line.starter, **losses, "shares": shares}


def _stderr() -> Console:
    return Console(file=sys.stderr, highlight=False)


def _entries(entries: Sequence[Entry]) -> RenderableType:
    grid = _grid(">id", "time", "event", "data set", "analyst", "question", "loss", "hash")
    for entry in entries:
        what = entry.label or ""
        if entry.charge is not None:
            what = f"{what} (answers {entry.charge})"
        loss = "" if entry.loss is None else str(entry.loss)
        who = entry.analyst or str(entry.details.get("by", ""))
        grid.add_row(str(entry.id), entry.time, entry.event, entry.dataset, who, what, loss, entry.hash[:12])
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
    return _indented(grid)


def _indented(grid: Grid) -> RenderableType:
    return Padding(grid, (0, 0, 0, 2), expand=False)
