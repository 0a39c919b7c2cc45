"""The objective of nearest class means under a learned metric: arrays in, arrays out.

A row x belongs to the mean μ_c with probability p(c | x) ∝ exp(-½ |W (x - μ_c)|²), and W maximises
the mean log-probability of the right classes.  The logits are W x · W μ_c - ½ |W μ_c|² but for a
term that all classes share, so they are linear in x with coefficients Q = Wᵀ W Mᵀ.  The derivatives
need the rows only through two sums over them, α_ic = p(c | x_i) - 1{y_i = c} added up and
multiplied with the rows; those sums are taken a block of rows at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from sklearn.utils.sparsefuncs import mean_variance_axis

from bnca.blocks import Room, cut, sum_blocks

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles, Floats, Integers, Rows

BLOCK_NUMBERS = 1 << 18
"""Numbers of a block of rows, or of its logits: 2 MB in double precision."""

FLOOR = 0.1
"""Share of the median variance of a feature that is added to each in `feature_scales`."""


@dataclass(frozen=True, eq=False, slots=True)
class Pull:
    """What a set of rows says about the logits; disjoint sets of rows add up.

    Attributes
    ----------
    log_likelihood : float
        Σ_i log p(y_i | x_i).
    mass : (k,) float64
        Σ_i α_ij, for each mean j.
    cross : (k, d) float64
        Σ_i α_ij x_i.
    """

    log_likelihood: float
    mass: Doubles
    cross: Doubles

    def __add__(self, other: Pull) -> Pull:
        return Pull(
            self.log_likelihood + other.log_likelihood,
            self.mass + other.mass,
            self.cross + other.cross,
        )


class Means(NamedTuple):
    """Means and whose they are.

    Attributes
    ----------
    centers : (k, d)
        μ.
    owners : (k,)
        Class of each.
    """

    centers: Doubles
    owners: Integers


def pull(rows: Doubles, codes: Integers, means: Means, coefficients: Doubles) -> Pull:
    """Log-likelihood of a block of rows, and its slopes with respect to the logits.

    With several means a class, p(c | x) = Σ_{j of c} p(j | x), and
    α_ij = p(j | x_i) - 1{y_i = class of j} p(j | x_i) / p(y_i | x_i).

    Parameters
    ----------
    rows : (b, d)
        Rows x_i.
    codes : (b,)
        Their classes.
    means : Means
        M, one row for each mean.
    coefficients : (d, k)
        Q = Wᵀ W Mᵀ.

    Returns
    -------
    Pull
        Sums over the block.
    """
    logits = rows @ coefficients
    logits -= np.einsum("kd,dk->k", means.centers, coefficients) / 2
    top = logits.max(axis=1, keepdims=True)
    own = codes[:, None] == means.owners
    # Measured from the best of its own means, a row far from all of them still has a logarithm.
    mine = np.where(own, logits, -np.inf)
    best = mine.max(axis=1, keepdims=True)
    mine = np.exp(mine - best)
    mine_total = mine.sum(axis=1, keepdims=True)
    probability = np.exp(logits - top)
    total = probability.sum(axis=1, keepdims=True)
    value = float((best - top + np.log(mine_total) - np.log(total)).sum())
    slope = probability / total - mine / mine_total
    return Pull(value, slope.sum(axis=0), slope.T @ rows)


def log_likelihood(
    components: Doubles,
    rows: Doubles,
    codes: Integers,
    means: Means,
    *,
    n_jobs: int | None = 1,
) -> tuple[float, Doubles]:
    """Mean log-likelihood of the right classes, and its gradient.

    With S = Σ_ij α_ij (x_i - μ_j)(x_i - μ_j)ᵀ the gradient is W S / n.  Since Σ_j α_ij = 0 for each
    row, S = Mᵀ diag(a) M - Mᵀ B - Bᵀ M with a and B of `Pull`.

    Parameters
    ----------
    components : (m, d)
        W.
    rows : (n, d)
        Rows.
    codes : (n,)
        Their classes.
    means : Means
        Means.
    n_jobs : int or None
        Threads.

    Returns
    -------
    value : float
        (1/n) Σ_i log p(y_i | x_i).
    gradient : (m, d)
        Its derivative with respect to W.
    """
    embedded = means.centers @ components.T
    coefficients = components.T @ embedded.T
    total = _summed(rows, codes, means, coefficients, n_jobs)
    inner = total.mass[:, None] * means.centers - total.cross
    gradient = embedded.T @ inner - (components @ total.cross.T) @ means.centers
    return total.log_likelihood / len(rows), gradient / len(rows)


def best_multiple(
    start: Doubles, rows: Doubles, codes: Integers, means: Means, *, n_jobs: int | None = 1
) -> float:
    """Return the multiple s of a squared metric under which the labels are most likely.

    Without it the softmax of raw features is all or nothing, and its gradient flat.  Where means
    separate the classes the likelihood alone would want s infinite; one more observation,
    log s - s·v with v the variance about the means per dimension, keeps it finite.  The sum is
    concave in s.

    Parameters
    ----------
    start : (m, d)
        W for s = 1.
    rows, codes, means, n_jobs
        As in `log_likelihood`.

    Returns
    -------
    float
        s, such that √s W is the map to use.
    """
    embedded = rows @ start.T
    seen = Means(means.centers @ start.T, means.owners)
    total = 0.0
    for part in _blocks(embedded, seen):
        squared = cdist(embedded[part], seen.centers, "sqeuclidean")
        squared[codes[part, None] != seen.owners] = np.inf
        total += float(squared.min(axis=1).sum())
    spread = total / embedded.size
    if spread == 0:  # rows sit on their means: how far these are apart is all there is to go by
        spread = float(embedded.var(axis=0).mean()) or 1.0

    def loss(log_s: float) -> float:
        s = np.exp(log_s)
        said = _summed(embedded, codes, seen, s * seen.centers.T, n_jobs)
        return float(s * spread - log_s - said.log_likelihood)

    middle = -np.log(spread)
    found = minimize_scalar(
        loss, bounds=(middle - 20, middle + 20), method="bounded", options={"xatol": 1e-4}
    )
    return float(np.exp(found.x))


def feature_scales(X: Rows) -> Doubles:
    """Return σ_j with σ_j² = variance of feature j + a tenth of the median variance.

    In units of σ features of any unit can be learned from, and one that hardly varies is not blown
    up to the size of the others.  Features that do not vary stay out of the median.
    """
    if isinstance(X, np.ndarray):
        mean = X.mean(axis=0, dtype=np.float64)
        variance = np.zeros(X.shape[1])
        for part in cut(len(X), 4096):
            gap = X[part] - mean
            variance += np.einsum("ij,ij->j", gap, gap)
        variance /= len(X)
    else:
        mean, variance = mean_variance_axis(X.astype(np.float64), axis=0)
    varies = variance > (64 * np.finfo(np.float64).eps * np.abs(mean)) ** 2
    if not varies.any():
        return np.ones(X.shape[1])
    median = np.quantile(variance[varies], 0.5, method="lower")
    return np.asarray(np.sqrt(variance + FLOOR * median))


def _summed(
    rows: Doubles, codes: Integers, means: Means, coefficients: Doubles, n_jobs: int | None
) -> Pull:
    """`pull` of all rows, a block at a time."""

    def work(part: slice, _: Floats) -> Pull:
        return pull(rows[part], codes[part], means, coefficients)

    return sum_blocks(work, _blocks(rows, means), n_jobs, Room(0, np.dtype(np.float64)))


def _blocks(rows: Doubles, means: Means) -> list[slice]:
    return cut(len(rows), max(1, BLOCK_NUMBERS // max(rows.shape[1], len(means.owners))))
