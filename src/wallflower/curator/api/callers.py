"""Who calls: the token of a request, checked before its route is run."""

from __future__ import annotations

from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from wallflower.curator.api.gate import Attempts
from wallflower.curator.desk.desk import Desk
from wallflower.curator.desk.problems import Refusal
from wallflower.curator.desk.tokens import Caller

_BEARER = HTTPBearer(auto_error=False, description="A token that a steward has made: `wallflower serve token create`.")


async def desk_of(request: Request) -> Desk:
    """The desk of this service."""
    desk: Desk = request.app.state.desk
    return desk


async def authenticate(desk: Desk, attempts: Attempts, text: str, address: str) -> Caller:
    """Whoever holds this token. An address that failed too often is heard again only with a token in use."""
    found = desk.tokens.known(text)
    if found is not None:
        return found
    if attempts.is_full(address):
        raise Refusal("too-many-attempts", "Too many attempts without a valid token. Wait a minute.")
    found = await run_sync(desk.tokens.caller, text)
    if found is None:
        attempts.note(address)
        desk.metrics.count("authentication_failures")
        raise Refusal(
            "unauthenticated", "The token is missing, unknown, expired or revoked. Ask the steward for another."
        )
    return found


async def _anybody(
    request: Request, bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]
) -> Caller:
    address = request.client.host if request.client else ""
    text = bearer.credentials if bearer is not None else ""
    return await authenticate(request.app.state.desk, request.app.state.attempts, text, address)


async def _steward(caller: Annotated[Caller, Depends(_anybody)]) -> Caller:
    if not caller.is_steward:
        raise Refusal("forbidden", "Only a steward may do this. Ask the steward.")
    return caller


AnyCaller = Annotated[Caller, Depends(_anybody)]
Steward = Annotated[Caller, Depends(_steward)]
TheDesk = Annotated[Desk, Depends(desk_of)]
