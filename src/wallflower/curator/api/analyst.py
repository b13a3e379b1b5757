"""Routes for everybody with a token: data sets, plans, questions, releases, jobs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
from anyio.to_thread import run_sync
from fastapi import APIRouter, Header, Path, Query, Request
from starlette.responses import Response

from wallflower.curator.api.bodies import Body, Records, StrictRoute, is_wanted, model, query_of
from wallflower.curator.api.callers import AnyCaller, TheDesk
from wallflower.curator.api.views import Page, Plain, account_json, dataset_json, price_json, question_json
from wallflower.curator.desk.jobs import Job, Jobs
from wallflower.curator.desk.problems import KINDS, MEDIA
from wallflower.forms import Question
from wallflower.lazy import Lazy
from wallflower.queries.detector.model import Model
from wallflower.release import Release

if TYPE_CHECKING:
    import pyarrow as _pa
    import pyarrow.ipc as _ipc
else:
    _pa = Lazy("pyarrow")
    _ipc = Lazy("pyarrow.ipc")

ARROW: Final = "application/vnd.apache.arrow.stream"

DatasetName = Annotated[str, Path(max_length=200, description="name of a data set", examples=["tumours"])]
Number = Annotated[int, Path(ge=1, le=2**31 - 1, description="number of the charge in the ledger")]
Last = Annotated[int, Query(ge=1, le=1000, description="at most so many, the latest")]
Before = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="only those with a smaller number")]
Key = Annotated[
    str | None,
    Header(alias="Idempotency-Key", max_length=100, description="asked again under it, it is not paid again"),
]
Prefer = Annotated[str | None, Header(max_length=200, description="respond-async: answer later, as a job")]


def problem_docs(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems a route may answer with."""
    schema = {MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    usual = (400, 401, 408, 413, 422, 429, 503)
    titles: dict[int, str] = {}
    for status, title in KINDS.values():
        titles[status] = f"{titles[status]}; {title.lower()}" if status in titles else title
    return {status: {"description": titles[status], "content": schema} for status in sorted({*usual, *statuses})}


@cache
def router(known: tuple[Question, ...]) -> APIRouter:
    """The routes for these questions; what a service has of its own they find in the request."""
    made = APIRouter(prefix="/v1", route_class=StrictRoute, default_response_class=Plain)
    for question in known:
        _add(made, question)
    made.get("/questions", tags=["questions"], responses=problem_docs())(_questions(known))
    made.get("/whoami", tags=["tokens"], responses=problem_docs())(whoami)
    made.get("/datasets", tags=["data sets"], responses=problem_docs())(datasets)
    made.get("/datasets/{dataset}", tags=["data sets"], responses=problem_docs(404))(dataset_facts)
    made.get("/datasets/{dataset}/budget", tags=["budgets"], responses=problem_docs(404))(budget)
    made.get("/datasets/{dataset}/releases", tags=["releases"], responses=problem_docs(404))(releases)
    made.get("/releases/{number}", tags=["releases"], responses=problem_docs(404))(release)
    arrow: dict[int | str, Any] = {200: {"description": "One row", "content": {ARROW: {}}}}
    made.get(
        "/releases/{number}/arrow", tags=["releases"], response_class=Response, responses={**problem_docs(404), **arrow}
    )(release_arrow)
    made.post("/releases/{number}/scores", tags=["releases"], responses=problem_docs(404, 500))(scores)
    made.get("/jobs/{job}", tags=["jobs"], responses=problem_docs(404))(job_state)
    return made


def whoami(caller: AnyCaller) -> dict[str, Any]:
    """Whose token this is, and what it may do."""
    return {"name": caller.name, "scope": caller.scope, "token": caller.token}


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
) -> dict[str, Any]:
    """What was released about a data set, oldest first: to a steward everything, to an analyst their own."""
    found = [made.to_dict() for made in desk.releases(caller, dataset, before=before, last=last)]
    first = found[0]["ledger_id"] if len(found) == last else None
    return Page("releases", found, first).to_json()


def release(number: Number, caller: AnyCaller, desk: TheDesk) -> dict[str, Any]:
    """One release, by the number of the charge that paid for it."""
    return desk.release(caller, number).to_dict()


def scores(number: Number, body: Records, caller: AnyCaller, desk: TheDesk) -> dict[str, Any]:
    """How unusual a detector finds the records of the caller. Nothing is charged, and no record is kept."""
    found = Model.of(desk.release(caller, number).value)
    values = np.concatenate(list(found.parts(body.records)))
    told = found.score(values)
    flagged = None if found.threshold is None else (told > found.threshold).tolist()
    parts = found.split_score(values).tolist() if body.contributions else None
    return {"columns": list(found.columns), "scores": told.tolist(), "flagged": flagged, "contributions": parts}


def release_arrow(number: Number, caller: AnyCaller, desk: TheDesk) -> Response:
    """One release as an Arrow stream of one row."""
    table = desk.release(caller, number).to_arrow()
    sink = _pa.BufferOutputStream()
    with _ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    name = f'attachment; filename="release-{number}.arrows"'
    return Response(sink.getvalue().to_pybytes(), media_type=ARROW, headers={"content-disposition": name})


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
    planning = with_signature(_planning(question), f"plan_{kind}", f"What to expect of: {question.question}", body)
    router.post(f"/datasets/{{dataset}}/plan/{kind}", tags=["questions"], responses=problem_docs(403, 404))(planning)
    more = {"key": (Key, None), "prefer": (Prefer, None), "request": Request}
    asking = with_signature(
        _asking(question), f"ask_{kind}", f"{question.question} Charged, then answered.", body, **more
    )
    later: dict[int | str, Any] = {202: {"description": "It is answered later: see `Location`."}}
    router.post(
        f"/datasets/{{dataset}}/ask/{kind}",
        tags=["questions"],
        responses={**problem_docs(403, 404, 409, 500), **later},
    )(asking)


def _planning(question: Question) -> Any:
    def plan(dataset: str, body: Body, caller: Any, desk: Any) -> Response:
        query = query_of(question, body, partial(desk.release, caller))
        expected = desk.plan(caller, dataset, query).to_json()
        return Plain(expected | {"price": price_json(desk.quote(caller, dataset, query))})

    return plan


def _asking(question: Question) -> Any:
    async def ask(
        dataset: str, body: Body, caller: Any, desk: Any, key: str | None, prefer: str | None, request: Request
    ) -> Response:
        query = await run_sync(query_of, question, body, partial(desk.release, caller))
        admitted = await run_sync(partial(desk.admit, anyway=is_wanted(body)), caller, dataset, query, key)
        jobs: Jobs = request.app.state.jobs
        later = admitted.is_long or "respond-async" in (prefer or "").lower()
        found = await jobs.answer(partial(desk.ask, admitted), caller, dataset, query.kind, later=later)
        return _told(found)

    return ask


def _told(found: Release[Any] | Job) -> Response:
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
