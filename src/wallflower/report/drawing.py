"""Pictures of releases: nothing here sees data, only what was released and what is public.

A drawing is made with two stand-in colours, ink and accent; a page replaces them by its own, so that one drawing suits
light and dark.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from itertools import pairwise
from textwrap import fill, shorten
from typing import TYPE_CHECKING, Any, Final

from wallflower.errors import ParameterError
from wallflower.lazy import Lazy
from wallflower.privacy import Loss
from wallflower.queries import COMPANIONS, QUERIES
from wallflower.query import Band, Bars, Choices, Curve, HeatMap, Picture, Plan, Query, Scale, Ticks
from wallflower.release import Release
from wallflower.release.words import readable, symbol

if TYPE_CHECKING:
    import matplotlib as _matplotlib
    import matplotlib.figure as _figures
    import matplotlib.layout_engine as _layout
    import matplotlib.ticker as _ticker
else:
    _matplotlib = Lazy("matplotlib")
    _figures = Lazy("matplotlib.figure")
    _layout = Lazy("matplotlib.layout_engine")
    _ticker = Lazy("matplotlib.ticker")

INK: Final = "#22303c"
ACCENT: Final = "#0b7285"
QUIET: Final = "#8795a1"
STYLE: Final[Any] = {
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
_ROW: Final = 0.21  # inches for one value of a choice
_CELL: Final = 0.28  # inches for one row of a heat map
_DENSE: Final = 16  # columns of a heat map: with more, numbers do not fit into the cells
_ITEMS: Final = 8  # parts of a value in words


def query_of(release: Release[Any]) -> Query[Any, Any] | None:
    """The question a release answers, as it was asked; None if it is unknown here."""
    question = next((known for known in (*QUERIES, *COMPANIONS) if known.label == release.label), None)
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
    if isinstance(pictured, Choices):
        width, height = _WIDE, _MARGIN + _ROW * sum(len(values) + 1 for _, values in pictured.groups)
    if isinstance(pictured, HeatMap):
        width, height = _WIDE, max(_SIZE[1], _MARGIN + _CELL * len(pictured.down))
    with _matplotlib.rc_context(STYLE):
        drawn = _figures.Figure(
            figsize=(width, height), layout=_layout.ConstrainedLayoutEngine(w_pad=0.15, wspace=0.06)
        )
        panels = _panels(
            drawn,
            height,
            curve=plan is not None and bool(plan.curve),
            wide=isinstance(pictured, Bars | Choices | HeatMap),
        )
        if bars is not None:
            _draw_bars(panels["v"], bars, labels, release)
        elif isinstance(pictured, Ticks):
            _draw_ticks(panels["v"], pictured, release)
        elif isinstance(pictured, Choices):
            _draw_choices(panels["v"], pictured, release)
        elif isinstance(pictured, HeatMap):
            _draw_heat_map(panels["v"], pictured, release)
        elif isinstance(pictured, Band):
            _draw_band(panels["v"], pictured, release)
        elif isinstance(pictured, Curve):
            _draw_line(panels["v"], pictured, release)
        else:
            _draw_value(panels["v"], release)
        if plan is not None and plan.curve:
            _draw_curve(panels["c"], plan, release.guarantee.loss)
    return drawn


def svg(drawn: Any) -> str:
    """A figure as inline SVG whose colours follow the page it is on."""
    target = io.StringIO()
    with _matplotlib.rc_context(STYLE):
        drawn.savefig(target, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = target.getvalue()
    text = text[text.index("<svg") :]
    for colour, name in ((INK, "ink"), (ACCENT, "accent"), (QUIET, "quiet")):
        text = text.replace(colour, f"var(--{name})")
    return re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"', r'<svg \1class="plot"', text, count=1)


def _picture_of(release: Release[Any]) -> Picture | None:
    query = query_of(release)
    found = None if query is None else query.picture(release.value, release.facts)
    empty = (isinstance(found, Bars) and not found.labels) or (isinstance(found, Choices) and not found.rows)
    return None if empty else found


def _panels(drawn: Any, height: float, *, curve: bool, wide: bool) -> Any:
    """Axes `v` for the value and `c` for the curve, which stays as high as it is without bars."""
    if not curve:
        return drawn.subplot_mosaic("v")
    widths = (1.7, 1) if wide else (1.15, 1)
    if height < 1.3 * _SIZE[1]:
        return drawn.subplot_mosaic("vc", width_ratios=widths)
    return drawn.subplot_mosaic("vc;v.", width_ratios=widths, height_ratios=(_SIZE[1], height - _SIZE[1]))


def _draw_value(axes: Any, release: Release[Any]) -> None:
    axes.set_title(fill(release.question, _TITLE))
    axes.set_yticks([])
    axes.spines[["left", "right", "top"]].set_visible(False)
    if isinstance(release.value, bool) or not isinstance(release.value, int | float):
        axes.set_xticks([])
        said = release.words.partition(". ")[0] if isinstance(release.value, dict) else readable(release.value)
        words = [fill(part, _TITLE, max_lines=_ITEMS, placeholder=" …") for part in said.split("; ")]
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
    axes.set_xlabel(f"{_about(release)}\nbar: {release.covers.rstrip(':')}" if release.interval else _about(release))


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


def _draw_line(axes: Any, curve: Curve, release: Release[Any]) -> None:
    """A curve with its band, and where it bends."""
    axes.set_title(fill(release.question, _TITLE))
    if curve.lows:
        axes.fill_between(curve.places, curve.lows, curve.highs, color=ACCENT, alpha=0.2, linewidth=0)
    axes.plot(curve.places, curve.heights, color=ACCENT, linewidth=1.4, marker="o", markersize=4)
    if curve.bend is not None:
        axes.axvline(curve.bend, color=QUIET, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(_ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(_ticker.NullLocator())
    axes.xaxis.set_major_formatter(_ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(_ticker.FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.grid(True, which="major")
    axes.spines[["right", "top"]].set_visible(False)
    axes.set_ylabel(curve.up)
    said = f"{curve.across}\n{_about(release)}"
    axes.set_xlabel(f"{said}\nband: {curve.covers}" if curve.covers else said)


def _draw_band(axes: Any, band: Band, release: Release[Any]) -> None:
    """A line with what is usual around it, and marks below."""
    axes.set_title(fill(release.question, _TITLE))
    places = [place + 1 for place in range(len(band.middle))]
    axes.fill_between(places, band.low, band.high, step="mid", color=ACCENT, alpha=0.25, linewidth=0)
    axes.step(places, band.middle, where="mid", color=ACCENT, linewidth=1.4)
    foot = min(band.low) - 0.06 * (max(band.high) - min(band.low))
    axes.plot(band.marks, [foot] * len(band.marks), "|", color=INK, markersize=8, alpha=0.6)
    axes.set_xlim(0.5, len(places) + 0.5)
    axes.xaxis.set_major_locator(_ticker.MaxNLocator(7, integer=True))
    axes.grid(axis="y")
    axes.spines[["right", "top"]].set_visible(False)
    axes.set_ylabel(band.up)
    axes.set_xlabel(f"{band.across}\n{_about(release)}")


def _draw_choices(axes: Any, choices: Choices, release: Release[Any]) -> None:
    """Values down, grouped by attribute; across, one column of marks for each released choice."""
    axes.set_title(fill(release.question, _TITLE))
    place, at, words = 0.0, 0, []
    for name, values in choices.groups:
        axes.annotate(name, (-0.5, place), (-6, 0), textcoords="offset points", ha="right", va="center", weight="bold")
        for value in values:
            place += 1
            words.append((place, shorten(value, 2 * _LABEL, placeholder=" …")))
            for column, row in enumerate(choices.rows):
                style = {"color": ACCENT} if row[at] else {"color": QUIET, "fillstyle": "none", "alpha": 0.6}
                axes.plot([column], [place], "s", markersize=8, **style)
            at += 1
        place += 1
    places, labels = zip(*words, strict=True)
    axes.set_yticks(places, labels)
    axes.set_ylim(place - 0.3, -0.7)
    axes.set_xlim(-0.5, max(len(choices.rows) - 0.5, 2.5))
    axes.set_xticks(range(len(choices.rows)), [f"{number}." for number in range(1, len(choices.rows) + 1)])
    axes.tick_params(length=0)
    axes.spines[["left", "right", "top", "bottom"]].set_visible(False)
    axes.set_xlabel(f"filled: in the context\n{_about(release)}")


def _draw_heat_map(axes: Any, heat: HeatMap, release: Release[Any]) -> None:
    """One colour, the stronger the larger the share: the strongest is the largest share there is."""
    axes.set_title(fill(release.question, _TITLE))
    most = max((value for row in heat.values for value in row if value is not None), default=0.0)
    for place, (row, marks) in enumerate(zip(heat.values, heat.marks, strict=True)):
        for at, (value, mark) in enumerate(zip(row, marks, strict=True)):
            if value is not None:
                strength = 0.06 + 0.42 * (value / most if most else 0.0)  # ink stays legible on the strongest
                axes.fill_between(
                    [at - 0.47, at + 0.47], place - 0.46, place + 0.46, color=ACCENT, alpha=strength, lw=0
                )
            if len(heat.across) <= _DENSE:
                axes.annotate(mark, (at, place), ha="center", va="center", color=QUIET if value is None else INK)
    axes.set_yticks(range(len(heat.down)), [shorten(label, _LABEL, placeholder=" …") for label in heat.down])
    slant = {} if len(heat.across) <= 6 else {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    labels = [shorten(label, _LABEL // 2, placeholder=" …") for label in heat.across]
    axes.set_xticks(range(len(heat.across)), labels, **slant)
    axes.set_ylim(len(heat.down) - 0.5, -0.5)
    axes.set_xlim(-0.5, len(heat.across) - 0.5)
    axes.tick_params(length=0)
    axes.spines[["left", "right", "top", "bottom"]].set_visible(False)
    axes.set_ylabel(heat.names[0])
    upto = f"up to {most:.2g}" if most else "none"
    axes.set_xlabel(f"{heat.names[1]}\ncolour: {heat.measure} ({upto})\n{_about(release)}")


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
    return f"{release.dataset}, {release.facts.records}, {release.guarantee.loss}"


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
        above = above and not (plan.scale == "linear" and here[1] > 0.9 * max(1.0, *heights))
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
