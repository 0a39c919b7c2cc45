"""The tools that a person would reach for instead of a learned distance."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from bnca.experiments.spec import Method

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles, Integers

FOLDS = 3
"""Of the margins that `WithProbabilities` learns from."""

SHARPEST = 1_000.0
"""Margins are multiplied by this at most; more says nothing but 0 and 1."""


def everyday() -> list[Method]:
    """Logistic regression and a support vector machine with an RBF kernel, tuned.

    The grids suit rows whose mean squared distance is 4, see `bnca.experiments.draw.prepare`.
    """
    return [
        Method(
            "logistic",
            LogisticRegression(max_iter=1_000),
            {"C": [0.1, 1.0, 10.0, 100.0, 1_000.0]},
        ),
        Method(
            "SVM",
            SVC(decision_function_shape="ovo"),
            {"gamma": [0.02, 0.1, 0.5, 2.0], "C": [0.3, 1.0, 3.0, 10.0, 100.0]},
        ),
    ]


class WithProbabilities(ClassifierMixin, BaseEstimator):
    """A support vector machine that states probabilities.

    The margins of a class against each other one, added up and times one number, are the logits;
    the number is that of least log loss on rows that a fold left out.

    Parameters
    ----------
    classifier : SVC
        With ``decision_function_shape="ovo"``; not fitted.

    Attributes
    ----------
    classes_ : (n_classes,)
        Labels.
    sharpness_ : float
        The number.
    """

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: Doubles, y: Integers) -> Self:
        """Fit the classifier on all rows, the number on margins of rows left out."""
        self.classes_ = np.unique(y)
        margins, codes = self._left_out(X, y)

        def loss(log_sharpness: float) -> float:
            logits = log_softmax(margins * np.exp(log_sharpness), axis=1)
            return float(-logits[np.arange(len(codes)), codes].mean())

        self.sharpness_ = 1.0
        if len(codes):
            limits = (-np.log(SHARPEST), np.log(SHARPEST))
            self.sharpness_ = float(np.exp(minimize_scalar(loss, bounds=limits).x))
        self.classifier_ = clone(self.classifier).fit(X, y)
        return self

    def predict_proba(self, X: Doubles) -> Doubles:
        """Probability of each class."""
        margins = _margins(self.classifier_, X, len(self.classes_))
        return np.asarray(softmax(margins * self.sharpness_, axis=1))

    def predict(self, X: Doubles) -> Any:
        """Return the most probable class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _left_out(self, X: Doubles, y: Integers) -> tuple[Doubles, Integers]:
        """Margins of rows by fits without them, and where their classes stand.

        A fold that lacks a class teaches nothing about its margins, so it is passed over.
        """
        folds = min(FOLDS, int(np.unique(y, return_counts=True)[1].max()))
        margins, codes = [np.empty((0, len(self.classes_)))], [np.empty(0, dtype=np.intp)]
        if folds < 2:
            return margins[0], codes[0]
        cv = StratifiedKFold(folds, shuffle=True, random_state=0)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class")
            parts = list(cv.split(X, y))
        for train, rest in parts:
            if len(np.unique(y[train])) == len(self.classes_):
                model = clone(self.classifier).fit(X[train], y[train])
                margins.append(_margins(model, X[rest], len(self.classes_)))
                codes.append(np.searchsorted(self.classes_, y[rest]))
        return np.concatenate(margins), np.concatenate(codes)


def _margins(model: Any, X: Doubles, n_classes: int) -> Doubles:
    """Margins of each class against all others, (n_rows, n_classes)."""
    pairs = model.decision_function(X)
    pairs = pairs if pairs.ndim == 2 else -pairs[:, None]  # of two classes, the second is positive
    out = np.zeros((len(X), n_classes))
    for column, (i, j) in enumerate(combinations(range(n_classes), 2)):
        out[:, i] += pairs[:, column]
        out[:, j] -= pairs[:, column]
    return out
