from __future__ import annotations

import ast
import inspect
import pickle
import tracemalloc
import warnings
from functools import cache

import numpy as np
import oracle
import pytest
import scipy.sparse
from rivals import oracle_bml
from scipy.special import expit
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError, SkipTestWarning
from sklearn.metrics import fbeta_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks
from tolerances import (
    CURVED,
    FLOAT32_FIT,
    ORACLE,
    ROUNDING,
    SAME_FIT,
    STEP,
    SUMS,
    assert_same_covariance,
    assert_same_sum,
    monte_carlo,
)

from bnca import BayesianMetric, ProjectionWarning
from bnca.core import pairs as core
from bnca.core.margins import (
    MIXTURE,
    Margins,
    expected_entropy,
    expected_slope,
    margins,
    most_informative,
    same_class,
)
from bnca.core.solve import Prior
from bnca.rivals import BML, SupervisedBML, _bml_core, _pair_model

# Labels here are half random, so some learned weights are negative; that warning is tested below.
pytestmark = pytest.mark.filterwarnings("ignore::bnca.ProjectionWarning")

MIXTURE_ERROR = {"probability": 3e-9, "slope": 2e-8, "entropy": 1e-7}
"""Absolute: eight normal distributions stand for the logistic one to 2e-9, their densities for its
slope to 1.4e-8, and the entropy is an integral of x times that slope."""

STRATEGIES = ("reduction", "information", "entropy")


def rows_and_labels(n=14, seed=0, n_classes=3):
    """Rows off the origin whose columns differ in scale, labels half random, classes unequal."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [3.0, 1.0, 0.4] @ np.linalg.qr(rng.normal(size=(3, 3)))[0] + 4
    y = np.digitize(X[:, 0] + rng.normal(size=n), np.linspace(2, 6, n_classes + 1)[1:-1])
    y[:2] = 0, n_classes - 1
    return X, y


def pairs_and_labels(n=40, seed=0, width=3):
    """Pairs of rows, more different than alike, and rows they come from."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25, width)) * np.geomspace(3, 0.5, width) + 7
    left, right = rng.integers(0, 25, (2, n))
    right[left == right] = (right[left == right] + 1) % 25
    close = np.abs(X[left, 0] - X[right, 0]) + rng.normal(size=n) < 1.5
    return X[np.column_stack([left, right])], np.where(close, 1, -1), X


def blocks_of_pairs(seed=3, n=30, p=3):
    """Features, labels and lopsided weights of a few pairs, and a posterior to expand at."""
    rng = np.random.default_rng(seed)
    differences = rng.normal(size=(n, p)) * np.geomspace(2, 0.3, p)
    features = core.margin_features(core.with_room(differences))
    sign = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    block = core.PairBlock(features, sign, rng.choice([0.5, 1.0, 3.0], n))
    mean = rng.normal(size=p + 1)
    root = np.tril(rng.normal(size=(p + 1, p + 1)), -1) * 0.4 + 0.5 * np.eye(p + 1)
    return block, _bml_core.Moments(mean, root, 2 * np.log(np.abs(np.diag(root))).sum())


# The posterior against naive loops.


@cache
def expected(kind, factorized):
    """What the naive loops give: of given pairs with weights, or of all pairs of rows."""
    if kind == "pairs":
        pairs, y, _ = pairs_and_labels(26)
        counts = np.random.default_rng(1).choice([0.0, 1.0, 2.5], len(y))
        rows = pairs[counts > 0].reshape(-1, 3)
    else:
        rows, labels = rows_and_labels()
        counts = np.random.default_rng(2).choice([1.0, 2.0], len(rows))
    axes = oracle.eigen_axes(rows)
    unit = oracle_bml.typical_squared_distance(axes, rows)
    if kind == "pairs":
        features = [oracle_bml.pair_feature(axes, a, b) / unit for a, b in pairs[counts > 0]]
        data = oracle_bml.Pairs(np.array(features), y[counts > 0], counts[counts > 0])
    else:
        data = oracle_bml.all_pairs(axes, rows, labels, counts, unit)
    m0 = np.append([1.0, 0.5, 2.0], 0.0)
    m0[-1] = m0[:-1] @ oracle_bml.mean_feature(axes, rows, unit)
    V0 = np.diag([3.0, 1.0, 0.5, 10.0])
    return data, m0, V0, counts, unit, oracle_bml.posterior(data, m0, V0, factorized=factorized)


def fitted(kind, **overrides):
    settings = {
        "prior_mean": [1.0, 0.5, 2.0],
        "prior_variance": [3.0, 1.0, 0.5],
        "threshold_variance": 10.0,
        "tol": 1e-12,
        "max_iter": 5000,
    } | overrides
    counts = expected(kind, factorized=False)[3]
    if kind == "pairs":
        pairs, y, _ = pairs_and_labels(26)
        return BML(**settings).fit(pairs, y, counts)
    return SupervisedBML(**settings).fit(*rows_and_labels(), counts)


@pytest.mark.parametrize("factorized", [False, True])
@pytest.mark.parametrize("solver", ["newton", "published"])
@pytest.mark.parametrize("kind", ["pairs", "rows"])
def test_posterior_is_that_of_the_naive_loops(kind, solver, factorized):
    _, _, _, _, unit, found = expected(kind, factorized)
    model = fitted(kind, solver=solver, factorized=factorized)
    assert model.converged_
    np.testing.assert_allclose(model.scale_, unit, rtol=ROUNDING)
    in_units = np.array([unit, unit, unit, 1.0])
    np.testing.assert_allclose(model.margin_mean_ * in_units, found.mean, rtol=ORACLE["float64"])
    covariance = model.margin_covariance_ * np.outer(in_units, in_units)
    assert_same_covariance(covariance, found.covariance, ORACLE["float64"])
    assert isinstance(model.metric_, BayesianMetric)
    np.testing.assert_array_equal(model.metric_.mean, model.margin_mean_[:3])
    np.testing.assert_array_equal(model.metric_.covariance, model.margin_covariance_[:3, :3])
    if factorized:
        assert (model.margin_covariance_[-1, :-1] == 0).all()


