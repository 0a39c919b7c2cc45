"""Figure 1: BNCA rescales the eigen-axes so that neighbours of the same class come closer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bnca.core.features import eigen_directions, scores
from bnca.experiments import paper
from bnca.experiments.figures.common import (
    DIGITS,
    PICTURES,
    WINE,
    is_first,
    table_draw,
)
from bnca.experiments.paper import published_model
from bnca.experiments.spec import Study
from bnca.experiments.tuning import quiet
from bnca.neighbors import nearest

if TYPE_CHECKING:
    from pathlib import Path

    from bnca.core.arrays import Doubles, Integers
    from bnca.datasets import Dataset
    from bnca.experiments.draw import Draw
    from bnca.experiments.spec import Part

K = 20
"""Neighbours looked at, as many as the model learns from by default."""


class Ratios(NamedTuple):
    """How near same-class neighbours are, against other-class neighbours.

    Attributes
    ----------
    before, after : (q,)
        Mean distance to same-class neighbours over that to other-class neighbours, of each query
        that has both, under equal weights and under the learned ones.
    """

    before: Doubles
    after: Doubles


def neighbor_ratios(before: Doubles, after: Doubles, same: Any) -> Ratios:
    """Ratios of mean distances, for the same neighbours under two metrics.

    Parameters
    ----------
    before, after : (q, K)
        Distances to each query's neighbours.
    same : (q, K) bool
        Which of them are of the query's class.

    Returns
    -------
    Ratios
        For queries with neighbours of both kinds.
    """
    both = same.any(axis=1) & ~same.all(axis=1)
    near, far = same[both], ~same[both]

    def ratio(distances: Doubles) -> Doubles:
        inside = (distances * near).sum(axis=1) / near.sum(axis=1)
        outside = (distances * far).sum(axis=1) / far.sum(axis=1)
        # Copies of a query are at distance zero; if all its other-class neighbours are, it is 1.
        return np.asarray(np.divide(inside, outside, np.ones_like(inside), where=outside > 0))

    return Ratios(ratio(before[both]), ratio(after[both]))


def work(part: Part, data: Dataset, place: Path | None) -> list[dict[str, Any]]:  # noqa: ARG001
    """Ratios on training and test rows; for the first seed also axes and a picture."""
    drawn = table_draw(part, data)
    with quiet():
        model = published_model(n_neighbors=min(K, len(drawn.X) - 1)).fit(drawn.X, drawn.given)
    directions = eigen_directions(drawn.X)
    rows = scores(drawn.X, directions)
    queries = scores(drawn.X_test, directions)
    root = np.sqrt(np.maximum(model.metric_.mean, 0))
    out = [
        _ratio_row("train", part, drawn, rows, drawn.given, None, root),
        _ratio_row("test", part, drawn, rows, drawn.y_test, queries, root),
    ]
    if not is_first(part):
        return out
    weight = model.metric_.mean * model.scale_ / model.prior_mean
    std = np.sqrt(np.diag(model.metric_.covariance)) * model.scale_ / model.prior_mean
    out += [
        {
            "kind": "axis",
            "axis": axis + 1,
            "spread": float(rows[:, axis].std()),
            "weight": float(weight[axis]),
            "weight_std": float(std[axis]),
        }
        for axis in range(len(weight))
    ]
    return out + _plane(drawn, data)


def _ratio_row(  # noqa: PLR0917 - a query in each of three forms
    where: str,
    part: Part,
    drawn: Draw,
    rows: Doubles,
    labels: Integers,
    queries: Doubles | None,
    root: Doubles,
) -> dict[str, Any]:
    k = min(K, len(rows) - 1)
    found = nearest(rows, k, queries, n_jobs=1)
    asked = rows if queries is None else queries
    gaps = rows[found.indices] - asked[:, None]
    ratios = neighbor_ratios(
        np.linalg.norm(gaps, axis=2),
        np.linalg.norm(gaps * root, axis=2),
        drawn.given[found.indices] == labels[:, None],
    )
    some = len(ratios.before) > 0
    return {
        "kind": "ratio",
        "where": where,
        "n_train": len(rows),
        "n_test": len(drawn.X_test),
        "size": part.experiment.settings["size"],
        "n_neighbors": k,
        "n_queries": len(ratios.before),
        "ratio_before": float(ratios.before.mean()) if some else None,
        "ratio_after": float(ratios.after.mean()) if some else None,
        "closer": float((ratios.after < ratios.before).mean()) if some else None,
    }


def _plane(drawn: Draw, data: Dataset) -> list[dict[str, Any]]:
    """Neighbours of one query in the plane of the two leading axes, before and after.

    The model is fitted in that plane.  The query is the training row whose neighbours are most
    evenly split, the first of equals: it is chosen before anything is learned.
    """
    directions = eigen_directions(drawn.X, 2)
    rows = scores(drawn.X, directions)
    k = min(K, len(rows) - 1)
    with quiet():
        model = published_model(n_neighbors=k).fit(rows, drawn.given)
    found = nearest(rows, k, n_jobs=1).indices
    agree = (drawn.given[found] == drawn.given[:, None]).mean(axis=1)
    query = int(np.abs(agree - 0.5).argmin())
    # Fitted on centred scores, the model's axes are those of the plane but for order and sign.
    learned = np.diag(model.metric_.matrix())
    near = rows[found[query]] - rows[query]
    before = near / np.linalg.norm(near, axis=1).mean()
    stretched = near * np.sqrt(learned)
    after = stretched / np.linalg.norm(stretched, axis=1).mean()
    points = np.vstack([np.zeros((1, 4)), np.column_stack([before, after])])
    positions = [query, *found[query]]
    unit = model.scale_ / model.prior_mean
    out: list[dict[str, Any]] = [
        {
            "kind": "plane",
            "weight_x": float(learned[0] * unit),
            "weight_y": float(learned[-1] * unit),
        }
    ]
    for point, position in zip(points.tolist(), positions, strict=True):
        same = drawn.given[position] == drawn.given[query]
        role = "query" if position == query else "same" if same else "other"
        out.append(
            {
                "kind": "neighbor",
                "role": role,
                "x_before": point[0],
                "y_before": point[1],
                "x_after": point[2],
                "y_after": point[3],
                "distance_before": float(np.hypot(*point[:2])),
                "distance_after": float(np.hypot(*point[2:])),
                "class_name": data.class_names[drawn.given[position]],
            }
        )
    return out


def studies(repeats: int = 30) -> list[Study]:
    """Every set of Tables 1 and 2, and wines, whose first two axes make the picture."""
    sets = [
        ("wine", WINE, 30, 80),
        ("balance", paper.BALANCE, 30, 100),
        ("ionosphere", paper.IONOSPHERE, 30, 100),
        ("spambase", paper.SPAMBASE, 30, 100),
        *((name, *rest) for name, rest in PICTURES.items()),
    ]
    return [_study(*entry, repeats) for entry in sets]


def quick(repeats: int = 10) -> list[Study]:
    """The same on sets that need neither data folder nor network."""
    sets = (
        ("wine", WINE, 30, 80),
        ("balance", paper.BALANCE, 30, 100),
        ("digits", DIGITS, 30, 300),
    )
    return [_study(*entry, repeats) for entry in sets]


def _study(name: str, data: Any, size: int, n_test: int, repeats: int) -> Study:
    return Study(
        f"figure1/{name}",
        data,
        work,
        tuple(range(repeats)),
        {"size": size, "n_test": n_test},
    )
