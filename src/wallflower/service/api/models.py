"""Response bodies: the models that routes return, and from which OpenAPI describes them.

A field with a default may be missing from a response, every other one is always there. Models allow further fields, so
that a newer version may add some.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from wallflower.ledger import Quote
from wallflower.ledger.chain import Entry as LedgerEntry
from wallflower.names import account_name
from wallflower.query.parameter import LOSS_HELP, REQUIRED, Question, list_parameters, spends
from wallflower.release import Release as PrivateRelease
from wallflower.service.api.bodies import example_body
from wallflower.service.core.access.people import Person as KnownPerson
from wallflower.service.core.access.tokens import Scope, Tokens
from wallflower.service.core.access.tokens import Token as KnownToken
from wallflower.service.core.catalog import DatasetView
from wallflower.service.core.problems import loss_json, problem_document
from wallflower.service.core.proposals import Kind as ProposalKind
from wallflower.service.settings import Role

MOMENT: Final = "2030-02-01T09:30:00+00:00"


def required_field(description: str, example: Any) -> Any:
    """Describe a field that is always there."""
    return Field(description=description, examples=[example])


def optional_field(description: str, example: Any = None) -> Any:
    """Describe a field that may be missing."""
    return Field(None, description=description, examples=[example])


class Answer(BaseModel):
    """A response body."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)


# Releases and plans


class Loss(Answer):
    """A privacy loss, exact."""

    kind: str = required_field("kind of guarantee", "pure")
    amount: str = required_field("ε, or ρ of zero-concentrated DP, as an exact number", "1/2")
    delta: str = required_field("δ", "0")
    neighbours: str = required_field("adjacency: the change that is hidden", "replace-one-record")
    exact: str | None = optional_field("the loss as text", "ε=1/2")


class Guarantee(Answer):
    """The guarantee of a release."""

    kind: str = required_field("kind of guarantee", "pure")
    epsilon: float | None = required_field("ε, rounded", 0.5)
    delta: float = required_field("δ, rounded", 0)
    rho: float | None = required_field("ρ, rounded, of zero-concentrated DP", None)
    adjacency: str = required_field("the change that is hidden", "replace-one-record")
    text: str = required_field("the guarantee as a sentence", "ε-differential privacy with ε = 0.5. …")
    exact: str = required_field("the loss as text", "ε=1/2")
    loss: Loss
    public: list[str] | None = optional_field("public columns, whose cells the hidden change leaves alone", ["ward"])
    change: str | None = optional_field("the change that is hidden, if a smaller one than any is assumed", None)
    booked: Loss | None = optional_field(
        "with a change, or where rows belong to people: the loss that the budget was charged", None
    )
    protection: dict[str, Any] | None = optional_field(
        "where rows belong to people: the unit of protection", {"rows": "people", "unit": "record", "person": "patient"}
    )
    names_records: bool | None = optional_field("whether the answer names records, to which nothing is promised", True)
    theorems: dict[str, list[str]] | None = optional_field(
        "theorems behind the guarantee, by how they were checked", {"machine-checked theorem": ["(E) of count"]}
    )


class Facts(Answer):
    """Public facts that a release uses."""

    n: int = required_field("number of records", 367)
    dimension: int = required_field("number of columns", 30)
    columns: list[str] = required_field("names of the columns", ["age", "hours"])
    bound: bool | None = optional_field("whether `n` is only a public bound", False)


class Quality(Answer):
    """The accuracy of an answer: noise, interval and conditions."""

    verdict: str = required_field("`check first` if there is a condition, else the noise label", "moderate noise")
    noise: Literal["low noise", "moderate noise", "mostly noise"] = required_field("size of the noise", "low noise")
    rule: str = required_field("figures behind the label", "the noise (±15, 95 %) is 29 % of the count")
    interval: Literal["two-sided", "upper end only", "not proved"] = required_field("ends that are proved", "two-sided")
    conditions: list[str] = required_field("what to check first, each with a remedy", [])


