"""Pages of tokens: those there are, a new one, and the end of one or of its second factor."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response
from starlette.routing import Route

from wallflower.errors import ParameterError, PrivacyError
from wallflower.service.core.access.tokens import SCOPES
from wallflower.service.core.problems import problem_document
from wallflower.service.pages.sign_in import act_route, done_text
from wallflower.service.pages.visit import Visit, page, redirect
from wallflower.text import t


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
    holder = visit.core.tokens.caller(text)
    if holder is None:
        return _tokens(visit)
    made = visit.core.tokens.find(holder.token)
    found = _tokens(visit, text=text, name=made.name, beside=[one.id for one in visit.core.tokens.others(made)])
    visit.set_token_cookie(found, None)
    return found


def create_token(visit: Visit) -> Response:
    """A new token. The page that follows shows its text, and no page ever again: a reload issues nothing."""
    days = visit.form.get("days", "").strip()
    try:
        if not (days.isascii() and days.isdigit() and len(days) < 8):
            raise ParameterError(t("days: must be a whole number from 1 to {days:,}.", days=3650))
        name, scope = visit.form.get("name", "").strip(), visit.form.get("scope", "")
        groups = [value for field, value in visit.form.items() if field.startswith("group-")]
        _, text = visit.core.issue_token(visit.by, name, scope, days=int(days), groups=groups)
    except PrivacyError as refusal:
        stated = problem_document(refusal)
        return _tokens(visit, stated["status"], words=stated["detail"])
    found = redirect("/tokens")
    visit.set_token_cookie(found, text)
    return found


def confirm_revocation(visit: Visit) -> Response:
    """Whether a token is really to be ended."""
    return visit.render("revoke.html", token=visit.core.tokens.find(visit.path("token")))


def revoke_token(visit: Visit) -> Response:
    """End a token."""
    visit.core.revoke_token(visit.by, visit.path("token"))
    return redirect("/tokens?done=revoke")


def disable_person(visit: Visit) -> Response:
    """End the sessions and personal tokens of a person."""
    visit.core.disable_person(visit.by, visit.path("person"))
    return redirect("/tokens?done=disabled")


def enable_person(visit: Visit) -> Response:
    """Let a disabled person sign in again, or another account of the directory have her name."""
    is_another = "another_account" in visit.form
    visit.core.enable_person(visit.by, visit.path("person"), another_account=is_another)
    return redirect(f"/tokens?done={'renamed' if is_another else 'enabled'}")


def confirm_removal(visit: Visit) -> Response:
    """Whether the second factor of a token is really to be taken away."""
    token = visit.core.tokens.find(visit.path("token"))
    return visit.render("factor.html", token=token, enrolled=visit.core.factors.is_enrolled(token.id))


def remove_factor(visit: Visit) -> Response:
    """Take the second factor of a token away."""
    visit.core.remove_factor(visit.by, visit.path("token"))
    return redirect("/tokens?done=factor")


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
        tokens=list(reversed(visit.core.tokens.all())),
        scopes=SCOPES,
        holders=visit.core.factors.holders(),
        uses=visit.core.tokens.uses(),
        people=visit.core.people.all(),
        groups=[group.name for group in visit.core.settings.groups],
        words=words,
        text=text,
        name=name,
        beside=beside,
        given=visit.form,
        done=done_text(visit),
    )
