"""The data sets of the service: registered by the steward, read once, kept until the service ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, RLock
from typing import Any

from wallflower.curator.desk.problems import Refusal
from wallflower.curator.desk.records import DATASETS, Records
from wallflower.curator.settings import Registration, state_account
from wallflower.data import Table, TiledTable, describe
from wallflower.data.scans import load_into
from wallflower.errors import DataError, ParameterError, PrivacyError
from wallflower.names import account_name, require_account_name
from wallflower.schema import Schema
from wallflower.schema.columns import pick


@dataclass(frozen=True, slots=True)
class Stream:
    """The public facts of a data set, but for how many records it has. An `n` of 0: nobody knows how many observations
    there will be."""

    schema: Schema
    n: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        return self.schema.numbers

    @property
    def dimension(self) -> int:
        return len(self.columns)


class Shelf:
    """What may be asked about. Sources of files lie under one of `roots`, wherever links in them lead."""

    def __init__(self, datasets: Iterable[Registration], roots: Iterable[str], records: Records) -> None:
        self._stated = {account_name(dataset.name) or dataset.name: dataset for dataset in datasets}
        self.roots = tuple(Path(root).resolve() for root in roots)
        self._records = records
        self._tables: dict[str, Table | TiledTable] = {}
        self._guard = Lock()
        self._turns: dict[str, RLock] = {}

    def load(self) -> None:
        """Read every table that the settings name."""
        for dataset in self._stated.values():
            if dataset.source is not None:
                self._read_once(dataset)

    def names(self) -> list[str]:
        """What is registered, in order of its names."""
        stated = (dataset.name for dataset in self._stated.values())
        return sorted({*stated, *(row["id"] for row in self._records.all(DATASETS))})

    def find(self, name: str) -> Registration:
        """The data set of this name, however it is spelt."""
        spelt = account_name(name) or name
        if spelt in self._stated:
            return self._stated[spelt]
        row = self._records.find(DATASETS, name) or self._records.find(DATASETS, spelt)
        if row is None:
            raise Refusal("not-found", "There is no data set of this name. The list of data sets has them all.")
        return Registration.from_json(json.loads(row["body"]))

    def add(
        self,
        title: str,
        *,
        source: str | None,
        schema: Mapping[str, Any],
        records: Iterable[str],
        by: str,
        account: str | None = None,
        protects: Mapping[str, Any] | None = None,
        compare: Callable[[Table | TiledTable, str], None],
    ) -> str:
        """Register a file or a folder under a root, given relative to it, or a stream; tells the name it has here.

        `compare` refuses records that another data set holds.
        """
        name = require_account_name("name", title)
        facts = state_account(Schema.from_json(schema), account=account, protects=protects, where="schema")
        if facts.account is not None:
            require_account_name("account", facts.account)
        if source is None and facts.columns is None:
            raise ParameterError("schema: a stream has no source, so its columns must be stated. Add columns.")
        place = None if source is None else str(self.place_of(source))
        made = Registration(name=name, source=place, schema=facts, records=tuple(records))
        if name in self._stated or self._records.find(DATASETS, name) is not None:
            raise Refusal("conflict", "A data set of this name is registered already. Choose another name.")
        if place is not None:
            compare(self._read_once(made), place)
        self._records.add(DATASETS, {"id": name, "body": json.dumps(made.to_json()), "by": by})
        return name

    def table(self, name: str) -> Table | TiledTable:
        """The records, for a question."""
        dataset = self.find(name)
        if dataset.source is None:
            raise DataError(f"{name}: it is a stream and has no table. Open a watch on it.")
        try:
            return self._read_once(dataset)
        except PrivacyError:
            raise Refusal("busy", "The data set cannot be read at the moment. Tell the steward.") from None

    def stream(self, name: str, columns: Sequence[str] | None = None) -> Stream:
        """What is public of a data set without its table, as far as these columns go."""
        schema = self.schema(name)
        return Stream(schema.only(pick(columns, schema.numbers)) if columns else schema)

    def schema(self, name: str) -> Schema:
        """What is public of its columns: of a table all that it has, stated or not."""
        dataset = self.find(name)
        return dataset.schema if dataset.source is None else self.table(name).schema

    def facts(self, name: str) -> dict[str, Any]:
        """What everybody may know of a data set."""
        dataset = self.find(name)
        if dataset.source is not None:
            return {**describe(self.table(name)), "stream": False}
        columns = [
            {"name": column.name, "type": column.kind, **column.facts(), **column.words()}
            for column in dataset.schema.columns or ()
        ]
        known = {"name": name, "rows": dataset.schema.rows, "clip": dataset.schema.clip, "columns": columns}
        return {**known, **dataset.schema.words(), "stream": True}

    def _read_once(self, dataset: Registration) -> Table | TiledTable:
        with self._guard:
            turn = self._turns.setdefault(dataset.name, RLock())
        with turn:
            if dataset.name not in self._tables:
                source = str(dataset.source)
                place = source if "://" in source else self._require_inside(Path(source))
                made = load_into(place, dataset.engine, schema=dataset.schema, name=dataset.name)
                self._tables[dataset.name] = made
            return self._tables[dataset.name]

    def place_of(self, source: str) -> Path:
        """A place relative to a root: what a steward may name from afar. Database URLs only stand in the settings."""
        if not source.isprintable() or "://" in source or Path(source).is_absolute():
            raise _outside_refusal()
        found = [root / source for root in self.roots if (root / source).exists()]
        return self._require_inside(found[0]) if found else self._require_inside(Path("/"))

    def _require_inside(self, place: Path) -> Path:
        real = place.resolve()
        parts = [part.resolve() for part in real.rglob("*")] if real.is_dir() and real != Path("/") else []
        for root in self.roots:
            if all(part.is_relative_to(root) for part in (real, *parts)):
                return real
        raise _outside_refusal()


def _outside_refusal() -> ParameterError:
    return ParameterError(
        "source: it is no file or folder under one of the service's roots. Name one that is, relative to its root."
    )
