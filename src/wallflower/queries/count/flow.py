"""The largest flow behind the outlier mass: every record serves at most k others, and wants k itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from wallflower.near import Index, Tree, lists


def largest_flow(tree: Tree, neighbours: int) -> int:
    """The most units that records can serve to near ones: one to each, `neighbours` given and taken by each at most.

    Not all pairs are listed at first. A longer list can only help a consumer from which the sink is still within
    reach, so those lists grow until none of them is cut off (label (M)).
    """
    width = min(max(tree.n - 1, 0), 4 * neighbours + 8)
    met, found = lists(tree, width)
    rows, wanted = [met[j, : found[j]] for j in range(tree.n)], int(np.minimum(found, neighbours).sum())
    cut = found == width
    while True:
        network = _network(rows, neighbours)
        result = maximum_flow(network, 0, 2 * tree.n + 1, method="dinic")
        if result.flow_value == wanted or width >= tree.n - 1:
            return int(result.flow_value)
        growing = _hungry(network, result.flow, tree.n) & cut
        if not growing.any():
            return int(result.flow_value)
        width = min(4 * width, tree.n - 1)
        who = np.flatnonzero(growing).astype(np.int32)
        met, found = lists(tree, width, who)
        for row, j in enumerate(who):
            rows[j], cut[j] = met[row, : found[row]], found[row] == width


def _network(rows: list[Index], neighbours: int) -> csr_array:
    """Node 0 feeds suppliers 1 … n, they feed consumers n+1 … 2n, those feed node 2n+1."""
    n = len(rows)
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    supplier = np.concatenate([np.empty(0, np.int32), *rows]).astype(np.int32)
    consumer = np.repeat(np.arange(n, dtype=np.int32), lengths)
    each = np.arange(n, dtype=np.int32)
    sources = np.concatenate([np.zeros(n, np.int32), 1 + supplier, n + 1 + each])
    targets = np.concatenate([1 + each, n + 1 + consumer, np.full(n, 2 * n + 1, np.int32)])
    room = np.concatenate([np.full(n, neighbours), np.ones(len(supplier)), np.full(n, neighbours)]).astype(np.int32)
    return csr_array((room, (sources, targets)), shape=(2 * n + 2, 2 * n + 2))


def _hungry(network: csr_array, flow: csr_array, n: int) -> NDArray[np.bool_]:
    """The consumers from which the sink can still be reached."""
    residual = csr_array(network - flow)
    residual.eliminate_zeros()
    reached = breadth_first_order(csr_array(residual.T), 2 * n + 1, return_predecessors=False)
    hungry = np.zeros(2 * n + 2, dtype=np.bool_)
    hungry[reached] = True
    return hungry[n + 1 : 2 * n + 1]
