"""`wf.connect` and `--server`: the same verbs, the same objects, the same errors."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from served import Service as Served
from served import run_service, settings

import wallflower as wf
from above import Above
from wallflower import cli, remote
from wallflower.dataset import Dataset
from wallflower.errors import (
    BudgetExhausted,
    DataError,
    KeyConflict,
    NotAllowed,
    ParameterError,
    PrivacyError,
    ServiceError,
    StateError,
)
from wallflower.privacy import Loss
from wallflower.queries import QUERIES
from wallflower.remote import Service, connect, error_of
from wallflower.service.core.problems import KINDS, make_document

ASK: dict[str, Any] = {"neighbours": 3, "radius": 0.5}


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any) -> Iterator[Served]:
    stated = settings(tmp_path_factory.mktemp("connected"), async_after_seconds=0.05, quantum_seconds=0.1)
    with run_service(stated) as running:
        ledger = running.app.state.core.ledger
        for name in ("ward", "beds"):
            ledger.grant(name, Loss("50"), by="sue")
        yield running


@pytest.fixture
def ana(service: Served) -> Service:
    return connect(service.url, service.token("ana").token)


@pytest.fixture
def local_dataset(service: Served) -> Dataset:
    core = service.app.state.core
    return Dataset(core.catalog.table("ward"), core.ledger, "ana")


def test_it_has_the_verbs_of_an_opened_data_set(ana: Service, local_dataset: Dataset) -> None:
    remote = ana.open("ward")
    for question in QUERIES:
        assert inspect.signature(getattr(remote, question.kind)) == inspect.signature(
            getattr(local_dataset, question.kind)
        )
        assert getattr(remote.plan, question.kind).__doc__ == getattr(local_dataset.plan, question.kind).__doc__
    assert set(dir(local_dataset)) - set(dir(remote)) <= {
        *("_table", "_ledger", "_analyst", "_source", "_is_compared", "is_paid")
    }
    with pytest.raises(AttributeError, match="count"):
        _ = remote.cuont
    assert "ask count" in repr(remote)
    assert ana["ward"].name == "ward"


def test_plans_budgets_and_releases_are_the_same_objects(ana: Service, local_dataset: Dataset) -> None:
    remote = ana.open("ward")
    assert remote.plan.count(**ASK, epsilon="0.5") == local_dataset.plan.count(**ASK, epsilon="0.5")
    assert remote.plan("count", **ASK, rho="0.5") == local_dataset.plan("count", **ASK, rho="0.5")
    price = remote.quote(wf.Count(**ASK, loss=Loss("0.5")))
    assert price.stated == price.booked == Loss("0.5")
    assert (price.factor, price.affords, price.refusal) == (1, 100, None)
    made = remote.count(**ASK, epsilon="0.5", idempotency_key="one", force=True)
    assert made.to_dict() == local_dataset.releases()[-1].to_dict()
    assert remote.count(**ASK, epsilon="0.5", idempotency_key="one", force=True).replayed
    assert remote.budget() == local_dataset.budget()
    assert [one["name"] for one in ana.datasets()] == ["beds", "ward"]
    assert remote.budget().spent.epsilon == Fraction("0.5")
    assert remote.left() == Loss("49.5")


@pytest.mark.parametrize("question", [kind for kind in QUERIES if kind.kind != "explain"], ids=lambda kind: kind.kind)
def test_every_question_survives_the_way_there(ana: Service, question: Any) -> None:
    query = question.example()
    assert ana.open("ward").ask(query, force=True).parameters == json.loads(json.dumps(query.to_json()))


def test_a_scale_is_a_number_on_the_way_there_and_belongs_to_who_paid_for_it(ana: Service, service: Served) -> None:
    ward = ana.open("ward")
    spreads = ward.scale(epsilon="5", force=True)
    answer = ward.count(**ASK, epsilon="0.5", scale=spreads, force=True)
    assert answer.parameters["scale"] == spreads.ledger_id
    assert any(f"ledger entry {spreads.ledger_id}" in note for note in answer.notes)
    other = connect(service.url, service.token("bob").token).open("ward")
    with pytest.raises(ServiceError, match="not yours"):
        other.count(**ASK, epsilon="0.5", scale=spreads, force=True)
    with pytest.raises(ParameterError, match="not a release of scale"):
        ward.count(**ASK, epsilon="0.5", scale=answer, force=True)


def test_many_releases_come_in_pages(service: Served) -> None:
    cy = connect(service.url, service.token("cy").token).open("ward")
    made = [cy.count(**ASK, epsilon="0.01", force=True).ledger_id for _ in range(3)]
    real = cy._call

    def call(method: str, path: str, *rest: Any, **more: Any) -> Any:
        return real(method, path + ("&" if "?" in path else "?") + "last=1" if "releases" in path else path)

    cy._call = call
    assert [one.ledger_id for one in cy.releases()] == made


def test_a_watch_is_kept_by_the_service(ana: Service) -> None:
    query = wf.Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("1"))
    watch = ana.open("beds").watching(query, idempotency_key="w", force=True)
    told = watch.decide_many([[0.5], (4.0,), 0.1])
    assert watch.decide_many([[0.5], [4.0], [0.1]], first=1) == told
    assert watch.decide(0.3) in (True, False)
    again = ana.open("beds").watching(query, idempotency_key="w", force=True)
    assert (again.id, again.position, again.columns, again.exhausted) == (watch.id, 4, ("t",), False)
    with pytest.raises(StateError):
        watch.decide_many([0.1], first=9)


def test_errors_come_back_as_they_were(ana: Service, service: Served) -> None:
    remote = ana.open("ward")
    with pytest.raises(BudgetExhausted) as refusal:
        remote.count(**ASK, epsilon="5000", force=True)
    assert isinstance(refusal.value.asked, Loss)
    assert refusal.value.left <= Loss("50")
    remote.count(**ASK, epsilon="0.5", idempotency_key="clash", force=True)
    with pytest.raises(KeyConflict):
        remote.count(neighbours=9, radius=0.5, epsilon="0.5", idempotency_key="clash", force=True)
    with pytest.raises(DataError):
        ana.open("beds").count(**ASK, epsilon="0.5", force=True)
    with pytest.raises(ParameterError, match="neighbours"):
        remote.count(radius=0.5, epsilon="0.5", force=True)
    with pytest.raises(ServiceError, match="no data set"):
        ana.open("none")
    with pytest.raises(NotAllowed):
        connect(service.url, "wrong").datasets()
    with pytest.raises(ServiceError, match="cannot be reached"):
        connect("http://127.0.0.1:9", "x").datasets()


def test_every_problem_is_an_error_of_ours() -> None:
    for kind in KINDS:
        assert isinstance(error_of(make_document(kind, "words")), PrivacyError)
    assert isinstance(error_of("nonsense"), ServiceError)


@pytest.mark.parametrize("url", ["ftp://x", "x", "http://", "https://x?y", "http://example.org"])
def test_a_url_that_is_none_or_in_the_open_is_refused(url: str) -> None:
    with pytest.raises(ParameterError):
        connect(url, "x")


def test_a_token_is_needed(monkeypatch: Any) -> None:
    monkeypatch.delenv(remote.VARIABLE, raising=False)
    for token in (None, "", "a\nb", "é"):
        with pytest.raises(NotAllowed):
            connect("https://example.org", token)
    monkeypatch.setenv(remote.VARIABLE, "x")
    connect("https://example.org")


# The command line


@pytest.fixture
def shell(service: Served, monkeypatch: Any, capsys: Any, tmp_path: Path) -> Any:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.delenv(remote.VARIABLE, raising=False)
    (tmp_path / "token").write_text(f"{service.token('ana').token}\n")

    def run(*arguments: str) -> tuple[int, str, str]:
        more = ("--server", service.url, "--token-file", str(tmp_path / "token"))
        code = cli.main([*arguments, *more])
        return (code, *capsys.readouterr())

    return run


COUNT = ("count", "ward", "--neighbours", "3", "--radius", "0.5")


WATCH = ("ward", "--threshold", "2", "--low", "-5", "--high", "5", "--variance", "1", "--epsilon", "0.5")


def test_a_question_is_asked_of_a_server(shell: Any, tmp_path: Path) -> None:
    code, out, _ = shell(*COUNT, "--force", "--epsilon", "0.5", "--json", "--idempotency-key", "cli")
    assert (code, json.loads(out)["analyst"]) == (0, "ana")
    code, out, err = shell(
        *COUNT, "--force", "--epsilon", "0.5", "--idempotency-key", "cli", "--plot", str(tmp_path / "a.svg")
    )
    assert (code, "How many outliers" in out, "nothing was charged" in err) == (0, True, True)
    assert (tmp_path / "a.svg").exists()


def test_a_plan_and_a_rehearsal_spend_nothing(shell: Any, service: Served) -> None:
    before = service.app.state.core.ledger.verify()
    code, out, _ = shell("plan", *COUNT, "--epsilon", "0.5", "--json")
    assert (code, json.loads(out)["facts"]["n"]) == (0, 30)
    code, out, _ = shell(*COUNT, "--epsilon", "0.5", "--dry-run")
    assert (code, "Nothing was spent" in out, "such questions fit" in out) == (0, True, True)
    code, out, _ = shell("watch", *WATCH, "--dry-run")
    assert (
        code,
        "this would cost ε = 1 of" in out,
        "(ε = 0.5 per entry, booked as ε = 1 per " in " ".join(out.split()),
    ) == (0, True, True)
    code, out, _ = shell(*COUNT, "--epsilon", "500", "--dry-run", "--json")
    assert (code, json.loads(out)["dry_run"]) == (3, True)
    assert service.app.state.core.ledger.verify() == before


def test_refusals_have_the_usual_exit_codes(shell: Any, tmp_path: Path) -> None:
    assert shell(*COUNT, "--epsilon", "500")[0] == 3
    assert shell("count", "none", *COUNT[2:], "--force", "--epsilon", "0.5")[0] == 4
    assert shell(*COUNT, "--force", "--epsilon", "0.5", "--ledger", "x.db")[0] == 2
    assert shell("plan", "count", *COUNT[2:], "--epsilon", "0.5")[0] == 2
    (tmp_path / "token").write_text("wrong")
    assert shell(*COUNT, "--force", "--epsilon", "0.5")[0] == 5
    (tmp_path / "token").unlink()
    assert shell(*COUNT, "--force", "--epsilon", "0.5")[0] == 4


def test_a_question_of_our_own_can_be_asked_too(tmp_path: Path) -> None:
    with run_service(settings(tmp_path), questions=(Above,)) as running:
        ana = Service(connect(running.url, running.token("ana").token)._call, (Above,))
        assert ana.open("ward").above(bar=3.0, epsilon="0.5").kind == "above"


def test_what_a_service_tells_prints_well_and_shows_as_a_card(ana: Service) -> None:
    ward = ana.open("ward")
    quoted, budget = ward.quote(wf.Count(**ASK, loss=Loss("1/2"))), ward.budget()
    assert "affords: " in str(quoted)
    assert "costs: ε = 0.5" in str(quoted)
    assert str(budget).startswith("Account ward")
    assert "ε = 50" in str(budget)
    assert "datasets()" in repr(ana)
    plan = ward.plan.count(**ASK, epsilon="1/2")
    assert "count" in str(plan)
    for shown in (ward, quoted, budget, plan):
        card = shown._repr_html_()
        assert "wallflower-card" in card
        assert "<table>" in card or "<td" in card or "<svg" in card
