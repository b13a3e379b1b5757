"""Pages for stewards: budgets, tokens, the ledger."""

from __future__ import annotations

from typing import Final, get_args

from starlette.responses import Response
from starlette.routing import Route

from wallflower.curator.desk.problems import problem
from wallflower.curator.desk.tokens import SCOPES
from wallflower.curator.pages.analyst import accounts, number_of
from wallflower.curator.pages.visits import Visit, page, place, to
from wallflower.errors import ChainBroken, ParameterError, PrivacyError
from wallflower.forms import loss_of
from wallflower.privacy import UNITS, Loss, Unit, protect

_PAGE: Final = 100
_DONE: Final = {
    "grant": "The grant is written into the ledger.",
    "share": "The share is written into the ledger.",
    "revoke": "The token is revoked, and whoever was signed in with it is signed out.",
}
_LONGEST_REASON: Final = 1000


def routes() -> list[Route]:
    """The pages of a steward."""
    return [
        Route("/datasets/{dataset}/budget", page(budget, "steward")),
        Route("/datasets/{dataset}/budget/grants", page(grant, "steward"), methods=["POST"]),
        Route("/datasets/{dataset}/budget/shares", page(allocate, "steward"), methods=["POST"]),
        Route("/tokens", page(tokens, "steward")),
        Route("/tokens", page(create_token, "steward"), methods=["POST"]),
        Route("/tokens/{token}/revoke", page(revoke_token, "steward"), methods=["POST"]),
        Route("/ledger", page(ledger, "steward")),
    ]


def budget(visit: Visit) -> Response:
    """Accounts and shares of a data set, and the forms to add to them."""
    return _budget(visit, None, 200)


def grant(visit: Visit) -> Response:
    """Add to the limit of a data set."""
    try:
        reason = visit.form.get("reason", "").strip()[:_LONGEST_REASON]
        visit.desk.grant(visit.by, visit.path("dataset"), _loss(visit, "grant"), reason=reason)
    except PrivacyError as refusal:
        return _again(visit, refusal)
    return _done(visit, "grant")


def allocate(visit: Visit) -> Response:
    """Reserve a part of the limit for one analyst."""
    try:
        analyst = visit.form.get("analyst", "").strip()
        if not (1 <= len(analyst) <= 200 and analyst.isprintable()):
            raise ParameterError("analyst: it is the name of a token. Choose one of them.")
        visit.desk.allocate(visit.by, visit.path("dataset"), analyst, _loss(visit, "allocate"))
    except PrivacyError as refusal:
        return _again(visit, refusal)
    return _done(visit, "share")


def tokens(visit: Visit) -> Response:
    """Every token there ever was."""
    return _tokens(visit)


def create_token(visit: Visit) -> Response:
    """A new token: this page shows its text, and no page ever again."""
    days = visit.form.get("days", "").strip()
    try:
        if not (days.isascii() and days.isdigit() and len(days) < 8):
            raise ParameterError("days: a token lives 1 to 3,650 days. Choose a whole number.")
        name, scope = visit.form.get("name", "").strip(), visit.form.get("scope", "")
        _, text = visit.desk.tokens.create(name, scope, days=int(days))
    except PrivacyError as refusal:
        stated = problem(refusal)
        return _tokens(visit, stated["status"], words=stated["detail"])
    return _tokens(visit, 201, text=text, name=name)


def revoke_token(visit: Visit) -> Response:
    """End a token."""
    visit.desk.tokens.revoke(visit.path("token"))
    return to("/tokens?done=revoke")


def ledger(visit: Visit) -> Response:
    """The ledger, the latest entries first, and whether its chain holds."""
    head = visit.request.query_params.get("head", "").strip().lower()[:64] or None
    verified, broken = None, None
    try:
        verified = visit.desk.verify(head=head)
    except ChainBroken as found:
        broken = problem(found)["detail"]
    entries = list(reversed(visit.desk.entries(before=number_of(visit, "before"), last=_PAGE)))
    older = entries[-1].id if len(entries) == _PAGE else None
    return visit.render("ledger.html", verified=verified, broken=broken, entries=entries, older=older, head=head)


def _loss(visit: Visit, asker: str) -> Loss:
    epsilon, delta, rho = (visit.form.get(name, "").strip() or None for name in ("epsilon", "delta", "rho"))
    unit = next((known for known in get_args(Unit) if known == visit.form.get("protects")), None)
    if unit is None:
        raise ParameterError(f"protects: it is one of {', '.join(get_args(Unit))}. Choose one.")
    return protect(loss_of(asker, epsilon=epsilon, delta=delta, rho=rho), unit)


def _done(visit: Visit, what: str) -> Response:
    shown = visit.desk.dataset(visit.by, visit.path("dataset"))
    return to(f"{place('datasets', shown.name, 'budget')}?done={what}")


def _again(visit: Visit, refusal: PrivacyError) -> Response:
    stated = problem(refusal)
    return _budget(visit, stated["detail"], stated["status"])


def _budget(visit: Visit, words: str | None, status: int) -> Response:
    shown = visit.desk.dataset(visit.by, visit.path("dataset"))
    analysts = sorted({token.name for token in visit.desk.tokens.all() if token.is_valid})
    return visit.render(
        "budget.html",
        status,
        shown=shown,
        accounts=accounts(shown),
        analysts=analysts,
        units=[(name, _unit_words(name)) for name in UNITS],
        words=words,
        given=visit.form,
        done=_DONE.get(visit.request.query_params.get("done", "")),
    )


def _unit_words(name: str) -> str:
    words = UNITS[name].words
    return f"{words} (output-constrained)" if name == "constrained" else words


def _tokens(
    visit: Visit, status: int = 200, *, words: str | None = None, text: str | None = None, name: str = ""
) -> Response:
    return visit.render(
        "tokens.html",
        status,
        tokens=list(reversed(visit.desk.tokens.all())),
        scopes=list(reversed(SCOPES)),
        words=words,
        text=text,
        name=name,
        given=visit.form,
        done=_DONE.get(visit.request.query_params.get("done", "")),
    )
