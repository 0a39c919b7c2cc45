"""Bayesian distance metric learning from labelled pairs, and which pair to label next."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.metrics import roc_auc_score
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from bnca.core import pairs as core
from bnca.core.features import eigen_directions, scores
from bnca.core.margins import most_informative
from bnca.core.predictive import PairLink
from bnca.rivals._pair_model import PairModel, need_both, pair_labels, training_pairs
from bnca.rivals._supervised_bml import SupervisedBML
from bnca.validation import row_tuples

if TYPE_CHECKING:
    from collections.abc import Callable

    from bnca.core.arrays import Doubles, Integers

__all__ = ["BML", "SupervisedBML"]

STRATEGIES = ("reduction", "information", "entropy")

LOGISTIC_TO_PROBIT = 1.702
"""σ(x) is within 0.01 of Φ(x / 1.702)."""


class BML(PairModel, ClassifierMixin, BaseEstimator):
    """Distance learned from pairs that are labelled alike or different, with its uncertainty.

    Two rows are of one class with probability P(y) = 1 / (1 + exp(y (γᵀw - μ))), where γᵀw is their
    squared distance, w_l = (v_lᵀ(x - x'))² along the principal axes v_l.  Weights γ and threshold μ
    have Gaussian priors; a quadratic bound of the logistic function makes their posterior
    Gaussian.  `query` says which pairs to have labelled next.

    Parameters
    ----------
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
        Whether weights and threshold are held independent of each other in the posterior.  They are
        not: large distances and a large threshold explain the same labels.
    rescale : bool, default=True
        Whether the prior is stated in units of the data: weights are then per typical squared
        distance of two rows (``scale_``), so that multiplying rows by a number changes no
        prediction.  False takes prior_mean and prior_variance as raw numbers.
    solver : {"newton", "published"}, default="newton"
        How the fixed point is reached.  Both end at the same one; "published" repeats the published
        update as it stands and takes about ten times as many steps.
    max_iter : int, default=100
        Steps at most.
    tol : float, default=1e-6
        A step that changes the mean, and each standard deviation, by less than this share ends the
        search.
    n_jobs : int or None, default=None
        Threads; None and -1 take every core.  The result does not depend on it.
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
    threshold_ : float
        Squared distance up to which `predict` calls a pair alike; the posterior mean of μ unless
        `set_threshold` or `calibrate_threshold` changed it.
    margin_mean_ : ndarray of shape (n_weights + 1,)
        Posterior mean of all weights and, last, the threshold.
    margin_covariance_ : ndarray of shape (n_weights + 1, n_weights + 1)
        Their covariance.
    classes_ : ndarray of shape (2,)
        -1 and +1.
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
        Probit link close to the learned logistic one, for uses that know distances only.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    SupervisedBML : The same from labelled rows.

    References
    ----------
    L. Yang, R. Jin and R. Sukthankar, "Bayesian Active Distance Metric Learning", UAI, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from bnca.rivals import BML
    >>> from sklearn.datasets import load_iris
    >>> X, labels = load_iris(return_X_y=True)
    >>> left, right = np.random.default_rng(0).integers(0, 150, (2, 300))
    >>> pairs = X[np.column_stack([left, right])]
    >>> y = np.where(labels[left] == labels[right], 1, -1)
    >>> model = BML().fit(pairs[:100], y[:100], rows=X)
    >>> bool(model.score(pairs[100:], y[100:]) > 0.9)
    True
    >>> model.query(pairs[100:], 3).shape
    (3,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**PairModel.pair_constraints}

    def __init__(
        self,
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
        n_jobs: int | None = None,
        callback: Callable[[int, Doubles, float], None] | None = None,
        verbose: int = 0,
    ) -> None:
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
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, pairs: Any, y: Any, sample_weight: Any = None, *, rows: Any = None) -> Self:
        """Learn the posterior of metric and threshold from labelled pairs.

        Parameters
        ----------
        pairs : array-like of shape (n, 2, n_features)
            Pairs of rows.
        y : array-like of shape (n,)
            +1 for pairs that are alike, -1 for pairs that are not.
        sample_weight : array-like of shape (n,), default=None
            How often each pair counts.
        rows : array-like or sparse matrix of shape (n_rows, n_features), default=None
            Rows, labelled or not, whose principal axes are the basis and whose distances set the
            unit.  None takes the rows in `pairs`.  Give all there are where pairs are few, or where
            fits to more and more pairs are to be compared.

        Returns
        -------
        BML
            Fitted.
        """
        pairs, sign, weights = training_pairs(self, pairs, y, sample_weight)
        if rows is None:
            rows = pairs.reshape(-1, pairs.shape[2])
        else:
            rows = check_array(
                rows,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_min_samples=2,
                input_name="rows",
            )
            if rows.shape[1] != pairs.shape[2]:
                msg = (
                    f"rows have {rows.shape[1]} features, but those in pairs have "
                    f"{pairs.shape[2]}. Give rows of the same kind."
                )
                raise ValueError(msg)
        directions = eigen_directions(rows, self.n_components)
        coordinates = scores(rows, directions)
        unit = self._unit(coordinates)
        average = 2 * coordinates.var(axis=0, ddof=1) / unit
        left, right = (scores(pairs[:, side], directions) for side in (0, 1))
        differences = core.with_room((left - right) / np.sqrt(unit)).astype(pairs.dtype)
        source = core.GivenPairs(differences, sign, weights)
        self._fit_posterior(source, directions, average, unit)
        self.components_ = self.metric_.components().astype(pairs.dtype)
        self.classes_ = np.array([-1, 1])
        self.threshold_ = float(self.margin_mean_[-1])
        self.pair_link_ = PairLink(self.threshold_ / LOGISTIC_TO_PROBIT, 1 / LOGISTIC_TO_PROBIT)
        return self

    def decision_function(self, pairs: Any) -> Doubles:
        """Margin of each pair: threshold less squared distance, positive for pairs that are alike.

        Parameters
        ----------
        pairs : array-like of shape (n, 2, n_features)
            Pairs of rows.

        Returns
        -------
        ndarray of shape (n,)
            Margins.
        """
        check_is_fitted(self)
        return np.asarray(self.threshold_ - self.pair_distance(pairs))

    def predict(self, pairs: Any) -> Integers:
        """Whether the rows of each pair are alike (+1) or not (-1).

        Parameters
        ----------
        pairs : array-like of shape (n, 2, n_features)
            Pairs of rows.

        Returns
        -------
        ndarray of shape (n,)
            +1 where the squared distance is at most ``threshold_``.
        """
        return np.where(self.decision_function(pairs) >= 0, 1, -1)

    def predict_proba(self, pairs: Any) -> Doubles:
        """Probability of -1 and of +1 for each pair, averaged over the posterior.

        It is what the model says, whatever threshold `predict` has been given.

        Parameters
        ----------
        pairs : array-like of shape (n, 2, n_features)
            Pairs of rows.

        Returns
        -------
        ndarray of shape (n, 2)
            Probabilities, columns in the order of ``classes_``.
        """
        same = self.pair_proba(pairs)
        return np.column_stack([1 - same, same])

    def score(self, pairs: Any, y: Any, sample_weight: Any = None) -> float:
        """Area under the ROC curve of the margins, as for the pair learners of metric-learn.

        Parameters
        ----------
        pairs : array-like of shape (n, 2, n_features)
            Pairs of rows.
        y : array-like of shape (n,)
            +1 or -1.
        sample_weight : array-like of shape (n,), default=None
            How often each pair counts.

        Returns
        -------
        float
            Share of (alike, different) couples of pairs in which the alike one is nearer.
        """
        decision = self.decision_function(pairs)
        return float(roc_auc_score(pair_labels(y, decision), decision, sample_weight=sample_weight))

    def query(self, pairs: Any, n: Any = 1, *, strategy: Any = "reduction") -> Integers:
        """Pairs whose labels would teach most.

        They are chosen one after the other, each as if the labels of those before it were known, so
        that they do not all ask the same.

        Parameters
        ----------
        pairs : array-like of shape (n_candidates, 2, n_features)
            Pairs without labels.  Those of `fit` need not be left out, but asking again teaches
            less.
        n : int, default=1
            How many to choose.
        strategy : {"reduction", "information", "entropy"}, default="reduction"
            What a label is wanted for: to reduce the uncertainty about the other candidates, to
            learn most about the metric and threshold, or because it is least certain itself.

        Returns
        -------
        ndarray of shape (n,)
            Positions in `pairs`, the most informative first; among equals the first.
        """
        check_is_fitted(self)
        candidates = row_tuples(self, pairs, 2, "pairs")
        whole = isinstance(n, (int, np.integer)) and not isinstance(n, bool)
        if not whole or not 1 <= n <= len(candidates):
            msg = (
                f"n must be an integer from 1 to {len(candidates)}, the number of pairs to choose "
                f"from; got {n!r}."
            )
            raise ValueError(msg)
        if strategy not in STRATEGIES:
            msg = f"strategy must be one of {', '.join(map(repr, STRATEGIES))}; got {strategy!r}."
            raise ValueError(msg)
        return most_informative(
            self._margin_features(candidates),
            self.margin_mean_,
            self.margin_covariance_,
            int(n),
            strategy,
        )

    def set_threshold(self, threshold: Any) -> Self:
        """Set the squared distance up to which `predict` calls a pair alike.

        Parameters
        ----------
        threshold : float
            A squared distance, as `pair_distance` gives it.

        Returns
        -------
        BML
            With ``threshold_`` changed.
        """
        check_is_fitted(self)
        if not isinstance(threshold, Real) or not np.isfinite(float(threshold)):
            msg = f"threshold must be a finite number, a squared distance; got {threshold!r}."
            raise ValueError(msg)
        self.threshold_ = float(threshold)
        return self

    def calibrate_threshold(
        self,
        pairs: Any,
        y: Any,
        strategy: str = "accuracy",
        min_rate: float | None = None,
        beta: float = 1.0,
    ) -> Self:
        """Choose the threshold by what it does on labelled pairs, best ones not used in `fit`.

        Parameters
        ----------
        pairs : array-like of shape (n, 2, n_features)
            Pairs of rows.
        y : array-like of shape (n,)
            +1 or -1.
        strategy : {"accuracy", "f_beta", "max_tpr", "max_tnr"}, default="accuracy"
            What is to be largest: the share of pairs that are called right; the F score; the share
            of alike pairs found while at least `min_rate` of the others are kept out; or the share
            of different pairs kept out while at least `min_rate` of the alike are found.
        min_rate : float or None, default=None
            Between 0 and 1, for "max_tpr" and "max_tnr".
        beta : float, default=1.0
            Weight of recall against precision in the F score.

        Returns
        -------
        BML
            With ``threshold_`` changed.
        """
        check_is_fitted(self)
        floor = _check_calibration(strategy, min_rate, beta)
        squared = self.pair_distance(pairs)
        sign = pair_labels(y, squared)
        need_both(sign, "y")
        alike = sign > 0
        cuts, found, kept_out = core.rates(squared, alike)
        if strategy == "accuracy":
            worth = found * alike.sum() + kept_out * (~alike).sum()
        elif strategy == "f_beta":
            hits, wrong = found * alike.sum(), (1 - kept_out) * (~alike).sum()
            worth = (1 + beta**2) * hits / (beta**2 * alike.sum() + hits + wrong)
        elif strategy == "max_tpr":
            worth = np.where(kept_out >= floor, found, -1.0) + kept_out / (4 * len(alike))
        else:
            worth = np.where(found >= floor, kept_out, -1.0) + found / (4 * len(alike))
        return self.set_threshold(float(cuts[np.argmax(worth)]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = False
        tags.classifier_tags.multi_class = False
        return tags


def _check_calibration(strategy: Any, min_rate: Any, beta: Any) -> float:
    """Check the parameters of `BML.calibrate_threshold`; return the rate asked for."""
    known = ("accuracy", "f_beta", "max_tpr", "max_tnr")
    if strategy not in known:
        msg = f"strategy must be one of {', '.join(map(repr, known))}; got {strategy!r}."
        raise ValueError(msg)
    if strategy in {"max_tpr", "max_tnr"} and not (
        isinstance(min_rate, Real) and 0 <= float(min_rate) <= 1
    ):
        msg = f'min_rate must be a number from 0 to 1 for strategy="{strategy}"; got {min_rate!r}.'
        raise ValueError(msg)
    if strategy == "f_beta" and not (isinstance(beta, Real) and 0 <= float(beta) < np.inf):
        msg = f"beta must be a finite number of at least 0; got {beta!r}."
        raise ValueError(msg)
    return 0.0 if min_rate is None else float(min_rate)
