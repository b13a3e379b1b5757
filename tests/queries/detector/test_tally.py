"""Running totals of flags: exact without noise, by numbers, dates and public times, and refused by public facts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import wallflower as wf
from wallflower.audit import ScriptedNoise
from wallflower.checks import (
    explains_every_field,
    explains_its_plan,
    is_a_frozen_value,
    names_itself,
    plans_from_public_facts,
    survives_json,
)
from wallflower.data import Column
from wallflower.drawing.picture import Band
from wallflower.errors import BudgetExhausted, DataError, LossMismatch, ParameterError
from wallflower.queries.detector.audit.tally import tally_findings
from wallflower.queries.detector.periods import NOWHERE, Periods, read_length
from wallflower.queries.detector.tally import Tally

DRAW = np.random.default_rng(11)
N, DAYS = 4_000, 28
VALUES = DRAW.normal(size=(N, 2))
DAY = np.sort(DRAW.integers(0, DAYS, N))
VALUES[(DAY > 20) & (np.arange(N) % 10 == 0)] += 40.0
DATES = np.datetime64("2026-01-01") + DAY.astype("timedelta64[D]")
COLUMNS = (Column("x"), Column("y"))
PRIVATE = wf.Schema(columns=(*COLUMNS, Column("day", unit="days", since="2026-01-01")))
PUBLIC = wf.Schema(columns=(*COLUMNS, Column("day", time=True)))
RHO = wf.Loss.zcdp("10000")


def records(schema, dates=DATES):
    table = pa.table({"x": VALUES[:, 0], "y": VALUES[:, 1], "day": pa.array(dates.astype(str))})
    return wf.load(table, schema=schema, name="visits")


@pytest.fixture
def ask(tmp_path):
    with wf.Ledger.open(tmp_path / "ledger.db") as book:
        book.grant("visits", wf.Loss.zcdp("500000"), by="steward", reason="tests")

        def open_visits(schema):
            return wf.open(records(schema), ledger=book)

        yield open_visits


@pytest.mark.parametrize(("schema", "public"), [(PRIVATE, False), (PUBLIC, True)], ids=["private", "public"])
def test_with_much_loss_they_are_the_running_sums_of_flags(ask, schema, public):
    visits = ask(schema)
    model = visits.detector(epsilon="200", contamination="4%", columns=("x", "y"))
    flags = model.predict(VALUES)
    found = visits.tally(
        detector=model, time="day", start="2026-01-01", every="1 week", periods=4, public_time=public, rho="10000"
    )
    assert [row["flagged"] for row in found.value] == [int(flags[7 * week > DAY].sum()) for week in (1, 2, 3, 4)]
    assert [row["until"] for row in found.value] == ["2026-01-08", "2026-01-15", "2026-01-22", "2026-01-29"]
    assert found.guarantee.loss == wf.Loss.zcdp("10000")
    assert found.to_csv().splitlines()[0] == "until,flagged,low,high"
    assert found.extras["last_interval"][0] <= found.value[-1]["flagged"] <= found.extras["last_interval"][1]
    assert found.plot().axes


def test_records_outside_of_all_periods_count_in_none(ask):
    visits = ask(PRIVATE)
    model = visits.detector(epsilon="200", contamination="4%", columns=("x", "y"))
    flags = model.predict(VALUES)
    found = visits.tally(detector=model, time="day", start="2026-01-06", every="2 days", periods=3, rho="10000")
    inside = (DAY >= 5) & (DAY < 11)
    assert found.value[-1]["flagged"] == int(flags[inside].sum())


def test_the_picture_is_a_band_and_the_text_tells_the_last_total(ask):
    visits = ask(PRIVATE)
    model = visits.detector(epsilon="10", contamination="4%", columns=("x", "y"))
    found = visits.tally(detector=model.ledger_id, time="day", periods=DAYS, rho="0.1", force=True)
    query = Tally(detector=model.ledger_id, time="day", periods=DAYS, loss=wf.Loss.zcdp("0.1"))
    drawn = query.picture(found.value, found.facts)
    assert isinstance(drawn, Band)
    assert drawn.table().headings == ("period", "flagged so far", "95 % from", "to")
    assert all(low <= middle <= high for low, middle, high in zip(drawn.low, drawn.middle, drawn.high, strict=True))
    assert f"{found.value[-1]['flagged']:,}" in found.text


def test_a_key_replays_the_same_totals_and_costs_nothing(ask):
    visits = ask(PRIVATE)
    model = visits.detector(epsilon="10", contamination="4%", columns=("x", "y"))
    asked = {"detector": model, "time": "day", "periods": DAYS, "rho": "0.1", "idempotency_key": "week", "force": True}
    first, again = visits.tally(**asked), visits.tally(**asked)
    assert again.replayed
    assert again.value == first.value


def test_a_pure_budget_refuses_it_before_the_look(tmp_path):
    with wf.Ledger.open(tmp_path / "ledger.db") as book:
        book.grant("visits", wf.Loss("100"), by="steward", reason="tests")
        visits = wf.open(records(PRIVATE), ledger=book)
        model = visits.detector(epsilon="10", contamination="4%", columns=("x", "y"))
        charges = len(book.history("visits", event="charge"))
        with pytest.raises(BudgetExhausted):
            visits.tally(detector=model, time="day", periods=DAYS, rho="0.1", force=True)
        assert len(book.history("visits", event="charge")) == charges


def test_attacks_end_as_they_must():
    assert [finding.name for finding in tally_findings() if not finding.ok] == []


@pytest.mark.parametrize(
    "check",
    [
        names_itself,
        explains_every_field,
        is_a_frozen_value,
        survives_json,
        plans_from_public_facts,
        explains_its_plan,
    ],
)
def test_it_keeps_the_contract_of_a_query(check):
    check(Tally.example())


def test_a_public_time_needs_less_noise():
    query = Tally(detector=1, time="day", periods=365, loss=wf.Loss.zcdp("0.02"))
    assert replace(query, public_time=True).reach < 0.8 * query.reach
    plan = query.plan(n=100_000, dimension=3)
    chosen, sums = plan.options
    assert sums.figures["half_width"] > 7 * chosen.figures["half_width"]
    assert plan.useful
    assert not query.plan(n=500, dimension=3).useful


@pytest.mark.parametrize(
    ("changed", "error", "match"),
    [
        ({"loss": wf.Loss("1")}, LossMismatch, "rho"),
        ({"loss": wf.Loss.zcdp("0")}, ParameterError, "rho"),
        ({"periods": 0}, ParameterError, "periods"),
        ({"periods": 10_001}, ParameterError, "periods"),
        ({"every": "0"}, ParameterError, "every"),
        ({"every": "two days"}, ParameterError, "every"),
        ({"detector": 0}, ParameterError, "detector"),
        ({"time": ""}, ParameterError, "time"),
    ],
)
def test_what_cannot_be_is_refused(changed, error, match):
    query = Tally(detector=1, time="day", periods=3, loss=wf.Loss.zcdp("1"))
    with pytest.raises(error, match=match):
        replace(query, **changed)


@pytest.mark.parametrize(
    ("schema", "more", "error", "match"),
    [
        (PUBLIC, {}, ParameterError, "public_time"),
        (PRIVATE, {"public_time": True}, DataError, "time = true"),
        (PRIVATE, {"start": "soon"}, ParameterError, "start"),
        (PUBLIC, {"public_time": True}, ParameterError, "start"),
        (PUBLIC, {"public_time": True, "start": "2026-01-01"}, ParameterError, "unit"),
    ],
)
def test_what_does_not_fit_the_schema_is_refused_before_any_look(schema, more, error, match):
    with pytest.raises(error, match=match):
        Tally(detector=1, time="day", periods=3, loss=wf.Loss.zcdp("1"), **more).view(records(schema))


def test_periods_of_numbers_dates_and_public_times():
    plain = Periods.of(Column("t", low=10), start=None, every="2.5", count=3)
    assert plain.places(np.array([9.9, 10, 12.4, 12.5, 17.4, 17.5, np.nan, np.inf])).tolist() == [
        *(NOWHERE, 0, 0, 1, 2, NOWHERE, NOWHERE, NOWHERE)
    ]
    assert [plain.end(at) for at in range(3)] == ["12.5", "15", "17.5"]
    hours = Periods.of(Column("t", time=True), start="2026-01-01T06:00", every="6 hours", count=4)
    at = ["2026-01-01T05:59:59", "2026-01-01T06:00", "2026-01-01T13:00+01:00", "2026-01-02", "soon", None]
    assert hours.places(hours.numbers(at)).tolist() == [NOWHERE, 0, 1, 3, NOWHERE, NOWHERE]
    assert hours.end(2) == "2026-01-02"
    assert hours.end(0) == "2026-01-01T12:00:00"
    seconds = Periods.of(Column("t", unit="seconds", since="2026-01-01"), start="2026-01-02", every="1 day", count=2)
    assert (seconds.start, seconds.length) == (86_400.0, 86_400.0)
    assert read_length("2 weeks") == read_length("2week")


def test_a_total_is_never_below_zero_or_above_the_records():
    query = Tally(detector=1, time="day", periods=3, loss=wf.Loss.zcdp("1"))
    periods = Periods(start=0.0, length=1.0, count=3)
    for far in (-(10**6), 10**6):
        rows = query.read_totals(np.array([far] * 3), periods, 50)
        assert all(0 <= row["flagged"] <= 50 for row in rows)
    assert query.read_totals(query.factors.hide(np.array([1, 0, 2]), query.loss, ScriptedNoise()), periods, 50) == [
        {"until": "1", "flagged": 1},
        {"until": "2", "flagged": 1},
        {"until": "3", "flagged": 3},
    ]
