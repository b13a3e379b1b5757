"""Proof and code know each other: a label that one of them uses, the other uses too."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from wallflower.queries import COMPANIONS, QUERIES

SOURCE = Path(__file__).parents[1] / "src" / "wallflower"
LABEL = re.compile(r"(?<![\w`])\(([A-Z]\d?)\)")
STATED = re.compile(r"^(?:\*\*|## )\(([A-Z]\d?)\)", re.MULTILINE)
NEXT_DOOR = re.compile(r"\(([A-Z]\d?)\) of `(\w+)`")
ELSEWHERE = re.compile(r"`mechanisms\.md` ((?:\([A-Z]\d?\)(?:, | and )?)+)")

ROOMS = sorted({*((SOURCE / question.proof).parent for question in (*QUERIES, *COMPANIONS)), SOURCE / "sensors"})
MECHANISMS = SOURCE / "mechanisms.md"
LEDGER = SOURCE / "ledger" / "proof.md"
PROOFS = [*(room / "proof.md" for room in ROOMS), LEDGER, MECHANISMS]


def remarks(path: Path) -> Iterator[str]:
    """The comments and the texts of a module: where labels are."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield token.string


def code_of(proof: Path) -> list[Path]:
    """The modules a proof is about: its room, and whatever says that its proof is there."""
    if proof == MECHANISMS:
        return [*sorted((SOURCE / "mechanisms").glob("*.py")), SOURCE / "noise.py"]
    pointer = f"proof.md of `{proof.parent.name}`"
    inside, others = set(proof.parent.glob("**/*.py")), SOURCE.glob("**/*.py")
    return sorted(inside | {path for path in others if pointer in path.read_text(encoding="utf-8")})


def used(proof: Path) -> set[str]:
    return {label for path in code_of(proof) for words in remarks(path) for label in LABEL.findall(words)}


def stated(proof: Path) -> set[str]:
    return set(STATED.findall(proof.read_text(encoding="utf-8")))


def name(proof: Path) -> str:
    return str(proof.relative_to(SOURCE))


@pytest.mark.parametrize("proof", PROOFS, ids=name)
def test_every_label_in_the_code_is_proved(proof: Path) -> None:
    assert used(proof) - stated(proof) == set()


@pytest.mark.parametrize("proof", PROOFS, ids=name)
def test_every_statement_is_used_by_the_code(proof: Path) -> None:
    assert stated(proof) - used(proof) == set()


@pytest.mark.parametrize("proof", PROOFS, ids=name)
def test_a_label_is_stated_once(proof: Path) -> None:
    found = STATED.findall(proof.read_text(encoding="utf-8"))
    assert len(found) == len(set(found))


@pytest.mark.parametrize("proof", PROOFS, ids=name)
def test_labels_inside_a_proof_lead_somewhere(proof: Path) -> None:
    text = proof.read_text(encoding="utf-8")
    for borrowed in ELSEWHERE.findall(text):
        assert set(LABEL.findall(borrowed)) <= stated(MECHANISMS)
    for borrowed, room in NEXT_DOOR.findall(text):
        assert borrowed in stated(LEDGER if room == "ledger" else SOURCE / "queries" / room / "proof.md")
    assert set(LABEL.findall(NEXT_DOOR.sub("", ELSEWHERE.sub("", text)))) <= stated(proof)


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_a_room_says_what_it_proves_and_where_it_differs(room: Path) -> None:
    text = (room / "proof.md").read_text(encoding="utf-8")
    headings = " ".join(re.findall(r"^## (.*)$", text, re.MULTILINE)).lower()
    for part in ("statement", "adjacency", "where we differ from the paper"):
        assert part in headings, f"{room.name}/proof.md has no heading about {part}"
    opening, *_, differences = re.split(r"^## ", text, flags=re.MULTILINE)
    assert STATED.search(text.replace(opening, "").replace(differences, "")), "there is no labelled proof in between"
    assert len(differences.splitlines()) > 1, "silence is not an answer"


def test_mechanisms_say_where_they_differ() -> None:
    text = MECHANISMS.read_text(encoding="utf-8")
    assert re.search(r"^## Where we differ", text, re.MULTILINE)
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:-1]:
        assert "*Statement.*" in part, f"{part.splitlines()[0]}: no statement"


@pytest.mark.parametrize("question", [*QUERIES, *COMPANIONS], ids=lambda question: question.kind)
def test_a_release_names_a_proof_that_exists(question: type) -> None:
    assert (SOURCE / question.proof).is_file()
