"""What a basis makes of a difference x - x': the features that the weights multiply.

A basis turns rows into *scores* (coordinates along directions) and a difference of scores into
*features* w, such that the squared distance is linear in the weights: d² = wᵀγ.  The published
basis gives one weight to each eigenvector of the centred scatter.  A basis that is *full* in its
leading coordinates has a weight for each product of two of them as well, so that the metric may
turn its axes there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles, Floats, Rows

DENSE_SIDE = 5_000
"""Largest side of a cross-product matrix that is made dense for sparse rows (200 MB)."""


class Directions(NamedTuple):
    """Orthonormal axes and where they are centred.

    Attributes
    ----------
    axes : (n_features, r) float64
        Orthonormal columns v_l, by falling eigenvalue.
    center : (n_features,) float64
        Mean of the rows the axes come from.
    """

    axes: Doubles
    center: Doubles


def eigen_directions(X: Rows, n_components: int | None = None) -> Directions:
    """Top eigenvectors v_l of the centred scatter of the rows (before eq. 9).

    Axes along which the rows do not vary are left out, so there may be fewer than asked for, but
    never fewer than one.  Each axis is given the sign that makes its largest entry positive: the
    same rows give the same axes on every machine.

    Parameters
    ----------
    X : (n, n_features) array or SciPy sparse matrix
        Rows.
    n_components : int or None
        How many axes; None takes all along which the rows vary.

    Returns
    -------
    Directions
        Axes and centre.
    """
    n, width = X.shape
    smaller = min(n, width)
    if not isinstance(X, np.ndarray):
        X = X.astype(np.float64, copy=False)  # SciPy sums sparse rows in their own precision
    wanted = smaller if n_components is None else min(n_components, smaller)
    center = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    if not isinstance(X, np.ndarray) and smaller > DENSE_SIDE:
        axes, strength = _krylov_axes(X, center, wanted)
    elif width <= n:
        strength, axes = _top_eigenvectors(_scatter(X, center), wanted)
    else:
        axes, strength = _axes_through_gram(X, center, wanted)
    # Eigenvalues of a cross product carry an error of eps times the largest one.
    floor = strength.max(initial=0.0) * max(n, width) * np.finfo(np.float64).eps
    kept = max(1, int(np.count_nonzero(strength > floor)))
    axes = axes[:, :kept]
    largest = np.abs(axes).argmax(axis=0)
    signs = np.where(axes[largest, np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    return Directions(np.ascontiguousarray(axes * signs), center)


def scores(X: Rows, directions: Directions, *, block: int = 4096) -> Doubles:
    """Coordinates of rows along the axes, (x - centre)ᵀ v_l, in float64 whatever the rows have.

    Neighbours are decided on these numbers: with the rounding of float32 in them, ties (grids,
    counts, repeated rows) would fall differently from one run to the next.
    """
    out = np.empty((X.shape[0], directions.axes.shape[1]))
    if not isinstance(X, np.ndarray):
        out[:] = X @ directions.axes
        out -= directions.center @ directions.axes
        return out
    for start in range(0, len(out), block):
        rows = X[start : start + block].astype(np.float64)
        rows -= directions.center
        np.matmul(rows, directions.axes, out=out[start : start + block])
    return out


def eigen_features(differences: Floats) -> Floats:
    """Features of the published basis, w_l = (v_lᵀ(x - x'))² (eq. 10), written over the input."""
    return np.multiply(differences, differences, out=differences)


def count_weights(r: int, full: int) -> int:
    """Return p, the number of weights of r coordinates of which the leading `full` are full."""
    return full * (full + 1) // 2 + r - full


def products(differences: Floats, full: int, out: Floats | None = None) -> Floats:
    """Features of a basis that is full in its leading coordinates.

    First the products u_a u_b, a ≤ b, of the leading coordinates of a difference u = v_lᵀ(x - x'),
    those of two different ones times √2; then the squares of the other coordinates.  With √2 the
    length of the weights is that of the matrix they stand for (Frobenius), so a prior N(m·I, σI)
    is the same in all rotations of the leading coordinates.

    Parameters
    ----------
    differences : (..., r)
        Differences of scores; **overwritten** where `full` is at most 1.
    full : int
        How many leading coordinates are full; 0 or 1 is the published basis (eq. 10).
    out : (..., p) or None
        Where to write.

    Returns
    -------
    (..., p)
        Features w.
    """
    if full <= 1:
        return eigen_features(differences)
    r = differences.shape[-1]
    if out is None:
        out = np.empty((*differences.shape[:-1], count_weights(r, full)), dtype=differences.dtype)
    leading = differences[..., :full] * np.sqrt(2).astype(differences.dtype)
    at = 0
    for a in range(full):
        own = differences[..., a : a + 1]
        np.multiply(own, own, out=out[..., at : at + 1])
        np.multiply(own, leading[..., a + 1 :], out=out[..., at + 1 : at + full - a])
        at += full - a
    rest = differences[..., full:]
    np.multiply(rest, rest, out=out[..., at:])
    return out


def pack(matrix: Doubles, full: int) -> Doubles:
    """Weights γ of a symmetric matrix that is diagonal outside its leading block."""
    a, b = np.triu_indices(full)
    scale = np.where(a == b, 1.0, np.sqrt(2))
    return np.concatenate([matrix[a, b] * scale, np.diag(matrix)[full:]])


def unpack(weights: Doubles, full: int) -> Doubles:
    """Matrices that weights γ stand for: the leading blocks (..., full, full) alone."""
    a, b = np.triu_indices(full)
    values = weights[..., : len(a)] * np.where(a == b, 1.0, np.sqrt(0.5))
    block = np.zeros((*weights.shape[:-1], full, full))
    block[..., a, b] = values
    block[..., b, a] = values
    return block


def _scatter(X: Rows, center: Doubles) -> Doubles:
    """Return Σ (x - centre)(x - centre)ᵀ, summed in float64 a block of rows at a time."""
    if not isinstance(X, np.ndarray):
        cross = (X.T @ X).toarray()
        return np.asarray(cross - X.shape[0] * np.outer(center, center))
    total = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, X.shape[0], 4096):
        rows = X[start : start + 4096].astype(np.float64)
        rows -= center
        total += rows.T @ rows
    return total


def _top_eigenvectors(matrix: Doubles, wanted: int) -> tuple[Doubles, Doubles]:
    side = len(matrix)
    values, vectors = scipy.linalg.eigh(
        matrix, subset_by_index=None if wanted == side else (side - wanted, side - 1)
    )
    return values[::-1], vectors[:, ::-1]


def _axes_through_gram(X: Rows, center: Doubles, wanted: int) -> tuple[Doubles, Doubles]:
    """Axes when there are fewer rows than columns, through the (n, n) cross product."""
    if not isinstance(X, np.ndarray):
        inner = (X @ X.T).toarray()
        inner -= inner.mean(axis=0)
        inner -= inner.mean(axis=1)[:, None]
        strength, left = _top_eigenvectors((inner + inner.T) / 2, wanted)
        left -= left.mean(axis=0)
        long = np.asarray(X.T @ left)
    else:
        rows = X.astype(np.float64)
        rows -= center
        strength, left = _top_eigenvectors(rows @ rows.T, wanted)
        long = rows.T @ left
    # Columns of `long` are orthogonal with norm √strength up to rounding; QR removes the rounding.
    axes, _ = np.linalg.qr(long)
    return axes, strength


def _krylov_axes(X: Any, center: Doubles, wanted: int) -> tuple[Doubles, Doubles]:
    """Axes of a large sparse matrix without ever centring it in memory."""
    n, width = X.shape
    ones = np.ones(n)

    def forward(v: Doubles) -> Doubles:
        flat = v.ravel()  # SciPy may pass a column
        return np.asarray(X @ flat - ones * (center @ flat))

    def backward(u: Doubles) -> Doubles:
        flat = u.ravel()
        return np.asarray(X.T @ flat - center * flat.sum())

    operator = scipy.sparse.linalg.LinearOperator(
        (n, width), matvec=forward, rmatvec=backward, dtype=np.float64
    )
    # ARPACK is the better tested of the two, but cannot find all axes.
    tool: Literal["arpack", "propack"] = "arpack" if wanted < min(n, width) else "propack"
    start = np.random.default_rng(0).standard_normal(n if tool == "propack" else min(n, width))
    _, singular, right = scipy.sparse.linalg.svds(operator, k=wanted, v0=start, solver=tool)
    order = np.argsort(singular)[::-1]
    return np.asarray(right[order].T), np.asarray(singular[order] ** 2)