@pytest.mark.parametrize("factorized", [False, True])
@pytest.mark.parametrize("solver", ["newton", "published"])
@pytest.mark.parametrize("kind", ["pairs", "rows"])
def test_lower_bound_is_the_naive_one_and_never_falls(kind, solver, factorized):
    data, m0, V0, _, _, found = expected(kind, factorized)
    model = fitted(kind, solver=solver, factorized=factorized)
    bounds = model.lower_bounds_
    assert bounds.shape == (model.n_iter_ + 1,)
    assert bounds[-1] == model.lower_bound_
    assert (np.diff(bounds) >= 0).all()
    np.testing.assert_allclose(bounds[-1], found.bound, rtol=ROUNDING)
    if solver == "published":
        start = oracle_bml.lower_bound(data, m0, V0, m0, V0)
        np.testing.assert_allclose(bounds[0], start, rtol=ROUNDING)


def test_each_step_of_the_published_solver_raises_the_naive_bound_as_reported():
    """The running maximum that is recorded must not hide a fall."""
    data, m0, V0, _, unit, _ = expected("rows", factorized=False)
    for steps in (1, 2, 5):
        with pytest.warns(ConvergenceWarning):
            model = fitted("rows", solver="published", max_iter=steps)
        in_units = np.array([unit, unit, unit, 1.0])
        bound = oracle_bml.lower_bound(
            data,
            m0,
            V0,
            model.margin_mean_ * in_units,
            model.margin_covariance_ * np.outer(in_units, in_units),
        )
        np.testing.assert_allclose(model.lower_bound_, bound, rtol=ROUNDING)


def test_lower_bound_is_below_the_log_evidence():
    rng = np.random.default_rng(5)
    w, counts = rng.normal(size=(6, 1)) ** 2, np.array([1, 2, 1, 1, 3, 1.0])
    sign = np.array([1, -1, -1, 1, -1, 1.0])
    block = core.PairBlock(np.column_stack([-w, np.ones(6)]), sign, counts)
    m0, V0 = np.array([1.0, 0.5]), np.diag([2.0, 4.0])
    evidence = oracle_bml.log_evidence(oracle_bml.Pairs(w, sign, counts), m0, V0)
    together, apart = (
        _bml_core.solve(
            lambda moments, order: _bml_core.expand(block, moments, order),
            Prior(m0, np.linalg.inv(V0)),
            factorized=factorized,
        ).lower_bounds[-1]
        for factorized in (False, True)
    )
    # Far below, it would bound nothing worth having.
    assert evidence - 0.3 < together < evidence
    assert apart < together


@pytest.mark.parametrize("kind", ["pairs", "rows"])
def test_single_precision_gives_nearly_the_same(kind):
    counts = expected(kind, factorized=False)[3]
    double = fitted(kind)
    if kind == "pairs":
        pairs, y, _ = pairs_and_labels(26)
        single = clone(double).set_params(tol=1e-5).fit(pairs.astype(np.float32), y, counts)
        pairs = pairs.astype(np.float32)
    else:
        X, y = rows_and_labels()
        single = clone(double).set_params(tol=1e-5).fit(X.astype(np.float32), y, counts)
        pairs = X[:6].astype(np.float32).reshape(3, 2, 3)
    assert single.converged_
    assert single.components_.dtype == np.float32
    scale = np.sqrt(np.diag(double.margin_covariance_))
    gap = (single.margin_mean_ - double.margin_mean_) / scale
    np.testing.assert_allclose(gap, 0, atol=ORACLE["float32"])
    assert_same_covariance(single.margin_covariance_, double.margin_covariance_, ORACLE["float32"])
    np.testing.assert_allclose(single.pair_proba(pairs), double.pair_proba(pairs), atol=FLOAT32_FIT)


@pytest.mark.parametrize("case", range(6))
def test_both_solvers_end_at_the_same_posterior(case):
    rng = np.random.default_rng(case)
    scale = 10.0 ** rng.integers(-1, 2, 5)
    X = rng.normal(size=(40, 5)) * scale
    y = (X[:, case % 5] > 0).astype(int) if case < 4 else rng.integers(0, 6, 40)
    newton = SupervisedBML(prior_variance=10.0**case, tol=1e-10).fit(X, y)
    published = SupervisedBML(
        solver="published", prior_variance=10.0**case, tol=1e-10, max_iter=100_000
    ).fit(X, y)
    spread = np.sqrt(np.diag(newton.margin_covariance_))
    gap = (published.margin_mean_ - newton.margin_mean_) / spread
    np.testing.assert_allclose(gap, 0, atol=SAME_FIT)
    assert_same_covariance(published.margin_covariance_, newton.margin_covariance_, SAME_FIT)
    assert newton.n_iter_ < published.n_iter_


def test_newton_falls_back_where_its_step_would_lower_the_bound():
    """Far from the optimum the Hessian is flat; every step must still raise the bound."""
    block, _ = blocks_of_pairs(n=60)
    far = block._replace(features=block.features * [40, 40, 40, 1], sign=-block.sign)
    prior = Prior(np.array([3.0, 3.0, 3.0, -50.0]), np.eye(4) / 100)
    tried = []

    def evaluate(moments, order):
        tried.append(order)
        return _bml_core.expand(far, moments, order)

    search = _bml_core.Search(evaluate, prior, "newton", factorized=False, rounding=1e-13)
    start = _bml_core._moments(prior.mean, prior.precision * 1e4, factorized=False)
    found = search.run(start, 1e-10, 1000)
    assert len(tried) > len(found.bounds)  # some steps took a second try
    assert (np.diff(found.bounds) >= 0).all()
    again = _bml_core.solve(evaluate, prior, solver="published", tol=1e-12, max_iter=100_000)
    np.testing.assert_allclose(found.moments.mean, again.mean, rtol=SAME_FIT)


# The objective and its derivatives.


