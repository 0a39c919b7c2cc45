"""C14: whether ranking by mean and uncertainty of a distance finds more of a person's pictures.

People are split in three: those that the metric is learned from, those that say how much
uncertainty should count, and those whose pictures are searched.  Nobody is in two parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bnca.experiments.draw import prepare
from bnca.experiments.metrics import KEPT, kept_accuracy
from bnca.experiments.paper import published_model
from bnca.experiments.spec import DataSpec, Study
from bnca.experiments.tuning import quiet

if TYPE_CHECKING:
    from pathlib import Path

    from bnca.core.arrays import Doubles, Integers
    from bnca.core.metric import BayesianMetric
    from bnca.datasets import Dataset
    from bnca.experiments.spec import Part

RANKS = (1, 5, 10, 20)
"""Lengths of the answer, k."""

MULTIPLES = (-8.0, -4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Multiples of the standard deviation to choose from."""

JUDGED_AT = 10
"""The multiple is chosen by mAP at this k."""


class Search(NamedTuple):
    """Distances of each picture to every other, in one part of the people.

    Attributes
    ----------
    mean, std : (n, n)
        Of the squared distance.
    same : (n, n) bool
        Whether two pictures are of one person.
    """

    mean: Doubles
    std: Doubles
    same: Any


def hits(distances: Doubles, same: Any) -> Any:
    """Whether the picture at each place of each query's ranking is of the same person.

    Parameters
    ----------
    distances : (n, n)
        Of each picture to every other; a picture is not an answer to itself.
    same : (n, n) bool
        Whether two pictures are of one person.

    Returns
    -------
    (n, n - 1) bool
        Nearest first; of equals the earlier picture.
    """
    order = np.argsort(distances, axis=1, kind="stable")
    n = len(order)
    others = order[order != np.arange(n)[:, None]].reshape(n, n - 1)
    return np.take_along_axis(same, others, axis=1)


def recall_at(found: Any, k: int) -> float:
    """Share of queries with a picture of the same person among the first k."""
    return float(found[:, :k].any(axis=1).mean())


def average_precision_at(found: Any, k: int) -> float:
    """Mean over queries of the average precision among the first k.

    Precisions at the places of right answers, over how many there could be: k, or all pictures of
    that person if they are fewer.
    """
    first = found[:, :k]
    precision = np.cumsum(first, axis=1) / np.arange(1, first.shape[1] + 1)
    possible = np.minimum(found.sum(axis=1), k)
    average = (precision * first).sum(axis=1) / np.maximum(possible, 1)
    return float(average[possible > 0].mean())


