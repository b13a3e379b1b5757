"""The data sets of the service: registered by the steward, read once, kept until the service ends or they are retired.

A data set that cannot be read is one that cannot be asked; it holds up no other. What stewards registered while the
service ran is read again by every process that starts, so a tag of its content is kept: a source that has changed is
refused.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Literal

from wallflower.curator.desk.logs import tell
from wallflower.curator.desk.problems import Refusal, problem
from wallflower.curator.desk.records import DATASETS, Records
from wallflower.curator.settings import Registration, state_account
from wallflower.data import Table, TiledTable, describe
from wallflower.data.scans import load_into
from wallflower.errors import DataError, ParameterError, PrivacyError, SourceError
from wallflower.names import account_name, require_account_name
from wallflower.release.steward_key import steward_key
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


State = Literal["ready", "loading", "unreadable"]
Cause = Literal["missing", "outside", "changed", "invalid"]


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a data set can be asked: why not, in a word for the log and in a sentence for stewards."""

    state: State
    cause: Cause | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Failure:
    """A read that failed, and the state of the source at that time: the same state is not read again."""

    dataset: Registration
    seen: tuple[int, int, int] | None
    standing: Standing


class _Changed(SourceError):
    """The content of a source is not what was registered."""


class Shelf:
    """What may be asked about. Sources of files lie under one of `roots`, wherever links in them lead."""

    def __init__(self, datasets: Iterable[Registration], roots: Iterable[str], records: Records) -> None:
        self._stated = {account_name(dataset.name) or dataset.name: dataset for dataset in datasets}
        self.roots = tuple(Path(root).resolve() for root in roots)
        self._records = records
        self._tables: dict[str, tuple[Registration, Table | TiledTable]] = {}
        self._failures: dict[str, _Failure] = {}
        self._guard = Lock()
        self._turns: dict[str, RLock] = {}

    def load(self, *, tolerant: bool = False) -> None:
        """Read every table. One of the settings that cannot be read is an error, unless `tolerant`."""
        for dataset in self._stated.values():
            if dataset.source is not None:
                with suppress(PrivacyError) if tolerant else nullcontext():
                    self._read_once(dataset)
        self.refresh()

    def refresh(self) -> None:
        """Read what was registered since, here or in another process, and forget what was retired."""
        registered = {row["id"]: _registration(row) for row in self._records.all(DATASETS)}
        for dataset in registered.values():
            if dataset.source is not None:
                with suppress(PrivacyError):
                    self._read_once(dataset)
        with self._guard:
            for name in {*self._tables, *self._failures} - set(registered):
                if (account_name(name) or name) not in self._stated:
                    self._tables.pop(name, None)
                    self._failures.pop(name, None)

    def standing(self, dataset: Registration) -> Standing:
        """Whether a data set can be asked, as far as this process knows; nothing is read."""
        if dataset.source is None or self._find_table(dataset) is not None:
            return Standing("ready")
        failure = self._failures.get(dataset.name)
        return failure.standing if failure is not None and failure.dataset == dataset else Standing("loading")

    def unreadable(self) -> int:
        """How many data sets this process could not read."""
        return len(self._failures)

    def is_stated(self, name: str) -> bool:
        """Whether a data set stands in the settings."""
        return (account_name(name) or name) in self._stated

    def retire(self, name: str) -> str:
        """Take a registered data set away; tells the name it had. The ledger keeps what it has of it."""
        found = self.find(name)
        if self.is_stated(found.name):
            raise Refusal("conflict", "The data set stands in the settings of the service. Remove it there.")
        self._records.remove(DATASETS, found.name)
        with self._guard:
            self._tables.pop(found.name, None)
            self._failures.pop(found.name, None)
        return found.name

    def registrations(self) -> list[Registration]:
        """Every data set, in order of the names, by one look at the database.

        A list that is made by looking up each name fails as a whole when one of them is retired meanwhile.
        """
        registered = {row["id"]: _registration(row) for row in self._records.all(DATASETS)}
        stated = {dataset.name: dataset for dataset in self._stated.values()}
        return [dataset for _, dataset in sorted((registered | stated).items())]

    def names(self) -> list[str]:
        """What is registered, in order of its names."""
        return [dataset.name for dataset in self.registrations()]

    def find(self, name: str) -> Registration:
        """The data set of this name, however it is spelt."""
        spelt = account_name(name) or name
        if spelt in self._stated:
            return self._stated[spelt]
        row = self._records.find(DATASETS, name) or self._records.find(DATASETS, spelt)
        if row is None:
            raise Refusal("not-found", "There is no data set of this name. The list of data sets has them all.")
        return _registration(row)

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
        key: bytes | None,
    ) -> str:
        """Register a file or a folder under a root, given relative to it, or a stream; tells the name it has here.

        `compare` refuses records that another data set holds; `key` is that of fingerprints, if there is one.
        """
        name = require_account_name("name", title)
        facts = state_account(Schema.from_json(schema), account=account, protects=protects, where="schema")
        if facts.account is not None:
            require_account_name("account", facts.account)
        if source is None and facts.columns is None:
            raise ParameterError("schema: a stream has no source, so its columns must be stated. Add columns.")
        place = None if source is None else self.place_of(source)
        tag = None if place is None or key is None else fingerprint_source(place, key)
        made = Registration(name=name, source=source, schema=facts, records=tuple(records), fingerprint=tag)
        if name in self._stated or self._records.find(DATASETS, name) is not None:
            raise Refusal("conflict", "A data set of this name is registered already. Choose another name.")
        if place is not None:
            table = self._read(made)
            compare(table, str(place))
        self._records.add(DATASETS, {"id": name, "body": json.dumps(made.to_json()), "by": by})
        if place is not None:
            with self._guard:
                self._tables[name] = (self.find(name), table)
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

    def facts(self, dataset: Registration) -> dict[str, Any]:
        """What everybody may know of a data set; of one that is not read, what its schema says."""
        table, name = self._find_table(dataset), dataset.name
        if table is not None:
            return {**describe(table), "stream": False}
        columns = [
            {"name": column.name, "type": column.kind, **column.facts(), **column.words()}
            for column in dataset.schema.columns or ()
        ]
        known = {"name": name, "rows": dataset.schema.rows, "clip": dataset.schema.clip, "columns": columns}
        return {**known, **dataset.schema.words(), "stream": dataset.source is None}

    def _find_table(self, dataset: Registration) -> Table | TiledTable | None:
        kept = self._tables.get(dataset.name)
        return kept[1] if kept is not None and kept[0] == dataset else None

    def _read_once(self, dataset: Registration) -> Table | TiledTable:
        """The table; a failure is kept until the source has changed."""
        with self._guard:
            turn = self._turns.setdefault(dataset.name, RLock())
        with turn:
            table = self._find_table(dataset)
            if table is not None:
                return table
            seen, failure = self._look_at(dataset), self._failures.get(dataset.name)
            if failure is not None and failure.dataset == dataset and failure.seen == seen is not None:
                raise SourceError(str(failure.standing.reason))
            try:
                table = self._read(dataset)
            except PrivacyError as error:
                standing = Standing("unreadable", self._cause_of(error, dataset), problem(error)["detail"])
                self._failures[dataset.name] = _Failure(dataset, seen, standing)
                if failure is None or failure.standing != standing:
                    tell("data set cannot be read", cause=standing.cause, error=type(error).__name__)
                raise
            with self._guard:
                self._tables[dataset.name] = (dataset, table)
                self._failures.pop(dataset.name, None)
            return table

    def _cause_of(self, error: PrivacyError, dataset: Registration) -> Cause:
        source = str(dataset.source)
        if isinstance(error, _Changed):
            return "changed"
        if "://" not in source and not any((root / source).exists() for root in (*self.roots, Path("/"))):
            return "missing"
        return "outside" if self._look_at(dataset) is None and "://" not in source else "invalid"

    def _read(self, dataset: Registration) -> Table | TiledTable:
        place = self._place(dataset)
        if dataset.fingerprint is not None and isinstance(place, Path):
            require_fingerprint(place, dataset.fingerprint)
        return load_into(place, dataset.engine, schema=dataset.schema, name=dataset.name)

    def _place(self, dataset: Registration) -> str | Path:
        source = str(dataset.source)
        if "://" in source:
            return source
        return self._require_inside(Path(source)) if Path(source).is_absolute() else self.place_of(source)

    def _look_at(self, dataset: Registration) -> tuple[int, int, int] | None:
        """The state of a source as far as the file system tells it; None: it is missing, or no file."""
        try:
            told = os.stat(self._place(dataset))
        except (OSError, PrivacyError):
            return None
        return told.st_mtime_ns, told.st_size, told.st_ino

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


