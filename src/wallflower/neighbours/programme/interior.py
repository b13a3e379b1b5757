"""An interior point method for contests, shaped by their structure: one unknown price per supplier.

Newton's equations for flows, caps and prices reduce to one symmetric positive system over the suppliers, a sum of small
blocks, one per consumer; `fronts.py` solves it. All iterates are feasible for flows and for prices.

A *pair* is a slack and its price, whose product vanishes at the optimum. In order: for each edge its flow and reduced
cost; for each edge what is left below the cap, and the price of the cap; for each consumer what is left to be served,
and its gain; for each supplier the room left, and its price. The products add up to the gap. Two more numbers of
each consumer have no pair: its cap and its worth, which is 1 - gain.
"""

from __future__ import annotations

import numpy as np

from wallflower.machine.jit import light_kernel
from wallflower.neighbours.pairs import Floats, Ints
from wallflower.neighbours.programme.fronts import Fronts, factor, solve

STEPS = 300  # the largest contests of the study need 140; HiGHS, which follows, would take hours there
CORRECTORS = 6
STUCK, PATIENCE = 0.99, 8
SHY = 0.995  # how much of the way to the nearest limit a step may go


def interior(
    starts: Ints, supplier: Ints, short: Ints, room: Floats, fronts: Fronts, aim: float
) -> tuple[Floats, Floats, Floats]:
    """Flows, caps and prices whose worths differ by at most `aim`, unless rounding or STEPS forbid it: Mehrotra's
    predictor and corrector, then Gondzio's correctors while they lengthen the step [Gon96].

    Consumer c has the edges `starts[c]` to `starts[c+1]-1` and lacks `short[c]` free suppliers, so that it is served
    sum f - short cap.
    """
    edges, consumers = len(supplier), len(short)
    pairs, free = _begin(starts, supplier, short, room)
    newton = Newton(starts, supplier, short, pairs, fronts)
    moves, shifts = newton.directions()
    trial, others = newton.directions()
    gap, stuck = _gap(pairs, moves, 0.0, 0.0), 0
    for _ in range(STEPS):
        if not aim < gap < np.inf:
            break
        newton.factor()
        tau = -pairs[0] * pairs[1]
        newton.direct(tau, moves, shifts)
        primal, dual = _reach(pairs[0], moves[0]), _reach(pairs[1], moves[1])
        centre = max((_gap(pairs, moves, primal, dual) / gap) ** 3, 1e-8) * gap / len(tau)
        tau += centre - moves[0] * moves[1]
        newton.direct(tau, moves, shifts)
        primal, dual = _reach(pairs[0], moves[0]), _reach(pairs[1], moves[1])
        for _ in range(CORRECTORS):
            if min(primal, dual) > 0.9:
                break
            _centre(pairs, moves, min(1.0, 1.2 * primal + 0.1), min(1.0, 1.2 * dual + 0.1), centre, tau)
            newton.direct(tau, trial, others)
            further, dearer = _reach(pairs[0], trial[0]), _reach(pairs[1], trial[1])
            if further + dearer < primal + dual + 0.02:
                break
            primal, dual = further, dearer
            moves, shifts, trial, others = trial, others, moves, shifts
        pairs += np.array([[primal], [dual]]) * moves
        free += np.array([[primal], [dual]]) * shifts
        before, gap = gap, _gap(pairs, moves, 0.0, 0.0)
        stuck = stuck + 1 if gap > STUCK * before else 0
        if stuck == PATIENCE:  # rounding lets it go no further
            break
    return pairs[0, :edges], free[0], pairs[1, 2 * edges + consumers :]