class Release(Answer):
    """A private answer, its accuracy and its guarantee."""

    value: Any = required_field("the answer: a number, text, list or object, depending on the query", 52)
    interval: list[float] | None = required_field("its interval, if it has one", [37.0, 67.0])
    covers: str = required_field("what the interval is", "95 % interval")
    text: str = required_field("the answer as a sentence", "About 52 of 3,000 records are outliers (at most 67).")
    guarantee: Guarantee
    mechanism: str = required_field("mechanism", "extension")
    proof: str = required_field("where its guarantee is proved", "queries/count/proof.md")
    status: str = required_field("extent of the proof", "proved for the whole numbers the program uses")
    kind: str = required_field("kind of query", "count")
    label: str = required_field("mechanism label", "outlier-count/1")
    question: str = required_field("the query in words", "How many outliers are there?")
    parameters: dict[str, Any] = required_field("its parameters, exact", {"neighbours": 5, "radius": 0.8})
    dataset: str = required_field("data set", "hospital")
    facts: Facts
    analyst: str = required_field("analyst who asked", "ana")
    ledger_id: int = required_field("number of the charge in the ledger, which identifies the release", 17)
    left: Loss
    booked: Loss | None
    limit: Loss | None
    protects: str = required_field("unit of protection", "one record, whatever is in it")
    terms: str = required_field("its parameters in words", "neighbours 5, radius 0.8")
    charged_at: str = required_field("time of the charge", MOMENT)
    quality: Quality | None
    notes: list[str] = required_field("caveats", ["Only the upper end of the interval is guaranteed."])
    extras: dict[str, Any] = required_field("further results of the same answer", {"at_most": 67})
    version: str = required_field("version of wallflower", "0.1.0")
    replayed: bool = required_field("whether it was paid for earlier, under the same idempotency key", False)
    brief: str = required_field("the value in a few words, if it is long", "")

    @classmethod
    def of(cls, release: PrivateRelease[Any]) -> Self:
        return cls.model_validate(release.to_dict())


class Price(Answer):
    """The cost of a query on a data set, and the refusal it would meet."""

    stated: Loss
    booked: Loss | None
    factor: str | None = required_field("factor from the stated loss to the charged one", "1")
    text: str = required_field(
        "the cost in words: what is stated and, where it differs, what is booked",
        "ε = 0.5 per record, booked as ε = 1.5 per person",
    )
    affords: int = required_field("number of such queries that the budget covers", 5)
    names_left: int | None = optional_field("names that the steward's allowance has left, of a list of names", 30)
    left: Loss
    left_after: Loss | None
    protects: str = required_field("unit of protection", "one record, whatever is in it")
    obstacle: dict[str, Any] | None = required_field("problem document of the refusal, if it would be refused", None)

    @classmethod
    def of(cls, quote: Quote) -> Self:
        booked, price, after = quote.booked, quote.price, quote.left_after
        return cls(
            stated=_loss(quote.cost),
            booked=None if booked is None else _loss(booked),
            factor=None if price is None else str(price.factor),
            text=quote.cost_text,
            affords=quote.affords,
            names_left=quote.names_left,
            left=_loss(quote.left),
            left_after=None if after is None else _loss(after),
            protects=quote.protects,
            obstacle=None if quote.obstacle is None else problem_document(quote.refusal()),
        )


class PlanOption(Answer):
    """One mechanism of a plan; its figures have the names in `headings`."""

    mechanism: str = required_field("mechanism", "extension")
    note: str = required_field("remark", "")


