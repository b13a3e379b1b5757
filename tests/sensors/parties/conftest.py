"""Keys are made once; nothing in a test changes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from wallflower.sensors.parties.keys import make_keys


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    make_keys(folder, sensors=2)
    return folder
