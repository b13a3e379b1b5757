"""Slow and plain definitions to hold the fast code to."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from scipy.optimize import linprog


def near_in(points, subspace, radius, *, normalise=True):
    """Who is near whom in these columns, by definition: squares added in the order of the table."""
    values = np.asarray(points, dtype=float)
    total = np.zeros((len(values), len(values)))
    for column in sorted(subspace):
        total += (values[:, column][:, None] - values[:, column][None, :]) ** 2
    near = total <= radius * radius * (len(subspace) if normalise else 1)
    np.fill_diagonal(near, False)
    return near


def outliers_in(points, subspace, radius, neighbours, *, normalise=True):
    return int((near_in(points, subspace, radius, normalise=normalise).sum(1) < neighbours).sum())


def mass_in(points, subspace, radius, neighbours, *, normalise=True):
    """N - M/k with M from a linear programme, which is exact for flows."""
    edges = np.argwhere(near_in(points, subspace, radius, normalise=normalise))
    n = len(points)
    if not len(edges):
        return float(n)
    limits = np.zeros((2 * n, len(edges)))
    for e, (giver, taker) in enumerate(edges):
        limits[giver, e] = limits[n + taker, e] = 1
    solved = linprog(-np.ones(len(edges)), A_ub=limits, b_ub=np.full(2 * n, neighbours), bounds=(0, 1))
    return n + round(solved.fun) / neighbours


def every(dimension):
    return [s for size in range(1, dimension + 1) for s in combinations(range(dimension), size)]


def permute_and_flip_law(scores, sensitivity, epsilon):
    """The probability of every candidate, over all orders."""
    heads = [math.exp(-epsilon * (max(scores) - score) / (2 * sensitivity)) for score in scores]
    law = np.zeros(len(scores))

    def walk(left, chance):
        for at in left:
            law[at] += chance / len(left) * heads[at]
            if heads[at] < 1:
                walk([other for other in left if other != at], chance / len(left) * (1 - heads[at]))

    walk(list(range(len(scores))), 1.0)
    return law
