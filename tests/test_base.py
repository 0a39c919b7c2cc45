"""Transform, search and compare with the mean metric."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from tolerances import ROUNDING

from bnca import BayesianNCA

# Labels overlap, so a learned weight may be negative; that warning has its own tests.
pytestmark = pytest.mark.filterwarnings("ignore::bnca.ProjectionWarning")


@pytest.fixture(scope="module")
def fitted(blobs):
    return BayesianNCA(8).fit(*blobs)


@pytest.fixture(scope="module")
def queries(blobs):
    return blobs[0][:20] + np.random.default_rng(1).normal(size=(20, 4))


def test_transform_is_the_linear_map_of_the_components(fitted, queries):
    out = fitted.transform(queries)
    np.testing.assert_array_equal(out, queries @ fitted.components_.T)
    np.testing.assert_array_equal(fitted.components_, fitted.metric_.components())


def test_distance_after_transform_is_the_learned_distance(fitted, queries):
    pairs = queries.reshape(10, 2, 4)
    moved = fitted.transform(queries).reshape(10, 2, -1)
    expected = np.linalg.norm(moved[:, 0] - moved[:, 1], axis=1)
    assert not fitted.metric_.is_projected  # otherwise pair_distance would show the difference
    np.testing.assert_allclose(fitted.pair_distance(pairs, squared=False), expected, rtol=ROUNDING)
    np.testing.assert_allclose(fitted.pair_distance(pairs), expected**2, rtol=ROUNDING)


def test_larger_scores_are_more_alike(fitted, queries):
    pairs = queries.reshape(10, 2, 4)
    np.testing.assert_array_equal(fitted.pair_score(pairs), -fitted.pair_distance(pairs))
    assert fitted.pair_score(np.repeat(queries[:1, None], 2, axis=1)) == 0


def test_mahalanobis_matrix_is_the_metric(fitted, queries):
    A = fitted.get_mahalanobis_matrix()
    assert A.shape == (4, 4)
    np.testing.assert_allclose(A, A.T, rtol=0, atol=1e-16)
    assert np.linalg.eigvalsh(A).min() >= 0
    np.testing.assert_allclose(A, fitted.components_.T @ fitted.components_, atol=1e-12)
    gap = queries[:10] - queries[10:]
    pairs = np.stack([queries[:10], queries[10:]], axis=1)
    np.testing.assert_allclose(np.diag(gap @ A @ gap.T), fitted.pair_distance(pairs), rtol=ROUNDING)


def test_metric_as_a_function_agrees_with_everything_else(fitted, blobs, queries):
    distance = fitted.get_metric()
    pairs = queries.reshape(10, 2, 4)
    found = [distance(x, y) for x, y in pairs]
    np.testing.assert_allclose(found, fitted.pair_distance(pairs, squared=False), rtol=ROUNDING)
    distances, indices = fitted.kneighbors(queries, 3)
    expected = [
        [distance(q, blobs[0][i]) for i in row] for q, row in zip(queries, indices, strict=True)
    ]
    np.testing.assert_allclose(distances, expected, rtol=ROUNDING)
    assert distance(list(queries[0]), list(queries[0])) == 0


def test_metric_as_a_function_outlives_its_model(blobs, queries):
    model = BayesianNCA(8).fit(*blobs)
    distance = model.get_metric()
    before = distance(queries[0], queries[1])
    model.components_ *= 0
    assert distance(queries[0], queries[1]) == before


@pytest.mark.parametrize("k", [1, 5, None, 80])
def test_neighbors_are_those_of_scikit_learn_after_transform(fitted, blobs, queries, k):
    peer = NearestNeighbors(n_neighbors=k or 8).fit(fitted.transform(blobs[0]))
    distances, indices = peer.kneighbors(fitted.transform(queries))
    found = fitted.kneighbors(queries, k)
    np.testing.assert_array_equal(found[1], indices)
    np.testing.assert_allclose(found[0], distances, rtol=ROUNDING)
    only = fitted.kneighbors(queries, k, return_distance=False)
    np.testing.assert_array_equal(only, indices)


@pytest.mark.parametrize("k", [1, 5, None, 79])
def test_training_rows_are_not_their_own_neighbors(fitted, blobs, k):
    peer = NearestNeighbors(n_neighbors=k or 8).fit(fitted.transform(blobs[0]))
    distances, indices = peer.kneighbors()
    found = fitted.kneighbors(n_neighbors=k)
    np.testing.assert_array_equal(found[1], indices)
    np.testing.assert_allclose(found[0], distances, rtol=ROUNDING)
    assert (found[1] != np.arange(80)[:, None]).all()


def test_training_rows_find_themselves_as_queries(fitted, blobs):
    distances, indices = fitted.kneighbors(blobs[0], 1)
    np.testing.assert_array_equal(indices[:, 0], np.arange(80))
    assert not distances.any()


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_matrix])
def test_without_queries_there_is_a_line_for_each_row_of_fit(blobs, container):
    """Copies share the line of the row that stands for them; rows of weight zero have their own."""
    X = np.vstack([blobs[0], blobs[0][[3, 7, 3]], blobs[0][:2] + 0.1])
    y = np.concatenate([blobs[1], blobs[1][[3, 7, 3]], [0, 1]])
    weights = np.ones(85)
    weights[[20, 83, 84]] = 0  # one in the middle, two at the end
    model = BayesianNCA(8).fit(container(X), y, weights)
    distances, indices = model.kneighbors(n_neighbors=4)
    assert distances.shape == indices.shape == (85, 4)
    for copy, first in [(80, 3), (81, 7), (82, 3)]:
        np.testing.assert_array_equal(indices[copy], indices[first])
        np.testing.assert_array_equal(distances[copy], distances[first])
    kept = np.setdiff1d(np.arange(80), [20])
    assert set(indices.ravel()) <= set(kept)
    peer = NearestNeighbors(n_neighbors=4).fit(model.transform(X[kept]))
    np.testing.assert_array_equal(indices[kept], kept[peer.kneighbors()[1]])
    left_out = peer.kneighbors(model.transform(X[[20, 83, 84]]))
    np.testing.assert_array_equal(indices[[20, 83, 84]], kept[left_out[1]])
    np.testing.assert_allclose(distances[[20, 83, 84]], left_out[0], rtol=ROUNDING)


@pytest.mark.parametrize(("vote", "n_voters"), [("uniform", 5), ("uniform", 80), ("distance", 7)])
def test_plain_votes_are_scikit_learns_after_transform(blobs, queries, vote, n_voters):
    model = BayesianNCA(8, vote=vote, n_voters=n_voters).fit(*blobs)
    peer = KNeighborsClassifier(n_voters, weights=vote).fit(model.transform(blobs[0]), blobs[1])
    moved = model.transform(queries)
    np.testing.assert_allclose(model.predict_proba(queries), peer.predict_proba(moved), rtol=1e-7)
    np.testing.assert_array_equal(model.predict(queries), peer.predict(moved))


@pytest.mark.parametrize("vote", ["posterior", "softmax", "distance", "uniform"])
def test_prediction_is_the_most_probable_class(blobs, queries, vote):
    names = np.array(["ham", "eggs", "spam"])
    model = BayesianNCA(8, vote=vote).fit(blobs[0], names[blobs[1]])
    probabilities = model.predict_proba(queries)
    np.testing.assert_array_equal(model.classes_, ["eggs", "ham", "spam"])
    np.testing.assert_array_equal(model.predict(queries), model.classes_[probabilities.argmax(1)])
    assert probabilities.shape == (20, 3)


def test_number_of_voters_is_that_of_neighbors_unless_told(blobs, queries):
    model = BayesianNCA(8, vote="uniform").fit(*blobs)
    shares = model.predict_proba(queries) * 8
    np.testing.assert_allclose(shares, np.round(shares), atol=1e-12)
    model.n_voters = 1
    assert set(model.predict_proba(queries).ravel()) == {0.0, 1.0}


def test_embedding_of_rows_far_away_keeps_their_distances(blobs):
    """The map is linear, so rows a million off lose at most six digits."""
    X, y = blobs
    near, far = BayesianNCA(8).fit(X, y), BayesianNCA(8).fit(X + 1e6, y)
    here, there = near.transform(X), far.transform(X + 1e6)
    np.testing.assert_allclose(cdist(there, there), cdist(here, here), atol=1e-6)