class Plan(Answer):
    """Accuracy and cost of a query, from public facts only."""

    query: str = required_field("kind of query", "count")
    cost: Loss
    booked: Loss | None = optional_field("loss that the budget would be charged, if a rule translates it", None)
    cost_text: str = required_field(
        "the cost and, where it differs, what would be booked, in words; empty if that is not known", "ε = 0.5"
    )
    facts: dict[str, int] = required_field("public facts", {"n": 3000, "dimension": 3})
    chosen: str = required_field("mechanism that is used", "extension")
    headings: dict[str, str] = required_field("names of the figures of an option", {"error": "typical error ±"})
    options: list[PlanOption]
    useful: bool = required_field("whether the answer would be more than noise", True)
    reason: str = required_field("why, or why not", "noise within ±15 (95 %) among 3,000 records")
    verdict: str = required_field("useful, check first or not useful", "useful: noise within ±15 (95 %)")
    conditions: list[str] = required_field("what to check first, each with a remedy", [])
    smallest_useful_epsilon: str | None = required_field("smallest ε with a useful answer", "0.2")
    curve: list[list[float | None]] = required_field("error by ε", [[0.5, 30.0], [1.0, 15.0]])
    measure: str = required_field("what the curve shows", "half-width of the 95 % interval")
    scale: Literal["log", "linear"] = required_field("scale of its axis", "log")
    notes: list[str] = required_field("caveats that follow from public facts", [])
    affords: int | None = required_field("number of such queries that the budget covers", None)
    price: Price


class Releases(Answer):
    """Releases, oldest first."""

    releases: list[Release]
    before: int | None = required_field("smallest number on this page if there may be an earlier page", 17)
    next: str | None = required_field("URL of the earlier page", "/v1/datasets/hospital/releases?last=100&before=17")


class Job(Answer):
    """A query that is answered later."""

    id: str = required_field("id of the job", "8bd209384abc1add7deb2614")
    dataset: str = required_field("data set", "hospital")
    kind: str = required_field("kind of query", "count")
    state: Literal["queued", "running", "done", "failed"] = required_field("state", "done")
    created: str = required_field("when it was asked", MOMENT)
    release: int | None = required_field("number of its release, once it is done", 17)
    replayed: bool = required_field("whether it was paid for earlier", False)
    problem: dict[str, Any] | None = required_field("problem document, if it failed", None)


class Scores(Answer):
    """Outlier scores of the caller's records."""

    columns: list[str] = required_field("columns of a record", ["age", "hours"])
    scores: list[float] = required_field("a score for each record; greater is more unusual", [0.44])
    flagged: list[bool] | None = required_field("records above the threshold, if the detector has one", [False])
    contributions: list[list[float]] | None = required_field("contribution of each column, if requested", None)


class Drift(Answer):
    """A comparison of the flag rate with the rate that the detector was fitted for."""

    records: int = required_field("number of records", 200)
    flagged: int = required_field("number of flagged records", 9)
    share: float = required_field("share of flagged records", 0.045)
    interval: list[float] = required_field("95 % interval of that share", [0.02, 0.08])
    expected: list[float] | None = required_field("95 % interval of the share among the fitted records", [0.01, 0.03])
    has_drifted: bool = required_field("whether the two intervals are disjoint", False)
    text: str = required_field("the result as a sentence", "9 of 200 records are flagged, 4.500% (95 % interval …).")


# Data sets and budgets


class Quota(Answer):
    """The quota of one analyst."""

    analyst: str = required_field("analyst", "ana")
    limit: Loss
    spent: Loss
    left: Loss


class ConstrainedBudget(Answer):
    """Output-constrained answers, which do not satisfy differential privacy."""

    allowed: str = required_field("allowed up to this ε", "0")
    spent: str = required_field("spent so far", "0")
    since: int | None = required_field("number of the first such charge", None)


class NamingAllowance(Answer):
    """How many names lists may request, by one detector."""

    dataset: str = required_field("data set", "hospital")
    detector: int = required_field("ledger entry of the detector", 12)
    most: int = required_field("names in all", 50)
    requested: int = required_field("names that lists have requested", 20)
    by_row: bool = required_field("whether lists may name row numbers", False)


class NamingBudget(Answer):
    """Answers that name records, and protect nobody whom they name."""

    allowances: list[NamingAllowance]
    since: int | None = required_field("number of the first such charge", None)


class LetterToken(Answer):
    """A token by which one person reads her own letter."""

    identifier: str = required_field("whose letter it is", "p17")
    token: str = required_field("the token, for that person alone", "wfl_…")


class LetterTokens(Answer):
    """Tokens of letters."""

    tokens: list[LetterToken]


