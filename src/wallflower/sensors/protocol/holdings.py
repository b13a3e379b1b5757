"""What a server holds of a window: the readings that came to it in frames, and those of them that both servers have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wallflower.sensors.comparison import Keys
from wallflower.sensors.parameters import Exact, Parameters
from wallflower.sensors.protocol.frames import Frame, Kind
from wallflower.sensors.protocol.rounds import Holdings, Role, keys_of, take_keys

Array = NDArray[Any]
Ids = NDArray[np.uint64]
Frames = Callable[[], Iterable[Frame]]  # of a window, from the first one on, whenever it is called


@dataclass(frozen=True, slots=True, eq=False)
class ReadingList:
    """Every reading of a window at one server, sorted by id; ids that came twice are left out."""

    ids: Ids
    sensors: Ids
    values: Array


def list_readings(parameters: Parameters, role: Role, frames: Iterable[Frame]) -> ReadingList:
    """All that came."""
    width = len(parameters.columns)
    ids, sensors = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    values: list[Array] = [np.empty((0, width) if role == "analyst" else 0, np.int64)]
    for frame in frames:
        ids.append(frame["ids"])
        sensors.append(np.full(frame.count, frame.sensor, dtype=np.uint64))
        values.append(_values(role, frame))
    together = np.concatenate(ids)
    order = distinct(together)
    return ReadingList(together[order], np.concatenate(sensors)[order], np.concatenate(values)[order])


def hold(
    parameters: Parameters, role: Role, window: int, every: ReadingList, present: Array, frames: Frames
) -> Holdings:
    """What both servers have."""
    ids = every.ids[present]
    return Holdings(
        parameters=parameters,
        role=role,
        window=window,
        ids=ids,
        sensors=every.sensors[present],
        values=every.values[present],
        batches=lambda: _batches(parameters, ids, frames),
    )


def distinct(ids: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The places of ids that occur once, in the order of sorted ids: what occurs twice is nobody's."""
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    fresh = np.ones(len(ids), dtype=np.bool_)
    if len(ids) > 1:
        twice = ordered[1:] == ordered[:-1]
        fresh[1:] &= ~twice
        fresh[:-1] &= ~twice
    return order[fresh]


def _values(role: Role, frame: Frame) -> Array:
    """Perturbed readings at the analyst, d_diff at the correction server, who in mode exact has keys alone."""
    if role == "analyst":
        return frame["perturbed"].astype(np.int64)
    return frame["moved"].astype(np.int64) if frame.kind is Kind.MOVES else np.zeros(frame.count, dtype=np.int64)


def _batches(parameters: Parameters, ids: Ids, frames: Frames) -> Iterator[tuple[NDArray[np.int64], Keys]]:
    settings = parameters.settings
    if not isinstance(settings, Exact):
        return
    for frame in frames():
        at = np.searchsorted(ids, frame["ids"])
        rows = np.flatnonzero((at < len(ids)) & (ids[np.minimum(at, len(ids) - 1)] == frame["ids"]) if len(ids) else ())
        if len(rows):
            yield at[rows], take_keys(keys_of(frame, settings), rows)
