"""Anchors, their neighbours and who agrees: what a block of the bound is made from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bnca.core.bound import Statistics, bound_curvature, expand
from bnca.core.features import count_weights, products
from bnca.core.picks import expand_picks

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
    full : int
        How many leading scores have a weight for each product of two (`features.products`).
    flips : (a, b) or None
        None is the published product over same-class neighbours; two numbers make it the likelihood
        of one pick for each anchor (`picks.expand_picks`).
    truth : (n, n_classes) or None
        Probability of each true label, where given ones are doubtful: y_it is then that of anchor
        i's label for row t.
    shared : bool
        Whether an anchor's same-class neighbours share one vote, each y_it being divided by their
        number n_i, instead of having one each, as published.
    """

    scores: Floats
    codes: Integers
    rows: Integers
    neighbors: Integers | None
    weights: Doubles
    agree: Doubles | None = None
    full: int = 0
    flips: tuple[float, float] | None = None
    truth: Doubles | None = None
    shared: bool = False

    @property
    def n_weights(self) -> int:
        """Number p of weights."""
        return count_weights(self.scores.shape[1], self.full)

    @classmethod
    def informative(
        cls,
        scores: Floats,
        codes: Integers,
        neighbors: Integers | None,
        weights: Doubles,
        truth: Doubles | None = None,
    ) -> Anchors:
        """Anchors that contribute: of positive weight, with a neighbour of their own class.

        Where labels are doubtful, every neighbour may be of any class.
        """
        if truth is not None:
            rows = np.flatnonzero(weights > 0)
            lists = None if neighbors is None else neighbors[rows]
            return cls(scores, codes, rows, lists, weights[rows], truth=truth)
        if neighbors is None:
            rows = np.flatnonzero((np.bincount(codes)[codes] > 1) & (weights > 0))
            return cls(scores, codes, rows, None, weights[rows])
        agree = codes[neighbors] == codes[:, None]
        rows = np.flatnonzero(agree.any(axis=1) & (weights > 0))
        kept = agree[rows].astype(np.float64)
        return cls(scores, codes, rows, neighbors[rows], weights[rows], kept)

    def __len__(self) -> int:
        return len(self.rows)

    def mean_agreement(self) -> float:
        """Average number n_i = Σ_t y_it of neighbours of an anchor's own class, at least one."""
        if self.agree is not None:
            counts = self.agree.sum(axis=1)
        else:
            counts = np.bincount(self.codes)[self.codes[self.rows]] - 1.0
        total = self.weights.sum()
        return max(float(counts @ self.weights / total), 1.0) if total else 1.0

    def every(self, step: int) -> Anchors:
        """Return each step-th anchor, standing for all."""
        weights = self.weights[::step]
        return replace(
            self,
            rows=self.rows[::step],
            neighbors=None if self.neighbors is None else self.neighbors[::step],
            weights=weights * (self.weights.sum() / weights.sum()),
            agree=None if self.agree is None else self.agree[::step],
        )

    def block(self, part: slice, scratch: Floats) -> Block:
        """Features (written to scratch), agreements and weights of a range of anchors."""
        rows = self.rows[part]
        if self.neighbors is None:
            others = np.arange(len(self.scores) - 1)
            lists = others + (others >= rows[:, None])
        else:
            lists = self.neighbors[part]
        # In memory neighbours come first and anchors second, so that the rows of all anchors are
        # subtracted in one sweep and not in K short ones for each.
        room = scratch[: lists.size * self.scores.shape[1]].reshape(*lists.shape[::-1], -1)
        # mode="clip" spares a copy: with "raise" NumPy buffers the whole output.
        np.take(self.scores, lists.T, axis=0, out=room, mode="clip")
        room -= self.scores[rows]
        differences = room.transpose(1, 0, 2)
        agree = self._agreement(rows, lists) if self.agree is None else self.agree[part]
        if self.shared:
            total = agree.sum(axis=1, keepdims=True)
            agree = agree / np.where(total > 0, total, 1)
        return Block(self._features(differences), agree, self.weights[part])

    def _features(self, differences: Floats) -> Floats:
        if self.full <= 1:
            return products(differences, self.full)
        # Neighbours come first in memory, as everything that follows wants them.
        return products(differences.transpose(1, 0, 2), self.full).transpose(1, 0, 2)

    def _agreement(self, rows: Integers, lists: Integers) -> Doubles:
        if self.truth is not None:
            return np.asarray(self.truth[lists, self.codes[rows, None]])
        same = self.codes[lists] == self.codes[rows, None]
        return np.asarray(same, dtype=np.float64)

    def statistics(
        self, part: slice, mean: Doubles, curvature: Curvature, scratch: Floats
    ) -> Statistics:
        """Statistics of a range of anchors; a pure function of the range but for the scratch."""
        features, agree, weights = self.block(part, scratch)
        if self.flips is not None:
            return expand_picks(
                features, agree, weights, mean, flips=self.flips, hessian=curvature == "exact"
            )
        if curvature == "bohning":
            return Statistics(0.0, np.zeros(len(mean)), bound_curvature(features, agree, weights))
        return expand(features, agree, weights, mean, hessian=curvature == "exact")
