"""What the routes for stewards, and those for requests, answer with: for the description."""

from __future__ import annotations

from typing import Any, Literal

from wallflower.curator.api.description.answers import MOMENT, Answer, Budget, Part, maybe, tell


class DatasetAccess(Answer):
    """Who may see a data set, beside stewards."""

    dataset: str = tell("its name", "hospital")
    analysts: list[str] = tell("names of tokens; * stands for every analyst", ["ana"])
    groups: list[str] = tell("groups of the settings whose members may see it", ["health"])


class Retirement(Answer):
    """A data set that was retired."""

    name: str = tell("its name", "hospital")
    retired: bool = tell("that it is retired", True)


class Change(Answer):
    """What a steward has changed."""

    entry: int = tell("the entry of the ledger that says so", 18)
    dataset: str = tell("of which data set", "hospital")
    budget: Budget


class Entry(Answer):
    """An entry of the ledger."""

    id: int = tell("its number", 17)
    time: str = tell("when", MOMENT)
    event: str = tell("what happened", "charge")
    dataset: str | None = tell("of which data set", "hospital")
    analyst: str | None = tell("who asked", "ana")
    body: dict[str, Any] = tell("what it says", {"reason": "study 12"})
    hash: str = tell("of this entry and, through it, of all before", "004d5aba2cc4252f")


class Entries(Part):
    """Entries of the ledger, oldest first."""

    entries: list[Entry]


class Verification(Answer):
    """A chain that holds."""

    holds: bool = tell("it does, or this would be a problem", True)
    entries: int = tell("how many entries it has", 7)
    head: str = tell("the hash of the last, to be noted elsewhere", "004d5aba2cc4252f")


class Token(Answer):
    """A token, without its secret."""

    id: str = tell("its id", "9bbbc94181ed")
    name: str = tell("whose it is", "ana")
    scope: Literal["analyst", "steward", "auditor", "monitor"] = tell("what it may do", "analyst")
    created: str = tell("when it was made", MOMENT)
    expires: str | None = tell("until when it is valid", MOMENT)
    revoked: str | None = tell("when it was ended", None)
    valid: bool = tell("whether it can be used", True)
    second_factor: bool | None = maybe("whether its holder has a second factor", False)


class Tokens(Answer):
    """Every token there ever was."""

    tokens: list[Token]


class IssuedToken(Token):
    """A new token, with its secret."""

    text: str = tell("the token itself, shown here and never again", "wf_9bbbc94181ed_…")
    beside: list[str] = tell("valid tokens that go by the same name", [])


class Act(Answer):
    """What a steward did."""

    id: str = tell("its id; later acts have a greater one", "01794976445000000000-3f")
    act: str = tell("what", "limit")
    by: str = tell("who", "sue")


class Acts(Answer):
    """What stewards did, oldest first."""

    acts: list[Act]


class PersonAnswer(Answer):
    """Somebody who signed in with the account of an office."""

    name: str = tell("the name in the ledger", "ana")
    role: Literal["analyst", "auditor", "steward"] = tell("what she may do", "analyst")
    groups: list[str] = tell("her groups at the last sign-in, as far as the settings have them", ["health"])
    signed_in: str = tell("when she signed in last", MOMENT)
    tokens_until: str = tell("until when her own tokens work without another sign-in", MOMENT)
    disabled: str | None = tell("since when a steward refuses her", None)


class People(Answer):
    """Everybody who signed in with the account of an office."""

    people: list[PersonAnswer]


class ProposalAnswer(Answer):
    """A change of a budget that a second steward confirms."""

    id: str = tell("its id", "8bd209384abc1add7deb2614")
    dataset: str = tell("of which data set", "hospital")
    kind: Literal["limit", "allowance"] = tell("what is to be changed", "limit")
    epsilon: str = tell("the ε that is proposed, in all", "6")
    reason: str = tell("why", "study 12")
    by: str = tell("who proposed it", "sue")
    state: Literal["waiting", "confirmed", "declined", "expired"] = tell("what became of it", "waiting")
    created: str = tell("when it was proposed", MOMENT)
    expires: str = tell("until when it can be confirmed", MOMENT)
    decided_by: str | None = tell("who confirmed or declined it", None)
    decided: str | None = tell("when", None)
    entry: int | None = tell("the entry of the ledger, once it is confirmed", None)


class ProposalAnswers(Answer):
    """Changes of budgets that a second steward confirms."""

    proposals: list[ProposalAnswer]


class BudgetRequest(Answer):
    """What an analyst asked for, and what became of it."""

    id: str = tell("its id", "8bd209384abc1add7deb2614")
    analyst: str = tell("who asked", "ana")
    dataset: str = tell("of which data set", "hospital")
    epsilon: str | None = tell("what they would like to spend", "1/2")
    question: str | None = tell("what they would ask", "count")
    reason: str = tell("what it is for", "the second wave of study 12")
    state: str = tell("what became of it", "open")
    word: str | None = tell("what the steward said", None)
    by: str | None = tell("which steward", None)
    decided: str | None = tell("when", None)
    entry: int | None = tell("the entry of the ledger that grants it", None)
    created: str = tell("when it was asked", MOMENT)


class BudgetRequests(Answer):
    """Requests for budget, the latest first."""

    requests: list[BudgetRequest]
