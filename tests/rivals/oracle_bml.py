"""Metric learning from pairs as naive loops: slow, obvious, nothing shared with what they check.

L. Yang, R. Jin and R. Sukthankar, "Bayesian Active Distance Metric Learning", UAI, 2007, with the
bound of T. Jaakkola and M. Jordan.  Everything is float64; a pair is given by the features w of its
difference, and P(y) = 1 / (1 + exp(y (γᵀw - μ))).
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np


class Pairs(NamedTuple):
    """w (n, p), y (n,) of +1 and -1, and how often each pair counts (n,)."""

    features: np.ndarray
    sign: np.ndarray
    weights: np.ndarray


def all_pairs(axes, X, y, weights, unit):
    """Every two rows once."""
    features, sign, counts = [], [], []
    for i in range(len(X)):
        for j in range(i):
            features.append(pair_feature(axes, X[i], X[j]) / unit)
            sign.append(1.0 if y[i] == y[j] else -1.0)
            counts.append(weights[i] * weights[j])
    return Pairs(np.array(features), np.array(sign), np.array(counts))


def pair_feature(axes, x, other):
    """w_l = (v_lᵀ (x - x'))²."""
    return np.array([float(v @ (x - other)) ** 2 for v in axes.T])


def typical_squared_distance(axes, X):
    """Median over rows of the mean squared distance to all other rows."""
    typical = []
    for i in range(len(X)):
        others = [j for j in range(len(X)) if j != i]
        typical.append(sum(pair_feature(axes, X[i], X[j]).sum() for j in others) / len(others))
    return float(np.median(typical))


def mean_feature(axes, X, unit):
    """Mean of w over all pairs of different rows."""
    total, count = 0.0, 0
    for i in range(len(X)):
        for j in range(i):
            total = total + pair_feature(axes, X[i], X[j]) / unit
            count += 1
    return total / count


def curvature(xi):
    """λ(ξ) = tanh(ξ / 2) / (4 ξ)."""
    return math.tanh(xi / 2) / (4 * xi) if xi > 0 else 1 / 8


def log_logistic(x):
    return -math.log1p(math.exp(-x)) if x > 0 else x - math.log1p(math.exp(x))


class Posterior(NamedTuple):
    mean: np.ndarray
    covariance: np.ndarray
    bound: float


def posterior(pairs, prior_mean, prior_covariance, *, factorized=False, tol=1e-13, rounds=100_000):
    """Repeat: every ξ from the posterior, the posterior from every ξ.  Weights first, then μ."""
    p = len(prior_mean)
    precision0 = np.linalg.inv(prior_covariance)
    mean, covariance = prior_mean.copy(), prior_covariance.copy()
    linear = precision0 @ prior_mean
    for w, y, count in zip(*pairs, strict=True):
        linear = linear + count * y / 2 * np.append(-w, 1.0)
    for _ in range(rounds):
        precision = precision0.copy()
        for w, _, count in zip(*pairs, strict=True):
            phi = np.append(-w, 1.0)
            xi = math.sqrt(phi @ (covariance + np.outer(mean, mean)) @ phi)
            precision += count * 2 * curvature(xi) * np.outer(phi, phi)
        new = np.linalg.solve(precision, linear)
        if factorized:
            new_covariance = np.zeros((p, p))
            new_covariance[:-1, :-1] = np.linalg.inv(precision[:-1, :-1])
            new_covariance[-1, -1] = 1 / precision[-1, -1]
        else:
            new_covariance = np.linalg.inv(precision)
        step = np.linalg.norm(new - mean) / np.linalg.norm(new)
        spread = np.abs(np.diag(new_covariance) / np.diag(covariance) - 1).max()
        mean, covariance = new, new_covariance
        if max(step, spread) < tol:
            break
    bound = lower_bound(pairs, prior_mean, prior_covariance, mean, covariance)
    return Posterior(mean, covariance, bound)


def lower_bound(pairs, prior_mean, prior_covariance, mean, covariance):
    """Expected bound on the log-likelihood at the best ξ, less the divergence from the prior."""
    total = 0.0
    for w, y, count in zip(*pairs, strict=True):
        phi = np.append(-w, 1.0)
        square = phi @ (covariance + np.outer(mean, mean)) @ phi
        xi = math.sqrt(square)
        total += count * (
            log_logistic(xi) + (y * float(phi @ mean) - xi) / 2 - curvature(xi) * (square - xi**2)
        )
    precision0 = np.linalg.inv(prior_covariance)
    gap = mean - prior_mean
    divergence = 0.5 * (
        np.trace(precision0 @ covariance)
        + gap @ precision0 @ gap
        - len(mean)
        + math.log(np.linalg.det(prior_covariance) / np.linalg.det(covariance))
    )
    return total - divergence


def log_evidence(pairs, prior_mean, prior_covariance, reach=7.0, steps=61):
    """Log of the integral over one weight and the threshold, on a grid."""
    root = np.linalg.cholesky(prior_covariance)
    z = np.linspace(-reach, reach, steps)
    total = 0.0
    for a in z:
        for b in z:
            theta = prior_mean + root @ np.array([a, b])
            log = -(a * a + b * b) / 2 - math.log(2 * math.pi)
            for w, y, count in zip(*pairs, strict=True):
                log += count * log_logistic(y * float(np.append(-w, 1.0) @ theta))
            total += math.exp(log)
    return math.log(total * (z[1] - z[0]) ** 2)


def expectation(function, mean, variance, steps=4001, reach=12.0):
    """E f(η) for η ~ N(mean, variance), by the trapezium rule."""
    z = np.linspace(-reach, reach, steps)
    values = [function(mean + math.sqrt(variance) * a) * math.exp(-a * a / 2) for a in z]
    return float(np.sum(values)) * (z[1] - z[0]) / math.sqrt(2 * math.pi)


def logistic(x):
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))


