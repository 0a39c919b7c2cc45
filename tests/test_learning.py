from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracle
import oracle_beyond
import pytest
from tolerances import (
    CURVED,
    ORACLE,
    ROUNDING,
    SAME_FIT,
    STEP,
    assert_same_covariance,
    assert_same_sum,
)

from bnca.core.features import count_weights, pack, unpack
from bnca.learning import Learning, evaluator, learn, neighborhoods, prior_of, problem

PICKS = Learning(6, likelihood="picks", curvature="exact", flip_rate=0.1, prior_variance=0.3)
CURVATURES = ("bohning", "exact", "votes", "tempered")

EXACT = 1e-10
"""Tolerance of steps: both sides of a comparison end at the optimum itself."""


def labelled(n=24, *, d=3, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % 5 % 3)
    X = rng.normal(size=(n, d)) * np.geomspace(2, 0.5, d)
    X[:, -1] += codes
    return X - X.mean(axis=0), codes, rng.choice([0.5, 1.0, 3.0], n)


def naive_loss(X, codes, weights, lists, *, unit, how, truth=None):
    """The loss as a function of the weights, anchor by anchor."""
    full = min(how.full, X.shape[1])
    n_classes = int(codes.max()) + 1
    features, agree, counts = [], [], []
    for i, neighbors in enumerate(lists):
        same = [
            float(codes[t] == codes[i]) if truth is None else truth[t, codes[i]] for t in neighbors
        ]
        if weights[i] > 0 and (truth is not None or any(same)):
            agree.append(same)
            counts.append(weights[i])
            features.append([wanted(X[i] - X[t], full) / unit for t in neighbors])
    flips = how.flip_rate, n_classes
    features, agree = np.array(features), np.array(agree)
    return lambda m: oracle_beyond.picks_loss(features, agree, counts, m, flips)


