"""Watches over posted streams: paid for once, kept in a folder of checkpoints, resumed after a restart.

A service of one worker keeps its watches open. With several, any of them may be called next, so each closes a watch
after every batch. `parse_observations` reads observations that a person typed or uploaded, as CSV or JSON lines.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Final

from wallflower.data.lines import number
from wallflower.errors import (
    DataError,
    KeyConflict,
    LedgerUnreachable,
    PrivacyError,
    SessionClosed,
    StateError,
    StateUnreachable,
)
from wallflower.privacy import Loss
from wallflower.query import Query
from wallflower.release import require_useful
from wallflower.schema.columns import list_names
from wallflower.service.core.access.tokens import Caller, new_id
from wallflower.service.core.facade import Core, require_spender
from wallflower.service.core.logs import log_failure
from wallflower.service.core.problems import Refusal, unanswered_refusal, unrecorded_refusal
from wallflower.service.core.records import WATCHES
from wallflower.streams import Decisions, OpenWatch, watching

MAX_OBSERVATIONS: Final = 100_000  # at a time
_LOCK_TIMEOUT_SECONDS: Final = 5.0  # for another worker to close a watch
_LOCK_RETRY_SECONDS: Final = 0.02
_TIME: Final = "time"  # name of the column with the times of observations
Row = tuple[list[float | None], str | None]  # cells, and the time if there is one


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchView:
    """A watch as its caller sees it: `position` counts decided observations, `charge` is the entry that paid."""

    id: str
    dataset: str
    kind: str
    columns: tuple[str, ...]
    position: int
    exhausted: bool
    charge: int
    cost: Loss

    def to_json(self) -> dict[str, Any]:
        names = ("id", "dataset", "kind", "position", "exhausted", "charge")
        table = {name: getattr(self, name) for name in names}
        return table | {"columns": list(self.columns), "cost": self.cost.exact_text}


class Watches:
    """The open watches of this process, and access to the others."""

    def __init__(self, core: Core) -> None:
        folder = core.settings.watches
        self._core = core
        self._folder = None if folder is None else Path(folder)
        self._keeps_open = core.settings.workers == 1
        self._open: dict[str, OpenWatch] = {}
        self._locks: dict[str, RLock] = {}
        self._guard = Lock()

    def open(
        self, caller: Caller, dataset: str, query: Query[Any, Any], *, key: str | None, force: bool = False
    ) -> WatchView:
        """Open a watch and charge it; under an idempotency key used before, return the watch of that key."""
        self._core.admit(caller, dataset, query, key)
        body = json.dumps(query.to_json(), sort_keys=True)
        columns = {"analyst": caller.name, "dataset": dataset, "kind": query.kind, "query": body}
        row = {"id": _watch_id(caller, dataset, key), **columns}
        known = self._core.records.find(WATCHES, row["id"])
        if known is not None and any(known[name] != value for name, value in columns.items()):
            raise KeyConflict(f"{dataset}: the key was used before, for another watch. Open this one under a new key.")
        if known is None and not force:
            require_useful(self._core.plan(caller, dataset, query))
        with self._locked(row) as watch:
            self._core.records.add(WATCHES, row)
            return _watch_view(row, watch, query)

    def all(self, caller: Caller) -> list[dict[str, Any]]:
        """Return the caller's watches; for a steward or an auditor all of them."""
        conditions = {} if caller.reads_all else {"analyst": caller.name}
        rows = self._core.records.all(WATCHES, **conditions)
        return [{name: row[name] for name in ("id", "dataset", "kind", "analyst", "created")} for row in rows]

    def state(self, caller: Caller, key: str) -> WatchView:
        """Return the state of a watch."""
        row = self._find_row(caller, key)
        with self._locked(row) as watch:
            return _watch_view(row, watch, self._query(row))

    def decide(
        self, caller: Caller, key: str, rows: Sequence[Any], first: int | None, times: Sequence[str] | None = None
    ) -> Decisions:
        """Decide a batch, durably; observations that were decided before get the same decision again."""
        require_spender(caller)
        row = self._find_row(caller, key)
        with self._locked(row) as watch:
            before = watch.position
            try:
                decisions = watch.decide_many(rows, first=first, times=times)
            except (LedgerUnreachable, StateUnreachable):
                self._discard(key, watch)
                raise unrecorded_refusal() from None
            except PrivacyError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever happens after the look, nothing of it may leave
                log_failure("decide", error)
                raise unanswered_refusal() from None
            self._core.metrics.count("decisions", watch.position - before)
            return decisions

    def history(self, caller: Caller, key: str, most: int) -> Decisions:
        """Return the latest `most` decisions from the checkpoint."""
        with self._locked(self._find_row(caller, key)) as watch:
            first = max(1, watch.position - most + 1)
            return watch.history(first, min(most, watch.position))

    def query(self, caller: Caller, key: str) -> Query[Any, Any]:
        """Return the query of a watch."""
        return self._query(self._find_row(caller, key))

    def close(self) -> None:
        """Close every watch of this process."""
        with self._guard:
            open_watches, self._open = self._open, {}
        for watch in open_watches.values():
            watch.close()

    def _discard(self, key: str, watch: OpenWatch) -> None:
        """Close a watch whose memory may differ from its checkpoint: the next call resumes it from there."""
        self._open.pop(key, None)
        watch.close()

    def _find_row(self, caller: Caller, key: str) -> dict[str, Any]:
        """Return a watch that was paid for and whose checkpoint exists: looking one up never charges."""
        row = self._core.records.find(WATCHES, key)
        if row is None or not (caller.reads_all or row["analyst"] == caller.name):
            raise Refusal("not-found", "There is no watch with this id, or it is not yours.")
        self._core.find(caller, row["dataset"])
        if key not in self._open and not self._path(key).exists():
            raise Refusal("session-closed", "The state of the watch is lost, so it cannot go on. Open a new one.")
        return row

    def _query(self, row: dict[str, Any]) -> Query[Any, Any]:
        return self._core.question(row["kind"]).from_json(json.loads(row["query"]))

    def _path(self, key: str) -> Path:
        if self._folder is None:
            raise Refusal("forbidden", "This service keeps no watches. The steward sets `watches` to a folder first.")
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._folder / f"{key}.state"

    @contextmanager
    def _locked(self, row: dict[str, Any]) -> Iterator[OpenWatch]:
        """Give the only access to a watch in this process, for one block."""
        with self._guard:
            lock = self._locks.setdefault(row["id"], RLock())
        with lock:
            watch = self._open.get(row["id"]) or self._resume(row)
            if self._keeps_open:
                self._open[row["id"]] = watch
                yield watch
            else:
                with watch:
                    yield watch

    def _resume(self, row: dict[str, Any]) -> OpenWatch:
        deadline = time.monotonic() + (0 if self._keeps_open else _LOCK_TIMEOUT_SECONDS)
        while True:
            try:
                return self._open_watch(row)
            except SessionClosed:
                raise
            except StateError:
                if time.monotonic() >= deadline:
                    raise Refusal("state", "The watch is in use elsewhere, or its state is damaged.") from None
            time.sleep(_LOCK_RETRY_SECONDS)

    def _open_watch(self, row: dict[str, Any]) -> OpenWatch:
        query: Any = self._query(row)
        dataset = self._core.catalog.find(row["dataset"])
        return watching(
            query,
            ledger=self._core.ledger,
            dataset=row["dataset"],
            schema=dataset.schema if dataset.source is None else self._core.catalog.table(row["dataset"]).schema,
            analyst=row["analyst"],
            idempotency_key=f"{row['analyst']}/watch/{row['id']}",
            checkpoint=self._path(row["id"]),
            force=True,  # its plan was judged when it was opened
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """Observations in order, and their times if the text has them."""

    rows: list[list[float | None]]
    times: list[str] | None = None


def parse_observations(text: str, columns: Sequence[str]) -> Observations:
    """Parse observations: JSON lines if the text begins as JSON does, else CSV with a header.

    A missing or unreadable cell is None, so that no observation is refused for its values. A malformed line is refused
    by its number; no message holds a cell.

    >>> parse_observations("time,t\\n2030-01-01,1.5\\n2030-01-02,?\\n", ["t"])
    Observations(rows=[[1.5], [None]], times=['2030-01-01', '2030-01-02'])
    """
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        raise DataError("observations: there are none. Choose a file, or type a line for each observation.")
    if len(lines) > MAX_OBSERVATIONS + 1:
        raise DataError(f"observations: there are more than {MAX_OBSERVATIONS:,}. Send fewer at a time, or over HTTP.")
    is_json = lines[0][1].lstrip()[0] in "{["
    rows = list(_json_rows(lines, columns) if is_json else _csv_rows(lines, columns))
    times = [moment for _, moment in rows if moment is not None]
    return Observations(rows=[cells for cells, _ in rows], times=times if len(times) == len(rows) else None)


def _json_rows(lines: Sequence[tuple[int, str]], columns: Sequence[str]) -> Iterator[Row]:
    for line_number, line in lines:
        try:
            value: Any = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            moment = value.get(_TIME) if _TIME not in columns else None
            yield [_cell(value.get(name)) for name in columns], str(moment) if moment is not None else None
        elif isinstance(value, list) and len(value) == len(columns):
            yield [_cell(cell) for cell in value], None
        else:
            raise DataError(
                f"line {line_number}: must be a JSON object or a list of {len(columns)} numbers. Write one per line, "
                f"such as {json.dumps(dict.fromkeys(columns, 1.5))[:200]}"
            )


def _csv_rows(lines: Sequence[tuple[int, str]], columns: Sequence[str]) -> Iterator[Row]:
    rows = csv.reader([line for _, line in lines], strict=True)
    header = [name.strip() for name in _next_row(rows, lines[0][0])]
    missing = [name for name in columns if name not in header]
    if missing:
        raise DataError(
            f"line {lines[0][0]}: it does not name {list_names(missing)}. The first line of CSV names the columns; "
            f"this watch has {list_names(columns)}. Add it."
        )
    positions = [header.index(name) for name in columns]
    time_position = header.index(_TIME) if _TIME in header and _TIME not in columns else None
    for line_number, _ in lines[1:]:
        cells = _next_row(rows, line_number)
        if len(cells) != len(header):
            raise DataError(f"line {line_number}: it has {len(cells)} cells, the first has {len(header)}. Correct it.")
        moment = None if time_position is None else cells[time_position].strip()
        yield [_cell(cells[position]) for position in positions], moment


def _next_row(rows: Iterator[list[str]], line_number: int) -> list[str]:
    try:
        return next(rows, [])
    except csv.Error:
        raise DataError(f"line {line_number}: its quotes do not close. Correct it.") from None


def _cell(cell: object) -> float | None:
    value = math.nan if isinstance(cell, bool) else number(cell)
    return value if math.isfinite(value) else None


def _watch_view(row: dict[str, Any], watch: OpenWatch, query: Query[Any, Any]) -> WatchView:
    columns = {name: row[name] for name in ("id", "dataset", "kind")}
    state = {name: getattr(watch, name) for name in ("columns", "position", "exhausted", "charge")}
    return WatchView(**columns, **state, cost=query.cost())


def _watch_id(caller: Caller, dataset: str, key: str | None) -> str:
    if key is None:
        return new_id()
    text = json.dumps([caller.name, dataset, key])
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:24]
