"""Neighbourhood component analysis: scikit-learn's own, with its path and its predictions.

For the learned map L and d_ij = |L (x_i - x_j)|, row i picks another row j as its neighbour with
probability p_ij ∝ exp(-d_ij²) (eq. 2).  The objective is the expected number of rows that pick one
of their own class, Σ_i Σ_{j: y_j = y_i} p_ij.
"""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import _fit_context
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from bnca.base import MetricLearner
from bnca.blocks import cut, map_runs
from bnca.core import features
from bnca.core.features import Directions, eigen_directions, scores
from bnca.core.predictive import vote_shares
from bnca.validation import query_rows, training_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bnca.core.arrays import Doubles, Integers

BLOCK_NUMBERS = 1 << 18
"""Distances held by a thread at a time: 2 MB in double precision."""

MANY_ROWS = 10_000
"""From here on scikit-learn's search is warned about: it took 4.4 GB at this number of rows."""

BYTES_PER_PAIR = 44
"""What that search holds for each pair of rows, by the same measurement."""


def expected_matches(components: Doubles, X: Doubles, codes: Integers) -> float:
    """Σ_i Σ_{j: y_j = y_i} p_ij, the expected number of rows that pick one of their own class.

    Parameters
    ----------
    components : (m, d)
        L.
    X : (n, d)
        Rows.
    codes : (n,)
        Class of each row.

    Returns
    -------
    float
        Between 0 and n.
    """
    embedded = X @ components.T
    total = 0.0
    for part in cut(len(X), max(1, BLOCK_NUMBERS // len(X))):
        squared = cdist(embedded[part], embedded, "sqeuclidean")
        squared[np.arange(len(squared)), np.arange(part.start, part.stop)] = np.inf
        picked = vote_shares(squared, "softmax")
        total += float(picked[codes[part, None] == codes].sum())
    return total


class NCA(MetricLearner):
    """Neighbourhood component analysis as scikit-learn has it, and as a classifier.

    Parameters
    ----------
    n_components : int or None, default=None
        Rows of the map; None is as many as there are features.
    init : {"auto", "pca", "lda", "identity", "random"} or ndarray of shape (n_components, \
            n_features), default="auto"
        Where the search starts, as in scikit-learn: "auto" is "lda" where n_components is less
        than the number of classes, else "pca" where it is less than that of features, else
        "identity".
    warm_start : bool, default=False
        Whether a second `fit` starts from the map of the first.
    max_iter : int, default=50
        Steps of L-BFGS at most.  Fewer steps overfit less.
    tol : float, default=1e-5
        L-BFGS stops when the objective or its gradient changes less than this.
    callback : callable or None, default=None
        Called as ``callback(step, components, objective)`` after each step.
    record_path : bool, default=False
        Whether to keep the map after each step in ``path_``.
    vote : {"uniform", "distance", "softmax"}, default="uniform"
        How neighbours vote: one vote each, 1 / d, or in proportion to exp(-d²) (eq. 2).
    n_voters : int or None, default=5
        How many nearest training rows vote.  None lets every training row vote, however far; with
        ``vote="softmax"`` that is the prediction of NCA's own model, P(y | x, L) (eq. 8 with all
        rows as neighbours).
    n_jobs : int or None, default=None
        Threads of the neighbour search; None and -1 take every core.
    random_state : int, RandomState instance or None, default=0
        Seed of ``init="random"`` and of the PCA behind ``init="pca"``.
    verbose : int, default=0
        Whether to print the objective after each step.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        L: distances are ``|L (x - x')|``.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    n_iter_ : int
        Steps taken.
    converged_ : bool
        Whether the search ended by itself before max_iter.
    path_ : list of ndarray of shape (n_components, n_features)
        The map at the start and after each step, with ``record_path=True``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features, where X has names that are all strings.

    See Also
    --------
    sklearn.neighbors.NeighborhoodComponentsAnalysis : Does the search.

    Notes
    -----
    scikit-learn holds several arrays of n × n numbers; there is a warning from 10,000 rows on.

    For sparse rows the search runs in their coordinates along all principal axes, which has the
    same distances; "identity" is then meant in these coordinates.  Those with thousands of both
    rows and columns are reduced to their n_components leading axes; give a number then.

    References
    ----------
    J. Goldberger, S. Roweis, G. Hinton, R. Salakhutdinov, "Neighbourhood Components Analysis",
    NIPS 17, 2004.

    Examples
    --------
    >>> from bnca.rivals import NCA
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NCA(max_iter=100, vote="softmax", n_voters=None).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "init": [StrOptions({"auto", "pca", "lda", "identity", "random"}), np.ndarray],
        "warm_start": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "callback": [callable, None],
        "record_path": ["boolean"],
        "vote": [StrOptions({"uniform", "distance", "softmax"})],
        "n_voters": [Interval(Integral, 1, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        init: Any = "auto",
        warm_start: bool = False,
        max_iter: int = 50,
        tol: float = 1e-5,
        callback: Callable[[int, Doubles, float], None] | None = None,
        record_path: bool = False,
        vote: str = "uniform",
        n_voters: int | None = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.warm_start = warm_start
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.record_path = record_path
        self.vote = vote
        self.n_voters = n_voters
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Search for the map under which rows pick neighbours of their own class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        NCA
            Fitted.
        """
        rows = training_rows(self, X, y)
        n, width = rows.X.shape
        if self.n_components is not None and self.n_components > width:
            msg = (
                f"n_components must be at most the number of features, {width}; "
                f"got {self.n_components}."
            )
            raise ValueError(msg)
        if n >= MANY_ROWS:
            warnings.warn(
                f"scikit-learn's NCA holds several arrays of n × n numbers: about "
                f"{BYTES_PER_PAIR * n**2 / 1e9:.0f} GB for {n} rows. Fit on a sample of the rows, "
                "or use BayesianNCA, whose memory grows with n.",
                UserWarning,
                stacklevel=3,
            )
        directions = None
        data = rows.X
        if not isinstance(data, np.ndarray):
            large = min(data.shape) > features.DENSE_SIDE
            directions = eigen_directions(data, self.n_components if large else None)
            data = scores(data, directions)
        data = data.astype(np.float64, copy=False)
        components = self._search(data, rows.codes, directions)
        self.components_ = components.astype(rows.X.dtype)
        self._remember(rows)
        return self

    def predict_proba(self, X: Any) -> Doubles:
        """Class probabilities from the votes of the nearest training rows, or of all of them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Probabilities, columns in the order of ``classes_``.  With ``vote="softmax"`` and
            ``n_voters=None`` those of NCA's own model (eq. 8 over all training rows).
        """
        if self.n_voters is not None:
            return super().predict_proba(X)
        check_is_fitted(self)
        queries = self._embed(query_rows(self, X))
        member = np.eye(len(self.classes_))[self._codes]
        out = np.empty((len(queries), len(self.classes_)))

        def work(run: Sequence[slice]) -> None:
            for part in run:
                squared = cdist(queries[part], self._embedding, "sqeuclidean")
                np.matmul(vote_shares(squared, self.vote), member, out=out[part])

        size = max(1, BLOCK_NUMBERS // len(self._embedding))
        map_runs(work, cut(len(queries), size), self.n_jobs)
        return out

    def _search(self, data: Doubles, codes: Integers, directions: Directions | None) -> Doubles:
        """Components in the space of X, and how the search ended."""

        def back(components: Doubles) -> Doubles:
            return components if directions is None else components @ directions.axes.T

        start = self._start(data, codes, directions)
        path = [back(start)]
        taken = 0

        def after_step(flat: Doubles, _: int) -> None:
            nonlocal taken
            taken += 1
            components = flat.reshape(start.shape)
            if self.record_path:
                path.append(back(components).copy())
            if self.callback is None and not self.verbose:
                return
            objective = expected_matches(components, data, codes)
            if self.verbose:
                print(
                    f"[{type(self).__name__}] step {taken:4d}   {objective:.6f} of {len(codes)} "
                    "rows pick their own class"
                )
            if self.callback is not None:
                self.callback(taken, back(components).copy(), objective)

        search = NeighborhoodComponentsAnalysis(
            n_components=len(start),
            init=start,
            max_iter=self.max_iter,
            tol=self.tol,
            callback=after_step,
        ).fit(data, codes)
        self.n_iter_ = taken
        self.converged_ = taken < self.max_iter
        if self.record_path:
            self.path_ = path
        self._warn_if_unfinished(int(codes.max()) + 1)
        return back(search.components_)

    def _warn_if_unfinished(self, n_classes: int) -> None:
        if not self.converged_:
            warnings.warn(
                f"NCA did not converge in max_iter={self.max_iter} steps. Increase max_iter or "
                "tol, or choose max_iter by cross-validation: stopping early overfits less.",
                ConvergenceWarning,
                stacklevel=5,
            )
        elif self.n_iter_ == 0 and n_classes > 1:
            warnings.warn(
                "NCA did not leave its start: the gradient is flat there, as it is when distances "
                "are so large that each row has one possible neighbour. Scale the features, for "
                "instance with StandardScaler, or choose another init.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _start(self, data: Doubles, codes: Integers, directions: Directions | None) -> Doubles:
        """Return the map that the search starts from: scikit-learn's choices."""
        warm = self.warm_start and hasattr(self, "components_")
        if warm or isinstance(self.init, np.ndarray):
            name = "the map of the last fit" if warm else "init"
            given = np.asarray(
                self.components_ if warm else check_array(self.init, input_name="init"),
                dtype=np.float64,
            )
            self._check_start(given, name)
            if directions is None:
                return given
            turned = given @ directions.axes
            # Distances along r axes need no more than r rows; a triangle keeps them all.
            return turned if len(turned) <= turned.shape[1] else np.asarray(np.linalg.qr(turned).R)
        rank = data.shape[1]
        wanted = min(self.n_components or rank, rank)
        n_classes = int(codes.max()) + 1
        init = self.init
        if init == "auto":
            if wanted <= min(rank, n_classes - 1):
                init = "lda"
            else:
                init = "pca" if wanted < min(rank, len(data)) else "identity"
        if init == "identity":
            return np.eye(wanted, rank)
        rng = check_random_state(self.random_state)
        if init == "random":
            return np.asarray(rng.standard_normal(size=(wanted, rank)))
        if init == "pca":
            return np.asarray(PCA(wanted, random_state=rng).fit(data).components_)
        lda = LinearDiscriminantAnalysis(n_components=wanted).fit(data, codes)
        return np.asarray(lda.scalings_.T[:wanted])

    def _check_start(self, start: Doubles, name: str) -> None:
        width = self.n_features_in_
        if start.shape[1] != width or start.shape[0] > width:
            msg = (
                f"{name} must have one column for each of the {width} features and no more rows "
                f"than columns; got shape {start.shape}."
            )
            raise ValueError(msg)
        if self.n_components is not None and self.n_components != len(start):
            msg = (
                f"n_components={self.n_components} does not match {name}, which has {len(start)} "
                "rows. Leave n_components at None to take as many."
            )
            raise ValueError(msg)
