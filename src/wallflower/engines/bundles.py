"""Arrays as bytes and back: what travels between a driver and its tasks, in the format of Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wallflower.engines import Cells, Given
from wallflower.machine.lazy import Lazy

if TYPE_CHECKING:
    import pyarrow as _pa
else:
    _pa = Lazy("pyarrow")


def bundle(arrays: Given) -> bytes:
    """Arrays by name, each with its own type and shape, as one message.

    >>> {name: array.tolist() for name, array in unbundle(bundle({"a": np.eye(2), "b": np.array(7)})).items()}
    {'a': [[1.0, 0.0], [0.0, 1.0]], 'b': 7}
    """
    kept = [np.asarray(array) for array in arrays.values()]
    batch = _pa.record_batch(
        {
            "name": _pa.array(list(arrays), _pa.string()),
            "kind": _pa.array([array.dtype.str for array in kept], _pa.string()),
            "shape": _pa.array([array.shape for array in kept], _pa.list_(_pa.int64())),
            "cells": _pa.array([array.tobytes() for array in kept], _pa.large_binary()),
        }
    )
    sink = _pa.BufferOutputStream()
    with _pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    message: bytes = sink.getvalue().to_pybytes()
    return message


def unbundle(message: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of a message. They are copies: compiled loops know no arrays that cannot be written to."""
    with _pa.ipc.open_stream(message) as stream:
        (batch,) = stream
    kinds, shapes = batch["kind"].to_pylist(), batch["shape"].to_pylist()
    return {
        name: np.frombuffer(cells.as_buffer(), dtype=kind).reshape(shape).copy()
        for name, kind, shape, cells in zip(batch["name"].to_pylist(), kinds, shapes, batch["cells"], strict=True)
    }


def bundle_cells(cells: Cells) -> bytes:
    """Columns of some records."""
    return bundle({str(place): column for place, column in enumerate(cells)})


def unbundle_cells(message: bytes) -> Cells:
    """The columns again, in order."""
    return list(unbundle(message).values())
