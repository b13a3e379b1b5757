"""The files of the pages: named by what they hold, so that a browser keeps them until they change."""

from __future__ import annotations

import hashlib
from functools import cache
from os import PathLike, stat_result
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER: Final = Path(__file__).parent / "static"
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_ASK_AGAIN: Final = "no-cache"  # it is kept, and asked about each time by its ETag


class Assets(StaticFiles):
    """Files that a browser keeps for ever if their address has their version, and else asks about each time."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER)

    def file_response(
        self, full_path: str | PathLike[str], stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        found = super().file_response(full_path, stat_result, scope, status_code)
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("v", [""])[0]
        is_named = asked == version_of(Path(full_path).name)
        found.headers["cache-control"] = _FOR_EVER if is_named else _ASK_AGAIN
        return found


@cache
def version_of(name: str) -> str:
    """A few letters that change when what a file holds does."""
    return hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()[:12]
