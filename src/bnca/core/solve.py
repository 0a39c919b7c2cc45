"""The fixed point of Algorithm 1 over statistics and a prior.

What is minimised is the negative lower bound, a convex function of the mean,

    F(m) = loss(m) + ½ (m - m0)ᵀ V0⁻¹ (m - m0).

`published` repeats eq. 21 and 22 as they stand: a step with the fixed curvature of Böhning's bound.
`newton` steps with the exact Hessian of the same F, and `anderson` extrapolates the published steps
from the last few.  All three end at the same optimum; a step of the last two that would raise F is
shortened or replaced by the published one, which never raises it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np
import scipy.linalg

if TYPE_CHECKING:
    from collections.abc import Callable

    from bnca.core.arrays import Doubles
    from bnca.core.bound import Curvature, Statistics

Solver = Literal["newton", "anderson", "published"]

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
        m_T (eq. 21 at its fixed point).
    covariance : (p, p) float64
        V_T (eq. 20).
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

    def __call__(self, mean: Doubles, curvature: Curvature) -> Statistics: ...


class _Point(NamedTuple):
    """A mean, and F and its derivatives there."""

    mean: Doubles
    objective: float
    gradient: Doubles
    hessian: Doubles


class _Problem:
    """F with its prior; evaluations go through here."""

    def __init__(self, evaluate: Evaluate, prior: Prior) -> None:
        self.evaluate = evaluate
        self.prior = prior

    def at(self, mean: Doubles, curvature: Curvature) -> _Point:
        sums = self.evaluate(mean, curvature)
        pull = self.prior.precision @ (mean - self.prior.mean)
        return _Point(
            mean,
            sums.loss + float((mean - self.prior.mean) @ pull) / 2,
            sums.slope + pull,
            sums.curvature + self.prior.precision,
        )


def solve(
    evaluate: Evaluate,
    prior: Prior,
    *,
    solver: Solver = "newton",
    tol: float = 1e-6,
    max_iter: int = 100,
    start: Doubles | None = None,
    callback: Callable[[int, float, float], None] | None = None,
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

    Returns
    -------
    Solution
        Mean, covariance and how the search ended.
    """
    problem = _Problem(evaluate, prior)
    origin = prior.mean if start is None else start
    fixed = problem.at(prior.mean, "bohning").hessian
    factor = scipy.linalg.cho_factor(fixed, lower=True)
    step = {"newton": _newton, "anderson": _anderson, "published": _published}[solver]

    # The bound is -F but for the constants of the prior's density.
    offset = prior.log_density(prior.mean)
    point = problem.at(origin, "exact" if solver == "newton" else "none")
    bounds = [offset - point.objective]
    history: list[tuple[Doubles, Doubles]] = []
    converged, length, taken = False, np.inf, 0
    for taken in range(1, max_iter + 1):
        previous = point
        point = step(problem, factor, previous, history, tol)
        length = _relative(point.mean - previous.mean, point.mean)
        bounds.append(offset - point.objective)
        if callback is not None:
            callback(taken, bounds[-1], length)
        if length <= tol:
            converged = True
            break
    covariance = scipy.linalg.cho_solve(factor, np.eye(len(fixed)))
    return Solution(
        point.mean,
        (covariance + covariance.T) / 2,
        converged,
        taken,
        tuple(bounds),
        float(length),
    )


_Factor = tuple["Doubles", bool]
_History = list[tuple["Doubles", "Doubles"]]


def _published(
    problem: _Problem, factor: _Factor, point: _Point, history: _History, tol: float
) -> _Point:
    """One round of Algorithm 1, written as m ← m - V_T ∇F(m); it cannot raise F."""
    del history, tol
    return problem.at(point.mean - scipy.linalg.cho_solve(factor, point.gradient), "none")


def _newton(
    problem: _Problem, factor: _Factor, point: _Point, history: _History, tol: float
) -> _Point:
    """One Newton step, halved while it would raise F, at last the published step."""
    direction = -scipy.linalg.solve(point.hessian, point.gradient, assume_a="pos")
    promised = float(-(point.gradient @ direction))
    for share in (1.0, 0.5, 0.25, 0.125):
        mean = point.mean + share * direction
        # A step this short is the last one: its Hessian would never be used.
        last = _relative(share * direction, mean) <= tol
        new = problem.at(mean, "none" if last else "exact")
        if new.objective <= point.objective - 1e-4 * share * promised:
            return new
        if _is_rounding(promised, point.objective):
            return _better(new, point)
    fallback = _published(problem, factor, point, history, tol)
    return problem.at(fallback.mean, "exact")


def _anderson(
    problem: _Problem, factor: _Factor, point: _Point, history: _History, tol: float
) -> _Point:
    """The published step, extrapolated from the last few (Anderson mixing of type II)."""
    move = -scipy.linalg.cho_solve(factor, point.gradient)
    history.append((point.mean, move))
    del history[: -MEMORY - 1]
    if len(history) > 1:
        means = np.diff([m for m, _ in history], axis=0).T
        moves = np.diff([g for _, g in history], axis=0).T
        mixing = np.linalg.lstsq(moves, move, rcond=None)[0]
        mixed = problem.at(point.mean + move - (means + moves) @ mixing, "none")
        if mixed.objective <= point.objective:
            return mixed
        history.clear()
    del tol
    return _better(problem.at(point.mean + move, "none"), point)


def _better(new: _Point, old: _Point) -> _Point:
    """Refuse a step that only rounding makes worse: F must never rise."""
    return new if new.objective <= old.objective else old


def _is_rounding(promised: float, objective: float) -> bool:
    return bool(promised <= 64 * np.finfo(np.float64).eps * max(1.0, abs(objective)))


def _relative(step: Doubles, mean: Doubles) -> float:
    return float(np.linalg.norm(step) / max(np.linalg.norm(mean), np.finfo(np.float64).tiny))
