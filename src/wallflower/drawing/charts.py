"""Charts beside pictures of answers: the curve of a plan, a ROC curve, stacked bars over time, decisions over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from itertools import pairwise
from typing import Final, Literal

from wallflower.drawing.canvas import Span, Translate, axis_text
from wallflower.text import Message, decimal, join, label, t

Points = Sequence[tuple[float, float]]
Scale = Literal["log", "linear"]

_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 486.0, 14.0, 246.0
_MAX_TICKS: Final = 7
_LABEL_ROWS: Final = (_TOP + 12, _TOP + 27, _BOTTOM - 10, _BOTTOM - 25)  # heights at which labels of marks may stand
_LETTER_PIXELS: Final = 6.4
_CLEAR_PIXELS: Final = 16.0  # a label further from the curve is not easier to read
_MAX_AXIS_LETTERS: Final = 48

_BAR_WIDTHS: Final = {"on-wide": 720.0, "on-narrow": 340.0}  # a window shows one of them
_BAR_LEFT, _BAR_TOP, _BAR_BOTTOM, _BAR_HEIGHT = 58.0, 16.0, 236.0, 268.0
_BAR_LABEL_PIXELS: Final = 78.0
_COLOURS: Final = 7


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line on a chart, with its label."""

    at: float
    text: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A line between two axes.

    >>> chart = Chart(across=label("ε"), up=label("error"), points=((0.1, 9.0), (1.0, 1.0)), at=0.5)
    >>> chart.to_svg("error at each ε").startswith('<svg class="chart"')
    True
    """

    across: Message
    up: Message
    points: Points
    across_scale: Scale = "log"
    up_scale: Scale = "log"
    at: float | None = None  # where a dot stands on the line
    marks: tuple[Mark, ...] = ()
    has_diagonal: bool = False

    def to_svg(self, said: str, translate: Translate = str) -> str:
        """Return the chart as SVG; `said` is its description for screen readers."""
        x_axis, y_axis = self._spans()
        line = [(x_axis.at(x), y_axis.at(y)) for x, y in self.points]
        parts = list(self._axes(x_axis, y_axis, translate))
        if self.has_diagonal:
            parts.append(f'<path class="chance" d="M{_LEFT} {_BOTTOM}L{_RIGHT} {_TOP}"/>')
        marks = [mark for mark in self.marks if x_axis.low <= mark.at <= x_axis.high]
        parts += [f'<path class="mark" d="M{x_axis.at(mark.at):.1f} {_TOP}V{_BOTTOM}"/>' for mark in marks]
        parts.append(f'<path class="line" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in line)}"/>')
        if self.at is not None and x_axis.low <= self.at <= x_axis.high:
            x, y = x_axis.at(self.at), y_axis.at(self._height_at(self.at))
            parts.append(f'<path class="here" d="M{x:.1f} {_TOP}V{_BOTTOM}"/>')
            parts.append(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')
        parts += _mark_labels(x_axis, [(mark.at, translate(mark.text)) for mark in marks], line)
        title = escape(translate(said))
        return f'<svg class="chart" viewBox="0 0 500 300" role="img" aria-label="{title}">{"".join(parts)}</svg>'

    def _spans(self) -> tuple[Span, Span]:
        xs, heights = [x for x, _ in self.points], [y for _, y in self.points]
        low, high = (0.0, max(1.0, *heights)) if self.up_scale == "linear" else (min(heights), max(heights))
        if self.up_scale == "log" and high < 1.05 * low:
            low, high = low / 2, high * 2
        left, right = (0.0, 1.0) if self.across_scale == "linear" else (xs[0], xs[-1])
        return (
            Span(left, right, _LEFT, _RIGHT, is_log=self.across_scale == "log"),
            Span(low, high, _BOTTOM, _TOP, is_log=self.up_scale == "log"),
        )

    def _axes(self, x_axis: Span, y_axis: Span, translate: Translate) -> list[str]:
        parts = []
        for tick in x_axis.ticks(_MAX_TICKS):
            x = f"{x_axis.at(tick):.1f}"
            parts.append(f'<path class="grid-line" d="M{x} {_TOP}V{_BOTTOM}"/>')
            parts.append(f'<text x="{x}" y="{_BOTTOM + 18}" text-anchor="middle">{translate(axis_text(tick))}</text>')
        for tick in y_axis.ticks(_MAX_TICKS):
            y = y_axis.at(tick)
            parts.append(f'<path class="grid-line" d="M{_LEFT} {y:.1f}H{_RIGHT}"/>')
            parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{translate(axis_text(tick))}</text>')
        middle, centre = (_LEFT + _RIGHT) / 2, (_TOP + _BOTTOM) / 2
        across, up = escape(translate(self.across)), escape(translate(self.up)[:_MAX_AXIS_LETTERS])
        parts.append(f'<text class="axis" x="{middle}" y="290" text-anchor="middle">{across}</text>')
        turned = f'transform="rotate(-90 14 {centre})" text-anchor="middle"'
        parts.append(f'<text class="axis" x="14" y="{centre}" {turned}>{up}</text>')
        return parts

    def _height_at(self, at: float) -> float:
        """Return the height of the line, straight between points on the scales that it is drawn on."""
        for (left, before), (right, after) in pairwise(self.points):
            if left <= at <= right:
                share = math.log(at / left) / math.log(right / left) if right > left else 0.0
                if self.up_scale == "log":
                    return math.exp((1 - share) * math.log(before) + share * math.log(after))
                return (1 - share) * before + share * after
        return self.points[-1][1]


def plan_chart(
    curve: Points, *, measure: str, scale: Scale, symbol: str, at: float, marks: tuple[Mark, ...] = ()
) -> Chart | None:
    """Return the chart of what each ε would give, with a dot where the plan stands; None where there is no curve."""
    points = [(x, y) for x, y in curve if math.isfinite(y) and (scale == "linear" or y > 0)]
    if len(points) < 2 or points[0][0] <= 0:
        return None
    across = t("{symbol} spent", symbol=symbol)
    return Chart(across=across, up=label(measure), points=points, up_scale=scale, at=at, marks=marks)


def roc_chart(alarms: Sequence[float], detected: Sequence[float]) -> Chart:
    """Return the ROC curve: the share of outliers flagged against the share of other observations flagged."""
    return Chart(
        across=t("false alarm rate"),
        up=t("detection rate"),
        points=tuple(zip(alarms, detected, strict=True)),
        across_scale="linear",
        up_scale="linear",
        has_diagonal=True,
    )


def _mark_labels(x_axis: Span, marks: Sequence[tuple[float, str]], line: Points) -> list[str]:
    """Put each label in the row where the curve, and the labels before it, leave most space."""
    parts, taken = [], set[float]()
    for amount, text in marks:
        x = x_axis.at(amount)
        side = -1 if x > (_LEFT + _RIGHT) / 2 else 1
        near = _heights_between(line, x, x + side * (5 + _LETTER_PIXELS * len(text)))
        free = (row for row in _LABEL_ROWS if row not in taken)
        row = max(free, key=lambda row: min((_CLEAR_PIXELS, *(abs(row - 4 - height) for height in near))))
        taken.add(row)
        anchor = "start" if side > 0 else "end"
        parts.append(
            f'<text class="mark" x="{x + 5 * side:.1f}" y="{row:g}" text-anchor="{anchor}">{escape(text)}</text>'
        )
    return parts


def _heights_between(line: Points, start: float, end: float) -> list[float]:
    """Return heights of a line between two places, in pixels."""
    low, high = sorted((start, end))
    heights = []
    for (left, before), (right, after) in pairwise(line):
        steps = (left + (right - left) * step / 8 for step in range(9))
        heights += [before + (after - before) * (x - left) / (right - left or 1) for x in steps if low <= x <= high]
    return heights


def stacked_bars(
    labels: Sequence[str],
    series: Mapping[str, Sequence[Fraction]],
    *,
    symbol: str,
    titles: Sequence[str],
    said: str,
    translate: Translate = str,
) -> str:
    """Return bars over time, one series upon another, for a wide and a narrow window.

    labels  what stands below each bar
    titles  what each bar is called where it is pointed at
    """
    totals = [float(sum(row[at] for row in series.values())) for at in range(len(labels))]
    bars = []
    for at, title in enumerate(titles):
        below = Fraction()
        for colour, (name, row) in enumerate(series.items()):
            if row[at]:
                amount = t("{symbol} = {amount}", symbol=symbol, amount=decimal(row[at]))
                text = join(", ", (title, join(": ", (name, amount))))
                bars.append((at, colour, float(below), float(below + row[at]), text))
                below += row[at]
    return _bar_chart(labels, bars, max(totals, default=0.0) or 1.0, label(symbol), said, translate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Consecutive observations: how many were flagged, and how many were skipped without a decision."""

    first: int
    last: int
    flagged: int
    skipped: int

    @property
    def decisions(self) -> int:
        return self.last - self.first + 1 - self.skipped


