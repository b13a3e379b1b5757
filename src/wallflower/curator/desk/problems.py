"""Refusals as problems [RFC 9457]: a type, a status, and words that hold nothing of the records."""

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
    EpochClosed,
    KeyConflict,
    LedgerError,
    LossMismatch,
    NotUseful,
    ParameterError,
    PrivacyError,
    SourceError,
    StateError,
    Untranslatable,
)
from wallflower.privacy import Loss

PREFIX: Final = "urn:wallflower:problem:"
MEDIA: Final = "application/problem+json"

# Every type there is: its status and its title.
KINDS: Final[Mapping[str, tuple[int, str]]] = {
    "malformed": (400, "The request cannot be read"),
    "unauthenticated": (401, "No valid token"),
    "second-factor": (401, "A code of the second factor is needed"),
    "budget-exhausted": (403, "The privacy budget does not cover this"),
    "unit-refused": (403, "No theorem says what this costs here"),
    "forbidden": (403, "This token may not do that"),
    "not-found": (404, "There is no such thing here"),
    "method": (405, "That cannot be done here"),
    "timeout": (408, "The request took too long to arrive"),
    "key-conflict": (409, "The key was used before"),
    "state": (409, "The watch cannot go on"),
    "epoch-closed": (409, "The epoch of the watch is closed"),
    "chain-broken": (409, "The ledger's chain is broken"),
    "conflict": (409, "It is there already"),
    "too-large": (413, "The body is too large"),
    "url-too-long": (414, "The URL is too long"),
    "head-too-large": (431, "The head of the request is too large"),
    "misdirected": (421, "The service has another address"),
    "parameter": (422, "A parameter cannot be used"),
    "too-much-memory": (422, "The question takes more memory than it may"),
    "not-useful": (422, "The answer would be of no use"),
    "data": (422, "The data set does not fit the question"),
    "source": (422, "The source cannot be used"),
    "too-many-attempts": (429, "Too many attempts without a valid token or code"),
    "too-many-questions": (429, "Too many questions of yours are under way"),
    "too-many-calls": (429, "Too many calls of yours are under way"),
    "too-many-requests": (429, "Too many requests of yours wait for an answer"),
    "unanswered": (500, "The question could not be answered"),
    "busy": (503, "The service is busy"),
    "ledger": (503, "The ledger cannot be used"),
    "unrecorded": (503, "What was found could not be written down"),
}
_TYPES: Final[tuple[tuple[type[PrivacyError], str], ...]] = (
    (BudgetExhausted, "budget-exhausted"),
    (Untranslatable, "unit-refused"),
    (NotUseful, "not-useful"),
    (ChainBroken, "chain-broken"),
    (KeyConflict, "key-conflict"),
    (LedgerError, "ledger"),
    (EpochClosed, "epoch-closed"),
    (StateError, "state"),
    (DataError, "data"),
    (SourceError, "source"),
    (ParameterError, "parameter"),
    (LossMismatch, "parameter"),
)
_CONSTANT: Final[Mapping[str, str]] = {
    "ledger": "The ledger cannot be reached or written at the moment. Try again later.",
    "unrecorded": "What was found could not be written down, so it is not told. What was charged stays charged. Go on "
    "when the service can write again; a question needs a new key then.",
    "unanswered": "Something failed after the budget was asked for. What was charged stays charged. Ask the steward.",
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


_FIRST_PLACE: Final = re.compile(r"^((?:ledger )?)/(?:[^:]*/)?(?=[^/:]*:)")  # "/a place/of mine/people.csv: ..."
_INNER_PLACE: Final = re.compile(r"(?<![\w/:.])/(?:[^\s/:'\"]+/)+")


class Refusal(PrivacyError):
    """The service itself refuses; `kind` is one of KINDS."""

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(words)
        self.kind = kind


def unanswered_refusal() -> Refusal:
    """What is said, whatever went wrong after the look."""
    return Refusal("unanswered", _CONSTANT["unanswered"])


def unrecorded_refusal() -> Refusal:
    """What is said where the look went well and its record failed, which tells of the database alone."""
    return Refusal("unrecorded", _CONSTANT["unrecorded"])


def kind_of(error: PrivacyError) -> str:
    """The type of problem an error is."""
    if isinstance(error, Refusal):
        return error.kind
    return next((name for kind, name in _TYPES if isinstance(error, kind)), "unanswered")


def problem(error: PrivacyError) -> dict[str, Any]:
    """An error as a problem document."""
    kind = kind_of(error)
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
    return document(kind, _CONSTANT.get(kind, str(error)), **more)


def document(kind: str, detail: str, **more: Any) -> dict[str, Any]:
    """A problem document of this type."""
    status, title = KINDS[kind]
    words = without_folders(detail)
    return {"type": f"{PREFIX}{kind}", "title": title, "status": status, "detail": words, **more}


def without_folders(words: str) -> str:
    """The same with files by their bare names: where they lie on this machine is nobody's business.

    >>> without_folders("/srv/our data/people.csv: the file is empty. See '/etc/wallflower/people.toml'.")
    "people.csv: the file is empty. See 'people.toml'."
    """
    return _INNER_PLACE.sub("", _FIRST_PLACE.sub(r"\1", words))


def response(stated: Mapping[str, Any]) -> JSONResponse:
    """A problem document on its way out."""
    return JSONResponse(dict(stated), stated["status"], headers=headers_of(stated), media_type=MEDIA)


def headers_of(stated: Mapping[str, Any]) -> dict[str, str]:
    """The headers that go with a problem, such as when to come again."""
    return dict(_HEADERS.get(str(stated["type"]).removeprefix(PREFIX), {}))


def loss_json(loss: Loss) -> dict[str, str]:
    """A loss, exactly and in words."""
    return {name: str(value) for name, value in loss.to_json().items()} | {"exact": str(loss)}
