"""What a table offers for the fields of a question, by its schema: columns, records, categories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from wallflower.errors import ParameterError
from wallflower.query.forms import Blank
from wallflower.schema import Column, Schema
from wallflower.schema.columns import join_list, list_names, split_list


@dataclass(frozen=True, slots=True)
class Choice:
    """What may be chosen in a field, as it is sent and as it is shown."""

    value: str
    words: str
    chosen: bool = False
    group: str = ""


def columns_for(blank: Blank, schema: Schema) -> tuple[Column, ...]:
    """The columns that a field may name."""
    known = schema.columns or ()
    match blank.names:
        case "numbers":
            return tuple(column for column in known if column.name in schema.numbers)
        case "measured":
            return tuple(column for column in known if column.name in schema.distance_columns)
        case "groups":
            return tuple(column for column in known if column.labels or column.name in schema.numbers)
        case "labels" | "times" | "identifiers":
            kind = {"labels": "category", "times": "time", "identifiers": "identifier"}[blank.names]
            return tuple(column for column in known if column.kind == kind)
        case _:
            return ()


def offers_for(blank: Blank, schema: Schema, records: Sequence[str]) -> tuple[Choice, ...]:
    """What of a table can be chosen in a field."""
    if blank.names == "record":
        return tuple(Choice(record, record) for record in records)
    if blank.names == "context":
        return tuple(
            Choice(join_list([f"{column.name}={bin_}"]), bin_, group=column.name)
            for column in schema.columns or ()
            for bin_ in bins_of(column)
        )
    found = columns_for(blank, schema)
    if blank.names == "groups":
        found = tuple(column for column in found if bins_of(column))
        return tuple(Choice(join_list([c.name]), f"{c.name}: {list_names(bins_of(c))}") for c in found)
    return tuple(Choice(join_list([column.name]), _title(column)) for column in found)


def bins_of(column: Column) -> tuple[str, ...]:
    """The public groups of a column: its labels, or the bins between its edges.

    >>> bins_of(Column("age", edges=(18, 65)))
    ('below 18', '18 to 65', 'from 65')
    """
    edges = [f"{edge:g}" for edge in column.edges or ()]
    if not edges:
        return column.labels
    return (f"below {edges[0]}", *(f"{low} to {high}" for low, high in pairwise(edges)), f"from {edges[-1]}")


def bits_of(ticked: str, domain: Schema, context: Sequence[str]) -> str:
    """The context that was ticked, as the question takes it: a bit for every group of every column in order."""
    if not set(ticked) - {"0", "1"}:
        return ticked
    chosen = set(split_list(ticked))
    columns = {column.name: column for column in domain.columns or ()}
    known = [f"{name}={bin_}" for name in context if name in columns for bin_ in bins_of(columns[name])]
    strange = sorted(chosen - set(known))
    if strange:
        raise ParameterError(
            f"{list_names(strange)} is of no column of the context. Tick that column, or leave it out."
        )
    return "".join("1" if one in chosen else "0" for one in known)


def cut(schema: Schema, text: str) -> Schema:
    """The schema with columns of numbers cut as `age: 18, 65; weight: 80` says; text of no such form is refused."""
    numbers = {column.name for column in schema.columns or () if column.name in schema.numbers}
    edges: dict[str, tuple[float, ...]] = {}
    for part in split_list(text, ";"):
        name, mark, cuts = part.rpartition(":")
        if not mark or name.strip() not in numbers:
            raise ParameterError(
                f"{part[:60]!r} does not name a column of numbers. Write its name and the cuts, as in age: 18, 65."
            )
        edges[name.strip()] = _edges(cuts)
    columns = (replace(c, edges=edges[c.name]) if c.name in edges else c for c in schema.columns or ())
    return replace(schema, columns=tuple(columns))


def cut_names(text: str) -> list[str]:
    """The columns that a text cuts."""
    return [part.rpartition(":")[0].strip() for part in split_list(text, ";")]


def _edges(cuts: str) -> tuple[float, ...]:
    try:
        found = tuple(map(float, split_list(cuts)))
    except ValueError:
        raise ParameterError(
            f"{cuts.strip()[:40]!r} are not numbers. Write where it is cut, as in age: 18, 65."
        ) from None
    if not found or list(found) != sorted(set(found)):
        raise ParameterError("places where a column is cut rise, and there is one at least. Write the smallest first.")
    return found


def _title(column: Column) -> str:
    return f"{column.name} ({column.measure})" if column.measure else column.name


def tick(choices: Iterable[Choice], chosen: set[str]) -> tuple[Choice, ...]:
    """The choices, with those of these values ticked."""
    return tuple(replace(choice, chosen=choice.value in chosen) for choice in choices)
