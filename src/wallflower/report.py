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
from textwrap import fill, shorten
from typing import Any, Final

from wallflower.chain import Entry, Verified
from wallflower.errors import ParameterError
from wallflower.lazy import Lazy
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.queries import QUERIES
from wallflower.query import Bars, Plan, Query, Scale, Ticks
from wallflower.release import Release, readable, rows_of, symbol

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
_MANY_TICKS: Final = 200
_WIDE: Final = 10.0  # inches across for a figure with bars: their labels need room
_TITLE: Final = 44  # characters of a title, or of a value in words, that fit into a panel
_MARGIN: Final = 1.35  # inches above and below bars
_LABEL: Final = 26  # characters in a line of a bar's label
_LINES: Final = 3
_ITEMS: Final = 8  # parts of a value in words


def query_of(release: Release[Any]) -> Query[Any, Any] | None:
    """The question a release answers, as it was asked; None if it is unknown here."""
    question = next((known for known in QUERIES if known.label == release.label), None)
    return None if question is None else question.from_json(release.parameters)


def plan_of(release: Release[Any]) -> Plan | None:
    """What was to be expected of a release, from the public facts it carries.

    None if its question is unknown here, or if too little was public to expect anything.
    """
    query = query_of(release)
    try:
        return None if query is None else query.plan(n=release.facts.n, dimension=release.facts.dimension)
    except ParameterError:
        return None