def wanted(u, full):
    """Features of one difference: what each weight multiplies in uᵀAu."""
    p = count_weights(len(u), full)
    out = np.zeros(p)
    for at, weights in enumerate(np.eye(p)):
        matrix = np.diag(np.concatenate([np.zeros(full), weights[full * (full + 1) // 2 :]]))
        matrix[:full, :full] = unpack(weights, full)
        out[at] = oracle_beyond.quadratic_form(matrix, full, u)
    return out


def lists_of(X, how):
    return oracle.neighbor_lists(X, len(X) - 1 if how.n_neighbors is None else how.n_neighbors)


# Neighbourhoods and their unit.


@pytest.mark.parametrize("k", [1, 5, 23, None])
def test_unit_is_the_typical_squared_distance_to_a_neighbor(k):
    X, _, _ = labelled()
    lists, unit = neighborhoods(X, k)
    expected = oracle.neighbor_lists(X, 23 if k is None else k)
    typical = [
        np.mean([sum((X[i] - X[t]) ** 2) for t in neighbors])
        for i, neighbors in enumerate(expected)
    ]
    np.testing.assert_allclose(unit, np.median(typical), rtol=ROUNDING)
    if k is None:
        assert lists is None
    else:
        np.testing.assert_array_equal(lists, expected)
    assert neighborhoods(X, k, rescale=False)[1] == 1.0


def test_unit_of_all_other_rows_does_not_depend_on_where_the_rows_are():
    X, _, _ = labelled()
    expected = neighborhoods(X, None)[1]
    np.testing.assert_allclose(neighborhoods(X + 1.0, None)[1], expected, rtol=ROUNDING)


@pytest.mark.parametrize("k", [2, None])
def test_unit_of_rows_that_coincide_is_one(k):
    assert neighborhoods(np.zeros((5, 2)), k)[1] == 1.0


def test_settings_shrink_to_what_rows_allow():
    assert PICKS.within(100) is PICKS
    assert PICKS.within(7) is PICKS
    assert PICKS.within(6).n_neighbors == 5
    everyone = replace(PICKS, n_neighbors=None)
    assert everyone.within(2) is everyone


# The prior.


@pytest.mark.parametrize("full", [0, 1, 2, 4])
def test_a_prior_mean_that_is_a_number_is_a_sphere_in_every_basis(full):
    prior = prior_of(replace(PICKS, prior_mean=3.0), 4, full)
    np.testing.assert_allclose(
        np.broadcast_to(prior.mean, count_weights(4, full)), pack(3 * np.eye(4), full)
    )
    assert prior.precision.shape == (count_weights(4, full),) * 2
    np.testing.assert_allclose(np.diag(prior.precision), 1 / 0.3)


# What is solved.


@pytest.mark.parametrize("full", [0, 2, 3])
@pytest.mark.parametrize("k", [6, None])
@pytest.mark.parametrize("doubtful", [False, True])
def test_problem_of_picks_is_that_of_the_loop(full, k, doubtful):
    X, codes, weights = labelled()
    truth = np.random.default_rng(1).dirichlet(np.ones(3), len(X)) if doubtful else None
    how = replace(PICKS, full=full, n_neighbors=k, n_jobs=1)
    anchors, prior, unit = problem(X, codes, weights, how, truth)
    expected = naive_loss(X, codes, weights, lists_of(X, how), unit=unit, how=how, truth=truth)
    mean = np.broadcast_to(prior.mean, count_weights(3, full)) * 0.5
    mean = mean + np.random.default_rng(2).normal(size=len(mean)) * 0.1
    found = evaluator(anchors, how)(mean, "exact")
    np.testing.assert_allclose(found.loss, expected(mean), rtol=ROUNDING)
    slope = oracle_beyond.gradient(expected, mean, STEP)
    assert_same_sum(found.slope, slope, CURVED)


@pytest.mark.parametrize("full", [0, 2])
@pytest.mark.parametrize("doubtful", [False, True])
def test_posterior_is_at_the_optimum_of_the_naive_loss(full, doubtful):
    """The gradient of loss plus prior is zero; the covariance is its inverse Hessian, and more.

    What is added is the square of the way from the mode to the mean, to second order.
    """
    X, codes, weights = labelled()
    truth = None
    if doubtful:
        truth = 0.8 * np.eye(3)[codes] + 0.2 / 3
    how = replace(PICKS, full=full, tol=EXACT, prior_variance=1.5)
    learned = learn(X, codes, weights, how, truth)
    assert learned.solution.converged
    mean = learned.mean * learned.unit
    m0 = pack(4.0 * np.eye(3), full)
    loss = naive_loss(X, codes, weights, lists_of(X, how), unit=learned.unit, how=how, truth=truth)

    def objective(m):
        return loss(m) + sum((m - m0) ** 2) / (2 * 1.5)

    size = np.abs(mean - m0).max() / 1.5
    assert np.abs(oracle_beyond.gradient(objective, mean, STEP)).max() < 10 * CURVED * size
    step = float(np.finfo(np.float64).eps ** 0.25)
    hessian = oracle_beyond.second_derivatives(objective, mean, step)
    inverse = np.linalg.inv(hessian)
    gap = -inverse @ oracle_beyond.third_derivative(loss, mean, inverse, 1e-3) / 2
    assert gap @ hessian @ gap > 0.01  # so it shows
    expected = (inverse + np.outer(gap, gap)) / learned.unit**2
    assert_same_covariance(learned.covariance, expected, 1e-3)


@pytest.mark.parametrize("k", [6, None])
def test_product_over_neighbors_is_algorithm_1(k):
    X, codes, weights = labelled(12)
    how = Learning(k, prior_mean=1.0, prior_variance=0.01, tol=EXACT, max_iter=1000)
    learned = learn(X, codes, weights, how)
    lists = lists_of(X, how)
    features = [[(X[i] - X[t]) ** 2 / learned.unit for t in lists[i]] for i in range(len(X))]
    agree = (codes[lists] == codes[:, None]).astype(float)
    expected = oracle.Problem(np.array(features), agree, weights)
    mean, covariance = oracle.algorithm_1(expected, np.ones(3), 0.01 * np.eye(3))
    np.testing.assert_allclose(learned.mean * learned.unit, mean, rtol=ORACLE["float64"])
    assert_same_covariance(learned.covariance * learned.unit**2, covariance, ORACLE["float64"])


def test_votes_share_what_an_anchor_has_and_tempering_divides_by_their_number():
    X, codes, weights = labelled()
    how = Learning(6, prior_mean=1.0, prior_variance=0.05, tol=EXACT)
    lists = lists_of(X, how)
    learned = {c: learn(X, codes, weights, replace(how, curvature=c)) for c in CURVATURES}
    unit = learned["bohning"].unit
    features = np.array([[(X[i] - X[t]) ** 2 / unit for t in lists[i]] for i in range(len(X))])
    agree = (codes[lists] == codes[:, None]).astype(float)
    has = agree.any(axis=1)
    number = np.where(has, agree.sum(axis=1), 1)
    mean = learned["bohning"].mean * unit
    every = oracle.Problem(features, agree, weights)
    shared = oracle.Problem(features, agree / number[:, None], weights)
    average = (agree.sum(axis=1) * weights)[has].sum() / weights[has].sum()
    curvature = {
        "bohning": oracle.curvature(every),
        "exact": oracle.hessian(every, mean),
        "votes": oracle.hessian(shared, mean),
        "tempered": oracle.curvature(every) / average,
    }
    for name, found in learned.items():
        np.testing.assert_allclose(found.mean * unit, mean, rtol=SAME_FIT)
        expected = np.linalg.inv(curvature[name] + np.eye(3) / 0.05)
        assert_same_covariance(found.covariance * unit**2, expected, 1e-5)


def test_a_rough_search_spends_nothing_on_the_spread():
    X, codes, weights = labelled()
    rough = learn(X, codes, weights, replace(PICKS, tol=1e-2))
    fine = learn(X, codes, weights, PICKS)
    assert (np.diag(fine.covariance) > 1.001 * np.diag(rough.covariance)).any()


# Structure.


@pytest.mark.parametrize("full", [0, 2])
def test_block_size_and_threads_do_not_show(full):
    X, codes, weights = labelled(60)
    how = replace(PICKS, full=full, n_jobs=1, block_size=2)
    expected = learn(X, codes, weights, how)
    same = learn(X, codes, weights, replace(how, n_jobs=3))
    np.testing.assert_array_equal(same.mean, expected.mean)
    np.testing.assert_array_equal(same.covariance, expected.covariance)
    other = learn(X, codes, weights, replace(how, block_size=None))
    np.testing.assert_allclose(other.mean, expected.mean, rtol=SAME_FIT, atol=SAME_FIT)


@pytest.mark.parametrize("size", [1e-4, 1e4])
def test_posterior_of_distances_does_not_depend_on_the_unit_of_the_rows(size):
    X, codes, weights = labelled()
    here, there = learn(X, codes, weights, PICKS), learn(size * X, codes, weights, PICKS)
    np.testing.assert_allclose(there.unit, size**2 * here.unit, rtol=ROUNDING)
    np.testing.assert_allclose(there.mean * size**2, here.mean, rtol=SAME_FIT)
    np.testing.assert_allclose(there.covariance * size**4, here.covariance, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("k", [6, None])
def test_a_basis_that_is_full_learns_the_same_metric_in_any_rotation(k):
    X, codes, weights = labelled()
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    how = replace(PICKS, n_neighbors=k, full=3, tol=EXACT)
    here = unpack(learn(X, codes, weights, how).mean, 3)
    there = unpack(learn(X @ turn, codes, weights, how).mean, 3)
    np.testing.assert_allclose(turn @ there @ turn.T, here, rtol=0, atol=1e-6 * np.abs(here).max())


@pytest.mark.parametrize("likelihood", ["picks", "product"])
def test_rows_without_a_friend_leave_the_prior(likelihood):
    X = np.random.default_rng(0).normal(size=(4, 2))
    how = Learning(2, likelihood=likelihood, rescale=False)
    learned = learn(X, np.arange(4), np.ones(4), how)
    np.testing.assert_allclose(learned.mean, 4.0)
    np.testing.assert_allclose(learned.covariance, 0.1 * np.eye(2))


def test_probable_labels_that_are_sure_are_the_labels():
    """An anchor without a friend has a flat term then, and every other term is the same."""
    X, codes, weights = labelled()
    sure = learn(X, codes, weights, PICKS, np.eye(3)[codes])
    plain = learn(X, codes, weights, PICKS)
    np.testing.assert_allclose(sure.mean, plain.mean, rtol=SAME_FIT)


@pytest.mark.parametrize("likelihood", ["picks", "product"])
def test_many_anchors_start_from_a_tenth_of_them_and_end_at_the_same_optimum(
    likelihood, monkeypatch
):
    X, codes, weights = labelled(300, seed=1)  # of two optima the start would choose one
    how = replace(PICKS, likelihood=likelihood, prior_variance=0.05, tol=1e-8)
    cold = learn(X, codes, weights, how)
    monkeypatch.setattr("bnca.learning.WARM_START", 100)
    warm = learn(X, codes, weights, how)
    np.testing.assert_allclose(warm.mean, cold.mean, rtol=SAME_FIT)
    np.testing.assert_allclose(
        warm.solution.lower_bounds[-1], cold.solution.lower_bounds[-1], rtol=ROUNDING
    )
    assert warm.solution.lower_bounds[0] > cold.solution.lower_bounds[0]


@pytest.mark.parametrize(("n", "seed", "variance"), [(300, 0, 0.3), (300, 2, 0.05), (1000, 3, 3.0)])
def test_picks_converge_though_their_loss_is_not_convex_where_they_start(n, seed, variance):
    X, codes, weights = labelled(n, seed=seed)
    learned = learn(X, codes, weights, replace(PICKS, prior_variance=variance))
    assert learned.solution.converged
    assert learned.solution.n_iter < 30
