"""The fixed point of Algorithm 1 over statistics and a prior.

What is minimised is the negative lower bound, a convex function of the mean,

    F(m) = loss(m) + ½ (m - m0)ᵀ V0⁻¹ (m - m0).

`published` repeats eq. 23 and 24 as they stand: a step with the fixed curvature of Böhning's bound.
`newton` steps with the exact Hessian of the same F, and once steps are short with the last Hessian
corrected by what the gradients have shown since (BFGS), for a Hessian costs several times a
gradient.  `anderson` extrapolates the published steps from the last few.  All end at the same
optimum; a step of the last two that would raise F is shortened, or replaced by the published one,
which never raises it.

The likelihood of picks (`bnca.core.picks`) has no such bound and is not convex: it goes by Newton's
steps alone, with as much of the prior's precision added to the Hessian as makes it definite.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np
import scipy.linalg

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bnca.core.arrays import Doubles
    from bnca.core.bound import Curvature, Statistics

Solver = Literal["newton", "anderson", "published"]

SHORT = 0.1
"""A step shorter than this part of the mean changes the Hessian so little that it is kept."""

MEMORY = 5
"""How many past steps Anderson mixing combines."""


class Prior(NamedTuple):
    """The Gaussian prior N(m0, V0) of eq. 11.

    Attributes
    ----------
    mean : (p,) float64
        m0.
    precision : (p, p) float64
        V0⁻¹.
    """

    mean: Doubles
    precision: Doubles

    def log_density(self, weights: Doubles) -> float:
        """Return log N(weights | m0, V0)."""
        gap = weights - self.mean
        _, log_determinant = np.linalg.slogdet(self.precision)
        return float(
            (log_determinant - len(gap) * np.log(2 * np.pi) - gap @ self.precision @ gap) / 2
        )


class Solution(NamedTuple):
    """The answer, and how the search for it ended.

    Attributes
    ----------
    mean : (p,) float64
        m_T (eq. 23 at its fixed point).
    covariance : (p, p) float64
        V_T (eq. 22).
    converged : bool
        Whether the last step was smaller than the tolerance.
    n_iter : int
        Number of steps taken.
    lower_bounds : tuple of float
        The lower bound of log-likelihood plus log prior, at the start and after each step.
    last_step : float
        Length of the last step relative to the mean.
    """

    mean: Doubles
    covariance: Doubles
    converged: bool
    n_iter: int
    lower_bounds: tuple[float, ...]
    last_step: float


class Evaluate(Protocol):
    """Statistics of all anchors at a mean, with the curvature that is asked for."""

    def __call__(self, mean: Doubles, curvature: Curvature) -> Statistics:
        """Sum over all anchors."""
        ...


class Point(NamedTuple):
    """A mean, and F, its gradient and (if it was asked for) its Hessian there."""

    mean: Doubles
    objective: float
    gradient: Doubles
    hessian: Doubles


def solve(
    evaluate: Evaluate,
    prior: Prior,
    *,
    solver: Solver = "newton",
    tol: float = 1e-6,
    max_iter: int = 100,
    start: Doubles | None = None,
    callback: Callable[[int, float, float], None] | None = None,
    curvature: Literal["bohning", "exact"] = "bohning",
    bounded: bool = True,
) -> Solution:
    """Posterior N(m_T, V_T) of the weights (Algorithm 1).

    Parameters
    ----------
    evaluate : callable
        ``evaluate(mean, curvature)`` returns the `Statistics` of all anchors.
    prior : Prior
        m0 and V0⁻¹.
    solver : {"newton", "anderson", "published"}
        How to step.
    tol : float
        Stop when a step is shorter than `tol` times the mean (Euclidean norms).
    max_iter : int
        Steps at most.
    start : (p,) or None
        Where to start; None is the prior mean.
    callback : callable or None
        Called as ``callback(step, lower_bound, relative_length)`` after each step.
    curvature : {"bohning", "exact"}
        Whose inverse the covariance is: that of the bound (eq. 22), or of F itself at its optimum.
    bounded : bool
        Whether the loss has Böhning's bound; the likelihood of picks has not.

    Returns
    -------
    Solution
        Mean, covariance and how the search ended.
    """
    search = _Search(evaluate, prior, bounded=bounded)
    point, bounds, length = _follow(search, solver, start, tol, max_iter, callback)
    if curvature == "bohning":
        factor = search.factor
    else:
        factor = _definite(search.at(point.mean, "exact").hessian, prior)
    covariance = scipy.linalg.cho_solve(factor, np.eye(len(prior.mean)))
    return Solution(
        point.mean,
        (covariance + covariance.T) / 2,
        length <= tol,
        len(bounds) - 1,
        tuple(bounds),
        length,
    )


def rough_optimum(
    evaluate: Evaluate, prior: Prior, *, tol: float = 1e-2, bounded: bool = True
) -> Doubles:
    """Return a mean near the optimum, to start from: `solve` without a covariance, by Newton."""
    search = _Search(evaluate, prior, bounded=bounded)
    return _follow(search, "newton", None, tol, 20, None)[0].mean


def inverse(statistics: Statistics, prior: Prior) -> Doubles:
    """Covariance (V0⁻¹ + curvature)⁻¹ for the curvature of statistics."""
    covariance = scipy.linalg.cho_solve(
        _definite(statistics.curvature + prior.precision, prior), np.eye(len(prior.mean))
    )
    return np.asarray((covariance + covariance.T) / 2)


def _definite(hessian: Doubles, prior: Prior) -> tuple[Doubles, bool]:
    """Cholesky factor of a Hessian, some of the prior's precision added where it needs that."""
    return _damped(hessian, prior)[0]


