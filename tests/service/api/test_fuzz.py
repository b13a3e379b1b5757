"""The OpenAPI description, and a fuzzer that believes it: whatever is sent, nothing breaks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as fuzzing
from hypothesis.strategies import sampled_from
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from served import LONG, Service, run_service, settings

from wallflower.privacy import Loss
from wallflower.queries import QUERIES

SECONDS = 20
CHECKS = [response_schema_conformance, status_code_conformance, content_type_conformance]


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any) -> Iterator[Service]:
    stated = settings(tmp_path_factory.mktemp("fuzz"), quantum_seconds=0, failures=10_000, body_bytes=2**18)
    with run_service(stated) as running:
        for name in ("ward", "beds"):
            running.app.state.core.ledger.grant(name, Loss("1000"), by="sue")
        yield running


def test_the_description_is_openapi_with_examples_and_problems(service: Service) -> None:
    described = service[None].get("/openapi.json").json
    assert described["openapi"].startswith("3.1")
    assert described["components"]["schemas"]["Problem"]["required"] == ["type", "title", "status", "detail"]
    for question in QUERIES:
        asked = described["components"]["schemas"][question.__name__]
        assert asked["examples"], question.kind
        assert asked["additionalProperties"] is False
        assert all(field.get("description") for field in asked["properties"].values())
        assert asked["properties"]["epsilon"]["anyOf"][0]["type"] == "string"
    names = [operation["operationId"] for item in described["paths"].values() for operation in item.values()]
    assert len(set(names)) == len(names)
    assert {"ask_count", "plan_count", "release", "datasets", "open_watch", "grant"} <= set(names)
    for path, item in described["paths"].items():
        for operation in item.values():
            assert operation["description"]
            assert operation["tags"]
            for status, answer in operation["responses"].items():
                if path.startswith("/v1") and status in ("200", "201", "202"):
                    kinds = answer["content"]
                    assert all(kind["schema"] for kind in kinds.values()), (path, status)
                    assert "application/json" not in kinds or kinds["application/json"]["example"], (path, status)
            if path.startswith("/v1"):
                assert operation["security"]
                assert "application/problem+json" in operation["responses"]["401"]["content"]


def test_every_example_can_be_planned_or_is_refused_with_a_reason(service: Service) -> None:
    sue = service.token("sue", "steward")
    for form in sue.get("/v1/questions").json["questions"]:
        answer = sue.post(f"/v1/datasets/ward/plan/{form['kind']}", form["example"])
        # an example may name a release, and there is none yet
        assert answer.status == 200 or answer.problem in ("parameter", "data", "not-found")


@pytest.mark.slow
def test_whatever_is_sent_nothing_breaks(service: Service) -> None:
    """Whatever it is, a steward and an analyst both send it: making it up takes longer than answering."""
    tokens = [f"Bearer {service.token('fay', scope).token}" for scope in ("steward", "analyst")]
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    for operation in operations:
        fuzz(operation, tokens, time.monotonic() + SECONDS / len(operations))
    assert service[None].get("/readyz").status == 200


def fuzz(operation: Any, tokens: list[str], until: float) -> None:
    @fuzzing(
        max_examples=20,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), name=sampled_from(["ward", "beds", None]))
    def unbroken(case: Any, name: str | None) -> None:
        if time.monotonic() >= until:
            return
        if name is not None and "dataset" in (case.path_parameters or {}):
            case.path_parameters["dataset"] = name
        for token in tokens if "Authorization" in (case.headers or {}) else tokens[:1]:
            if "Authorization" in (case.headers or {}):
                case.headers["Authorization"] = token
            answer = case.call(timeout=LONG)
            assert answer.status_code < 500, (case.as_curl_command(), answer.text[:500])
            if answer.status_code >= 400:
                assert answer.headers["content-type"] == ["application/problem+json"]
            case.validate_response(answer, checks=CHECKS)

    unbroken()
