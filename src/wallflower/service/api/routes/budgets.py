"""Routes for budgets: limits, quotas, declarations, proposals that wait for a second steward, and requests."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Path, Request
from starlette.responses import Response

from wallflower.ledger.chain import Entry
from wallflower.service.api import models
from wallflower.service.api.bodies import (
    Allowance,
    DeclarationBody,
    Decline,
    Grant,
    GrantForRequest,
    NamingBody,
    NewRequest,
    Quota,
)
from wallflower.service.api.callers import AnyCaller, Reader, Steward, TheCore
from wallflower.service.api.responses import describe_model, new_router, problem_docs, render_model
from wallflower.service.api.routes.analyst import DatasetName
from wallflower.service.core.access.tokens import Caller
from wallflower.service.core.facade import Core
from wallflower.service.core.proposals import Proposal
from wallflower.service.core.requests import Requests

ProposalId = Annotated[str, Path(max_length=64, description="id of a proposal")]
RequestId = Annotated[str, Path(max_length=64, description="id of a request")]

ROUTER: Final = new_router()
_BUDGET: Final = "/datasets/{dataset}/budget"
_CHANGE_DOCS: Final = problem_docs(403, 404)
_PROPOSAL_DOCS: Final = problem_docs(403, 404, 409)
_WAITING_DOCS: Final = {**_CHANGE_DOCS, 202: describe_model(models.Proposal)}


async def get_requests(request: Request) -> Requests:
    """Return the requests for budget of this service."""
    requests: Requests = request.app.state.requests
    return requests


TheRequests = Annotated[Requests, Depends(get_requests)]


@ROUTER.post(
    f"{_BUDGET}/grants", status_code=201, tags=["budgets"], response_model=models.Change, responses=_WAITING_DOCS
)
def grant(dataset: DatasetName, body: Grant, caller: Steward, core: TheCore) -> Response:
    """Set the total budget of a data set. It replaces the previous limit, and spending still counts. Above
    `four_eyes_above` the response is 202 and a proposal that a second steward confirms."""
    return _change_response(core, caller, dataset, core.grant(caller, dataset, body.loss("grant"), **body.terms()))


@ROUTER.post(
    f"{_BUDGET}/constrained", status_code=201, tags=["budgets"], response_model=models.Change, responses=_WAITING_DOCS
)
def allow_constrained(dataset: DatasetName, body: Allowance, caller: Steward, core: TheCore) -> Response:
    """Allow output-constrained answers, which do not satisfy differential privacy and are accounted separately. Above
    `four_eyes_above` the response is 202 and a proposal that a second steward confirms."""
    change = core.allow_constrained(caller, dataset, body.epsilon, reason=body.reason)
    return _change_response(core, caller, dataset, change)


@ROUTER.post(
    f"{_BUDGET}/naming", status_code=201, tags=["budgets"], response_model=models.Change, responses=_WAITING_DOCS
)
def allow_naming(dataset: DatasetName, body: NamingBody, caller: Steward, core: TheCore) -> Response:
    """Allow lists of names, which protect nobody whom they name, by one detector. With `four_eyes_above` the response
    is 202 and a proposal that a second steward confirms."""
    change = core.allow_naming(caller, dataset, body.detector, body.most, reason=body.reason, by_row=body.by_row)
    return _change_response(core, caller, dataset, change)


def _change_response(core: Core, caller: Caller, dataset: str, change: Entry | Proposal) -> Response:
    if isinstance(change, Proposal):
        return render_model(models.Proposal(**change.to_json()), 202)
    return render_model(models.Change.of(core.dataset(caller, dataset), change), 201)


@ROUTER.post(f"{_BUDGET}/quotas", status_code=201, tags=["budgets"], responses=_CHANGE_DOCS)
def set_quota(dataset: DatasetName, body: Quota, caller: Steward, core: TheCore) -> models.Change:
    """Set the quota of one analyst; 0 removes it."""
    entry = core.set_quota(caller, dataset, body.analyst, body.loss("quota"), reason=body.reason)
    return models.Change.of(core.dataset(caller, dataset), entry)


@ROUTER.post(f"{_BUDGET}/declaration", status_code=201, tags=["budgets"], responses=_CHANGE_DOCS)
def declare(dataset: DatasetName, body: DeclarationBody, caller: Steward, core: TheCore) -> models.Change:
    """Declare the unit of protection, before the first query, and the account that a data set spends from."""
    entry = core.declare(caller, dataset, body.protection(), account=body.account, apart=body.apart, reason=body.reason)
    return models.Change.of(core.dataset(caller, dataset), entry)


@ROUTER.get("/proposals", tags=["budgets"], responses=problem_docs(403))
def proposals(caller: Reader, core: TheCore) -> models.Proposals:
    """Changes of budgets that wait for a second steward, and those that were decided, latest first."""
    return models.Proposals(proposals=[models.Proposal(**proposal.to_json()) for proposal in core.proposals.all()])


@ROUTER.post("/proposals/{proposal}/confirm", tags=["budgets"], responses=_PROPOSAL_DOCS)
def confirm_proposal(proposal: ProposalId, caller: Steward, core: TheCore, requests: TheRequests) -> models.Proposal:
    """Confirm what another steward proposed."""
    confirmed, entry = core.confirm_proposal(caller, proposal)
    requests.settle_proposal(caller, confirmed, entry)
    return models.Proposal(**confirmed.to_json())


@ROUTER.post("/proposals/{proposal}/decline", tags=["budgets"], responses=_PROPOSAL_DOCS)
def decline_proposal(proposal: ProposalId, caller: Steward, core: TheCore) -> models.Proposal:
    """Decline what another steward proposed, or withdraw your own proposal."""
    return models.Proposal(**core.decline_proposal(caller, proposal).to_json())


@ROUTER.post("/datasets/{dataset}/requests", status_code=201, tags=["requests"], responses=problem_docs(404, 429))
def make_request(
    dataset: DatasetName, body: NewRequest, caller: AnyCaller, requests: TheRequests
) -> models.BudgetRequest:
    """Ask the steward for more budget, with a reason. Nothing is spent, and nothing is promised."""
    request = requests.make(caller, dataset, body.reason, epsilon=body.epsilon, question=body.question)
    return models.BudgetRequest(**request.to_json())


@ROUTER.get("/requests", tags=["requests"], responses=problem_docs())
def budget_requests(caller: AnyCaller, requests: TheRequests) -> models.BudgetRequests:
    """The caller's requests, latest first; for a steward all of them."""
    return models.BudgetRequests(
        requests=[models.BudgetRequest(**request.to_json()) for request in requests.all(caller)]
    )


