from __future__ import annotations

import numpy as np
import oracle_beyond
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import ROUNDING

from bnca.core import smoothing


@st.composite
def voters(draw, *, duplicates=True):
    """Rows that vote, their targets, and weights."""
    n, q, n_classes = draw(st.integers(3, 12)), draw(st.integers(1, 3)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = rng.normal(size=(n, q)) * rng.choice([0.3, 1.0, 3.0], q) + rng.choice([0.0, 10.0])
    if duplicates and draw(st.booleans()):
        rows[1] = rows[0]
    labels = np.eye(n_classes)[rng.integers(0, n_classes, n)]
    return rows, labels, rng.choice([0.5, 1.0, 3.0], n)


SETTINGS = [(0.5, 0.03), (2.0, 1.0), (30.0, 10.0)]
"""Widths in units of squared distance, and ridges."""


def centred(labels, weights):
    return labels - weights @ labels / weights.sum()


# Distances and their unit.


@given(voters(), st.integers(0, 2**32 - 1))
def test_squared_distances_are_those_of_the_loop_and_never_negative(case, seed):
    rows, _, _ = case
    queries = rows[:2] + np.random.default_rng(seed).normal(size=(2, rows.shape[1]))
    for left in (rows, queries):
        found = smoothing.squared_distances(left, rows)
        expected = oracle_beyond.distances(left, rows)
        assert (found >= 0).all()
        np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING * (1 + expected.max()))


def test_distances_far_from_the_origin_keep_their_digits():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    found = smoothing.squared_distances(rows + 1e6, rows + 1e6)
    np.testing.assert_allclose(found, oracle_beyond.distances(rows, rows), rtol=0, atol=1e-8)


@pytest.mark.parametrize("n", [2, 5, smoothing.NEAR + 1, smoothing.NEAR + 2, 60])
def test_unit_is_a_typical_squared_distance_to_near_rows(n):
    rows = np.random.default_rng(n).normal(size=(n, 2)) * [1.0, 5.0]
    squared = oracle_beyond.distances(rows, rows)
    expected = oracle_beyond.typical_distance(rows, smoothing.NEAR)
    np.testing.assert_allclose(smoothing.near_unit(squared), expected, rtol=ROUNDING)
    np.testing.assert_allclose(smoothing.near_unit(9 * squared), 9 * expected, rtol=ROUNDING)
    squared[np.diag_indices(n)] = 1e9  # what the diagonal says is not looked at
    np.testing.assert_allclose(smoothing.near_unit(squared), expected, rtol=ROUNDING)


def test_unit_of_rows_that_coincide_is_positive():
    assert smoothing.near_unit(np.zeros((5, 5))) > 0
    rows = np.zeros((30, 1))
    rows[-1] = 1.0
    assert smoothing.near_unit(oracle_beyond.distances(rows, rows)) > 0


# Kernel ridge regression.


@pytest.mark.parametrize(("width", "ridge"), SETTINGS)
@given(voters())
def test_smoothed_votes_are_those_of_a_direct_solve(width, ridge, case):
    rows, labels, weights = case
    gaps, root = centred(labels, weights), np.sqrt(weights)
    squared = oracle_beyond.distances(rows, rows)
    kernel = smoothing.weighted_kernel(squared, width, root)
    kept = kernel.copy()
    alpha = smoothing.ridge_coefficients(kernel, root, gaps, ridge)
    np.testing.assert_array_equal(kernel, kept)  # it is asked for again with the next ridge
    queries = rows + 0.3
    found = np.exp(-oracle_beyond.distances(queries, rows) / width) @ alpha
    expected = oracle_beyond.kernel_ridge(rows, gaps, weights, queries, width=width, ridge=ridge)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize(("width", "ridge"), SETTINGS)
@given(voters())
def test_votes_left_out_are_those_of_a_refit_without_the_row(width, ridge, case):
    rows, labels, weights = case
    gaps, root = centred(labels, weights), np.sqrt(weights)
    kernel = smoothing.weighted_kernel(oracle_beyond.distances(rows, rows), width, root)
    kept = kernel.copy()
    found = smoothing.ridge_left_out(kernel, root, gaps, ridge)
    np.testing.assert_array_equal(kernel, kept)
    expected = oracle_beyond.kernel_ridge_left_out(rows, gaps, weights, width=width, ridge=ridge)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize(("width", "ridge"), SETTINGS)
