"""Stacked bars over time, as inline SVG without any style of its own; every bar says its value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from html import escape
from typing import Final

from markupsafe import Markup

from wallflower.curator.desk.budgets.expenses import History
from wallflower.curator.pages.forms.fields import decimal

_LEFT, _TOP, _BOTTOM, _HIGH = 58.0, 14.0, 236.0, 268.0
_WIDTHS: Final = {"on-wide": 720.0, "on-narrow": 340.0}  # a window shows one of them, whole
_LABEL: Final = 78.0  # the width of a day below
_STEPS: Final = (1, 2, 2.5, 5, 10)


def bars(found: History) -> Markup | None:
    """The amounts of each period, one upon another, for a desk and for a phone; None: nothing was spent."""
    top = _top(
        max((sum(row[place] for row in found.series.values()) for place in range(len(found.periods))), default=0)
    )
    if not found.total:
        return None
    said = escape(
        f"Spent per {found.step}, {found.letter}: {', '.join(found.series)}. The table below has the numbers."
    )
    return Markup("").join(_draw(found, top, said, name, wide) for name, wide in _WIDTHS.items())


def _draw(found: History, top: float, said: str, name: str, wide: float) -> Markup:
    inner = "".join([*_grid(found, top, wide), *_stacks(found, top, wide), *_days(found, wide)])
    return Markup(  # noqa: S704 - names are escaped where they are put in
        f'<svg class="bars {name}" role="img" aria-label="{said}" viewBox="0 0 {wide:g} {_HIGH:g}">{inner}</svg>'
    )


def _grid(found: History, top: float, wide: float) -> Iterator[str]:
    for step in range(5):
        value = top * step / 4
        y = _height(value, top)
        yield f'<path class="grid-line" d="M{_LEFT:g} {y:.1f}H{wide:g}"/>'
        yield f'<text x="{_LEFT - 8:g}" y="{y + 4:.1f}" text-anchor="end">{value:.3g}</text>'
    yield f'<text x="4" y="{_TOP - 2:g}">{found.letter}</text>'


def _stacks(found: History, top: float, wide: float) -> Iterator[str]:
    width = (wide - _LEFT) / len(found.periods)
    for place, period in enumerate(found.periods):
        below = Fraction()
        for colour, (name, row) in enumerate(found.series.items()):
            if not row[place]:
                continue
            upper, lower = _height(float(below + row[place]), top), _height(float(below), top)
            below += row[place]
            words = escape(f"{period.isoformat()}, {name}: {found.letter} = {decimal(row[place])}")
            yield (
                f'<rect class="s{min(colour, 6)}" x="{_LEFT + width * (place + 0.12):.1f}" y="{upper:.1f}" '
                f'width="{width * 0.76:.1f}" height="{max(lower - upper, 0.5):.1f}"><title>{words}</title></rect>'
            )


def _days(found: History, wide: float) -> Iterator[str]:
    width = (wide - _LEFT) / len(found.periods)
    every = math.ceil(_LABEL / width)
    for place in range(0, len(found.periods), every):
        period = found.periods[place]
        words = period.strftime("%Y-%m") if found.step == "month" else period.strftime("%m-%d")
        x = _LEFT + width * (place + 0.5)
        yield f'<text x="{x:.1f}" y="{_BOTTOM + 20:g}" text-anchor="middle">{words}</text>'


def _height(value: float, top: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * value / top


def _top(largest: Fraction | int) -> float:
    """A round number that nothing is above."""
    value = float(largest) or 1.0
    power: float = 10.0 ** math.floor(math.log10(value))
    return next(power * step for step in _STEPS if power * step >= value * (1 - 1e-12))
