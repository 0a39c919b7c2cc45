"""Neighbour, class and pair probabilities under a metric, or averaged over its posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles, Floats, Integers


def vote_shares(squared_distances: Doubles, vote: str) -> Doubles:
    """Share of the vote that each of the nearest rows has under one metric.

    Parameters
    ----------
    squared_distances : (b, K)
        Squared distances, nearest first.
    vote : {"uniform", "distance", "softmax"}
        One vote each, 1 / d, or exp(-d²) (eq. 2).  Rows at distance zero take the whole vote of
        "distance".

    Returns
    -------
    (b, K) float64
        Rows sum to one.
    """
    d2 = squared_distances - squared_distances.min(axis=1, keepdims=True)
    if vote == "softmax":
        shares = np.exp(-d2)
    elif vote == "distance":
        at_zero = squared_distances == 0
        with np.errstate(divide="ignore"):
            shares = 1 / np.sqrt(squared_distances)
        shares = np.where(at_zero.any(axis=1, keepdims=True), at_zero, shares)
    else:
        shares = np.ones_like(d2)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def averaged_neighbor_probabilities(features: Floats, draws: Doubles) -> Doubles:
    """Neighbour probabilities averaged over T draws of the weights (eq. 29).

    All draws go through one matrix product.  Distances are taken relative to each query's first
    candidate, so single precision is enough for the exponentials.

    Parameters
    ----------
    features : (b, K, p)
        Features of each query's candidates; **overwritten**.
    draws : (T, p)
        Weights γ_l.

    Returns
    -------
    (b, K) float64
        Rows sum to one.
    """
    b, K, p = features.shape
    # Each feature is multiplied by the size of its weights, so that single precision holds what
    # adds up to d² whatever the unit of length.
    size = np.abs(draws).max(axis=0)
    size[size == 0] = 1
    features -= features[:, :1].copy()
    features *= size
    single = features.reshape(b * K, p).astype(np.float32)
    d = (single @ (draws / size).T.astype(np.float32)).reshape(b, K, len(draws))
    d -= d.min(axis=1, keepdims=True)
    np.negative(d, out=d)
    np.exp(d, out=d)
    share = 1 / (len(draws) * d.sum(axis=1))
    return np.asarray(np.matmul(d, share[:, :, None])[:, :, 0], dtype=np.float64)


def class_probabilities(neighbor: Doubles, codes: Integers, n_classes: int) -> Doubles:
    """P(y = k) = Σ_t 1{y_t = k} p_t (eq. 8), each row summing to one.

    Parameters
    ----------
    neighbor : (b, K)
        Probability of each candidate.
    codes : (b, K)
        Class of each candidate, 0 .. n_classes - 1.
    n_classes : int
        Number of classes.

    Returns
    -------
    (b, n_classes) float64
        Class probabilities.
    """
    b = len(neighbor)
    slot = codes + np.arange(b)[:, None] * n_classes
    total: Doubles = np.zeros(b * n_classes)
    total += np.bincount(slot.ravel(), neighbor.ravel(), minlength=b * n_classes)
    out = total.reshape(b, n_classes)
    return np.asarray(out / out.sum(axis=1, keepdims=True))


class PairLink(NamedTuple):
    """P(same class | d²) = Φ(intercept - slope · d²) for two rows drawn at random.

    With this link, averaging over a Gaussian distance has a closed form.
    """

    intercept: float
    slope: float


def same_class_probability(mean: Doubles, std: Doubles, link: PairLink) -> Doubles:
    """P(same class) of pairs, averaged over the posterior of their distance.

    For d² ~ N(mean, std²), E Φ(a - s d²) = Φ( (a - s·mean) / √(1 + s²·std²) ).

    Parameters
    ----------
    mean, std : (n,)
        Moments of the squared distances.
    link : PairLink
        a and s.

    Returns
    -------
    (n,) float64
        Probabilities.
    """
    return np.asarray(
        ndtr((link.intercept - link.slope * mean) / np.sqrt(1 + (link.slope * std) ** 2))
    )


def fit_pair_link(squared: Doubles, same: Doubles, *, steps: int = 25) -> PairLink:
    """Probit regression of "same class" on squared distances.

    A weak Gaussian penalty (standard deviation 10 on standardised distances) keeps the fit finite
    where a threshold separates the pairs.  The slope is held at zero or above: a larger distance
    never makes "same" more likely.

    Parameters
    ----------
    squared : (n,)
        Squared distances of pairs.
    same : (n,)
        1 where the labels agree, else 0.
    steps : int
        Newton steps at most.

    Returns
    -------
    PairLink
        Intercept and slope.
    """
    center, spread = float(squared.mean()), float(squared.std())
    z = (squared - center) / spread if spread > 0 else np.zeros_like(squared)
    design = np.column_stack([np.ones_like(z), -z])
    sign = 2 * same - 1
    penalty = np.eye(2) / 100
    coefficients = np.zeros(2)
    for _ in range(steps):
        t = sign * (design @ coefficients)
        # Ratio of normal density to distribution function, by logarithms: safe far out.
        ratio = np.exp(-(t**2) / 2 - np.log(2 * np.pi) / 2 - log_ndtr(t))
        gradient = design.T @ (sign * ratio) - penalty @ coefficients
        curvature = (design * (ratio * (ratio + t))[:, None]).T @ design + penalty
        step = np.linalg.solve(curvature, gradient)
        coefficients += step
        if np.abs(step).max() < 1e-8:
            break
    if coefficients[1] <= 0 or spread == 0:
        rate = (same.sum() + 0.5) / (len(same) + 1)
        return PairLink(float(ndtri(rate)), 0.0)
    slope = float(coefficients[1] / spread)
    return PairLink(float(coefficients[0] + slope * center), slope)
