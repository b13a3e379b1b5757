"""The account of a person who signed in: her rights here, and tokens of her own for programs."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import Route

from wallflower.curator.desk.access.people import TOKEN_SCOPES
from wallflower.curator.desk.desk import MAX_OWN_TOKEN_DAYS
from wallflower.curator.desk.problems import Refusal, problem
from wallflower.curator.pages.visitors.confirmation import with_token
from wallflower.curator.pages.visitors.visits import Visit, page, to
from wallflower.errors import ParameterError, PrivacyError


def routes() -> list[Route]:
    """The page of one's own account."""
    return [
        Route("/account", page(show_account)),
        Route("/account", page(with_token(create_own_token)), methods=["POST"]),
        Route("/account/revoke", page(revoke_own_token), methods=["POST"]),
    ]


def show_account(visit: Visit) -> Response:
    """Her role, groups and tokens, and the text of one that was issued just now."""
    _require_person(visit)
    text = visit.token_to_show
    holder = visit.desk.tokens.caller(text)
    if holder is None or holder.name != visit.by.name:
        return _show(visit, 200)
    response = _show(visit, 200, text=text)
    visit.hand_over(response, None, "account")
    return response


def create_own_token(visit: Visit) -> Response:
    """A token for her programs. The page that follows shows its text once."""
    _require_person(visit)
    days = visit.form.get("days", "").strip()
    try:
        if not (days.isascii() and days.isdigit() and len(days) < 8):
            raise ParameterError(f"days: your token is valid for 1 to {MAX_OWN_TOKEN_DAYS} days. Choose a number.")
        _, text = visit.desk.issue_own_token(visit.by, visit.form.get("scope", ""), days=int(days))
    except PrivacyError as refusal:
        stated = problem(refusal)
        return _show(visit, stated["status"], words=stated["detail"])
    response = to("/account")
    visit.hand_over(response, text, "account")
    return response


def revoke_own_token(visit: Visit) -> Response:
    """End a token of her own."""
    _require_person(visit)
    visit.desk.revoke_own_token(visit.by, visit.form.get("token", ""))
    return to("/account")


def _require_person(visit: Visit) -> None:
    if not visit.by.is_person:
        raise Refusal("not-found", "You signed in with a token, which has no account. Its page is the second factor.")


def _show(visit: Visit, status: int, *, words: str | None = None, text: str | None = None) -> Response:
    person = visit.desk.people.find(visit.by.name)
    return visit.render(
        "account.html",
        status,
        person=person,
        tokens=list(reversed(visit.desk.own_tokens(visit.by))),
        uses=visit.desk.tokens.uses(),
        scopes=TOKEN_SCOPES[person.role],
        max_days=MAX_OWN_TOKEN_DAYS,
        words=words,
        text=text,
    )
