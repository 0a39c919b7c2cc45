"""The posterior of weights and threshold from labelled pairs, by a quadratic bound.

For a pair with margin features φ (`bnca.core.pairs`) and label y in {+1, -1}, P(y) = σ(y φᵀθ).  The
logistic function is bounded from below around ±ξ (Jaakkola and Jordan),

    log σ(z) ≥ log σ(ξ) + (z - ξ) / 2 - λ(ξ) (z² - ξ²),   λ(ξ) = tanh(ξ / 2) / (4 ξ),

so given all ξ the posterior of θ = (γ, μ) is Gaussian, N(m, V) with

    V⁻¹ = V0⁻¹ + Σ 2 λ(ξ) φφᵀ,   V⁻¹ m = V0⁻¹ m0 + Σ y φ / 2,

and given m and V the best ξ² = φᵀ(V + m mᵀ)φ.  With that ξ put in, the bound on the log evidence is

    L(m, V) = Σ [ y u / 2 - log 2 cosh(ξ / 2) ] - KL( N(m, V) | N(m0, V0) ),   u = φᵀm.

Repeating the two equations is the published iteration; it never lowers L.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np
import scipy.linalg

from bnca.core.solve import Prior, Solution

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles, Floats
    from bnca.core.pairs import PairBlock

Solver = Literal["newton", "published"]

Order = Literal["start", "published", "newton"]
"""Which matrices to sum: λ at its largest; λ at ξ; that and the Hessian in m."""


@dataclass(frozen=True, eq=False, slots=True)
class PairStatistics:
    """What a set of pairs says at one posterior; disjoint sets add up.

    Attributes
    ----------
    bound : float
        Σ [ y u / 2 - log 2 cosh(ξ / 2) ].
    slope : (p + 1,) float64
        Its gradient in m, Σ (y / 2 - 2 λ u) φ.
    precision : (p + 1, p + 1) float64
        Σ 2 λ φφᵀ, which is minus twice its gradient in V.
    hessian : (p + 1, p + 1) float64
        Minus its second derivatives in m, Σ (2 λ + 4 u² dλ/dξ²) φφᵀ; zero where not asked for.
    """

    bound: float
    slope: Doubles
    precision: Doubles
    hessian: Doubles

    def __add__(self, other: PairStatistics) -> PairStatistics:
        return PairStatistics(
            self.bound + other.bound,
            self.slope + other.slope,
            self.precision + other.precision,
            self.hessian + other.hessian,
        )


class Moments(NamedTuple):
    """A Gaussian N(mean, root rootᵀ) and the logarithm of the determinant of its covariance."""

    mean: Doubles
    root: Doubles
    log_determinant: float


class Evaluate(Protocol):
    """Statistics of all pairs."""

    def __call__(self, moments: Moments, order: Order) -> PairStatistics: ...


TINY = 1e-8
"""Below this ξ, λ(ξ) is λ(0) to the last digit."""

SMALL = 2e-2
"""Below this ξ, dλ/d(ξ²) as a difference loses digits that its series of two terms has."""

Callback = Callable[[int, "Doubles", float, float], None]


def curvature_of_bound(xi: Doubles) -> Doubles:
    """Return λ(ξ) = tanh(ξ / 2) / (4 ξ), which is 1/8 at zero."""
    small = xi < TINY
    safe = np.where(small, 1.0, xi)
    return np.where(small, 0.125, np.tanh(safe / 2) / (4 * safe))


def curvature_slope(xi: Doubles) -> Doubles:
    """Return dλ/d(ξ²), which is -1/96 at zero and never positive."""
    small = xi < SMALL
    safe = np.where(small, 1.0, xi)
    tanh = np.tanh(safe / 2)
    exact = (safe / 2 * (1 - tanh**2) - tanh) / safe / safe / (8 * safe)  # ξ³ may overflow
    return np.where(small, -1 / 96 + xi**2 / 480, exact)


def expand(
    block: PairBlock, moments: Moments, order: Order, spare: Floats | None = None
) -> PairStatistics:
    """Statistics of a block of pairs; a pure function of the block.

    Parameters
    ----------
    block : PairBlock
        Features (b, p + 1), labels and weights.
    moments : Moments
        Posterior to expand at; of no account where `order` is "start".
    order : {"start", "published", "newton"}
        "start" sums λ at its largest, 1/8, and no more; "newton" adds the Hessian.
    spare : flat array or None
        Scratch memory for b (p + 1) numbers.

    Returns
    -------
    PairStatistics
        Sums over the block.
    """
    features, sign, weights = block
    b, p = features.shape
    room = np.empty_like(features) if spare is None else spare[: b * p].reshape(b, p)
    empty = np.zeros((p, p))
    if order == "start":
        return PairStatistics(
            0.0, np.zeros(p), _weighted_product(features, weights / 4, room), empty
        )
    u = (features @ moments.mean.astype(features.dtype)).astype(np.float64)
    spread = np.matmul(features, moments.root.astype(features.dtype), out=room)
    xi = np.sqrt(u * u + np.einsum("ij,ij->i", spread, spread, dtype=np.float64))
    # log 2 cosh(ξ / 2), which must not overflow.
    bound = float(weights @ (sign * u / 2 - xi / 2 - np.log1p(np.exp(-xi))))
    double = 2 * curvature_of_bound(xi)
    pull = weights * (sign / 2 - double * u)
    slope = (pull.astype(features.dtype) @ features).astype(np.float64)
    precision = _weighted_product(features, weights * double, room)
    if order == "published":
        return PairStatistics(bound, slope, precision, empty)
    # In exact arithmetic it is never negative.
    second = np.maximum(double + 4 * u * u * curvature_slope(xi), 0)
    return PairStatistics(
        bound, slope, precision, _weighted_product(features, weights * second, room)
    )


def solve(
    evaluate: Evaluate,
    prior: Prior,
    *,
    solver: Solver = "newton",
    factorized: bool = False,
    tol: float = 1e-6,
    max_iter: int = 100,
    sample: Evaluate | None = None,
    rounding: float = 1e-13,
    callback: Callback | None = None,
) -> Solution:
    """Posterior N(m, V) of θ at the fixed point of the bound.

    "published" repeats the two equations above from the prior on.  "newton" takes V from its
    equation but m by a Newton step on L, which converges in a handful of passes; a step that would
    lower L is replaced by the published one.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(moments, order)`` returns the `PairStatistics` of all pairs.
    prior : Prior
        Mean and precision of θ.
    solver : {"newton", "published"}
        How to step.
    factorized : bool
        Whether γ and μ are held independent in the posterior.
    tol : float
        Stop when a step changes the mean by less than `tol` times its length, and no standard
        deviation by more than that share.
    max_iter : int
        Steps at most.
    sample : callable or None
        Statistics of a few pairs that stand for all; "newton" starts from their posterior.
    rounding : float
        How far, relative to its size, rounding may lower the computed bound.
    callback : callable or None
        Called as ``callback(step, mean, lower_bound, relative_change)`` after each step.

    Returns
    -------
    Solution
        Mean, covariance and how the search ended.
    """
    if solver == "published":
        start = _moments(prior.mean, prior.precision, factorized=factorized)
    else:
        # At zero no margin is far out, where the Hessian is flat and Newton's steps too long.
        few = sample or evaluate
        zero = Moments(np.zeros_like(prior.mean), np.zeros_like(prior.precision), 0.0)
        precision = prior.precision + few(zero, "start").precision
        start = _moments(zero.mean, precision, factorized=factorized)
        if sample is not None:
            early = Search(sample, prior, solver, factorized=factorized, rounding=rounding)
            start = early.run(start, 1e-2, max_iter).moments
    search = Search(evaluate, prior, solver, factorized=factorized, rounding=rounding)
    found = search.run(start, tol, max_iter, callback)
    return Solution(
        found.moments.mean,
        found.moments.root @ found.moments.root.T,
        found.change <= tol,
        len(found.bounds) - 1,
        tuple(found.bounds),
        found.change,
    )


class Found(NamedTuple):
    """Where a search ended, the bound on its way, and the size of its last step."""

    moments: Moments
    bounds: list[float]
    change: float


class Search:
    """Steps on L, for one set of pairs and one prior."""

    def __init__(
        self,
        evaluate: Evaluate,
        prior: Prior,
        solver: Solver,
        *,
        factorized: bool,
        rounding: float,
    ) -> None:
        self.evaluate = evaluate
        self.prior = prior
        self.solver = solver
        self.factorized = factorized
        self.rounding = rounding

    def run(
        self, moments: Moments, tol: float, max_iter: int, callback: Callback | None = None
    ) -> Found:
        """Step until the change is at most `tol`."""
        sums, bound = self._at(moments)
        bounds = [bound]
        change = np.inf
        for step in range(1, max_iter + 1):
            previous = moments
            moments, sums, bound = self._step(previous, sums, bound)
            bounds.append(bound)
            change = _change(previous, moments)
            if callback is not None:
                callback(step, moments.mean, bound, change)
            if change <= tol:
                break
        return Found(moments, bounds, change)

    def _at(self, moments: Moments) -> tuple[PairStatistics, float]:
        sums = self.evaluate(moments, self.solver)
        return sums, sums.bound - _divergence(moments, self.prior)

    def _step(
        self, old: Moments, sums: PairStatistics, before: float
    ) -> tuple[Moments, PairStatistics, float]:
        """One step; the bound it returns is never lower than `before`."""
        prior = self.prior
        gradient = sums.slope - prior.precision @ (old.mean - prior.mean)
        precision = prior.precision + sums.precision
        if self.solver == "newton":
            mean = old.mean + _solve_symmetric(prior.precision + sums.hessian, gradient)
            new = _moments(mean, precision, factorized=self.factorized)
            found, bound = self._at(new)
            if bound >= before - self.rounding * abs(before):
                return new, found, max(bound, before)
        mean = old.mean + _solve_symmetric(precision, gradient)
        new = _moments(mean, precision, factorized=self.factorized)
        found, bound = self._at(new)
        # This step never lowers L: where it seems to, that is the rounding of a sum.
        return new, found, max(bound, before)


def _moments(mean: Doubles, precision: Doubles, *, factorized: bool) -> Moments:
    """Return the Gaussian with this precision, or with its two diagonal blocks alone."""
    if factorized:
        # With the mean that all of the precision gives, this is the best product q(γ) q(μ).
        precision = precision.copy()
        precision[-1, :-1] = precision[:-1, -1] = 0
    scale, lower = _factor(precision)
    # Not solve_triangular, for which OpenBLAS wakes its threads however small the factor is.
    inverse, _ = scipy.linalg.lapack.dtrtri(lower, lower=1)
    log_determinant = 2 * float(np.log(scale).sum() - np.log(np.diag(lower)).sum())
    return Moments(mean, np.ascontiguousarray((inverse * scale).T), log_determinant)


def _divergence(moments: Moments, prior: Prior) -> float:
    """Kullback-Leibler divergence of the posterior from the prior."""
    gap = moments.mean - prior.mean
    trace = float(np.vdot(moments.root, prior.precision @ moments.root))
    _, log_prior = np.linalg.slogdet(prior.precision)
    quadratic = float(gap @ prior.precision @ gap)
    return (quadratic + trace - len(gap) - moments.log_determinant - float(log_prior)) / 2


def _solve_symmetric(matrix: Doubles, vector: Doubles) -> Doubles:
    scale, lower = _factor(matrix)
    return np.asarray(scale * scipy.linalg.cho_solve((lower, True), scale * vector))


def _factor(matrix: Doubles) -> tuple[Doubles, Doubles]:
    """Return s and L with diag(s) matrix diag(s) = L Lᵀ.

    A unit diagonal keeps features of very different size from spoiling the factor.  Where features
    are so large that the prior is lost in rounding, the little that makes up for it is added.
    """
    scale = 1 / np.sqrt(np.diag(matrix))
    even = matrix * np.outer(scale, scale)
    extra = len(even) * np.finfo(np.float64).eps
    while True:
        try:
            return scale, np.asarray(scipy.linalg.cholesky(even, lower=True))
        except scipy.linalg.LinAlgError:
            even[np.diag_indices_from(even)] += extra
            extra *= 10


def _change(old: Moments, new: Moments) -> float:
    """Return the larger of the relative changes of the mean and of the standard deviations."""
    size = max(float(np.linalg.norm(new.mean)), np.finfo(np.float64).tiny)
    before = np.linalg.norm(old.root, axis=1)
    after = np.linalg.norm(new.root, axis=1)
    step = float(np.linalg.norm(new.mean - old.mean)) / size
    return max(step, float(np.abs(after / before - 1).max()))


def _weighted_product(features: Floats, coefficient: Doubles, room: Floats) -> Doubles:
    """Σ c φφᵀ for c ≥ 0, as one symmetric product; `room` is written over."""
    root = np.sqrt(coefficient).astype(features.dtype)
    np.multiply(features, root[:, None], out=room)
    return (room.T @ room).astype(np.float64)
