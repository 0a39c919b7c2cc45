"""L-BFGS for a function of a map that may have kinks."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from bnca.core.arrays import Doubles

FIRST_STEP = 0.1
"""Length of the first step tried, relative to the starting map."""

MEMORY = 10
"""How many past steps L-BFGS knows."""

TRIALS = 20
"""Points tried along one direction at most."""


class Value(NamedTuple):
    """The objective at a map: f(L), its gradient (q, r), and how many triples are active."""

    loss: float
    gradient: Doubles
    n_active: int


class Learned(NamedTuple):
    """A map, and how the search for it ended.

    Attributes
    ----------
    L : (q, r) float64
        The map.
    loss : float
        f(L).
    n_iter : int
        Steps taken.
    ended : {"tol", "max_iter", "stuck", "callback"}
        Whether two steps in a row lowered f by less than the tolerance; or steps ran out; or no
        lower point was found even down the gradient; or the callback raised StopIteration.
    """

    L: Doubles
    loss: float
    n_iter: int
    ended: str


class _Point(NamedTuple):
    """A map and the objective there."""

    L: Doubles
    value: Value


_History = deque[tuple["Doubles", "Doubles"]]


def minimize(
    objective: Callable[[Doubles], Value],
    start: Doubles,
    *,
    max_iter: int,
    tol: float,
    callback: Callable[[int, Doubles, Value], None] | None = None,
) -> Learned:
    """Minimise f by L-BFGS, with a line search that asks no more than f with kinks can give.

    Parameters
    ----------
    objective : callable
        ``objective(L)`` returns a `Value`.
    start : (q, r)
        Where to start.
    max_iter : int
        Steps at most.
    tol : float
        When two steps in a row lower f by less than this, relative to f, or to a hundredth of f at
        the start if that is more, the search ends.
    callback : callable or None
        Called as ``callback(step, L, value)`` after each step.

    Returns
    -------
    Learned
        The map, and how the search for it ended.
    """
    point = _Point(start, objective(start))
    floor = point.value.loss / 100  # classes that can be told apart may let f go to zero
    history: _History = deque(maxlen=MEMORY)
    ended, taken, short_steps = "max_iter", 0, 0
    while taken < max_iter:
        direction = _direction(point.value.gradient, history)
        size = float(np.linalg.norm(direction))
        if size == 0:
            ended = "tol"
            break
        first = 1.0 if history else FIRST_STEP * (float(np.linalg.norm(start)) or 1.0) / size
        new = _line_search(objective, point, direction, first)
        if new is None:
            if not history:
                ended = "stuck"
                break
            history.clear()  # the slopes of the past mislead beyond a kink: down the gradient
            continue
        move, turn = new.L - point.L, new.value.gradient - point.value.gradient
        if np.vdot(move, turn) > 0:
            history.append((move, turn))
        gain = point.value.loss - new.value.loss
        short_steps = short_steps + 1 if gain <= tol * max(new.value.loss, floor) else 0
        point = new
        taken += 1
        try:
            if callback is not None:
                callback(taken, point.L, point.value)
        except StopIteration:
            ended = "callback"
            break
        if short_steps > 1:
            ended = "tol"
            break
    return Learned(point.L, point.value.loss, taken, ended)


def _direction(gradient: Doubles, history: _History) -> Doubles:
    """- B ∇f, B being the inverse curvature that past moves and turns of the gradient suggest."""
    direction = -gradient
    shares: list[float] = []
    for move, turn in reversed(history):
        shares.append(float(np.vdot(move, direction) / np.vdot(move, turn)))
        direction = direction - shares[-1] * turn
    if history:
        move, turn = history[-1]
        direction = direction * (np.vdot(move, turn) / np.vdot(turn, turn))
    for (move, turn), share in zip(history, reversed(shares), strict=True):
        direction = direction + (share - np.vdot(turn, direction) / np.vdot(move, turn)) * move
    return np.asarray(direction)


def _line_search(
    objective: Callable[[Doubles], Value], point: _Point, direction: Doubles, length: float
) -> _Point | None:
    """Lower point along a direction where the slope is no longer as steep (weak Wolfe conditions).

    Doubles a length that is too short and halves the interval once there is one that is too long,
    which also ends at a kink.  None where nothing lower was found.
    """
    slope = float(np.vdot(point.value.gradient, direction))
    short, long = 0.0, np.inf
    best = None
    for _ in range(TRIALS):
        L = point.L + length * direction
        new = _Point(L, objective(L))
        if not new.value.loss < point.value.loss + 1e-4 * length * slope:
            long = length
        else:
            best = new
            if np.vdot(new.value.gradient, direction) >= 0.9 * slope:
                break
            short = length
        length = 2 * short if np.isinf(long) else (short + long) / 2
    return best
