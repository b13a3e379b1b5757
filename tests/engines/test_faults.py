"""A question about tiles that is killed, interrupted or out of room: the charge stands, and nothing else is left."""

import os
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wallflower.ledger import Ledger

SCRIPT = """
import resource, signal, sys, time
import wallflower as wf
from wallflower.engines.local import LocalSheet, LocalTiles

source, ledger, fault = sys.argv[1:]
people = wf.open(source, ledger=ledger, engine="tiles")
if fault == "full":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    tile = LocalSheet.tile
    def narrow(sheet, *given, **more):
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        return tile(sheet, *given, **more)
    LocalSheet.tile = narrow
else:
    each = LocalTiles.each
    def slow(tiles, *given):
        for told in each(tiles, *given):
            print("looking", flush=True)
            time.sleep(1000)
            yield told
    LocalTiles.each = slow
people.count(neighbours=4, radius=0.2, epsilon="0.5")
print("answered", flush=True)
"""


@pytest.fixture
def place(tmp_path):
    x, y = np.random.default_rng(1).normal(size=(2, 3000))
    pq.write_table(pa.table({"x": x, "y": y}), tmp_path / "people.parquet")
    (tmp_path / "scratch").mkdir()
    return tmp_path


def started(place, fault):
    given = [str(place / "people.parquet"), str(place / "book.db"), fault]
    environment = os.environ | {"WALLFLOWER_SCRATCH": str(place / "scratch"), "XDG_DATA_HOME": str(place)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", SCRIPT, *given], env=environment, **pipes)


def left(place):
    """What the ledger and the scratch folder have."""
    with Ledger.open(place / "book.db") as book:
        events = [entry.event for entry in book.history("people") if entry.event in ("charge", "release")]
    return events, list((place / "scratch").iterdir())


@pytest.mark.parametrize("fault", ["SIGKILL", "SIGINT"])
def test_a_pass_that_is_cut_short_costs_the_charge_and_leaves_no_file(place, fault):
    with started(place, fault) as process:
        assert process.stdout.readline() == "looking\n"
        assert left(place) == (["charge"], [])
        process.send_signal(signal.Signals[fault])
        told, failed = process.communicate()
    assert told == ""
    assert process.returncode == -signal.Signals[fault]
    assert ("KeyboardInterrupt" in failed) is (fault == "SIGINT")
    assert left(place) == (["charge"], [])


def test_a_scratch_folder_without_room_fails_the_question_in_words(place):
    """A limit on the size of files stands for it, from when the records are cut into tiles on."""
    with started(place, "full") as process:
        told, failed = process.communicate()
    assert told == ""
    assert "cannot be written to" in failed
    assert "WALLFLOWER_SCRATCH" in failed
    assert left(place) == (["charge"], [])
