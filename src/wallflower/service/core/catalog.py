"""The catalog of data sets: registered by stewards, read once, kept until the service ends or they are retired.

`Catalog` holds registrations and tables; `list_sources`, `draft_source` and `rehearse` help a steward to register one.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Final, Literal

from wallflower.data import Table, TiledTable, describe, survey
from wallflower.data.people import most_rows_of_one
from wallflower.data.scans import load_into, scan_of
from wallflower.data.sources.files import is_readable, select
from wallflower.errors import DataError, ParameterError, PrivacyError, SourceError
from wallflower.ledger import Account, Ledger
from wallflower.names import account_name, require_account_name
from wallflower.privacy import Loss
from wallflower.query.parameter import Question
from wallflower.rehearsal import PLENTY, Draft, Trial, make_up, try_question
from wallflower.release.steward_key import steward_key
from wallflower.schema import Schema
from wallflower.schema.column import is_identifier_like
from wallflower.schema.columns import pick
from wallflower.service.core.logs import log_event
from wallflower.service.core.problems import Refusal, problem_document
from wallflower.service.core.records import DATASETS, Records
from wallflower.service.settings import Registration, state_account
from wallflower.units import Protection

State = Literal["ready", "loading", "unreadable"]
Cause = Literal["missing", "outside", "changed", "invalid"]

REHEARSAL_RECORDS: Final = 1000
MAX_FORM_COLUMNS: Final = 150
_MAX_SOURCES: Final = 500
_MAX_FOLDER_DEPTH: Final = 4  # below a root
_NUMBER_TYPES: Final = ("number", "integer")
_REHEARSAL_LOCK: Final = Lock()  # a rehearsal takes seconds and a whole core, so one runs at a time


@dataclass(frozen=True, slots=True)
class Stream:
    """The public facts of a data set without its number of records; `n` is 0, which means unknown."""

    schema: Schema
    n: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        return self.schema.numbers

    @property
    def dimension(self) -> int:
        return len(self.columns)


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a data set can be queried: if not, a cause for the log and a sentence for stewards."""

    state: State
    cause: Cause | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetView:
    """A data set as a caller sees it: public facts, budget, and what the caller may still spend.

    `reason` says why it cannot be read, to stewards and auditors only. A data set that `is_registered` was registered
    while the service ran, and can be retired.
    """

    name: str
    facts: dict[str, Any]
    budget: Account
    left: Loss
    state: State = "ready"
    reason: str | None = None
    is_registered: bool = False

    @property
    def protection(self) -> Protection:
        """The unit of protection of this data set; others on the same account may have another."""
        return self.budget.members.get(account_name(self.name) or self.name, self.budget.protection)


@dataclass(frozen=True, slots=True)
class _Failure:
    """A read that failed, and the state of the source at that time: the same state is not read again."""

    dataset: Registration
    version: tuple[int, int, int] | None
    standing: Standing


class _Changed(SourceError):
    """The content of a source is not what was registered."""


