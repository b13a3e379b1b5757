"""Detectors of outliers among perturbed readings: DBSCAN, and any class of scikit-learn or PyOD.

Step 2 of [Boe17, Figure 2] asks for a standard outlier detection and names none. A detector sees perturbed readings
only, so it is post-processing: the guarantee does not depend on which one is chosen.  (L)

`dbscan`                                        all readings outside the biggest cluster; the default
`sklearn:MODULE.CLASS`, `pyod:MODULE.CLASS`     an estimator of scikit-learn or PyOD, with settings as in
                                                sklearn:neighbors.LocalOutlierFactor:n_neighbors=20

DBSCAN [EKSX96]: a point is core if `neighbours` points, itself included, are within `radius` of it. Core points within
reach of each other are in one cluster. Clusters are numbered by their first core point; a border point takes the
smallest number among the core points within reach, and noise is -1: the labels of scikit-learn, which lists all
neighbours of all points and so needs memory and time by the pair. Here the leaves of the tree of `neighbours.pairs` are
joined (proof.md, label (C)).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import DataError, ParameterError
from wallflower.machine.jit import kernel
from wallflower.machine.lazy import load
from wallflower.names import name_callable
from wallflower.neighbours.pairs import BOX_MARGIN, as_matrix, build_tree, count_neighbours, squared_reach

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Detector = Callable[[Floats], Any]  # from readings in scaled units: one truth value for each

DBSCAN: Final = "dbscan"
_PACKAGES: Final[Mapping[str, tuple[str, str]]] = {  # by prefix: where its modules are, and what to install
    "sklearn": ("sklearn", "scikit-learn"),
    "pyod": ("pyod.models", "pyod"),
}
_NAME: Final = re.compile(r"(sklearn|pyod):([a-z_]\w*)\.([A-Z]\w*)((?::\w+=[\w.+-]+)(?:,\w+=[\w.+-]+)*)?", re.ASCII)
_CONSTANTS: Final[Mapping[str, Any]] = {"True": True, "False": False, "None": None}
_STACK_NODES: Final = 128  # depth-first over a binary tree: twice its depth


def check_detector(name: str) -> None:
    """Raise ParameterError if a name is not one of a detector; its package is loaded when a window is judged."""
    if name != DBSCAN and not _NAME.fullmatch(name):
        raise ParameterError(
            f"detector: {name[:60]!r} is not a detector. Allowed are dbscan, and classes of scikit-learn or PyOD with "
            "settings. Write one such as 'sklearn:neighbors.LocalOutlierFactor:n_neighbors=20'."
        )


def load_detector(name: str) -> Detector:
    """Return the detector of a name other than dbscan; raise ParameterError if its package is not installed.

    >>> flag = load_detector("sklearn:neighbors.LocalOutlierFactor:n_neighbors=2")
    >>> flag(np.array([[0.0], [0.1], [0.2], [9.0]]))
    array([False, False, False,  True])
    """
    check_detector(name)
    match = _NAME.fullmatch(name)
    if match is None:
        raise ParameterError("detector: dbscan has its own settings, radius and neighbours. Name another detector.")
    package, module, kind, settings = match.groups()
    pairs = (part.split("=", 1) for part in (settings or ":").removeprefix(":").split(",") if part)
    folder, distribution = _PACKAGES[package]
    try:
        estimator = getattr(load(f"{folder}.{module}"), kind)
    except ModuleNotFoundError as error:
        raise ParameterError(
            f"detector: {package}.{module} cannot be imported. Correct the name, or install the package: "
            f"pip install {distribution}."
        ) from error
    except AttributeError:
        raise ParameterError(f"detector: {package} has no {module}.{kind}. Correct the name.") from None
    try:
        return _flag_with(estimator(**{key: _parse_setting(text) for key, text in pairs}))
    except TypeError:
        raise ParameterError(f"detector: {module}.{kind} does not take these settings. Correct them.") from None


def run_detector(values: Floats, detector: Detector | Any) -> Flags:
    """Return the flags of a function, or of an estimator with `fit_predict`, for readings in scaled units."""
    is_estimator = hasattr(detector, "fit_predict") or hasattr(detector, "decision_function")
    flag = _flag_with(detector) if is_estimator else detector
    try:
        flags = np.asarray(flag(values))
    except Exception as error:
        raise DataError(
            f"detector: {name_callable(detector)} fails on the perturbed readings, with {type(error).__name__}. "
            "Correct it, or choose another."
        ) from error
    if flags.shape != (len(values),) or flags.dtype != np.bool_:
        raise DataError(
            "detector: it did not return one truth value for each reading. Return a boolean array, True for outliers."
        )
    return flags


def _flag_with(estimator: Any) -> Detector:
    """Return how to ask an estimator: PyOD flags by `labels_` 1, scikit-learn by -1 of `fit_predict`."""

    def flag(values: Floats) -> Any:
        if hasattr(estimator, "decision_function") and "pyod" in type(estimator).__module__:
            return np.asarray(estimator.fit(values).labels_) == 1
        return np.asarray(estimator.fit_predict(values)) == -1

    return flag


def _parse_setting(text: str) -> Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def outside_biggest_cluster(points: ArrayLike, radius: float = 0.5, neighbours: int = 15) -> Flags:
    """Flag every point outside the biggest cluster of DBSCAN; if there is no cluster, every point.

    >>> outside_biggest_cluster([[0, 0], [0, 1], [1, 0], [9, 9]], 1.0, 3)
    array([False, False, False,  True])
    """
    labels = dbscan(points, radius, neighbours)
    sizes = np.bincount(labels[labels >= 0], minlength=1)
    return np.asarray((labels < 0) | (labels != np.argmax(sizes)))


def dbscan(points: ArrayLike, radius: float, neighbours: int) -> Ints:
    """Return the cluster of each point, -1 for noise.

    >>> dbscan([[0, 0], [0, 1], [1, 0], [9, 9]], 1.0, 3)
    array([ 0,  0,  0, -1])
    """
    if isinstance(neighbours, bool) or not isinstance(neighbours, int | np.integer) or neighbours < 1:
        raise ParameterError(f"neighbours: {neighbours!r} must be a whole number from 1; a core point counts itself.")
    values, reach = as_matrix(points), squared_reach(radius, 1, normalise=False)
    tree = build_tree(values, reach)
    core = count_neighbours(tree, int(neighbours) - 1) >= neighbours - 1
    ordered, parents = values[tree.order], np.arange(tree.n)
    samples = _core_samples(tree.starts, core)
    is_whole = np.zeros(len(samples), dtype=np.bool_)
    _join_leaves(tree.starts, tree.low, tree.high, ordered, reach, core, samples, is_whole, parents)
    numbers = _number_clusters(_find_roots(parents), core, tree.order)
    _assign_borders(tree.starts, tree.low, tree.high, ordered, reach, core, samples, numbers)
    labels = np.empty(tree.n, dtype=np.int64)
    labels[tree.order] = numbers
    return labels


def _number_clusters(groups: Ints, core: Flags, order: Ints) -> Ints:
    """Return the cluster of each core point, -1 for others: groups are numbered by their first point in `order`."""
    numbers, core_groups = np.full(len(core), -1, dtype=np.int64), groups[core]
    first = np.full(len(core), len(core), dtype=np.int64)
    np.minimum.at(first, core_groups, order[core])
    _, numbers[core] = np.unique(first[core_groups], return_inverse=True)
    return numbers


@kernel
def _find_root(parents: Ints, at: int) -> int:
    while parents[at] != at:
        parents[at] = parents[parents[at]]
        at = parents[at]
    return at


@kernel
def _union(parents: Ints, a: int, b: int) -> None:
    a, b = _find_root(parents, a), _find_root(parents, b)
    parents[max(a, b)] = min(a, b)


@kernel
def _find_roots(parents: Ints) -> Ints:
    roots = np.empty(len(parents), np.int64)
    for i in range(len(parents)):
        roots[i] = _find_root(parents, i)
    return roots


@kernel
def _core_samples(starts: Ints, core: Flags) -> Ints:
    """Return one core point of every node of the tree, -1 if it has none."""
    leaves = len(starts) - 1
    samples = np.full(2 * leaves, -1, np.int64)
    for leaf in range(leaves):
        for i in range(starts[leaf], starts[leaf + 1]):
            if core[i]:
                samples[leaves + leaf] = i
    for node in range(leaves - 1, 0, -1):
        samples[node] = max(samples[2 * node], samples[2 * node + 1])
    return samples


@kernel
def _is_out_of_reach(low: Floats, high: Floats, other_low: Floats, other_high: Floats, reach: float) -> bool:
    """Whether two boxes are further apart than the radius, by a margin that rounding cannot cross."""
    square = 0.0
    for c in range(len(low)):
        gap = max(low[c] - other_high[c], other_low[c] - high[c], 0.0)
        square += gap * gap
    return square > reach * (1 + BOX_MARGIN)


@kernel
def _is_near(a: Floats, b: Floats, reach: float) -> bool:
    """The one test that decides a pair: squared differences, added in column order."""
    total = 0.0
    for c in range(len(a)):
        difference = a[c] - b[c]
        total += difference * difference
    return total <= reach


@kernel
def _is_one_cluster(
    node: int, leaves: int, starts: Ints, core: Flags, samples: Ints, is_whole: Flags, parents: Ints
) -> bool:
    """Whether all core points of a node are known to be in one cluster; once true, it stays true and is remembered."""
    if is_whole[node]:
        return True
    root = _find_root(parents, samples[node])
    if node >= leaves:
        for i in range(starts[node - leaves], starts[node - leaves + 1]):
            if core[i] and _find_root(parents, i) != root:
                return False
    else:
        for child in (2 * node, 2 * node + 1):
            if samples[child] >= 0 and not (is_whole[child] and _find_root(parents, samples[child]) == root):
                return False
    is_whole[node] = True
    return True


@kernel
def _join_leaves(
    starts: Ints,
    low: Floats,
    high: Floats,
    ordered: Floats,
    reach: float,
    core: Flags,
    samples: Ints,
    is_whole: Flags,
    parents: Ints,
) -> None:
    """Join the core points within reach of each other, leaf by leaf.

    Joining two clusters that are one already changes nothing, so a node is skipped if its core points and those of the
    leaf are all in one cluster: in dense data almost all are, and the work is near one walk a leaf.
    """
    leaves = len(starts) - 1
    for leaf in range(leaves):
        _join_pair(starts, ordered, reach, core, parents, leaf, leaf, False, False)
    stack = np.empty(_STACK_NODES, np.int64)
    for own in range(leaves, 2 * leaves):
        if samples[own] < 0:
            continue
        stack[0], top = 1, 0
        while top >= 0:
            node = stack[top]
            top -= 1
            if samples[node] < 0 or _is_out_of_reach(low[node], high[node], low[own], high[own], reach):
                continue
            own_whole = _is_one_cluster(own, leaves, starts, core, samples, is_whole, parents)
            node_whole = _is_one_cluster(node, leaves, starts, core, samples, is_whole, parents)
            if own_whole and node_whole and _find_root(parents, samples[node]) == _find_root(parents, samples[own]):
                continue
            if node < leaves:
                stack[top + 1], stack[top + 2] = 2 * node, 2 * node + 1
                top += 2
            elif node > own:
                _join_pair(starts, ordered, reach, core, parents, own - leaves, node - leaves, own_whole, node_whole)


@kernel
def _join_pair(
    starts: Ints,
    ordered: Floats,
    reach: float,
    core: Flags,
    parents: Ints,
    leaf: int,
    other: int,
    leaf_whole: bool,
    other_whole: bool,
) -> None:
    """Join the core points of two leaves; of a leaf that is one cluster, one pair is enough."""
    for p in range(starts[leaf], starts[leaf + 1]):
        if not core[p]:
            continue
        for q in range(starts[other], starts[other + 1]):
            if core[q] and _is_near(ordered[p], ordered[q], reach):
                _union(parents, p, q)
                if leaf_whole and other_whole:
                    return
                if other_whole:
                    break


@kernel
def _assign_borders(
    starts: Ints, low: Floats, high: Floats, ordered: Floats, reach: float, core: Flags, samples: Ints, numbers: Ints
) -> None:
    """Give every point that is not core the smallest number among the core points within reach."""
    leaves = len(starts) - 1
    stack = np.empty(_STACK_NODES, np.int64)
    for p in range(len(core)):
        if core[p]:
            continue
        smallest = len(core)
        stack[0], top = 1, 0
        while top >= 0:
            node = stack[top]
            top -= 1
            if samples[node] < 0 or _is_out_of_reach(low[node], high[node], ordered[p], ordered[p], reach):
                continue
            if node < leaves:
                stack[top + 1], stack[top + 2] = 2 * node, 2 * node + 1
                top += 2
                continue
            for q in range(starts[node - leaves], starts[node - leaves + 1]):
                if core[q] and numbers[q] < smallest and _is_near(ordered[p], ordered[q], reach):
                    smallest = numbers[q]
        if smallest < len(core):
            numbers[p] = smallest
