"""Detectors of a watch: from distances on a grid to flags.

Which one decides follows from who is protected (`levels.py`):

Staircase        one entry of one observation, or any window of observations; the best rule there is for one entry
Sparse           one person over the whole stream; stops after `cutoff` flags
GaussianPerStep  one person over a stated number of steps, or any window, for (ε, δ)-DP or ρ-zCDP
PaperDetector    OUTLIERDETECT as printed in [Deg20], for comparison

To add one, subclass `Detector` in a file of its own; mypy refuses a class that lacks a method.
"""

from __future__ import annotations

from wallflower.queries.watch.detectors.additive import GaussianPerStep, PaperDetector
from wallflower.queries.watch.detectors.base import COARSE_STEPS, Chances, Detector, Law, Output, Secret
from wallflower.queries.watch.detectors.sparse import PassTable, Sparse, draw_geometric
from wallflower.queries.watch.detectors.staircase import Staircase, Table

__all__ = [
    "COARSE_STEPS",
    "Chances",
    "Detector",
    "GaussianPerStep",
    "Law",
    "Output",
    "PaperDetector",
    "PassTable",
    "Secret",
    "Sparse",
    "Staircase",
    "Table",
    "draw_geometric",
]
