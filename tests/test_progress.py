"""Progress: told by rooms, heard by whoever listens, and free when nobody does."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from ranking import Ranking
from wallflower import progress
from wallflower.cli import show
from wallflower.data import Points
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.release import release


class Notes:
    """A listener that writes everything down."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []

    def begin(self, words: str, total: int) -> int:
        self.said.append(("begin", words, total))
        return len(self.said)

    def advance(self, handle: int, steps: int) -> None:
        self.said.append(("advance", handle, steps))

    def end(self, handle: int) -> None:
        self.said.append(("end", handle))


def test_a_listener_hears_begin_steps_and_end() -> None:
    notes = Notes()
    with progress.report_to(notes), progress.steps("weighing", 3) as step:
        step()
        step(2)
    assert notes.said == [("begin", "weighing", 3), ("advance", 1, 1), ("advance", 1, 2), ("end", 1)]


def test_without_a_listener_nothing_happens() -> None:
    notes = Notes()
    with progress.report_to(notes):
        pass
    with progress.steps("weighing", 3) as step:
        step()
    assert notes.said == []


def test_steps_may_be_told_from_worker_threads() -> None:
    notes = Notes()
    with progress.report_to(notes), progress.steps("weighing", 400) as step, ThreadPoolExecutor(8) as workers:
        list(workers.map(lambda _: step(), range(400)))
    assert notes.said == [("begin", "weighing", 400), *[("advance", 1, 1)] * 400, ("end", 1)]


def test_work_may_be_counted_inside_work() -> None:
    notes = Notes()
    with progress.report_to(notes), progress.steps("outer", 1) as outer:
        with progress.steps("inner", 1) as inner:
            inner()
        outer()
    kinds = [("begin", "outer", 1), ("begin", "inner", 1), ("advance", 2, 1), ("end", 2), ("advance", 1, 1), ("end", 1)]
    assert notes.said == kinds


def test_the_innermost_listener_hears_and_the_outer_one_is_back_afterwards() -> None:
    outer, inner = Notes(), Notes()
    with progress.report_to(outer):
        with progress.report_to(inner), progress.steps("weighing", 1):
            pass
        with progress.steps("counting", 1):
            pass
    assert [notes.said[0][1] for notes in (outer, inner)] == ["counting", "weighing"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_exception_ends_it_and_a_late_step_is_not_heard(error: type[BaseException]) -> None:
    notes = Notes()
    with progress.report_to(notes):
        with pytest.raises(error), progress.steps("weighing", 3) as step:
            raise error
        step()
    assert notes.said == [("begin", "weighing", 3), ("end", 1)]


def test_what_a_look_tells_is_the_same_whatever_the_records(ledger: Ledger) -> None:
    told = []
    ledger.grant("unnamed", Loss("9"), by="steward")
    for rows in (np.zeros((30, 2)), np.arange(60.0).reshape(30, 2)):
        notes = Notes()
        with progress.report_to(notes):
            release(Ranking.example(), Points.from_array(rows, columns=("x1", "x2")), ledger)
        told.append(notes.said)
    assert told[0] == told[1]
    assert told[0][0] == ("begin", "ranking sets of columns", 2)


# On a terminal


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    seen = io.StringIO()
    terminal = Console(file=seen, force_terminal=True, width=100, highlight=False, legacy_windows=False)
    monkeypatch.setattr(show, "_stderr", lambda: terminal)
    return seen


def test_a_spinner_turns_into_a_bar_and_back(screen: io.StringIO) -> None:
    def fresh() -> str:
        screen.seek(0)
        screen.truncate()
        heard = progress._listener.get()
        assert heard is not None
        heard[0].refresh()  # type: ignore[attr-defined]
        return screen.getvalue()

    with show.sign_of_life("How many [red]?"):
        assert "How many [red]?" in fresh()
        with progress.steps("weighing [b]", 4) as step:
            step(3)
            said = fresh()
            assert "weighing [b]" in said
            assert "3/4" in said
            assert "How many" not in said
        assert "How many" in fresh()
    assert progress._listener.get() is None


def test_an_interrupt_leaves_the_terminal_as_it_was(screen: io.StringIO) -> None:
    with pytest.raises(KeyboardInterrupt), show.sign_of_life("looking"), progress.steps("weighing", 4):
        raise KeyboardInterrupt
    assert screen.getvalue().rfind("\x1b[?25h") > screen.getvalue().rfind("\x1b[?25l") >= 0, "the cursor is shown again"


def test_nothing_is_said_or_heard_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with show.sign_of_life("looking"), progress.steps("weighing", 4) as step:
        step()
        assert progress._listener.get() is None
    assert capsys.readouterr() == ("", "")