class Catalog:
    """The data sets of the settings and those that stewards registered, with their tables.

    Sources that are files lie under one of `roots`, after links in them are resolved. A data set that cannot be read
    cannot be queried; it does not affect the others.
    """

    def __init__(self, datasets: Iterable[Registration], roots: Iterable[str], records: Records) -> None:
        self._stated = {account_name(dataset.name) or dataset.name: dataset for dataset in datasets}
        self.roots = tuple(Path(root).resolve() for root in roots)
        self._records = records
        self._tables: dict[str, tuple[Registration, Table | TiledTable]] = {}
        self._failures: dict[str, _Failure] = {}
        self._guard = Lock()
        self._locks: dict[str, RLock] = {}

    def load(self, *, tolerant: bool = False) -> None:
        """Read every table. One of the settings that cannot be read is an error, unless `tolerant`."""
        for dataset in self._stated.values():
            if dataset.source is not None:
                with suppress(PrivacyError) if tolerant else nullcontext():
                    self._read_once(dataset)
        self.refresh()

    def refresh(self) -> None:
        """Read data sets that were registered since, here or in another process, and drop retired ones."""
        registered = self._registered()
        for dataset in registered.values():
            if dataset.source is not None:
                with suppress(PrivacyError):
                    self._read_once(dataset)
        with self._guard:
            for name in {*self._tables, *self._failures} - set(registered):
                if not self.is_stated(name):
                    self._forget(name)

    def standing(self, dataset: Registration) -> Standing:
        """Return whether a data set can be queried, as far as this process knows; nothing is read."""
        if dataset.source is None or self._find_table(dataset) is not None:
            return Standing("ready")
        failure = self._failures.get(dataset.name)
        return failure.standing if failure is not None and failure.dataset == dataset else Standing("loading")

    def unreadable(self) -> int:
        """Return how many data sets this process could not read."""
        return len(self._failures)

    def is_stated(self, name: str) -> bool:
        """Return whether a data set is in the settings."""
        return (account_name(name) or name) in self._stated

    def retire(self, name: str) -> str:
        """Remove a registered data set and return its name. The ledger keeps its entries."""
        dataset = self.find(name)
        if self.is_stated(dataset.name):
            raise Refusal("conflict", "The data set is in the settings of the service. Remove it there.")
        self._records.remove(DATASETS, dataset.name)
        with self._guard:
            self._forget(dataset.name)
        return dataset.name

    def registrations(self) -> list[Registration]:
        """Return every data set, ordered by name, from one query of the database.

        Looking up each name would fail as a whole if one of them is retired meanwhile.
        """
        stated = {dataset.name: dataset for dataset in self._stated.values()}
        return [dataset for _, dataset in sorted((self._registered() | stated).items())]

    def names(self) -> list[str]:
        """Return the names of all data sets, in order."""
        return [dataset.name for dataset in self.registrations()]

    def find(self, name: str) -> Registration:
        """Return the data set of this name, in any spelling; raises `Refusal` if there is none."""
        spelt = account_name(name) or name
        if spelt in self._stated:
            return self._stated[spelt]
        row = self._records.find(DATASETS, name) or self._records.find(DATASETS, spelt)
        if row is None:
            raise Refusal("not-found", "There is no data set of this name. See the list of data sets.")
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
        person: Mapping[str, Any] | None = None,
        compare: Callable[[Table | TiledTable, str], None],
        key: bytes | None,
    ) -> str:
        """Register a file or a folder, relative to a root, or a stream, and return its normalised name.

        `compare` refuses records that another data set holds; `key` is the key of fingerprints, if there is one. Other
        processes read the source later, so a tag of its content is stored: a changed source is refused.
        """
        name = require_account_name("name", title)
        stated = Schema.from_json(schema)
        facts = state_account(stated, account=account, protects=protects, person=person, where="schema")
        if facts.account is not None:
            require_account_name("account", facts.account)
        if source is None and facts.columns is None:
            raise ParameterError("schema: a stream has no source, so its columns must be stated. Add columns.")
        if source is None and facts.person is not None:
            raise ParameterError("person: a stream has no rows to bring together. Name a source, or omit person.")
        if facts.join is not None:
            raise ParameterError(
                "schema: a join reads a second table, and only one source is registered here. State the data set in "
                "the settings of the service, or join the tables before."
            )
        path = None if source is None else self.resolve_source(source)
        tag = None if path is None or key is None else fingerprint_source(path, key)
        dataset = Registration(name=name, source=source, schema=facts, records=tuple(records), fingerprint=tag)
        if name in self._stated or self._records.find(DATASETS, name) is not None:
            raise Refusal("conflict", "A data set of this name is registered already. Choose another name.")
        if path is not None:
            table = self._read(dataset)
            compare(table, str(path))
        self._records.add(DATASETS, {"id": name, "body": json.dumps(dataset.to_json()), "by": by})
        if path is not None:
            with self._guard:
                self._tables[name] = (self.find(name), table)
        return name

    def table(self, name: str) -> Table | TiledTable:
        """Return the records, for a query."""
        dataset = self.find(name)
        if dataset.source is None:
            raise DataError(f"{name}: it is a stream and has no table. Open a watch on it.")
        try:
            return self._read_once(dataset)
        except PrivacyError:
            raise Refusal("busy", "The data set cannot be read at the moment. Tell the steward.") from None

    def stream(self, name: str, columns: Sequence[str] | None = None) -> Stream:
        """Return the public facts of these columns, without the table."""
        schema = self.schema(name)
        return Stream(schema.only(pick(columns, schema.numbers)) if columns else schema)

    def schema(self, name: str) -> Schema:
        """Return the public schema; of a table with all of its columns, stated or not."""
        dataset = self.find(name)
        return dataset.schema if dataset.source is None else self.table(name).schema

    def facts(self, dataset: Registration) -> dict[str, Any]:
        """Return the public facts of a data set; those of its schema if it is not read."""
        table, name, person = self._find_table(dataset), dataset.name, dataset.schema.person
        stated = {} if person is None else {"person": person.to_json()}  # what a record is made of is public
        if table is not None:
            return {**describe(table), **stated, "stream": False}
        columns = [
            {"name": column.name, "type": column.kind, **column.facts(), **column.words()}
            for column in dataset.schema.columns or ()
        ]
        facts = {"name": name, "rows": dataset.schema.rows, "clip": dataset.schema.clip, "columns": columns}
        return {**facts, **dataset.schema.words(), **stated, "stream": dataset.source is None}

    def resolve_source(self, source: str) -> Path:
        """Return the path of a source relative to a root: stewards name files so. Database URLs are for settings."""
        if not source.isprintable() or "://" in source or Path(source).is_absolute():
            raise _outside_refusal()
        paths = [root / source for root in self.roots if (root / source).exists()]
        if not paths:
            raise _outside_refusal()
        return self._require_inside(paths[0])

    def _registered(self) -> dict[str, Registration]:
        return {row["id"]: _registration(row) for row in self._records.all(DATASETS)}

    def _forget(self, name: str) -> None:
        self._tables.pop(name, None)
        self._failures.pop(name, None)

    def _find_table(self, dataset: Registration) -> Table | TiledTable | None:
        kept = self._tables.get(dataset.name)
        return kept[1] if kept is not None and kept[0] == dataset else None

    def _read_once(self, dataset: Registration) -> Table | TiledTable:
        """Return the table; a failure is cached until the source has changed."""
        with self._guard:
            lock = self._locks.setdefault(dataset.name, RLock())
        with lock:
            table = self._find_table(dataset)
            if table is not None:
                return table
            version, failure = self._source_version(dataset), self._failures.get(dataset.name)
            if failure is not None and failure.dataset == dataset and failure.version == version is not None:
                raise SourceError(str(failure.standing.reason))
            try:
                table = self._read(dataset)
            except PrivacyError as error:
                reason = problem_document(error)["detail"]
                standing = Standing("unreadable", self._cause_of(error, dataset), reason)
                self._failures[dataset.name] = _Failure(dataset, version, standing)
                if failure is None or failure.standing != standing:
                    log_event("data set cannot be read", cause=standing.cause, error=type(error).__name__)
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
        return "outside" if self._source_version(dataset) is None and "://" not in source else "invalid"

    def _read(self, dataset: Registration) -> Table | TiledTable:
        source = self._locate(dataset)
        if dataset.fingerprint is not None and isinstance(source, Path):
            require_fingerprint(source, dataset.fingerprint)
        if dataset.schema.join is not None and "://" not in dataset.schema.join.table:
            self._require_inside(Path(dataset.schema.join.table))
        return load_into(source, dataset.engine, schema=dataset.schema, name=dataset.name)

    def _locate(self, dataset: Registration) -> str | Path:
        source = str(dataset.source)
        if "://" in source:
            return source
        return self._require_inside(Path(source)) if Path(source).is_absolute() else self.resolve_source(source)

    def _source_version(self, dataset: Registration) -> tuple[int, int, int] | None:
        """Return time, size and inode of a source; None if it is missing, or not a file."""
        try:
            status = os.stat(self._locate(dataset))
        except (OSError, PrivacyError):
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _require_inside(self, path: Path) -> Path:
        real = path.resolve()
        parts = [part.resolve() for part in real.rglob("*")] if real.is_dir() and real != Path("/") else []
        for root in self.roots:
            if all(part.is_relative_to(root) for part in (real, *parts)):
                return real
        raise _outside_refusal()


