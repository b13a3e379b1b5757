"""The steward's key: one for all processes, and for nobody else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from forks import FORKS, Place
from wallflower.errors import SourceError
from wallflower.release.steward_key import steward_key

PROCESSES = 8
gate: Any = None


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "wallflower" / "fingerprint.key"


def enter(barrier: Any, place: Place) -> None:
    global gate
    gate = barrier
    place.enter()


def fetch(_: int) -> bytes:
    gate.wait()
    return steward_key()


def test_the_key_is_made_once_and_stays(path: Path) -> None:
    key = steward_key()
    assert len(key) == 32
    assert len(set(key)) > 8
    assert steward_key() == key == path.read_bytes()


def test_only_its_owner_may_read_it(path: Path) -> None:
    before = os.umask(0)
    try:
        steward_key()
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_no_draft_is_left(path: Path) -> None:
    steward_key()
    assert list(path.parent.iterdir()) == [path]


def test_two_homes_have_two_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = set()
    for home in ("a", "b"):
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / home))
        keys.add(steward_key())
    assert len(keys) == 2


def test_without_a_data_home_it_is_in_the_usual_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert (tmp_path / ".local/share/wallflower/fingerprint.key").exists() is False
    assert steward_key() == (tmp_path / ".local/share/wallflower/fingerprint.key").read_bytes()


@pytest.mark.slow
def test_eight_processes_get_one_key(path: Path) -> None:
    with FORKS.Pool(PROCESSES, initializer=enter, initargs=(FORKS.Barrier(PROCESSES), Place.here())) as pool:
        keys = pool.map(fetch, range(PROCESSES), chunksize=1)
        pool.close()
        pool.join()
    assert set(keys) == {path.read_bytes()}
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644, 0o666])
def test_a_key_that_others_may_read_is_refused(path: Path, mode: int) -> None:
    steward_key()
    path.chmod(mode)
    with pytest.raises(SourceError, match="others may read it"):
        steward_key()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_key_of_somebody_else_is_refused(path: Path) -> None:
    steward_key()
    os.chown(path, 12345, -1)
    with pytest.raises(SourceError, match="not yours"):
        steward_key()


@pytest.mark.parametrize("size", [0, 31, 33, 4096])
def test_a_key_of_another_length_is_refused_and_kept(path: Path, size: int) -> None:
    steward_key()
    path.write_bytes(b"k" * size)
    with pytest.raises(SourceError, match="it is damaged") as caught:
        steward_key()
    assert "kkk" not in str(caught.value)
    assert path.stat().st_size == size


def test_a_home_that_is_no_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    with pytest.raises(SourceError, match=r"Not a directory.*set \$XDG_DATA_HOME") as caught:
        steward_key()
    assert caught.value.exit_code == 4


def test_a_link_to_nowhere_is_refused(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.symlink_to(path.parent / "gone")
    with pytest.raises(SourceError, match="No such file"):
        steward_key()
