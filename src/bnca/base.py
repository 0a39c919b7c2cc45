"""What every learner here can do once it has a linear map: transform, search, vote, compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from bnca.core.predictive import class_probabilities, vote_shares
from bnca.neighbors import Neighbors, nearest
from bnca.validation import TrainingRows, query_rows, row_tuples

if TYPE_CHECKING:
    from collections.abc import Callable

    from bnca.core.arrays import Doubles, Floats, Integers, Rows


class LinearMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """A transformer by a learned linear map L, ``components_``: ``d(x, x') = |L (x - x')|``."""

    components_: Floats
    n_features_in_: int

    def transform(self, X: Any) -> Floats:
        """Rows in the learned space, where Euclidean distance is the learned distance.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n, n_components)
            X Lᵀ, in the precision of X.
        """
        check_is_fitted(self)
        X = query_rows(self, X)
        return np.asarray(X @ self.components_.T.astype(X.dtype))

    def pair_distance(self, pairs: Any, *, squared: bool = True) -> Doubles:
        """Learned distance of each pair of rows.

        Parameters
        ----------
        pairs : array-like of shape (n, 2, n_features)
            Pairs.
        squared : bool, default=True
            Whether to return d², which is what the model is written in, or d.

        Returns
        -------
        ndarray of shape (n,)
            Distances.
        """
        check_is_fitted(self)
        rows = row_tuples(self, pairs, 2, "pairs")
        gap = (rows[:, 0] - rows[:, 1]) @ self.components_.T
        d2 = np.einsum("ij,ij->i", gap, gap)
        return np.asarray(d2 if squared else np.sqrt(d2))

    def pair_score(self, pairs: Any) -> Doubles:
        """Likeness of each pair of rows: minus the squared distance, so larger is more alike.

        Parameters
        ----------
        pairs : array-like of shape (n, 2, n_features)
            Pairs.

        Returns
        -------
        ndarray of shape (n,)
            Scores.
        """
        return np.asarray(-self.pair_distance(pairs))

    def get_mahalanobis_matrix(self) -> Floats:
        """Return the matrix A of the learned squared distance (x - x')ᵀ A (x - x')."""
        check_is_fitted(self)
        return np.asarray(self.components_.T @ self.components_)

    def get_metric(self) -> Callable[[Any, Any], float]:
        """Return the learned distance as a function of two rows.

        It is meant for libraries that take a callable; `kneighbors` and `transform` are far faster.
        """
        check_is_fitted(self)
        components = self.components_.copy()

        def distance(u: Any, v: Any) -> float:
            return float(np.linalg.norm(components @ (np.asarray(u) - np.asarray(v))))

        return distance

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class MetricLearner(LinearMap, ClassifierMixin, BaseEstimator):
    """A classifier by the nearest training rows under a learned linear map.

    A subclass has the parameters vote and n_voters, sets ``components_`` and calls `_remember` at
    the end of its ``fit``.  It may set ``n_neighbors_``, the number of voters where n_voters is
    None.
    """

    vote: str
    n_voters: int | None
    classes_: np.ndarray[Any, Any]

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> tuple[Doubles, Integers] | Integers:
        """Nearest training rows in the learned distance, as scikit-learn's classifiers give them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features), default=None
            Queries.  None asks for the neighbours of each training row among the others.
        n_neighbors : int, default=None
            How many; None is the number used in `fit`.
        return_distance : bool, default=True
            Whether to return distances too.

        Returns
        -------
        distances : ndarray of shape (n_queries, n_neighbors)
            Learned distances (not squared).  Without X, one line for each row passed to `fit`.
        indices : ndarray of shape (n_queries, n_neighbors)
            Positions of training rows as they were passed to `fit`.
        """
        check_is_fitted(self)
        k = self._check_k(n_neighbors, len(self._embedding) - (X is None))
        n_jobs = getattr(self, "n_jobs", None)
        queries = None if X is None else self._embed(query_rows(self, X))
        found, squared = nearest(self._embedding, k, queries, n_jobs=n_jobs)
        if X is None:
            # One line for each row of fit: copies share theirs, rows left out have their own.
            others = nearest(self._embedding, k, self._left_out, n_jobs=n_jobs)
            line = np.where(self._twin < 0, len(found) + np.cumsum(self._twin < 0) - 1, self._twin)
            found = np.vstack([found, others.indices])[line]
            squared = np.vstack([squared, others.squared_distances])[line]
        indices = self._origin[found]
        return (np.sqrt(squared), indices) if return_distance else indices

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Most probable class of each row: the largest entry of `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n,)
            Labels.
        """
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> Doubles:
        """Class probabilities from the votes of the nearest training rows in the learned distance.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Probabilities, columns in the order of ``classes_``.
        """
        check_is_fitted(self)
        found = self._voters(query_rows(self, X))
        votes = vote_shares(found.squared_distances, self.vote)
        return class_probabilities(votes, self._codes[found.indices], len(self.classes_))

    def _voters(self, X: Rows) -> Neighbors:
        """Return the nearest training rows of each query, as many as vote."""
        k = self._check_k(self.n_voters, len(self._embedding), "n_voters")
        return nearest(self._embedding, k, self._embed(X), n_jobs=getattr(self, "n_jobs", None))

    def _remember(self, rows: TrainingRows) -> None:
        """Keep what search and votes need of the training rows."""
        self.classes_ = rows.classes
        self._codes = rows.codes
        self._origin = rows.origin
        self._twin = rows.twin
        self._embedding = self._embed(rows.X)
        self._left_out = self._embed(rows.left_out)

    def _embed(self, X: Rows) -> Doubles:
        return np.asarray(X @ self.components_.T, dtype=np.float64)

    def _check_k(self, asked: int | None, most: int, name: str = "n_neighbors") -> int:
        if asked is None:
            return min(int(getattr(self, "n_neighbors_", 5)), most)
        if not isinstance(asked, (int, np.integer)) or isinstance(asked, bool) or asked < 1:
            msg = f"{name} must be an integer of at least 1; got {asked!r}."
            raise ValueError(msg)
        if asked > most:
            msg = (
                f"Expected {name} <= n_samples_fit, but {name} = {asked} and {most} training rows "
                f"can be neighbours. Ask for {most} or fewer."
            )
            raise ValueError(msg)
        return int(asked)
