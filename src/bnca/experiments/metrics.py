"""What a prediction is scored by: functions of class probabilities and of who was right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bnca.core.arrays import Doubles

KEPT = tuple(np.linspace(1, 0.1, 19).round(2).tolist())
"""Shares of the test rows that are kept when the least certain predictions are dropped."""

FLOOR = 0.01
"""Least probability that the log loss reckons with.

A few voters often leave a class without any vote: without a floor one such row decides all.
"""


TEMPERATURES = tuple(np.geomspace(0.1, 10, 81).tolist())
"""Temperatures that `scaled_log_loss` tries."""


STEPS = 200
"""Steps of probability that `reliability` tells apart."""


class Prediction(NamedTuple):
    """What a classifier said about test rows.

    Attributes
    ----------
    top : (n,)
        Probability of the most probable class.
    truth : (n,)
        Probability of the true class, floored; see `predicted`.
    correct : (n,)
        1 where the most probable class is the true one, else 0.
    floored : (n, n_classes)
        All probabilities, floored, rows summing to one.
    """

    top: Doubles
    truth: Doubles
    correct: Doubles
    floored: Doubles


def predicted(
    probabilities: Doubles, classes: np.ndarray[Any, Any], y: np.ndarray[Any, Any]
) -> Prediction:
    """Gather what metrics need; a true class that was never learned has probability zero.

    Parameters
    ----------
    probabilities : (n, n_classes)
        Rows sum to one.
    classes : (n_classes,)
        Label of each column, sorted.
    y : (n,)
        True labels.

    Returns
    -------
    Prediction
        With the probability of the truth floored at `FLOOR`, before each row is made to sum to one.
    """
    column = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    known = classes[column] == y
    floored = np.maximum(probabilities, FLOOR)
    floored = floored / floored.sum(axis=1, keepdims=True)
    return Prediction(
        probabilities.max(axis=1),
        np.where(known, floored[np.arange(len(y)), column], FLOOR),
        (classes[probabilities.argmax(axis=1)] == y).astype(np.float64),
        floored,
    )


def scaled_log_loss(said: Prediction) -> float:
    """Log loss after temperature scaling, with the temperature that suits the test rows best.

    Nobody can know that temperature beforehand, so this is less than any real scaling reaches.
    """
    logs = np.log(said.floored)
    truth = np.log(said.truth)
    losses = [
        float(np.mean(np.log(np.exp(logs / T).sum(axis=1)) - truth / T)) for T in TEMPERATURES
    ]
    return min(losses)


def calibration_error(probabilities: Doubles, correct: Doubles, bins: int = 15) -> float:
    """Mean gap between stated and true share of right answers, in bins of equal mass."""
    parts = np.array_split(np.argsort(probabilities, kind="stable"), bins)
    gaps = [len(p) * abs(probabilities[p].mean() - correct[p].mean()) for p in parts if len(p)]
    return float(sum(gaps) / len(probabilities))


def reliability(said: Prediction) -> str:
    """Numbers of predictions and of right ones by stated probability: repeats can be pooled.

    A repeat has too few test rows for its calibration error to be told from chance.

    Parameters
    ----------
    said : Prediction
        Of one repeat.

    Returns
    -------
    str
        ``step:count:right`` for each step of 1 / `STEPS` that occurs.
    """
    step = np.minimum((said.top * STEPS).astype(np.intp), STEPS - 1)
    count = np.bincount(step, minlength=STEPS)
    right = np.bincount(step, said.correct, minlength=STEPS)
    return " ".join(f"{i}:{count[i]}:{round(right[i])}" for i in np.flatnonzero(count))


def pooled_calibration_error(histograms: Sequence[str], bins: int = 15) -> float:
    """Calibration error of all predictions of several repeats together; see `reliability`."""
    entries = np.array(
        [tuple(map(int, entry.split(":"))) for text in histograms for entry in text.split()]
    )
    steps, counts, right = entries.T
    top = np.repeat((steps + 0.5) / STEPS, counts)
    # Within a step, right ones are spread evenly: bins of equal mass may cut a step in two.
    correct = np.repeat(right / counts, counts)
    return calibration_error(top, correct, bins)


def kept_accuracy(probabilities: Doubles, correct: Doubles) -> tuple[float, ...]:
    """Accuracy on the most certain predictions, for each share in `KEPT`."""
    ordered = correct[np.argsort(-probabilities, kind="stable")]
    return tuple(float(ordered[: max(1, round(k * len(ordered)))].mean()) for k in KEPT)


METRICS: Mapping[str, Callable[[Prediction], float]] = {
    "accuracy": lambda p: float(p.correct.mean()),
    "log_loss": lambda p: float(-np.log(p.truth).mean()),
    "scaled_log_loss": scaled_log_loss,
    "calibration_error": lambda p: calibration_error(p.top, p.correct),
    "kept_accuracy": lambda p: float(np.mean(kept_accuracy(p.top, p.correct))),
    "mean_top": lambda p: float(p.top.mean()),
}
"""Every metric that an experiment may ask for, by name."""
