"""Check the machine-checked theorems: assumptions, statements, and words that switch checking off.

    python3 proofs/check.py            # after `make -C proofs build`; `make proofs` does both
    python3 proofs/check.py --write    # accept the statements as they are now; read the diff before you commit it

Needs Coq and Python's standard library, nothing of wallflower. Exit code 0: every lemma of `labels.txt` is proved,
uses no axiom beyond those its row allows, says what `statements.txt` says, and is named with its coverage by the proof
on paper. Definitions are compared too: a theorem
about a changed definition has the same text and another meaning.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
THEORIES = HERE / "theories"
SOURCE = HERE.parent / "src" / "wallflower"
STATEMENTS = HERE / "statements.txt"

# `boolp.v` of mathcomp-analysis assumes these three; its real numbers, suprema and sums of series rest on them.
CLASSICAL = {"propositional_extensionality", "functional_extensionality_dep", "constructive_indefinite_description"}
AXIOMS = {"none": set[str](), "classical": CLASSICAL}
COVERAGE = ("whole", "epsilon", "part")

STATED = re.compile(r"^(?:\*\*|## )\(([A-Z]\d?)\)", re.M)
MARK = re.compile(r"machine-checked( in part| for ε)?: ((?:`[\w.]+`(?:, )?)+)", re.I)
COVERAGE_OF_MARK = {"": "whole", " for ε": "epsilon", " in part": "part"}

FORBIDDEN = re.compile(
    r"\b(Admitted|admit|give_up|Axioms?|Conjectures?|Parameters?|bypass_check"
    r"|Unset (?:Guard|Positivity|Universe) Checking|type_in_type|Declare Module|Declare ML Module|Redirect|Load)\b"
)
ASSUMED = re.compile(r"^\s*(?:Variables?|Hypothes[ie]s|Context|Let)\b", re.M)
LEMMA = re.compile(r"^(?:Theorem|Lemma|Corollary) (\w+)", re.M)
DEFINITION = re.compile(r"^(?:Definition|Fixpoint|Record|Inductive) (\w+)", re.M)
COMMENT = re.compile(r"\(\*.*?\*\)", re.S)


class Row(NamedTuple):
    """One line of `labels.txt`: a lemma that stands for (a part of) a label of a proof."""

    proof: str
    label: str
    coverage: str
    lemma: str
    axioms: str

    @property
    def module(self) -> str:
        return self.lemma.split(".")[0]

    @property
    def name(self) -> str:
        return self.lemma.split(".")[1]


def read_rows() -> list[Row]:
    """Read `labels.txt`; raise ValueError for a line that is not a row."""
    rows = []
    for line in (HERE / "labels.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            words = line.split()
            if len(words) != 5 or words[2] not in COVERAGE or words[4] not in AXIOMS:
                raise ValueError(
                    f"labels.txt: {line!r} is not PROOF LABEL whole|epsilon|part FILE.LEMMA none|classical"
                )
            rows.append(Row(*words))
    return rows


def read_code(path: Path) -> str:
    """Read a theory without its comments."""
    return COMMENT.sub("", path.read_text(encoding="utf-8"))


def find_loose_assumptions(code: str) -> Iterator[str]:
    """Find variables and hypotheses outside a section: outside they are axioms, used or not."""
    depth = 0
    for line in code.splitlines():
        depth += bool(re.match(r"\s*Section\b", line)) - bool(re.match(r"\s*End\b", line))
        if depth == 0 and ASSUMED.match(line):
            yield line.strip()


def check_sources(rows: list[Row]) -> Iterator[str]:
    """Find what needs no Coq: forbidden words, assumptions outside sections, lemmas that are not stated."""
    listed = set((HERE / "_CoqProject").read_text(encoding="utf-8").split())
    for path in sorted(THEORIES.glob("*.v")):
        code = read_code(path)
        yield from (f"{path.name}: {word} is not allowed" for word in sorted(set(FORBIDDEN.findall(code))))
        yield from (f"{path.name}: outside a section: {line}" for line in find_loose_assumptions(code))
        if f"theories/{path.name}" not in listed:
            yield f"{path.name} is not in _CoqProject, so it is not built"
    for row in rows:
        path = THEORIES / f"{row.module}.v"
        if not path.is_file() or LEMMA.findall(read_code(path)).count(row.name) != 1:
            yield f"{row.lemma} is not stated once in theories/{row.module}.v"


def read_marks(proof: Path) -> dict[str, tuple[str, list[str]]]:
    """Map each label that a proof on paper calls machine-checked to its coverage and the lemmas it names.

    Raise ValueError for a mark that is misspelt, or for a label with two of them.
    """
    parts = STATED.split(proof.read_text(encoding="utf-8"))
    marks = {}
    for label, text in zip(parts[1::2], parts[2::2], strict=True):
        claims = MARK.findall(text)
        if len(claims) != len(re.findall("machine-checked", text, re.I)) or len(claims) > 1:
            raise ValueError(f"{proof}: the mark of ({label}) is misspelt, or there are two")
        for part, lemmas in claims:
            marks[label] = (COVERAGE_OF_MARK[part], re.findall(r"`([\w.]+)`", lemmas))
    return marks


def check_marks(rows: list[Row]) -> Iterator[str]:
    """Find labels whose mark in the proof on paper differs from `labels.txt`.

    A mark without a lemma claims too much; a lemma without a mark proves what no proof uses.
    """
    marked = {
        (path.relative_to(SOURCE).as_posix(), label): mark
        for path in sorted([*SOURCE.rglob("proof.md"), SOURCE / "mechanisms.md"])
        for label, mark in read_marks(path).items()
    }
    listed: dict[tuple[str, str], tuple[str, list[str]]] = {}
    for row in rows:
        coverage, names = listed.setdefault((row.proof, row.label), (row.coverage, []))
        if coverage != row.coverage:
            yield f"{row.proof} ({row.label}) is {coverage} in one row and {row.coverage} in another"
        names.append(row.lemma)
    for proof, label in sorted(marked.keys() | listed.keys()):
        if marked.get((proof, label)) != listed.get((proof, label)):
            yield f"{proof} ({label}): the proof and labels.txt name different lemmas or coverages"


def write_audit(rows: list[Row], modules: Collection[str]) -> None:
    """Write the Coq file that prints all statements and definitions, and the assumptions of lemmas in `modules`."""
    stems = [path.stem for path in sorted(THEORIES.glob("*.v"))]
    definitions = [f"{stem}.{name}" for stem in stems for name in DEFINITION.findall(read_code(THEORIES / f"{stem}.v"))]
    lines = [
        "Require Import String.",
        "From mathcomp Require Import all_ssreflect all_fingroup all_algebra.",
        "From mathcomp.classical Require Import boolp classical_sets.",
        "From mathcomp.analysis Require Import reals ereal constructive_ereal esum sequences exp.",
        f"From wallflower Require {' '.join(stems)}.",
        "Local Open Scope ring_scope. Set Printing Width 110. Set Printing Parentheses.",
    ]
    for row in rows:
        lines += [_mark(f"== {row.lemma}"), f"Check @{row.lemma}.", _mark("--")]
        lines += [f"Print Assumptions {row.lemma}."] if row.module in modules else []
    lines += [_mark("== definitions"), *(f"Print {name}." for name in definitions)]
    (HERE / "Audit.v").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _mark(text: str) -> str:
    return f'Eval compute in "{text}"%string.'


def run_audit(rows: list[Row], modules: Collection[str]) -> tuple[list[str], dict[str, set[str]], str]:
    """Ask Coq for statements, the axioms of each lemma in `modules`, and definitions."""
    write_audit(rows, modules)
    command = ["coqc", "-w", "none", "-Q", "theories", "wallflower", "Audit.v"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    *parts, _, definitions = re.split(r'     = "== ([\w.]+)"%string\n     : string\n', done.stdout)[1:]
    statements: list[str] = []
    axioms: dict[str, set[str]] = {}
    for row, name, text in zip(rows, parts[::2], parts[1::2], strict=True):
        statement, assumptions = text.split('     = "--"%string\n     : string\n')
        if name != row.lemma:
            sys.exit(f"Coq printed {name} where {row.lemma} was asked for")
        statements.append(statement)
        if row.module not in modules:
            continue
        if "Closed under the global context" in assumptions:
            axioms[row.lemma] = set()
        else:
            names = re.findall(r"^([\w.]+)\s*(?::|$)", assumptions, re.M)
            axioms[row.lemma] = {name.split(".")[-1] for name in names} - {"Axioms"} or {assumptions.strip()}
    return statements, axioms, definitions


def check_audit(rows: list[Row], *, write: bool, modules: Collection[str] | None = None) -> Iterator[str]:
    """Find axioms beyond those allowed, and statements or definitions that differ from `statements.txt`.

    Axioms are checked for the lemmas of `modules`; default: of all. Coq takes most of its time for them.
    """
    statements, axioms, definitions = run_audit(rows, {row.module for row in rows} if modules is None else modules)
    for row in rows:
        if row.lemma not in axioms:
            continue
        used = axioms[row.lemma]
        print(f"{row.lemma:36} {', '.join(sorted(used)) or 'no axioms'}")
        if not used <= AXIOMS[row.axioms]:
            yield f"{row.lemma} uses {', '.join(sorted(used - AXIOMS[row.axioms]))}; its row allows {row.axioms}"
        elif not used and row.axioms != "none":
            yield f"{row.lemma} uses no axiom; its row says {row.axioms}"
    text = "".join([*statements, definitions])
    if write:
        STATEMENTS.write_text(text, encoding="utf-8")
    elif not STATEMENTS.is_file() or STATEMENTS.read_text(encoding="utf-8") != text:
        yield "a statement or a definition differs from statements.txt; read it, then run check.py --write"


def main() -> int:
    rows = read_rows()
    faults = [*check_sources(rows), *check_marks(rows)] or list(check_audit(rows, write="--write" in sys.argv[1:]))
    labels = {(row.proof, row.label) for row in rows}
    print(
        "\n".join(faults) or f"{len(rows)} lemmas for {len(labels)} labels: proved, with no axiom beyond the allowed."
    )
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
