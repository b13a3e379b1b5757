"""Bounded job queue, round-robin by analyst, with pollable jobs.

`RoundRobin` decides whose work is next, `FairQueue` runs work that sees no record (plans, curves, samples, scores,
large bodies), `Jobs` answers queries.

Timing side channel: the result of a query is held until a multiple of the response quantum after the query came, and
its thread with it, so that neither the answer, nor a list, a count or the start of another query reveals more exactly
when the computation ended. A job shows no more than queued, running, done or failed.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import platform
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, Literal, Self, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from wallflower.errors import LedgerUnreachable, PrivacyError
from wallflower.release import Release
from wallflower.service.core.access.tokens import Caller, new_id
from wallflower.service.core.clock import moment
from wallflower.service.core.logs import log_failure
from wallflower.service.core.metrics import QueueMeter
from wallflower.service.core.problems import Refusal, problem_document, unanswered_refusal
from wallflower.service.core.records import JOBS, Records
from wallflower.service.settings import Settings

T = TypeVar("T")
State = Literal["queued", "running", "done", "failed"]
Hold = Callable[[], None]
Work = Callable[[Hold], Release[Any]]

_MAX_JOB_AGE: Final = timedelta(days=1)
_RETRY_SECONDS: Final = 0.5  # between two attempts to record the end of a job


class RoundRobin(Generic[T]):
    """Work that waits, by analyst, and a bounded number of slots for work that runs.

    A slot is free again when `free` is called; nothing else changes the order.

    >>> turns: RoundRobin[str] = RoundRobin(places=2, each=1)
    >>> for who, work in (("ana", "a1"), ("ana", "a2"), ("bo", "b1")):
    ...     turns.add(who, work)
    >>> turns.take(), turns.take(), turns.take()
    ('a1', 'b1', None)
    >>> turns.free("bo"); turns.take()
    >>> turns.free("ana"); turns.take()
    'a2'
    """

    def __init__(self, *, places: int, each: int) -> None:
        self._free, self._each = places, each
        self._lines: OrderedDict[str, deque[T]] = OrderedDict()
        self._taken: Counter[str] = Counter()

    def add(self, who: str, work: T) -> None:
        """Queue work behind the other work of the same analyst."""
        self._lines.setdefault(who, deque()).append(work)

    def take(self) -> T | None:
        """Return the next work, if there is a slot for it."""
        turn = self.next_turn()
        return None if turn is None else turn[1]

    def next_turn(self) -> tuple[str, T] | None:
        """Return the next work and its analyst, who moves to the end of the queue; None without a free slot."""
        who = next((who for who in self._lines if self._taken[who] < self._each), None)
        if not self._free or who is None:
            return None
        self._free -= 1
        self._taken[who] += 1
        work = self._lines[who].popleft()
        self._lines.move_to_end(who)
        if not self._lines[who]:
            del self._lines[who]
        return who, work

    def free(self, who: str) -> None:
        """Free a slot of this analyst."""
        self._free += 1
        self._taken[who] -= 1
        if not self._taken[who]:
            del self._taken[who]

    def under_way(self, who: str) -> int:
        """Return how much work of this analyst waits or runs."""
        return self._taken[who] + len(self._lines.get(who, ()))


class FairQueue:
    """Run work in its own threads: at most `places` at a time, `each` of one analyst; the rest waits in turn.

    More than `waiting_each` pieces of one analyst are refused with 429, more than `waiting` in total with 503. Nothing
    here waits for the response quantum, since nothing here depends on a private record.
    """

    def __init__(self, *, places: int, each: int, waiting: int, waiting_each: int, meter: QueueMeter) -> None:
        self._turns: RoundRobin[asyncio.Future[None]] = RoundRobin(places=places, each=each)
        self._threads = CapacityLimiter(places)
        self._waiting, self._waiting_each = waiting, waiting_each
        self._meter = meter
        self._under_way = 0

    @property
    def under_way(self) -> int:
        """Number of pieces of work that wait or run."""
        return self._under_way

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[None]:
        """Wait for a slot; it is free again when the block ends."""
        self._require_capacity(who)
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns.add(who, slot)
        self._under_way += 1
        self._start_next()
        try:
            with self._meter.measure_wait():
                await slot
            yield
        finally:
            self._under_way -= 1
            if slot.done() and not slot.cancelled():
                self._turns.free(who)
                self._start_next()

    async def run(self, who: str, work: Callable[[], T]) -> T:
        """Run `work` in a thread when it is the turn of `who`, and return its result."""
        async with self.turn(who):
            return await self.run_in_thread(work)

    async def run_in_thread(self, work: Callable[[], T]) -> T:
        """Run `work` for a caller that has a slot already."""
        return await run_sync(work, limiter=self._threads)

    def _require_capacity(self, who: str) -> None:
        if self._turns.under_way(who) >= self._waiting_each:
            raise Refusal(
                "too-many-calls",
                f"You have {self._waiting_each:,} calls of this kind under way, which is the maximum. Nothing was "
                "charged. Wait for an answer, then try again.",
            )
        if self._under_way >= self._waiting:
            raise Refusal("busy", "Too many calls wait already. Nothing was charged. Try again in a moment.")

    def _start_next(self) -> None:
        while (turn := self._turns.next_turn()) is not None:
            who, slot = turn
            if not slot.cancelled():
                slot.set_result(None)
                continue
            self._turns.free(who)  # its caller has disconnected


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A query that is answered later. `release` is the number of its release, `problem` a problem document."""

    id: str
    analyst: str
    dataset: str
    kind: str
    state: State
    created: str
    release: int | None = None
    replayed: bool = False
    problem: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        names = ("id", "dataset", "kind", "state", "created", "release", "replayed", "problem")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        outcome = json.loads(row["outcome"] or "{}")
        columns = {name: row[name] for name in ("id", "analyst", "dataset", "kind", "state", "created")}
        return cls(**columns, **outcome)


