"""All the votes of rows in one metric: from every row, or by way of landmarks where there are many.

A vote is named by a number: widths of the kernel by ridges, then the vote of class means, then
those of learned class centres.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.linalg

from bnca.blocks import cut
from bnca.core import centers, prototypes, smoothing
from bnca.neighbors import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bnca.core.arrays import Doubles, Integers

WIDTHS = (0.5, 2.0, 8.0, 32.0)
"""Widths s of the kernel, in units of squared distance: from a few near rows to all."""

RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Ridges λ: how far a row's label is overruled by those around it."""

MEANS = len(WIDTHS) * len(RIDGES)
"""The vote of class means."""

PENALTIES = (0.1, 1.0, 8.0)
"""Penalties of class centres that are learned, for rows in units of squared distance."""

N_VOTES = MEANS + 1 + len(PENALTIES)
"""Number of votes in one metric."""

EXACT_ROWS = 2500
"""Up to this many rows each has a coefficient of its own; no n x n array is made of more."""

LANDMARKS = 1500
"""How many rows stand for all where there are more."""

BLOCK_ROWS = 2048
"""Rows whose kernel with the landmarks is held at once."""


class Doubt(NamedTuple):
    """How probable labels are found.

    Attributes
    ----------
    flip_rate : float
        ε.
    temperature : float
        Of the vote that says what a row is without its own label.
    """

    flip_rate: float
    temperature: float


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to choose on.

    Attributes
    ----------
    coordinates : (n, q) float64
        Along principal axes.
    axes : (d, q) float64
        Those axes.
    codes : (n,)
        Labels as given.
    weights : (n,) float64
        How often each row counts.
    n_classes : int
        Number of classes.
    """

    coordinates: Doubles
    axes: Doubles
    codes: Integers
    weights: Doubles
    n_classes: int

    @property
    def labels(self) -> Doubles:
        """One column a class, (n, C)."""
        return np.asarray(np.eye(self.n_classes)[self.codes])

    def take(self, rows: Integers) -> Rows:
        """Some of the rows."""
        return replace(
            self,
            coordinates=self.coordinates[rows],
            codes=self.codes[rows],
            weights=self.weights[rows],
        )


class Voice(NamedTuple):
    """One vote, learned: what it says about a row depends on the row's distances to a few points.

    Attributes
    ----------
    points : (m, r)
        Rows, landmarks or class means.
    width : float
        Squared distance over which the kernel falls by e; infinite for class means and centres.
    coefficients : (m, C)
        α, or minus the identity over half a unit for class means and centres.
    offset : (C,)
        π, or zeros, or what centres need.
    """

    points: Doubles
    width: float
    coefficients: Doubles
    offset: Doubles

    def say(self, squared: Doubles) -> Doubles:
        """Votes (b, C) for rows at squared distances (b, m) to the points."""
        seen = squared if np.isinf(self.width) else np.exp(squared * (-1 / self.width))
        return np.asarray(self.offset + seen @ self.coefficients)


class Votes:
    """All the votes of rows in one metric.

    Parameters
    ----------
    rows : Rows
        Rows that vote.
    L : (q, r)
        The metric.
    """

    def __init__(self, rows: Rows, L: Doubles) -> None:
        self.embedding = rows.coordinates @ L
        self.weights = rows.weights
        self.labels = rows.labels
        self._prepare()

    def _prepare(self) -> None:
        self._squared = smoothing.squared_distances(self.embedding, self.embedding)
        self.unit = smoothing.near_unit(self._squared)
        self._root = np.sqrt(self.weights)
        self._kernels: dict[float, Doubles] = {}

    def voice(self, vote: int, doubt: Doubt | None = None) -> Voice:
        """Learn a vote, from probable labels where there is doubt about the given ones."""
        labels = self.labels if doubt is None else self.probable(vote, doubt)
        if vote == MEANS:
            weighted = labels * self.weights[:, None]
            means = centers.class_means(self.embedding, weighted)
            scale = -smoothing.MEAN_SCALE / self.unit
            silent = np.where(weighted.sum(axis=0) > 0, 0.0, smoothing.NEVER)
            return Voice(means, np.inf, np.eye(len(means)) * scale, silent)
        if vote > MEANS:
            learned = self._slopes(vote, labels)
            scale = smoothing.MEAN_SCALE / self.unit
            root = np.sqrt(self.unit)
            points, offsets = learned._replace(slopes=learned.slopes / root).centers(scale)
            return Voice(points, np.inf, np.eye(len(points)) * -scale, offsets)
        width, ridge = WIDTHS[vote // len(RIDGES)], RIDGES[vote % len(RIDGES)]
        share = self._share(labels)
        alpha = self._coefficients(width, ridge, labels - share)
        return Voice(self._points(), width * self.unit, alpha, share)

    def probable(self, vote: int, doubt: Doubt) -> Doubles:
        """Probable true labels (n, C), by the vote of all others on each row and its own label."""
        clean = smoothing.softmax(self.left_out(vote), doubt.temperature)
        return smoothing.true_label_probabilities(clean, self.labels, doubt.flip_rate)

    def left_out(self, vote: int) -> Doubles:
        """Votes (n, C) for each row by the others, from given labels."""
        if vote == MEANS:
            weighted = self.labels * self.weights[:, None]
            return smoothing.mean_left_out(self.embedding, weighted, self.unit)
        if vote > MEANS:
            penalty = PENALTIES[vote - MEANS - 1]
            learned = self._slopes(vote, self.labels)
            rows = self.embedding / np.sqrt(self.unit)
            return prototypes.left_out(rows, self.labels, self.weights, penalty, learned)
        width, ridge = WIDTHS[vote // len(RIDGES)], RIDGES[vote % len(RIDGES)]
        share = self._share(self.labels)
        return share + self._ridge_left_out(width, ridge, self.labels - share)

    def _slopes(self, vote: int, labels: Doubles) -> prototypes.Slopes:
        """Linear votes of learned class centres, for rows in units of squared distance."""
        rows = self.embedding / np.sqrt(self.unit)
        return prototypes.learn_slopes(rows, labels, self.weights, PENALTIES[vote - MEANS - 1])

    def _share(self, labels: Doubles) -> Doubles:
        return np.asarray(self.weights @ labels / self.weights.sum())

    def _points(self) -> Doubles:
        return self.embedding

    def _kernel(self, width: float) -> Doubles:
        """Weighted kernel among the rows; the last one is kept, as ridges ask for it in turn."""
        if width not in self._kernels:
            self._kernels = {
                width: smoothing.weighted_kernel(self._squared, width * self.unit, self._root)
            }
        return self._kernels[width]

    def _coefficients(self, width: float, ridge: float, gaps: Doubles) -> Doubles:
        return smoothing.ridge_coefficients(self._kernel(width), self._root, gaps, ridge)

    def _ridge_left_out(self, width: float, ridge: float, gaps: Doubles) -> Doubles:
        return smoothing.ridge_left_out(self._kernel(width), self._root, gaps, ridge)


class LandmarkVotes(Votes):
    """Votes by way of landmarks: rows that stand for all, so that no n x n array is made.

    The smoothed vote is then k(x, Z) α with the coefficients of landmarks Z that fit all rows best,
    (K_zx W K_xz + λ K_zz) α = K_zx W (Y - π).
    """

    def _prepare(self) -> None:
        n = len(self.embedding)
        self._landmarks = self.embedding[np.linspace(0, n - 1, LANDMARKS).round().astype(np.intp)]
        self._among = smoothing.squared_distances(self._landmarks, self._landmarks)
        # Near rows are nearer where there are more of them: all of them are asked, for a sample.
        sample = self.embedding[:: max(1, n // 256)]
        near = nearest(self.embedding, smoothing.NEAR + 1, sample, n_jobs=1).squared_distances
        self.unit = float(np.median(near[:, 1:].mean(axis=1))) or 1.0
        self._grams: dict[float, Doubles] = {}

    def _points(self) -> Doubles:
        return self._landmarks

    def _parts(self, width: float) -> Iterator[tuple[slice, Doubles]]:
        for part in cut(len(self.embedding), BLOCK_ROWS):
            squared = smoothing.squared_distances(self.embedding[part], self._landmarks)
            yield part, np.exp(squared * (-1 / (width * self.unit)))

    def _system(self, width: float, ridge: float) -> Doubles:
        if width not in self._grams:
            gram = np.zeros((LANDMARKS, LANDMARKS))
            for part, cross in self._parts(width):
                gram += cross.T @ (cross * self.weights[part, None])
            self._grams = {width: gram}
        kernel = np.exp(self._among * (-1 / (width * self.unit)))
        system = self._grams[width] + ridge * kernel
        # A whisker of the diagonal: landmarks may coincide.
        system.flat[:: LANDMARKS + 1] += 1e-8 * np.trace(system) / LANDMARKS
        return np.asarray(system)

    def _coefficients(self, width: float, ridge: float, gaps: Doubles) -> Doubles:
        right = np.zeros((LANDMARKS, gaps.shape[1]))
        for part, cross in self._parts(width):
            right += cross.T @ (self.weights[part, None] * gaps[part])
        return np.asarray(scipy.linalg.solve(self._system(width, ridge), right, assume_a="pos"))

    def _ridge_left_out(self, width: float, ridge: float, gaps: Doubles) -> Doubles:
        alpha = self._coefficients(width, ridge, gaps)
        factor = scipy.linalg.cholesky(self._system(width, ridge), lower=True)
        out = np.empty_like(gaps)
        for part, cross in self._parts(width):
            half = scipy.linalg.solve_triangular(factor, cross.T, lower=True)
            own = np.minimum(np.einsum("mb,mb->b", half, half) * self.weights[part], 0.999)
            out[part] = (cross @ alpha - own[:, None] * gaps[part]) / (1 - own[:, None])
        return out


def votes_of(rows: Rows, L: Doubles) -> Votes:
    """All the votes of rows, by way of landmarks where there are many rows."""
    return (Votes if len(rows.codes) <= EXACT_ROWS else LandmarkVotes)(rows, L)
