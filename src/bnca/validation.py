"""What arrives from outside is checked here; everything further in trusts its callers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_array, validate_data

from bnca.core.solve import Prior

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from bnca.core.arrays import Doubles, Floats, Integers, Rows


class TrainingRows(NamedTuple):
    """Rows to learn from.

    Attributes
    ----------
    X : (n, d) float array or sparse matrix
        Rows, repeated ones merged if that was asked for.
    codes : (n,)
        Class of each row, a position in `classes`.
    classes : (n_classes,)
        Labels, sorted.
    weights : (n,) float64
        How often each row counts as an anchor.
    origin : (n,)
        Position of each row in what was passed to fit.
    twin : (n_passed,)
        For each row that was passed, the position in `X` of the one that stands for it, or -1.
    left_out : (n_left_out, d) float array or sparse matrix
        The rows that nothing stands for, those where `twin` is -1, in order.
    """

    X: Rows
    codes: Integers
    classes: np.ndarray[Any, Any]
    weights: Doubles
    origin: Integers
    twin: Integers
    left_out: Rows


def training_rows(
    estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any = None, *, merge: bool = False
) -> TrainingRows:
    """Check rows, labels and weights as scikit-learn does, and code the labels."""
    X, y = validate_data(
        estimator, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2
    )
    check_classification_targets(y)
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if (weights < 0).any():
        msg = (
            f"sample_weight must not be negative; the smallest is {weights.min():g}. "
            "Use 0 to leave a row out."
        )
        raise ValueError(msg)
    if not weights.any():
        msg = "sample_weight is zero for every row: there is nothing to learn from."
        raise ValueError(msg)
    origin = twin = np.arange(X.shape[0])
    left_out = X[:0]
    if merge:
        origin, twin, weights = _merge_repeats(X, y, weights)
        left_out = X[twin < 0]
        X, y = X[origin], y[origin]
        if len(origin) < 2:
            msg = (
                "Found 1 distinct row of positive weight, while a minimum of 2 is required by "
                f"{type(estimator).__name__}."
            )
            raise ValueError(msg)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) == len(codes):
        msg = (
            f"The number of samples ({len(codes)}) must be more than the number of classes "
            f"({len(classes)}): a metric is learned from rows that share a class. If the labels "
            "are numbers to predict, this is regression, which is not supported."
        )
        raise ValueError(msg)
    return TrainingRows(X, codes, classes, weights, origin, twin, left_out)


def query_rows(estimator: BaseEstimator, X: Any) -> Rows:
    """Check rows at prediction: same width, finite, numeric."""
    return validate_data(
        estimator, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
    )


def row_tuples(estimator: Any, rows: Any, size: int, name: str) -> Floats:
    """Check pairs or triplets of rows: an array of shape (n, size, n_features)."""
    width = estimator.n_features_in_
    out = check_array(
        rows, allow_nd=True, ensure_2d=False, dtype=[np.float64, np.float32], input_name=name
    )
    if out.ndim != 3 or out.shape[1:] != (size, width):
        sides = ", ".join("ABC"[:size])
        msg = (
            f"{name} must have shape (n, {size}, {width}): {size} rows of {width} features each; "
            f"got shape {out.shape}. Try np.stack([{sides}], axis=1) with arrays of shape "
            f"(n, {width})."
        )
        raise ValueError(msg)
    return np.asarray(out)


def gaussian_prior(mean: Any, variance: Any, p: int) -> Prior:
    """Turn prior_mean and prior_variance into m0 and V0⁻¹.

    Parameters
    ----------
    mean : float or (p,)
        m0.
    variance : float, (p,) or (p, p)
        σ of V0 = σI, the diagonal of V0, or V0.
    p : int
        Number of weights.

    Returns
    -------
    Prior
        Checked.
    """
    m0 = _finite("prior_mean", mean)
    if m0.shape not in {(), (p,)}:
        msg = (
            f"prior_mean must be a number or an array of shape ({p},), one entry for each of the "
            f"{p} weights; got shape {m0.shape}. The number of weights is n_components, or less "
            "where the rows do not vary in as many directions."
        )
        raise ValueError(msg)
    v0 = _finite("prior_variance", variance)
    if v0.shape not in {(), (p,), (p, p)}:
        msg = (
            f"prior_variance must be a number, an array of shape ({p},) or a covariance of shape "
            f"({p}, {p}) for the {p} weights; got shape {v0.shape}. The number of weights is "
            "n_components, or less where the rows do not vary in as many directions."
        )
        raise ValueError(msg)
    precision: Doubles
    if v0.ndim < 2:
        if (v0 <= 0).any():
            msg = (
                f"prior_variance must be positive; got {v0.min():g}. "
                "A very small variance, such as 1e-8, keeps the metric at its prior mean."
            )
            raise ValueError(msg)
        precision = np.diag(np.broadcast_to(1 / v0, (p,)))
    else:
        try:
            np.linalg.cholesky(v0)
        except np.linalg.LinAlgError:
            definite = False
        else:
            definite = bool(np.allclose(v0, v0.T))
        if not definite:
            msg = (
                "prior_variance, given as a matrix, must be symmetric and positive definite; its "
                f"smallest eigenvalue is {np.linalg.eigvalsh((v0 + v0.T) / 2)[0]:g}. Try adding a "
                "small multiple of the identity."
            )
            raise ValueError(msg)
        precision = np.asarray(np.linalg.inv(v0), dtype=np.float64)
    return Prior(np.array(np.broadcast_to(m0, (p,))), precision)


def _finite(name: str, value: Any) -> Doubles:
    try:
        out = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"{name} must hold numbers; got {value!r}."
        raise ValueError(msg) from error
    if not np.isfinite(out).all():
        msg = f"{name} must be finite; got {value!r}."
        raise ValueError(msg)
    return out


def _merge_repeats(X: Rows, y: Any, weights: Doubles) -> tuple[Integers, Integers, Doubles]:
    """Merge equal rows of one label and drop those of weight zero.

    Returns
    -------
    origin : (n_kept,)
        Position of each kept row: the first of its copies.
    twin : (n,)
        Which kept row stands for each row; -1 for rows of weight zero.
    weights : (n_kept,)
        Sums of the weights of the copies.
    """
    given = np.flatnonzero(weights > 0)
    words = _row_words(X[given])
    # A sum of words times odd constants, modulo 2⁶⁴, is the same for equal rows and hardly ever for
    # others: only rows that share it are compared.
    factors = np.random.default_rng(0).integers(1 << 62, size=words.shape[1], dtype=np.uint64)
    digest = (words * (2 * factors + 1)).sum(axis=1)
    _, code, count = np.unique(digest, return_inverse=True, return_counts=True)
    stands_for = given.copy()
    first: dict[tuple[bytes, Any], int] = {}
    for at in np.flatnonzero(count[code] > 1):
        i = int(given[at])
        stands_for[at] = first.setdefault((words[at].tobytes(), y[i]), i)
    total: Doubles = np.zeros(len(weights))
    np.add.at(total, stands_for, weights[given])
    origin: Integers = np.unique(stands_for)
    twin: Integers = np.full(len(weights), -1, dtype=np.intp)
    twin[given] = np.searchsorted(origin, stands_for)
    return origin, twin, total[origin]


def _row_words(X: Rows) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Rows as unsigned integers, one a number: equal rows, and only those, have equal words."""
    if not isinstance(X, np.ndarray):
        out = np.zeros((X.shape[0], 1), dtype=np.uint64)
        names: dict[bytes, int] = {}
        for i in range(X.shape[0]):
            row = X[i : i + 1].tocsr()
            row.sum_duplicates()
            row.eliminate_zeros()
            out[i] = names.setdefault(row.indices.tobytes() + row.data.tobytes(), len(names))
        return out
    same_zero = np.ascontiguousarray(X + 0)  # -0.0 becomes 0.0
    return same_zero.view(f"u{X.itemsize}").astype(np.uint64, copy=False)
