"""`make test` gives what failed a second chance, alone, and says so; nothing else gets one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[1] / "scripts" / "run_tests.py"

FINE = """
import pytest

def test_passes():
    pass

@pytest.mark.skip
def test_is_skipped():
    pass
"""
FLAKY = """
from pathlib import Path
import pytest

def second_time(name):
    seen = Path(name)
    if seen.exists():
        return True
    seen.touch()
    return False

@pytest.mark.parametrize("letter", ["ε", "a b"])
def test_passes_at_last(letter):
    assert second_time(f"seen {letter}")

@pytest.fixture
def shaky():
    yield
    assert second_time("seen in the end")

def test_ends_badly_once(shaky):
    pass
"""
BROKEN = """
def test_fails():
    assert False
"""


def run(folder: Path, *more: str, **files: str) -> tuple[int, list[str]]:
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -q -p xdist.plugin\n")
    command = [sys.executable, str(SCRIPT), "-p", "no:cacheprovider", *more]
    bare = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=bare, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip().splitlines()


def test_a_run_without_failures_ends_with_the_summary_of_pytest(tmp_path: Path) -> None:
    code, lines = run(tmp_path, fine=FINE)
    assert code == 0
    assert re.fullmatch(r"1 passed, 1 skipped in [\d.]+s", lines[-1])


def test_what_passes_the_second_time_is_named_and_the_run_passes(tmp_path: Path) -> None:
    code, lines = run(tmp_path, fine=FINE, flaky=FLAKY)
    assert code == 0
    assert sorted(lines[-4:-1]) == [
        "flaky: test_flaky.py::test_ends_badly_once",
        "flaky: test_flaky.py::test_passes_at_last[\\u03b5]",
        "flaky: test_flaky.py::test_passes_at_last[a b]",
    ]
    assert lines[-1] == "4 passed, 0 failed, 1 skipped"


def test_what_fails_twice_fails_the_run(tmp_path: Path) -> None:
    code, lines = run(tmp_path, fine=FINE, flaky=FLAKY, broken=BROKEN)
    assert code == 1
    assert "failed twice: test_broken.py::test_fails" in lines[-5:-1]
    assert sum(line.startswith("flaky: ") for line in lines[-5:-1]) == 3
    assert lines[-1] == "4 passed, 1 failed, 1 skipped"


def test_what_cannot_be_collected_gets_no_second_chance(tmp_path: Path) -> None:
    code, lines = run(tmp_path, flaky=FLAKY, wrong="import nowhere\n")
    assert code != 0
    assert not [line for line in lines if "Once more" in line or line.startswith("flaky: ")]


@pytest.mark.parametrize(
    ("more", "expected"),
    [(["--no-such-option"], pytest.ExitCode.USAGE_ERROR), (["-k", "nothing"], pytest.ExitCode.NO_TESTS_COLLECTED)],
)
def test_another_end_of_pytest_is_ours(tmp_path: Path, more: list[str], expected: int) -> None:
    assert run(tmp_path, *more, fine=FINE)[0] == expected


def test_an_interrupt_gets_no_second_chance(tmp_path: Path) -> None:
    code, lines = run(tmp_path, flaky=FLAKY, stop="def test_stops():\n    raise KeyboardInterrupt\n")
    assert code == pytest.ExitCode.INTERRUPTED
    assert not [line for line in lines if "Once more" in line]


def test_a_worker_that_dies_is_a_failure_like_any_other(tmp_path: Path) -> None:
    code, lines = run(tmp_path, fine=FINE, dying="import os\n\ndef test_dies():\n    os.kill(os.getpid(), 9)\n")
    assert code == 1
    assert lines[-2:] == ["failed twice: test_dying.py::test_dies", "1 passed, 1 failed, 1 skipped"]


def test_very_many_failures_are_no_accident(tmp_path: Path) -> None:
    many = "import pytest\n\n@pytest.mark.parametrize('number', range(51))\ndef test_fails(number):\n    assert False\n"
    code, lines = run(tmp_path, many=many)
    assert code == 1
    assert lines[-2:] == ["51 tests failed; up to 50 would have been run again.", "0 passed, 51 failed, 0 skipped"]