def fingerprint_source(path: Path, key: bytes) -> str:
    """Return a keyed tag of the bytes of a file, or of the files of a folder.

    Without the key it reveals nothing: guesses about records cannot be checked against it.
    """
    parts = sorted(part for part in path.rglob("*") if part.is_file()) if path.is_dir() else [path]
    content = hmac.new(key, digestmod="sha256")
    for part in parts:
        with part.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
        content.update(str(part.relative_to(path)).encode("utf-8", "surrogateescape") + b"\0" + digest)
    return f"{_key_tag(key)}:{content.hexdigest()}"


def require_fingerprint(path: Path, tag: str) -> None:
    """Refuse a source whose content is not what was registered. Without the key of the tag it is not compared."""
    try:
        key = steward_key()
    except SourceError:
        key = b""
    if tag.partition(":")[0] != _key_tag(key):
        log_event("a registered source is not compared with what was registered", reason="another key of fingerprints")
        return
    if not hmac.compare_digest(fingerprint_source(path, key), tag):
        raise _Changed(
            f"{path}: its content is not what was registered. Restore it, or retire the data set and register it "
            "under a new name."
        )


# What a steward needs to register a data set in the browser. Nothing of a record is shown: only names of files and
# columns, and types.


def list_sources(catalog: Catalog) -> list[str]:
    """Return files under the roots that can be read, relative to their roots, in order, up to some hundreds."""
    names = (name for root in catalog.roots for name in _walk(root, root, _MAX_FOLDER_DEPTH))
    return sorted(set(islice(names, _MAX_SOURCES)))


