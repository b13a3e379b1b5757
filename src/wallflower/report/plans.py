"""Plans in words, as cards, pictures and pages: from public facts alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from string import Template
from textwrap import wrap
from typing import Any, Final

from wallflower.drawing import cards
from wallflower.drawing.charts import plan_chart
from wallflower.machine.files import write_text
from wallflower.machine.version import VERSION
from wallflower.query.accuracy import CHECK_FIRST
from wallflower.query.plan import Plan
from wallflower.release.text import as_words, rows_of, symbol, to_frame
from wallflower.report.plots import figure_of_plan
from wallflower.text import t, tn

__all__ = ["card", "figure", "frame", "text", "write"]

_WIDTH: Final = 96
_SAID_ABOVE: Final = ("verdict", "note", CHECK_FIRST)


def text(plan: Plan) -> str:
    """The plan as lines of text: facts first, then a row for each option with its note below."""
    facts = list(_facts(plan))
    width = max(len(name) for name, _ in facts)
    lines = [f"What to expect of {plan.query}"]
    for name, words in facts:
        first, *rest = wrap(words, _WIDTH - width) or [""]
        lines += [f"  {name:<{width}}  {first}", *(f"  {'':<{width}}  {line}" for line in rest)]
    return "\n".join([*lines, *_table(plan)])


def card(plan: Plan) -> str:
    """The plan as a piece of HTML, for notebooks."""
    return cards.frame("plan", _inside(plan))


def plan_chart_of(plan: Plan) -> str | None:
    """Return the curve of a plan as SVG; None where it has none."""
    letter = symbol(plan.cost)
    chart = plan_chart(plan.curve, measure=plan.measure, scale=plan.scale, symbol=letter, at=float(plan.cost.amount))
    return None if chart is None else chart.to_svg(t("{measure} at each {symbol}", measure=plan.measure, symbol=letter))


def figure(plan: Plan) -> Any:
    """A matplotlib Figure of what each amount of the loss would give."""
    return figure_of_plan(plan)


def frame(plan: Plan) -> Any:
    """A pandas DataFrame: a row for each option."""
    rows = [
        {"mechanism": each.mechanism, **each.figures, "chosen": each.mechanism == plan.chosen, "note": each.note}
        for each in plan.options
    ]
    return to_frame(rows)


def write(path: Path, plan: Plan) -> None:
    """One HTML page, complete in itself: no script, no other file."""
    body = cards.bare("plan", _inside(plan))
    page = Template(_PAGE).substitute(
        title=escape(f"What to expect of {plan.query}"), style=cards.PAGE_STYLE, body=body, version=VERSION
    )
    write_text(path, page)


def _inside(plan: Plan) -> str:
    picture = plan_chart_of(plan) or ""
    shade = "good" if plan.grade == "useful" else "care"
    numbers = list(plan.headings.values())
    heads = "".join(f'<th class="number">{escape(name)}</th>' for name in numbers)
    body = "".join(
        _row(cells, is_chosen=option.mechanism == plan.chosen)
        for cells, option in zip(rows_of(plan), plan.options, strict=True)
    )
    table = f'<div class="scroll"><table class="grid"><thead><tr><th>Mechanism</th>{heads}<th></th></tr></thead>'
    heading = f"{cards.mark(plan.grade, shade)}What to expect of {escape(plan.query)}"
    said = f'<p class="{shade}">{escape(plan.reason[:1].upper() + plan.reason[1:].rstrip("."))}.</p>'
    scales = "both scales are logarithmic" if plan.scale == "log" else f"{symbol(plan.cost)} on a logarithmic scale"
    caption = f"{escape(plan.measure)} at each {symbol(plan.cost)}; {scales}"
    drawn = f'{picture}<p class="question">{caption}</p>' if picture else ""
    facts = [(name[:1].upper() + name[1:], words) for name, words in _facts(plan) if name not in _SAID_ABOVE]
    return (
        f'<p class="question">{heading}</p>{said}{cards.warn((*plan.conditions, *plan.notes))}'
        f"{table}<tbody>{body}</tbody></table></div>"
        f"{drawn}{cards.tell(facts)}"
    )


def _row(cells: Sequence[str], *, is_chosen: bool) -> str:
    first, *numbers, note = (escape(cell) for cell in cells)
    inner = "".join(f'<td class="number">{number}</td>' for number in numbers)
    return f'<tr{" class=chosen" if is_chosen else ""}><td>{first}</td>{inner}<td class="rest">{note}</td></tr>'


def _facts(plan: Plan) -> Iterator[tuple[str, str]]:
    yield "cost", plan.cost_text or plan.cost.text
    yield "public facts", ", ".join(f"{as_words(name)} = {value:,}" for name, value in plan.facts.items())
    yield "verdict", plan.verdict
    for condition in plan.conditions:
        yield CHECK_FIRST, condition
    for note in plan.notes:
        yield "note", note
    if plan.smallest_useful_epsilon is not None:
        yield "useful from", f"{symbol(plan.cost)}={plan.smallest_useful_epsilon}"
    if plan.affords is not None:
        yield "affords", tn("{n:,} more query like this", "{n:,} more queries like this", n=plan.affords)


def _table(plan: Plan) -> Iterator[str]:
    """A row for each option, or, where that would be too wide, a line for each figure."""
    rows = [("mechanism", *plan.headings.values()), *(cells[:-1] for cells in rows_of(plan))]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    if sum(widths) + 2 * len(widths) > _WIDTH:
        yield from _list(plan)
        return
    notes = ["", *(option.note for option in plan.options)]
    for (name, *numbers), note in zip(rows, notes, strict=True):
        cells = (f"{cell:>{width}}" for cell, width in zip(numbers, widths[1:], strict=True))
        yield "  " + "  ".join([f"{name:<{widths[0]}}", *cells]).rstrip()
        yield from (f"    {line}" for line in wrap(note, _WIDTH - 4))


def _list(plan: Plan) -> Iterator[str]:
    width = max(map(len, plan.headings.values()))
    for name, *numbers, note in rows_of(plan):
        yield from (f"  {line}" for line in wrap(f"{name}: {note}" if note else name, _WIDTH - 2))
        for heading, number in zip(plan.headings.values(), numbers, strict=True):
            if number:
                yield f"    {heading:<{width}}  {number}"


_PAGE: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title><style>$style</style></head>
<body><main>
<h1>$title</h1>
<p class="lead">From public facts alone, before anything was spent.</p>
<section>$body</section>
<footer>No record was used for this page. wallflower $version</footer>
</main></body></html>
"""