class Letter(Answer):
    """What a detector says of one record, for the person whose record it is."""

    identifier: str = required_field("whose letter it is", "p17")
    notice: str = required_field("to whom it may be given", "For p17 alone: …")
    score: float = required_field("how unusual the record is", 0.8)
    threshold: float | None = required_field("above it a record is flagged", 0.5)
    flagged: bool | None = required_field("whether it is flagged", True)
    contributions: dict[str, float] = required_field("what each column adds to the score", {"age": 0.5})


class Budget(Answer):
    """The budget of a data set, or of several about the same people."""

    account: str = required_field("name of the account", "hospital")
    rows: str = required_field("meaning of a row", "people")
    unit: str = required_field("change that is hidden", "record")
    protects: str = required_field("unit of protection", "one record, whatever is in it")
    members: dict[str, dict[str, Any]] = required_field("data sets on the account", {"hospital": {"rows": "people"}})
    accounting: str = required_field("composition of losses", "sum")
    limit: dict[str, str] = required_field("total budget", {"epsilon": "3", "delta": "0"})
    spent: dict[str, str] = required_field("spent so far", {"epsilon": "1", "delta": "0"})
    left: dict[str, str] = required_field("left", {"epsilon": "2", "delta": "0"})
    free: dict[str, str] = required_field("left and in nobody's quota", {"epsilon": "2", "delta": "0"})
    used: dict[str, float] = required_field("share of the limit that is spent", {"epsilon": 0.33})
    starter: bool = required_field("whether this is still the default budget", False)
    expires: str | None = required_field("last day of the budget", "2030-12-31")
    pace: str | None = required_field("ε that may be spent per year", None)
    this_year: dict[str, str] = required_field("spent this year", {"epsilon": "1", "delta": "0"})
    quotas: list[Quota]
    spenders: dict[str, dict[str, str]] = required_field("spending by analyst", {"ana": {"epsilon": "1"}})
    constrained: ConstrainedBudget
    naming: NamingBudget
    names: list[str] = required_field("records that queries have named", [])
    public: dict[str, list[str]] = required_field("by data set, columns that an answer treated as public", {})

    @classmethod
    def of(cls, view: DatasetView, **more: Any) -> Self:
        """Return the account of a data set, with the unit of protection of this data set."""
        account, unit = view.budget, view.protection.to_json()
        public = account.public.get(account_name(view.name) or view.name, ())
        common = {name: value for name, value in account.to_json().items() if name not in account.protection.to_json()}
        return cls.model_validate(
            {**more, **common, **unit, "protects": view.protection.text_but(public, named=account.naming.since)}
        )


class DatasetBudget(Budget):
    """The budget that a data set spends from."""

    dataset: str = required_field("data set", "hospital")


class ColumnFacts(Answer):
    """Public facts of a column."""

    name: str = required_field("name", "age")
    type: str = required_field("type of its values", "number")


class Dataset(Answer):
    """A data set: its public facts and its budget."""

    name: str = required_field("name", "hospital")
    rows: int | None = required_field("number of records, if it is public", 3000)
    clip: bool = required_field("whether values beyond the bounds are clipped", True)
    columns: list[ColumnFacts]
    stream: bool = required_field("whether it is a stream of observations", False)
    person: dict[str, Any] | None = optional_field(
        "who the rows belong to, as [person] of the schema", {"id": "patient_no", "rollup": {"pulse": "max"}}
    )
    state: Literal["ready", "loading", "unreadable"] = required_field("whether it can be queried", "ready")
    reason: str | None = required_field("why it cannot be read; shown to stewards and auditors only", None)
    budget: Budget
    left: Loss

    @classmethod
    def of(cls, view: DatasetView, **more: Any) -> Self:
        state = {"state": view.state, "reason": view.reason, "left": loss_json(view.left)}
        return cls.model_validate({**view.facts, **state, "budget": Budget.of(view), **more})


class RegisteredDataset(Dataset):
    """A data set that was registered just now, with what the data steward should know of its rows."""

    notices: list[str] = required_field(
        "identifiers that repeat, for the data steward only",
        ["patient_no repeats, up to 20 rows: a row is not a person. Declare [person] or accept the unit row."],
    )


