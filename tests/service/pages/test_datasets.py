"""The page of a data set: what it is, in words; which questions can be asked of it, and why others cannot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from page_client import Browser, words
from served import Service, run_service, settings

from wallflower.queries.explain import Explain
from wallflower.schema import Column, Schema
from wallflower.service.settings import Registration

SAID = Schema(
    columns=(
        Column("weight", low=2, high=300, center=70, scale=15, meaning="at <b>admission</b>", measure="kg"),
        Column("sex", categories=("F", "M"), meaning="as registered"),
    ),
    title="Patients of the ward",
    owner="Office of statistics",
    period="2023",
    population="adults who stayed a night",
    licence="CC BY 4.0",
    description="Weight & sex.",
)
BARE = Schema(columns=(Column("sex", categories=("F", "M")),))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("datasets")
    (folder / "said.csv").write_text("weight,sex\n" + "".join(f"{60 + at},{'FM'[at % 2]}\n" for at in range(30)))
    said = Registration(analysts=("*",), name="said", source=str(folder / "said.csv"), schema=SAID)
    (folder / "bare.csv").write_text("sex\n" + "F\nM\nM\n" * 9)
    bare = Registration(analysts=("*",), name="bare", source=str(folder / "bare.csv"), schema=BARE)
    stream = Registration(analysts=("*",), name="stream", source=None, schema=Schema.of(["t"]))
    with run_service(settings(folder, datasets=(said, bare, stream))) as running:
        yield running


def test_a_data_set_says_what_it_is(service: Service) -> None:
    ana = Browser(service).sign_in(service.token("ana").token)
    shown = words(ana.get("/ui/datasets/said"))
    for said in (
        *SAID.words().values(),
        "kg",
        "numbers from 2 to 300",
        "centred at 70, one unit is 15",
        "F, M",
    ):
        assert said in shown, said
    assert "at <b>admission</b>" not in ana.last.content.decode()
    assert "is undecided (50 %) about yours, becomes at most" in shown
    assert "Patients of the ward" in words(ana.get("/ui/"))
    told = service.token("ana").get("/v1/datasets/said").json
    assert told["title"] == "Patients of the ward"
    assert told["columns"][0]["measure"] == "kg"


@pytest.mark.parametrize(
    ("dataset", "who", "kind", "why"),
    [
        ("said", "analyst", "explain", "the data steward has opened none to queries"),
        ("said", "steward", "explain", None),
        ("said", "analyst", "count", None),
        ("bare", "analyst", "count", "It needs a column of numbers, or labels with a weight"),
        ("stream", "analyst", "count", "It needs a table, and this is a stream"),
        ("stream", "analyst", "watch", None),
    ],
)
def test_what_cannot_be_asked_is_shown_with_the_reason(
    service: Service, dataset: str, who: str, kind: str, why: str | None
) -> None:
    somebody = Browser(service).sign_in(service.token("sam", who).token)
    page = words(somebody.get(f"/ui/datasets/{dataset}"))
    assert (f'href="/ui/datasets/{dataset}/plan/{kind}"' in page) is (why is None)
    assert f"{kind} · not possible" in page or why is None
    assert (why or "") in page


def test_a_question_about_time_says_so_where_a_table_has_none(service: Service) -> None:
    somebody = Browser(service).sign_in(service.token("sam").token)
    caution = "The schema has no column of times"
    assert caution in words(somebody.get("/ui/datasets/said"))
    assert caution not in words(somebody.get("/ui/datasets/stream"))


def test_bounds_in_another_unit_are_refused_over_http_and_nothing_is_charged(service: Service) -> None:
    ana, asked = service.token("ana"), {"low": 2.0, "high": 300.0, "epsilon": "0.5"}
    before = ana.get("/v1/datasets/said/budget").json
    refused = ana.post("/v1/datasets/said/ask/baseline", asked)
    assert refused.status == 422
    assert "which is -4.53333 to 15.3333 after subtracting 70 and dividing by 15 (2 to 300 kg as written)" in str(
        refused.json
    )
    assert ana.get("/v1/datasets/said/budget").json == before


def test_a_question_keeps_a_schema_without_words(tmp_path: Path) -> None:
    asked = Explain.example()
    stored = asked.to_json()
    described = {**stored, "domain": {**stored["domain"], "title": "Ward", "owner": "us"}}
    described["domain"]["columns"] = {
        name: {**facts, "meaning": "m"} for name, facts in stored["domain"]["columns"].items()
    }
    assert Explain.from_json(described).to_json() == stored
