"""Perturbed readings leave the analyst's store for other analyses: while it runs, sealed or not, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from stage import Stage, fill, parameters, sending

import wallflower as wf
from wallflower import cli
from wallflower.errors import DataError, ParameterError, StateError
from wallflower.machine.vault import SealedStore, make_key, read_vault
from wallflower.sensors.parameters import Direct
from wallflower.sensors.parties.store import WindowStore, read_perturbed_windows


def export(stage: Stage, output: str, *more: str, role: str = "analyst") -> int:
    key = ["--store-key", str(stage.folder / "store.key")] if stage.sealed else []
    keys, store = str(stage.keys / role), str(stage.folder / f"{role}.db")
    command = ["sensors", "export", "--keys", keys, "--parameters", str(stage.set), "--store", store]
    return cli.main([*command, "-o", str(stage.folder / output), *key, *more])


@pytest.mark.slow
@pytest.mark.parametrize("sealed", [False, True])
def test_a_running_analyst_s_readings_are_exported_as_they_came(tmp_path: Path, sealed: bool, capsys: Any) -> None:
    with Stage(tmp_path, sealed=sealed) as stage:
        stage.start()
        with stage.device() as device, sending(device):
            outliers = fill(device, 0)
            result = stage.result(0)
        assert export(stage, "all.csv", "--json") == 0
        assert export(stage, "all.parquet") == 0
        assert export(stage, "later.csv", "--window", "1") == 0
        assert export(stage, "all.txt") == 2
        assert export(stage, "no.csv", role="correction") != 0
        assert not (tmp_path / "no.csv").exists()
    assert export(stage, "after.csv") == 0  # the analyst has ended
    tables = [pa_csv.read_csv(tmp_path / "all.csv"), pq.read_table(tmp_path / "all.parquet")]
    for table in (*tables, pa_csv.read_csv(tmp_path / "after.csv")):
        assert table.column_names == ["window", "sensor", "id", "x", "y"]
        assert set(table["window"].to_pylist()) == {0}
        assert table.num_rows == len(set(table["id"].to_pylist())) == result["judged"]
        assert outliers <= {str(name) for name in table["id"].to_pylist()}
    values = [np.column_stack([table["x"].to_numpy(), table["y"].to_numpy()]) for table in tables]
    assert np.allclose(*values)
    assert pa_csv.read_csv(tmp_path / "later.csv").num_rows == 0
    assert (tmp_path / "all.csv").stat().st_mode & 0o777 == 0o600


def test_only_the_analyst_s_store_of_this_set_is_read(keys: Path, tmp_path: Path) -> None:
    stated, path = parameters(keys), tmp_path / "s.db"
    for party, body in (("correction", stated.hash), ("analyst", bytes(32))):
        WindowStore(path, parameters=body, party=party).close()
        with pytest.raises(StateError, match="not the store of an analyst of this parameter set"):
            list(read_perturbed_windows(path, stated))
        path.unlink()
    make_key(tmp_path / "key")
    WindowStore(path, parameters=stated.hash, party="analyst", vault=read_vault(tmp_path / "key")).close()
    with pytest.raises(SealedStore, match="is sealed"):
        list(read_perturbed_windows(path, stated))
    assert list(read_perturbed_windows(path, stated, vault=read_vault(tmp_path / "key"))) == []
    with pytest.raises(ParameterError, match="mode direct"):
        list(read_perturbed_windows(path, parameters(keys, settings=Direct(threshold=stated.grid))))


def test_what_was_stored_is_what_was_sent(tmp_path: Path) -> None:
    made = wf.sensors.simulate(50, seed=3)
    sent = wf.sensors.perturb(made.readings, columns=made.columns, threshold="5", epsilon="0.2")
    store = WindowStore(tmp_path / "s.db", parameters=sent.parameters.hash, party="analyst")
    for seq, body in enumerate(sent.frames["analyst"]):
        store.add_batch(0, 1, seq, body, 50, closed=False)
    (window,) = read_perturbed_windows(tmp_path / "s.db", sent.parameters)  # while the store is open
    store.close()
    order = np.argsort(sent.ids)
    assert np.array_equal(window.ids, sent.ids[order])
    assert np.array_equal(window.values, sent.readings[order])
    assert window.to_arrow(sent.parameters.names)["id"].to_pylist() == [f"{name:016x}" for name in window.ids.tolist()]


def test_a_width_is_how_far_apart_past_outliers_are_from_the_centre() -> None:
    history = np.array([[1.0, 0.0], [3.0, 4.0], [0.0, -12.0], [0.5, 0.5]])
    flags = np.array([False, True, True, False])
    assert wf.sensors.outlier_width(history, flags) == "7"
    assert wf.sensors.outlier_width(history, flags, centre=[3.0, 4.0]) == "16.2789"  # rounded up
    one = np.array([False, True, False, False])
    for wrong, words in ((one, "needs two outliers"), (flags[:3], "one truth value"), (flags.astype(int), "one truth")):
        with pytest.raises(DataError, match=words):
            wf.sensors.outlier_width(history, wrong)
    with pytest.raises(ParameterError, match="centre"):
        wf.sensors.outlier_width(history, flags, centre=[1.0])
