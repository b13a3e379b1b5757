"""Pages of data sets: the list, and one of them with its public facts and the queries that it allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from wallflower.query.parameter import REQUIRED, Question, list_parameters
from wallflower.release.text import readable
from wallflower.service.core.access.tokens import Caller
from wallflower.service.core.catalog import DatasetView
from wallflower.service.core.facade import Core
from wallflower.service.core.requests import Requests
from wallflower.service.pages.budget_text import standing_of
from wallflower.service.pages.choices import columns_for
from wallflower.service.pages.visit import Visit, page
from wallflower.text import Message, join, label, t

_NEEDED = {
    "numbers": t("a column of numbers"),
    "measured": t("a column of numbers, or labels with a weight"),
    "coded": t("a column of numbers or of labels"),
    "labels": t("a column of labels"),
    "times": t("a column of times"),
    "groups": t("a column of labels, or of numbers that can be cut into groups"),
}


@dataclass(frozen=True, slots=True)
class Offer:
    """A question, what stands in its way (None: nothing does), and what to know before it is asked."""

    question: Question
    obstacle: str | None
    caution: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Questions that serve one purpose."""

    title: Message
    offers: list[Offer]


# The question to begin with, for a table and for a stream, and the questions of each task. One without a task is listed
# under the last title.
_FIRST: Final = ("count", "watch")
_TASKS: Final[tuple[tuple[Message, tuple[str, ...]], ...]] = (
    (t("How many are unusual, and where?"), ("count", "profile", "radius", "subspaces")),
    (t("Which records are unusual, and why?"), ("detector", "flags", "tally", "threshold", "who", "explain")),
    (t("What happens over time?"), ("watch", "shift", "baseline")),
    (t("Prepare another question"), ("scale",)),
)
_OTHER: Final = t("More questions")


def first_offer(offers: list[Offer]) -> Offer | None:
    """Return the question to recommend to somebody who has not asked any yet."""
    possible = [offer for offer in offers if offer.obstacle is None and offer.caution is None]
    ranked = (offer for kind in _FIRST for offer in possible if offer.question.kind == kind)
    return next(ranked, possible[0] if possible else None)


def tasks_of(offers: list[Offer]) -> list[Task]:
    """Return the questions by task; those that can be asked come first in each."""
    title_of = {kind: title for title, kinds in _TASKS for kind in kinds}
    titles = [*(title for title, _ in _TASKS), _OTHER]
    found = [
        Task(title=title, offers=[offer for offer in offers if title_of.get(offer.question.kind, _OTHER) == title])
        for title in titles
    ]
    return [task for task in found if task.offers]


def offers_of(core: Core, caller: Caller, shown: DatasetView) -> list[Offer]:
    """Every question, those that can be asked first."""
    found = [
        Offer(question, obstacle_of(core, caller, shown, question), _caution_of(core, shown, question))
        for question in core.questions
    ]
    return sorted(found, key=lambda offer: (offer.obstacle is not None, offer.caution is not None))


def _caution_of(core: Core, shown: DatasetView, question: Question) -> str | None:
    """A question about time can be asked of a table whose schema names no times: only if its rows are in that order."""
    schema = core.public_schema(shown.name)
    is_timed = any(column.kind == "time" for column in schema.columns or ())
    if shown.facts["stream"] or not question.accepts_stream or is_timed:
        return None
    return t("The schema has no column of times. Ask this only if the rows are in the order of time.")


def obstacle_of(core: Core, caller: Caller, shown: DatasetView, question: Question) -> str | None:
    """Why a question cannot be asked here: what it needs, what there is, and what to do."""
    return next(_obstacles(core, caller, shown, question), None)


def _obstacles(core: Core, caller: Caller, shown: DatasetView, question: Question) -> Iterator[str]:
    if shown.facts["stream"] and not question.accepts_stream:
        yield t("It needs a table, and this is a stream, whose observations arrive one by one.")
    schema, records = core.public_schema(shown.name), core.catalog.find(shown.name).records
    for blank in list_parameters(question):
        is_needed = blank.default is REQUIRED or blank.names in ("numbers", "measured", "coded")
        if is_needed and blank.names in _NEEDED and not columns_for(blank, schema):
            yield t("It needs {column}, and the schema has none. Ask the data steward.", column=_NEEDED[blank.names])
        if blank.names == "record" and not records and not caller.is_steward:
            yield t("It is about one record, and the data steward has opened none to queries. Ask the data steward.")


