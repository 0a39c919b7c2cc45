"""Bases that are full in their leading coordinates."""

from __future__ import annotations

import numpy as np
import oracle_beyond
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import ROUNDING, SUMS

from bnca.core.features import count_weights, pack, products, unpack
from bnca.core.metric import BayesianMetric, nearest_metrics


@st.composite
def full_bases(draw):
    """A symmetric matrix, how much of it is full, and differences of rows."""
    r = draw(st.integers(1, 5))
    full = draw(st.integers(0, r))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    matrix = rng.normal(size=(r, r)) * rng.choice([0.1, 1.0, 5.0], r)
    return matrix + matrix.T, full, rng.normal(size=(3, 2, r)) * [[[1.0], [4.0]]]


def block_of(matrix, full):
    """The matrix without what the basis has no weight for."""
    out = np.diag(np.diag(matrix))
    out[:full, :full] = matrix[:full, :full]
    return out


@given(full_bases())
def test_features_times_weights_are_the_quadratic_form(case):
    matrix, full, differences = case
    weights = pack(matrix, full)
    features = products(differences.copy(), full)
    assert len(weights) == features.shape[-1] == count_weights(len(matrix), full)
    for at in np.ndindex(3, 2):
        expected = oracle_beyond.quadratic_form(matrix, full, differences[at])
        size = np.abs(matrix).max() * (differences[at] ** 2).sum() + 1
        np.testing.assert_allclose(features[at] @ weights, expected, rtol=0, atol=ROUNDING * size)


@given(full_bases())
def test_weights_have_the_length_of_their_matrix(case):
    matrix, full, _ = case
    length = np.linalg.norm(block_of(matrix, full))
    np.testing.assert_allclose(np.linalg.norm(pack(matrix, full)), length, rtol=ROUNDING)


@given(full_bases())
def test_unpack_gives_the_leading_block_back_for_any_number_of_weights(case):
    matrix, full, _ = case
    weights = pack(matrix, full)
    np.testing.assert_allclose(unpack(weights, full), matrix[:full, :full], rtol=ROUNDING)
    many = unpack(np.stack([weights, 2 * weights])[:, None], full)
    assert many.shape == (2, 1, full, full)
    np.testing.assert_allclose(many[1, 0], 2 * matrix[:full, :full], rtol=ROUNDING)


@pytest.mark.parametrize("full", [2, 3, 4])
def test_prior_is_the_same_in_all_rotations_of_the_leading_coordinates(full):
    """The map of weights that goes with a rotation is orthogonal, and leaves m·I where it is."""
    r = 4
    rng = np.random.default_rng(full)
    turn = np.eye(r)
    turn[:full, :full] = np.linalg.qr(rng.normal(size=(full, full)))[0]
    p = count_weights(r, full)
    columns = []
    for weights in np.eye(p):
        matrix = np.diag(np.concatenate([np.zeros(full), weights[full * (full + 1) // 2 :]]))
        matrix[:full, :full] = unpack(weights, full)
        columns.append(pack(turn @ matrix @ turn.T, full))
    change = np.array(columns).T
    np.testing.assert_allclose(change.T @ change, np.eye(p), rtol=0, atol=SUMS["float64"])
    centre = pack(4.0 * np.eye(r), full)
    np.testing.assert_allclose(change @ centre, centre, rtol=0, atol=SUMS["float64"])


@pytest.mark.parametrize("full", [0, 1])
def test_published_basis_squares_in_place(full):
    differences = np.random.default_rng(0).normal(size=(2, 3, 4))
    expected = differences**2
    assert products(differences, full) is differences
    np.testing.assert_array_equal(differences, expected)
    assert count_weights(4, full) == 4


@pytest.mark.parametrize("full", [2, 4])
def test_features_may_be_written_where_the_caller_says_and_differences_survive(full):
    differences = np.random.default_rng(0).normal(size=(2, 3, 4))
    kept = differences.copy()
    out = np.full((2, 3, count_weights(4, full)), np.nan)
    assert products(differences, full, out) is out
    np.testing.assert_array_equal(out, products(differences, full))
    np.testing.assert_array_equal(differences, kept)


def test_single_precision_stays_single():
    differences = np.ones((2, 3), dtype=np.float32)
    assert products(differences, 2).dtype == np.float32
    assert products(differences, 0).dtype == np.float32


@given(full_bases())
def test_nearest_metric_has_no_negative_eigenvalue_and_keeps_metrics(case):
    matrix, full, _ = case
    matrix = block_of(matrix, full)
    values, axes = np.linalg.eigh(matrix)
    expected = (axes * np.maximum(values, 0)) @ axes.T
    size = np.abs(matrix).max()
    found = nearest_metrics(pack(matrix, full)[None].copy(), full)[0]
    np.testing.assert_allclose(found, pack(expected, full), rtol=0, atol=ROUNDING * size)
    again = nearest_metrics(found[None].copy(), full)[0]
    np.testing.assert_allclose(again, found, rtol=0, atol=ROUNDING * size)


@given(full_bases())
def test_metric_of_a_full_basis_is_its_matrix(case):
    matrix, full, _ = case
    r = len(matrix)
    matrix = block_of(matrix @ matrix.T + np.eye(r), full)
    directions = np.random.default_rng(1).normal(size=(r + 1, r))  # of no special length
    weights = pack(matrix, full)
    metric = BayesianMetric(directions, weights, np.eye(len(weights)), full)
    expected = directions @ matrix @ directions.T
    size = np.abs(expected).max()
    np.testing.assert_allclose(metric.matrix(), expected, rtol=0, atol=ROUNDING * size)
    L = metric.components()
    np.testing.assert_allclose(L.T @ L, expected, rtol=0, atol=ROUNDING * size)
    assert not metric.is_projected
