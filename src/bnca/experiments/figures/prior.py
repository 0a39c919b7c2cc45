"""Figure 7: what the width of the prior does to accuracy."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from bnca.experiments.figures.common import (
    DIGITS,
    PICTURES,
    table_draw,
    tuned,
)
from bnca.experiments.paper import published_model
from bnca.experiments.spec import VOTERS, Method, Study
from bnca.rivals import PCAMetric

if TYPE_CHECKING:
    from pathlib import Path

    from bnca.datasets import Dataset
    from bnca.experiments.paper import Grid
    from bnca.experiments.spec import DataSpec, Part

LOG10_SIGMA = tuple(range(-4, 5))
"""log10 of σ, where V0 = σ I."""

NOISE = (0.0, 0.3)
"""Shares of wrong training labels; the paper does not say its own."""

SCALES: dict[str, dict[str, Any]] = {
    "raw": {"prior_mean": 0.1, "rescale": False},
    "data": {"prior_mean": 4.0, "rescale": True},
}
"""Prior means: as published, on features as they are prepared; and in units of the data."""


def work(part: Part, data: Dataset, place: Path | None) -> list[dict[str, Any]]:  # noqa: ARG001
    """Accuracy of KNN, its k chosen by cross-validation each time, for each width of the prior."""
    votes: Grid = {"n_voters": VOTERS, "vote": ["uniform", "distance"]}
    out = []
    for noise in NOISE:
        drawn = table_draw(part, data, noise)
        learn, judge = (drawn.X, drawn.given), (drawn.X_test, drawn.y_test)
        told = {"noise": noise, "n_train": len(drawn.X), "n_test": len(drawn.X_test)}
        plain, chosen = tuned(Method("PCA", PCAMetric(), {}, votes), *learn, part.seed)
        out.append(
            {
                "kind": "baseline",
                "method": "PCA",
                "accuracy": float(plain.score(*judge)),
                "chosen": json.dumps(chosen),
                **told,
            }
        )
        for scale, settings in SCALES.items():
            for power in LOG10_SIGMA:
                learner = published_model(prior_variance=10.0**power, **settings)
                model, chosen = tuned(Method("BNCA", learner, {}, votes), *learn, part.seed)
                accuracy = float(model.score(*judge))
                model.set_params(vote="posterior", n_voters=None)
                out.append(
                    {
                        "kind": "sweep",
                        "method": "BNCA",
                        "scale": scale,
                        "log10_sigma": power,
                        "accuracy": accuracy,
                        "accuracy_posterior": float(model.score(*judge)),
                        "negative": float(np.mean(model.metric_.mean < 0)),
                        "n_iter": model.n_iter_,
                        "converged": model.converged_,
                        "chosen": json.dumps(chosen),
                        **told,
                    }
                )
    return out


def studies(repeats: int = 30) -> list[Study]:
    """Both stand-ins for Caltech-10."""
    return [_study(name, *PICTURES[name], repeats) for name in ("caltech-surf", "caltech-effnet")]


def quick(repeats: int = 10) -> list[Study]:
    """Digits of scikit-learn."""
    return [_study("digits", DIGITS, 30, 300, repeats)]


def _study(name: str, data: DataSpec, size: int, n_test: int, repeats: int) -> Study:
    settings = {"size": size, "n_test": n_test}
    return Study(f"figure7/{name}", data, work, tuple(range(repeats)), settings)
