"""What each route answers with, for the description: programs check themselves against it, and so does the fuzzer.

Nothing is validated on the way out. A field that may be missing has a default; every other is always there.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

JSON: Final = "application/json"
MOMENT: Final = "2030-02-01T09:30:00+00:00"


def tell(words: str, example: Any) -> Any:
    """A field that is always there: what it is, and how it looks."""
    return Field(description=words, examples=[example])


def maybe(words: str, example: Any = None) -> Any:
    """A field that may be missing."""
    return Field(None, description=words, examples=[example])


class Answer(BaseModel):
    """Something that is told; a newer version may tell more."""

    model_config = ConfigDict(extra="allow")


class Loss(Answer):
    """A loss, exactly and in words."""

    kind: str = tell("which kind of guarantee it is", "pure")
    amount: str = tell("ε, or ρ where it is zero-concentrated, as an exact number", "1/2")
    delta: str = tell("the probability δ", "0")
    neighbours: str = tell("whose change it hides", "replace-one-record")
    exact: str | None = maybe("the same in words", "ε=1/2")


class Guarantee(Answer):
    """What a release promises."""

    kind: str = tell("which kind of guarantee it is", "pure")
    epsilon: float | None = tell("ε, rounded", 0.5)
    delta: float = tell("δ, rounded", 0)
    rho: float | None = tell("ρ, rounded, where it is zero-concentrated", None)
    adjacency: str = tell("whose change is hidden", "replace-one-record")
    words: str = tell("the promise as a sentence", "Pure differential privacy at ε=1/2: …")
    exact: str = tell("the loss in words", "ε=1/2")
    loss: Loss
    public: list[str] | None = maybe("public columns, whose cells the hidden change leaves as they are", ["ward"])
    change: str | None = maybe("the change that is hidden at this loss, where a smaller one than any is assumed", None)
    booked: Loss | None = maybe("with a change: what the budget was charged", None)
    theorems: dict[str, list[str]] | None = maybe(
        "what the promise rests on, by how it was checked", {"machine-checked theorem": ["(E) of count"]}
    )


class Facts(Answer):
    """The public facts that a release rests on."""

    n: int = tell("how many records", 367)
    dimension: int = tell("how many columns", 30)
    columns: list[str] = tell("their names", ["age", "hours"])
    bound: bool | None = maybe("whether `n` is only a public bound", False)


class Quality(Answer):
    """How accurate an answer is: noise, interval and conditions."""

    verdict: str = tell("check first where there is a condition, the noise label otherwise", "moderate noise")
    noise: Literal["low noise", "moderate noise", "mostly noise"] = tell("how large the noise is", "moderate noise")
    rule: str = tell("the figures behind it", "the noise (±15, 95 %) is 29 % of the count and 0.5 % of the records")
    interval: Literal["two-sided", "upper end only", "not proved"] = tell("which ends are proved", "upper end only")
    conditions: list[str] = tell("what to check first, each with a remedy", [])


class Release(Answer):
    """A private answer and everything that may be said about it."""

    value: Any = tell("the answer: a number, text, list or object, as its question has it", 52)
    interval: list[float] | None = tell("its interval, where it has one", [37.0, 67.0])
    covers: str = tell("what the interval is", "95 % interval")
    words: str = tell("the answer as a sentence", "At most 67 of 3,000 records are outliers (97.5 %); estimate 52.")
    guarantee: Guarantee
    mechanism: str = tell("how it was made", "extension")
    proof: str = tell("where that is proved", "queries/count/proof.md")
    status: str = tell("how far the proof reaches", "proved for the whole numbers the program uses")
    kind: str = tell("which question", "count")
    label: str = tell("the question and its edition", "outlier-count/1")
    question: str = tell("the question in words", "How many outliers are there?")
    parameters: dict[str, Any] = tell("its settings, exactly", {"neighbours": 5, "radius": 0.8})
    dataset: str = tell("of which data set", "hospital")
    facts: Facts
    analyst: str = tell("who asked", "ana")
    ledger_id: int = tell("the number of the charge in the ledger: the release is found by it", 17)
    left: Loss
    booked: Loss | None
    limit: Loss | None
    protects: str = tell("whose loss was booked", "one record, whatever is in it")
    terms: str = tell("its settings in words", "neighbours 5, radius 0.8")
    charged_at: str = tell("when it was charged", MOMENT)
    quality: Quality | None
    notes: list[str] = tell("caveats", ["The lower end covers the noise alone."])
    extras: dict[str, Any] = tell("what else may be read off the answer", {"at_most": 67})
    version: str = tell("of wallflower", "0.1.0")
    replayed: bool = tell("whether it was paid for earlier, under the same key", False)
    brief: str = tell("the value in a few words, where it is long", "")


class Price(Answer):
    """What a question costs here, and what stands in the way."""

    stated: Loss
    booked: Loss | None
    factor: str | None = tell("what the loss is multiplied by to be booked", "1")
    affords: int = tell("how many such questions fit", 5)
    left: Loss
    left_after: Loss | None
    protects: str = tell("whose loss is booked", "one record, whatever is in it")
    obstacle: dict[str, Any] | None = tell("the problem that asking would meet", None)


class PlanOption(Answer):
    """One way to answer: its figures go by the names of `headings`."""

    mechanism: str = tell("which way", "extension")
    note: str = tell("a word about it", "")


class Plan(Answer):
    """What to expect before anything is spent, from public facts only."""

    query: str = tell("which question", "count")
    cost: Loss
    facts: dict[str, int] = tell("public facts", {"n": 3000, "dimension": 3})
    chosen: str = tell("the way that is taken", "extension")
    headings: dict[str, str] = tell("what each figure of an option is called", {"error": "typical error ±"})
    options: list[PlanOption]
    useful: bool = tell("whether the noise leaves something of the answer", True)
    reason: str = tell("why, or why not", "noise within ±15 (95 %) among 3,000 records")
    verdict: str = tell("useful, check first or not useful", "useful: noise within ±15 (95 %) among 3,000 records")
    conditions: list[str] = tell("what to check first, each with a remedy", [])
    smallest_useful_epsilon: str | None = tell("from which ε on it is", "0.2")
    curve: list[list[float | None]] = tell("what each ε would give", [[0.5, 30.0], [1.0, 15.0]])
    measure: str = tell("what the curve tells", "half-width of the 95 % interval")
    scale: Literal["log", "linear"] = tell("how it is drawn", "log")
    notes: list[str] = tell("what public facts warn of", [])
    affords: int | None = tell("how many such questions the budget answers", None)
    price: Price


class Job(Answer):
    """A question that is answered later."""

    id: str = tell("to come back with", "8bd209384abc1add7deb2614")
    dataset: str = tell("of which data set", "hospital")
    kind: str = tell("which question", "count")
    state: Literal["queued", "running", "done", "failed"] = tell("how far it is", "done")
    created: str = tell("when it was asked", MOMENT)
    release: int | None = tell("the number of its release, once it is done", 17)
    replayed: bool = tell("whether it was paid for earlier", False)
    problem: dict[str, Any] | None = tell("what went wrong, if it failed", None)


class Share(Answer):
    """What is kept for one analyst."""

    analyst: str = tell("whom", "ana")
    allocated: Loss
    spent: Loss
    left: Loss


class Fence(Answer):
    """Output-constrained answers, which are no differential privacy."""

    allowed: str = tell("up to which ε", "0")
    spent: str = tell("what was spent", "0")
    since: int | None = tell("the entry of the first", None)


class Budget(Answer):
    """The account of a data set."""

    account: str = tell("its name", "hospital")
    rows: str = tell("what a row is", "people")
    unit: str = tell("which change is hidden", "record")
    protects: str = tell("whose loss is bounded", "one record, whatever is in it")
    members: dict[str, dict[str, Any]] = tell("data sets that spend from it", {"hospital": {"rows": "people"}})
    accounting: str = tell("how losses add up", "sum")
    limit: dict[str, str] = tell("what may be spent in all", {"epsilon": "3", "delta": "0"})
    spent: dict[str, str] = tell("what was", {"epsilon": "1", "delta": "0"})
    left: dict[str, str] = tell("what is left", {"epsilon": "2", "delta": "0"})
    free: dict[str, str] = tell("what is left and kept for nobody", {"epsilon": "2", "delta": "0"})
    used: dict[str, float] = tell("which part of the limit is used", {"epsilon": 0.33})
    starter: bool = tell("whether nobody has granted anything yet", False)
    expires: str | None = tell("the last day", "2030-12-31")
    pace: str | None = tell("an ε that may be spent a year", None)
    this_year: dict[str, str] = tell("what was spent this year", {"epsilon": "1", "delta": "0"})
    shares: list[Share]
    spenders: dict[str, dict[str, str]] = tell("what was spent, by whom", {"ana": {"epsilon": "1"}})
    constrained: Fence
    names: list[str] = tell("records that questions have named", [])
    public: dict[str, list[str]] = tell("by data set, columns whose cells an answer took for public", {})


class DatasetBudget(Budget):
    """The account that a data set spends from."""

    dataset: str = tell("of which data set", "hospital")


class ColumnFacts(Answer):
    """What is public about a column."""

    name: str = tell("its name", "age")
    type: str = tell("what it holds", "number")


class Dataset(Answer):
    """A data set: its public facts and its budget."""

    name: str = tell("its name", "hospital")
    rows: int | None = tell("how many records, where that is public", 3000)
    clip: bool = tell("whether values beyond the bounds are moved to them", True)
    columns: list[ColumnFacts]
    stream: bool = tell("whether observations come one by one", False)
    state: Literal["ready", "loading", "unreadable"] = tell("whether it can be asked", "ready")
    reason: str | None = tell("why it cannot be read, to stewards alone", None)
    budget: Budget
    left: Loss


class Datasets(Answer):
    """Every data set."""

    datasets: list[Dataset]


class Part(Answer):
    """A part of a longer list: the one before it, in the ledger's order, is where `next` leads."""

    before: int | None = tell("the part before this one ends before this number; null: there is none", 17)
    next: str | None = tell("where the part before this one is", "/v1/datasets/hospital/releases?last=100&before=17")


