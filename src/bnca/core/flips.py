"""Which class is taken for which: flip rates by pairs of classes, as far as the data tell.

Row i has the label g_i.  Its true class k was given another name at the rates T,

    T_kg = P(given g | true k),

which start as one rate ε for all pairs, T⁰.  In turn the true classes are judged by the rates,
q_i(k) ∝ P(k | the other rows) T_kg, and the rates by the true classes,

    T_kg = (s T⁰_kg + Σ_i w_i q_i(k) [g_i = g]) / (s + Σ_i w_i q_i(k)):

the mean of a Dirichlet posterior that counts T⁰ as s rows of each class.  With few rows of a class
its rates stay equal; a confusion that occurs again and again comes to stand out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles

STRENGTH = 20.0
"""s: rows of each class that equal rates are worth."""

ROUNDS = 50
"""Rounds at most."""

TOLERANCE = 1e-6
"""A round that changes no rate by more ends the search."""


class Flips(NamedTuple):
    """Flip rates and true classes that agree with each other.

    Attributes
    ----------
    rates : (C, C) float64
        T_kg, a row for each true class; rows sum to one.
    truth : (n, C) float64
        q_i(k).
    """

    rates: Doubles
    truth: Doubles


def equal_rates(flip_rate: float, n_classes: int) -> Doubles:
    """T⁰: a label is wrong at one rate, and is then any of the other classes, (C, C)."""
    other = flip_rate / max(n_classes - 1, 1)
    out = np.full((n_classes, n_classes), other)
    np.fill_diagonal(out, 1 - flip_rate if n_classes > 1 else 1.0)
    return out


def class_flips(clean: Doubles, labels: Doubles, weights: Doubles, flip_rate: float) -> Flips:
    """Estimate flip rates by pairs of classes.

    Parameters
    ----------
    clean : (n, C) float64
        P(true class) by the other rows.
    labels : (n, C) float64
        Given labels, one 1 a row.
    weights : (n,) float64
        How often each row counts.
    flip_rate : float
        ε.

    Returns
    -------
    Flips
        T and q.  Where ε is zero, labels are what they say.
    """
    prior = equal_rates(flip_rate, labels.shape[1])
    rates = prior
    for _ in range(ROUNDS):
        truth = judged(clean, labels, rates)
        counts = (truth * weights[:, None]).T @ labels
        new = (STRENGTH * prior + counts) / (STRENGTH + counts.sum(axis=1, keepdims=True))
        if flip_rate == 0 or np.abs(new - rates).max() < TOLERANCE:
            break
        rates = new
    return Flips(rates, truth)


def judged(clean: Doubles, labels: Doubles, rates: Doubles) -> Doubles:
    """True classes, q_i(k) ∝ P(k | the other rows) T_kg; the label where all are impossible."""
    out = clean * (labels @ rates.T)
    total = out.sum(axis=1, keepdims=True)
    return np.where(total > 0, out / np.where(total > 0, total, 1), labels)
