"""Principal components and nearest neighbours: the distance that no label has touched."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.decomposition import PCA
from sklearn.utils._param_validation import Interval, StrOptions

from bnca.base import MetricLearner
from bnca.core.features import eigen_directions, scores
from bnca.validation import training_rows

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles, Rows


class PCAMetric(MetricLearner):
    """Euclidean distance along the leading principal axes, with votes of the nearest rows.

    Labels are used for the votes only.  It is what a learned metric has to beat.

    Parameters
    ----------
    n_components : int or None, default=None
        How many principal axes; None keeps all, which is plain Euclidean distance.
    whiten : bool, default=False
        Whether each axis counts in units of its standard deviation.  Axes along which the rows do
        not vary then count nothing.
    vote : {"uniform", "distance", "softmax"}, default="uniform"
        How neighbours vote: one vote each, 1 / d, or in proportion to exp(-d²).
    n_voters : int, default=5
        How many nearest training rows vote.
    n_jobs : int or None, default=None
        Threads of the neighbour search; None and -1 take every core.
    random_state : int, RandomState instance or None, default=0
        Seed of scikit-learn's randomised solver, which it takes for a few axes of a large table.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        L: distances are ``|L (x - x')|``.
    explained_variance_ : ndarray of shape (n_components,)
        Variance of the training rows along each axis.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, where X has names that are all strings.

    See Also
    --------
    sklearn.decomposition.PCA : Finds the axes.

    Notes
    -----
    Sparse rows are never made dense: their axes are the same, by another road.

    Examples
    --------
    >>> from bnca.rivals import PCAMetric
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PCAMetric(n_components=2).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "whiten": ["boolean"],
        "vote": [StrOptions({"uniform", "distance", "softmax"})],
        "n_voters": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        whiten: bool = False,
        vote: str = "uniform",
        n_voters: int = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.whiten = whiten
        self.vote = vote
        self.n_voters = n_voters
        self.n_jobs = n_jobs
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Find the principal axes of the rows, and keep the rows and labels as voters.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        PCAMetric
            Fitted.
        """
        rows = training_rows(self, X, y)
        most = min(rows.X.shape)
        if self.n_components is not None and self.n_components > most:
            msg = (
                f"n_components must be at most min(n_samples, n_features) = {most}; "
                f"got {self.n_components}. None keeps all axes."
            )
            raise ValueError(msg)
        axes, variance = self._principal_axes(rows.X)
        if self.whiten:
            # A variance that is rounding of the largest one is none at all.
            floor = variance.max() * max(rows.X.shape) * np.finfo(np.float64).eps
            varies = variance > floor
            axes = np.where(varies, 1 / np.sqrt(np.where(varies, variance, 1)), 0)[:, None] * axes
        self.components_ = axes.astype(rows.X.dtype)
        self.explained_variance_ = variance
        self._remember(rows)
        return self

    def _principal_axes(self, X: Rows) -> tuple[Doubles, Doubles]:
        """Axes (n_components, d), and the variance of the rows along each."""
        if isinstance(X, np.ndarray):
            pca = PCA(self.n_components, random_state=self.random_state)
            pca.fit(X.astype(np.float64, copy=False))
            return pca.components_, pca.explained_variance_
        directions = eigen_directions(X, self.n_components)
        return directions.axes.T, scores(X, directions).var(axis=0, ddof=1)
