"""The reference of Python names every public name, says what each takes, and shows each in an example that runs."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import wallflower
import wallflower.sklearn
from wallflower import errors, sensors
from wallflower.privacy import Loss

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "docs" / "reference"
BLOCK = re.compile(r"^```(?:python|py|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What comes out of public calls, and so is met by everybody.
MET = {"Dataset", "plan", "Column", "Guarantee", "Facts", "Plan", "Option", "Quality", "Receipt", "Account", "Quote"}
MET |= {"Declaration", "Entry", "Verification", "OpenWatch", "Decisions", "Fleet", "FleetDecisions", "Model", "Service"}
MET |= {"BatchPlan", "Comparison", "Remote", "RemoteQuote", "RemoteWatch"}


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("api_pages", ROOT / "scripts" / "api_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


API = script()
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted(PLACE.glob("*.md"))}


def public() -> set[str]:
    """Every name that somebody may type, and every class that comes out of it."""
    asked = {question.__name__ for question in API.QUESTIONS.values()}
    own = {f"wf.{name}" for name in set(wallflower.__all__) - asked - {"__version__", "sensors"}}
    own -= {"wf.PrivacyError", "wf.BudgetExhausted"}  # with the other errors
    own = own - {"wf.Release"} | {"Release"}  # so that links tell it from wf.release
    raised = {name for name, value in vars(errors).items() if inspect.isclass(value) and not name.startswith("_")}
    parts = {f"wf.sensors.{name}" for name in sensors.__all__}
    shapes = {f"wf.sklearn.{name}" for name in wallflower.sklearn.__all__}
    return own | raised | parts | shapes | MET | set(API.QUESTIONS)


def sections() -> Iterator[tuple[str, str, str]]:
    """Page, heading and what is below it."""
    for place, text in PAGES.items():
        for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
            name, _, body = section.partition("\n")
            yield place, name, body


SECTIONS = {name: (place, body) for place, name, body in sections()}
CLASSES = sorted(name for name in SECTIONS if name not in API.QUESTIONS and inspect.isclass(API.find(name)))


def test_the_pages_are_fresh() -> None:
    assert API.pages() == PAGES, "run `make docs`"


def test_every_public_name_is_there_and_nothing_else() -> None:
    assert set(SECTIONS) == public()
    assert len(SECTIONS) == sum(1 for _ in sections()), "a name is there twice"


@pytest.mark.parametrize("name", SECTIONS)
def test_every_name_is_explained_and_has_an_example(name: str) -> None:
    place, body = SECTIONS[name]
    assert BLOCK.search(body), f"{place}: {name} has no example"
    assert re.search(r"^[A-Z`εδρ1-9].{15,}", body, re.MULTILINE), f"{place}: {name} is not explained"
    anchor = re.sub(r"[^\w\- ]", "", name.lower())
    assert f"({place}#{anchor})" in PAGES["README.md"]


@pytest.mark.parametrize("name", CLASSES)
def test_every_method_is_explained_and_used(name: str) -> None:
    found, (place, _) = API.find(name), SECTIONS[name]
    typed = "\n".join(BLOCK.findall(PAGES[place]))
    serving = API.SERVING.get(found.__name__, ())
    for each, value in API.members(found):
        if each not in serving:
            assert inspect.getdoc(value), f"{name}.{each} has no docstring"
            assert re.search(rf"\.{each}\b", typed), f"{place}: no example uses {name}.{each}"
    assert set(serving) <= {each for each, _ in API.members(found)}, f"{name}: {serving}"


def taking() -> Iterator[tuple[str, Any]]:
    for name in SECTIONS:
        if name not in API.QUESTIONS:
            found = API.find(name)
            yield name, found
            if inspect.isclass(found):
                serving = API.SERVING.get(found.__name__, ())
                methods = ((each, value) for each, value in API.members(found) if each not in serving)
                yield from ((f"{name}.{each}", value) for each, value in methods if not isinstance(value, property))


@pytest.mark.parametrize(("name", "found"), [pytest.param(*each, id=each[0]) for each in taking()])
def test_everything_that_is_taken_is_explained(name: str, found: Any) -> None:
    text = inspect.getdoc(found) or ""
    told = dict(API.pairs(text))
    taken = [each.name for each in API.parameters(found)]
    for each in taken:
        assert API.meaning(each, told, text), f"{name}: {each} is not explained"
    if taken:
        assert set(told) <= set(taken), f"{name} explains {set(told) - set(taken)}, which it does not take"


@pytest.mark.parametrize("name", [name for name in CLASSES if is_dataclass(API.find(name))])
def test_every_field_is_explained(name: str) -> None:
    found = API.find(name)
    if found.__name__ not in API.MADE:
        assert set(API.field_meanings(found)) == {item.name for item in API.public_fields(found)}


def test_a_question_says_what_is_released_and_what_it_costs() -> None:
    shared = PAGES["questions.md"].partition("**Shared parameters**")[2].partition("\n## ")[0]
    for kind, question in API.QUESTIONS.items():
        for words in ("**Released:**", "**Guarantee:**", "**Cost:**"):
            assert words in SECTIONS[kind][1], f"{kind} does not say {words}"
        body = SECTIONS[kind][1] + shared
        assert "| `epsilon` |" in body
        for parameter in API.group_parameters(question)[0].parameters:
            assert f"| `{parameter.name}` |" in body
            assert parameter.help.replace("|", "\\|") in body


@pytest.mark.parametrize("kind", API.QUESTIONS)
def test_a_loss_that_the_page_leaves_out_is_refused(kind: str) -> None:
    question, losses = API.QUESTIONS[kind], {"delta": Loss("1", delta="1e-6"), "rho": Loss.zcdp("1")}
    for form in set(losses) - set(API.forms_of(question)):
        with pytest.raises(errors.PrivacyError):
            replace(question.example(), loss=losses[form])


def test_pairs_are_told_from_sentences() -> None:
    text = (
        "Open it.\n\nname     what it hangs on, and\n         more\nanalyst  who asks\n\nA sentence  with two spaces."
    )
    assert dict(API.pairs(text)) == {"name": "what it hangs on, and more", "analyst": "who asks"}