def test_a_weight_is_so_many_copies_of_the_row(width, ridge):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6, 2))
    gaps = rng.normal(size=(6, 3))
    weights = np.array([1.0, 3.0, 1.0, 2.0, 1.0, 1.0])
    copies = np.repeat(np.arange(6), weights.astype(int))

    def votes(rows, gaps, weights):
        root = np.sqrt(weights)
        squared = oracle_beyond.distances(rows, rows)
        alpha = smoothing.ridge_coefficients(
            smoothing.weighted_kernel(squared, width, root), root, gaps, ridge
        )
        queries = np.array([[0.0, 0.0], [1.0, -1.0]])
        return np.exp(-oracle_beyond.distances(queries, rows) / width) @ alpha

    expected = votes(rows[copies], gaps[copies], np.ones(len(copies)))
    np.testing.assert_allclose(votes(rows, gaps, weights), expected, rtol=1e-8)


# Class means.


@given(voters())
def test_means_left_out_are_those_of_a_refit_without_the_row(case):
    rows, labels, weights = case
    weighed = labels * weights[:, None]
    unit = 0.7
    found = smoothing.mean_left_out(rows, weighed, unit)
    expected = oracle_beyond.mean_votes_left_out(rows, weighed, unit, smoothing.MEAN_SCALE)
    alone = labels * (labels.sum(axis=0) == 1) > 0
    empty = np.broadcast_to(labels.sum(axis=0) == 0, labels.shape)  # no mean to be far from
    compared = ~alone & ~empty
    np.testing.assert_allclose(
        found[compared], expected[compared], rtol=0, atol=1e-8 * (1 + np.abs(rows).max() ** 2)
    )


@given(voters(duplicates=False))
def test_means_left_out_of_shared_labels_are_those_of_a_refit(case):
    rows, labels, weights = case
    labels = (labels + 0.2) / (labels + 0.2).sum(axis=1, keepdims=True) * weights[:, None]
    found = smoothing.mean_left_out(rows, labels, 2.0)
    expected = oracle_beyond.mean_votes_left_out(rows, labels, 2.0, smoothing.MEAN_SCALE)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * (1 + np.abs(rows).max() ** 2))


# Probabilities.


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3, 14.0]))
def test_softmax_is_that_of_the_loop(seed, temperature):
    votes = np.random.default_rng(seed).normal(size=(4, 3)) * 5
    expected = [oracle_beyond.soft(row, temperature) for row in votes]
    kept = votes.copy()
    np.testing.assert_allclose(smoothing.softmax(votes, temperature), expected, rtol=ROUNDING)
    np.testing.assert_array_equal(votes, kept)


def test_softmax_of_votes_of_any_size_sums_to_one():
    votes = np.array([[1e6, -1e6, 0.0], [-1e8, -1e8, -1e8]])
    found = smoothing.softmax(votes, 14.0)
    np.testing.assert_allclose(found, [[1, 0, 0], [1 / 3] * 3])


@pytest.mark.parametrize("flip_rate", [0.0, 0.2, 0.5])
@given(st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_true_labels_follow_bayes_rule(flip_rate, n_classes, seed):
    rng = np.random.default_rng(seed)
    clean = rng.dirichlet(np.ones(n_classes), 5)
    codes = rng.integers(0, n_classes, 5)
    found = smoothing.true_label_probabilities(clean, np.eye(n_classes)[codes], flip_rate)
    expected = [
        oracle_beyond.true_labels(row, code, flip_rate)
        for row, code in zip(clean, codes, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=ROUNDING, atol=ROUNDING)


def test_true_labels_agree_with_counts_of_simulated_flips():
    """Of rows that are (0.6, 0.3, 0.1) and say "1", this part is truly of each class."""
    rng = np.random.default_rng(0)
    clean, flip_rate, n = np.array([0.6, 0.3, 0.1]), 0.4, 200_000
    truth = rng.choice(3, n, p=clean)
    wrong = rng.random(n) < flip_rate
    says = np.where(wrong, (truth + rng.integers(1, 3, n)) % 3, truth)
    counts = np.bincount(truth[says == 1], minlength=3) / (says == 1).sum()
    found = smoothing.true_label_probabilities(clean[None], np.eye(3)[[1]], flip_rate)[0]
    np.testing.assert_allclose(found, counts, atol=0.01)


def test_labels_that_nobody_thinks_possible_stand():
    labels = np.eye(2)[[1]]
    found = smoothing.true_label_probabilities(np.array([[1.0, 0.0]]), labels, 0.0)
    np.testing.assert_array_equal(found, labels)


def test_a_row_alone_in_its_class_does_not_vote_for_itself():
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
    found = smoothing.mean_left_out(rows, np.eye(2)[[0, 0, 0, 1]], 1.0)
    assert found[3, 1] < found[3, 0]
