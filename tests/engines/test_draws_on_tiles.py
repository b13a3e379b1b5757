"""On tiles an answer draws what it draws in memory: the same laws, scales, rates and candidates, as often.

Cases and their scripts are those of the audits of the real answer, with tiles of a few records each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from wallflower.audit.answers import Case, Recorder, freeze
from wallflower.data import Points, Table, TiledTable
from wallflower.data.scans import keep
from wallflower.engines.local import LocalEngine
from wallflower.errors import EngineMismatch
from wallflower.queries import COMPANIONS, QUERIES
from wallflower.queries.count.audit.accounts import METRIC_SETTINGS
from wallflower.queries.detector.audit.flags import table_of, view_table
from wallflower.queries.detector.audit.threshold import view_threshold
from wallflower.queries.detector.flags import Flags
from wallflower.queries.detector.threshold import Threshold
from wallflower.queries.who import Who
from wallflower.queries.who import audit as who_audit
from wallflower.schema import Schema

TILE_RECORDS = 3
STREAMS = ("watch", "shift", "baseline", "tally")  # read with their times, in memory
IN_MEMORY_ONLY = {  # refused on tiles, before anything is charged
    *("count: smooth", "count: two-sided interval", "count: two-sided interval at ρ"),
    *("count: two-sided interval at δ", "count: at a share, two-sided"),
    *(f"count: extension, certified{more}" for more in ("", ", at ρ", ", at δ", ", degree cap by the test")),
    *("radius: a radius by outlier mass", "profile: two radii by outlier mass", "profile: one radius by outlier mass"),
    *(f"count: {metric}{loss}" for metric in METRIC_SETTINGS for loss in ("", " at ρ", " at δ")),
}
CASES = {
    f"{kind.kind}: {case.name}": case
    for kind in (*QUERIES, *COMPANIONS)
    if kind.kind not in STREAMS and (accounts := kind.accounts()) is not None
    for case in accounts.of(kind)
}


def to_tiles(table: Any, make_table: Callable[[Any], Table] = table_of) -> TiledTable:
    """The table of a case, as points, as a table or as rows that make one."""
    if isinstance(table, Points):
        cells, facts = dict(zip(table.columns, table.values.T, strict=True)), table.schema
        source, schema = pa.table(cells), facts or Schema.of(list(table.columns))
    else:
        whole = table if isinstance(table, Table) else make_table(table)
        source, schema = whole.arrow, whole.schema
    return keep(source, LocalEngine(), schema=schema, name=getattr(table, "name", "made-up"))


def record(case: Case, table: Any, *, is_tiled: bool) -> tuple[Any, Recorder]:
    noise = Recorder(usual=case.usual)
    if not is_tiled:
        return case.answer(table, noise), noise
    if isinstance(case.query, Flags):
        view = view_table(case.query, to_tiles(table))
    elif isinstance(case.query, Threshold):
        view = view_threshold(case.query, to_tiles(table))
    elif isinstance(case.query, Who):
        view = who_audit.view_table(case.query, to_tiles(table, who_audit.table_of))
    else:
        view = case.query.view(to_tiles(table))
    return case.query.answer(view, noise), noise


def levels(noise: Recorder) -> dict[int, list[tuple[int, int]]]:
    """For each choice: how far candidates are from the best, and how many are."""
    return {place: sorted(zip(*pair, strict=True)) for place, pair in noise.errors.items()}


@pytest.fixture(autouse=True)
def several_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wallflower.neighbours.tiles.tile_size", lambda dimension, neighbours: TILE_RECORDS)


@pytest.mark.parametrize("name", [name for name in CASES if name not in IN_MEMORY_ONLY])
def test_draws_on_tiles_are_those_in_memory(name: str) -> None:
    case = CASES[name]
    for table in case.tables:
        if isinstance(table, Points) and table.n < 2:
            continue  # no engine loads a single record
        (value, memory), (tiled_value, tiled) = (record(case, table, is_tiled=is_tiled) for is_tiled in (False, True))
        assert tiled.draws == memory.draws
        assert levels(tiled) == levels(memory)
        assert freeze(tiled_value) == freeze(value)


@pytest.mark.parametrize("name", sorted(IN_MEMORY_ONLY))
def test_other_modes_are_refused_on_tiles(name: str) -> None:
    case = CASES[name]
    with pytest.raises(EngineMismatch):
        case.query.view(to_tiles(case.tables[0]))
