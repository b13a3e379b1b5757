"""Routes for letters: a steward makes tokens, and each person reads what a detector says of her own record."""

from __future__ import annotations

from typing import Final

from anyio.to_thread import run_sync
from fastapi import Request
from starlette.responses import Response

from wallflower.service.api import models
from wallflower.service.api.bodies import LettersBody
from wallflower.service.api.callers import LETTER_PATH, LetterToken, Steward, TheCore, client_address
from wallflower.service.api.middleware import Attempts
from wallflower.service.api.responses import new_router, problem_docs, render_model
from wallflower.service.api.routes.analyst import DatasetName
from wallflower.service.core.logs import log_event
from wallflower.service.core.problems import Refusal

ROUTER: Final = new_router()


@ROUTER.post("/datasets/{dataset}/letters", status_code=201, tags=["letters"], responses=problem_docs(403, 404))
def make_letter_tokens(dataset: DatasetName, body: LettersBody, caller: Steward, core: TheCore) -> models.LetterTokens:
    """Make a token for each identifier, by which that person alone reads her own letter. Costs nothing."""
    made = core.issue_letters(caller, dataset, body.detector, body.column, body.identifiers, days=body.days)
    tokens = [models.LetterToken(identifier=identifier, token=token) for identifier, token in made]
    return models.LetterTokens(tokens=tokens)


@ROUTER.get(
    LETTER_PATH.removeprefix("/v1"), tags=["letters"], response_model=models.Letter, responses=problem_docs(404)
)
async def letter(request: Request, token: LetterToken, core: TheCore) -> Response:
    """The letter of the person whose token this is: her own score, flag and contributions."""
    attempts: Attempts = request.app.state.attempts
    found = await run_sync(core.letters.read, token, limiter=core.strangers)
    if found is None:
        address = client_address(request)
        core.metrics.count("authentication_failures")
        log_event("authentication failed", address=address, token="letter")  # noqa: S106 - it names what failed
        if attempts.note(address):
            raise Refusal("too-many-attempts", "Too many attempts without a valid token. Wait a minute.")
        raise Refusal("unauthenticated", "The token is missing, unknown or expired. Ask the steward for another.")
    return render_model(models.Letter.model_validate(found.to_json()), headers={"cache-control": "no-store"})
