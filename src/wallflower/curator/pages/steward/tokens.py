"""Pages of tokens: those there are, a new one, and the end of one or of its second factor."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response
from starlette.routing import Route

from wallflower.curator.desk.access.tokens import SCOPES
from wallflower.curator.desk.problems import problem
from wallflower.curator.pages.steward.acts import act_route, done_words
from wallflower.curator.pages.visitors.visits import Visit, page, to
from wallflower.errors import ParameterError, PrivacyError


def routes() -> list[Route]:
    """The pages of tokens."""
    return [
        Route("/tokens", page(tokens, "reader")),
        act_route("/tokens", create_token),
        Route("/tokens/{token}/revoke", page(confirm_revocation, "steward")),
        act_route("/tokens/{token}/revoke", revoke_token),
        Route("/tokens/{token}/factor", page(confirm_removal, "steward")),
        act_route("/tokens/{token}/factor", remove_factor),
        act_route("/people/{person}/disable", disable_person),
        act_route("/people/{person}/enable", enable_person),
    ]


def tokens(visit: Visit) -> Response:
    """Every token there ever was, and the text of one that was issued just now."""
    text = visit.token_to_show
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
        groups = [value for field, value in visit.form.items() if field.startswith("group-")]
        _, text = visit.desk.issue_token(visit.by, name, scope, days=int(days), groups=groups)
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


def disable_person(visit: Visit) -> Response:
    """End the sessions and personal tokens of a person."""
    visit.desk.disable_person(visit.by, visit.path("person"))
    return to("/tokens?done=disabled")


def enable_person(visit: Visit) -> Response:
    """Let a disabled person sign in again, or another account of the directory have her name."""
    is_another = "another_account" in visit.form
    visit.desk.enable_person(visit.by, visit.path("person"), another_account=is_another)
    return to(f"/tokens?done={'renamed' if is_another else 'enabled'}")


def confirm_removal(visit: Visit) -> Response:
    """Whether the second factor of a token is really to be taken away."""
    token = visit.desk.tokens.find(visit.path("token"))
    return visit.render("factor.html", token=token, enrolled=visit.desk.factors.is_enrolled(token.id))


def remove_factor(visit: Visit) -> Response:
    """Take the second factor of a token away."""
    visit.desk.remove_factor(visit.by, visit.path("token"))
    return to("/tokens?done=factor")


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
        people=visit.desk.people.all(),
        groups=[group.name for group in visit.desk.settings.groups],
        words=words,
        text=text,
        name=name,
        beside=beside,
        given=visit.form,
        done=done_words(visit),
    )
