"""Pages for stewards: budgets, tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, Final, get_args

from starlette.responses import Response
from starlette.routing import Route

from wallflower.curator.api.bodies import day
from wallflower.curator.desk.desk import LARGE
from wallflower.curator.desk.problems import problem
from wallflower.curator.desk.requests import Requests
from wallflower.curator.desk.tokens import SCOPES
from wallflower.curator.pages.visitors.confirmation import with_token
from wallflower.curator.pages.visitors.visits import Visit, page, place, to
from wallflower.curator.pages.words.standing import standing_of
from wallflower.errors import ParameterError, PrivacyError
from wallflower.ledger.chain import Entry
from wallflower.ledger.limits import Accounting
from wallflower.privacy import Loss
from wallflower.query.forms import loss_of
from wallflower.units import Protection

_PAGE: Final = 100
_DONE: Final = {
    "registered": "The data set is registered. Set its limit next: until then a starter cap applies.",
    "grants": "The limit is written into the ledger.",
    "shares": "The share is written into the ledger.",
    "declaration": "The declaration is written into the ledger.",
    "constrained": "The allowance is written into the ledger.",
    "factor": "The second factor is removed: the token alone is enough from now on.",
    "revoke": "The token is revoked, and whoever was signed in with it is signed out.",
}
_LONGEST: Final = 1000
PROTECTIONS: Final = (
    ("people record", "a row is a person: one record is protected, how many there are is public"),
    ("people membership", "a row is a person: whether they are there at all is protected too"),
    ("time record", "a row is a moment: all entries of one moment are protected"),
    ("time entry", "a row is a moment: one entry of one moment is protected"),
    ("time window", "a row is a moment: one person over a window of moments is protected"),
    ("time person", "a row is a moment: one person over the whole stream is protected"),
)


def routes() -> list[Route]:
    """The pages of a steward."""
    return [
        Route("/datasets/{dataset}/budget", page(budget, "steward")),
        _act("/datasets/{dataset}/budget/grants", grant),
        _act("/datasets/{dataset}/budget/shares", allocate),
        _act("/datasets/{dataset}/budget/declaration", declare),
        _act("/datasets/{dataset}/budget/constrained", allow_constrained),
        Route("/tokens", page(tokens, "steward")),
        _act("/tokens", create_token),
        Route("/tokens/{token}/revoke", page(confirm_revocation, "steward")),
        _act("/tokens/{token}/revoke", revoke_token),
        Route("/tokens/{token}/factor", page(confirm_removal, "steward")),
        _act("/tokens/{token}/factor", remove_factor),
    ]


def _act(path: str, handler: Callable[[Visit], Response]) -> Route:
    """A change, for which the token is entered again."""
    return Route(path, page(with_token(handler), "steward"), methods=["POST"])


def budget(visit: Visit) -> Response:
    """Where the account of a data set stands, who spent what, and the forms that change it."""
    return _budget(visit, None, 200)


def grant(visit: Visit) -> Response:
    """Set the limit of a data set's account."""

    def change() -> Entry:
        loss, terms = limit_stated(visit)
        return visit.desk.grant(visit.by, visit.path("dataset"), loss, reason=_reason(visit), **terms)

    return _changed(visit, "grants", change)


def allocate(visit: Visit) -> Response:
    """Set the share of one analyst."""

    def change() -> Entry:
        analyst, loss = share_stated(visit)
        return visit.desk.allocate(visit.by, visit.path("dataset"), analyst, loss, reason=_reason(visit))

    return _changed(visit, "shares", change)


def declare(visit: Visit) -> Response:
    """Say whose loss a data set counts, and which account it spends from."""

    def change() -> Entry:
        return visit.desk.declare(
            visit.by,
            visit.path("dataset"),
            protection_stated(visit),
            account=_typed(visit, "account"),
            reason=_reason(visit),
        )

    return _changed(visit, "declaration", change)


def allow_constrained(visit: Visit) -> Response:
    """Open output-constrained answers, or close them."""

    def change() -> Entry:
        epsilon = _typed(visit, "epsilon") or ""
        return visit.desk.allow_constrained(visit.by, visit.path("dataset"), epsilon, reason=_reason(visit))

    return _changed(visit, "constrained", change)


def tokens(visit: Visit) -> Response:
    """Every token there ever was, and the text of one that was issued just now."""
    text = visit.handed_over
    holder = visit.desk.tokens.caller(text)
    if holder is None:
        return _tokens(visit)
    made = visit.desk.tokens.find(holder.token)
    found = _tokens(visit, text=text, name=made.name, beside=[one.id for one in visit.desk.tokens.others(made)])
    visit.hand_over(found, None)
    return found


def create_token(visit: Visit) -> Response:
    """A new token. The page that follows shows its text, and no page ever again: a reload issues nothing."""
    days = visit.form.get("days", "").strip()
    try:
        if not (days.isascii() and days.isdigit() and len(days) < 8):
            raise ParameterError("days: a token lives 1 to 3,650 days. Choose a whole number.")
        name, scope = visit.form.get("name", "").strip(), visit.form.get("scope", "")
        _, text = visit.desk.issue_token(visit.by, name, scope, days=int(days))
    except PrivacyError as refusal:
        stated = problem(refusal)
        return _tokens(visit, stated["status"], words=stated["detail"])
    found = to("/tokens")
    visit.hand_over(found, text)
    return found


