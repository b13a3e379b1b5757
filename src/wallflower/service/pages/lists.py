"""The two long lists, with filters and as files: entries of the ledger for stewards, releases for everybody."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, get_args
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from wallflower.errors import ChainBroken, ParameterError
from wallflower.ledger.chain import GENESIS, Entry, Event, Verification, require_head
from wallflower.release import Release
from wallflower.service.api.models import entry_json
from wallflower.service.core.problems import problem_document
from wallflower.service.pages.budget_text import author_of, event_text
from wallflower.service.pages.visit import Visit, csv_file, json_file, number_of, page

ENTRIES: Final = 100
RELEASES: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What of a list is wanted; None: all of it."""

    dataset: str | None = None
    analyst: str | None = None
    event: Event | None = None
    question: str | None = None

    @property
    def criteria(self) -> dict[str, str]:
        names = ("dataset", "analyst", "event", "question")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def address(self, **more: object) -> str:
        """The same as the end of an address."""
        given = {**self.criteria, **more}
        return f"?{urlencode(given)}" if given else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What was found out about the chain: whether it holds, and apart from that about a head that was noted."""

    verified: Verification | None
    broken: str | None
    head: str
    head_words: str | None = None
    head_found: bool | None = None


def routes() -> list[Route]:
    """Lists and their files."""
    return [
        Route("/ledger", page(ledger, "reader")),
        Route("/ledger/csv", page(ledger_csv, "reader")),
        Route("/ledger/json", page(ledger_json, "reader")),
        Route("/releases", page(releases)),
        Route("/releases.csv", page(releases_csv)),
        Route("/releases.json", page(releases_json)),
    ]


def ledger(visit: Visit) -> Response:
    """The ledger, the latest entries first, and whether its chain holds."""
    wanted = _filter(visit)
    entries = list(reversed(_entries(visit, wanted, before=number_of(visit, "before"), last=ENTRIES)))
    older = wanted.address(before=entries[-1].id) if len(entries) == ENTRIES else None
    return visit.render(
        "ledger.html",
        check=check_chain(visit, visit.request.query_params.get("head", "").strip()[:200]),
        entries=entries,
        older=older,
        wanted=wanted,
        events=get_args(Event),
        **_choices(visit),
    )


def check_chain(visit: Visit, head: str) -> Check:
    """Walk the chain. A head that was noted is first checked as a text: one that is mistyped accuses nobody."""
    try:
        found = visit.core.verify()
    except ChainBroken as broken:
        return Check(verified=None, broken=problem_document(broken)["detail"], head=head)
    if not head:
        return Check(verified=found, broken=None, head=head)
    try:
        noted = require_head(head)
        visit.core.verify(head=noted)
    except ParameterError as unfit:
        return Check(verified=found, broken=None, head=head, head_words=str(unfit))
    except ChainBroken as missing:
        words = problem_document(missing)["detail"]
        return Check(verified=found, broken=None, head=head, head_words=words, head_found=False)
    where = "It is the head of an empty ledger." if noted == GENESIS else "The head that you noted is in the chain."
    return Check(verified=found, broken=None, head=head, head_words=where, head_found=True)


def ledger_csv(visit: Visit) -> Response:
    """The entries that are wanted, as a table."""
    head = ("number", "time", "event", "what happened", "data set", "by", "stated", "booked", "hash")
    rows = (
        (
            entry.id,
            entry.time,
            entry.event,
            event_text(entry),
            entry.dataset,
            author_of(entry),
            entry.loss.exact_text if entry.loss else "",
            entry.booked.exact_text if entry.booked else "",
            entry.hash,
        )
        for entry in _entries(visit, _filter(visit))
    )
    return csv_file("ledger", head, rows)


def ledger_json(visit: Visit) -> Response:
    """The entries that are wanted, as they are stored."""
    return json_file("ledger", {"entries": [entry_json(entry) for entry in _entries(visit, _filter(visit))]})


def releases(visit: Visit) -> Response:
    """What was released, the latest first: to a steward everything, to an analyst their own."""
    wanted = _filter(visit)
    entries = list(reversed(_entries(visit, wanted, before=number_of(visit, "before"), last=RELEASES, released=True)))
    older = wanted.address(before=entries[-1].id) if len(entries) == RELEASES else None
    found = list(map(_release, entries))
    return visit.render("releases.html", releases=found, older=older, wanted=wanted, **_choices(visit))


def releases_csv(visit: Visit) -> Response:
    """The releases that are wanted, as a table."""
    head = ("number", "time", "data set", "analyst", "question", "parameters", "answer", "value", "spent", "quality")
    made = map(_release, _entries(visit, _filter(visit), released=True))
    rows = (
        (
            one.ledger_id,
            one.charged_at,
            one.dataset,
            one.analyst,
            one.kind,
            json.dumps(dict(one.parameters), ensure_ascii=False, default=str),
            one.summary,
            json.dumps(one.value, ensure_ascii=False, default=str),
            (one.booked or one.guarantee.loss).exact_text,
            "" if one.quality is None else one.quality.verdict,
        )
        for one in made
    )
    return csv_file("releases", head, rows)


def releases_json(visit: Visit) -> Response:
    """The releases that are wanted, as programs get them."""
    found = _entries(visit, _filter(visit), released=True)
    return json_file("releases", {"releases": [_release(entry).to_dict() for entry in found]})


def _filter(visit: Visit) -> Filter:
    """What the address asks for; what it cannot ask for is left out."""
    given = {name: text.strip()[:200] or None for name, text in visit.request.query_params.items()}
    text = {name: given.get(name) for name in ("dataset", "analyst", "question")}
    event = next((known for known in get_args(Event) if known == given.get("event")), None)
    printable = {name: value for name, value in text.items() if value and value.isprintable()}
    return Filter(event=event, **printable)


def _choices(visit: Visit) -> dict[str, Any]:
    analysts: list[str] = []
    if visit.by.reads_all:
        analysts = sorted({token.name for token in visit.core.tokens.all()})
    return {"datasets": visit.core.visible_names(visit.by), "analysts": analysts, "questions": visit.core.questions}


def _entries(
    visit: Visit, wanted: Filter, *, before: int | None = None, last: int | None = None, released: bool = False
) -> list[Entry]:
    """Entries, oldest first; of somebody who is no steward never those of others."""
    analyst = wanted.analyst if visit.by.reads_all else visit.by.name
    label = next((one.label for one in visit.core.questions if one.kind == wanted.question), wanted.question)
    event: Event | None = "release" if released else wanted.event
    return visit.core.ledger.history(
        wanted.dataset, analyst=analyst, event=event, label=label, before=before, last=last
    )


def _release(entry: Entry) -> Release[Any]:
    return Release.from_dict(entry.details)
