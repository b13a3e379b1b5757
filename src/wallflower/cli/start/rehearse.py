"""Try a whole plan on records that are made up from the public schema alone: what answers would look like, for nothing.

No private file is opened but to count its records, which is public, and no ledger but one that is thrown away.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from wallflower.cli.options import settle_source, way_to_read
from wallflower.cli.show import notice, show, show_json, sign_of_life
from wallflower.data import Schema, Table, survey
from wallflower.errors import ParameterError
from wallflower.ledger import Ledger
from wallflower.machine.lazy import Lazy
from wallflower.query.forms import Question
from wallflower.rehearsal import PLENTY, USUAL, Trial, make_up, try_question
from wallflower.schema.rows import bounds_rows

if TYPE_CHECKING:
    import wallflower.report as _report
else:
    _report = Lazy("wallflower.report")


def rehearse(given: dict[str, Any], questions: Iterable[Question]) -> None:
    """Make up a table, ask it whatever can be asked, and show what comes out."""
    settle_source(given)
    schema = _schema_of(given)
    table = make_up(schema, given["records"] or min(schema.rows or USUAL, USUAL), given["dataset"])
    with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder) / "rehearsal.db") as ledger:
        ledger.grant(table.name, PLENTY, by="rehearsal", reason="made-up records")
        trials = [_run_trial(question, table, ledger, given) for question in questions]
        if given["report"] is not None:
            _report.write(given["report"], [trial.made for trial in trials if trial.made is not None], ledger)
    _deliver(trials, table, schema, as_json=given["as_json"])


def _schema_of(given: dict[str, Any]) -> Schema:
    if given["schema"] is None:
        raise ParameterError(
            "a rehearsal is made up from public facts, and none are given. Pass --schema FILE; wallflower init "
            "drafts one."
        )
    schema = Schema.read(given["schema"])
    if given["source"] is not None and schema.rows is None and given["records"] is None:
        schema = replace(schema, rows=survey(given["source"], schema=schema, **way_to_read(given))["rows"])
    return schema


def _run_trial(question: Question, table: Table, ledger: Ledger, given: dict[str, Any]) -> Trial:
    settings = {name: given[name] for name in ("neighbours", "radius")}
    with sign_of_life(f"rehearsing {question.kind}"):
        return try_question(question, table, ledger, settings, given["epsilon"])


def _deliver(trials: Sequence[Trial], table: Table, schema: Schema, *, as_json: bool) -> None:
    if as_json:
        told = [
            {"kind": t.kind, "refusal": t.refusal, "release": None if t.made is None else t.made.to_dict()}
            for t in trials
        ]
        show_json({"made_up": True, "records": table.n, "columns": list(table.columns), "trials": told})
        return
    most = "up to " if bounds_rows(schema) else ""
    other = schema.rows is not None and schema.rows != table.n
    more = f" (the table has {most}{schema.rows:,}: with more of them, less noise)" if other else ""
    notice(f"{table.n:,} made-up records in {table.dimension} columns{more}. Nothing is charged, and nothing was read.")
    for trial in trials:
        show(Text(f"\n{trial.kind}, on made-up records", style="bold"))
        show(trial.made if trial.made is not None else Text(f"cannot be asked so: {trial.refusal}", style="dim"))
