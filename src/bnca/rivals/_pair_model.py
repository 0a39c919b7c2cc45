"""What learners from pairs share: the fit, its warnings, and probabilities of pairs."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted

from bnca.blocks import Room, cut, sum_blocks
from bnca.core import margins
from bnca.core import pairs as core
from bnca.core.metric import BayesianMetric
from bnca.core.solve import Prior
from bnca.exceptions import ProjectionWarning
from bnca.posterior import PosteriorMap
from bnca.rivals import _bml_core as objective
from bnca.validation import gaussian_prior, row_tuples

if TYPE_CHECKING:
    from collections.abc import Callable

    from bnca.core.arrays import Doubles, Floats
    from bnca.core.features import Directions

WARM_START = 20_000
"""From this many pairs on, Newton starts from the posterior given about a tenth of them."""


class PairModel(PosteriorMap):
    """What pairs teach, for learners from pairs and from rows alike.

    Weights γ and threshold μ have one Gaussian posterior; ``metric_`` is its share of γ.
    """

    margin_mean_: Doubles
    margin_covariance_: Doubles

    n_components: int | None
    prior_mean: Any
    prior_variance: Any
    threshold_mean: float | None
    threshold_variance: float
    factorized: bool
    rescale: bool
    solver: str
    max_iter: int
    tol: float
    n_jobs: int | None
    callback: Callable[[int, Doubles, float], None] | None
    verbose: int

    pair_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "prior_mean": [Real, "array-like"],
        "prior_variance": [Real, "array-like"],
        "threshold_mean": [Real, None],
        "threshold_variance": [Interval(Real, 0, None, closed="neither")],
        "factorized": ["boolean"],
        "rescale": ["boolean"],
        "solver": [StrOptions({"newton", "published"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "callback": [callable, None],
        "verbose": ["verbose"],
    }

    def pair_proba(self, pairs: Any) -> Doubles:
        """P(same class) of each pair, averaged over the posterior of weights and threshold.

        Parameters
        ----------
        pairs : array-like of shape (n, 2, n_features)
            Pairs of rows.

        Returns
        -------
        ndarray of shape (n,)
            E σ(μ - γᵀw).
        """
        check_is_fitted(self)
        return margins.same_class(self._margins(row_tuples(self, pairs, 2, "pairs")))

    def _margins(self, pairs: Floats) -> margins.Margins:
        mean, variance = np.empty(len(pairs)), np.empty(len(pairs))
        for part in cut(len(pairs), core.block_rows(len(self.margin_mean_))):
            features = self._margin_features(pairs[part])
            mean[part], variance[part] = margins.margins(
                features, self.margin_mean_, self.margin_covariance_
            )
        return margins.Margins(mean, variance)

    def _margin_features(self, pairs: Floats) -> Doubles:
        left, right = (self.metric_.scores(pairs[:, side]) for side in (0, 1))
        return np.asarray(core.margin_features(core.with_room(left - right)))

    def _fit_posterior(
        self, source: core.PairSource, directions: Directions, average: Doubles, unit: float
    ) -> None:
        """Learn from pairs in units of √unit; `average` has the mean features of two rows."""
        p = directions.axes.shape[1]
        weights = gaussian_prior(self.prior_mean, self.prior_variance, p)
        threshold = self.threshold_mean
        if threshold is None:
            threshold = float(average @ weights.mean)
        precision = np.zeros((p + 1, p + 1))
        precision[:p, :p] = weights.precision
        precision[p, p] = 1 / self.threshold_variance
        prior = Prior(np.append(weights.mean, threshold), precision)

        if self.verbose:
            print(f"[{type(self).__name__}] {len(source)} pairs, {p} weights")
        warm = self.solver == "newton" and len(source) >= WARM_START
        in_units = np.append(np.full(p, 1 / unit), 1.0)

        def after_step(step: int, mean: Doubles, bound: float, change: float) -> None:
            if self.verbose:
                name = type(self).__name__
                print(f"[{name}] step {step:4d}   lower bound {bound:.6f}   change {change:.1e}")
            if self.callback is not None:
                length = np.sqrt(np.maximum(mean[:-1], 0) / unit)
                self.callback(step, (directions.axes * length).T, bound)

        solution = objective.solve(
            self._evaluator(source),
            prior,
            solver=self.solver,  # type: ignore[arg-type]
            factorized=self.factorized,
            tol=self.tol,
            max_iter=self.max_iter,
            sample=self._evaluator(source.every(10)) if warm else None,
            rounding=64 * float(np.finfo(source.table.dtype).eps),
            callback=after_step,
        )
        self._warn(solution.mean[:p], converged=solution.converged, change=solution.last_step)
        self.margin_mean_ = solution.mean * in_units
        self.margin_covariance_ = solution.covariance * np.outer(in_units, in_units)
        self.metric_ = BayesianMetric(
            directions.axes, self.margin_mean_[:p], self.margin_covariance_[:p, :p]
        )
        self.n_iter_ = solution.n_iter
        self.converged_ = solution.converged
        self.lower_bounds_ = np.array(solution.lower_bounds)
        self.lower_bound_ = solution.lower_bounds[-1]
        self.scale_ = unit

    def _evaluator(self, source: core.PairSource) -> objective.Evaluate:
        """Sum the statistics of pairs over blocks, on threads."""
        width = source.table.shape[1]
        size = min(core.block_rows(width), len(source))
        blocks = cut(len(source), size)
        room = Room(2 * size * width, source.table.dtype)

        def evaluate(
            moments: objective.Moments, order: objective.Order
        ) -> objective.PairStatistics:
            def work(part: slice, scratch: Floats) -> objective.PairStatistics:
                block = source.block(part, scratch)
                return objective.expand(block, moments, order, scratch[block.features.size :])

            return sum_blocks(work, blocks, self.n_jobs, room)

        return evaluate

    def _unit(self, coordinates: Doubles) -> float:
        """Typical squared distance of two rows, the unit that the prior is stated in."""
        n = len(coordinates)
        square = np.einsum("ij,ij->i", coordinates, coordinates)
        # Mean over all other rows of each, in closed form for centred coordinates.
        unit = float(np.median((n * square + square.sum()) / (n - 1))) if self.rescale else 1.0
        return unit if unit > 0 else 1.0

    def _warn(self, mean: Doubles, *, converged: bool, change: float) -> None:
        if not converged:
            warnings.warn(
                f"The fixed point did not converge in max_iter={self.max_iter} steps: the last one "
                f"changed the posterior by {change:.1e}, more than tol={self.tol:g}. Increase "
                'max_iter or tol, or choose solver="newton".',
                ConvergenceWarning,
                stacklevel=5,
            )
        negative = np.count_nonzero(mean < 0)
        if negative:
            warnings.warn(
                f"{negative} of {len(mean)} weights of the posterior mean are negative; they are "
                "set to zero where a metric is needed. A smaller prior_variance keeps weights "
                "nearer to their prior mean.",
                ProjectionWarning,
                stacklevel=5,
            )


def training_pairs(
    estimator: Any, pairs: Any, y: Any, sample_weight: Any
) -> tuple[Floats, Doubles, Doubles]:
    """Check pairs, their labels and weights; pairs of weight zero are left out."""
    pairs = check_array(
        pairs, allow_nd=True, ensure_2d=False, dtype=[np.float64, np.float32], input_name="pairs"
    )
    if pairs.ndim != 3 or pairs.shape[1] != 2 or pairs.shape[2] < 1:
        msg = (
            "pairs must have shape (n, 2, n_features), two rows for each pair; got shape "
            f"{pairs.shape}. Try np.stack([A, B], axis=1) with arrays of shape (n, n_features), or "
            "SupervisedBML for labelled rows."
        )
        raise ValueError(msg)
    sign = pair_labels(y, pairs)
    weights = _check_sample_weight(sample_weight, pairs[:, 0], dtype=np.float64)
    if (weights < 0).any():
        msg = (
            f"sample_weight must not be negative; the smallest is {weights.min():g}. "
            "Use 0 to leave a pair out."
        )
        raise ValueError(msg)
    counts = weights > 0
    if not counts.any():
        msg = "sample_weight is zero for every pair: there is nothing to learn from."
        raise ValueError(msg)
    need_both(sign[counts], "y")
    estimator.n_features_in_ = pairs.shape[2]
    return pairs[counts], sign[counts], weights[counts]


def pair_labels(y: Any, pairs: Any) -> Doubles:
    """Check labels of pairs: +1 or -1, one for each."""
    if y is None:
        msg = "y is missing: pairs need labels, +1 where they are alike and -1 where they are not."
        raise ValueError(msg)
    y = column_or_1d(y, warn=True)
    check_consistent_length(pairs, y)
    values = np.unique(y)
    if y.dtype.kind not in "iuf" or not np.isin(values, (-1, 1)).all():
        shown = ", ".join(map(repr, values[:5].tolist())) + (", ..." if len(values) > 5 else "")
        msg = (
            "y must hold +1 for pairs that are alike and -1 for pairs that are not; got the values "
            f"{shown}. For True and False, or 1 and 0, try np.where(y, 1, -1)."
        )
        raise ValueError(msg)
    return np.asarray(y, dtype=np.float64)


def need_both(sign: Doubles, name: str) -> None:
    """Refuse pairs that are all alike or all different."""
    if (sign == sign[0]).all():
        msg = (
            f"{name} has pairs of one class only ({sign[0]:+.0f}): a threshold is learned from "
            "pairs that are alike (+1) and pairs that are not (-1). Add some of the other."
        )
        raise ValueError(msg)
