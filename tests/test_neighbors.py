from __future__ import annotations

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors
from strategies import loose_rows, tied_rows
from tolerances import ROUNDING

from bnca import neighbors as module
from bnca.neighbors import nearest


def grid_order(grid, k, queries=None):
    """Brute force on integers, where ties are exact: by distance, then by row number."""
    asked = grid if queries is None else queries
    squared = np.square(asked[:, None] - grid[None]).sum(axis=2)
    if queries is None:
        np.fill_diagonal(squared, np.inf)
    order = [np.lexsort((np.arange(len(grid)), row))[:k] for row in squared]
    return np.array(order), np.take_along_axis(squared, np.array(order), axis=1)


def turned(width, seed):
    """A random rotation: exact ties are then off by roundings."""
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(width, width)))[0]


@settings(max_examples=150)
@given(tied_rows())
def test_ties_on_a_grid_are_settled_by_row_number(drawn):
    grid, scale, k = drawn
    indices, squared = grid_order(grid, k)
    found = nearest(grid * scale, k, n_jobs=1)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_allclose(found.squared_distances / scale**2, squared, rtol=1e-12)


@settings(max_examples=150)
@given(tied_rows(), st.integers(0, 2**32 - 1))
def test_rotating_and_shifting_a_grid_changes_no_neighbor(drawn, seed):
    grid, scale, k = drawn
    indices, squared = grid_order(grid, k)
    rows = (grid @ turned(grid.shape[1], seed) + 10) * scale
    found = nearest(rows, k, n_jobs=1)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_allclose(found.squared_distances / scale**2, squared, rtol=0, atol=1e-9)
    # Equal rows are at distance zero, not at a rounding.
    assert ((found.squared_distances == 0) == (squared == 0)).all()


@settings(max_examples=150)
@given(tied_rows(), st.integers(0, 2**32 - 1))
def test_queries_are_measured_against_all_rows(drawn, seed):
    grid, scale, k = drawn
    queries = np.random.default_rng(seed).integers(-6, 7, (5, grid.shape[1])).astype(np.float64)
    indices, squared = grid_order(grid, k, queries)
    found = nearest(grid * scale, k, queries * scale, n_jobs=1)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_allclose(found.squared_distances / scale**2, squared, rtol=1e-12)


@settings(max_examples=150)
@given(loose_rows())
def test_lopsided_rows_with_outliers_equal_a_full_sort(drawn):
    rows, scale, k = drawn
    found = nearest(rows * scale, k, n_jobs=1)
    squared = np.square(rows[:, None] - rows[None]).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    expected = np.sort(squared, axis=1)
    # Seen from the outlier the others may be equally far to single precision: then any will do.
    apart = (np.diff(expected[:, : k + 1]) > 1e-6 * expected[:, :k]).all(axis=1)
    np.testing.assert_array_equal(found.indices[apart], squared.argsort(axis=1)[apart, :k])
    actual = np.take_along_axis(squared, found.indices, axis=1)
    np.testing.assert_allclose(actual, expected[:, :k], rtol=1e-6)
    # Centring rows beside an outlier a million times as large costs six of sixteen digits.
    np.testing.assert_allclose(found.squared_distances / scale**2, actual, rtol=1e-7)


@settings(max_examples=60)
@given(loose_rows())
def test_a_row_is_never_its_own_neighbor(drawn):
    rows, scale, k = drawn
    found = nearest(np.vstack([rows, rows]) * scale, k, n_jobs=1)
    assert (found.indices != np.arange(2 * len(rows))[:, None]).all()


@pytest.mark.parametrize("k", [1, 3, 4])
def test_equal_rows_are_neighbors_of_each_other_in_order(k):
    found = nearest(np.full((5, 3), 0.1), k)
    others = [[t for t in range(5) if t != i][:k] for i in range(5)]
    np.testing.assert_array_equal(found.indices, others)
    assert not found.squared_distances.any()


def test_two_rows_are_neighbors_of_each_other():
    found = nearest(np.array([[0.0, 1.0], [3.0, 5.0]]), 1)
    np.testing.assert_array_equal(found.indices, [[1], [0]])
    np.testing.assert_allclose(found.squared_distances, 25, rtol=1e-14)


