"""The metric of `BML` from labelled rows."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from bnca.core import pairs as core
from bnca.core.features import eigen_directions, scores
from bnca.posterior import PosteriorClassifier
from bnca.rivals._pair_model import PairModel
from bnca.validation import training_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from bnca.core.arrays import Doubles, Integers


class SupervisedBML(PairModel, PosteriorClassifier):
    """Distance learned from labelled rows by whether pairs of them are of one class.

    What `BML` learns from pairs, learned from all pairs of rows or from a sample of them, and a
    classifier by nearest training rows, like `BayesianNCA`.

    Parameters
    ----------
    n_pairs : int or None, default=None
        How many pairs of training rows to draw; None takes all n (n - 1) / 2, as do numbers larger
        than that.
    n_components : int or None, default=None
        How many principal axes; None keeps all along which the rows vary.
    prior_mean : float or array of shape (n_weights,), default=1.0
        Weights before any label is seen.  Equal weights are Euclidean distance.
    prior_variance : float or array of shape (n_weights,) or (n_weights, n_weights), default=3.0
        Their covariance as σI, as a diagonal, or in full.  The smaller, the closer to the prior
        mean.
    threshold_mean : float or None, default=None
        Threshold before any label is seen.  None takes the mean squared distance of two rows under
        the prior mean.  Like squared distances times weights, it has no unit.
    threshold_variance : float, default=100.0
        Its variance.
    factorized : bool, default=False
        Whether weights and threshold are held independent of each other in the posterior.
    rescale : bool, default=True
        Whether the prior is stated in units of the data: weights are then per typical squared
        distance of two rows (``scale_``), so that multiplying X by a number changes no prediction.
        False takes prior_mean and prior_variance as raw numbers.
    solver : {"newton", "published"}, default="newton"
        How the fixed point is reached.  Both end at the same one; "published" repeats the published
        update as it stands and takes about ten times as many steps.
    max_iter : int, default=100
        Steps at most.
    tol : float, default=1e-6
        A step that changes the mean, and each standard deviation, by less than this share ends the
        search.
    vote : {"posterior", "softmax", "distance", "uniform"}, default="posterior"
        How neighbours vote in `predict` and `predict_proba`: by their probability averaged over
        draws from the posterior, by their probability exp(-d²) under the mean metric, or as in
        plain KNN on the mean metric, by 1 / d or one vote each.
    n_voters : int or None, default=None
        How many nearest training rows vote; None takes 5.
    n_samples : int, default=100
        Number of posterior draws that `predict_proba` averages over.
    n_jobs : int or None, default=None
        Threads; None and -1 take every core.  The result does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Seed of the pairs drawn in `fit` and of the posterior draws in `predict_proba`.
    callback : callable or None, default=None
        Called as ``callback(step, components, lower_bound)`` after each step.
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
    margin_mean_ : ndarray of shape (n_weights + 1,)
        Posterior mean of all weights and, last, the threshold.
    margin_covariance_ : ndarray of shape (n_weights + 1, n_weights + 1)
        Their covariance.
    n_pairs_ : int
        Number of pairs learned from.
    scale_ : float
        The unit of squared distance that the prior was stated in; 1 where rescale is False.
    n_iter_ : int
        Steps taken.
    converged_ : bool
        Whether the last step was shorter than tol.
    lower_bound_ : float
        Lower bound of the log evidence, at the end.
    lower_bounds_ : ndarray of shape (`n_iter_` + 1,)
        The same at the start and after each step; it never falls.
    pair_link_ : PairLink
        Probit link from distances to P(same class), for uses that know distances only.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, where X has names that are all strings.

    See Also
    --------
    BML : The same from labelled pairs, with a say in which pairs to label.
    bnca.BayesianNCA : Learns from neighbourhoods instead of pairs.

    Notes
    -----
    Rows that are equal in features and label are merged, and count that many times.

    A row is in n - 1 pairs, which the model takes for that many independent observations; its
    posterior is accordingly sure of itself.

    References
    ----------
    L. Yang, R. Jin and R. Sukthankar, "Bayesian Active Distance Metric Learning", UAI, 2007.

    Examples
    --------
    >>> from bnca.rivals import SupervisedBML
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SupervisedBML(prior_variance=0.2).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_pairs": [Interval(Integral, 2, None, closed="left"), None],
        **PairModel.pair_constraints,
        "vote": [StrOptions({"posterior", "softmax", "distance", "uniform"})],
        "n_voters": [Interval(Integral, 1, None, closed="left"), None],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_pairs: int | None = None,
        *,
        n_components: int | None = None,
        prior_mean: Any = 1.0,
        prior_variance: Any = 3.0,
        threshold_mean: float | None = None,
        threshold_variance: float = 100.0,
        factorized: bool = False,
        rescale: bool = True,
        solver: str = "newton",
        max_iter: int = 100,
        tol: float = 1e-6,
        vote: str = "posterior",
        n_voters: int | None = None,
        n_samples: int = 100,
        n_jobs: int | None = None,
        random_state: Any = 0,
        callback: Callable[[int, Doubles, float], None] | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_pairs = n_pairs
        self.n_components = n_components
        self.prior_mean = prior_mean
        self.prior_variance = prior_variance
        self.threshold_mean = threshold_mean
        self.threshold_variance = threshold_variance
        self.factorized = factorized
        self.rescale = rescale
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.vote = vote
        self.n_voters = n_voters
        self.n_samples = n_samples
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the posterior of metric and threshold from labelled rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts: a pair counts as often as the product says.

        Returns
        -------
        SupervisedBML
            Fitted.
        """
        rows = training_rows(self, X, y, sample_weight, merge=True)
        if len(rows.classes) < 2:
            msg = (
                f"{type(self).__name__} needs rows of at least two classes, to see pairs that are "
                "alike and pairs that are not; y has one class."
            )
            raise ValueError(msg)
        directions = eigen_directions(rows.X, self.n_components)
        coordinates = scores(rows.X, directions)
        unit = self._unit(coordinates)
        scaled = core.with_room(coordinates / np.sqrt(unit)).astype(rows.X.dtype)
        source = core.RowPairs(scaled, rows.codes, rows.weights, self._drawn(rows.codes))
        self.n_pairs_ = len(source)
        average = 2 * coordinates.var(axis=0, ddof=1) / unit
        self._fit_posterior(source, directions, average, unit)
        self._remember_posterior(rows, coordinates, directions.center)
        return self

    def _drawn(self, codes: Integers) -> Integers | None:
        """Numbers of the pairs to learn from; None stands for all."""
        n = len(codes)
        total = n * (n - 1) // 2
        if self.n_pairs is None or self.n_pairs >= total:
            return None
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        drawn = np.random.default_rng(seed).choice(total, self.n_pairs, replace=False)
        drawn.sort()
        first, second = core.members(drawn, n)
        same = int(np.count_nonzero(codes[first] == codes[second]))
        if same in {0, len(drawn)}:
            msg = (
                f"All of the n_pairs={self.n_pairs} pairs drawn are of "
                f"{'one class' if same else 'different classes'}; both kinds are needed. Increase "
                "n_pairs, or leave it at None to take all pairs."
            )
            raise ValueError(msg)
        return np.asarray(drawn, dtype=np.intp)