@ROUTER.get("/requests/{request}", tags=["requests"], responses=problem_docs(404))
def budget_request(request: RequestId, caller: AnyCaller, requests: TheRequests) -> models.BudgetRequest:
    """One request, and its answer."""
    return models.BudgetRequest(**requests.find(caller, request).to_json())


@ROUTER.post("/requests/{request}/grant", status_code=201, tags=["requests"], responses=_PROPOSAL_DOCS)
def grant_request(
    request: RequestId, body: GrantForRequest, caller: Steward, requests: TheRequests, core: TheCore
) -> models.BudgetRequest:
    """Set the total budget of the data set, and answer the analyst."""
    dataset = requests.require_open(caller, request).dataset

    def change() -> Entry | Proposal:
        return core.grant(caller, dataset, body.loss("grant"), **body.terms())

    granted = requests.grant(caller, request, change, dataset=dataset, word=body.word)
    return models.BudgetRequest(**granted.to_json())


@ROUTER.post("/requests/{request}/decline", status_code=201, tags=["requests"], responses=_PROPOSAL_DOCS)
def decline_request(request: RequestId, body: Decline, caller: Steward, requests: TheRequests) -> models.BudgetRequest:
    """Decline a request, with a reason."""
    return models.BudgetRequest(**requests.decline(caller, request, body.word).to_json())
