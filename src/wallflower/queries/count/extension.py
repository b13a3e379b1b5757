"""The extension behind the count, under the names this room gives it."""

from __future__ import annotations

from wallflower.neighbours.extension import certify, inliers
from wallflower.neighbours.flow import outlier_mass

__all__ = ["certify", "inliers", "outlier_mass"]
