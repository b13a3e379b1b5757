"""The description of the interface as something to read: operations in groups, with their fields and an example."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_VERBS: Final = ("get", "post", "put", "patch", "delete")
_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldWords:
    """A parameter, or a field of a body."""

    name: str
    where: str
    kind: str
    needed: bool
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing that can be called."""

    key: str
    verb: str
    path: str
    words: str
    fields: tuple[FieldWords, ...]
    example: str | None
    answers: tuple[tuple[str, str], ...]


def groups_of(described: Mapping[str, Any]) -> dict[str, list[Operation]]:
    """Every operation that OpenAPI describes, by its first tag, in the order of the description."""
    found: dict[str, list[Operation]] = {}
    for path, item in described["paths"].items():
        for verb in _VERBS:
            if verb in item:
                group = next(iter(item[verb].get("tags", ())), "others")
                found.setdefault(group, []).append(_operation(described, path, verb, item[verb]))
    return found


def _operation(described: Mapping[str, Any], path: str, verb: str, stated: Mapping[str, Any]) -> Operation:
    body = _body(described, stated)
    own = [*(_parameter(described, one) for one in stated.get("parameters", ())), *_fields(described, body)]
    return Operation(
        key=str(stated.get("operationId", f"{verb}-{path}")),
        verb=verb.upper(),
        path=path,
        words=str(stated.get("description") or stated.get("summary") or ""),
        fields=tuple(own),
        example=_example(body),
        answers=tuple((status, str(told.get("description", ""))) for status, told in stated["responses"].items()),
    )


def _body(described: Mapping[str, Any], stated: Mapping[str, Any]) -> Mapping[str, Any]:
    content = stated.get("requestBody", {}).get("content", {}).get(_JSON, {})
    return _follow(described, content.get("schema", {}))


def _parameter(described: Mapping[str, Any], one: Mapping[str, Any]) -> FieldWords:
    schema = _follow(described, one.get("schema", {}))
    words = str(one.get("description") or schema.get("description") or "")
    needed = bool(one.get("required"))
    return FieldWords(name=one["name"], where=one["in"], kind=_kind(described, schema), needed=needed, words=words)


def _fields(described: Mapping[str, Any], body: Mapping[str, Any]) -> Iterator[FieldWords]:
    for name, stated in body.get("properties", {}).items():
        needed, words = name in body.get("required", ()), str(stated.get("description", ""))
        yield FieldWords(name=name, where="body", kind=_kind(described, stated), needed=needed, words=words)


def _kind(described: Mapping[str, Any], stated: Mapping[str, Any]) -> str:
    schema = _follow(described, stated)
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    several = schema.get("anyOf") or schema.get("oneOf") or ()
    if several:
        kinds = dict.fromkeys(_kind(described, one) for one in several)
        return " | ".join(kind for kind in kinds if kind != "null")
    if schema.get("type") == "array":
        return f"list of {_kind(described, schema.get('items', {}))}"
    return str(schema.get("type", "anything"))


def _follow(described: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a reference within the description stands for."""
    place = str(schema.get("$ref", ""))
    if not place.startswith("#/"):
        return schema
    found: Any = described
    for part in place.removeprefix("#/").split("/"):
        found = found[part]
    return dict(found)


def _example(body: Mapping[str, Any]) -> str | None:
    stated = body.get("examples") or ([body["example"]] if "example" in body else [])
    if not stated:
        own = {name: one["examples"][0] for name, one in body.get("properties", {}).items() if one.get("examples")}
        stated = [own] if own else []
    return json.dumps(stated[0], indent=2, ensure_ascii=False) if stated else None
