"""Lines, words and marks of a picture on a page: SVG without any style of its own, which a strict policy lets through.

Colours and fonts are the style sheet's. What a mark says is its title, which a browser shows without a script.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from textwrap import wrap
from typing import Final

from markupsafe import Markup

LETTER: Final = 7.2  # pixels that a letter takes on average, rather more than less
LINE: Final = 17.0  # pixels from a line of words to the next


@dataclass(slots=True)
class Canvas:
    """A picture that grows: `width` is given, the height comes of what is drawn."""

    width: float
    height: float = 0.0
    parts: list[str] = field(default_factory=list)

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
        self.parts.append(f'<text{held} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turned}>{escape(text)}</text>')

    def lines(self, x: float, y: float, text: str, room: float, kind: str = "", *, anchor: str = "start") -> float:
        """Words in as many lines as they take; tells how many pixels these are high."""
        found = break_lines(text, room)
        for at, line in enumerate(found):
            self.words(x, y + at * LINE, line, kind, anchor=anchor)
        return len(found) * LINE

    def _add(self, shape: str, said: str) -> None:
        self.parts.append(f'<g class="mark"><title>{escape(said)}</title>{shape}</g>' if said else shape)

    def markup(self, kind: str, said: str) -> Markup:
        """The whole picture; `said` is what it is called."""
        size = f'viewBox="0 0 {self.width:g} {math.ceil(self.height)}"'
        opened = f'<svg class="picture {kind}" {size} role="img" aria-label="{escape(said)}">'
        return Markup("".join([opened, *self.parts, "</svg>"]))  # noqa: S704 - numbers, and words that were escaped


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
    """A text in lines that fit into so many pixels.

    >>> break_lines("age × hours per week", 80)
    ['age × hours', 'per week']
    """
    letters = max(4, int(room / LETTER))
    found = wrap(text, letters) or [""]
    return found if len(found) <= most else [*found[: most - 1], cut_short(f"{found[most - 1]} …", room)]


def cut_short(text: str, room: float) -> str:
    """As much of a text as fits into so many pixels."""
    letters = max(2, int(room / LETTER))
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def number_words(value: float) -> str:
    """A number on an axis.

    >>> number_words(1500), number_words(0.30000000000000004), number_words(1e-7)
    ('1,500', '0.3', '1e-07')
    """
    return f"{float(f'{value:.6g}'):,g}" if abs(value) < 1e6 else f"{value:,.0f}"


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
