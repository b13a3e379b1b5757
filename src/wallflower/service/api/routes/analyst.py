"""Routes for everybody with a token: data sets, plans, queries, releases, jobs and watches."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from typing import Annotated, Any, Final
from urllib.parse import quote

import numpy as np
from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Header, Path, Query, Request
from starlette.responses import Response

from wallflower.machine.heavy import pyarrow as _pa
from wallflower.machine.heavy import pyarrow_ipc as _ipc
from wallflower.queries.detector.model import Model
from wallflower.query.parameter import Question
from wallflower.release import Release
from wallflower.service.api import models
from wallflower.service.api.bodies import Body, Observations, Records, body_model, is_forced, parse_query
from wallflower.service.api.callers import AnyCaller, TheCore
from wallflower.service.api.responses import (
    JSON,
    Docs,
    describe_model,
    link_next,
    make_example,
    new_router,
    problem_docs,
    render_model,
)
from wallflower.service.core.access.factors import is_pass
from wallflower.service.core.access.tokens import Caller
from wallflower.service.core.facade import Core
from wallflower.service.core.jobs import Job, Jobs
from wallflower.service.core.problems import Refusal
from wallflower.service.core.watches import Watches

ARROW: Final = "application/vnd.apache.arrow.stream"
CSV: Final = "text/csv"

DatasetName = Annotated[str, Path(max_length=200, description="name of a data set", examples=["tumours"])]
Number = Annotated[int, Path(ge=1, le=2**31 - 1, description="number of the charge in the ledger")]
JobId = Annotated[str, Path(max_length=64, description="id of a job")]
WatchId = Annotated[str, Path(max_length=64, description="id of a watch")]
Last = Annotated[int, Query(ge=1, le=1000, description="maximum number of items, the latest ones")]
Before = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="only items with a smaller number")]
Tag = Annotated[str | None, Header(alias="If-None-Match", max_length=1000, description="ETag of a release you have")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=100,
        description="idempotency key: repeat the query with it and get the stored answer, free",
    ),
]
Prefer = Annotated[str | None, Header(max_length=200, description="respond-async: answer later, as a job")]

ROUTER: Final = new_router()
_RELEASE_DOCS: Final[Docs] = {
    **problem_docs(404),
    200: {
        "model": models.Release,
        "description": "The release in the format that `Accept` names: JSON, CSV or an Arrow stream",
        "content": {
            JSON: {"example": make_example(models.Release)},
            CSV: {"schema": {"type": "string"}, "example": "value,low,high\n52,37.0,67.0\n"},
            ARROW: {"schema": {"type": "string", "format": "binary"}},
        },
    },
    304: {"description": "Not modified: `If-None-Match` has its ETag"},
}


@ROUTER.get("/whoami", tags=["tokens"], responses=problem_docs())
def whoami(caller: AnyCaller) -> models.Caller:
    """Whose token this is, and what it may do."""
    return models.Caller(name=caller.name, scope=caller.scope, token=caller.token)


@ROUTER.post("/second-factor", tags=["tokens"], responses=problem_docs(404))
def buy_pass(request: Request, caller: AnyCaller, core: TheCore) -> models.Pass:
    """Exchange the code in `Second-Factor` for a pass, which replaces codes for `reauth_seconds`."""
    if is_pass(request.headers.get("second-factor", "")):
        raise Refusal("second-factor", "A pass buys no other pass. Send a code.")
    text, until = core.factors.make_pass(caller.token, core.settings.reauth_seconds)
    return models.Pass.model_validate({"pass": text, "expires": datetime.fromtimestamp(until, UTC).isoformat()})


@ROUTER.get("/questions", tags=["questions"], responses=problem_docs())
def questions(caller: AnyCaller, core: TheCore) -> models.QueryForms:
    """Every kind of query, with its parameters."""
    return _query_forms(core.questions)


@ROUTER.get("/datasets", tags=["data sets"], responses=problem_docs())
def datasets(caller: AnyCaller, core: TheCore) -> models.Datasets:
    """Every data set, with its public facts and what is left of its budget."""
    return models.Datasets(datasets=[models.Dataset.of(view) for view in core.datasets(caller)])


@ROUTER.get("/datasets/{dataset}", tags=["data sets"], responses=problem_docs(404))
def dataset_facts(dataset: DatasetName, caller: AnyCaller, core: TheCore) -> models.Dataset:
    """Public facts of a data set, and what is left of its budget."""
    return models.Dataset.of(core.dataset(caller, dataset))


@ROUTER.get("/datasets/{dataset}/budget", tags=["budgets"], responses=problem_docs(404))
def budget(dataset: DatasetName, caller: AnyCaller, core: TheCore) -> models.DatasetBudget:
    """The budget of a data set: unit of protection, limit, spending and quotas; other analysts as one total."""
    view = core.dataset(caller, dataset)
    return models.DatasetBudget.of(view, dataset=view.name)


@ROUTER.get("/datasets/{dataset}/releases", tags=["releases"], responses=problem_docs(404))
def releases(
    dataset: DatasetName, caller: AnyCaller, core: TheCore, response: Response, last: Last = 100, before: Before = None
) -> models.Releases:
    """Releases about a data set, oldest first: all of them for a steward, their own for an analyst."""
    page = core.releases(caller, dataset, before=before, last=last)
    first = page[0].ledger_id if len(page) == last else None
    url = link_next(response, f"/v1/datasets/{quote(dataset, safe='')}/releases", last=last, before=first)
    return models.Releases(releases=[models.Release.of(release) for release in page], before=first, next=url)


@ROUTER.get("/releases/{number}", tags=["releases"], response_model=None, responses=_RELEASE_DOCS)
def release(number: Number, caller: AnyCaller, core: TheCore, request: Request, if_none_match: Tag = None) -> Response:
    """One release, by the number of its charge: as JSON, or as CSV or Arrow if `Accept` says so."""
    return respond(core.release(caller, number), request.headers.get("accept", ""), if_none_match or "")


@ROUTER.get(
    "/releases/{number}/arrow",
    tags=["releases"],
    response_class=Response,
    responses={
        **problem_docs(404),
        200: {"description": "One row", "content": {ARROW: {"schema": {"type": "string"}}}},
    },
)
def release_arrow(number: Number, caller: AnyCaller, core: TheCore) -> Response:
    """One release as an Arrow stream of one row."""
    name = f'attachment; filename="release-{number}.arrows"'
    content = arrow_stream(core.release(caller, number))
    return Response(content, media_type=ARROW, headers={"content-disposition": name})


@ROUTER.post(
    "/releases/{number}/scores", tags=["releases"], response_model=models.Scores, responses=problem_docs(404, 500)
)
async def scores(number: Number, body: Records, caller: AnyCaller, core: TheCore) -> Response:
    """Score the caller's records with a detector. Nothing is charged, and no record is stored."""

    def score() -> Response:
        detector = Model.of(core.release(caller, number).value)
        values = np.concatenate(list(detector.parts(body.records)))
        numbers = detector.score(values)
        return render_model(
            models.Scores(
                columns=list(detector.columns),
                scores=numbers.tolist(),
                flagged=None if detector.threshold is None else (numbers > detector.threshold).tolist(),
                contributions=detector.split_score(values).tolist() if body.contributions else None,
            )
        )

    return await core.computations.run(caller.name, score)


