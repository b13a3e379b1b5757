"""A cluster of two executors, each a process: one that is killed changes nothing. And a disk that is full."""

import resource
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from sparks import assert_that_kills_change_nothing, executor, spark

from wallflower.data import load
from wallflower.data.scans import load_into
from wallflower.errors import SourceError
from wallflower.neighbours.noisy_count import exact_steps

pytestmark = pytest.mark.heavy  # Javas start, and new ones after each kill; on a full disk Spark tries for a minute


@pytest.fixture
def engine(tmp_path, monkeypatch):
    settings = {
        "spark.authenticate.secret": "of this test alone",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.task.maxFailures": "8",
    }
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("".join(f"{key} {word}\n" for key, word in settings.items()))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    monkeypatch.setenv("SPARK_WORKER_DIR", str(tmp_path / "work"))
    monkeypatch.setenv("SPARK_HOME", pyspark.__path__[0])
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    with spark("local-cluster[2,1,512]") as (made, _):
        yield made


@pytest.fixture
def people(tmp_path):
    records = np.random.default_rng(3).normal(size=(600, 2))
    (tmp_path / "people").mkdir()
    for at in range(2):
        part = records[at * 300 : at * 300 + 300]
        pq.write_table(pa.table({"x": part[:, 0], "y": part[:, 1]}), tmp_path / "people" / f"{at}.parquet")
    return tmp_path / "people"


def test_an_executor_that_is_killed_in_each_pass_changes_nothing(engine, people, tmp_path, monkeypatch):
    assert_that_kills_change_nothing(engine, people, tmp_path, monkeypatch, executor)


def test_a_full_disk_is_a_failure_that_quotes_nothing_and_afterwards_all_is_well(people):
    asked = {"radius": 0.2, "neighbours": 4, "slack": 8, "normalise": True}
    with spark() as (made, _):
        java = made._context._gateway.proc.pid
        kept = load_into(people, made).points()
        resource.prlimit(java, resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
        with pytest.raises(SourceError, match=r"Spark (could not finish|has no room)") as told:
            exact_steps(kept, **asked)
        assert told.value.__context__ is None
        resource.prlimit(java, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert exact_steps(kept, **asked) == exact_steps(load(people).points().values, **asked)