class Datasets(Answer):
    """Every data set that the caller may see."""

    datasets: list[Dataset]


class DatasetAccess(Answer):
    """Analysts and groups who may see a data set."""

    dataset: str = required_field("data set", "hospital")
    analysts: list[str] = required_field("names of tokens or people; * stands for every analyst", ["ana"])
    groups: list[str] = required_field("groups of the settings whose members may see it", ["health"])


class Retirement(Answer):
    """A data set that was retired."""

    name: str = required_field("name", "hospital")
    retired: bool = required_field("always true", True)


class Change(Answer):
    """A change of a budget."""

    entry: int = required_field("number of the ledger entry", 18)
    dataset: str = required_field("data set", "hospital")
    budget: Budget

    @classmethod
    def of(cls, view: DatasetView, entry: LedgerEntry) -> Self:
        return cls(entry=entry.id, dataset=view.name, budget=Budget.of(view))


class Proposal(Answer):
    """A change of a budget that a second steward confirms."""

    id: str = required_field("id", "8bd209384abc1add7deb2614")
    dataset: str = required_field("data set", "hospital")
    kind: ProposalKind = required_field("what is to be changed", "limit")
    epsilon: str = required_field("proposed total ε", "6")
    reason: str = required_field("reason", "study 12")
    by: str = required_field("steward who proposed it", "sue")
    state: Literal["waiting", "confirmed", "declined", "expired"] = required_field("state", "waiting")
    created: str = required_field("when it was proposed", MOMENT)
    expires: str = required_field("when it expires", MOMENT)
    decided_by: str | None = required_field("steward who confirmed or declined it", None)
    decided: str | None = required_field("when", None)
    entry: int | None = required_field("number of the ledger entry, once it is confirmed", None)


class Proposals(Answer):
    """Changes of budgets that a second steward confirms, latest first."""

    proposals: list[Proposal]


class AgentQuestion(Answer):
    """A query that an agent asked for a person."""

    id: str = required_field("id", "8bd209384abc1add7deb2614")
    analyst: str = required_field("person whom the agent asks for", "ana")
    agent: str = required_field("what the agent calls itself, and the id of its token", "assistant.5f70bf18a086")
    dataset: str = required_field("data set", "hospital")
    kind: str = required_field("kind of query", "count")
    query: dict[str, Any] = required_field("its parameters, exact", {"neighbours": 5, "radius": 0.8, "epsilon": "1/2"})
    cost: str = required_field("cost that the query states", "ε = 0.5")
    epsilon: str | None = required_field("ε that would be booked; null if it has δ or ρ", "1/2")
    state: Literal["allowed", "waiting", "confirmed", "declined", "expired"] = required_field("state", "waiting")
    created: str = required_field("when it was asked", MOMENT)
    expires: str = required_field("until when it can be decided", MOMENT)
    decided_by: str | None = required_field("who confirmed or declined it", None)
    decided: str | None = required_field("when", None)


class AgentQuestions(Answer):
    """Queries that agents asked, latest first."""

    questions: list[AgentQuestion]


class BudgetRequest(Answer):
    """An analyst's request for budget, and the steward's answer."""

    id: str = required_field("id", "8bd209384abc1add7deb2614")
    analyst: str = required_field("analyst who made it", "ana")
    dataset: str = required_field("data set", "hospital")
    epsilon: str | None = required_field("ε that the analyst would like to spend", "1/2")
    question: str | None = required_field("kind of query it is for", "count")
    reason: str = required_field("reason", "the second wave of study 12")
    state: str = required_field("open, granted or declined", "open")
    word: str | None = required_field("the steward's remark", None)
    by: str | None = required_field("steward who answered", None)
    decided: str | None = required_field("when", None)
    entry: int | None = required_field("number of the ledger entry that grants it", None)
    created: str = required_field("when it was made", MOMENT)


class BudgetRequests(Answer):
    """Requests for budget, latest first."""

    requests: list[BudgetRequest]


# Queries and watches


