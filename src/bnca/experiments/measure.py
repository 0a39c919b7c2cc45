"""What is measured in one unit of work: all that decides a row's numbers, and nothing else.

This module is part of every row's code version.  What only keeps or shows rows stands elsewhere.
"""

from __future__ import annotations

import json
import time
import warnings
from statistics import median
from typing import TYPE_CHECKING, Any

from sklearn.base import clone
from threadpoolctl import threadpool_limits

from bnca.base import MetricLearner
from bnca.experiments.draw import draw
from bnca.experiments.metrics import METRICS, predicted, reliability
from bnca.experiments.tuning import choose

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bnca.datasets import Dataset
    from bnca.experiments.draw import Draw
    from bnca.experiments.spec import Cell, DataSpec, Method, Part

SECONDS = ("fit_seconds", "fit_cpu_seconds", "tune_seconds", "predict_seconds")
"""Columns of times: by the clock, and of the processor, which other work does not slow down."""


def measure_cell(cell: Cell, methods: Sequence[Method], data: Dataset) -> list[dict[str, Any]]:
    """One row for each method, all on the same draw; one thread."""
    with threadpool_limits(limits=1):
        return measure_drawn(cell, methods, draw(cell, data))


def measure_drawn(cell: Cell, methods: Sequence[Method], drawn: Draw) -> list[dict[str, Any]]:
    """One row for each method on rows that were drawn for a cell."""
    return [_row(cell, method, drawn) for method in methods]


def measure_part(part: Part, data: Dataset, place: Path | None) -> list[dict[str, Any]]:
    """Rows of one seed of a study; one thread."""
    with threadpool_limits(limits=1):
        return part.experiment.work(part, data, place)


def pool_size(spec: DataSpec, data: Dataset) -> int:
    """Rows that test rows are drawn from: repeats are the more alike, the fewer there are."""
    if spec.published_split and data.is_test is not None:
        return int(data.is_test.sum())
    return len(data.y)


def _row(cell: Cell, method: Method, drawn: Draw) -> dict[str, Any]:
    """Tune, fit and score a method on one draw."""
    row: dict[str, Any] = {
        "size": cell.size,
        "noise": cell.noise,
        "n_train": len(drawn.X),
        "n_test": len(drawn.X_test),
        "method": method.name,
    }
    nothing = dict.fromkeys((*cell.experiment.metrics, *SECONDS))
    try:
        found: Mapping[str, Any] = {"reason": "", **_measure(cell, method, drawn)}
    except Exception as error:  # noqa: BLE001 - one method's failure is a result, not the run's end
        found = {"reason": f"{type(error).__name__}: {error}", "chosen": "", "warnings": ""}
    return {**row, **nothing, **found}


def _measure(cell: Cell, method: Method, drawn: Draw) -> dict[str, Any]:
    """Columns of a row that the method decides."""
    experiment = cell.experiment
    # Of scikit-learn's estimators those that may use threads take one unless told otherwise.
    ours = isinstance(method.learner, MetricLearner) and hasattr(method.learner, "n_jobs")
    one_thread = {"n_jobs": 1} if ours else {}
    learner = clone(method.learner).set_params(**one_thread)
    tuned = type(method)(method.name, learner, method.fits, method.votes, method.steps)
    start = time.perf_counter()
    setting = choose(tuned, drawn.X, drawn.given, folds=experiment.folds, seed=cell.seed)
    tune_seconds = time.perf_counter() - start
    clock, processor = [], []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(experiment.fit_repeats):
            best = clone(learner).set_params(**setting)
            start, used = time.perf_counter(), time.process_time()
            best.fit(drawn.X, drawn.given)
            clock.append(time.perf_counter() - start)
            processor.append(time.process_time() - used)
    start = time.perf_counter()
    probabilities = best.predict_proba(drawn.X_test)
    predict_seconds = time.perf_counter() - start
    said = predicted(probabilities, best.classes_, drawn.y_test)
    return {
        **{name: METRICS[name](said) for name in experiment.metrics},
        "reliability": reliability(said),
        "wrong_labels": float(drawn.flipped.mean()),
        "label_noise": getattr(best, "label_noise_", None),
        "fit_seconds": median(clock),
        "fit_cpu_seconds": median(processor),
        "tune_seconds": tune_seconds,
        "predict_seconds": predict_seconds,
        "chosen": json.dumps(setting, default=str),
        "warnings": ", ".join(sorted({w.category.__name__ for w in caught})),
    }
