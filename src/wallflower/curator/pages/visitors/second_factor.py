"""A second factor for one's own token: the page shows a secret for the authenticator, and a code of it enrols it.

The secret is kept under the text of the token, which the service does not have, so the token is entered again. Until
then the page itself holds the secret, sealed so that nobody can have another one enrolled.
"""

from __future__ import annotations

import base64
import binascii

import segno
from anyio.to_thread import run_sync
from markupsafe import Markup
from starlette.responses import Response
from starlette.routing import Route

from wallflower.curator.api.callers import address_of, authenticate
from wallflower.curator.desk.access.factors import authenticator_address, new_factor_secret
from wallflower.curator.desk.problems import Refusal, problem
from wallflower.curator.pages.visitors.visits import Visit, page, to


def routes() -> list[Route]:
    """The page of one's own second factor."""
    return [
        Route("/second-factor", page(show_factor)),
        Route("/second-factor", page(enrol_factor), methods=["POST"]),
    ]


def show_factor(visit: Visit) -> Response:
    """Whether the token has a second factor, or a new secret to enrol."""
    if visit.by.is_person:
        return to("/account")
    return _show(visit, new_factor_secret(), 200, None)


async def enrol_factor(visit: Visit) -> Response:
    """Enrol the secret that the page has shown, for whoever enters the token of this session and a code."""
    secret = _secret_in(visit)
    try:
        text = visit.form.get("token", "").strip()
        caller = await authenticate(visit.desk, visit.app.state.attempts, text, address_of(visit.request))
        if caller.token != visit.by.token:
            raise Refusal("forbidden", "This is not the token that you signed in with. Enter that one.")
        code = visit.form.get("code", "").strip()
        await run_sync(visit.desk.enrol_factor, caller, text, secret, code)
    except Refusal as refusal:
        stated = problem(refusal)
        return await run_sync(_show, visit, secret, stated["status"], stated["detail"])
    return to("/second-factor")


def _show(visit: Visit, secret: bytes, status: int, words: str | None) -> Response:
    text, address = base64.b32encode(secret).decode(), authenticator_address(visit.by.name, secret)
    return visit.render(
        "second-factor.html",
        status,
        enrolled=visit.desk.factors.is_enrolled(visit.by.token),
        secret=text,
        seal=_seal(visit, text),
        address=address,
        picture=draw_code(address),
        words=words,
    )


def draw_code(text: str) -> Markup:
    """A QR code as SVG, black on white in every theme; only its own numbers are in it, never the text."""
    drawing = segno.make(text, error="m").svg_inline(scale=5, border=4, dark="#000", light="#fff", omitsize=False)
    return Markup(drawing)  # noqa: S704 - made of numbers alone


def _secret_in(visit: Visit) -> bytes:
    text = visit.form.get("secret", "")
    if _seal(visit, text) != visit.form.get("seal"):
        raise Refusal("forbidden", "This secret does not come from a page you were given. Reload the page.")
    try:
        return base64.b32decode(text)
    except (ValueError, binascii.Error):
        raise Refusal("malformed", "The secret cannot be read. Reload the page.") from None


def _seal(visit: Visit, secret: str) -> str:
    return visit.sessions.proof(f"second factor {secret} {visit.cookie}")
