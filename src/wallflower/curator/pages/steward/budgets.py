"""The page of a budget: where the account of a data set stands, and the acts that change it."""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import Response
from starlette.routing import Route

from wallflower.curator.desk.budgets.proposals import Proposal
from wallflower.curator.desk.budgets.requests import Requests
from wallflower.curator.desk.desk import LARGE
from wallflower.curator.desk.problems import problem
from wallflower.curator.pages.steward.acts import act_route, done_words
from wallflower.curator.pages.steward.terms import (
    PROTECTIONS,
    read_limit,
    read_protection,
    read_reason,
    read_share,
    read_text,
)
from wallflower.curator.pages.visitors.visits import Visit, page, place, to
from wallflower.curator.pages.words.standing import standing_of
from wallflower.errors import PrivacyError
from wallflower.ledger.chain import Entry


def routes() -> list[Route]:
    """The page of a budget, and its acts."""
    return [
        Route("/datasets/{dataset}/budget", page(budget, "reader")),
        act_route("/datasets/{dataset}/budget/grants", grant),
        act_route("/datasets/{dataset}/budget/shares", allocate),
        act_route("/datasets/{dataset}/budget/declaration", declare),
        act_route("/datasets/{dataset}/budget/constrained", allow_constrained),
    ]


def budget(visit: Visit) -> Response:
    """Where the account of a data set stands, who spent what, and the forms that change it."""
    return _budget(visit, None, 200)


def grant(visit: Visit) -> Response:
    """Set the limit of a data set's account."""

    def change() -> Entry | Proposal:
        loss, terms = read_limit(visit)
        return visit.desk.grant(visit.by, visit.path("dataset"), loss, reason=read_reason(visit), **terms)

    return _make_change(visit, "grants", change)


def allocate(visit: Visit) -> Response:
    """Set the share of one analyst."""

    def change() -> Entry:
        analyst, loss = read_share(visit)
        return visit.desk.allocate(visit.by, visit.path("dataset"), analyst, loss, reason=read_reason(visit))

    return _make_change(visit, "shares", change)


def declare(visit: Visit) -> Response:
    """Say whose loss a data set counts, and which account it spends from."""

    def change() -> Entry:
        return visit.desk.declare(
            visit.by,
            visit.path("dataset"),
            read_protection(visit),
            account=read_text(visit, "account"),
            reason=read_reason(visit),
        )

    return _make_change(visit, "declaration", change)


def allow_constrained(visit: Visit) -> Response:
    """Open output-constrained answers, or close them."""

    def change() -> Entry | Proposal:
        epsilon = read_text(visit, "epsilon") or ""
        return visit.desk.allow_constrained(visit.by, visit.path("dataset"), epsilon, reason=read_reason(visit))

    return _make_change(visit, "constrained", change)


def _make_change(visit: Visit, form: str, change: Callable[[], Entry | Proposal]) -> Response:
    """Make a change to a budget: then the page says that it was made, or why not; whoever asked for it is told."""
    requests: Requests = visit.app.state.requests
    key = visit.form.get("request", "")
    try:
        if key:
            name, word = visit.desk.shelf.find(visit.path("dataset")).name, visit.form.get("word", "")
            requests.grant(visit.by, key, change, dataset=name, word=word)
            return to(place("requests", key))
        if isinstance(change(), Proposal):
            return to("/proposals?done=proposed")
    except PrivacyError as refusal:
        return budget_refusal(visit, refusal, form)
    shown = visit.desk.dataset(visit.by, visit.path("dataset"))
    return to(f"{place('datasets', shown.name, 'budget')}?done={form}")


def budget_refusal(visit: Visit, refusal: PrivacyError, form: str) -> Response:
    """The page of a budget, with what was typed and why it cannot be done."""
    stated = problem(refusal)
    return _budget(visit, stated["detail"], stated["status"], sent=form)


def _budget(visit: Visit, words: str | None, status: int, sent: str = "") -> Response:
    shown = visit.desk.dataset(visit.by, visit.path("dataset"))
    analysts = sorted({token.name for token in visit.desk.tokens.all() if token.is_valid})
    stated = visit.desk.shelf.find(shown.name).schema
    charged = visit.desk.is_charged(shown.name)
    return visit.render(
        "budget.html",
        status,
        shown=shown,
        standing=standing_of(shown),
        analysts=analysts,
        protections=PROTECTIONS,
        charged=charged,
        declarable=not charged and stated.account is None and stated.protects is None,
        large=LARGE,
        words=words,
        given=visit.form,
        sent=sent,
        done=done_words(visit),
    )
