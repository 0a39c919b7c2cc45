"""Large margin nearest neighbours: a linear map under which impostors keep their distance."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array

from bnca.base import MetricLearner
from bnca.core.features import DENSE_SIDE, eigen_directions, scores
from bnca.exceptions import NeighborhoodWarning
from bnca.rivals._impostors import Draw, count_pairs
from bnca.rivals._large_margin import Objective, best_scale, start_map
from bnca.rivals._lbfgs import Learned, minimize
from bnca.rivals._targets import triples
from bnca.validation import training_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from bnca.core.arrays import Doubles
    from bnca.rivals._lbfgs import Value
    from bnca.rivals._targets import Triples
    from bnca.validation import TrainingRows


class LMNN(MetricLearner):
    """Large margin nearest neighbours, a linear map learned for classification by neighbours.

    Each row's nearest rows of its own class, its target neighbours, are pulled closer; rows of
    other classes that come within a margin of them are pushed out.  Target neighbours are found
    once, by Euclidean distance.

    Parameters
    ----------
    n_neighbors : int, default=3
        K, how many target neighbours each row has.  Classes of K rows or fewer have fewer, with a
        `NeighborhoodWarning`; a single row of a class has none, and is only kept at a distance.
    n_components : int or None, default=None
        Number of rows of the map; None is as many as there are directions in which X varies.
    init : {"auto", "pca", "lda", "identity", "random"} or array of shape (n_components, \
n_features), default="auto"
        Where the search starts: principal axes, linear discriminants, leading features, standard
        normal numbers, or a given map.  "auto" is "lda" for fewer directions than there are
        classes, otherwise "pca", which in full is Euclidean distance.
    rescale : bool, default=True
        Whether a start that was not given is first multiplied by the number that makes the
        objective least: the margin is of length one, and X may come in any unit.  With it,
        multiplying X by a number changes no prediction; and the search takes fewer steps.
    push_loss_weight : float, default=0.5
        w in (0, 1], the weight of the sum that pushes; 1 - w is that of the sum that pulls.
    max_iter : int, default=200
        Steps of L-BFGS at most.  With few rows in many directions the map overfits towards the end
        of the search, and a number near 10 may serve better.
    tol : float, default=1e-4
        When two steps in a row lower the objective by less than this, relative to it (or to a
        hundredth of where it began), the search ends.
    max_impostors : int or None, default=None
        About how many pairs of rows to push apart at the start; where there are more, that many are
        drawn at random and count for all.  None takes every pair.
    warm_start : bool, default=False
        Whether to start from the map of the last `fit`, if there was one.
    callback : callable or None, default=None
        Called as ``callback(step, components, objective)`` after each step.  It may raise
        StopIteration to end the search.
    vote : {"distance", "softmax", "uniform"}, default="distance"
        How neighbours vote in `predict` and `predict_proba`: by 1 / d, by exp(-d²), or one vote
        each.
    n_voters : int or None, default=None
        How many nearest training rows vote; None takes K.
    n_jobs : int or None, default=None
        Threads; None and -1 take every core.  The result does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Seed of ``init="random"`` and of the draw of ``max_impostors``.
    verbose : int, default=0
        Whether to print each step.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        L: distances are ``|L (x - x')|``.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    n_neighbors_ : int
        K as used in the largest class.
    n_iter_ : int
        Steps taken.
    converged_ : bool
        Whether the search ended by tol.
    loss_ : float
        The objective at the end.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, where X has names that are all strings.

    See Also
    --------
    bnca.BayesianNCA : Learns how sure it is of the distance, too.

    References
    ----------
    K. Q. Weinberger and L. K. Saul, "Distance metric learning for large margin nearest neighbor
    classification", Journal of Machine Learning Research 10, 2009.

    Examples
    --------
    >>> from bnca.rivals import LMNN
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LMNN().fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "init": [StrOptions({"auto", "pca", "lda", "identity", "random"}), "array-like"],
        "rescale": ["boolean"],
        "push_loss_weight": [Interval(Real, 0, 1, closed="right")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_impostors": [Interval(Integral, 1, None, closed="left"), None],
        "warm_start": ["boolean"],
        "callback": [callable, None],
        "vote": [StrOptions({"distance", "softmax", "uniform"})],
        "n_voters": [Interval(Integral, 1, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_neighbors: int = 3,
        *,
        n_components: int | None = None,
        init: Any = "auto",
        rescale: bool = True,
        push_loss_weight: float = 0.5,
        max_iter: int = 200,
        tol: float = 1e-4,
        max_impostors: int | None = None,
        warm_start: bool = False,
        callback: Callable[[int, Doubles, float], None] | None = None,
        vote: str = "distance",
        n_voters: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.init = init
        self.rescale = rescale
        self.push_loss_weight = push_loss_weight
        self.max_iter = max_iter
        self.tol = tol
        self.max_impostors = max_impostors
        self.warm_start = warm_start
        self.callback = callback
        self.vote = vote
        self.n_voters = n_voters
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Learn the map from labelled rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.  Where there is but one class, the map stays at its start.

        Returns
        -------
        LMNN
            Fitted.
        """
        rng = check_random_state(self.random_state)
        rows = self._checked_rows(X, y)
        directions = eigen_directions(rows.X)
        coordinates = scores(rows.X, directions)
        data = triples(
            coordinates.astype(rows.X.dtype), rows.codes, self.n_neighbors, n_jobs=self.n_jobs
        )
        self._check_neighborhoods(rows)
        L = self._start(rows, coordinates, directions.axes, data, rng)
        learned = self._minimize(data, L, directions.axes, rng)
        self.components_ = (learned.L @ directions.axes.T).astype(rows.X.dtype)
        self.n_neighbors_ = data.targets.shape[1]
        self.n_iter_ = learned.n_iter
        self.converged_ = learned.ended == "tol"
        self.loss_ = learned.loss
        self._remember(rows)
        return self

    def _checked_rows(self, X: Any, y: Any) -> TrainingRows:
        """Check the rows, and whether their shape is one that this can work with."""
        rows = training_rows(self, X, y)
        width = rows.X.shape[1]
        if self.n_components is not None and self.n_components > width:
            raise ValueError(
                f"n_components must be at most the number of features, {width}; got "
                f"{self.n_components}. None takes every direction in which X varies."
            )
        if not isinstance(rows.X, np.ndarray) and min(rows.X.shape) > DENSE_SIDE:
            raise ValueError(
                f"Sparse X of shape {rows.X.shape} would need more than {DENSE_SIDE} dense "
                "directions. Reduce it first, for example with "
                "sklearn.decomposition.TruncatedSVD(100)."
            )
        return rows

    def _check_neighborhoods(self, rows: TrainingRows) -> None:
        """Say so where classes are too small for K target neighbours."""
        sizes = np.bincount(rows.codes)
        small = sizes <= self.n_neighbors
        if small.any():
            warnings.warn(
                f"n_neighbors={self.n_neighbors} is more than the other rows of {small.sum()} of "
                f"{len(sizes)} classes, the smallest of {sizes.min()} rows: their rows have all "
                "others of their class as target neighbours. Decrease n_neighbors to have equally "
                "many everywhere.",
                NeighborhoodWarning,
                stacklevel=4,
            )

    def _start(
        self,
        rows: TrainingRows,
        coordinates: Doubles,
        axes: Doubles,
        data: Triples,
        rng: np.random.RandomState,
    ) -> Doubles:
        """Map of the coordinates, (q, r), to start from."""
        width, r = axes.shape
        if self.warm_start and hasattr(self, "components_"):
            return (
                self._given(self.components_, "The map of the last fit (warm_start)", width) @ axes
            )
        if not isinstance(self.init, str):
            return self._given(self.init, "init", width) @ axes
        n_classes = len(rows.classes)
        init = self.init
        if init == "auto":
            few = self.n_components is not None and self.n_components < min(n_classes, r)
            init = "lda" if few else "pca"
        q = self.n_components or (width if init == "identity" else r)
        L = start_map(init, coordinates, rows.codes, axes=axes, q=q, rng=rng)
        return L * np.sqrt(best_scale(data, L, self.push_loss_weight)) if self.rescale else L

    def _given(self, start: Any, name: str, width: int) -> Doubles:
        """Check a map that was handed over."""
        out = check_array(start, dtype=np.float64, input_name=name)
        q = len(out) if self.n_components is None else self.n_components
        if out.shape != (q, width) or q > width:
            raise ValueError(
                f"{name} must have shape (n_components, n_features), with n_components = "
                f"{self.n_components or f'1 to {width}'} and n_features = {width}; got shape "
                f"{out.shape}."
            )
        return np.asarray(out)

    def _minimize(
        self, data: Triples, L: Doubles, axes: Doubles, rng: np.random.RandomState
    ) -> Learned:
        """Search for the map, with a word where it had to be given up."""
        draw = None
        if self.max_impostors is not None:
            found = count_pairs(data, L, self.n_jobs)
            if found > self.max_impostors:
                seed = int(rng.randint(np.iinfo(np.int32).max))
                draw = Draw(self.max_impostors / found, seed)
        objective = Objective(data, self.push_loss_weight, n_jobs=self.n_jobs, draw=draw)
        if data.ends[0] == len(data.rows):
            # Rows of a single class would all be pulled together into a point.
            return Learned(L, objective(L).loss, 0, "tol")
        began = perf_counter()
        name = type(self).__name__

        def after(step: int, L: Doubles, value: Value) -> None:
            if self.verbose:
                print(
                    f"[{name}] step {step:4d}   objective {value.loss:.6e}   "
                    f"{value.n_active} active triples   {perf_counter() - began:.2f} s"
                )
            if self.callback is not None:
                self.callback(step, L @ axes.T, value.loss)

        if self.verbose:
            print(f"[{name}] {len(data.rows)} rows, K = {data.targets.shape[1]}, map {L.shape}")
        learned = minimize(
            objective,
            L,
            max_iter=self.max_iter,
            tol=self.tol,
            callback=after,
        )
        if learned.ended in {"max_iter", "stuck"}:
            reason = (
                f"in max_iter={self.max_iter} steps"
                if learned.ended == "max_iter"
                else f"to tol={self.tol:g}: no lower point was found down the gradient"
            )
            warnings.warn(
                f"L-BFGS did not converge {reason}. Increase max_iter or tol, or scale the "
                "features alike.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return learned
