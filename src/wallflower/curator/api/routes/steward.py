"""Routes for stewards: data sets, budgets, tokens, the ledger."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query
from starlette.responses import Response, StreamingResponse

from wallflower.curator.api.bodies import (
    AccessBody,
    Allocation,
    Allowance,
    DeclarationBody,
    Grant,
    NewDataset,
    NewToken,
    StrictRoute,
)
from wallflower.curator.api.callers import Reader, Steward, TheDesk
from wallflower.curator.api.description.answers import Dataset
from wallflower.curator.api.description.docs import Docs, answer_docs, problem_docs
from wallflower.curator.api.description.steward_answers import (
    Acts,
    Change,
    DatasetAccess,
    Entries,
    IssuedToken,
    People,
    PersonAnswer,
    ProposalAnswer,
    ProposalAnswers,
    Retirement,
    Token,
    Tokens,
    Verification,
)
from wallflower.curator.api.routes.analyst import Before, DatasetName, Last
from wallflower.curator.api.routes.requests import TheRequests
from wallflower.curator.api.views import Page, Plain, change_json, dataset_json, entry_json
from wallflower.curator.desk.access.people import Person
from wallflower.curator.desk.access.tokens import Caller
from wallflower.curator.desk.budgets.proposals import Proposal
from wallflower.curator.desk.desk import Desk
from wallflower.errors import ParameterError
from wallflower.ledger.chain import Entry, Event

LINES: Final = "application/x-ndjson"

TokenId = Annotated[str, Path(max_length=64, description="id of a token")]
ProposalId = Annotated[str, Path(max_length=64, description="id of a proposal")]
PersonName = Annotated[str, Path(max_length=200, description="name of a person who signed in")]
BUDGET: Final = "/datasets/{dataset}/budget"


@cache
def router() -> APIRouter:
    """What only a steward may do."""
    made = APIRouter(prefix="/v1", route_class=StrictRoute, default_response_class=Plain)
    made.post("/datasets", status_code=201, tags=["data sets"], responses=answer_docs(Dataset, 403, 409, status=201))(
        register
    )
    made.delete("/datasets/{dataset}", tags=["data sets"], responses=answer_docs(Retirement, 403, 404, 409))(retire)
    access = "/datasets/{dataset}/access"
    made.get(access, tags=["data sets"], responses=answer_docs(DatasetAccess, 403, 404))(dataset_access)
    docs = answer_docs(DatasetAccess, 403, 404, status=201)
    made.post(access, status_code=201, tags=["data sets"], responses=docs)(give_access)
    made.delete(f"{access}/{{analyst}}", tags=["data sets"], responses=answer_docs(DatasetAccess, 403, 404, 409))(
        take_access
    )
    for name, change in (
        ("grants", grant),
        ("shares", allocate),
        ("declaration", declare),
        ("constrained", allow_constrained),
    ):
        docs = answer_docs(Change, 403, 404, status=201)
        if name in ("grants", "constrained"):
            docs = docs | answer_docs(ProposalAnswer, status=202)
        made.post(f"{BUDGET}/{name}", status_code=201, tags=["budgets"], responses=docs)(change)
    made.get("/tokens", tags=["tokens"], responses=answer_docs(Tokens, 403))(tokens)
    made.post("/tokens", status_code=201, tags=["tokens"], responses=answer_docs(IssuedToken, 403, status=201))(
        create_token
    )
    made.delete("/tokens/{token}", tags=["tokens"], responses=answer_docs(Token, 403, 404))(revoke_token)
    made.delete("/tokens/{token}/factor", tags=["tokens"], responses=answer_docs(Token, 403, 404))(remove_factor)
    made.get("/acts", tags=["tokens"], responses=answer_docs(Acts, 403))(acts)
    made.get("/proposals", tags=["budgets"], responses=answer_docs(ProposalAnswers, 403))(proposals)
    docs = answer_docs(ProposalAnswer, 403, 404, 409)
    made.post("/proposals/{proposal}/confirm", tags=["budgets"], responses=docs)(confirm_proposal)
    made.post("/proposals/{proposal}/decline", tags=["budgets"], responses=docs)(decline_proposal)
    made.get("/people", tags=["tokens"], responses=answer_docs(People, 403))(people)
    docs = answer_docs(PersonAnswer, 403, 404, 409)
    made.post("/people/{person}/disable", tags=["tokens"], responses=docs)(disable_person)
    made.post("/people/{person}/enable", tags=["tokens"], responses=docs)(enable_person)
    made.get("/ledger/entries", tags=["ledger"], responses=answer_docs(Entries, 403))(entries)
    made.get("/ledger/verify", tags=["ledger"], responses=answer_docs(Verification, 403, 409))(verify)
    lines: Docs = {200: {"description": "One entry a line", "content": {LINES: {"schema": {"type": "string"}}}}}
    made.get(
        "/ledger/export", tags=["ledger"], response_class=StreamingResponse, responses={**problem_docs(403), **lines}
    )(export)
    return made


def register(body: NewDataset, caller: Steward, desk: TheDesk) -> dict[str, Any]:
    """Register a data set: a file or a folder under a root of the service, or a stream."""
    return dataset_json(desk.dataset(caller, desk.register(caller, body.name, **body.desk_arguments())))


def retire(dataset: DatasetName, caller: Steward, desk: TheDesk) -> dict[str, Any]:
    """Retire a data set that was registered over HTTP or on a page. The ledger keeps its rows."""
    return {"name": desk.retire(caller, dataset), "retired": True}


def dataset_access(dataset: DatasetName, caller: Reader, desk: TheDesk) -> dict[str, Any]:
    """Who may see a data set: nobody but stewards, until it is opened to somebody."""
    return access_json(desk, dataset)


def give_access(dataset: DatasetName, body: AccessBody, caller: Steward, desk: TheDesk) -> dict[str, Any]:
    """Open a data set to an analyst, or to every analyst."""
    desk.give_access(caller, dataset, body.analyst)
    return access_json(desk, dataset)


def take_access(
    dataset: DatasetName,
    analyst: Annotated[str, Path(max_length=200, description="the name of a token, or *")],
    caller: Steward,
    desk: TheDesk,
) -> dict[str, Any]:
    """Close a data set to an analyst again. Answers that they have stay theirs."""
    desk.take_access(caller, dataset, analyst)
    return access_json(desk, dataset)


def access_json(desk: Desk, dataset: str) -> dict[str, Any]:
    """The analysts and the groups of the settings that may see a data set."""
    found, access = desk.shelf.find(dataset), desk.access
    return {"dataset": found.name, "analysts": access.analysts(found), "groups": access.groups_of(found)}


def grant(dataset: DatasetName, body: Grant, caller: Steward, desk: TheDesk) -> Response:
    """Set the limit of a data set's account, in all: it may be lower than before, and what was spent still counts.
    Above the ε of the settings the answer is 202 and a proposal, which a second steward confirms."""
    return _change_response(desk, caller, dataset, desk.grant(caller, dataset, body.loss("grant"), **body.terms()))


def _change_response(desk: Desk, caller: Caller, dataset: str, made: Entry | Proposal) -> Response:
    if isinstance(made, Proposal):
        return Plain(made.to_json(), 202)
    return Plain(change_json(desk.dataset(caller, dataset), made), 201)


def allocate(dataset: DatasetName, body: Allocation, caller: Steward, desk: TheDesk) -> dict[str, Any]:
    """Set the share of a limit that is kept for one analyst; 0 takes it back."""
    entry = desk.allocate(caller, dataset, body.analyst, body.loss("allocate"), reason=body.reason)
    return change_json(desk.dataset(caller, dataset), entry)


def declare(dataset: DatasetName, body: DeclarationBody, caller: Steward, desk: TheDesk) -> dict[str, Any]:
    """Say whose loss a data set counts, before its first question, and which account it spends from."""
    entry = desk.declare(caller, dataset, body.protection(), account=body.account, apart=body.apart, reason=body.reason)
    return change_json(desk.dataset(caller, dataset), entry)


def allow_constrained(dataset: DatasetName, body: Allowance, caller: Steward, desk: TheDesk) -> Response:
    """Open output-constrained answers, which are no differential privacy and stand outside the sum. Above the ε of the
    settings the answer is 202 and a proposal, which a second steward confirms."""
    made = desk.allow_constrained(caller, dataset, body.epsilon, reason=body.reason)
    return _change_response(desk, caller, dataset, made)


def proposals(caller: Reader, desk: TheDesk) -> dict[str, Any]:
    """Changes of budgets that wait for a second steward, and those that were decided, the latest first."""
    return {"proposals": [proposal.to_json() for proposal in desk.proposals.all()]}


def confirm_proposal(proposal: ProposalId, caller: Steward, desk: TheDesk, requests: TheRequests) -> dict[str, Any]:
    """Confirm what another steward proposed."""
    confirmed, entry = desk.confirm_proposal(caller, proposal)
    requests.settle_proposal(caller, confirmed, entry)
    return confirmed.to_json()


def decline_proposal(proposal: ProposalId, caller: Steward, desk: TheDesk) -> dict[str, Any]:
    """Refuse what another steward proposed, or take an own proposal back."""
    return desk.decline_proposal(caller, proposal).to_json()


def tokens(caller: Reader, desk: TheDesk) -> dict[str, Any]:
    """Every token there ever was, without its secret: by whom it was issued, and when it was used last."""
    holders, uses, granted = desk.factors.holders(), desk.tokens.uses(), desk.tokens.rights().items()
    more = {key: {"issued_by": one.by, "last_used": one.used} for key, one in uses.items()}
    none = {"issued_by": None, "last_used": None}
    rights = {key: {"groups": list(right.groups), "personal": right.person is not None} for key, right in granted}
    without = {"groups": [], "personal": False}
    return {
        "tokens": [
            token.to_json()
            | {"second_factor": token.id in holders}
            | more.get(token.id, none)
            | rights.get(token.id, without)
            for token in desk.tokens.all()
        ]
    }


def create_token(body: NewToken, caller: Steward, desk: TheDesk) -> dict[str, Any]:
    """A new token. Its text is shown here and never again; `beside` are valid tokens that go by the same name."""
    token, text = desk.issue_token(caller, body.name, body.scope, days=body.days, groups=body.groups)
    return {**token.to_json(), "text": text, "beside": [other.id for other in desk.tokens.others(token)]}


def revoke_token(token: TokenId, caller: Steward, desk: TheDesk) -> dict[str, Any]:
    """End a token."""
    return desk.revoke_token(caller, token).to_json()


def remove_factor(token: TokenId, caller: Steward, desk: TheDesk) -> dict[str, Any]:
    """Take the second factor of a token away, for a steward who has lost it."""
    desk.remove_factor(caller, token)
    return desk.tokens.find(token).to_json() | {"second_factor": False}


def acts(
    caller: Reader,
    desk: TheDesk,
    last: Last = 100,
    before: Annotated[str | None, Query(max_length=64, description="only those before this id")] = None,
    act: Annotated[str | None, Query(max_length=64, description="of one kind only")] = None,
    by: Annotated[str | None, Query(max_length=200, description="of one person only")] = None,
) -> dict[str, Any]:
    """What stewards did, oldest first: when, who, with which token, from where."""
    require_printable(before=before, act=act, by=by)
    return {"acts": desk.acts.last(last, before=before, act=act, by=by)}


def people(caller: Reader, desk: TheDesk) -> dict[str, Any]:
    """Everybody who signed in with the account of an office, with the rights of the last sign-in."""
    return {"people": [person_json(person) for person in desk.people.all()]}


def disable_person(person: PersonName, caller: Steward, desk: TheDesk) -> dict[str, Any]:
    """End the sessions and personal tokens of a person at once, and refuse her until she is enabled."""
    return person_json(desk.disable_person(caller, person))


def enable_person(
    person: PersonName,
    caller: Steward,
    desk: TheDesk,
    another_account: Annotated[
        bool, Query(description="give the name to the account of the directory that signs in under it next")
    ] = False,
) -> dict[str, Any]:
    """Let a disabled person sign in again, or another account of the directory have her name."""
    return person_json(desk.enable_person(caller, person, another_account=another_account))


def person_json(person: Person) -> dict[str, Any]:
    """A person as a steward sees her; the subject of the directory stays with the service."""
    names = ("name", "role", "signed_in", "tokens_until", "disabled")
    return {**{name: getattr(person, name) for name in names}, "groups": list(person.groups)}


def require_printable(**texts: str | None) -> None:
    """Refuse a text that no row can hold: a database may not even compare with it."""
    for name, text in texts.items():
        if text is not None and not text.isprintable():
            raise ParameterError(f"{name}: it holds characters that cannot be printed. Correct it.")


def entries(
    caller: Reader,
    desk: TheDesk,
    dataset: Annotated[str | None, Query(max_length=200, description="of one data set only")] = None,
    event: Annotated[Event | None, Query(description="of one kind only")] = None,
    last: Last = 100,
    before: Before = None,
) -> Response:
    """Declarations, limits, shares, allowances, charges and releases, oldest first."""
    require_printable(dataset=dataset)
    found = [entry_json(entry) for entry in desk.entries(name=dataset, event=event, before=before, last=last)]
    page = Page("entries", found, found[0]["id"] if len(found) == last else None)
    return page.response("/v1/ledger/entries", dataset=dataset, event=event, last=last)


def verify(
    caller: Reader,
    desk: TheDesk,
    head: Annotated[str | None, Query(max_length=64, description="a head you noted earlier")] = None,
) -> dict[str, Any]:
    """Walk the chain of hashes: was an entry changed, removed, inserted, or cut off?"""
    found = desk.verify(head=head)
    return {"holds": True, "entries": found.entries, "head": found.head}


def export(caller: Reader, desk: TheDesk) -> StreamingResponse:
    """Every entry with its hashes, one JSON object a line."""

    def lines() -> Iterator[str]:
        for entry in desk.export():
            yield json.dumps(entry) + "\n"

    return StreamingResponse(lines(), media_type=LINES)
