import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.svm import SVC

from bnca.experiments.everyday import WithProbabilities, everyday


def scaled(load):
    X, y = load(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X / np.sqrt(X.shape[1] / 2), y


@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_votes_agree_with_the_machine_itself(load, n_classes):
    X, y = scaled(load)
    X, y = X[y < n_classes], 10 * y[y < n_classes]
    machine = SVC(C=10, gamma=0.1, decision_function_shape="ovo")
    model = WithProbabilities(machine).fit(X[::2], y[::2])
    own = machine.fit(X[::2], y[::2]).predict(X[1::2])
    assert np.mean(model.predict(X[1::2]) == own) > 0.95
    probabilities = model.predict_proba(X[1::2])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert probabilities.shape[1] == n_classes


def test_probabilities_soften_where_labels_are_wrong():
    X, y = scaled(load_wine)
    rng = np.random.default_rng(0)
    wrong = np.where(rng.random(len(y)) < 0.3, rng.integers(0, 3, len(y)), y)
    machine = SVC(C=10, gamma=0.1, decision_function_shape="ovo")
    sure, doubtful = (
        WithProbabilities(machine).fit(X[::2], labels[::2]).predict_proba(X[1::2]).max(axis=1)
        for labels in (y, wrong)
    )
    assert sure.mean() > 0.9
    assert doubtful.mean() < 0.75


def test_class_of_one_row_is_no_obstacle():
    X, y = scaled(load_iris)
    rows = [0, 1, 2, 3, 50, 51, 52, 53, 100]
    model = WithProbabilities(SVC(decision_function_shape="ovo")).fit(X[rows], y[rows])
    assert model.predict_proba(X).shape == (150, 3)


def test_both_tools_are_at_hand():
    assert [method.name for method in everyday()] == ["logistic", "SVM"]
