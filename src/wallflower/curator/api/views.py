"""How things look in JSON: exact where it matters, and `remote.py` reads them back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.responses import JSONResponse, Response

from wallflower.curator.api.bodies import example
from wallflower.curator.desk.datasets.views import DatasetView
from wallflower.curator.desk.problems import loss_json, problem
from wallflower.ledger import Quote
from wallflower.ledger.chain import Entry
from wallflower.names import account_name
from wallflower.query.forms import LOSS_HELP, REQUIRED, Question, blanks, spends


class Plain(JSONResponse):
    """JSON in which NaN and the infinities are null."""

    def render(self, content: Any) -> bytes:
        try:
            return _dump(content)
        except ValueError:
            return _dump(_finite(content))


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a longer list; `before` is where the part before it ends, if there may be one."""

    name: str
    items: list[dict[str, Any]]
    before: int | None

    def response(self, path: str, **asked: Any) -> Response:
        """The part, and where the part before it is: as a field, and as a link [RFC 8288]."""
        given = {name: value for name, value in (asked | {"before": self.before}).items() if value is not None}
        place = None if self.before is None else f"{path}?{urlencode(given)}"
        headers = {} if place is None else {"link": f'<{place}>; rel="next"'}
        return Plain({self.name: self.items, "before": self.before, "next": place}, headers=headers)


def dataset_json(shown: DatasetView) -> dict[str, Any]:
    """A data set."""
    standing = {"state": shown.state, "reason": shown.reason}
    return {**shown.facts, **standing, "budget": account_json(shown), "left": loss_json(shown.left)}


def account_json(shown: DatasetView) -> dict[str, Any]:
    """The account of a data set, exactly, with the unit that this data set counts in."""
    whole, first = shown.budget.to_json(), shown.budget.protection.to_json()
    common = {name: value for name, value in whole.items() if name not in first}
    own = account_name(shown.name) or shown.name
    protects = shown.protection.words_but(shown.budget.public.get(own, ()))
    return common | shown.protection.to_json() | {"protects": protects}


def change_json(shown: DatasetView, entry: Entry) -> dict[str, Any]:
    """What a steward has changed: the entry that says so, and where the account stands now."""
    return {"entry": entry.id, "dataset": shown.name, "budget": account_json(shown)}


def price_json(quote: Quote) -> dict[str, Any]:
    """What a question costs here, how many more such questions fit, and what stands in the way."""
    booked, price, after = quote.booked, quote.price, quote.left_after
    return {
        "stated": loss_json(quote.cost),
        "booked": None if booked is None else loss_json(booked),
        "factor": None if price is None else str(price.factor),
        "affords": quote.affords,
        "left": loss_json(quote.left),
        "left_after": None if after is None else loss_json(after),
        "protects": quote.protects,
        "obstacle": None if quote.obstacle is None else problem(quote.refusal()),
    }


def entry_json(entry: Entry) -> dict[str, Any]:
    """An entry of the ledger, with its body read."""
    return entry.to_json() | {"body": entry.details}


def question_json(question: Question) -> dict[str, Any]:
    """A question as a form: what it asks for, in words."""
    asked = [
        {
            "name": blank.name,
            "help": blank.help,
            "required": blank.default is REQUIRED,
            "default": None if blank.default is REQUIRED else _plain_value(blank.default),
            "choices": list(blank.choices),
            "when": None if blank.when is None else {blank.when.chooser: blank.when.choice},
        }
        for blank in blanks(question)
    ]
    told = {"kind": question.kind, "question": question.question, "streams": question.streams}
    losses = dict(LOSS_HELP) if spends(question) else {}
    return told | {"parameters": asked, "loss": losses, "example": example(question)}


def _plain_value(value: Any) -> Any:
    return value if isinstance(value, int | float | str | bool | None) else json.loads(json.dumps(value, default=str))


def _dump(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")


def _finite(content: Any) -> Any:
    match content:
        case float():
            return content if math.isfinite(content) else None
        case Mapping():
            return {name: _finite(value) for name, value in content.items()}
        case list() | tuple():
            return [_finite(value) for value in content]
        case _:
            return content
