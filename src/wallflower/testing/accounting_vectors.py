"""Run a file of accounting vectors against the library: prices, limits, runs of charges, shares, groups, names.

Usage: python -m wallflower.testing.accounting_vectors FILE. Prints what differs and exits with 1 if anything does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from wallflower.errors import BudgetExhausted, ParameterError, PrivacyError, Untranslatable
from wallflower.ledger import Account, Ledger
from wallflower.ledger.limits import Limit, certificate
from wallflower.names import account_name
from wallflower.privacy import Kind, Loss
from wallflower.units import NEIGHBOURS, Claim, Protection, price

CLOSE: Final = Fraction(1, 10**9)
STEWARD: Final = "steward"


@dataclass(frozen=True)
class Question:
    """A question of a vector, as a ledger takes it."""

    claim: Claim
    label: str = "vector/1"

    def cost(self) -> Loss:
        return self.claim.loss

    def to_json(self) -> dict[str, Any]:
        return self.claim.to_json()


def question_of(stated: Mapping[str, Any]) -> Question:
    kind = Kind(stated["kind"])
    amount = Fraction(stated["rho"] if kind is Kind.ZCDP else stated["epsilon"])
    loss = Loss(amount, delta=Fraction(stated.get("delta", "0")), kind=kind, neighbours=NEIGHBOURS[stated["protects"]])
    own = stated.get("rho_own")
    return Question(
        Claim(
            loss=loss,
            window=stated.get("window"),
            columns=stated.get("columns", 1),
            steps=stated.get("steps"),
            moves=stated.get("moves", 1),
            one_sign=stated.get("one_sign", False),
            separable=stated.get("separable", False),
            rho=None if own is None else Fraction(own),
            names=stated.get("names"),
        )
    )


def limit_of(stated: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of a grant: δ in all, of which `convert` is kept for the squares."""
    squares = Fraction(stated.get("convert", "0"))
    whole = Fraction(stated.get("delta", "0")) + squares
    given: dict[str, Any] = {"loss": Loss(Fraction(stated["epsilon"]), delta=whole)}
    given |= {"convert": squares} if squares else {}
    return given | ({"accounting": stated["gauge"]} if "gauge" in stated else {})


