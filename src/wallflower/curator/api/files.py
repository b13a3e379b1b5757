"""A release in the form that a program asks for, with a tag that says whether it has it already."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from wallflower.curator.api.description.answers import JSON, example_of
from wallflower.curator.api.description.answers import Release as Told
from wallflower.curator.api.description.docs import Docs, answer_docs
from wallflower.curator.api.views import Plain
from wallflower.machine.lazy import Lazy
from wallflower.release import Release

if TYPE_CHECKING:
    import pyarrow as _pa
    import pyarrow.ipc as _ipc
else:
    _pa = Lazy("pyarrow")
    _ipc = Lazy("pyarrow.ipc")

ARROW: Final = "application/vnd.apache.arrow.stream"
CSV: Final = "text/csv"


def release_docs() -> Docs:
    """What the route of a release answers with: one of three forms, or that nothing has changed."""
    found = answer_docs(Told, 404)
    found[200]["description"] = "The release, in the form that `Accept` names: JSON, CSV or an Arrow stream"
    found[200]["content"] = {
        JSON: {"example": example_of(Told)},
        CSV: {"schema": {"type": "string"}, "example": "value,low,high\n52,37.0,67.0\n"},
        ARROW: {"schema": {"type": "string", "format": "binary"}},
    }
    return found | {304: {"description": "You have it: the tag in `If-None-Match` is its own"}}


def respond(made: Release[Any], accept: str, known: str) -> Response:
    """The release as `accept` wants it; nothing but its tag where `known` names that."""
    form = chosen_form(accept)
    content = _WRITERS[form](made)
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"etag": tag, "vary": "Accept"}
    if tag in [one.strip().removeprefix("W/") for one in known.split(",")] or known.strip() == "*":
        return Response(status_code=304, headers=headers)
    if form != JSON:
        suffix = "csv" if form == CSV else "arrows"
        headers["content-disposition"] = f'attachment; filename="release-{made.ledger_id}.{suffix}"'
    return Response(content, media_type=f"{CSV}; charset=utf-8" if form == CSV else form, headers=headers)


def chosen_form(accept: str) -> str:
    """The form that is wanted most, JSON where none is.

    >>> chosen_form("text/csv;q=0.5, application/vnd.apache.arrow.stream")
    'application/vnd.apache.arrow.stream'
    >>> chosen_form("*/*"), chosen_form("image/png")
    ('application/json', 'application/json')
    """
    wanted: dict[str, float] = {}
    for part in accept.split(","):
        name, _, rest = part.partition(";")
        form = name.strip().lower()
        if form in _WRITERS:
            wanted[form] = _weight(rest)
    best = max(wanted, key=lambda form: wanted[form], default=JSON)
    return best if wanted.get(best, 1.0) > 0 else JSON


def arrow_stream(made: Release[Any]) -> bytes:
    """An Arrow stream of one row."""
    table = made.to_arrow()
    sink = _pa.BufferOutputStream()
    with _ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _weight(rest: str) -> float:
    name, _, text = rest.strip().partition("=")
    try:
        return float(text) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0


_WRITERS: Final[Mapping[str, Callable[[Release[Any]], bytes]]] = {
    JSON: lambda made: bytes(Plain(made.to_dict()).body),
    CSV: lambda made: made.to_csv().encode("utf-8"),
    ARROW: arrow_stream,
}
