from __future__ import annotations

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import anchor_blocks
from tolerances import CURVED, ROUNDING, STEP, SUMS, assert_same_sum

from bnca.core.bound import Statistics, bound_curvature, expand


def statistics(features, agree, weights, mean, *, hessian=True):
    """`expand` on copies: it overwrites what it is given."""
    return expand(features.copy(), agree, weights, mean, hessian=hessian)


def curvature(features, agree, weights):
    return bound_curvature(features.copy(), agree, weights)


def positive_semidefinite(matrix, size):
    return np.linalg.eigvalsh(matrix).min() >= -SUMS["float64"] * size


def fixed_block(seed=0, b=6, K=5, p=3):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(b, K, p)) ** 2 * [0.1, 1.0, 5.0]
    agree = rng.integers(0, 2, (b, K)).astype(np.float64)
    return features, agree, rng.choice([1.0, 2.0], b), rng.normal(size=p)


# The oracle itself: Böhning's quadratic, as the paper uses it.


@given(st.integers(1, 8), st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 10.0]))
def test_bohning_quadratic_touches_at_the_expansion_point_and_stays_below(K, seed, size):
    rng = np.random.default_rng(seed)
    psi, eta = rng.normal(size=(2, K)) * size
    assert np.isclose(oracle.bohning_quadratic(psi, psi), -oracle.lse(psi), rtol=0, atol=ROUNDING)
    assert oracle.bohning_quadratic(eta, psi) <= -oracle.lse(eta) + ROUNDING * (1 + size**2)


@given(anchor_blocks())
def test_bound_is_below_the_likelihood_of_anchors_that_have_a_friend(block):
    features, agree, weights, mean = block
    data = oracle.Problem(features, agree, weights)
    bound = -statistics(*block, hessian=False).loss
    likelihood = oracle.log_likelihood(data, mean)
    assert bound <= likelihood + ROUNDING
    if agree.any(axis=1).any():
        # The published bound counts the term t = j twice, so equality is out of reach.
        assert bound < likelihood


# The sums.


@pytest.mark.parametrize("soft", [False, True])
@given(st.data())
def test_sums_are_those_of_the_naive_loops(soft, data):
    features, agree, weights, mean = data.draw(anchor_blocks(soft=soft))
    naive = oracle.Problem(features, agree, weights)
    found = statistics(features, agree, weights, mean)
    rtol = SUMS["float64"]
    size = 1 + float(np.abs(features).max() ** 2 * weights.sum() * agree.size)
    np.testing.assert_allclose(found.loss, oracle.negative_bound(naive, mean), rtol=rtol, atol=rtol)
    np.testing.assert_allclose(found.slope, oracle.slope(naive, mean), rtol=0, atol=rtol * size)
    np.testing.assert_allclose(
        found.curvature, oracle.hessian(naive, mean), rtol=0, atol=rtol * size
    )
    np.testing.assert_allclose(
        curvature(features, agree, weights), oracle.curvature(naive), rtol=0, atol=rtol * size
    )


def test_single_precision_features_give_the_same_sums_in_double():
    features, agree, weights, mean = fixed_block()
    naive = oracle.Problem(features, agree, weights)
    found = statistics(features.astype(np.float32), agree, weights, mean)
    fixed = curvature(features.astype(np.float32), agree, weights)
    rtol = SUMS["float32"]
    assert {found.slope.dtype, found.curvature.dtype, fixed.dtype} == {np.dtype(np.float64)}
    np.testing.assert_allclose(found.loss, oracle.negative_bound(naive, mean), rtol=rtol)
    assert_same_sum(found.slope, oracle.slope(naive, mean), rtol)
    assert_same_sum(found.curvature, oracle.hessian(naive, mean), rtol)
    assert_same_sum(fixed, oracle.curvature(naive), rtol)


def test_without_the_hessian_loss_and_slope_are_the_same_and_features_survive():
    features, agree, weights, mean = fixed_block()
    given_features = features.copy()
    found = expand(given_features, agree, weights, mean, hessian=False)
    expected = statistics(features, agree, weights, mean)
    assert found.loss == expected.loss
    np.testing.assert_array_equal(found.slope, expected.slope)
    np.testing.assert_array_equal(found.curvature, np.zeros((3, 3)))
    np.testing.assert_array_equal(given_features, features)


# Derivatives.


