"""Tiles as a test wants them: any partition of the records, however little sense it makes."""

from __future__ import annotations

import numpy as np


class Partition:
    """Records cut by labels; with `twice`, every task is run two times, and must say the same."""

    def __init__(self, values, labels, *, twice=False):
        parts = [values[labels == label] for label in np.unique(labels)]
        self._parts = [part[np.lexsort(part.T[::-1])] for part in parts]
        self.low = np.array([part.min(axis=0) for part in self._parts])
        self.high = np.array([part.max(axis=0) for part in self._parts])
        self._twice = twice

    def each(self, words, task, given):
        for tile, part in enumerate(self._parts):
            told = given(tile)
            if told is None:
                continue
            found = task(part.copy(), told)
            if self._twice:
                again = task(part.copy(), told)
                assert all(np.array_equal(found[name], again[name]) for name in found)
            yield tile, found
