"""Pages of budgets: the state of an account, the forms that change it, a review before a change, and proposals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final, get_args

from starlette.responses import Response
from starlette.routing import Route

from wallflower.errors import ParameterError, PrivacyError
from wallflower.ledger import Account
from wallflower.ledger.chain import Entry
from wallflower.ledger.limits import Accounting, limit_of
from wallflower.privacy import Loss, exact
from wallflower.query.parameter import loss_of
from wallflower.service.api.bodies import parse_date
from wallflower.service.core.facade import MAX_UNCONFIRMED_EPSILON, require_confirmation
from wallflower.service.core.problems import Refusal, problem_document
from wallflower.service.core.proposals import Proposal
from wallflower.service.core.requests import Requests
from wallflower.service.pages.budget_text import RULES, limit_text, spent_text, standing_of
from wallflower.service.pages.sign_in import act_route, done_text
from wallflower.service.pages.visit import Visit, page, place, redirect
from wallflower.text import Message, t
from wallflower.units import Protection

_LONGEST: Final = 1000
PROTECTIONS: Final = (
    ("people record", t("a row is a person: one record is protected, the number of records is public")),
    ("people membership", t("a row is a person: membership is protected too")),
    ("time record", t("a row is an observation: all its entries are protected")),
    ("time entry", t("a row is an observation: one entry of it is protected")),
    ("time window", t("a row is an observation: one person over a window of observations is protected")),
    ("time person", t("a row is an observation: one person over the whole stream is protected")),
)


def read_limit(visit: Visit) -> tuple[Loss, dict[str, Any]]:
    """The limit that a form states, and its terms."""
    terms: dict[str, Any] = {"accounting": _choice(visit, "accounting", get_args(Accounting))}
    terms |= {"pace": read_text(visit, "pace"), "expires": _last_day(visit), "confirm": "confirm" in visit.form}
    return _loss(visit, "grant"), terms


def read_share(visit: Visit) -> tuple[str, Loss]:
    """The analyst that a form names, and the quota that is to be kept for them."""
    analyst = read_text(visit, "analyst") or ""
    if not (1 <= len(analyst) <= 200 and analyst.isprintable()):
        raise ParameterError(t("analyst: must be the name of a token. Choose one of them."))
    return analyst, _loss(visit, "allocate")


def read_protection(visit: Visit) -> Protection | None:
    """What a row is and which change of it is hidden, chosen as one; None: as it was."""
    rows, _, unit = (_choice(visit, "protects", tuple(value for value, _ in PROTECTIONS)) or "").partition(" ")
    if not rows:
        return None
    numbers = {name: _number(visit, name) for name in ("window", "units_per_person", "times")}
    given = {name: value for name, value in numbers.items() if value is not None}
    return Protection.from_json({"rows": rows, "unit": unit, **given})


def _loss(visit: Visit, asker: str) -> Loss:
    epsilon, delta, rho = (read_text(visit, name) for name in ("epsilon", "delta", "rho"))
    return loss_of(asker, epsilon=epsilon, delta=delta, rho=rho)


def read_text(visit: Visit, name: str) -> str | None:
    """What was typed into a field; None: nothing."""
    return visit.form.get(name, "").strip()[:_LONGEST] or None


def read_reason(visit: Visit) -> str:
    """Why it is done, for readers of the ledger; none may be given."""
    return read_text(visit, "reason") or ""


def _choice(visit: Visit, name: str, known: tuple[str, ...]) -> Any:
    chosen = read_text(visit, name)
    if chosen is not None and chosen not in known:
        raise ParameterError(t("{name}: must be one of {choices}.", name=name, choices=", ".join(known)))
    return chosen


def _last_day(visit: Visit) -> date | None:
    text = read_text(visit, "expires")
    return None if text is None else parse_date(text)


def _number(visit: Visit, name: str) -> int | None:
    text = read_text(visit, name)
    if text is not None and not (text.isascii() and text.isdigit() and len(text) < 11):
        raise ParameterError(t("{name}: must be a whole number above zero.", name=name))
    return None if text is None else int(text)


def routes() -> list[Route]:
    """The page of a budget, and its acts."""
    return [
        Route("/datasets/{dataset}/budget", page(budget, "reader")),
        act_route("/datasets/{dataset}/budget/grants", grant),
        act_route("/datasets/{dataset}/budget/quotas", set_quota),
        act_route("/datasets/{dataset}/budget/declaration", declare),
        act_route("/datasets/{dataset}/budget/constrained", allow_constrained),
        act_route("/datasets/{dataset}/budget/naming", allow_naming),
        *_review_routes(),
        *_proposals_routes(),
    ]


def budget(visit: Visit) -> Response:
    """Where the account of a data set stands, who spent what, and the forms that change it."""
    return _budget(visit, None, 200)


def grant(visit: Visit) -> Response:
    """Set the limit of a data set's account."""

    def change() -> Entry | Proposal:
        loss, terms = read_limit(visit)
        return visit.core.grant(visit.by, visit.path("dataset"), loss, reason=read_reason(visit), **terms)

    return _make_change(visit, "grants", change)