@given(anchor_blocks(soft=True))
def test_slope_is_the_derivative_of_the_loss(block):
    features, agree, weights, mean = block
    size = 1 + np.abs(features).max() * weights.sum() * agree.shape[1]
    for direction in np.eye(len(mean)):
        ahead, behind = (
            statistics(features, agree, weights, mean + sign * STEP * direction, hessian=False).loss
            for sign in (1, -1)
        )
        slope = statistics(*block, hessian=False).slope @ direction
        np.testing.assert_allclose((ahead - behind) / (2 * STEP), slope, atol=CURVED * size)


@given(anchor_blocks(soft=True))
def test_hessian_is_the_derivative_of_the_slope(block):
    features, agree, weights, mean = block
    size = 1 + np.abs(features).max() ** 2 * weights.sum() * agree.shape[1]
    columns = [
        statistics(features, agree, weights, mean + STEP * direction, hessian=False).slope
        - statistics(features, agree, weights, mean - STEP * direction, hessian=False).slope
        for direction in np.eye(len(mean))
    ]
    hessian = statistics(*block).curvature
    np.testing.assert_allclose(np.array(columns) / (2 * STEP), hessian, atol=CURVED * size)


@given(anchor_blocks(soft=True))
def test_hessian_is_positive_and_never_above_bohnings_curvature(block):
    features, agree, weights, _ = block
    size = 1 + np.abs(features).max() ** 2 * weights.sum() * agree.shape[1]
    exact, fixed = statistics(*block).curvature, curvature(features, agree, weights)
    np.testing.assert_array_equal(fixed, fixed.T)
    assert positive_semidefinite(exact, size)
    assert positive_semidefinite(fixed - exact, size)


@given(anchor_blocks(soft=True), st.integers(0, 2**32 - 1))
def test_quadratic_of_the_published_step_is_never_below_the_loss(block, seed):
    """Loss + slope + half Böhning's curvature: the model that eq. mt minimises."""
    features, agree, weights, mean = block
    here, fixed = statistics(*block, hessian=False), curvature(features, agree, weights)
    rng = np.random.default_rng(seed)
    for length in (0.01, 1.0, 10.0):
        move = rng.normal(size=len(mean)) * length
        there = statistics(features, agree, weights, mean + move, hessian=False).loss
        model = here.loss + here.slope @ move + move @ fixed @ move / 2
        assert there <= model + SUMS["float64"] * (1 + abs(model))


# Structure.


def test_statistics_of_a_union_are_the_sum():
    features, agree, weights, mean = fixed_block()
    whole = statistics(features, agree, weights, mean)
    parts = [slice(0, 1), slice(1, 4), slice(4, 6)]
    first, second, third = (statistics(features[s], agree[s], weights[s], mean) for s in parts)
    total = first + second + third
    np.testing.assert_allclose(total.loss, whole.loss, rtol=SUMS["float64"])
    assert_same_sum(total.slope, whole.slope, SUMS["float64"])
    assert_same_sum(total.curvature, whole.curvature, SUMS["float64"])
    fixed = sum(curvature(features[s], agree[s], weights[s]) for s in parts)
    assert_same_sum(fixed, curvature(features, agree, weights), SUMS["float64"])


def test_statistics_scale_like_their_anchors_repeated():
    features, agree, weights, mean = fixed_block()
    tripled = statistics(features, agree, weights, mean) * 3.0
    repeated = statistics(
        np.tile(features, (3, 1, 1)), np.tile(agree, (3, 1)), np.tile(weights, 3), mean
    )
    np.testing.assert_allclose(tripled.loss, repeated.loss, rtol=SUMS["float64"])
    assert_same_sum(tripled.slope, repeated.slope, SUMS["float64"])
    assert_same_sum(tripled.curvature, repeated.curvature, SUMS["float64"])


def test_statistics_know_no_equality_of_arrays():
    empty = Statistics(0.0, np.zeros(1), np.zeros((1, 1)))
    assert empty != Statistics(0.0, np.zeros(1), np.zeros((1, 1)))


@given(anchor_blocks(soft=True))
def test_only_contrasts_within_an_anchor_count(block):
    """Adding one vector to all features of an anchor changes nothing (eq. defWeta)."""
    features, agree, weights, mean = block
    shift = np.arange(1.0, 1 + features.shape[0] * features.shape[2])
    moved = features + shift.reshape(features.shape[0], 1, features.shape[2])
    size = 1 + np.abs(moved).max() ** 2 * weights.sum() * agree.shape[1]
    atol = SUMS["float64"] * size
    here, there = statistics(*block), statistics(moved, agree, weights, mean)
    np.testing.assert_allclose(there.loss, here.loss, rtol=0, atol=atol)
    np.testing.assert_allclose(there.slope, here.slope, rtol=0, atol=atol)
    np.testing.assert_allclose(there.curvature, here.curvature, rtol=0, atol=atol)