_LATELY: Final = 5
_MAX_SEARCH_LETTERS: Final = 200
_FACTS: Final = ("population", "period", "owner", "licence")  # in this order; the title and the description lead


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnView:
    """A column as a reader wants it: what it says, in which unit, from where to where, and how it is read."""

    name: str
    meaning: str
    unit: str
    span: Message
    notes: Message | None


def routes() -> list[Route]:
    """The pages of data sets."""
    return [Route("/", page(home)), Route("/datasets/{dataset}", page(dataset))]


def home(visit: Visit) -> Response:
    """Every data set, with what is left of its budget."""
    shown = [(one, standing_of(one)) for one in visit.core.datasets(visit.by)]
    requests: Requests = visit.app.state.requests
    waits = requests.count_open() if visit.by.is_steward else 0
    search = visit.request.query_params.get("search", "").strip()[:_MAX_SEARCH_LETTERS]
    matching = [(one, standing) for one, standing in shown if _matches(one, search)]
    return visit.render("home.html", datasets=matching, count=len(shown), search=search, waits=waits)


def _matches(shown: DatasetView, search: str) -> bool:
    """Return whether every word that is searched for occurs in the public words of a data set or in its columns."""
    columns = (column["name"] for column in shown.facts["columns"])
    texts = [shown.name, *(str(shown.facts[name]) for name in ("title", *_FACTS) if name in shown.facts), *columns]
    known = " ".join(texts).casefold()
    return all(word in known for word in search.casefold().split())


def dataset(visit: Visit) -> Response:
    """One data set: what it is, what may be asked of it, what is left, what it holds."""
    shown = visit.core.dataset(visit.by, visit.path("dataset"))
    made = visit.core.releases(visit.by, shown.name, last=_LATELY)
    offers = offers_of(visit.core, visit.by, shown) if shown.state == "ready" else []
    first = first_offer(offers)
    return visit.render(
        "dataset.html",
        shown=shown,
        standing=standing_of(shown),
        words={name: shown.facts[name] for name in _FACTS if name in shown.facts},
        columns=list(map(column_view, shown.facts["columns"])),
        first=first,
        tasks=tasks_of([offer for offer in offers if offer is not first]),
        releases=list(reversed(made)),
    )


def column_view(facts: Mapping[str, Any]) -> ColumnView:
    """A column by its public facts.

    >>> column_view({"name": "age", "type": "integer", "low": 0, "high": 120, "measure": "years"}).span
    'whole numbers from 0 to 120'
    """
    unit = facts.get("measure") or facts.get("unit") or ""
    if not facts.get("measure") and facts.get("since"):
        unit = t("{unit} since {day}", unit=label(unit), day=facts["since"])
    notes = list(_notes(facts))
    return ColumnView(
        name=facts["name"],
        meaning=facts.get("meaning", ""),
        unit=unit,
        span=_span(facts),
        notes=join("; ", notes) if notes else None,
    )


def _span(facts: Mapping[str, Any]) -> Message:
    """Return the values that a column may have."""
    kind, low, high = facts["type"], facts.get("low"), facts.get("high")
    if kind == "category":
        return readable(facts["categories"])
    if kind == "identifier":
        return t("names a record")
    if kind == "time":
        return t("time of the observation")
    numbers = t("whole numbers") if kind == "integer" else t("numbers")
    match low, high:
        case None, None:
            return t("any {numbers}", numbers=numbers)
        case None, _:
            return t("{numbers} up to {high}", numbers=numbers, high=readable(high))
        case _, None:
            return t("{numbers} from {low}", numbers=numbers, low=readable(low))
        case _:
            return t("{numbers} from {low} to {high}", numbers=numbers, low=readable(low), high=readable(high))


def _notes(facts: Mapping[str, Any]) -> Iterator[Message]:
    """Return how the schema says that a column is read."""
    center, scale = facts.get("center", 0), facts.get("scale", 1)
    if (center, scale) != (0, 1):
        yield t("centred at {center}, one unit is {scale}", center=readable(center), scale=readable(scale))
    if facts.get("edges"):
        yield t("cut at {edges}", edges=readable(facts["edges"]))
    if facts.get("missing") is not None:
        yield t("empty cells are read as {value}", value=readable(facts["missing"]))
    if facts.get("other") is not None:
        yield t("unlisted values are read as {value}", value=facts["other"])
    if facts.get("weight") is not None:
        yield t("different labels are {distance} apart", distance=readable(facts["weight"]))
    if facts.get("public"):
        yield t("public for every record")
