"""The perturbed readings that an analyst keeps for good, read from its store for other analyses.

They were perturbed at the source, so whatever is computed from them is post-processing and costs no further ε. Keys and
letters of the protocol stay in the store.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError, SourceError, StateError
from wallflower.machine.lazy import Lazy
from wallflower.machine.vault import OpenVault, SealedStore, Vault
from wallflower.sensors.parameters import Direct, Parameters
from wallflower.sensors.protocol.frames import Frame, FrameError, decode
from wallflower.sensors.protocol.holdings import list_readings

if TYPE_CHECKING:
    import pyarrow as _pa
else:
    _pa = Lazy("pyarrow")

ROLE: Final = "analyst"
PLACES: Final = ("window", "sensor", "id")  # the columns before those of the stream
BUSY_MILLISECONDS: Final = 10_000  # a running analyst holds the file for a moment at a time


@dataclass(frozen=True, slots=True, eq=False)
class PerturbedWindow:
    """The readings of one window in the units of the columns, with the ids by which the owner's results name them."""

    window: int
    ids: NDArray[np.uint64]
    sensors: NDArray[np.uint64]
    values: NDArray[np.float64]

    def to_arrow(self, names: tuple[str, ...]) -> _pa.Table:
        """A pyarrow Table: window, sensor, id in hexadecimal, and one column for each of the stream."""
        places: list[Any] = [
            np.full(len(self.ids), self.window),
            self.sensors.astype(np.int64),
            [f"{name:016x}" for name in self.ids.tolist()],
        ]
        columns = dict(zip((*PLACES, *names), [*places, *self.values.T], strict=True))
        return _pa.table(columns, schema=schema_of(names))


def schema_of(names: tuple[str, ...]) -> _pa.Schema:
    """The schema of `PerturbedWindow.to_arrow`."""
    places = [("window", _pa.int64()), ("sensor", _pa.int64()), ("id", _pa.string())]
    return _pa.schema([*places, *((name, _pa.float64()) for name in names)])


def read_perturbed_windows(
    path: Path, parameters: Parameters, *, window: int | None = None, vault: Vault | OpenVault | None = None
) -> Iterator[PerturbedWindow]:
    """Windows in rising order, one at a time; the analyst may be running.

    Ids that came twice are omitted, as they are when a window is judged.
    """
    check_readable(parameters)
    with closing(_open(path)) as db:
        _require_store(db, path, parameters, vault or OpenVault())
        asked = "SELECT DISTINCT window FROM batches WHERE body IS NOT NULL AND (? IS NULL OR window = ?) ORDER BY 1"
        for (place,) in db.execute(asked, (window, window)).fetchall():
            every = list_readings(parameters, ROLE, _frames(db, path, parameters, place, vault or OpenVault()))
            values = _in_units(parameters, every.values)
            yield PerturbedWindow(window=place, ids=every.ids, sensors=every.sensors, values=values)


def check_readable(parameters: Parameters) -> None:
    """Refuse a stream without perturbed readings, and columns that would be taken for the places of a reading."""
    if isinstance(parameters.settings, Direct):
        raise ParameterError(
            "mode direct: no perturbed reading leaves the sensor, so the analyst has none. Modes exact, grid and paper "
            "have them."
        )
    if taken := sorted(set(parameters.names) & set(PLACES)):
        raise ParameterError(
            f"columns: {taken[0]} is the name of a column of every export. Rename it in a new version."
        )


def _open(path: Path) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(f"{path.expanduser().absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        db.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}").close()
        db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
    except sqlite3.Error:
        raise SourceError(f"{path}: the store cannot be read. Name the file that `sensors analyst` keeps.") from None
    return db


def _require_store(db: sqlite3.Connection, path: Path, parameters: Parameters, vault: Vault | OpenVault) -> None:
    try:
        row = db.execute("SELECT parameters, party FROM stream").fetchone()
        is_sealed = db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'vault'").fetchone() is not None
    except sqlite3.Error:
        row, is_sealed = None, False
    if row is None or tuple(row) != (parameters.hash, ROLE):
        raise StateError(
            f"{path}: it is not the store of an analyst of this parameter set. Only the analyst keeps perturbed "
            "readings. Name its store and its set."
        )
    if is_sealed == isinstance(vault, OpenVault):
        words = "it is sealed. Name the key" if is_sealed else "it is not sealed. Omit"
        raise SealedStore(f"{path}: {words} (--store-key).")


def _frames(
    db: sqlite3.Connection, path: Path, parameters: Parameters, window: int, vault: Vault | OpenVault
) -> Iterator[Frame]:
    asked = "SELECT rowid FROM batches WHERE window = ? AND body IS NOT NULL ORDER BY sensor, seq"
    for (place,) in db.execute(asked, (window,)).fetchall():
        row = db.execute("SELECT body, sensor, seq FROM batches WHERE rowid = ?", (place,)).fetchone()
        try:
            yield decode(vault.unseal(row[0], "batch", window, row[1], row[2]), parameters=parameters.hash)
        except FrameError:
            raise StateError(f"{path}: a batch is damaged. Restore the store from a copy.") from None


def _in_units(parameters: Parameters, values: NDArray[Any]) -> NDArray[np.float64]:
    """From whole steps of the grid to the units of the columns."""
    center = np.array([float(column.center) for column in parameters.columns])
    scale = np.array([float(column.scale) for column in parameters.columns])
    return np.asarray(values * float(parameters.grid) * scale + center, dtype=np.float64)
