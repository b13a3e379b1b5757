"""The comparison of seasons runs, and the docs say what was measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wallflower.errors import SourceError
from wallflower.papers.data.tables import find_file

FOLDER = Path(__file__).parents[2] / "benchmarks"


def rows(group: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / "results.json").read_text())["seasons"][group]
    return found


def test_the_table_of_the_docs_states_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    from seasons_tables import seasons  # noqa: PLC0415 - a script beside its neighbours

    table = seasons(json.loads((FOLDER / "results.json").read_text()))
    assert table in (FOLDER.parent / "docs" / "watch.md").read_text(encoding="utf-8")


def test_on_every_stream_of_nab_nine_tenths_of_what_the_rule_finds_were_found() -> None:
    assert len(rows("NAB")) == 14
    for row in rows("NAB"):
        assert row["private"] >= 0.9 * row["plain"], row["name"]
        assert row["private_alarms"] == pytest.approx(row["plain_alarms"], rel=0.06), row["name"]


def test_a_day_of_half_hours_is_watched_within_a_tenth_too_and_so_are_pumps() -> None:
    for group in ("days", "SKAB"):
        plain, private = (sum(row[name] for row in rows(group)) for name in ("plain", "private"))
        assert private >= 0.9 * plain, group


def test_of_airports_no_private_bit_finds_nine_tenths_and_ours_finds_nine_tenths_of_what_one_can() -> None:
    always, weekly = rows("flights")
    for row in (always, weekly):
        assert row["private"] <= row["best"] < 0.9 * row["plain"]
    assert always["private"] >= 0.9 * always["best"]


@pytest.mark.heavy
def test_a_group_is_measured_where_its_files_are() -> None:
    try:
        find_file("nab/combined_windows.json")
    except SourceError as reason:
        pytest.skip(str(reason))
    done = subprocess.run(
        [sys.executable, str(FOLDER / "seasons.py"), "days", "--runs=2"], check=True, capture_output=True
    )
    (row,) = json.loads(done.stdout)
    assert 0 <= row["private"] <= row["labelled"]
    assert row["plain_alarms"] == round(0.05 * row["observations"])
