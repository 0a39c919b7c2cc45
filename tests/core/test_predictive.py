from __future__ import annotations

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr
from tolerances import ROUNDING, SAME_PROBABILITY, monte_carlo

from bnca.core.predictive import (
    PairLink,
    averaged_neighbor_probabilities,
    class_probabilities,
    fit_pair_link,
    same_class_probability,
    vote_shares,
)


def some_features(b=5, K=7, p=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(b, K, p)) ** 2 * [0.1, 1.0, 5.0][:p]


# Votes under one metric.


def test_softmax_shares_are_neighbor_probabilities():
    features, weights = some_features(), np.array([1.0, 0.3, 0.1])
    expected = [oracle.neighbor_probabilities(block, weights) for block in features]
    np.testing.assert_allclose(vote_shares(features @ weights, "softmax"), expected, rtol=1e-12)


def test_distance_shares_are_inverse_distances():
    squared = np.array([[1.0, 4.0, 16.0]])
    expected = np.array([[1, 1 / 2, 1 / 4]]) / 1.75
    np.testing.assert_allclose(vote_shares(squared, "distance"), expected, rtol=1e-14)


def test_rows_at_distance_zero_share_the_distance_vote():
    squared = np.array([[0.0, 0.0, 1.0], [0.5, 0.5, 2.0]])
    shares = vote_shares(squared, "distance")
    np.testing.assert_array_equal(shares[0], [0.5, 0.5, 0.0])
    np.testing.assert_allclose(shares[1], np.array([2.0, 2.0, 1.0]) / 5, rtol=1e-14)


def test_uniform_shares_are_equal():
    np.testing.assert_allclose(vote_shares(np.array([[0.0, 3.0]]), "uniform"), [[0.5, 0.5]])


@pytest.mark.parametrize("vote", ["softmax", "distance", "uniform"])
@pytest.mark.parametrize("size", [1e-300, 1e-20, 1.0, 1e20, 1e300])
def test_shares_sum_to_one_at_any_scale(vote, size):
    squared = np.array([[1.0, 1.5, 2.0], [0.0, 1.0, 3.0]]) * size
    shares = vote_shares(squared, vote)
    assert np.isfinite(shares).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-14)


# Votes averaged over the posterior.


def test_average_is_a_plain_loop_over_draws():
    features = some_features()
    draws = np.random.default_rng(1).gamma(1.0, size=(50, 3))
    expected = [
        np.mean([oracle.neighbor_probabilities(block, weights) for weights in draws], axis=0)
        for block in features
    ]
    found = averaged_neighbor_probabilities(features.copy(), draws)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=0, atol=SAME_PROBABILITY)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=0, atol=SAME_PROBABILITY)


def test_average_survives_distances_that_are_large_and_almost_equal():
    """Only differences count: 1e6 plus a few tenths must not be rounded to single precision."""
    features = some_features() / 5
    draws = np.random.default_rng(1).gamma(1.0, size=(20, 3))
    near = averaged_neighbor_probabilities(features.copy(), draws)
    far = averaged_neighbor_probabilities(features + 1e6, draws)
    np.testing.assert_allclose(far, near, rtol=0, atol=SAME_PROBABILITY)


@pytest.mark.parametrize("size", [1e-50, 1e-30, 1e-20, 1e20, 1e30, 1e50])
def test_average_does_not_depend_on_the_unit_of_length(size):
    """Features in other units, weights to match: products are the same, at any size."""
    features = some_features()
    draws = np.random.default_rng(1).gamma(1.0, size=(20, 3))
    expected = averaged_neighbor_probabilities(features.copy(), draws)
    found = averaged_neighbor_probabilities(features * size, draws / size)
    np.testing.assert_allclose(found, expected, rtol=0, atol=SAME_PROBABILITY)


@pytest.mark.parametrize("size", [1e8, 1e16, 1e36])
def test_average_of_huge_distances_is_the_nearest_row(size):
    features = some_features()
    weights = np.array([[1.0, 0.5, 0.2]])
    found = averaged_neighbor_probabilities(features * size, weights)
    nearest = (features @ weights[0]).argmin(axis=1)
    np.testing.assert_allclose(found, np.eye(7)[nearest], rtol=0, atol=SAME_PROBABILITY)


