"""The tools that a person would reach for instead of a learned distance."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from bnca.experiments.spec import Method

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles, Integers

FOLDS = 3
"""Of the margins that `WithProbabilities` learns from."""

LIMITS = ((1.0, 6.0), (-3.0, 4.0))
"""Logarithms of the two numbers that `WithProbabilities` finds lie within these."""


def everyday() -> list[Method]:
    """Logistic regression and a support vector machine with an RBF kernel, tuned.

    The grids suit rows whose mean squared distance is 4, see `bnca.experiments.draw.prepare`.
    Moderate settings come first, as the first of equals is chosen.
    """
    return [
        Method(
            "logistic",
            LogisticRegression(max_iter=1_000),
            {"C": [10.0, 1.0, 100.0, 0.1, 1_000.0]},
        ),
        Method(
            "SVM",
            SVC(decision_function_shape="ovo"),
            {"gamma": [0.5, 0.1, 2.0, 0.02], "C": [3.0, 1.0, 10.0, 0.3, 100.0]},
        ),
    ]


class WithProbabilities(ClassifierMixin, BaseEstimator):
    """A support vector machine that states probabilities.

    Each class meets each other one, and gets the share expit(a·margin) of a vote; votes times b are
    the logits.  The two numbers are those of least log loss on rows that a fold left out.

    Parameters
    ----------
    classifier : SVC
        With ``decision_function_shape="ovo"``; not fitted.

    Attributes
    ----------
    classes_ : (n_classes,)
        Labels.
    scales_ : (2,)
        a and b.
    """

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: Doubles, y: Integers) -> Self:
        """Fit the machine on all rows, the two numbers on margins of rows left out."""
        self.classes_ = np.unique(y)
        margins, codes = self._left_out(X, y)

        def loss(logs: Doubles) -> float:
            said = log_softmax(_logits(margins, np.exp(logs), len(self.classes_)), axis=1)
            return float(-said[np.arange(len(codes)), codes].mean())

        self.scales_ = np.exp([1.0, 1.0])
        if len(codes):
            start = [[1.0, 0.0], [3.0, 0.0], [1.0, 2.0]]
            rough: Any = {"initial_simplex": start, "xatol": 0.02, "fatol": 1e-4}
            found = minimize(loss, start[0], method="Nelder-Mead", bounds=LIMITS, options=rough)
            self.scales_ = np.exp(found.x)
        self.classifier_ = clone(self.classifier).fit(X, y)
        return self

    def predict_proba(self, X: Doubles) -> Doubles:
        """Probability of each class."""
        logits = _logits(_margins(self.classifier_, X), self.scales_, len(self.classes_))
        return np.asarray(softmax(logits, axis=1))

    def predict(self, X: Doubles) -> Any:
        """Return the most probable class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _left_out(self, X: Doubles, y: Integers) -> tuple[Doubles, Integers]:
        """Margins of rows by fits without them, and where their classes stand.

        A fold that lacks a class teaches nothing about its margins, so it is passed over.
        """
        n_classes = len(self.classes_)
        margins = [np.empty((0, n_classes * (n_classes - 1) // 2))]
        codes = [np.empty(0, dtype=np.intp)]
        folds = min(FOLDS, int(np.unique(y, return_counts=True)[1].max()))
        if folds < 2:
            return margins[0], codes[0]
        cv = StratifiedKFold(folds, shuffle=True, random_state=0)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class")
            parts = list(cv.split(X, y))
        for train, rest in parts:
            if len(np.unique(y[train])) == n_classes:
                margins.append(_margins(clone(self.classifier).fit(X[train], y[train]), X[rest]))
                codes.append(np.searchsorted(self.classes_, y[rest]))
        return np.concatenate(margins), np.concatenate(codes)


def _margins(model: Any, X: Doubles) -> Doubles:
    """Margin of the first of each two classes over the second, (n_rows, n_pairs)."""
    margins = model.decision_function(X)
    # Of two classes alone, scikit-learn states the margin of the second.
    return np.asarray(margins if margins.ndim == 2 else -margins[:, None])


def _logits(margins: Doubles, scales: Doubles, n_classes: int) -> Doubles:
    """Votes that each class gets from its meetings with the others, times a number."""
    shares = expit(scales[0] * margins)
    votes = np.zeros((len(margins), n_classes))
    for column, (i, j) in enumerate(combinations(range(n_classes), 2)):
        votes[:, i] += shares[:, column]
        votes[:, j] += 1 - shares[:, column]
    return np.asarray(votes * scales[1])
