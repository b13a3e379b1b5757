"""A test that hangs fails, where it hangs, and the others go on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CONFTEST = """
import limits
from limits import pytest_runtest_protocol
limits.QUICK = limits.AGAIN = 1
"""
HANGING = """
import subprocess, threading, pytest

def test_hangs():
    threading.Event().wait()

def test_hangs_and_so_does_its_end():
    with subprocess.Popen(["sleep", "600"]) as sleeping:
        try:
            sleeping.wait()
        finally:
            try:
                sleeping.wait()
            finally:
                sleeping.kill()

def test_is_quick():
    pass

@pytest.fixture
def never():
    yield
    threading.Event().wait()

def test_ends_in_a_hang(never):
    pass
"""


@pytest.mark.slow
def test_a_test_that_hangs_fails_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_hanging.py").write_text(HANGING)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout.count("it hangs: not done after 1 seconds") >= 3
    assert "threading.Event().wait()" in done.stdout
    assert "2 failed, 2 passed, 1 error" in done.stdout.splitlines()[-1]
