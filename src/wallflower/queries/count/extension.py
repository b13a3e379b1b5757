"""The extension behind the count, under the names this room gives it."""

from __future__ import annotations

from wallflower.neighbours.extension import certified, inliers
from wallflower.neighbours.flow import outlier_mass

__all__ = ["certified", "inliers", "outlier_mass"]