def set_quota(visit: Visit) -> Response:
    """Set the quota of one analyst."""

    def change() -> Entry:
        analyst, loss = read_share(visit)
        return visit.core.set_quota(visit.by, visit.path("dataset"), analyst, loss, reason=read_reason(visit))

    return _make_change(visit, "quotas", change)


def declare(visit: Visit) -> Response:
    """Say whose loss a data set counts, and which account it spends from."""

    def change() -> Entry:
        return visit.core.declare(
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
        return visit.core.allow_constrained(visit.by, visit.path("dataset"), epsilon, reason=read_reason(visit))

    return _make_change(visit, "constrained", change)


def allow_naming(visit: Visit) -> Response:
    """Allow lists of names by one detector, or forbid them."""

    def change() -> Entry | Proposal:
        detector, most = (_number(visit, name) for name in ("detector", "most"))
        return visit.core.allow_naming(
            visit.by,
            visit.path("dataset"),
            detector or 0,
            most or 0,
            reason=read_reason(visit),
            by_row=visit.form.get("by_row") == "yes",
        )

    return _make_change(visit, "naming", change)


def _make_change(visit: Visit, form: str, change: Callable[[], Entry | Proposal]) -> Response:
    """Change a budget; the page then says that it was changed, or why not, and the person who asked for it is told."""
    requests: Requests = visit.app.state.requests
    key = visit.form.get("request", "")
    try:
        if key:
            name, word = visit.core.catalog.find(visit.path("dataset")).name, visit.form.get("word", "")
            requests.grant(visit.by, key, change, dataset=name, word=word)
            return redirect(place("requests", key))
        if isinstance(change(), Proposal):
            return redirect("/proposals?done=proposed")
    except PrivacyError as refusal:
        return budget_refusal(visit, refusal, form)
    shown = visit.core.dataset(visit.by, visit.path("dataset"))
    return redirect(f"{place('datasets', shown.name, 'budget')}?done={form}")


def budget_refusal(visit: Visit, refusal: PrivacyError, form: str) -> Response:
    """The page of a budget, with what was typed and why it cannot be done."""
    stated = problem_document(refusal)
    return _budget(visit, stated["detail"], stated["status"], sent=form)


def _budget(visit: Visit, words: str | None, status: int, sent: str = "") -> Response:
    shown = visit.core.dataset(visit.by, visit.path("dataset"))
    analysts = sorted({token.name for token in visit.core.tokens.all() if token.is_valid})
    stated = visit.core.catalog.find(shown.name).schema
    charged = visit.core.is_charged(shown.name)
    return visit.render(
        "budget.html",
        status,
        shown=shown,
        standing=standing_of(shown),
        analysts=analysts,
        protections=PROTECTIONS,
        charged=charged,
        declarable=not charged and stated.account is None and stated.protects is None,
        large=MAX_UNCONFIRMED_EPSILON,
        words=words,
        given=visit.form,
        sent=sent,
        done=done_text(visit),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One line of a review."""

    what: Message
    before: Message
    after: Message

    @property
    def is_change(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What an act would do: in a title, line by line, and what to consider before."""

    title: Message
    act: Message
    changes: tuple[Change, ...]
    cautions: tuple[Message, ...] = ()


def _review_routes() -> list[Route]:
    """The reviews."""
    return [Route("/datasets/{dataset}/budget/review/{form}", page(review, "steward"), methods=["POST"])]


def review(visit: Visit) -> Response:
    """What a form would change, beside what is."""
    form = visit.path("form")
    if form not in _REVIEWS:
        raise Refusal("not-found", t("There is nothing to review under this name. Start from the page of the budget."))
    shown = visit.core.dataset(visit.by, visit.path("dataset"))
    try:
        if not visit.form.get("reason", "").strip() and form == "grants":
            raise ParameterError(t("reason: required; it is recorded in the ledger."))
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
        title=t("Review the budget"),
        act=t("Set the budget"),
        changes=changes,
        cautions=tuple(_cautions(account, after)),
    )


def _lines(before: Account, after: Account) -> Iterator[Change]:
    yield Change(what=t("Budget, in all"), before=_limit_text(before), after=_limit_text(after))
    yield Change(what=t("Composition"), before=RULES[before.limit.accounting], after=RULES[after.limit.accounting])
    yield Change(what=t("Left in all"), before=before.left.text, after=after.left.text)
    yield Change(what=t("Left for analysts without a quota"), before=before.free.text, after=after.free.text)
    yield Change(what=t("Yearly limit"), before=_pace_text(before), after=_pace_text(after))
    yield Change(what=t("Last day"), before=_last_day_text(before), after=_last_day_text(after))


def _limit_text(account: Account) -> Message:
    limit = limit_text(account.limit)
    return t("{limit} (default budget)", limit=limit) if account.starter else limit


def _pace_text(account: Account) -> Message:
    return t("none") if account.pace is None else t("ε = {epsilon}", epsilon=account.pace)


def _last_day_text(account: Account) -> Message:
    return t("none") if account.expires is None else t("{day}", day=account.expires)


def _cautions(before: Account, after: Account) -> Iterator[Message]:
    if after.limit.epsilon > before.limit.epsilon:
        yield t(
            "A larger budget weakens the guarantee for everyone in the data, including for answers already released."
        )
    if not (after.left.amount or after.left.delta):
        yield t("This is no more than what is spent already: no query will be answered.")
    if after.is_expired:
        yield t("Its last day has passed already: no query will be answered.")
    if before.quotas and after.limit.accounting != before.limit.accounting:
        yield t("Quotas use another composition. Remove them first; until then this is refused.")


def _quota(visit: Visit, account: Account) -> Review:
    analyst, loss = read_share(visit)
    kept = next((one for one in account.quotas if one.analyst == analyst), None)
    spent = account.spenders.get(analyst)
    spent_so_far = t("nothing") if spent is None else spent_text(account, spent)
    limit = limit_text(account.limit)
    lines = (
        Change(
            what=t("Quota of {analyst}", analyst=analyst),
            before=t("none") if kept is None else kept.limit.text,
            after=loss.text if loss.amount or loss.delta else t("none"),
        ),
        Change(what=t("Budget, in all"), before=limit, after=limit),
        Change(what=t("Spent by {analyst} so far", analyst=analyst), before=spent_so_far, after=spent_so_far),
    )
    is_known = any(token.name == analyst and token.is_valid for token in visit.core.tokens.all())
    unknown = t("Nobody holds a valid token under the name {analyst}. Check the spelling.", analyst=analyst)
    cautions = () if is_known else (unknown,)
    return Review(title=t("Review the quota"), act=t("Set the quota"), changes=lines, cautions=cautions)


_REVIEWS: Final[Mapping[str, Callable[[Visit, Account], Review]]] = {"grants": _limit, "quotas": _quota}


def _proposals_routes() -> list[Route]:
    """The page of proposals, and the two answers to one."""
    return [
        Route("/proposals", page(show_proposals, "reader")),
        act_route("/proposals/{proposal}/confirm", confirm_proposal),
        act_route("/proposals/{proposal}/decline", decline_proposal),
    ]


def show_proposals(visit: Visit) -> Response:
    """The proposals that wait, and those that were decided."""
    proposals = visit.core.proposals.all()
    return visit.render(
        "proposals.html",
        waiting=[proposal for proposal in proposals if proposal.waits],
        decided=[proposal for proposal in proposals if not proposal.waits],
        done=done_text(visit),
    )


def confirm_proposal(visit: Visit) -> Response:
    """Confirm what another steward proposed."""
    requests: Requests = visit.app.state.requests
    proposal, entry = visit.core.confirm_proposal(visit.by, visit.path("proposal"))
    requests.settle_proposal(visit.by, proposal, entry)
    return redirect("/proposals?done=confirmed")


def decline_proposal(visit: Visit) -> Response:
    """Refuse what another steward proposed, or take an own proposal back."""
    visit.core.decline_proposal(visit.by, visit.path("proposal"))
    return redirect("/proposals?done=declined")
