"""Tune, fit and score several methods on the same rows, some of their labels wrong on purpose."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import stdtrit
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from bnca.bayesian_nca import BayesianNCA
from bnca.experiments.draw import flip
from bnca.experiments.metrics import KEPT, METRICS, calibration_error, kept_accuracy, predicted
from bnca.experiments.spec import VOTERS, Method
from bnca.experiments.tuning import choose, quiet
from bnca.rivals.nca import NCA
from bnca.rivals.pca import PCAMetric

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bnca.core.arrays import Doubles, Integers

__all__ = [
    "KEPT",
    "Method",
    "Row",
    "Summary",
    "calibration_error",
    "choose",
    "flip",
    "kept_accuracy",
    "methods",
    "run",
    "summarize",
]


class Row(NamedTuple):
    """One method on one split; `kept_accuracy` goes with `KEPT`."""

    method: str
    seed: int
    accuracy: float
    log_loss: float
    calibration_error: float
    fit_seconds: float
    kept_accuracy: tuple[float, ...]
    chosen: str


class Summary(NamedTuple):
    """One method over all splits: means, and half-widths of 95 % intervals (Student's t)."""

    method: str
    accuracy: float
    accuracy_half: float
    log_loss: float
    calibration_error: float
    fit_seconds: float
    kept_accuracy: Doubles
    lead: float
    lead_half: float


def methods() -> list[Method]:
    """Plain KNN, scikit-learn's NCA and BayesianNCA, each with what is to be chosen."""
    plain: dict[str, Sequence[Any]] = {"n_voters": VOTERS, "vote": ["uniform", "distance"]}
    return [
        Method("KNN", PCAMetric(), votes=plain),
        Method("NCA", NCA(init="identity"), votes=plain, steps=(1, 3, 10, 30)),
        Method(
            "BayesianNCA",
            BayesianNCA(),
            {"prior_mean": [1.0, 4.0], "prior_variance": [0.01, 0.1, 1.0]},
            {"n_voters": VOTERS, "vote": ["posterior", "distance"]},
        ),
    ]


def run(
    X: Doubles, y: Integers, *, n_train: int, noise: float, seeds: Sequence[int]
) -> Iterator[Row]:
    """Rows of the comparison, one at a time, so that a caller can show progress.

    Each seed draws a stratified training set of `n_train` rows and flips a share `noise` of its
    labels.  Every method chooses its settings by cross-validation on those labels; all other rows,
    with their true labels, are for testing.  Features are divided by one number, which makes the
    mean squared distance between training rows 4: NCA's objective has a scale, and this one suits.
    """
    for seed in seeds:
        train, test = train_test_split(
            np.arange(len(y)), train_size=n_train, stratify=y, random_state=seed
        )
        unit = np.sqrt(X[train].var(axis=0).sum() / 2)
        given = flip(y[train], noise, np.random.default_rng(seed))
        for method in methods():
            learn, judge = (X[train] / unit, given), (X[test] / unit, y[test])
            yield _row(method, learn, judge, seed)


def summarize(rows: Sequence[Row]) -> list[Summary]:
    """Summaries by method, in order of appearance; leads are over the first one, by pairs."""
    out = []
    first = [r.accuracy for r in rows if r.method == rows[0].method]
    for name in dict.fromkeys(r.method for r in rows):
        mine = [r for r in rows if r.method == name]
        accuracy = [r.accuracy for r in mine]
        lead = np.subtract(accuracy, first[: len(accuracy)])
        out.append(
            Summary(
                name,
                float(np.mean(accuracy)),
                _half_width(accuracy),
                float(np.mean([r.log_loss for r in mine])),
                float(np.mean([r.calibration_error for r in mine])),
                float(np.median([r.fit_seconds for r in mine])),
                np.mean([r.kept_accuracy for r in mine], axis=0),
                float(lead.mean()),
                _half_width(lead),
            )
        )
    return out


def _row(
    method: Method, learn: tuple[Doubles, Integers], judge: tuple[Doubles, Integers], seed: int
) -> Row:
    (X, y), (X_test, y_test) = learn, judge
    with quiet():
        setting = choose(method, X, y, seed=seed)
        best = clone(method.learner).set_params(**setting)
        started = time.perf_counter()
        best.fit(X, y)
        seconds = time.perf_counter() - started
    said = predicted(best.predict_proba(X_test), best.classes_, y_test)
    return Row(
        method.name,
        seed,
        METRICS["accuracy"](said),
        METRICS["log_loss"](said),
        METRICS["calibration_error"](said),
        seconds,
        kept_accuracy(said.top, said.correct),
        ", ".join(f"{key}={value}" for key, value in setting.items()),
    )


def _half_width(values: Any) -> float:
    """Half-width of the 95 % confidence interval of a mean."""
    if len(values) < 2:  # one value has no spread
        return float("nan")
    spread = float(np.std(values, ddof=1) / np.sqrt(len(values)))
    return spread * float(stdtrit(len(values) - 1, 0.975))
