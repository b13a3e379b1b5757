"""The soak ends well, and its bill finds an unpaid answer, an overspent account or a double payment put there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from wallflower.ledger import Ledger
from wallflower.privacy import Loss

FOLDER = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(FOLDER))

from soak_check import Delivery, Evidence, Failure, Kill, differences  # noqa: E402 - it lies beside the package


class Question:
    label = "outlier-count/1"

    def cost(self) -> Loss:
        return Loss("1/4")

    def to_json(self) -> dict[str, Any]:
        return {"radius": "1"}


Rows = list[dict[str, Any]]


@pytest.fixture
def bill(tmp_path: Path) -> tuple[Evidence, Rows]:
    """Three answers of a ledger that allows five, each paid and told once."""
    seen = Evidence()
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.grant("ward", Loss("5/4"), by="sue")
        for number in range(3):
            paid = ledger.charge("ward", Question(), analyst="ana", idempotency_key=f"ana/{number}")
            ledger.record(paid, {"value": number})
            told = {"key": str(number), "charge": paid.id, "value": number, "booked": "1/4", "replayed": False}
            seen.deliveries.append(Delivery(analyst="ana", dataset="ward", **told))
        seen.heads.append(ledger.verify().head)
        return seen, list(ledger.export())


def found(seen: Evidence, rows: Rows) -> set[str]:
    return {one.kind for one in differences(seen, rows)}


def rows_of(rows: Rows, event: str) -> Rows:
    return [row for row in rows if row["event"] == event]


def test_an_honest_bill_has_no_differences(bill: tuple[Evidence, Rows]) -> None:
    assert found(*bill) == set()


def tell_more(seen: Evidence, rows: Rows) -> None:
    seen.deliveries.append(
        Delivery(analyst="ana", dataset="ward", key="9", charge=99, value=1, booked="1/4", replayed=False)
    )


def tell_somebody_else(seen: Evidence, rows: Rows) -> None:
    first = seen.deliveries[0]
    told = {"charge": first.charge, "value": first.value, "booked": first.booked, "replayed": False}
    seen.deliveries.append(Delivery(analyst="bo", dataset="ward", key="9", **told))


def tell_two_questions_by_one_charge(seen: Evidence, rows: Rows) -> None:
    first = seen.deliveries[0]
    told = {"charge": first.charge, "value": first.value, "booked": first.booked, "replayed": False}
    seen.deliveries.append(Delivery(analyst="ana", dataset="ward", key="9", **told))


def drop_a_charge(seen: Evidence, rows: Rows) -> None:
    rows.remove(rows_of(rows, "charge")[1])


def change_a_release(seen: Evidence, rows: Rows) -> None:
    rows_of(rows, "release")[0]["body"] = json.dumps({"value": 77})


def book_less(seen: Evidence, rows: Rows) -> None:
    rows_of(rows, "charge")[0]["epsilon"] = "1/8"


def lower_the_limit(seen: Evidence, rows: Rows) -> None:
    terms = json.loads(rows[0]["body"])
    rows[0]["body"] = json.dumps({**terms, "limit": {**terms["limit"], "epsilon": "1/2"}})


def spend_more(seen: Evidence, rows: Rows) -> None:
    rows_of(rows, "charge")[2]["epsilon"] = str(Fraction(5, 4))


def charge_a_key_twice(seen: Evidence, rows: Rows) -> None:
    rows.append(rows_of(rows, "charge")[0] | {"id": 50})
    rows.append(rows_of(rows, "release")[0] | {"id": 51, "charge": 50})


def tell_two_charges_under_one_key(seen: Evidence, rows: Rows) -> None:
    first, second = seen.deliveries[:2]
    told = {"charge": second.charge, "value": second.value, "booked": second.booked, "replayed": True}
    seen.deliveries.append(Delivery(analyst="ana", dataset="ward", key=first.key, **told))


def release_twice(seen: Evidence, rows: Rows) -> None:
    rows.append(rows_of(rows, "release")[0] | {"id": 50})


def lose_an_answer(seen: Evidence, rows: Rows) -> None:
    rows.append(rows_of(rows, "charge")[0] | {"id": 50, "idempotency_key": None})


def fail(seen: Evidence, rows: Rows) -> None:
    seen.kills.append(Kill(who="worker", began=10.0, ended=11.0, cost=2))
    seen.failures.append(Failure(act="ask", what="500 unanswered", began=20.0, ended=21.0))


def decide_twice(seen: Evidence, rows: Rows) -> None:
    seen.decisions["watch", 3] |= {True, None}


def cut_the_end(seen: Evidence, rows: Rows) -> None:
    del rows[-1]
    del seen.deliveries[-1]


DOCTORED: list[tuple[Callable[[Evidence, Rows], None], str]] = [
    (tell_more, "unpaid answer"),
    (tell_somebody_else, "unpaid answer"),
    (tell_two_questions_by_one_charge, "unpaid answer"),
    (drop_a_charge, "unpaid answer"),
    (change_a_release, "unpaid answer"),
    (book_less, "unpaid answer"),
    (lower_the_limit, "overspent"),
    (spend_more, "overspent"),
    (charge_a_key_twice, "double payment"),
    (tell_two_charges_under_one_key, "double payment"),
    (release_twice, "double payment"),
    (lose_an_answer, "lost answer"),
    (fail, "unexplained failure"),
    (decide_twice, "second decision"),
    (cut_the_end, "history lost"),
]


@pytest.mark.parametrize(("doctor", "kind"), DOCTORED, ids=[doctor.__name__ for doctor, _ in DOCTORED])
def test_a_doctored_bill_is_found_out(
    bill: tuple[Evidence, Rows], doctor: Callable[[Evidence, Rows], None], kind: str
) -> None:
    doctor(*bill)
    assert kind in found(*bill)


def test_a_kill_explains_what_broke_meanwhile_and_so_many_lost_answers(bill: tuple[Evidence, Rows]) -> None:
    seen, rows = bill
    lose_an_answer(seen, rows)
    seen.kills.append(Kill(who="worker", began=10.0, ended=11.0, cost=1))
    seen.failures.append(Failure(act="ask", what="ConnectionResetError", began=9.0, ended=10.5))
    seen.failures.append(Failure(act="ask", what="503 busy", began=90.0, ended=90.5, is_retryable=True))
    assert found(seen, rows) == set()
    lose_an_answer(seen, rows)
    assert found(seen, rows) == {"lost answer"}


def test_a_kill_of_one_machine_explains_nothing_on_another(bill: tuple[Evidence, Rows]) -> None:
    seen, rows = bill
    seen.kills.append(Kill(who="worker", began=10.0, ended=11.0, cost=2, at="http://127.0.0.1:1"))
    seen.failures.append(Failure(act="ask", what="500 unanswered", began=10.0, ended=10.5, at="http://127.0.0.1:2"))
    assert found(seen, rows) == {"unexplained failure"}
    seen.kills.append(Kill(who="database", began=10.0, ended=11.0, cost=2))
    assert found(seen, rows) == set()


@pytest.mark.slow
def test_a_short_soak_ends_without_a_difference() -> None:
    command = [sys.executable, str(FOLDER / "soak.py"), "--seconds", "6", "--ledger", "sqlite", "--workers", "2"]
    done = subprocess.run([*command, "--pause", "2"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "answers delivered" in done.stdout
