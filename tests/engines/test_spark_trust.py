"""What Spark must not show: refused where it would, and found by the same look where a steward insists. And a driver
that is killed has paid for what it asked."""

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sparks import require_java

from wallflower.ledger import Ledger

pytestmark = pytest.mark.slow  # Java takes seconds to start

OPEN = textwrap.dedent(
    """
    import os, sys
    from pathlib import Path
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql import SparkSession
    from wallflower.data import Schema
    from wallflower.data.scans import load_into
    from wallflower.engines.spark.engine import SparkEngine
    from wallflower.errors import DataError, ParameterError
    from wallflower.neighbours.noisy_count import exact_steps as count_outliers

    folder, planted = Path(sys.argv[1]), 471108.150625
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[1]").config("spark.local.dir", str(folder))
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.ui.port", "0")
    log = folder.parent / "log"
    log.mkdir()
    builder = builder.config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", f"file://{log}")
    session = builder.config("spark.eventLog.compress", "false").getOrCreate()
    try:
        SparkEngine(session)
    except ParameterError as refusal:
        print("refused:", refusal, flush=True)
    engine = SparkEngine(session, insecure=True)
    sheet = engine.keep("x", [[np.full(1000, planted), np.arange(1000.0)]], 1)
    with sheet.tile([0, 1], np.column_stack, size=300):
        files = [path for path in folder.rglob("*") if path.is_file()]
        print("found:", any(np.float64(planted).tobytes() in path.read_bytes() for path in files), flush=True)
    pq.write_table(pa.table({"x": np.full(50, planted), "y": np.arange(50.0)}), folder / "people.parquet")
    kept = load_into(folder / "people.parquet", engine)
    count_outliers(kept.points(), 1.0, 3, 5, normalise=True)
    try:
        load_into(folder / "people.parquet", engine, schema=Schema.of(["x"], bounds={"x": (0, 1)}))
    except DataError:
        print("out of bounds", flush=True)

    def logged():
        return "471108" in "".join(path.read_text() for path in log.rglob("*") if path.is_file())

    print("logged:", logged(), flush=True)
    session.sql("SELECT id * 471108.150625D AS x FROM range(9)").collect()
    session.stop()
    print("logged by others:", logged(), flush=True)
    """
)

KILLED = textwrap.dedent(
    """
    import os, signal, sys
    import wallflower as wf
    from wallflower.queries.count import Count

    def answer(query, data, noise):
        with data.tile(size=300):
            os.kill(os.getpid(), signal.SIGKILL)

    Count.answer = answer
    people = wf.open(sys.argv[1], ledger=sys.argv[2], engine="local[1,4]")
    people.count(neighbours=4, radius=0.2, epsilon="0.5")
    """
)


def test_an_open_session_is_refused_and_the_look_for_records_finds_them_there(tmp_path):
    """The look of test_spark.py can fail: without encryption the planted number lies on the disk. In Spark's log of all
    it does, plans and failures included, it is not, though it would be there if it were part of a query."""
    require_java()
    (tmp_path / "scratch").mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", OPEN, str(tmp_path / "scratch")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "refused: engine: this Spark session would show records to others" in done.stdout
    assert "spark.io.encryption.enabled=true, spark.ui.enabled=false" in done.stdout
    assert "found: True" in done.stdout
    assert "out of bounds" in done.stdout
    assert "logged: False" in done.stdout
    assert "logged by others: True" in done.stdout


def test_a_driver_that_is_killed_while_tiles_are_cut_has_paid_and_told_nothing(tmp_path):
    require_java()
    records, scratch = np.random.default_rng(1).normal(size=(600, 2)), tmp_path / "scratch"
    scratch.mkdir()
    pq.write_table(pa.table({"x": records[:, 0], "y": records[:, 1]}), tmp_path / "people.parquet")
    book = str(tmp_path / "book.db")
    environment = os.environ | {"WALLFLOWER_SCRATCH": str(scratch)}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "people.parquet"), book],
        env=environment,
        stdout=subprocess.PIPE,  # Java has it too: it is at its end when Java is
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert done.stdout == b""
    with Ledger.open(book) as ledger:
        events = [entry.event for entry in ledger.history("people")]
        assert events.count("charge") == 1
        assert events.count("release") == 0
    left = [path for path in scratch.rglob("*") if path.is_file() and path.name != "log4j2.properties"]
    assert left == []