@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_class_probabilities_add_up_the_votes_of_each_class(b, K, n_classes, seed):
    rng = np.random.default_rng(seed)
    votes = rng.random((b, K)) + 0.01
    codes = rng.integers(0, n_classes, (b, K))
    expected = np.zeros((b, n_classes))
    for i in range(b):
        for t in range(K):
            expected[i, codes[i, t]] += votes[i, t] / votes[i].sum()
    found = class_probabilities(votes, codes, n_classes)
    assert found.shape == (b, n_classes)
    np.testing.assert_allclose(found, expected, rtol=ROUNDING)


# Pairs.


@pytest.mark.parametrize("link", [PairLink(0.5, 0.3), PairLink(-1.0, 2.0), PairLink(0.7, 0.0)])
def test_same_class_probability_agrees_with_draws_of_the_distance(link):
    n = 200_000
    mean, std = np.array([0.0, 1.0, 5.0, 2.0]), np.array([0.5, 2.0, 1.0, 0.0])
    noise = np.random.default_rng(2).normal(size=(n, 1))
    probability = ndtr(link.intercept - link.slope * (mean + std * noise))
    found = same_class_probability(mean, std, link)
    gap = np.abs(found - probability.mean(axis=0))
    assert (gap <= monte_carlo(probability.std(axis=0), n) + ROUNDING).all()


def test_pair_link_recovers_the_probit_it_was_drawn_from():
    n = 40_000
    rng = np.random.default_rng(3)
    squared = rng.gamma(2.0, size=n) * 3
    same = (rng.random(n) < ndtr(0.8 - 0.25 * squared)).astype(float)
    link = fit_pair_link(squared, same)
    # Standard errors of a probit on 40,000 pairs are below 0.015 and 0.004.
    assert abs(link.intercept - 0.8) < 0.06
    assert abs(link.slope - 0.25) < 0.015


def test_pair_link_is_the_penalised_optimum():
    rng = np.random.default_rng(4)
    squared = rng.gamma(2.0, size=60) * 100
    same = (rng.random(60) < ndtr(1 - 0.01 * squared)).astype(float)
    z = (squared - squared.mean()) / squared.std()

    def objective(c):
        margin = (2 * same - 1) * (c[0] - c[1] * z)
        return -log_ndtr(margin).sum() + (c @ c) / 200

    best = minimize(objective, np.zeros(2), tol=1e-12).x
    link = fit_pair_link(squared, same)
    np.testing.assert_allclose(link.slope * squared.std(), best[1], rtol=1e-4)
    np.testing.assert_allclose(
        link.intercept - link.slope * squared.mean(), best[0], rtol=1e-4, atol=1e-5
    )


def test_pair_link_of_separable_pairs_is_finite_and_steep():
    squared = np.linspace(0, 10, 100)
    link = fit_pair_link(squared, (squared < 5).astype(float))
    assert np.isfinite(link).all()
    assert same_class_probability(np.array([1.0, 9.0]), np.zeros(2), link) == pytest.approx(
        [1, 0], abs=0.01
    )


@pytest.mark.parametrize(
    ("squared", "same"),
    [
        (np.arange(50.0), (np.arange(50) > 30).astype(float)),  # farther is more often the same
        (np.full(50, 3.0), (np.arange(50) < 20).astype(float)),  # no distance to go by
    ],
)
def test_pair_link_never_rises_with_distance(squared, same):
    link = fit_pair_link(squared, same)
    assert link.slope == 0
    rate = same_class_probability(np.array([1.0]), np.zeros(1), link)
    assert rate[0] == pytest.approx(same.mean(), abs=0.02)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_pair_link_of_one_outcome_is_finite(label):
    link = fit_pair_link(np.arange(50.0), np.full(50, label))
    assert np.isfinite(link).all()
    assert link.slope >= 0
    probability = same_class_probability(np.array([10.0]), np.zeros(1), link)[0]
    assert abs(probability - label) < 0.1
