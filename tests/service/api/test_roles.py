"""Who may do what: every route, every role. A route without a row fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from served import ROLES, Answer, Caller, Service, run_service, settings

from wallflower.service.api.callers import LETTER_PATH
from wallflower.service.api.responses import StrictRoute

ASK = {"neighbours": 3, "radius": 0.5, "epsilon": "0.01", "force": True}
SUBSPACES = {"neighbours": 3, "radius": 0.5, "epsilon": "0.01", "size": 1, "force": True}
WATCH = {"threshold": 2.0, "low": -5.0, "high": 5.0, "variance": 1.0, "epsilon": "0.01", "force": True}
EXPLAIN = {
    "record": "3",
    "metric": "b",
    "context": ["a"],
    "domain": {"columns": {"a": {"edges": [5, 10]}, "b": {"low": 0, "high": 100}}, "clip": True},
    "size": 1000,
    "epsilon": "0.01",
    "force": True,
}
SCALE = {"epsilon": "0.01", "force": True}
RADIUS = {"neighbours": 3, "share": "10%", "epsilon": "0.01", "force": True}
DETECTOR = {"contamination": "0.1", "epsilon": "0.01", "force": True}
PROFILE = {"neighbours": 3, "epsilon": "0.01", "force": True}
WHO = {"detector": 1, "most": 2, "epsilon": "0.1"}
TALLY = {"detector": 1, "time": "a", "periods": 3, "rho": "0.1", "force": True}
THRESHOLD = {"detector": 1, "contamination": "0.1", "epsilon": "0.01", "force": True}
SHIFT = {"low": -5.0, "high": 5.0, "centre": 0.0, "variance": 1.0, "epsilon": "0.01", "force": True}
FLAGS = {"detector": 1, "by": ["a"], "epsilon": "0.01", "force": True}
BASELINE = {"low": -5.0, "high": 5.0, "epsilon": "0.01", "force": True}
NOBODY = {"anonymous": 401, "expired": 401, "revoked": 401}


def everybody(status: int) -> dict[str, int]:
    return dict.fromkeys(ROLES, status)


def callers(status: int, other: int | None = None, auditor: int | None = None) -> dict[str, int]:
    """Everybody with a token; perhaps not somebody else's."""
    return NOBODY | {"analyst": status, "other": other or status, "steward": status, "auditor": auditor or status}


def askers(status: int, other: int | None = None) -> dict[str, int]:
    """Everybody with a token but an auditor, who sends nothing."""
    return callers(status, other, auditor=403)


def stewards(status: int) -> dict[str, int]:
    return NOBODY | {"analyst": 403, "other": 403, "auditor": 403, "steward": status}


def readers(status: int) -> dict[str, int]:
    return stewards(status) | {"auditor": status}


