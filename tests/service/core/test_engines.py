"""A data set whose records an engine keeps is served as any other: planned, asked, refused before the charge."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from served import run_service, settings

from wallflower.data import TiledTable
from wallflower.errors import ParameterError
from wallflower.schema import Schema
from wallflower.service.settings import Registration, Settings

N = 2000
COUNT = {"neighbours": 4, "radius": 0.2, "epsilon": "0.5"}


@pytest.fixture
def folder(tmp_path):
    x, y = np.random.default_rng(1).normal(size=(2, N))
    pq.write_table(pa.table({"x": x, "y": y}), tmp_path / "many.parquet")
    return tmp_path


def tiled_settings(folder, **more):
    many = Registration(
        analysts=("*",),
        name="many",
        source=str(folder / "many.parquet"),
        schema=Schema.of(["x", "y"], rows=N),
        engine="tiles",
    )
    return settings(folder, datasets=(many,), **more)


def test_a_question_over_http_is_answered_from_tiles(folder, monkeypatch):
    """Within fewer bytes than such a table in memory would take."""
    monkeypatch.setattr("wallflower.service.core.previews.RECORDS_IN_MEMORY", 100)
    with run_service(tiled_settings(folder, question_bytes=2**20)) as service:
        core, ana = service.app.state.core, service.token("ana")
        assert isinstance(core.catalog.table("many"), TiledTable)
        assert ana.get("/v1/datasets/many").json["rows"] == N
        told = ana.post("/v1/datasets/many/ask/count", COUNT)
        assert told.status == 200, told
        assert 0 <= told.json["value"] <= N
        assert len(core.ledger.history("many", event="charge")) == 1


def test_what_an_engine_cannot_answer_is_refused_over_http_before_the_charge(folder):
    with run_service(tiled_settings(folder)) as service:
        ana = service.token("ana")
        for asked, more in (
            ("baseline", {"epsilon": "0.3", "low": -5.0, "high": 5.0}),
            ("count", {**COUNT, "interval": "two-sided"}),
        ):
            told = ana.post(f"/v1/datasets/many/ask/{asked}", more)
            assert told.problem == "parameter"
            assert "engine" in told.json["detail"]
        assert service.app.state.core.ledger.history("many", event="charge") == []


def test_the_settings_name_the_engine_of_a_data_set(folder):
    place = folder / "service.toml"
    place.write_text('[[datasets]]\nname = "many"\nsource = "many.parquet"\nengine = "tiles"\n')
    read = Settings.read(place)
    assert read.datasets[0].engine == "tiles"
    assert Settings.from_json(read.to_json()) == read
    older = {key: value for key, value in read.datasets[0].to_json().items() if key != "engine"}
    assert Registration.from_json(older).engine is None


def test_an_engine_that_is_not_known_is_refused_when_the_service_starts(folder):
    unknown = Registration(
        analysts=("*",), name="many", source=str(folder / "many.parquet"), schema=Schema(), engine="tyles"
    )
    with (
        pytest.raises(ParameterError, match="'tyles' is not known"),
        run_service(settings(folder, datasets=(unknown,))),
    ):
        pass