def test_slope_hessian_and_precision_are_derivatives_of_the_bound():
    block, at = blocks_of_pairs()

    def bound(mean=at.mean, V=None):
        root = at.root if V is None else np.linalg.cholesky(V)
        moments = _bml_core.Moments(mean, root, 0.0)
        return _bml_core.expand(block, moments, "newton")

    sums = bound()
    steps = STEP * np.eye(4)
    slope = [(bound(at.mean + s).bound - bound(at.mean - s).bound) / (2 * STEP) for s in steps]
    assert_same_sum(sums.slope, np.array(slope), CURVED)
    rows = [(bound(at.mean + s).slope - bound(at.mean - s).slope) / (2 * STEP) for s in steps]
    assert_same_sum(sums.hessian, -np.array(rows), CURVED)
    V = at.root @ at.root.T
    for i in range(4):
        for j in range(i + 1):
            s = (np.outer(steps[i], steps[j]) + np.outer(steps[j], steps[i])) / (2 * STEP)
            change = (bound(V=V + s).bound - bound(V=V - s).bound) / (2 * STEP)
            limit = CURVED * np.abs(sums.precision).max()
            assert abs(change + sums.precision[i, j] / 2) < limit


@pytest.mark.parametrize("order", ["start", "published", "newton"])
def test_statistics_of_a_union_add_up(order):
    block, at = blocks_of_pairs()
    whole = _bml_core.expand(block, at, order)
    parts = [core.PairBlock(*(x[a:b] for x in block)) for a, b in ((0, 7), (7, 8), (8, 30))]
    total = _bml_core.expand(parts[0], at, order)
    for part in parts[1:]:
        total = total + _bml_core.expand(part, at, order)
    for name in ("bound", "slope", "precision", "hessian"):
        actual, desired = getattr(total, name), getattr(whole, name)
        assert_same_sum(np.asarray(actual), np.asarray(desired), SUMS["float64"])


def test_curvature_is_largest_at_zero_and_has_the_slope_it_says():
    # Both sides of where the series takes over, and as far as doubles go.
    xi = np.array([0.0, 1e-300, 1e-9, 1e-6, 0.0199, 0.0201, 0.5, 3.0, 40.0, 1e8, 1e150])
    value, slope = _bml_core.curvature_of_bound(xi), _bml_core.curvature_slope(xi)
    naive = [oracle_bml.curvature(x) for x in xi]
    np.testing.assert_allclose(value, naive, rtol=ROUNDING)
    assert (np.diff(value) <= 0).all()
    assert (slope <= 0).all()
    assert slope[0] == -1 / 96
    for x, expected_slope_ in zip(xi[4:9], slope[4:9], strict=True):
        h = 1e-4 * x * x + 1e-5
        above, below = (oracle_bml.curvature(np.sqrt(x * x + s)) for s in (h, -h))
        np.testing.assert_allclose(expected_slope_, (above - below) / (2 * h), rtol=1e-5)
    assert np.isfinite(slope).all()


# Pairs.


