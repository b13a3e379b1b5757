"""The command line as a process of its own: start-up, pipes, interrupts, terminals."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parents[1]
RUN = "import sys; from above import Above; from wallflower.cli import main; sys.exit(main(None, (Above,)))"
ASK = ("above", "ward.csv", "--bar", "7", "--columns", "a,b", "--epsilon", "0.25")


@pytest.fixture(autouse=True)
def ward(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "ward.csv").write_text("a,b\n" + "".join(f"{row},{row * row}\n" for row in range(30)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WALLFLOWER_LEDGER", str(tmp_path / "ledger.db"))


def run(*arguments: str, code: str = RUN, **more: Any) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(HERE)}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
    return subprocess.Popen([sys.executable, "-c", code, *arguments], env=environment, text=True, **streams)


@pytest.mark.slow
def test_the_console_script_answers_help_without_heavy_modules() -> None:
    script = Path(sys.executable).with_name("wallflower")
    done = subprocess.run([script, "--help"], capture_output=True, text=True, check=True)
    assert "demo" in done.stdout
    heavy = "{'matplotlib', 'opendp', 'pyarrow', 'duckdb', 'sklearn', 'pandas', 'numba', 'scipy'} & set(sys.modules)"
    probe = f"import sys, wallflower.cli.program; print({heavy})"
    assert subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout == "set()\n"


@pytest.mark.slow
def test_a_closed_pipe_is_no_error() -> None:
    assert "95 % interval" in run(*ASK).communicate()[0]
    for arguments in (("ledger", "export"), ("ledger", "list"), (*ASK, "--json")):
        reading, writing = os.pipe()
        os.close(reading)
        process = run(*arguments, stdout=writing)
        os.close(writing)
        assert "Broken" not in process.communicate()[1]
        assert process.returncode == 141


@pytest.mark.slow
def test_files_are_written_though_nobody_reads_the_answer(tmp_path: Path) -> None:
    words = ["detector", "fit", "ward.csv", "--contamination", "10%", "--epsilon", "0.9", "--json", "--force"]
    words += ["--model", "ward.json", "--csv", "ward-table.csv", "--report", "ward.html"]
    reading, writing = os.pipe()
    os.close(reading)
    process = run(*words, code="import sys; from wallflower.cli import main; sys.exit(main())", stdout=writing)
    os.close(writing)
    process.communicate()
    assert process.returncode == 141
    kept = json.loads((tmp_path / "ward.json").read_text())
    assert kept["kind"] == "detector"
    assert (tmp_path / "ward-table.csv").stat().st_size > 0
    assert "</html>" in (tmp_path / "ward.html").read_text()


@pytest.mark.slow
def test_the_answer_is_told_though_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "ward.svg").mkdir()
    output, errors = run(*ASK, "--json", "--plot", "ward.svg").communicate()
    assert json.loads(output)["kind"] == "above"
    assert "ward.svg" in errors


@pytest.mark.slow
def test_a_real_interrupt_is_clean() -> None:
    slow = "import time; from above import Above\n"
    slow += "Above.answer = lambda *_: (print('looking', flush=True), time.sleep(600))\n"
    process = run(*ASK, code=slow + RUN)
    assert process.stdout is not None
    assert process.stdout.readline() == "looking\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert errors.startswith("wallflower: Interrupted; ε = 0.25 was charged (entry 1)")
    assert "Traceback" not in errors


@pytest.mark.slow
def test_a_bug_in_a_look_shows_no_record() -> None:
    broken = "from above import Above\ndef answer(*_): raise ValueError('patient 4711')\nAbove.answer = answer\n"
    process = run(*ASK, code=broken + RUN)
    output, errors = process.communicate()
    assert (output, process.returncode) == ("", 1)
    assert "internal error (ValueError)" in errors
    assert "4711" not in errors


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal_only() -> None:
    process = run(*ASK, "--json")
    assert "How many" not in process.communicate()[1]
    output, said = on_a_terminal(*ASK, "--json", code="")
    assert "How many records" in said
    assert json.loads(output)["ledger_id"] == 3


def on_a_terminal(*arguments: str, code: str) -> tuple[str, str]:
    """What is said on stdout, which is piped, and on a terminal."""
    ours, theirs = pty.openpty()
    process = run(*arguments, code=code + RUN, stderr=theirs)
    os.close(theirs)
    with ThreadPoolExecutor(1) as pool:  # a terminal holds little: whoever writes more waits for a reader
        said = pool.submit(read_to_the_end, ours)
        output = process.communicate()[0]
        return output, said.result()


def read_to_the_end(terminal: int) -> str:
    """All that is written on a terminal until nobody has it open any more."""
    parts = []
    with suppress(OSError), os.fdopen(terminal, "rb", buffering=0) as reader:  # Linux ends a terminal with an error
        while part := reader.read(4096):
            parts.append(part)
    return b"".join(parts).decode()


STEPS = """
import time
from above import Above
from wallflower import progress
def answer(*_):
    with progress.steps("weighing records", 3) as step:
        step(2)
        time.sleep(2)
    return 7
Above.answer = answer
"""


@pytest.mark.slow
def test_counted_steps_are_a_bar_on_a_terminal_and_nothing_elsewhere() -> None:
    output, said = on_a_terminal(*ASK, "--json", code=STEPS)
    assert json.loads(output)["value"] == 7
    assert "weighing records" in said
    assert "2/3" in said
    assert "weighing" not in run(*ASK, code=STEPS + RUN).communicate()[1]


@pytest.mark.slow
def test_what_is_piped_on_is_not_caught_by_the_spinner() -> None:
    found = "from types import SimpleNamespace as Thing\nfrom wallflower.cli import lab\n"
    found += "finding = Thing(name='laplace', ok=True, caught=False, text='0.9')\n"
    found += "lab._evidence = Thing(audits=lambda kind, quick, questions: [finding])\n"
    output, said = on_a_terminal("audit", "above", code=found)
    assert output == "holds  laplace: 0.9\n"
    assert "laplace" not in said
