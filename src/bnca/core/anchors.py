"""Anchors, their neighbours and who agrees: what a block of the bound is made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bnca.core.bound import Statistics, bound_curvature, expand
from bnca.core.features import eigen_features

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles, Floats, Integers
    from bnca.core.bound import Curvature


class Block(NamedTuple):
    """Features (b, K, p), agreements y_it (b, K) and weights (b,) of a few anchors."""

    features: Floats
    agree: Doubles
    weights: Doubles


@dataclass(frozen=True, eq=False)
class Anchors:
    """Rows that ask "which of my neighbours are like me?", ready to be cut into blocks.

    Features are made from the rows a block at a time and never kept.

    Attributes
    ----------
    scores : (n, r)
        Coordinates of all rows along the basis, in the precision features are to have.
    codes : (n,)
        Class of each row.
    rows : (a,)
        Which rows are anchors.
    neighbors : (a, K) or None
        Neighbour lists of the anchors; None stands for all other rows, and is never written out.
    weights : (a,)
        How often each anchor counts.
    agree : (a, K) or None
        y_it; None works it out from the codes, a block at a time.
    """

    scores: Floats
    codes: Integers
    rows: Integers
    neighbors: Integers | None
    weights: Doubles
    agree: Doubles | None = None

    @classmethod
    def informative(
        cls, scores: Floats, codes: Integers, neighbors: Integers | None, weights: Doubles
    ) -> Anchors:
        """Anchors that contribute: of positive weight, with a neighbour of their own class."""
        if neighbors is None:
            rows = np.flatnonzero((np.bincount(codes)[codes] > 1) & (weights > 0))
            return cls(scores, codes, rows, None, weights[rows])
        agree = codes[neighbors] == codes[:, None]
        rows = np.flatnonzero(agree.any(axis=1) & (weights > 0))
        kept = agree[rows].astype(np.float64)
        return cls(scores, codes, rows, neighbors[rows], weights[rows], kept)

    def __len__(self) -> int:
        return len(self.rows)

    def every(self, step: int) -> Anchors:
        """Return each step-th anchor, standing for all."""
        weights = self.weights[::step]
        return Anchors(
            self.scores,
            self.codes,
            self.rows[::step],
            None if self.neighbors is None else self.neighbors[::step],
            weights * (self.weights.sum() / weights.sum()),
            None if self.agree is None else self.agree[::step],
        )

    def block(self, part: slice, scratch: Floats) -> Block:
        """Features (written to scratch), agreements and weights of a range of anchors."""
        rows = self.rows[part]
        if self.neighbors is None:
            others = np.arange(len(self.scores) - 1)
            lists = others + (others >= rows[:, None])
        else:
            lists = self.neighbors[part]
        differences = scratch[: lists.size * self.scores.shape[1]].reshape(*lists.shape, -1)
        # mode="clip" spares a copy: with "raise" NumPy buffers the whole output.
        np.take(self.scores, lists, axis=0, out=differences, mode="clip")
        differences -= self.scores[rows, None]
        agree = self._agreement(rows, lists) if self.agree is None else self.agree[part]
        return Block(eigen_features(differences), agree, self.weights[part])

    def _agreement(self, rows: Integers, lists: Integers) -> Doubles:
        same = self.codes[lists] == self.codes[rows, None]
        return np.asarray(same, dtype=np.float64)

    def statistics(
        self, part: slice, mean: Doubles, curvature: Curvature, scratch: Floats
    ) -> Statistics:
        """Statistics of a range of anchors; a pure function of the range but for the scratch."""
        features, agree, weights = self.block(part, scratch)
        if curvature == "bohning":
            return Statistics(0.0, np.zeros(len(mean)), bound_curvature(features, agree, weights))
        return expand(features, agree, weights, mean, hessian=curvature == "exact")
