from __future__ import annotations

import numpy as np
import oracle
import pytest
import scipy.sparse
from hypothesis import given
from strategies import labelled_rows
from tolerances import ROUNDING

from bnca.core import features as module
from bnca.core.features import Directions, eigen_directions, eigen_features, scores

SHAPES = {"tall": (30, 5), "wide": (6, 20), "square": (8, 8), "one column": (9, 1)}


def lopsided(shape, seed=0):
    """Rows whose axes have clearly different eigenvalues, far from the origin."""
    rng = np.random.default_rng(seed)
    n, width = shape
    rotation, _ = np.linalg.qr(rng.normal(size=(width, width)))
    return rng.normal(size=(n, width)) * np.geomspace(4, 0.5, width) @ rotation + 10


def assert_same_axes(actual, desired, atol=ROUNDING):
    assert actual.shape == desired.shape
    signs = np.sign(np.einsum("ij,ij->j", actual, desired))
    np.testing.assert_allclose(actual * signs, desired, rtol=0, atol=atol)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_axes_are_the_eigenvectors_of_the_centred_scatter(shape):
    X = lopsided(shape)
    axes, center = eigen_directions(X)
    np.testing.assert_allclose(center, X.mean(axis=0), rtol=ROUNDING)
    assert_same_axes(axes, oracle.eigen_axes(X))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("wanted", [1, 3, 1000])
def test_leading_axes_come_first_and_are_never_more_than_the_rank(shape, wanted):
    X = lopsided(shape)
    everything = eigen_directions(X).axes
    assert everything.shape[1] == np.linalg.matrix_rank(X - X.mean(axis=0))
    assert_same_axes(eigen_directions(X, wanted).axes, everything[:, :wanted])


@given(labelled_rows(max_width=6))
def test_axes_are_orthonormal_and_span_the_rows(data):
    axes, center = eigen_directions(data.X)
    np.testing.assert_allclose(axes.T @ axes, np.eye(axes.shape[1]), rtol=0, atol=ROUNDING)
    centred = data.X - center
    np.testing.assert_allclose(centred @ axes @ axes.T, centred, rtol=0, atol=1e-7)
    strength = np.square(centred @ axes).sum(axis=0)
    assert (np.diff(strength) <= ROUNDING * strength.max()).all()


@pytest.mark.parametrize("shape", [(12, 4), (5, 9)])
def test_dependent_columns_have_no_axes_of_their_own(shape):
    X = lopsided(shape)
    repeated = np.column_stack([X, X @ np.ones((shape[1], 3)), np.full(shape[0], 7.0)])
    assert eigen_directions(repeated).axes.shape[1] == min(shape[1], shape[0] - 1)


@pytest.mark.parametrize("shape", [(6, 3), (3, 6)])
@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_matrix])
def test_equal_rows_leave_one_axis(shape, container):
    X = container(np.broadcast_to(np.arange(shape[1]) + 0.1, shape))
    axes, _ = eigen_directions(X)
    assert axes.shape == (shape[1], 1)
    np.testing.assert_allclose(np.linalg.norm(axes), 1, rtol=ROUNDING)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_each_axis_has_a_positive_largest_entry(shape):
    axes = eigen_directions(lopsided(shape)).axes
    assert (axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] > 0).all()


def test_axes_do_not_depend_on_where_the_rows_are():
    X = lopsided((30, 5))
    assert_same_axes(eigen_directions(X + 1e4).axes, eigen_directions(X).axes, atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_sparse_rows_have_the_axes_of_the_same_dense_rows(shape):
    X = lopsided(shape)
    X[np.random.default_rng(1).random(shape) < 0.3] = 0
    expected = eigen_directions(X)
    found = eigen_directions(scipy.sparse.csr_matrix(X))
    np.testing.assert_allclose(found.center, expected.center, rtol=ROUNDING)
    assert_same_axes(found.axes, expected.axes, atol=1e-8)


@pytest.mark.parametrize("shape", [(40, 12), (12, 40)])
def test_large_sparse_rows_take_the_krylov_branch_to_the_same_axes(shape, monkeypatch):
    X = lopsided(shape)
    X[np.random.default_rng(1).random(shape) < 0.3] = 0
    expected = eigen_directions(X, 4)
    monkeypatch.setattr(module, "DENSE_SIDE", 5)
    found = eigen_directions(scipy.sparse.csr_matrix(X), 4)
    assert_same_axes(found.axes, expected.axes, atol=1e-7)


def test_krylov_branch_can_be_asked_for_every_axis(monkeypatch):
    X = lopsided((20, 8))
    expected = eigen_directions(X)
    monkeypatch.setattr(module, "DENSE_SIDE", 5)
    found = eigen_directions(scipy.sparse.csr_matrix(X))
    assert_same_axes(found.axes, expected.axes, atol=1e-7)


def test_krylov_branch_drops_axes_beyond_the_rank(monkeypatch):
    X = lopsided((20, 3)) @ np.random.default_rng(2).normal(size=(3, 12))
    monkeypatch.setattr(module, "DENSE_SIDE", 5)
    assert eigen_directions(scipy.sparse.csr_matrix(X), 6).axes.shape == (12, 3)


@pytest.mark.parametrize("shape", [(30, 5), (6, 20)])
@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_matrix])
def test_single_precision_rows_have_axes_summed_in_double(shape, container):
    X = lopsided(shape).astype(np.float32)
    found = eigen_directions(container(X))
    assert found.axes.dtype == np.float64
    assert_same_axes(found.axes, oracle.eigen_axes(X), atol=1e-8)


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_matrix])
def test_scores_are_coordinates_of_centred_rows_in_double(container):
    X = lopsided((30, 5)).astype(np.float32)
    directions = eigen_directions(X)
    out = scores(container(X), directions)
    expected = (X.astype(np.float64) - directions.center) @ directions.axes
    assert out.dtype == np.float64
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-12)


def test_scores_come_out_the_same_in_blocks():
    X = lopsided((30, 5))
    directions = Directions(np.eye(5)[:, :2], np.full(5, 10.0))
    np.testing.assert_array_equal(scores(X, directions, block=7), (X - 10)[:, :2])


def test_features_are_squared_coordinates_written_over_the_differences():
    X = lopsided((4, 5))
    axes = oracle.eigen_axes(X)
    differences = (X[:1] - X[1:]) @ axes
    expected = [oracle.pair_feature(axes, X[0], x) for x in X[1:]]
    out = eigen_features(differences)
    assert out is differences
    np.testing.assert_allclose(out, expected, rtol=ROUNDING, atol=ROUNDING)
