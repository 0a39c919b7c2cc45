"""Where a metric starts from before neighbours have spoken: Euclidean distance, or class scatter.

Each centre is a linear map L of coordinates, (q, r), with the metric A0 = L Lᵀ.  With S_w the
scatter of rows around the mean of their class and τ its average eigenvalue,

    A0 = [ (1 - α) S_w + α τ I ]⁻¹

is Euclidean distance at α = 1 and that of linear discriminant analysis at α = 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles

LEAST_SHRINKAGE = 0.01
"""However many rows there are, A0 keeps this much of Euclidean distance: S_w may be singular."""

SPREAD_FLOOR = 0.05
"""Part of the average variance that is added to that of each column before it divides."""


def class_means(coordinates: Doubles, labels: Doubles) -> Doubles:
    """Mean of each class, (C, q), with rows that belong to classes by the weights (n, C)."""
    total = labels.sum(axis=0)[:, None]
    return np.asarray((labels.T @ coordinates) / np.where(total > 0, total, 1))


def shrunk_map(coordinates: Doubles, labels: Doubles, shrinkage: float | None) -> Doubles:
    """Return L of the shrunk within-class metric.

    Parameters
    ----------
    coordinates : (n, q) float64
        Rows.
    labels : (n, C) float64
        Weight of each row in each class.
    shrinkage : float or None
        α; None is the one that Ledoit and Wolf's formula gives.

    Returns
    -------
    (q, q) float64
        L, with unit variance of rows within their classes along each of its columns, up to α.
    """
    within, residuals = _within(coordinates, labels)
    level = float(np.trace(within)) / len(within)
    if level <= 0:  # every row is the mean of its class: nothing to be learned from scatter
        return np.eye(len(within))
    if shrinkage is None:
        shrinkage = max(ledoit_wolf(residuals, within, labels.sum(axis=1)), LEAST_SHRINKAGE)
    values, axes = np.linalg.eigh(within)
    values = (1 - shrinkage) * np.maximum(values, 0) + shrinkage * level
    return np.asarray(axes / np.sqrt(values))


def scaled_map(coordinates: Doubles, labels: Doubles, axes: Doubles) -> Doubles:
    """Return L that divides each original column by its spread within classes.

    Parameters
    ----------
    coordinates : (n, q) float64
        Rows along the axes.
    labels : (n, C) float64
        Weight of each row in each class.
    axes : (d, q) float64
        The axes in the original columns.

    Returns
    -------
    (q, d) float64
        L, a little of the average variance having been added to that of each column.
    """
    within, _ = _within(coordinates, labels)
    variance = np.maximum(np.einsum("dq,qr,dr->d", axes, within, axes, optimize=True), 0)
    floor = SPREAD_FLOOR * float(variance.mean())
    return np.asarray(axes.T / np.sqrt(variance + (floor or 1.0)))


def discriminating_first(coordinates: Doubles, labels: Doubles) -> Doubles:
    """Rotation (q, q) that puts directions in which class means differ most first.

    A little of the total scatter orders the directions in which they do not differ.
    """
    total = labels.sum(axis=0)
    middle = (labels.sum(axis=1) @ coordinates) / total.sum()
    means = class_means(coordinates, labels) - middle
    gaps = coordinates - middle
    scatter = (means.T * total) @ means + 1e-3 * (gaps.T * labels.sum(axis=1)) @ gaps
    return np.ascontiguousarray(np.linalg.eigh(scatter)[1][:, ::-1])


def ledoit_wolf(residuals: Doubles, covariance: Doubles, weights: Doubles) -> float:
    """Shrinkage towards τI that Ledoit and Wolf (2004) give for the covariance of residuals.

    A weight says how often a residual counts.
    """
    n, p = float(weights.sum()), residuals.shape[1]
    level = float(np.trace(covariance)) / p
    distance = float(np.vdot(covariance, covariance)) - p * level**2
    fourth = float(np.einsum("ij,ij->i", residuals, residuals) ** 2 @ weights) / n
    noise = max(fourth - float(np.vdot(covariance, covariance)), 0.0) / n
    return 1.0 if distance <= 0 else min(noise / distance, 1.0)


def _within(coordinates: Doubles, labels: Doubles) -> tuple[Doubles, Doubles]:
    """Scatter within classes (divided by the number of rows), and rows less their class mean."""
    means = class_means(coordinates, labels)
    weight = labels.sum(axis=1)
    scatter = (coordinates.T * weight) @ coordinates - (means.T * labels.sum(axis=0)) @ means
    total = max(float(weight.sum()), 1e-300)
    residuals = coordinates - labels @ means / np.where(weight > 0, weight, 1)[:, None]
    return (scatter + scatter.T) / (2 * total), residuals
