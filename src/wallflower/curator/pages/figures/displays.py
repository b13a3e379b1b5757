"""What a page shows of a release, worked out once: a release never changes, so neither do its pictures and its plan."""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from markupsafe import Markup

from wallflower.curator.pages.figures import charts
from wallflower.curator.pages.figures.numbers import Numbers, numbers_of, words_of
from wallflower.curator.pages.figures.pictures import Sketch, draw, legend
from wallflower.machine.lazy import Lazy
from wallflower.query import Plan
from wallflower.query.picture import Dot
from wallflower.release import Release
from wallflower.release.words import rows_of
from wallflower.report.drawing import figure, picture_of, plan_of

if TYPE_CHECKING:
    import matplotlib as _matplotlib
else:
    _matplotlib = Lazy("matplotlib")

Format = Literal["svg", "png"]
Made = TypeVar("Made")

MEDIA: Final[dict[Format, str]] = {"svg": "image/svg+xml", "png": "image/png"}
_MOST: Final = 256  # displays, of some tens of kilobytes each
_MOST_FILES: Final = 64
_DOTS: Final = 160  # an inch
_DRAWING: Final = Lock()  # matplotlib's settings belong to the whole process


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """A release as it is shown: its picture, the same in numbers, and what was to be expected."""

    drawn: Sketch | None
    legend: str
    numbers: Numbers | None
    plan: Plan | None
    rows: list[tuple[str, ...]]
    curve: Markup | None


class Displays:
    """Displays and files of releases, by the entry of the ledger and the versions that made and draw it."""

    def __init__(self, version: str) -> None:
        self._version, self._lock = version, Lock()
        self._displays: OrderedDict[tuple[Any, ...], Display] = OrderedDict()
        self._files: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()

    def of(self, made: Release[Any]) -> Display:
        """What is shown of a release."""
        return self._find_or_make(self._displays, self._key(made), lambda: _display(made), _MOST)

    def file(self, made: Release[Any], form: Format) -> bytes:
        """Its picture as a file, for a report or a slide: on white, with its title and what it is about."""
        return self._find_or_make(self._files, (*self._key(made), form), lambda: _file(made, form), _MOST_FILES)

    def _key(self, made: Release[Any]) -> tuple[Any, ...]:
        return made.ledger_id, made.label, made.version, self._version

    def _find_or_make(
        self, shelf: OrderedDict[tuple[Any, ...], Made], key: tuple[Any, ...], make: Callable[[], Made], most: int
    ) -> Made:
        with self._lock:
            if key in shelf:
                shelf.move_to_end(key)
                return shelf[key]
        found = make()
        with self._lock:
            shelf[key] = found
            while len(shelf) > most:
                shelf.popitem(last=False)
        return found


def _display(made: Release[Any]) -> Display:
    pictured, plan = picture_of(made), plan_of(made)
    if isinstance(pictured, Dot) and pictured.interval is None:
        pictured = None  # a number alone is read at the head of the page
    sheet = None if pictured is None else pictured.table()
    return Display(
        drawn=None if pictured is None else draw(pictured, f"{made.question} {made.said}"[:400]),
        legend="" if pictured is None else legend(pictured),
        numbers=numbers_of(made.value) if sheet is None else words_of(sheet),
        plan=plan,
        rows=[] if plan is None else list(rows_of(plan)),
        curve=None if plan is None else charts.curve(plan),
    )


def _file(made: Release[Any], form: Format) -> bytes:
    target = io.BytesIO()
    with _DRAWING, _matplotlib.rc_context({"text.parse_math": False}):  # names may hold a dollar sign
        drawn = figure(made)
        told = {"Title": made.question} | ({"Date": None} if form == "svg" else {})
        drawn.savefig(target, format=form, dpi=_DOTS, facecolor="white", metadata=told)
    return target.getvalue()
