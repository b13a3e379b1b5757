"""Routes that read strictly and return models, and how their responses are rendered and described.

A route names its model as its return type; OpenAPI gets the schema and an example from it. Problems [RFC 9457] are
described by `problem_docs`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from anyio.to_thread import run_sync
from fastapi import APIRouter, FastAPI, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from starlette.responses import JSONResponse, Response

from wallflower.service.api.bodies import parse_body
from wallflower.service.api.middleware import is_large
from wallflower.service.core.problems import KINDS, MEDIA, make_document

JSON: Final = "application/json"
Docs = dict[int | str, dict[str, Any]]

_COMMON_STATUSES: Final = (400, 401, 408, 413, 422, 429, 503)


class FiniteJSONResponse(JSONResponse):
    """JSON in which NaN and the infinities are null."""

    def render(self, content: Any) -> bytes:
        try:
            return _dump(content)
        except ValueError:
            return _dump(_replace_infinite(content))


class StrictRoute(APIRoute):
    """A route that refuses a body with a repeated name, since two parsers may read it differently.

    Its model describes it in OpenAPI with an example. Fields that were not set are left out of a response.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        options |= {"generate_unique_id_function": route_name, "response_model_exclude_unset": True}
        super().__init__(path, endpoint, **options)
        model = self.response_model
        if isinstance(model, type) and issubclass(model, BaseModel):
            described = {name: part for name, part in describe_model(model).items() if name != "model"}
            self.responses = {**self.responses, self.status_code or 200: described | self._own_docs()}

    def _own_docs(self) -> dict[str, Any]:
        return dict(self.responses.get(self.status_code or 200, {}))

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return handle_strictly


class _StrictRequest(Request):
    async def json(self) -> Any:
        body = await self.body()
        return await run_sync(parse_body, body) if is_large(body) else parse_body(body)


def new_router() -> APIRouter:
    """Return a router of strict routes under /v1."""
    return APIRouter(prefix="/v1", route_class=StrictRoute, default_response_class=FiniteJSONResponse)


def route_name(route: APIRoute) -> str:
    """Return the operation id of a route: the name of its function."""
    return route.name


def render_model(model: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> FiniteJSONResponse:
    """Render a model here and now: in the worker thread of a long computation, not in the event loop."""
    return FiniteJSONResponse(model.model_dump(mode="json", by_alias=True, exclude_unset=True), status, headers)


def link_next(response: Response, path: str, **query: Any) -> str | None:
    """Return the URL of the earlier page of a list, if `before` is given, and set it as a link header [RFC 8288]."""
    if query["before"] is None:
        return None
    url = f"{path}?{urlencode({name: value for name, value in query.items() if value is not None})}"
    response.headers["link"] = f'<{url}>; rel="next"'
    return url


def problem_docs(*statuses: int) -> Docs:
    """Describe the problems that a route may return: the common ones and those of `statuses`."""
    schema = {MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    titles: dict[int, str] = {}
    for status, title in KINDS.values():
        titles[status] = f"{titles[status]}; {title.lower()}" if status in titles else title
    listed = sorted({*_COMMON_STATUSES, *statuses})
    return {status: {"description": titles[status], "content": schema} for status in listed}


def describe_model(model: type[BaseModel], description: str = "") -> dict[str, Any]:
    """Describe a response with this model, with an example made from the examples of its fields."""
    text = description or (model.__doc__ or "").partition("\n")[0]
    return {"model": model, "description": text, "content": {JSON: {"example": make_example(model)}}}


def make_example(model: type[BaseModel]) -> dict[str, Any]:
    """Make an example of a model from the examples of its fields."""
    return {item.alias or name: _field_example(item) for name, item in model.model_fields.items()}


def _field_example(item: FieldInfo) -> Any:
    if item.examples:
        return item.examples[0]
    hint = item.annotation
    parts = [hint, *getattr(hint, "__args__", ())]
    model = next((part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)), None)
    if model is None:
        return None
    example = make_example(model)
    return [example] if getattr(hint, "__origin__", None) is list else example


def describe_service(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, with the schema of problems; it is made once."""
    if app.openapi_schema is None:
        document = FastAPI.openapi(app)
        text = {"type": "string"}
        document["components"]["schemas"]["Problem"] = {
            "type": "object",
            "description": "A problem [RFC 9457]; `type` ends in one of: " + ", ".join(KINDS),
            "properties": {"type": text, "title": text, "status": {"type": "integer"}, "detail": text},
            "required": ["type", "title", "status", "detail"],
            "example": make_document("budget-exhausted", "tumours: this query costs ε = 1, but only ε = 0.5 is left."),
        }
        app.openapi_schema = flatten_choices(document)
    return app.openapi_schema


def flatten_choices(schema: Any) -> Any:
    """Flatten nested `anyOf` of a JSON schema.

    >>> flatten_choices({"anyOf": [{"anyOf": [{"type": "string"}, {"type": "number"}]}, {"type": "null"}]})
    {'anyOf': [{'type': 'string'}, {'type': 'number'}, {'type': 'null'}]}
    """
    if isinstance(schema, list):
        return [flatten_choices(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    flat = {name: flatten_choices(part) for name, part in schema.items()}
    if isinstance(flat.get("anyOf"), list):
        flat["anyOf"] = [item for part in flat["anyOf"] for item in (part["anyOf"] if [*part] == ["anyOf"] else [part])]
    return flat


def _dump(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")


def _replace_infinite(content: Any) -> Any:
    match content:
        case float():
            return content if math.isfinite(content) else None
        case Mapping():
            return {name: _replace_infinite(value) for name, value in content.items()}
        case list() | tuple():
            return [_replace_infinite(value) for value in content]
        case _:
            return content