def work(part: Part, data: Dataset, place: Path | None) -> list[dict[str, Any]]:  # noqa: ARG001
    """Recall and precision of three rankings; accuracy as uncertain queries are dropped."""
    spec = part.experiment.data
    rng = np.random.default_rng([part.seed, 14])
    people = rng.permutation(np.unique(data.y))
    parts = np.split(people, [len(people) // 2, (3 * len(people)) // 4])
    learn, tune, test = (_pictures(data.y, who, spec.rows_per_class, rng) for who in parts)
    X, others = prepare(data.X[learn], data.X[np.concatenate([tune, test])], spec)
    with quiet():
        metric = published_model().fit(X, data.y[learn]).metric_
    sought = _search(metric, others[: len(tune)], data.y[tune])
    asked = _search(metric, others[len(tune) :], data.y[test])
    equal = _squared(others[len(tune) :])
    multiple = choose_multiple(sought)
    both = asked.mean + multiple * asked.std
    told = {
        "n_queries": len(test),
        **{
            f"n_people_{name}": len(who)
            for name, who in zip(("train", "tune", "test"), parts, strict=True)
        },
    }
    rankings = (
        ("equal weights", equal, 0.0),
        ("mean", asked.mean, 0.0),
        ("mean and std", both, multiple),
    )
    out = []
    for name, distances, factor in rankings:
        found = hits(distances, asked.same)
        out += [
            {
                "kind": "ranking",
                "ranking": name,
                "k": k,
                "recall": recall_at(found, k),
                "map": average_precision_at(found, k),
                "multiple": factor,
                **told,
            }
            for k in RANKS
        ]
    certainties = _certainties(metric, others[len(tune) :], asked, _best_caution(sought))
    right = hits(asked.mean, asked.same)[:, 0].astype(np.float64)
    for name, certainty in certainties.items():
        for kept, accuracy in zip(KEPT, kept_accuracy(certainty, right), strict=True):
            row = {"kind": "kept", "certainty": name, "kept": kept, "accuracy": accuracy}
            out.append({**row, **told})
    return out


def choose_multiple(sought: Search) -> float:
    """Multiple of highest mAP on people who are not searched for; of equals the smallest."""
    return max(
        sorted(MULTIPLES, key=abs),
        key=lambda c: average_precision_at(
            hits(sought.mean + c * sought.std, sought.same), JUDGED_AT
        ),
    )


def _best_caution(sought: Search) -> float:
    """Multiple with which mean plus multiple of std orders queries by who is right, best."""
    right = hits(sought.mean, sought.same)[:, 0].astype(np.float64)
    mean, std = _of_nearest(sought)
    return max(
        sorted(MULTIPLES, key=abs),
        key=lambda c: float(np.mean(kept_accuracy(-(mean + c * std), right))),
    )


def _certainties(
    metric: BayesianMetric, rows: Doubles, asked: Search, multiple: float
) -> dict[str, Doubles]:
    """Ways to say how certain each query's nearest picture is the right person's."""
    mean, std = _of_nearest(asked)
    first, second = _nearest_two(asked.mean)
    return {
        "distance": -mean,
        "std": -std,
        "both": -(mean + multiple * std),
        "comparison": metric.closer(rows, rows[first], rows[second]),
    }


def _of_nearest(search: Search) -> tuple[Doubles, Doubles]:
    first, _ = _nearest_two(search.mean)
    lines = np.arange(len(first))
    return search.mean[lines, first], search.std[lines, first]


def _nearest_two(distances: Doubles) -> tuple[Integers, Integers]:
    off = distances.copy()
    np.fill_diagonal(off, np.inf)
    order = np.argsort(off, axis=1, kind="stable")
    return order[:, 0], order[:, 1]


def _pictures(y: Integers, who: Integers, most: int | None, rng: np.random.Generator) -> Integers:
    """Positions of the pictures of some people, at most so many of each, in random order."""
    chosen = [rng.permutation(np.flatnonzero(y == person))[:most] for person in who]
    return rng.permutation(np.concatenate(chosen))


def _search(metric: BayesianMetric, rows: Doubles, y: Integers) -> Search:
    estimate = metric.distances(rows, rows)
    return Search(estimate.mean, estimate.std, y[:, None] == y)


def _squared(rows: Doubles) -> Doubles:
    square = np.einsum("ij,ij->i", rows, rows)
    return np.asarray(square[:, None] + square - 2 * rows @ rows.T)


FACES = (
    ("umist", DataSpec("umist_faces", "UMIST faces", n_components=50, rows_per_class=20)),
    ("yaleb", DataSpec("yaleb_faces", "Yale B faces", n_components=50, rows_per_class=20)),
    ("orl", DataSpec("orl_faces", "ORL faces", n_components=50)),
)
"""Sets of faces that are searched."""


def studies(repeats: int = 30) -> list[Study]:
    """Three sets of faces."""
    seeds = tuple(range(repeats))
    return [Study(f"retrieval/{name}", data, work, seeds) for name, data in FACES]


def quick(repeats: int = 10) -> list[Study]:
    """Digits of scikit-learn, each digit as a person."""
    data = DataSpec("digits", "Digits", n_components=30, rows_per_class=40)
    return [Study("retrieval/digits", data, work, tuple(range(repeats)))]
