"""What a row says of one method on one draw."""

import json

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier

from bnca.experiments.draw import Draw
from bnca.experiments.measure import SECONDS, measure_drawn
from bnca.experiments.metrics import METRICS, predicted, reliability
from bnca.experiments.spec import Cell, DataSpec, Experiment, Method
from bnca.rivals import PCAMetric


class Doubter(ClassifierMixin, BaseEstimator):
    """Says the shares of classes, and how many labels it takes for wrong."""

    def __init__(self, rate=0.25):
        self.rate = rate

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_ = counts / counts.sum()
        self.label_noise_ = self.rate
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[self.shares_.argmax()])

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))


@pytest.fixture(scope="module")
def drawn():
    """Twelve and eight rows of two classes, three labels of which are wrong."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [12, 8])
    X = rng.normal(size=(20, 2)) + 3.0 * y[:, None]
    given = y.copy()
    given[[1, 5, 15]] = 1 - given[[1, 5, 15]]
    y_test = np.repeat([0, 1], [3, 6])
    X_test = rng.normal(size=(9, 2)) + 3.0 * y_test[:, None]
    return Draw(X, X_test, given, y_test, np.arange(20), np.arange(9), given != y)


def rows_of(drawn, *methods, **stated):
    experiment = Experiment("t/made", DataSpec("made", "Made"), (10,), 9, lambda: methods, **stated)
    return measure_drawn(Cell(experiment, 10, 0.1, 0), methods, drawn)


def test_rows_count_wrong_labels_and_keep_what_the_learner_estimates(drawn):
    pca, doubter = rows_of(drawn, Method("PCA", PCAMetric()), Method("doubter", Doubter()))
    assert pca["wrong_labels"] == doubter["wrong_labels"] == pytest.approx(3 / 20)
    assert pca["label_noise"] is None
    assert doubter["label_noise"] == 0.25
    assert [row["method"] for row in (pca, doubter)] == ["PCA", "doubter"]
    for row in (pca, doubter):
        told = {key: row[key] for key in ("size", "noise", "n_train", "n_test", "reason")}
        assert told == {"size": 10, "noise": 0.1, "n_train": 20, "n_test": 9, "reason": ""}


def test_metrics_are_those_of_a_fit_on_given_labels_and_a_test_on_true_ones(drawn):
    method = Method("KNN", KNeighborsClassifier(n_neighbors=5))
    (row,) = rows_of(drawn, method, metrics=tuple(METRICS))
    model = KNeighborsClassifier(n_neighbors=5).fit(drawn.X, drawn.given)
    said = predicted(model.predict_proba(drawn.X_test), model.classes_, drawn.y_test)
    assert {name: row[name] for name in METRICS} == {n: f(said) for n, f in METRICS.items()}
    assert row["reliability"] == reliability(said)
    assert all(row[key] >= 0 for key in SECONDS)
    assert row["warnings"] == ""


def test_the_estimate_is_that_of_the_chosen_setting(drawn):
    (row,) = rows_of(drawn, Method("doubter", Doubter(0.5), {"rate": [0.1]}))
    assert json.loads(row["chosen"]) == {"rate": 0.1}
    assert row["label_noise"] == 0.1


def test_a_method_that_fails_leaves_its_reason_and_the_others_their_rows(drawn):
    broken, fine = rows_of(
        drawn, Method("KNN", KNeighborsClassifier(n_neighbors=-1)), Method("PCA", PCAMetric())
    )
    assert "n_neighbors" in broken["reason"]
    assert broken["accuracy"] is None
    assert fine["reason"] == ""
    assert fine["accuracy"] > 0.5


def test_our_learners_use_one_thread(drawn):
    class Told(PCAMetric):
        def fit(self, X, y=None):
            self.label_noise_ = 1.0 * self.n_jobs
            return super().fit(X, y)

    (row,) = rows_of(drawn, Method("PCA", Told(n_jobs=2)))
    assert row["label_noise"] == 1.0
