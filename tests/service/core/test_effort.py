"""What a question takes is known from public facts: a long one is a job at once, one that takes too much is refused."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from asks import ASK, charges, wait_for_job
from page_client import Browser
from served import Service, run_service, settings, ward
from slow import Slow, hold_answers

from above import Above
from wallflower.data import load
from wallflower.errors import ParameterError
from wallflower.noise import SystemNoise
from wallflower.privacy import Loss
from wallflower.queries import COMPANIONS, QUERIES
from wallflower.queries.count import Count
from wallflower.queries.subspaces import Subspaces
from wallflower.query import Query
from wallflower.remote import error_of

COUNT = {"neighbours": 3, "radius": 0.5, "epsilon": "0.01", "force": True}


@pytest.mark.parametrize("question", [*QUERIES, *COMPANIONS, Above], ids=lambda question: question.kind)
def test_an_effort_grows_with_the_table_and_knows_no_records(question: type[Query[Any, Any]]) -> None:
    asked = question.example()
    found = [asked.effort(n=n, dimension=4) for n in (10, 1_000, 100_000, 10_000_000)]
    for less, more in itertools.pairwise(found):
        assert 0 < less.steps < more.steps < math.inf
        assert 0 < less.memory < more.memory < math.inf


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        Count(neighbours=5, radius=0.3, loss=Loss("1")),
        Count(neighbours=200, radius=2.0, loss=Loss("1")),
        Count(neighbours=5, radius=0.3, loss=Loss("1"), interval="two-sided"),
        Count(neighbours=5, radius=0.3, loss=Loss("1"), mechanism="global"),
        Subspaces(neighbours=5, radius=0.3, loss=Loss("1"), size=2),
    ],
    ids=["few neighbours", "many neighbours", "two-sided", "global", "subspaces"],
)
def test_a_look_stays_within_the_memory_that_was_said(asked: Query[Any, Any]) -> None:
    rows = np.random.default_rng(0).random((2_000, 5))
    table = load(pa.table({f"c{column}": rows[:, column] for column in range(5)}))
    view = asked.view(table)
    asked.answer(view, SystemNoise())  # whatever is compiled is compiled now
    tracemalloc.start()
    try:
        asked.answer(view, SystemNoise())
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most <= asked.effort(n=view.n, dimension=view.dimension).memory


def test_a_question_that_takes_long_is_a_job_at_once(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, job_seconds=0), questions=(Slow,)) as running:
        ana = running.token("ana")
        browser = Browser(running).sign_in(ana.token)
        with hold_answers():
            answer = ana.post("/v1/datasets/ward/ask/slow", ASK)  # patience is long, and nobody waits for it
            assert (answer.status, answer.headers["location"]) == (202, f"/v1/jobs/{answer.json['id']}")
            form = {"bar": "7", "columns": "a", "epsilon": "0.1"}
            place = browser.post("/ui/datasets/ward/ask/slow", form).headers["location"]
            assert place.startswith("/ui/jobs/")
        for job in (answer.json["id"], place.rpartition("/")[2]):
            assert wait_for_job(ana, job)[0]["state"] == "done"
    with run_service(settings(tmp_path), questions=(Slow,)) as running:
        assert running.token("ana").post("/v1/datasets/ward/ask/slow", ASK).status == 200


def test_what_takes_too_much_memory_is_refused_before_the_charge(tmp_path: Path) -> None:
    stated = settings(tmp_path, question_bytes=2**20)
    with run_service(replace(stated, datasets=(ward(tmp_path, rows=3_000),))) as running:
        ana = running.token("ana")
        for prefer in ("", "respond-async"):
            refused = ana.post("/v1/datasets/ward/ask/count", COUNT, prefer=prefer)
            assert (refused.status, refused.problem) == (422, "too-much-memory")
            assert "Nothing was charged" in refused.json["detail"]
            assert isinstance(error_of(refused.json), ParameterError)
        assert charges(running) == 0
        assert_smaller_is_answered(running)


def assert_smaller_is_answered(running: Service) -> None:
    body = {"low": -5.0, "high": 5.0, "threshold": 2.0, "variance": 1.0, "epsilon": "0.01", "force": True}
    assert running.token("bo").post("/v1/datasets/ward/ask/watch", {**body, "columns": ["a"]}).status == 200
