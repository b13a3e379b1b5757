"""Watches over streams that are posted: paid for once, kept in a folder of states, taken up again after a restart.

A service of one worker keeps its watches open. With several, any of them may be called next, so each puts a watch down
after every batch.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Final

from wallflower.curator.desk.access.tokens import Caller, new_id
from wallflower.curator.desk.desk import Desk, require_spender
from wallflower.curator.desk.logs import log_failure
from wallflower.curator.desk.problems import Refusal, unanswered_refusal, unrecorded_refusal
from wallflower.curator.desk.records import WATCHES
from wallflower.errors import (
    EpochClosed,
    KeyConflict,
    LedgerUnreachable,
    PrivacyError,
    StateError,
    StateUnreachable,
)
from wallflower.privacy import Loss
from wallflower.query import Query
from wallflower.release import require_use
from wallflower.schema import Schema
from wallflower.streams import Decisions, Watching, watching

_PATIENCE: Final = 5.0  # for another worker to put a watch down
_PAUSE: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchView:
    """A watch as its caller sees it: `position` is how many observations were decided, `charge` what paid for them."""

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
        told = {name: getattr(self, name) for name in names}
        return told | {"columns": list(self.columns), "cost": str(self.cost)}


class Watches:
    """The open watches of this process, and the way to the others."""

    def __init__(self, desk: Desk) -> None:
        folder = desk.settings.watches
        self._desk = desk
        self._folder = None if folder is None else Path(folder)
        self._keeps = desk.settings.workers == 1
        self._open: dict[str, Watching] = {}
        self._turns: dict[str, RLock] = {}
        self._guard = Lock()

    def open(
        self, caller: Caller, dataset: str, query: Query[Any, Any], *, key: str | None, anyway: bool = False
    ) -> WatchView:
        """Open a watch and pay for it; under a key used before, the one that was opened then."""
        self._desk.admit(caller, dataset, query, key)
        body = json.dumps(query.to_json(), sort_keys=True)
        own = {"analyst": caller.name, "dataset": dataset, "kind": query.kind, "query": body}
        row = {"id": _id(caller, dataset, key), **own}
        known = self._desk.records.find(WATCHES, row["id"])
        if known is not None and any(known[name] != value for name, value in own.items()):
            raise KeyConflict(f"{dataset}: the key was used before, for another watch. Open this one under a new key.")
        if known is None and not anyway:
            require_use(self._desk.plan(caller, dataset, query))
        with self._take(row) as watch:
            self._desk.records.add(WATCHES, row)
            return _watch_view(row, watch, query)

    def all(self, caller: Caller) -> list[dict[str, Any]]:
        """The caller's watches; a steward sees all."""
        whose = {} if caller.reads_all else {"analyst": caller.name}
        rows = self._desk.records.all(WATCHES, **whose)
        return [{name: row[name] for name in ("id", "dataset", "kind", "analyst", "created")} for row in rows]

    def state(self, caller: Caller, key: str) -> WatchView:
        """How far a watch has come."""
        row = self._find_row(caller, key)
        with self._take(row) as watch:
            return _watch_view(row, watch, self._query(row))

    def decide(
        self, caller: Caller, key: str, rows: Sequence[Any], first: int | None, times: Sequence[str] | None = None
    ) -> Decisions:
        """Decide a batch; whatever was decided before is told again."""
        require_spender(caller)
        row = self._find_row(caller, key)
        with self._take(row) as watch:
            before = watch.position
            try:
                told = watch.decide_many(rows, first=first, times=times)
            except (LedgerUnreachable, StateUnreachable):
                self._put_away(key, watch)
                raise unrecorded_refusal() from None
            except PrivacyError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever happens after the look, nothing of it may leave
                log_failure("decide", error)
                raise unanswered_refusal() from None
            self._desk.metrics.count("decisions", watch.position - before)
            return told

    def history(self, caller: Caller, key: str, most: int) -> Decisions:
        """The latest decisions, as they were told; nothing is looked at."""
        with self._take(self._find_row(caller, key)) as watch:
            first = max(1, watch.position - most + 1)
            return watch.history(first, min(most, watch.position))

    def query(self, caller: Caller, key: str) -> Query[Any, Any]:
        """What a watch asks."""
        return self._query(self._find_row(caller, key))

    def _put_away(self, key: str, watch: Watching) -> None:
        """It may be behind what is on disk, or ahead of it: whoever comes next takes it up from there."""
        self._open.pop(key, None)
        watch.close()

    def close(self) -> None:
        """Put every watch down."""
        with self._guard:
            left, self._open = self._open, {}
        for watch in left.values():
            watch.close()

    def _find_row(self, caller: Caller, key: str) -> dict[str, Any]:
        """A watch that was paid for, and whose state is still there: to look for one never pays."""
        row = self._desk.records.find(WATCHES, key)
        if row is None or not (caller.reads_all or row["analyst"] == caller.name):
            raise Refusal("not-found", "There is no watch with this id, or it is not yours.")
        self._desk.find(caller, row["dataset"])
        if key not in self._open and not self._place(key).exists():
            raise Refusal("epoch-closed", "The state of the watch is lost, so it cannot go on. Open a new one.")
        return row

    def _query(self, row: dict[str, Any]) -> Query[Any, Any]:
        return self._desk.question(row["kind"]).from_json(json.loads(row["query"]))

    def _place(self, key: str) -> Path:
        if self._folder is None:
            raise Refusal("forbidden", "This service keeps no watches. The steward sets `watches` to a folder first.")
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._folder / f"{key}.state"

    @contextmanager
    def _take(self, row: dict[str, Any]) -> Iterator[Watching]:
        with self._guard:
            turn = self._turns.setdefault(row["id"], RLock())
        with turn:
            watch = self._open.get(row["id"]) or self._take_up(row)
            if self._keeps:
                self._open[row["id"]] = watch
                yield watch
            else:
                with watch:
                    yield watch

    def _take_up(self, row: dict[str, Any]) -> Watching:
        deadline = time.monotonic() + (0 if self._keeps else _PATIENCE)
        while True:
            try:
                return self._open_watch(row)
            except EpochClosed:
                raise
            except StateError:
                if time.monotonic() >= deadline:
                    raise Refusal("state", "The watch is in use elsewhere, or its state is damaged.") from None
            time.sleep(_PAUSE)

    def _open_watch(self, row: dict[str, Any]) -> Watching:
        query: Any = self._query(row)
        return watching(
            query,
            ledger=self._desk.ledger,
            dataset=row["dataset"],
            schema=self._schema(row["dataset"]),
            analyst=row["analyst"],
            key=f"{row['analyst']}/watch/{row['id']}",
            state=self._place(row["id"]),
            anyway=True,  # judged when it was opened
        )

    def _schema(self, dataset: str) -> Schema:
        registered = self._desk.shelf.find(dataset)
        return registered.schema if registered.source is None else self._desk.shelf.table(dataset).schema


def decisions_json(told: Decisions) -> dict[str, Any]:
    """Decisions, in order; null where an observation was passed over."""
    scores = {} if told.noisy_scores is None else {"scores": told.noisy_scores}
    return {"first": told.first, "outlier": told.outliers, **scores, "exhausted": told.exhausted}


def _watch_view(row: dict[str, Any], watch: Watching, query: Query[Any, Any]) -> WatchView:
    known = {name: row[name] for name in ("id", "dataset", "kind")}
    own = {name: getattr(watch, name) for name in ("columns", "position", "exhausted", "charge")}
    return WatchView(**known, **own, cost=query.cost())


def _id(caller: Caller, dataset: str, key: str | None) -> str:
    if key is None:
        return new_id()
    words = json.dumps([caller.name, dataset, key])
    return hashlib.sha256(words.encode("ascii")).hexdigest()[:24]
