"""What is in an object store is read as from a disk, by Arrow's own client, and no refusal holds a key or a record."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wallflower as wf
from stores import CLOSED, object_store
from wallflower.data import fingerprints
from wallflower.data.scans import load_into
from wallflower.errors import SourceError

N = 600
FACTS = wf.Schema.of(["x", "y", "ward"], categories={"ward": ["a", "b"]}, rows=N)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file, a folder of files and one of folders, all with the same records."""
    made, place = np.random.default_rng(4), tmp_path_factory.mktemp("store") / "clinic"
    place.mkdir()
    ward = np.repeat(["a", "b"], N // 2)
    table = pa.table({"x": made.normal(size=N), "y": made.normal(size=N), "ward": ward})
    pq.write_table(table, place / "one.parquet")
    for at in range(3):
        (place / "many").mkdir(exist_ok=True)
        pq.write_table(table.slice(at * 200, 200), place / "many" / f"{at}.parquet")
    for at, name in enumerate("ab"):
        (place / "hive" / f"ward={name}").mkdir(parents=True)
        part = table.slice(at * (N // 2), N // 2).drop_columns(["ward"])
        pq.write_table(part, place / "hive" / f"ward={name}" / "part.parquet")
    (place / "empty").mkdir()
    (place / "empty" / "people.parquet").touch()
    (place / "other").mkdir()
    (place / "other" / "people.csv").write_text("x\n1\n2\n")
    (place / "torn.parquet").write_bytes((place / "one.parquet").read_bytes()[:-9])
    return place


@pytest.fixture(scope="module")
def asked(folder):
    with pytest.MonkeyPatch.context() as monkeypatch, object_store(folder.parent) as (endpoint, requests):
        for name, value in {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": "s3cret",
            "AWS_REGION": "eu-north-1",
        }.items():
            monkeypatch.setenv(name, value)
        yield requests


@pytest.mark.parametrize("place", ["one.parquet", "many", "hive"])
def test_a_table_in_a_store_is_the_table_on_the_disk(place, folder, asked, monkeypatch):
    monkeypatch.setattr("wallflower.data.scans.CHUNK", 150)
    kept, known = load_into(f"s3://clinic/{place}", None, schema=FACTS), wf.load(folder / place, schema=FACTS)
    assert (kept.n, kept.engine, kept.name) == (N, "tiles", place.removesuffix(".parquet"))
    assert fingerprints.fingerprint(kept, bytes(32)) == fingerprints.fingerprint(known, bytes(32))
    assert any(line.startswith("GET") and "bytes=" in line for line in asked)


def test_a_question_is_answered_from_a_store(asked, tmp_path):
    with wf.Ledger.open(tmp_path / "ledger.db") as book:
        people = wf.open("s3://clinic/many", schema=FACTS, name="clinic", ledger=book, engine="tiles")
        answer = people.count(neighbours=3, radius=0.3, epsilon="0.5", columns=("x", "y"))
    assert answer.facts.n == N


@pytest.mark.parametrize(
    ("source", "engine", "said"),
    [
        ("s3://clinic/nobody.parquet", "tiles", "no .parquet file"),
        (f"s3://{CLOSED}/one.parquet", "tiles", "does not answer, or not to you"),
        ("s3://clinic/other", "tiles", "no .parquet file"),
        ("s3://clinic/empty", "tiles", "a file is empty"),
        ("s3://clinic/torn.parquet", "tiles", "damaged"),
        ("s3://clinic/one.parquet", "memory", "engine='tiles'"),
        ("s3://somebody:s3cret@clinic/one.parquet", "tiles", "holds no key"),
        ("s3://clinic/one.parquet?region=eu-north-1", "tiles", "holds no key"),
    ],
)
def test_what_cannot_be_read_is_refused_without_a_key(source, engine, said, asked):
    with pytest.raises(SourceError, match=said) as refused:
        load_into(source, engine, schema=FACTS)
    assert "s3cret" not in str(refused.value)
    assert refused.value.__context__ is None
