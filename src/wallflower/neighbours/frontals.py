"""Positive systems that are sums of small blocks, solved by nested dissection: a multifrontal Cholesky factorisation.

Unknown i is a supplier; consumer c couples the suppliers of its edges `starts[c]` … `starts[c+1]-1`. The suppliers are
halved again and again along the bits of their `address` (their place in the tree, so near ones have like addresses);
those that touch both halves are put off until both are done. What is put off together is a *front*: a dense matrix of
its own suppliers and of the later ones that they touch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wallflower.machine.jit import light_kernel
from wallflower.neighbours.pairs import Floats, Ints

MAX_LEAF_SUPPLIERS = 96  # suppliers that are not worth halving
MAX_SEPARATOR_SHARE = 0.4  # nor is a part with a larger share of separators
BLOCK_COLUMNS = 48


@dataclass(frozen=True, slots=True)
class Frontals:
    """The plan of a factorisation. Suppliers are numbered in the order of elimination, `rank`; front t eliminates
    `first[t]` … `first[t+1]-1`, touches `later[ahead[t]:ahead[t+1]]`, which stand at `spots` of its parent's matrix,
    and adds the blocks of `members[joins[t]:joins[t+1]]`, whose edges stand at `slot` of its own. Its columns of the
    factor begin at `panel[t]`. `room` is the size of the largest front, and the most cells that wait for parents."""

    rank: Ints
    first: Ints
    ahead: Ints
    later: Ints
    spots: Ints
    children: Ints
    joins: Ints
    members: Ints
    slot: Ints
    panel: Ints
    room: Ints


def dissect(starts: Ints, supplier: Ints, address: Ints, bits: int) -> Frontals:
    """Plan the elimination."""
    home = _homes(starts, supplier, address, bits)
    nodes = np.unique(home)
    level = np.floor(np.log2(nodes)).astype(np.int64)
    stop = (nodes - (1 << level) + 1) << (bits - level)
    nodes = nodes[np.lexsort((-level, stop))]  # children before parents
    at = {int(node): t for t, node in enumerate(nodes)}
    parent = [_parent(int(node), at) for node in nodes]
    index = np.argsort(nodes)[np.searchsorted(np.sort(nodes), home)]
    rank = np.empty(len(home), dtype=np.int64)
    rank[np.argsort(index, kind="stable")] = np.arange(len(home))
    first = np.concatenate([[0], np.cumsum(np.bincount(index, minlength=len(nodes)))])
    return _lay_out(starts, rank[supplier], rank, first, parent)


def _homes(starts: Ints, supplier: Ints, address: Ints, bits: int) -> Ints:
    """The node, counted as in a heap, at which each supplier is eliminated."""
    node, placed = np.ones(len(address), dtype=np.int64), np.zeros(len(address), dtype=np.bool_)
    consumer = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    for level in range(bits):
        names, group = np.unique(node, return_inverse=True)
        size = np.bincount(group[~placed], minlength=len(names))
        placed |= (size <= MAX_LEAF_SUPPLIERS)[group]
        open_edge = ~placed[supplier]
        if not open_edge.any():
            break
        consumer, supplier = consumer[open_edge], supplier[open_edge]
        side = (address >> (bits - 1 - level)) & 1
        ones = np.bincount(consumer, weights=side[supplier], minlength=len(starts) - 1)
        alls = np.bincount(consumer, minlength=len(starts) - 1)
        crossed = np.zeros(len(address), dtype=np.bool_)
        crossed[supplier[((ones > 0) & (ones < alls))[consumer]]] = True
        left = np.bincount(group[crossed & (side == 0)], minlength=len(names))
        right = np.bincount(group[crossed & (side == 1)], minlength=len(names))
        fewer = np.where(left <= right, 0, 1)
        stays = np.minimum(left, right) > MAX_SEPARATOR_SHARE * size
        placed |= stays[group] | (crossed & (side == fewer[group]))
        node = np.where(placed, node, 2 * node + side)
    return node


def _parent(node: int, at: dict[int, int]) -> int:
    node //= 2
    while node > 0 and node not in at:
        node //= 2
    return at.get(node, -1)


def _lay_out(starts: Ints, ranks: Ints, rank: Ints, first: Ints, parent: list[int]) -> Frontals:
    """Find what every front touches, from the leaves to the root."""
    fronts = len(parent)
    lowest = np.minimum.reduceat(ranks, starts[:-1]) if len(starts) > 1 else np.empty(0, dtype=np.int64)
    joined = np.searchsorted(first, lowest, side="right") - 1
    members = np.argsort(joined, kind="stable")
    joins = np.searchsorted(joined[members], np.arange(fronts + 1))
    edges = [np.arange(starts[c], starts[c + 1]) for c in members]
    slot = np.empty(len(ranks), dtype=np.int64)
    ahead: list[Ints] = []
    heirs: list[list[int]] = [[] for _ in range(fronts)]
    for t in range(fronts):
        mine = np.concatenate([np.empty(0, dtype=np.int64), *edges[joins[t] : joins[t + 1]]])
        touched = np.unique(np.concatenate([ranks[mine], *(ahead[child] for child in heirs[t])]))
        ahead.append(touched[touched >= first[t + 1]])
        if parent[t] >= 0:
            heirs[parent[t]].append(t)
        rows = np.concatenate([np.arange(first[t], first[t + 1]), ahead[t]])
        slot[mine] = np.searchsorted(rows, ranks[mine])
    spots = [np.empty(0, dtype=np.int64)]
    for t in range(fronts):
        up = parent[t]
        rows = np.concatenate([np.arange(first[up], first[up + 1]), ahead[up]]) if up >= 0 else ahead[t]
        spots.append(np.searchsorted(rows, ahead[t]))
    touch, own = np.array([len(a) for a in ahead]), np.diff(first)
    children = np.array([len(heir) for heir in heirs])
    return Frontals(
        rank=rank,
        first=first,
        ahead=np.concatenate([[0], np.cumsum(touch)]),
        later=np.concatenate([np.empty(0, dtype=np.int64), *ahead]),
        spots=np.concatenate(spots),
        children=children,
        joins=joins,
        members=members,
        slot=slot,
        panel=np.concatenate([[0], np.cumsum((own + touch) * own)]),
        room=np.array([int((own + touch).max()), _stack_height(touch, children)]),
    )


def _stack_height(touch: Ints, children: Ints) -> int:
    """How many cells wait for their parents at most."""
    waiting: list[int] = []
    most = 0
    for size, heirs in zip(touch.tolist(), children.tolist(), strict=True):
        del waiting[len(waiting) - heirs :]
        waiting.append(size * size)
        most = max(most, sum(waiting))
    return most


@light_kernel
def eliminate(matrix: Floats, count: int) -> None:
    """Cholesky's elimination of the first `count` unknowns, in the lower half, in blocks. A pivot that rounding made
    worthless becomes so large that its unknown stays at zero."""
    size = len(matrix)
    for start in range(0, count, BLOCK_COLUMNS):
        stop = min(start + BLOCK_COLUMNS, count)
        width = stop - start
        upper = np.zeros((width, width))
        for j in range(start, stop):
            pivot = matrix[j, j]
            root = np.sqrt(pivot) if pivot > 1e-200 else 1e64
            matrix[j, j] = root
            for i in range(j + 1, stop):
                matrix[i, j] /= root
            for i in range(j + 1, stop):
                times = matrix[i, j]
                for c in range(j + 1, i + 1):
                    matrix[i, c] -= times * matrix[c, j]
        for i in range(width):
            for j in range(i + 1):
                upper[j, i] = matrix[start + i, start + j]
        rest = size - stop
        if rest == 0:
            continue
        panel = np.empty((rest, width))
        for i in range(rest):
            row = panel[i]
            for j in range(width):
                row[j] = matrix[stop + i, start + j]
            for j in range(width):
                row[j] /= upper[j, j]
                times = row[j]
                for c in range(j + 1, width):
                    row[c] -= times * upper[j, c]
            for j in range(width):
                matrix[stop + i, start + j] = row[j]
        for low in range(0, rest, 2 * BLOCK_COLUMNS):
            _subtract(matrix, stop + low, panel[low:], min(2 * BLOCK_COLUMNS, rest - low))


@light_kernel
def _subtract(matrix: Floats, at: int, panel: Floats, columns: int) -> None:
    """Take panel panel' off the lower half of `columns` columns from `at` on, four terms at a time."""
    width = panel.shape[1]
    across = np.zeros((width + 3, columns))
    for i in range(columns):
        for t in range(width):
            across[t, i] = panel[i, t]
    for i in range(len(panel)):
        row, terms = matrix[at + i, at : at + min(columns, i + 1)], panel[i]
        for t in range(0, width, 4):
            a = terms[t]
            b = terms[t + 1] if t + 1 < width else 0.0
            c = terms[t + 2] if t + 2 < width else 0.0
            d = terms[t + 3] if t + 3 < width else 0.0
            one, two, three, four = across[t], across[t + 1], across[t + 2], across[t + 3]
            for j in range(len(row)):
                row[j] -= a * one[j] + b * two[j] + c * three[j] + d * four[j]


