"""How a released value is drawn: one vocabulary for every surface.

A question says what is seen (`Query.picture`); `report` draws it for files and notebooks, the pages of the service for
browsers. `table` tells each picture in numbers: what is under a picture is what is in it.
"""

from __future__ import annotations

from dataclasses import dataclass

Cell = str | float | int | None


@dataclass(frozen=True, slots=True)
class Sheet:
    """What a picture shows, as rows under headings."""

    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """A released value as bars, the first on top: `across` names their scale, if any, `marks` stand at their ends."""

    labels: tuple[str, ...]
    lengths: tuple[float, ...]
    intervals: tuple[tuple[float, float], ...] | None = None
    across: str
    marks: tuple[str, ...]

    def table(self) -> Sheet:
        ends = self.intervals or ((None, None),) * len(self.labels)
        bars = zip(self.labels, self.lengths, ends, self.marks, strict=True)
        whole: list[tuple[Cell, ...]] = [(label, length, *whisker, mark) for label, length, whisker, mark in bars]
        if self.intervals is not None:
            return Sheet(("name", self.across, "95 % from", "to", "in words"), tuple(whole))
        return Sheet(("name", self.across or "length", "in words"), tuple((*row[:2], row[-1]) for row in whole))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A released number on a line, with what `covers` names around it; `across` names the line."""

    value: float
    interval: tuple[float, float] | None = None
    across: str
    covers: str = ""

    def table(self) -> Sheet:
        if self.interval is None:
            return Sheet((self.across,), ((self.value,),))
        return Sheet((self.across, f"{self.covers.rstrip(':')}, from", "to"), ((self.value, *self.interval),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """Released names in their order, the first on top: only the order was released, and no length stands for it."""

    labels: tuple[str, ...]
    among: str

    def table(self) -> Sheet:
        return Sheet(("place", self.among), tuple(enumerate(self.labels, start=1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Released numbers that share no scale, such as widths in units of their own: read, and not compared by length."""

    labels: tuple[str, ...]
    headings: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]

    def table(self) -> Sheet:
        rows = zip(self.labels, self.values, strict=True)
        return Sheet(("name", *self.headings), tuple((label, *values) for label, values in rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticks:
    """A released value as places on a line from 1 to `until`, of which nothing beyond `known` was looked at."""

    places: tuple[int, ...]
    known: int
    until: int
    across: str

    def table(self) -> Sheet:
        return Sheet(("marked",), tuple((place,) for place in self.places))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Released values as choices: `groups` are (name, labels), and each of `rows` says which of all labels it has;
    `words` tells each of them."""

    groups: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[tuple[bool, ...], ...]
    words: tuple[str, ...] = ()

    def table(self) -> Sheet:
        found: list[tuple[Cell, ...]] = []
        for number, row in enumerate(self.rows, start=1):
            for name, labels, chosen in self.split(row):
                inside = (label for label, is_in in zip(labels, chosen, strict=True) if is_in)
                outside = (label for label, is_in in zip(labels, chosen, strict=True) if not is_in)
                found.append((number, name, ", ".join(inside) or "none", ", ".join(outside) or "none"))
        return Sheet(("no.", "attribute", "in", "not in"), tuple(found))

    def split(self, row: tuple[bool, ...]) -> list[tuple[str, tuple[str, ...], tuple[bool, ...]]]:
        """One of the rows, group by group: name, labels, and which of them it has."""
        found, at = [], 0
        for name, labels in self.groups:
            found.append((name, labels, row[at : at + len(labels)]))
            at += len(labels)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """Released numbers by two attributes: `values` row by row, None where nothing can be told; `marks` are written
    into the cells and are what `marked` says, `names` says what goes down and across, `measure` what the colour is.
    The palest colour is the `least` value."""

    down: tuple[str, ...]
    across: tuple[str, ...]
    names: tuple[str, str]
    values: tuple[tuple[float | None, ...], ...]
    marks: tuple[tuple[str, ...], ...]
    measure: str
    marked: str = "in the cell"
    least: float = 0.0

    def table(self) -> Sheet:
        rows = tuple(
            (label, other, mark, value)
            for label, values, marks in zip(self.down, self.values, self.marks, strict=True)
            for other, value, mark in zip(self.across, values, marks, strict=True)
        )
        if not any(mark for marks in self.marks for mark in marks):
            return Sheet((*self.names, self.measure), tuple((down, across, value) for down, across, _, value in rows))
        return Sheet((*self.names, self.marked, self.measure), rows)

    @property
    def most(self) -> float:
        """The value of the strongest colour."""
        return max((value for row in self.values for value in row if value is not None), default=self.least)

    def strength(self, value: float) -> float:
        """How strong a colour is, from 0 to 1."""
        return min(1.0, max(0.0, (value - self.least) / (self.most - self.least))) if self.most > self.least else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Released values along a scale from 1 on, as a line between two others, which `covers` names; `marks` are places
    to be marked."""

    middle: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    across: str
    up: str
    marks: tuple[int, ...] = ()
    covers: str = "usual"

    def table(self) -> Sheet:
        places = zip(self.middle, self.low, self.high, strict=True)
        rows = tuple((at, *values, "marked" if at in self.marks else "") for at, values in enumerate(places, start=1))
        headings = (self.across, self.up, f"{self.covers} from", "to", "marked")
        return Sheet(headings, rows) if self.marks else Sheet(headings[:-1], tuple(row[:-1] for row in rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A released value as a curve over places on a log scale; `lows` and `highs` are its band, which `covers` names."""

    places: tuple[float, ...]
    heights: tuple[float, ...]
    lows: tuple[float, ...] = ()
    highs: tuple[float, ...] = ()
    across: str
    up: str
    covers: str = ""
    bend: float | None = None

    def table(self) -> Sheet:
        if not self.lows:
            return Sheet((self.across, self.up), tuple(zip(self.places, self.heights, strict=True)))
        rows = tuple(zip(self.places, self.heights, self.lows, self.highs, strict=True))
        return Sheet((self.across, self.up, "band from", "to"), rows)


Picture = Band | Bars | Choices | Curve | Dot | Figures | HeatMap | Ranks | Ticks