@pytest.mark.parametrize("n", range(2, 12))
def test_members_gives_each_pair_of_rows_once(n):
    first, second = core.members(np.arange(n * (n - 1) // 2), n)
    found = sorted(
        tuple(sorted(pair)) for pair in zip(first.tolist(), second.tolist(), strict=True)
    )
    assert found == [(i, j) for i in range(n) for j in range(i + 1, n)]


@pytest.mark.parametrize("n", [50, 61, 120])
def test_every_stands_for_all_pairs_and_meets_all_rows(n):
    X = np.random.default_rng(n).normal(size=(n, 2))
    pairs = core.RowPairs(core.with_room(X), np.arange(n) % 3, np.full(n, 2.0))
    few = pairs.every(10)
    assert len(few) == -(-len(pairs) // 10)
    met = np.bincount(np.concatenate(core.members(few.numbers, n)), minlength=n)
    # As even as chance; every tenth number itself would take the same rows again and again.
    assert met.std() < 1.3 * np.sqrt(met.mean())
    scratch = np.empty(6 * len(pairs))
    total = [p.block(slice(0, len(p)), scratch).weights.sum() for p in (pairs, few)]
    np.testing.assert_allclose(total, n * (n - 1) / 2 * 4)
    given = core.GivenPairs(X, np.ones(n), np.arange(1.0, n + 1))
    np.testing.assert_allclose(given.every(7).weights.sum(), n * (n + 1) / 2)


def test_a_sample_of_pairs_is_that_many_different_pairs():
    X, y = rows_and_labels(30)
    model = SupervisedBML(n_pairs=50).fit(X, y)
    drawn = model._drawn(y)
    assert model.n_pairs_ == len(set(drawn.tolist())) == 50
    again = SupervisedBML(n_pairs=50).fit(X, y)
    np.testing.assert_array_equal(again.margin_mean_, model.margin_mean_)
    other = SupervisedBML(n_pairs=50, random_state=1).fit(X, y)
    assert np.abs(other.margin_mean_ - model.margin_mean_).max() > 0.001
    # It is what BML learns from those pairs, with the same basis.
    first, second = core.members(drawn, 30)
    same = BML().fit(
        X[np.column_stack([first, second])], np.where(y[first] == y[second], 1, -1), rows=X
    )
    np.testing.assert_allclose(model.margin_mean_, same.margin_mean_, rtol=SAME_FIT)
    assert_same_covariance(model.margin_covariance_, same.margin_covariance_, SAME_FIT)


@pytest.mark.parametrize("n_pairs", [435, 10_000])
def test_a_sample_of_all_pairs_or_more_is_all_pairs(n_pairs):
    X, y = rows_and_labels(30)
    model = SupervisedBML(n_pairs=n_pairs).fit(X, y)
    assert model.n_pairs_ == 435
    np.testing.assert_array_equal(model.margin_mean_, SupervisedBML().fit(X, y).margin_mean_)


def test_weights_of_pairs_are_repetitions():
    pairs, y, X = pairs_and_labels()
    counts = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = BML().fit(pairs, y, counts, rows=X)
    repeated = BML().fit(pairs.repeat(counts, axis=0), y.repeat(counts), rows=X)
    np.testing.assert_allclose(weighted.margin_mean_, repeated.margin_mean_, rtol=SAME_FIT)
    left_out = BML().fit(pairs[counts > 0], y[counts > 0], counts[counts > 0])
    np.testing.assert_array_equal(BML().fit(pairs, y, counts).margin_mean_, left_out.margin_mean_)


# Averages over a Gaussian margin.


def test_the_mixture_is_the_logistic_function():
    x = np.linspace(-45, 45, 20_001)
    margin = Margins(x, np.zeros_like(x))
    np.testing.assert_allclose(MIXTURE[0].sum(), 1, rtol=ROUNDING)
    np.testing.assert_allclose(
        same_class(margin), expit(x), rtol=0, atol=MIXTURE_ERROR["probability"]
    )
    slope = expit(x) * expit(-x)
    np.testing.assert_allclose(expected_slope(margin), slope, rtol=0, atol=MIXTURE_ERROR["slope"])
    doubt = [oracle_bml.doubt(p) for p in expit(x)]
    np.testing.assert_allclose(
        expected_entropy(margin), doubt, rtol=0, atol=MIXTURE_ERROR["entropy"]
    )


@pytest.mark.parametrize("mean", [-6.0, -0.7, 0.0, 2.5])
@pytest.mark.parametrize("variance", [0.01, 1.0, 30.0])
def test_averages_over_the_margin_are_integrals(mean, variance):
    margin = Margins(np.array([mean]), np.array([variance]))
    logistic = oracle_bml.logistic
    for function, average, error in (
        (logistic, same_class, "probability"),
        (lambda x: logistic(x) * (1 - logistic(x)), expected_slope, "slope"),
        (lambda x: oracle_bml.doubt(logistic(x)), expected_entropy, "entropy"),
    ):
        exact = oracle_bml.expectation(function, mean, variance)
        np.testing.assert_allclose(average(margin)[0], exact, rtol=0, atol=MIXTURE_ERROR[error])


@pytest.mark.parametrize("kind", ["pairs", "rows"])
def test_pair_proba_is_the_average_over_draws_of_weights_and_threshold(kind):
    model = fitted(kind)
    pairs, _, _ = pairs_and_labels(12, seed=9)
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(model.margin_mean_, model.margin_covariance_, 40_000)
    features = oracle_features(model, pairs)
    sampled = expit(features @ draws.T)
    gap = model.pair_proba(pairs) - sampled.mean(axis=1)
    assert (np.abs(gap) <= monte_carlo(sampled.std(axis=1), 40_000)).all()
    moments = margins(features, model.margin_mean_, model.margin_covariance_)
    np.testing.assert_allclose(same_class(moments), model.pair_proba(pairs), rtol=ROUNDING)


def oracle_features(model, pairs):
    axes = model.metric_.directions
    w = np.array([oracle_bml.pair_feature(axes, a, b) for a, b in pairs])
    return np.column_stack([-w, np.ones(len(w))])


# Which pair to ask about.


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", [0, 1])
def test_choice_is_that_of_the_naive_loops(strategy, seed):
    rng = np.random.default_rng(seed)
    w = (rng.normal(size=(12, 2)) * [1.5, 0.6]) ** 2
    w[7] = w[2]  # once asked, the same question is worth less
    root = np.tril(rng.normal(size=(3, 3)))
    V, mean = root @ root.T + 0.1 * np.eye(3), np.array([1.0, 0.4, 1.2])
    found = most_informative(np.column_stack([-w, np.ones(12)]), mean, V, 6, strategy)
    assert found.tolist() == oracle_bml.choose(w, mean, V, 6, strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_batch_is_what_asking_one_by_one_gives(strategy):
    """The covariance after each choice is the one with that label's precision in it."""
    rng = np.random.default_rng(4)
    features = np.column_stack([-(rng.normal(size=(50, 3)) ** 2), np.ones(50)])
    V, mean = np.diag([3.0, 1.0, 0.5, 4.0]), np.array([1.0, 1.0, 1.0, 2.0])
    batch = most_informative(features, mean, V, 5, "information")
    precision = np.linalg.inv(V)
    left = list(range(50))
    for chosen in batch:
        V = np.linalg.inv(precision)
        assert left[most_informative(features[left], mean, V, 1, "information")[0]] == chosen
        phi = features[[chosen]]
        precision = precision + expected_slope(margins(phi, mean, V)) * phi.T @ phi
        left.remove(chosen)
    assert len(set(most_informative(features, mean, V, 50, strategy).tolist())) == 50


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_of_equal_pairs_the_first_is_chosen(strategy):
    pairs, y, X = pairs_and_labels()
    model = BML().fit(pairs, y, rows=X)
    best = model.query(pairs, 1, strategy=strategy)[0]
    copies = np.concatenate([np.delete(pairs, best, axis=0)[:9], pairs[[best] * 20]])
    assert model.query(copies, 1, strategy=strategy)[0] == 9
    swapped = copies[:, ::-1]
    np.testing.assert_array_equal(
        model.query(swapped, 12, strategy=strategy), model.query(copies, 12, strategy=strategy)
    )


@pytest.mark.parametrize("strategy", ["reduction", "information"])
def test_a_batch_is_not_redundant(strategy):
    """Copies of one pair, and copies of another along an axis that is a little less unsure."""
    features = np.array([[-1.0, 0.0, 1.0], [0.0, -1.0, 1.0]]).repeat(20, axis=0)
    V = np.diag([2.0, 1.9, 0.01])
    chosen = most_informative(features, np.zeros(3), V, 4, strategy)
    assert chosen.tolist() == [0, 20, 1, 21]


def test_query_asks_where_the_model_is_unsure():
    """One axis has been seen at all distances, the other never: the other is asked about."""
    rng = np.random.default_rng(0)
    near = np.zeros((300, 2, 2))
    near[:, 1, 0] = rng.uniform(0, 4, 300)
    y = np.where(near[:, 1, 0] + rng.normal(size=300) < 2, 1, -1)
    rows = rng.normal(size=(100, 2)) * [2.0, 1.9]
    model = BML(prior_variance=30.0).fit(near, y, rows=rows)
    candidates = np.zeros((40, 2, 2))
    candidates[:20, 1, 0] = candidates[20:, 1, 1] = np.linspace(0.5, 3, 20)
    for strategy in ("reduction", "information"):
        assert (model.query(candidates, 5, strategy=strategy) >= 20).sum() >= 4


@pytest.mark.parametrize("n", [0, 41, -1, 2.0, True, None])
def test_query_refuses_numbers_it_cannot_choose(n):
    pairs, y, _ = pairs_and_labels()
    with pytest.raises(ValueError, match=r"n must be an integer from 1 to 40"):
        BML().fit(pairs, y).query(pairs, n)


def test_query_refuses_unknown_strategies():
    pairs, y, _ = pairs_and_labels()
    with pytest.raises(ValueError, match=r"strategy must be one of 'reduction'.*got 'best'"):
        BML().fit(pairs, y).query(pairs, 1, strategy="best")


# Thresholds.


def rate(predicted, sign, value):
    hits = [p == s for p, s in zip(predicted, sign, strict=True) if s == value]
    return sum(hits) / len(hits)


def test_predictions_follow_threshold_and_probability():
    pairs, y, _ = pairs_and_labels(60, seed=1)
    model = BML().fit(pairs[:40], y[:40])
    decision = model.decision_function(pairs)
    np.testing.assert_allclose(decision, model.threshold_ - model.pair_distance(pairs))
    np.testing.assert_array_equal(model.predict(pairs), np.where(decision >= 0, 1, -1))
    proba = model.predict_proba(pairs)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(pairs))
    np.testing.assert_array_equal(proba[:, 1], model.pair_proba(pairs))
    assert model.score(pairs, y) == roc_auc_score(y, model.pair_score(pairs))
    assert set(model.predict(pairs)) == {-1, 1}
    assert model.set_threshold(-1e9) is model
    assert (model.predict(pairs) == -1).all()
    assert (model.set_threshold(1e9).predict(pairs) == 1).all()
    np.testing.assert_array_equal(model.predict_proba(pairs), proba)


@pytest.mark.parametrize(
    ("options", "worth"),
    [
        ({}, lambda p, s: np.mean(np.array(p) == s)),
        ({"strategy": "accuracy"}, lambda p, s: np.mean(np.array(p) == s)),
        ({"strategy": "f_beta"}, lambda p, s: fbeta_score(s, p, beta=1, zero_division=0)),
        (
            {"strategy": "f_beta", "beta": 3},
            lambda p, s: fbeta_score(s, p, beta=3, zero_division=0),
        ),
        (
            {"strategy": "max_tpr", "min_rate": 0.8},
            lambda p, s: rate(p, s, 1) if rate(p, s, -1) >= 0.8 else -1,
        ),
        (
            {"strategy": "max_tpr", "min_rate": 1.0},
            lambda p, s: rate(p, s, 1) if rate(p, s, -1) >= 1 else -1,
        ),
        (
            {"strategy": "max_tnr", "min_rate": 0.7},
            lambda p, s: rate(p, s, -1) if rate(p, s, 1) >= 0.7 else -1,
        ),
        (
            {"strategy": "max_tnr", "min_rate": 0.0},
            lambda p, s: rate(p, s, -1),
        ),
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_calibrated_threshold_is_the_best_there_is(options, worth, seed):
    pairs, y, _ = pairs_and_labels(60, seed=seed)
    pairs = np.concatenate([pairs, pairs[:10]])  # ties, some with the other label
    y = np.concatenate([y, -y[:5], y[5:10]])
    model = BML().fit(pairs[:30], y[:30])
    assert model.calibrate_threshold(pairs[30:], y[30:], **options) is model
    best = oracle_bml.best_thresholds(model.pair_distance(pairs[30:]), y[30:], worth)
    np.testing.assert_allclose(worth(model.predict(pairs[30:]), y[30:]), best, rtol=ROUNDING)
    # Distances come out the same to the last digits only: no pair may sit on the threshold.
    np.testing.assert_array_equal(model.predict(pairs[30:][::-1])[::-1], model.predict(pairs[30:]))


def test_of_thresholds_equal_in_one_rate_the_best_in_the_other_is_taken():
    squared, alike = np.arange(1.0, 7.0), np.array([1, 0, 1, 1, 0, 0], dtype=bool)
    found = core.rates(squared, alike)
    np.testing.assert_allclose(found.cuts, [-1.5, 1.5, 2.5, 3.5, 4.5, 5.5, 8.5])
    np.testing.assert_allclose(found.found, [0, 1 / 3, 1 / 3, 2 / 3, 1, 1, 1])
    np.testing.assert_allclose(found.kept_out, [1, 1, 2 / 3, 2 / 3, 2 / 3, 1 / 3, 0])
    pairs = np.zeros((6, 2, 1))
    pairs[:, 1, 0] = np.sqrt(squared)
    y = np.where(alike, 1, -1)
    model = BML().fit(pairs, y)
    model.margin_mean_[:] = 1.0
    model.metric_ = BayesianMetric(np.eye(1), np.ones(1), np.eye(1))
    tpr = model.calibrate_threshold(pairs, y, "max_tpr", min_rate=0.6).threshold_
    assert 4 < tpr < 5
    tnr = model.calibrate_threshold(pairs, y, "max_tnr", min_rate=0.5).threshold_
    assert 4 < tnr < 5
    single = core.rates(np.full(3, 2.0), np.array([True, False, True]))
    np.testing.assert_allclose(single.cuts, [1, 3])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "weird"}, "strategy must be one of 'accuracy', 'f_beta'.*got 'weird'"),
        ({"strategy": "max_tpr"}, "min_rate must be a number from 0 to 1.*got None"),
        ({"strategy": "max_tnr", "min_rate": 1.2}, "min_rate must be .*got 1.2"),
        ({"strategy": "max_tnr", "min_rate": "a"}, "min_rate must be .*got 'a'"),
        ({"strategy": "f_beta", "beta": -1}, "beta must be a finite number of at least 0; got -1"),
        ({"strategy": "f_beta", "beta": None}, "beta must be .*got None"),
    ],
)
def test_calibration_refuses_what_it_cannot_do(options, message):
    pairs, y, _ = pairs_and_labels()
    model = BML().fit(pairs, y)
    with pytest.raises(ValueError, match=message):
        model.calibrate_threshold(pairs, y, **options)
    with pytest.raises(ValueError, match="y has pairs of one class only"):
        model.calibrate_threshold(pairs, np.ones(40))


@pytest.mark.parametrize("threshold", [None, "1", np.nan, np.inf])
def test_a_threshold_is_a_finite_number(threshold):
    pairs, y, _ = pairs_and_labels()
    with pytest.raises(ValueError, match="threshold must be a finite number"):
        BML().fit(pairs, y).set_threshold(threshold)


# Units, bases, priors.


@pytest.mark.parametrize("factor", [1e-6, 1e3, 1e8])
def test_the_unit_of_the_data_changes_no_prediction(factor):
    pairs, y, X = pairs_and_labels()
    model, scaled = BML().fit(pairs, y, rows=X), BML().fit(pairs * factor, y, rows=X * factor)
    np.testing.assert_allclose(
        scaled.pair_proba(pairs * factor), model.pair_proba(pairs), rtol=SAME_FIT
    )
    np.testing.assert_allclose(
        scaled.pair_distance(pairs * factor), model.pair_distance(pairs), rtol=SAME_FIT
    )
    rows, labels = rows_and_labels(30)
    here, there = SupervisedBML().fit(rows, labels), SupervisedBML().fit(rows * factor, labels)
    np.testing.assert_allclose(
        there.predict_proba(rows * factor), here.predict_proba(rows), atol=1e-5
    )
    raw = [BML(rescale=False).fit(pairs * f, y).pair_proba(pairs * f) for f in (1, 3)]
    assert np.abs(raw[0] - raw[1]).max() > 0.01


def test_threshold_prior_is_the_typical_distance_unless_stated():
    pairs, y, X = pairs_and_labels()
    loose = {"prior_variance": 1e-9, "threshold_variance": 1e-9}
    model = BML(prior_mean=2.0, **loose).fit(pairs, y, rows=X)
    axes = oracle.eigen_axes(X)
    typical = 2 * oracle_bml.mean_feature(axes, X, model.scale_).sum()
    np.testing.assert_allclose(model.threshold_, typical, rtol=1e-6)
    np.testing.assert_allclose(model.metric_.mean * model.scale_, 2.0, rtol=1e-6)
    stated = BML(prior_mean=2.0, threshold_mean=0.25, **loose).fit(pairs, y, rows=X)
    np.testing.assert_allclose(stated.threshold_, 0.25, rtol=1e-6)
    raw = BML(prior_mean=2.0, rescale=False, **loose).fit(pairs, y, rows=X)
    assert raw.scale_ == 1
    np.testing.assert_allclose(raw.threshold_, typical * model.scale_, rtol=1e-6)


def test_rows_set_axes_and_unit():
    pairs, y, X = pairs_and_labels(8, width=6)
    assert BML().fit(pairs[:2], [1, -1]).metric_.directions.shape == (6, 3)
    model = BML().fit(pairs, y, rows=X)
    axes = oracle.eigen_axes(X)
    np.testing.assert_allclose(np.abs(np.diag(model.metric_.directions.T @ axes)), 1)
    np.testing.assert_allclose(model.scale_, oracle_bml.typical_squared_distance(axes, X))
    sparse = BML().fit(pairs, y, rows=scipy.sparse.csr_matrix(X))
    np.testing.assert_allclose(sparse.margin_mean_, model.margin_mean_, rtol=SAME_FIT)
    assert BML(n_components=2).fit(pairs, y, rows=X).metric_.mean.shape == (2,)


def test_huge_and_tiny_features_leave_finite_answers():
    pairs, y, _ = pairs_and_labels()
    for factor in (1e-12, 1e9):
        model = BML(rescale=False, max_iter=2000).fit(pairs * factor, y)
        assert np.isfinite(model.margin_covariance_).all()
        assert np.isfinite(model.lower_bounds_).all()
        assert np.isfinite(model.predict_proba(pairs * factor)).all()
    uneven = pairs * [1e6, 1.0, 1e-6]
    model = BML(rescale=False, max_iter=2000).fit(uneven, y)
    assert (
        np.linalg.eigvalsh(
            model.margin_covariance_ / np.sqrt(np.outer(*[np.diag(model.margin_covariance_)] * 2))
        ).min()
        > 0
    )


def test_pairs_that_never_differ_leave_the_prior():
    pairs = np.ones((4, 2, 2))
    model = BML().fit(pairs, [1, -1, 1, -1])
    assert model.metric_.mean.shape == (1,)
    np.testing.assert_allclose(model.metric_.mean, 1)
    np.testing.assert_allclose(model.pair_proba(pairs), 0.5, atol=0.01)


# What both estimators inherit.


@pytest.mark.parametrize("kind", ["pairs", "rows"])
def test_distances_and_maps_come_from_the_one_metric(kind):
    model = fitted(kind)
    pairs, _, _ = pairs_and_labels(9, seed=4)
    mean, std = model.pair_distance(pairs, return_std=True)
    estimate = model.metric_.distance(pairs[:, 0], pairs[:, 1])
    np.testing.assert_array_equal(mean, estimate.mean)
    np.testing.assert_array_equal(std, estimate.std)
    np.testing.assert_array_equal(model.pair_score(pairs), -mean)
    matrix = model.metric_.matrix()
    np.testing.assert_array_equal(model.get_mahalanobis_matrix(), matrix)
    moved = model.transform(pairs[:, 0]) - model.transform(pairs[:, 1])
    projected = [float((a - b) @ matrix @ (a - b)) for a, b in pairs]
    np.testing.assert_allclose((moved**2).sum(axis=1), projected, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_allclose(model.get_metric()(*pairs[0]) ** 2, projected[0], rtol=ROUNDING)
    triplets = np.concatenate([pairs, pairs[::-1, :1]], axis=1)
    assert ((model.triplet_proba(triplets) >= 0) & (model.triplet_proba(triplets) <= 1)).all()
    # The probit link stands in where only distances are known.
    close = model.pair_link_
    assert close.slope > 0
    if kind == "pairs":
        z = (close.intercept - close.slope * mean) * 1.702
        np.testing.assert_allclose(z, model.threshold_ - mean, rtol=ROUNDING)


@pytest.mark.parametrize("vote", ["posterior", "softmax", "distance", "uniform"])
def test_supervised_votes(vote):
    X, y = rows_and_labels(60, n_classes=2)
    model = SupervisedBML(vote=vote, n_voters=7).fit(X, y)
    proba = model.predict_proba(X[:10])
    assert proba.shape == (10, 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    distances, indices = model.kneighbors(X[:10], 7)
    assert (distances[:, 0] < 1e-6).all()
    if vote == "uniform":
        share = np.array([[np.mean(y[row] == c) for c in (0, 1)] for row in indices])
        np.testing.assert_allclose(proba, share)
    assert model.score(X, y) > 0.6


def test_repeated_rows_are_merged_and_count():
    X, y = rows_and_labels(20)
    counts = np.random.default_rng(0).integers(1, 4, 20)
    weighted = SupervisedBML().fit(X, y, counts)
    repeated = SupervisedBML().fit(X.repeat(counts, axis=0), y.repeat(counts))
    np.testing.assert_allclose(weighted.margin_mean_, repeated.margin_mean_, rtol=SAME_FIT)
    assert repeated.n_pairs_ == 190


def test_sparse_rows_give_the_same():
    X, y = rows_and_labels(30)
    X = np.where(X.mean(axis=0) < X, X, 0)
    dense, sparse = SupervisedBML().fit(X, y), SupervisedBML().fit(scipy.sparse.csr_matrix(X), y)
    np.testing.assert_allclose(dense.margin_mean_, sparse.margin_mean_, rtol=SAME_FIT)


# Scale.


def test_threads_do_not_change_a_digit():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 4)), rng.integers(0, 3, 150)
    one, two = (SupervisedBML(n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.margin_mean_, two.margin_mean_)
    np.testing.assert_array_equal(one.margin_covariance_, two.margin_covariance_)


@pytest.mark.parametrize("kind", ["pairs", "rows"])
def test_starting_from_a_tenth_of_the_pairs_ends_at_the_same(kind, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 4)) * [3, 2, 1, 1]
    y = (X[:, 0] + rng.normal(size=70) > 0).astype(int)
    first, second = core.members(np.arange(0, 2415, 2), 70)
    pairs, alike = X[np.column_stack([first, second])], np.where(y[first] == y[second], 1, -1)

    def fit():
        return SupervisedBML().fit(X, y) if kind == "rows" else BML().fit(pairs, alike)

    cold = fit()
    monkeypatch.setattr(_pair_model, "WARM_START", 1000)
    warm = fit()
    assert warm.lower_bounds_[0] > cold.lower_bounds_[0]
    np.testing.assert_allclose(warm.margin_mean_, cold.margin_mean_, rtol=SAME_FIT)
    np.testing.assert_allclose(warm.lower_bound_, cold.lower_bound_, rtol=ROUNDING)


def test_memory_does_not_grow_with_the_number_of_pairs():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 20)), rng.integers(0, 3, 600)
    SupervisedBML(n_jobs=1).fit(X[:30], y[:30])  # what is loaded once
    tracemalloc.start()
    SupervisedBML(n_jobs=1).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # All features at once would be 600 · 599 / 2 · 21 · 8 = 30 MB.
    assert peak < 8e6