@light_kernel
def factor(
    first: Ints,
    ahead: Ints,
    spots: Ints,
    children: Ints,
    joins: Ints,
    members: Ints,
    slot: Ints,
    panel: Ints,
    work: Floats,
    stack: Floats,
    starts: Ints,
    diagonal: Floats,
    weights: Floats,
    factors: Floats,
) -> None:
    """Factor diag(diagonal) + the sum over consumers of diag(own) + plus plus' - minus minus', rows of `weights`."""
    own, plus, minus = weights[0], weights[2], weights[3]
    top = 0
    heights = np.zeros(len(first), dtype=np.int64)  # the stack below each waiting front
    waiting = 0
    names = np.zeros(len(first), dtype=np.int64)
    for t in range(len(first) - 1):
        count, touch = first[t + 1] - first[t], ahead[t + 1] - ahead[t]
        size = count + touch
        matrix = work[: size * size].reshape((size, size))
        for i in range(size):
            for j in range(i + 1):
                matrix[i, j] = 0.0
        for i in range(count):
            matrix[i, i] = diagonal[first[t] + i]
        for m in range(joins[t], joins[t + 1]):
            c = members[m]
            for e in range(starts[c], starts[c + 1]):
                i = slot[e]
                matrix[i, i] += own[e]
                for d in range(starts[c], starts[c + 1]):
                    if slot[d] <= i:
                        matrix[i, slot[d]] += plus[e] * plus[d] - minus[e] * minus[d]
        for _ in range(children[t]):
            waiting -= 1
            child, top = names[waiting], heights[waiting]
            length = ahead[child + 1] - ahead[child]
            update = stack[top : top + length * length].reshape((length, length))
            spot = spots[ahead[child] : ahead[child + 1]]
            for i in range(length):
                row = matrix[spot[i]]
                for j in range(i + 1):
                    row[spot[j]] += update[i, j]
        eliminate(matrix, count)
        kept = factors[panel[t] : panel[t + 1]].reshape((size, count))
        for i in range(size):
            for j in range(count):
                kept[i, j] = matrix[i, j]
        left = stack[top : top + touch * touch].reshape((touch, touch))
        for i in range(touch):
            for j in range(i + 1):
                left[i, j] = matrix[count + i, count + j]
        names[waiting], heights[waiting] = t, top
        waiting += 1
        top += touch * touch


