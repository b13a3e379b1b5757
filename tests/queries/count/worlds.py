"""Slow and plain definitions to hold the fast code to, and tiny worlds to try everything in."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
from scipy.optimize import linprog


def pairs(points, radius, *, normalise=True):
    """The matrix of who is near whom, by definition."""
    values = np.asarray(points, dtype=float)
    total = np.zeros((len(values), len(values)))
    for column in values.T:
        total += (column[:, None] - column[None, :]) ** 2
    near = total <= radius * radius * (values.shape[1] if normalise else 1)
    np.fill_diagonal(near, False)
    return near


def outliers(points, radius, neighbours, *, normalise=True):
    return int((pairs(points, radius, normalise=normalise).sum(1) < neighbours).sum())


def extension(points, radius, neighbours, slack, *, normalise=True):
    """E, as the whole linear programme, without any short cut."""
    return extension_of(pairs(points, radius, normalise=normalise), neighbours, slack)


def extension_of(near, neighbours, slack):
    """E of any relation, by its matrix."""
    n, edges = len(near), np.argwhere(near)
    columns = 2 * n + len(edges)
    rows, limits = [], []

    def row(entries, limit):
        line = np.zeros(columns)
        for at, weight in entries:
            line[at] += weight
        rows.append(line)
        limits.append(limit)

    for j in range(n):
        mine = [(2 * n + e, -1.0) for e in np.flatnonzero(edges[:, 1] == j)]
        row([(j, 1.0), (n + j, neighbours - 1.0), *mine], 0.0)
        row([(2 * n + e, 1.0) for e in np.flatnonzero(edges[:, 0] == j)], slack)
    for e, (_, j) in enumerate(edges):
        row([(2 * n + e, 1.0), (n + j, -1.0)], 0.0)
    bounds = [(0, 1)] * n + [(0, None)] * (n + len(edges))
    cost = np.concatenate([-np.ones(n), np.zeros(n + len(edges))])
    return -linprog(cost, A_ub=np.array(rows), b_ub=limits, bounds=bounds).fun


def cliques(joined):
    """All maximal sets of pairwise joined records one after the other."""
    beside = [set(np.flatnonzero(row)) - {i} for i, row in enumerate(joined)]

    def grown(members, others, done):
        if not others and not done:
            yield members
        for new in list(others):
            yield from grown([*members, new], others & beside[new], done & beside[new])
            others, done = others - {new}, done | {new}

    return grown([], set(range(len(joined))), set())


def lower_bound(points, radius, neighbours, sensitivity, *, normalise=True):
    """q_low, with a row for every clique of outliers."""
    missing = neighbours - pairs(points, radius, normalise=normalise).sum(1)
    places, missing = np.asarray(points, dtype=float)[missing > 0], missing[missing > 0]
    if not len(places):
        return 0.0
    joined = pairs(places, 2 * radius * (1 + 1e-9), normalise=normalise)
    rows = [np.where(np.isin(np.arange(len(places)), each), 1 / missing, 0.0) for each in cliques(joined)]
    return -linprog(
        -np.ones(len(places)), A_ub=np.array(rows), b_ub=np.full(len(rows), sensitivity - 1), bounds=(0, 1)
    ).fun


def tables(sites, n):
    """All tables of n records on the given sites, up to order."""
    for choice in product(range(len(sites)), repeat=n):
        if list(choice) == sorted(choice):
            yield choice


def neighbours_of(choice, sites):
    """All tables that differ in one record."""
    for at, new in product(range(len(choice)), range(len(sites))):
        yield tuple(sorted((*choice[:at], new, *choice[at + 1 :])))


LINE = [(float(x),) for x in range(7)]
FINE_LINE = [(x / 2,) for x in range(9)]
SQUARE = [(float(x), float(y)) for x in range(3) for y in range(3)]

__all__ = [
    "FINE_LINE",
    "LINE",
    "SQUARE",
    "Fraction",
    "cliques",
    "extension",
    "lower_bound",
    "neighbours_of",
    "outliers",
    "pairs",
    "tables",
]
