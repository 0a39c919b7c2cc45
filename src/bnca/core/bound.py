"""The quadratic bound on one block of anchors, as statistics that add with +.

An anchor i has K neighbours t with features w_it; y_it says whether the labels agree (0 or 1, or
anything between where labels are uncertain).  With d_it = w_itᵀm, e_it = exp(-d_it) and
Z_i = Σ_t e_it, the negative of the published bound (eq. 16) is

    loss(m) = Σ_i Σ_j y_ij [ log(e_ij + Z_i) + d_ij ],

convex in m.  Everything a solver needs of it is a sum over anchors.  Adding a constant vector to
all features of one anchor changes none of these sums (only contrasts w_ij - w_it enter eq. 14), so
features are first centred by anchor.  The corrections of rank three in the published sums then
vanish, and each curvature is one weighted product of a (K·anchors, p) matrix with itself.

Sums run over neighbours first and anchors second: along the short rows of K neighbours NumPy would
spend more time on starting loops than on what is in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles, Floats

Curvature = Literal["bohning", "exact", "none"]


@dataclass(frozen=True, eq=False, slots=True)
class Statistics:
    """Loss, slope and curvature summed over a set of anchors.

    The union of two disjoint sets of anchors has the sum of their statistics.

    Attributes
    ----------
    loss : float
        Σ_i Σ_j y_ij lse(η_ij) at the expansion point (eq. 15 and 16).
    slope : (p,) float64
        Gradient of the loss with respect to the mean.
    curvature : (p, p) float64
        Σ_i Σ_j y_ij W_i^j H W_i^jᵀ (inside eq. 22), or the exact Hessian, or the number zero where
        none was asked for.
    """

    loss: float
    slope: Doubles
    curvature: Doubles

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.loss + other.loss, self.slope + other.slope, self.curvature + other.curvature
        )

    def __mul__(self, factor: float) -> Statistics:
        return Statistics(self.loss * factor, self.slope * factor, self.curvature * factor)


def bound_curvature(features: Floats, agree: Doubles, weights: Doubles) -> Doubles:
    """Curvature of Böhning's bound, Σ_i Σ_j y_ij W_i^j H W_i^jᵀ (eq. 17, 18 and 22).

    With features centred by anchor this is ½ Σ_it (n_i + y_it K/(K+1)) w_it w_itᵀ, n_i = Σ_t y_it.

    Parameters
    ----------
    features : (b, K, p)
        Features of each anchor's neighbours; may be **overwritten**.
    agree : (b, K)
        y_it.
    weights : (b,)
        How often each anchor counts.

    Returns
    -------
    (p, p) float64
        The curvature; it does not depend on the mean, so it is computed once.
    """
    K = agree.shape[1]
    stack, agree = _neighbors_first(features, agree, weights)
    coefficient = (agree.sum(axis=0) + agree * (K / (K + 1))) / 2
    stack -= stack.mean(axis=0)
    return _weighted_product(stack, coefficient)


def expand(
    features: Floats, agree: Doubles, weights: Doubles, mean: Doubles, *, hessian: bool
) -> Statistics:
    """Loss, slope and (if asked) exact Hessian of the bound at a mean.

    With q_it = y_it / (e_it + Z_i) and r_i = Σ_t q_it,

        slope   = Σ_it (Z_i q_it - e_it r_i) w_it,
        Hessian = Σ_it [ e_it (r_i + q_it) - y_it e_it² / (e_it + Z_i)² ] w_it w_itᵀ

    where in the Hessian the features are centred by Σ_t e_it w_it / Z_i.  The slope is what the
    published update works with: V_T⁻¹ (m_T - m) = V0⁻¹ (m0 - m) - slope (eq. 19, 20, 23 and 24).

    Parameters
    ----------
    features : (b, K, p)
        Features of each anchor's neighbours; may be **overwritten** where the Hessian is asked for.
    agree, weights
        As in `bound_curvature`.
    mean : (p,)
        The expansion point: ψ_ij = W_i^jᵀ m (eq. 24).
    hessian : bool
        Whether to form the exact Hessian.

    Returns
    -------
    Statistics
        The sums over this block.
    """
    b, K, p = features.shape
    stack, agree = _neighbors_first(features, agree, weights)  # each sum is linear in agree
    flat = stack.reshape(K * b, p)
    d = (flat @ mean.astype(flat.dtype, copy=False)).reshape(K, b).astype(np.float64, copy=False)
    d -= d.min(axis=0)  # only differences count, and exp must not underflow
    e = np.exp(-d)
    ones = np.ones(K)  # a product with ones is several times faster than sum
    Z = ones @ e
    total = e + Z
    q = agree / total
    r = ones @ q
    pull = Z * q
    pull -= e * r
    slope = (pull.astype(flat.dtype, copy=False).ravel() @ flat).astype(np.float64, copy=False)
    d += np.log(total)
    loss = float(np.vdot(agree, d))
    if not hessian:
        return Statistics(loss, slope, np.zeros(()))
    coefficient = e * (r + q - q * e / total)
    share = np.ascontiguousarray((e / Z).T, dtype=stack.dtype)
    stack -= np.matmul(share[:, None, :], stack.transpose(1, 0, 2))[:, 0]
    return Statistics(loss, slope, _weighted_product(stack, coefficient))


def _neighbors_first(features: Floats, agree: Doubles, weights: Doubles) -> tuple[Floats, Doubles]:
    """Features as (K, b, p) and weighted agreements as (K, b); a copy only where it is needed."""
    stack = np.ascontiguousarray(features.transpose(1, 0, 2))
    return stack, np.multiply(agree.T, weights, order="C")


def _weighted_product(stack: Floats, coefficient: Doubles) -> Doubles:
    """Σ_it c_it w_it w_itᵀ for c ≥ 0, one symmetric product; overwrites the features."""
    K, b, p = stack.shape
    stack *= np.sqrt(coefficient).astype(stack.dtype)[:, :, None]
    flat = stack.reshape(K * b, p)
    return (flat.T @ flat).astype(np.float64)
