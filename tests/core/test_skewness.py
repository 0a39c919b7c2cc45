from __future__ import annotations

import numpy as np
import oracle_beyond
import pytest
from tolerances import ROUNDING, SUMS, assert_same_sum

from bnca.core.skewness import FARTHEST, WIDEST, about_mode, no_wider, third_derivative

STEP = 1e-3
"""Of third differences: eps / step³ and step² weigh about the same."""

COVARIANCE = np.array([[0.5, 0.2, 0.0], [0.2, 0.4, -0.1], [0.0, -0.1, 0.3]])
ROOT = np.linalg.cholesky(COVARIANCE)
MEAN = np.array([0.7, -0.2, 0.4])


def block(seed=0, b=7, K=5):
    """Lopsided: one anchor has no friend, one has nothing else, one counts thrice."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(b, K, 3)) ** 2 * [0.3, 1.0, 3.0]
    agree = rng.random((b, K)) * (rng.random((b, K)) < 0.5)
    agree[0], agree[1] = 0.0, 1.0
    weights = np.ones(b)
    weights[2] = 3.0
    return features, agree, weights


def flips(rate, n_classes=3):
    return 1 - rate, rate / (n_classes - 1)


@pytest.mark.parametrize("rate", [0.05, 0.3])
@pytest.mark.parametrize("seed", [0, 1])
def test_third_derivative_is_that_of_the_naive_loss(rate, seed):
    features, agree, weights = block(seed)
    expected = oracle_beyond.third_derivative(
        lambda m: oracle_beyond.picks_loss(features, agree, weights, m, (rate, 3)),
        MEAN,
        COVARIANCE,
        STEP,
    )
    found = third_derivative(features.copy(), agree, weights, MEAN, ROOT, flips(rate))
    assert_same_sum(found, expected, 1e-3)


def test_impossible_labels_give_numbers():
    features, agree, weights = block()
    found = third_derivative(features.copy(), agree, weights, MEAN, ROOT, flips(0.0))
    assert np.isfinite(found).all()


def test_blocks_add_up_and_single_precision_is_near():
    whole = block(b=20)
    parts = [tuple(a[part].copy() for a in whole) for part in (slice(0, 3), slice(3, 20))]
    found = [third_derivative(*part, MEAN, ROOT, flips(0.1)) for part in parts]
    features, agree, weights = (a.copy() for a in whole)
    single = third_derivative(features.astype(np.float32), agree, weights, MEAN, ROOT, flips(0.1))
    assert single.dtype == np.float64
    expected = third_derivative(features, agree, weights, MEAN, ROOT, flips(0.1))
    assert_same_sum(sum(found), expected, SUMS["float64"])
    assert_same_sum(single, expected, SUMS["float32"])


def test_a_symmetric_likelihood_adds_nothing():
    """Two neighbours that mirror each other, one of them a friend: even in the weights at zero."""
    features = np.array([[[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]])
    found = third_derivative(
        features, np.array([[1.0, 0.0]]), np.ones(1), np.zeros(3), ROOT, (0.5, 0.5)
    )
    np.testing.assert_allclose(found, 0, atol=1e-15)


def test_mean_of_a_skewed_density_is_found_to_second_order():
    """The logarithm of a gamma variable of shape a: mode log a, mean digamma(a) ≈ log a - 1 / 2a.

    F = exp(x) - a x has the second and third derivative a at its mode.
    """
    shape = 8.0
    spread = about_mode(np.array([[1 / shape]]), np.array([[shape**-0.5]]), np.ones(1))
    np.testing.assert_allclose(spread, 1 / shape + (0.5 / shape) ** 2, rtol=ROUNDING)


def test_mean_is_never_taken_to_be_far_from_the_mode():
    third = np.array([30.0, -4.0, 9.0])
    spread = about_mode(COVARIANCE, ROOT, 1e6 * third) - COVARIANCE
    gap = COVARIANCE @ third
    gap *= FARTHEST / np.sqrt(gap @ np.linalg.solve(COVARIANCE, gap))
    np.testing.assert_allclose(spread, np.outer(gap, gap), rtol=1e-9)


def test_no_direction_is_much_wider_than_under_the_prior():
    before = np.array([[1.0, 0.3, 0.0], [0.3, 0.5, 0.1], [0.0, 0.1, 2.0]])
    turn = (
        np.linalg.cholesky(before) @ np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
    )
    # Along the columns of turn the prior has the variance one.
    covariance = (turn * [0.4, 1.2, 9.0]) @ turn.T
    found = no_wider(covariance, np.linalg.inv(before))
    np.testing.assert_allclose(found, (turn * [0.4, 1.2, WIDEST]) @ turn.T, rtol=1e-9)
    fine = (turn * [0.4, 1.2, 1.3]) @ turn.T
    np.testing.assert_array_equal(no_wider(fine, np.linalg.inv(before)), fine)
