from __future__ import annotations

import numpy as np
import oracle
import pytest
from scipy.special import ndtr
from tolerances import ROUNDING, monte_carlo

from bnca import BayesianMetric, DistanceEstimate
from bnca.core import metric as module

DRAWS = 200_000


def correlated(p, rng, size=1.0):
    root = rng.normal(size=(p, p)) * size
    return root @ root.T


@pytest.fixture
def metric():
    """Three of four axes, one weight negative, strongly correlated weights of unequal scale."""
    rng = np.random.default_rng(0)
    axes, _ = np.linalg.qr(rng.normal(size=(4, 3)))
    return BayesianMetric(axes, np.array([2.0, -0.3, 0.5]), correlated(3, rng, 0.4))


@pytest.fixture
def rows():
    return np.random.default_rng(1).normal(size=(3, 12, 4)) * [1.0, 2.0, 0.5, 3.0] + 4


def draws_of(metric, seed=2):
    rng = np.random.default_rng(seed)
    return rng.multivariate_normal(metric.mean, metric.covariance, DRAWS)


def features_of(metric, X, Y):
    axes = metric.directions
    return np.array([oracle.pair_feature(axes, x, y) for x, y in zip(X, Y, strict=True)])


def test_moments_are_those_of_the_paper(metric, rows):
    found = metric.distance(rows[0], rows[1])
    expected = [
        oracle.distance_moments(metric.directions, x, y, metric.mean, metric.covariance)
        for x, y in zip(rows[0], rows[1], strict=True)
    ]
    assert isinstance(found, DistanceEstimate)
    np.testing.assert_allclose(np.transpose(found), expected, rtol=ROUNDING)


def test_moments_agree_with_draws_from_the_posterior(metric, rows):
    found = metric.distance(rows[0], rows[1])
    squared = features_of(metric, rows[0], rows[1]) @ draws_of(metric).T
    assert (np.abs(squared.mean(axis=1) - found.mean) <= monte_carlo(found.std, DRAWS)).all()
    # The standard error of a Gaussian's sample standard deviation is σ / √2n.
    assert (np.abs(squared.std(axis=1) - found.std) <= monte_carlo(found.std, 2 * DRAWS)).all()


def test_all_pairs_hold_each_pair(metric, rows):
    grid = metric.distances(rows[0], rows[1][:5])
    assert grid.mean.shape == grid.std.shape == (12, 5)
    for j in range(5):
        one = metric.distance(rows[0], np.broadcast_to(rows[1][j], rows[0].shape))
        np.testing.assert_allclose(grid.mean[:, j], one.mean, rtol=ROUNDING)
        np.testing.assert_allclose(grid.std[:, j], one.std, rtol=ROUNDING)


@pytest.mark.parametrize("numbers", [1, 7, 40])
def test_blocks_of_any_size_give_the_same(metric, rows, numbers, monkeypatch):
    expected = metric.distance(rows[0], rows[1])
    grid = metric.distances(rows[0], rows[1])
    closer = metric.closer(*rows)
    monkeypatch.setattr(module, "BLOCK_NUMBERS", numbers)
    np.testing.assert_allclose(metric.distance(rows[0], rows[1]), expected, rtol=1e-12)
    np.testing.assert_allclose(metric.distances(rows[0], rows[1]), grid, rtol=1e-12)
    np.testing.assert_allclose(metric.closer(*rows), closer, rtol=1e-12)


def test_equal_rows_are_at_distance_zero_for_certain(metric, rows):
    mean, std = metric.distance(rows[0], rows[0])
    assert not mean.any()
    assert not std.any()


def test_closer_agrees_with_draws_from_the_posterior(metric, rows):
    draws = draws_of(metric)
    near = features_of(metric, rows[0], rows[1]) @ draws.T
    far = features_of(metric, rows[0], rows[2]) @ draws.T
    share = (near < far).mean(axis=1)
    found = metric.closer(*rows)
    assert ((found > 0.02) & (found < 0.98)).sum() >= 5  # not only easy triplets
    std = np.sqrt(found * (1 - found)) + 1 / np.sqrt(DRAWS)
    assert (np.abs(found - share) <= monte_carlo(std, DRAWS)).all()


def test_closer_and_its_reverse_sum_to_one(metric, rows):
    x, y, z = rows
    np.testing.assert_allclose(metric.closer(x, y, z) + metric.closer(x, z, y), 1, rtol=ROUNDING)


