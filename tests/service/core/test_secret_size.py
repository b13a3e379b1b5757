"""How many records there are, where that is secret: no plan and no refusal of the service depends on it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asks import EXPLAIN
from page_client import Browser, text
from pyarrow.csv import read_csv
from pyarrow.parquet import write_table
from served import Caller, Service, run_service, settings

from wallflower.data import Column, load
from wallflower.data.scans import CELL_BYTES, ROW_BYTES, fits_memory
from wallflower.errors import DataError, ParameterError, Untranslatable
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.queries import QUERIES
from wallflower.queries.explain import Explain
from wallflower.release import release
from wallflower.remote import connect
from wallflower.schema import Schema
from wallflower.schema.schema import bounds_rows
from wallflower.service.core.facade import Core
from wallflower.service.settings import Registration
from wallflower.units import Protection

NUMBERS, BOUND = (30, 31, 64), 64
AROUND = (1, 3, *range(28, 33), *range(62, 67), 10**6)
MEMBERSHIP = Protection(unit="membership")
COUNT = {"radius": 0.5, "epsilon": "0.25", "force": True}


def people(folder: Path, number: int, bound: int | None = BOUND) -> Registration:
    """A table of so many people, none of whom is in another, and what is public of it."""
    source = folder / f"people-{number}.csv"
    source.write_text("a,b\n" + "".join(f"{row}.{number},{row * row % 97}.{number}\n" for row in range(number)))
    schema = replace(Schema.of(["a", "b"], rows=bound), protects=MEMBERSHIP)
    return Registration(analysts=("*",), name=f"people-{number}", source=str(source), schema=schema, records=("3",))


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    tables = tuple(people(tmp_path, number) for number in NUMBERS)
    with run_service(replace(settings(tmp_path), datasets=tables)) as running:
        yield running


@pytest.fixture
def ana(service: Service) -> Caller:
    return service.token("ana")


def tell(ana: Caller, path: str, body: dict[str, Any]) -> set[tuple[int, str]]:
    """What is answered about each of the tables, but for its name."""
    found = [(n, ana.post(f"/v1/datasets/people-{n}/{path}", body)) for n in NUMBERS]
    return {(answer.status, answer.content.decode().replace(f"people-{n}", "people")) for n, answer in found}


@pytest.mark.parametrize("neighbours", AROUND)
def test_more_neighbours_than_records_are_planned_and_refused_as_few_are(ana: Caller, neighbours: int) -> None:
    asked = {**COUNT, "neighbours": neighbours}
    for path in ("ask/count", "plan/count"):
        [(status, said)] = tell(ana, path, asked)
        assert "number of records is secret" in said
        assert status == (403 if path == "ask/count" else 200)


@pytest.mark.parametrize("question", [kind for kind in QUERIES if kind.kind != "explain"], ids=lambda kind: kind.kind)
def test_every_question_without_a_bound_is_refused_for_its_unit_first(service: Service, question: Any) -> None:
    found, query = set(), question.example()
    remote = connect(service.url, service.token("ana").token)
    for number in NUMBERS:
        with pytest.raises(Untranslatable) as refusal:
            remote.open(f"people-{number}").ask(query, force=True)
        found.add(str(refusal.value).replace(f"people-{number}", "people"))
    assert len(found) == 1


def test_a_size_below_the_public_bound_is_refused_whatever_the_table(ana: Caller) -> None:
    for size in AROUND:
        for path in ("ask/explain", "plan/explain"):
            if size < BOUND:
                [(status, said)] = tell(ana, path, {**EXPLAIN, "size": size})
                assert status == 422
                assert f"it may have up to {BOUND} records" in json.loads(said)["detail"]
    [(status, _)] = tell(ana, "plan/explain", {**EXPLAIN, "size": BOUND})
    assert status == 200
    asked = [ana.post(f"/v1/datasets/people-{n}/ask/explain", {**EXPLAIN, "size": BOUND}) for n in NUMBERS]
    assert [answer.status for answer in asked] == [200, 200, 200]
    assert [answer.json["facts"]["n"] for answer in asked] == [BOUND] * len(NUMBERS)


def test_the_planner_of_an_explanation_fills_in_the_bound_and_tells_no_more(service: Service, ana: Caller) -> None:
    pages, shown = Browser(service).sign_in(ana.token), set()
    for number in NUMBERS:
        page = text(pages.get(f"/ui/datasets/people-{number}/plan/explain"))
        assert f'name="size" value="{BOUND}"' in page
        shown.add(re.sub(f'people-{number}|name="nonce" value="[0-9a-f]+"', "", page))
    assert len(shown) == 1


@pytest.mark.parametrize("bound", [None, BOUND])
def test_without_a_bound_refusals_tell_it_and_the_log_says_so(
    tmp_path: Path, monkeypatch: Any, bound: int | None
) -> None:
    told: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr("wallflower.service.core.facade.log_event", lambda event, **facts: told.append((event, facts)))
    tables = tuple(people(tmp_path, number, bound) for number in NUMBERS)
    with run_service(replace(settings(tmp_path), datasets=tables)) as running:
        answers = tell(running.token("ana"), "plan/explain", {**EXPLAIN, "size": 30})
    warnings = [facts for event, facts in told if "refusals of explain can tell it" in event]
    assert "people" not in str(warnings)
    if bound is None:  # as LIMITATIONS says
        assert len(answers) > 1
        assert [facts["datasets"] for facts in warnings] == [len(NUMBERS)]
    else:
        assert (len(answers), warnings) == (1, [])


def exact(folder: Path, number: int) -> Registration:
    """The same with the exact number as `rows`, and no unit stated."""
    found = people(folder, number, number)
    return replace(found, schema=replace(found.schema, protects=None))


def test_membership_is_refused_beside_an_exact_number(tmp_path: Path) -> None:
    tables = tuple(exact(tmp_path, number) for number in NUMBERS)
    with run_service(replace(settings(tmp_path), datasets=tables)) as running:
        sue = running.token("sue", "steward")
        said = tell(sue, "budget/declaration", {"unit": "membership"})
        ledger = running.app.state.core.ledger
        assert [ledger.account(f"people-{number}").protection.unit for number in NUMBERS] == ["record"] * len(NUMBERS)
    [(status, words)] = said
    assert status == 422
    assert "upper bound" in words
    assert not any(str(number) in words for number in NUMBERS)


def test_a_ledger_that_hides_an_exact_number_answers_nothing_that_names_it(tmp_path: Path, monkeypatch: Any) -> None:
    """Membership was declared where nobody knew the schema: on the command line, or before `rows` was stated."""
    told: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr("wallflower.service.core.facade.log_event", lambda event, **facts: told.append((event, facts)))
    base = replace(settings(tmp_path), datasets=tuple(exact(tmp_path, number) for number in NUMBERS))
    with Ledger.open(base.ledger) as ledger:
        for number in NUMBERS:
            ledger.declare(f"people-{number}", MEMBERSHIP, by="sue")
    with run_service(base) as running:
        ana = running.token("ana")
        for path in ("plan/explain", "ask/explain"):
            for size in (2, 30, BOUND):
                [(status, said)] = tell(ana, path, {**EXPLAIN, "size": size})
                assert status == 422
                assert not any(str(number) in said for number in NUMBERS)
        pages, shown = Browser(running).sign_in(ana.token), set()
        for number in NUMBERS:
            page = text(pages.get(f"/ui/datasets/people-{number}/plan/explain"))
            shown.add(re.sub(f'people-{number}|name="nonce" value="[0-9a-f]+"', "", page))
        assert len(shown) == 1
        assert running.app.state.core.ledger.history(event="charge") == []
    [warning] = [facts for event, facts in told if "refusals of explain can tell it" in event]
    assert warning["datasets"] == len(NUMBERS)
    assert not any(str(number) in str(warning) for number in NUMBERS)


def test_in_python_membership_is_refused_beside_an_exact_number(tmp_path: Path) -> None:
    found = exact(tmp_path, 30)
    domain = Schema(columns=(Column("a", categories=("x",)), Column("b", low=0.0, high=100.0)), clip=True)
    query = Explain(record="3", metric="b", context=("a",), domain=domain, size=BOUND, loss=Loss("0.1"))
    table = load(found.source, schema=replace(found.schema, name="people", columns=None))
    with Ledger.open(tmp_path / "own.db") as ledger:
        ledger.declare("people", MEMBERSHIP, by="sue")
        with pytest.raises(ParameterError, match="upper bound") as refusal:
            release(query, table, ledger)
        assert "30" not in str(refusal.value)
        assert ledger.history(event="charge") == []


def test_a_table_may_have_fewer_records_than_a_bound_and_not_more(tmp_path: Path) -> None:
    fewer = people(tmp_path, 30)
    assert bounds_rows(fewer.schema)
    with run_service(replace(settings(tmp_path), datasets=(fewer,))) as running:
        assert running.token("ana").get("/v1/datasets/people-30").json["rows"] is None
    more = people(tmp_path, BOUND + 1)
    with (
        pytest.raises(DataError, match="the schema says at most 64 records, the source has more"),
        run_service(replace(settings(tmp_path), datasets=(more,))),
    ):
        pass


def test_what_a_schema_protects_is_hidden_though_the_ledger_says_otherwise(tmp_path: Path) -> None:
    """Declared as records before, so the schema cannot be adopted: neither number nor refusal depends on the table."""
    base = replace(settings(tmp_path), datasets=tuple(people(tmp_path, number) for number in NUMBERS))
    with Ledger.open(base.ledger) as ledger:
        for number in NUMBERS:
            ledger.declare(f"people-{number}", Protection(), by="sue")
    with run_service(base) as running:
        ana = running.token("ana")
        assert [ana.get(f"/v1/datasets/people-{number}").json["rows"] for number in NUMBERS] == [None] * len(NUMBERS)
        for path in ("plan/count", "ask/count"):
            for neighbours in AROUND:
                assert len(tell(ana, path, {**COUNT, "neighbours": neighbours})) == 1
        [(status, said)] = tell(ana, "ask/count", {**COUNT, "neighbours": 3})
        assert status == 422
        assert "Correct the schema" in said


def test_a_data_set_that_is_being_registered_is_hidden_from_the_first(tmp_path: Path, monkeypatch: Any) -> None:
    people(tmp_path, 30)
    stated = {"columns": {"a": {}, "b": {}}, "rows": BOUND, "protects": MEMBERSHIP.to_json()}
    with run_service(settings(tmp_path)) as running:
        sue, seen = running.token("sue", "steward"), []
        real = Core._adopt

        def adopt(core: Core, name: str, **more: Any) -> None:
            seen.append(sue.get(f"/v1/datasets/{name}").json["rows"])  # to analysts it is closed
            real(core, name, **more)

        monkeypatch.setattr(Core, "_adopt", adopt)
        made = sue.post("/v1/datasets", {"name": "people", "source": "people-30.csv", "schema": stated})
        assert (made.status, seen) == (201, [None])


def test_the_bound_chooses_the_engine(tmp_path: Path, monkeypatch: Any) -> None:
    found = set()
    monkeypatch.setenv("WALLFLOWER_MEMORY", str((NUMBERS[0] + 10) * (ROW_BYTES + 2 * CELL_BYTES)))
    for number in NUMBERS:
        stated = people(tmp_path, number)
        source = tmp_path / f"{number}.parquet"
        write_table(read_csv(stated.source), source)
        found.add(fits_memory(source, stated.schema))
        assert fits_memory(source, replace(stated.schema, rows=None)) is (number < NUMBERS[-1])
    assert found == {False}


def test_subspaces_with_counts_are_planned_where_nobody_knows_how_many_there_are(ana: Caller) -> None:
    asked = {"neighbours": 5, "radius": 0.5, "top": 2, "size": 1, "counts": True, "epsilon": "8/5", "force": True}
    [(status, said)] = tell(ana, "plan/subspaces", asked)
    assert (status, "number of records is secret" in said) == (200, True)
