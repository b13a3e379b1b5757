"""The page of acts: what stewards did, with filters, in parts, and as files."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from wallflower.curator.desk.access.acts import TOLD
from wallflower.curator.pages.visitors.files import csv_file, json_file
from wallflower.curator.pages.visitors.visits import Visit, page

ACTS_PER_PAGE: Final = 100
MAX_EXPORTED_ACTS: Final = 1_000_000
_MAX_LETTERS: Final = 200


def routes() -> list[Route]:
    """The page of acts and its files, for stewards and auditors."""
    return [
        Route("/acts", page(show_acts, "reader")),
        Route("/acts/csv", page(acts_csv, "reader")),
        Route("/acts/json", page(acts_json, "reader")),
    ]


def show_acts(visit: Visit) -> Response:
    """The acts that are wanted, the latest first."""
    wanted = _read_filter(visit)
    before = _text(visit, "before")
    rows = list(reversed(visit.desk.acts.last(ACTS_PER_PAGE, before=before, **wanted)))
    older = urlencode({**wanted, "before": rows[-1]["id"]}) if len(rows) == ACTS_PER_PAGE else None
    acts = visit.desk.acts
    return visit.render(
        "acts.html",
        acts=rows,
        wanted=wanted,
        query=urlencode(wanted),
        older=older,
        kinds=acts.kinds(),
        people=acts.people(),
    )


def acts_csv(visit: Visit) -> Response:
    """The acts that are wanted, as a table."""
    return csv_file("acts", TOLD, ([row[name] or "" for name in TOLD] for row in _all(visit)))


def acts_json(visit: Visit) -> Response:
    """The acts that are wanted, for programs."""
    return json_file("acts", {"acts": _all(visit)})


def _all(visit: Visit) -> list[dict[str, Any]]:
    return visit.desk.acts.last(MAX_EXPORTED_ACTS, **_read_filter(visit))


def _read_filter(visit: Visit) -> dict[str, str]:
    stated = {name: _text(visit, name) for name in ("act", "by")}
    return {name: value for name, value in stated.items() if value is not None}


def _text(visit: Visit, name: str) -> str | None:
    text = visit.request.query_params.get(name, "").strip()[:_MAX_LETTERS]
    return text if text and text.isprintable() else None