@ROUTER.post(
    "/releases/{number}/drift", tags=["releases"], response_model=models.Drift, responses=problem_docs(404, 500)
)
async def drift(number: Number, body: Records, caller: AnyCaller, core: TheCore) -> Response:
    """Compare the flag rate of the caller's records with the rate that the detector was fitted for, without charge."""

    def compare() -> Response:
        comparison = Model.of(core.release(caller, number).value).drift(body.records)
        return render_model(models.Drift.model_validate(comparison.to_json() | {"text": comparison.text}))

    return await core.computations.run(caller.name, compare)


@ROUTER.get("/jobs/{job}", tags=["jobs"], responses=problem_docs(404))
def job_state(job: JobId, caller: AnyCaller, request: Request) -> models.Job:
    """Whether a query that is answered later is queued, running, done or failed."""
    jobs: Jobs = request.app.state.jobs
    return models.Job(**jobs.find(caller, job).to_json())


# Watches


async def get_watches(request: Request) -> Watches:
    """Return the watches of this service."""
    watches: Watches = request.app.state.watches
    return watches


TheWatches = Annotated[Watches, Depends(get_watches)]


@ROUTER.get("/watches", tags=["watches"], responses=problem_docs())
def watches(caller: AnyCaller, known: TheWatches) -> models.Watches:
    """The caller's watches; for a steward all of them."""
    return models.Watches(watches=[models.WatchEntry(**entry) for entry in known.all(caller)])


