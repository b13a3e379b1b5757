"""Try a whole plan on records that are made up from the public schema alone: what answers would look like, for nothing.

No private file is opened but to count its records, which is public, and no ledger but one that is thrown away.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from rich.text import Text

from wallflower.cli.draft import SPREADS
from wallflower.cli.options import settle_source, written_of
from wallflower.cli.show import notice, show, show_json, sign_of_life
from wallflower.columns import float_array, text_array
from wallflower.data import Column, Schema, Table, survey
from wallflower.errors import ParameterError, PrivacyError
from wallflower.forms import Question, blanks, spends
from wallflower.lazy import Lazy
from wallflower.ledger import Ledger
from wallflower.privacy import Kind, Loss
from wallflower.query import Query
from wallflower.release import Release, pay
from wallflower.synthetic import pick_labels, spread_numbers

if TYPE_CHECKING:
    import pyarrow as _pa

    import wallflower.report as _report
else:
    _pa = Lazy("pyarrow")
    _report = Lazy("wallflower.report")

MADE_UP: Final = (
    "Made up: these records were drawn from the public schema, not from anybody's data. The answer shows its form and "
    "its noise, and says nothing about the real table."
)
USUAL: Final = 10_000  # records, unless more are asked for: a rehearsal should not take long
_PLENTY: Final = Loss("1000000")


@dataclass(frozen=True, slots=True)
class Trial:
    """A question as it was tried: what came of it, or why it cannot be asked so."""

    kind: str
    made: Release[Any] | None
    refusal: str | None = None


def rehearse(given: dict[str, Any], questions: Iterable[Question]) -> None:
    """Make up a table, ask it whatever can be asked, and show what comes out."""
    settle_source(given)
    schema = _schema_of(given)
    table = make_up(schema, given["records"] or min(schema.rows or USUAL, USUAL), given["dataset"])
    with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder) / "rehearsal.db") as ledger:
        ledger.grant(table.name, _PLENTY, by="rehearsal", reason="made-up records")
        trials = [_tried(question, table, ledger, given) for question in questions]
        if given["report"] is not None:
            _report.write(given["report"], [trial.made for trial in trials if trial.made is not None], ledger)
    _deliver(trials, table, schema, as_json=given["as_json"])


def make_up(schema: Schema, n: int, name: str | None = None) -> Table:
    """A table of made-up records that fits a schema, and is called so."""
    known = [column for column in schema.columns or () if column.kind not in ("identifier", "time")]
    if not known:
        raise ParameterError("the schema names no column of numbers or labels: nothing can be made up. Add one.")
    cells = {column.name: _cells(column, n, seed) for seed, column in enumerate(known, start=1)}
    plain = tuple(replace(column, unit=None, since=None, layout=None, missing=None) for column in known)
    facts = replace(schema, columns=plain, rows=None, clip=True, account=None, file=None, without=())
    return Table(arrow=_pa.table(cells), schema=facts, name=f"made-up-{name or schema.name or 'table'}")


def _cells(column: Column, n: int, seed: int) -> Any:
    if column.categories is not None:
        return text_array(pick_labels(n, column.labels, seed=seed))
    low, high, spread = column.low, column.high, float(column.scale)
    center = float(column.center)
    if low is not None and high is not None:
        center = (low + high) / 2
        spread = spread if column.scale != 1 else (high - low) / SPREADS
    values = spread_numbers(n, center=center, spread=spread, seed=seed)
    if low is not None or high is not None:
        values = np.clip(values, low, high)
    return float_array(np.round(values) if column.integer else values)


def _schema_of(given: dict[str, Any]) -> Schema:
    if given["schema"] is None:
        raise ParameterError(
            "a rehearsal is made up from public facts, and none are given. Pass --schema FILE; wallflower init "
            "drafts one."
        )
    schema = Schema.read(given["schema"])
    if given["source"] is not None and schema.rows is None and given["records"] is None:
        schema = replace(schema, rows=survey(given["source"], schema=schema, **written_of(given))["rows"])
    return schema


def _tried(question: Question, table: Table, ledger: Ledger, given: dict[str, Any]) -> Trial:
    try:
        query = _query_of(question, given)
        with sign_of_life(f"rehearsing {question.kind}"):
            made = pay(query, table, ledger, analyst="rehearsal", anyway=True).answer()
    except PrivacyError as refusal:
        return Trial(question.kind, None, str(refusal))
    return Trial(question.kind, replace(made, notes=(MADE_UP, *made.notes), limit=None))


def _query_of(question: Question, given: dict[str, Any]) -> Query[Any, Any]:
    """The question's own example, with whatever is given that it takes."""
    example, own = question.example(), {blank.name for blank in blanks(question)}
    changes: dict[str, Any] = {name: given[name] for name in ("neighbours", "radius") if name in own and given[name]}
    if given["epsilon"] is not None and spends(question) and example.cost().kind is Kind.PURE:
        changes["loss"] = Loss(given["epsilon"])
    return replace(example, **changes)


def _deliver(trials: Sequence[Trial], table: Table, schema: Schema, *, as_json: bool) -> None:
    if as_json:
        told = [
            {"kind": t.kind, "refusal": t.refusal, "release": None if t.made is None else t.made.to_dict()}
            for t in trials
        ]
        show_json({"made_up": True, "records": table.n, "columns": list(table.columns), "trials": told})
        return
    more = "" if schema.rows in (None, table.n) else f" (the table has {schema.rows:,}: with more of them, less noise)"
    notice(f"{table.n:,} made-up records in {table.dimension} columns{more}. Nothing is charged, and nothing was read.")
    for trial in trials:
        show(Text(f"\n{trial.kind}, on made-up records", style="bold"))
        show(trial.made if trial.made is not None else Text(f"cannot be asked so: {trial.refusal}", style="dim"))
