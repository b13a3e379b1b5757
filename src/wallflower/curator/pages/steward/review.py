"""The first of two steps to a limit or a share: what would change, before anything does.

The second is the act itself, with the token entered again where it was not entered lately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from wallflower.curator.desk.desk import require_confirmation
from wallflower.curator.desk.problems import Refusal
from wallflower.curator.pages.forms.fields import decimal
from wallflower.curator.pages.steward.budgets import budget_refusal
from wallflower.curator.pages.steward.terms import read_limit, read_share
from wallflower.curator.pages.visitors.visits import Visit, page
from wallflower.curator.pages.words.standing import RULES, limit_words, loss_words, standing_of
from wallflower.errors import ParameterError, PrivacyError
from wallflower.ledger import Account
from wallflower.ledger.limits import limit_of
from wallflower.privacy import Loss, exact


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One line of a review."""

    what: str
    before: str
    after: str

    @property
    def is_change(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What an act would do: in a title, line by line, and what to consider before."""

    title: str
    act: str
    changes: tuple[Change, ...]
    cautions: tuple[str, ...] = ()


def routes() -> list[Route]:
    """The reviews."""
    return [Route("/datasets/{dataset}/budget/review/{form}", page(review, "steward"), methods=["POST"])]


def review(visit: Visit) -> Response:
    """What a form would change, beside what is."""
    form = visit.path("form")
    if form not in _REVIEWS:
        raise Refusal("not-found", "There is nothing to review under this name. Start from the page of the budget.")
    shown = visit.desk.dataset(visit.by, visit.path("dataset"))
    try:
        if not visit.form.get("reason", "").strip() and form == "grants":
            raise ParameterError("reason: none is given, and whoever reads the ledger later will ask for it. Say why.")
        made = _REVIEWS[form](visit, shown.budget)
    except PrivacyError as refusal:
        return budget_refusal(visit, refusal, form)
    given = {name: value for name, value in visit.form.items() if value}
    return visit.render("review.html", shown=shown, standing=standing_of(shown), review=made, form=form, given=given)


def _limit(visit: Visit, account: Account) -> Review:
    loss, terms = read_limit(visit)
    limit = limit_of(loss, accounting=terms["accounting"])
    require_confirmation(limit, confirm=terms["confirm"])
    pace = None if terms["pace"] is None else exact(terms["pace"], "pace")
    expires = None if terms["expires"] is None else terms["expires"].isoformat()
    after = replace(account, limit=limit, pace=pace, expires=expires, starter=False)
    changes = tuple(_lines(account, after))
    return Review(
        title="Review the limit", act="Set the limit", changes=changes, cautions=tuple(_cautions(account, after))
    )


def _lines(before: Account, after: Account) -> Iterator[Change]:
    read: Mapping[str, Callable[[Account], str]] = {
        "Limit, in all": lambda one: limit_words(one.limit) + (" (starter cap)" if one.starter else ""),
        "How losses add up": lambda one: RULES[one.limit.accounting],
        "Left in all": lambda one: loss_words(one.left),
        "Left for analysts without a share": lambda one: loss_words(one.free),
        "At most a year": lambda one: "no pace" if one.pace is None else f"ε = {decimal(one.pace)}",
        "Last day": lambda one: one.expires or "none",
    }
    for what, words in read.items():
        yield Change(what=what, before=words(before), after=words(after))


def _cautions(before: Account, after: Account) -> Iterator[str]:
    if after.limit.epsilon > before.limit.epsilon:
        yield (
            "A higher limit is a weaker promise to everybody in the data. What is spent under it cannot be taken back."
        )
    if not (after.left.amount or after.left.delta):
        yield "It is no more than what is spent already: nothing will be answered."
    if after.is_expired:
        yield "Its last day is over already: nothing will be answered."
    if before.shares and after.limit.accounting != before.limit.accounting:
        yield "Shares are kept by another rule. The ledger will refuse this until they are taken back."


def _share(visit: Visit, account: Account) -> Review:
    analyst, loss = read_share(visit)
    kept = next((one for one in account.shares if one.analyst == analyst), None)
    none = "none"
    before = none if kept is None else loss_words(kept.allocated)
    after = loss_words(loss) if loss.amount or loss.delta else none
    spent = account.spenders.get(analyst)
    lines = (
        Change(what=f"Share kept for {analyst}", before=before, after=after),
        Change(what="Limit, in all", before=limit_words(account.limit), after=limit_words(account.limit)),
        Change(what=f"Spent by {analyst} so far", before=_epsilon(spent), after=_epsilon(spent)),
    )
    return Review(
        title="Review the share", act="Keep the share", changes=lines, cautions=tuple(_unknown(visit, analyst))
    )


def _epsilon(spent: Any) -> str:
    return loss_words(Loss(spent.epsilon)) if spent is not None and spent.epsilon else "nothing"


def _unknown(visit: Visit, analyst: str) -> Iterator[str]:
    if not any(token.name == analyst and token.is_valid for token in visit.desk.tokens.all()):
        yield f"Nobody holds a valid token under the name {analyst}. Check the spelling."


_REVIEWS: Final[Mapping[str, Callable[[Visit, Account], Review]]] = {"grants": _limit, "shares": _share}
