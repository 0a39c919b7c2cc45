"""Bayesian Neighbourhood Component Analysis as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from bnca.blocks import one_blas_thread
from bnca.core.averaging import FLIP_RATES
from bnca.core.features import Directions, eigen_directions, scores
from bnca.core.flips import class_flips
from bnca.core.metric import BayesianMetric, eigenvalues
from bnca.ensemble import Ensemble, gather
from bnca.exceptions import NeighborhoodWarning, ProjectionWarning
from bnca.learning import Learned, Learning, learn
from bnca.posterior import PosteriorClassifier
from bnca.selection import DOUBTFUL, GIVEN, center_map, choose, turned
from bnca.validation import query_rows, training_rows
from bnca.votes import Rows

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles
    from bnca.selection import Choice
    from bnca.validation import TrainingRows

AUTO_NEIGHBORS = 20
"""K when it is left to us."""

AUTO_COMPONENTS = 200
"""Principal axes kept at most, when their number is left to us."""

SMALL = 1e9
"""Products of a scatter up to which its sum takes one thread: waking BLAS's others takes longer."""

FULL_COMPONENTS = 60
"""The same for the full matrix, which has a weight for each product of two: 1,830 then."""

LEADING = 12
"""Coordinates that are full in the basis "leading"."""

LEADING_COORDINATES = 64
"""Coordinates that have a weight in the basis "leading"."""

AUTO_VARIANCES = {"picks": (0.3, 3.0), "product": (0.01, 0.1, 1.0)}
"""Prior variances to choose from, by likelihood."""

PUBLISHED_IN_UNITS: dict[str, Any] = {
    "prior_center": "euclidean",
    "prior_variance": 0.1,
    "label_noise": 0.0,
    "vote": "posterior",
}
"""What "auto" stands for in the published model: the paper leaves nothing to be chosen."""

AUTO_CENTERS: tuple[str | float, ...] = ("euclidean", "scaled", 0.3, "ledoit-wolf")
"""Centres of the prior to choose from."""


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
    basis : {"leading", "full", "eigen"}, default="leading"
        What the weights multiply.  "eigen" has one for each principal axis, as published; "full"
        one for each product of two coordinates, which is the whole symmetric matrix; "leading" is
        the whole matrix in the 12 coordinates that tell classes apart best, and one weight for each
        of up to 52 further ones.
    n_components : int or None, default=None
        How many principal axes; None keeps all along which the rows vary, but at most 200 in the
        basis "leading" and 60 in the basis "full".
    prior_center : {"auto", "euclidean", "scaled", "ledoit-wolf"} or float, default="auto"
        The distance that the prior is centred on: Euclidean; with each column divided by its spread
        within classes; or that of the scatter within classes, shrunk towards a sphere by a number
        between 0 and 1 (1 is Euclidean) or by Ledoit and Wolf's formula.  "auto" chooses.
    prior_mean : float or array of shape (n_weights,), default=4.0
        m0, the weights before any label is seen.  A number stands for equal weights.
    prior_variance : "auto", float or array of shape (n_weights,) or (n_weights, n_weights), \
