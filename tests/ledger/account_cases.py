"""The parts of shared/cases/accounting.json, and questions and data sets as it describes them."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from wallflower.privacy import Kind, Loss
from wallflower.units import NEIGHBOURS, Claim

NAME = "accounting.json"
KINDS = {
    "pure": Kind.PURE,
    "approximate": Kind.APPROXIMATE,
    "zcdp": Kind.ZCDP,
    "output-constrained": Kind.OUTPUT_CONSTRAINED,
}
SAID = ("window", "columns", "steps", "moves", "one_sign", "separable", "names")


def cases_file() -> Path | None:
    """Where the vectors are, beside the repository or where the environment says."""
    beside = [parent / "shared" / "cases" for parent in Path(__file__).resolve().parents]
    folders = [Path(os.environ["WALLFLOWER_CASES"])] if "WALLFLOWER_CASES" in os.environ else beside
    return next((folder / NAME for folder in folders if (folder / NAME).exists()), None)


def read_cases() -> dict[str, Any] | None:
    """All of them but one that takes `times` for the length of a run (test_unit_factors.py has the counterexample)."""
    place = cases_file()
    if place is None:
        return None
    found: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    return found | {"prices": [case for case in found["prices"] if not _is_run_of_times(case)]}


def _is_run_of_times(case: dict[str, Any]) -> bool:
    return case["question"]["protects"] == "window" and "times" in case["data"]


def account_cases(part: str) -> list[Any]:
    """The cases of one part, as parameters of a test."""
    found = read_cases()
    if found is None:
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"no shared/cases/{NAME} beside the repository"))]
    return [pytest.param(case, id=case.get("name")) for case in found[part]]


def claim_of(question: dict[str, Any]) -> Claim:
    """What a described question states."""
    amount = question["rho"] if question["kind"] == "zcdp" else question["epsilon"]
    neighbours = NEIGHBOURS[question["protects"]]
    loss = Loss(amount, delta=question.get("delta", 0), kind=KINDS[question["kind"]], neighbours=neighbours)
    rho = Fraction(question["rho_own"]) if "rho_own" in question else None
    return Claim(loss=loss, rho=rho, **{name: question[name] for name in SAID if name in question})
