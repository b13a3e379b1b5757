"""Pages for streams: the watches there are, opening one, its decisions over time, and observations from a file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from anyio.to_thread import run_sync
from starlette.responses import Response
from starlette.routing import Route

from wallflower.drawing.charts import Block, timeline
from wallflower.errors import ParameterError, PrivacyError
from wallflower.query import Query
from wallflower.query.accuracy import show_chance
from wallflower.service.core.problems import problem_document
from wallflower.service.core.watches import MAX_OBSERVATIONS, Watches, WatchView, parse_observations
from wallflower.service.pages import planner
from wallflower.service.pages.display import as_markup
from wallflower.service.pages.planner import form_key, is_ticked
from wallflower.service.pages.visit import BASE, Visit, page, place, redirect, refusal_page
from wallflower.streams import DEFAULT_PLAN_ROWS, Decisions
from wallflower.text import Message

SHOWN: Final = 10_000  # decisions on a page
_BLOCKS: Final = 40
_LISTED: Final = 60  # numbers of flagged observations


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What public facts say of the decisions: figures in words, the verdict, and at most which share of
    the usual observations is flagged (`alarms`)."""

    figures: list[tuple[str, Message]]
    alarms: float | None
    verdict: str


def routes() -> list[Route]:
    """The list, a watch, and what is done to it."""
    return [
        Route("/streams", page(streams)),
        Route("/streams/{watch}", page(watch)),
        Route("/streams/{watch}/observations", page(decide_text), methods=["POST"]),
        Route("/datasets/{dataset}/watches/{kind}", page(open_watch), methods=["POST"]),
    ]


def watches_of(visit: Visit) -> Watches:
    """The watches of this service."""
    found: Watches = visit.app.state.watches
    return found


def streams(visit: Visit) -> Response:
    """The watches there are, the latest first, and where one can be opened."""
    found = list(reversed(watches_of(visit).all(visit.by)))
    asked = [question for question in visit.core.questions if question.accepts_stream]
    return visit.render(
        "streams.html",
        watches=found,
        datasets=visit.core.visible_names(visit.by),
        questions=asked,
        keeps=visit.core.settings.watches is not None,
    )


def watch(visit: Visit) -> Response:
    """One watch: what it has decided, what to expect, and a form for more observations."""
    return _watch_page(visit, visit.path("watch"))


async def open_watch(visit: Visit) -> Response:
    """Open a watch and pay for it; a form that is sent twice opens one."""
    name = visit.path("dataset")
    try:
        made = await run_sync(_open_watch, visit)
    except PrivacyError as refusal:
        again = f"{BASE}{place('datasets', name, 'plan', visit.path('kind'))}"
        return refusal_page(visit, refusal, again=again, dataset=name, question=visit.path("kind"))
    return redirect(place("streams", made.id))


def decide_text(visit: Visit) -> Response:
    """Decide the observations of a text. The form says which comes first, so that one sent twice is decided once."""
    key = visit.path("watch")
    state = watches_of(visit).state(visit.by, key)
    first = visit.form.get("first", "")
    try:
        given = parse_observations(visit.form.get("observations", ""), state.columns)
        season = getattr(watches_of(visit).query(visit.by, key), "season", None)
        times = given.times if season is not None else None
        at = int(first) if first.isascii() and first.isdigit() and len(first) < 16 else None
        told = watches_of(visit).decide(visit.by, key, given.rows, at, times)
    except PrivacyError as refusal:
        stated = problem_document(refusal)
        return _watch_page(visit, key, stated["status"], stated["detail"])
    return redirect(f"{place('streams', key)}?from={told.first}&count={len(told)}")


def _open_watch(visit: Visit) -> WatchView:
    question, shown = planner.topic_of(visit)
    if not question.accepts_stream:
        raise ParameterError(f"{question.kind}: it is not asked of a stream. Ask it of a table.")
    query = planner.read(visit, shown, question, visit.form)
    return watches_of(visit).open(visit.by, shown.name, query, key=form_key(visit, query), force=is_ticked(visit))


def _watch_page(visit: Visit, key: str, status: int = 200, words: str | None = None) -> Response:
    watches = watches_of(visit)
    state = watches.state(visit.by, key)
    told = watches.history(visit.by, key, SHOWN)
    expected = _expectation(visit, state, watches.query(visit.by, key))
    blocks = _blocks(told)
    flagged = [told.first + at for at, flag in enumerate(told.outliers) if flag]
    given = visit.request.query_params
    return visit.render(
        "stream.html",
        status,
        state=state,
        question=visit.core.question(state.kind),
        expected=expected,
        blocks=blocks,
        flagged=len(flagged),
        latest=list(reversed(flagged))[:_LISTED],
        decided=len(told),
        picture=as_markup(timeline(blocks, expected.alarms, visit.catalogue.translate)),
        first=state.position + 1,
        most=MAX_OBSERVATIONS,
        most_bytes=visit.core.settings.body_bytes // 3,  # a form writes a sign as three bytes
        fed=_read_span(given.get("from", ""), given.get("count", "")),
        text=visit.form.get("observations", ""),
        words=words,
    )


def _expectation(visit: Visit, state: WatchView, query: Query[Any, Any]) -> Expectation:
    rows = visit.core.catalog.find(state.dataset).schema.rows or DEFAULT_PLAN_ROWS
    plan = query.plan(n=rows, dimension=len(state.columns))
    chosen = next((option for option in plan.options if option.mechanism == plan.chosen), None)
    figures = {} if chosen is None else chosen.figures
    shares = {name: words for name, words in plan.headings.items() if 0 <= figures.get(name, -1) <= 1}
    shown = [(words, show_chance(figures[name])) for name, words in shares.items()]
    alarms = figures.get("alarms")
    usable = alarms if alarms is not None and 0 <= alarms <= 1 else None
    return Expectation(figures=shown, alarms=usable, verdict=plan.verdict)


def _blocks(told: Decisions) -> list[Block]:
    """Decisions in order, some dozens of blocks of equally many."""
    flags = told.outliers
    size = max(1, math.ceil(len(flags) / _BLOCKS))
    return [
        Block(
            first=told.first + at,
            last=told.first + at + len(part) - 1,
            flagged=sum(flag is True for flag in part),
            skipped=sum(flag is None for flag in part),
        )
        for at in range(0, len(flags), size)
        if (part := flags[at : at + size])
    ]


def _read_span(first: str, count: str) -> tuple[int, int] | None:
    if not all(text.isascii() and text.isdigit() and len(text) < 16 for text in (first, count)):
        return None
    return int(first), int(count)
