"""Tune, fit and score several methods on the same rows, some of their labels wrong on purpose."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import stdtrit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split

from bnca.bayesian_nca import BayesianNCA
from bnca.exceptions import ProjectionWarning
from bnca.rivals.nca import NCA
from bnca.rivals.pca import PCAMetric

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bnca.base import MetricLearner
    from bnca.core.arrays import Doubles, Integers

VOTERS = [1, 3, 5, 9, 15, 25]
"""Numbers of voting neighbours that every method chooses from."""


KEPT = tuple(np.linspace(1, 0.1, 19).round(2).tolist())
"""Shares of the test rows that are kept when the least certain predictions are dropped."""


@dataclass(frozen=True, eq=False)
class Method:
    """A method and the settings that cross-validation chooses from.

    Attributes
    ----------
    name : str
        How it is called in tables.
    learner : MetricLearner
        Not fitted; what is fixed about it is set.
    fits : mapping
        Settings that need a fit of their own, each with the values to try.
    votes : mapping
        Settings of the vote, tried on one and the same fit.
    """

    name: str
    learner: MetricLearner
    fits: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    votes: Mapping[str, Sequence[Any]] = field(default_factory=dict)


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
        Method("NCA", NCA(init="identity"), {"max_iter": [1, 3, 10, 30]}, plain),
        Method(
            "BayesianNCA",
            BayesianNCA(),
            {"prior_mean": [1.0, 4.0], "prior_variance": [0.01, 0.1, 1.0]},
            {"n_voters": VOTERS, "vote": ["posterior", "distance"]},
        ),
    ]


def choose(
    method: Method, X: Doubles, y: Integers, *, folds: int = 3, seed: int = 0
) -> dict[str, Any]:
    """Settings of highest cross-validated accuracy; the first of equals.

    Votes are tried on a fit that is at hand, so only the other settings cost fits.
    """
    splits = list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(X, y))
    best, best_score = {}, -1.0
    for setting in _grid(method.fits):
        learner = clone(method.learner).set_params(**setting)
        fitted = [clone(learner).fit(X[train], y[train]) for train, _ in splits]
        for vote in _grid(method.votes):
            score = np.mean(
                [
                    model.set_params(**vote).score(X[test], y[test])
                    for model, (_, test) in zip(fitted, splits, strict=True)
                ]
            )
            if score > best_score:
                best, best_score = setting | vote, float(score)
    return best


def _grid(values: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for combination in product(*values.values()):
        yield dict(zip(values, combination, strict=True))


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


def kept_accuracy(probabilities: Doubles, correct: Doubles) -> tuple[float, ...]:
    """Accuracy on the most certain predictions, for each share in `KEPT`."""
    ordered = correct[np.argsort(-probabilities, kind="stable")]
    return tuple(float(ordered[: max(1, round(k * len(ordered)))].mean()) for k in KEPT)


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
    with warnings.catch_warnings():
        # Stopping early is one of NCA's settings, and under noise projections are the rule.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", ProjectionWarning)
        setting = choose(method, X, y, seed=seed)
        best = clone(method.learner).set_params(**setting)
        started = time.perf_counter()
        best.fit(X, y)
        seconds = time.perf_counter() - started
    probabilities = best.predict_proba(X_test)
    correct = best.classes_[probabilities.argmax(axis=1)] == y_test
    # A few voters often leave a class without any vote: without a floor one such row decides all.
    floored = np.maximum(probabilities, 0.01)
    floored /= floored.sum(axis=1, keepdims=True)
    return Row(
        method.name,
        seed,
        float(correct.mean()),
        float(log_loss(y_test, floored, labels=best.classes_)),
        calibration_error(probabilities.max(axis=1), correct.astype(np.float64)),
        seconds,
        kept_accuracy(probabilities.max(axis=1), correct.astype(np.float64)),
        ", ".join(f"{key}={value}" for key, value in setting.items()),
    )


def _half_width(values: Any) -> float:
    """Half-width of the 95 % confidence interval of a mean."""
    if len(values) < 2:  # one value has no spread
        return float("nan")
    spread = float(np.std(values, ddof=1) / np.sqrt(len(values)))
    return spread * float(stdtrit(len(values) - 1, 0.975))
