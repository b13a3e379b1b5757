"""Routes for everybody with a token: data sets, plans, questions, releases, jobs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, partial
from typing import Annotated, Any
from urllib.parse import quote

import numpy as np
from anyio.to_thread import run_sync
from fastapi import APIRouter, Header, Path, Query, Request
from starlette.responses import Response

from wallflower.curator.api.bodies import Body, Records, StrictRoute, is_wanted, model, query_of
from wallflower.curator.api.callers import AnyCaller, TheDesk
from wallflower.curator.api.description import answers
from wallflower.curator.api.description.docs import Docs, answer_docs, problem_docs
from wallflower.curator.api.files import ARROW, arrow_stream, release_docs, respond
from wallflower.curator.api.views import Page, Plain, account_json, dataset_json, price_json, question_json
from wallflower.curator.desk.access.factors import is_pass
from wallflower.curator.desk.problems import Refusal
from wallflower.curator.desk.questions.jobs import Job, Jobs
from wallflower.queries.detector.model import Model
from wallflower.query.forms import Question
from wallflower.release import Release

DatasetName = Annotated[str, Path(max_length=200, description="name of a data set", examples=["tumours"])]
Number = Annotated[int, Path(ge=1, le=2**31 - 1, description="number of the charge in the ledger")]
Last = Annotated[int, Query(ge=1, le=1000, description="at most so many, the latest")]
Before = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="only those with a smaller number")]
Known = Annotated[
    str | None, Header(alias="If-None-Match", max_length=1000, description="the tag of a release that you have")
]
Key = Annotated[
    str | None,
    Header(alias="Idempotency-Key", max_length=100, description="asked again under it, it is not paid again"),
]
Prefer = Annotated[str | None, Header(max_length=200, description="respond-async: answer later, as a job")]


@cache
def router(known: tuple[Question, ...]) -> APIRouter:
    """The routes for these questions; what a service has of its own they find in the request."""
    made = APIRouter(prefix="/v1", route_class=StrictRoute, default_response_class=Plain)
    for question in known:
        _add(made, question)
    made.get("/questions", tags=["questions"], responses=answer_docs(answers.Forms))(_questions(known))
    made.get("/whoami", tags=["tokens"], responses=answer_docs(answers.Caller))(whoami)
    made.post("/second-factor", tags=["tokens"], responses=answer_docs(answers.Pass, 404))(buy_pass)
    made.get("/datasets", tags=["data sets"], responses=answer_docs(answers.Datasets))(datasets)
    made.get("/datasets/{dataset}", tags=["data sets"], responses=answer_docs(answers.Dataset, 404))(dataset_facts)
    made.get("/datasets/{dataset}/budget", tags=["budgets"], responses=answer_docs(answers.DatasetBudget, 404))(budget)
    made.get("/datasets/{dataset}/releases", tags=["releases"], responses=answer_docs(answers.Releases, 404))(releases)
    made.get("/releases/{number}", tags=["releases"], responses=release_docs())(release)
    arrow: Docs = {200: {"description": "One row", "content": {ARROW: {"schema": {"type": "string"}}}}}
    made.get(
        "/releases/{number}/arrow", tags=["releases"], response_class=Response, responses={**problem_docs(404), **arrow}
    )(release_arrow)
    made.post("/releases/{number}/scores", tags=["releases"], responses=answer_docs(answers.Scores, 404, 500))(scores)
    made.post("/releases/{number}/drift", tags=["releases"], responses=answer_docs(answers.DriftFound, 404, 500))(drift)
    made.get("/jobs/{job}", tags=["jobs"], responses=answer_docs(answers.Job, 404))(job_state)
    return made


def whoami(caller: AnyCaller) -> dict[str, Any]:
    """Whose token this is, and what it may do."""
    return {"name": caller.name, "scope": caller.scope, "token": caller.token}


def buy_pass(request: Request, caller: AnyCaller, desk: TheDesk) -> dict[str, Any]:
    """A pass for the code in `Second-Factor`: sent in its place, it is good for the minutes that `fresh` sets."""
    if is_pass(request.headers.get("second-factor", "")):
        raise Refusal("second-factor", "A pass buys no other pass. Give a code.")
    text, until = desk.factors.make_pass(caller.token, desk.settings.fresh)
    return {"pass": text, "expires": datetime.fromtimestamp(until, UTC).isoformat()}


def datasets(caller: AnyCaller, desk: TheDesk) -> dict[str, Any]:
    """Every data set, with its public facts and what is left of its budget."""
    return {"datasets": [dataset_json(shown) for shown in desk.datasets(caller)]}


def dataset_facts(dataset: DatasetName, caller: AnyCaller, desk: TheDesk) -> dict[str, Any]:
    """Public facts of a data set, and what is left of its budget."""
    return dataset_json(desk.dataset(caller, dataset))


def budget(dataset: DatasetName, caller: AnyCaller, desk: TheDesk) -> dict[str, Any]:
    """The account that a data set spends from: whose loss it bounds, limit, spending and shares; of others the sum."""
    shown = desk.dataset(caller, dataset)
    return {"dataset": shown.name, **account_json(shown)}


def releases(
    dataset: DatasetName, caller: AnyCaller, desk: TheDesk, last: Last = 100, before: Before = None
) -> Response:
    """What was released about a data set, oldest first: to a steward everything, to an analyst their own."""
    found = [made.to_dict() for made in desk.releases(caller, dataset, before=before, last=last)]
    first = found[0]["ledger_id"] if len(found) == last else None
    return Page("releases", found, first).response(f"/v1/datasets/{quote(dataset, safe='')}/releases", last=last)


def release(
    number: Number, caller: AnyCaller, desk: TheDesk, request: Request, if_none_match: Known = None
) -> Response:
    """One release, by the number of the charge that paid for it: as JSON, or as CSV or Arrow where `Accept` says so."""
    return respond(desk.release(caller, number), request.headers.get("accept", ""), if_none_match or "")


async def scores(number: Number, body: Records, caller: AnyCaller, desk: TheDesk) -> Response:
    """How unusual a detector finds the records of the caller. Nothing is charged, and no record is kept."""

    def score() -> Response:
        found = Model.of(desk.release(caller, number).value)
        values = np.concatenate(list(found.parts(body.records)))
        told = found.score(values)
        flagged = None if found.threshold is None else (told > found.threshold).tolist()
        parts = found.split_score(values).tolist() if body.contributions else None
        stated = {"columns": list(found.columns), "scores": told.tolist(), "flagged": flagged, "contributions": parts}
        return Plain(stated)

    return await desk.computations.run(caller.name, score)


async def drift(number: Number, body: Records, caller: AnyCaller, desk: TheDesk) -> Response:
    """Whether the caller's records are flagged as often as the fitted ones were to be. Nothing is charged or kept."""

    def compare() -> Response:
        found = Model.of(desk.release(caller, number).value).drift(body.records)
        return Plain(found.to_json() | {"words": found.words})

    return await desk.computations.run(caller.name, compare)


