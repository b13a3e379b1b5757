"""What the two commands stand on: exact pins, and targets that end as CI expects."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PIN = re.compile(r"([\w.-]+)==([\w.]+)")


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = [PIN.fullmatch(line) for line in lines if line and not line.startswith("#")]
    assert all(found), "every line of constraints.txt is NAME==VERSION"
    return {canonicalize_name(pin[1]): pin[2] for pin in found if pin}


@pytest.mark.parametrize("extra", ["", "frames", "dev"])
def test_what_is_installed_is_pinned_within_its_floor(extra: str) -> None:
    known = pins()
    wanted = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    for requirement in map(Requirement, wanted):
        name = canonicalize_name(requirement.name)
        if name != "wallflower":
            assert name in known, f"{name} is not pinned in constraints.txt"
            assert known[name] in requirement.specifier, f"{name} {known[name]} is outside {requirement.specifier}"


def test_the_package_has_the_extras_it_promises() -> None:
    assert {"service", "spark", "frames", "dev"} <= set(PROJECT["optional-dependencies"])


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("target", ["demo", "test", "check", "docs", "verbs", "bench", "clean"])
def test_targets_can_be_made(target: str) -> None:
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_pytest_has_the_last_word() -> None:
    done = subprocess.run(["make", "-n", "test"], cwd=ROOT, capture_output=True, text=True, check=True)
    *before, last = done.stdout.strip().splitlines()
    assert last.endswith("-m pytest -n 2")
    assert [line for line in before if "lint-imports" in line]
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
