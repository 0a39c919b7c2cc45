"""The objective of Mensink et al. (2012) as written: a loop over rows, classes and means."""

from __future__ import annotations

import numpy as np


def probabilities(components, x, means, owners):
    """p(m | x) for each mean, and p(c | x) for each class."""
    of_mean = [np.exp(-0.5 * np.sum((components @ (mu - x)) ** 2)) for mu in means]
    of_mean = np.array(of_mean) / sum(of_mean)
    of_class = {
        c: sum(p for p, o in zip(of_mean, owners, strict=True) if o == c) for c in set(owners)
    }
    return of_mean, of_class


def log_likelihood(components, rows, codes, means, owners):
    """(1/n) Σ_i ln p(y_i | x_i)."""
    total = 0.0
    for x, c in zip(rows, codes, strict=True):
        total += np.log(probabilities(components, x, means, owners)[1][c])
    return total / len(rows)


def gradient(components, rows, codes, means, owners):
    """(1/n) Σ_i Σ_j α_ij W z_ij z_ijᵀ with z_ij = μ_j - x_i."""
    total = np.zeros_like(components)
    for x, c in zip(rows, codes, strict=True):
        of_mean, of_class = probabilities(components, x, means, owners)
        for mu, owner, p in zip(means, owners, of_mean, strict=True):
            alpha = p - (p / of_class[c] if owner == c else 0)
            z = mu - x
            total += alpha * components @ np.outer(z, z)
    return total / len(rows)


def predict_proba(components, queries, means, owners, n_classes):
    """p(c | x), classes numbered from zero."""
    out = np.zeros((len(queries), n_classes))
    for i, x in enumerate(queries):
        for c, p in probabilities(components, x, means, owners)[1].items():
            out[i, c] = p
    return out
