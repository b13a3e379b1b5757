"""What a page shows of a release: its picture, its numbers and its plan, computed once for each language.

A release never changes, so neither do its pictures; `Displays` keeps the latest of them.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import Any, Final, Literal, TypeVar

from markupsafe import Markup

from wallflower.drawing import svg
from wallflower.drawing.canvas import cell_text
from wallflower.drawing.charts import Mark, plan_chart
from wallflower.drawing.picture import Dot, Sheet
from wallflower.machine.heavy import matplotlib as _matplotlib
from wallflower.query import Plan
from wallflower.release import Release
from wallflower.release.text import as_words, readable, rows_of, symbol
from wallflower.report.plots import figure, picture_of, plan_of
from wallflower.service.pages.language import Catalogue
from wallflower.text import Message, join, label, t

Format = Literal["svg", "png", "pdf"]
T = TypeVar("T")

MEDIA_TYPES: Final[dict[Format, str]] = {"svg": "image/svg+xml", "png": "image/png", "pdf": "application/pdf"}
# Widths of a figure for a paper, as an address names them: one, one and a half, and two columns of a journal.
WIDTHS_CM: Final[Mapping[str, float]] = {"8.5": 8.5, "12": 12.0, "17": 17.0}
_CM_PER_INCH: Final = 2.54
NARROW_PIXELS: Final = 340.0
_MAX_DISPLAYS: Final = 256  # of some tens of kilobytes each
_MAX_FILES: Final = 64
_DOTS_PER_INCH: Final = 300
_MAX_BRIEF_LETTERS: Final = 100
_MAX_ROWS: Final = 1000  # on a page; a program gets all
_MAX_TITLE_LETTERS: Final = 400
_MATPLOTLIB_LOCK: Final = Lock()  # matplotlib's settings belong to the whole process


@dataclass(frozen=True, slots=True)
class Numbers:
    """Rows under headings, as they are shown."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """A release as it is shown: its picture for wide and narrow windows, its numbers, and the accuracy expected."""

    drawing: Markup | None
    legend: Message
    numbers: Numbers | None
    plan: Plan | None
    rows: list[tuple[str, ...]]
    curve: Markup | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a picture is written to a file.

    form        the format
    width_cm    a width of `WIDTHS_CM`; None: by the picture
    with_curve  also draw what each ε would have given, as a second panel
    """

    form: Format
    width_cm: float | None = None
    with_curve: bool = False


class Displays:
    """Displays and files of releases, by the entry of the ledger, the language and the versions that made them."""

    def __init__(self, version: str) -> None:
        self._version, self._lock = version, Lock()
        self._displays: OrderedDict[tuple[Any, ...], Display] = OrderedDict()
        self._files: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()

    def of(self, release: Release[Any], catalogue: Catalogue) -> Display:
        """Return what is shown of a release in a language."""
        key = (*self._key(release), catalogue.code)
        return self._find_or_make(self._displays, key, lambda: _display(release, catalogue), _MAX_DISPLAYS)

    def file(self, release: Release[Any], layout: Layout) -> bytes:
        """Return the picture as a file for a report or a slide: on white, with its title."""
        key = (*self._key(release), layout)
        return self._find_or_make(self._files, key, lambda: _file(release, layout), _MAX_FILES)

    def _key(self, release: Release[Any]) -> tuple[Any, ...]:
        return release.ledger_id, release.label, release.version, self._version

    def _find_or_make(
        self, cache: OrderedDict[tuple[Any, ...], T], key: tuple[Any, ...], make: Callable[[], T], max_size: int
    ) -> T:
        with self._lock:
            if key in cache:
                cache.move_to_end(key)
                return cache[key]
        value = make()
        with self._lock:
            cache[key] = value
            while len(cache) > max_size:
                cache.popitem(last=False)
        return value


def plan_curve(plan: Plan, catalogue: Catalogue, marks: Sequence[tuple[float, Message]] = ()) -> Markup | None:
    """Return the curve of a plan as SVG; None where it has none."""
    letter = symbol(plan.cost)
    chart = plan_chart(
        plan.curve,
        measure=plan.measure,
        scale=plan.scale,
        symbol=letter,
        at=float(plan.cost.amount),
        marks=tuple(Mark(amount, text) for amount, text in marks),
    )
    if chart is None:
        return None
    said = t("{measure} against {symbol}", measure=label(plan.measure), symbol=letter)
    values = [t("{mark} {symbol} = {amount:.3g}", mark=text, symbol=letter, amount=amount) for amount, text in marks]
    return as_markup(chart.to_svg(join("; ", [said, *values]), catalogue.translate))


def as_markup(drawing: str) -> Markup:
    """Return SVG of ours for a template: every text in it was escaped when it was drawn."""
    return Markup(drawing)  # noqa: S704


