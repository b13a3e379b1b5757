"""Questions as methods: what an editor completes and mypy checks is what runs, and is written anew by `make verbs`."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import wallflower as wf
from above import Above
from types_cache import known_types
from wallflower import verbs
from wallflower.dataset import KNOWN, Dataset
from wallflower.queries import COMPANIONS, QUERIES
from wallflower.query import Plan
from wallflower.query.parameter import answer_type
from wallflower.release import Release
from wallflower.remote import Remote

ROOT = Path(__file__).parents[1]

RIGHT = """
import wallflower as wf

people = wf.open("people.csv", ledger="ledger.db")
far = wf.connect("https://curator.example.org", "token").open("people")
reveal_type(people.count(neighbours=5, radius=1, epsilon="0.5", idempotency_key="one"))
reveal_type(far.count(neighbours=5, radius=1.3, mechanism="smooth", loss=wf.Loss("0.5")))
reveal_type(people.plan.count(neighbours=5, radius=1.3, rho="1/2"))
reveal_type(far.plan.subspaces(neighbours=5, radius=1.3, share="1/3", epsilon=1))
reveal_type(people.baseline(low=0, high=1, epsilon="0.5"))
reveal_type(people.ask(wf.Baseline(low=0, high=1, loss=wf.Loss("0.5"))))
"""
REVEALED = [
    "wallflower.release.answer.Release[int | list[dict[str, Any]]]",  # a number, or rows where it counts by group
    "wallflower.release.answer.Release[int | list[dict[str, Any]]]",
    "wallflower.query.plan.Plan",
    "wallflower.query.plan.Plan",
    "wallflower.release.answer.Release[dict[str, Any]]",
    "wallflower.release.answer.Release[dict[str, Any]]",
]
WRONG = {
    'people.count(neighbors=5, radius=1.3, epsilon="0.5")': 'Unexpected keyword argument "neighbors"',
    'people.count(neighbours="5", radius=1.3, epsilon="0.5")': 'Argument "neighbours" .* has incompatible type "str"',
    "people.count(neighbours=5, radius=1.3, epsilon=0.5)": 'Argument "epsilon" .* has incompatible type "float"',
    'people.subspaces(neighbours=5, epsilon="0.5")': 'Missing named argument "radius"',
    'far.count(neighbours=5, radius=1, mechanism="best", epsilon="1")': 'Argument "mechanism" .* incompatible type',
    'people.cuont(neighbours=5, radius=1.3, epsilon="0.5")': 'has no attribute "cuont"',
    "far.plan.cuont()": 'has no attribute "cuont"',
    'people.plan.count(neighbours=5, radius=1.3, epsilon="0.5", idempotency_key="one")': (
        'Unexpected keyword argument "idempotency_key"'
    ),
}


def script() -> ModuleType:
    """scripts/verbs.py, which is no part of the package."""
    spec = spec_from_file_location("verbs_script", ROOT / "scripts" / "verbs.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def people(tmp_path: Path) -> Dataset:
    points = wf.Points.from_array(np.zeros((20, 2)), name="people")
    return wf.open(points, ledger=tmp_path / "ledger.db")


@pytest.fixture
def far() -> Remote:
    facts = {"name": "people", "rows": 20, "columns": ["a", "b"]}
    return Remote(lambda *_, **__: (200, {}), facts, KNOWN)


def written(method: Any) -> inspect.Signature:
    """The signature in `verbs`, as whoever has an object sees it."""
    found = inspect.signature(method, eval_str=True)
    return found.replace(parameters=list(found.parameters.values())[1:])


def test_the_module_is_fresh() -> None:
    assert (ROOT / "src" / "wallflower" / "verbs.py").read_text(encoding="utf-8") == script().module(), "`make verbs`"


def test_what_is_written_is_what_runs(people: Dataset, far: Remote) -> None:
    for question in (*QUERIES, *COMPANIONS):
        for held in (people, far):
            assert written(getattr(verbs.Questions, question.kind)) == inspect.signature(getattr(held, question.kind))
            assert written(getattr(verbs.Plans, question.kind)) == inspect.signature(getattr(held.plan, question.kind))


def test_nothing_else_is_written() -> None:
    kinds = {question.kind for question in (*QUERIES, *COMPANIONS)}
    for kind in (verbs.Questions, verbs.Plans):
        assert {name for name in vars(kind) if not name.startswith("_")} == kinds


def test_what_is_written_never_runs(people: Dataset, far: Remote) -> None:
    for held in (people, people.plan, far, far.plan):
        assert not {verbs.Questions, verbs.Plans} & set(type(held).__mro__)


def test_methods_say_what_they_give(people: Dataset) -> None:
    assert inspect.signature(people.baseline).return_annotation == Release[dict[str, Any]]
    assert inspect.signature(people.plan.count).return_annotation is Plan
    assert answer_type(Above) is int


def test_a_plugin_still_has_its_method(people: Dataset, tmp_path: Path) -> None:
    points = wf.Points.from_array(np.zeros((20, 2)), name="people")
    own = Dataset(points, wf.Ledger.open(tmp_path / "other.db"), "ana", (*KNOWN, Above))
    assert own.above(bar=9.5, epsilon="0.25").kind == "above"
    assert inspect.signature(own.plan.above).return_annotation is Plan
    with pytest.raises(AttributeError, match="is not a question"):
        people.above  # noqa: B018


def test_a_companion_is_a_method_too(people: Dataset) -> None:
    made = people.baseline(low=0.0, high=1.0, epsilon="0.5", force=True)
    assert (made.kind, set(made.value)) == ("baseline", {"centre", "variance"})


@pytest.mark.slow
def test_mypy_knows_every_verb(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(RIGHT + "\n".join(WRONG) + "\n", encoding="utf-8")
    call = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", known_types(tmp_path), str(program)]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
    told: dict[int, list[str]] = {}
    for line, words in re.findall(r"program\.py:(\d+): (.*)", done.stdout):
        told.setdefault(int(line), []).append(words)
    start = len(RIGHT.splitlines())
    revealed = [words for line in sorted(told) if line <= start for words in told[line]]
    assert revealed == [f'note: Revealed type is "{kind}"' for kind in REVEALED], done.stdout + done.stderr
    for line, words in enumerate(WRONG.values(), start=start + 1):
        assert re.search(words, "\n".join(told.get(line, []))), f"{words}\n{done.stdout}"
