"""NCA against scikit-learn's, its path step by step, and its predictions against naive loops."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from tolerances import FLOAT32_FIT, ROUNDING

from bnca.core import features
from bnca.rivals import NCA, nca
from bnca.rivals.nca import expected_matches

pytestmark = [
    # scikit-learn 1.6 passes an option that SciPy 1.17 says it will drop.
    pytest.mark.filterwarnings("ignore:scipy.optimize. The `disp`:DeprecationWarning"),
]

unfinished = pytest.mark.filterwarnings("ignore:NCA did not converge")

SAME_SEARCH = 1e-6
"""Absolute, distances of a few units after two searches that differ by rounding, which grows."""


@pytest.fixture(scope="module")
def few():
    """Rows of three classes of 12, 7 and 5, on three columns, one of them noise."""
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1, 2], [12, 7, 5])
    X = rng.normal(size=(24, 3)) * [1.0, 1.0, 2.0]
    X[:, 0] += 1.5 * y
    return X, y


def naive_matches(components, X, y):
    total = 0.0
    for i in range(len(X)):
        e = [
            np.exp(-np.sum((components @ (X[i] - X[j])) ** 2)) if j != i else 0.0
            for j in range(len(X))
        ]
        total += sum(p for p, c in zip(e, y, strict=True) if c == y[i]) / sum(e)
    return total


def distances(components, X):
    moved = X @ components.T
    return np.linalg.norm(moved[:, None] - moved[None], axis=-1)


# The objective.


@pytest.mark.parametrize("size", [1 << 18, 50])
def test_expected_matches_are_those_of_a_loop(few, monkeypatch, size):
    monkeypatch.setattr(nca, "BLOCK_NUMBERS", size)
    components = np.random.default_rng(0).normal(size=(2, 3))
    np.testing.assert_allclose(
        expected_matches(components, *few), naive_matches(components, *few), rtol=ROUNDING
    )


def test_expected_matches_survive_distances_that_underflow(few):
    X, y = few
    value = expected_matches(1e3 * np.eye(3), X, y)
    squared = ((X[:, None] - X[None]) ** 2).sum(-1)
    np.fill_diagonal(squared, np.inf)
    np.testing.assert_allclose(value, (y[squared.argmin(1)] == y).sum(), rtol=ROUNDING)


# The search.


@unfinished
@pytest.mark.parametrize(
    ("init", "n_components"),
    [
        *itertools.product(["auto", "identity", "pca", "random"], [1, 2, 3, None]),
        *itertools.product(["lda"], [1, 2]),  # three classes have two discriminant directions
    ],
)
def test_components_are_those_of_scikit_learn(few, init, n_components):
    settings = {"n_components": n_components, "init": init, "max_iter": 15, "random_state": 4}
    theirs = NeighborhoodComponentsAnalysis(**settings).fit(*few)
    np.testing.assert_allclose(NCA(**settings).fit(*few).components_, theirs.components_, ROUNDING)


@unfinished
def test_auto_takes_principal_axes_between(few):
    """Two components of three, with two classes: too many for "lda", fewer than the columns."""
    X, y = few[0], few[1] % 2
    model = NCA(2, record_path=True, max_iter=2).fit(X, y)
    np.testing.assert_array_equal(
        model.path_[0], NCA(2, init="pca", record_path=True, max_iter=2).fit(X, y).path_[0]
    )


@unfinished
def test_a_map_can_be_the_start(few):
    start = np.array([[1.0, 0.5, 0.0], [0.0, -0.3, 0.2]])
    model = NCA(init=start, record_path=True, max_iter=5).fit(*few)
    np.testing.assert_array_equal(model.path_[0], start)
    theirs = NeighborhoodComponentsAnalysis(init=start, max_iter=5).fit(*few)
    np.testing.assert_allclose(model.components_, theirs.components_, ROUNDING)


@unfinished
def test_the_path_leads_from_the_start_to_the_end(few):
    model = NCA(init="identity", record_path=True, max_iter=12).fit(*few)
    assert len(model.path_) == model.n_iter_ + 1 == 13
    np.testing.assert_array_equal(model.path_[0], np.eye(3))
    np.testing.assert_array_equal(model.path_[-1], model.components_)
    for steps in (1, 4):
        shorter = NCA(init="identity", max_iter=steps).fit(*few)
        np.testing.assert_allclose(model.path_[steps], shorter.components_, ROUNDING)
    objective = [naive_matches(components, *few) for components in model.path_]
    assert (np.diff(objective) > 0).all()


def test_no_path_without_asking(few):
    assert not hasattr(NCA(max_iter=100).fit(*few), "path_")


@unfinished
def test_the_callback_sees_each_step(few):
    seen = []

    def watch(step, components, objective):
        seen.append((step, components.copy(), objective))
        components[:] = 0  # a copy: the search must not be disturbed

    model = NCA(init="identity", record_path=True, callback=watch, max_iter=6).fit(*few)
    assert [step for step, _, _ in seen] == [1, 2, 3, 4, 5, 6]
    for (_, components, objective), kept in zip(seen, model.path_[1:], strict=True):
        np.testing.assert_array_equal(components, kept)
        np.testing.assert_allclose(objective, naive_matches(kept, *few), rtol=ROUNDING)
    alone = NCA(init="identity", max_iter=6).fit(*few)
    np.testing.assert_array_equal(model.components_, alone.components_)


@unfinished
def test_a_warm_start_goes_on_where_the_last_fit_ended(few):
    X, y = few
    model = NCA(2, warm_start=True, record_path=True, max_iter=3).fit(X, y)
    ended = model.components_
    model.fit(X, y)
    np.testing.assert_array_equal(model.path_[0], ended)
    with pytest.raises(ValueError, match=r"the map of the last fit .* 2 features.* shape \(2, 3\)"):
        model.fit(X[:, :2], y)
    with pytest.raises(ValueError, match="n_components=3 does not match the map of the last fit"):
        model.set_params(n_components=3).fit(X, y)


# How the search ends.


@pytest.mark.parametrize("verbose", [0, 1])
def test_no_convergence_is_said_whatever_the_verbosity(few, verbose, capsys):
    with pytest.warns(ConvergenceWarning, match="max_iter=2 steps") as caught:
        model = NCA(max_iter=2, verbose=verbose).fit(*few)
    own = [w for w in caught if w.category is ConvergenceWarning]
    assert [w.filename for w in own] == [__file__]
    assert not model.converged_
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2 * verbose
    assert all(line.startswith("[NCA] step") for line in printed)


def test_a_search_that_ends_by_itself_says_nothing(few):
    model = NCA(max_iter=500).fit(*few)
    assert model.converged_
    assert 1 < model.n_iter_ < 500
    assert NCA(max_iter=500, tol=0.03).fit(*few).n_iter_ < model.n_iter_


def test_a_flat_start_is_told_apart_from_a_finished_search(few):
    X, y = few
    with pytest.warns(ConvergenceWarning, match="did not leave its start.* Scale the features"):
        model = NCA(init="identity").fit(1e4 * X, y)
    assert model.n_iter_ == 0
    np.testing.assert_array_equal(model.components_, np.eye(3))


def test_one_class_has_nothing_to_search_for(few):
    model = NCA(init="identity").fit(few[0], np.zeros(24))
    assert model.n_iter_ == 0
    assert (model.predict(few[0]) == 0).all()


def test_memory_that_grows_with_the_square_is_said_beforehand(few, monkeypatch):
    monkeypatch.setattr(nca, "MANY_ROWS", 24)
    with pytest.warns(UserWarning, match="n × n numbers: about 0 GB for 24 rows") as caught:
        NCA(max_iter=100).fit(*few)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        NCA(max_iter=100).fit(few[0][1:], few[1][1:])


# Votes.


@unfinished
@pytest.mark.parametrize("size", [1 << 18, 60])
def test_all_rows_vote_by_their_probability_as_neighbors(few, monkeypatch, size):
    """P(y | x, L) of eq. 8, with all training rows as neighbours."""
    monkeypatch.setattr(nca, "BLOCK_NUMBERS", size)
    X, y = few
    model = NCA(2, vote="softmax", n_voters=None, max_iter=5).fit(X, y)
    queries = X[::2] + 0.3
    expected = np.zeros((12, 3))
    for i, x in enumerate(queries):
        for row, label in zip(X, y, strict=True):
            expected[i, label] += np.exp(-np.sum((model.components_ @ (x - row)) ** 2))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(queries), expected, rtol=ROUNDING)
    np.testing.assert_array_equal(model.predict(queries), expected.argmax(axis=1))


@unfinished
@pytest.mark.parametrize("vote", ["uniform", "distance", "softmax"])
def test_all_rows_and_as_many_as_there_are_is_the_same(few, vote):
    X, y = few
    queries = np.vstack([X[:5], X[5:9] + 0.3])  # the first at distance zero of a training row
    model = NCA(2, vote=vote, n_voters=None, max_iter=5).fit(X, y)
    every = model.predict_proba(queries)
    counted = model.set_params(n_voters=24).predict_proba(queries)
    np.testing.assert_allclose(every, counted, rtol=0, atol=ROUNDING)


@unfinished
def test_a_far_query_still_has_probabilities(few):
    model = NCA(vote="softmax", n_voters=None, max_iter=5).fit(*few)
    out = model.predict_proba([[1e4, 0.0, 0.0]])
    np.testing.assert_allclose(out.sum(), 1)


@unfinished
def test_five_votes_are_plain_neighbors_in_the_learned_space(few):
    X, y = few
    model = NCA(2, max_iter=5).fit(X, y)
    plain = KNeighborsClassifier(5).fit(model.transform(X), y)
    np.testing.assert_allclose(
        model.predict_proba(X + 0.1), plain.predict_proba(model.transform(X + 0.1)), ROUNDING
    )


# Rows of other kinds.


@unfinished
@pytest.mark.parametrize("container", [scipy.sparse.csr_matrix, scipy.sparse.csc_array])
@pytest.mark.parametrize("start", ["identity", "pca", "map"])
def test_sparse_rows_equal_dense_ones(few, container, start):
    X, y = few[0].copy(), few[1]
    X[np.abs(X) < 0.4] = 0
    # A fourth column that follows from the others: fewer axes than columns.
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    init = np.array([[1.0, 0.5, 0.0, 0.2], [0.0, -0.3, 0.2, 0.1]]) if start == "map" else start
    n_components = 2 if start == "pca" else None
    dense = NCA(n_components, init=init, max_iter=6, record_path=True).fit(X, y)
    sparse = NCA(n_components, init=init, max_iter=6, record_path=True).fit(container(X), y)
    for mine, theirs in zip(sparse.path_, dense.path_, strict=True):
        np.testing.assert_allclose(
            distances(mine, X), distances(theirs, X), rtol=0, atol=SAME_SEARCH
        )
    np.testing.assert_array_equal(sparse.predict(container(X)), dense.predict(X))


@unfinished
def test_a_map_with_more_rows_than_sparse_rows_have_directions(few):
    X = np.column_stack([few[0], few[0][:, 0] + few[0][:, 1]])
    start = np.diag([1.0, 2.0, 0.5, 0.3])
    dense = NCA(init=start, max_iter=4).fit(X, few[1])
    sparse = NCA(init=start, max_iter=4).fit(scipy.sparse.csr_matrix(X), few[1])
    assert sparse.components_.shape == (3, 4)
    np.testing.assert_allclose(
        distances(sparse.components_, X), distances(dense.components_, X), rtol=0, atol=SAME_SEARCH
    )


@unfinished
def test_large_sparse_rows_are_reduced_to_their_leading_axes(monkeypatch, few):
    X, y = few
    monkeypatch.setattr(features, "DENSE_SIDE", 2)
    model = NCA(2, max_iter=5).fit(scipy.sparse.csr_matrix(X), y)
    assert model.components_.shape == (2, 3)
    axes = features.eigen_directions(X, 2).axes
    # Every row of the map is made of those two axes.
    made, *_ = np.linalg.lstsq(axes, model.components_.T, rcond=None)
    np.testing.assert_allclose(axes @ made, model.components_.T, rtol=0, atol=1e-6)
    monkeypatch.undo()
    other = NCA(2, max_iter=5).fit(scipy.sparse.csr_matrix(X), y)
    assert np.abs(other.components_ - model.components_).max() > 0.01


@unfinished
def test_single_precision_rows_are_searched_in_double(few):
    X, y = few[0].astype(np.float32), few[1]
    single = NCA(2, max_iter=5, record_path=True).fit(X, y)
    double = NCA(2, max_iter=5).fit(X.astype(np.float64), y)
    assert single.components_.dtype == single.transform(X).dtype == np.float32
    np.testing.assert_allclose(single.components_, double.components_, rtol=FLOAT32_FIT / 1e3)


# What does not fit.


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"n_components": 4}, "n_components must be at most the number of features, 3; got 4"),
        ({"init": np.eye(2)}, r"init must have one column for each of the 3 features .*\(2, 2\)"),
        ({"init": np.ones((4, 3))}, r"no more rows than columns; got shape \(4, 3\)"),
        ({"init": np.eye(3), "n_components": 2}, "n_components=2 does not match init, .* 3 rows"),
        ({"init": np.full((2, 3), np.nan)}, "Input init contains NaN"),
    ],
)
@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_matrix])
def test_starts_that_do_not_fit(few, container, parameters, match):
    with pytest.raises(ValueError, match=match):
        NCA(**parameters).fit(container(few[0]), few[1])
