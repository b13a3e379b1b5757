"""Lines, texts, marks and scales of a drawing: SVG without inline style, which a strict content policy accepts.

Colours and fonts are those of a style sheet (`palette.svg_rules`). The text of a mark is its title, which a browser
shows without a script. A canvas translates every text that it is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from textwrap import wrap
from typing import Final

from wallflower.drawing.picture import Cell
from wallflower.text import Message, label, t

LETTER: Final = 7.2  # pixels that a letter takes on average, rather more than less
LINE: Final = 17.0  # pixels from a line of words to the next


Translate = Callable[[object], str]


@dataclass(slots=True)
class Canvas:
    """A drawing of a fixed width that grows in height; `translate` returns a text in the language of the reader."""

    width: float
    height: float = 0.0
    parts: list[str] = field(default_factory=list)
    translate: Translate = str

    @property
    def is_narrow(self) -> bool:
        """Whether there is no room for labels beside what they name, as on a phone."""
        return self.width < 480

    def path(self, steps: str, kind: str, said: str = "") -> None:
        self._add(f'<path class="{kind}" d="{steps}"/>', said)

    def box(
        self, x: float, y: float, width: float, height: float, kind: str, *, said: str = "", more: str = ""
    ) -> None:
        place = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.0):.1f}" height="{max(height, 0.0):.1f}"'
        self._add(f'<rect class="{kind}" {place}{more}/>', said)

    def dot(self, x: float, y: float, radius: float, kind: str, said: str = "") -> None:
        self._add(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"/>', said)

    def words(self, x: float, y: float, text: str, kind: str = "", *, anchor: str = "start", turn: int = 0) -> None:
        turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
        held = f' class="{kind}"' if kind else ""
        self.parts.append(
            f'<text{held} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turned}>{escape(self.translate(text))}</text>'
        )

    def lines(self, x: float, y: float, text: str, room: float, kind: str = "", *, anchor: str = "start") -> float:
        """Words in as many lines as they take; tells how many pixels these are high."""
        rows = break_lines(self.translate(text), room)
        for at, row in enumerate(rows):
            self.words(x, y + at * LINE, row, kind, anchor=anchor)
        return len(rows) * LINE

    def _add(self, shape: str, said: str) -> None:
        self.parts.append(
            f'<g class="mark"><title>{escape(self.translate(said))}</title>{shape}</g>' if said else shape
        )

    def to_svg(self, kind: str, said: str) -> str:
        """Return the drawing as SVG; `said` is its description for screen readers."""
        size = f'viewBox="0 0 {self.width:g} {math.ceil(self.height)}"'
        opened = f'<svg class="picture {kind}" {size} role="img" aria-label="{escape(self.translate(said))}">'
        return "".join([opened, *self.parts, "</svg>"])


@dataclass(frozen=True, slots=True)
class Span:
    """Numbers along one direction, and the pixels that they go to."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def at(self, value: float) -> float:
        """The pixel of a value; what lies beyond the ends is at them."""
        low, high, here = (math.log(one) if self.is_log else one for one in (self.low, self.high, value))
        share = (here - low) / (high - low) if high > low else 0.5
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Round numbers between the ends."""
        if self.is_log:
            return _log_ticks(self.low, self.high, most)
        step = _round_step((self.high - self.low) / most)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [tick * step for tick in range(first, last + 1)]


def ends_around(values: Sequence[float], *, from_zero: bool = False) -> tuple[float, float]:
    """Ends that leave some room around values; zero is one of them where it is near, or wanted."""
    low, high = min(values), max(values)
    room = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    if low >= 0 and (from_zero or low - room < 0.5 * (high - low)):
        return 0.0, high + room
    return (low - room if low < 0 or not from_zero else 0.0), (max(high, 0.0) + room if from_zero else high + room)


def width_of(text: str) -> float:
    """About how many pixels a text is wide."""
    return len(text) * LETTER


def break_lines(text: str, room: float, most: int = 4) -> list[str]:
    """Break a text into lines that fit into a width in pixels.

    >>> break_lines("age × hours per week", 80)
    ['age × hours', 'per week']
    """
    letters = max(4, int(room / LETTER))
    found = wrap(text, letters) or [""]
    return found if len(found) <= most else [*found[: most - 1], cut_short(f"{found[most - 1]} …", room)]


def cut_short(text: str, room: float) -> str:
    """Return as much of a text as fits into a width in pixels."""
    letters = max(2, int(room / LETTER))
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def axis_text(value: float) -> Message:
    """Return a number on an axis.

    >>> axis_text(1500), axis_text(0.30000000000000004), axis_text(1e-7)
    ('1,500', '0.3', '1e-07')
    """
    return t("{value:,g}", value=float(f"{value:.6g}")) if abs(value) < 1e6 else t("{value:,.0f}", value=value)


def cell_text(value: Cell) -> Message:
    """Return a number or a name, on a picture and in the table under it.

    >>> cell_text(0.25), cell_text(1200), cell_text(None)
    ('0.25', '1,200', '')
    """
    match value:
        case None:
            return label("")
        case str():
            return label(value)
        case int():
            return t("{value:,}", value=value)
        case _ if value.is_integer() and abs(value) < 2**53:
            return t("{value:,}", value=int(value))
        case _:
            return t("{value:,.4g}", value=value) if abs(value) < 1e4 else t("{value:,.0f}", value=value)


def _round_step(least: float) -> float:
    """1, 2 or 5 times a power of ten, at least so large.

    >>> _round_step(0.3), _round_step(120)
    (0.5, 200.0)
    """
    power = 10.0 ** math.floor(math.log10(least)) if least > 0 else 1.0
    return next(sub * power for sub in (1.0, 2.0, 5.0, 10.0) if sub * power >= least * (1 - 1e-9))


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for subs in ((1, 2, 5), (1, 3), (1,)):
        found = [sub * 10.0**power for power in powers for sub in subs]
        found = [tick for tick in found if low <= tick * (1 + 1e-9) and tick <= high * (1 + 1e-9)]
        if len(found) <= most:
            return found or [low, high]
    return found[:: math.ceil(len(found) / most)]
