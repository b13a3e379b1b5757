"""What the description says of a route: its answer, with an example, and its problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from wallflower.curator.api.description.answers import JSON, example_of
from wallflower.curator.desk.problems import KINDS, MEDIA

Docs = dict[int | str, dict[str, Any]]


def problem_docs(*statuses: int) -> Docs:
    """The problems a route may answer with."""
    schema = {MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    usual = (400, 401, 408, 413, 422, 429, 503)
    titles: dict[int, str] = {}
    for status, title in KINDS.values():
        titles[status] = f"{titles[status]}; {title.lower()}" if status in titles else title
    return {status: {"description": titles[status], "content": schema} for status in sorted({*usual, *statuses})}


def answer_docs(model: type[BaseModel], *statuses: int, status: int = 200, words: str = "") -> Docs:
    """What a route answers with, and the problems it may answer with instead."""
    told = words or (model.__doc__ or "").partition("\n")[0]
    answer = {"model": model, "description": told, "content": {JSON: {"example": example_of(model)}}}
    return {**problem_docs(*statuses), status: answer}


def flatten(schema: Any) -> Any:
    """A schema in which no choice is among choices.

    >>> flatten({"anyOf": [{"anyOf": [{"type": "string"}, {"type": "number"}]}, {"type": "null"}]})
    {'anyOf': [{'type': 'string'}, {'type': 'number'}, {'type': 'null'}]}
    """
    if isinstance(schema, list):
        return [flatten(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {name: flatten(part) for name, part in schema.items()}
    if isinstance(found.get("anyOf"), list):
        found["anyOf"] = [one for part in found["anyOf"] for one in (part["anyOf"] if [*part] == ["anyOf"] else [part])]
    return found
