"""Routes for stewards and auditors: data sets, access, tokens, people, acts and the ledger."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Final

from fastapi import Path, Query
from starlette.responses import Response, StreamingResponse

from wallflower.errors import ParameterError
from wallflower.ledger.chain import Event
from wallflower.service.api import models
from wallflower.service.api.bodies import AccessBody, NewDataset, NewToken
from wallflower.service.api.callers import Reader, Steward, TheCore
from wallflower.service.api.responses import link_next, new_router, problem_docs
from wallflower.service.api.routes.analyst import Before, DatasetName, Last
from wallflower.service.core.facade import Core

LINES: Final = "application/x-ndjson"

TokenId = Annotated[str, Path(max_length=64, description="id of a token")]
PersonName = Annotated[str, Path(max_length=200, description="name of a person who signed in")]
AnalystName = Annotated[str, Path(max_length=200, description="name of a token or a person, or *")]

ROUTER: Final = new_router()
_ACCESS: Final = "/datasets/{dataset}/access"


@ROUTER.post("/datasets", status_code=201, tags=["data sets"], responses=problem_docs(403, 409))
def register(body: NewDataset, caller: Steward, core: TheCore) -> models.RegisteredDataset:
    """Register a data set: a file or a folder under a root of the service, or a stream."""
    name = core.register(caller, body.name, **body.register_arguments())
    return models.RegisteredDataset.of(core.dataset(caller, name), notices=core.repeat_notices(name))


@ROUTER.delete("/datasets/{dataset}", tags=["data sets"], responses=problem_docs(403, 404, 409))
def retire(dataset: DatasetName, caller: Steward, core: TheCore) -> models.Retirement:
    """Retire a data set that was registered over HTTP or on a page. The ledger keeps its entries."""
    return models.Retirement(name=core.retire(caller, dataset), retired=True)


@ROUTER.get(_ACCESS, tags=["data sets"], responses=problem_docs(403, 404))
def dataset_access(dataset: DatasetName, caller: Reader, core: TheCore) -> models.DatasetAccess:
    """Analysts and groups who may see a data set; none by default."""
    return _access(core, dataset)


@ROUTER.post(_ACCESS, status_code=201, tags=["data sets"], responses=problem_docs(403, 404))
def give_access(dataset: DatasetName, body: AccessBody, caller: Steward, core: TheCore) -> models.DatasetAccess:
    """Open a data set to an analyst, or to every analyst."""
    core.give_access(caller, dataset, body.analyst)
    return _access(core, dataset)


@ROUTER.delete(f"{_ACCESS}/{{analyst}}", tags=["data sets"], responses=problem_docs(403, 404, 409))
def take_access(dataset: DatasetName, analyst: AnalystName, caller: Steward, core: TheCore) -> models.DatasetAccess:
    """Close a data set to an analyst again. The analyst keeps releases."""
    core.take_access(caller, dataset, analyst)
    return _access(core, dataset)


def _access(core: Core, dataset: str) -> models.DatasetAccess:
    registration, access = core.catalog.find(dataset), core.access
    analysts, groups = access.analysts(registration), access.groups_of(registration)
    return models.DatasetAccess(dataset=registration.name, analysts=analysts, groups=groups)


@ROUTER.get("/tokens", tags=["tokens"], responses=problem_docs(403))
def tokens(caller: Reader, core: TheCore) -> models.TokenList:
    """Every token that was ever issued, without its secret."""
    return models.TokenList.of(core.tokens, core.factors.holders())


@ROUTER.post("/tokens", status_code=201, tags=["tokens"], responses=problem_docs(403))
def create_token(body: NewToken, caller: Steward, core: TheCore) -> models.IssuedToken:
    """Issue a token. Its text is shown here and never again; `beside` are valid tokens with the same name."""
    token, text = core.issue_token(caller, body.name, body.scope, days=body.days, groups=body.groups)
    beside = [other.id for other in core.tokens.others(token)]
    return models.IssuedToken(**token.to_json(), text=text, beside=beside)


@ROUTER.delete("/tokens/{token}", tags=["tokens"], responses=problem_docs(403, 404))
def revoke_token(token: TokenId, caller: Steward, core: TheCore) -> models.Token:
    """Revoke a token."""
    return models.Token(**core.revoke_token(caller, token).to_json())


@ROUTER.delete("/tokens/{token}/factor", tags=["tokens"], responses=problem_docs(403, 404))
def remove_factor(token: TokenId, caller: Steward, core: TheCore) -> models.Token:
    """Remove the second factor of a token, for a holder who has lost it."""
    core.remove_factor(caller, token)
    return models.Token(**core.tokens.find(token).to_json(), second_factor=False)


@ROUTER.get("/acts", tags=["tokens"], responses=problem_docs(403))
def acts(
    caller: Reader,
    core: TheCore,
    last: Last = 100,
    before: Annotated[str | None, Query(max_length=64, description="only acts before this id")] = None,
    act: Annotated[str | None, Query(max_length=64, description="only acts of this kind")] = None,
    by: Annotated[str | None, Query(max_length=200, description="only acts of this person")] = None,
) -> models.Acts:
    """Changes that stewards made, oldest first: when, who, with which token, from which address."""
    require_printable(before=before, act=act, by=by)
    return models.Acts(acts=[models.Act(**row) for row in core.acts.last(last, before=before, act=act, by=by)])


@ROUTER.get("/people", tags=["tokens"], responses=problem_docs(403))
def people(caller: Reader, core: TheCore) -> models.People:
    """Everybody who signed in with the account of an office, with the rights of the last sign-in."""
    return models.People(people=[models.Person.of(person) for person in core.people.all()])


@ROUTER.post("/people/{person}/disable", tags=["tokens"], responses=problem_docs(403, 404, 409))
def disable_person(person: PersonName, caller: Steward, core: TheCore) -> models.Person:
    """End the sessions and personal tokens of a person at once, and refuse her until she is enabled."""
    return models.Person.of(core.disable_person(caller, person))


@ROUTER.post("/people/{person}/enable", tags=["tokens"], responses=problem_docs(403, 404, 409))
def enable_person(
    person: PersonName,
    caller: Steward,
    core: TheCore,
    another_account: Annotated[
        bool, Query(description="give the name to the account of the directory that signs in under it next")
    ] = False,
) -> models.Person:
    """Let a disabled person sign in again, or give her name to another account of the directory."""
    return models.Person.of(core.enable_person(caller, person, another_account=another_account))


@ROUTER.get("/ledger/entries", tags=["ledger"], responses=problem_docs(403))
def entries(
    caller: Reader,
    core: TheCore,
    response: Response,
    dataset: Annotated[str | None, Query(max_length=200, description="only entries of this data set")] = None,
    event: Annotated[Event | None, Query(description="only entries of this kind")] = None,
    last: Last = 100,
    before: Before = None,
) -> models.Entries:
    """Declarations, limits, quotas, allowances, charges and releases, oldest first."""
    require_printable(dataset=dataset)
    page = core.entries(name=dataset, event=event, before=before, last=last)
    first = page[0].id if len(page) == last else None
    url = link_next(response, "/v1/ledger/entries", dataset=dataset, event=event, last=last, before=first)
    return models.Entries(entries=[models.Entry.of(entry) for entry in page], before=first, next=url)


@ROUTER.get("/ledger/verify", tags=["ledger"], responses=problem_docs(403, 409))
def verify(
    caller: Reader,
    core: TheCore,
    head: Annotated[str | None, Query(max_length=64, description="a head you noted earlier")] = None,
) -> models.Verification:
    """Check the hash chain: was an entry changed, removed, inserted or cut off?"""
    verification = core.verify(head=head)
    return models.Verification(holds=True, entries=verification.entries, head=verification.head)


@ROUTER.get(
    "/ledger/export",
    tags=["ledger"],
    response_class=StreamingResponse,
    responses={
        **problem_docs(403),
        200: {"description": "One entry per line", "content": {LINES: {"schema": {"type": "string"}}}},
    },
)
def export(caller: Reader, core: TheCore) -> StreamingResponse:
    """Every entry with its hashes, one JSON object per line."""

    def lines() -> Iterator[str]:
        for entry in core.export():
            yield json.dumps(entry) + "\n"

    return StreamingResponse(lines(), media_type=LINES)


def require_printable(**texts: str | None) -> None:
    """Refuse a text with control characters: PostgreSQL does not even compare with some of them."""
    for name, text in texts.items():
        if text is not None and not text.isprintable():
            raise ParameterError(f"{name}: it holds characters that cannot be printed. Correct it.")
