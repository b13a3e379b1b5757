"""Public pages: the operator of the service, its statements, the language, and the HTTP API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from wallflower.service.core.problems import Refusal
from wallflower.service.pages.language import LANGUAGES
from wallflower.service.pages.visit import Visit, page, redirect

_VERBS: Final = ("get", "post", "put", "patch", "delete")
_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldWords:
    """A parameter, or a field of a body."""

    name: str
    where: str
    kind: str
    needed: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing that can be called."""

    key: str
    verb: str
    path: str
    text: str
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
        text=str(stated.get("description") or stated.get("summary") or ""),
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
    return FieldWords(name=one["name"], where=one["in"], kind=_kind(described, schema), needed=needed, text=words)


def _fields(described: Mapping[str, Any], body: Mapping[str, Any]) -> Iterator[FieldWords]:
    for name, stated in body.get("properties", {}).items():
        needed, words = name in body.get("required", ()), str(stated.get("description", ""))
        yield FieldWords(name=name, where="body", kind=_kind(described, stated), needed=needed, text=words)


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


def routes() -> list[Route]:
    """What nobody has to sign in for."""
    return [
        Route("/about", page(about, "anybody")),
        Route("/accessibility", page(accessibility, "anybody")),
        Route("/privacy", page(privacy, "anybody")),
        Route("/api", page(reference, "anybody")),
        Route("/logo", page(logo, "anybody")),
        Route("/language", page(choose_language, "anybody"), methods=["POST"]),
    ]


def about(visit: Visit) -> Response:
    """Whose service it is, and whom to write to."""
    return visit.render("about.html")


def accessibility(visit: Visit) -> Response:
    """What the office says of how its pages can be used, or what is known of them."""
    return visit.render("accessibility.html", parts=visit.core.settings.office.statement("accessibility"))


def privacy(visit: Visit) -> Response:
    """What is promised to the people in the data, and what the service keeps of its visitors."""
    return visit.render("privacy.html", parts=visit.core.settings.office.statement("privacy"))


def reference(visit: Visit) -> Response:
    """What programs can call, from the same description that programs read."""
    return visit.render("api.html", groups=groups_of(visit.app.openapi()), origin=visit.origin)


def choose_language(visit: Visit) -> Response:
    """Keep a language, and go back to the page it was chosen on; nowhere else."""
    back = visit.request.query_params.get("back", "")[:2000]
    found = redirect(back if back.startswith("/") and back.isprintable() else "/")
    chosen = visit.form.get("language", "")
    if chosen in LANGUAGES:
        visit.set_language(found, chosen)
    return found


def logo(visit: Visit) -> Response:
    """The logo of the office."""
    found = visit.core.settings.office.logo_bytes()
    if found is None:
        raise Refusal("not-found", "This office has no logo.")
    content, media = found
    return Response(content, media_type=media, headers={"cache-control": "private, max-age=3600"})
