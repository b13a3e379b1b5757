"""Clusters of points in any number of columns, by walking the tree of `neighbours.pairs` instead of listing neighbours.

Core points are counted by the tree. Then every core point joins those within reach; a part of the tree whose core
points are all in one cluster already is remembered as `whole` and never looked into again by a point of that cluster,
so the work stays near one walk a point, however crowded the points are (proof.md, label (C)).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wallflower.machine.jit import kernel
from wallflower.neighbours.pairs import MARGIN, counts, plant

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def by_tree(values: Floats, reach: float, neighbours: int) -> Ints:
    """The cluster of each point, -1 for noise; `reach` is the square of the radius."""
    tree = plant(values, reach)
    core = counts(tree, neighbours - 1) >= neighbours - 1
    placed, parents = values[tree.order], np.arange(tree.n)
    some = _some(tree.starts, core)
    _join(tree.starts, tree.low, tree.high, placed, reach, core, some, np.zeros(len(some), dtype=np.bool_), parents)
    numbers = number_clusters(roots(parents), core, tree.order)
    _border(tree.starts, tree.low, tree.high, placed, reach, core, some, numbers)
    labels = np.empty(tree.n, dtype=np.int64)
    labels[tree.order] = numbers
    return labels


def number_clusters(groups: Ints, core: Flags, order: Ints) -> Ints:
    """The cluster of each core point, -1 for others: groups are numbered by their first core point in `order`."""
    numbers, mine = np.full(len(core), -1, dtype=np.int64), groups[core]
    first = np.full(len(core), len(core), dtype=np.int64)
    np.minimum.at(first, mine, order[core])
    _, numbers[core] = np.unique(first[mine], return_inverse=True)
    return numbers


@kernel
def root(parents: Ints, at: int) -> int:
    while parents[at] != at:
        parents[at] = parents[parents[at]]
        at = parents[at]
    return at


@kernel
def union(parents: Ints, one: int, other: int) -> None:
    one, other = root(parents, one), root(parents, other)
    if one < other:
        parents[other] = one
    else:
        parents[one] = other


@kernel
def roots(parents: Ints) -> Ints:
    found = np.empty(len(parents), np.int64)
    for i in range(len(parents)):
        found[i] = root(parents, i)
    return found


@kernel
def _some(starts: Ints, core: Flags) -> Ints:
    """For every node of the tree one of its core points, -1 for none."""
    leaves = len(starts) - 1
    some = np.full(2 * leaves, -1, np.int64)
    for leaf in range(leaves):
        for i in range(starts[leaf], starts[leaf + 1]):
            if core[i]:
                some[leaves + leaf] = i
    for node in range(leaves - 1, 0, -1):
        some[node] = max(some[2 * node], some[2 * node + 1])
    return some


@kernel
def _out_of_reach(point: Floats, low: Floats, high: Floats, reach: float) -> bool:
    nearest = 0.0
    for c in range(len(point)):
        gap = max(low[c] - point[c], point[c] - high[c], 0.0)
        nearest += gap * gap
    return nearest > reach * (1 + MARGIN)


@kernel
def _near(one: Floats, other: Floats, reach: float) -> bool:
    total = 0.0
    for c in range(len(one)):
        step = one[c] - other[c]
        total += step * step
    return total <= reach


@kernel
def _is_whole(node: int, leaves: int, starts: Ints, core: Flags, some: Ints, whole: Flags, parents: Ints) -> bool:
    """Whether all core points of a node are in one cluster, as far as its children know."""
    if whole[node]:
        return True
    own = root(parents, some[node])
    if node >= leaves:
        for i in range(starts[node - leaves], starts[node - leaves + 1]):
            if core[i] and root(parents, i) != own:
                return False
    else:
        for child in (2 * node, 2 * node + 1):
            if some[child] >= 0 and not (whole[child] and root(parents, some[child]) == own):
                return False
    whole[node] = True
    return True


@kernel
def _join(
    starts: Ints,
    low: Floats,
    high: Floats,
    placed: Floats,
    reach: float,
    core: Flags,
    some: Ints,
    whole: Flags,
    parents: Ints,
) -> None:
    """Join every core point with the core points within reach."""
    leaves = len(starts) - 1
    stack = np.empty(128, np.int64)
    for p in range(len(core)):
        if not core[p]:
            continue
        stack[0], top = 1, 0
        while top >= 0:
            node = stack[top]
            top -= 1
            if some[node] < 0 or _out_of_reach(placed[p], low[node], high[node], reach):
                continue
            one = _is_whole(node, leaves, starts, core, some, whole, parents)
            if one and root(parents, some[node]) == root(parents, p):
                continue
            if node < leaves:
                stack[top + 1], stack[top + 2] = 2 * node, 2 * node + 1
                top += 2
                continue
            for q in range(starts[node - leaves], starts[node - leaves + 1]):
                if core[q] and _near(placed[p], placed[q], reach):
                    union(parents, p, q)


@kernel
def _border(
    starts: Ints,
    low: Floats,
    high: Floats,
    placed: Floats,
    reach: float,
    core: Flags,
    some: Ints,
    numbers: Ints,
) -> None:
    """Give every other point the smallest number among the core points within reach."""
    leaves = len(starts) - 1
    stack = np.empty(128, np.int64)
    for p in range(len(core)):
        if core[p]:
            continue
        best = len(core)
        stack[0], top = 1, 0
        while top >= 0:
            node = stack[top]
            top -= 1
            if some[node] < 0 or _out_of_reach(placed[p], low[node], high[node], reach):
                continue
            if node < leaves:
                stack[top + 1], stack[top + 2] = 2 * node, 2 * node + 1
                top += 2
                continue
            for q in range(starts[node - leaves], starts[node - leaves + 1]):
                if core[q] and numbers[q] < best and _near(placed[p], placed[q], reach):
                    best = numbers[q]
        if best < len(core):
            numbers[p] = best