# (method, path as the application has it): (path to call, body, what each role gets)
TABLE: dict[tuple[str, str], tuple[str, Any, dict[str, int]]] = {
    ("GET", "/healthz"): ("/healthz", None, everybody(200)),
    ("GET", "/readyz"): ("/readyz", None, everybody(200)),
    ("GET", "/metrics"): ("/metrics", None, stewards(200)),
    ("GET", "/openapi.json"): ("/openapi.json", None, everybody(200)),
    ("GET", "/v1/questions"): ("/v1/questions", None, callers(200)),
    ("GET", "/v1/whoami"): ("/v1/whoami", None, callers(200)),
    ("POST", "/v1/second-factor"): ("/v1/second-factor", None, callers(404)),  # the token has none
    ("GET", "/v1/datasets"): ("/v1/datasets", None, callers(200)),
    ("POST", "/v1/datasets"): ("/v1/datasets", {"name": "new", "schema": {"columns": ["x"]}}, stewards(201)),
    ("DELETE", "/v1/datasets/{dataset}"): ("/v1/datasets/none", None, stewards(404)),
    ("GET", "/v1/datasets/{dataset}/access"): ("/v1/datasets/ward/access", None, readers(200)),
    ("POST", "/v1/datasets/{dataset}/access"): ("/v1/datasets/ward/access", {"analyst": "ana"}, stewards(201)),
    ("DELETE", "/v1/datasets/{dataset}/access/{analyst}"): ("/v1/datasets/ward/access/none", None, stewards(404)),
    ("GET", "/v1/datasets/{dataset}"): ("/v1/datasets/ward", None, callers(200)),
    ("GET", "/v1/datasets/{dataset}/budget"): ("/v1/datasets/ward/budget", None, callers(200)),
    ("POST", "/v1/datasets/{dataset}/budget/grants"): (
        "/v1/datasets/ward/budget/grants",
        {"epsilon": "10", "reason": "study 12"},
        stewards(201),
    ),
    ("POST", "/v1/datasets/{dataset}/budget/declaration"): (
        "/v1/datasets/fresh/budget/declaration",
        {"unit": "record", "units_per_person": 2},
        stewards(201),
    ),
    ("POST", "/v1/datasets/{dataset}/budget/constrained"): (
        "/v1/datasets/fresh/budget/constrained",
        {"epsilon": "1", "reason": "agreed"},
        stewards(201),
    ),
    ("POST", "/v1/datasets/{dataset}/budget/naming"): (
        "/v1/datasets/none/budget/naming",
        {"detector": 1, "most": 5, "reason": "agreed"},
        stewards(404),
    ),
    ("POST", "/v1/datasets/{dataset}/letters"): (
        "/v1/datasets/none/letters",
        {"detector": 1, "column": "id", "identifiers": ["p1"]},
        stewards(404),
    ),
    ("GET", "/v1/letter"): ("/v1/letter", None, everybody(401)),  # its tokens are of persons, not of callers
    ("POST", "/v1/datasets/{dataset}/plan/who"): ("/v1/datasets/none/plan/who", WHO, askers(404)),
    ("POST", "/v1/datasets/{dataset}/ask/who"): ("/v1/datasets/none/ask/who", WHO, askers(404)),
    ("POST", "/v1/datasets/{dataset}/budget/quotas"): (
        "/v1/datasets/ward/budget/quotas",
        {"analyst": "ana", "epsilon": "1"},
        stewards(201),
    ),
    ("GET", "/v1/datasets/{dataset}/releases"): ("/v1/datasets/ward/releases", None, callers(200)),
    ("POST", "/v1/datasets/{dataset}/plan/count"): ("/v1/datasets/ward/plan/count", ASK, askers(200)),
    ("POST", "/v1/datasets/{dataset}/ask/count"): ("/v1/datasets/ward/ask/count", ASK, askers(200)),
    ("POST", "/v1/datasets/{dataset}/plan/subspaces"): ("/v1/datasets/ward/plan/subspaces", SUBSPACES, askers(200)),
    ("POST", "/v1/datasets/{dataset}/ask/subspaces"): ("/v1/datasets/ward/ask/subspaces", SUBSPACES, askers(200)),
    ("POST", "/v1/datasets/{dataset}/plan/watch"): ("/v1/datasets/ward/plan/watch", WATCH, askers(200)),
    ("POST", "/v1/datasets/{dataset}/ask/watch"): ("/v1/datasets/ward/ask/watch", WATCH, askers(200)),
    ("POST", "/v1/datasets/{dataset}/plan/explain"): ("/v1/datasets/ward/plan/explain", EXPLAIN, stewards(200)),
    ("POST", "/v1/datasets/{dataset}/ask/explain"): ("/v1/datasets/ward/ask/explain", EXPLAIN, stewards(200)),
    ("POST", "/v1/datasets/{dataset}/plan/scale"): ("/v1/datasets/ward/plan/scale", SCALE, askers(200)),
    ("POST", "/v1/datasets/{dataset}/ask/scale"): ("/v1/datasets/ward/ask/scale", SCALE, askers(200)),
    ("POST", "/v1/datasets/{dataset}/plan/radius"): ("/v1/datasets/ward/plan/radius", RADIUS, askers(200)),
    ("POST", "/v1/datasets/{dataset}/ask/radius"): ("/v1/datasets/ward/ask/radius", RADIUS, askers(200)),
    ("POST", "/v1/datasets/{dataset}/plan/profile"): ("/v1/datasets/ward/plan/profile", PROFILE, askers(200)),
    ("POST", "/v1/datasets/{dataset}/ask/profile"): ("/v1/datasets/ward/ask/profile", PROFILE, askers(200)),
    ("POST", "/v1/datasets/{dataset}/plan/detector"): ("/v1/datasets/ward/plan/detector", DETECTOR, askers(200)),
    ("POST", "/v1/datasets/{dataset}/ask/detector"): ("/v1/datasets/ward/ask/detector", DETECTOR, askers(200)),
    ("POST", "/v1/datasets/{dataset}/plan/baseline"): ("/v1/datasets/ward/plan/baseline", BASELINE, askers(200)),
    ("POST", "/v1/datasets/{dataset}/ask/baseline"): ("/v1/datasets/ward/ask/baseline", BASELINE, askers(200)),
    # it takes a table with public groups, and there is none
    ("POST", "/v1/datasets/{dataset}/plan/flags"): ("/v1/datasets/none/plan/flags", FLAGS, askers(404)),
    ("POST", "/v1/datasets/{dataset}/ask/flags"): ("/v1/datasets/none/ask/flags", FLAGS, askers(404)),
    ("POST", "/v1/datasets/{dataset}/plan/tally"): ("/v1/datasets/none/plan/tally", TALLY, askers(404)),
    ("POST", "/v1/datasets/{dataset}/ask/tally"): ("/v1/datasets/none/ask/tally", TALLY, askers(404)),
    ("POST", "/v1/datasets/{dataset}/plan/threshold"): ("/v1/datasets/none/plan/threshold", THRESHOLD, askers(404)),
    ("POST", "/v1/datasets/{dataset}/ask/threshold"): ("/v1/datasets/none/ask/threshold", THRESHOLD, askers(404)),
    ("POST", "/v1/datasets/{dataset}/plan/shift"): ("/v1/datasets/ward/plan/shift", SHIFT, askers(200)),
    ("POST", "/v1/datasets/{dataset}/ask/shift"): ("/v1/datasets/ward/ask/shift", SHIFT, askers(200)),
    ("POST", "/v1/datasets/{dataset}/watches/shift"): ("/v1/datasets/beds/watches/shift", SHIFT, askers(201)),
    ("POST", "/v1/datasets/{dataset}/watches/watch"): ("/v1/datasets/beds/watches/watch", WATCH, askers(201)),
    ("GET", "/v1/watches"): ("/v1/watches", None, callers(200)),
    ("GET", "/v1/watches/{watch}"): ("/v1/watches/{watch}", None, callers(200, other=404)),
    ("POST", "/v1/watches/{watch}/observations"): (
        "/v1/watches/{watch}/observations",
        {"rows": [[0.5]]},
        askers(200, other=404),
    ),
    ("GET", "/v1/releases/{number}"): ("/v1/releases/{number}", None, callers(200, other=404)),
    ("GET", "/v1/releases/{number}/arrow"): ("/v1/releases/{number}/arrow", None, callers(200, other=404)),
    ("POST", "/v1/releases/{number}/scores"): (
        "/v1/releases/{detector}/scores",
        {"records": [[0.5, 0.5]]},
        askers(200, other=404),
    ),
    ("POST", "/v1/releases/{number}/drift"): (
        "/v1/releases/{detector}/drift",
        {"records": [[0.5, 0.5]]},
        askers(200, other=404),
    ),
    ("GET", "/v1/jobs/{job}"): ("/v1/jobs/{job}", None, callers(200, other=404)),
    ("GET", "/v1/tokens"): ("/v1/tokens", None, readers(200)),
    ("POST", "/v1/tokens"): ("/v1/tokens", {"name": "cy", "scope": "analyst"}, stewards(201)),
    ("DELETE", "/v1/tokens/{token}"): ("/v1/tokens/{token}", None, stewards(200)),
    ("DELETE", "/v1/tokens/{token}/factor"): ("/v1/tokens/{token}/factor", None, stewards(404)),  # it has none
    ("POST", "/v1/datasets/{dataset}/requests"): ("/v1/datasets/ward/requests", {"reason": "study 12"}, askers(201)),
    ("GET", "/v1/requests"): ("/v1/requests", None, callers(200)),
    ("GET", "/v1/requests/{request}"): ("/v1/requests/{request}", None, callers(200, other=404)),
    ("POST", "/v1/requests/{request}/grant"): (
        "/v1/requests/{granted}/grant",
        {"epsilon": "10", "reason": "study 12"},
        stewards(201),
    ),
    ("POST", "/v1/requests/{request}/decline"): ("/v1/requests/{request}/decline", {"word": "no"}, stewards(201)),
    ("GET", "/v1/agent-questions"): ("/v1/agent-questions", None, callers(403)),  # off without [agents]
    ("POST", "/v1/agent-questions/{question}/confirm"): ("/v1/agent-questions/none/confirm", None, askers(404)),
    ("POST", "/v1/agent-questions/{question}/decline"): ("/v1/agent-questions/none/decline", None, askers(404)),
    ("GET", "/v1/proposals"): ("/v1/proposals", None, readers(200)),
    ("POST", "/v1/proposals/{proposal}/confirm"): ("/v1/proposals/none/confirm", None, stewards(404)),
    ("POST", "/v1/proposals/{proposal}/decline"): ("/v1/proposals/none/decline", None, stewards(404)),
    ("GET", "/v1/people"): ("/v1/people", None, readers(200)),
    ("POST", "/v1/people/{person}/disable"): ("/v1/people/none/disable", None, stewards(404)),
    ("POST", "/v1/people/{person}/enable"): ("/v1/people/none/enable", None, stewards(404)),
    ("GET", "/v1/acts"): ("/v1/acts", None, readers(200)),
    ("GET", "/v1/ledger/entries"): ("/v1/ledger/entries", None, readers(200)),
    ("GET", "/v1/ledger/verify"): ("/v1/ledger/verify", None, readers(200)),
    ("GET", "/v1/ledger/export"): ("/v1/ledger/export", None, readers(200)),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any) -> Iterator[Service]:
    with run_service(settings(tmp_path_factory.mktemp("roles"), failures=10_000)) as running:
        yield running


