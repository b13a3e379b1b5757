"""Routes for watches: open one, post observations, get decisions."""

from __future__ import annotations

from functools import cache, partial
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Path, Request

from wallflower.curator.api.bodies import Body, Observations, StrictRoute, is_wanted, model, query_of
from wallflower.curator.api.callers import AnyCaller
from wallflower.curator.api.description.answers import Decisions, WatchList, WatchState
from wallflower.curator.api.description.docs import answer_docs
from wallflower.curator.api.routes.analyst import Key, with_signature
from wallflower.curator.api.views import Plain
from wallflower.curator.desk.questions.watches import Watches, decisions_json
from wallflower.query.forms import Question

WatchId = Annotated[str, Path(max_length=64, description="id of a watch")]


async def watches_of(request: Request) -> Watches:
    """The watches of this service."""
    found: Watches = request.app.state.watches
    return found


TheWatches = Annotated[Watches, Depends(watches_of)]


@cache
def router(questions: tuple[Question, ...]) -> APIRouter:
    """A way to open a watch for each question that can be asked of a stream."""
    made = APIRouter(prefix="/v1", route_class=StrictRoute, default_response_class=Plain, tags=["watches"])
    for question in questions:
        if question.streams:
            words = f"{question.question} Charged once, for the whole stream."
            open_watch = with_signature(
                _open_endpoint(question),
                f"open_{question.kind}",
                words,
                model(question),
                key=(Key, None),
                watches=TheWatches,
            )
            made.post(
                f"/datasets/{{dataset}}/watches/{question.kind}",
                status_code=201,
                responses=answer_docs(WatchState, 403, 404, 409, 500, status=201),
            )(open_watch)
    made.get("/watches", responses=answer_docs(WatchList))(watches)
    made.get("/watches/{watch}", responses=answer_docs(WatchState, 403, 404, 409))(watch_state)
    docs = answer_docs(Decisions, 403, 404, 409, 500)
    made.post("/watches/{watch}/observations", responses=docs)(observe)
    return made


def watches(caller: AnyCaller, found: TheWatches) -> dict[str, Any]:
    """The caller's watches; a steward sees all."""
    return {"watches": found.all(caller)}


def watch_state(watch: WatchId, caller: AnyCaller, found: TheWatches) -> dict[str, Any]:
    """How far a watch has come."""
    return found.state(caller, watch).to_json()


async def observe(watch: WatchId, body: Observations, caller: AnyCaller, found: TheWatches) -> dict[str, Any]:
    """Decide a batch. It is on disk before it is told; what was decided before is told again and not looked at."""
    told = await run_sync(found.decide, caller, watch, body.rows, body.first, body.times)
    return decisions_json(told)


def _open_endpoint(question: Question) -> Any:
    def open_watch(
        dataset: str, body: Body, caller: Any, desk: Any, key: str | None, watches: Watches
    ) -> dict[str, Any]:
        query = query_of(question, body, partial(desk.release, caller))
        return watches.open(caller, dataset, query, key=key, anyway=is_wanted(body)).to_json()

    return open_watch