def test_one_row_can_answer_queries():
    found = nearest(np.array([[2.0]]), 1, np.array([[5.0], [2.0]]))
    np.testing.assert_array_equal(found.indices, [[0], [0]])
    np.testing.assert_array_equal(found.squared_distances, [[9.0], [0.0]])


def test_no_queries_have_no_neighbors():
    found = nearest(np.arange(6.0).reshape(3, 2), 2, np.empty((0, 2)))
    assert found.indices.shape == found.squared_distances.shape == (0, 2)


def test_all_other_rows_can_be_asked_for():
    rows = np.random.default_rng(0).normal(size=(50, 3))
    found = nearest(rows, 49)
    np.testing.assert_array_equal(found.indices, oracle.neighbor_lists(rows, 49))


@pytest.mark.parametrize("outlier", [1e3, 1e6, 1e9, 1e12])
def test_one_outlier_does_not_blur_the_others(outlier):
    """One wrong unit in one row must not decide the neighbours of all the rest."""
    grid = np.random.default_rng(1).integers(0, 6, (60, 2)).astype(np.float64)
    expected = grid_order(grid, 5)[0]
    found = nearest(np.vstack([grid, [[outlier, -outlier]]]), 5)
    np.testing.assert_array_equal(found.indices[:-1], expected)


@pytest.mark.parametrize("offset", [1e3, 1e9, 1e14])
def test_rows_far_from_the_origin_are_told_apart(offset):
    grid = np.random.default_rng(2).integers(0, 6, (60, 2)).astype(np.float64)
    found = nearest(grid + offset, 5)
    np.testing.assert_array_equal(found.indices, grid_order(grid, 5)[0])


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e15])
def test_a_rounding_apart_is_at_distance_zero(scale):
    """The same row, computed alone or among others, may differ in its last bit."""
    rows = np.random.default_rng(8).normal(size=(30, 5)) * scale
    found = nearest(rows, 2, np.nextafter(rows, np.inf))
    np.testing.assert_array_equal(found.indices[:, 0], np.arange(30))
    assert not found.squared_distances[:, 0].any()
    assert found.squared_distances[:, 1].all()


def test_a_query_far_away_is_answered_and_leaves_the_others_exact():
    rows = np.random.default_rng(3).normal(size=(40, 3))
    near = nearest(rows, 4, rows[:5] + 0.1)
    far = np.array([[1e6, 0.0, 0.0]])
    both = nearest(rows, 4, np.vstack([rows[:5] + 0.1, far]))
    np.testing.assert_array_equal(both.indices[:5], near.indices)
    np.testing.assert_allclose(both.squared_distances[:5], near.squared_distances, rtol=ROUNDING)
    np.testing.assert_array_equal(both.indices[5], oracle.neighbor_lists(rows, 4, far)[0])


@pytest.mark.parametrize("among_themselves", [True, False])
def test_larger_data_agree_with_scikit_learn(among_themselves):
    """Enough rows for several blocks, threads and rounds of group minima."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(3000, 8)) * np.geomspace(3, 0.1, 8)
    queries = None if among_themselves else rng.normal(size=(500, 8))
    found = nearest(rows, 7, queries)
    peer = NearestNeighbors(n_neighbors=7, algorithm="kd_tree").fit(rows)
    distances, indices = peer.kneighbors(queries)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_allclose(np.sqrt(found.squared_distances), distances, rtol=ROUNDING)


@pytest.mark.parametrize("among_themselves", [True, False])
def test_block_size_and_threads_change_no_bit(among_themselves, monkeypatch):
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 4, (700, 3)).astype(np.float64) @ turned(3, 6)
    queries = None if among_themselves else rows[:99] + 0.5
    expected = nearest(rows, 9, queries, n_jobs=1)
    for block_bytes, n_jobs in [(1, 1), (1 << 14, 2), (1 << 14, 3), (1 << 30, 2)]:
        monkeypatch.setattr(module, "BLOCK_BYTES", block_bytes)
        found = nearest(rows, 9, queries, n_jobs=n_jobs)
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_array_equal(found.squared_distances, expected.squared_distances)


def test_rows_and_queries_are_left_as_they_were():
    rows, queries = np.arange(12.0).reshape(6, 2), np.ones((2, 2))
    nearest(rows, 2, queries)
    np.testing.assert_array_equal(rows, np.arange(12.0).reshape(6, 2))
    np.testing.assert_array_equal(queries, np.ones((2, 2)))
