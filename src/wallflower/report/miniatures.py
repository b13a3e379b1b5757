"""Small pictures for cards: of a released value, and of what each loss would give. No script, no measure in pixels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any, Final

from wallflower.query.picture import Band, Bars, Choices, Curve, Dot, Figures, HeatMap, Picture, Ranks, Ticks
from wallflower.query.plan import Plan, Scale
from wallflower.release.words import readable, rough, symbol

_MOST: Final = 12  # rows of bars, or rows and columns of a heat map
_WIDE, _HIGH = 460.0, 96.0
_LEFT, _RIGHT, _TOP, _FOOT = 58.0, 450.0, 8.0, 74.0

Points = Sequence[tuple[float, float]]


def miniature(pictured: Picture | None) -> str:
    """The released value as a small picture; nothing where words say it better."""
    return "" if pictured is None else _DRAW[type(pictured)](pictured)


def slope(plan: Plan) -> str:
    """What each amount of the loss would give, with the planned one marked; nothing where the plan has no curve."""
    if len(plan.curve) < 2:
        return ""
    letter, spent = symbol(plan.cost), float(plan.cost.amount)
    across, up = _axes(plan.curve, "log", plan.scale)
    inside = _frame_lines() + _line([(across(x), up(y)) for x, y in plan.curve])
    if plan.curve[0][0] <= spent <= plan.curve[-1][0]:
        inside += (
            f'<line class="axis here" x1="{across(spent):.1f}" y1="{_TOP}" x2="{across(spent):.1f}" y2="{_FOOT}"/>'
        )
    lows, highs = (pick(y for _, y in plan.curve) for pick in (min, max))
    top = 1.0 if plan.scale == "linear" and highs <= 1 else highs
    inside += _labels(
        (rough(0.0 if plan.scale == "linear" else lows), rough(top)),
        (f"{letter} {plan.curve[0][0]:g}", f"{letter} {plan.curve[-1][0]:g}"),
    )
    return _svg(_HIGH, f"{plan.measure} at each {letter}", inside)


def _dot(dot: Dot) -> str:
    """A number on a line from 0, with its interval."""
    if dot.interval is None:
        return ""
    low, high = dot.interval
    edges = (0.0, low, high, dot.value)
    place = _axis(min(edges), max(edges) * 1.08 or 1.0, 10.0, _RIGHT)
    said = f"{readable(dot.value)}, {dot.covers} {readable(low)} to {readable(high)}"
    ends = [(place(low), readable(low)), (place(high), readable(high))]
    labels = "".join(f'<text x="{x:.1f}" y="38" text-anchor="middle">{escape(word)}</text>' for x, word in ends)
    return _svg(
        44,
        said,
        f'<line class="axis" x1="10" y1="18" x2="{_RIGHT}" y2="18"/>'
        f'<rect class="fill" x="{place(low):.1f}" y="10" width="{max(place(high) - place(low), 1):.1f}" height="16"/>'
        f'<circle class="value" cx="{place(dot.value):.1f}" cy="18" r="5"/>{labels}',
    )


def _ranks(ranks: Ranks) -> str:
    if len(ranks.labels) < 2:
        return ""  # the value says as much
    rows = enumerate(ranks.labels[:_MOST], start=1)
    return _sheet("", [(f"{place}.", label) for place, label in rows])


def _figures(figures: Figures) -> str:
    head = "".join(f'<th class="number">{escape(name)}</th>' for name in ("", *figures.headings))
    rows = zip(figures.labels[:_MOST], figures.values[:_MOST], strict=True)
    cells = [(label, *("" if value is None else rough(value) for value in values)) for label, values in rows]
    more = len(figures.labels) - _MOST
    rest = [(f"… and {more:,} more", *("" for _ in figures.headings))] if more > 0 else []
    return _sheet(f"<thead><tr>{head}</tr></thead>", [*cells, *rest])


def _sheet(head: str, rows: Sequence[Sequence[str]]) -> str:
    """Names and numbers: read, and not compared by length."""
    side = ' class="number"' if head else ""
    cells = ((first, "".join(f"<td{side}>{escape(cell)}</td>" for cell in rest)) for first, *rest in rows)
    body = "".join(f"<tr><th>{escape(first)}</th>{rest}</tr>" for first, rest in cells)
    return f'<table class="grid narrow">{head}<tbody>{body}</tbody></table>'


def _bars(bars: Bars) -> str:
    whiskers = bars.intervals or tuple((length, length) for length in bars.lengths)
    edges = [0.0, *bars.lengths, *(edge for whisker in whiskers for edge in whisker)]
    place = _axis(min(edges), max(edges) or 1.0, 0.0, 100.0)
    rows = zip(bars.labels, bars.lengths, whiskers, bars.marks, strict=True)
    body = "".join(_bar(place, *row, whisker=bars.intervals is not None) for row in list(rows)[:_MOST])
    more = len(bars.labels) - _MOST
    rest = f'<tr><th colspan="3">… and {more:,} more</th></tr>' if more > 0 else ""
    return f'<table class="bars">{body}{rest}</table>'


def _bar(
    place: Callable[[float], float],
    label: str,
    length: float,
    ends: tuple[float, float],
    mark: str,
    *,
    whisker: bool,
) -> str:
    start, end = sorted((place(0.0), place(length)))
    low, high = place(ends[0]), place(ends[1])
    line = f'<line class="line" x1="{low:.2f}" y1="5" x2="{high:.2f}" y2="5"/>' if whisker else ""
    drawn = f'<rect class="fill" x="{start:.2f}" y="0" width="{end - start:.2f}" height="10"/>{line}'
    wide = f'<svg class="wide" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'
    return f'<tr><th>{escape(label)}</th><td class="bar">{wide}</td><td>{escape(mark)}</td></tr>'


def _ticks(ticks: Ticks) -> str:
    place = _axis(1.0, max(ticks.until, 2), 10.0, _RIGHT)
    marks = "".join(
        f'<line class="line" x1="{place(x):.1f}" y1="8" x2="{place(x):.1f}" y2="26"/>' for x in ticks.places
    )
    until = f'<line class="axis" x1="10" y1="26" x2="{place(ticks.known):.1f}" y2="26"/>'
    words = f'<text x="10" y="42">1</text><text x="{_RIGHT}" y="42" text-anchor="end">{ticks.until:,}</text>'
    middle = f'<text x="{_WIDE / 2}" y="42" text-anchor="middle">{escape(ticks.across)}</text>'
    return _svg(48, f"{len(ticks.places)} marks", until + marks + words + middle)


def _curve(curve: Curve) -> str:
    points = list(zip(curve.places, curve.heights, strict=True))
    reach = [*points, *zip(curve.places, curve.lows, strict=False), *zip(curve.places, curve.highs, strict=False)]
    across, up = _axes(reach, "log", "linear")
    inside = _frame_lines()
    if curve.lows:
        edges = [*zip(curve.places, curve.highs, strict=True), *reversed([*zip(curve.places, curve.lows, strict=True)])]
        inside += f'<polygon class="fill" points="{_points((across(x), up(y)) for x, y in edges)}"/>'
    inside += _line([(across(x), up(y)) for x, y in points])
    ends = (f"{curve.places[0]:g}", f"{curve.places[-1]:g}")
    return _svg(_HIGH, curve.up, inside + _labels(_reach([y for _, y in reach]), ends, curve.across))


def _band(band: Band) -> str:
    places = range(1, len(band.middle) + 1)
    reach = [(float(x), y) for values in (band.low, band.high) for x, y in zip(places, values, strict=True)]
    across, up = _axes([*reach, (1.0, 0.0)] if min(band.low) > 0 else reach, "linear", "linear")
    edges = [*zip(places, band.high, strict=True), *reversed([*zip(places, band.low, strict=True)])]
    inside = _frame_lines() + f'<polygon class="fill" points="{_points((across(x), up(y)) for x, y in edges)}"/>'
    inside += _line([(across(x), up(y)) for x, y in zip(places, band.middle, strict=True)])
    marks = (f"{across(x):.1f}" for x in band.marks)
    inside += "".join(f'<line class="line" x1="{x}" y1="{_FOOT - 8}" x2="{x}" y2="{_FOOT + 4}"/>' for x in marks)
    heights = [0.0, *(y for _, y in reach)] if min(band.low) > 0 else [y for _, y in reach]
    return _svg(_HIGH, band.up, inside + _labels(_reach(heights), ("1", f"{len(band.middle):,}"), band.across))


def _heat_map(heat: HeatMap) -> str:
    if len(heat.down) > _MOST or len(heat.across) > _MOST:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in heat.across)
    body = "".join(
        f"<tr><th>{escape(name)}</th>{''.join(_cells(heat, values, marks))}</tr>"
        for name, values, marks in zip(heat.down, heat.values, heat.marks, strict=True)
    )
    corner = escape(" by ".join(name for name in heat.names if name))
    return f'<div class="scroll"><table class="grid heat"><tr><th>{corner}</th>{head}</tr>{body}</table></div>'


def _cells(heat: HeatMap, values: Sequence[float | None], marks: Sequence[str]) -> Iterator[str]:
    for value, mark in zip(values, marks, strict=True):
        strength = 0.0 if value is None else 0.08 + 0.5 * heat.strength(value)
        yield f'<td class="cell" style="background:rgba(20,140,160,{strength:.2f})">{escape(mark)}</td>'


def _choices(choices: Choices) -> str:
    rows = []
    for number, chosen in enumerate(choices.rows[:_MOST], start=1):
        for name, labels, has in choices.split(chosen):
            chips = "".join(
                f'<span class="chip{" on" if is_on else ""}">{escape(label)}</span>'
                for label, is_on in zip(labels, has, strict=True)
            )
            head = f"{number}. {name}" if len(choices.rows) > 1 else name
            rows.append(f"<tr><th>{escape(head)}</th><td>{chips}</td></tr>")
    return f"<table>{''.join(rows)}</table>"


_DRAW: Final[dict[type, Callable[[Any], str]]] = {
    Bars: _bars,
    Dot: _dot,
    Ranks: _ranks,
    Figures: _figures,
    Ticks: _ticks,
    Curve: _curve,
    Band: _band,
    HeatMap: _heat_map,
    Choices: _choices,
}


def _axis(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    width = (high - low) or 1.0
    return lambda value: start + (end - start) * min(max((value - low) / width, 0.0), 1.0)


def _axes(points: Points, across: Scale, up: Scale) -> tuple[Callable[[float], float], Callable[[float], float]]:
    """Where a point lies on the picture, in each direction."""
    wide, high = _warp(across), _warp(up)
    xs, ys = [wide(x) for x, _ in points], [high(y) for _, y in points]
    floor, top = (min(ys), max(ys)) if up == "log" else (min(0.0, *ys), max(1.0 if max(ys) <= 1 else 0.0, *ys))
    left, rise = _axis(min(xs), max(xs), _LEFT, _RIGHT), _axis(floor, top, _FOOT, _TOP)
    return lambda x: left(wide(x)), lambda y: rise(high(y))


def _warp(scale: Scale) -> Callable[[float], float]:
    return (lambda value: math.log(max(value, 1e-300))) if scale == "log" else float


def _reach(heights: Sequence[float]) -> tuple[str, str]:
    return rough(min(0.0, *heights)), rough(max(1.0 if max(heights) <= 1 else 0.0, *heights))


def _points(points: Iterator[tuple[float, float]] | Points) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _line(points: Points) -> str:
    return f'<polyline class="line" points="{_points(points)}"/>'


def _frame_lines() -> str:
    return (
        f'<line class="axis" x1="{_LEFT}" y1="{_FOOT}" x2="{_RIGHT}" y2="{_FOOT}"/>'
        f'<line class="axis" x1="{_LEFT}" y1="{_TOP}" x2="{_LEFT}" y2="{_FOOT}"/>'
    )


def _labels(up: tuple[str, str], across: tuple[str, str], words: str = "") -> str:
    """What stands at the ends of both axes, and below them."""
    return (
        f'<text x="{_LEFT - 6}" y="{_FOOT}" text-anchor="end">{escape(up[0])}</text>'
        f'<text x="{_LEFT - 6}" y="{_TOP + 8}" text-anchor="end">{escape(up[1])}</text>'
        f'<text x="{_LEFT}" y="{_FOOT + 16}">{escape(across[0])}</text>'
        f'<text x="{_RIGHT}" y="{_FOOT + 16}" text-anchor="end">{escape(across[1])}</text>'
        f'<text x="{(_LEFT + _RIGHT) / 2}" y="{_FOOT + 16}" text-anchor="middle">{escape(words)}</text>'
    )


def _svg(height: float, words: str, inside: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDE:g} {height:g}" width="{_WIDE:g}" height="{height:g}" role="img" '
        f'aria-label="{escape(words)}">{inside}</svg>'
    )
