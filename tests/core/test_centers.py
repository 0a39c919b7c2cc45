from __future__ import annotations

import numpy as np
import oracle_beyond
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.covariance import ledoit_wolf as sklearn_ledoit_wolf
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from tolerances import ROUNDING

from bnca.core import centers
from bnca.core.centers import class_means, discriminating_first, scaled_map, shrunk_map


@st.composite
def weighed_labels(draw, *, soft=True):
    """Rows, and weights of each in a few classes: one class, several, or parts of several."""
    n, q, n_classes = draw(st.integers(6, 15)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = rng.normal(size=(n, q)) * rng.choice([0.3, 1.0, 4.0], q) + rng.choice([0.0, 10.0])
    labels = np.eye(n_classes)[rng.integers(0, n_classes, n)]
    if soft and draw(st.booleans()):
        labels = rng.dirichlet(np.ones(n_classes), n)
    return rows, labels * rng.choice([0.5, 1.0, 3.0], n)[:, None]


def metric(L):
    return L @ L.T


def assert_same_metric(found, expected):
    atol = ROUNDING * np.abs(expected).max() * np.linalg.cond(expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def three_classes(seed=0, n=60, q=4):
    rng = np.random.default_rng(seed)
    codes = np.repeat([0, 1, 2], [n // 2, n // 3, n - n // 2 - n // 3])
    rows = rng.normal(size=(n, q)) * np.geomspace(3, 0.3, q) + 10
    rows[codes == 1, -1] += 2.0
    return rows, codes, np.eye(3)[codes]


@given(weighed_labels())
def test_means_are_those_of_the_loop(case):
    rows, labels = case
    expected = oracle_beyond.means_of_classes(rows, labels)
    np.testing.assert_allclose(class_means(rows, labels), expected, rtol=ROUNDING, atol=ROUNDING)


def test_a_class_without_rows_has_its_mean_at_the_origin():
    labels = np.array([[1.0, 0.0], [2.0, 0.0]])
    np.testing.assert_array_equal(class_means(np.ones((2, 3)), labels), [[1, 1, 1], [0, 0, 0]])


@pytest.mark.parametrize("shrinkage", [0.01, 0.3, 1.0])
@given(weighed_labels())
def test_shrunk_metric_is_the_inverse_of_the_shrunk_scatter(shrinkage, case):
    rows, labels = case
    assume(np.trace(oracle_beyond.within_scatter(rows, labels)) > 1e-6)
    expected = oracle_beyond.shrunk_metric(rows, labels, shrinkage)
    assert_same_metric(metric(shrunk_map(rows, labels, shrinkage)), expected)


def test_full_shrinkage_is_euclidean_distance_and_none_that_of_discriminant_analysis():
    rows, codes, labels = three_classes()
    level = np.trace(oracle_beyond.within_scatter(rows, labels)) / 4
    assert_same_metric(metric(shrunk_map(rows, labels, 1.0)), np.eye(4) / level)
    found = metric(shrunk_map(rows, labels, 0.0))
    lda = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(rows, codes)
    assert_same_metric(found, np.linalg.inv(lda.covariance_))


def test_rows_have_unit_variance_within_classes_along_each_column():
    rows, _, labels = three_classes()
    mapped = rows @ shrunk_map(rows, labels, 0.0)
    within = oracle_beyond.within_scatter(mapped, labels)
    np.testing.assert_allclose(within, np.eye(4), rtol=0, atol=1e-8)


def test_rows_without_scatter_leave_euclidean_distance():
    labels = np.eye(2)[[0, 0, 1]]
    rows = np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 0.0]])
    np.testing.assert_array_equal(shrunk_map(rows, labels, None), np.eye(2))


# Ledoit and Wolf.


def shrinkage_of(residuals):
    covariance = residuals.T @ residuals / len(residuals)
    return centers.ledoit_wolf(residuals, covariance, np.ones(len(residuals)))


@given(st.integers(2, 40), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_shrinkage_is_that_of_the_loop_and_of_scikit_learn(n, p, seed):
    rng = np.random.default_rng(seed)
    residuals = rng.normal(size=(n, p)) * rng.choice([0.3, 1.0, 2.0], p)
    residuals -= residuals.mean(axis=0)
    found = shrinkage_of(residuals)
    expected = oracle_beyond.ledoit_wolf_shrinkage(residuals)
    np.testing.assert_allclose(found, expected, rtol=ROUNDING, atol=ROUNDING)
    _, theirs = sklearn_ledoit_wolf(residuals, assume_centered=True)
    np.testing.assert_allclose(found, theirs, rtol=ROUNDING, atol=ROUNDING)


def test_shrinkage_falls_with_the_number_of_rows_and_is_whole_for_spheres():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4000, 5)) * [1.0, 2.0, 3.0, 4.0, 5.0]
    few, many = shrinkage_of(rows[:40]), shrinkage_of(rows)
    assert 0 < many < few < 1
    assert shrinkage_of(np.vstack([np.eye(3), -np.eye(3)])) == 1.0


