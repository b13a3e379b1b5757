"""A record that is named by an identifier: records with another identifier decide nothing before the charge."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from wallflower.data import Column, load
from wallflower.data.scans import load_into
from wallflower.errors import DataError
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.queries.explain import Explain
from wallflower.release import release
from wallflower.schema import Schema

DOMAIN = Schema(columns=(Column("sex", categories=("f", "m")), Column("pay", low=0.0, high=10.0)), clip=True)
QUERY = Explain(
    record="p1",
    identifier="id",
    metric="pay",
    context=("sex",),
    domain=DOMAIN,
    size=10,
    loss=Loss("1"),
    detector="tukey",
)
Record = tuple[str, str, float]
KINDS: tuple[Record, ...] = (("p1", "f", 9.0), ("p1", "m", 1.0), ("p2", "f", 1.0), ("p3", "m", 9.0))


def frame(records: tuple[Record, ...]) -> Any:
    names, groups, pays = zip(*records, strict=True)
    return pa.table({"id": list(names), "sex": list(groups), "pay": list(pays)})


def verdict(records: tuple[Record, ...], engine: str) -> tuple[str, Any]:
    """A refusal in its words, or the record that is asked about."""
    facts, made = QUERY.wants(), frame(records)
    table = (
        load(made, schema=facts, name="t") if engine == "memory" else load_into(made, "tiles", schema=facts, name="t")
    )
    try:
        view: Any = QUERY.view(table)
    except DataError as refusal:
        return "refused", str(refusal)
    shown = view.table if engine == "memory" else None
    return "asked", None if shown is None else float(shown.values[shown.record])


@pytest.mark.parametrize(("engine", "most"), [("memory", 3), ("tiles", 2)])
def test_nobody_else_decides_between_answer_and_refusal(engine: str, most: int) -> None:
    found = defaultdict(set)
    for n in range(2, most + 1):  # a table has two records at least
        for records in product(KINDS, repeat=n):
            named = tuple(sorted(record for record in records if record[0] == "p1"))
            found[named].add(verdict(records, engine))
    assert all(len(verdicts) == 1 for verdicts in found.values())
    for named, [(said, _)] in found.items():
        assert (said == "asked") is (len(named) == 1)


def test_a_shared_identifier_is_refused_before_the_charge_and_quoted_nowhere(tmp_path: Any) -> None:
    table = load(frame((KINDS[0], KINDS[1], KINDS[2])), schema=QUERY.wants(), name="t")
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        with pytest.raises(DataError, match="not exactly one") as refusal:
            release(QUERY, table, ledger)
        assert ledger.history() == []
    assert "p1" not in str(refusal.value)