class Newton:
    """Newton's equations at the present pairs, factored."""

    def __init__(self, starts: Ints, supplier: Ints, short: Ints, pairs: Floats, fronts: Fronts) -> None:
        self._graph, self._pairs, self._fronts = (starts, supplier, short), pairs, fronts
        self._weights, self._blocks = np.zeros((5, len(supplier))), np.empty((4, len(short)))
        self._work, self._stack = np.empty(fronts.room[0] ** 2), np.empty(fronts.room[1])
        self._factors = np.empty(fronts.panel[-1])
        self._base = 2 * len(supplier) + len(short)

    def directions(self) -> tuple[Floats, Floats]:
        """Room for one direction."""
        return np.zeros(self._pairs.shape), np.zeros((2, len(self._graph[2])))

    def factor(self) -> None:
        starts, _, short = self._graph
        plan, diagonal = self._fronts, np.empty(len(self._fronts.rank))
        _weigh(starts, short, self._pairs, self._weights, self._blocks)
        diagonal[plan.rank] = self._pairs[0, self._base :] / self._pairs[1, self._base :]
        factor(
            plan.first, plan.ahead, plan.spots, plan.children, plan.joins, plan.members, plan.slot, plan.panel,
            self._work, self._stack, starts, diagonal, self._weights, self._factors,
        )  # fmt: skip

    def direct(self, tau: Floats, moves: Floats, shifts: Floats) -> None:
        """The direction towards products that differ from today's by `tau`."""
        plan, right = self._fronts, np.empty(len(self._fronts.rank))
        _ask(*self._graph, self._pairs, self._weights, self._blocks, tau, plan.rank, right, moves, shifts)
        solve(plan.first, plan.ahead, plan.later, plan.panel, self._factors, right)
        _reply(*self._graph, self._weights, self._blocks, plan.rank, right, moves, shifts)


@light_kernel
def _begin(starts: Ints, supplier: Ints, short: Ints, room: Floats) -> tuple[Floats, Floats]:
    """A feasible start: everybody asks half of what would fit if all asked alike."""
    edges, consumers = len(supplier), len(short)
    pairs, free = np.empty((2, 2 * edges + consumers + len(room))), np.empty((2, consumers))
    asked = np.zeros(len(room))
    for c in range(consumers):
        for e in range(starts[c], starts[c + 1]):
            asked[supplier[e]] += 1.0 / (starts[c + 1] - starts[c])
    left = pairs[0, 2 * edges + consumers :]
    left[:] = room
    pairs[1, 2 * edges + consumers :] = 0.4
    for c in range(consumers):
        count = starts[c + 1] - starts[c]
        most, total = 0.0, 0.0
        for e in range(starts[c], starts[c + 1]):
            i = supplier[e]
            flow = 0.5 * min(1.0, room[i] / asked[i]) / count
            pairs[0, e] = flow
            most, total = max(most, flow), total + flow
            left[i] -= flow
        free[0, c], free[1, c] = 1.5 * most if short[c] > 0 else 1.0, 0.3
        pairs[0, 2 * edges + c], pairs[1, 2 * edges + c] = 1.0 - total + short[c] * free[0, c], 0.7
        price = 0.3 * short[c] / count
        for e in range(starts[c], starts[c + 1]):
            pairs[0, edges + e] = free[0, c] - pairs[0, e] if short[c] > 0 else 1.0  # who lacks none has a cap of 1
            pairs[1, e], pairs[1, edges + e] = 0.1 + price, price
    return pairs, free


@light_kernel
def _gap(pairs: Floats, moves: Floats, primal: float, dual: float) -> float:
    """The sum of the products after such a step."""
    total = 0.0
    for i in range(pairs.shape[1]):
        total += (pairs[0, i] + primal * moves[0, i]) * (pairs[1, i] + dual * moves[1, i])
    return total


@light_kernel
def _reach(values: Floats, moves: Floats) -> float:
    """The longest step, up to 1, that keeps all values positive."""
    longest = 1.0 / SHY
    for i in range(len(values)):
        if values[i] + longest * moves[i] < 0.0:
            longest = -values[i] / moves[i]
    return SHY * longest


@light_kernel
def _centre(pairs: Floats, moves: Floats, primal: float, dual: float, centre: float, tau: Floats) -> None:
    """Aim products that a longer step would make too small or too large back at the centre's neighbourhood."""
    for i in range(len(tau)):
        product = (pairs[0, i] + primal * moves[0, i]) * (pairs[1, i] + dual * moves[1, i])
        if product < 0.1 * centre:
            tau[i] += 0.1 * centre - product
        elif product > 10.0 * centre:
            tau[i] += max(10.0 * centre - product, -10.0 * centre)


