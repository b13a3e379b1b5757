"""The decisions of a watch over time, as inline SVG: flags in each block, and how many false ones to expect at most."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

_LEFT, _TOP, _BOTTOM, _HIGH = 44.0, 16.0, 196.0, 230.0
_WIDTHS: Final = {"on-wide": 720.0, "on-narrow": 340.0}  # a window shows one of them, whole
_LABEL: Final = 78.0  # the width of a number below


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Observations one after another: how many were flagged, and how many were passed over, undecided."""

    first: int
    last: int
    flagged: int
    skipped: int

    @property
    def decisions(self) -> int:
        return self.last - self.first + 1 - self.skipped


def timeline(blocks: Sequence[Block], alarms: float | None) -> Markup | None:
    """Bars of flags; a dashed line where all would be, were every observation usual. None: nothing was decided."""
    if not blocks:
        return None
    expected = [block.decisions * (alarms or 0.0) for block in blocks]
    top = max(1.0, math.ceil(1.1 * max([*(block.flagged for block in blocks), *expected])))
    said = f"Flags among observations {blocks[0].first:,} to {blocks[-1].last:,}. The table below has the numbers."
    drawn = []
    for name, wide in _WIDTHS.items():
        width = (wide - _LEFT) / len(blocks)
        inner = [
            *_axes(blocks, top, wide),
            *_bars(blocks, top, width),
            *(_line(expected, top, width) if alarms else ()),
        ]
        size = f'viewBox="0 0 {wide:g} {_HIGH:g}"'
        drawn.append(f'<svg class="bars {name}" role="img" aria-label="{said}" {size}>{"".join(inner)}</svg>')
    return Markup("".join(drawn))  # noqa: S704 - made of numbers


def _axes(blocks: Sequence[Block], top: float, wide: float) -> Iterator[str]:
    for value in sorted({0.0, round(top / 2), top}):
        y = _height(value, top)
        yield f'<path class="grid-line" d="M{_LEFT:g} {y:.1f}H{wide:g}"/>'
        yield f'<text x="{_LEFT - 8:g}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
    width = (wide - _LEFT) / len(blocks)
    every = math.ceil(_LABEL / width)
    for place in range(0, len(blocks), every):
        x = _LEFT + width * (place + 0.5)
        yield f'<text x="{x:.1f}" y="{_BOTTOM + 20:g}" text-anchor="middle">{blocks[place].first:,}</text>'


def _bars(blocks: Sequence[Block], top: float, width: float) -> Iterator[str]:
    for place, block in enumerate(blocks):
        y = _height(block.flagged, top)
        words = f"{block.first:,} to {block.last:,}: {block.flagged:,} flagged of {block.decisions:,} decided"
        yield (
            f'<rect class="s0" x="{_LEFT + width * (place + 0.12):.1f}" y="{y:.1f}" width="{width * 0.76:.1f}" '
            f'height="{_BOTTOM - y:.1f}"><title>{words}</title></rect>'
        )


def _line(expected: Sequence[float], top: float, width: float) -> Iterator[str]:
    steps = [f"{_LEFT + width * at:.1f} {_height(value, top):.1f}h{width:.1f}" for at, value in enumerate(expected)]
    yield f'<path class="limit" fill="none" d="M{"L".join(steps)}"/>'


def _height(value: float, top: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * value / top
