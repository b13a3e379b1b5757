"""Certificates of the extension: whole numbers that bound it, and a checker that refuses wrong ones."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from wallflower.neighbours.certificate import (
    PARTS_PER_RECORD,
    Allocation,
    Prices,
    certify_exactly,
    check_allocation,
    check_prices,
    dual_bound,
    round_allocation,
    round_prices,
)
from wallflower.neighbours.extension import assign
from wallflower.neighbours.noisy_count import GAP
from wallflower.neighbours.pairs import Tree, build_tree

TABLES = {
    "star": (
        np.array([(0, 0), *((0.999 * np.cos(0.4 * np.pi * i), 0.999 * np.sin(0.4 * np.pi * i)) for i in range(5))]),
        1,
        2,
    ),
    "path": (np.arange(0.0, 14)[:, None], 2, 1),
    "two crowds": (np.array([0.0, 0, 0, 1, 1, 1, 2, 2])[:, None], 3, 2),
    "plane": (np.random.default_rng(7).random((60, 2)) * 4, 3, 2),
    "thin plane": (np.random.default_rng(8).random((150, 2)) * 12, 4, 2),
    "cube": (np.random.default_rng(9).random((80, 3)) * 3, 4, 3),
    "isolated": (np.arange(0.0, 100, 10)[:, None], 2, 2),
}


def solve_directly(values: np.ndarray, neighbours: int, slack: int) -> float:
    """E by its definition: all variables in one programme, the neighbours by comparing all pairs."""
    n = len(values)
    gaps = ((values[:, None, :] - values[None, :, :]) ** 2).sum(axis=2)
    edges = [(i, j) for i in range(n) for j in range(n) if i != j and gaps[i, j] <= 1.0]
    rows, limits = [], []
    for e, (_, j) in enumerate(edges):
        row = np.zeros(2 * n + len(edges))
        row[2 * n + e], row[n + j] = 1, -1
        rows.append(row)
        limits.append(0.0)
    for j in range(n):
        row = np.zeros(2 * n + len(edges))
        row[j], row[n + j] = 1, neighbours - 1
        row[[2 * n + e for e, edge in enumerate(edges) if edge[1] == j]] = -1
        rows.append(row)
        limits.append(0.0)
        row = np.zeros(2 * n + len(edges))
        row[[2 * n + e for e, edge in enumerate(edges) if edge[0] == j]] = 1
        rows.append(row)
        limits.append(float(slack))
    cost = np.concatenate([-np.ones(n), np.zeros(n + len(edges))])
    bounds = [(0, 1)] * n + [(0, None)] * (n + len(edges))
    return -linprog(cost, A_ub=np.array(rows), b_ub=limits, bounds=bounds, method="highs").fun


def make_certificate(name: str) -> tuple[Tree, int, int, Allocation, Prices]:
    values, neighbours, slack = TABLES[name]
    tree = build_tree(values, 1.0)
    assignment = assign(tree, neighbours, float(slack), GAP)
    allocation = round_allocation(tree, neighbours, slack, assignment)
    return tree, neighbours, slack, allocation, round_prices(tree, neighbours, assignment)


@pytest.mark.parametrize("name", TABLES)
def test_the_bounds_hold_the_optimum_and_support_the_value(name: str) -> None:
    values, neighbours, slack = TABLES[name]
    bounds = certify_exactly(build_tree(values, 1.0), neighbours, slack, GAP)
    optimum = solve_directly(values, neighbours, slack)
    assert float(bounds.lower) - 1e-6 <= optimum <= float(bounds.upper) + 1e-6
    assert bounds.supports(Fraction(GAP))
    assert not replace(bounds, value=bounds.value + 1 / 128).supports(Fraction(GAP))
    assert not replace(bounds, upper=bounds.lower + Fraction(1, 200)).supports(Fraction(GAP))


def test_some_tables_are_decided_by_prices() -> None:
    """Else the upper bound was never more than the number of inliers."""
    priced = [name for name in TABLES if make_certificate(name)[4].price.any()]
    assert len(priced) >= 2


CONTESTED = "thin plane"


@pytest.mark.parametrize("fault", ["got", "negative", "cap", "low cap", "flow", "load", "stranger", "self", "twice"])
def test_a_wrong_allocation_is_refused(fault: str) -> None:
    tree, neighbours, slack, sound, _ = make_certificate(CONTESTED)
    assert check_allocation(tree, neighbours, slack, sound)
    full = int(np.argmax(sound.got))
    got, cap, flow = sound.got.copy(), sound.cap.copy(), sound.flow.copy()
    consumer, supplier = sound.consumer.copy(), sound.supplier.copy()
    if fault == "got":
        got[full] += 1
    elif fault == "negative":
        got[full] = -1
    elif fault == "cap":
        cap[full] += 1
    elif fault == "low cap":
        cap[full] -= 1
    elif fault == "flow":
        flow[0] = -1
    elif fault == "load":
        slack -= 1
    elif fault == "stranger":
        far = set(range(tree.n)) - {full} - set(supplier[consumer == full].tolist())
        supplier[np.flatnonzero(consumer == full)[0]] = far_from(tree, full, far)
    elif fault == "self":
        supplier[np.flatnonzero(consumer == full)[0]] = full
    elif fault == "twice":
        mine = np.flatnonzero(consumer == full)
        supplier[mine[0]] = supplier[mine[1]]
    assert not check_allocation(tree, neighbours, slack, Allocation(consumer, supplier, flow, cap, got))


def far_from(tree: Tree, record: int, candidates: set[int]) -> int:
    sizes = np.diff(tree.starts)
    places = np.concatenate([tree.blocks[leaf, :, : sizes[leaf]].T for leaf in range(tree.leaves)])
    return max(candidates, key=lambda other: float(((places[other] - places[record]) ** 2).sum()))


@pytest.mark.parametrize("fault", ["price", "cost", "negative cost", "cost of others"])
def test_wrong_prices_are_refused(fault: str) -> None:
    tree, neighbours, _, _, sound = make_certificate(CONTESTED)
    assert check_prices(tree, neighbours, sound)
    price, cost = sound.price.copy(), sound.cost.copy()
    if fault == "price":
        price[int(np.argmin(price))] = -1
    elif fault == "cost":
        cost[int(np.argmax(np.where(cost < PARTS_PER_RECORD, cost, 0)))] += 1
    elif fault == "negative cost":
        cost[int(np.argmax(cost))] = -1
    elif fault == "cost of others":
        cost[int(np.argmin(cost))] = 1
    assert not check_prices(tree, neighbours, Prices(price, cost))


def test_any_prices_bound_from_above() -> None:
    """(C2) holds for prices that no solver found: here the certified ones, doubled and halved."""
    tree, neighbours, slack, allocation, sound = make_certificate(CONTESTED)
    lower = Fraction(int(allocation.got.sum()), PARTS_PER_RECORD)
    for price in (2 * sound.price, sound.price // 2, np.zeros_like(sound.price)):
        costs = round_prices(tree, neighbours, replace_prices(tree, neighbours, slack, price / PARTS_PER_RECORD))
        assert check_prices(tree, neighbours, costs)
        assert dual_bound(tree, neighbours, slack, costs) >= lower


def replace_prices(tree: Tree, neighbours: int, slack: int, prices: np.ndarray):
    return replace(assign(tree, neighbours, float(slack), GAP), prices=prices)