def fingerprint_source(place: Path, key: bytes) -> str:
    """A tag of the bytes of a file or of the files of a folder, and of the key that it was made with.

    Without the key it tells nothing: guesses about records cannot be tried against it.
    """
    parts = sorted(part for part in place.rglob("*") if part.is_file()) if place.is_dir() else [place]
    content = hmac.new(key, digestmod="sha256")
    for part in parts:
        with part.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
        content.update(str(part.relative_to(place)).encode("utf-8", "surrogateescape") + b"\0" + digest)
    return f"{_key_tag(key)}:{content.hexdigest()}"


def require_fingerprint(place: Path, tag: str) -> None:
    """Refuse a source whose content is not what was registered. Without the key of the tag nothing can be said."""
    try:
        key = steward_key()
    except SourceError:
        key = b""
    if tag.partition(":")[0] != _key_tag(key):
        tell("a registered source is not compared with what was registered", reason="another key of fingerprints")
        return
    if not hmac.compare_digest(fingerprint_source(place, key), tag):
        raise _Changed(
            f"{place}: its content is not what was registered. Restore it, or retire the data set and register it "
            "under a new name."
        )


def _key_tag(key: bytes) -> str:
    return hmac.digest(key, b"key of fingerprints", "sha256").hex()[:16]


def _registration(row: Mapping[str, Any]) -> Registration:
    return Registration.from_json(json.loads(row["body"]) | {"registered": row["created"]})


def _outside_refusal() -> ParameterError:
    return ParameterError(
        "source: it is no file or folder under one of the service's roots. Name one that is, relative to its root."
    )
