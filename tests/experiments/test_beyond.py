"""Comparisons beyond the paper: their records, and labels that people gave."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.svm import SVC

from bnca.datasets import Dataset
from bnca.experiments import beyond
from bnca.experiments.beyond import LabelsOnly, accuracy, affordable, all_methods, human
from bnca.experiments.paper import table1, table2
from bnca.experiments.run import units
from bnca.experiments.spec import DataSpec, Method, Part, Study
from bnca.registry import REGISTRY
from bnca.rivals import PCAMetric

CLASSES = {"balance_scale": 3, "ionosphere": 2, "spambase": 2, "umist_faces": 20, "trec_minilm": 6}
"""Classes of the sets that have neither ten nor a number that is drawn."""

# A classifier without probabilities.


def test_labels_have_the_probability_one():
    rng = np.random.default_rng(0)
    y = rng.choice([3, 7, 9], 40, p=[0.6, 0.3, 0.1])
    X = rng.normal(size=(40, 2)) + y[:, None]
    model = LabelsOnly(SVC(C=3.0)).fit(X, y)
    expected = SVC(C=3.0).fit(X, y).predict(X)
    np.testing.assert_array_equal(model.predict(X), expected)
    np.testing.assert_array_equal(model.classes_, [3, 7, 9])
    found = model.predict_proba(X)
    assert found.shape == (40, 3)
    np.testing.assert_array_equal(model.classes_[found.argmax(axis=1)], expected)
    np.testing.assert_array_equal(np.sort(found, axis=1), np.tile([0.0, 0.0, 1.0], (40, 1)))


def test_the_classifier_given_is_not_fitted_and_can_be_set():
    given = SVC()
    model = clone(LabelsOnly(given)).set_params(classifier__C=0.5)
    model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    assert model.classifier_.C == 0.5
    assert model.classifier_ is not model.classifier
    assert not hasattr(model.classifier, "classes_")
    assert given.C == 1.0


# Records.


def test_names_of_methods_differ_and_their_grids_can_be_set():
    names = [method.name for method in all_methods()]
    assert len(set(names)) == len(names)
    assert set(names) - {method.name for method in affordable()} == {"GP"}
    for method in all_methods():
        known = method.learner.get_params()
        assert set(method.fits) | set(method.votes) <= set(known)


def test_our_own_method_is_compared_with_nothing_tuned():
    (ours,) = (method for method in all_methods() if method.name == "BNCA+")
    assert (ours.fits, ours.votes, ours.steps) == ({}, {}, ())
    assert ours.learner.get_params() == type(ours.learner)().get_params()


def test_cells_of_the_papers_tables_have_the_same_keys():
    here = units(accuracy(2))
    keys = {unit.key for unit in here}
    assert len(keys) == len(here)
    shared = {unit.key for unit in units([*table1(2), *table2(2)])}
    assert shared < keys
    more = {unit.method.name for unit in here if unit.key not in shared and unit.method}
    assert {"KNN", "GP", "forest"} <= more


def test_beyond_the_papers_tables_are_sizes_and_noise_on_each_embedding_and_two_studies():
    rest = accuracy(3)[len(table1()) + len(table2()) :]
    ids = [e.id.removeprefix("beyond/") for e in rest]
    embeddings = [name for name, _ in beyond.EMBEDDINGS]
    assert ids == [*embeddings, "cifar-random", "cifar-worst"]
    for experiment in rest[:-2]:
        cells = {(c.size, c.noise, c.seed) for c in experiment.cells()}
        assert cells == {(s, e, i) for s in (10, 30) for e in (0, 0.1, 0.2, 0.3) for i in range(3)}
    assert [s.settings["labels"] for s in rest[-2:]] == ["y_random1", "y_worst"]
    assert {e.data.name for e in rest} <= set(REGISTRY)


def test_the_gaussian_process_takes_part_where_cells_are_small():
    for experiment in accuracy(1):
        if isinstance(experiment, Study):
            continue
        n_classes = experiment.data.n_classes or CLASSES.get(experiment.data.name, 10)
        small = max(experiment.sizes) * n_classes <= beyond.MOST_GP_ROWS
        assert ("GP" in {method.name for method in experiment.methods()}) == small


# Labels that people gave.

SPEC = DataSpec("made", "Made", n_components=2)
SETTINGS = {"labels": "y_worst"}


@pytest.fixture
def few(monkeypatch):
    """Small draws for a cheap method, and what is drawn for it."""
    seen = []
    real = beyond.measure_drawn

    def watched(cell, methods, drawn):
        seen.append((cell, drawn))
        return real(cell, methods, drawn)

    monkeypatch.setattr(beyond, "HUMAN_SIZE", 8)
    monkeypatch.setattr(beyond, "HUMAN_TEST", 30)
    monkeypatch.setattr(beyond, "affordable", lambda: [Method("PCA", PCAMetric())])
    monkeypatch.setattr(beyond, "measure_drawn", watched)
    return seen


@pytest.fixture(scope="module")
def made():
    """Three classes of unequal size; people take a fourth of the last for the first."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1, 2], [60, 40, 20]))
    X = rng.normal(size=(120, 4)) + 4.0 * np.eye(4)[y]
    worst = y.copy()
    worst[np.flatnonzero(y == 2)[::4]] = 0
    extras = {"y_worst": worst.astype(np.int8), "y_random1": y.astype(np.int8)}
    return Dataset("made", X, y, ("a", "b", "c"), extras=extras)


def drawn_for(few, data, seed=0, **settings):
    study = Study("beyond/made", SPEC, human, (seed,), SETTINGS | settings)
    rows = human(Part(study, seed), data, None)
    return rows, *few[-1]


def test_people_label_the_training_rows_and_nobody_errs_in_the_test(few, made):
    (row,), cell, drawn = drawn_for(few, made)
    worst = made.extras["y_worst"]
    np.testing.assert_array_equal(drawn.given, worst[drawn.train])
    np.testing.assert_array_equal(drawn.y_test, made.y[drawn.test])
    np.testing.assert_array_equal(drawn.flipped, drawn.given != made.y[drawn.train])
    np.testing.assert_array_equal(np.bincount(made.y[drawn.train]), [8, 8, 8])
    assert not set(drawn.train) & set(drawn.test)
    assert drawn.flipped.any()
    assert row["wrong_labels"] == drawn.flipped.mean()
    assert row["noise"] == cell.noise == round(drawn.flipped.mean(), 3)
    assert (row["size"], row["n_train"], row["n_test"]) == (8, 24, 30)
    assert (row["method"], row["reason"]) == ("PCA", "")
    assert row["accuracy"] > 0.8
    assert drawn.X.shape == (24, 2)


def test_the_same_rows_are_drawn_for_all_labels_and_others_for_each_seed(few, made):
    _, _, worst = drawn_for(few, made)
    (row,), _, right = drawn_for(few, made, labels="y_random1")
    np.testing.assert_array_equal(right.train, worst.train)
    np.testing.assert_array_equal(right.X_test, worst.X_test)
    assert row["wrong_labels"] == row["noise"] == 0
    _, _, other = drawn_for(few, made, seed=1)
    assert set(other.train) != set(worst.train)
