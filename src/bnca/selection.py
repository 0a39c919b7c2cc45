"""Settings that choose themselves, by how well they foretell labels that were held out.

A *way* is a metric (a centre, or one learned around a centre) and a vote in it (`core.smoothing`).
Each way learns from all folds but one and votes on that one; what all the ways said is weighed in
`core.averaging`.  Where the weighing finds that labels are wrong, the ways that weigh most learn
and vote once more, from what the labels probably should be.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bnca.blocks import one_blas_thread, thread_count
from bnca.core import averaging, centers, smoothing
from bnca.core.metric import BayesianMetric
from bnca.learning import learn
from bnca.votes import MEANS, N_VOTES, PENALTIES, Doubt, Votes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bnca.core.arrays import Doubles, Integers
    from bnca.core.averaging import Weighed
    from bnca.learning import Learning
    from bnca.votes import Rows

CHOICE_ROWS = 1000
"""Settings are chosen on at most about this many rows; more of them would hardly differ."""

FOLDS = 5
"""Parts that are held out in turn."""

MANY = 600
"""From this many rows on, three parts are enough."""

GIVEN = "given"
"""The prior variance that was asked for."""

DOUBTFUL = 0.02
"""Flip rates below this are taken for clean labels, which need no second look."""


class Start(NamedTuple):
    """A metric to vote in.

    Attributes
    ----------
    center : str or float
        "euclidean", "scaled", "ledoit-wolf", or the shrinkage of the within-class metric.
    variance : float, "given" or None
        Prior variance of the metric that is learned around the centre, `GIVEN` where it is not ours
        to choose; None is the centre itself.
    """

    center: str | float
    variance: float | str | None = None


class Way(NamedTuple):
    """A metric, a vote in it, and whether it learns from probable labels.

    Attributes
    ----------
    start : Start
        The metric.
    vote : int
        Which vote (`bnca.votes`).
    doubt : Doubt or None
        How probable labels are found; None takes those given.
    """

    start: Start
    vote: int
    doubt: Doubt | None = None


class Choice(NamedTuple):
    """What was chosen.

    Attributes
    ----------
    ways : tuple of Way
        Ways that are worth their while.
    weighed : Weighed
        What each of them weighs.
    best : Start
        The best of the metrics that are learned, or the best of all where none is.
    clean : (n, C) float64
        P(true class) of each row by the others, held out.
    losses : dict
        Mean held-out loss of each metric, at its best vote.
    """

    ways: tuple[Way, ...]
    weighed: Weighed
    best: Start
    clean: Doubles
    losses: dict[Start, float]


def choose(
    rows: Rows,
    how: Learning,
    centers_: Sequence[str | float],
    variances: Sequence[float | str],
    flip_rates: tuple[float, ...],
) -> Choice:
    """Choose metrics, votes, their temperatures and the flip rate.

    Parameters
    ----------
    rows : Rows
        Rows of positive weight, of two classes or more.
    how : Learning
        How metrics are learned; its prior variance is overridden.
    centers_ : sequence
        Centres to try.
    variances : sequence
        Prior variances to try; empty leaves out metrics that are learned.
    flip_rates : tuple of float
        Flip rates to try; one is taken as given.

    Returns
    -------
    Choice
        Ways and their weights.
    """
    order = _content_order(rows)
    chosen = _spread_out(order, CHOICE_ROWS)
    sample = rows.take(chosen)
    folds = _folds(len(chosen), FOLDS if len(chosen) < MANY else 3)
    threads = thread_count(how.n_jobs)
    quick = replace(how, n_jobs=1, max_iter=6, tol=1e-2, flip_rate=flip_rates[len(flip_rates) // 4])
    starts = [Start(center) for center in centers_]
    votes = _held_out(sample, folds, starts, quick, threads)
    losses = _by_start(starts, sample, votes, flip_rates)
    if variances:
        first = starts[0].center
        best = min(losses, key=lambda start: losses[start]).center
        around = dict.fromkeys([first, best])
        learned = [Start(center, v) for center in around for v in variances][: len(variances) + 1]
        more = _held_out(sample, folds, learned, quick, threads)
        losses |= _by_start(learned, sample, more, flip_rates)
        starts += learned
        votes = np.concatenate([votes, more])
    ways = [Way(start, vote) for start in starts for vote in range(N_VOTES)]
    log_prior = np.tile(_vote_prior(), len(starts))[:, None] + _flip_prior(flip_rates)
    ways, votes, log_prior, weighed = _weigh(ways, votes, log_prior, sample, flip_rates)
    if weighed.flip_rate > DOUBTFUL:
        doubtful = [
            way._replace(doubt=Doubt(weighed.flip_rate, float(t[np.argmax(s)])))
            for way, s, t in zip(ways, weighed.shares, weighed.temperatures, strict=True)
        ]
        votes = np.concatenate([votes, _held_out_again(sample, folds, doubtful, quick, threads)])
        ways += doubtful
        log_prior = np.concatenate([log_prior, log_prior])
        ways, votes, log_prior, weighed = _weigh(ways, votes, log_prior, sample, flip_rates)
    candidates = [s for s in losses if s.variance is not None] or list(losses)
    clean = np.full((len(rows.codes), rows.n_classes), np.nan)
    clean[chosen] = averaging.averaged(votes, weighed)
    return Choice(tuple(ways), weighed, min(candidates, key=lambda s: losses[s]), clean, losses)


def metric_map(rows: Rows, start: Start, how: Learning, truth: Doubles | None = None) -> Doubles:
    """Return L (q, r): distances in a metric are those of coordinates times L.

    Parameters
    ----------
    rows : Rows
        Rows to learn from.
    start : Start
        Which metric.
    how : Learning
        How it is learned, if it is.
    truth : (n, C) or None
        Probable labels; None takes those given.
    """
    L = center_map(rows, start.center, truth)
    if start.variance is None:
        return L
    L = L @ turned(rows, L, how, truth)
    how_here = how if start.variance == GIVEN else replace(how, prior_variance=start.variance)
    found = learn(
        rows.coordinates @ L,
        rows.codes,
        rows.weights,
        how_here.within(len(rows.codes)),
        truth,
    )
    metric = BayesianMetric(L, found.mean, found.covariance, found.full)
    return np.ascontiguousarray(metric.components().T)


def turned(rows: Rows, L: Doubles, how: Learning, truth: Doubles | None = None) -> Doubles:
    """Rotation (r, r') to the coordinates of a centre that get weights, telling ones first.

    Where all of them get weights as they are, it is the identity.
    """
    if how.coordinates is None:
        return np.eye(L.shape[1])
    rotation = centers.discriminating_first(rows.coordinates @ L, _labels(rows, truth))
    return rotation[:, : how.coordinates]


def center_map(rows: Rows, center: str | float, truth: Doubles | None = None) -> Doubles:
    """Return L of a centre, before anything is learned."""
    labels = _labels(rows, truth)
    if center == "euclidean":
        return np.eye(rows.coordinates.shape[1])
    if center == "scaled":
        L = centers.scaled_map(rows.coordinates, labels, rows.axes)
        # As many coordinates as there are axes say the same, however many columns there are.
        return L if L.shape[1] <= len(L) else np.linalg.qr(L.T).R.T
    if center == "ledoit-wolf":
        return centers.shrunk_map(rows.coordinates, labels, None)
    return centers.shrunk_map(rows.coordinates, labels, float(center))


def _labels(rows: Rows, truth: Doubles | None) -> Doubles:
    return (rows.labels if truth is None else truth) * rows.weights[:, None]


def _held_out(
    rows: Rows, folds: list[Integers], starts: list[Start], how: Learning, threads: int
) -> Doubles:
    """Votes (starts · votes, n, C) of all ways, each row by models that did not see it."""
    ways = [Way(start, vote) for start in starts for vote in range(N_VOTES)]
    return _held_out_again(rows, folds, ways, how, threads)


def _held_out_again(
    rows: Rows, folds: list[Integers], ways: list[Way], how: Learning, threads: int
) -> Doubles:
    """Votes (ways, n, C) of some ways."""
    out = np.empty((len(ways), len(rows.codes), rows.n_classes))
    places: dict[Start, list[int]] = {}
    for at, way in enumerate(ways):
        places.setdefault(way.start, []).append(at)

    def work(task: tuple[Start, Integers]) -> None:
        start, held = task
        train = rows.take(np.delete(np.arange(len(rows.codes)), held))
        L = metric_map(train, start, how)
        votes = Votes(train, L)
        queries = rows.coordinates[held] @ L
        squared = smoothing.squared_distances(queries, votes.embedding)
        for at in places[start]:
            voice = votes.voice(ways[at].vote, ways[at].doubt)
            if voice.points is not votes.embedding:
                out[at, held] = voice.say(smoothing.squared_distances(queries, voice.points))
            else:
                out[at, held] = voice.say(squared)

    in_parallel(work, [(start, held) for start in places for held in folds], threads)
    return out


def _weigh(
    ways: list[Way],
    votes: Doubles,
    log_prior: Doubles,
    rows: Rows,
    flip_rates: tuple[float, ...],
) -> tuple[list[Way], Doubles, Doubles, Weighed]:
    """Weigh ways, and keep those that weigh something."""
    weighed = averaging.weigh(
        votes, rows.codes, rows.weights, flip_rates=flip_rates, log_prior=log_prior
    )
    kept = np.flatnonzero(weighed.shares.any(axis=1))
    return (
        [ways[i] for i in kept],
        votes[kept],
        log_prior[kept],
        weighed._replace(
            shares=weighed.shares[kept],
            temperatures=weighed.temperatures[kept],
            losses=weighed.losses[kept],
        ),
    )


def _by_start(
    starts: list[Start], rows: Rows, votes: Doubles, flip_rates: tuple[float, ...]
) -> dict[Start, float]:
    """Least held-out loss of each metric."""
    zero = np.zeros((len(votes), len(flip_rates)))
    weighed = averaging.weigh(
        votes, rows.codes, rows.weights, flip_rates=flip_rates, log_prior=zero
    )
    least = weighed.losses.reshape(len(starts), -1).min(axis=1)
    return dict(zip(starts, least.tolist(), strict=True))


def _vote_prior() -> Doubles:
    """Logarithm of the prior of votes: smoothed ones, class means and centres share it equally."""
    vote = np.arange(N_VOTES)
    size = np.where(vote < MEANS, MEANS, np.where(vote == MEANS, 1, len(PENALTIES)))
    return np.asarray(-np.log(size))


def _flip_prior(flip_rates: tuple[float, ...]) -> Doubles:
    """Logarithm of the prior of flip rates: half of it says that labels are clean."""
    if len(flip_rates) == 1:
        return np.zeros(1)
    rates = np.asarray(flip_rates)
    return np.asarray(np.where(rates == 0, np.log(0.5), np.log(0.5 / (len(rates) - 1))))


def _content_order(rows: Rows) -> Integers:
    """Order of rows by class and then by distance from the centre.

    It depends on what the rows are, not on where they stand: the same rows in another order, or
    rotated, or in another unit, fall into the same folds.
    """
    gaps = rows.coordinates - rows.weights @ rows.coordinates / rows.weights.sum()
    radius = np.einsum("ij,ij->i", gaps, gaps)
    radius = np.round(radius / (float(radius.max()) or 1.0), 9)
    # Classes by the total of their radii: what they are called does not count either.
    total = np.bincount(rows.codes, radius, minlength=rows.n_classes)
    order: Integers = np.lexsort((radius, rows.codes, np.round(total, 6)[rows.codes]))
    return order


def _spread_out(order: Integers, most: int) -> Integers:
    """At most so many of the rows in order, evenly spread."""
    if len(order) <= most:
        return order
    return np.asarray(order[np.linspace(0, len(order) - 1, most).round().astype(np.intp)])


def _folds(n: int, count: int) -> list[Integers]:
    """Rows in the order of `_content_order`, dealt out in turn: classes are spread evenly."""
    count = min(count, n)
    return [np.arange(start, n, count) for start in range(count)]


def in_parallel(work: Callable[[Any], None], tasks: list[Any], threads: int) -> None:
    """Do tasks that write to places of their own, each on one thread."""
    with one_blas_thread():
        if threads == 1 or len(tasks) == 1:
            for task in tasks:
                work(task)
            return
        with ThreadPoolExecutor(min(threads, len(tasks))) as pool:
            list(pool.map(work, tasks))
