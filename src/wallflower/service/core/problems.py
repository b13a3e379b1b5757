"""Errors as problem documents [RFC 9457]: a type, a status, and a sentence that reveals nothing about records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import JSONResponse

from wallflower.errors import (
    AnswerPending,
    BudgetExhausted,
    ChainBroken,
    DataError,
    KeyConflict,
    LedgerError,
    LossMismatch,
    NotUseful,
    ParameterError,
    PrivacyError,
    SessionClosed,
    SourceError,
    StateError,
    Untranslatable,
)
from wallflower.privacy import Loss
from wallflower.text import Message, t

PREFIX: Final = "urn:wallflower:problem:"
MEDIA: Final = "application/problem+json"

# Every type of problem: its HTTP status and its title.
KINDS: Final[Mapping[str, tuple[int, Message]]] = {
    "malformed": (400, t("The request cannot be read")),
    "unauthenticated": (401, t("No valid token")),
    "second-factor": (401, t("A code of the second factor is needed")),
    "budget-exhausted": (403, t("The privacy budget does not cover this")),
    "unit-refused": (403, t("This query has no proven cost under this data set's unit of protection")),
    "forbidden": (403, t("This token may not do that")),
    "not-found": (404, t("Not found")),
    "method": (405, t("Method not allowed")),
    "timeout": (408, t("The request took too long to arrive")),
    "key-conflict": (409, t("The idempotency key was used before")),
    "state": (409, t("The watch cannot continue")),
    "session-closed": (409, t("The session of the watch is closed")),
    "chain-broken": (409, t("The ledger's chain is broken")),
    "conflict": (409, t("It conflicts with the present state")),
    "withdrawn": (410, t("The release was withdrawn")),
    "too-large": (413, t("The body is too large")),
    "url-too-long": (414, t("The URL is too long")),
    "head-too-large": (431, t("The head of the request is too large")),
    "misdirected": (421, t("The service has another address")),
    "parameter": (422, t("Invalid parameter")),
    "too-much-memory": (422, t("The query needs too much memory")),
    "not-useful": (422, t("The answer would be mostly noise")),
    "data": (422, t("The data set does not fit the query")),
    "source": (422, t("The source cannot be used")),
    "too-many-attempts": (429, t("Too many attempts without a valid token or code")),
    "too-many-questions": (429, t("You have too many queries under way")),
    "too-many-calls": (429, t("You have too many calls under way")),
    "too-many-requests": (429, t("You have too many open requests")),
    "unanswered": (500, t("The query could not be answered")),
    "busy": (503, t("The service is busy")),
    "ledger": (503, t("The ledger cannot be used")),
    "unrecorded": (503, t("The result could not be recorded")),
}
_TYPES: Final[tuple[tuple[type[PrivacyError], str], ...]] = (
    (BudgetExhausted, "budget-exhausted"),
    (Untranslatable, "unit-refused"),
    (NotUseful, "not-useful"),
    (ChainBroken, "chain-broken"),
    (KeyConflict, "key-conflict"),
    (LedgerError, "ledger"),
    (SessionClosed, "session-closed"),
    (StateError, "state"),
    (DataError, "data"),
    (SourceError, "source"),
    (ParameterError, "parameter"),
    (LossMismatch, "parameter"),
)
_CONSTANT: Final[Mapping[str, Message]] = {
    "ledger": t("The ledger cannot be reached or written at the moment. Try again later."),
    "unrecorded": t(
        "The result could not be recorded, so it was discarded. The charge stays. Try again when the service "
        "can write; a query needs a new idempotency key then."
    ),
    "unanswered": t("The query failed after the budget was requested. A charge stays. Ask the steward."),
}
_HEADERS: Final[Mapping[str, Mapping[str, str]]] = {
    "unauthenticated": {"www-authenticate": 'Bearer realm="wallflower"'},
    "second-factor": {"www-authenticate": 'Bearer realm="wallflower", error="insufficient_user_authentication"'},
    "too-many-attempts": {"retry-after": "60"},
    "too-many-questions": {"retry-after": "1"},
    "too-many-calls": {"retry-after": "1"},
    "too-many-requests": {"retry-after": "3600"},
    "busy": {"retry-after": "1"},
    "ledger": {"retry-after": "5"},
    "unrecorded": {"retry-after": "5"},
}


_LEADING_FOLDER: Final = re.compile(r"^((?:ledger )?)/(?:[^:]*/)?(?=[^/:]*:)")  # "/some folder/people.csv: ..."
_INNER_FOLDER: Final = re.compile(r"(?<![\w/:.])/(?:[^\s/:'\"]+/)+")


class Refusal(PrivacyError):
    """A refusal by the service itself; `kind` is a key of `KINDS`."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


def unanswered_refusal() -> Refusal:
    """Return the refusal for every failure after the computation began; it does not depend on the data."""
    return Refusal("unanswered", _CONSTANT["unanswered"])


def unrecorded_refusal() -> Refusal:
    """Return the refusal for a result that could not be recorded, which reveals the state of the database only."""
    return Refusal("unrecorded", _CONSTANT["unrecorded"])


def problem_kind(error: PrivacyError) -> str:
    """Return the type of problem of an error."""
    if isinstance(error, Refusal):
        return error.kind
    return next((name for kind, name in _TYPES if isinstance(error, kind)), "unanswered")


def problem_document(error: PrivacyError) -> dict[str, Any]:
    """Return the problem document of an error."""
    kind = problem_kind(error)
    more: dict[str, Any] = {}
    match error:
        case BudgetExhausted(asked=Loss() as asked, left=Loss() as left):
            booked = loss_json(error.booked) if isinstance(error.booked, Loss) else None
            more = {"dataset": error.dataset, "asked": loss_json(asked), "left": loss_json(left), "booked": booked}
            more |= {"part": error.part, "why": error.why, "remedy": error.remedy}
        case Untranslatable():
            more = {"dataset": error.dataset, "part": "unit", "why": error.why, "remedy": error.remedy}
        case NotUseful():
            more = {"query": error.kind, "verdict": error.verdict, "smallest": error.smallest}
        case AnswerPending():
            more = {"charge": error.charge}
        case ChainBroken():
            more = {"entry": error.entry}
        case DataError(column=str() as column):
            more = {"column": column}
    return make_document(kind, _CONSTANT.get(kind, str(error)), **more)


def make_document(kind: str, detail: str, **more: Any) -> dict[str, Any]:
    """Return a problem document of this type."""
    status, title = KINDS[kind]
    return {"type": f"{PREFIX}{kind}", "title": title, "status": status, "detail": without_folders(detail), **more}


def without_folders(text: str) -> str:
    """Replace paths by bare file names: folders of the machine are private.

    >>> without_folders("/srv/our data/people.csv: the file is empty. See '/etc/wallflower/people.toml'.")
    "people.csv: the file is empty. See 'people.toml'."
    """
    return _INNER_FOLDER.sub("", _LEADING_FOLDER.sub(r"\1", text))


def problem_response(document: Mapping[str, Any]) -> JSONResponse:
    """Return the HTTP response of a problem document."""
    return JSONResponse(dict(document), document["status"], headers=problem_headers(document), media_type=MEDIA)


def problem_headers(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a problem, such as `Retry-After`."""
    return dict(_HEADERS.get(str(document["type"]).removeprefix(PREFIX), {}))


def loss_json(loss: Loss) -> dict[str, str]:
    """Return a loss as JSON: exact numbers, and as text."""
    return {name: str(value) for name, value in loss.to_json().items()} | {"exact": loss.exact_text}
