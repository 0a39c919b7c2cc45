"""From coordinates and labels to a posterior: neighbours, anchors, statistics, solution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bnca.blocks import Room, cut, sum_blocks
from bnca.core.anchors import Anchors
from bnca.core.bound import Statistics
from bnca.core.features import count_weights, pack
from bnca.core.skewness import about_mode, no_wider, third_derivative
from bnca.core.solve import Solution, inverse, rough_optimum, solve
from bnca.neighbors import nearest
from bnca.validation import gaussian_prior

if TYPE_CHECKING:
    from collections.abc import Callable

    from bnca.core.arrays import Doubles, Floats, Integers
    from bnca.core.bound import Curvature
    from bnca.core.solve import Evaluate, Prior

BLOCK_NUMBERS = 1 << 18
"""Feature values in a block of anchors unless block_size says otherwise: they stay in cache."""

MIN_PRODUCT_ROWS = 512
"""A block has at least about this many rows of features: thin matrix products are slow."""

WARM_START = 5_000
"""From this many anchors on, Newton starts from the optimum over a tenth of them."""

ROUGH = 1e-4
"""A search that may end at longer steps than this is after a mean, whatever its spread."""


@dataclass(frozen=True, eq=False)
class Learning:
    """How a metric is learned from coordinates; the parameters of `BayesianNCA` by their names.

    Attributes
    ----------
    n_neighbors : int or None
        K; None is all other rows.
    full : int
        How many leading coordinates have a weight for each product of two.
    prior_mean, prior_variance
        m0 and V0.  A number m0 stands for m0·I, whatever the basis.
    likelihood : {"product", "picks"}
        The published product over same-class neighbours, or one pick for each anchor.
    curvature : {"bohning", "exact", "votes", "tempered"}
        What the covariance is the inverse of.  With picks the square of the distance from the mode
        to the mean is added (`core.skewness`).
    flip_rate : float
        ε, in the likelihood of picks.
    coordinates : int or None
        How many leading coordinates get weights, where they are ordered by what they tell.
    n_classes : int
        Number of classes that a label may be flipped to, where some of them do not occur.
    rescale, solver, max_iter, tol, block_size, n_jobs
        As in `BayesianNCA`.
    """

    n_neighbors: int | None
    full: int = 0
    prior_mean: Any = 4.0
    prior_variance: Any = 0.1
    likelihood: str = "product"
    curvature: str = "bohning"
    flip_rate: float = 0.0
    coordinates: int | None = None
    n_classes: int = 0
    rescale: bool = True
    solver: str = "newton"
    max_iter: int = 100
    tol: float = 1e-6
    block_size: int | None = None
    n_jobs: int | None = None

    def within(self, n: int) -> Learning:
        """Settings that n rows allow."""
        if self.n_neighbors is None or self.n_neighbors < n:
            return self
        return replace(self, n_neighbors=n - 1)


class Learned(NamedTuple):
    """A posterior in the coordinates it was learned in.

    Attributes
    ----------
    mean : (p,) float64
        m_T per squared unit of the coordinates.
    covariance : (p, p) float64
        V_T likewise.
    unit : float
        The squared distance in which the prior was stated.
    full : int
        How many leading coordinates are full.
    solution : Solution
        In units of `unit`, with how the search ended.
    """

    mean: Doubles
    covariance: Doubles
    unit: float
    full: int
    solution: Solution


def learn(  # noqa: PLR0917 - rows, labels, weights and how to learn from them
    coordinates: Doubles,
    codes: Integers,
    weights: Doubles,
    how: Learning,
    truth: Doubles | None = None,
    dtype: Any = np.float64,
    callback: Callable[[int, float, float], None] | None = None,
) -> Learned:
    """Posterior of the weights of a metric on coordinates.

    Parameters
    ----------
    coordinates : (n, r) float64
        Rows, as the prior mean has them: its metric is Euclidean distance between these.
    codes : (n,)
        Class of each row.
    weights : (n,)
        How often each row counts as an anchor.
    how : Learning
        Settings.
    truth : (n, n_classes) or None
        Probability of each true label, where given ones are doubtful.
    dtype : dtype
        Precision of the features.
    callback : callable or None
        Called after each step, as `solve` does.

    Returns
    -------
    Learned
        The posterior.
    """
    anchors, prior, unit = problem(coordinates, codes, weights, how, truth, dtype)
    solution = posterior(anchors, prior, how, callback)
    return Learned(
        solution.mean / unit, solution.covariance / unit**2, unit, anchors.full, solution
    )


def posterior(
    anchors: Anchors,
    prior: Prior,
    how: Learning,
    callback: Callable[[int, float, float], None] | None = None,
) -> Solution:
    """Posterior of the weights, from anchors and prior in the same unit; `learn` without rows."""
    start = None
    if how.solver == "newton" and len(anchors) >= WARM_START:
        # The optimum over a tenth of the anchors is a few per cent away from the whole one.
        start = rough_optimum(
            evaluator(anchors.every(10), how), prior, bounded=how.likelihood == "product"
        )
    solution = solve(
        evaluator(anchors, how),
        prior,
        solver=how.solver,  # type: ignore[arg-type]
        tol=how.tol,
        max_iter=how.max_iter,
        start=start,
        callback=callback,
        curvature="bohning" if how.curvature == "bohning" else "exact",
        bounded=how.likelihood == "product",
    )
    if how.curvature in {"votes", "tempered"}:
        return solution._replace(covariance=_wider(anchors, how, prior, solution.mean))
    if how.likelihood == "picks" and how.tol <= ROUGH:
        return solution._replace(covariance=_lopsided(anchors, how, prior, solution))
    return solution


def problem(  # noqa: PLR0917 - as for learn
    coordinates: Doubles,
    codes: Integers,
    weights: Doubles,
    how: Learning,
    truth: Doubles | None = None,
    dtype: Any = np.float64,
) -> tuple[Anchors, Prior, float]:
    """Likelihood and prior that `learn` solves: anchors, prior, and the unit both are in."""
    lists, unit = neighborhoods(
        coordinates, how.n_neighbors, rescale=how.rescale, n_jobs=how.n_jobs
    )
    # Coordinates in units of √unit make the stated prior one per unit of squared distance.
    scaled = (coordinates / np.sqrt(unit)).astype(dtype)
    truth = truth if how.likelihood == "picks" else None
    anchors = Anchors.informative(scaled, codes, lists, weights, truth)
    flips = None
    if how.likelihood == "picks":
        n_classes = max(how.n_classes, int(codes.max()) + 1)
        flips = (1 - how.flip_rate, how.flip_rate / max(n_classes - 1, 1))
    anchors = replace(anchors, full=min(how.full, scaled.shape[1]), flips=flips)
    return anchors, prior_of(how, scaled.shape[1], anchors.full), unit


def neighborhoods(
    coordinates: Doubles, k: int | None, *, rescale: bool = True, n_jobs: int | None = None
) -> tuple[Integers | None, float]:
    """Neighbour lists N_i among coordinates, and the unit of squared distance.

    The unit is the median over rows of the mean squared distance to a neighbour.
    """
    if k is None:
        # The mean over all other rows has a closed form, and no list is ever written.
        gaps = coordinates - coordinates.mean(axis=0)
        square = np.einsum("ij,ij->i", gaps, gaps)
        typical = (len(coordinates) * square + square.sum()) / (len(coordinates) - 1)
        lists = None
    else:
        lists, squared = nearest(coordinates, k, n_jobs=n_jobs)
        typical = squared.mean(axis=1)
    unit = float(np.median(typical)) if rescale else 1.0
    return lists, unit if unit > 0 else 1.0


def prior_of(how: Learning, r: int, full: int) -> Prior:
    """Prior of the weights of r coordinates, `full` of them full."""
    mean = how.prior_mean
    if full > 1 and np.ndim(mean) == 0 and np.isfinite(mean):
        mean = pack(np.eye(r) * float(mean), full)
    return gaussian_prior(mean, how.prior_variance, count_weights(r, full))


def evaluator(anchors: Anchors, how: Learning) -> Evaluate:
    """Sum the statistics of anchors over blocks, on threads."""
    blocks, room = _cut(anchors, how)

    def evaluate(mean: Doubles, curvature: Curvature) -> Statistics:
        if not blocks:  # no row has a neighbour of its own class: the prior is all there is
            p = anchors.n_weights
            return Statistics(0.0, np.zeros(p), np.zeros((p, p)))

        def work(part: slice, room: Floats) -> Statistics:
            return anchors.statistics(part, mean, curvature, room)

        return sum_blocks(work, blocks, how.n_jobs, room)

    return evaluate


def _cut(anchors: Anchors, how: Learning) -> tuple[list[slice], Room]:
    """Blocks of anchors, and the scratch memory that each needs."""
    p = anchors.n_weights
    k = len(anchors.scores) - 1 if how.n_neighbors is None else how.n_neighbors
    size = how.block_size or max(1, max(BLOCK_NUMBERS, MIN_PRODUCT_ROWS * p) // (k * p))
    numbers = min(size, len(anchors)) * k * anchors.scores.shape[1]
    return cut(len(anchors), size), Room(numbers, anchors.scores.dtype)


def _wider(anchors: Anchors, how: Learning, prior: Prior, mean: Doubles) -> Doubles:
    """Covariance when an anchor counts once, however many neighbours of its class it has.

    "votes" lets them share its one vote and takes the Hessian of that loss; "tempered" divides
    Böhning's curvature by their average number.
    """
    if how.curvature == "votes":
        return inverse(evaluator(replace(anchors, shared=True), how)(mean, "exact"), prior)
    statistics = evaluator(anchors, how)(mean, "bohning")
    return inverse(statistics * (1 / anchors.mean_agreement()), prior)


def _lopsided(anchors: Anchors, how: Learning, prior: Prior, solution: Solution) -> Doubles:
    """Mean square of what weights differ from the mode by: the posterior of picks is lopsided."""
    blocks, room = _cut(anchors, how)
    flips = anchors.flips
    if not blocks or flips is None:
        return solution.covariance
    covariance = no_wider(solution.covariance, prior.precision)
    root = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)

    def work(part: slice, room: Floats) -> Statistics:
        third = third_derivative(*anchors.block(part, room), solution.mean, root, flips)
        return Statistics(0.0, third, np.zeros(()))

    third = sum_blocks(work, blocks, how.n_jobs, room).slope
    return about_mode(covariance, root, third)
