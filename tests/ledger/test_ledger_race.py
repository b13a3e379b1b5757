"""Many processes and one budget: nobody overspends, nothing is lost, whoever dies leaves a usable ledger."""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from true_losses import factor

from forks import FORKS, Fork
from wallflower.errors import BudgetExhausted, KeyConflict, ParameterError
from wallflower.ledger import Declaration, Ledger
from wallflower.ledger.chain import canonical
from wallflower.privacy import Loss
from wallflower.units import NEIGHBOURS, Claim, Protection

pytestmark = pytest.mark.slow  # together more than `make check` has room for

PROCESSES = 8
gate: Any = None


def question(epsilon: str, stated: Loss | None = None) -> Any:
    loss = stated or Loss(epsilon)
    return SimpleNamespace(label="outlier-count/1", cost=lambda: loss, to_json=lambda: {"loss": loss.to_json()})


def enter(barrier: Any) -> None:
    global gate
    gate = barrier


def race(runner: Callable[[str], Any], place: str) -> list[Any]:
    """What each of eight fresh processes returns, all let go at once."""
    with FORKS.Pool(PROCESSES, initializer=enter, initargs=(FORKS.Barrier(PROCESSES),)) as pool:
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


def spend_by_unit(place: str) -> Fraction:
    """What really was lost by the questions of one process, all of another unit than its neighbour's."""
    number, lost = os.getpid(), Fraction()
    with Ledger.open(place) as ledger:
        unit = list(NEIGHBOURS)[gate.wait() % len(NEIGHBOURS)]
        loss = Loss("1/64", neighbours=NEIGHBOURS[unit])
        claim = Claim(loss=loss, columns=2, steps=3, window=2 if unit == "window" else None)
        for _ in range(1000):
            try:
                ledger.charge("icu", question("1/64", loss), analyst=f"analyst {number}", claim=claim)
            except BudgetExhausted:
                return lost
            lost += Fraction(factor(claim, Protection())) / 64
    raise AssertionError("the budget has no end")


def declare_or_charge(place: str) -> str:
    """Half of them declare another unit, half of them ask by a schema: one of both comes first."""
    with Ledger.open(place) as ledger:
        turn = gate.wait()
        declared = Declaration(dataset="icu", account="icu", protection=Protection(units_per_person=1 + turn // 2))
        try:
            if turn % 2:
                ledger.declare("icu", declared.protection, by="steward")
            else:
                ledger.charge("icu", question("1/100"), analyst="ana", declared=declared)
        except ParameterError:
            return "refused"
    return "done"


def charge_one_key(place: str) -> int | None:
    with Ledger.open(place) as ledger:
        gate.wait()
        try:
            receipt = ledger.charge("icu", question("1/2"), analyst="ana", idempotency_key="same")
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
def test_eight_processes_with_questions_of_every_unit_lose_no_more_than_one(place: str) -> None:
    Ledger.open(place).close()
    lost = race(spend_by_unit, place)
    with Ledger.open(place) as ledger:
        assert sum(lost) == ledger.spent("icu").epsilon
        assert Fraction(62, 64) < sum(lost) <= 1
        ledger.verify()


@pytest.mark.slow
def test_a_unit_that_is_declared_while_questions_come_in_stays_one(place: str) -> None:
    Ledger.open(place).close()
    race(declare_or_charge, place)
    with Ledger.open(place) as ledger:
        charges = ledger.history(event="charge")
        units = {entry.unit for entry in charges}
        assert len(units) <= 1
        assert units <= {canonical(ledger.account("icu").protection.to_json())}
        first = min((entry.id for entry in charges), default=0)
        late = [entry for entry in ledger.history(event="account") if first and entry.id > first]
        assert {canonical(entry.details["protects"]) for entry in late} <= units


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


IN_THE_ACT = """
import sys, time
from test_ledger_race import ACTS
import wallflower.ledger.account as account, wallflower.ledger.ledger as book, wallflower.ledger.rows as rows
from wallflower.ledger import Ledger
written = rows.append
def hold(*given, **more):
    entry = written(*given, **more)
    if entry.event == sys.argv[2]:
        print("held", flush=True)
        time.sleep(3600)
    return entry
rows.append = book.append = account.append = hold
with Ledger.open(sys.argv[1]) as ledger:
    ACTS[sys.argv[2]](ledger)
"""

ONE_AFTER_ANOTHER = """
import itertools, sys
from test_ledger_race import declared_charge
from wallflower.ledger import Ledger
with Ledger.open(sys.argv[1]) as ledger:
    for number in itertools.count():
        declared_charge(ledger, f"set-{number}")
        print(number, flush=True)
"""


def declared_charge(ledger: Ledger, name: str) -> None:
    """Two rows in one act: what a schema says, and the charge."""
    declared = Declaration(dataset=name, account=name, protection=Protection(units_per_person=2))
    ledger.charge(name, question("1/4"), analyst="ana", declared=declared)


ACTS: dict[str, Callable[[Ledger], object]] = {
    "account": lambda ledger: ledger.declare("icu", Protection(units_per_person=3), by="steward"),
    "limit": lambda ledger: ledger.grant("icu", Loss("9"), by="steward"),
    "quota": lambda ledger: ledger.set_quota("icu", "bo", Loss("1/2"), by="steward"),
    "allowance": lambda ledger: ledger.allow_constrained("icu", "1", by="steward"),
    "charge": lambda ledger: declared_charge(ledger, "icu"),
}


def test_a_fork_shares_no_connection_with_its_parent(place: str) -> None:
    with Fork(FORK, place) as parent:
        assert parent.wait() == 0


def test_a_writer_killed_in_the_act_leaves_nothing_and_locks_nothing(place: str) -> None:
    with Ledger.open(place) as ledger:
        ledger.charge("icu", question("1/4"), analyst="ana")
        before = list(ledger.export())
        with Fork(HOLD, place) as writer:
            assert writer.stdout.readline() == "held\n"
            assert list(ledger.export()) == before
            writer.kill()
        assert ledger.charge("icu", question("1/4"), analyst="ana").left == Loss("1/2")
        assert ledger.verify().entries == 2


@pytest.mark.parametrize("act", list(ACTS))
def test_whatever_is_killed_before_it_is_done_leaves_nothing(place: str, act: str) -> None:
    with Ledger.open(place) as ledger:
        before = ledger.account("icu")
        with Fork(IN_THE_ACT, place, act) as writer:
            assert writer.stdout.readline() == "held\n"
            writer.kill()
        assert (ledger.account("icu"), ledger.history()) == (before, [])
        ACTS[act](ledger)
        assert ledger.verify().entries == len(ledger.history()) > 0


@pytest.mark.parametrize("after", [3, 8])
def test_a_declaration_and_its_charge_survive_together_or_not_at_all(tmp_path: Path, after: int) -> None:
    place = str(tmp_path / "ledger.db")
    with Fork(ONE_AFTER_ANOTHER, place) as writer:
        while writer.stdout.readline() != f"{after}\n":
            assert writer.is_alive()
        writer.kill()
    with Ledger.open(place) as ledger:
        ledger.verify()
        acts = [(entry.event, entry.dataset) for entry in ledger.history()]
        done = len(acts) // 2
        assert done > after
        assert acts == [(event, f"set-{number}") for number in range(done) for event in ("account", "charge")]
