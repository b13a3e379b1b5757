"""Theories of `proofs/`, the map from labels to lemmas and the proofs on paper agree. The heavy tests need Coq."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from fractions import Fraction
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wallflower as wf
from wallflower.data import Points
from wallflower.privacy import Kind, Loss
from wallflower.release.release import name_person_labels
from wallflower.theorems import COVERAGE as COVERAGE_OF_LABELS
from wallflower.theorems import find_evidence, sort_by_evidence
from wallflower.units import Protection

ROOT = Path(__file__).parents[1]
PROOFS = ROOT / "proofs"
SOURCE = ROOT / "src" / "wallflower"
STATED = re.compile(r"^(?:\*\*|## )\(([A-Z]\d?)\)", re.MULTILINE)


def load_script(name: str) -> Any:
    spec = spec_from_file_location(name, PROOFS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


CHECK = load_script("check")
MUTANTS = load_script("mutants")
ROWS = CHECK.read_rows()


def test_labels_and_lemmas_match_the_marks_in_the_proofs() -> None:
    assert list(CHECK.check_marks(ROWS)) == []


@pytest.mark.parametrize(
    "row",
    [
        CHECK.Row("queries/count/proof.md", "X", "whole", "Groups.X_crowding", "classical"),
        CHECK.Row("queries/count/proof.md", "X", "part", "Groups.B1_sum", "classical"),
    ],
)
def test_a_row_that_differs_from_its_mark_is_refused(row: Any) -> None:
    """The first claims the whole of (X) for a part; the second is not what the proof names."""
    others = [other for other in ROWS if other.label != "X"]
    assert len(list(CHECK.check_marks([*others, row]))) == 1


def test_no_lemma_is_listed_twice() -> None:
    lemmas = [row.lemma for row in ROWS]
    assert len(lemmas) == len(set(lemmas))


def test_every_theorem_belongs_to_a_label() -> None:
    """What serves other proofs only is called a lemma."""
    theorems = {
        f"{path.stem}.{name}"
        for path in (PROOFS / "theories").glob("*.v")
        for name in re.findall(r"^Theorem (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert theorems <= {row.lemma for row in ROWS}


def test_theories_hold_what_the_map_names_and_nothing_that_switches_checking_off() -> None:
    assert list(CHECK.check_sources(ROWS)) == []


def test_every_lemma_and_definition_says_what_it_is_for() -> None:
    for path in sorted((PROOFS / "theories").glob("*.v")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for above, line in pairwise(lines):
            if re.match(r"(Theorem|Lemma|Corollary|Definition|Fixpoint|Record|Inductive) ", line):
                assert above.rstrip().endswith("*)"), f"{path.name}: {line[:60]} has no comment above it"


def test_the_shipped_table_is_the_map() -> None:
    owners = {row.proof: row.proof.removesuffix("/proof.md").removesuffix(".md").split("/")[-1] for row in ROWS}
    coverage = {f"({row.label}) of {owners[row.proof]}": row.coverage for row in ROWS}
    assert coverage == COVERAGE_OF_LABELS


def stated_labels(owner: str) -> set[str]:
    folder = {"mechanisms": SOURCE / "mechanisms.md", "ledger": SOURCE / "ledger" / "proof.md"}
    path = folder.get(owner, SOURCE / "queries" / owner / "proof.md")
    return set(STATED.findall(path.read_text(encoding="utf-8")))


LINE = Points.from_array(np.arange(50.0)[:, None], name="line")
QUERIES = [
    wf.Count(neighbours=2, radius=1.0, loss=Loss("1")),
    wf.Count(neighbours=2, radius=1.0, loss=Loss.zcdp("1/2"), slack=3),
    wf.Count(neighbours=2, radius=1.0, loss=Loss("1", delta="1e-6"), slack=3),
    wf.Count(neighbours=2, radius=1.0, loss=Loss("1"), mechanism="global"),
    wf.Count(neighbours=2, radius=1.0, loss=Loss("1", delta="1e-6"), mechanism="smooth"),
    wf.Count(neighbours=2, radius=1.0, loss=Loss("1"), interval="two-sided"),
    wf.Count(neighbours=2, share=Fraction(1, 10), loss=Loss("1")),
    wf.Count(neighbours=2, radius=1.0, loss=Loss("1"), by=("ward",)),
    wf.Radius(neighbours=2, share=Fraction(1, 10), loss=Loss("1")),
    wf.Profile(neighbours=2, radii=(1.0, 2.0), loss=Loss("1")),
    wf.Profile(neighbours=2, shares=("1/10",), loss=Loss("1")),
    wf.Scale(loss=Loss("1")),
    wf.Scale(loss=Loss("1"), location=True),
    wf.Detector(loss=Loss("1")),
]


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_a_release_names_labels_that_exist_and_no_more_than_is_checked(query: Any) -> None:
    labels = query.rests_on(LINE)
    assert labels
    for label in labels:
        name, owner = re.fullmatch(r"\((\w+)\) of (\w+)", label).groups()
        assert name in stated_labels(owner), label
    evidence = sort_by_evidence(labels, query.cost().kind)
    checked = evidence.get("machine-checked theorem", ())
    assert all(COVERAGE_OF_LABELS[label] in ("whole", "epsilon") for label in checked)
    assert set(checked) | set(evidence["proved on paper"]) == set(labels)
    assert evidence["tested"]


@pytest.mark.parametrize(
    ("protection", "labels"),
    [
        (Protection(), set()),
        (Protection(person="who"), {"(Y1) of ledger"}),
        (Protection(person="who", units_per_person=3), {"(Y2) of ledger", "(U1) of ledger", "(U8) of ledger"}),
    ],
    ids=["record", "rolled up", "max rows"],
)
def test_a_release_about_people_names_what_makes_a_person_of_their_rows(
    protection: Protection, labels: set[str]
) -> None:
    assert set(name_person_labels(protection)) == labels
    assert {label[1:3] for label in labels} <= stated_labels("ledger")


def test_what_is_checked_for_epsilon_is_not_claimed_for_rho() -> None:
    assert str(find_evidence("(L) of mechanisms", Kind.PURE)) == "machine-checked theorem"
    assert str(find_evidence("(L) of mechanisms", Kind.ZCDP)) == "proved on paper"
    assert str(find_evidence("(X) of count", Kind.PURE)) == "proved on paper"
    assert str(find_evidence("(S) of count", Kind.PURE)) == "proved on paper"


@pytest.mark.parametrize(
    "code",
    [
        "Lemma f : False. Admitted.",
        "Axiom f : False.",
        "Parameter f : False.",
        "Lemma f : False. Proof. admit. Qed.",
        "Unset Guard Checking.",
        "Section S.\nVariable x : nat.\nEnd S.\nVariable f : False.",
        "Hypothesis f : False.",
    ],
)
def test_what_would_be_taken_on_trust_is_refused_without_coq(code: str, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "theories").mkdir()
    (tmp_path / "theories" / "Trust.v").write_text(code)
    (tmp_path / "_CoqProject").write_text("theories/Trust.v\n")
    monkeypatch.setattr(CHECK, "HERE", tmp_path)
    monkeypatch.setattr(CHECK, "THEORIES", tmp_path / "theories")
    assert list(CHECK.check_sources([]))


def test_there_are_mutants_of_every_kind() -> None:
    """Most of them are false statements, and only the proof can refuse those whose pinned statement changes too."""
    mutants = MUTANTS.MUTANTS
    assert len(mutants) >= 40
    assert {mutant.refused_by for mutant in mutants} == {"build", "statements", "axioms", "labels"}
    assert sum(mutant.refused_by == "build" for mutant in mutants) > len(mutants) / 2
    assert sum(mutant.refused_by == "build" and mutant.pinned is not None for mutant in mutants) >= 10
    assert {mutant.file for mutant in mutants} >= {path.name for path in (PROOFS / "theories").glob("*.v")}
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in mutants}) == len(mutants)


@pytest.mark.parametrize("mutant", MUTANTS.MUTANTS, ids=lambda mutant: mutant.reason)
def test_a_mutant_applies_exactly_once(mutant: Any) -> None:
    assert MUTANTS.find_faults(mutant) == []
    assert all(old != new for _, old, new in MUTANTS.list_changes(mutant))
    assert mutant.reason


def test_refuters_of_mutants_are_lemmas() -> None:
    refuters = {mutant.refuter for mutant in MUTANTS.MUTANTS} - {""}
    assert refuters
    for refuter in refuters:
        module, name = refuter.split(".")
        assert name in CHECK.LEMMA.findall(CHECK.read_code(PROOFS / "theories" / f"{module}.v"))


def test_an_error_outside_a_proof_is_not_a_refusal() -> None:
    """A mutant that does not parse shows nothing."""
    text = "Lemma f : True.\nProof. exact: I. Qed.\nLemma g : ) True.\nProof.\nexact: I.\nQed.\n"
    assert [MUTANTS.find_proof(text, *place) for place in [(2, 7), (3, 10), (5, 0), (6, 0)]] == ["f", "", "g", "g"]


def test_theories_that_depend_on_a_changed_theory_are_built_again() -> None:
    assert MUTANTS.find_dependents("Groups", PROOFS / "theories") == ["Groups"]
    assert MUTANTS.find_dependents("Noise", PROOFS / "theories")[:4] == ["Noise", "Real", "Count", "Groups"]


@pytest.mark.heavy
@pytest.mark.parametrize(
    "command", [["make", "proofs"], [sys.executable, "proofs/mutants.py"]], ids=["proofs", "mutants"]
)
def test_coq_accepts_the_theories_and_no_mutant(command: list[str]) -> None:
    """`make test-slow` installs Coq first."""
    if shutil.which("coqc") is None:
        pytest.skip("Coq is not installed: scripts/setup coq")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
