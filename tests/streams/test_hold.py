"""Every order of kills, copies and restores on a short stream: no observation is decided twice, no flag unpaid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from importlib import import_module
from itertools import count, product
from random import Random
from typing import Any

import pytest
from watch_worlds import BookInMemory, StateInMemory, World, unlike_any

from wallflower.privacy import Loss
from wallflower.queries.watch import Watch
from wallflower.queries.watch.detectors import Sparse, Staircase
from wallflower.streams import session as sessions

door: Any = import_module("wallflower.streams.watch")

ACTIONS = (
    "decide a 1",
    "decide a 3",
    "noted a",
    "kept a",
    "close a",
    "save",
    "restore",
    "copy",
    "decide b 1",
    "noted b",
    "amid b",
    "kill b",
    "close b",
)
SILENT = ("close a", "save", "restore", "copy", "kill b", "close b")  # nobody is told anything
PERSON = Watch(threshold=2.0, low=-5.0, high=5.0, level="person", cutoff=3, loss=Loss("3000"))
WATCHES = {  # with the most flags that are paid for; at so large a loss every observation here is flagged
    "event": (Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("0.25"), scores=True), None),
    "flags": (PERSON, 3),
    "half flags": (replace(PERSON, adaptive=True), 6),
    "steps": (replace(PERSON, cutoff=None, steps=5, loss=Loss.zcdp("3000")), 5),
}


@pytest.fixture(autouse=True)
def _in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "Checkpoint", StateInMemory)
    monkeypatch.setattr(Staircase, "decide", unlike_any(count(1)))
    monkeypatch.setattr(sessions, "OBSERVATIONS_PER_INTENT", 1)  # blocks that reach beyond what was asked for


def short() -> Iterator[tuple[str, ...]]:
    """All there are of three steps, but for those whose last tells nothing: another begins with the same two."""
    return product(ACTIONS, ACTIONS, [each for each in ACTIONS if each not in SILENT])


def long(seed: int, many: int) -> Iterator[tuple[str, ...]]:
    """Some that are longer, the same in every run."""
    draw = Random(seed)
    return (tuple(draw.choices(ACTIONS, k=14)) for _ in range(many))


def lived(name: str, steps: tuple[str, ...]) -> World:
    world = World(*WATCHES[name])
    for step in steps:
        before = deepcopy(world.seen) if step in SILENT else None
        world.step(step)
        assert before is None or world.seen == before
    return world


@pytest.mark.slow
@pytest.mark.parametrize("name", WATCHES)
def test_nothing_is_told_twice_whatever_is_copied_killed_or_restored(name: str) -> None:
    for steps in long(1, 100):
        assert lived(name, steps).is_private, steps


@pytest.mark.slow
@pytest.mark.parametrize("name", WATCHES)
def test_nothing_is_told_twice_in_any_order_of_three(name: str) -> None:
    for steps in short():
        assert lived(name, steps).is_private, steps


def test_the_worlds_tell_something() -> None:
    worlds = [lived("event", steps) for steps in long(1, 100)]
    told = [len(world.seen) for world in worlds]
    notes = [world.book.rows[1] for world in worlds]
    assert sum(told) / len(told) > 3
    assert sum(len({note.holder for note in rows}) > 2 for rows in notes) > 50  # they do change hands


def test_a_crash_costs_one_flag_at_most_and_a_clean_stop_none() -> None:
    clean = lived("flags", ("decide a 1", "close a", "decide a 1", "close a", "decide a 1"))
    assert sum(any(flag for flag, _ in told) for told in clean.seen.values()) == 3
    idle = lived("flags", ("decide a 1", "kept a", "decide a 1"))  # dead between two observations: all of it is known
    assert sorted(idle.seen) == [1, 2, 3]
    busy = lived("flags", ("decide a 1", "noted a", "decide a 4"))
    assert sorted(busy.seen) == [1, 4]


# Rules without which something would be told twice


def look_at_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sessions.IntentLog, "count_skipped", lambda *_: 0)


def note_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sessions.IntentLog, "cover", lambda *_: True)


def let_two_go_on(patch: pytest.MonkeyPatch) -> None:
    def reserve(book: BookInMemory, asked: Any, *, after: Any) -> Any:
        made = replace(asked, hash=f"row {asked.number}")
        book.rows[asked.charge].append(made)
        return made

    patch.setattr(BookInMemory, "reserve", reserve)


def trust_the_state(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sessions, "bounded_spending", lambda _, **known: known["spent"])


def trust_a_whole_state(patch: pytest.MonkeyPatch) -> None:
    def spent(latest: Any, *, position: int, spent: int, **_: int) -> int:
        return spent if position == latest.last else max(spent, latest.spent)

    patch.setattr(sessions, "bounded_spending", spent)


def set_nothing_aside(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Sparse, "reserve", lambda *_: 0)
    whole = Sparse.decide
    patch.setattr(Sparse, "decide", lambda *given, max_spent=None: whole(*given))


def give_back_what_was_told(patch: pytest.MonkeyPatch) -> None:
    def release(held: Any, position: int, spent: int) -> None:
        held._write(settled=held._begun_at, last=held._begun_at, spent=spent)

    patch.setattr(sessions.IntentLog, "release", release)


BROKEN = (
    (look_at_all, "event"),
    (note_nothing, "event"),
    (let_two_go_on, "event"),
    (give_back_what_was_told, "event"),
    (trust_the_state, "flags"),
    (trust_a_whole_state, "flags"),
    (set_nothing_aside, "flags"),
)


@pytest.mark.parametrize(("broken", "name"), BROKEN, ids=lambda each: getattr(each, "__name__", each))
def test_a_broken_rule_shows(broken: Callable[[pytest.MonkeyPatch], None], name: str, monkeypatch: Any) -> None:
    broken(monkeypatch)
    assert any(not lived(name, steps).is_private for steps in (*long(1, 200), *long(2, 2000)))
