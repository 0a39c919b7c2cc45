"""LMNN as naive loops over triples: slow, obvious, and nothing shared with what they check.

K. Q. Weinberger and L. K. Saul, "Distance metric learning for large margin nearest neighbor
classification", JMLR 10, 2009: the loss over target neighbours and impostors, in float64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


def target_neighbors(X, y, k):
    """For each row, its k nearest others of the same class, or all where there are fewer."""
    X = np.asarray(X, dtype=np.float64)
    lists = []
    for i in range(len(X)):
        own = [j for j in range(len(X)) if j != i and y[j] == y[i]]
        own.sort(key=lambda j: (np.sum((X[i] - X[j]) ** 2), j))
        lists.append(own[:k])
    return lists


class Loss(NamedTuple):
    """Loss, gradient, number of active triples, and the smallest |1 + d²(i, j) - d²(i, l)|."""

    value: float
    gradient: np.ndarray
    n_active: int
    to_kink: float


def loss(L, X, y, targets, push):
    """(1 - w) Σ d²(i, j) + w Σ max(0, 1 + d²(i, j) - d²(i, l)) over all triples."""
    L, X = np.asarray(L, dtype=np.float64), np.asarray(X, dtype=np.float64)
    value, gradient, n_active, to_kink = 0.0, np.zeros(L.shape), 0, np.inf
    for i in range(len(X)):
        for j in targets[i]:
            near = X[i] - X[j]
            pull = np.sum((L @ near) ** 2)
            value += (1 - push) * pull
            gradient += (1 - push) * 2 * np.outer(L @ near, near)
            for o in range(len(X)):
                if y[o] == y[i]:
                    continue
                far = X[i] - X[o]
                gap = 1 + pull - np.sum((L @ far) ** 2)
                to_kink = min(to_kink, abs(gap))
                if gap > 0:
                    n_active += 1
                    value += push * gap
                    gradient += push * 2 * (np.outer(L @ near, near) - np.outer(L @ far, far))
    return Loss(value, gradient, n_active, to_kink)


def active_pairs(L, X, y, targets):
    """Pairs (a, b), a < b, of which one is an impostor of the other."""
    found = set()
    for i in range(len(X)):
        for j in targets[i]:
            reach = 1 + np.sum((L @ (X[i] - X[j])) ** 2)
            for o in range(len(X)):
                if y[o] != y[i] and np.sum((L @ (X[i] - X[o])) ** 2) < reach:
                    found.add((min(i, o), max(i, o)))
    return found