def doubt(p):
    """Entropy in nats of a yes with probability p."""
    return -sum(q * math.log(q) for q in (p, 1 - p) if q > 0)


def choose(features, mean, covariance, n, strategy):
    """Greedy choice, the covariance inverted anew after each, as if the label were known."""

    def moments(phi, V):
        return float(phi @ mean), float(phi @ V @ phi)

    def slope(m, v):
        return expectation(lambda x: logistic(x) * (1 - logistic(x)), m, v, steps=801)

    everything = [np.append(-w, 1.0) for w in features]
    targets = [slope(*moments(phi, covariance)) for phi in everything]
    precision = np.linalg.inv(covariance)
    chosen = []
    for _ in range(n):
        V = np.linalg.inv(precision)
        best, most = -1, -math.inf
        for u, phi in enumerate(everything):
            if u in chosen:
                continue
            m, v = moments(phi, V)
            if strategy == "reduction":
                after = np.linalg.inv(precision + slope(m, v) * np.outer(phi, phi))
                worth = sum(
                    c * float(other @ (V - after) @ other)
                    for c, other in zip(targets, everything, strict=True)
                )
            else:
                worth = doubt(expectation(logistic, m, v, steps=801))
                if strategy == "information":
                    worth -= expectation(lambda x: doubt(logistic(x)), m, v, steps=801)
            if worth > most:
                best, most = u, worth
        chosen.append(best)
        phi = everything[best]
        precision = precision + slope(*moments(phi, V)) * np.outer(phi, phi)
    return chosen


def best_thresholds(squared, sign, worth):
    """All values of `worth(threshold)` at thresholds between and around the distances."""
    values = sorted(set(squared))
    cuts = [values[0] - 1.0]
    cuts += [(a + b) / 2 for a, b in itertools.pairwise(values)]
    cuts += [values[-1] + 1.0]
    return max(worth([1 if d <= cut else -1 for d in squared], sign) for cut in cuts)
