"""Attacks on a count whose radius is drawn with it: what radius and count tell together.

The choice of radii has attacks of its own, in the room of the question `radius`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np

from wallflower.audit import Finding
from wallflower.audit.laws import audit_parts, law_of, loss_between
from wallflower.data import Points
from wallflower.neighbours.radii import radius_grid
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.count import Count

LOSS: Final = Loss("1")
COARSE: Final = radius_grid(0.5, 4.0, 1)
FAR: Final = 1000.0
STAR: Final = [-1.0, 1.0, FAR, 2 * FAR, 4 * FAR, 4 * FAR]  # 0 makes inliers of the first two, at a radius of 1
TABLES: Final = tuple(Points.from_array(np.array([first, *STAR])[:, None], name="made-up") for first in (0.0, -FAR))


def share_findings() -> Iterator[Finding]:
    """What must hold, then what must be caught."""
    query = Count(neighbours=1, share=Fraction(1, 3), slack=2, loss=LOSS, normalise=False)
    yield _attack(query, query.at_radius(1.0), name="share: radius and count")
    whole = replace(query.at_radius(1.0), loss=LOSS)
    yield _attack(query, whole, name="broken: share, the count at the whole loss", expected=True)


def _attack(query: Count, count: Count, *, name: str, expected: bool = False) -> Finding:
    def draw(points: Points) -> Callable[[Noise], float]:
        drawn = replace(query.radius_draw(points.n, points.dimension), radii=COARSE)
        return lambda noise: drawn.draw(points, noise)

    def answer(points: Points) -> Callable[[Noise], int]:
        return lambda noise: int(count.answer(points, noise))

    parts = {"radius": _measure_loss(draw), "count": _measure_loss(answer)}
    return audit_parts(parts, claimed=float(LOSS.amount), name=name, expected=expected)


def _measure_loss(answer: Callable[[Points], Callable[[Noise], float]]) -> float:
    first, second = (law_of(answer(points)) for points in TABLES)
    return loss_between(first, second, LOSS)