@pytest.fixture(scope="module")
def roles(service: Service) -> dict[str, Caller]:
    return service.roles()


@pytest.fixture(scope="module")
def things(service: Service, roles: dict[str, Caller]) -> dict[str, str]:
    """What belongs to the analyst: a release, a job, a watch; and a token nobody needs."""
    steward, ana = roles["steward"], roles["analyst"]
    grant = {"epsilon": "10", "reason": "study 12"}
    for name in ("ward", "beds"):
        assert steward.post(f"/v1/datasets/{name}/budget/grants", grant).status == 201
    assert steward.post("/v1/datasets", {"name": "fresh", "schema": {"columns": ["x"]}}).status == 201
    assert steward.post("/v1/datasets/fresh/access", {"analyst": "*"}).status == 201
    made = ana.post("/v1/datasets/ward/ask/count", ASK)
    job = ana.post("/v1/datasets/ward/ask/count", ASK, prefer="respond-async")
    watch = ana.post("/v1/datasets/beds/watches/watch", WATCH)
    spare = steward.post("/v1/tokens", {"name": "dee", "scope": "analyst"})
    assert (made.status, job.status, watch.status, spare.status) == (200, 202, 201, 201)
    detector = ana.post("/v1/datasets/ward/ask/detector", DETECTOR)
    requests = [ana.post(f"/v1/datasets/{name}/requests", {"reason": "study 12"}) for name in ("beds", "fresh")]
    assert [one.status for one in requests] == [201, 201]
    own = {
        "request": requests[0].json["id"],
        "granted": requests[1].json["id"],
        "detector": detector.json["ledger_id"],
        "number": made.json["ledger_id"],
        "job": job.json["id"],
        "watch": watch.json["id"],
    }
    return {name: str(value) for name, value in {**own, "token": spare.json["id"]}.items()}


