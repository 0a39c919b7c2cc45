"""The paper's equations as naive loops: slow, obvious, and nothing shared with what they check.

D. Wang and X. Tan, "Bayesian Neighbourhood Component Analysis", arXiv:1604.02354.  Equations are
cited by their labels in its LaTeX source ("eq. Vt"), which stay when numbers move.  Everything is
float64, and a metric is given by the features of its basis:  d² = wᵀγ.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


def eigen_axes(X, n_components=None):
    """Columns v_l: eigenvectors of the centred scatter, by falling eigenvalue (eq. relikli1)."""
    X = np.asarray(X, dtype=np.float64)
    n, width = X.shape
    scatter = np.zeros((width, width))
    for x in X:
        scatter += np.outer(x - X.mean(axis=0), x - X.mean(axis=0))
    values, vectors = np.linalg.eigh(scatter)
    order = np.argsort(values)[::-1]
    # Eigenvalues that are zero but for rounding have no direction of their own.
    order = order[values[order] > values.max() * max(n, width) * np.finfo(np.float64).eps]
    return vectors[:, order[:n_components]]


def neighbor_lists(rows, k, queries=None):
    """N_i: the k rows nearest to each, by a full sort; equal distances by row number.

    Distances that agree to single precision count as equal, as `bnca.neighbors` says.
    """
    asked = rows if queries is None else queries
    table = [[sum((q - r) ** 2) for r in rows] for q in asked]
    largest = max(map(max, table)) or 1.0
    lists = []
    for i, distances in enumerate(table):
        others = [t for t in range(len(rows)) if queries is not None or t != i]
        others.sort(key=lambda t: (np.float32(distances[t] / largest), t))
        lists.append(others[:k])
    return np.array(lists)


def pair_feature(axes, x, other):
    """w_ij^l = (v_lᵀ (x_i - x_j))² (eq. defw)."""
    return np.array([float(v @ (x - other)) ** 2 for v in axes.T])


class Problem(NamedTuple):
    """w_it, y_it and how often each anchor counts, for all anchors i and neighbours t."""

    features: np.ndarray  # (n, K, p)
    agree: np.ndarray  # (n, K), 0 or 1, or between where labels are uncertain
    weights: np.ndarray  # (n,)


def problem(X, y, k, *, n_components=None, weights=None, unit=1.0):
    """All features and agreements of labelled rows; k=None takes all other rows (eq. defw, vi)."""
    X = np.asarray(X, dtype=np.float64)
    axes = eigen_axes(X, n_components)
    rows = (X - X.mean(axis=0)) @ axes
    lists = neighbor_lists(rows, len(X) - 1 if k is None else k)
    features = [[pair_feature(axes, X[i], X[t]) / unit for t in lists[i]] for i in range(len(X))]
    agree = [[float(y[i] == y[t]) for t in lists[i]] for i in range(len(X))]
    counts = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    return Problem(np.array(features), np.array(agree), counts)


def contrasts(features, j):
    """W_i^j, of shape (p, K): columns w_ij - w_it of one anchor (eq. defWeta)."""
    return np.array([features[j] - w for w in features]).T


def bohning_matrix(K):
    """H = ½ [I - 1 1ᵀ / (K + 1)] (eq. defH)."""
    return (np.eye(K) - np.ones((K, K)) / (K + 1)) / 2


def lse(eta):
    """log(1 + Σ_t exp η_t) (below eq. defWeta), without overflow."""
    top = max(0.0, eta.max())
    return top + np.log(np.exp(-top) + np.exp(eta - top).sum())


def g(psi):
    """g(ψ) = exp(ψ - lse(ψ)) (below eq. defb)."""
    return np.exp(psi - lse(psi))


def b_vector(psi):
    """b = Hψ - g(ψ) (eq. defb)."""
    return bohning_matrix(len(psi)) @ psi - g(psi)


def c_constant(psi):
    """c of eq. Bohning: what makes the quadratic equal -lse at ψ."""
    return psi @ bohning_matrix(len(psi)) @ psi / 2 - g(psi) @ psi + lse(psi)


def bohning_quadratic(eta, psi):
    """-½ ηᵀHη + bᵀη - c, which is never above -lse(η) (eq. Bohning)."""
    return -eta @ bohning_matrix(len(eta)) @ eta / 2 + b_vector(psi) @ eta - c_constant(psi)


def _terms(data):
    """Weight w_i y_ij and contrasts W_i^j of each term of the double sums over i and j."""
    for features, agree, weight in zip(*data, strict=True):
        for j, y in enumerate(agree):
            if weight * y:
                yield weight * y, contrasts(features, j)


def curvature(data):
    """Σ_i Σ_j y_ij W_i^j H (W_i^j)ᵀ (inside eq. Vt)."""
    p = data.features.shape[2]
    total = np.zeros((p, p))
    for weight, W in _terms(data):
        total += weight * W @ bohning_matrix(W.shape[1]) @ W.T
    return total


def negative_bound(data, mean):
    """Σ_i Σ_j y_ij lse(η_ij) with η_ij = (W_i^j)ᵀ m (above eq. Bohning)."""
    return sum(weight * lse(W.T @ mean) for weight, W in _terms(data))


def slope(data, mean):
    """Gradient of `negative_bound`: Σ_i Σ_j y_ij W_i^j g(η_ij)."""
    total = np.zeros(len(mean))
    for weight, W in _terms(data):
        total += weight * W @ g(W.T @ mean)
    return total


def hessian(data, mean):
    """Second derivative of `negative_bound`: Σ_i Σ_j y_ij W (diag g - g gᵀ) Wᵀ."""
    total = np.zeros((len(mean), len(mean)))
    for weight, W in _terms(data):
        share = g(W.T @ mean)
        total += weight * W @ (np.diag(share) - np.outer(share, share)) @ W.T
    return total


def posterior_covariance(data, V0):
    """V_T (eq. Vt)."""
    return np.linalg.inv(np.linalg.inv(V0) + curvature(data))


def updated_mean(data, m0, V0, mean):
    """m_T of one round of Algorithm 1: ψ by eq. psi, b by eq. defb, m_T by eq. mt."""
    total = np.linalg.inv(V0) @ m0
    for weight, W in _terms(data):
        total += weight * W @ b_vector(W.T @ mean)
    return posterior_covariance(data, V0) @ total


def algorithm_1(data, m0, V0, *, tol=1e-14, max_iter=5000):
    """m_T and V_T of Algorithm 1, from ψ at the prior mean to convergence."""
    V_T = posterior_covariance(data, V0)
    terms = list(_terms(data))
    start = np.linalg.inv(V0) @ m0
    mean = m0
    for _ in range(max_iter):
        new = V_T @ (start + sum(c * W @ b_vector(W.T @ mean) for c, W in terms))
        if np.linalg.norm(new - mean) <= tol * np.linalg.norm(new):
            return new, V_T
        mean = new
    msg = "the oracle did not converge: choose a smaller prior variance for this test"
    raise AssertionError(msg)


def log_prior(mean, m0, V0):
    """log N(m | m0, V0), its constant included (eq. propri)."""
    gap = mean - m0
    constant = len(gap) * np.log(2 * np.pi) + np.log(np.linalg.det(V0))
    return -(constant + gap @ np.linalg.inv(V0) @ gap) / 2


def lower_bound(data, mean, m0, V0):
    """What the fixed point maximises: the bound on L, plus the log prior."""
    return log_prior(mean, m0, V0) - negative_bound(data, mean)


def log_likelihood(data, mean):
    """L (eq. vi), over anchors that have a neighbour of their own class."""
    total = 0.0
    for features, agree, weight in zip(*data, strict=True):
        if agree.any():
            total += weight * np.log(agree @ neighbor_probabilities(features, mean))
    return total


def neighbor_probabilities(features, weights):
    """p_it = exp(-d_it) / Σ_s exp(-d_is) of one row (eq. pij)."""
    d = np.array([w @ weights for w in features])
    e = np.array([np.exp(-(x - d.min())) for x in d])
    return e / e.sum()


def class_probabilities(features, codes, n_classes, weights):
    """P(y = k) of one row (eq. likli1)."""
    out = np.zeros(n_classes)
    for p, code in zip(neighbor_probabilities(features, weights), codes, strict=True):
        out[code] += p
    return out


def averaged_class_probabilities(features, codes, n_classes, draws):
    """Mean of eq. likli1 over draws of the weights, one after the other (eq. uncertainty_mcmc)."""
    out = np.zeros(n_classes)
    for weights in draws:
        out += class_probabilities(features, codes, n_classes, weights)
    return out / len(draws)


def distance_moments(axes, x, other, mean, covariance):
    """m_ij and σ_ij (eq. pdij)."""
    w = pair_feature(axes, x, other)
    return w @ mean, np.sqrt(w @ covariance @ w)
