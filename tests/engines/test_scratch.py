"""What lies on disk has no name, no reader but its process, and ends with it."""

import os
import resource
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wallflower.engines.local import Scratch, sort_block, sort_rows
from wallflower.errors import SourceError

WRITER = """
import sys, time, numpy as np
from wallflower.engines.local import Scratch
scratch = Scratch()
scratch.append(np.full(1000, 4711.25))
print("written", flush=True)
time.sleep(1000)
"""


def test_arrays_come_back_as_they_were():
    scratch = Scratch()
    one, two = np.arange(5.0), np.arange(6, dtype=np.int32).reshape(2, 3)
    first, second = scratch.append(one), scratch.append(two)
    empty = scratch.append(np.empty((0, 3)))
    assert scratch.read(second, 6, np.int32).tolist() == list(range(6))
    assert scratch.read(first, 5, np.float64).tolist() == one.tolist()
    assert scratch.read(empty, 0, np.float64).tolist() == []


def test_nothing_is_left_when_the_process_is_killed(tmp_path):
    """Neither while it runs nor after kill -9 is there a file to open."""
    environment = os.environ | {"WALLFLOWER_SCRATCH": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", WRITER], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "written\n"
        assert list(tmp_path.iterdir()) == []
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_refused_by_name(monkeypatch, tmp_path):
    monkeypatch.setenv("WALLFLOWER_SCRATCH", str(tmp_path / "nowhere"))
    with pytest.raises(SourceError, match=r"nowhere cannot be written to .*WALLFLOWER_SCRATCH"):
        Scratch()


def test_a_full_disk_is_told_without_a_record():
    """A limit on the size of files stands for it: the kernel refuses to write on."""
    scratch = Scratch()
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(SourceError, match="cannot be written to") as told:
            scratch.append(np.full(10_000, 4711.25))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert "4711" not in str(told.value)
    assert told.value.__context__ is None


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 9)), max_size=60),
    most=st.integers(1, 20),
    size=st.integers(1, 9),
)
@settings(max_examples=60, deadline=None)
def test_rows_are_sorted_out_of_core_as_in_memory(rows, most, size):
    table = np.array(rows, dtype=np.uint64).reshape(-1, 3)
    blocks = list(sort_rows((table[at : at + size] for at in range(0, len(table), size)), most))
    assert [tuple(row) for block in blocks for row in block.tolist()] == sorted(rows)


@given(rows=st.lists(st.tuples(*[st.sampled_from([-1.5, -0.0, 0.0, 0.25, 1e300])] * 3), min_size=1, max_size=60))
@settings(max_examples=60, deadline=None)
def test_a_block_is_sorted_by_all_its_columns(rows):
    assert [tuple(row) for row in sort_block(np.array(rows)).tolist()] == sorted(rows)