@ROUTER.get("/watches/{watch}", tags=["watches"], responses=problem_docs(403, 404, 409))
def watch_state(watch: WatchId, caller: AnyCaller, known: TheWatches) -> models.WatchState:
    """The position of a watch."""
    return models.WatchState(**known.state(caller, watch).to_json())


@ROUTER.post("/watches/{watch}/observations", tags=["watches"], responses=problem_docs(403, 404, 409, 500))
async def observe(watch: WatchId, body: Observations, caller: AnyCaller, known: TheWatches) -> models.Decisions:
    """Decide a batch, durably. Observations that were decided before get the same decisions again."""

    def decide() -> models.Decisions:
        decisions = known.decide(caller, watch, body.rows, body.first, body.times)
        scores = {} if decisions.noisy_scores is None else {"scores": decisions.noisy_scores}
        stated = {"first": decisions.first, "outlier": decisions.outliers, "exhausted": decisions.exhausted}
        return models.Decisions.model_validate({**stated, **scores})

    return await run_sync(decide)


# Routes of each kind of query


@cache
def query_router(known: tuple[Question, ...]) -> APIRouter:
    """Return the routes that plan and ask each kind of query, and open watches with those that accept streams."""
    router = new_router()
    for question in known:
        body, kind, text = body_model(question), question.kind, question.question
        router.post(
            f"/datasets/{{dataset}}/plan/{kind}",
            tags=["questions"],
            response_model=models.Plan,
            responses=problem_docs(403, 404),
        )(_with_signature(_plan_endpoint(question), f"plan_{kind}", f"Accuracy and cost of: {text}", body))
        options: dict[str, Any] = {"key": (Key, None), "prefer": (Prefer, None), "request": Request}
        later = describe_model(models.Job, "It is answered later: see `Location`.")
        router.post(
            f"/datasets/{{dataset}}/ask/{kind}",
            tags=["questions"],
            response_model=models.Release,
            responses={**problem_docs(403, 404, 409, 500), 202: later},
        )(_with_signature(_ask_endpoint(question), f"ask_{kind}", f"{text} Charged, then answered.", body, **options))
        if question.accepts_stream:
            words = f"{text} Charged once, for the whole stream."
            options = {"key": (Key, None), "watches": TheWatches}
            router.post(
                f"/datasets/{{dataset}}/watches/{kind}",
                status_code=201,
                tags=["watches"],
                response_model=models.WatchState,
                responses=problem_docs(403, 404, 409, 500),
            )(_with_signature(_open_endpoint(question), f"open_{kind}", words, body, **options))
    return router


@cache
def _query_forms(known: tuple[Question, ...]) -> models.QueryForms:
    return models.QueryForms(questions=[models.QueryForm.of(question) for question in known])


def _plan_endpoint(question: Question) -> Any:
    async def plan(dataset: str, body: Body, caller: Caller, core: Core) -> Response:
        def make_plan() -> Response:
            query = parse_query(question, body, partial(core.release, caller))
            expected = core.plan(caller, dataset, query).to_json()
            price = models.Price.of(core.quote(caller, dataset, query))
            return render_model(models.Plan.model_validate(expected | {"price": price}))

        return await core.computations.run(caller.name, make_plan)

    return plan