def release_arrow(number: Number, caller: AnyCaller, desk: TheDesk) -> Response:
    """One release as an Arrow stream of one row."""
    name = f'attachment; filename="release-{number}.arrows"'
    content = arrow_stream(desk.release(caller, number))
    return Response(content, media_type=ARROW, headers={"content-disposition": name})


def job_state(
    job: Annotated[str, Path(max_length=64, description="id of a job")], caller: AnyCaller, request: Request
) -> dict[str, Any]:
    """Whether a question that is answered later waits, runs, is done or has failed."""
    jobs: Jobs = request.app.state.jobs
    return jobs.find(caller, job).to_json()


def _questions(known: tuple[Question, ...]) -> Callable[..., Any]:
    forms = [question_json(question) for question in known]

    def questions(caller: AnyCaller) -> dict[str, Any]:
        """What may be asked, and with which parameters."""
        return {"questions": forms}

    return questions


def _add(router: APIRouter, question: Question) -> None:
    """The two routes of a question."""
    body, kind = model(question), question.kind
    planning = with_signature(_plan_endpoint(question), f"plan_{kind}", f"What to expect of: {question.question}", body)
    router.post(
        f"/datasets/{{dataset}}/plan/{kind}", tags=["questions"], responses=answer_docs(answers.Plan, 403, 404)
    )(planning)
    more = {"key": (Key, None), "prefer": (Prefer, None), "request": Request}
    asking = with_signature(
        _ask_endpoint(question), f"ask_{kind}", f"{question.question} Charged, then answered.", body, **more
    )
    later = answer_docs(answers.Job, status=202, words="It is answered later: see `Location`.")
    router.post(
        f"/datasets/{{dataset}}/ask/{kind}",
        tags=["questions"],
        responses={**later, **answer_docs(answers.Release, 403, 404, 409, 500)},
    )(asking)


def _plan_endpoint(question: Question) -> Any:
    async def plan(dataset: str, body: Body, caller: Any, desk: Any) -> Response:
        def work_out() -> Response:
            query = query_of(question, body, partial(desk.release, caller))
            expected = desk.plan(caller, dataset, query).to_json()
            return Plain(expected | {"price": price_json(desk.quote(caller, dataset, query))})

        found: Response = await desk.computations.run(caller.name, work_out)
        return found

    return plan


def _ask_endpoint(question: Question) -> Any:
    async def ask(
        dataset: str, body: Body, caller: Any, desk: Any, key: str | None, prefer: str | None, request: Request
    ) -> Response:
        query = await run_sync(query_of, question, body, partial(desk.release, caller))
        admitted = await run_sync(partial(desk.admit, anyway=is_wanted(body)), caller, dataset, query, key)
        jobs: Jobs = request.app.state.jobs
        later = admitted.is_long or "respond-async" in (prefer or "").lower()
        found = await jobs.answer(partial(desk.ask, admitted), caller, dataset, query.kind, later=later)
        return _answer_response(found)

    return ask


def _answer_response(found: Release[Any] | Job) -> Response:
    if isinstance(found, Release):
        return Plain(found.to_dict())
    return Plain(found.to_json(), 202, headers={"location": f"/v1/jobs/{found.id}", "retry-after": "1"})


def with_signature(endpoint: Any, name: str, words: str, body: type[Body], **more: Any) -> Any:
    """`endpoint`, with the signature FastAPI reads; in `more` a pair is a hint and its default."""
    asked = {"dataset": DatasetName, "body": body, "caller": AnyCaller, "desk": TheDesk, **more}
    given = {key: hint if isinstance(hint, tuple) else (hint, inspect.Parameter.empty) for key, hint in asked.items()}
    endpoint.__name__, endpoint.__doc__ = name, words
    endpoint.__signature__ = inspect.Signature(
        [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, annotation=hint, default=default)
            for key, (hint, default) in given.items()
        ]
    )
    return endpoint
