"""Certificates of the extension: whole numbers that bound it, and a checker that refuses wrong ones."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import wallflower as wf
from wallflower.errors import ParameterError
from wallflower.neighbours import certificate
from wallflower.neighbours.certificate import (
    MAX_CERTIFIED_RECORDS,
    MAX_GAP,
    PARTS_PER_RECORD,
    Allocation,
    Prices,
    accepts_prices,
    accepts_shares,
    bound_parts,
    certify_exactly,
    check_certificate,
    check_size,
    count_steps,
    list_surroundings,
    round_allocation,
    round_prices,
    serve_parts,
    solve_in_fractions,
)
from wallflower.neighbours.extension import assign
from wallflower.neighbours.noisy_count import GAP
from wallflower.neighbours.pairs import Tree, build_tree
from wallflower.noise import system_noise

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
    return tree, neighbours, slack, allocation, round_prices(tree, neighbours, assignment.prices)


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
    assert accepts_shares(tree, neighbours, slack, sound)
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
    assert not accepts_shares(tree, neighbours, slack, Allocation(consumer, supplier, flow, cap, got))


def far_from(tree: Tree, record: int, candidates: set[int]) -> int:
    sizes = np.diff(tree.starts)
    places = np.concatenate([tree.blocks[leaf, :, : sizes[leaf]].T for leaf in range(tree.leaves)])
    return max(candidates, key=lambda other: float(((places[other] - places[record]) ** 2).sum()))


@pytest.mark.parametrize("fault", ["price", "cost", "negative cost", "cost of others"])
def test_wrong_prices_are_refused(fault: str) -> None:
    tree, neighbours, _, _, sound = make_certificate(CONTESTED)
    assert accepts_prices(neighbours, sound, list_surroundings(tree, sound.price))
    price, cost = sound.price.copy(), sound.cost.copy()
    if fault == "price":
        price[int(np.argmin(price))] = -1
    elif fault == "cost":
        cost[int(np.argmax(np.where(cost < PARTS_PER_RECORD, cost, 0)))] += 1
    elif fault == "negative cost":
        cost[int(np.argmax(cost))] = -1
    elif fault == "cost of others":
        cost[int(np.argmin(cost))] = 1
    assert not accepts_prices(neighbours, Prices(price, cost), list_surroundings(tree, np.maximum(price, 0)))


def test_any_prices_bound_from_above() -> None:
    """(C2) holds for prices that no solver found: here the certified ones, doubled and halved."""
    tree, neighbours, slack, allocation, sound = make_certificate(CONTESTED)
    for factor in (2.0, 0.5, 0.0):
        prices = round_prices(tree, neighbours, factor * sound.price / PARTS_PER_RECORD)
        assert accepts_prices(neighbours, prices, list_surroundings(tree, prices.price))
        assert bound_parts(tree, neighbours, slack, prices) >= int(allocation.got.sum())


def test_sums_of_accepted_numbers_fit_64_bits() -> None:
    """What `bounded_sum_fits` assumes, and the largest slack and number of neighbours that are multiplied."""
    assert MAX_CERTIFIED_RECORDS * PARTS_PER_RECORD < 2**62
    assert (MAX_CERTIFIED_RECORDS + 1) * PARTS_PER_RECORD < 2**63


@pytest.mark.parametrize("name", TABLES)
def test_certified_parts_are_within_the_gap_of_the_optimum(name: str) -> None:
    values, neighbours, slack = TABLES[name]
    parts = serve_parts(build_tree(values, 1.0), neighbours, slack)
    optimum = solve_directly(values, neighbours, slack)
    assert optimum - float(MAX_GAP) - 1e-6 <= parts / PARTS_PER_RECORD <= optimum + 1e-6


@pytest.mark.parametrize("name", ["star", "path", "two crowds", "isolated"])
def test_certificates_in_fractions_are_accepted_and_tight(name: str) -> None:
    values, neighbours, slack = TABLES[name]
    tree = build_tree(values, 1.0)
    bounds = check_certificate(tree, neighbours, slack, *solve_in_fractions(tree, neighbours, slack))
    assert bounds is not None
    assert bounds[1] - bounds[0] < 1e-9
    assert abs(float(bounds[0]) - solve_directly(values, neighbours, slack)) < 1e-6


@pytest.mark.parametrize("fault", ["greedy", "no prices", "other table"])
def test_a_wrong_solver_does_not_change_what_is_counted(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the float solver returns, the count is made from a certificate that is accepted."""
    values, neighbours, slack = TABLES["path"]
    tree = build_tree(values, 1.0)
    optimum = serve_parts(tree, neighbours, slack)

    def solve_wrongly(tree: Tree, neighbours: int, slack: float, tolerance: float):
        if fault == "greedy":
            return assign(tree, neighbours, slack + 1, tolerance)
        if fault == "no prices":
            return replace(assign(tree, neighbours, slack, tolerance), prices=None)
        return assign(build_tree(values * 0.4, 1.0), neighbours, slack, tolerance)

    wrong = solve_wrongly(tree, neighbours, float(slack), GAP)
    allocation = round_allocation(tree, neighbours, slack, wrong)
    bounds = check_certificate(tree, neighbours, slack, allocation, round_prices(tree, neighbours, wrong.prices))
    assert bounds is None or bounds[1] - bounds[0] > MAX_GAP
    monkeypatch.setattr(certificate, "assign", solve_wrongly)
    assert abs(serve_parts(tree, neighbours, slack) - optimum) <= PARTS_PER_RECORD / 256


def test_steps_of_parts_are_rounded_to_the_nearest() -> None:
    half_step = PARTS_PER_RECORD // 256
    assert [count_steps(5, 5 * PARTS_PER_RECORD - parts, 128) for parts in (0, half_step - 1, half_step)] == [0, 0, 1]


def test_tables_whose_sums_might_not_fit_are_refused() -> None:
    check_size(MAX_CERTIFIED_RECORDS)
    with pytest.raises(ParameterError, match="records"):
        check_size(MAX_CERTIFIED_RECORDS + 1)


def test_a_certified_count_rests_on_no_solver_and_says_so() -> None:
    table = wf.Points.from_array(TABLES["thin plane"][0], name="plane")
    query = wf.Count(radius=1.0, neighbours=4, slack=2, loss=wf.Loss("1"), certify=True)
    labels = query.rests_on(table)
    assert "(C5) of count" in labels
    assert not {"(C1) of count", "(C2) of count", "(F) of count"} & set(labels)
    assert set(labels) - set(replace(query, certify=False).rests_on(table)) == {"(C5) of count"}
    answer = query.answer(query.view(table), system_noise())
    notes, others = (asked.reading(answer, table).notes for asked in (query, replace(query, certify=False)))
    assert len(notes) == len(others) + 1


@pytest.mark.parametrize(
    "terms", [{"mechanism": "global"}, {"interval": "two-sided"}, {"metric": "manhattan"}, {"by": ("ward",)}]
)
def test_what_has_no_certificate_is_refused(terms: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match="certify"):
        wf.Count(radius=1.0, neighbours=2, loss=wf.Loss("1"), certify=True, **terms)
