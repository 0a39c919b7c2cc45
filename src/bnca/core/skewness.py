"""How lopsided the likelihood of picks is, for a covariance that says so.

The log posterior is not symmetric about its mode, so its mean lies elsewhere: to second order at

    mean ≈ mode - ½ V τ,   τ_c = Σ_ab V_ab ∂³loss / ∂m_a ∂m_b ∂m_c,   V = (Hessian of F)⁻¹.

With q_it ∝ p_it f_it, f_it = b + (a - b) y_it, the pick given the label, the loss of an anchor is a
difference of two logarithms of sums of exponentials,

    -log Σ_t f_it exp(-d_it) + log Σ_t exp(-d_it),

whose derivatives are the cumulants of the features under q_i and under p_i.  Hence

    τ = Σ_i ( E_q[h^q w] - E_p[h^p w] ),   h^q_t = (w_t - E_q w)ᵀ V (w_t - E_q w) less its mean,

and h^p likewise: one product of the Hessian's size, and no third derivative is written out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg

from bnca.core.picks import LEAST

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles, Floats

WIDEST = 4 / 3
"""Variances are at most this many times those of the prior.

Where the log likelihood happens to bend upwards at the mode, the Hessian alone promises any width;
on average labels leave no more than the prior's, whatever they say.
"""

FARTHEST = 2.0
"""Standard deviations that the mean is taken to be from the mode at most.

The expansion is worthless farther out, and no interval may grow without bound.
"""


def third_derivative(  # noqa: PLR0917 - what a block has, and where
    features: Floats,
    agree: Doubles,
    weights: Doubles,
    mean: Doubles,
    root: Doubles,
    flips: tuple[float, float],
) -> Doubles:
    """Third derivative of the loss of picks, summed with a covariance over two of its indices.

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
    root : (p, p)
        R with V = R Rᵀ.
    flips : (a, b)
        As in `expand_picks`.

    Returns
    -------
    (p,) float64
        τ of this block.
    """
    right, other = flips
    stack = np.ascontiguousarray(features.transpose(1, 0, 2))
    K, b, p = stack.shape
    flat = stack.reshape(K * b, p)
    d = (flat @ mean.astype(flat.dtype, copy=False)).reshape(K, b).astype(np.float64, copy=False)
    pick = np.exp(d.min(axis=0) - d)
    pick /= pick.sum(axis=0)
    told = pick * (other + (right - other) * agree.T)
    told /= np.maximum(told.sum(axis=0), LEAST)
    # Centred by the pick, features give h^p as lengths, and those of h^q are moved by their mean.
    stack -= _means(pick, stack)
    wide = (flat @ root.astype(flat.dtype, copy=False)).reshape(K, b, p)
    length = np.einsum("tbp,tbp->tb", wide, wide)
    shift = _means(told, wide)
    moved = length - 2 * np.einsum("tbp,bp->tb", wide, shift)
    share = told * (moved - np.einsum("tb,tb->b", told, moved))
    share -= pick * (length - np.einsum("tb,tb->b", pick, length))
    share *= weights
    return np.asarray(share.astype(flat.dtype, copy=False).ravel() @ flat, dtype=np.float64)


def no_wider(covariance: Doubles, precision: Doubles) -> Doubles:
    """Covariance whose variances are at most `WIDEST` times those of a prior.

    Parameters
    ----------
    covariance : (p, p)
        A covariance.
    precision : (p, p)
        V0⁻¹.

    Returns
    -------
    (p, p) float64
        The covariance, made narrower along the directions that are too wide.
    """
    before = scipy.linalg.inv(precision)
    try:
        scipy.linalg.cholesky(WIDEST * before - covariance)
    except np.linalg.LinAlgError:
        ratios, axes = scipy.linalg.eigh(
            covariance, before, subset_by_value=(WIDEST, np.inf), driver="gvx"
        )
        wide = before @ axes
        return np.asarray(covariance - (wide * (ratios - WIDEST)) @ wide.T)
    return covariance


def about_mode(covariance: Doubles, root: Doubles, third: Doubles) -> Doubles:
    """Mean square of what the weights differ from their mode by, V + δδᵀ, δ = mean - mode.

    What is reported is the mode; an interval around it that is to hold has to make up for that.

    Parameters
    ----------
    covariance : (p, p)
        V.
    root : (p, p)
        R with V = R Rᵀ.
    third : (p,)
        τ.

    Returns
    -------
    (p, p) float64
        V + δδᵀ.
    """
    steps = root.T @ third / 2  # δ = -R steps
    gap = root @ steps
    length = float(np.linalg.norm(steps))
    if length > FARTHEST:
        gap *= FARTHEST / length
    return np.asarray(covariance + np.outer(gap, gap))


def _means(share: Doubles, stack: Floats) -> Floats:
    """Σ_t share_it w_it, (b, p)."""
    rows = np.ascontiguousarray(share.T, dtype=stack.dtype)
    return np.asarray(np.matmul(rows[:, None, :], stack.transpose(1, 0, 2))[:, 0])
