"""Where files lie on the server is told to nobody: no error holds a folder, whatever its type."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as fuzzing
from hypothesis.strategies import integers, lists, sampled_from, text
from page_client import Browser
from page_client import text as page_text
from served import Service, run_service, settings

from wallflower import errors
from wallflower.errors import PrivacyError
from wallflower.privacy import Loss
from wallflower.service.core.problems import KINDS, Refusal, problem_document

ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789-_."
TYPES = [found for _, found in inspect.getmembers(errors, inspect.isclass) if issubclass(found, PrivacyError)]
WATCH = {"threshold": 2.0, "low": -5.0, "high": 5.0, "variance": 1.0, "epsilon": "0.01", "force": True}
BODIES = {  # what a steward may register by mistake
    "empty.csv": b"",
    "header.csv": b"a,b\n",
    "words.csv": b"a\nmuch\nmore\n",
    "bytes.csv": b"\xff\xfe\x00\x01\x9d",
    "broken.parquet": b"PAR1 no",
    "broken.json": b"{",
    "unknown.xyz": b"a\n1\n",
}


def make_error(kind: type[PrivacyError], words: str) -> PrivacyError:
    """An error of this type that says these words wherever it may."""
    match kind.__name__:
        case "BudgetExhausted":
            return errors.BudgetExhausted(words, asked=Loss("1"), left=Loss("1"), remedy=words)
        case "NotUseful":
            return errors.NotUseful("count", verdict=words)
        case "SameRecords":
            return errors.SameRecords("a", other=words)
        case "ChainBroken":
            return errors.ChainBroken(words, entry=1)
        case "AnswerPending":
            return errors.AnswerPending(words, charge=1)
        case "ConfigError":
            return errors.ConfigError(words, "ledger", words, words)
        case "PackageMissing":
            return errors.PackageMissing(words, extra=words)
        case _:
            return kind(words)


@fuzzing(max_examples=60, deadline=None)
@given(
    lists(text(ALPHABET, min_size=1, max_size=12).filter(lambda part: part.strip(".")), min_size=1, max_size=5),
    sampled_from(
        ["{}: the file is empty.", "ledger {}: no room.", "see {}.", "not '{}', and not \"{}\"", "({})", "{}"]
    ),
    integers(0, len(TYPES) - 1),
)
def test_no_type_of_error_tells_a_folder(parts: list[str], frame: str, which: int) -> None:
    root = "/" + "/".join(["q8q", *parts])
    words = frame.replace("{}", f"{root}/people.csv")
    told = problem_document(make_error(TYPES[which], words))
    assert root not in told["detail"]
    assert "q8q" not in told["detail"]
    for kind in KINDS:
        assert "q8q" not in json.dumps(problem_document(Refusal(kind, words)))


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    root = tmp_path / "our own data"
    root.mkdir()
    for name, body in BODIES.items():
        (root / name).write_bytes(body)
    (root / "folder").mkdir()
    with run_service(settings(root)) as running:
        yield running


def is_silent(answer: Any, tmp_path: Path) -> bool:
    found = answer.content.decode()
    return str(tmp_path) not in found and "our own data" not in found and tmp_path.name not in found


def test_a_source_that_cannot_be_used_is_told_by_its_bare_name(service: Service, tmp_path: Path) -> None:
    sue = service.token("sue", "steward")
    for number, name in enumerate([*BODIES, "folder", "none.csv", "../out.csv", str(tmp_path)]):
        answer = sue.post("/v1/datasets", {"name": f"new{number}", "source": name, "schema": {"columns": ["a"]}})
        assert answer.status in (409, 422), (name, answer.content)
        assert is_silent(answer, tmp_path), answer.content


def test_a_watch_that_is_closed_does_not_tell_where_its_state_was(service: Service, tmp_path: Path) -> None:
    ana = service.token("ana")
    for spoil in (lambda path: path.write_bytes(b"no state"), Path.unlink):
        opened = ana.post("/v1/datasets/beds/watches/watch", WATCH).json
        service.app.state.watches.close()  # another process, or this one after a restart, finds it so
        (state,) = Path(str(service.app.state.core.settings.watches)).glob(f"{opened['id']}.state")
        spoil(state)
        answer = ana.post(f"/v1/watches/{opened['id']}/observations", {"rows": [[0.5]]})
        assert answer.status == 409, answer.content
        assert is_silent(answer, tmp_path), answer.content


def test_pages_tell_no_folder_either(service: Service, tmp_path: Path) -> None:
    browser = Browser(service).sign_in(service.token("sue", "steward").token)
    for path in ("/ui/", "/ui/datasets/ward", "/ui/datasets/ward/budget", "/ui/ledger", "/ui/tokens", "/ui/none"):
        assert is_silent(browser.get(path), tmp_path), page_text(browser.last)
