"""Tables and documents that a page offers as files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response

from wallflower.curator.api.views import Plain
from wallflower.release.rows import sheet_cell

_MAX_CELL_LETTERS: Final = 30_000  # as many as a spreadsheet takes


def csv_file(name: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> Response:
    """A table to download. No cell begins as a formula does: a spreadsheet would run it."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(head)
    writer.writerows([_cell(value) for value in row] for row in rows)
    headers = {"content-disposition": f'attachment; filename="{name}.csv"'}
    return Response("\ufeff" + text.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


def json_file(name: str, content: Mapping[str, Any]) -> Response:
    """The same for programs."""
    return Plain(content, headers={"content-disposition": f'attachment; filename="{name}.json"'})


def _cell(value: object) -> object:
    return sheet_cell(value[:_MAX_CELL_LETTERS].replace("\x00", "") if isinstance(value, str) else value)