class Releases(Part):
    """Releases, oldest first."""

    releases: list[Release]


class Caller(Answer):
    """Whose token this is."""

    name: str = tell("its name", "ana")
    scope: Literal["analyst", "steward", "auditor", "monitor"] = tell("what it may do", "analyst")
    token: str = tell("its id", "9bbbc94181ed")


class Pass(Answer):
    """What stands for a code of the second factor for some minutes."""

    pass_: str = Field(alias="pass", description="to be sent as `Second-Factor`", examples=["1793000000.5f70bf18a086"])
    expires: str = tell("until when", MOMENT)


class Blank(Answer):
    """A setting of a question."""

    name: str = tell("its name", "radius")
    help: str = tell("what it is", "records at most this far apart are near")
    required: bool = tell("whether it must be given", True)
    default: Any = tell("what it is otherwise", None)
    choices: list[Any] = tell("what it may be, if that is fixed", [])
    when: dict[str, Any] | None = tell("the mode that it belongs to", None)


class Form(Answer):
    """A question as a form."""

    kind: str = tell("its name", "count")
    question: str = tell("in words", "How many outliers are there?")
    streams: bool = tell("whether a stream can be asked", False)
    parameters: list[Blank]
    loss: dict[str, str] = tell("how a loss is given", {"epsilon": "privacy loss ε to spend, exactly as written"})
    example: dict[str, Any] = tell("a body that asks it", {"neighbours": 5, "radius": 0.8, "epsilon": "0.5"})


