"""Who may see which data set: closed until it is opened, and to others it does not exist."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from page_client import COUNT, Browser, words
from served import Caller, Service, run_service, settings, ward

from wallflower.errors import ParameterError
from wallflower.privacy import Loss
from wallflower.service.settings import Settings

ASK = {"neighbours": 3, "radius": 0.5, "epsilon": "0.01", "force": True}
WATCH = {"threshold": 2.0, "low": -5.0, "high": 5.0, "epsilon": "0.01", "force": True}
CALLS: list[tuple[str, str, Any]] = [
    ("GET", "/v1/datasets/tax", None),
    ("GET", "/v1/datasets/tax/budget", None),
    ("GET", "/v1/datasets/tax/releases", None),
    ("POST", "/v1/datasets/tax/plan/count", ASK),
    ("POST", "/v1/datasets/tax/ask/count", ASK),
    ("POST", "/v1/datasets/tax/requests", {"reason": "study 12"}),
    ("POST", "/v1/datasets/tax/watches/watch", WATCH),
]
PAGES = [
    ("GET", "/ui/datasets/tax", None),
    ("GET", "/ui/datasets/tax/plan/count", None),
    ("GET", "/ui/datasets/tax/confirm/count", None),
    ("POST", "/ui/datasets/tax/plan/count", COUNT),
    ("POST", "/ui/datasets/tax/confirm/count", COUNT),
    ("POST", "/ui/datasets/tax/ask/count", COUNT),
    ("GET", "/ui/datasets/tax/request", None),
    ("POST", "/ui/datasets/tax/request", {"reason": "study 12"}),
    ("POST", "/ui/datasets/tax/watches/watch", {"threshold": "2", "low": "-5", "high": "5", "epsilon": "0.01"}),
]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A data set for all analysts, and one that is closed and shares its budget."""
    stated = settings(tmp_path)
    (tmp_path / "tax.csv").write_text("a,b\n" + "".join(f"{row},{row * 7 % 31}\n" for row in range(30)))
    schema = replace(ward(tmp_path).schema, account="ward")
    tax = replace(ward(tmp_path), name="tax", source=str(tmp_path / "tax.csv"), schema=schema, analysts=())
    with run_service(replace(stated, datasets=(*stated.datasets, tax))) as running:
        running.app.state.core.ledger.grant("ward", Loss("5"), by="sue")
        yield running


def names(caller: Caller) -> list[str]:
    return [one["name"] for one in caller.get("/v1/datasets").json["datasets"]]


def test_a_closed_data_set_does_not_exist_for_an_analyst(service: Service) -> None:
    ana = service.token("ana")
    page = Browser(service).sign_in(ana.token)
    assert names(ana) == ["beds", "ward"]
    for method, path, body in CALLS:
        answer = ana(method, path, body)
        missing = ana(method, path.replace("/tax", "/none"), body)
        assert (answer.status, answer.json) == (missing.status, missing.json), path
        assert answer.problem == "not-found"
    for method, path, form in PAGES:
        answer = page.get(path) if method == "GET" else page.post(path, form)
        assert answer.status == 404, path
    for path in ("/ui/", "/ui/releases", "/ui/requests", "/ui/streams", "/ui/datasets/ward"):
        assert "tax" not in words(page.get(path)), path
    for path in ("/v1/datasets", "/v1/datasets/ward", "/v1/datasets/ward/budget"):
        assert "tax" not in json.dumps(ana.get(path).json), path
    assert not service.app.state.core.ledger.history("tax", event="charge")


