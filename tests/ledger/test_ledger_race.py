"""Many processes and one budget: nobody overspends, nothing is lost, whoever dies leaves a usable ledger."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from wallflower.errors import BudgetExhausted, KeyConflict
from wallflower.ledger import Ledger
from wallflower.privacy import Loss

PROCESSES = 8
gate: Any = None


def question(epsilon: str) -> Any:
    loss = Loss(epsilon)
    return SimpleNamespace(label="outlier-count/1", cost=lambda: loss, to_json=lambda: {"loss": loss.to_json()})


def enter(barrier: Any) -> None:
    global gate
    gate = barrier


def race(runner: Callable[[str], Any], place: str) -> list[Any]:
    """What each of eight fresh processes returns, all let go at once."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(PROCESSES, initializer=enter, initargs=(context.Barrier(PROCESSES),)) as pool:
        results = pool.map(runner, [place] * PROCESSES, chunksize=1)
        pool.close()
        pool.join()
    return results


def spend_all(place: str) -> int:
    with Ledger.open(place) as ledger:
        gate.wait()
        for paid in range(1000):
            try:
                ledger.charge("icu", question("1/40"), analyst=f"analyst {os.getpid()}")
            except BudgetExhausted:
                return paid
    return -1


def open_and_spend(place: str) -> str:
    gate.wait()
    with Ledger.open(place) as ledger:
        ledger.charge("icu", question("1/8"), analyst="ana")
        return ledger.verify().head


def charge_one_key(place: str) -> int | None:
    with Ledger.open(place) as ledger:
        gate.wait()
        try:
            receipt = ledger.charge("icu", question("1/2"), analyst="ana", key="same")
        except KeyConflict:
            return None
        return receipt.id


@pytest.mark.slow
def test_eight_processes_share_the_last_budget_exactly(place: str) -> None:
    Ledger.open(place).close()
    paid = race(spend_all, place)
    with Ledger.open(place) as ledger:
        assert sum(paid) == 40
        assert ledger.remaining("icu") == Loss("0")
        assert ledger.verify().entries == 40


@pytest.mark.slow
def test_eight_processes_may_open_a_new_ledger_at_once(place: str) -> None:
    heads = race(open_and_spend, place)
    with Ledger.open(place) as ledger:
        assert ledger.remaining("icu") == Loss("0")
        assert ledger.verify().entries == PROCESSES
        for head in heads:
            ledger.verify(head=head)


@pytest.mark.slow
def test_one_key_is_charged_once_however_many_ask(place: str) -> None:
    Ledger.open(place).close()
    assert sorted(race(charge_one_key, place), key=str) == [1] + [None] * (PROCESSES - 1)


FORK = """
import os, sys
from test_ledger_race import question
from wallflower.ledger import Ledger
with Ledger.open(sys.argv[1]) as ledger:
    ledger.charge("icu", question("1/10"), analyst="parent")
    children = []
    for number in range(4):
        child = os.fork()
        if not child:
            ledger.charge("icu", question("1/10"), analyst=f"child {number}")
            os._exit(0)
        children.append(child)
    ledger.charge("icu", question("1/10"), analyst="parent")
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    assert ledger.verify().entries == 6
"""

HOLD = """
import sys, time
from test_ledger_race import question
from wallflower.ledger import Ledger
from wallflower.ledger.rows import append
with Ledger.open(sys.argv[1]) as ledger, ledger._store.write() as db:
    append(db, "limit", "icu", body="{}")
    print("held", flush=True)
    time.sleep(3600)
"""


def script(program: str, place: str) -> subprocess.Popen[str]:
    here = os.path.dirname(__file__)
    return subprocess.Popen([sys.executable, "-c", program, place], cwd=here, stdout=subprocess.PIPE, text=True)


def test_a_fork_shares_no_connection_with_its_parent(place: str) -> None:
    with script(FORK, place) as parent:
        assert parent.wait() == 0


def test_a_writer_killed_in_the_act_leaves_nothing_and_locks_nothing(place: str) -> None:
    with Ledger.open(place) as ledger:
        ledger.charge("icu", question("1/4"), analyst="ana")
        before = list(ledger.export())
        with script(HOLD, place) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "held\n"
            assert list(ledger.export()) == before
            writer.send_signal(signal.SIGKILL)
        assert ledger.charge("icu", question("1/4"), analyst="ana").left == Loss("1/2")
        assert ledger.verify().entries == 2