# Messages.


@pytest.mark.parametrize("solver", ["newton", "published"])
@pytest.mark.parametrize("verbose", [0, 1])
def test_an_early_end_is_always_said(solver, verbose, capsys):
    pairs, y, _ = pairs_and_labels()
    with pytest.warns(ConvergenceWarning, match="did not converge in max_iter=1 steps") as caught:
        model = BML(solver=solver, max_iter=1, verbose=verbose).fit(pairs, y)
    assert caught[0].filename == __file__
    assert not model.converged_
    assert model.n_iter_ == 1
    assert ("lower bound" in capsys.readouterr().out) == bool(verbose)


def test_no_warning_where_it_converged():
    pairs, y, _ = pairs_and_labels()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert BML().fit(pairs, y).converged_


def test_negative_weights_are_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = rng.integers(0, 2, 40)
    same = [i for i in range(39) if (np.abs(X[i] - X[i + 1]).max() > 1) == (y[i] == y[i + 1])]
    pairs = np.stack([X[same], X[np.array(same) + 1]], axis=1)
    far = np.where(np.abs(pairs[:, 0] - pairs[:, 1]).max(axis=1) > 1, 1, -1)
    with pytest.warns(ProjectionWarning, match="2 of 2 weights") as caught:
        model = BML(prior_variance=100.0).fit(pairs, far)
    assert caught[0].filename == __file__
    assert (model.metric_.mean < 0).all()
    assert (model.get_mahalanobis_matrix() == 0).all()