class Forms(Answer):
    """What may be asked."""

    questions: list[Form]


class Scores(Answer):
    """How unusual a detector finds records."""

    columns: list[str] = tell("the columns of a record", ["age", "hours"])
    scores: list[float] = tell("a score for each, the greater the more unusual", [0.44])
    flagged: list[bool] | None = tell("which are flagged, if the detector flags", [False])
    contributions: list[list[float]] | None = tell("what each column adds, where that was asked", None)


class DriftFound(Answer):
    """Whether records are flagged as often as the fitted ones were to be."""

    records: int = tell("how many were compared", 200)
    flagged: int = tell("how many of them are flagged", 9)
    share: float = tell("which part that is", 0.045)
    interval: list[float] = tell("95 % interval of the share to come", [0.02, 0.08])
    expected: list[float] | None = tell("the share of the fitted records, with 95 %", [0.01, 0.03])
    has_drifted: bool = tell("whether the two do not meet", False)
    words: str = tell("the same as a sentence", "9 of 200 records are flagged, 4.500% (95 % interval …).")


class WatchState(Answer):
    """A watch over a stream."""

    id: str = tell("to come back with", "ad1e45da7d8ba00c5a9f400c")
    dataset: str = tell("of which data set", "beds")
    kind: str = tell("which question", "watch")
    position: int = tell("how many observations were decided", 2)
    exhausted: bool = tell("whether it decides no more", False)
    charge: int = tell("the entry of the ledger that paid for it", 9)
    columns: list[str] = tell("the columns of an observation", ["temperature"])
    cost: str = tell("what it cost", "ε=4")


class WatchEntry(Answer):
    """A watch in a list."""

    id: str = tell("to come back with", "ad1e45da7d8ba00c5a9f400c")
    dataset: str = tell("of which data set", "beds")
    kind: str = tell("which question", "watch")
    analyst: str = tell("whose it is", "ana")
    created: str = tell("when it was opened", MOMENT)


class WatchList(Answer):
    """Watches."""

    watches: list[WatchEntry]


class Decisions(Answer):
    """Decisions of a watch, in order."""

    first: int = tell("the number of the first", 1)
    outlier: list[bool | None] = tell("whether each is flagged; null: passed over", [False, True])
    exhausted: bool = tell("whether it decides no more", False)


def example_of(model: type[BaseModel]) -> dict[str, Any]:
    """An answer as it may look, put together from its fields."""
    return {name: _example(item) for name, item in model.model_fields.items()}


def _example(item: FieldInfo) -> Any:
    if item.examples:
        return item.examples[0]
    hint = item.annotation
    parts = [hint, *getattr(hint, "__args__", ())]
    model = next((part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)), None)
    if model is None:
        return None
    found = example_of(model)
    return [found] if getattr(hint, "__origin__", None) is list else found
