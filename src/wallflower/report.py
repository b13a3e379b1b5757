"""Pictures and pages of releases: nothing here sees data, only what was released and what is public.

A drawing is made with two stand-in colours, ink and accent; a page replaces them by its own, so that one drawing suits
light and dark.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from string import Template
from typing import Any, Final

from wallflower.chain import Entry, Verified
from wallflower.lazy import Lazy
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.queries import QUERIES
from wallflower.query import Plan
from wallflower.release import Release, readable, rough, symbol

_matplotlib = Lazy("matplotlib")
_figures = Lazy("matplotlib.figure")
_ticker = Lazy("matplotlib.ticker")

INK: Final = "#22303c"
ACCENT: Final = "#0b7285"
QUIET: Final = "#8795a1"
_STYLE: Final[dict[str, Any]] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.edgecolor": QUIET,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": QUIET,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "wallflower",
}
_SIZE: Final = (8.4, 3.0)


def plan_of(release: Release[Any]) -> Plan | None:
    """What was to be expected of a release, from the public facts it carries; None if its question is unknown here."""
    question = next((known for known in QUERIES if known.label == release.label), None)
    if question is None:
        return None
    query = question.from_json(release.parameters)
    return query.plan(n=release.facts.n, dimension=release.facts.dimension)


def figure(release: Release[Any]) -> Any:
    """The value with its interval and, beside it, what each loss would have given."""
    plan = plan_of(release)
    curve = () if plan is None else plan.curve
    with _matplotlib.rc_context(_STYLE):
        drawn = _figures.Figure(figsize=_SIZE, layout="constrained")
        panels = drawn.subplots(1, 2, width_ratios=(1.15, 1)) if curve else [drawn.subplots()]
        _draw_value(panels[0], release)
        if curve:
            _draw_curve(panels[1], curve, release.guarantee.loss)
        drawn.get_layout_engine().set(w_pad=0.15, wspace=0.06)
    return drawn


def svg(drawn: Any) -> str:
    """A figure as inline SVG whose colours follow the page it is on."""
    target = io.StringIO()
    with _matplotlib.rc_context(_STYLE):
        drawn.savefig(target, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = target.getvalue()
    text = text[text.index("<svg") :]
    for colour, name in ((INK, "ink"), (ACCENT, "accent"), (QUIET, "quiet")):
        text = text.replace(colour, f"var(--{name})")
    return re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"', r'<svg \1class="plot"', text, count=1).replace(
        f' height="{_SIZE[1] * 72}pt"', ""
    )


def card(release: Release[Any]) -> str:
    """A release as a piece of HTML, for notebooks and pages."""
    rows = [
        ("Reading", release.words),
        ("Guarantee", release.guarantee.words),
        ("Mechanism", f"{release.mechanism}; {release.proof}; {release.status}"),
        ("Data set", f"{release.dataset}: {release.facts}"),
        ("Ledger", f"entry {release.ledger_id} by {release.analyst}; {release.left} is left"),
        *(("Note", note) for note in release.notes),
    ]
    body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(words)}</td></tr>" for name, words in rows)
    range_ = "" if release.interval is None else "95&#8239;% interval {} to {}".format(*map(readable, release.interval))
    return (
        f'<div class="wallflower-release"><p class="question">{escape(release.question)}</p>'
        f'<p class="answer"><strong>{escape(readable(release.value))}</strong> <span>{range_}</span></p>'
        f"<table>{body}</table></div>"
    )


def page(releases: Sequence[Release[Any]], entries: Sequence[Entry], verified: Verified) -> str:
    """One HTML page, complete in itself: no script, no other file."""
    names = sorted({release.dataset for release in releases})
    return Template(_PAGE).substitute(
        title=escape(", ".join(names) or "wallflower"),
        style=_CSS,
        releases="".join(map(_section, releases)),
        entries=_entries(entries),
        count=verified.entries,
        head=verified.head,
        version=escape(releases[-1].version if releases else ""),
    )


def write(path: Path, releases: Sequence[Release[Any]], ledger: Ledger) -> None:
    """The page about these releases, with the ledger's entries of their data sets."""
    names = {release.dataset for release in releases}
    entries = [entry for entry in ledger.history() if entry.dataset in names]
    path.write_text(page(releases, entries, ledger.verify()), encoding="utf-8")


def _draw_value(axes: Any, release: Release[Any]) -> None:
    axes.set_title(release.question, wrap=True)
    axes.set_yticks([])
    axes.spines[["left", "right", "top"]].set_visible(False)
    if not isinstance(release.value, int | float):
        axes.set_xticks([])
        axes.text(0.5, 0.5, readable(release.value), ha="center", va="center", transform=axes.transAxes)
        return
    low, high = release.interval or (release.value, release.value)
    axes.plot([low, high], [0, 0], color=ACCENT, linewidth=7, alpha=0.3, solid_capstyle="round")
    axes.plot([release.value], [0], "o", color=ACCENT, markersize=10)
    axes.annotate(
        readable(release.value), (release.value, 0), (0, 12), textcoords="offset points", ha="center", fontsize=13
    )
    room = max(high - low, 1.0) * 0.25
    axes.set_xlim(low - min(room, low) - room / 8 if low >= 0 else low - room, high + room)
    axes.set_ylim(-1, 1.4)
    said = f"{release.dataset}, {release.facts.n:,} records, {release.guarantee.loss}"
    axes.set_xlabel(f"{said}\nbar: 95 % interval" if release.interval else said)


