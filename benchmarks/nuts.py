"""The No-U-Turn sampler in NumPy, to hold a Gaussian posterior against the true one.

Multinomial sampling over the path and the generalised criterion for turning back (Betancourt,
arXiv:1701.02434), the step by dual averaging (Hoffman and Gelman, arXiv:1111.4246), and a dense
mass matrix that is not adapted: the inverse of the covariance passed in, which for a posterior that
is nearly Gaussian is its Laplace approximation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

DIVERGED = 1000.0
"""An energy this far above that of the start means that the path has left the density."""


class State(NamedTuple):
    """A place on a path: position, momentum, gradient and log density there."""

    at: np.ndarray
    momentum: np.ndarray
    gradient: np.ndarray
    log_density: float

    @property
    def energy(self):
        """What a path keeps nearly constant."""
        return self.momentum @ self.momentum / 2 - self.log_density


@dataclass
class Tree:
    """A stretch of a path: its ends, the sum of momenta, and one state drawn from it."""

    left: State
    right: State
    total: np.ndarray
    drawn: State
    log_weight: float
    accept: float
    steps: int
    stopped: bool = False
    diverged: bool = False


class Draws(NamedTuple):
    """What came out.

    Attributes
    ----------
    values : (chains, draws, p)
        Draws after warm-up.
    steps : (chains,)
        Length of the steps, in units of the covariance.
    acceptance : float
        Mean probability of acceptance over the draws.
    divergences : int
        How many paths left the density.
    """

    values: np.ndarray
    steps: np.ndarray
    acceptance: float
    divergences: int

    @property
    def flat(self):
        """All chains one after the other, (chains · draws, p)."""
        return self.values.reshape(-1, self.values.shape[2])


def sample(
    log_density_and_gradient,
    start,
    covariance,
    rng,
    *,
    chains=4,
    warmup=300,
    draws=500,
    target=0.8,
    max_depth=8,
):
    """Draws from a density.

    Parameters
    ----------
    log_density_and_gradient : callable
        Of a point (p,): the log density up to a constant, and its gradient.
    start : (p,)
        Chains start around it, spread out as the covariance says.
    covariance : (p, p)
        Inverse of the mass matrix.
    rng : numpy.random.Generator
        Source of randomness.
    chains, warmup, draws : int
        How many chains, and how many draws of each are thrown away and kept.
    target : float
        Probability of acceptance that the step is adapted to.
    max_depth : int
        Paths double at most this often.

    Returns
    -------
    Draws
        Draws and how the chains went.
    """
    root = np.linalg.cholesky(covariance)

    def white(z):
        value, gradient = log_density_and_gradient(start + root @ z)
        return value, root.T @ gradient

    out = np.empty((chains, draws, len(start)))
    steps, accepted, divergences = np.empty(chains), 0.0, 0
    for chain in range(chains):
        z = rng.standard_normal(len(start))
        value, gradient = white(z)
        step = Step(_first_step(white, State(z, z, gradient, value), rng), target)
        for i in range(warmup + draws):
            size = step.trial if i < warmup else step.settled
            z, value, gradient, tree = _transition(white, z, value, gradient, size, max_depth, rng)
            if i < warmup:
                step.learn(tree.accept / tree.steps)
            else:
                out[chain, i - warmup] = start + root @ z
                accepted += tree.accept / tree.steps / (chains * draws)
                divergences += tree.diverged
        steps[chain] = step.settled
    return Draws(out, steps, accepted, divergences)


class Step:
    """The length of a step, by dual averaging."""

    def __init__(self, first, target):
        self.center, self.target = np.log(10 * first), target
        self.trial = self.settled = first
        self.count, self.gap, self.mean = 0, 0.0, 0.0

    def learn(self, acceptance):
        """Take note of how a step was accepted."""
        self.count += 1
        share = 1 / (self.count + 10)
        self.gap = (1 - share) * self.gap + share * (self.target - acceptance)
        log = self.center - np.sqrt(self.count) / 0.05 * self.gap
        weight = self.count**-0.75
        self.mean = weight * log + (1 - weight) * self.mean
        self.trial, self.settled = np.exp(log), np.exp(self.mean)


def _first_step(white, state, rng):
    """A step whose acceptance is about one half."""
    state = state._replace(momentum=rng.standard_normal(len(state.at)))
    step, last = 1.0, None
    for _ in range(50):
        fits = state.energy - _leap(white, state, step).energy > np.log(0.5)
        if last is not None and fits != last:
            return step
        last, step = fits, step * (2.0 if fits else 0.5)
    return step


def _leap(white, state, step):
    momentum = state.momentum + step / 2 * state.gradient
    at = state.at + step * momentum
    value, gradient = white(at)
    return State(at, momentum + step / 2 * gradient, gradient, value)


def _transition(white, z, value, gradient, step, max_depth, rng):  # noqa: PLR0917 - a state
    """One draw: a path doubled, forwards or backwards, until it turns back."""
    first = State(z, rng.standard_normal(len(z)), gradient, value)
    tree = Tree(first, first, first.momentum, first, 0.0, 0.0, 0)
    for depth in range(max_depth):
        forward = bool(rng.random() < 0.5)
        end = tree.right if forward else tree.left
        more = _grow(white, end, depth, step if forward else -step, first.energy, rng)
        tree.accept += more.accept
        tree.steps += more.steps
        tree.diverged = more.diverged
        if more.stopped:
            break
        # New states are preferred, which moves further and keeps the density as it is.
        take = np.log(rng.random()) < more.log_weight - tree.log_weight
        tree = _join(tree, more, forward=forward, take=take)
        if tree.stopped:
            break
    drawn = tree.drawn
    return drawn.at, drawn.log_density, drawn.gradient, tree


def _grow(white, end, depth, step, energy, rng):  # noqa: PLR0917 - it calls itself
    """2^depth further states beyond one end of a path."""
    if depth == 0:
        new = _leap(white, end, step)
        gain = energy - new.energy if np.isfinite(new.energy) else -np.inf
        lost = bool(gain < -DIVERGED)
        accept = float(np.exp(min(gain, 0.0)))
        return Tree(new, new, new.momentum, new, gain, accept, 1, stopped=lost, diverged=lost)
    near = _grow(white, end, depth - 1, step, energy, rng)
    if near.stopped:
        return near
    far = _grow(white, near.right if step > 0 else near.left, depth - 1, step, energy, rng)
    weight = np.logaddexp(near.log_weight, far.log_weight)
    take = np.log(rng.random()) < far.log_weight - weight
    tree = _join(near, far, forward=step > 0, take=take)
    tree.accept, tree.steps = near.accept + far.accept, near.steps + far.steps
    tree.stopped |= far.stopped
    tree.diverged = far.diverged
    return tree


def _join(near, far, *, forward, take):
    """Two stretches that follow each other as one, and whether it turns back anywhere."""
    left, right = (near, far) if forward else (far, near)
    total = left.total + right.total
    turned = (
        _turns(left.left, right.right, total)
        # Also from one half to the first state of the other: paths of a nearly Gaussian density
        # all have the same period, and may else run around it unnoticed.
        or _turns(left.left, right.left, left.total + right.left.momentum)
        or _turns(left.right, right.right, right.total + left.right.momentum)
    )
    return Tree(
        left.left,
        right.right,
        total,
        far.drawn if take else near.drawn,
        np.logaddexp(near.log_weight, far.log_weight),
        near.accept,
        near.steps,
        stopped=bool(turned),
    )


def _turns(left, right, total):
    return total @ left.momentum <= 0 or total @ right.momentum <= 0


def r_hat(values):
    """Split R̂ of each column of (chains, draws, p); above 1.01 the chains do not agree."""
    halves = _halves(values)
    n = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    return np.sqrt((n - 1) / n + between / within)


def effective_size(values):
    """Effective number of draws of each column, by Geyer's initial monotone sequence."""
    halves = _halves(values)
    m, n, p = halves.shape
    gaps = halves - halves.mean(axis=1, keepdims=True)
    power = np.fft.rfft(gaps, 2 * n, axis=1)
    products = np.fft.irfft(power * power.conj(), axis=1)[:, :n] / n
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    spread = (n - 1) / n * within + halves.mean(axis=1).var(axis=0, ddof=1)
    out = np.empty(p)
    for column in range(p):
        rho = 1 - (within[column] - products[:, :, column].mean(axis=0)) / spread[column]
        pairs = rho[: n - n % 2].reshape(-1, 2).sum(axis=1)
        end = int(np.argmax(pairs < 0)) if (pairs < 0).any() else len(pairs)
        time = 2 * np.minimum.accumulate(pairs[: max(end, 1)]).sum() - 1
        out[column] = m * n / max(time, 1 / np.log10(m * n))
    return out


def _halves(values):
    n = values.shape[1] // 2
    return np.concatenate([values[:, :n], values[:, -n:]])