@light_kernel
def solve(first: Ints, ahead: Ints, later: Ints, panel: Ints, factors: Floats, x: Floats) -> None:
    """Solve in place, unknowns in the order of elimination."""
    fronts = len(first) - 1
    for t in range(fronts):
        start, count, touch = first[t], first[t + 1] - first[t], ahead[t + 1] - ahead[t]
        kept = factors[panel[t] : panel[t + 1]].reshape((count + touch, count))
        for i in range(count):
            total = x[start + i]
            for j in range(i):
                total -= kept[i, j] * x[start + j]
            x[start + i] = total / kept[i, i]
        for i in range(touch):
            total = 0.0
            for j in range(count):
                total += kept[count + i, j] * x[start + j]
            x[later[ahead[t] + i]] -= total
    for t in range(fronts - 1, -1, -1):
        start, count, touch = first[t], first[t + 1] - first[t], ahead[t + 1] - ahead[t]
        kept = factors[panel[t] : panel[t + 1]].reshape((count + touch, count))
        for i in range(touch):
            times = x[later[ahead[t] + i]]
            for j in range(count):
                x[start + j] -= kept[count + i, j] * times
        for i in range(count - 1, -1, -1):
            x[start + i] /= kept[i, i]
            times = x[start + i]
            for j in range(i):
                x[start + j] -= kept[i, j] * times