class Jobs:
    """The thread pool in which queries are answered, and the jobs that callers poll."""

    def __init__(self, settings: Settings, records: Records, meter: QueueMeter) -> None:
        self._settings, self._records, self._meter = settings, records, meter
        self._pool = ThreadPoolExecutor(settings.answering, thread_name_prefix="answering")
        self._turns: RoundRobin[asyncio.Future[None]] = RoundRobin(
            places=settings.answering, each=settings.answering_each
        )
        self._arriving: Counter[str] = Counter()  # admitted, and not queued yet
        self._is_closed = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._followers: set[asyncio.Task[None]] = set()

    @property
    def under_way(self) -> int:
        """Number of queries that wait or run."""
        return len(self._tasks)

    def submit(self, work: Work, who: str, *, job: str | None = None) -> asyncio.Task[Release[Any] | PrivacyError]:
        """Queue a query; it runs when a thread of the pool is free and it is the analyst's turn."""
        loop, arrival = asyncio.get_running_loop(), time.monotonic()
        turn: asyncio.Future[None] = loop.create_future()
        self._turns.add(who, turn)
        task = loop.create_task(self._run(work, who, turn, arrival, job))
        self._start_next()
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def wait(self, work: Work, caller: Caller) -> Release[Any]:
        """Return the release, however long it takes: a value that is delivered once has no place in a job."""
        self._require_capacity(caller.name)
        return _unwrap(await self.submit(work, caller.name))

    async def answer(self, work: Work, caller: Caller, dataset: str, kind: str, *, later: bool) -> Release[Any] | Job:
        """Return the release; or a job, if `later` or if it takes longer than `async_after_seconds`."""
        self._require_capacity(caller.name)
        if later:
            job = await self._queue_job(caller, dataset, kind)
            self._follow(job.id, self.submit(work, caller.name, job=job.id))
            return job
        task = self.submit(work, caller.name)
        done, _ = await asyncio.wait({task}, timeout=self._settings.async_after_seconds)
        if done:
            return _unwrap(task.result())
        try:
            job = await asyncio.to_thread(self._add_job, caller, dataset, kind, "running")
        except LedgerUnreachable:  # the job could not be polled, so the caller waits on
            return _unwrap(await task)
        self._follow(job.id, task)
        return job

    def find(self, caller: Caller, key: str) -> Job:
        """Return a job of the caller; a steward or an auditor finds any."""
        row = self._records.find(JOBS, key)
        if row is None or not (caller.reads_all or row["analyst"] == caller.name):
            raise Refusal("not-found", "There is no job with this id, or it is not yours.")
        if row["state"] in ("queued", "running") and _is_lost(row):
            outcome = json.dumps({"problem": problem_document(unanswered_refusal())})
            return Job.of(row | {"state": "failed", "outcome": outcome})
        return Job.of(row)

    async def close(self) -> None:
        """Wait up to `shutdown_seconds` for queries under way, and stop the pool."""
        under_way = self._tasks | self._followers
        if under_way:
            await asyncio.wait(under_way, timeout=self._settings.shutdown_seconds)
        self._is_closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _queue_job(self, caller: Caller, dataset: str, kind: str) -> Job:
        self._arriving[caller.name] += 1
        try:
            return await asyncio.to_thread(self._add_job, caller, dataset, kind)
        finally:
            self._arriving[caller.name] -= 1
            self._arriving += Counter()  # drops names with a count of zero

    def _require_capacity(self, who: str) -> None:
        """Refuse before anything is charged or stored: an analyst with too many queries, then everybody."""
        limit = self._settings.waiting_each
        if self._turns.under_way(who) + self._arriving[who] >= limit:
            raise Refusal(
                "too-many-questions",
                f"You have {limit:,} queries under way, which is the maximum. Nothing was charged. Wait for an answer, "
                "then ask.",
            )
        if len(self._tasks) + self._arriving.total() >= self._settings.waiting:
            raise Refusal("busy", "Too many queries wait already. Nothing was charged. Try again in a moment.")

    def _start_next(self) -> None:
        while not self._is_closed and (turn := self._turns.take()) is not None:
            turn.set_result(None)

    async def _run(
        self, work: Work, who: str, turn: asyncio.Future[None], arrival: float, job: str | None
    ) -> Release[Any] | PrivacyError:
        with self._meter.measure_wait():
            await turn
        loop = asyncio.get_running_loop()
        try:
            context = contextvars.copy_context()  # so that log lines have the id of the request
            return await loop.run_in_executor(self._pool, context.run, self._begin, work, arrival, job)
        except PrivacyError as refusal:
            return refusal
        except Exception as error:  # noqa: BLE001 - nothing of it may leave
            log_failure("job", error)
            return unanswered_refusal()
        finally:  # after the hold at the end of `_begin`: the start of the next query reveals the quantum only
            self._turns.free(who)
            self._start_next()

    def _begin(self, work: Work, arrival: float, job: str | None) -> Release[Any]:
        if job is not None:
            self._records.change(JOBS, job, state="running")
        return work(partial(self._hold, arrival))

    def _hold(self, arrival: float) -> None:
        """Sleep, in the thread that computed, until the next multiple of the response quantum."""
        quantum = self._settings.quantum_seconds
        if quantum:
            time.sleep(quantum - (time.monotonic() - arrival) % quantum)

    def _add_job(self, caller: Caller, dataset: str, kind: str, state: State = "queued") -> Job:
        columns = {"analyst": caller.name, "dataset": dataset, "kind": kind, "state": state, "worker": _worker_id()}
        row = {"id": new_id(), **columns}
        self._records.add(JOBS, row)
        return Job.of(self._records.find(JOBS, row["id"]) or row)

    def _follow(self, key: str, task: asyncio.Task[Release[Any] | PrivacyError]) -> None:
        """Record the outcome of a job when it has ended."""
        follower = asyncio.get_running_loop().create_task(self._record_outcome(key, task))
        self._followers.add(follower)
        follower.add_done_callback(self._followers.discard)

    async def _record_outcome(self, key: str, task: asyncio.Task[Release[Any] | PrivacyError]) -> None:
        result, outcome = await task, dict[str, Any]()
        if isinstance(result, PrivacyError):
            state, outcome = "failed", {"problem": problem_document(result)}
        else:
            state, outcome = "done", {"release": result.ledger_id, "replayed": result.replayed}
        # Without a retry the job would seem to run forever.
        while not await asyncio.to_thread(self._try_to_record, key, state, json.dumps(outcome)):
            await asyncio.sleep(_RETRY_SECONDS)

    def _try_to_record(self, key: str, state: str, outcome: str) -> bool:
        try:
            self._records.change(JOBS, key, state=state, outcome=outcome)
        except LedgerUnreachable:
            return False
        return True


def _unwrap(result: Release[Any] | PrivacyError) -> Release[Any]:
    if isinstance(result, PrivacyError):
        raise result
    return result


def _worker_id() -> str:
    return f"{platform.node()}/{os.getpid()}/{_start_time(os.getpid())}"


def _start_time(process: int | str) -> str:
    """Return when a process of this machine began, in clock ticks since boot; "" if it is gone."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]


def _is_lost(row: dict[str, Any]) -> bool:
    """Return whether the worker of a job is gone: a process of this machine that ended, or any after a day.

    The start time is compared too: after a restart, and always in a container, another process may have its number.
    """
    node, process, began = [*row["worker"].split("/"), ""][:3]
    if moment() - datetime.fromisoformat(row["created"]) > _MAX_JOB_AGE:
        return True
    return bool(node == platform.node() and (not began or _start_time(process) != began))