def _damped(hessian: Doubles, prior: Prior) -> tuple[tuple[Doubles, bool], float]:
    """Such a factor, and how many times the precision was added."""
    added = 0.0
    while True:
        try:
            factor, lower = scipy.linalg.cho_factor(hessian + added * prior.precision, lower=True)
        except np.linalg.LinAlgError:
            added = 4 * added or 0.25
        else:
            return (np.asarray(factor), bool(lower)), added


class _Search:
    """F with its derivatives, and the published update."""

    def __init__(self, evaluate: Evaluate, prior: Prior, *, bounded: bool = True) -> None:
        self.evaluate = evaluate
        self.prior = prior
        self.bounded = bounded

    def at(self, mean: Doubles, curvature: Curvature) -> Point:
        sums = self.evaluate(mean, curvature)
        gap = mean - self.prior.mean
        pull = self.prior.precision @ gap
        loss = sums.loss + float(gap @ pull) / 2
        return Point(mean, loss, sums.slope + pull, sums.curvature + self.prior.precision)

    @cached_property
    def factor(self) -> tuple[Doubles, bool]:
        """Cholesky factor of V_T⁻¹ (eq. 22), which no mean changes."""
        return _definite(self.at(self.prior.mean, "bohning").hessian, self.prior)

    def newton(self, bend: Doubles, gradient: Doubles) -> tuple[Doubles, bool]:
        """Newton's step with a Hessian or an approximation to it, and whether that was definite."""
        factor, added = _damped(bend, self.prior)
        return np.asarray(-scipy.linalg.cho_solve(factor, gradient)), added == 0

    def published(self, point: Point) -> Doubles:
        """One round of Algorithm 1, written as m ← m - V_T ∇F(m)."""
        return np.asarray(point.mean - scipy.linalg.cho_solve(self.factor, point.gradient))


def _follow(  # noqa: PLR0917 - what solve and rough_optimum have in common
    search: _Search,
    solver: Solver,
    start: Doubles | None,
    tol: float,
    max_iter: int,
    callback: Callable[[int, float, float], None] | None,
) -> tuple[Point, list[float], float]:
    """Take steps until one is short; return the end, the bounds on the way, the last length."""
    steps = {"published": _repeat, "anderson": _extrapolate, "newton": _newton}[solver]
    path = steps(search, search.prior.mean if start is None else start)
    # The bound is -F but for the constants of the prior's density.
    offset = search.prior.log_density(search.prior.mean)
    point = next(path)
    bounds = [offset - point.objective]
    length = np.inf
    for new in path:
        length = _relative(new.mean - point.mean, new.mean)
        point = new
        bounds.append(offset - point.objective)
        if callback is not None:
            callback(len(bounds) - 1, bounds[-1], length)
        if length <= tol or len(bounds) > max_iter:
            break
    return point, bounds, length