def list_routes(routes: Any) -> Iterator[tuple[str, str]]:
    for route in routes:
        for method in getattr(route, "methods", None) or ():
            if method != "HEAD":
                yield method, route.path


def test_every_route_has_a_row(service: Service) -> None:
    described = {(method.upper(), path) for path, item in service.app.openapi()["paths"].items() for method in item}
    assert described | set(list_routes(service.app.routes)) == set(TABLE)


def test_routes_answer_as_they_were_made_and_are_not_made_again(service: Service) -> None:
    """A router that is included makes each of its routes a second time, when the first call comes."""
    made = list_routes(route for route in service.app.routes if isinstance(route, StrictRoute))
    assert set(made) == {(method, path) for method, path in TABLE if path.startswith("/v1/")}


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("row", TABLE, ids=" ".join)
def test_each_role_gets_what_the_table_says(
    row: tuple[str, str], role: str, roles: dict[str, Caller], things: dict[str, str]
) -> None:
    path, body, expected = TABLE[row]
    answer = roles[role](row[0], path.format(**things), body)
    assert answer.status == expected[role], answer.content[:500]
    assert_safe(answer)


@pytest.mark.parametrize(
    "row",
    [row for row, (path, _, expected) in TABLE.items() if expected["anonymous"] == 401 and path != LETTER_PATH],
    ids=" ".join,
)
def test_a_monitor_reads_the_metrics_and_nothing_else(
    row: tuple[str, str], service: Service, things: dict[str, str]
) -> None:
    path, body, _ = TABLE[row]
    answer = service.token("eye", "monitor")(row[0], path.format(**things), body)
    assert answer.status == (200 if path == "/metrics" else 403)


