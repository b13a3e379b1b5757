"""A live chart decides as in a batch, however it is cut; nothing is summed twice, whatever is killed or copied."""

from __future__ import annotations

import random
import signal
import sqlite3
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from watch_worlds import BookInMemory, StateInMemory, World

import wallflower.streams.watch as open_watch
from forks import Fork
from wallflower.errors import ParameterError
from wallflower.ledger import Ledger
from wallflower.machine.vault import make_key
from wallflower.privacy import Loss
from wallflower.queries.shift import Shift
from wallflower.queries.shift.charts import BoundedChart, NoisySums
from wallflower.streams import OpenWatch, fleet, watching

CHART = Shift(low=-3.0, high=3.0, variance=1.0, loss=Loss("1000"), block=4, direction="up")
PERSON = Shift(low=-3.0, high=3.0, variance=1.0, loss=Loss("1000"), level="person", memory=4, block=2, direction="up")
ROWS = np.where(np.arange(40) < 20, -2.0, 2.0).tolist()


def opened(book: Ledger, query: Shift = CHART, **more: Any) -> OpenWatch:
    return watching(query, columns=["x"], dataset="ward", ledger=book, force=True, **more)


@pytest.fixture
def rich(tmp_path: Path) -> Ledger:
    book = Ledger.open(tmp_path / "rich.db")
    book.grant("ward", Loss("100000"), by="owner")
    return book


@pytest.mark.parametrize("query", [CHART, PERSON], ids=["entry", "person"])
@pytest.mark.parametrize("size", [1, 3, 40])
def test_a_chart_that_is_closed_and_resumed_decides_as_one_that_stays_open(
    rich: Ledger, tmp_path: Path, query: Shift, size: int
) -> None:
    whole = opened(rich, query).decide_many(ROWS)
    flags: list[Any] = []
    for start in range(0, len(ROWS), size):
        with opened(rich, query, checkpoint=tmp_path / "s.db") as live:
            assert (live.resumed, live.skipped_ahead) == (start > 0, 0)
            flags += live.decide_many(ROWS[start : start + size]).outliers
    assert any(flags)
    assert flags[: len(whole)] == whole.outliers
    first = flags.index(True) + 1
    with opened(rich, query, checkpoint=tmp_path / "s.db") as live:
        told = live.decide_many([None], first=first)
    assert told.outliers == [True]
    assert told.noisy_scores == [21 if query is CHART else 0]


def test_what_a_chart_remembers_is_sealed_with_the_key(rich: Ledger, tmp_path: Path) -> None:
    key = tmp_path / "key"
    make_key(key)
    with opened(rich, PERSON, checkpoint=tmp_path / "s.db", checkpoint_key=key) as live:
        live.decide_many(ROWS[:3])
        remembered = live._session.memory
    assert remembered
    with sqlite3.connect(tmp_path / "s.db") as file:
        (stored,) = file.execute("SELECT memory FROM sessions").fetchone()
    assert stored.isalnum()  # hexadecimal digits, not a list of numbers


@pytest.mark.parametrize("query", [CHART, PERSON], ids=["entry", "person"])
def test_no_block_is_summed_or_tested_twice_whatever_is_killed_copied_or_restored(
    query: Shift, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_watch, "Checkpoint", StateInMemory)
    looks = Counter[int]()
    owner = NoisySums if query is CHART else BoundedChart
    decide = owner.decide

    def counted(self: Any, distances: Any, first: int, *rest: Any, **more: Any) -> Any:
        progress = decide(self, distances, first, *rest, **more)
        size = self.block if query is CHART else self.every
        looks.update(number for number in range(first, first + progress.count) if number % size == 0)
        return progress

    monkeypatch.setattr(owner, "decide", counted)
    steps = ["decide a 3", "decide b 2", "decide a 1", "noted a", "noted b", "kept a", "kept b", "amid b"]
    steps += ["close a", "close b", "kill a", "kill b", "save", "restore", "copy"]
    draw = random.Random(41)
    for _ in range(150):
        looks.clear()
        world = World(query, most=query.cutoff if query is PERSON else None, book=BookInMemory())
        for _ in range(12):
            world.step(draw.choice(steps))
        assert world.is_private
        assert all(count == 1 for count in looks.values())


SCRIPT = textwrap.dedent(
    """
    import os, signal, sys
    from wallflower.ledger import Ledger
    from wallflower.privacy import Loss
    from wallflower.queries.shift import Shift
    from wallflower.queries.shift.charts import NoisySums
    from wallflower.streams import watching
    from wallflower.streams.session import Checkpoint

    ledger, state, point = sys.argv[1:]

    def around(owner, method, before, after):
        real = getattr(owner, method)
        def wrapped(self, *given, **more):
            if calls[method] == 2 and point == before:
                os.kill(os.getpid(), signal.SIGKILL)
            value = real(self, *given, **more)
            calls[method] += 1
            if calls[method] == 3 and point == after:
                os.kill(os.getpid(), signal.SIGKILL)
            return value
        setattr(owner, method, wrapped)

    calls = {"decide": 0, "keep": 0}
    around(NoisySums, "decide", "before the look", "after the look")
    around(Checkpoint, "keep", "before it is kept", "after it is kept")
    query = Shift(low=-3.0, high=3.0, variance=1.0, loss=Loss("1000"), block=4, direction="up")
    with watching(query, columns=["x"], dataset="ward", ledger=ledger, checkpoint=state, force=True) as live:
        for _ in range(3):
            live.decide_many([2.0, 2.0])
    """
)


@pytest.mark.parametrize(("step", "kept"), [("after the look", 4), ("after it is kept", 6)])
def test_a_killed_chart_skips_what_it_may_have_summed(rich: Ledger, tmp_path: Path, step: str, kept: int) -> None:
    state = tmp_path / "s.db"
    with Fork(SCRIPT, str(tmp_path / "rich.db"), str(state), step) as process:
        code, _, complaints = process.finish()
    assert code == -signal.SIGKILL, complaints
    with opened(rich, checkpoint=state) as live:
        assert (live.resumed, live.position, live.skipped_ahead) == (True, kept, 6 - kept)
        assert live.decide_many([2.0] * 4).outliers[: 6 - kept] == [None] * (6 - kept)


def test_a_fleet_of_charts_is_refused_before_anything_is_charged(rich: Ledger, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="fleet"):
        fleet(CHART, columns=["x"], dataset="ward", ledger=rich, store=tmp_path / "f.db")  # type: ignore[arg-type]
    assert not rich.history(event="charge")
