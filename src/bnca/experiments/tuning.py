"""Settings chosen by cross-validation on the training labels, at the price of few fits."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from bnca.core.predictive import class_probabilities, vote_shares
from bnca.exceptions import NeighborhoodWarning, ProjectionWarning
from bnca.neighbors import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bnca.base import MetricLearner
    from bnca.core.arrays import Doubles, Integers
    from bnca.experiments.spec import Method

POINT_VOTES = ("uniform", "distance", "softmax")
"""Votes that need distances only: one search for neighbours serves any number of voters."""


def choose(
    method: Method, X: Doubles, y: Integers, *, folds: int = 3, seed: int = 0
) -> dict[str, Any]:
    """Settings of highest cross-validated accuracy; the first of equals.

    Votes are tried on a fit that is at hand, and numbers of steps on the way of one fit, so only
    the other settings cost fits.  Settings that a fold has too few rows or columns for are left
    out.

    Parameters
    ----------
    method : Method
        Learner and grids.
    X : (n, d)
        Training rows.
    y : (n,)
        Their labels.
    folds : int
        Number of folds; less where no class has as many rows.
    seed : int
        Of the folds.

    Returns
    -------
    dict
        Parameters to set.
    """
    grids = {**method.fits, **method.votes}
    if not method.steps and all(len(values) < 2 for values in grids.values()):
        return {key: values[0] for key, values in grids.items()}  # there is nothing to choose
    splits = _splits(y, folds, seed)
    rows = min(_distinct(X[train], y[train]) for train, _ in splits)
    fits = _within(method.fits, rows, X.shape[1])
    votes = list(_grid(_within(method.votes, rows, X.shape[1])))
    best: dict[str, Any] = {}
    best_score = -1.0
    # The checks of parameters would take as long as a small fit; the final fit makes them.
    with quiet(), config_context(skip_parameter_validation=True):
        for setting in _grid(fits):
            learner = clone(method.learner).set_params(**setting)
            scores = np.mean(
                [
                    _fold_scores(learner, method.steps, votes, (X[a], y[a]), (X[b], y[b]))
                    for a, b in splits
                ],
                axis=0,
            )
            top = int(scores.argmax())
            if scores.flat[top] > best_score:
                step, vote = divmod(top, len(votes))
                steps = {"max_iter": method.steps[step]} if method.steps else {}
                best, best_score = setting | steps | votes[vote], float(scores.flat[top])
    return best


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings that a search over settings is bound to meet.

    Stopping early is one of the settings, under noise projections are the rule, and in a fold
    classes are small.
    """
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, NeighborhoodWarning, ProjectionWarning):
            warnings.simplefilter("ignore", category)
        yield


def _splits(y: Integers, folds: int, seed: int) -> list[tuple[Integers, Integers]]:
    """Stratified folds; classes of fewer rows than folds are missing from some."""
    largest = int(np.unique(y, return_counts=True)[1].max())
    if largest < 2:
        raise ValueError(
            f"Cross-validation needs a class of at least 2 rows; each of the {len(y)} labels "
            "occurs once. Are they numbers to predict?"
        )
    cv = StratifiedKFold(min(folds, largest), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        return list(cv.split(np.empty((len(y), 0)), y))


def _distinct(X: Doubles, y: Integers) -> int:
    """How many rows are left when repeated ones are merged, as some learners do."""
    return len(np.unique(np.column_stack([X, y]), axis=0))


def _within(grid: Mapping[str, Sequence[Any]], rows: int, width: int) -> dict[str, Sequence[Any]]:
    """Drop values that so many rows and columns do not allow; the least one stays."""
    most = {"n_voters": rows, "n_neighbors": rows - 1, "n_components": min(rows, width)}
    out: dict[str, Sequence[Any]] = {}
    for name, values in grid.items():
        limit = most.get(name)
        if limit is None:
            out[name] = values
        else:
            fitting = [v for v in values if not isinstance(v, int) or v <= limit]
            out[name] = fitting or [limit]
    return out


def _grid(values: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for combination in product(*values.values()):
        yield dict(zip(values, combination, strict=True))


def _fold_scores(
    learner: MetricLearner,
    steps: Sequence[int],
    votes: Sequence[Mapping[str, Any]],
    learn: tuple[Doubles, Integers],
    judge: tuple[Doubles, Integers],
) -> Doubles:
    """Accuracies on one fold, (number of steps, number of votes)."""
    if not steps:
        model = clone(learner).fit(*learn)
        return np.array([_vote_scores(model, votes, learn[1], judge)])
    path: list[Doubles] = []

    def record(step: int, components: Doubles, objective: float) -> None:  # noqa: ARG001
        path.append(components.copy())

    model = clone(learner).set_params(max_iter=max(steps), callback=record).fit(*learn)
    if not path:  # it did not leave its start
        path.append(model.components_)
    (X, y), (X_test, y_test) = learn, judge
    most = max(vote["n_voters"] for vote in votes)
    scores = []
    for step in steps:
        L = path[min(step, len(path)) - 1]
        found = nearest(X @ L.T, most, X_test @ L.T, n_jobs=1)
        lists = (found.indices, found.squared_distances)
        scores.append([_list_score(*lists, vote, y, y_test) for vote in votes])
    return np.array(scores)


def _vote_scores(
    model: MetricLearner,
    votes: Sequence[Mapping[str, Any]],
    y: Integers,
    judge: tuple[Doubles, Integers],
) -> list[float]:
    """Accuracy of a fitted model with each of the votes, by one search where that will do."""
    simple = [_needs_distances_only(vote) for vote in votes]
    lists: tuple[Integers, Doubles] | None = None
    if any(simple):
        most = max(vote["n_voters"] for vote, easy in zip(votes, simple, strict=True) if easy)
        distances, indices = model.kneighbors(judge[0], most)
        lists = indices, np.square(distances)
    return [
        _list_score(*lists, vote, y, judge[1])
        if easy and lists is not None
        else float(model.set_params(**vote).score(*judge))
        for vote, easy in zip(votes, simple, strict=True)
    ]


def _needs_distances_only(vote: Mapping[str, Any]) -> bool:
    return vote.get("vote") in POINT_VOTES and isinstance(vote.get("n_voters"), int)


def _list_score(
    indices: Integers, squared: Doubles, vote: Mapping[str, Any], y: Integers, y_test: Integers
) -> float:
    """Accuracy of the vote of the first few of each query's nearest rows."""
    k = vote["n_voters"]
    classes, codes = np.unique(y, return_inverse=True)
    shares = vote_shares(squared[:, :k], vote["vote"])
    probabilities = class_probabilities(shares, codes[indices[:, :k]], len(classes))
    return float(np.mean(classes[probabilities.argmax(axis=1)] == y_test))