def _ask_endpoint(question: Question) -> Any:
    async def ask(
        dataset: str, body: Body, caller: Caller, core: Core, key: str | None, prefer: str | None, request: Request
    ) -> Response:
        query = await run_sync(parse_query, question, body, partial(core.release, caller))
        admitted = await run_sync(partial(core.admit, force=is_forced(body)), caller, dataset, query, key)
        jobs: Jobs = request.app.state.jobs
        if query.is_delivered_once:
            return _answer_response(await jobs.wait(partial(core.ask, admitted), caller))
        later = admitted.is_long or "respond-async" in (prefer or "").lower()
        answer = await jobs.answer(partial(core.ask, admitted), caller, dataset, query.kind, later=later)
        return _answer_response(answer)

    return ask


def _open_endpoint(question: Question) -> Any:
    def open_watch(
        dataset: str, body: Body, caller: Caller, core: Core, key: str | None, watches: Watches
    ) -> models.WatchState:
        query = parse_query(question, body, partial(core.release, caller))
        return models.WatchState(**watches.open(caller, dataset, query, key=key, force=is_forced(body)).to_json())

    return open_watch


def _answer_response(answer: Release[Any] | Job) -> Response:
    if isinstance(answer, Release):
        return render_model(models.Release.of(answer))
    headers = {"location": f"/v1/jobs/{answer.id}", "retry-after": "1"}
    return render_model(models.Job(**answer.to_json()), 202, headers)


def _with_signature(endpoint: Any, name: str, description: str, body: type[Body], **options: Any) -> Any:
    """Give `endpoint` the signature that FastAPI reads; in `options` a pair is an annotation and its default."""
    annotations = {"dataset": DatasetName, "body": body, "caller": AnyCaller, "core": TheCore, **options}
    pairs = {
        key: hint if isinstance(hint, tuple) else (hint, inspect.Parameter.empty) for key, hint in annotations.items()
    }
    endpoint.__name__, endpoint.__doc__ = name, description
    endpoint.__signature__ = inspect.Signature(
        [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, annotation=hint, default=default)
            for key, (hint, default) in pairs.items()
        ]
    )
    return endpoint


# A release in several formats


def respond(release: Release[Any], accept: str, known: str) -> Response:
    """Return a release in the format of the header `Accept`; 304 if `known` (If-None-Match) has its ETag."""
    form = choose_format(accept)
    content = _WRITERS[form](release)
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"etag": tag, "vary": "Accept"}
    if tag in [item.strip().removeprefix("W/") for item in known.split(",")] or known.strip() == "*":
        return Response(status_code=304, headers=headers)
    if form != JSON:
        suffix = "csv" if form == CSV else "arrows"
        headers["content-disposition"] = f'attachment; filename="release-{release.ledger_id}.{suffix}"'
    return Response(content, media_type=f"{CSV}; charset=utf-8" if form == CSV else form, headers=headers)


def choose_format(accept: str) -> str:
    """Return the media type that a header `Accept` prefers, JSON by default.

    >>> choose_format("text/csv;q=0.5, application/vnd.apache.arrow.stream")
    'application/vnd.apache.arrow.stream'
    >>> choose_format("*/*"), choose_format("image/png")
    ('application/json', 'application/json')
    """
    weights: dict[str, float] = {}
    for part in accept.split(","):
        name, _, rest = part.partition(";")
        form = name.strip().lower()
        if form in _WRITERS:
            weights[form] = _weight(rest)
    best = max(weights, key=lambda form: weights[form], default=JSON)
    return best if weights.get(best, 1.0) > 0 else JSON


def arrow_stream(release: Release[Any]) -> bytes:
    """Return a release as an Arrow stream of one row."""
    table = release.to_arrow()
    sink = _pa.BufferOutputStream()
    with _ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _weight(rest: str) -> float:
    name, _, text = rest.strip().partition("=")
    try:
        return float(text) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0


_WRITERS: Final[Mapping[str, Callable[[Release[Any]], bytes]]] = {
    JSON: lambda release: bytes(render_model(models.Release.of(release)).body),
    CSV: lambda release: release.to_csv().encode("utf-8"),
    ARROW: arrow_stream,
}
