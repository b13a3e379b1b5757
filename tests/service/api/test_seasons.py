"""A baseline by phase over HTTP: named by its number, only by whoever paid for it, for tables and for live streams."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from served import TIMED, Caller, Service, run_service, settings, ward

import wallflower as wf
from wallflower.errors import ParameterError, PrivacyError
from wallflower.privacy import Loss
from wallflower.remote import connect
from wallflower.schema import Column, Schema
from wallflower.service.settings import Registration

RIDES = "/v1/datasets/rides"
LEARN = {"season": "hour-of-day", "time": "at", "epsilon": "300"}
ASK = {"threshold": 5.0, "epsilon": "64"}
STRANGE = 51
SCHEMA = Schema(columns=(Column("at", time=True), Column("rides", low=0, high=100)), protects=TIMED)


def rides() -> tuple[list[str], list[float]]:
    values = [(20.0 if place % 24 < 6 else 80.0) + place // 24 % 5 for place in range(240)]
    values[STRANGE - 1] = 50.0
    return [f"2024-01-{1 + at // 24:02} {at % 24:02}:00" for at in range(240)], values


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("rides")
    lines = [f"{at},{value}" for at, value in zip(*rides(), strict=True)]
    (folder / "rides.csv").write_text("\n".join(["at,rides", *lines]) + "\n")
    own = Registration(analysts=("*",), name="rides", source=str(folder / "rides.csv"), schema=SCHEMA)
    with run_service(settings(folder, datasets=(own, ward(folder)))) as running:
        running.app.state.core.ledger.grant("rides", Loss("10000"), by="sue", reason="a test")
        yield running


@pytest.fixture(scope="module")
def ana(service: Service) -> Caller:
    return service.token("ana")


@pytest.fixture(scope="module")
def learnt(ana: Caller) -> int:
    told: int = ana.post(f"{RIDES}/ask/baseline", LEARN).json["ledger_id"]
    return told


def test_a_table_is_watched_by_the_number_of_a_baseline(ana: Caller, learnt: int) -> None:
    assert ana.post(f"{RIDES}/plan/watch", {**ASK, "baseline": learnt}).status == 200
    made = ana.post(f"{RIDES}/ask/watch", {**ASK, "baseline": learnt}).json
    assert made["value"]["flagged"] == [STRANGE]
    assert made["parameters"]["baseline"]["season"] == "hour-of-day", "the constants, whatever becomes of the ledger"


def test_a_live_watch_takes_times_with_its_observations(ana: Caller, learnt: int) -> None:
    watch = ana.post(f"{RIDES}/watches/watch", {**ASK, "baseline": learnt}).json["id"]
    times, values = rides()
    place = f"/v1/watches/{watch}/observations"
    assert ana.post(place, {"rows": values}).problem == "data"
    assert ana.post(place, {"rows": values, "times": times[1:]}).problem == "data"
    told = ana.post(place, {"rows": values, "times": times}).json["outlier"]
    assert [number for number, flag in enumerate(told, 1) if flag] == [STRANGE]


def test_a_baseline_belongs_to_who_paid_for_it(service: Service, ana: Caller, learnt: int) -> None:
    before = len(service.app.state.core.ledger.history("rides", event="charge"))
    bo, asked = service.token("bo"), {**ASK, "baseline": learnt}
    for kind in ("plan/watch", "ask/watch", "watches/watch"):
        assert bo.post(f"{RIDES}/{kind}", asked).problem == "not-found"
        assert ana.post(f"{RIDES}/{kind}", {**ASK, "baseline": learnt + 1000}).problem == "not-found"
    assert len(service.app.state.core.ledger.history("rides", event="charge")) == before


def test_another_release_or_another_data_set_is_refused(service: Service, ana: Caller, learnt: int) -> None:
    service.app.state.core.ledger.grant("ward", Loss("100"), by="sue", reason="a test")
    other = ana.post("/v1/datasets/ward/ask/scale", {"epsilon": "20", "force": True}).json["ledger_id"]
    refused = ana.post(f"{RIDES}/ask/watch", {**ASK, "baseline": other})
    assert "not a release of baseline" in refused.json["detail"]
    strange = ana.post("/v1/datasets/ward/ask/watch", {**ASK, "baseline": learnt})
    assert (strange.status, strange.problem) == (422, "data")


def test_python_names_it_by_its_number_too(service: Service, ana: Caller, learnt: int, tmp_path: Path) -> None:
    remote = connect(service.url, ana.token).open("rides")
    assert remote.plan.watch(**ASK, baseline=learnt).useful
    assert remote.watch(**ASK, baseline=learnt).value["flagged"] == [STRANGE]
    times, values = rides()
    query = wf.Watch(threshold=5.0, loss=Loss("64"), baseline=remote.releases()[0])
    live = remote.watching(query)
    assert live.decide_many(values[:60], times=times[:60]).index(True) == STRANGE - 1
    assert live.decide(values[60], time=times[60]) is False
    with pytest.raises(ParameterError, match="is a ledger entry"):
        wf.Watch(threshold=5.0, loss=Loss("64"), baseline=learnt)
    _ask_here(tmp_path, pd.DataFrame(dict(zip(("at", "rides"), rides(), strict=True))))


def _ask_here(folder: Path, cells: pd.DataFrame) -> None:
    with wf.Ledger.open(folder / "book.db") as book:
        book.grant("here", Loss("1000"), by="sue", reason="a test")
        here = wf.open(cells, schema=SCHEMA, name="here", ledger=book)
        made = here.baseline(season="hour-of-day", time="at", epsilon="300")
        assert here.plan.watch(**ASK, baseline=made.ledger_id).useful
        assert here.watch(**ASK, baseline=made.ledger_id).value["flagged"] == [STRANGE]
        with pytest.raises(PrivacyError, match="not a release of baseline"):
            here.watch(**ASK, baseline=made.ledger_id + 100)
