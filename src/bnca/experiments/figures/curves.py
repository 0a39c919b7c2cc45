"""Figure 6: accuracy on training and test rows from step to step at 30 % wrong labels.

Also how many steps each way of reaching the fixed point takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bnca.core.predictive import class_probabilities, vote_shares
from bnca.experiments.figures.common import DIGITS, PICTURES, table_draw
from bnca.experiments.paper import published_model
from bnca.experiments.spec import Study
from bnca.experiments.tuning import quiet
from bnca.neighbors import nearest
from bnca.rivals import NCA
from bnca.rivals.nca import expected_matches

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bnca.core.arrays import Doubles, Integers
    from bnca.datasets import Dataset
    from bnca.experiments.draw import Draw
    from bnca.experiments.spec import DataSpec, Part

STEPS = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)
"""Steps at which accuracy is taken."""

VOTERS = 5
"""Neighbours of KNN at every step."""

NOISE = 0.3
"""Share of wrong training labels."""

PATIENCE = 5_000
"""Steps at most on the way to a tolerance."""

PRIORS: dict[str, dict[str, Any]] = {
    "data-scaled": {},
    "as published": {"prior_mean": 0.1, "prior_variance": 0.001, "rescale": False},
}
"""Priors under which steps are counted."""


def work(part: Part, data: Dataset, place: Path | None) -> list[dict[str, Any]]:  # noqa: ARG001
    """Rows of one seed: accuracy at each of the steps, and steps to each tolerance."""
    drawn = table_draw(part, data, NOISE)
    true = data.y[drawn.train]
    told = {
        "noise": NOISE,
        "n_voters": VOTERS,
        "n_train": len(drawn.X),
        "n_test": len(drawn.X_test),
    }
    out = [
        {
            "kind": "curve",
            "method": method,
            "step": step,
            **knn_accuracies(components, drawn, true),
            "objective": objective,
            **told,
        }
        for method, path in (("NCA", _nca_path(drawn)), ("BNCA", _bnca_path(drawn)))
        for step, components, objective in path
    ]
    return out + [{"kind": "convergence", **row, **told} for row in _step_counts(drawn)]


def knn_accuracies(components: Doubles, drawn: Draw, true: Integers) -> dict[str, float]:
    """KNN accuracy in the space of a linear map, on training rows (leave one out) and test rows."""
    rows, queries = drawn.X @ components.T, drawn.X_test @ components.T
    own = _knn(rows, drawn.given, None)
    return {
        "train_accuracy": float((own == drawn.given).mean()),
        "train_true_accuracy": float((own == true).mean()),
        "test_accuracy": float((_knn(rows, drawn.given, queries) == drawn.y_test).mean()),
    }


def _knn(rows: Doubles, labels: Integers, queries: Doubles | None) -> Integers:
    found = nearest(rows, VOTERS, queries, n_jobs=1)
    classes, codes = np.unique(labels, return_inverse=True)
    shares = vote_shares(found.squared_distances, "uniform")
    votes = class_probabilities(shares, codes[found.indices], len(classes))
    return np.asarray(classes[votes.argmax(axis=1)])


def _nca_path(drawn: Draw) -> Iterator[tuple[int, Doubles, float]]:
    """Step, map and objective; after the search has ended all stays as it is."""
    with quiet():
        model = NCA(init="identity", max_iter=max(STEPS), record_path=True, n_jobs=1)
        path = model.fit(drawn.X, drawn.given).path_
    codes = np.unique(drawn.given, return_inverse=True)[1]
    for step in STEPS:
        components = path[min(step, len(path) - 1)]
        yield step, components, expected_matches(components, drawn.X, codes) / len(codes)


def _bnca_path(drawn: Draw) -> Iterator[tuple[int, Doubles, float]]:
    """Step, map of the mean and lower bound for each row, by the published update.

    A fit that is stopped after t steps ends where a longer one is after t.  Step 0 is the prior
    mean: equal weights along all axes.
    """
    for step in STEPS:
        with quiet():
            model = published_model(solver="published", max_iter=max(step, 1), tol=0.0)
            model.fit(drawn.X, drawn.given)
        axes = model.metric_.directions.T
        start = axes * np.sqrt(model.prior_mean / model.scale_)
        components = np.asarray(model.components_ if step else start, dtype=np.float64)
        yield step, components, float(model.lower_bounds_[min(step, model.n_iter_)]) / len(drawn.X)


def _step_counts(drawn: Draw) -> Iterator[dict[str, Any]]:
    """Steps to each tolerance; and whether the posterior covariance is that of the first step."""
    for prior, settings in PRIORS.items():
        with quiet():
            first = published_model(solver="published", max_iter=1, **settings)
            start = first.fit(drawn.X, drawn.given).metric_.covariance
        for solver in ("published", "anderson", "newton"):
            for tol in (1e-3, 1e-6):
                with quiet():
                    model = published_model(
                        solver=solver, tol=tol, max_iter=PATIENCE, **settings
                    ).fit(drawn.X, drawn.given)
                moved = np.abs(model.metric_.covariance - start).max() / np.abs(start).max()
                yield {
                    "method": "BNCA",
                    "covariance_moved": float(moved),
                    "solver": solver,
                    "prior": prior,
                    "tol": tol,
                    "n_iter": model.n_iter_,
                    "converged": model.converged_,
                    "max_iter": PATIENCE,
                    "objective": float(model.lower_bound_) / len(drawn.X),
                }
    most, tol = 500, 1e-5
    with quiet():
        nca = NCA(init="identity", max_iter=most, tol=tol, n_jobs=1).fit(drawn.X, drawn.given)
    codes = np.unique(drawn.given, return_inverse=True)[1]
    yield {
        "method": "NCA",
        "solver": "L-BFGS",
        "prior": "none",
        "tol": tol,
        "n_iter": nca.n_iter_,
        "converged": nca.converged_,
        "max_iter": most,
        "objective": expected_matches(nca.components_, drawn.X, codes) / len(codes),
    }


def studies(repeats: int = 30) -> list[Study]:
    """The sets of Table 2."""
    return [_study(name, *entry, repeats) for name, entry in PICTURES.items()]


def quick(repeats: int = 10) -> list[Study]:
    """Digits of scikit-learn."""
    return [_study("digits", DIGITS, 30, 300, repeats)]


def _study(name: str, data: DataSpec, size: int, n_test: int, repeats: int) -> Study:
    settings = {"size": size, "n_test": n_test}
    return Study(f"figure6/{name}", data, work, tuple(range(repeats)), settings)
