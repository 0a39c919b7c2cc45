from __future__ import annotations

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from strategies import labelled_rows
from tolerances import NEVER_FALLS, ORACLE, ROUNDING, assert_same_covariance

from bnca.core.bound import Statistics, bound_curvature, expand
from bnca.core.solve import Prior, solve

SOLVERS = ["newton", "anderson", "published"]


class Counted:
    """Statistics of a problem, and how often each kind was asked for."""

    def __init__(self, data):
        self.data = data
        self.asked = []

    def __call__(self, mean, curvature):
        self.asked.append(curvature)
        features, agree, weights = self.data
        p = len(mean)
        if curvature == "bohning":
            fixed = bound_curvature(features.copy(), agree, weights)
            return Statistics(0.0, np.zeros(p), fixed)
        return expand(features.copy(), agree, weights, mean, hessian=curvature == "exact")


def lopsided(seed=0, n=30, K=6, p=3):
    """Anchors whose friends are nearer along one axis, with features of unequal scale."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, K, p)) ** 2 * [0.2, 1.0, 3.0][:p]
    agree = (rng.random((n, K)) < 1 / (1 + features[:, :, 0] * 10)).astype(np.float64)
    return oracle.Problem(features, agree, np.ones(n))


def prior(mean, covariance):
    return Prior(np.asarray(mean, dtype=np.float64), np.linalg.inv(covariance))


M0 = np.array([0.4, 0.1, 0.2])
V0 = np.array([[0.3, 0.05, 0.0], [0.05, 0.2, -0.02], [0.0, -0.02, 0.1]])


def test_prior_density_is_the_normal_one():
    point = np.array([0.1, -0.4, 1.0])
    expected = multivariate_normal(M0, V0).logpdf(point)
    np.testing.assert_allclose(prior(M0, V0).log_density(point), expected, rtol=ROUNDING)
    np.testing.assert_allclose(oracle.log_prior(point, M0, V0), expected, rtol=ROUNDING)


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_ends_at_the_fixed_point_of_algorithm_1(solver):
    data = lopsided()
    found = solve(Counted(data), prior(M0, V0), solver=solver, tol=1e-13, max_iter=10_000)
    mean, covariance = oracle.algorithm_1(data, M0, V0)
    assert found.converged
    np.testing.assert_allclose(found.mean, mean, rtol=ORACLE["float64"])
    assert_same_covariance(found.covariance, covariance, ORACLE["float64"])
    np.testing.assert_array_equal(found.covariance, found.covariance.T)


@pytest.mark.parametrize("solver", SOLVERS)
@given(data=st.data())
def test_fixed_point_on_awkward_data(solver, data):
    X, y, k = data.draw(labelled_rows())
    problem = oracle.problem(X, y, k)
    p = problem.features.shape[2]
    m0, V0 = np.full(p, 0.1), np.eye(p) / 100
    found = solve(Counted(problem), prior(m0, V0), solver=solver, tol=1e-13, max_iter=10_000)
    mean, covariance = oracle.algorithm_1(problem, m0, V0, tol=1e-13)
    # Relative to the prior's standard deviation: a weight may happen to be almost zero.
    np.testing.assert_allclose(found.mean, mean, rtol=0, atol=ORACLE["float64"] * 0.1)
    assert_same_covariance(found.covariance, covariance, ORACLE["float64"])


def test_each_published_step_is_one_round_of_algorithm_1():
    data, start = lopsided(), np.array([1.0, 0.5, 0.0])
    expected = start
    for steps in (1, 2, 3):
        found = solve(
            Counted(data), prior(M0, V0), solver="published", tol=0, max_iter=steps, start=start
        )
        expected = oracle.updated_mean(data, M0, V0, expected)
        np.testing.assert_allclose(found.mean, expected, rtol=ROUNDING)
        assert found.n_iter == steps
        assert not found.converged


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("far", [0.1, 50.0])
def test_lower_bound_is_the_naive_one_and_never_falls(solver, far):
    """Also from far away, where a bare Newton step overshoots."""
    data, m0, V0 = lopsided(), np.full(3, far), 10 * np.eye(3)
    path = []
    found = solve(
        Counted(data),
        prior(m0, V0),
        solver=solver,
        max_iter=500,
        callback=lambda *step: path.append(step),
    )
    bounds = np.array(found.lower_bounds)
    assert len(bounds) == found.n_iter + 1
    assert (np.diff(bounds) >= -NEVER_FALLS * np.abs(bounds).max()).all()
    np.testing.assert_allclose(bounds[0], oracle.lower_bound(data, m0, m0, V0), rtol=ROUNDING)
    last = oracle.lower_bound(data, found.mean, m0, V0)
    np.testing.assert_allclose(bounds[-1], last, rtol=ROUNDING)
    assert [step for step, _, _ in path] == list(range(1, found.n_iter + 1))
    assert [bound for _, bound, _ in path] == list(bounds[1:])
    assert path[-1][2] == found.last_step


@pytest.mark.parametrize("size", [1e2, 1e4, 1e6])
def test_newton_finds_its_way_from_a_prior_far_too_steep(size):
    """Features in a thousandth of the unit: at the prior mean every exponential is saturated.

    The loss is almost linear there, so a Newton step overshoots a hundredfold and more, while the
    published step hardly moves.
    """
    data, V0 = lopsided(), np.eye(3) / 1000
    data = data._replace(features=data.features * size)
    found = solve(Counted(data), prior(np.full(3, 0.1), V0), solver="newton", max_iter=100)
    assert found.converged

    def gradient(mean):
        return oracle.slope(data, mean) + np.linalg.inv(V0) @ (mean - 0.1)

    # At a relative step of 1e-6 or less the gradient, which is Hessian times step, has vanished.
    remains = np.linalg.norm(gradient(found.mean)) / np.linalg.norm(gradient(np.full(3, 0.1)))
    assert remains < 1e-5


def test_newton_and_anderson_need_fewer_passes_over_the_data():
    passes = {}
    for solver in SOLVERS:
        counted = Counted(lopsided())
        found = solve(counted, prior(M0, 10 * V0), solver=solver, tol=1e-6, max_iter=10_000)
        assert found.converged
        passes[solver] = len(counted.asked)
        assert counted.asked.count("bohning") == 1  # C13: the curvature is computed once
    assert passes["newton"] < passes["anderson"] < passes["published"]
    assert passes["published"] > 10 * passes["newton"]


@pytest.mark.parametrize("solver", SOLVERS)
def test_too_few_steps_are_reported(solver):
    found = solve(Counted(lopsided()), prior(M0, 10 * V0), solver=solver, tol=1e-12, max_iter=1)
    assert not found.converged
    assert found.n_iter == 1
    assert found.last_step > 1e-12


@pytest.mark.parametrize("solver", SOLVERS)
def test_where_the_search_starts_does_not_matter(solver):
    data = lopsided()
    found = [
        solve(Counted(data), prior(M0, V0), solver=solver, tol=1e-12, max_iter=10_000, start=start)
        for start in (None, np.array([-1.0, 2.0, 5.0]))
    ]
    np.testing.assert_allclose(found[1].mean, found[0].mean, rtol=ORACLE["float64"])
    np.testing.assert_array_equal(found[1].covariance, found[0].covariance)


@pytest.mark.parametrize("solver", SOLVERS)
def test_without_anchors_the_posterior_is_the_prior(solver):
    p = len(M0)
    nothing = Statistics(0.0, np.zeros(p), np.zeros((p, p)))
    found = solve(lambda _mean, _curvature: nothing, prior(M0, V0), solver=solver)
    assert found.converged
    np.testing.assert_allclose(found.mean, M0, rtol=ROUNDING)
    np.testing.assert_allclose(found.covariance, V0, atol=ROUNDING)
    expected = multivariate_normal(M0, V0).logpdf(M0)
    np.testing.assert_allclose(found.lower_bounds[-1], expected, rtol=ROUNDING)


def test_prior_pulls_the_mean_and_data_narrow_the_posterior():
    """A tiny prior variance keeps m0; more anchors shrink V_T in every direction."""
    data = lopsided()
    tight = solve(Counted(data), prior(M0, 1e-12 * np.eye(3)))
    np.testing.assert_allclose(tight.mean, M0, atol=1e-8)
    once = solve(Counted(data), prior(M0, V0)).covariance
    twice = solve(Counted(data._replace(weights=2 * data.weights)), prior(M0, V0)).covariance
    assert np.linalg.eigvalsh(V0 - once).min() > 0
    assert np.linalg.eigvalsh(once - twice).min() > 0