def figure(release: Release[Any]) -> Any:
    """The value with its interval, or as its question pictures it; beside it, what each loss would have given."""
    plan, pictured = plan_of(release), _picture_of(release)
    bars = pictured if isinstance(pictured, Bars) else None
    labels = [] if bars is None else [_wrapped(label) for label in bars.labels]
    width, height = _SIZE if bars is None else (_WIDE, _height(labels))
    with _matplotlib.rc_context(_STYLE):
        drawn = _figures.Figure(figsize=(width, height), layout="constrained")
        panels = _panels(drawn, height, curve=plan is not None and bool(plan.curve), bars=bars is not None)
        if bars is not None:
            _draw_bars(panels["v"], bars, labels, release)
        elif isinstance(pictured, Ticks):
            _draw_ticks(panels["v"], pictured, release)
        else:
            _draw_value(panels["v"], release)
        if plan is not None and plan.curve:
            _draw_curve(panels["c"], plan, release.guarantee.loss)
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
    return re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"', r'<svg \1class="plot"', text, count=1)


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
    size = "answer" if isinstance(release.value, int | float) else "answer in-words"
    range_ = "" if release.interval is None else "95&#8239;% interval {} to {}".format(*map(readable, release.interval))
    return (
        f'<div class="wallflower-release"><p class="question">{escape(release.question)}</p>'
        f'<p class="{size}"><strong>{escape(readable(release.value))}</strong> <span>{range_}</span></p>'
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


def _picture_of(release: Release[Any]) -> Bars | Ticks | None:
    query = query_of(release)
    found = None if query is None else query.picture(release.value, release.facts)
    return None if isinstance(found, Bars) and not found.labels else found


def _panels(drawn: Any, height: float, *, curve: bool, bars: bool) -> Any:
    """Axes `v` for the value and `c` for the curve, which stays as high as it is without bars."""
    if not curve:
        return drawn.subplot_mosaic("v")
    widths = (1.7, 1) if bars else (1.15, 1)
    if height < 1.3 * _SIZE[1]:
        return drawn.subplot_mosaic("vc", width_ratios=widths)
    return drawn.subplot_mosaic("vc;v.", width_ratios=widths, height_ratios=(_SIZE[1], height - _SIZE[1]))


def _draw_value(axes: Any, release: Release[Any]) -> None:
    axes.set_title(fill(release.question, _TITLE))
    axes.set_yticks([])
    axes.spines[["left", "right", "top"]].set_visible(False)
    if isinstance(release.value, bool) or not isinstance(release.value, int | float):
        axes.set_xticks([])
        words = [fill(part, _TITLE) for part in readable(release.value).split("; ")]
        words = words if len(words) <= _ITEMS else [*words[: _ITEMS - 1], "…"]
        axes.text(0.5, 0.5, "\n".join(words), ha="center", va="center", transform=axes.transAxes)
        axes.set_xlabel(_about(release))
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
    axes.set_xlabel(f"{_about(release)}\nbar: 95 % interval" if release.interval else _about(release))


def _draw_ticks(axes: Any, ticks: Ticks, release: Release[Any]) -> None:
    axes.set_title(fill(release.question, _TITLE))
    many = len(ticks.places) > _MANY_TICKS
    axes.vlines(ticks.places, 0, 1, color=ACCENT, linewidth=0.5 if many else 1.4, alpha=0.6 if many else 1)
    if ticks.known < ticks.until:
        axes.axvspan(ticks.known + 0.5, ticks.until + 0.5, color=QUIET, alpha=0.25, linewidth=0)
        axes.annotate("exhausted", (ticks.known + 0.5, 1.05), (3, 0), textcoords="offset points", color=QUIET)
    axes.set_xlim(0.5, ticks.until + 0.5)
    axes.set_ylim(0, 1.25)
    axes.set_yticks([])
    axes.xaxis.set_major_locator(_ticker.MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter(_ticker.FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.set_xlabel(f"{ticks.across}\n{_about(release)}")


def _draw_bars(axes: Any, bars: Bars, labels: Sequence[str], release: Release[Any]) -> None:
    places, apart = range(len(labels)), (_height(labels) - _MARGIN) / len(labels)
    axes.set_title(fill(release.question, _TITLE))
    axes.barh(places, bars.lengths, height=min(0.6, 0.3 / apart), color=ACCENT, alpha=0.45, linewidth=0)
    whiskers = bars.intervals or [(length, length) for length in bars.lengths]
    ends = zip(places, bars.lengths, whiskers, bars.marks, strict=True)
    for place, length, (low, high), mark in ends:
        if bars.intervals:
            axes.plot([low, high], [place, place], color=ACCENT, linewidth=1.6, solid_capstyle="butt")
            axes.plot([low, high], [place, place], "|", color=ACCENT, markersize=7, markeredgewidth=1.6)
        end = (max(length, high, 0), place)
        words = shorten(mark, _LABEL, placeholder=" …")
        axes.annotate(words, end, (5, 0), textcoords="offset points", va="center", annotation_clip=False)
    axes.set_yticks(places, labels, linespacing=1.1)
    axes.set_ylim(len(labels) - 0.45, -0.55)
    axes.xaxis.set_major_locator(_ticker.MaxNLocator(6))
    axes.xaxis.set_major_formatter(_ticker.FuncFormatter(lambda value, _: f"{value:,g}"))
    edges = [0.0, *bars.lengths, *(edge for whisker in whiskers for edge in whisker)]
    axes.set_xlim(1.01 * min(edges), 1.01 * max(edges) or 1.0)
    axes.tick_params(axis="y", length=0)
    axes.spines[["right", "top"]].set_visible(False)
    if not bars.across:
        axes.set_xticks([])
    said = "\n".join(filter(None, (bars.across, _about(release))))
    axes.set_xlabel(f"{said}\nwhiskers: 95 % intervals" if bars.intervals else said)


def _wrapped(label: str) -> str:
    """A label in a few short lines, broken before × where it has any; what does not fit is left out.

    >>> _wrapped("age × hours_per_week × education_num")
    'age × hours_per_week\\n× education_num'
    """
    most = _LABEL - 2
    names = (name if len(name) <= most else f"{name[: most - 1]}…" for name in label.split(" × "))
    return fill(" ×\0".join(names), _LABEL, max_lines=_LINES, placeholder=" …").replace("\0", " ")


def _height(labels: Sequence[str]) -> float:
    """Inches for bars with these labels, and for what stands above and below them."""
    lines = max(label.count("\n") for label in labels) + 1
    return max(_SIZE[1], _MARGIN + len(labels) * (0.15 + 0.15 * lines))


def _about(release: Release[Any]) -> str:
    return f"{release.dataset}, {release.facts.n:,} records, {release.guarantee.loss}"


def _draw_curve(axes: Any, plan: Plan, loss: Loss) -> None:
    amounts, heights = zip(*plan.curve, strict=True)
    letter, spent = symbol(loss), float(loss.amount)
    axes.set_title(f"What each {letter} would have given")
    axes.plot(amounts, heights, color=INK, linewidth=1.4)
    axes.set_xscale("log")
    axes.set_yscale(plan.scale)
    for axis in (axes.xaxis, axes.yaxis) if plan.scale == "log" else (axes.xaxis,):
        axis.set_major_locator(_ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_minor_locator(_ticker.NullLocator())
        axis.set_major_formatter(_ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    if plan.scale == "linear":
        axes.set_ylim(0, 1.02 * max(1.0, *heights))
    if amounts[0] <= spent <= amounts[-1]:
        here = (spent, _along(plan.curve, spent, plan.scale))
        axes.axvline(spent, color=ACCENT, linewidth=1, linestyle=(0, (4, 3)))
        axes.plot(*here, "o", color=ACCENT, markersize=6)
        right = spent <= math.sqrt(amounts[0] * amounts[-1])
        above = right == (heights[0] >= heights[-1])  # on the side the line does not go to
        offset = (7 if right else -7, 7 if above else -14)
        side = "left" if right else "right"
        axes.annotate("this release", here, offset, textcoords="offset points", color=ACCENT, ha=side)
    axes.grid(True, which="major")
    axes.spines[["right", "top"]].set_visible(False)
    axes.set_xlabel(f"{letter} spent")
    axes.set_ylabel(fill(plan.measure, _LABEL + 8))


def _along(curve: Sequence[tuple[float, float]], spent: float, scale: Scale) -> float:
    """The height of the drawn line, straight between points on the scales it is drawn on."""
    for (left, before), (right, after) in pairwise(curve):
        if left <= spent <= right:
            share = math.log(spent / left) / math.log(right / left)
            if scale == "linear":
                return (1 - share) * before + share * after
            return math.exp((1 - share) * math.log(before) + share * math.log(after))
    return curve[-1][1]


def _section(release: Release[Any]) -> str:
    plan = plan_of(release)
    expected = "" if plan is None else _plan(plan)
    return f'<section>{card(release)}<figure class="wide">{svg(figure(release))}</figure>{expected}</section>'


def _plan(plan: Plan) -> str:
    heading = ("Mechanism", *(name[:1].upper() + name[1:] for name in plan.headings.values()), "")
    verdict = escape(plan.verdict[:1].upper() + plan.verdict[1:].rstrip("."))
    said = f"<p>{verdict}. From public facts alone, before anything was spent.</p>"
    return f"<h2>What was to be expected</h2>{said}{_table(heading, rows_of(plan))}"


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
.answer.in-words strong { font-size: 1.3rem; overflow-wrap: anywhere; }
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
