"""Ways of voting, weighed by how well they foretold labels they had not seen.

Each way c has votes f_c for rows it did not learn from.  With a temperature T and a flip rate ε, it
foretells the label as given by

    P(g_i) = (1 - ε) softmax(T f_c)_g + ε / (C - 1) (1 - softmax(T f_c)_g),

while softmax(T f_c) itself foretells the true one: what noise blurs in the labels is told apart
from what is uncertain in the rows, because confident votes are contradicted at the rate ε and no
less.  For each ε a way takes the temperature that suits it best; (c, ε) then weighs as much as the
likelihood of the labels under it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bnca.core.smoothing import softmax

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles, Integers

TEMPERATURES = (0.5, 1.0, 1.7, 3.0, 5.0, 8.0, 12.0, 17.0, 25.0, 40.0)
"""Temperatures tried: from hardly any trust in a way's votes to nearly all."""

FLIP_RATES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
"""Flip rates tried where the data are to say."""

POWER = 1.0
"""Power of the likelihood in the weight of a way."""

LEAST = 1e-3
"""Floor of a foretold probability: one row may not veto a way."""

NEGLIGIBLE = 1e-2
"""Ways of less than this part of the largest weight are left out."""


class Weighed(NamedTuple):
    """What each way weighs.

    Attributes
    ----------
    shares : (c, e) float64
        Weight of each way with each flip rate; they sum to one.
    temperatures : (c, e) float64
        The temperature of each.
    losses : (c,) float64
        Mean loss of each way on labels as given, at its best.
    flip_rate : float
        Mean of ε.
    """

    shares: Doubles
    temperatures: Doubles
    losses: Doubles
    flip_rate: float


def weigh(
    votes: Doubles,
    codes: Integers,
    weights: Doubles,
    *,
    flip_rates: tuple[float, ...],
    log_prior: Doubles,
) -> Weighed:
    """Weigh ways of voting by labels they did not learn from.

    Parameters
    ----------
    votes : (c, n, C)
        Votes f_c for each row.
    codes : (n,)
        Labels as given.
    weights : (n,)
        How often each row counts.
    flip_rates : tuple of float
        Values of ε to weigh.
    log_prior : (c, e)
        Logarithm of the weights before any label is seen.

    Returns
    -------
    Weighed
        Shares, temperatures and the flip rate.
    """
    losses = np.array([_losses(way, codes, weights, flip_rates) for way in votes])
    best = losses.argmin(axis=1)
    least = losses.min(axis=1)
    score = log_prior - POWER * float(weights.sum()) * least
    shares = np.exp(score - score.max())
    shares[shares < NEGLIGIBLE * shares.max()] = 0
    shares /= shares.sum()
    return Weighed(
        shares,
        np.asarray(TEMPERATURES)[best],
        least.min(axis=1),
        float(shares.sum(axis=0) @ np.asarray(flip_rates)),
    )


def averaged(votes: Doubles, weighed: Weighed) -> Doubles:
    """Probabilities of true labels, (n, C), averaged over ways with the votes (c, n, C)."""
    total = np.zeros(votes.shape[1:])
    for c, e in np.argwhere(weighed.shares > 0):
        total += weighed.shares[c, e] * softmax(votes[c], weighed.temperatures[c, e])
    return total


def _losses(
    way: Doubles, codes: Integers, weights: Doubles, flip_rates: tuple[float, ...]
) -> Doubles:
    """Mean loss with each temperature and each flip rate."""
    n, n_classes = way.shape
    epsilon = np.asarray(flip_rates)
    other = epsilon / max(n_classes - 1, 1)
    share = weights / weights.sum()
    out = np.empty((len(TEMPERATURES), len(epsilon)))
    gaps = way - way.max(axis=1, keepdims=True)
    own = gaps[np.arange(n), codes]
    for row, temperature in zip(out, TEMPERATURES, strict=True):
        p = np.exp(temperature * own) / np.exp(temperature * gaps).sum(axis=1)
        foretold = other + p[:, None] * (1 - epsilon - other)
        row[:] = -(share @ np.log(np.maximum(foretold, LEAST)))
    return out
