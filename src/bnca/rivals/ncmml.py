"""Nearest class mean with a learned metric (NCMML), and with several means a class (NCMC)."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.base import _fit_context
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from bnca.base import MetricLearner
from bnca.blocks import cut, map_runs
from bnca.core import features
from bnca.core.features import Directions, eigen_directions, scores
from bnca.core.predictive import vote_shares
from bnca.exceptions import NeighborhoodWarning
from bnca.rivals._class_means import (
    BLOCK_NUMBERS,
    Means,
    best_multiple,
    feature_scales,
    log_likelihood,
)
from bnca.validation import query_rows, training_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bnca.core.arrays import Doubles, Integers, Rows


class NCMML(MetricLearner):
    """Nearest class mean under a distance learned for it, open to classes that come later.

    A row x has class c with probability ``p(c | x) ∝ exp(-½ |W (x - μ_c)|²)``.  The map W maximises
    ::

        Σ_i log p(y_i | x_i) - ½ λ Σ_j σ_j² |w_j - w⁰_j|²

    with w_j the column of W for feature j, σ_j about its standard deviation (`feature_scales`), and
    W⁰ the multiple of the starting map under which the labels are most likely.  With
    ``init="pca"`` and all components that start is the plain nearest-mean classifier.

    Parameters
    ----------
    n_components : int or None, default=None
        Rows of W.  There are fewer where the rows vary in fewer directions.  None takes all of
        these, or all discriminant directions with ``init="lda"``.
    init : {"pca", "lda"} or ndarray of shape (n_components, n_features), default="pca"
        Where the search starts, and what it is held to: the leading principal axes; the
        discriminant directions of a shrunk within-class covariance; or a map, taken as it is.
    n_centroids : int, default=1
        Means a class.  More than one are found by k-means within the class (NCMC).
    regularization : float, default=20.0
        λ, against the sum over rows: the more rows, the less it matters.
    max_iter : int, default=200
        Steps of L-BFGS at most.
    tol : float, default=1e-5
        L-BFGS stops when the mean objective or its gradient changes less than this.
    callback : callable or None, default=None
        Called as ``callback(step, components, objective)`` after each step.
    vote : {"means", "uniform", "distance", "softmax"}, default="means"
        Who decides in `predict` and `predict_proba`: the class means, or the nearest training rows
        with one vote each, 1 / d, or exp(-d²).
    n_voters : int, default=5
        How many nearest training rows vote, where they do.
    n_jobs : int or None, default=None
        Threads; None and -1 take every core.  The result does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Seed of k-means.
    verbose : int, default=0
        Whether to print the objective after each step.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        W: distances are ``|W (x - x')|``.
    means_ : ndarray of shape (n_means, n_features)
        Means, in the order of their classes.
    mean_labels_ : ndarray of shape (n_means,)
        Class of each mean.
    classes_ : ndarray of shape (n_classes,)
        Labels, those of `add_classes` included.
    scale_ : float
        The multiple of the starting squared distance that the search began with; 1 for an array.
    objective_ : float
        The objective above, divided by the number of rows, at the end.
    objectives_ : ndarray of shape (n_steps + 1,)
        The same at the start and after each step.
    n_iter_ : int
        Steps taken; 1 also where the start was the optimum already.
    converged_ : bool
        Whether the search ended by itself.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, where X has names that are all strings.

    See Also
    --------
    sklearn.neighbors.NearestCentroid : The same classifier without a learned distance.

    Notes
    -----
    Sparse rows with thousands of both rows and columns are reduced to their n_components leading
    axes before the search; give a number then.

    References
    ----------
    T. Mensink, J. Verbeek, F. Perronnin, G. Csurka, "Metric Learning for Large Scale Image
    Classification: Generalizing to New Classes at Near-Zero Cost", ECCV 2012.

    Examples
    --------
    >>> from bnca.rivals import NCMML
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> known = y[::2] < 2
    >>> model = NCMML().fit(X[::2][known], y[::2][known])
    >>> model = model.add_classes(X[::2][~known], y[::2][~known])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "init": [StrOptions({"pca", "lda"}), np.ndarray],
        "n_centroids": [Interval(Integral, 1, None, closed="left")],
        "regularization": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "callback": [callable, None],
        "vote": [StrOptions({"means", "uniform", "distance", "softmax"})],
        "n_voters": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        init: Any = "pca",
        n_centroids: int = 1,
        regularization: float = 20.0,
        max_iter: int = 200,
        tol: float = 1e-5,
        callback: Callable[[int, Doubles, float], None] | None = None,
        vote: str = "means",
        n_voters: int = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.n_centroids = n_centroids
        self.regularization = regularization
        self.max_iter = max_iter
        self.tol = tol
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
            Labels.

        Returns
        -------
        NCMML
            Fitted.
        """
        rows = training_rows(self, X, y)
        self._check_sizes()
        clusters, owners = self._clusters(rows.X, rows.codes, rows.classes, stacklevel=4)
        units = feature_scales(rows.X)
        scaled = _in_units(rows.X, units)
        large = not isinstance(scaled, np.ndarray) and min(scaled.shape) > features.DENSE_SIDE
        directions = eigen_directions(scaled, self.n_components if large else None)
        data = scores(scaled, directions)
        means = Means(_averages(data, clusters), owners)
        start, origin = self._start(data, rows.codes, directions, units)
        self.scale_ = 1.0
        if isinstance(self.init, str):
            self.scale_ = best_multiple(start, data, rows.codes, means, n_jobs=self.n_jobs)
            start, origin = start * np.sqrt(self.scale_), origin * np.sqrt(self.scale_)

        def back(found: Doubles) -> Doubles:
            """Map of X: of all that agree on the training rows, the one nearest to the start."""
            return np.asarray(origin + (found - start) @ (directions.axes.T / units))

        found = self._search(start, data, rows.codes, means, back)
        self.components_ = back(found).astype(rows.X.dtype)
        self._owners = owners
        self.means_ = _averages(rows.X, clusters).astype(rows.X.dtype)
        self._remember(rows)
        self.mean_labels_ = self.classes_[owners]
        return self

    def add_classes(self, X: Any, y: Any) -> Self:
        """Learn to recognise new classes from a few rows of each, at the price of their means.

        The learned distance stays as it is.  The rows join those that `kneighbors` finds, after
        the ones that were there.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of the new classes; one each is enough.
        y : array-like of shape (n_samples,)
            Labels, none of which was there before.

        Returns
        -------
        NCMML
            The same one.
        """
        check_is_fitted(self)
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )
        check_classification_targets(y)
        new, codes = np.unique(y, return_inverse=True)
        if (new.dtype.kind in "OSU") != (self.classes_.dtype.kind in "OSU"):
            msg = (
                f"y holds labels of another kind ({new.dtype}) than those of fit "
                f"({self.classes_.dtype}); give text to text and numbers to numbers."
            )
            raise ValueError(msg)
        known = np.intersect1d(new, self.classes_)
        if len(known):
            msg = (
                f"add_classes takes rows of new classes only; y holds {known.tolist()}, known "
                "already. Leave their rows out, or fit again with all rows to move known means."
            )
            raise ValueError(msg)
        clusters, owners = self._clusters(X, codes, new, stacklevel=3)
        classes = np.union1d(self.classes_, new)
        before, after = np.searchsorted(classes, self.classes_), np.searchsorted(classes, new)
        owners = np.concatenate([before[self._owners], after[owners]])
        means = np.vstack([self.means_, _averages(X, clusters).astype(self.means_.dtype)])
        order = np.argsort(owners, kind="stable")
        self.classes_ = classes
        self._owners = owners[order]
        self.means_ = means[order]
        self.mean_labels_ = classes[self._owners]
        self._codes = np.concatenate([before[self._codes], after[codes]])
        self._origin = self._twin = np.arange(len(self._codes))
        self._embedding = np.vstack([self._embedding, self._embed(X)])
        return self

    def predict_proba(self, X: Any) -> Doubles:
        """Class probabilities p(c | x) of the class means, or from votes of training rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Probabilities, columns in the order of ``classes_``.
        """
        if self.vote != "means":
            return super().predict_proba(X)
        check_is_fitted(self)
        queries = self._embed(query_rows(self, X))
        centers = self._embed(self.means_)
        member = np.eye(len(self.classes_))[self._owners]
        out = np.empty((len(queries), len(self.classes_)))

        def work(run: Sequence[slice]) -> None:
            for part in run:
                squared = cdist(queries[part], centers, "sqeuclidean")
                np.matmul(vote_shares(squared / 2, "softmax"), member, out=out[part])

        map_runs(work, cut(len(queries), max(1, BLOCK_NUMBERS // len(centers))), self.n_jobs)
        return out

    def _search(
        self,
        start: Doubles,
        data: Doubles,
        codes: Integers,
        means: Means,
        back: Callable[[Doubles], Doubles],
    ) -> Doubles:
        """Map of `data` with the largest objective; `back` makes it one of X."""
        strength = self.regularization / len(data)

        def loss(flat: Doubles) -> tuple[float, Doubles]:
            components = flat.reshape(start.shape)
            moved = components - start
            value, gradient = log_likelihood(components, data, codes, means, n_jobs=self.n_jobs)
            return (
                strength / 2 * float(np.vdot(moved, moved)) - value,
                (strength * moved - gradient).ravel(),
            )

        objectives = [-loss(start.ravel())[0]]

        def after_step(intermediate_result: Any) -> None:
            objectives.append(-float(intermediate_result.fun))
            step = len(objectives) - 1
            if self.verbose:
                print(f"[{type(self).__name__}] step {step:4d}   objective {objectives[-1]:.6f}")
            if self.callback is not None:
                found = np.asarray(intermediate_result.x).reshape(start.shape)
                self.callback(step, back(found), objectives[-1])

        # The vectors of L-BFGS are long enough for BLAS to share them out, and too short to gain.
        with threadpool_limits(1, user_api="blas"):
            found = minimize(
                loss,
                start.ravel(),
                jac=True,
                method="L-BFGS-B",
                callback=after_step,
                options={"maxiter": self.max_iter, "ftol": self.tol, "gtol": self.tol},
            )
        self.objectives_ = np.array(objectives)
        self.objective_ = objectives[-1]
        self.n_iter_ = max(1, len(objectives) - 1)
        self.converged_ = bool(found.success)
        if not self.converged_:
            warnings.warn(
                f"NCMML did not converge: L-BFGS ended after {self.n_iter_} steps with "
                f"{found.message!r}. Increase max_iter (now {self.max_iter}), tol or "
                "regularization.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return np.asarray(found.x).reshape(start.shape)

    def _start(
        self, data: Doubles, codes: Integers, directions: Directions, units: Doubles
    ) -> tuple[Doubles, Doubles]:
        """Map to start from, as one of `data` and as one of X."""
        # A map of X is one of the scores after this turn back into the units of X.
        turn = units[:, None] * directions.axes
        if isinstance(self.init, np.ndarray):
            given = check_array(self.init, dtype=np.float64, input_name="init")
            return given @ turn, given
        if self.init == "lda":
            most = int(codes.max())
            if most == 0:
                msg = 'init="lda" needs rows of at least two classes; y has one class.'
                raise ValueError(msg)
            lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto").fit(data, codes)
            found = lda.scalings_.T[: min(self.n_components or most, most)]
            return found, found @ (directions.axes.T / units)
        # Orthonormal rows that span the rows of X: Euclidean distance but for what lies outside,
        # which adds the same to the distances of a row to all means.
        plain, same = np.linalg.qr(turn)
        if self.n_components is None or self.n_components >= len(same):
            return same, plain.T
        _, axes = np.linalg.eigh((same * data.var(axis=0)) @ same.T)
        leading = axes[:, ::-1].T[: self.n_components]
        return leading @ same, leading @ plain.T

    def _check_sizes(self) -> None:
        width = self.n_features_in_
        if self.n_components is not None and self.n_components > width:
            msg = (
                f"n_components must be at most the number of features, {width}; "
                f"got {self.n_components}."
            )
            raise ValueError(msg)
        if not isinstance(self.init, np.ndarray):
            return
        wanted = self.n_components or "n_components"
        if self.init.ndim != 2 or self.init.shape != (
            self.n_components or len(self.init),
            width,
        ):
            msg = f"init must have shape ({wanted}, {width}); got shape {self.init.shape}."
            raise ValueError(msg)

    def _clusters(
        self, X: Rows, codes: Integers, classes: np.ndarray[Any, Any], *, stacklevel: int
    ) -> tuple[Integers, Integers]:
        """Number of the mean that each row belongs to, and the class of each mean."""
        if self.n_centroids == 1:
            return codes, np.arange(len(classes))
        # Not at the top: nothing else here needs sklearn.cluster, and it takes time to import.
        from sklearn.cluster import KMeans

        rng = check_random_state(self.random_state)
        clusters = np.empty(len(codes), dtype=np.intp)
        owners: list[int] = []
        short: list[str] = []
        for code, label in enumerate(classes):
            mine = np.flatnonzero(codes == code)
            wanted = min(self.n_centroids, len(mine))
            with warnings.catch_warnings(), threadpool_limits(1):
                # Fewer distinct rows than means; said below in our own words.
                warnings.simplefilter("ignore", ConvergenceWarning)
                found = KMeans(wanted, n_init=5, random_state=rng).fit_predict(X[mine])
            kept, numbers = np.unique(found, return_inverse=True)
            clusters[mine] = numbers + len(owners)
            owners += [code] * len(kept)
            if len(kept) < self.n_centroids:
                short.append(f"{label!s} ({len(kept)})")
        if short:
            warnings.warn(
                f"n_centroids={self.n_centroids} is more than some classes have distinct rows; "
                f"they have fewer means: {', '.join(short)}.",
                NeighborhoodWarning,
                stacklevel=stacklevel,
            )
        return clusters, np.array(owners, dtype=np.intp)


def _in_units(X: Rows, units: Doubles) -> Rows:
    """Rows with each feature divided by its unit, in float64."""
    if isinstance(X, np.ndarray):
        return X / units
    return X @ scipy.sparse.diags(1 / units, format="csr")


def _averages(X: Rows, groups: Integers) -> Doubles:
    """Mean of the rows of each group, (n_groups, d) in float64."""
    count = np.bincount(groups)
    pick = scipy.sparse.csr_matrix(
        (1 / count[groups], (groups, np.arange(len(groups)))), shape=(len(count), len(groups))
    )
    out = pick @ X
    return np.asarray(out if isinstance(X, np.ndarray) else out.toarray(), dtype=np.float64)
