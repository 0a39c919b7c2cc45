"""Votes of all training rows, smoothed: what neighbours say, weighed against what they share.

In a metric with unit u (the typical squared distance to a near neighbour), rows are alike by
k(x, x') = exp(-d² / (u s)).  With labels Y (one column a class), shares of classes π and weights W,
the smoothed vote is that of kernel ridge regression,

    f(x) = π + k(x, X) α,   α = (K + λ W⁻¹)⁻¹ (Y - π),

so that ten copies of one opinion do not count ten times, as they do where each neighbour has one
vote.  The other extreme is one vote for each class, by the distance to its mean,
f_k(x) = -2 d²(x, μ_k) / u, which few or doubtful labels may ask for.  Probabilities are
softmax(T f) with a temperature T.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.lapack import dposv

from bnca.core.centers import class_means

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles

NEAR = 10
"""The unit of squared distance is the mean over this many nearest rows."""

NEVER = -100.0
"""Vote for a class that no row belongs to."""

MEAN_SCALE = 2.0
"""Class means speak in halves of a unit, so that one range of temperatures suits all votes."""


def squared_distances(left: Doubles, right: Doubles) -> Doubles:
    """Squared Euclidean distances of all rows to all rows, (n, m), never negative."""
    center = right.mean(axis=0)
    left, right = left - center, right - center
    out = left @ (-2 * right.T)
    out += np.einsum("ij,ij->i", left, left)[:, None]
    out += np.einsum("ij,ij->i", right, right)
    return np.maximum(out, 0, out=out)


def near_unit(squared: Doubles) -> float:
    """Median over rows of the mean squared distance to their `NEAR` nearest others.

    Parameters
    ----------
    squared : (n, n)
        Squared distances of rows among themselves; the diagonal is not looked at.
    """
    n = len(squared)
    k = min(NEAR, n - 1)
    others = squared + np.diag(np.full(n, np.inf))
    unit = float(np.median(np.partition(others, k - 1, axis=1)[:, :k].mean(axis=1)))
    return unit if unit > 0 else float(squared.mean()) or 1.0


def weighted_kernel(squared: Doubles, width: float, root: Doubles) -> Doubles:
    """√W K √W of rows among themselves, K = exp(-d² / width), from `root`, the √W."""
    kernel = np.exp(squared * (-1 / width))
    kernel *= root[:, None]
    kernel *= root
    return kernel


def ridge_coefficients(kernel: Doubles, root: Doubles, gaps: Doubles, ridge: float) -> Doubles:
    """Coefficients α for a ridge λ, (n, C), of targets less π; by one Cholesky factor."""
    system = kernel.copy()
    system.flat[:: len(system) + 1] += ridge
    _, solution, info = dposv(system.T, root[:, None] * gaps, lower=1, overwrite_a=1)
    if info:  # pragma: no cover - a kernel has no negative eigenvalue, and λ is added to all
        raise np.linalg.LinAlgError(f"the kernel is not positive definite (info {info})")
    return np.asarray(root[:, None] * solution)


def ridge_left_out(kernel: Doubles, root: Doubles, gaps: Doubles, ridge: float) -> Doubles:
    """Votes for each row by all the others, less π: (n, C), in closed form.

    With G = K + λW⁻¹, leaving row i out changes its fit to y_i - α_i / (G⁻¹)_ii.
    """
    system = kernel.copy()
    system.flat[:: len(system) + 1] += ridge
    inverse = np.linalg.inv(system)
    coefficients = root[:, None] * (inverse @ (root[:, None] * gaps))
    diagonal = np.diag(inverse) * root**2
    return np.asarray(gaps - coefficients / diagonal[:, None])


def mean_votes(squared: Doubles, unit: float) -> Doubles:
    """Votes of class means, from squared distances of rows to them, (n, C)."""
    return squared * (-MEAN_SCALE / unit)


def mean_left_out(coordinates: Doubles, labels: Doubles, unit: float) -> Doubles:
    """Votes of class means for each row, its own part in them left out, (n, C)."""
    total = labels.sum(axis=0)
    means = class_means(coordinates, labels)
    # Without row i, the mean of class k moves from μ to μ + (μ - x) l / (total - l), so that the
    # gap x - μ grows by the factor total / (total - l).
    left = total - labels
    known = left > 1e-9
    factor = np.where(known, total / np.where(known, left, 1), 1)
    votes = mean_votes(squared_distances(coordinates, means) * factor**2, unit)
    return np.where(known, votes, NEVER)


def softmax(votes: Doubles, temperature: float) -> Doubles:
    """Class probabilities softmax(T f) along the last axis."""
    out = votes * temperature
    out -= out.max(axis=-1, keepdims=True)
    np.exp(out, out=out)
    out /= out.sum(axis=-1, keepdims=True)
    return out


def true_label_probabilities(clean: Doubles, labels: Doubles, flip_rate: float) -> Doubles:
    """Probability q_i(k) that row i truly is of class k, given its label and what others say.

    Parameters
    ----------
    clean : (n, C)
        P(true class) by the other rows.
    labels : (n, C)
        Given labels, one 1 a row.
    flip_rate : float
        ε: a wrong label is any of the other classes.

    Returns
    -------
    (n, C) float64
        q ∝ clean · ((1 - ε) labels + ε / (C - 1) (1 - labels)).
    """
    other = flip_rate / max(labels.shape[1] - 1, 1)
    out = clean * (other + (1 - flip_rate - other) * labels)
    total = out.sum(axis=1, keepdims=True)
    return np.where(total > 0, out / np.where(total > 0, total, 1), labels)