def confirm_revocation(visit: Visit) -> Response:
    """Whether a token is really to be ended."""
    return visit.render("revoke.html", token=visit.desk.tokens.find(visit.path("token")))


def revoke_token(visit: Visit) -> Response:
    """End a token."""
    visit.desk.revoke_token(visit.by, visit.path("token"))
    return to("/tokens?done=revoke")


def confirm_removal(visit: Visit) -> Response:
    """Whether the second factor of a token is really to be taken away."""
    token = visit.desk.tokens.find(visit.path("token"))
    return visit.render("factor.html", token=token, enrolled=visit.desk.factors.is_enrolled(token.id))


def remove_factor(visit: Visit) -> Response:
    """Take the second factor of a token away."""
    visit.desk.remove_factor(visit.by, visit.path("token"))
    return to("/tokens?done=factor")


def limit_stated(visit: Visit) -> tuple[Loss, dict[str, Any]]:
    """The limit that a form states, and its terms."""
    terms: dict[str, Any] = {"accounting": _choice(visit, "accounting", get_args(Accounting))}
    terms |= {"pace": _typed(visit, "pace"), "expires": _last_day(visit), "confirm": "confirm" in visit.form}
    return _loss(visit, "grant"), terms


def share_stated(visit: Visit) -> tuple[str, Loss]:
    """The analyst that a form names, and the share that is to be kept for them."""
    analyst = _typed(visit, "analyst") or ""
    if not (1 <= len(analyst) <= 200 and analyst.isprintable()):
        raise ParameterError("analyst: it is the name of a token. Choose one of them.")
    return analyst, _loss(visit, "allocate")


def _loss(visit: Visit, asker: str) -> Loss:
    epsilon, delta, rho = (_typed(visit, name) for name in ("epsilon", "delta", "rho"))
    return loss_of(asker, epsilon=epsilon, delta=delta, rho=rho)


def _typed(visit: Visit, name: str) -> str | None:
    """What was typed into a field; None: nothing."""
    return visit.form.get(name, "").strip()[:_LONGEST] or None


def _reason(visit: Visit) -> str:
    return _typed(visit, "reason") or ""


def _choice(visit: Visit, name: str, known: tuple[str, ...]) -> Any:
    chosen = _typed(visit, name)
    if chosen is not None and chosen not in known:
        raise ParameterError(f"{name}: it is one of {', '.join(known)}. Choose one.")
    return chosen


def _last_day(visit: Visit) -> date | None:
    text = _typed(visit, "expires")
    return None if text is None else day(text)


def protection_stated(visit: Visit) -> Protection | None:
    """What a row is and which change of it is hidden, chosen as one; None: as it was."""
    rows, _, unit = (_choice(visit, "protects", tuple(value for value, _ in PROTECTIONS)) or "").partition(" ")
    if not rows:
        return None
    numbers = {name: _number(visit, name) for name in ("window", "units_per_person", "times")}
    given = {name: value for name, value in numbers.items() if value is not None}
    return Protection.from_json({"rows": rows, "unit": unit, **given})


def _number(visit: Visit, name: str) -> int | None:
    text = _typed(visit, name)
    if text is not None and not (text.isascii() and text.isdigit() and len(text) < 11):
        raise ParameterError(f"{name}: it is a whole number above zero. Correct it.")
    return None if text is None else int(text)


def _changed(visit: Visit, form: str, change: Callable[[], Entry]) -> Response:
    """Make a change to a budget: then the page says that it was made, or why not; whoever asked for it is told."""
    requests: Requests = visit.app.state.requests
    key = visit.form.get("request", "")
    try:
        if key:
            name, word = visit.desk.shelf.find(visit.path("dataset")).name, visit.form.get("word", "")
            requests.grant(visit.by, key, change, dataset=name, word=word)
            return to(place("requests", key))
        change()
    except PrivacyError as refusal:
        return budget_refused(visit, refusal, form)
    shown = visit.desk.dataset(visit.by, visit.path("dataset"))
    return to(f"{place('datasets', shown.name, 'budget')}?done={form}")


def budget_refused(visit: Visit, refusal: PrivacyError, form: str) -> Response:
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
        done=_DONE.get(visit.request.query_params.get("done", "")),
    )


def _tokens(
    visit: Visit,
    status: int = 200,
    *,
    words: str | None = None,
    text: str | None = None,
    name: str = "",
    beside: Sequence[str] = (),
) -> Response:
    return visit.render(
        "tokens.html",
        status,
        tokens=list(reversed(visit.desk.tokens.all())),
        scopes=SCOPES,
        holders=visit.desk.factors.holders(),
        uses=visit.desk.tokens.uses(),
        acts=list(reversed(visit.desk.acts.last(_PAGE))),
        words=words,
        text=text,
        name=name,
        beside=beside,
        given=visit.form,
        done=_DONE.get(visit.request.query_params.get("done", "")),
    )
