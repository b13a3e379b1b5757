"""Questions on their way: a few at a time, of each analyst in turn, and a long one can be asked about.

Whatever a look comes to is held until a multiple of the tick after the question came, and its thread with it, so that
neither the answer, nor a count, a list or the beginning of another question tells more of when the look ended. Of a job
no more is told than that it waits, runs, is done or has failed.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import platform
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Self

from wallflower.curator.desk.access.tokens import Caller, new_id
from wallflower.curator.desk.clock import moment
from wallflower.curator.desk.logs import log_failure
from wallflower.curator.desk.metrics import QueueMeter
from wallflower.curator.desk.problems import Refusal, problem, unanswered_refusal
from wallflower.curator.desk.questions.turns import Turns
from wallflower.curator.desk.records import JOBS, Records
from wallflower.curator.settings import Settings
from wallflower.errors import LedgerUnreachable, PrivacyError
from wallflower.release import Release

State = Literal["queued", "running", "done", "failed"]
Hold = Callable[[], None]
Work = Callable[[Hold], Release[Any]]

_LONGEST: Final = timedelta(days=1)
_PAUSE: Final = 0.5  # seconds until an end that could not be written down is tried again


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A question that is answered later. `release` is the number of its release, `problem` what went wrong."""

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
        told = ("id", "dataset", "kind", "state", "created", "release", "replayed", "problem")
        return {name: getattr(self, name) for name in told}

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        outcome = json.loads(row["outcome"] or "{}")
        known = {name: row[name] for name in ("id", "analyst", "dataset", "kind", "state", "created")}
        return cls(**known, **outcome)