@pytest.mark.parametrize("make", [BML, SupervisedBML])
def test_progress_is_told_and_handed_over(make, capsys):
    heard = []
    model = make(verbose=1, callback=lambda *what: heard.append(what))
    model.fit(*(rows_and_labels(20) if make is SupervisedBML else pairs_and_labels()[:2]))
    out = capsys.readouterr().out.splitlines()
    assert out[0] == f"[{make.__name__}] {190 if make is SupervisedBML else 40} pairs, 3 weights"
    assert len(out) == model.n_iter_ + 1
    assert out[-1].startswith(f"[{make.__name__}] step {model.n_iter_:4d}   lower bound ")
    assert [step for step, _, _ in heard] == list(range(1, model.n_iter_ + 1))
    np.testing.assert_array_equal([bound for _, _, bound in heard], model.lower_bounds_[1:])
    np.testing.assert_allclose(heard[-1][1], model.components_, rtol=ROUNDING, atol=ROUNDING)


PAIRS, LABELS, ROWS = pairs_and_labels()


@pytest.mark.parametrize(
    ("pairs", "y", "message"),
    [
        (PAIRS[:, 0], LABELS, r"pairs must have shape \(n, 2, n_features\).*\(40, 3\).*np.stack"),
        (PAIRS[:, [0, 1, 0]], LABELS, r"pairs must have shape.*\(40, 3, 3\)"),
        (PAIRS[:, :, :0], LABELS, r"pairs must have shape.*\(40, 2, 0\)"),
        (PAIRS[:0], LABELS[:0], "0 sample"),
        (np.where(PAIRS[3, 1, 1] == PAIRS, np.nan, PAIRS), LABELS, "NaN"),
        (np.where(PAIRS[3, 1, 1] == PAIRS, np.inf, PAIRS), LABELS, "infinity"),
        (np.full(PAIRS.shape, "a"), LABELS, "could not convert|dtype"),
        (scipy.sparse.csr_matrix(PAIRS[:, 0]), LABELS, "parse"),
        (PAIRS, None, "y is missing"),
        (PAIRS, LABELS[:-1], "inconsistent numbers of samples"),
        (PAIRS, np.column_stack([LABELS, LABELS]), "y should be a 1d array"),
        (PAIRS, (LABELS + 1) // 2, r"y must hold \+1.*values 0, 1.*np.where\(y, 1, -1\)"),
        (PAIRS, LABELS > 0, r"y must hold \+1 .*values False, True"),
        (PAIRS, LABELS * 1.5, r"y must hold \+1 .*-1.5, 1.5"),
        (PAIRS, np.where(LABELS > 0, 1.0, np.nan), r"y must hold \+1"),
        (PAIRS, np.where(LABELS > 0, "a", "b"), r"y must hold \+1"),
        (PAIRS, np.arange(40), r"values 0, 1, 2, 3, 4, \.\.\."),
        (PAIRS, np.ones(40), r"pairs of one class only \(\+1\)"),
        (PAIRS, -np.ones(40), r"pairs of one class only \(-1\)"),
    ],
)
def test_pairs_and_labels_that_cannot_be_learned_from(pairs, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        BML().fit(pairs, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_weight": -np.ones(40)}, "sample_weight must not be negative"),
        ({"sample_weight": np.zeros(40)}, "zero"),
        ({"sample_weight": np.ones(39)}, "sample_weight"),
        ({"sample_weight": (LABELS > 0).astype(float)}, "pairs of one class only"),
        ({"rows": ROWS[:, :2]}, "rows have 2 features, but those in pairs have 3"),
        ({"rows": ROWS[:1]}, "minimum of 2"),
        ({"rows": np.where(ROWS[0, 0] == ROWS, np.nan, ROWS)}, "NaN"),
    ],
)
def test_weights_and_rows_that_do_not_fit(options, message):
    with pytest.raises(ValueError, match=message):
        BML().fit(PAIRS, LABELS, **options)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_components", 0),
        ("prior_mean", "big"),
        ("prior_variance", -1.0),
        ("prior_variance", [1.0, 2.0]),
        ("threshold_mean", "x"),
        ("threshold_variance", 0.0),
        ("factorized", "yes"),
        ("rescale", None),
        ("solver", "anderson"),
        ("max_iter", 0),
        ("tol", -1e-3),
        ("callback", 3),
    ],
)
@pytest.mark.parametrize("make", [BML, SupervisedBML])
def test_settings_that_mean_nothing(make, parameter, value):
    data = rows_and_labels() if make is SupervisedBML else (PAIRS, LABELS)
    with pytest.raises(ValueError, match=parameter):
        make(**{parameter: value}).fit(*data)


