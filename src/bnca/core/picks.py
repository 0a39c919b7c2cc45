"""The likelihood that an anchor picks a neighbour of its own class, with labels that may be wrong.

Anchor i has the label g_i and picks neighbour t with probability p_it ∝ exp(-w_itᵀm) (eq. 2).  With
y_it the probability that t truly is of class g_i, it picks its own class with probability
π_i = Σ_t y_it p_it (eq. 3).  A label is wrong with probability ε, and is then any of the other
C - 1 classes, so that the label as given has

    loss(m) = -Σ_i log( a π_i + b (1 - π_i) ),   a = 1 - ε,   b = ε / (C - 1).

The published product over same-class neighbours (eq. 4) asks each of them to be picked, and so
counts an anchor once for each.  Here an anchor counts once, which is what makes the posterior as
wide as it has to be; the price is that the loss is not convex.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bnca.core.bound import Statistics

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles, Floats

LEAST = 1e-12
"""Floor of a probability inside a logarithm: with ε = 0 a pick may become impossible."""


def expand_picks(
    features: Floats,
    agree: Doubles,
    weights: Doubles,
    mean: Doubles,
    *,
    flips: tuple[float, float],
    hessian: bool,
) -> Statistics:
    """Loss, slope and (if asked) Hessian of the picks of one block of anchors.

    With s_i = (a - b) / (a π_i + b (1 - π_i)), v_it = p_it (y_it - π_i), and features centred by
    Σ_t p_it w_it,

        slope   = Σ_it s_i v_it w_it,
        Hessian = Σ_i s_i² (Σ_t v_it w_it)(Σ_t v_it w_it)ᵀ - Σ_it s_i v_it w_it w_itᵀ.

    Parameters
    ----------
    features : (b, K, p)
        Features of each anchor's neighbours; may be **overwritten**.
    agree : (b, K)
        y_it, in [0, 1].
    weights : (b,)
        How often each anchor counts.
    mean : (p,)
        The weights of the metric.
    flips : (a, b)
        Probability that a label is as it should be, and that it is one certain other class.
    hessian : bool
        Whether to form the Hessian.

    Returns
    -------
    Statistics
        The sums over this block.
    """
    right, other = flips
    stack = np.ascontiguousarray(features.transpose(1, 0, 2))
    K, b, p = stack.shape
    flat = stack.reshape(K * b, p)
    y = np.ascontiguousarray(agree.T)
    d = (flat @ mean.astype(flat.dtype, copy=False)).reshape(K, b).astype(np.float64, copy=False)
    d -= d.min(axis=0)
    pick = np.exp(-d)
    pick /= pick.sum(axis=0)
    own = np.einsum("tb,tb->b", y, pick)
    likelihood = np.maximum(other + (right - other) * own, LEAST)
    loss = -float(weights @ np.log(likelihood))
    pull = (right - other) / likelihood
    v = pick * (y - own)
    v *= pull
    slope_terms = v * weights
    slope = (slope_terms.astype(flat.dtype, copy=False).ravel() @ flat).astype(np.float64)
    if not hessian:
        return Statistics(loss, slope, np.zeros(()))
    share = np.ascontiguousarray(pick.T, dtype=stack.dtype)
    stack -= np.matmul(share[:, None, :], stack.transpose(1, 0, 2))[:, 0]
    # Each anchor's own slope; sums of v over its neighbours are zero, so centring changes none.
    own_slope = np.matmul(v.T[:, None, :].astype(stack.dtype), stack.transpose(1, 0, 2))[:, 0]
    own_slope *= np.sqrt(weights).astype(stack.dtype)[:, None]
    curvature = own_slope.T @ own_slope
    curvature -= flat.T @ (flat * slope_terms.astype(flat.dtype).reshape(-1, 1))
    return Statistics(loss, slope, curvature.astype(np.float64))