class Parameter(Answer):
    """A parameter of a query."""

    name: str = required_field("name", "radius")
    help: str = required_field("meaning", "records at most this far apart are near")
    required: bool = required_field("whether it must be given", True)
    default: Any = required_field("default", None)
    choices: list[Any] = required_field("allowed values, if there is a list", [])
    when: dict[str, Any] | None = required_field("the mode that it belongs to", None)


class QueryForm(Answer):
    """A kind of query, with its parameters."""

    kind: str = required_field("kind of query", "count")
    question: str = required_field("the query in words", "How many outliers are there?")
    accepts_stream: bool = required_field("whether a stream can be watched with it", False)
    parameters: list[Parameter]
    loss: dict[str, str] = required_field("names of the privacy loss", {"epsilon": "privacy loss ε to spend"})
    example: dict[str, Any] = required_field("an example body", {"neighbours": 5, "radius": 0.8, "epsilon": "0.5"})

    @classmethod
    def of(cls, question: Question) -> Self:
        parameters = [
            Parameter(
                name=parameter.name,
                help=parameter.help,
                required=parameter.default is REQUIRED,
                default=None
                if parameter.default is REQUIRED
                else json.loads(json.dumps(parameter.default, default=str)),
                choices=list(parameter.choices),
                when=None if parameter.when is None else {parameter.when.chooser: parameter.when.choice},
            )
            for parameter in list_parameters(question)
        ]
        return cls(
            kind=question.kind,
            question=question.question,
            accepts_stream=question.accepts_stream,
            parameters=parameters,
            loss=dict(LOSS_HELP) if spends(question) else {},
            example=example_body(question),
        )


class QueryForms(Answer):
    """Every kind of query."""

    questions: list[QueryForm]


class WatchState(Answer):
    """A watch over a stream."""

    id: str = required_field("id", "ad1e45da7d8ba00c5a9f400c")
    dataset: str = required_field("data set", "beds")
    kind: str = required_field("kind of query", "watch")
    position: int = required_field("number of observations decided", 2)
    exhausted: bool = required_field("whether it decides no more", False)
    charge: int = required_field("number of the charge that paid for it", 9)
    columns: list[str] = required_field("columns of an observation", ["temperature"])
    cost: str = required_field("cost", "ε=4")


class WatchEntry(Answer):
    """A watch in a list."""

    id: str = required_field("id", "ad1e45da7d8ba00c5a9f400c")
    dataset: str = required_field("data set", "beds")
    kind: str = required_field("kind of query", "watch")
    analyst: str = required_field("analyst who opened it", "ana")
    created: str = required_field("when it was opened", MOMENT)


class Watches(Answer):
    """Watches."""

    watches: list[WatchEntry]


class Decisions(Answer):
    """Decisions of a watch, in order."""

    first: int = required_field("number of the first observation", 1)
    outlier: list[bool | None] = required_field("whether each is flagged; null: skipped", [False, True])
    exhausted: bool = required_field("whether the watch decides no more", False)


# Tokens, people and the ledger


class Caller(Answer):
    """The holder of the token of this request."""

    name: str = required_field("name", "ana")
    scope: Scope = required_field("scope", "analyst")
    token: str = required_field("id of the token", "9bbbc94181ed")


class Pass(Answer):
    """A pass that replaces a code of the second factor for some minutes."""

    pass_: str = Field(alias="pass", description="to be sent as `Second-Factor`", examples=["1793000000.5f70bf18a086"])
    expires: str = required_field("when it expires", MOMENT)


class Token(Answer):
    """A token, without its secret."""

    id: str = required_field("id", "9bbbc94181ed")
    name: str = required_field("name of its holder", "ana")
    scope: Scope = required_field("scope", "analyst")
    created: str = required_field("when it was issued", MOMENT)
    expires: str | None = required_field("when it expires", MOMENT)
    revoked: str | None = required_field("when it was revoked", None)
    valid: bool = required_field("whether it can be used", True)
    second_factor: bool | None = optional_field("whether it has a second factor", False)