def timeline(blocks: Sequence[Block], alarms: float | None, translate: Translate = str) -> str:
    """Return bars of flags; a dashed line is the expected number if no observation is an outlier.

    alarms  the largest expected share of false alarms; None: not known
    """
    if not blocks:
        return ""
    expected = [block.decisions * (alarms or 0.0) for block in blocks]
    said = t(
        "Flags among observations {first:,} to {last:,}. The table below has the numbers.",
        first=blocks[0].first,
        last=blocks[-1].last,
    )
    bars = [
        (
            at,
            0,
            0.0,
            float(block.flagged),
            t(
                "{first:,} to {last:,}: {flagged:,} flagged of {n:,} decided",
                first=block.first,
                last=block.last,
                flagged=block.flagged,
                n=block.decisions,
            ),
        )
        for at, block in enumerate(blocks)
    ]
    top = max([1.0, *(float(block.flagged) for block in blocks), *expected])
    labels = [t("{n:,}", n=block.first) for block in blocks]
    return _bar_chart(labels, bars, top, label(""), said, translate, expected if alarms else ())


def _bar_chart(
    labels: Sequence[str],
    bars: Sequence[tuple[int, int, float, float, str]],
    highest: float,
    axis: Message,
    said: str,
    translate: Translate,
    expected: Sequence[float] = (),
) -> str:
    """Return bars (place, colour, from, to, title) with labels below, once for each width."""
    drawings = []
    for kind, width in _BAR_WIDTHS.items():
        up = Span(0.0, 1.05 * highest, _BAR_BOTTOM, _BAR_TOP)
        step = (width - _BAR_LEFT) / len(labels)
        parts = [f'<text x="4" y="{_BAR_TOP - 4:g}">{escape(translate(axis))}</text>'] if axis else []
        for tick in up.ticks(5):
            y = up.at(tick)
            parts.append(f'<path class="grid-line" d="M{_BAR_LEFT:g} {y:.1f}H{width:g}"/>')
            text = translate(axis_text(tick))
            parts.append(f'<text x="{_BAR_LEFT - 8:g}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
        for at, colour, low, high, title in bars:
            height = max(up.at(low) - up.at(high), 0.5 if high > low else 0.0)
            parts.append(
                f'<rect class="s{min(colour, _COLOURS - 1)}" x="{_BAR_LEFT + step * (at + 0.12):.1f}" '
                f'y="{up.at(high):.1f}" width="{step * 0.76:.1f}" height="{height:.1f}">'
                f"<title>{escape(translate(title))}</title></rect>"
            )
        for at in range(0, len(labels), math.ceil(_BAR_LABEL_PIXELS / step)):
            x, text = _BAR_LEFT + step * (at + 0.5), escape(translate(labels[at]))
            parts.append(f'<text x="{x:.1f}" y="{_BAR_BOTTOM + 20:g}" text-anchor="middle">{text}</text>')
        if expected:
            line = [f"{_BAR_LEFT + step * at:.1f} {up.at(value):.1f}h{step:.1f}" for at, value in enumerate(expected)]
            parts.append(f'<path class="limit" fill="none" d="M{"L".join(line)}"/>')
        size = f'viewBox="0 0 {width:g} {_BAR_HEIGHT:g}"'
        title = escape(translate(said))
        drawings.append(f'<svg class="bars {kind}" role="img" aria-label="{title}" {size}>{"".join(parts)}</svg>')
    return "".join(drawings)