def sheet_numbers(sheet: Sheet) -> Numbers:
    """Return the table of a picture.

    >>> sheet_numbers(Sheet(("radius", "outliers"), ((0.25, 1200), (2.375, None))))
    Numbers(headings=('radius', 'outliers'), rows=(('0.25', '1,200'), ('2.375', '')))
    """
    return Numbers(sheet.headings, tuple(tuple(map(cell_text, row)) for row in sheet.rows[:_MAX_ROWS]))


def _display(release: Release[Any], catalogue: Catalogue) -> Display:
    picture, plan = picture_of(release), plan_of(release)
    if isinstance(picture, Dot) and picture.interval is None:
        picture = None  # a number alone is at the head of the page
    said = join(" ", (label(release.question), release.summary[:_MAX_TITLE_LETTERS]))
    drawing = ""
    if picture is not None:
        drawing = svg.draw(picture, said, kind="on-wide", translate=catalogue.translate)
        drawing += svg.draw(picture, said, width=NARROW_PIXELS, kind="on-narrow", translate=catalogue.translate)
    return Display(
        drawing=as_markup(drawing) if drawing else None,
        legend=label("") if picture is None else svg.legend(picture),
        numbers=numbers_of(release.value) if picture is None else sheet_numbers(picture.table()),
        plan=plan,
        rows=[] if plan is None else list(rows_of(plan)),
        curve=None if plan is None else plan_curve(plan, catalogue),
    )


def _file(release: Release[Any], layout: Layout) -> bytes:
    target, form = io.BytesIO(), layout.form
    width = None if layout.width_cm is None else layout.width_cm / _CM_PER_INCH
    undated: dict[Format, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    with _MATPLOTLIB_LOCK, _matplotlib.rc_context({"text.parse_math": False}):  # names may hold a dollar sign
        drawn = figure(release, with_curve=layout.with_curve, width_inches=width)
        metadata = {"Title": release.question} | undated[form]
        drawn.savefig(target, format=form, dpi=_DOTS_PER_INCH, facecolor="white", metadata=metadata)
    return target.getvalue()


def is_brief(value: Any) -> bool:
    """Return whether a value is short enough for the head of its page.

    >>> is_brief(14), is_brief({"scale": {"age": 13.1}})
    (True, False)
    """
    parts = value if isinstance(value, list) else [value]
    return not any(isinstance(part, Mapping) for part in parts) and len(readable(value)) <= _MAX_BRIEF_LETTERS


def numbers_of(value: Any) -> Numbers | None:
    """Return the table of a value, with the columns that distinguish rows first; None where it has none.

    >>> numbers_of({"key": "0a", "scale": {"age": 13.1}})
    Numbers(headings=('', 'scale'), rows=(('age', '13.1'),))
    >>> numbers_of({"outliers": [7, 3], "radii": [1, 2]})
    Numbers(headings=('radii', 'outliers'), rows=(('1', '7'), ('2', '3')))
    >>> numbers_of({"columns": ["age"], "centre": [[7, 3]]})
    Numbers(headings=('', 'centre age'), rows=(('1', '7'), ('2', '3')))
    """
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        return _table({name: [one.get(name) for one in value] for name in value[0]})
    if not isinstance(value, Mapping):
        return None
    for name, part in value.items():
        if isinstance(part, Mapping):
            return _table({"": list(part), name: list(part.values())})
    lists = dict(_lists(value))
    longest = max(map(len, lists.values()), default=0)
    return _table({name: part for name, part in lists.items() if len(part) == longest}) if longest else None


def _lists(value: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Return every list of plain values, also those within lists: named after the column that they belong to."""
    columns = value.get("columns", ())
    for name, part in value.items():
        if not isinstance(part, list) or not part:
            continue
        if isinstance(part[0], list):
            for place, inner in enumerate(part):
                yield f"{name} {columns[place] if place < len(columns) else place + 1}", inner
        elif part is not columns:
            yield name, part


def _table(lists: Mapping[str, Sequence[Any]]) -> Numbers:
    """Put lists side by side, those that distinguish rows first; where none does, rows are numbered."""
    keys = {name: part for name, part in lists.items() if _is_key(part)}
    rest = {name: part for name, part in lists.items() if name not in keys}
    count = len(next(iter(lists.values())))
    shown = (keys or {"": range(1, count + 1)}) | rest
    rows = zip(*shown.values(), strict=True)
    return Numbers(
        tuple(map(as_words, shown)),
        tuple(tuple(map(readable, row)) for _, row in zip(range(_MAX_ROWS), rows, strict=False)),
    )


def _is_key(part: Sequence[Any]) -> bool:
    is_text = any(isinstance(one, str) for one in part)
    return is_text or (all(isinstance(one, int | float) for one in part) and all(a < b for a, b in pairwise(part)))