def prices(case: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    expected = case["price"]
    try:
        found = price(question_of(case["question"]).claim, Protection(**case["data"]))
    except (Untranslatable, ParameterError):
        yield "accepted", False, expected["accepted"]
        return
    yield "accepted", True, expected["accepted"]
    if expected["accepted"]:
        yield "k", found.factor, Fraction(expected["k"])
        yield "epsilon", found.epsilon, _fraction(expected["epsilon"])
        yield "delta", found.delta, Fraction(expected["delta"])
        yield "rho", found.rho, Fraction(expected["rho"])


def limits(case: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    epsilon, convert = Fraction(case["epsilon"]), Fraction(case["convert"])
    rho, order = certificate(epsilon, convert)
    holds = Limit(epsilon=epsilon, convert=convert, rho=rho, order=order, accounting="either").holds
    yield "the certificate holds", holds, True
    yield "rho is the largest", abs(rho - Fraction(case["rho"])) <= CLOSE, True


def runs(case: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    with _ledger() as ledger:
        ledger.declare("vector", Protection(**case["data"]), by=STEWARD)
        ledger.grant("vector", by=STEWARD, **limit_of(case["limit"]))
        for number, step in enumerate(case["steps"], start=1):
            for what, found, expected in _step(ledger, step):
                yield f"step {number}, {what}", found, expected


def _step(ledger: Ledger, step: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    if "limit" in step:
        ledger.grant("vector", by=STEWARD, **limit_of(step["limit"]))
    if "allowance" in step:
        ledger.allow_constrained("vector", Fraction(step["allowance"]), by=STEWARD)
    if "ask" in step:
        accepted, why = _ask(ledger, "vector", step.get("analyst", "ana"), step["ask"], step.get("times", 1))
        yield "accepted", accepted, step["accepted"]
        if step.get("why") == "limit":
            yield "what the refusal names", why in ("epsilon", "delta", "rho"), True
    if "totals" in step:
        yield from _totals(ledger.account("vector"), step["totals"])


def _ask(ledger: Ledger, dataset: str, analyst: str, stated: Mapping[str, Any], times: int) -> tuple[int, str | None]:
    """How many of these are accepted, one after another, and what the first refusal names."""
    asked = question_of(stated)
    for accepted in range(times):
        try:
            ledger.charge(dataset, asked, analyst=analyst, claim=asked.claim)
        except BudgetExhausted as refusal:
            return accepted, "share" if refusal.part == "quota" else refusal.part  # the vectors say share
        except Untranslatable:
            return accepted, "unit"
    return times, None


def _totals(account: Account, expected: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    spent, limit = account.spent, account.limit
    if expected["epsilon"] is not None:
        yield "Σε", spent.epsilon, Fraction(expected["epsilon"])
    yield "Σδ", spent.delta, Fraction(expected["delta"])
    yield "Σρ", spent.rho, Fraction(expected["rho"])
    yield "named", len(account.names), expected.get("named", 0)
    wanted = expected["limit"]
    yield "limit ε", limit.epsilon, Fraction(wanted["epsilon"])
    yield "limit δ", limit.delta, Fraction(wanted["delta"])
    yield "convert", limit.convert, Fraction(wanted["convert"])
    yield "limit ρ", abs(limit.rho - Fraction(wanted["rho"])) <= CLOSE, True
    yield "gauge", limit.accounting, wanted["gauge"]


def shares(case: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    stated = {"epsilon": "3", "delta": "1/2000000", "convert": "1/2000000", **case.get("limit", {})}
    with _ledger() as ledger:
        ledger.grant("vector", by=STEWARD, **limit_of({**stated, "gauge": case["gauge"]}))
        kept = case["allocate"]  # the word of the vectors
        amount = Loss.zcdp(Fraction(kept["rho"])) if "rho" in kept else Loss(Fraction(kept["epsilon"]))
        try:
            ledger.set_quota("vector", kept["analyst"], amount, by=STEWARD)
        except PrivacyError:
            yield "the share is refused", True, "refused" in case
            return
        yield "the share is refused", False, "refused" in case
        for number, step in enumerate(case.get("steps", ()), start=1):
            for what, found, expected in _step(ledger, step):
                yield f"step {number}, {what}", found, expected
        if "totals" in case:
            yield from _totals(ledger.account("vector"), case["totals"])


def groups(case: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    with _ledger() as ledger:
        for name, data in case["members"].items():
            ledger.declare(name, Protection(**data), account="group", by=STEWARD)
        ledger.grant("group", by=STEWARD, **limit_of({**case["limit"], "gauge": case["gauge"]}))
        for number, step in enumerate(case["steps"], start=1):
            asked = question_of(step["ask"])
            found = ledger.quote(step["data"], asked, analyst="ana", claim=asked.claim)
            booked = None if found.price is None else found.price.epsilon
            yield f"step {number}, price", booked, _fraction(step["price"])
            accepted, _ = _ask(ledger, step["data"], "ana", step["ask"], 1)
            yield f"step {number}, accepted", bool(accepted), step["accepted"]
            yield f"step {number}, spent", ledger.account("group").spent.epsilon, Fraction(step["spent"])


def names(case: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    yield "account", account_name(case["name"]), case["account"]


SECTIONS: Final[Mapping[str, Callable[[Mapping[str, Any]], Iterator[tuple[str, Any, Any]]]]] = {
    "prices": prices,
    "limits": limits,
    "runs": runs,
    "shares": shares,
    "groups": groups,
    "names": names,
}


class _ledger:  # noqa: N801 - reads as a function
    """A ledger that is gone afterwards."""

    def __enter__(self) -> Ledger:
        self._folder = TemporaryDirectory()
        self._ledger = Ledger.open(Path(self._folder.name) / "ledger.db")
        return self._ledger

    def __exit__(self, *_: object) -> None:
        self._ledger.close()
        self._folder.cleanup()


def _fraction(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)


def differences(vectors: Mapping[str, Any]) -> Iterator[str]:
    """One line for each number that is not as expected."""
    for section, check in SECTIONS.items():
        for place, case in enumerate(vectors.get(section, ())):
            about = case.get("name") or f"number {place + 1}"
            for what, found, expected in check(case):
                if found != expected:
                    yield f"{section}: {about}: {what} is {found}, expected {expected}"


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    found = 0
    vectors = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    for line in differences(vectors):
        sys.stdout.write(f"{line}\n")
        found += 1
    checked = sum(len(vectors.get(section, ())) for section in SECTIONS)
    sys.stdout.write(f"{checked} vectors, {found} differences\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