def draft_source(catalog: Catalog, name: str, source: str) -> Draft:
    """Return names and types of the columns of a source, without its number of records, which may be secret."""
    facts = survey(catalog.resolve_source(source))
    if len(facts["columns"]) > MAX_FORM_COLUMNS:
        raise Refusal(
            "too-large",
            f"{source}: it has more than {MAX_FORM_COLUMNS} columns, too many for a form. Write its schema with "
            "`wallflower init` and register it over HTTP.",
        )
    types = {
        column["name"]: _offered_type(column["name"], column["type"], is_stated=facts["declared"])
        for column in facts["columns"]
    }
    return Draft(name, None, facts["declared"], types)


def find_repeats(catalog: Catalog, source: str, schema: Schema | None = None) -> dict[str, int]:
    """Return identifiers that several rows share, with the largest number of rows that share one.

    Identifiers are columns that the schema declares as such, or that are called so. The numbers depend on records: they
    are for the data steward only. Nothing is returned where the schema says who the rows belong to.
    """
    facts = schema or Schema()
    if facts.person is not None:
        return {}
    path, written = catalog.resolve_source(source), {} if facts.file is None else facts.file.stated_parts
    declared = {column.name for column in facts.columns or () if column.kind == "identifier"}
    repeats = {}
    with suppress(PrivacyError):  # the notice is beside the registration, and never in its way
        for name in _column_names(path, Schema(file=facts.file)):
            if name in declared or is_identifier_like(name):
                repeats[name] = most_rows_of_one(path, name, **written)
    return {name: rows for name, rows in repeats.items() if rows > 1}


def _column_names(path: Path, form: Schema) -> tuple[str, ...]:
    """Return the names of the columns of a source; of a large one without reading it whole."""
    try:
        return scan_of(path, select(form)[1]).columns
    except SourceError:  # such as a workbook, which is read whole
        return tuple(column["name"] for column in survey(path, schema=form)["columns"])


def rehearse(questions: Sequence[Question], schema: Schema) -> list[Trial]:
    """Ask every kind of query of made-up records, with a temporary ledger; no source is opened."""
    table = make_up(schema, REHEARSAL_RECORDS)
    with _REHEARSAL_LOCK, tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder) / "rehearsal.db") as ledger:
        ledger.grant(table.name, PLENTY, by="rehearsal", reason="made-up records")
        return [try_question(question, table, ledger, {}) for question in questions]


def _offered_type(name: str, kind: str, *, is_stated: bool) -> str:
    """Return the type to offer for a column: that cells happen to be integers is a fact about records, not public.

    Numbers that are called as identifiers are would make distances meaningless.
    """
    if kind in _NUMBER_TYPES:
        return "identifier" if is_identifier_like(name) else kind if is_stated else "number"
    return "date" if kind in ("date", "time of day") else "text"


def _walk(root: Path, folder: Path, depth: int) -> Iterator[str]:
    """Yield the sources in a folder, without hidden files and links that lead out of the root."""
    for entry in sorted(_list_folder(folder), key=lambda entry: entry.name):
        path = Path(entry.path)
        if entry.name.startswith(".") or not path.resolve().is_relative_to(root):
            continue
        if entry.is_file() and is_readable(path):
            yield str(path.relative_to(root))
        elif entry.is_dir() and depth:
            if any(path.glob("*.parquet")):
                yield str(path.relative_to(root))
            else:
                yield from _walk(root, path, depth - 1)


def _list_folder(folder: Path) -> Sequence[os.DirEntry[Any]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return ()


def _key_tag(key: bytes) -> str:
    return hmac.digest(key, b"key of fingerprints", "sha256").hex()[:16]


def _registration(row: Mapping[str, Any]) -> Registration:
    return Registration.from_json(json.loads(row["body"]) | {"registered": row["created"]})


def _outside_refusal() -> ParameterError:
    return ParameterError(
        "source: must be a file or folder under one of the service's roots. Name one, relative to its root."
    )
