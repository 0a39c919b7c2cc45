"""Tune, fit and score several methods on the same rows, some of their labels wrong on purpose."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler

from bnca.bayesian_nca import BayesianNCA
from bnca.exceptions import ProjectionWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from bnca.core.arrays import Doubles, Integers

VOTERS = [1, 3, 5, 9, 15, 25]
"""Numbers of voting neighbours that every method chooses from."""


@dataclass(frozen=True, eq=False)
class Method:
    """A method and the settings that cross-validation chooses from."""

    name: str
    make: Callable[[], Any]
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] = field(
        default_factory=dict
    )


class Row(NamedTuple):
    """One method on one split."""

    method: str
    seed: int
    accuracy: float
    log_loss: float
    calibration_error: float
    fit_seconds: float
    chosen: str


class Summary(NamedTuple):
    """One method over all splits: means, and half-widths of 95 % intervals (Student's t)."""

    method: str
    accuracy: float
    accuracy_half: float
    log_loss: float
    calibration_error: float
    fit_seconds: float
    lead: float
    lead_half: float


def methods() -> list[Method]:
    """Return plain KNN, scikit-learn's NCA and BayesianNCA, each with its grid."""
    return [
        Method(
            "KNN",
            KNeighborsClassifier,
            {"n_neighbors": VOTERS, "weights": ["uniform", "distance"]},
        ),
        Method(
            "NCA",
            lambda: Pipeline(
                [
                    ("scale", MinMaxScaler()),
                    ("nca", NeighborhoodComponentsAnalysis(init="identity", random_state=0)),
                    ("knn", KNeighborsClassifier()),
                ]
            ),
            {"nca__max_iter": [3, 10, 30], "knn__n_neighbors": VOTERS},
        ),
        Method(
            "BayesianNCA",
            BayesianNCA,
            {"prior_mean": [1.0, 4.0, 16.0], "n_voters": VOTERS},
        ),
    ]


def flip(y: Integers, share: float, rng: np.random.Generator) -> Integers:
    """Replace a share of the labels by another class, every other class being as likely."""
    classes = np.unique(y)
    out = y.copy()
    chosen = rng.permutation(len(y))[: round(share * len(y))]
    for i in chosen:
        out[i] = rng.choice(classes[classes != y[i]])
    return out


def calibration_error(probabilities: Doubles, correct: Doubles, bins: int = 15) -> float:
    """Mean gap between stated and true share of right answers, in bins of equal mass."""
    parts = np.array_split(np.argsort(probabilities, kind="stable"), bins)
    gaps = [len(p) * abs(probabilities[p].mean() - correct[p].mean()) for p in parts if len(p)]
    return float(sum(gaps) / len(probabilities))


def run(
    X: Doubles, y: Integers, *, n_train: int, noise: float, seeds: Sequence[int], folds: int = 3
) -> Iterator[Row]:
    """Rows of the comparison, one at a time, so that a caller can show progress.

    Each seed draws a stratified training set of `n_train` rows and flips a share `noise` of its
    labels.  Every method chooses its settings by cross-validation on those labels; all other rows,
    with their true labels, are for testing.
    """
    for seed in seeds:
        train, test = train_test_split(
            np.arange(len(y)), train_size=n_train, stratify=y, random_state=seed
        )
        given = flip(y[train], noise, np.random.default_rng(seed))
        inner = StratifiedKFold(folds, shuffle=True, random_state=seed)
        for method in methods():
            yield _row(method, X[train], given, X[test], y[test], inner, seed)


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
                float(lead.mean()),
                _half_width(lead),
            )
        )
    return out


def _row(
    method: Method,
    X: Doubles,
    y: Integers,
    X_test: Doubles,
    y_test: Integers,
    inner: Any,
    seed: int,
) -> Row:
    with warnings.catch_warnings():
        # Stopping NCA early is one of the settings to choose; projections are the rule with noise.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", ProjectionWarning)
        search = GridSearchCV(method.make(), method.grid, cv=inner, refit=False).fit(X, y)
        best = method.make().set_params(**search.best_params_)
        started = time.perf_counter()
        best.fit(X, y)
        seconds = time.perf_counter() - started
    probabilities = best.predict_proba(X_test)
    predicted = best.classes_[probabilities.argmax(axis=1)]
    correct = (predicted == y_test).astype(float)
    return Row(
        method.name,
        seed,
        float(accuracy_score(y_test, predicted)),
        # Votes of few neighbours are often exactly zero; half a vote in 25 keeps the loss finite.
        float(log_loss(y_test, np.clip(probabilities, 0.02, None), labels=best.classes_)),
        calibration_error(probabilities.max(axis=1), correct),
        seconds,
        ", ".join(f"{key.split('__')[-1]}={value}" for key, value in search.best_params_.items()),
    )


def _half_width(values: Any) -> float:
    """Half-width of the 95 % confidence interval of a mean."""
    if len(values) < 2:
        return float("nan")
    spread = float(np.std(values, ddof=1) / np.sqrt(len(values)))
    return spread * float(stats.t.ppf(0.975, len(values) - 1))