def test_closer_is_certain_where_the_posterior_is_and_undecided_between_equals(metric, rows):
    x, y, z = rows
    sure = BayesianMetric(metric.directions, metric.mean, np.zeros((3, 3)))
    gap = sure.distance(x, z).mean - sure.distance(x, y).mean
    np.testing.assert_array_equal(sure.closer(x, y, z), (gap > 0).astype(float))
    np.testing.assert_array_equal(metric.closer(x, y, y), np.full(len(x), 0.5))
    np.testing.assert_array_equal(sure.closer(x, y, y), np.full(len(x), 0.5))


def test_closer_is_a_normal_probability_by_hand():
    """One weight N(1, 4), w_xy = 1 and w_xz = 4: the contrast is 3γ, and P(3γ > 0) = Φ(1/2)."""
    metric = BayesianMetric(np.eye(1), np.array([1.0]), np.array([[4.0]]))
    found = metric.closer(np.array([[0.0]]), np.array([[1.0]]), np.array([[2.0]]))
    np.testing.assert_allclose(found, ndtr(0.5), rtol=ROUNDING)


def test_negative_weights_are_reported_by_distances_and_set_to_zero_in_the_metric(metric):
    assert metric.is_projected
    assert metric.mean[1] == -0.3  # the posterior stays as it is
    along = metric.directions[:, 1]
    mean, _ = metric.distance(along[None], np.zeros((1, 4)))
    np.testing.assert_allclose(mean, -0.3, rtol=ROUNDING)
    A = metric.matrix()
    np.testing.assert_allclose(along @ A @ along, 0, atol=1e-15)
    expected = sum(
        max(m, 0) * np.outer(v, v) for m, v in zip(metric.mean, metric.directions.T, strict=True)
    )
    np.testing.assert_allclose(A, expected, rtol=0, atol=1e-15)
    assert np.linalg.eigvalsh(A).min() > -1e-15


def test_components_are_a_root_of_the_matrix_with_one_row_for_each_weight(metric):
    L = metric.components()
    assert L.shape == (3, 4)
    np.testing.assert_allclose(L.T @ L, metric.matrix(), rtol=0, atol=1e-15)
    assert not L[1].any()


def test_a_positive_mean_is_not_projected(metric):
    positive = BayesianMetric(metric.directions, np.array([2.0, 0.0, 0.5]), metric.covariance)
    assert not positive.is_projected


def test_draws_have_the_moments_of_the_posterior(metric):
    draws = metric.sample(DRAWS, np.random.default_rng(3), project=False)
    std = np.sqrt(np.diag(metric.covariance))
    assert (np.abs(draws.mean(axis=0) - metric.mean) <= monte_carlo(std, DRAWS)).all()
    # Var of a product of two centred Gaussians is V_aa V_bb + V_ab².
    spread = np.sqrt(np.outer(std**2, std**2) + metric.covariance**2)
    gap = np.abs(np.cov(draws.T) - metric.covariance)
    assert (gap <= monte_carlo(spread, DRAWS)).all()


def test_projected_draws_are_the_same_draws_with_negative_weights_at_zero(metric):
    raw = metric.sample(50, np.random.default_rng(4), project=False)
    projected = metric.sample(50, np.random.default_rng(4))
    assert (raw < 0).any()
    np.testing.assert_array_equal(projected, np.maximum(raw, 0))


def test_a_semidefinite_covariance_will_do(rows):
    """Rank one: Cholesky's root does not exist."""
    along = np.array([1.0, 2.0, 0.0])
    axes = np.linalg.qr(np.random.default_rng(5).normal(size=(4, 3)))[0]
    metric = BayesianMetric(axes, np.ones(3), np.outer(along, along))
    _, std = metric.distance(rows[0], rows[1])
    expected = np.abs(features_of(metric, rows[0], rows[1]) @ along)
    np.testing.assert_allclose(std, expected, rtol=1e-7)
    draws = metric.sample(10, np.random.default_rng(6), project=False) - 1
    np.testing.assert_allclose(draws[:, 1], 2 * draws[:, 0], rtol=1e-7)


def test_single_precision_rows_have_double_moments(metric, rows):
    found = metric.distance(rows[0].astype(np.float32), rows[1].astype(np.float32))
    assert found.mean.dtype == found.std.dtype == np.float64
    expected = metric.distance(rows[0], rows[1])
    np.testing.assert_allclose(found.mean, expected.mean, rtol=0, atol=1e-4)
