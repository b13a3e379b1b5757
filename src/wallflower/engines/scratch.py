"""Room on disk for what does not fit into memory: files without a name, gone with the process however it ends.

Nobody can open such a file by a path, and the kernel frees it when the process is gone, kill -9 included. What is
written lies in clear on the disk until then, so `WALLFLOWER_SCRATCH` should name a folder on one that is encrypted.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import SourceError

FOLDER: Final = "WALLFLOWER_SCRATCH"


class Scratch:
    """A file of arrays."""

    def __init__(self) -> None:
        self._end = 0
        try:
            with tempfile.TemporaryFile(dir=os.environ.get(FOLDER)) as file:
                self._file = os.dup(file.fileno())
        except OSError as error:
            refusal = _no_room(error)
        else:
            self.close = weakref.finalize(self, os.close, self._file)
            return
        raise refusal

    def append(self, array: NDArray[Any]) -> int:
        """Write an array; where it begins."""
        start, data = self._end, memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        while len(data):
            try:
                written = os.pwrite(self._file, data[: 1 << 30], self._end)
            except OSError as error:
                refusal = _no_room(error)
                break
            self._end, data = self._end + written, data[written:]
        else:
            return start
        raise refusal

    def read(self, start: int, count: int, kind: Any) -> NDArray[Any]:
        """So many numbers of this kind from there on."""
        array = np.empty(count, dtype=kind)
        place = memoryview(array.view(np.uint8).data)
        while len(place):
            got = os.preadv(self._file, [place[: 1 << 30]], start)
            start, place = start + got, place[got:]
        return array


def _no_room(error: OSError) -> SourceError:
    """How much is written follows from the number of records and columns, so that it fails tells nothing else."""
    where = os.environ.get(FOLDER) or tempfile.gettempdir()
    return SourceError(
        f"the scratch folder {where} cannot be written to ({os.strerror(error.errno or 0)}). "
        f"Free some room, or name another folder with {FOLDER}."
    )
