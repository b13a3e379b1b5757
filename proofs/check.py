"""Check the machine-checked theorems: assumptions, statements, and words that switch checking off.

    python3 proofs/check.py            # after `make -C proofs build`; `make proofs` does both
    python3 proofs/check.py --write    # accept the statements as they are now; read the diff before you commit it

Needs Coq and Python's standard library, nothing of wallflower. Exit code 0: every lemma of `labels.txt` is proved,
uses no axiom beyond those its row allows, and says what `statements.txt` says. Definitions are compared too: a theorem
about a changed definition has the same text and another meaning.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
THEORIES = HERE / "theories"
STATEMENTS = HERE / "statements.txt"

# `boolp.v` of mathcomp-analysis assumes these three; its real numbers, suprema and sums of series rest on them.
CLASSICAL = {"propositional_extensionality", "functional_extensionality_dep", "constructive_indefinite_description"}
AXIOMS = {"none": set[str](), "classical": CLASSICAL}
COVERAGE = ("whole", "epsilon", "part")

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


def write_audit(rows: list[Row]) -> list[str]:
    """Write the Coq file that prints every statement, its assumptions and all definitions; return the definitions."""
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
        lines += [_mark(f"== {row.lemma}"), f"Check @{row.lemma}.", _mark("--"), f"Print Assumptions {row.lemma}."]
    lines += [_mark("== definitions"), *(f"Print {name}." for name in definitions)]
    (HERE / "Audit.v").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return definitions


def _mark(text: str) -> str:
    return f'Eval compute in "{text}"%string.'


def run_audit(rows: list[Row]) -> tuple[list[str], list[set[str]], str]:
    """Ask Coq for statements, axioms of each lemma, and definitions."""
    write_audit(rows)
    command = ["coqc", "-w", "none", "-Q", "theories", "wallflower", "Audit.v"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    *parts, _, definitions = re.split(r'     = "== ([\w.]+)"%string\n     : string\n', done.stdout)[1:]
    statements, axioms = [], []
    for row, name, text in zip(rows, parts[::2], parts[1::2], strict=True):
        statement, assumptions = text.split('     = "--"%string\n     : string\n')
        if name != row.lemma:
            sys.exit(f"Coq printed {name} where {row.lemma} was asked for")
        statements.append(statement)
        if "Closed under the global context" in assumptions:
            axioms.append(set())
        else:
            names = re.findall(r"^([\w.]+)\s*(?::|$)", assumptions, re.M)
            axioms.append({name.split(".")[-1] for name in names} - {"Axioms"} or {assumptions.strip()})
    return statements, axioms, definitions


def check_audit(rows: list[Row], *, write: bool) -> Iterator[str]:
    """Find axioms beyond those allowed, and statements or definitions that differ from `statements.txt`."""
    statements, axioms, definitions = run_audit(rows)
    for row, used in zip(rows, axioms, strict=True):
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
    faults = list(check_sources(rows)) or list(check_audit(rows, write="--write" in sys.argv[1:]))
    labels = {(row.proof, row.label) for row in rows}
    print(
        "\n".join(faults) or f"{len(rows)} lemmas for {len(labels)} labels: proved, with no axiom beyond the allowed."
    )
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
