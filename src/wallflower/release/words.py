"""Numbers, losses and plans in words for a reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wallflower.privacy import Kind, Loss
from wallflower.query import Plan

_MANY, _FIRST = 24, 12  # a longer list is read by its beginning


def readable(value: object) -> str:
    """A value as a reader wants it: numbers rounded, names that belong together joined by ×.

    >>> readable(1234.5678), readable(0.01234), readable(14)
    ('1,234.6', '0.0123', '14')
    >>> readable([1, 2]), readable([["age"], ["age", "hours"]])
    ('1, 2', 'age; age × hours')
    >>> readable([{"columns": ["age", "hours"], "outliers": 14}])
    'columns age × hours, outliers 14'
    >>> readable([{"context": "job is all but dean", "bits": "0111"}])
    'job is all but dean'
    >>> readable(list(range(1000)))[-21:]
    ' 11, … (1,000 in all)'
    >>> readable({"times": [f"{hour}:00" for hour in range(1000)]})[-25:]
    ', 11:00, … (1,000 in all)'
    """
    match value:
        case bool() | None:
            return {True: "yes", False: "no", None: "not proved"}[value]
        case float():
            return _round(value)
        case int():
            return f"{value:,}"
        case {"context": str() as context}:
            return context  # its bits are for programs
        case Mapping():
            return ", ".join(f"{as_words(name)} {_part(item)}" for name, item in value.items()) or "none"
        case list() | tuple():
            between = "; " if any(isinstance(item, list | tuple | Mapping) for item in value) else ", "
            more = f"{between}… ({len(value):,} in all)" if len(value) > _MANY else ""
            return between.join(map(_part, value[: _FIRST if more else None])) + more or "none"
        case _:
            return str(value)


def as_words(name: str) -> str:
    """A name from a program, as words."""
    return name.replace("_", " ")


def rough(value: float) -> str:
    """A number to three digits.

    >>> rough(3.9512), rough(12.0), rough(1099.4)
    ('3.95', '12', '1,100')
    """
    return f"{float(f'{value:.3g}'):,g}"


def rows_of(plan: Plan) -> Iterator[tuple[str, ...]]:
    """The options of a plan in words: mechanism, a figure for each heading (empty if it has none), note."""
    for option in plan.options:
        name = f"{option.mechanism} (chosen)" if option.mechanism == plan.chosen else option.mechanism
        figures = (rough(option.figures[key]) if key in option.figures else "" for key in plan.headings)
        yield name, *figures, option.note


def symbol(loss: Loss) -> str:
    """The letter a loss is written with."""
    return "ρ" if loss.kind is Kind.ZCDP else "ε"


def _part(item: object) -> str:
    """An item of something larger, where names in a list are one thing, such as a set of columns."""
    if isinstance(item, list | tuple) and item and all(isinstance(name, str) for name in item):
        return " × ".join(item) if len(item) <= _MANY else readable(item)
    return readable(item)


def _round(value: float) -> str:
    if value.is_integer() and abs(value) < 2**53:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1 else f"{value:.3g}"
