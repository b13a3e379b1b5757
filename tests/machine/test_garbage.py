"""What is loaded for good is not looked through for garbage; what comes later is."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from wallflower.machine.garbage import load_for_good


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    yield
    gc.enable()
    gc.unfreeze()


def test_nothing_is_collected_meanwhile_and_what_is_there_is_left_out_after() -> None:
    with load_for_good():
        assert not gc.isenabled()
        loaded = [[]]
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    assert not any(found is loaded for found in gc.get_objects())


def test_a_failure_leaves_the_collector_on() -> None:
    with pytest.raises(ZeroDivisionError), load_for_good():
        1 / 0  # noqa: B018
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with load_for_good():
        pass
    assert not gc.isenabled()


@pytest.mark.slow
def test_a_command_of_a_process_is_loaded_for_good_and_one_that_is_called_is_not() -> None:
    assert kept("main(['--version'])") == (0, True)
    count, is_collecting = kept("main()", "--version")
    assert count > 10_000
    assert is_collecting


@pytest.mark.slow
def test_a_worker_begins_with_nothing_that_it_is_to_load_for_good() -> None:
    heavy = ("fastapi", "jinja2", "sqlalchemy", "typer", "wallflower.service.app", "wallflower.service.settings")
    probe = f"import sys, wallflower.service.worker; print({{*{heavy!r}}} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout == "set()\n"


def kept(call: str, *arguments: str) -> tuple[int, bool]:
    """How many objects a process leaves out once it has made this call, and whether it collects the others."""
    probe = f"import gc; from wallflower.cli import main; {call}; print(gc.get_freeze_count(), gc.isenabled())"
    done = subprocess.run([sys.executable, "-c", probe, *arguments], capture_output=True, text=True, check=True)
    count, is_collecting = done.stdout.splitlines()[-1].split()
    return int(count), is_collecting == "True"