def assert_safe(answer: Answer) -> None:
    assert answer.headers["cache-control"] == "no-store"
    if answer.status >= 400:
        assert answer.problem in ("unauthenticated", "forbidden", "not-found")
    if answer.status == 401:
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_detector_scores_what_its_owner_sends(roles: dict[str, Caller], things: dict[str, str]) -> None:
    ana, bo = roles["analyst"], roles["other"]
    made = ana.post("/v1/datasets/ward/ask/detector", DETECTOR)
    path = f"/v1/releases/{made.json['ledger_id']}/scores"
    columns = made.json["value"]["columns"]
    told = ana.post(path, {"records": [[0.5] * len(columns), [1.5] * len(columns)], "contributions": True})
    assert told.status == 200, told.content
    assert told.json["columns"] == columns
    assert [sum(row) for row in told.json["contributions"]] == pytest.approx(told.json["scores"])
    assert all(isinstance(flag, bool) for flag in told.json["flagged"])
    assert bo.post(path, {"records": [[0.5] * len(columns)]}).status == 404
    assert ana.post(f"/v1/releases/{things['number']}/scores", {"records": [[0.5]]}).status == 422  # that is a count
    for wrong in ([[0.5] * (len(columns) + 1)], [], [["x"] * len(columns)], [[0.5], [0.5, 0.5]]):
        assert ana.post(path, {"records": wrong}).status == 422
