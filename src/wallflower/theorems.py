"""How the theorems behind a release were checked: by a machine, on paper, or by tests alone.

`COVERAGE` says of which labels Coq has checked the proof (`make proofs`); it is the map `proofs/labels.txt`, which is
not shipped, and a test compares the two. A label that is not listed is proved on paper, in the `proof.md` of its owner.
The program itself is never proved: that it does what the theorems speak of is tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from wallflower.privacy import Kind


class Coverage(StrEnum):
    """How much of a label's statement Coq has checked."""

    WHOLE = "whole"
    EPSILON = "epsilon"  # what it says of ε and δ, not of ρ
    PART = "part"


class Evidence(StrEnum):
    """How a step from the records to the release was checked."""

    MACHINE_CHECKED = "machine-checked theorem"
    ON_PAPER = "proved on paper"
    TESTED = "tested"


COVERAGE: Final[Mapping[str, Coverage]] = {
    "(E) of count": Coverage.WHOLE,
    "(C1) of count": Coverage.PART,
    "(C2) of count": Coverage.PART,
    "(C5) of count": Coverage.WHOLE,
    "(N) of count": Coverage.PART,
    "(X) of count": Coverage.PART,
    "(B1) of count": Coverage.WHOLE,
    "(Q2) of count": Coverage.WHOLE,
    "(P) of scale": Coverage.EPSILON,
    "(H) of count": Coverage.PART,
    "(L) of who": Coverage.WHOLE,
    "(T) of who": Coverage.WHOLE,
    "(A) of who": Coverage.WHOLE,
    "(R) of who": Coverage.PART,
    "(U1) of ledger": Coverage.WHOLE,
    "(Y1) of ledger": Coverage.WHOLE,
    "(Y2) of ledger": Coverage.EPSILON,
    "(Y3) of ledger": Coverage.PART,
    "(Y4) of ledger": Coverage.WHOLE,
    "(F1) of ledger": Coverage.WHOLE,
    "(F2) of ledger": Coverage.PART,
    "(F3) of ledger": Coverage.PART,
    "(L) of mechanisms": Coverage.EPSILON,
    "(E1) of mechanisms": Coverage.PART,
    "(J1) of mechanisms": Coverage.EPSILON,
    "(K1) of mechanisms": Coverage.PART,
}
PROGRAM: Final = ("that the program computes what the theorems speak of", "that its draws have the laws they speak of")


def find_evidence(label: str, kind: Kind) -> Evidence:
    """Return how a label was checked, for a release that states this kind of loss.

    >>> str(find_evidence("(E) of count", Kind.PURE)), str(find_evidence("(Z) of mechanisms", Kind.ZCDP))
    ('machine-checked theorem', 'proved on paper')
    """
    coverage = COVERAGE.get(label)
    is_checked = coverage is Coverage.WHOLE or (coverage is Coverage.EPSILON and kind is not Kind.ZCDP)
    return Evidence.MACHINE_CHECKED if is_checked else Evidence.ON_PAPER


def sort_by_evidence(labels: Iterable[str], kind: Kind) -> dict[str, tuple[str, ...]]:
    """Sort what a release rests on by how it was checked.

    >>> sort_by_evidence(["(E) of count", "(F) of count"], Kind.PURE)["proved on paper"]
    ('(F) of count',)
    """
    known = list(dict.fromkeys(labels))
    sorted_labels = {
        str(evidence): tuple(label for label in known if find_evidence(label, kind) is evidence)
        for evidence in (Evidence.MACHINE_CHECKED, Evidence.ON_PAPER)
    }
    return {name: labels for name, labels in sorted_labels.items() if labels} | {str(Evidence.TESTED): PROGRAM}


def name_labels(owner: str, labels: str) -> tuple[str, ...]:
    """Write labels of one proof in full.

    >>> name_labels("count", "E N")
    ('(E) of count', '(N) of count')
    """
    return tuple(f"({label}) of {owner}" for label in labels.split())
