"""Install the wheel for each Python at hand that we promise, and run the quick tests of the core with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PROMISED: Final = ("3.11", "3.12", "3.13")
NEEDS: Final = ("hypothesis", "pytest", "pytest-xdist", "pyyaml")
CORE: Final = (
    *("tests/test_config.py", "tests/test_contract.py", "tests/mechanisms/test_additive.py", "tests/test_noise.py"),
    *("tests/test_privacy.py", "tests/test_release.py", "tests/cli", "tests/data", "tests/ledger", "tests/queries"),
    *("tests/report", "tests/streams"),
)


def interpreters() -> Iterator[tuple[str, str]]:
    """Version and program of each promised Python that is at hand: on the path, or kept by pyenv."""
    kept = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for version in PROMISED:
        inside = sorted(kept.glob(f"{version}.*/bin/python"))
        found = [str(path) for path in reversed(inside)] + [shutil.which(f"python{version}") or ""]
        working = next((program for program in found if program and _works(program)), None)
        if working:
            yield version, working


def main() -> int:
    """Zero, if the tests pass with every one of them."""
    at_hand = dict(interpreters())
    for version in PROMISED:
        if version not in at_hand:
            sys.stdout.write(f"Python {version} is not at hand: left out\n")
    return max((_tested(version, program) for version, program in at_hand.items()), default=1)


def _tested(version: str, program: str) -> int:
    folder = ROOT / "build" / f"python-{version}"
    inside = folder / "bin" / "python"
    install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--constraint",
        "constraints.txt",
        ".[bench,excel,frames,service]",
        *NEEDS,
    ]
    for words in ([program, "-m", "venv", str(folder)], [str(inside), *install]):
        if code := subprocess.run(words, cwd=ROOT, check=False).returncode:
            return code
    tests = ["-m", "pytest", "-m", "not slow and not heavy", "-n", "2", "-p", "no:cacheprovider", *CORE]
    code = subprocess.run([str(inside), *tests], cwd=ROOT, check=False).returncode
    sys.stdout.write(f"Python {version}: {'failed' if code else 'passed'}\n")
    return code


def _works(program: str) -> bool:
    """Whether it starts: a shim of pyenv may be there without its Python."""
    return subprocess.run([program, "-c", "import venv"], capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    raise SystemExit(main())
