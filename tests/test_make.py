"""What the two commands stand on: exact pins, and targets that end as CI expects."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DEBIAN = "3.11.2"
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


def test_every_pin_runs_on_the_oldest_python_that_is_at_hand() -> None:
    """Debian 12 has 3.11.2, and `make` takes the Python that the machine has."""
    for name in pins():
        try:
            needs = metadata(name)["Requires-Python"]
        except PackageNotFoundError:  # of another Python or system
            continue
        assert SpecifierSet(needs or "").contains(DEBIAN), f"{name} needs Python {needs}; pin one that runs on {DEBIAN}"


def test_the_package_has_the_extras_it_promises() -> None:
    assert {"service", "spark", "frames", "dev"} <= set(PROJECT["optional-dependencies"])


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(
    "target",
    [
        "demo",
        "test",
        "test-slow",
        "check",
        "docs",
        "site",
        "wheel",
        "pythons",
        "verbs",
        "bench",
        "soak",
        "proofs",
        "clean",
    ],
)
def test_targets_can_be_made(target: str) -> None:
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_tests_have_the_last_word() -> None:
    *before, last = commands("test")
    assert last.endswith('run_tests.py -m "not heavy"')
    assert [line for line in before if "lint-imports" in line]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_no_test_is_left_out_of_both() -> None:
    assert commands("test-slow")[-1].endswith("run_tests.py -m heavy")


def commands(target: str) -> list[str]:
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip().splitlines()


MAKE = """\
#!/bin/sh
case $1 in
    test) echo "flaky: one"; echo "7 passed, 0 failed, 1 skipped" ;;
    test-slow) echo "2 passed in 1s"; exit "$SLOW" ;;
esac
"""


@pytest.mark.parametrize(
    ("limit", "slow", "code", "last"),
    [
        (900, 0, 0, ["2 passed in 1s", "make test ended so:", "flaky: one", "7 passed, 0 failed, 1 skipped"]),
        (900, 1, 1, ["2 passed in 1s"]),
        (0, 1, 0, ["flaky: one", "7 passed, 0 failed, 1 skipped"]),
    ],
)
def test_ci_runs_the_heavy_tests_if_there_is_time(tmp_path: Path, limit: int, slow: int, code: int, last: list[str]):
    make = tmp_path / "make"
    make.write_text(MAKE)
    make.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLOW": str(slow), "WALLFLOWER_CI_SECONDS": str(limit)}
    done = subprocess.run([ROOT / ".ci" / "run"], env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == code, done.stderr
    assert lines[-len(last) :] == last
    assert ("make test-slow was left out" in done.stdout) is (limit == 0)


def test_ci_stops_heavy_tests_that_take_too_long_and_says_so(tmp_path: Path) -> None:
    make = tmp_path / "make"
    make.write_text("#!/bin/sh\necho '7 passed, 0 failed, 1 skipped'\n[ $1 = test ] || sleep 600\n")
    make.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "WALLFLOWER_CI_END": "0"}
    done = subprocess.run([ROOT / ".ci" / "run"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "make test-slow was stopped" in done.stdout
    assert done.stdout.splitlines()[-2:] == ["make test ended so:", "7 passed, 0 failed, 1 skipped"]


def test_ci_ends_with_the_summary_of_what_failed(tmp_path: Path) -> None:
    make = tmp_path / "make"
    make.write_text("#!/bin/sh\necho '6 passed, 1 failed, 1 skipped'\nexit 2\n")
    make.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([ROOT / ".ci" / "run"], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "6 passed, 1 failed, 1 skipped\n")


@pytest.mark.parametrize(
    ("wanted", "package"),
    [("chromium", "chromium"), ("postgresql", "postgresql"), ("java", "openjdk-17-jre-headless")],
)
def test_setup_looks_for_programs_and_not_for_its_own_functions(wanted: str, package: str, tmp_path: Path) -> None:
    """Where nothing is installed and nothing can be, it says what is missing; a function of its own is no program."""
    for program in ("bash", "env", "id", "ls"):
        (tmp_path / program).symlink_to(str(shutil.which(program)))
    script = (ROOT / "scripts" / "setup").read_text(encoding="utf-8").replace("/usr/lib/postgresql", str(tmp_path))
    (tmp_path / "setup").write_text(script, encoding="utf-8")
    done = subprocess.run(
        ["bash", str(tmp_path / "setup"), wanted],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"apt-get install {package}" in done.stderr