class TokenEntry(Token):
    """A token in a list, with its issuer and its groups."""

    issued_by: str | None = required_field("steward who issued it; null: the person who runs the service", "sue")
    last_used: str | None = required_field("when it was used last, to some minutes", MOMENT)
    groups: list[str] = required_field("groups of the settings whose data sets it may see", ["health"])
    personal: bool = required_field("whether a person made it for her programs", False)


class TokenList(Answer):
    """Every token that was ever issued."""

    tokens: list[TokenEntry]

    @classmethod
    def of(cls, tokens: Tokens, holders: frozenset[str]) -> Self:
        uses, rights = tokens.uses(), tokens.rights()

        def entry(token: KnownToken) -> TokenEntry:
            use, right = uses.get(token.id), rights.get(token.id)
            return TokenEntry(
                **token.to_json(),
                second_factor=token.id in holders,
                issued_by=None if use is None else use.by,
                last_used=None if use is None else use.used,
                groups=[] if right is None else list(right.groups),
                personal=right is not None and right.person is not None,
            )

        return cls(tokens=[entry(token) for token in tokens.all()])


class IssuedToken(Token):
    """A new token, with its secret."""

    text: str = required_field("the token itself, shown here and never again", "wf_9bbbc94181ed_…")
    beside: list[str] = required_field("ids of valid tokens with the same name", [])


class Person(Answer):
    """A person who signed in with the account of her office."""

    name: str = required_field("name in the ledger", "ana")
    role: Role = required_field("role", "analyst")
    groups: list[str] = required_field("her groups at the last sign-in that the settings have", ["health"])
    signed_in: str = required_field("last sign-in", MOMENT)
    tokens_until: str = required_field("when her personal tokens expire without another sign-in", MOMENT)
    disabled: str | None = required_field("when a steward disabled her", None)

    @classmethod
    def of(cls, person: KnownPerson) -> Self:
        """Return a person without the subject of the directory, which stays with the service."""
        names = ("name", "role", "signed_in", "tokens_until", "disabled")
        return cls(**{name: getattr(person, name) for name in names}, groups=list(person.groups))


class People(Answer):
    """Everybody who signed in with the account of an office."""

    people: list[Person]


class Act(Answer):
    """A change that a steward made."""

    id: str = required_field("id; later acts have a greater one", "01794976445000000000-3f")
    act: str = required_field("kind of change", "limit")
    by: str = required_field("steward", "sue")


class Acts(Answer):
    """Changes that stewards made, oldest first."""

    acts: list[Act]


class Entry(Answer):
    """An entry of the ledger."""

    id: int = required_field("number", 17)
    time: str = required_field("time", MOMENT)
    event: str = required_field("event", "charge")
    dataset: str | None = required_field("data set", "hospital")
    analyst: str | None = required_field("analyst", "ana")
    body: dict[str, Any] = required_field("content", {"reason": "study 12"})
    hash: str = required_field("hash of this entry, chained to all earlier ones", "004d5aba2cc4252f")

    @classmethod
    def of(cls, entry: LedgerEntry) -> Self:
        return cls.model_validate(entry_json(entry))


class Entries(Answer):
    """Entries of the ledger, oldest first."""

    entries: list[Entry]
    before: int | None = required_field("smallest number on this page if there may be an earlier page", 17)
    next: str | None = required_field("URL of the earlier page", "/v1/ledger/entries?last=100&before=17")


class Verification(Answer):
    """A hash chain that holds."""

    holds: bool = required_field("always true: a broken chain is a problem document", True)
    entries: int = required_field("number of entries", 7)
    head: str = required_field("hash of the last entry, to be noted elsewhere", "004d5aba2cc4252f")


def entry_json(entry: LedgerEntry) -> dict[str, Any]:
    """Return an entry of the ledger with its body parsed."""
    return entry.to_json() | {"body": entry.details}


def _default(value: Any) -> Any:
    return None if value is REQUIRED else json.loads(json.dumps(value, default=str))


def _loss(loss: Any) -> Loss:
    stated: Mapping[str, Any] = loss_json(loss)
    return Loss.model_validate(stated)
