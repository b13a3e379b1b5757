"""Acts of a steward: the token is entered again before one, and a sentence says afterwards that it is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.responses import Response
from starlette.routing import Route

from wallflower.curator.pages.visitors.confirmation import with_token
from wallflower.curator.pages.visitors.visits import Visit, page

_DONE: Final = {
    "registered": "The data set is registered. Set its limit next: until then a starter cap applies.",
    "grants": "The limit is written into the ledger.",
    "shares": "The share is written into the ledger.",
    "declaration": "The declaration is written into the ledger.",
    "constrained": "The allowance is written into the ledger.",
    "factor": "The second factor is removed: the token alone is enough from now on.",
    "proposed": "It is above the ε that the settings name, so it waits for a second steward.",
    "confirmed": "The proposal is confirmed, and written into the ledger.",
    "declined": "The proposal is declined. Nothing was changed.",
    "disabled": "The person is disabled: her sessions and her own tokens have ended.",
    "enabled": "The person may sign in again.",
    "renamed": "The name belongs to the account of the directory that signs in under it next.",
    "revoke": "The token is revoked, and whoever was signed in with it is signed out.",
}


def act_route(path: str, handler: Callable[[Visit], Response]) -> Route:
    """A change, for which the token is entered again."""
    return Route(path, page(with_token(handler), "steward"), methods=["POST"])


def done_words(visit: Visit) -> str | None:
    """What was done just now, as the address says."""
    return _DONE.get(visit.request.query_params.get("done", ""))
