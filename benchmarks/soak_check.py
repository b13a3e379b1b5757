"""What a soak comes to: answers that reached a client, held against the rows of the ledger, added up anew.

Nothing here asks the ledger for a sum. Rows are read as they were exported, and limits, spending and keys are followed
from the first row to the last, so that a mistake of the ledger's own arithmetic would show.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

STARTER = Fraction(1)

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """An answer that reached a client: who asked what under which key, and which charge it names."""

    analyst: str
    dataset: str
    key: str | None
    charge: int
    value: Any
    booked: str
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A call that got no answer, or a status of 500 and above: `what` says which."""

    act: str
    what: str
    began: float
    ended: float
    is_retryable: bool = False
    at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """Who was killed, when, when all was well again, and how many questions it can have cost at most.

    `at` is the machine, as in `Failure`; empty: all of them, as when their database is restarted.
    """

    who: str
    began: float
    ended: float
    cost: int
    at: str = ""

    def explains(self, failure: Failure) -> bool:
        return self.at in ("", failure.at) and failure.began <= self.ended and self.began <= failure.ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Something that must not be."""

    kind: str
    words: str


@dataclass(slots=True, kw_only=True)
class Evidence:
    """All that was seen from outside in one run."""

    deliveries: list[Delivery] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    decisions: dict[tuple[str, int], set[Any]] = field(default_factory=lambda: defaultdict(set))
    statuses: Counter[tuple[str, str]] = field(default_factory=Counter)
    surprises: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)


def differences(seen: Evidence, rows: Sequence[Row]) -> list[Difference]:
    """Everything in which answers, rows and sums do not agree."""
    found = [*unpaid(seen.deliveries, rows), *double_payments(seen.deliveries, rows), *overspent(rows)]
    found += [*unrecorded(seen.kills, rows), *unexplained(seen), *contradictions(seen)]
    return [*found, *cut_off(seen.heads, rows)]


def unpaid(deliveries: Sequence[Delivery], rows: Sequence[Row]) -> Iterator[Difference]:
    """Answers without a charge of their own, or other than what is recorded for it."""
    charges = {row["id"]: row for row in rows if row["event"] == "charge"}
    recorded = {row["charge"]: json.loads(row["body"]) for row in rows if row["event"] == "release"}
    fresh: dict[int, Delivery] = {}
    for one in deliveries:
        paid, kept = charges.get(one.charge), recorded.get(one.charge)
        if paid is None or (paid["dataset"], paid["analyst"]) != (one.dataset, one.analyst):
            yield Difference(kind="unpaid answer", words=f"{one.analyst} was told what no charge {one.charge} paid for")
        elif kept is None or kept["value"] != one.value:
            yield Difference(
                kind="unpaid answer", words=f"charge {one.charge}: the answer told is not the one recorded"
            )
        elif paid["epsilon"] is None or Fraction(paid["epsilon"]) != Fraction(one.booked):
            yield Difference(kind="unpaid answer", words=f"charge {one.charge}: told and booked price differ")
        if not one.replayed and one.charge in fresh and fresh[one.charge].key != one.key:
            yield Difference(kind="unpaid answer", words=f"charge {one.charge} paid for two questions")
        if not one.replayed:
            fresh[one.charge] = one


def double_payments(deliveries: Sequence[Delivery], rows: Sequence[Row]) -> Iterator[Difference]:
    """Keys under which more than one charge was booked, or charges with more than one release."""
    keys = Counter(
        (row["dataset"], row["idempotency_key"]) for row in rows if row["event"] == "charge" and row["idempotency_key"]
    )
    for (dataset, key), times in keys.items():
        if times > 1:
            yield Difference(kind="double payment", words=f"{dataset}: key {key} was charged {times} times")
    released = Counter(row["charge"] for row in rows if row["event"] == "release")
    for charge, times in released.items():
        if times > 1:
            yield Difference(kind="double payment", words=f"charge {charge} has {times} releases")
    told: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for one in deliveries:
        if one.key is not None:
            told[one.analyst, one.dataset, one.key].add(one.charge)
    for (analyst, dataset, key), charges in told.items():
        if len(charges) > 1:
            words = f"{dataset}: {analyst} was told {len(charges)} charges under key {key}"
            yield Difference(kind="double payment", words=words)


def overspent(rows: Sequence[Row]) -> Iterator[Difference]:
    """Charges after which an account, its own for each data set here, had spent more than the limit then in force."""
    limits: dict[str, Fraction] = defaultdict(lambda: STARTER)
    spent: dict[str, Fraction] = defaultdict(Fraction)
    for row in rows:
        if row["event"] == "limit":
            limits[row["dataset"]] = Fraction(json.loads(row["body"])["limit"]["epsilon"])
        if row["event"] == "charge":
            price = Fraction(row["epsilon"])
            spent[row["dataset"]] += price
            if price and spent[row["dataset"]] > limits[row["dataset"]]:
                yield Difference(
                    kind="overspent",
                    words=f"{row['dataset']}: {spent[row['dataset']]} of {limits[row['dataset']]} at row {row['id']}",
                )


def lost_charges(rows: Sequence[Row]) -> list[Row]:
    """Charges of questions that have no release; a watch has none by its nature."""
    released = {row["charge"] for row in rows if row["event"] == "release"}
    asked = (row for row in rows if row["event"] == "charge" and "watch" not in row["label"])
    return [row for row in asked if row["id"] not in released]


def unrecorded(kills: Sequence[Kill], rows: Sequence[Row]) -> Iterator[Difference]:
    """More charges without an answer than the kills can have cost."""
    lost, most = len(lost_charges(rows)), sum(kill.cost for kill in kills)
    if lost > most:
        words = f"{lost} charges have no release, and {len(kills)} kills can have cost {most} at most"
        yield Difference(kind="lost answer", words=words)


def unexplained(seen: Evidence) -> Iterator[Difference]:
    """Failures that no kill explains and that do not say when to come again, and statuses nobody expected."""
    for failure in seen.failures:
        if not (failure.is_retryable or any(kill.explains(failure) for kill in seen.kills)):
            yield Difference(kind="unexplained failure", words=f"{failure.act}: {failure.what}")
    for words in seen.surprises:
        yield Difference(kind="unexpected answer", words=words)


def contradictions(seen: Evidence) -> Iterator[Difference]:
    """Observations of a watch of which two things were told."""
    for (watch, place), told in seen.decisions.items():
        if len(told) > 1:
            yield Difference(kind="second decision", words=f"watch {watch}, observation {place}")


def cut_off(heads: Sequence[str], rows: Sequence[Row]) -> Iterator[Difference]:
    """Heads that were told while it ran and that the ledger has no more."""
    known = {row["hash"] for row in rows}
    for head in heads:
        if head not in known:
            yield Difference(kind="history lost", words=f"head {head[:12]}… is not in the ledger any more")
