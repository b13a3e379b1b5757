"""Contexts: for every attribute a choice of its values, always with the record's own among them.

A context is written as a bit string, one bit per value of every public domain in order; as an integer it is that string
read in base two. The record's own bits are always 1, so an engine counts contexts by the *other* bits alone: striking
out the own bits of "010110" for own values 1 and 0 leaves "0010", which is index 2 of 16.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import DataError, ParameterError
from wallflower.schema import Column

Label = str | int | float | bool
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Space:
    """All contexts that hold one record: the sizes of the domains, and the record's own value in each.

    >>> space = Space((3, 3), (1, 0))
    >>> space.count, space.bits(2), space.index("010110")
    (16, '010110', 2)
    """

    sizes: tuple[int, ...]
    own: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1:
            raise ParameterError(f"domain_sizes: {self.sizes!r} must be whole numbers from 1; name every public value.")
        if len(self.own) != len(self.sizes) or not all(
            0 <= own < size for own, size in zip(self.own, self.sizes, strict=True)
        ):
            raise ParameterError("record: its values must be codes from 0, one per attribute, within the domains.")

    @property
    def free(self) -> tuple[int, ...]:
        """The number of values of every attribute that a context is free to allow."""
        return tuple(size - 1 for size in self.sizes)

    @property
    def length(self) -> int:
        """The number of bits of an index."""
        return sum(self.free)

    @property
    def count(self) -> int:
        """The number of contexts."""
        return 1 << self.length

    def bits(self, index: int) -> str:
        """Return the bit string of an index."""
        if not 0 <= index < self.count:
            raise ParameterError(f"index: {index!r} is outside 0 to {self.count - 1}; count contexts from 0.")
        chosen, text = f"{index:0{self.length}b}" if self.length else "", ""
        for size, own in zip(self.sizes, self.own, strict=True):
            part, chosen = chosen[: size - 1], chosen[size - 1 :]
            text += f"{part[:own]}1{part[own:]}"
        return text

    def index(self, bits: str) -> int:
        """Return the index of a bit string; the own bits must be set."""
        chosen, end = "", 0
        self._require(bits)
        for size, own in zip(self.sizes, self.own, strict=True):
            part, end = bits[end : end + size], end + size
            if part[own] != "1":
                raise ParameterError(f"context: {bits!r} does not hold the record; set the bits of its own values.")
            chosen += part[:own] + part[own + 1 :]
        return int(chosen or "0", 2)

    def widen(self, bits: str) -> str:
        """Return the same context with the record's own values in it.

        >>> Space((3, 3), (1, 0)).widen("001010")
        '011110'
        """
        starts = [sum(self.sizes[:place]) for place in range(len(self.sizes))]
        own = {start + place for start, place in zip(starts, self.own, strict=True)}
        return "".join("1" if place in own else bit for place, bit in enumerate(bits))

    def members(self, codes: Codes, index: int) -> NDArray[np.bool_]:
        """Return which records a context selects, from their codes."""
        chosen = np.array([bit == "1" for bit in self.bits(index)])
        starts = np.concatenate([[0], np.cumsum(self.sizes)])[:-1]
        return np.asarray(chosen[codes + starts].all(axis=1))

    def _require(self, bits: str) -> None:
        if len(bits) != sum(self.sizes) or set(bits) - {"0", "1"}:
            raise ParameterError(f"context: {bits!r} is not {sum(self.sizes)} bits; write one 0 or 1 per public value.")


@dataclass(frozen=True, slots=True)
class Domain:
    """A context attribute and its public values: labels, or the intervals between public edges.

    >>> Domain("year", (2001, 2002)).encode([2002, 2001, 2002]).tolist()
    [1, 0, 1]
    >>> ages = Domain.between("age", (0, 18, 65, 120))
    >>> ages.labels, ages.encode([18, 120, 3.5]).tolist()
    (('[0, 18)', '[18, 65)', '[65, 120]'), [1, 2, 0])
    """

    name: str
    labels: tuple[Label, ...]
    edges: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(_literal(label)[1] for label in self.labels))
        if any(not isinstance(label, (str, int, float)) for label in self.labels):
            raise ParameterError(f"{self.name}: a label is text, a number, True or False; write others as text.")
        if not self.labels or len(set(map(_literal, self.labels))) < len(self.labels):
            raise ParameterError(f"{self.name}: a domain needs at least one label, each named once; list them all.")
        if any(isinstance(label, float) and not isfinite(label) for label in self.labels):
            raise ParameterError(f"{self.name}: a label is not a finite number; drop it, or write it as text.")
        if "\0" in self.name or any(isinstance(label, str) and "\0" in label for label in self.labels):
            raise ParameterError(f"{self.name!r}: names and labels hold no NUL; take it out.")

    @classmethod
    def of(cls, column: Column) -> Domain:
        """Return the public values that a schema states for a column.

        >>> Domain.of(Column("age", edges=(18, 65))).labels
        ('(-∞, 18)', '[18, 65)', '[65, ∞)')
        """
        if column.categories is not None:
            return cls(column.name, column.categories)
        if column.edges is None:
            raise ParameterError(
                f"{column.name}: its public values are not stated; give it categories, or edges, in the domain file."
            )
        low = -inf if column.low is None else column.low
        high = inf if column.high is None else column.high
        return cls.between(column.name, (low, *column.edges, high))

    @property
    def spans(self) -> list[tuple[str, str]]:
        """The two ends of each interval, as in its label."""
        return [(begin, end) for begin, end in (str(label).split(", ") for label in self.labels)]

    @classmethod
    def between(cls, name: str, edges: Sequence[float]) -> Domain:
        """Return intervals from edge to edge: each has its lower edge, and the last one its upper edge too."""
        if len(edges) < 2 or not all(a < b for a, b in pairwise(edges)):
            raise ParameterError(f"{name}: edges must be rising and at least two; pass them in order.")
        texts = [str(edge).removesuffix(".0") for edge in edges]
        labels = [f"[{a}, {b})" for a, b in pairwise(texts)]
        first = f"(-∞, {texts[1]})" if edges[0] == -inf else labels[0]
        last = f"[{texts[-2]}, ∞)" if edges[-1] == inf else f"{labels[-1][:-1]}]"
        shown = [f"{first[:-1]}{last[-1]}"] if len(labels) == 1 else [first, *labels[1:-1], last]
        return cls(name, tuple(shown), tuple(edges))

    def encode(self, column: Iterable[object]) -> Codes:
        """Return the values of a column as places in the domain; refuse a value outside it, and never show it."""
        if self.edges:
            values = np.asarray(list(column), dtype=np.float64)
            if not ((values >= self.edges[0]) & (values <= self.edges[-1])).all():
                raise self._outside_domain()
            return np.searchsorted(self.edges[1:-1], values, side="right").astype(np.int64)
        places = {_literal(label): place for place, label in enumerate(self.labels)}
        try:
            return np.array([places[_literal(value)] for value in column], dtype=np.int64)
        except KeyError:
            raise self._outside_domain() from None

    def _outside_domain(self) -> DataError:
        return DataError(
            f"{self.name} holds a value outside its public domain; widen the domain, or drop such records.",
            column=self.name,
        )


def predicate(domains: Sequence[Domain], bits: str) -> str:
    """Return a context as a sentence: attributes that allow everything are dropped, long lists name the exceptions.

    >>> job, year = Domain("job", ("a", "b", "c")), Domain("year", (2001, 2002))
    >>> predicate([job, year], "11010")
    'job is all but c AND year IN {2001}'
    >>> predicate([job, year], "11111")
    'all records'
    """
    return " AND ".join(_in_words(domain, places) for domain, places in _restrictions(domains, bits)) or "all records"


def where(domains: Sequence[Domain], bits: str) -> str:
    """Return a context as the condition of a WHERE clause in standard SQL.

    >>> where([Domain("job", ("O'Neil", "b", "c")), Domain.between("age", (0, 18, 65))], "10010")
    '"job" IN (\\'O\\'\\'Neil\\') AND ("age" >= 0 AND "age" < 18)'
    >>> where([Domain("job", ("O'Neil", "b", "c"))], "110")
    '"job" NOT IN (\\'c\\')'
    """
    return _join_tests(domains, bits, " AND ", "1 = 1", _sql_labels, _sql_interval, " OR ")


def pandas_filter(domains: Sequence[Domain], bits: str, frame: str = "df") -> str:
    """Return a context as an expression that selects its records from a pandas frame.

    >>> pandas_filter([Domain("job", ("a", "b", "c"))], "110")
    "df[(~df['job'].isin(['c']))]"
    """
    tests = _join_tests(domains, bits, " & ", "", *_frame_tests(f"{frame}[{{}}]", "isin"), " | ")
    return f"{frame}[{tests}]" if tests else frame


def polars_filter(domains: Sequence[Domain], bits: str, frame: str = "df") -> str:
    """Return a context as an expression that selects its records from a polars frame, where `pl` is polars.

    >>> polars_filter([Domain("job", ("a", "b", "c"))], "100")
    "df.filter((pl.col('job').is_in(['a'])))"
    """
    tests = _join_tests(domains, bits, " & ", "", *_frame_tests("pl.col({})", "is_in"), " | ")
    return f"{frame}.filter({tests})" if tests else frame


Labels = Callable[[str, list[Label], bool], str]  # a name, labels, and whether these are the exceptions
Interval = Callable[[str, float, float, bool], str]


def _join_tests(
    domains: Sequence[Domain],
    bits: str,
    conjunction: str,
    everything: str,
    labels: Labels,
    interval: Interval,
    either: str,
) -> str:
    tests = []
    for domain, places in _restrictions(domains, bits):
        if domain.edges:
            last = len(domain.labels) - 1
            ends = [(domain.edges[at], domain.edges[until + 1], until == last) for at, until in _runs(places)]
            tests.append(f"({either.join(interval(domain.name, *end) for end in ends)})")
        else:
            named, others = _shorter(domain, places)
            tests.append(labels(domain.name, [domain.labels[at] for at in named], others))
    return conjunction.join(tests) or everything


def _in_words(domain: Domain, places: list[int]) -> str:
    if domain.edges:
        spans = (f"{domain.spans[at][0]}, {domain.spans[until][1]}" for at, until in _runs(places))
        return f"{domain.name} IN {{{', '.join(spans)}}}"
    named, others = _shorter(domain, places)
    listed = ", ".join(_plain(domain.labels[place]) for place in named)
    return f"{domain.name} is all but {listed}" if others else f"{domain.name} IN {{{listed}}}"


def _shorter(domain: Domain, places: list[int]) -> tuple[list[int], bool]:
    """Return the values to name, and whether they are the exceptions, as they are where more than half are allowed."""
    others = 2 * len(places) > len(domain.labels)
    return [at for at in range(len(domain.labels)) if at not in places] if others else places, others


def _runs(places: list[int]) -> list[tuple[int, int]]:
    """Return the first and the last of each run of consecutive places.

    >>> _runs([0, 1, 2, 5, 7, 8])
    [(0, 2), (5, 5), (7, 8)]
    """
    firsts = [at for at in places if at - 1 not in places]
    return list(zip(firsts, [at for at in places if at + 1 not in places], strict=True))


def _restrictions(domains: Sequence[Domain], bits: str) -> list[tuple[Domain, list[int]]]:
    """Return the attributes that a context restricts, and the places of the values it allows."""
    sizes = [len(domain.labels) for domain in domains]
    if len(bits) != sum(sizes) or set(bits) - {"0", "1"}:
        raise ParameterError(f"context: {bits!r} is not {sum(sizes)} bits; write one 0 or 1 per public value.")
    restrictions, end = [], 0
    for domain, size in zip(domains, sizes, strict=True):
        places, end = [at for at in range(size) if bits[end + at] == "1"], end + size
        if not places:
            raise ParameterError(f"context: {bits!r} allows no {domain.name}; set at least one bit of every attribute.")
        if len(places) < size:
            restrictions.append((domain, places))
    return restrictions


def _sql_labels(name: str, labels: list[Label], others: bool) -> str:
    return f"{_sql_name(name)} {'NOT ' if others else ''}IN ({', '.join(map(_sql_literal, labels))})"


def _sql_interval(name: str, low: float, high: float, closed: bool) -> str:
    return _span(_sql_name(name), low, high, closed, "{}", " AND ")


def _sql_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sql_literal(label: Label) -> str:
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    return "'" + label.replace("'", "''") + "'" if isinstance(label, str) else repr(label)


def _frame_tests(column: str, among: str) -> tuple[Labels, Interval]:
    def labels(name: str, chosen: list[Label], others: bool) -> str:
        return f"({'~' if others else ''}{column.format(repr(name))}.{among}({chosen!r}))"

    def interval(name: str, low: float, high: float, closed: bool) -> str:
        return _span(column.format(repr(name)), low, high, closed, "({})", " & ")

    return labels, interval


def _span(at: str, low: float, high: float, closed: bool, wrap: str, conjunction: str) -> str:
    """Return a test for values between two edges; an edge at infinity needs none."""
    above = [] if low == -inf else [f"{at} >= {low!r}"]
    below = [] if high == inf else [f"{at} {'<=' if closed else '<'} {high!r}"]
    return conjunction.join(wrap.format(test) for test in above + below)


def _plain(label: Label) -> str:
    """Return a label as it is, or in quotes where it could be misread."""
    text = str(label)
    clear = text and text == text.strip() and text.isprintable() and not set(text) & set('{}"')
    return text if clear and (", " not in text or text[0] in "[(") else json.dumps(text, ensure_ascii=False)


def _literal(value: object) -> tuple[bool, object]:
    """Return what two labels are compared by: text and truth values are never numbers."""
    plain = value.item() if isinstance(value, np.generic) else value
    return isinstance(plain, bool), plain
