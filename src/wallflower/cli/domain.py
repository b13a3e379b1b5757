"""Write a public domain file: from what is said or asked, or from a public code list, never from private records."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from wallflower.cli.options import numbers
from wallflower.cli.show import notice
from wallflower.errors import ParameterError, SourceError
from wallflower.rehearsal import labels_fact, type_labels
from wallflower.schema import Column, Schema

_MAX_CONTEXT_BITS: Final = 60  # with more, no search can visit the contexts


def domain(
    values: Annotated[
        list[str] | None, typer.Option(metavar="NAME=A,B,...", help="a column of labels; years as year=2008..2013")
    ] = None,
    codes: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FILE[:COLUMN]", help="a column of labels, from a public code list: text or .csv"),
    ] = None,
    edges: Annotated[
        list[str] | None, typer.Option(metavar="NAME=1,2,...", help="a column of numbers, cut at public edges")
    ] = None,
    bounds: Annotated[
        list[str] | None, typer.Option(metavar="NAME=LOW,HIGH", help="a column of numbers with public bounds")
    ] = None,
    clip: Annotated[bool, typer.Option("--clip", help="move numbers into their bounds instead of refusing")] = False,
    rows: Annotated[int | None, typer.Option(min=1, help="public bound on the number of records")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="a .toml file; default: stdout")
    ] = None,
) -> None:
    """Write the public domain file of `explain`: which values each column can have, for any records.

    Without options it asks. It never opens private data: what the records happen to hold is not public, what a code
    list, a form or a law says is.
    """
    stated: dict[str, dict[str, Any]] = {}
    for texts, fact in ((values, labels_fact), (codes, _read_codes), (edges, _edges), (bounds, bounds_fact)):
        for text in texts or ():
            name, sign, rest = text.partition("=")
            if not sign or not name.strip():
                raise ParameterError(f"{text[:40]!r} names no column; write it as NAME=...")
            stated.setdefault(name.strip(), {}).update(fact(name.strip(), rest))
    if not stated:
        stated = _ask_columns()
    columns = tuple(Column(name, **facts) for name, facts in stated.items())
    _deliver(Schema(columns=columns, rows=rows, clip=clip).to_toml(), output)
    _say(columns)


def _read_codes(name: str, text: str) -> dict[str, Any]:
    path, _, column = text.partition(":")
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            lines = _column(file, name, column) if path.lower().endswith((".csv", ".tsv")) else list(file)
    except (OSError, UnicodeDecodeError):
        raise SourceError(f"{path}: the code list cannot be read as text. Check the path and the encoding.") from None
    labels = dict.fromkeys(filter(None, (label.strip() for label in lines)))
    return {"categories": type_labels(labels)}


def _column(file: Iterable[str], name: str, column: str) -> list[str]:
    rows = csv.DictReader(file)
    header = list(rows.fieldnames or ())
    wanted = column or (name if name in header else header[0] if header else "")
    if wanted not in header:
        raise ParameterError(f"{wanted!r} is not in the code list; it has {', '.join(header)}. Name one after a colon.")
    return [row[wanted] or "" for row in rows]


def _edges(_: str, text: str) -> dict[str, Any]:
    return {"edges": numbers(text)}


def bounds_fact(name: str, text: str) -> dict[str, Any]:
    """The public bounds in LOW,HIGH."""
    values = numbers(text)
    if len(values) != 2:
        raise ParameterError(f"bounds of {name}: {len(values)} numbers where two are needed; write {name}=LOW,HIGH.")
    return {"low": values[0], "high": values[1]}


def _ask_columns() -> dict[str, dict[str, Any]]:
    if not sys.stdin.isatty():
        raise ParameterError(
            "no column is stated, and there is no terminal to ask. Pass --values, --codes, --edges or --bounds."
        )
    stated: dict[str, dict[str, Any]] = {}
    while name := typer.prompt("Column of the context (empty: no more)", default="", show_default=False).strip():
        stated[name] = _ask_facts(f"Values of {name}: A,B,... or 2008..2013, @FILE for a code list", name, _value)
    metric = typer.prompt("The metric (a column of numbers)").strip()
    stated[metric] = _ask_facts(f"Public bounds of {metric}: LOW,HIGH", metric, bounds_fact)
    return stated


def _value(name: str, text: str) -> dict[str, Any]:
    return _read_codes(name, text[1:]) if text.startswith("@") else labels_fact(name, text)


def _ask_facts(words: str, name: str, read: Callable[[str, str], dict[str, Any]]) -> dict[str, Any]:
    while True:
        try:
            facts = read(name, typer.prompt(words).strip())
            Column(name, **facts)
            return facts
        except (ParameterError, SourceError) as refusal:
            notice(str(refusal))


def _deliver(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(text)
        return
    if output.suffix.lower() != ".toml":
        raise ParameterError(f"{output}: a domain is written as TOML. Let the name end in .toml.")
    output.write_text(text, encoding="utf-8")
    notice(f"wrote {output}")


def _say(columns: Iterable[Column]) -> None:
    bits = sum(len(column.labels or column.edges or (0,)) - (column.edges is None) for column in columns)
    notice(
        f"With all its columns in the context there are 2^{bits} contexts."
        + (" Far too many." if bits > _MAX_CONTEXT_BITS else "")
    )