default="auto"
        V0 as σI, as a diagonal, or in full.  The smaller, the closer to the prior mean.  "auto"
        chooses.
    likelihood : {"auto", "picks", "product"}, default="auto"
        What is maximised: that each row picks a neighbour of its own class, or the published
        product over all such neighbours.  "auto" is the product in the basis "eigen", and then all
        else that is "auto" is as published too, with a prior in units of the data and nothing left
        to choose; in other bases it is picks.
    curvature : {"auto", "bohning", "exact", "votes", "tempered"}, default="auto"
        What the covariance is the inverse of: the bound's curvature, as published; the exact
        Hessian at the mean; the Hessian when same-class neighbours share the one vote of their
        row; or the bound's curvature divided by their average number.  "auto" is "exact" for
        picks, which know no other, and "bohning" for the product.  With picks the square of the
        way from mode to mean is added, and no direction is much wider than under the prior.
    label_noise : "auto" or float, default="auto"
        Share of labels that are wrong; "auto" estimates it.
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
    vote : {"auto", "smooth", "posterior", "softmax", "distance", "uniform"}, default="auto"
        Who votes in `predict` and `predict_proba`.  "smooth": all rows, smoothed and calibrated, in
        the metrics that foretold held-out labels best, each as far as it did.  Otherwise nearest
        neighbours: by their probability averaged over draws from the posterior, by their
        probability exp(-d²) under the mean metric (the plug-in), or as in plain KNN on the mean
        metric, by 1 / d or one vote each.  "auto" is "smooth", or "posterior" in the published
        model.
    n_voters : int or None, default=None
        How many nearest training rows vote, nearest in the mean metric; None takes K.  Not used
        by the smooth vote.
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
    label_noise_ : float
        Share of labels that are wrong, as given or estimated.
    label_posterior_ : ndarray of shape (n_samples, n_classes)
        Probability of each class being the true one of each row passed to `fit`, given what the
        other rows say and its label, unless its weight is zero.  Not where nothing was left to
        choose.
    label_flips_ : ndarray of shape (n_classes, n_classes)
        Probability that a row of one class (row) was given the label of another (column): the same
        for all pairs where rows are few, and a confusion that occurs again and again stands out.
        Not where nothing was left to choose.
    choices_ : list of dict
        Metrics that were tried, best first: center, variance (None is the centre itself) and
        held_out_loss, the mean negative log probability of labels held out.
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
    The mean metric may have negative weights (eigenvalues).  `transform`, `kneighbors` and
    `get_mahalanobis_matrix` set those to zero, with a `ProjectionWarning` at fit where the prior
    variance was given (where it was chosen, it was chosen by metrics so projected); so do the draws
    behind `predict_proba`.  `pair_distance` reports the posterior as it is.

    With ``vote="smooth"``, `predict_proba` averages over metrics and votes by how well they
    foretold held-out labels; ``metric_``, and all that speaks of distances, is the best of those
    metrics that were learned.  What is chosen is chosen on at most about 1,000 rows.

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
        "basis": [StrOptions({"leading", "full", "eigen"})],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "prior_center": [
            StrOptions({"auto", "euclidean", "scaled", "ledoit-wolf"}),
            Interval(Real, 0, 1, closed="right"),
        ],
        "prior_mean": [Real, "array-like"],
        "prior_variance": [StrOptions({"auto"}), Real, "array-like"],
        "likelihood": [StrOptions({"auto", "picks", "product"})],
        "curvature": [StrOptions({"auto", "bohning", "exact", "votes", "tempered"})],
        "label_noise": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left")],
        "rescale": ["boolean"],
        "solver": [StrOptions({"newton", "anderson", "published"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "vote": [StrOptions({"auto", "smooth", "posterior", "softmax", "distance", "uniform"})],
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
        basis: str = "leading",
        n_components: int | None = None,
        prior_center: str | float = "auto",
        prior_mean: Any = 4.0,
        prior_variance: Any = "auto",
        likelihood: str = "auto",
        curvature: str = "auto",
        label_noise: str | float = "auto",
        rescale: bool = True,
        solver: str = "newton",
        max_iter: int = 100,
        tol: float = 1e-6,
        vote: str = "auto",
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
        self.prior_center = prior_center
        self.prior_mean = prior_mean
        self.prior_variance = prior_variance
        self.likelihood = likelihood
        self.curvature = curvature
        self.label_noise = label_noise
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
            "prior_center": "euclidean",
            "prior_mean": 0.1,
            "prior_variance": 0.001,
            "likelihood": "product",
            "curvature": "bohning",
            "label_noise": 0.0,
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
        small = rows.X.size * rows.X.shape[1] <= SMALL
        with one_blas_thread() if small else nullcontext():
            self._fit(rows)
        return self

    def _fit(self, rows: TrainingRows) -> None:
        """Rows, labels → basis → neighbours → blocks → statistics → solution → metric."""
        directions = eigen_directions(rows.X, self._n_axes())
        coordinates = scores(rows.X, directions)
        voters = _voters(rows, coordinates, directions)
        how = self._how(len(coordinates), coordinates.shape[1])
        settled = self._settle(voters, replace(how, n_classes=voters.n_classes))
        left_out = scores(rows.left_out, directions)
        truth = self._label_posterior(rows, voters, settled, coordinates, left_out)
        L = self._basis(voters, settled)
        if L is not None:
            coordinates = coordinates @ L
        learned = self._learn(coordinates, rows, settled.how, truth)
        axes = directions.axes if L is None else directions.axes @ L
        self.metric_ = BayesianMetric(axes, learned.mean, learned.covariance, learned.full)
        self.n_iter_ = learned.solution.n_iter
        self.converged_ = learned.solution.converged
        self.lower_bounds_ = np.array(learned.solution.lower_bounds)
        self.lower_bound_ = learned.solution.lower_bounds[-1]
        self.scale_ = learned.unit
        self._ensemble = self._gather(voters, settled)
        self._learning, self._truth = (
            settled.how,
            truth,
        )  # what the posterior can be checked against
        self._axes = directions
        self._remember_posterior(rows, coordinates, directions.center)

    def predict_proba(self, X: Any) -> Doubles:
        """Class probabilities, averaged over metrics: as many as foretold held-out labels well.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Probabilities of the true label, columns in the order of ``classes_``.  With
            ``vote="posterior"`` averaged over the posterior of the one metric (eq. 29), with
            "softmax" those of its mean (eq. 8); "distance" and "uniform" are plain KNN on it.
        """
        check_is_fitted(self)
        vote = self._stated().vote
        if vote != "smooth":
            voting = copy(self)
            voting.vote = vote
            return super(BayesianNCA, voting).predict_proba(X)
        X = query_rows(self, X)
        self._check_k(self.n_voters, len(self._embedding), "n_voters")
        if self._ensemble is None:
            if len(self.classes_) > 1:
                msg = "vote='smooth' learns in fit, which had another vote: fit again, or set that."
                raise ValueError(msg)
            return np.ones((X.shape[0], 1))
        return self._ensemble.probabilities(scores(X, self._axes), self.n_jobs)

    def _n_axes(self) -> int | None:
        """How many principal axes to look for."""
        if self.n_components is not None or self.basis == "eigen":
            return self.n_components
        return FULL_COMPONENTS if self.basis == "full" else AUTO_COMPONENTS

    def _stated(self) -> Stated:
        """Settings as they are given, "auto" being replaced where it stands for one value."""
        likelihood = self.likelihood
        if likelihood == "auto":
            likelihood = "product" if self.basis == "eigen" else "picks"
        published = self.basis == "eigen" and likelihood == "product"
        meant = PUBLISHED_IN_UNITS if published else {"vote": "smooth"}

        def value(name: str) -> Any:
            given = getattr(self, name)
            return meant.get(name, given) if isinstance(given, str) and given == "auto" else given

        return Stated(
            likelihood,
            value("prior_center"),
            value("prior_variance"),
            value("label_noise"),
            value("vote"),
        )

    def _how(self, n: int, q: int) -> Learning:
        """Settings of what is learned, as far as they are given."""
        stated = self._stated()
        curvature = self.curvature
        if curvature == "auto":
            curvature = "exact" if stated.likelihood == "picks" else "bohning"
        elif stated.likelihood == "picks" and curvature != "exact":
            msg = (
                f"curvature={self.curvature!r} needs likelihood='product', whose bound it belongs "
                "to; with likelihood='picks' it may be 'exact' or 'auto'."
            )
            raise ValueError(msg)
        if self.solver != "newton" and stated.likelihood == "picks":
            msg = (
                f"solver={self.solver!r} needs likelihood='product', whose bound it climbs; with "
                "likelihood='picks' it must be 'newton'."
            )
            raise ValueError(msg)
        return Learning(
            n_neighbors=self._neighborhood_size(n - 1),
            full={"eigen": 0, "full": q, "leading": LEADING}[self.basis],
            prior_mean=self.prior_mean,
            prior_variance=stated.variance,
            likelihood=stated.likelihood,
            curvature=curvature,
            flip_rate=0.0 if isinstance(stated.noise, str) else float(stated.noise),
            coordinates=LEADING_COORDINATES if self.basis == "leading" else None,
            rescale=self.rescale,
            solver=self.solver,
            max_iter=self.max_iter,
            tol=self.tol,
            block_size=self.block_size,
            n_jobs=self.n_jobs,
        )

    def _neighborhood_size(self, others: int) -> int | None:
        """K, and ``n_neighbors_``, which counts all others where K is None."""
        if self.n_neighbors is None:
            self.n_neighbors_ = others
            return None
        if isinstance(self.n_neighbors, str):
            k = min(AUTO_NEIGHBORS, others)
        else:
            k = int(self.n_neighbors)
            if k > others:
                warnings.warn(
                    f"n_neighbors={k} is more than the {others} other training rows; "
                    f"using {others}. Pass n_neighbors=None to ask for all of them.",
                    NeighborhoodWarning,
                    stacklevel=6,
                )
                k = others
        self.n_neighbors_ = k
        return k

    def _settle(self, voters: Rows, how: Learning) -> Settled:
        """Choose what was left to choose."""
        stated = self._stated()
        open_center = isinstance(stated.center, str) and stated.center == "auto"
        open_variance = isinstance(stated.variance, str)
        open_noise = isinstance(stated.noise, str)
        center = "euclidean" if open_center else stated.center
        variance = AUTO_VARIANCES[stated.likelihood][0] if open_variance else stated.variance
        undecided = open_center or open_variance or open_noise or stated.vote == "smooth"
        if not undecided or voters.n_classes < 2 or len(voters.codes) < 3:
            self.label_noise_ = how.flip_rate
            self.choices_: list[dict[str, Any]] = []
            return Settled(replace(how, prior_variance=variance), center, None)
        choice = choose(
            voters,
            how,
            AUTO_CENTERS if open_center else [center],
            AUTO_VARIANCES[stated.likelihood] if open_variance else [GIVEN],
            FLIP_RATES if open_noise else (how.flip_rate,),
        )
        flip_rate = choice.weighed.flip_rate if open_noise else how.flip_rate
        self.label_noise_ = flip_rate
        self.choices_ = [
            {"center": start.center, "variance": start.variance, "held_out_loss": loss}
            for start, loss in sorted(choice.losses.items(), key=lambda item: item[1])
        ]
        best = choice.best
        how = replace(
            how,
            prior_variance=best.variance if open_variance else stated.variance,
            flip_rate=flip_rate,
        )
        return Settled(how, best.center, choice)

    def _label_posterior(
        self,
        rows: TrainingRows,
        voters: Rows,
        settled: Settled,
        coordinates: Doubles,
        left_out: Doubles,
    ) -> Doubles | None:
        """Set what is known of labels; return it for distinct rows, where labels are doubtful."""
        choice, flip_rate = settled.choice, settled.how.flip_rate
        if choice is None:
            for of_earlier_fit in ("label_posterior_", "label_flips_"):
                self.__dict__.pop(of_earlier_fit, None)
            return None
        clean, silent = choice.clean, rows.weights == 0
        unseen = np.isnan(clean[:, 0])
        # Rows that were not needed to choose on, and those whose label does not count: the others
        # speak of them.
        asked = np.vstack([voters.coordinates[unseen], coordinates[silent], left_out])
        said = np.empty((0, voters.n_classes))
        if len(asked):
            spoken = gather(voters.take(np.flatnonzero(~unseen)), choice, settled.how)
            said = spoken.probabilities(asked, self.n_jobs)
        ends = np.cumsum([unseen.sum(), silent.sum()])
        clean[unseen], of_silent, of_left_out = np.split(said, ends)
        known = np.empty((len(silent), voters.n_classes))
        flips = class_flips(clean, voters.labels, voters.weights, flip_rate)
        known[~silent] = flips.truth
        self.label_flips_ = flips.rates
        known[silent] = of_silent
        self.label_posterior_ = known[rows.twin]
        self.label_posterior_[rows.twin < 0] = of_left_out
        return known if flip_rate > DOUBTFUL else None

    def _basis(self, voters: Rows, settled: Settled) -> Doubles | None:
        """Map (q, r) from principal coordinates to those that get weights; None is the identity."""
        if settled.center == "euclidean" and settled.how.coordinates is None:
            return None
        L = center_map(voters, settled.center)
        return L @ turned(voters, L, settled.how)

    def _gather(self, voters: Rows, settled: Settled) -> Ensemble | None:
        """Let the chosen ways of voting learn from all rows, if they are to vote."""
        if settled.choice is None or self._stated().vote != "smooth":
            return None
        return gather(voters, settled.choice, settled.how)

    def _learn(
        self, coordinates: Doubles, rows: TrainingRows, how: Learning, truth: Doubles | None
    ) -> Learned:
        """Posterior of the weights, with a word where something had to give way."""
        if self.verbose:
            print(f"[{type(self).__name__}] {len(coordinates)} rows, K = {self.n_neighbors_}")
        learned = learn(
            coordinates,
            rows.codes,
            rows.weights,
            how,
            truth,
            dtype=rows.X.dtype,
            callback=self._report if self.verbose else None,
        )
        solution = learned.solution
        if not solution.converged:
            warnings.warn(
                f"The fixed point did not converge in max_iter={self.max_iter} steps: the last one "
                f"changed the mean by {solution.last_step:.1e}, more than tol={self.tol:g}. "
                "Increase max_iter or tol, or decrease prior_variance.",
                ConvergenceWarning,
                stacklevel=5,
            )
        negative = np.count_nonzero(eigenvalues(learned.mean, learned.full) < 0)
        if negative and not isinstance(self._stated().variance, str):
            warnings.warn(
                f"{negative} of the weights of the posterior mean are negative; "
                "they are set to zero where a metric is needed. A smaller prior_variance keeps "
                "weights nearer to their prior mean.",
                ProjectionWarning,
                stacklevel=5,
            )
        return learned

    def _report(self, step: int, bound: float, length: float) -> None:
        name = type(self).__name__
        print(f"[{name}] step {step:4d}   lower bound {bound:.6f}   change {length:.1e}")


class Stated(NamedTuple):
    """Settings without "auto" where it stands for one value, as parameters have them."""

    likelihood: str
    center: str | float
    variance: Any
    noise: str | float
    vote: str


class Settled(NamedTuple):
    """Settings with nothing left to choose.

    Attributes
    ----------
    how : Learning
        How the metric is learned.
    center : str or float
        Centre of its prior.
    choice : Choice or None
        What was chosen, if anything was.
    """

    how: Learning
    center: str | float
    choice: Choice | None


def _voters(rows: TrainingRows, coordinates: Doubles, directions: Directions) -> Rows:
    """Rows of positive weight, as those that vote and that settings are chosen on."""
    kept = np.flatnonzero(rows.weights > 0)
    return Rows(
        coordinates[kept],
        directions.axes,
        rows.codes[kept],
        rows.weights[kept],
        len(rows.classes),
    )
