"""A metric that knows how sure it is: a basis and the Gaussian posterior of its weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtr

from bnca.core.features import pack, products, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bnca.core.arrays import Doubles, Floats

BLOCK_NUMBERS = 1 << 18
"""How many feature values are held at once: 2 MB in double precision."""


class DistanceEstimate(NamedTuple):
    """Posterior mean and standard deviation of squared distances (eq. 26).

    Attributes
    ----------
    mean : float64 array
        m_ij = w_ijᵀ m_T.
    std : float64 array
        σ_ij = √(w_ijᵀ V_T w_ij).
    """

    mean: Doubles
    std: Doubles


@dataclass(frozen=True, eq=False)
class BayesianMetric:
    """A squared Mahalanobis distance d² = wᵀγ whose weights γ have a posterior N(mean, covariance).

    Attributes
    ----------
    directions : (d, r) float64
        Axes v_l: orthonormal, unless the prior is centred on another than Euclidean distance; they
        are then the coordinates in which that distance is the length.
    mean : (p,) float64
        m_T, as the posterior has it: weights may be negative.
    covariance : (p, p) float64
        V_T.
    full : int
        How many leading axes have a weight for each product of two of them (`features.products`);
        0 is one weight for each axis, as published.

    Notes
    -----
    Nothing in the model keeps a weight (an eigenvalue) from being negative.  `distance` and
    `distances` report the posterior as it is, so a mean may be negative where the model is wrong
    about a direction.  Whatever must be a metric (`matrix`, `components`) comes from the nearest
    positive semidefinite matrix, which sets negative weights (eigenvalues) to zero; so do draws
    from `sample`, unless told otherwise.
    """

    directions: Doubles
    mean: Doubles
    covariance: Doubles
    full: int = 0

    @property
    def is_projected(self) -> bool:
        """Whether the posterior mean is no metric, so that `matrix` differs from it."""
        return bool((self._spectrum(self.mean)[0] < 0).any())

    def matrix(self) -> Doubles:
        """Return A = Σ_l max(m_l, 0) v_l v_lᵀ, the metric nearest to the posterior mean.

        Where the basis is full, m_l and v_l are eigenvalues and eigenvectors of the mean.
        """
        values, axes = self._spectrum(self.mean)
        return np.asarray((axes * np.maximum(values, 0)) @ axes.T)

    def components(self) -> Doubles:
        """Return L, one row for each axis, with A = Lᵀ L: axes scaled by √m_l."""
        values, axes = self._spectrum(self.mean)
        return np.asarray((axes * np.sqrt(np.maximum(values, 0))).T)

    def _spectrum(self, weights: Doubles) -> tuple[Doubles, Doubles]:
        """Eigenvalues, and the axes they belong to, of the matrix that weights stand for."""
        if self.full <= 1:
            return weights, self.directions
        values, turn = np.linalg.eigh(unpack(weights, self.full))
        leading = self.directions[:, : self.full] @ turn
        rest = weights[self.full * (self.full + 1) // 2 :]
        return (
            np.concatenate([values[::-1], rest]),
            np.hstack([leading[:, ::-1], self.directions[:, self.full :]]),
        )

    def sample(self, n: int, rng: np.random.Generator, *, project: bool = True) -> Doubles:
        """Draws of the weights from the posterior.

        Parameters
        ----------
        n : int
            How many.
        rng : numpy.random.Generator
            Source of randomness.
        project : bool
            Whether negative weights (eigenvalues) of a draw are set to zero, which makes each
            draw a metric.

        Returns
        -------
        (n, p) float64
            Weights.
        """
        draws = self.mean + rng.standard_normal((n, len(self.mean))) @ self._root.T
        return nearest_metrics(draws, self.full) if project else draws

    def scores(self, X: Floats) -> Doubles:
        """Coordinates of rows along the axes, Xᵀ v_l."""
        return np.asarray(X @ self.directions, dtype=np.float64)

    def distance(self, X: Floats, Y: Floats) -> DistanceEstimate:
        """Squared distances of rows of X to the rows of Y beside them (eq. 26).

        Parameters
        ----------
        X, Y : (n, d)
            Pairs of rows.

        Returns
        -------
        DistanceEstimate
            Mean and standard deviation, each (n,).
        """
        left, right = self.scores(X), self.scores(Y)
        mean, std = np.empty(len(left)), np.empty(len(left))
        for part in self._parts(len(left)):
            features = self._features(left[part] - right[part])
            mean[part], std[part] = self._moments(features)
        return DistanceEstimate(mean, std)

    def distances(self, X: Floats, Y: Floats) -> DistanceEstimate:
        """Squared distances of all rows of X to all rows of Y (eq. 26).

        Parameters
        ----------
        X : (n, d)
            Rows.
        Y : (m, d)
            Rows.

        Returns
        -------
        DistanceEstimate
            Mean and standard deviation, each (n, m).
        """
        left, right = self.scores(X), self.scores(Y)
        mean, std = np.empty((len(left), len(right))), np.empty((len(left), len(right)))
        for part in self._parts(len(left), len(right)):
            for other in self._parts(len(right)):
                features = self._features(left[part, None] - right[None, other])
                shape = features.shape[:2]
                moments = self._moments(features.reshape(-1, features.shape[2]))
                mean[part, other] = moments.mean.reshape(shape)
                std[part, other] = moments.std.reshape(shape)
        return DistanceEstimate(mean, std)

    def closer(self, X: Floats, Y: Floats, Z: Floats) -> Doubles:
        """Probability that x is nearer to y than to z, row by row.

        Both squared distances are linear in the same Gaussian weights, so their difference is
        Gaussian too: P(d(x,y) < d(x,z)) = Φ( cᵀm / √(cᵀ V c) ) with c = w_xz - w_xy.

        Parameters
        ----------
        X, Y, Z : (n, d)
            Triplets of rows.

        Returns
        -------
        (n,) float64
            Probabilities; ½ where the two distances are certain to be equal.
        """
        x, y, z = self.scores(X), self.scores(Y), self.scores(Z)
        out = np.empty(len(x))
        for part in self._parts(len(x)):
            contrast = self._features(x[part] - z[part]) - self._features(x[part] - y[part])
            gap, spread = self._moments(contrast)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(gap == 0, 0.0, gap / spread)
            out[part] = ndtr(ratio)
        return out

    def _features(self, differences: Doubles) -> Doubles:
        return np.asarray(products(differences, self.full))

    def _moments(self, features: Floats) -> DistanceEstimate:
        # |Rᵀw|² with V = RRᵀ: one product, and never negative.
        spread = features @ self._root
        return DistanceEstimate(
            features @ self.mean, np.sqrt(np.einsum("ij,ij->i", spread, spread))
        )

    @cached_property
    def _root(self) -> Doubles:
        """R with V = RRᵀ: Cholesky's, or from eigenvalues where V is only semidefinite."""
        try:
            return np.asarray(np.linalg.cholesky(self.covariance), dtype=np.float64)
        except np.linalg.LinAlgError:
            values, vectors = np.linalg.eigh(self.covariance)
            return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))

    def _parts(self, n: int, times: int = 1) -> Iterator[slice]:
        """Slices of range(n) whose features, `times` over, stay within BLOCK_NUMBERS."""
        size = max(1, BLOCK_NUMBERS // (len(self.mean) * min(times, BLOCK_NUMBERS)))
        for start in range(0, n, size):
            yield slice(start, min(start + size, n))


def eigenvalues(weights: Doubles, full: int) -> Doubles:
    """Eigenvalues of the matrix that weights stand for, in its own coordinates."""
    if full <= 1:
        return weights
    rest = weights[full * (full + 1) // 2 :]
    return np.concatenate([np.linalg.eigvalsh(unpack(weights, full)), rest])


def nearest_metrics(weights: Doubles, full: int) -> Doubles:
    """Weights of the positive semidefinite matrices nearest to the given ones; overwrites those."""
    if full <= 1:
        return np.maximum(weights, 0, out=weights)
    count = full * (full + 1) // 2
    np.maximum(weights[:, count:], 0, out=weights[:, count:])
    values, axes = np.linalg.eigh(unpack(weights, full))
    clipped = (axes * np.maximum(values, 0)[:, None]) @ np.swapaxes(axes, 1, 2)
    for row, matrix in zip(weights, clipped, strict=True):
        row[:count] = pack(matrix, full)
    return weights
