"""What several figures share: the published model with all its settings, draws, pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from bnca.experiments import paper
from bnca.experiments.draw import draw
from bnca.experiments.spec import Cell, DataSpec, Experiment
from bnca.experiments.tuning import choose, quiet

if TYPE_CHECKING:
    from bnca.base import MetricLearner
    from bnca.core.arrays import Doubles, Integers
    from bnca.datasets import Dataset
    from bnca.experiments.draw import Draw
    from bnca.experiments.spec import Method, Part

WINE = DataSpec("wine", "Wine", columns="z-score")
DIGITS = DataSpec("digits", "Digits", n_components=30)

PICTURES = {name: (data, size, n_test) for name, data, size, n_test in paper.PICTURES}
"""Sets of Tables 2 and 3 by name: record, training rows of each class, test rows."""


def table_draw(part: Part, data: Dataset, noise: float = 0.0) -> Draw:
    """Rows that the tables use for the same set, size, noise and seed.

    The study's settings state "size", training rows of each class, and "n_test".
    """
    study = part.experiment
    size, n_test = int(study.settings["size"]), int(study.settings["n_test"])
    record = Experiment(study.id, study.data, (size,), n_test, paper.methods)
    return draw(Cell(record, size, noise, part.seed), data)


def tuned(method: Method, X: Doubles, y: Integers, seed: int) -> tuple[MetricLearner, Any]:
    """Learner of a method, fitted with the settings that cross-validation chooses; the settings."""
    chosen = choose(method, X, y, seed=seed)
    with quiet():
        return clone(method.learner).set_params(**chosen).fit(X, y), chosen


def is_first(part: Part) -> bool:
    """Whether this is the seed that illustrations are made from."""
    return part.seed == part.experiment.seeds[0]


def image_columns(data: Dataset, position: int) -> dict[str, Any]:
    """Columns image (0 to 255, row by row), height and width of a row of pictures."""
    if data.image_shape is None:
        raise ValueError(f"{data.name} holds no images (no image_shape).")
    height, width = data.image_shape
    pixels = np.asarray(data.X[position], dtype=np.float64)
    top = 255.0 if data.X.dtype == np.uint8 else float(data.X.max())
    picture = (pixels * (255 / top)).round().astype(int).reshape(height, width, order=_order(data))
    return {"image": picture.ravel().tolist(), "height": height, "width": width}


def _order(data: Dataset) -> Any:
    return data.image_order