@pytest.mark.parametrize("size", [1e-12, 1e4, 1e8])
def test_no_size_of_features_overflows(size):
    features, agree, weights, mean = fixed_block()
    found = statistics(features * size, agree, weights, mean)
    assert np.isfinite(found.loss)
    assert np.isfinite(found.slope).all()
    assert np.isfinite(found.curvature).all()
    naive = oracle.Problem(features * size, agree, weights)
    np.testing.assert_allclose(found.loss, oracle.negative_bound(naive, mean), rtol=ROUNDING)


# Claim C12: which anchors teach something.


@pytest.mark.parametrize("K", [1, 4, 7])
def test_anchor_whose_neighbors_all_agree_at_one_distance_adds_nothing(K):
    features = np.tile([0.1, 0.3, 1.7], (1, K, 1))
    mean = np.array([0.5, 0.2, 0.9])
    found = statistics(features, np.ones((1, K)), np.ones(1), mean)
    # A mean of equal numbers may miss them by a rounding, and a curvature squares that.
    nothing = (4 * np.finfo(np.float64).eps) ** 2 * K**2
    assert np.abs(curvature(features, np.ones((1, K)), np.ones(1))).max() <= nothing
    assert np.abs(found.curvature).max() <= nothing
    assert np.abs(found.slope).max() <= 4 * np.finfo(np.float64).eps * K**2


def test_anchor_without_a_friend_adds_exactly_nothing():
    features, _, weights, mean = fixed_block()
    found = statistics(features, np.zeros((6, 5)), weights, mean)
    assert found.loss == 0
    assert not found.slope.any()
    assert not found.curvature.any()
    assert not curvature(features, np.zeros((6, 5)), weights).any()


def sum_of_same_class_contrasts(features, agree):
    """½ Σ_i Σ_j y_ij Σ_t (w_ij - w_it)² (eq. vii), and the same with H in place of I/2 left over.

    H = I/2 - 1 1ᵀ / 2(K + 1), so what eq. vii leaves out is Σ_i Σ_j y_ij (Σ_t w_ij - w_it)² /
    2(K + 1).
    """
    K = agree.shape[1]
    approximate, left_out = np.zeros(features.shape[2]), np.zeros(features.shape[2])
    for block, agreements in zip(features, agree, strict=True):
        for j in np.flatnonzero(agreements):
            W = oracle.contrasts(block, j)
            approximate += np.square(W).sum(axis=1) / 2
            left_out += np.square(W.sum(axis=1)) / (2 * (K + 1))
    return approximate, left_out


@pytest.mark.parametrize("K", [2, 20, 400])
def test_diagonal_of_the_curvature_needs_contrasts_with_the_same_class_only(K):
    rng = np.random.default_rng(3)
    features = rng.normal(size=(3, K, 2)) ** 2
    agree = (rng.random((3, K)) < 0.4).astype(np.float64)
    approximate, left_out = sum_of_same_class_contrasts(features, agree)
    published = np.diag(curvature(features, agree, np.ones(3)))
    np.testing.assert_allclose(published, approximate - left_out, rtol=SUMS["float64"])


@pytest.mark.parametrize("K", [100, 500])
def test_approximating_h_by_half_the_identity_doubles_the_curvature_however_large_k(K):
    """Eq. vii is not the limit of large K, as the text around it says.

    The entries 1/(K + 1) that it drops are small, but there are K of them: where classes do not
    differ in distance, a friend's mean squared contrast is twice the variance of the features, and
    its squared mean contrast, which H takes off, is that variance once.
    """
    rng = np.random.default_rng(4)
    features = rng.random((4, K, 2)) * [1.0, 5.0]
    agree = (rng.random((4, K)) < 0.5).astype(np.float64)
    approximate, _ = sum_of_same_class_contrasts(features, agree)
    ratio = approximate / np.diag(curvature(features, agree, np.ones(4)))
    # Means of a hundred squares scatter by a few per cent.
    np.testing.assert_allclose(ratio, 2, rtol=0.1)
