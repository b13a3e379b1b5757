"""What the routes for stewards, and those for requests, answer with: for the description."""

from __future__ import annotations

from typing import Any, Literal

from wallflower.curator.api.answers import MOMENT, Answer, Budget, Part, maybe, told


class Change(Answer):
    """What a steward has changed."""

    entry: int = told("the entry of the ledger that says so", 18)
    dataset: str = told("of which data set", "hospital")
    budget: Budget


class Entry(Answer):
    """An entry of the ledger."""

    id: int = told("its number", 17)
    time: str = told("when", MOMENT)
    event: str = told("what happened", "charge")
    dataset: str | None = told("of which data set", "hospital")
    analyst: str | None = told("who asked", "ana")
    body: dict[str, Any] = told("what it says", {"reason": "study 12"})
    hash: str = told("of this entry and, through it, of all before", "004d5aba2cc4252f")


class Entries(Part):
    """Entries of the ledger, oldest first."""

    entries: list[Entry]


class Verification(Answer):
    """A chain that holds."""

    holds: bool = told("it does, or this would be a problem", True)
    entries: int = told("how many entries it has", 7)
    head: str = told("the hash of the last, to be noted elsewhere", "004d5aba2cc4252f")


class Token(Answer):
    """A token, without its secret."""

    id: str = told("its id", "9bbbc94181ed")
    name: str = told("whose it is", "ana")
    scope: Literal["analyst", "steward", "monitor"] = told("what it may do", "analyst")
    created: str = told("when it was made", MOMENT)
    expires: str | None = told("until when it is valid", MOMENT)
    revoked: str | None = told("when it was ended", None)
    valid: bool = told("whether it can be used", True)
    second_factor: bool | None = maybe("whether its holder has a second factor", False)


class Tokens(Answer):
    """Every token there ever was."""

    tokens: list[Token]


class IssuedToken(Token):
    """A new token, with its secret."""

    text: str = told("the token itself, shown here and never again", "wf_9bbbc94181ed_…")
    beside: list[str] = told("valid tokens that go by the same name", [])


class Act(Answer):
    """What a steward did."""

    act: str = told("what", "limit")
    by: str = told("who", "sue")


class Acts(Answer):
    """What stewards did, oldest first."""

    acts: list[Act]


class BudgetRequest(Answer):
    """What an analyst asked for, and what became of it."""

    id: str = told("its id", "8bd209384abc1add7deb2614")
    analyst: str = told("who asked", "ana")
    dataset: str = told("of which data set", "hospital")
    epsilon: str | None = told("what they would like to spend", "1/2")
    question: str | None = told("what they would ask", "count")
    reason: str = told("what it is for", "the second wave of study 12")
    state: str = told("what became of it", "open")
    word: str | None = told("what the steward said", None)
    by: str | None = told("which steward", None)
    decided: str | None = told("when", None)
    entry: int | None = told("the entry of the ledger that grants it", None)
    created: str = told("when it was asked", MOMENT)


class BudgetRequests(Answer):
    """Requests for budget, the latest first."""

    requests: list[BudgetRequest]
