"""A data set that cannot be read is one line, closes nothing else, and can be retired."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from page_client import Browser, words
from served import Caller, process, run_service, settings, workers

from wallflower.service.core.problems import Refusal
from wallflower.service.settings import Registration, Settings

SCHEMA = {"columns": {"x": {"low": 0, "high": 9}}}
SURVEY = {"name": "survey", "source": "survey.csv", "schema": SCHEMA}
BODY = {"neighbours": 3, "radius": 0.5, "epsilon": "0.1", "force": True}


@pytest.fixture
def stated(tmp_path: Path) -> Settings:
    """A service where a steward has registered a file."""
    (tmp_path / "survey.csv").write_text("x\n1\n2\n3\n4\n")
    made = settings(tmp_path)
    with run_service(made) as running:
        sue = running.token("sue", "steward")
        assert sue.post("/v1/datasets", SURVEY).status == 201
        assert sue.post("/v1/datasets/survey/access", {"analyst": "*"}).status == 201
        assert sue.post("/v1/datasets/survey/ask/count", BODY).status == 200
    return made


def listed(caller: Caller) -> dict[str, Any]:
    return {one["name"]: one for one in caller.get("/v1/datasets").json["datasets"]}


def break_source(folder: Path, how: str) -> None:
    place = folder / "survey.csv"
    match how:
        case "missing":
            place.rename(folder / "elsewhere.csv")
        case "changed":
            place.write_text("x\n1\n2\n3\n5\n")
        case "outside":
            place.unlink()
            place.symlink_to("/etc/passwd")


@pytest.mark.parametrize("how", ["missing", "changed", "outside"])
def test_a_registered_file_that_cannot_be_read_is_one_line(
    stated: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    break_source(tmp_path, how)
    with caplog.at_level("INFO", "wallflower.service"), run_service(stated) as running:
        ana, sue = running.token("ana"), running.token("sue", "steward")
        found = listed(ana)
        assert {name: one["state"] for name, one in found.items()} == {
            "beds": "ready",
            "survey": "unreadable",
            "ward": "ready",
        }
        assert found["survey"]["reason"] is None
        assert found["survey"]["columns"][0]["name"] == "x"
        assert listed(sue)["survey"]["reason"]
        assert str(tmp_path) not in json.dumps(listed(sue))
        page = Browser(running).sign_in(ana.token)
        assert "This data set cannot be read at the moment." in words(page.get("/ui/"))
        assert page.get("/ui/datasets/survey").status == 200
        assert ana.post("/v1/datasets/survey/ask/count", BODY).problem == "busy"
        assert ana.post("/v1/datasets/ward/ask/count", BODY).status == 200
        assert Caller(running.url).get("/readyz").content == b"ready\n1 data sets cannot be read\n"
        assert b"wallflower_datasets_unreadable 1.0\n" in sue.get("/metrics").content
        told = [record.facts for record in caplog.records if record.message == "data set cannot be read"]
        assert [facts["cause"] for facts in told] == [how]
        assert "survey" not in json.dumps(told)


def test_a_source_that_is_whole_again_is_read_again(stated: Settings, tmp_path: Path) -> None:
    break_source(tmp_path, "missing")
    with run_service(stated) as running:
        ana = running.token("ana")
        assert listed(ana)["survey"]["state"] == "unreadable"
        (tmp_path / "elsewhere.csv").rename(tmp_path / "survey.csv")
        running.app.state.core.catalog.refresh()
        assert listed(ana)["survey"]["state"] == "ready"
        assert Caller(running.url).get("/readyz").content == b"ready\n"


def test_a_retired_data_set_is_gone_and_its_rows_stay(stated: Settings, tmp_path: Path) -> None:
    break_source(tmp_path, "missing")
    with run_service(stated) as running:
        ana, sue = running.token("ana"), running.token("sue", "steward")
        assert ana("DELETE", "/v1/datasets/survey").status == 403
        assert sue("DELETE", "/v1/datasets/ward").problem == "conflict"
        assert sue("DELETE", "/v1/datasets/survey").json == {"name": "survey", "retired": True}
        assert "survey" not in listed(ana)
        assert sue("DELETE", "/v1/datasets/survey").status == 404
        assert sue.get("/v1/acts").json["acts"][-1]["act"] == "data set retired"
        kept = sue.get("/v1/ledger/entries?dataset=survey").json["entries"]
        assert {entry["event"] for entry in kept} >= {"charge", "release"}
        number = next(entry["id"] for entry in kept if entry["event"] == "charge")
        assert sue.get(f"/v1/releases/{number}").status == 200
        assert Caller(running.url).get("/readyz").content == b"ready\n"
        (tmp_path / "survey.csv").write_text("x\n5\n6\n7\n")
        again = sue.post("/v1/datasets", SURVEY)
        assert (again.status, again.json["rows"]) == (201, 3)
        assert again.json["budget"]["spent"]["epsilon"] == "1/10"  # the budget is that of the name


def test_a_steward_retires_on_a_page(stated: Settings) -> None:
    with run_service(stated) as running:
        page = Browser(running).sign_in(running.token("sue", "steward").token)
        assert "/ui/datasets/survey/retire" in words(page.get("/ui/datasets/survey"))
        assert "/ui/datasets/ward/retire" not in words(page.get("/ui/datasets/ward"))
        assert page.get("/ui/datasets/survey/retire").status == 200
        assert page.post("/ui/datasets/survey/retire").status == 303
        assert page.get("/ui/datasets/survey").status == 404


def test_another_machine_with_other_roots_reads_the_same_registration(stated: Settings, tmp_path: Path) -> None:
    other = tmp_path / "other" / "root"
    other.mkdir(parents=True)
    (other / "survey.csv").write_bytes((tmp_path / "survey.csv").read_bytes())
    (tmp_path / "survey.csv").unlink()
    with run_service(stated.override(roots=(str(tmp_path / "none"), str(other)), datasets=())) as running:
        found = listed(running.token("ana"))["survey"]
        assert (found["state"], found["rows"]) == ("ready", 4)


def test_what_one_process_registers_and_retires_the_others_follow(stated: Settings) -> None:
    with run_service(stated) as one, run_service(stated) as two:
        sue = one.token("sue", "steward")
        catalog = two.app.state.core.catalog
        Path(stated.roots[0], "more.csv").write_text("x\n1\n2\n")
        sue.post("/v1/datasets", {"name": "more", "source": "more.csv", "schema": SCHEMA})
        assert listed(Caller(two.url, sue.token))["more"]["state"] == "loading"
        catalog.refresh()
        assert listed(Caller(two.url, sue.token))["more"]["state"] == "ready"
        sue("DELETE", "/v1/datasets/more")
        catalog.refresh()
        assert "more" not in catalog._tables
        Path(stated.roots[0], "more.csv").write_text("x\n1\n2\n3\n")
        sue.post("/v1/datasets", {"name": "more", "source": "more.csv", "schema": SCHEMA})
        assert Caller(two.url, sue.token).get("/v1/datasets/more").json["rows"] == 3


@pytest.mark.slow
def test_a_worker_that_takes_the_place_of_another_does_without_what_it_cannot_read(
    stated: Settings, tmp_path: Path
) -> None:
    """Not even a source of the settings, which was there when the service started, ends it."""
    with run_service(stated) as running:
        token = running.token("ana").token
    with process(stated.override(workers=2)) as (supervisor, url):
        before = workers(supervisor.pid)
        (tmp_path / "ward.csv").unlink()
        break_source(tmp_path, "missing")
        for worker in before:
            os.kill(worker, signal.SIGKILL)
        while set(workers(supervisor.pid)) & set(before) or len(workers(supervisor.pid)) < 2:
            time.sleep(0.05)
        found = None
        while found is None:
            try:
                found = listed(Caller(url, token))
            except OSError:
                time.sleep(0.05)
        assert {name: one["state"] for name, one in found.items()} == {
            "beds": "ready",
            "survey": "unreadable",
            "ward": "unreadable",
        }


def test_a_source_of_the_settings_that_is_missing_stops_the_start(stated: Settings, tmp_path: Path) -> None:
    (tmp_path / "ward.csv").unlink()
    with pytest.raises(Exception, match="ward"), run_service(stated):
        pass


def test_a_data_set_that_is_retired_meanwhile_fails_no_list(stated: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with run_service(stated) as running:
        ana, catalog = running.token("ana"), running.app.state.core.catalog
        find = catalog.find

        def find_retired(name: str) -> Registration:
            if name == "survey":
                raise Refusal("not-found", "as if another process had retired it after the list was read")
            return find(name)

        monkeypatch.setattr(catalog, "find", find_retired)
        assert "ward" in listed(ana)
        assert ana.get("/v1/datasets/ward/budget").status == 200
        assert Browser(running).sign_in(ana.token).get("/ui/").status == 200
