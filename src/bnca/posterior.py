"""What every learner with a posterior can do: intervals, comparisons of pairs, averaged votes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bnca.base import LinearMap, MetricLearner
from bnca.blocks import cut, map_runs
from bnca.core import predictive
from bnca.core.features import Directions, products, scores
from bnca.core.metric import DistanceEstimate
from bnca.validation import query_rows, row_tuples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bnca.core.arrays import Doubles, Integers
    from bnca.core.metric import BayesianMetric
    from bnca.validation import TrainingRows

BLOCK_NUMBERS = 1 << 17
"""Numbers held by a thread for the votes of one block of queries: they stay in cache."""

LINK_PAIRS = 4096
"""Pairs of training rows from which P(same class | distance) is learned."""


class PosteriorMap(LinearMap):
    """Distances and comparisons of pairs, from ``metric_`` and ``pair_link_``."""

    metric_: BayesianMetric
    pair_link_: predictive.PairLink

    @overload
    def pair_distance(
        self, pairs: Any, return_std: Literal[False] = False, *, squared: bool = True
    ) -> Doubles: ...

    @overload
    def pair_distance(
        self, pairs: Any, return_std: Literal[True], *, squared: bool = True
    ) -> DistanceEstimate: ...

    def pair_distance(
        self, pairs: Any, return_std: bool = False, *, squared: bool = True
    ) -> Doubles | DistanceEstimate:
        """Posterior mean, and standard deviation, of each pair's distance (eq. 26).

        Parameters
        ----------
        pairs : array-like of shape (n, 2, n_features)
            Pairs of rows.
        return_std : bool, default=False
            Whether to return the standard deviation too.
        squared : bool, default=True
            Whether to speak of d², which is Gaussian under the posterior.  False gives d = √d²,
            with the standard deviation carried over to first order, σ / 2d.

        Returns
        -------
        mean : ndarray of shape (n,)
            Means.  Those of d² may be negative where the posterior has negative weights.
        std : ndarray of shape (n,)
            Standard deviations, only with return_std.
        """
        check_is_fitted(self)
        rows = row_tuples(self, pairs, 2, "pairs")
        estimate = self.metric_.distance(rows[:, 0], rows[:, 1])
        if not squared:
            root = np.sqrt(np.maximum(estimate.mean, 0))
            safe = np.where(root > 0, root, 1)
            estimate = DistanceEstimate(root, np.where(root > 0, estimate.std / (2 * safe), 0))
        return estimate if return_std else estimate.mean

    def pair_proba(self, pairs: Any) -> Doubles:
        """P(same class) of each pair, averaged over the posterior of its distance.

        Parameters
        ----------
        pairs : array-like of shape (n, 2, n_features)
            Pairs of rows.

        Returns
        -------
        ndarray of shape (n,)
            Probabilities, for a pair drawn at random from rows like those of `fit`.
        """
        check_is_fitted(self)
        rows = row_tuples(self, pairs, 2, "pairs")
        estimate = self.metric_.distance(rows[:, 0], rows[:, 1])
        return predictive.same_class_probability(estimate.mean, estimate.std, self.pair_link_)

    def triplet_proba(self, triplets: Any) -> Doubles:
        """P(d(a, b) < d(a, c)) of each triplet (a, b, c) under the posterior, in closed form.

        Parameters
        ----------
        triplets : array-like of shape (n, 3, n_features)
            Triplets of rows.

        Returns
        -------
        ndarray of shape (n,)
            Probabilities.
        """
        check_is_fitted(self)
        rows = row_tuples(self, triplets, 3, "triplets")
        return self.metric_.closer(rows[:, 0], rows[:, 1], rows[:, 2])

    def get_mahalanobis_matrix(self) -> Doubles:
        """Return the matrix A of the mean metric, (x - x')ᵀ A (x - x') (eq. 1)."""
        check_is_fitted(self)
        return self.metric_.matrix()


class PosteriorClassifier(PosteriorMap, MetricLearner):
    """A classifier whose neighbours vote under the posterior of the metric.

    A subclass has the parameters vote, n_voters, n_samples, random_state and n_jobs, sets
    ``metric_`` and calls `_remember_posterior` at the end of its ``fit``.
    """

    n_samples: int
    n_jobs: int | None
    random_state: Any

    def predict_proba(self, X: Any) -> Doubles:
        """Class probabilities, averaged over the posterior of the metric (eq. 29).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Probabilities, columns in the order of ``classes_``.  With ``vote="softmax"`` those of
            the mean metric (eq. 8); "distance" and "uniform" are plain KNN on it.
        """
        if self.vote != "posterior":
            return super().predict_proba(X)
        check_is_fitted(self)
        X = query_rows(self, X)
        found = self._voters(X).indices
        queries = scores(X, Directions(self.metric_.directions, self._center))
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        draws = self.metric_.sample(self.n_samples, np.random.default_rng(seed))
        votes = np.empty(found.shape)

        def work(run: Sequence[slice]) -> None:
            for part in run:
                differences = self._coordinates[found[part]]
                differences -= queries[part, None]
                features = products(differences, self.metric_.full)
                votes[part] = predictive.averaged_neighbor_probabilities(features, draws)

        size = max(1, BLOCK_NUMBERS // (found.shape[1] * max(draws.shape)))
        map_runs(work, cut(len(found), size), self.n_jobs)
        return predictive.class_probabilities(votes, self._codes[found], len(self.classes_))

    def _remember_posterior(
        self, rows: TrainingRows, coordinates: Doubles, center: Doubles
    ) -> None:
        """Keep what search, votes and pair probabilities need of the training rows."""
        self.components_ = self.metric_.components().astype(rows.X.dtype)
        self.pair_link_ = _pair_link(coordinates, rows.codes, self.metric_)
        self._coordinates = coordinates
        self._center = center
        self._remember(rows)


def _pair_link(
    coordinates: Doubles, codes: Integers, metric: BayesianMetric
) -> predictive.PairLink:
    """Link from distance to P(same class), from pairs of training rows drawn at random."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, len(codes), LINK_PAIRS)
    second = (first + rng.integers(1, len(codes), LINK_PAIRS)) % len(codes)
    squared = products(coordinates[first] - coordinates[second], metric.full) @ metric.mean
    return predictive.fit_pair_link(squared, (codes[first] == codes[second]).astype(np.float64))
