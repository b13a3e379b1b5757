"""The SVG renderer: what each picture of the vocabulary looks like, on a wide page, on a phone and on a card.

The title of a mark is its value; the table under a picture has the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Final

from wallflower.drawing.canvas import (
    LINE,
    Canvas,
    Span,
    Translate,
    axis_text,
    break_lines,
    cell_text,
    cut_short,
    ends_around,
    width_of,
)
from wallflower.drawing.picture import Band, Bars, Choices, Curve, Dot, HeatMap, Picture, Ranks, Ticks
from wallflower.text import Message, join, label, t

WIDE: Final = 760.0
NARROW: Final = 340.0
_MAX_SEPARATE_MARKS: Final = 400  # marks that say something each; more are drawn as one
_PLOT: Final = 250.0  # pixels up, of a plot with two axes
_CELL: Final = 34.0
_BOLD: Final = 1.2  # so much wider is a label than the words around it
_SNUG: Final = 15.0  # from one line to the next of two that share a cell
_PALE, _STRONG = 0.06, 0.62  # the ink on it stays legible


def draw(picture: Picture, said: str, *, width: float = WIDE, kind: str = "", translate: Translate = str) -> str:
    """Return a picture as SVG, `width` pixels wide; an empty text where nothing draws it, as for bare figures.

    said       its description for screen readers
    kind       a class of the SVG element
    translate  returns a text in the language of the reader

    >>> draw(Dot(value=22, interval=(0, 46), across="outliers"), "22 outliers")[:20]
    '<svg class="picture '
    """
    renderer = _RENDERERS.get(type(picture))
    if renderer is None:
        return ""
    canvas = Canvas(width, translate=translate)
    renderer(canvas, picture)
    return canvas.to_svg(kind, said)


def legend(picture: Picture) -> Message:
    """Return what the marks of a picture mean.

    >>> legend(Ticks(places=(3,), known=5, until=5, across="observation"))
    'Each stroke is a flagged observation.'
    """
    match picture:
        case Bars(intervals=None):
            return t("Bars: {measure}.", measure=label(picture.across)) if picture.across else label("")
        case Bars():
            return t("Bars: {measure}. Whiskers: 95 % intervals.", measure=label(picture.across))
        case Dot(interval=tuple()):
            measure = label(picture.across) if picture.across else t("the answer")
            return t("Dot: {measure}. Bar: {interval}.", measure=measure, interval=_covers(picture))
        case Curve():
            parts = [t("Line: {measure}.", measure=label(picture.up))]
            parts += [t("Band: {interval}.", interval=label(picture.covers))] if picture.covers else []
            parts += [t("Dashed: where it bends.")] if picture.bend is not None else []
            return join(" ", parts)
        case Band():
            if picture.covers != "usual":
                return t(
                    "Line: {measure}. Band: {interval}.", measure=label(picture.up), interval=label(picture.covers)
                )
            line = t("Line: typical {measure}. Band: one spread to either side.", measure=label(picture.up))
            return join(" ", [line, t("Triangles: flagged.")]) if picture.marks else line
        case Choices():
            return t("Filled: in the context. Outlined: not in it.")
        case HeatMap():
            return t(
                "Colour: {measure}, from {low:.2g} (pale) to {high:.2g} (strong).",
                measure=label(picture.measure),
                low=picture.least,
                high=picture.most,
            )
        case Ranks():
            return t("Ranked among {choices}. Only the order was released.", choices=label(picture.among))
        case Ticks():
            return t("Each stroke is a flagged observation.")
        case _:
            return label("")


def _covers(dot: Dot) -> Message:
    return label(dot.covers.rstrip(":"))


def _range_text(low: float, high: float) -> Message:
    return t("{low} to {high}", low=cell_text(low), high=cell_text(high))


def _draw_dot(canvas: Canvas, dot: Dot) -> None:
    low, high = dot.interval or (dot.value, dot.value)
    ends = ends_around((low, high, dot.value))
    across = Span(*ends, 24.0, canvas.width - 24.0)
    middle, foot = 52.0, 84.0
    _axis_below(canvas, across, foot, dot.across)
    if dot.interval is not None:
        left, right = across.at(low), across.at(high)
        said = t("{interval}: {low} to {high}", interval=_covers(dot), low=cell_text(low), high=cell_text(high))
        canvas.box(left, middle - 9, max(right - left, 2.0), 18, "soft", said=said, more=' rx="9"')
        for end, x, anchor in ((low, left, "start"), (high, right, "end")):
            if right - left > 120:
                canvas.words(x + (6 if anchor == "start" else -6), middle + 4.5, cell_text(end), "small", anchor=anchor)
    measure = label(dot.across) if dot.across else t("the answer")
    canvas.dot(across.at(dot.value), middle, 9, "full", join(": ", (measure, cell_text(dot.value))))
    x = min(max(across.at(dot.value), 30.0), canvas.width - 30.0)
    canvas.words(x, middle - 20, cell_text(dot.value), "large", anchor="middle")


def _draw_bars(canvas: Canvas, bars: Bars) -> None:
    whiskers = bars.intervals or tuple((length, length) for length in bars.lengths)
    ends = ends_around([0.0, *bars.lengths, *(end for whisker in whiskers for end in whisker)], from_zero=True)
    left = 0.0 if canvas.is_narrow else min(0.36 * canvas.width, max(map(width_of, bars.labels)) + 14)
    room = 6.0 if canvas.is_narrow else min(0.34 * canvas.width, max(map(width_of, bars.marks)) + 12)
    right = canvas.width - room
    across, top = Span(*ends, left + 2, right), 8.0
    for name, length, (low, high), mark in zip(bars.labels, bars.lengths, whiskers, bars.marks, strict=True):
        if canvas.is_narrow:
            top = _bar_head(canvas, top, name, mark)
            middle, bottom = top + 11, top + 30
        else:
            rows = break_lines(name, left - 10)
            middle = top + max(15.0, len(rows) * LINE / 2)
            canvas.lines(left - 10, middle + 4.5 - (len(rows) - 1) * LINE / 2, name, left - 10, "label", anchor="end")
            bottom = middle + max(15.0, len(rows) * LINE / 2)
        said = join(": ", (name, mark))
        if bars.intervals:
            said = t("{value} ({interval})", value=said, interval=_range_text(low, high))
        _bar(canvas, across, length, (low, high) if bars.intervals else None, middle, said)
        if not canvas.is_narrow:
            canvas.words(across.at(max(length, high, 0)) + 8, middle + 4.5, cut_short(mark, room - 8))
        top = bottom + 3
    if bars.across:
        _axis_below(canvas, across, top + 2, bars.across)
    else:
        canvas.height = top + 4


def _bar_head(canvas: Canvas, top: float, label: str, mark: str) -> float:
    """The label over a bar and its mark at the end of the line, or under it where both do not fit."""
    beside = width_of(label) + width_of(mark) + 16 <= canvas.width
    high = canvas.lines(0, top + 13, label, canvas.width, "label")
    canvas.words(canvas.width, top + 13 + (0 if beside else high), mark, anchor="end")
    return top + high + (2 if beside else 2 + LINE)


def _bar(
    canvas: Canvas, across: Span, length: float, whisker: tuple[float, float] | None, middle: float, said: str
) -> None:
    start, end = sorted((across.at(0.0), across.at(length)))
    canvas.box(start, middle - 9, max(end - start, 1.5), 18, "bar", said=said, more=' rx="2"')
    if whisker is not None:
        low, high = map(across.at, whisker)
        steps = f"M{low:.1f} {middle}H{high:.1f}M{low:.1f} {middle - 5}v10M{high:.1f} {middle - 5}v10"
        canvas.path(steps, "whisker")


def _draw_ranks(canvas: Canvas, ranks: Ranks) -> None:
    top = 6.0
    for place, name in enumerate(ranks.labels, start=1):
        room = canvas.width - 56
        high = max(34.0, len(break_lines(name, room)) * LINE + 12)
        middle = top + high / 2
        canvas.box(
            0, top, canvas.width, high, "first" if place == 1 else "row", said=f"{place}. {name}", more=' rx="6"'
        )
        canvas.dot(24, middle, 13, "badge")
        canvas.words(24, middle + 5, str(place), "on-badge", anchor="middle")
        canvas.lines(48, middle + 5 - (len(break_lines(name, room)) - 1) * LINE / 2, name, room, "label")
        top += high + 6
    canvas.height = top


def _draw_curve(canvas: Canvas, curve: Curve) -> None:
    edges = [*curve.heights, *curve.lows, *curve.highs]
    across, up = _frame(canvas, curve.places, edges, curve.across, curve.up, is_log=min(curve.places) > 0)
    if curve.lows:
        there = [f"{across.at(x):.1f} {up.at(y):.1f}" for x, y in zip(curve.places, curve.highs, strict=True)]
        back = [f"{across.at(x):.1f} {up.at(y):.1f}" for x, y in zip(curve.places, curve.lows, strict=True)]
        canvas.path("M" + "L".join([*there, *reversed(back)]) + "Z", "soft")
    points = list(zip(curve.places, curve.heights, strict=True))
    canvas.path("M" + "L".join(f"{across.at(x):.1f} {up.at(y):.1f}" for x, y in points), "line")
    if curve.bend is not None:
        x = across.at(curve.bend)
        canvas.path(f"M{x:.1f} {up.end}V{up.start}", "dashed")
        side = "end" if x > canvas.width / 2 else "start"
        canvas.words(
            x + (6 if side == "start" else -6),
            up.end + 12,
            t("bends near {place:.3g}", place=curve.bend),
            "small",
            anchor=side,
        )
    bands = [_range_text(low, high) for low, high in zip(curve.lows, curve.highs, strict=True)]
    for at, (x, y) in enumerate(points):
        said = t(
            "{across} {place:.4g}: {value} {up}",
            across=label(curve.across),
            place=x,
            value=cell_text(y),
            up=label(curve.up),
        )
        said = t("{value} ({interval})", value=said, interval=bands[at]) if bands else said
        canvas.dot(across.at(x), up.at(y), 4.5, "full", said)


def _draw_band(canvas: Canvas, band: Band) -> None:
    count = len(band.middle)
    across, up = _frame(canvas, (0.5, count + 0.5), [*band.low, *band.high], band.across, band.up, is_log=False)
    edges = [across.at(place + 0.5) for place in range(count + 1)]
    steps = list(pairwise(edges))
    there = [f"{a:.1f} {up.at(y):.1f}L{b:.1f} {up.at(y):.1f}" for (a, b), y in zip(steps, band.high, strict=True)]
    back = [f"{b:.1f} {up.at(y):.1f}L{a:.1f} {up.at(y):.1f}" for (a, b), y in zip(steps, band.low, strict=True)]
    canvas.path("M" + "L".join([*there, *reversed(back)]) + "Z", "soft")
    middle = [f"{a:.1f} {up.at(y):.1f}L{b:.1f} {up.at(y):.1f}" for (a, b), y in zip(steps, band.middle, strict=True)]
    canvas.path("M" + "L".join(middle), "line")
    for place in sorted(set(band.marks)):
        x = across.at(place)
        canvas.path(
            f"M{x:.1f} {up.start - 10}l5 9h-10Z",
            "flag",
            t("{across} {place:,}: flagged", across=label(band.across), place=place),
        )
    for place, ((a, b), y) in enumerate(zip(steps, band.middle, strict=True), start=1):
        if count <= _MAX_SEPARATE_MARKS:
            ends = _range_text(band.low[place - 1], band.high[place - 1])
            words = {"across": label(band.across), "place": place, "value": cell_text(y), "interval": ends}
            said = t("{across} {place:,}: {value}, typically {interval}", **words)
            if band.covers != "usual":
                said = t("{across} {place:,}: {value} ({interval})", **words)
            canvas.box(a, up.end, b - a, up.start - up.end, "target", said=said)


def _draw_ticks(canvas: Canvas, ticks: Ticks) -> None:
    across = Span(0.5, ticks.until + 0.5, 10.0, canvas.width - 10.0)
    top, foot = 18.0, 78.0
    canvas.box(10, top, canvas.width - 20, foot - top, "ground")
    if ticks.known < ticks.until:
        start = across.at(ticks.known + 0.5)
        canvas.box(start, top, across.end - start, foot - top, "spent", said=t("exhausted after {n:,}", n=ticks.known))
        canvas.words(min(start + 4, canvas.width - 70), top - 5, t("exhausted"), "small")
    if len(ticks.places) > _MAX_SEPARATE_MARKS:
        canvas.path("".join(f"M{across.at(place):.1f} {top}V{foot}" for place in ticks.places), "tick many")
    else:
        for place in ticks.places:
            x = across.at(place)
            canvas.path(f"M{x:.1f} {top}V{foot}", "tick")
            canvas.box(x - 4, top, 8, foot - top, "target", said=t("observation {n:,}: flagged", n=place))
    _axis_below(canvas, across, foot, ticks.across)


def _draw_choices(canvas: Canvas, choices: Choices) -> None:
    top = 4.0
    for number, row in enumerate(choices.rows):
        if len(choices.rows) > 1:
            words = f"{number + 1}. {choices.words[number]}" if choices.words else f"{number + 1}."
            top += canvas.lines(0, top + 14, words, canvas.width, "label") + 8
        for name, labels, chosen in choices.split(row):
            top = _lane(canvas, top, name, list(zip(labels, chosen, strict=True)))
        top += 10
    canvas.height = top


def _lane(canvas: Canvas, top: float, name: str, chips: list[tuple[str, bool]]) -> float:
    """The values of one attribute as chips, in as many lines as they take."""
    left = 0.0 if canvas.is_narrow else 190.0
    if canvas.is_narrow:
        top += canvas.lines(0, top + 14, name, canvas.width, "label") + 2
        start = top
    else:
        start = top
        bottom = top + 8 + canvas.lines(0, top + 18, name, left - 12, "label")
    x = left
    for value, is_in in chips:
        shown = cut_short(value, canvas.width - left - 20)
        wide = width_of(shown) + 18
        if x + wide > canvas.width and x > left:
            x, top = left, top + 32
        if is_in:
            said = t("{attribute} {value}: in the context", attribute=name, value=value)
        else:
            said = t("{attribute} {value}: not in the context", attribute=name, value=value)
        canvas.box(x, top + 1, wide, 25, "chip in" if is_in else "chip out", said=said, more=' rx="5"')
        canvas.words(x + wide / 2, top + 18, shown, "on-chip" if is_in else "off-chip", anchor="middle")
        x += wide + 7
    return max(top + 38, start + 38, 0.0 if canvas.is_narrow else bottom)


def _draw_heat_map(canvas: Canvas, heat: HeatMap) -> None:
    left = 0.0 if canvas.is_narrow else min(0.36 * canvas.width, _BOLD * max(map(width_of, heat.down)) + 12)
    wide = (canvas.width - left) / len(heat.across)
    marks_fit = max((width_of(mark) for row in heat.marks for mark in row), default=0.0) <= wide - 4
    top = _across_labels(canvas, heat, left, wide)
    for name, values, marks in zip(heat.down, heat.values, heat.marks, strict=True):
        if canvas.is_narrow:
            top += canvas.lines(0, top + 15, name, canvas.width, "label") + 4
        else:
            rows = break_lines(name, (left - 8) / _BOLD, most=2)
            for at, row in enumerate(rows, 1):
                middle = top + _CELL / 2 + 4.5 + (at - (len(rows) + 1) / 2) * _SNUG
                canvas.words(left - 8, middle, row, "label", anchor="end")
        for at, (value, mark) in enumerate(zip(values, marks, strict=True)):
            _cell(
                canvas, heat, (left + at * wide, top, wide), (name, heat.across[at]), value, mark if marks_fit else ""
            )
        top += _CELL
    canvas.words(left + (canvas.width - left) / 2, top + 18, heat.names[1], "axis", anchor="middle")
    _shades(canvas, heat, left, top + 32)


def _cell(
    canvas: Canvas,
    heat: HeatMap,
    place: tuple[float, float, float],
    names: tuple[str, str],
    value: float | None,
    mark: str,
) -> None:
    x, y, wide = place
    shown = t("too few records") if value is None else t("{value:.3g}", value=value)
    said = t("{down}, {across}: {value}", down=names[0], across=names[1], value=shown)
    if mark:
        said = t("{cell}, {measure} {mark}", cell=said, measure=label(heat.marked), mark=mark)
    strength = 0.0 if value is None else _PALE + (_STRONG - _PALE) * heat.strength(value)
    kind = "unknown" if value is None else "heat"
    canvas.box(x + 1, y + 1, wide - 2, _CELL - 2, kind, said=said, more=f' fill-opacity="{strength:.2f}"')
    if mark:
        canvas.words(x + wide / 2, y + _CELL / 2 + 4.5, mark, "in-cell", anchor="middle")


def _across_labels(canvas: Canvas, heat: HeatMap, left: float, wide: float) -> float:
    """Labels over the columns: level where they fit, else every few, or slanted where each is a name."""
    longest = max(map(width_of, heat.across))
    if longest <= wide - 2 or all(label[:1].isdigit() for label in heat.across):
        each = max(1, -(-int(longest + 8) // int(max(wide, 1.0))))
        for at, label in enumerate(heat.across):
            if at % each == 0:
                last = at == len(heat.across) - 1 and width_of(label) > wide
                x, side = (canvas.width, "end") if last else (left + (at + 0.5) * wide, "middle")
                canvas.words(x, 14, label, "small", anchor=side)
        return 22.0
    room = min(longest, 130.0)
    high = room * 0.72 + 16
    for at, label in enumerate(heat.across):
        canvas.words(left + (at + 0.5) * wide, high - 6, cut_short(label, room), "small", turn=-45)
    return high


def _shades(canvas: Canvas, heat: HeatMap, left: float, top: float) -> None:
    """What the colours are worth."""
    steps, wide = 6, min(32.0, (canvas.width - left) / 8)
    for step in range(steps):
        strength = _PALE + (_STRONG - _PALE) * step / (steps - 1)
        canvas.box(left + step * wide, top, wide, 12, "heat", more=f' fill-opacity="{strength:.2f}"')
    canvas.words(left, top + 28, t("{value:.2g}", value=heat.least), "small")
    canvas.words(left + steps * wide, top + 28, t("{value:.2g}", value=heat.most), "small", anchor="end")
    above = canvas.lines(left, top + 46, heat.measure, canvas.width - left, "small")
    canvas.height = top + 38 + above


def _frame(
    canvas: Canvas, places: Any, heights: list[float], across_words: str, up_words: str, *, is_log: bool
) -> tuple[Span, Span]:
    """Two axes with their grid."""
    low, high = ends_around(heights)
    ticks = Span(low, high, 0.0, 1.0).ticks(5)
    left = max(width_of(axis_text(tick)) for tick in ticks) + 10
    top, foot = 30.0, 30.0 + _PLOT
    up = Span(low, high, foot, top)
    across = Span(min(places), max(places), left + 8, canvas.width - 14, is_log=is_log and max(places) > min(places))
    canvas.words(0, 14, up_words, "axis")
    for tick in ticks:
        canvas.path(f"M{left} {up.at(tick):.1f}H{canvas.width}", "grid-line")
        canvas.words(left - 6, up.at(tick) + 4, axis_text(tick), "small", anchor="end")
    _axis_below(canvas, across, foot, across_words)
    return across, up


def _axis_below(canvas: Canvas, across: Span, top: float, words: str) -> None:
    """An axis with its ticks and what it is, under what was drawn."""
    most = 4 if canvas.is_narrow else 7
    canvas.path(f"M{across.start:.1f} {top}H{across.end:.1f}", "axis-line")
    for tick in across.ticks(most):
        x = across.at(tick)
        canvas.path(f"M{x:.1f} {top}v5", "axis-line")
        canvas.words(x, top + 19, axis_text(tick), "small", anchor="middle")
    middle = (across.start + across.end) / 2
    room = 2 * min(middle, canvas.width - middle)
    high = canvas.lines(middle, top + 40, words, room, "axis", anchor="middle") if words else 0.0
    canvas.height = top + 26 + high


_RENDERERS: Final[Mapping[type, Callable[[Canvas, Any], None]]] = {
    Band: _draw_band,
    Bars: _draw_bars,
    Choices: _draw_choices,
    Curve: _draw_curve,
    Dot: _draw_dot,
    HeatMap: _draw_heat_map,
    Ranks: _draw_ranks,
    Ticks: _draw_ticks,
}
