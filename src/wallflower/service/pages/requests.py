"""Pages for requests for budget: an analyst asks and reads what became of it, a steward has an inbox and answers."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response
from starlette.routing import Route

from wallflower.errors import PrivacyError
from wallflower.service.core.problems import problem_document
from wallflower.service.core.requests import MAX_REASON_LETTERS, BudgetRequest, Requests
from wallflower.service.pages.budget_text import standing_of
from wallflower.service.pages.sign_in import with_token
from wallflower.service.pages.visit import Visit, page, place, redirect

_PREFILLED: Final = ("epsilon", "question")


def routes() -> list[Route]:
    """Asking for more, and the inbox."""
    return [
        Route("/requests", page(inbox)),
        Route("/requests/{request}", page(budget_request)),
        Route("/requests/{request}/decline", page(with_token(decline), "steward"), methods=["POST"]),
        Route("/datasets/{dataset}/request", page(request_form)),
        Route("/datasets/{dataset}/request", page(make_request), methods=["POST"]),
    ]


def requests_of(visit: Visit) -> Requests:
    """The requests of this service."""
    found: Requests = visit.app.state.requests
    return found


def inbox(visit: Visit) -> Response:
    """To a steward what waits for an answer and what was answered; to an analyst their own."""
    found = requests_of(visit).all(visit.by)
    waits, answered = [one for one in found if one.is_open], [one for one in found if not one.is_open]
    return visit.render("requests.html", waits=waits, answered=answered)


def budget_request(visit: Visit) -> Response:
    """One request; a steward may answer it here."""
    return _request_page(visit, requests_of(visit).find(visit.by, visit.path("request")))


def request_form(visit: Visit) -> Response:
    """Where an analyst asks for more; the address may fill it in."""
    given = {name: visit.request.query_params.get(name, "")[:100] for name in _PREFILLED}
    return _form(visit, given)


def make_request(visit: Visit) -> Response:
    """Ask for more."""
    typed = {name: visit.form.get(name, "").strip()[: MAX_REASON_LETTERS + 1] for name in (*_PREFILLED, "reason")}
    optional = {name: typed[name] or None for name in _PREFILLED}
    try:
        made = requests_of(visit).make(visit.by, visit.path("dataset"), typed["reason"], **optional)
    except PrivacyError as refusal:
        stated = problem_document(refusal)
        return _form(visit, typed, stated["status"], stated["detail"])
    return redirect(place("requests", made.id))


def decline(visit: Visit) -> Response:
    """Decline a request, and say why."""
    key = visit.path("request")
    try:
        requests_of(visit).decline(visit.by, key, visit.form.get("word", ""))
    except PrivacyError as refusal:
        stated = problem_document(refusal)
        return _request_page(visit, requests_of(visit).find(visit.by, key), stated["status"], stated["detail"])
    return redirect(place("requests", key))


def _form(visit: Visit, given: dict[str, str], status: int = 200, words: str | None = None) -> Response:
    shown = visit.core.dataset(visit.by, visit.path("dataset"))
    asked = [one for one in visit.core.questions if one.accepts_stream or not shown.facts["stream"]]
    return visit.render(
        "request-form.html",
        status,
        shown=shown,
        standing=standing_of(shown),
        questions=asked,
        given=given,
        longest=MAX_REASON_LETTERS,
        words=words,
    )


def _request_page(visit: Visit, found: BudgetRequest, status: int = 200, words: str | None = None) -> Response:
    shown = visit.core.dataset(visit.by, found.dataset)
    return visit.render(
        "request.html",
        status,
        one=found,
        shown=shown,
        standing=standing_of(shown),
        longest=MAX_REASON_LETTERS,
        words=words,
    )
