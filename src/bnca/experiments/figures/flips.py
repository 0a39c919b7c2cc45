"""Figure 2: what label noise looks like, images with wrong labels among those with right ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bnca.experiments.figures.common import DIGITS, PICTURES, image_columns, table_draw
from bnca.experiments.spec import Study

if TYPE_CHECKING:
    from pathlib import Path

    from bnca.datasets import Dataset
    from bnca.experiments.spec import DataSpec, Part


def work(part: Part, data: Dataset, place: Path | None) -> list[dict[str, Any]]:  # noqa: ARG001
    """Training images of the first two classes, by the labels that the methods are given.

    All that decides which images are shown is the order in which they were drawn.
    """
    settings = part.experiment.settings
    drawn = table_draw(part, data, settings["noise"])
    out = []
    for given in np.unique(drawn.given)[: settings["n_classes"]].tolist():
        for i in np.flatnonzero(drawn.given == given)[: settings["n_images"]].tolist():
            position = int(drawn.train[i])
            true = int(data.y[position])
            out.append(
                {
                    "position": position,
                    "given": given,
                    "true": true,
                    "given_name": data.class_names[given],
                    "true_name": data.class_names[true],
                    "flipped": bool(drawn.flipped[i]),
                    "noise": settings["noise"],
                    **image_columns(data, position),
                }
            )
    return out


def studies(repeats: int = 1) -> list[Study]:  # noqa: ARG001 - one draw is the illustration
    """Digits and faces at 30 % noise."""
    return [_study("mnist", *PICTURES["mnist"]), _study("frgc-umist", *PICTURES["frgc-umist"])]


def quick(repeats: int = 1) -> list[Study]:  # noqa: ARG001
    """Digits of scikit-learn."""
    return [_study("digits", DIGITS, 30, 300)]


def _study(name: str, data: DataSpec, size: int, n_test: int) -> Study:
    settings = {"size": size, "n_test": n_test, "noise": 0.3, "n_classes": 2, "n_images": 20}
    return Study(f"figure2/{name}", data, work, (0,), settings)