def _draw_curve(axes: Any, curve: Sequence[tuple[float, float]], loss: Loss) -> None:
    amounts, widths = zip(*curve, strict=True)
    letter, spent = symbol(loss), float(loss.amount)
    axes.set_title(f"What each {letter} would have given")
    axes.plot(amounts, widths, color=INK, linewidth=1.4)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(_ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_minor_locator(_ticker.NullLocator())
        axis.set_major_formatter(_ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    if amounts[0] <= spent <= amounts[-1]:
        here = (spent, _along(curve, spent))
        axes.axvline(spent, color=ACCENT, linewidth=1, linestyle=(0, (4, 3)))
        axes.plot(*here, "o", color=ACCENT, markersize=6)
        axes.annotate("this release", here, (7, 7), textcoords="offset points", color=ACCENT)
    axes.grid(True, which="major")
    axes.spines[["right", "top"]].set_visible(False)
    axes.set_xlabel(f"{letter} spent")
    axes.set_ylabel("half-width of the 95 % interval")


def _along(curve: Sequence[tuple[float, float]], spent: float) -> float:
    """The height of the drawn line, straight between points on log scales."""
    for (left, above), (right, below) in pairwise(curve):
        if left <= spent <= right:
            share = math.log(spent / left) / math.log(right / left)
            return math.exp((1 - share) * math.log(above) + share * math.log(below))
    return curve[-1][1]


def _section(release: Release[Any]) -> str:
    plan = plan_of(release)
    expected = "" if plan is None else _plan(plan)
    return f'<section>{card(release)}<figure class="wide">{svg(figure(release))}</figure>{expected}</section>'


def _plan(plan: Plan) -> str:
    rows = (
        (
            f"{option.mechanism} (chosen)" if option.mechanism == plan.chosen else option.mechanism,
            f"± {rough(option.error)}",
            f"± {rough(option.half_width)}",
            rough(option.deviation),
            option.note,
        )
        for option in plan.options
    )
    heading = ("Mechanism", "Typical error", "95 % within", "Deviation", "")
    verdict = escape(plan.verdict[:1].upper() + plan.verdict[1:].rstrip("."))
    said = f"<p>{verdict}. From public facts alone, before anything was spent.</p>"
    return f"<h2>What was to be expected</h2>{said}{_table(heading, rows)}"


def _entries(entries: Sequence[Entry]) -> str:
    rows = (
        (
            str(entry.id),
            entry.time.replace("T", " ").removesuffix("+00:00"),
            entry.event,
            entry.analyst or str(entry.details.get("by", "")),
            entry.label or "",
            "" if entry.loss is None else str(entry.loss),
            entry.hash[:12],
        )
        for entry in entries
    )
    return _table(("", "Time (UTC)", "Event", "By", "Question", "Loss", "Hash"), rows)


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heading)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table class="grid"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


_CSS: Final = """
:root { --ink: #22303c; --quiet: #6b7a87; --accent: #0b7285; --page: #fbfcfd; --card: #ffffff; --line: #dde3e8;
  color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #dfe7ec; --quiet: #93a3af; --accent: #4cc3d6; --page: #12181d; --card: #1a2229; --line: #2d3943; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; } h2 { font-size: 1.05rem; margin: 1.75rem 0 .5rem; }
h2:first-child { margin-top: 0; }
.lead, footer { color: var(--quiet); } footer { font-size: .85rem; margin-top: 2rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1.5rem;
  margin: 1.5rem 0; }
.question { margin: 0; color: var(--quiet); }
.answer { margin: .1rem 0 1rem; } .answer strong { font-size: 2.4rem; color: var(--accent); margin-right: .5rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .38rem .9rem .38rem 0; border-top: 1px solid var(--line); }
th { font-weight: 600; color: var(--quiet); white-space: nowrap; }
.grid { font-variant-numeric: tabular-nums; } .grid td:last-child { color: var(--quiet); }
.wide { overflow-x: auto; } figure { margin: 1.5rem 0 0; } .plot { width: 100%; min-width: 34rem; height: auto; }
code { font-size: .85rem; overflow-wrap: anywhere; }
"""

_PAGE: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Private release: $title</title><style>$style</style></head>
<body><main>
<h1>$title</h1>
<p class="lead">What was asked of private records, what was answered, and what it cost in privacy.</p>
$releases
<section><h2>The ledger</h2>
<p>Every grant and every charge, each bound to the one before it. The chain was checked when this page was written:
$count entries hold. Its head, to be noted elsewhere: <code>$head</code></p>
$entries</section>
<footer>Only the answers depend on the records; everything else on this page is public. wallflower $version</footer>
</main></body></html>
"""
