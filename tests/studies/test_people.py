"""The study of rows and people: it runs without any data, and what it says of each unit is so."""

from __future__ import annotations

import pytest
from studies.people import homicide, measure, tables, visits

from wallflower.errors import SourceError


def test_units_are_promised_and_booked_as_declared() -> None:
    row, person, rows = measure(visits(), runs=2)
    assert (row.records, person.records) == (visits().rows.num_rows, 3000)
    assert [result.booked for result in (row, person, rows)] == ["ε = 0.5", "ε = 0.5", "ε = 1"]
    assert "one record" in row.promise
    assert "patient_no" in person.promise
    assert "at most 2" in rows.promise
    assert row.exact is not None
    assert person.exact is not None
    assert rows.exact is None
    assert abs(person.mean_answer - person.exact) < 100


def test_without_data_the_synthetic_visits_remain(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("WALLFLOWER_DATA", raising=False)
    assert [table.name for table in tables()] == ["synthetic visits"]
    assert "WALLFLOWER_DATA" in capsys.readouterr().out


def test_rows_of_a_real_incident_repeat() -> None:
    try:
        table = homicide()
    except SourceError as error:
        pytest.skip(str(error))
    _, person, _ = measure(table, runs=1)
    assert person.records < table.rows.num_rows
    assert "mapid" in person.promise
