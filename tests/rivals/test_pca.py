"""PCA and nearest neighbours against scikit-learn's own two steps."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from tolerances import FLOAT32_FIT, ROUNDING

from bnca.rivals import PCAMetric


@pytest.fixture(scope="module")
def queries(blobs):
    return blobs[0][:30] + np.random.default_rng(3).normal(size=(30, 4))


def distances(model, queries):
    """All distances between queries under a model's map."""
    moved = queries @ model.components_.T
    return np.linalg.norm(moved[:, None] - moved[None], axis=-1)


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("n_components", [1, 2, None])
@pytest.mark.parametrize("vote", ["uniform", "distance"])
def test_it_is_pca_and_then_neighbors(blobs, queries, whiten, n_components, vote):
    X, y = blobs
    model = PCAMetric(n_components, whiten=whiten, vote=vote, n_voters=7).fit(X, y)
    steps = make_pipeline(
        PCA(n_components, whiten=whiten, svd_solver="full"), KNeighborsClassifier(7, weights=vote)
    ).fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(queries), steps.predict_proba(queries), rtol=0, atol=ROUNDING
    )
    moved = steps[0].transform(queries)
    expected = np.linalg.norm(moved[:, None] - moved[None], axis=-1)
    np.testing.assert_allclose(distances(model, queries), expected, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(model.explained_variance_, steps[0].explained_variance_)


def test_all_axes_are_euclidean_distance(blobs, queries):
    model = PCAMetric().fit(*blobs)
    expected = np.linalg.norm(queries[:, None] - queries[None], axis=-1)
    np.testing.assert_allclose(distances(model, queries), expected, rtol=0, atol=ROUNDING)


def test_labels_do_not_move_the_axes(blobs):
    X, y = blobs
    one, other = PCAMetric(2).fit(X, y), PCAMetric(2).fit(X, y[::-1])
    np.testing.assert_array_equal(one.components_, other.components_)


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_matrix])
def test_whitening_leaves_out_what_does_not_vary(blobs, container):
    """Two copied columns and a constant one would be divided by rounding errors."""
    X, y = blobs
    wide = np.column_stack([X, X[:, 0] - X[:, 1], X[:, 2], np.full(len(X), 7.0)])
    model = PCAMetric(whiten=True).fit(container(wide), y)
    # Whitened distance is the same in all coordinates that determine each other.
    narrow = PCAMetric(whiten=True).fit(X, y)
    np.testing.assert_allclose(
        distances(model, wide[:20]), distances(narrow, X[:20]), rtol=0, atol=1e-7
    )


@pytest.mark.parametrize("shape", [(60, 8), (20, 50)])
@pytest.mark.parametrize("whiten", [False, True])
def test_sparse_rows_equal_dense_ones(shape, whiten):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape) * np.geomspace(3, 0.5, shape[1])
    X[rng.random(shape) < 0.6] = 0
    y = rng.integers(0, 3, len(X))
    dense = PCAMetric(5, whiten=whiten).fit(X, y)
    sparse = PCAMetric(5, whiten=whiten).fit(scipy.sparse.csr_matrix(X), y)
    np.testing.assert_allclose(
        sparse.get_mahalanobis_matrix(), dense.get_mahalanobis_matrix(), rtol=0, atol=1e-8
    )
    np.testing.assert_allclose(sparse.explained_variance_, dense.explained_variance_)
    np.testing.assert_array_equal(sparse.predict(scipy.sparse.csc_array(X)), dense.predict(X))


def test_single_precision_rows_are_decomposed_in_double(blobs):
    X, y = blobs
    single = PCAMetric(3, whiten=True).fit((X + 1000).astype(np.float32), y)
    double = PCAMetric(3, whiten=True).fit(X + 1000, y)
    assert single.components_.dtype == np.float32
    np.testing.assert_allclose(
        single.components_, double.components_, rtol=0, atol=FLOAT32_FIT / 10
    )


def test_a_few_axes_of_a_large_table_are_seeded():
    """scikit-learn draws random numbers there: few axes, more than 500 rows and columns."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(520, 510)), np.arange(520) % 2
    one, other = PCAMetric(3).fit(X, y), PCAMetric(3).fit(X, y)
    np.testing.assert_array_equal(one.components_, other.components_)
    assert not np.array_equal(PCAMetric(3, random_state=1).fit(X, y).components_, one.components_)


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("shape", [(12, 3), (3, 12)])
def test_more_axes_than_there_can_be_are_refused(container, shape):
    X = np.random.default_rng(0).normal(size=shape)
    match = r"n_components must be at most min\(n_samples, n_features\) = 3; got 4"
    with pytest.raises(ValueError, match=match):
        PCAMetric(4).fit(container(X), np.arange(shape[0]) % 2)
