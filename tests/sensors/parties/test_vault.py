"""Stores that are sealed with a key: nothing of a reading is on the disk, and kills change nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stage import ROLES, Stage, died, fill, flagged, parameters, readings, sending

from wallflower.machine.vault import SealedStore, make_key, read_vault
from wallflower.noise import system_noise
from wallflower.sensors.parties.keys import Identity
from wallflower.sensors.parties.outbox import Outbox
from wallflower.sensors.parties.store import WindowStore


def sealed_box(keys: Path, folder: Path, key: Path | None) -> Outbox:
    identity, stated = Identity.read(keys / "sensor-1"), parameters(keys, starts=2**40)
    vault = read_vault(key)
    return Outbox(folder / "s.db", identity=identity, parameters=stated, noise=system_noise(), vault=vault)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    make_key(tmp_path / "store.key")
    return tmp_path / "store.key"


@pytest.mark.parametrize("kind", ["outbox", "windows"])
def test_a_sealed_store_opens_with_its_own_key_alone(keys: Path, tmp_path: Path, key: Path, kind: str) -> None:
    def opened(own: Path | None, name: str = "s.db") -> Any:
        if kind == "outbox":
            return sealed_box(keys, tmp_path / name.removesuffix("s.db"), own)
        return WindowStore(tmp_path / name, parameters=bytes(32), party="owner", vault=read_vault(own))

    make_key(tmp_path / "other.key")
    opened(key).close()
    for own, words in ((None, "the file is sealed. Name its key"), (tmp_path / "other.key", "sealed with another key")):
        with pytest.raises(SealedStore, match=words):
            opened(own)
    opened(key).close()
    (tmp_path / "open").mkdir()
    opened(None, "open/s.db").close()  # as every store was before
    with pytest.raises(SealedStore, match="not sealed"):
        opened(key, "open/s.db")
    opened(None, "open/s.db").close()


def test_a_value_that_was_moved_opens_no_more(tmp_path: Path, key: Path) -> None:
    store = WindowStore(tmp_path / "s.db", parameters=bytes(32), party="owner", vault=read_vault(key))
    for window in (0, 1):
        store.add_message(window, "published", b"", b"result %d" % window)
    store.close()
    with sqlite3.connect(tmp_path / "s.db") as db:
        db.execute("UPDATE messages SET response = (SELECT response FROM messages WHERE window = 1) WHERE window = 0")
    db.close()
    store = WindowStore(tmp_path / "s.db", parameters=bytes(32), party="owner", vault=read_vault(key))
    letter = store.message(1, "published")
    assert letter is not None
    assert (letter.request, letter.response) == (b"", b"result 1")
    with pytest.raises(SealedStore, match="the file was changed"):
        store.message(0, "published")
    store.close()


@pytest.mark.slow
def test_a_sealed_stream_goes_on_after_kills_and_leaves_nothing_to_read(tmp_path: Path) -> None:
    with Stage(tmp_path, sealed=True) as stage:
        stage.start(die={"analyst": "WindowStore.advance:before:2"})
        with stage.device() as device, sending(device):
            outliers = fill(device, 0)
            assert died(stage.running.pop("analyst"))
            stage.start("analyst")
            result = stage.result(0)
        assert flagged(result) == outliers
        assert (result["judged"], result["unjudged"], result["doubts"]) == (60, [], [])
        with stage.device() as device:
            device.outbox.add(1, 0, readings(7, 20)[0])
            ids = device.outbox.ids(1)
            frames = {role: device.outbox.next_frame(role) for role in ("analyst", "correction")}
        told = [body.body[at:][:24] for body in frames.values() if body is not None for at in (0, 64, 600, -24)]
        told += [np.asarray(ids[:2], "<u8").tobytes(), *(one.encode() for one in sorted(flagged(result))[:2])]
        for role in (*ROLES, "sensor-1"):
            stored = b"".join(path.read_bytes() for path in tmp_path.glob(f"{role}.db*"))
            assert len(stored) > 10_000
            assert [part for part in told if part in stored] == []
            assert b"judged" not in stored
            assert b"WFsf" not in stored  # how every frame begins
