"""Workbooks as sources (.xlsx, .xls, .ods), read by python-calamine where it is installed: the extra `excel`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wallflower.data.sources.texts import name_columns
from wallflower.errors import DataError, SourceError
from wallflower.machine.lazy import Lazy
from wallflower.schema.columns import Selection, arrow_of, list_names, too_large

if TYPE_CHECKING:
    import pyarrow as _pa
    import python_calamine as _calamine
else:
    _pa = Lazy("pyarrow")
    _calamine = Lazy("python_calamine")

WORKBOOKS: Final = (".xlsx", ".xls", ".ods")

_BYTES_PER_CELL: Final = 16


def workbook(path: Path, wanted: Selection, limit: int) -> Any:
    """The columns of one sheet, the first unless another is named; its first line is the header."""
    rows = _rows(path, wanted.form.sheet, limit)
    if not rows:
        raise DataError(f"{path}: the sheet is empty. Name another (--sheet), or check how it was written.")
    header = name_columns([cell if isinstance(cell, str) else str(cell) for cell in rows[0]], path, "")
    if len(rows) == 1:
        raise DataError(f"{path}: has a header and no records. Check how it was written.")
    chosen = [(name, header.index(name)) for name in wanted.choose(header)]
    return _pa.table({name: _column([row[at] for row in rows[1:]], name in wanted.texts) for name, at in chosen})


def _rows(path: Path, sheet: str | None, limit: int) -> Sequence[Sequence[Any]]:
    try:
        opened = _calamine.CalamineWorkbook.from_path(path)
    except ModuleNotFoundError:
        raise SourceError(
            f"{path}: workbooks are read with python-calamine, which is not installed. Install it "
            "(pip install 'wallflower[excel]'), or save the sheet as CSV."
        ) from None
    except _calamine.CalamineError:
        opened = None
    if opened is None:
        raise SourceError(f"{path}: the workbook is damaged, locked or not what its name says. Save it again.")
    names = opened.sheet_names
    if sheet is not None and sheet not in names:
        raise DataError(f"{path}: there is no sheet {sheet!r}; there are {list_names(names)}. Name one of these.")
    found = opened.get_sheet_by_name(sheet or names[0])
    if found.height * found.width * _BYTES_PER_CELL > limit:
        raise too_large(str(path), limit)
    rows: list[list[Any]] = found.to_python(skip_empty_area=True)
    return rows


def _column(cells: Sequence[Any], is_text: bool) -> Any:
    """An empty cell is missing, a text is without the blanks around it, and a label 7.0 is a 7."""
    tidy = [(cell.strip() or None) if isinstance(cell, str) else cell for cell in cells]
    if is_text:
        tidy = [int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in tidy]
    return arrow_of(tidy)
