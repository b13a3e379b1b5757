"""The pages where one begins: every data set, and one of them, with what is public of it in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from wallflower.curator.desk.budgets.requests import Requests
from wallflower.curator.pages.analyst.offers import offers_of
from wallflower.curator.pages.visitors.visits import Visit, page
from wallflower.curator.pages.words.standing import standing_of
from wallflower.release.words import readable

_LATELY: Final = 5
_FACTS: Final = ("population", "period", "owner", "licence")  # in this order; the title and the description lead


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnView:
    """A column as a reader wants it: what it says, in which unit, from where to where, and how it is read."""

    name: str
    meaning: str
    unit: str
    span: str
    notes: str


def routes() -> list[Route]:
    """The pages of data sets."""
    return [Route("/", page(home)), Route("/datasets/{dataset}", page(dataset))]


def home(visit: Visit) -> Response:
    """Every data set, with what is left of its budget."""
    shown = [(one, standing_of(one)) for one in visit.desk.datasets(visit.by)]
    requests: Requests = visit.app.state.requests
    waits = requests.count_open() if visit.by.is_steward else 0
    return visit.render("home.html", datasets=shown, waits=waits)


def dataset(visit: Visit) -> Response:
    """One data set: what it is, what may be asked of it, what is left, what it holds."""
    shown = visit.desk.dataset(visit.by, visit.path("dataset"))
    made = visit.desk.releases(visit.by, shown.name, last=_LATELY)
    return visit.render(
        "dataset.html",
        shown=shown,
        standing=standing_of(shown),
        words={name: shown.facts[name] for name in _FACTS if name in shown.facts},
        columns=list(map(column_view, shown.facts["columns"])),
        offers=offers_of(visit.desk, visit.by, shown) if shown.state == "ready" else [],
        releases=list(reversed(made)),
    )


def column_view(facts: Mapping[str, Any]) -> ColumnView:
    """A column by its public facts.

    >>> column_view({"name": "age", "type": "integer", "low": 0, "high": 120, "measure": "years"}).span
    'whole numbers from 0 to 120'
    """
    since = f" since {facts['since']}" if facts.get("since") else ""
    return ColumnView(
        name=facts["name"],
        meaning=facts.get("meaning", ""),
        unit=facts.get("measure") or (f"{facts['unit']}{since}" if facts.get("unit") else ""),
        span=_span(facts),
        notes="; ".join(_notes(facts)),
    )


def _span(facts: Mapping[str, Any]) -> str:
    """The values it may have."""
    kind, low, high = facts["type"], facts.get("low"), facts.get("high")
    if kind == "category":
        return readable(facts["categories"])
    if kind in ("identifier", "time"):
        return {"identifier": "names a record", "time": "when a record was observed"}[kind]
    ends = [f"from {readable(low)}"] if low is not None else []
    ends += [f"to {readable(high)}" if ends else f"up to {readable(high)}"] if high is not None else []
    what = "whole numbers" if kind == "integer" else "numbers"
    return " ".join([what, *ends]) if ends else f"any {what}"


def _notes(facts: Mapping[str, Any]) -> Iterator[str]:
    """How it is read, as the schema says."""
    center, scale = facts.get("center", 0), facts.get("scale", 1)
    if (center, scale) != (0, 1):
        yield f"{readable(center)} counts as 0, and a step of {readable(scale)} as 1"
    if facts.get("edges"):
        yield f"cut at {readable(facts['edges'])}"
    if facts.get("missing") is not None:
        yield f"empty cells are read as {readable(facts['missing'])}"
    if facts.get("other") is not None:
        yield f"what is not listed is {facts['other']}"
    if facts.get("weight") is not None:
        yield f"labels that differ are {readable(facts['weight'])} apart"
    if facts.get("public"):
        yield "public for every record"