def test_a_steward_opens_and_closes_it(service: Service) -> None:
    ana, bo, sue = service.token("ana"), service.token("bo"), service.token("sue", "steward")
    at = "/v1/datasets/tax/access"
    assert sue.get(at).json == {"dataset": "tax", "analysts": [], "groups": []}
    assert sue.post(at, {"analyst": "anna"}).problem == "parameter"  # nobody has this name
    assert sue.post(at, {"analyst": "ana"}).json["analysts"] == ["ana"]
    assert (names(ana), names(bo)) == (["beds", "tax", "ward"], ["beds", "ward"])
    assert "tax" in json.dumps(ana.get("/v1/datasets/ward/budget").json)
    number = ana.post("/v1/datasets/tax/ask/count", ASK).json["ledger_id"]
    assert bo.post("/v1/datasets/tax/ask/count", ASK).status == 404
    assert sue("DELETE", f"{at}/bo").status == 404
    assert sue("DELETE", f"{at}/ana").json["analysts"] == []
    assert names(ana) == ["beds", "ward"]
    assert ana.post("/v1/datasets/tax/ask/count", ASK).status == 404
    assert ana.get(f"/v1/releases/{number}").status == 200  # what was answered was answered
    assert sue.post(at, {"analyst": "*"}).json["analysts"] == ["*"]
    assert names(bo) == ["beds", "tax", "ward"]
    assert sue("DELETE", "/v1/datasets/ward/access/*").problem == "conflict"  # the settings say so
    acts = [(one["act"], one["about"]) for one in sue.get("/v1/acts").json["acts"]]
    assert acts == [("access given", "tax to ana"), ("access taken", "tax from ana"), ("access given", "tax to *")]


def test_a_watch_stops_with_the_access(service: Service) -> None:
    ana, sue = service.token("ana"), service.token("sue", "steward")
    body = {"name": "pulse", "schema": {"columns": {"t": {"low": -5, "high": 5}}}}
    assert sue.post("/v1/datasets", body | {"protects": {"rows": "time", "unit": "entry"}}).status == 201
    assert ana.post("/v1/datasets/pulse/watches/watch", WATCH).status == 404
    sue.post("/v1/datasets/pulse/access", {"analyst": "ana"})
    watch = ana.post("/v1/datasets/pulse/watches/watch", WATCH).json["id"]
    assert ana.post(f"/v1/watches/{watch}/observations", {"rows": [[0.5]]}).status == 200
    sue("DELETE", "/v1/datasets/pulse/access/ana")
    assert ana.post(f"/v1/watches/{watch}/observations", {"rows": [[0.5]]}).status == 404
    assert ana.get(f"/v1/watches/{watch}").status == 404


def test_a_new_data_set_is_closed_until_the_first_grant_and_again_after_it_is_retired(
    service: Service, tmp_path: Path
) -> None:
    ana, sue = service.token("ana"), service.token("sue", "steward")
    (tmp_path / "new.csv").write_text("x\n1\n2\n3\n")
    body = {"name": "new", "source": "new.csv", "schema": {"columns": {"x": {"low": 0, "high": 9}}}}
    for _ in range(2):
        assert sue.post("/v1/datasets", body).status == 201
        assert "new" not in names(ana)
        sue.post("/v1/datasets/new/access", {"analyst": "ana"})
        assert "new" in names(ana)
        assert sue("DELETE", "/v1/datasets/new").status == 200


def test_a_steward_opens_it_on_a_page(service: Service) -> None:
    ana = service.token("ana")
    page = Browser(service).sign_in(service.token("sue", "steward").token)
    at = "/ui/datasets/tax/access"
    assert f'href="{at}"' in words(page.get("/ui/datasets/tax"))
    assert "Closed" in words(page.get(at))
    assert page.post(at, {"analyst": "nobody"}).status == 422
    assert page.post(at, {"analyst": "ana"}).status == 303
    assert "tax" in names(ana)
    assert 'name="take" value="ana"' in words(page.get(at))
    assert page.post(at, {"take": "ana"}).status == 303
    assert "tax" not in names(ana)


def test_the_settings_open_a_data_set_by_names(tmp_path: Path) -> None:
    (tmp_path / "ward.csv").write_text("a,b\n" + "".join(f"{row},{row}\n" for row in range(9)))
    text = 'port = 0\nledger = "ledger.db"\n[[datasets]]\nname = "ward"\nsource = "ward.csv"\n'
    (tmp_path / "service.toml").write_text(text + 'analysts = ["ana"]\n')
    stated = Settings.read(tmp_path / "service.toml")
    assert Settings.from_json(stated.to_json()) == stated
    with run_service(stated) as running:
        assert (names(running.token("ana")), names(running.token("bo"))) == (["ward"], [])
    (tmp_path / "service.toml").write_text(text)
    assert Settings.read(tmp_path / "service.toml").datasets[0].analysts == ()
    (tmp_path / "service.toml").write_text(text + "analysts = [1]\n")
    with pytest.raises(ParameterError, match="analysts"):
        Settings.read(tmp_path / "service.toml")
