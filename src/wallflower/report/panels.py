"""What each word of `picture` looks like on matplotlib's axes: nothing here sees data, only what was released."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from textwrap import fill, shorten
from typing import Any, Final

from wallflower.drawing.palette import ACCENT, INK, QUIET
from wallflower.drawing.picture import Band, Bars, Choices, Curve, Dot, Figures, HeatMap, Picture, Ranks, Ticks
from wallflower.machine.heavy import matplotlib_ticker as _ticker
from wallflower.release import Release
from wallflower.release.text import readable

SIZE: Final = (8.4, 3.0)
_MANY_TICKS: Final = 200
_WIDE: Final = 10.0  # inches across for a figure with bars: their labels need room
_TITLE: Final = 44  # characters of a title, or of a value in words, that fit into a panel
_MARGIN: Final = 1.35  # inches above and below bars
LABEL: Final = 26  # characters in a line of a bar's label
_LINES: Final = 3
_ROW: Final = 0.21  # inches for one value of a choice
_CELL: Final = 0.28  # inches for one row of a heat map
_DENSE: Final = 16  # columns of a heat map: with more, numbers do not fit into the cells
_ITEMS: Final = 8  # parts of a value in words


def draw(axes: Any, pictured: Picture, release: Release[Any]) -> None:
    """A picture, with its title and what it is about."""
    _PANELS[type(pictured)](axes, pictured, release)


def is_wide(pictured: Picture | None) -> bool:
    """Whether a picture has labels at its side, which need room."""
    return isinstance(pictured, Bars | Choices | Figures | HeatMap | Ranks)


def size_of(pictured: Picture | None) -> tuple[float, float]:
    """Inches across and up that a picture needs, with what stands beside it."""
    match pictured:
        case Bars():
            return _WIDE, _bars_height(list(map(_wrap_label, pictured.labels)))
        case Choices():
            return _WIDE, _MARGIN + _ROW * sum(len(values) + 1 for _, values in pictured.groups)
        case HeatMap():
            return _WIDE, max(SIZE[1], _MARGIN + _CELL * len(pictured.down))
        case Figures():
            return _WIDE, max(SIZE[1], _MARGIN + _ROW * len(pictured.labels))
        case Ranks():
            return _WIDE, _bars_height(list(map(_wrap_label, pictured.labels)))
        case _:
            return SIZE


def draw_words(axes: Any, release: Release[Any]) -> None:
    """A value that has no picture, in words."""
    axes.set_title(fill(release.question, _TITLE))
    axes.set_yticks([])
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.set_xticks([])
    said = release.text.partition(". ")[0] if isinstance(release.value, dict) else readable(release.value)
    words = [fill(part, _TITLE, max_lines=_ITEMS, placeholder=" …") for part in said.split("; ")]
    words = words if len(words) <= _ITEMS else [*words[: _ITEMS - 1], "…"]
    axes.text(0.5, 0.5, "\n".join(words), ha="center", va="center", transform=axes.transAxes)
    axes.set_xlabel(_about(release))


def _draw_dot(axes: Any, dot: Dot, release: Release[Any]) -> None:
    """A number with its interval."""
    axes.set_title(fill(release.question, _TITLE))
    axes.set_yticks([])
    axes.spines[["left", "right", "top"]].set_visible(False)
    low, high = dot.interval or (dot.value, dot.value)
    axes.plot([low, high], [0, 0], color=ACCENT, linewidth=7, alpha=0.3, solid_capstyle="round")
    axes.plot([dot.value], [0], "o", color=ACCENT, markersize=10)
    axes.annotate(readable(dot.value), (dot.value, 0), (0, 12), textcoords="offset points", ha="center", fontsize=13)
    room = max(high - low, 1.0) * 0.25
    axes.set_xlim(low - min(room, low) - room / 8 if low >= 0 else low - room, high + room)
    axes.set_ylim(-1, 1.4)
    said = "\n".join(filter(None, (dot.across, _about(release))))
    axes.set_xlabel(f"{said}\nbar: {dot.covers.rstrip(':')}" if dot.interval else said)


def _draw_ranks(axes: Any, ranks: Ranks, release: Release[Any]) -> None:
    """A numbered list: only the order was released, so no length is drawn."""
    axes.set_title(fill(release.question, _TITLE))
    for place, label in enumerate(ranks.labels):
        axes.plot([0], [place], "o", color=ACCENT, markersize=15, alpha=0.25 if place else 0.6)
        axes.annotate(f"{place + 1}", (0, place), ha="center", va="center", weight="bold")
        axes.annotate(_wrap_label(label), (0, place), (16, 0), textcoords="offset points", va="center")
    axes.set_xlim(-0.3, 6)
    axes.set_ylim(len(ranks.labels) - 0.4, -0.6)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[["left", "right", "top", "bottom"]].set_visible(False)
    axes.set_xlabel(f"in this order, of {ranks.among}\n{_about(release)}")


def _draw_figures(axes: Any, figures: Figures, release: Release[Any]) -> None:
    """Numbers in columns, as a table is set."""
    axes.set_title(fill(release.question, _TITLE))
    for at, heading in enumerate(figures.headings):
        axes.annotate(heading, (at + 1, -1), ha="right", va="center", color=QUIET)
    for place, (label, values) in enumerate(zip(figures.labels, figures.values, strict=True)):
        axes.annotate(shorten(label, LABEL, placeholder=" …"), (-0.9, place), va="center")
        for at, value in enumerate(values):
            axes.annotate("" if value is None else f"{value:,.4g}", (at + 1, place), ha="right", va="center")
    axes.set_xlim(-1, max(len(figures.headings), 1) + 0.2)
    axes.set_ylim(len(figures.labels) - 0.4, -1.7)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[["left", "right", "top", "bottom"]].set_visible(False)
    axes.set_xlabel(_about(release))


def _draw_ticks(axes: Any, ticks: Ticks, release: Release[Any]) -> None:
    """Places on a line."""
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
            words.append((place, shorten(value, 2 * LABEL, placeholder=" …")))
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
    """One colour, the stronger the larger the number: the strongest is the largest that there is."""
    axes.set_title(fill(release.question, _TITLE))
    for place, (row, marks) in enumerate(zip(heat.values, heat.marks, strict=True)):
        for at, (value, mark) in enumerate(zip(row, marks, strict=True)):
            if value is not None:
                strength = 0.06 + 0.42 * heat.strength(value)  # ink stays legible on the strongest
                axes.fill_between(
                    [at - 0.47, at + 0.47], place - 0.46, place + 0.46, color=ACCENT, alpha=strength, lw=0
                )
            if len(heat.across) <= _DENSE:
                axes.annotate(mark, (at, place), ha="center", va="center", color=QUIET if value is None else INK)
    axes.set_yticks(range(len(heat.down)), [shorten(label, LABEL, placeholder=" …") for label in heat.down])
    slant = {} if len(heat.across) <= 6 else {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    labels = [shorten(label, LABEL // 2, placeholder=" …") for label in heat.across]
    axes.set_xticks(range(len(heat.across)), labels, **slant)
    axes.set_ylim(len(heat.down) - 0.5, -0.5)
    axes.set_xlim(-0.5, len(heat.across) - 0.5)
    axes.tick_params(length=0)
    axes.spines[["left", "right", "top", "bottom"]].set_visible(False)
    axes.set_ylabel(heat.names[0])
    upto = f"from {heat.least:.2g} to {heat.most:.2g}" if heat.most > heat.least else "none"
    axes.set_xlabel(f"{heat.names[1]}\ncolour: {heat.measure} ({upto})\n{_about(release)}")


def _draw_bars(axes: Any, bars: Bars, release: Release[Any]) -> None:
    labels = list(map(_wrap_label, bars.labels))
    places, apart = range(len(labels)), (_bars_height(labels) - _MARGIN) / len(labels)
    axes.set_title(fill(release.question, _TITLE))
    axes.barh(places, bars.lengths, height=min(0.6, 0.3 / apart), color=ACCENT, alpha=0.45, linewidth=0)
    whiskers = bars.intervals or [(length, length) for length in bars.lengths]
    ends = zip(places, bars.lengths, whiskers, bars.marks, strict=True)
    for place, length, (low, high), mark in ends:
        if bars.intervals:
            axes.plot([low, high], [place, place], color=ACCENT, linewidth=1.6, solid_capstyle="butt")
            axes.plot([low, high], [place, place], "|", color=ACCENT, markersize=7, markeredgewidth=1.6)
        end = (max(length, high, 0), place)
        words = shorten(mark, LABEL, placeholder=" …")
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


def _wrap_label(label: str) -> str:
    """A label in a few short lines, broken before × where it has any; what does not fit is left out.

    >>> _wrap_label("age × hours_per_week × education_num")
    'age × hours_per_week\\n× education_num'
    """
    most = LABEL - 2
    names = (name if len(name) <= most else f"{name[: most - 1]}…" for name in label.split(" × "))
    return fill(" ×\0".join(names), LABEL, max_lines=_LINES, placeholder=" …").replace("\0", " ")


def _bars_height(labels: Sequence[str]) -> float:
    """Inches for bars with these labels, and for what stands above and below them."""
    lines = max(label.count("\n") for label in labels) + 1
    return max(SIZE[1], _MARGIN + len(labels) * (0.15 + 0.15 * lines))


def _about(release: Release[Any]) -> str:
    return f"{release.dataset}, {release.facts.records}, {release.guarantee.loss}"


_PANELS: Final[Mapping[type, Callable[[Any, Any, Release[Any]], None]]] = {
    Band: _draw_band,
    Bars: _draw_bars,
    Choices: _draw_choices,
    Curve: _draw_line,
    Dot: _draw_dot,
    Figures: _draw_figures,
    HeatMap: _draw_heat_map,
    Ranks: _draw_ranks,
    Ticks: _draw_ticks,
}
