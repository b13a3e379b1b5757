"""A fair queue for work that takes processor time and looks at no record: plans, trade-off curves, samples, pictures,
scores of the caller's own records, and requests with large bodies.

A few pieces of work run at a time, in threads of their own, and analysts take turns. Threads that answer other calls
therefore stay free. Nothing here waits for the tick, since nothing here depends on a private record.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from wallflower.curator.desk.metrics import QueueMeter
from wallflower.curator.desk.problems import Refusal
from wallflower.curator.desk.questions.turns import Turns

T = TypeVar("T")


class FairQueue:
    """Run at most `places` pieces of work at a time, at most `each` of one analyst; the others wait in turn.

    More than `waiting_each` pieces of one analyst are refused with 429, more than `waiting` in all with 503.
    """

    def __init__(self, *, places: int, each: int, waiting: int, waiting_each: int, meter: QueueMeter) -> None:
        self._turns: Turns[asyncio.Future[None]] = Turns(places=places, each=each)
        self._threads = CapacityLimiter(places)
        self._waiting, self._waiting_each = waiting, waiting_each
        self._meter = meter
        self._under_way = 0

    @property
    def under_way(self) -> int:
        """How many pieces of work wait or run."""
        return self._under_way

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[None]:
        """Wait for a place; it is free again when the block ends."""
        self._require_room(who)
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns.add(who, place)
        self._under_way += 1
        self._call_next()
        try:
            with self._meter.measure_wait():
                await place
            yield
        finally:
            self._under_way -= 1
            if place.done() and not place.cancelled():
                self._turns.free(who)
                self._call_next()

    async def run(self, who: str, work: Callable[[], T]) -> T:
        """The result of `work`, run in a thread when it is the turn of `who`."""
        async with self.turn(who):
            return await self.run_in_thread(work)

    async def run_in_thread(self, work: Callable[[], T]) -> T:
        """The result of `work`, for a caller that has a place already."""
        return await run_sync(work, limiter=self._threads)

    def _require_room(self, who: str) -> None:
        if self._turns.under_way(who) >= self._waiting_each:
            raise Refusal(
                "too-many-calls",
                f"You have {self._waiting_each:,} calls of this kind under way, which is the most. Nothing was "
                "charged. Wait for an answer, then try again.",
            )
        if self._under_way >= self._waiting:
            raise Refusal("busy", "Too many calls wait already. Nothing was charged. Try again in a moment.")

    def _call_next(self) -> None:
        while (place := self._turns.next_turn()) is not None:
            who, waiting = place
            if not waiting.cancelled():
                waiting.set_result(None)
                continue
            self._turns.free(who)  # its caller has gone
