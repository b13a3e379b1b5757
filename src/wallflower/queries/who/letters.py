"""Letters: what a detector says of one record, for the person whose record it is, and for nobody else.  (J)"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wallflower.data import Table
from wallflower.data.cells import no_identifier
from wallflower.errors import DataError
from wallflower.machine.heavy import pyarrow_compute as _compute
from wallflower.queries.detector import Model
from wallflower.schema.columns import pick
from wallflower.text import Message, t


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """What a detector says of one record: a function of that record and of what was released.

    identifier     whose record it is
    score          how unusual it is
    threshold      above it a record is flagged; None where the detector has none
    contributions  what each column adds to the score
    """

    identifier: str
    score: float
    threshold: float | None
    contributions: dict[str, float]

    @property
    def is_flagged(self) -> bool | None:
        """Whether the detector flags the record; None where it has no threshold."""
        return None if self.threshold is None else self.score > self.threshold

    @property
    def text(self) -> Message:
        """To whom the letter may be given."""
        return t(
            "For {identifier} alone: what others receive stays private only if they do not see this.",
            identifier=self.identifier,
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "identifier": self.identifier,
            "notice": self.text,
            "score": self.score,
            "threshold": self.threshold,
            "flagged": self.is_flagged,
            "contributions": self.contributions,
        }


def write_letters(model: Model, table: Table, identifier: str) -> Iterator[Letter]:
    """Yield a letter for every record, in the order of the table.

    Refuses identifiers that are missing or repeat, because a letter would reach somebody else: for the data steward,
    who has the records.
    """
    texts = _identifiers(table, identifier).to_pylist()
    if None in texts or "" in texts or len({*texts}) < len(texts):
        raise DataError(
            f"column {identifier!r} has identifiers that are missing or repeat, so a letter could reach somebody else. "
            "Bring rows together by person first (`rollup`), or correct the data.",
            column=identifier,
        )
    scores, parts = _score(model, table, np.arange(table.n))
    for text, score, row in zip(texts, scores, parts, strict=True):
        yield _make_letter(model, text, score, row)


def find_letter(model: Model, table: Table, identifier: str, wanted: str) -> Letter | None:
    """Return the letter of one person; None unless exactly one record has this identifier."""
    rows = _compute.indices_nonzero(_compute.equal(_identifiers(table, identifier), wanted))
    if len(rows) != 1:
        return None
    (score,), (parts,) = _score(model, table, np.array([rows[0].as_py()]))
    return _make_letter(model, wanted, score, parts)


def check_identifier(table: Table, model: Model, identifier: str) -> None:
    """Refuse, by public facts, a table that has no such identifiers, or lacks a column of the detector."""
    _identifiers(table, identifier)
    missing = [name for name in model.columns if name not in table.columns]
    if missing:
        raise DataError(f"detector: the table has no column {missing[0]!r}, which it was fitted to.")
    model.project(table)  # or a refusal of its columns


def _identifiers(table: Table, identifier: str) -> Any:
    (name,) = pick([identifier], table.columns)
    (facts,) = table.schema.only([name]).columns or ()
    if not facts.identifier:
        raise no_identifier(name)
    if table.max_rows is not None:
        raise DataError(
            f"{table.name}: a person has several records here, and a letter is about one. Bring rows together by "
            "person (`rollup`).",
            column=name,
        )
    return table.arrow[name]


def _score(model: Model, table: Table, rows: Any) -> tuple[list[float], list[list[float]]]:
    values = next(model.parts(table))[rows]
    return model.score(values).tolist(), model.split_score(values).tolist()


def _make_letter(model: Model, identifier: str, score: float, parts: list[float]) -> Letter:
    contributions = dict(zip(model.columns, parts, strict=True))
    return Letter(identifier=identifier, score=score, threshold=model.threshold, contributions=contributions)
