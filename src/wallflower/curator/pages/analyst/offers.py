"""Which questions can be asked of a data set, and why others cannot, by public facts alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wallflower.curator.desk.access.tokens import Caller
from wallflower.curator.desk.datasets.views import DatasetView
from wallflower.curator.desk.desk import Desk
from wallflower.curator.pages.forms.pickers import columns_for
from wallflower.query.forms import REQUIRED, Question, blanks

_NEEDED = {
    "numbers": "a column of numbers",
    "measured": "a column of numbers, or labels with a weight",
    "labels": "a column of labels",
    "times": "a column of times",
    "groups": "a column of labels, or of numbers that can be cut into groups",
}


@dataclass(frozen=True, slots=True)
class Offer:
    """A question, what stands in its way (None: nothing does), and what to know before it is asked."""

    question: Question
    obstacle: str | None
    caution: str | None = None


def offers_of(desk: Desk, caller: Caller, shown: DatasetView) -> list[Offer]:
    """Every question, those that can be asked first."""
    found = [
        Offer(question, obstacle_of(desk, caller, shown, question), _caution_of(desk, shown, question))
        for question in desk.questions
    ]
    return sorted(found, key=lambda offer: (offer.obstacle is not None, offer.caution is not None))


def _caution_of(desk: Desk, shown: DatasetView, question: Question) -> str | None:
    """A question about time can be asked of a table whose schema names no times: only if its rows are in that order."""
    schema = desk.public_schema(shown.name)
    if shown.facts["stream"] or not question.streams or any(column.kind == "time" for column in schema.columns or ()):
        return None
    return "The schema has no column of times. Ask this only if the rows are in the order of time."


def obstacle_of(desk: Desk, caller: Caller, shown: DatasetView, question: Question) -> str | None:
    """Why a question cannot be asked here: what it needs, what there is, and what to do."""
    return next(_obstacles(desk, caller, shown, question), None)


def _obstacles(desk: Desk, caller: Caller, shown: DatasetView, question: Question) -> Iterator[str]:
    if shown.facts["stream"] and not question.streams:
        yield "It needs a table, and this is a stream, whose observations come one by one."
    schema, records = desk.public_schema(shown.name), desk.shelf.find(shown.name).records
    for blank in blanks(question):
        is_needed = blank.default is REQUIRED or blank.names in ("numbers", "measured")
        if is_needed and blank.names in _NEEDED and not columns_for(blank, schema):
            yield f"It needs {_NEEDED[blank.names]}, and the schema has none. Ask the steward."
        if blank.names == "record" and not records and not caller.is_steward:
            yield "It is about one record, and the steward has opened none to questions. Ask the steward."
