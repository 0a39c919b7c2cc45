"""C12: what an anchor adds to the diagonal of V_T⁻¹, in the cases that the paper speaks of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bnca.core.bound import bound_curvature
from bnca.core.features import eigen_directions, eigen_features, scores
from bnca.experiments import paper
from bnca.experiments.figures.common import DIGITS, PICTURES, WINE, table_draw
from bnca.experiments.spec import Study
from bnca.neighbors import nearest

if TYPE_CHECKING:
    from pathlib import Path

    from bnca.core.arrays import Doubles
    from bnca.datasets import Dataset
    from bnca.experiments.spec import DataSpec, Part

K = 20
"""Neighbours of each anchor."""

NONE = "none agrees"
SAME_AXES = "all agree, at one distance along every axis"
SAME_DISTANCE = "all agree, at one distance"


def contrast_sums(features: Doubles, agree: Doubles) -> Doubles:
    """½ Σ_j y_ij Σ_t (w_ij − w_it)² of each anchor, by axis: what eq. vii says it adds to 1 / V_T.

    Parameters
    ----------
    features : (n, K, p)
        w_it of each anchor's neighbours.
    agree : (n, K)
        y_it.

    Returns
    -------
    (n, p)
        Zero or more.
    """
    contrasts = features[:, :, None] - features[:, None]
    return np.asarray(np.einsum("ij,ijtp->ip", agree, np.square(contrasts)) / 2)


def product_diagonal(features: Doubles, agree: Doubles) -> Doubles:
    """Diagonal of Σ_j y_ij W_i^j H W_i^jᵀ (eq. 22) of all anchors, with H = I / 2 written out."""
    half = np.eye(features.shape[1]) / 2
    total = np.zeros(features.shape[2])
    for block, friends in zip(features, agree, strict=True):
        for j in np.flatnonzero(friends):
            W = (block[j] - block).T
            total += np.diag(W @ half @ W.T)
    return total


def work(part: Part, data: Dataset, place: Path | None) -> list[dict[str, Any]]:  # noqa: ARG001
    """How far eq. vii is from eq. 22, and what anchors of each kind add."""
    drawn = table_draw(part, data)
    rows = scores(drawn.X, eigen_directions(drawn.X))
    found = nearest(rows, min(K, len(rows) - 1), n_jobs=1).indices
    gaps = rows[found] - rows[:, None]
    agree = (drawn.given[found] == drawn.given[:, None]).astype(np.float64)
    features = np.asarray(eigen_features(gaps.copy()), dtype=np.float64)
    sums = contrast_sums(features, agree).sum(axis=0)
    told = {"n_train": len(rows), "n_test": len(drawn.X_test), "n_neighbors": found.shape[1]}
    product = product_diagonal(features, agree)
    bound = np.diag(bound_curvature(features.copy(), agree, np.ones(len(rows))))
    out: list[dict[str, Any]] = [
        {
            "kind": "diagonal",
            "difference": float(np.max(np.abs(sums - product)) / product.max()),
            "ratio": float(sums.sum() / bound.sum()),
            **told,
        }
    ]
    all_agree = np.ones_like(agree)
    usual = contrast_sums(features, all_agree).sum(axis=1)
    length = np.linalg.norm(gaps, axis=2, keepdims=True)
    on_sphere = gaps / np.where(length > 0, length, 1) * length.mean(axis=1, keepdims=True)
    mirrored = np.abs(gaps[:, :1]) * np.where(gaps < 0, -1, 1)
    cases = (
        (NONE, gaps, np.zeros_like(agree)),
        (SAME_AXES, mirrored, all_agree),
        (SAME_DISTANCE, on_sphere, all_agree),
    )
    for case, moved, friends in cases:
        added = contrast_sums(np.asarray(eigen_features(moved.copy())), friends).sum(axis=1)
        share = added[usual > 0] / usual[usual > 0]
        out.append({"kind": "anchor", "case": case, "share": float(share.mean()), **told})
    return out


def studies(repeats: int = 30) -> list[Study]:
    """The sets of Table 1, and digits."""
    return [
        _study("balance", paper.BALANCE, 30, 100, repeats),
        _study("ionosphere", paper.IONOSPHERE, 30, 100, repeats),
        _study("spambase", paper.SPAMBASE, 30, 100, repeats),
        _study("mnist", *PICTURES["mnist"], repeats),
    ]


def quick(repeats: int = 10) -> list[Study]:
    """Sets that need neither data folder nor network."""
    return [_study("wine", WINE, 30, 80, repeats), _study("digits", DIGITS, 30, 300, repeats)]


def _study(name: str, data: DataSpec, size: int, n_test: int, repeats: int) -> Study:
    settings = {"size": size, "n_test": n_test}
    return Study(f"curvature/{name}", data, work, tuple(range(repeats)), settings)
