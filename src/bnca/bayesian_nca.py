"""Bayesian Neighbourhood Component Analysis as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from bnca.blocks import Room, cut, sum_blocks
from bnca.core.anchors import Anchors
from bnca.core.bound import Statistics
from bnca.core.features import eigen_directions, scores
from bnca.core.metric import BayesianMetric
from bnca.core.solve import rough_optimum, solve
from bnca.exceptions import NeighborhoodWarning, ProjectionWarning
from bnca.neighbors import nearest
from bnca.posterior import PosteriorClassifier
from bnca.validation import gaussian_prior, training_rows

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles, Floats, Integers
    from bnca.core.bound import Curvature
    from bnca.core.solve import Evaluate, Prior, Solution

BLOCK_NUMBERS = 1 << 18
"""Feature values in a block of anchors unless block_size says otherwise: they stay in cache."""

MIN_PRODUCT_ROWS = 512
"""A block has at least about this many rows of features: thin matrix products are slow."""

AUTO_NEIGHBORS = 20
"""K when it is left to us."""

WARM_START = 5_000
"""From this many anchors on, Newton starts from the optimum over a tenth of them."""


class BayesianNCA(PosteriorClassifier):
    """Distance learned from labels, with a posterior that says how sure it is.

    A row x picks a neighbour t among the K nearest with probability proportional to exp(-d²), with
    the squared distance d² = Σ_l γ_l (v_lᵀ(x - x_t))² along the principal axes v_l.  The weights γ
    have a Gaussian prior; the log-likelihood that rows pick neighbours of their own class has a
    quadratic lower bound, so the posterior N(m_T, V_T) is Gaussian too.

    Parameters
    ----------
    n_neighbors : int, None or "auto", default="auto"
        K, the size of each row's neighbourhood in the starting space, itself not counted.  None
        takes all other rows; "auto" takes 20, or all others where there are fewer.
    basis : {"eigen"}, default="eigen"
        What the weights multiply: "eigen" has one for each principal axis, as published.
    n_components : int or None, default=None
        How many principal axes; None keeps all along which the rows vary.
    prior_mean : float or array of shape (n_weights,), default=4.0
        m0, the weights before any label is seen.  Equal weights are Euclidean distance.
    prior_variance : float or array of shape (n_weights,) or (n_weights, n_weights), default=0.1
        V0 as σI, as a diagonal, or in full.  The smaller, the closer to the prior mean.
    rescale : bool, default=True
        Whether the prior is stated in units of the data: weights are then per typical squared
        distance to a neighbour (``scale_``), so that multiplying X by a number changes no
        prediction.  False takes prior_mean and prior_variance as raw numbers, as published.
    solver : {"newton", "anderson", "published"}, default="newton"
        How the fixed point is reached.  All end at the same optimum; "published" repeats the
        published update as it stands and takes 10 to 100 times as many steps.
    max_iter : int, default=100
        Steps at most.
    tol : float, default=1e-6
        A step shorter than this, relative to the mean, ends the search.
    vote : {"posterior", "softmax", "distance", "uniform"}, default="posterior"
        How neighbours vote in `predict` and `predict_proba`: by their probability averaged over
        draws from the posterior, by their probability exp(-d²) under the mean metric (the plug-in),
        or as in plain KNN on the mean metric, by 1 / d or one vote each.
    n_voters : int or None, default=None
        How many nearest training rows vote, nearest in the mean metric; None takes K.
    n_samples : int, default=100
        T, the number of posterior draws that `predict_proba` averages over.
    duplicates : {"merge", "keep"}, default="merge"
        What becomes of training rows that are equal in all features and in their label.  "merge"
        keeps one of them and lets it count that many times as an anchor; rows of weight zero are
        left out.  A copy is always its twin's nearest neighbour, so with "keep", as published,
        copies crowd the neighbourhoods and teach nothing about distance.
    block_size : int or None, default=None
        Anchors worked on at a time by one thread; memory grows with it.  None fits the cache.
    n_jobs : int or None, default=None
        Threads; None and -1 take every core.  The result does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Seed of the posterior draws in `predict_proba`.
    verbose : int, default=0
        Whether to print each step of the fixed point.

    Attributes
    ----------
    metric_ : BayesianMetric
        Axes, and posterior mean and covariance of their weights.
    components_ : ndarray of shape (n_components, n_features)
        L of the mean metric: distances are ``|L (x - x')|``.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    n_neighbors_ : int
        K as used.
    scale_ : float
        The unit of squared distance that the prior was stated in; 1 where rescale is False.
    n_iter_ : int
        Steps taken.
    converged_ : bool
        Whether the last step was shorter than tol.
    lower_bound_ : float
        Lower bound of log-likelihood plus log prior, at the end.
    lower_bounds_ : ndarray of shape (n_iter_ + 1,)
        The same at the start and after each step; it never falls.
    pair_link_ : PairLink
        Link from distances to P(same class), used by `pair_proba`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, where X has names that are all strings.

    See Also
    --------
    sklearn.neighbors.NeighborhoodComponentsAnalysis : One metric, and no word on its certainty.

    Notes
    -----
    Weights of the posterior mean may be negative.  `transform`, `kneighbors` and
    `get_mahalanobis_matrix` set those to zero, with a `ProjectionWarning` at fit; so do the draws
    behind `predict_proba`.  `pair_distance` reports the posterior as it is.

    References
    ----------
    D. Wang and X. Tan, "Bayesian Neighbourhood Component Analysis", arXiv:1604.02354, 2016.

    Examples
    --------
    >>> from bnca import BayesianNCA
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesianNCA().fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    >>> mean, std = model.pair_distance([[X[0], X[1]], [X[0], X[-1]]], return_std=True)
    >>> bool(mean[0] < mean[1])
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "basis": [StrOptions({"eigen"})],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "prior_mean": [Real, "array-like"],
        "prior_variance": [Real, "array-like"],
        "rescale": ["boolean"],
        "solver": [StrOptions({"newton", "anderson", "published"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "vote": [StrOptions({"posterior", "softmax", "distance", "uniform"})],
        "n_voters": [Interval(Integral, 1, None, closed="left"), None],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "duplicates": [StrOptions({"merge", "keep"})],
        "block_size": [Interval(Integral, 1, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_neighbors: int | str | None = "auto",
        *,
        basis: str = "eigen",
        n_components: int | None = None,
        prior_mean: Any = 4.0,
        prior_variance: Any = 0.1,
        rescale: bool = True,
        solver: str = "newton",
        max_iter: int = 100,
        tol: float = 1e-6,
        vote: str = "posterior",
        n_voters: int | None = None,
        n_samples: int = 100,
        duplicates: str = "merge",
        block_size: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.basis = basis
        self.n_components = n_components
        self.prior_mean = prior_mean
        self.prior_variance = prior_variance
        self.rescale = rescale
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.vote = vote
        self.n_voters = n_voters
        self.n_samples = n_samples
        self.duplicates = duplicates
        self.block_size = block_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def as_published(cls, **overrides: Any) -> Self:
        """Every setting as in the paper: m0 = 0.1, V0 = 0.001 I, on the data as they come.

        Parameters
        ----------
        **overrides
            Constructor parameters to set otherwise, such as n_neighbors or n_components, for which
            the paper gives no number.

        Returns
        -------
        BayesianNCA
            Not fitted.
        """
        published: dict[str, Any] = {
            "basis": "eigen",
            "prior_mean": 0.1,
            "prior_variance": 0.001,
            "rescale": False,
            "solver": "published",
            "max_iter": 1000,
            "vote": "posterior",
            "duplicates": "keep",
        }
        return cls(**(published | overrides))

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the posterior of the metric from labelled rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts as an anchor.  Rows of weight zero teach nothing of their
            own; they still serve as neighbours where ``duplicates="keep"``.

        Returns
        -------
        BayesianNCA
            Fitted.
        """
        rows = training_rows(self, X, y, sample_weight, merge=self.duplicates == "merge")
        directions = eigen_directions(rows.X, self.n_components)
        coordinates = scores(rows.X, directions)
        lists, unit = self._neighborhoods(coordinates)
        # Scores in units of √unit make the stated prior one per unit of squared distance.
        scaled = (coordinates / np.sqrt(unit)).astype(rows.X.dtype)
        anchors = Anchors.informative(scaled, rows.codes, lists, rows.weights)
        prior = gaussian_prior(self.prior_mean, self.prior_variance, scaled.shape[1])
        solution = self._solve(anchors, prior)
        self.metric_ = BayesianMetric(
            directions.axes, solution.mean / unit, solution.covariance / unit**2
        )
        self.n_iter_ = solution.n_iter
        self.converged_ = solution.converged
        self.lower_bounds_ = np.array(solution.lower_bounds)
        self.lower_bound_ = solution.lower_bounds[-1]
        self.scale_ = unit
        self._remember_posterior(rows, coordinates, directions.center)
        return self

    def _neighborhoods(self, coordinates: Doubles) -> tuple[Integers | None, float]:
        """Neighbour lists N_i in the starting space, and the unit of squared distance."""
        others = len(coordinates) - 1
        if self.n_neighbors is None:
            k = others
        elif isinstance(self.n_neighbors, str):
            k = min(AUTO_NEIGHBORS, others)
        else:
            k = int(self.n_neighbors)
            if k > others:
                warnings.warn(
                    f"n_neighbors={k} is more than the {others} other training rows; "
                    f"using {others}. Pass n_neighbors=None to ask for all of them.",
                    NeighborhoodWarning,
                    stacklevel=4,
                )
                k = others
        self.n_neighbors_ = k
        if self.n_neighbors is None:
            # The mean over all other rows has a closed form, and no list is ever written.
            square = np.einsum("ij,ij->i", coordinates, coordinates)
            typical = (len(coordinates) * square + square.sum()) / others
            lists = None
        else:
            lists, squared = nearest(coordinates, k, n_jobs=self.n_jobs)
            typical = squared.mean(axis=1)
        unit = float(np.median(typical)) if self.rescale else 1.0
        return lists, unit if unit > 0 else 1.0

    def _solve(self, anchors: Anchors, prior: Prior) -> Solution:
        """Posterior of the weights, with a word where something had to give way."""
        if self.verbose:
            print(f"[{type(self).__name__}] {len(anchors)} anchors, K = {self.n_neighbors_}")
        start = None
        if self.solver == "newton" and len(anchors) >= WARM_START:
            # The optimum over a tenth of the anchors is a few per cent away from the whole one.
            sample = self._evaluator(anchors.every(10), len(prior.mean))
            start = rough_optimum(sample, prior)
        solution = solve(
            self._evaluator(anchors, len(prior.mean)),
            prior,
            solver=self.solver,  # type: ignore[arg-type]
            tol=self.tol,
            max_iter=self.max_iter,
            start=start,
            callback=self._report if self.verbose else None,
        )
        if not solution.converged:
            warnings.warn(
                f"The fixed point did not converge in max_iter={self.max_iter} steps: the last one "
                f"changed the mean by {solution.last_step:.1e}, more than tol={self.tol:g}. "
                "Increase max_iter or tol, or decrease prior_variance.",
                ConvergenceWarning,
                stacklevel=4,
            )
        negative = np.count_nonzero(solution.mean < 0)
        if negative:
            warnings.warn(
                f"{negative} of {len(solution.mean)} weights of the posterior mean are negative; "
                "they are set to zero where a metric is needed. A smaller prior_variance keeps "
                "weights nearer to their prior mean.",
                ProjectionWarning,
                stacklevel=4,
            )
        return solution

    def _evaluator(self, anchors: Anchors, p: int) -> Evaluate:
        """Sum the statistics of anchors over blocks, on threads."""
        k = self.n_neighbors_
        size = self.block_size or max(1, max(BLOCK_NUMBERS, MIN_PRODUCT_ROWS * p) // (k * p))
        blocks = cut(len(anchors), size)
        room = Room(min(size, len(anchors)) * k * p, anchors.scores.dtype)

        def evaluate(mean: Doubles, curvature: Curvature) -> Statistics:
            if not blocks:  # no row has a neighbour of its own class: the prior is all there is
                return Statistics(0.0, np.zeros(p), np.zeros((p, p)))

            def work(part: slice, room: Floats) -> Statistics:
                return anchors.statistics(part, mean, curvature, room)

            return sum_blocks(work, blocks, self.n_jobs, room)

        return evaluate

    def _report(self, step: int, bound: float, length: float) -> None:
        name = type(self).__name__
        print(f"[{name}] step {step:4d}   lower bound {bound:.6f}   change {length:.1e}")