class Jobs:
    """The pool in which questions are answered, and the jobs that callers come back for."""

    def __init__(self, settings: Settings, records: Records, meter: QueueMeter) -> None:
        self._settings, self._records, self._meter = settings, records, meter
        self._pool = ThreadPoolExecutor(settings.answering, thread_name_prefix="answering")
        self._turns: Turns[asyncio.Future[None]] = Turns(places=settings.answering, each=settings.answering_each)
        self._arriving: Counter[str] = Counter()  # let in, and not in line yet
        self._is_closed = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._followers: set[asyncio.Task[None]] = set()

    @property
    def under_way(self) -> int:
        return len(self._tasks)

    def submit(self, work: Work, who: str, *, job: str | None = None) -> asyncio.Task[Release[Any] | PrivacyError]:
        """Take a question in; it is answered when a thread of the pool is free and it is the analyst's turn."""
        loop, came = asyncio.get_running_loop(), time.monotonic()
        turn: asyncio.Future[None] = loop.create_future()
        self._turns.add(who, turn)
        task = loop.create_task(self._perform(work, who, turn, came, job))
        self._call_next()
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def answer(self, work: Work, caller: Caller, dataset: str, kind: str, *, later: bool) -> Release[Any] | Job:
        """The answer; or a job, if the caller wants one or the answer takes longer than our patience."""
        self._require_room(caller.name)
        if later:
            job = await self._queue_job(caller, dataset, kind)
            self._follow(job.id, self.submit(work, caller.name, job=job.id))
            return job
        task = self.submit(work, caller.name)
        done, _ = await asyncio.wait({task}, timeout=self._settings.patience)
        if done:
            return _answer_of(task.result())
        try:
            job = await asyncio.to_thread(self._note_job, caller, dataset, kind, "running")
        except LedgerUnreachable:  # nobody could come back for it, so the caller waits on
            return _answer_of(await task)
        self._follow(job.id, task)
        return job

    def find(self, caller: Caller, key: str) -> Job:
        """A job of the caller's; a steward finds any."""
        row = self._records.find(JOBS, key)
        if row is None or not (caller.reads_all or row["analyst"] == caller.name):
            raise Refusal("not-found", "There is no job with this id, or it is not yours.")
        if row["state"] in ("queued", "running") and _is_lost(row):
            return Job.of(row | {"state": "failed", "outcome": json.dumps({"problem": problem(unanswered_refusal())})})
        return Job.of(row)

    async def close(self) -> None:
        """Let what is under way come to its end."""
        under_way = self._tasks | self._followers
        if under_way:
            await asyncio.wait(under_way, timeout=self._settings.grace)
        self._is_closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _queue_job(self, caller: Caller, dataset: str, kind: str) -> Job:
        self._arriving[caller.name] += 1
        try:
            return await asyncio.to_thread(self._note_job, caller, dataset, kind)
        finally:
            self._arriving[caller.name] -= 1
            self._arriving += Counter()  # forgets who has none

    def _require_room(self, who: str) -> None:
        """Refuse before anything is paid or noted: whoever has many under way, then anybody if too many wait."""
        most = self._settings.waiting_each
        if self._turns.under_way(who) + self._arriving[who] >= most:
            raise Refusal(
                "too-many-questions",
                f"You have {most:,} questions under way, and nobody may have more at a time. Nothing was charged. Wait "
                "for an answer, then ask.",
            )
        if len(self._tasks) + self._arriving.total() >= self._settings.waiting:
            raise Refusal("busy", "Too many questions wait already. Nothing was charged. Try again in a moment.")

    def _call_next(self) -> None:
        while not self._is_closed and (turn := self._turns.take()) is not None:
            turn.set_result(None)

    async def _perform(
        self, work: Work, who: str, turn: asyncio.Future[None], came: float, job: str | None
    ) -> Release[Any] | PrivacyError:
        with self._meter.measure_wait():
            await turn
        loop = asyncio.get_running_loop()
        try:
            here = contextvars.copy_context()  # so that lines of the log have the id of the request
            return await loop.run_in_executor(self._pool, here.run, self._begin, work, came, job)
        except PrivacyError as refusal:
            return refusal
        except Exception as error:  # noqa: BLE001 - nothing of it may leave
            log_failure("job", error)
            return unanswered_refusal()
        finally:  # after the hold, which `_begin` ends with: the next question tells of the tick alone
            self._turns.free(who)
            self._call_next()

    def _begin(self, work: Work, came: float, job: str | None) -> Release[Any]:
        if job is not None:
            self._records.change(JOBS, job, state="running")
        return work(partial(self._hold, came))

    def _hold(self, came: float) -> None:
        """Wait, in the thread that looked, for the next multiple of the tick."""
        tick = self._settings.tick
        if tick:
            time.sleep(tick - (time.monotonic() - came) % tick)

    def _note_job(self, caller: Caller, dataset: str, kind: str, state: State = "queued") -> Job:
        own = {"analyst": caller.name, "dataset": dataset, "kind": kind, "state": state, "worker": _worker()}
        row = {"id": new_id(), **own}
        self._records.add(JOBS, row)
        return Job.of(self._records.find(JOBS, row["id"]) or row)

    def _follow(self, key: str, task: asyncio.Task[Release[Any] | PrivacyError]) -> None:
        """Write down how it ended, when it has."""
        following = asyncio.get_running_loop().create_task(self._record_end(key, task))
        self._followers.add(following)
        following.add_done_callback(self._followers.discard)

    async def _record_end(self, key: str, task: asyncio.Task[Release[Any] | PrivacyError]) -> None:
        outcome = await task
        if isinstance(outcome, PrivacyError):
            ended: dict[str, Any] = {"state": "failed", "outcome": json.dumps({"problem": problem(outcome)})}
        else:
            ended = {
                "state": "done",
                "outcome": json.dumps({"release": outcome.ledger_id, "replayed": outcome.replayed}),
            }
        while not await asyncio.to_thread(self._try_to_record, key, ended):  # else it would seem to run for ever
            await asyncio.sleep(_PAUSE)

    def _try_to_record(self, key: str, ended: dict[str, Any]) -> bool:
        try:
            self._records.change(JOBS, key, **ended)
        except LedgerUnreachable:
            return False
        return True


def _answer_of(outcome: Release[Any] | PrivacyError) -> Release[Any]:
    if isinstance(outcome, PrivacyError):
        raise outcome
    return outcome


def _worker() -> str:
    return f"{platform.node()}/{os.getpid()}/{_start_time(os.getpid())}"


def _start_time(process: int | str) -> str:
    """When a process of this machine began, as the kernel counts; an empty text if it is gone."""
    try:
        told = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return told.rpartition(")")[2].split()[19]


def _is_lost(row: dict[str, Any]) -> bool:
    """Whether whoever had this job is gone: a process of this machine that ended, or any after a day.

    After a restart another process may have its number, and in a container it does.
    """
    node, process, began = [*row["worker"].split("/"), ""][:3]
    if moment() - datetime.fromisoformat(row["created"]) > _LONGEST:
        return True
    return bool(node == platform.node() and (not began or _start_time(process) != began))
