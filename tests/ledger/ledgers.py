"""What the ledger tests share: a question, a filled ledger, and a way to tamper with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from wallflower.ledger import Ledger, Receipt
from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.units import Claim, Protection

CONSTRAINED = Loss("0.5", kind=Kind.OUTPUT_CONSTRAINED, neighbours=Neighbours.ADD_REMOVE)


@dataclass(frozen=True)
class Question:
    loss: Loss
    radius: str = "0.5"
    label: str = "outlier-count/1"

    def cost(self) -> Loss:
        return self.loss

    def to_json(self) -> dict[str, object]:
        return {"radius": self.radius, "loss": self.loss.to_json()}


def ask(ledger: Ledger, epsilon: str, *, analyst: str = "ana", dataset: str = "icu", **rest) -> Receipt:
    return ledger.charge(dataset, Question(Loss(epsilon)), analyst=analyst, **rest)


def engine_of(place: str) -> sa.Engine:
    url = place.replace("postgresql://", "postgresql+psycopg://") if "://" in place else f"sqlite:///{place}"
    return sa.create_engine(url, poolclass=sa.NullPool)


@contextmanager
def unguarded(place: str) -> Iterator[sa.Connection]:
    """The table behind the ledger's back."""
    with engine_of(place).begin() as db:
        if db.dialect.name == "sqlite":
            for name in db.scalars(sa.text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).all():
                db.exec_driver_sql(f"DROP TRIGGER {name}")
        else:
            db.exec_driver_sql("ALTER TABLE entries DISABLE TRIGGER ALL")
        yield db


def meddle(place: str, *statements: str) -> None:
    with unguarded(place) as db:
        for statement in statements:
            db.exec_driver_sql(statement)


ROWS = 10


def filled(ledger: Ledger) -> None:
    """Ten rows, with every event that is written today and every column in use."""
    ledger.declare("icu", Protection(units_per_person=2), by="steward", reason="two visits")
    ledger.grant("icu", Loss("3", delta="1e-6"), by="steward", reason="pilot", accounting="sum")
    ledger.set_quota("icu", "ana", Loss("2"), by="steward")
    ledger.allow_constrained("icu", "1", by="steward", reason="asked for")
    ledger.record(ask(ledger, "0.25", idempotency_key="k1", claim=Claim(loss=Loss("0.25"), names="17")), {"value": 7})
    ask(ledger, "0.5")
    fitted = ask(ledger, "0.125", analyst="bo")
    ledger.record(fitted, {"value": "ε", "kind": "detector"})
    ledger.allow_naming("icu", fitted.id, 20, by="steward", reason="a review")