@pytest.mark.parametrize("n", [12, 60])
def test_none_takes_that_shrinkage_of_rows_less_their_class_mean(n):
    rows, codes, labels = three_classes(n=n)
    residuals = rows - oracle_beyond.means_of_classes(rows, labels)[codes]
    shrinkage = oracle_beyond.ledoit_wolf_shrinkage(residuals)
    assert shrinkage > centers.LEAST_SHRINKAGE
    expected = oracle_beyond.shrunk_metric(rows, labels, shrinkage)
    assert_same_metric(metric(shrunk_map(rows, labels, None)), expected)


def test_shrinkage_never_falls_below_its_least():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20_000, 2)) * [1.0, 10.0]
    labels = np.ones((20_000, 1))
    assert shrinkage_of(rows) < centers.LEAST_SHRINKAGE
    np.testing.assert_array_equal(
        shrunk_map(rows, labels, None), shrunk_map(rows, labels, centers.LEAST_SHRINKAGE)
    )


# Scaled columns.


@given(weighed_labels(), st.integers(0, 2**32 - 1))
def test_scaled_map_divides_each_column_by_its_spread_within_classes(case, seed):
    """Written in the original columns: x ↦ x / √(variance + a little)."""
    rows, labels = case
    d = rows.shape[1]
    axes, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))
    variance = np.diag(oracle_beyond.within_scatter(rows, labels))
    assume(variance.mean() > 1e-6)
    expected = rows / np.sqrt(variance + centers.SPREAD_FLOOR * variance.mean())
    found = (rows @ axes) @ scaled_map(rows @ axes, labels, axes)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


def test_scaled_map_of_fewer_axes_than_columns_has_a_column_for_each_original():
    rows, _, labels = three_classes()
    axes, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 4)))
    within = axes @ oracle_beyond.within_scatter(rows, labels) @ axes.T
    variance = np.diag(within)
    L = scaled_map(rows, labels, axes)
    assert L.shape == (4, 6)
    spread = np.sqrt(variance + centers.SPREAD_FLOOR * variance.mean())
    np.testing.assert_allclose(L, axes.T / spread, rtol=1e-8)


def test_scaled_map_of_rows_without_scatter_divides_by_nothing():
    labels = np.eye(2)[[0, 1]]
    np.testing.assert_allclose(scaled_map(np.eye(2) * 3, labels, np.eye(2)), np.eye(2))


# Directions in which classes differ.


@given(weighed_labels())
def test_rotation_orders_directions_by_how_much_class_means_differ(case):
    rows, labels = case
    turn = discriminating_first(rows, labels)
    np.testing.assert_allclose(turn.T @ turn, np.eye(len(turn)), rtol=0, atol=ROUNDING)
    scatter = oracle_beyond.between_scatter(rows, labels)
    size = np.abs(scatter).max() + 1e-9 * np.abs(rows).max() ** 2 * labels.sum()
    turned = turn.T @ scatter @ turn
    np.testing.assert_allclose(turned, np.diag(np.diag(turned)), rtol=0, atol=ROUNDING * size)
    assert (np.diff(np.diag(turned)) <= ROUNDING * size).all()


def test_the_direction_that_tells_classes_apart_comes_first_however_small_its_scatter():
    rows, codes, labels = three_classes(n=300)
    rows[codes == 2, -1] -= 2.0
    first = discriminating_first(rows, labels)[:, 0]
    assert abs(first[-1]) > 0.9
    # Twice the weight of every row is the same rotation.
    again = discriminating_first(rows, 2 * labels)
    np.testing.assert_allclose(np.abs(again[:, 0]), np.abs(first), atol=1e-8)
