"""Routes for requests for budget: ask for more, see what became of it, answer."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request
from pydantic import Field

from wallflower.curator.api.bodies import Body, Exactly, Grant, Reason, StrictRoute, Text
from wallflower.curator.api.callers import AnyCaller, Steward, TheDesk
from wallflower.curator.api.description.docs import answer_docs
from wallflower.curator.api.description.steward_answers import BudgetRequest, BudgetRequests
from wallflower.curator.api.routes.analyst import DatasetName
from wallflower.curator.api.views import Plain
from wallflower.curator.desk.budgets.proposals import Proposal
from wallflower.curator.desk.budgets.requests import Requests
from wallflower.ledger.chain import Entry

RequestId = Annotated[str, Path(max_length=64, description="id of a request")]


class NewRequest(Body):
    """What an analyst would like to have."""

    reason: Reason = Field(description="what it is for, for the steward", examples=["the second wave of study 12"])
    epsilon: Exactly | None = Field(None, description="what you would like to spend; default: as much as can be had")
    question: Text | None = Field(None, description="the question you would ask", examples=["count"])


class GrantForRequest(Grant):
    """The new limit of the account, in all, and a word to the analyst."""

    word: str = Field("", max_length=1000, description="what the analyst is told")


class Decline(Body):
    """Why not."""

    word: Reason = Field(description="what the analyst is told", examples=["the survey ends this year"])


async def requests_of(request: Request) -> Requests:
    """The requests of this service."""
    found: Requests = request.app.state.requests
    return found


TheRequests = Annotated[Requests, Depends(requests_of)]


@cache
def router() -> APIRouter:
    """What analysts ask for, and what stewards answer."""
    made = APIRouter(prefix="/v1", route_class=StrictRoute, default_response_class=Plain, tags=["requests"])
    made.post(
        "/datasets/{dataset}/requests", status_code=201, responses=answer_docs(BudgetRequest, 404, 429, status=201)
    )(make_request)
    made.get("/requests", responses=answer_docs(BudgetRequests))(budget_requests)
    made.get("/requests/{request}", responses=answer_docs(BudgetRequest, 404))(budget_request)
    docs = answer_docs(BudgetRequest, 403, 404, 409, status=201)
    made.post("/requests/{request}/grant", status_code=201, responses=docs)(grant_request)
    made.post("/requests/{request}/decline", status_code=201, responses=docs)(decline_request)
    return made


def make_request(dataset: DatasetName, body: NewRequest, caller: AnyCaller, found: TheRequests) -> dict[str, Any]:
    """Ask the steward for more budget, with a reason. Nothing is spent by it, and nothing promised."""
    made = found.make(caller, dataset, body.reason, epsilon=body.epsilon, question=body.question)
    return made.to_json()


def budget_requests(caller: AnyCaller, found: TheRequests) -> dict[str, Any]:
    """The caller's requests, the latest first; a steward sees all."""
    return {"requests": [one.to_json() for one in found.all(caller)]}


def budget_request(request: RequestId, caller: AnyCaller, found: TheRequests) -> dict[str, Any]:
    """One request, and what became of it."""
    return found.find(caller, request).to_json()


def grant_request(
    request: RequestId, body: GrantForRequest, caller: Steward, found: TheRequests, desk: TheDesk
) -> dict[str, Any]:
    """Set the limit of the data set's account, in all, and tell the analyst."""
    wanted = found.require_open(caller, request)

    def change() -> Entry | Proposal:
        return desk.grant(caller, wanted.dataset, body.loss("grant"), **body.terms())

    return found.grant(caller, request, change, dataset=wanted.dataset, word=body.word).to_json()


def decline_request(request: RequestId, body: Decline, caller: Steward, found: TheRequests) -> dict[str, Any]:
    """Decline a request, and say why."""
    return found.decline(caller, request, body.word).to_json()