def _repeat(search: _Search, mean: Doubles) -> Iterator[Point]:
    """Algorithm 1 as it stands.

    Each update minimises a quadratic that lies above F and touches it, so F cannot rise: what
    looks like a rise is rounding, and is not reported as one.
    """
    point = search.at(mean, "none")
    while True:
        yield point
        new = search.at(search.published(point), "none")
        point = new._replace(objective=min(new.objective, point.objective))


def _newton(search: _Search, mean: Doubles) -> Iterator[Point]:
    """Newton's steps, shortened while they would raise F."""
    point = search.at(mean, "exact")
    bend, fresh = point.hessian, True
    while True:
        yield point
        direction, definite = search.newton(bend, point.gradient)
        # What makes an indefinite Hessian definite also makes steps short: they would creep on.
        keep = definite and _relative(direction, point.mean) < SHORT
        new = search.at(point.mean + direction, "none" if keep else "exact")
        if not _is_lower(new, point):
            if not fresh:  # the corrected Hessian misled: take the true one
                bend = search.at(point.mean, "exact").hessian
                direction, _ = search.newton(bend, point.gradient)
            new = _shortened(search, point, direction)
            keep = False
        along, turn = new.mean - point.mean, new.gradient - point.gradient
        if keep and along @ turn > 0:
            bend, fresh = _bfgs(bend, along, turn), False
        elif keep:  # the loss bends downwards here, which no correction can say
            bend, fresh = search.at(new.mean, "exact").hessian, True
        else:
            bend, fresh = new.hessian, True
        point = _lower(new, point)


def _shortened(search: _Search, point: Point, direction: Doubles) -> Point:
    """The first of ever shorter steps that lowers F, at last the published one.

    From a prior mean that is far too large all probabilities are zero or one and F is nearly a
    polyhedron: Newton's step is then too long by orders of magnitude, the published one too short.
    """
    for power in range(1, 16):
        new = search.at(point.mean + 0.25**power * direction, "none")
        if _is_lower(new, point):
            return search.at(new.mean, "exact")
    if not search.bounded:  # not even a thousand-millionth of it lowers F: this is the optimum
        return point
    return search.at(search.published(point), "exact")


def _bfgs(bend: Doubles, step: Doubles, turn: Doubles) -> Doubles:
    """A Hessian corrected so that it maps the last step to how the gradient turned along it."""
    along = float(step @ turn)
    pressed = bend @ step
    if along <= 0 or step @ pressed <= 0:  # where F is convex, only rounding can make it so
        return bend
    return np.asarray(
        bend + np.outer(turn, turn) / along - np.outer(pressed, pressed) / float(step @ pressed)
    )


def _extrapolate(search: _Search, mean: Doubles) -> Iterator[Point]:
    """The published step, extrapolated from the last few (Anderson mixing)."""
    point = search.at(mean, "none")
    past: list[tuple[Doubles, Doubles]] = []
    while True:
        yield point
        move = search.published(point) - point.mean
        past = [*past[-MEMORY:], (point.mean, move)]
        new = None
        if len(past) > 1:
            means = np.diff([m for m, _ in past], axis=0).T
            moves = np.diff([g for _, g in past], axis=0).T
            mixing = np.linalg.lstsq(moves, move, rcond=None)[0]
            new = search.at(point.mean + move - (means + moves) @ mixing, "none")
        if new is None or not _is_lower(new, point):
            past = past[-1:]
            new = search.at(point.mean + move, "none")
        point = _lower(new, point)


def _lower(new: Point, old: Point) -> Point:
    """Accept a step unless it raises F; a rise that is only rounding is not counted as one."""
    if _is_lower(new, old):
        return new._replace(objective=min(new.objective, old.objective))
    return old


def _is_lower(new: Point, old: Point) -> bool:
    """Whether F fell, but for rounding of its sums."""
    rounding = 64 * np.finfo(np.float64).eps * max(1.0, abs(old.objective))
    return bool(new.objective <= old.objective + rounding)


def _relative(step: Doubles, mean: Doubles) -> float:
    return float(np.linalg.norm(step) / max(np.linalg.norm(mean), np.finfo(np.float64).tiny))
