"""Class centres that moved to where they tell classes apart best.

The vote of class means, f_k(x) = -s d²(x, μ_k) + a_k, is linear in x but for what all classes have
in common.  So is every vote of one centre for each class, f_k(x) = b_kᵀx + a_k with b_k = 2 s c_k:
instead of taking the means, the centres can be learned.  They minimise

    Σ_i w_i CE(y_i, softmax(f(x_i))) + ½ λ Σ_k |b_k|²

for labels y_i that may be shared among classes.  Böhning's bound on the curvature of a softmax,
½ (I - 11ᵀ/C), is the one that the metric itself is learned by: it makes a step of one matrix for
all classes, and that matrix is the same in every step and, in its eigenvectors, for every λ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bnca.core.smoothing import NEVER, softmax

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles

STEPS = 60
"""Steps at most: votes are told apart long before the last digit of a centre is."""

TOLERANCE = 1e-3
"""A step below this part of the largest slope ends the search."""

MOST_OWN = 0.95
"""What a row tells about itself is never taken for more than this part of its vote."""


class Slopes(NamedTuple):
    """Votes f_k(x) = b_kᵀx + a_k.

    Attributes
    ----------
    slopes : (q, C) float64
        b_k.
    offsets : (C,) float64
        a_k.
    """

    slopes: Doubles
    offsets: Doubles

    def say(self, rows: Doubles) -> Doubles:
        """Votes (n, C) for rows."""
        return np.asarray(rows @ self.slopes + self.offsets)

    def centers(self, scale: float) -> tuple[Doubles, Doubles]:
        """Centres (C, q) and offsets (C,) with -scale·d²(x, c_k) + offset_k as the same vote."""
        points = self.slopes.T / (2 * scale)
        return points, self.offsets + scale * np.einsum("kq,kq->k", points, points)


def learn_slopes(rows: Doubles, labels: Doubles, weights: Doubles, penalty: float) -> Slopes:
    """Learn one linear vote for each class.

    Parameters
    ----------
    rows : (n, q) float64
        Rows, in units that the penalty is meant for.
    labels : (n, C) float64
        Share of each row in each class; rows sum to one.
    weights : (n,) float64
        How often each row counts.
    penalty : float
        λ.

    Returns
    -------
    Slopes
        b_k and a_k.
    """
    middle = weights @ rows / weights.sum()
    values, axes = np.linalg.eigh(_gram(rows - middle, weights))
    turned = (rows - middle) @ axes
    step = 1 / (np.maximum(values, 0) / 2 + penalty)
    total = weights @ labels
    present = total > 0
    start = np.where(present, np.log(np.where(present, total, 1) / weights.sum()), NEVER)
    slopes, offsets = _accelerated(turned, labels, weights, penalty, step, start)
    slopes = axes @ slopes
    return Slopes(slopes, offsets - middle @ slopes)


def _accelerated(  # noqa: PLR0917 - what the steps are made of
    rows: Doubles,
    labels: Doubles,
    weights: Doubles,
    penalty: float,
    step: Doubles,
    start: Doubles,
) -> tuple[Doubles, Doubles]:
    """Steps with the bound's curvature and Nesterov's momentum, given up where it overshoots."""
    slopes = np.zeros((rows.shape[1], len(start)))
    offsets = start
    ahead, ahead_offsets, momentum = slopes, offsets, 1.0
    for _ in range(STEPS):
        gap = (softmax(ahead_offsets + rows @ ahead, 1.0) - labels) * weights[:, None]
        new = ahead - step[:, None] * (rows.T @ gap + penalty * ahead)
        new_offsets = ahead_offsets - (2 / weights.sum()) * gap.sum(axis=0)
        move, move_offsets = new - slopes, new_offsets - offsets
        if np.vdot(ahead - new, move) + np.vdot(ahead_offsets - new_offsets, move_offsets) > 0:
            momentum = 1.0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / following * move
        ahead_offsets = new_offsets + (momentum - 1) / following * move_offsets
        slopes, offsets, momentum = new, new_offsets, following
        if np.abs(move).max() <= TOLERANCE * np.abs(slopes).max():
            break
    return slopes, offsets


def left_out(
    rows: Doubles, labels: Doubles, weights: Doubles, penalty: float, learned: Slopes
) -> Doubles:
    """Votes (n, C) for each row as if it had not been there, to first order.

    With P_i the probabilities of row i, v_i = (1 - Σ_k P_ik²)/(C - 1) the mean curvature of its
    loss, H = Σ_i w_i v_i x_i x_iᵀ + λI and h_i = w_i x_iᵀ H⁻¹ x_i, leaving row i out adds
    h_i (P_i - y_i) / (1 - h_i v_i) to its votes.
    """
    votes = learned.say(rows)
    said = softmax(votes, 1.0)
    bend = (1 - np.einsum("nk,nk->n", said, said)) / max(labels.shape[1] - 1, 1)
    extended = np.column_stack([rows, np.ones(len(rows))])
    hessian = _gram(extended, weights * bend)
    hessian.flat[:: len(hessian) + 1] += penalty
    solved = np.linalg.solve(hessian, extended.T)
    own = weights * np.einsum("nq,qn->n", extended, solved)
    factor = own / (1 - np.minimum(own * bend, MOST_OWN))
    return np.asarray(votes + factor[:, None] * (said - labels))


def _gram(rows: Doubles, weights: Doubles) -> Doubles:
    return np.asarray((rows.T * weights) @ rows)
