"""What a steward needs to register a data set from afar: which sources there are, what their columns are called, and
what answers would look like on made-up records.

Sources lie under the roots of the settings, and nothing of a record is told: only names of files, names of columns and
their types.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final

from wallflower.curator.desk.desk import Desk
from wallflower.curator.desk.problems import Refusal
from wallflower.data import survey
from wallflower.data.sources import is_readable
from wallflower.ledger import Ledger
from wallflower.rehearsal import PLENTY, Draft, Trial, make_up, try_question
from wallflower.schema import Schema

RECORDS: Final = 1000  # in a rehearsal
MOST_COLUMNS: Final = 150
_MOST_SOURCES: Final = 500
_DEEPEST: Final = 4  # folders below a root
_NUMBERS: Final = ("number", "integer")
_REHEARSING: Final = Lock()  # it takes seconds and all of a core, so one at a time


def sources(desk: Desk) -> list[str]:
    """Files under the roots that can be read, relative to their roots and in order, up to some hundreds."""
    found: list[str] = []
    for root in desk.shelf.roots:
        for name in _below(root, root, _DEEPEST):
            if len(found) >= _MOST_SOURCES:
                return sorted(set(found))
            found.append(name)
    return sorted(set(found))


def draft_source(desk: Desk, name: str, source: str) -> Draft:
    """The names and types of the columns of a source. How many records it has is not told: it may be what is hidden."""
    told = survey(desk.shelf.place_of(source))
    if len(told["columns"]) > MOST_COLUMNS:
        raise Refusal(
            "too-large",
            f"{source}: it has more than {MOST_COLUMNS} columns, which is more than a form can hold. Write its schema "
            "with `wallflower init` and register it over HTTP.",
        )
    types = {column["name"]: _kind(column["type"], is_stated=told["declared"]) for column in told["columns"]}
    return Draft(name, None, told["declared"], types)


def rehearse(desk: Desk, schema: Schema) -> list[Trial]:
    """Every question on made-up records, with a ledger that is thrown away; no source is opened."""
    table = make_up(schema, RECORDS)
    with _REHEARSING, tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder) / "rehearsal.db") as ledger:
        ledger.grant(table.name, PLENTY, by="rehearsal", reason="made-up records")
        return [try_question(question, table, ledger, {}) for question in desk.questions]


def _kind(told: str, *, is_stated: bool) -> str:
    """What a column is offered as. That cells happen to be whole is a fact about records, and a schema is public."""
    if told in _NUMBERS:
        return told if is_stated else "number"
    return "date" if told in ("date", "time of day") else "text"


def _below(root: Path, folder: Path, depth: int) -> Iterator[str]:
    """What lies in a folder; hidden files and links that lead out of the root are passed over."""
    for entry in sorted(_entries(folder), key=lambda one: one.name):
        place = Path(entry.path)
        if entry.name.startswith(".") or not place.resolve().is_relative_to(root):
            continue
        if entry.is_file() and is_readable(place):
            yield str(place.relative_to(root))
        elif entry.is_dir() and depth:
            if any(place.glob("*.parquet")):
                yield str(place.relative_to(root))
            else:
                yield from _below(root, place, depth - 1)


def _entries(folder: Path) -> Sequence[os.DirEntry[Any]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return ()