def test_rows_of_one_class_or_a_sample_of_one_kind():
    X, y = rows_and_labels()
    with pytest.raises(ValueError, match="at least two classes"):
        SupervisedBML().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match=r"n_pairs=2 pairs drawn are of different classes"):
        SupervisedBML(n_pairs=2).fit(np.arange(40.0)[:, None], np.arange(40) // 2)
    with pytest.raises(ValueError, match=r"n_pairs=2 pairs drawn are of one class"):
        SupervisedBML(n_pairs=2).fit(np.arange(40.0)[:, None], np.arange(40) // 39)
    with pytest.raises(ValueError, match="n_pairs"):
        SupervisedBML(n_pairs=1).fit(X, y)


@pytest.mark.parametrize(
    "method",
    ["predict", "predict_proba", "decision_function", "pair_distance", "pair_proba", "query"],
)
def test_before_fit_and_with_other_pairs(method):
    with pytest.raises(NotFittedError):
        getattr(BML(), method)(PAIRS)
    model = BML().fit(PAIRS, LABELS)
    with pytest.raises(ValueError, match=r"pairs must have shape \(n, 2, 3\)"):
        getattr(model, method)(PAIRS[:, :, :2])
    with pytest.raises(ValueError, match="NaN"):
        getattr(model, method)(PAIRS * np.nan)


def test_thresholds_and_scores_need_a_fit():
    for act in (
        lambda: BML().set_threshold(1.0),
        lambda: BML().calibrate_threshold(PAIRS, LABELS),
        lambda: BML().score(PAIRS, LABELS),
        lambda: BML().transform(ROWS),
    ):
        with pytest.raises(NotFittedError):
            act()


# Inside scikit-learn.


def checks_of(estimator):
    """`parametrize_with_checks` with a list: pytest 9 warns of scikit-learn 1.6's generator."""
    mark = parametrize_with_checks([estimator])
    names, checks = mark.args
    return pytest.mark.parametrize(names, list(checks), **mark.kwargs)


@checks_of(SupervisedBML())
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_scikit_learn_has_no_checks_for_pairs():
    """It tests what takes rows, and says so of an estimator whose tags name three axes."""
    with pytest.warns(SkipTestWarning, match="three_d_array=True"):
        check_estimator(BML())


def test_bml_is_an_estimator_all_the_same():
    model = BML(prior_mean=np.array([1.0, 2.0, 3.0]), max_iter=50)
    assert is_classifier(model)
    before = model.get_params()
    pairs, y = PAIRS.copy(), LABELS.copy()
    model.fit(pairs, y)
    np.testing.assert_array_equal(pairs, PAIRS)
    np.testing.assert_array_equal(y, LABELS)
    assert model.get_params() == before
    again = clone(model).fit(PAIRS.tolist(), LABELS.tolist())
    np.testing.assert_array_equal(again.predict_proba(PAIRS), model.predict_proba(PAIRS))
    thawed = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(thawed.predict_proba(PAIRS), model.predict_proba(PAIRS))
    model.set_params(prior_mean=1.0).fit(PAIRS[:, :, :2], LABELS)
    assert model.n_features_in_ == 2
    assert model.transform(ROWS[:, :2]).shape == (25, 2)
    assert list(model.get_feature_names_out()) == ["bml0", "bml1"]


def test_bml_can_be_searched_and_validated():
    pairs, y, _ = pairs_and_labels(120)
    search = GridSearchCV(BML(), {"prior_variance": [0.1, 3.0]}, cv=3).fit(pairs, y)
    assert search.best_score_ > 0.6
    for scoring in ("accuracy", "roc_auc", "neg_log_loss", None):
        assert np.isfinite(cross_val_score(BML(), pairs, y, cv=3, scoring=scoring)).all()


def test_docstring_defaults_are_those_of_the_signature():
    for make in (BML, SupervisedBML):
        for name, parameter in list(inspect.signature(make).parameters.items()):
            lines = [x for x in make.__doc__.splitlines() if x.startswith(f"    {name} : ")]
            assert len(lines) == 1, name
            stated = ast.literal_eval(lines[0].partition("default=")[2])
            assert stated == parameter.default, name
