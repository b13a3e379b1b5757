"""Charts of plans, as inline SVG without any style of its own: colours and fonts are the style sheet's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

from markupsafe import Markup

from wallflower.query import Plan, Scale, Tradeoff
from wallflower.release.words import symbol

Points = Sequence[tuple[float, float]]

_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 486.0, 14.0, 246.0
_MOST_TICKS: Final = 7
_ROWS: Final = (_TOP + 12, _TOP + 27, _BOTTOM - 10, _BOTTOM - 25)  # where words of marks may stand
_LETTER: Final = 6.4  # pixels of a letter of theirs
_NEAR: Final = 16.0  # further from the curve is not better


@dataclass(frozen=True, slots=True)
class Axis:
    """One direction of a chart."""

    words: str
    low: float
    high: float
    scale: Scale

    def share(self, value: float) -> float:
        """Where a value lies, from 0 to 1."""
        low, high, here = (math.log(x) if self.scale == "log" else x for x in (self.low, self.high, value))
        return min(1.0, max(0.0, (here - low) / (high - low)))

    def ticks(self) -> list[float]:
        if self.scale == "linear":
            return [self.low + (self.high - self.low) * step / 5 for step in range(6)]
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for subs in ((1, 2, 5), (1, 3), (1,)):
            found = [sub * 10.0**power for power in powers for sub in subs]
            found = [tick for tick in found if self.low <= tick * (1 + 1e-9) and tick <= self.high * (1 + 1e-9)]
            if len(found) <= _MOST_TICKS:
                return found
        return found[:: math.ceil(len(found) / _MOST_TICKS)]


def curve(plan: Plan, marks: Sequence[tuple[float, str]] = ()) -> Markup | None:
    """What each amount of the loss would give, with a dot where the plan stands and lines at other marks."""
    points = [(x, y) for x, y in plan.curve if math.isfinite(y) and (plan.scale == "linear" or y > 0)]
    if len(points) < 2 or points[0][0] <= 0:
        return None
    heights = [y for _, y in points]
    low, high = (0.0, max(1.0, *heights)) if plan.scale == "linear" else (min(heights), max(heights))
    if plan.scale == "log" and high < 1.05 * low:
        low, high = low / 2, high * 2
    letter = symbol(plan.cost)
    across = Axis(f"{letter} spent", points[0][0], points[-1][0], "log")
    up = Axis(plan.measure, low, high, plan.scale)
    spent = float(plan.cost.amount)
    at = spent if across.low <= spent <= across.high else None
    within = [(amount, words) for amount, words in marks if across.low <= amount <= across.high]
    told = "; ".join(f"{words} {letter} = {amount:.3g}" for amount, words in within)
    said = f"{plan.measure} against {letter}" + (f"; {told}" if told else "")
    return _chart(across, up, points, at=at, said=said, marks=within)


def nearest_to(amount: float, curves: Sequence[Tradeoff]) -> Tradeoff:
    """The curve at the loss that is nearest to this amount."""
    return min(curves, key=lambda one: abs(math.log(float(one.amount) / amount)))


def tradeoff(nearest: Tradeoff) -> Markup:
    """Found against false alarms."""
    points = list(zip(nearest.alarms, nearest.found, strict=True))
    across = Axis("usual observations flagged", 0.0, 1.0, "linear")
    up = Axis("outliers flagged", 0.0, 1.0, "linear")
    said = f"outliers flagged against usual observations flagged, at a loss of {nearest.amount}"
    return _chart(across, up, points, at=None, said=said, diagonal=True)


def _chart(
    across: Axis,
    up: Axis,
    points: Points,
    *,
    at: float | None,
    said: str,
    diagonal: bool = False,
    marks: Sequence[tuple[float, str]] = (),
) -> Markup:
    def place(x: float, y: float) -> tuple[str, str]:
        return f"{_LEFT + across.share(x) * (_RIGHT - _LEFT):.1f}", f"{_BOTTOM - up.share(y) * (_BOTTOM - _TOP):.1f}"

    line = "M" + "L".join(" ".join(place(*point)) for point in points)
    parts = [f'<svg class="chart" viewBox="0 0 500 300" role="img" aria-label="{escape(said)}">']
    parts += _grid(across, up)
    if diagonal:
        parts.append(f'<path class="chance" d="M{_LEFT} {_BOTTOM}L{_RIGHT} {_TOP}"/>')
    parts += [f'<path class="mark" d="M{place(amount, up.low)[0]} {_TOP}V{_BOTTOM}"/>' for amount, _ in marks]
    parts.append(f'<path class="line" d="{line}"/>')
    if at is not None:
        x, y = place(at, _height(points, at, up.scale))
        parts.append(f'<path class="here" d="M{x} {_TOP}V{_BOTTOM}"/><circle class="dot" cx="{x}" cy="{y}" r="5"/>')
    parts += _labels(across, marks, [(float(x), float(y)) for x, y in (place(*point) for point in points)])
    return Markup("".join([*parts, "</svg>"]))  # noqa: S704 - numbers, and words that were escaped


def _labels(across: Axis, marks: Sequence[tuple[float, str]], line: Points) -> list[str]:
    """The words of marks, each in the row where the curve and the words before it leave most room."""
    parts, taken = [], set[float]()
    for amount, words in marks:
        share = across.share(amount)
        x, side = _LEFT + share * (_RIGHT - _LEFT), -1 if share > 0.5 else 1
        near = _heights_between(line, x, x + side * (5 + _LETTER * len(words)))
        free = (row for row in _ROWS if row not in taken)
        row = max(free, key=lambda row: min((_NEAR, *(abs(row - 4 - height) for height in near))))
        taken.add(row)
        at = f'x="{x + 5 * side:.1f}" y="{row:g}" text-anchor="{"start" if side > 0 else "end"}"'
        parts.append(f'<text class="mark" {at}>{escape(words)}</text>')
    return parts


def _heights_between(line: Points, one: float, other: float) -> list[float]:
    """Heights that a line passes between two places, in pixels."""
    low, high = sorted((one, other))
    found = []
    for (left, before), (right, after) in pairwise(line):
        steps = (left + (right - left) * step / 8 for step in range(9))
        found += [before + (after - before) * (x - left) / (right - left or 1) for x in steps if low <= x <= high]
    return found


def _grid(across: Axis, up: Axis) -> list[str]:
    parts = []
    for tick in across.ticks():
        x = f"{_LEFT + across.share(tick) * (_RIGHT - _LEFT):.1f}"
        parts.append(f'<path class="grid-line" d="M{x} {_TOP}V{_BOTTOM}"/>')
        parts.append(f'<text x="{x}" y="{_BOTTOM + 18}" text-anchor="middle">{tick:.3g}</text>')
    for tick in up.ticks():
        y = _BOTTOM - up.share(tick) * (_BOTTOM - _TOP)
        parts.append(f'<path class="grid-line" d="M{_LEFT} {y:.1f}H{_RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:.3g}</text>')
    middle, centre = (_LEFT + _RIGHT) / 2, (_TOP + _BOTTOM) / 2
    parts.append(f'<text class="axis" x="{middle}" y="290" text-anchor="middle">{escape(across.words)}</text>')
    turned = f'transform="rotate(-90 14 {centre})" text-anchor="middle"'
    parts.append(f'<text class="axis" x="14" y="{centre}" {turned}>{escape(up.words[:48])}</text>')
    return parts


def _height(points: Points, at: float, scale: Scale) -> float:
    """The height of the line at this place, straight between points on the scales it is drawn on."""
    for (left, before), (right, after) in pairwise(points):
        if left <= at <= right:
            share = math.log(at / left) / math.log(right / left) if right > left else 0.0
            if scale == "log":
                return math.exp((1 - share) * math.log(before) + share * math.log(after))
            return (1 - share) * before + share * after
    return points[-1][1]