@light_kernel
def _weigh(starts: Ints, short: Ints, pairs: Floats, weights: Floats, blocks: Floats) -> None:
    """Newton's equations with all but the prices of suppliers eliminated. Per edge: phi = f/D and psi = f z/(s D),
    where D = r + f z/s, then plus and minus of the consumer's block, diag(phi) + plus plus' - minus minus', and z/s."""
    edges = weights.shape[1]
    for c in range(len(short)):
        a, b, total = -float(short[c]), 0.0, 0.0
        for e in range(starts[c], starts[c + 1]):
            f, s, r, z = pairs[0, e], pairs[0, edges + e], pairs[1, e], pairs[1, edges + e]
            ratio = z / s
            d = r + f * ratio
            weights[0, e], weights[1, e], weights[4, e] = f / d, f * ratio / d, ratio
            a, b, total = a + weights[1, e], b + ratio * r / d, total + weights[0, e]
        if short[c] == 0:
            b = 1.0
        served = total + pairs[0, 2 * edges + c] / pairs[1, 2 * edges + c]
        det = a * a + b * served
        blocks[0, c], blocks[1, c], blocks[2, c], blocks[3, c] = a, b, served, det
        small, large = 1.0 / np.sqrt(b), np.sqrt(b / det)
        for e in range(starts[c], starts[c + 1]):
            weights[2, e] = weights[1, e] * small
            weights[3, e] = (weights[0, e] + a / b * weights[1, e]) * large


@light_kernel
def _ask(
    starts: Ints,
    supplier: Ints,
    short: Ints,
    pairs: Floats,
    weights: Floats,
    blocks: Floats,
    tau: Floats,
    rank: Ints,
    right: Floats,
    moves: Floats,
    shifts: Floats,
) -> None:
    """The right-hand side of the system over suppliers; what does not depend on prices waits in moves and shifts."""
    edges, base = len(supplier), 2 * len(supplier) + len(short)
    for i in range(len(rank)):
        right[rank[i]] = tau[base + i] / pairs[1, base + i]
    for c in range(len(short)):
        a, b, served, det = blocks[0, c], blocks[1, c], blocks[2, c], blocks[3, c]
        one, two = 0.0, tau[2 * edges + c] / pairs[1, 2 * edges + c]
        for e in range(starts[c], starts[c + 1]):
            push = tau[edges + e] / pairs[0, edges + e] if short[c] > 0 else 0.0
            pull = weights[0, e] * (tau[e] / pairs[0, e] - push)
            moves[0, e], moves[1, edges + e] = pull, push
            one, two = one + push + weights[4, e] * pull, two + pull
        cap, worth = (served * one - a * two) / det, -(a * one + b * two) / det
        shifts[0, c], shifts[1, c] = cap, worth
        for e in range(starts[c], starts[c + 1]):
            right[rank[supplier[e]]] += moves[0, e] + weights[1, e] * cap + weights[0, e] * worth


@light_kernel
def _reply(
    starts: Ints,
    supplier: Ints,
    short: Ints,
    weights: Floats,
    blocks: Floats,
    rank: Ints,
    right: Floats,
    moves: Floats,
    shifts: Floats,
) -> None:
    """All moves, from those of the suppliers' prices."""
    edges, base = len(supplier), 2 * len(supplier) + len(short)
    for i in range(len(rank)):
        moves[0, base + i], moves[1, base + i] = 0.0, right[rank[i]]
    for c in range(len(short)):
        a, b, served, det = blocks[0, c], blocks[1, c], blocks[2, c], blocks[3, c]
        one, two = 0.0, 0.0
        for e in range(starts[c], starts[c + 1]):
            price = moves[1, base + supplier[e]]
            one, two = one + weights[1, e] * price, two + weights[0, e] * price
        shifts[0, c] += (a * two - served * one) / det
        shifts[1, c] += (a * one + b * two) / det
        cap, worth = shifts[0, c], shifts[1, c]
        left = short[c] * cap
        for e in range(starts[c], starts[c + 1]):
            price = moves[1, base + supplier[e]]
            flow = moves[0, e] - weights[0, e] * (price - worth) + weights[1, e] * cap
            moves[0, e] = flow
            left -= flow
            moves[0, base + supplier[e]] -= flow
            if short[c] > 0:
                moves[0, edges + e] = cap - flow
                moves[1, edges + e] -= weights[4, e] * (cap - flow)
            moves[1, e] = price + moves[1, edges + e] - worth
        moves[0, 2 * edges + c], moves[1, 2 * edges + c] = left, -worth
