"""What a paper prints, as facts in a file beside its code, and what is set beside each of them.

Every value that a page calls printed is read from here. The files hold numbers and terms, no sentences of the papers.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

WORKS: Final = "works"
IMPROVED: Final = "works and improved"
DEVIATES: Final = "deviates"
TOO_FEW_RUNS: Final = "too few runs"
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")


@dataclass(frozen=True, slots=True)
class Fact:
    """What is printed, and in which section, figure, table or equation."""

    value: str
    where: str

    @property
    def numbers(self) -> tuple[str, ...]:
        """Every number in what is printed, as it is written there.

        >>> Fact("about 9.13e3 (10%)", "IV").numbers
        ('9.13e3', '10')
        """
        return tuple(_NUMBER.findall(self.value))

    @property
    def number(self) -> float:
        """The first of them."""
        return float(self.numbers[0])


@dataclass(frozen=True, slots=True)
class Comparison:
    """An item of a paper beside ours. What deviates says why, and so does what too few runs leave open."""

    item: str
    fact: Fact
    ours: str
    status: str = WORKS
    why: str = ""

    def __post_init__(self) -> None:
        assert self.status in (WORKS, IMPROVED, DEVIATES, TOO_FEW_RUNS)
        assert self.why or self.status not in (DEVIATES, TOO_FEW_RUNS), f"{self.item}: no reason"


def judge(holds: bool, why: str, *, runs: int, wanted: int, within: str = "") -> tuple[str, str]:
    """Status and reason of a claim that the numbers bear out or not. Fewer runs than the paper's turn no claim round.

    >>> judge(False, "another machine", runs=12, wanted=200)
    ('too few runs', '12 runs here, 200 in the paper: not held against the claim')
    """
    if holds:
        return WORKS, within
    if runs < wanted:
        here = f"{runs} run{'' if runs == 1 else 's'} here"
        return TOO_FEW_RUNS, f"{here}, {wanted} in the paper: not held against the claim"
    return DEVIATES, why


@cache
def printed_facts(paper: str) -> Mapping[str, Fact]:
    """The facts of a paper by item, in the order of its file: `papers/PAPER/printed.csv`."""
    return {row["item"]: Fact(row["value"], row["where"]) for row in printed_table(paper, "printed")}


@cache
def printed_table(paper: str, name: str) -> tuple[Mapping[str, str], ...]:
    """The rows of a printed table by column: `papers/PAPER/NAME.csv`."""
    with (Path(__file__).parent / paper / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))
