"""Bounds on what one record can do to the count that are broken on purpose, for an audit to catch.

Each is a mistake that was made in print, or nearly by us, on the way from what one ball can hold to smooth sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.audit import Finding, Floats, World, audit_bound
from wallflower.neighbours.limits import global_bound
from wallflower.queries.count.audit.worlds import DIAMOND, PATH, PLUS, ROW
from wallflower.queries.count.exact import count_outliers
from wallflower.queries.count.sensitivity import sweep, window

Cover = Callable[[Floats, NDArray[np.bool_], float], int]

BETA: Final = 0.3


def broken_bounds() -> Iterator[Finding]:
    """Every broken bound, on a world that shows it."""
    for name, (cover, world) in BROKEN_COVERS.items():
        yield audit_bound(
            partial(_local, cover=cover),
            partial(count_outliers, radius=1.0, neighbours=1, normalise=False),
            world,
            name=f"broken: {name}",
            expected=True,
        )
    for name, (bound, world, radius) in BROKEN_SMOOTHING.items():
        yield audit_bound(
            partial(bound, radius=radius, beta=BETA),
            partial(count_outliers, radius=radius, neighbours=1, normalise=False),
            world,
            beta=BETA,
            name=f"broken: {name}",
            expected=True,
        )


def ladder(values: Floats, radius: float, cover: Cover, *, capped: bool = True) -> list[int]:
    """U_0, U_1 … at k=1 from a bound `cover(values, members, radius)` on the members that fit one ball."""
    n, dimension = values.shape
    gaps = np.sqrt(((values[:, None] - values) ** 2).sum(axis=2))
    degree = np.count_nonzero(gaps <= radius, axis=1) - 1
    highest = global_bound(n, dimension, 1) if capped else 2 * n + 1
    return [
        min(highest, max(cover(values, np.abs(degree - level) <= t, radius) for level in (0, 1)) + t + 1)
        for t in range(n + 1)
    ]


def _local(values: Floats, *, cover: Cover) -> float:
    return ladder(values, 1.0, cover)[0]


def smooth_maximum(values: Floats, radius: float, beta: float, *, cover: Cover) -> float:
    """The largest of e^(-beta t) U_t."""
    return max(bound * math.exp(-beta * t) for t, bound in enumerate(ladder(values, radius, cover)))


def exact_cover(values: Floats, members: NDArray[np.bool_], radius: float) -> int:
    """The most members in one ball, in one or two dimensions."""
    reach, chosen = (radius * (1 + 1e-9)) ** 2, values[members]
    if not len(chosen):
        return 0
    return int(window(np.sort(chosen[:, 0]), 4 * reach) if values.shape[1] == 1 else sweep(chosen, reach))


def _broken_skip_last(values: Floats, members: NDArray[np.bool_], radius: float) -> int:
    """BROKEN: `i < |P|` with i from 1 never comes to the last of P (Algorithm 1 of the paper)."""
    ordered = np.sort(values[members, 0])[:-1]
    return int(window(ordered, 4 * (radius * (1 + 1e-9)) ** 2))


def _broken_at_records(values: Floats, members: NDArray[np.bool_], radius: float) -> int:
    """BROKEN: only balls around records of the table, though a new record may stand anywhere (the Japanese bound)."""
    gaps = np.sqrt(((values[:, None] - values[members]) ** 2).sum(axis=2))
    return int(np.count_nonzero(gaps <= radius, axis=1).max())


def _broken_centres(values: Floats, members: NDArray[np.bool_], radius: float) -> int:
    """BROKEN: a new member brings a new centre, and with it more than one."""
    gaps = np.sqrt(((values[members][:, None] - values[members]) ** 2).sum(axis=2))
    return int(np.count_nonzero(gaps <= 2 * radius, axis=1).max(initial=0))


def _broken_switch(values: Floats, members: NDArray[np.bool_], radius: float) -> int:
    """BROKEN: exact while there are few members, a rough bound from then on."""
    many = int(np.count_nonzero(members))
    return many if many > 3 else exact_cover(values, members, radius)


def _broken_cap(values: Floats, radius: float, beta: float) -> float:
    """BROKEN: stops by the capped bound but keeps terms that are not capped (Algorithm 2 of the paper)."""
    highest, best = global_bound(len(values), values.shape[1], 1), 0.0
    for t, bound in enumerate(ladder(values, radius, exact_cover, capped=False)):
        if best >= highest * math.exp(-beta * t):
            break
        best = max(best, bound * math.exp(-beta * t))
    return best


BROKEN_COVERS: Final[dict[str, tuple[Cover, World]]] = {
    "Algorithm 1 skips the last record": (_broken_skip_last, PATH),
    "the Japanese bound on a line": (_broken_at_records, PATH),
    "the Japanese bound in the plane": (_broken_at_records, DIAMOND),
}
BROKEN_SMOOTHING: Final[dict[str, tuple[Callable[..., float], World, float]]] = {
    "cover counted around its own members": (partial(smooth_maximum, cover=_broken_centres), PLUS, 1.2),
    "exact cover if small, else a rough bound": (partial(smooth_maximum, cover=_broken_switch), ROW, 1.0),
    "Algorithm 2 caps half of its terms": (_broken_cap, PATH, 1.0),
}
