"""A second table of a join: stated in the settings, below a root, and never by a registration over HTTP."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from served import run_service, settings

from wallflower.data import Column, Schema
from wallflower.errors import ParameterError
from wallflower.schema import Join, Person
from wallflower.service.app import application
from wallflower.service.settings import Registration


def visits(folder: Path, second: Path) -> Registration:
    folder.mkdir(exist_ok=True)
    (folder / "visits.csv").write_text("who,pulse\n" + "".join(f"p{place % 30},{place % 7}\n" for place in range(60)))
    second.write_text("who,income\n" + "".join(f"P{place},{place % 5}\n" for place in range(30)))
    columns = (Column("pulse", low=0, high=9), Column("income", low=0, high=9))
    person = Person(id="who", rollup={"pulse": "max"})
    schema = Schema(columns=columns, person=person, join=Join(table=str(second), on="who", columns=["income"]))
    return Registration(analysts=("*",), name="visits", source=str(folder / "visits.csv"), schema=schema)


def test_a_second_table_lies_below_a_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    inside, outside = (visits(root, folder / "second.csv") for folder in (root, tmp_path))
    with run_service(settings(root, datasets=(inside,))) as service:
        assert service.app.state.core.catalog.table("visits").schema.names == ("who", "pulse", "income")
    with pytest.raises(ParameterError, match="roots"):
        application(settings(root, datasets=(outside,))).state.core.load()


def test_a_registration_over_http_reads_one_source_only(tmp_path: Path) -> None:
    dataset = visits(tmp_path, tmp_path / "second.csv")
    schema = replace(dataset.schema, join=None).to_json()
    with run_service(settings(tmp_path)) as service:
        sue = service.token("sue", "steward")
        for table in ("second.csv", "/etc/passwd", str(tmp_path / "second.csv")):
            join = {"table": table, "on": "who", "columns": ["income"]}
            body = {"name": "visits", "source": "visits.csv", "schema": schema | {"join": join}}
            answer = sue.post("/v1/datasets", body)
            assert answer.status == 422, answer.content
            assert "second table" in answer.content.decode()
