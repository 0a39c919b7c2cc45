from __future__ import annotations

import tracemalloc
import warnings
from functools import cache

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from models import both, published
from sklearn.exceptions import ConvergenceWarning
from strategies import labelled_rows
from tolerances import (
    FLOAT32_FIT,
    NEVER_FALLS,
    ORACLE,
    ROUNDING,
    SAME_FIT,
    SAME_PROBABILITY,
    assert_same_covariance,
    assert_same_sum,
)

from bnca import BayesianNCA, NeighborhoodWarning, ProjectionWarning, learning, selection, votes

# Labels here are half random, so some learned weights are negative; that warning is tested below.
pytestmark = pytest.mark.filterwarnings("ignore::bnca.ProjectionWarning")

SOLVERS = ["published", "newton", "anderson"]


def rows_and_labels(n, width, n_classes, seed):
    """Rows far from the origin whose columns have clearly different scales, labels half random."""
    rng = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(rng.normal(size=(width, width)))
    rows = rng.normal(size=(n, width)) * np.geomspace(3, 0.4, width)
    label = np.digitize(rows[:, 0] + rng.normal(size=n), np.linspace(-2, 2, n_classes + 1)[1:-1])
    return rows @ rotation + 5, label


def grid_with_ties():
    rng = np.random.default_rng(11)
    return rng.integers(0, 4, (16, 2)) * [1.0, 3.0], rng.integers(0, 2, 16)


def with_class_of_one():
    X, y = rows_and_labels(13, 3, 2, 4)
    y[5] = 9
    return X, y


def with_constant_column():
    X, y = rows_and_labels(12, 3, 3, 5)
    return np.insert(X, 1, 7.0, axis=1), y


def with_duplicates():
    """Copies of one label and of two; as_published keeps them all."""
    X, y = rows_and_labels(9, 2, 2, 6)
    y[0] = 1 - y[1]
    X = np.vstack([X, X[:3], X[:1]])
    return X, np.concatenate([y, [y[0], 1 - y[1], y[2]], y[:1]])


CASES = {
    "lopsided": (*rows_and_labels(15, 3, 3, 0), 5),
    "K = 1": (*rows_and_labels(14, 3, 2, 1), 1),
    "K = n - 1": (*rows_and_labels(11, 3, 2, 2), 10),
    "all other rows": (*rows_and_labels(11, 4, 3, 3), None),
    "one class": (rows_and_labels(12, 3, 2, 3)[0], np.zeros(12, dtype=int), 4),
    "class of one": (*with_class_of_one(), 4),
    "class of one, all other rows": (*with_class_of_one(), None),
    "constant column": (*with_constant_column(), 3),
    "duplicates": (*with_duplicates(), 3),
    "wide": (*rows_and_labels(8, 14, 2, 7), 3),
    "ties on a grid": (*grid_with_ties(), 4),
    "one column": (*rows_and_labels(10, 1, 2, 8), 3),
    "two rows": (np.array([[0.0, 1.0], [2.0, 2.0]]), np.zeros(2, dtype=int), 1),
}
PRIORS = {"published": (0.1, 0.001), "wide": (0.3, 0.05)}


@cache
def expected(case, prior):
    """What Algorithm 1 gives by naive loops."""
    X, y, k = CASES[case]
    data = oracle.problem(X, y, k)
    p = data.features.shape[2]
    mean, variance = PRIORS[prior]
    m0, V0 = np.full(p, mean), variance * np.eye(p)
    return data, m0, V0, *oracle.algorithm_1(data, m0, V0)


def fit(case, prior, dtype=np.float64, **overrides):
    X, y, k = CASES[case]
    mean, variance = PRIORS[prior]
    settings = {"prior_mean": mean, "prior_variance": variance, "tol": 1e-13, "max_iter": 10_000}
    model = BayesianNCA.as_published(n_neighbors=k, **(settings | overrides))
    return model.fit(X.astype(dtype), y)


# The published method against naive loops over its equations.


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("case", CASES)
def test_posterior_is_that_of_algorithm_1(case, prior, solver):
    model = fit(case, prior, solver=solver)
    _, _, _, mean, covariance = expected(case, prior)
    assert model.converged_
    assert model.scale_ == 1
    np.testing.assert_allclose(model.metric_.mean, mean, rtol=ORACLE["float64"])
    assert_same_covariance(model.metric_.covariance, covariance, ORACLE["float64"])


@pytest.mark.parametrize("case", CASES)
def test_axes_are_eigenvectors_of_the_centred_scatter(case):
    axes = oracle.eigen_axes(CASES[case][0])
    found = fit(case, "published").metric_.directions
    assert found.shape == axes.shape
    np.testing.assert_allclose(np.abs(np.einsum("ij,ij->j", found, axes)), 1, rtol=ROUNDING)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("case", CASES)
def test_posterior_of_single_precision_rows(case, solver):
    """Against the loops where rounding the rows changes nothing, else against the same rows."""
    X, y, k = CASES[case]
    single = X.astype(np.float32)
    parameters = {"n_neighbors": k, "tol": 1e-7, "max_iter": 10_000}
    model = BayesianNCA.as_published(solver=solver, **parameters).fit(single, y)
    double = BayesianNCA.as_published(solver="newton", **parameters).fit(single.astype(float), y)
    scale = np.sqrt(np.diag(double.metric_.covariance))
    np.testing.assert_allclose(
        model.metric_.mean / scale, double.metric_.mean / scale, rtol=0, atol=ORACLE["float32"]
    )
    assert_same_covariance(model.metric_.covariance, double.metric_.covariance, ORACLE["float32"])
    if (single == X).all():
        covariance = expected(case, "published")[-1]
        assert_same_covariance(model.metric_.covariance, covariance, ORACLE["float32"])


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("case", CASES)
def test_lower_bound_is_the_naive_one_and_never_falls(case, solver):
    model = fit(case, "wide", solver=solver)
    data, m0, V0, _, _ = expected(case, "wide")
    bounds = model.lower_bounds_
    assert bounds.shape == (model.n_iter_ + 1,)
    assert model.lower_bound_ == bounds[-1]
    assert (np.diff(bounds) >= -NEVER_FALLS * np.abs(bounds).max()).all()
    start = oracle.lower_bound(data, m0, m0, V0)
    np.testing.assert_allclose(bounds[0], start, rtol=ROUNDING, atol=ROUNDING)
    end = oracle.lower_bound(data, model.metric_.mean, m0, V0)
    np.testing.assert_allclose(bounds[-1], end, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("case", CASES)
def test_lower_bound_is_below_the_likelihood_and_prior_it_bounds(case):
    model = fit(case, "wide")
    data, m0, V0, _, _ = expected(case, "wide")
    mean = model.metric_.mean
    bounded = oracle.log_likelihood(data, mean) + oracle.log_prior(mean, m0, V0)
    assert model.lower_bound_ <= bounded + ROUNDING


@settings(max_examples=60)
@given(labelled_rows())
def test_posterior_of_awkward_data(drawn):
    X, y, k = drawn
    data = oracle.problem(X, y, k)
    p = data.features.shape[2]
    mean, covariance = oracle.algorithm_1(data, np.full(p, 0.1), np.eye(p) / 100, tol=1e-13)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProjectionWarning)
        model = BayesianNCA.as_published(
            n_neighbors=k, prior_variance=0.01, solver="newton", tol=1e-13
        ).fit(X, y)
    # Relative to the prior's standard deviation: a weight may happen to be almost zero.
    np.testing.assert_allclose(
        model.metric_.mean, mean, rtol=ORACLE["float64"], atol=ORACLE["float64"] * 0.1
    )
    assert_same_covariance(model.metric_.covariance, covariance, ORACLE["float64"])


@pytest.mark.parametrize(
    ("mean", "variance"),
    [
        ([0.5, 0.1, 0.3], 0.01),
        (0.2, [0.01, 0.1, 0.001]),
        ([0.5, 0.1, 0.3], [[0.02, 0.005, 0.0], [0.005, 0.01, -0.002], [0.0, -0.002, 0.03]]),
    ],
)
def test_priors_of_every_shape(mean, variance):
    X, y, k = CASES["lopsided"]
    data = oracle.problem(X, y, k)
    m0 = np.broadcast_to(mean, 3).astype(float)
    V0 = np.array(variance) if np.ndim(variance) == 2 else np.diag(np.broadcast_to(variance, 3))
    m, V = oracle.algorithm_1(data, m0, V0)
    model = fit("lopsided", "wide", prior_mean=mean, prior_variance=variance, solver="newton")
    np.testing.assert_allclose(model.metric_.mean, m, rtol=ORACLE["float64"])
    assert_same_covariance(model.metric_.covariance, V, ORACLE["float64"])


def test_fewer_components_are_the_leading_axes_and_their_neighborhoods():
    X, y, k = CASES["all other rows"][0], CASES["all other rows"][1], 3
    data = oracle.problem(X, y, k, n_components=2)
    m, V = oracle.algorithm_1(data, np.full(2, 0.1), 0.01 * np.eye(2))
    model = BayesianNCA.as_published(
        n_neighbors=k, n_components=2, prior_variance=0.01, tol=1e-13, max_iter=10_000
    ).fit(X, y)
    np.testing.assert_allclose(model.metric_.mean, m, rtol=ORACLE["float64"])
    assert_same_covariance(model.metric_.covariance, V, ORACLE["float64"])


@pytest.mark.parametrize("k", [4, None])
def test_rescaled_prior_is_one_on_data_of_unit_neighbor_distance(k):
    """scale_ is the median over rows of their mean squared distance to their neighbours."""
    X, y, _ = CASES["K = n - 1"]
    rows = (X - X.mean(axis=0)) @ oracle.eigen_axes(X)
    lists = oracle.neighbor_lists(rows, k or len(X) - 1)
    unit = np.median(
        [np.mean([sum((r - rows[t]) ** 2) for t in ts]) for r, ts in zip(rows, lists, strict=True)]
    )
    data = oracle.problem(X, y, k, unit=unit)
    m, V = oracle.algorithm_1(data, np.full(3, 2.0), 0.5 * np.eye(3))
    model = published(k, prior_mean=2.0, prior_variance=0.5, tol=1e-13).fit(X, y)
    np.testing.assert_allclose(model.scale_, unit, rtol=ROUNDING)
    np.testing.assert_allclose(model.metric_.mean * unit, m, rtol=ORACLE["float64"])
    assert_same_covariance(model.metric_.covariance * unit**2, V, ORACLE["float64"])


def test_without_friends_anywhere_the_posterior_is_the_prior():
    """Each row's nearest neighbour is of the other class."""
    X = np.array([[0.0], [0.1], [10.0], [10.1], [20.0], [20.1]])
    model = BayesianNCA.as_published(n_neighbors=1).fit(X, [0, 1] * 3)
    np.testing.assert_allclose(model.metric_.mean, [0.1])
    np.testing.assert_allclose(model.metric_.covariance, [[0.001]])
    assert model.converged_


# Solvers.


def test_solvers_meet_and_the_faster_ones_take_fewer_steps(blobs):
    models = {
        solver: published(8, solver=solver, tol=1e-8, max_iter=20_000).fit(*blobs)
        for solver in SOLVERS
    }
    for model in models.values():
        np.testing.assert_allclose(model.metric_.mean, models["newton"].metric_.mean, rtol=SAME_FIT)
        np.testing.assert_array_equal(model.metric_.covariance, models["newton"].metric_.covariance)
    steps = {solver: model.n_iter_ for solver, model in models.items()}
    assert steps["newton"] <= steps["anderson"] < steps["published"] / 2


@pytest.mark.parametrize("verbose", [0, 1])
@pytest.mark.parametrize(
    ("make", "solver"), [(published, s) for s in SOLVERS] + [(BayesianNCA, "newton")]
)
def test_too_few_steps_are_warned_about_however_quiet(blobs, make, solver, verbose, capsys):
    model = make(8, solver=solver, max_iter=1, tol=1e-9, verbose=verbose)
    with pytest.warns(ConvergenceWarning, match=r"did not converge in max_iter=1 steps.*Increase"):
        model.fit(*blobs)
    assert not model.converged_
    assert model.n_iter_ == 1
    printed = capsys.readouterr().out
    assert ("[BayesianNCA] 80 rows, K = 8\n" in printed) == bool(verbose)
    assert printed.count("step    1") == verbose  # of the metric alone, not of all that were tried
    assert verbose or not printed


PICKS = {"prior_center": "euclidean", "prior_variance": 0.3, "label_noise": 0.1, "vote": "softmax"}


@pytest.mark.parametrize(
    ("make", "settled"), [(published, {}), (BayesianNCA, PICKS)], ids=["published", "picks"]
)
def test_warm_start_ends_at_the_same_optimum(blobs, make, settled, monkeypatch):
    cold = make(8, **settled).fit(*blobs)
    monkeypatch.setattr(learning, "WARM_START", 50)
    warm = make(8, **settled).fit(*blobs)
    assert_same_sum(warm.metric_.mean, cold.metric_.mean, SAME_FIT)
    # Only that of picks, the inverse of the Hessian at the mean, depends on the mean.
    rtol = 0 if make is published else SAME_FIT
    assert_same_covariance(warm.metric_.covariance, cold.metric_.covariance, rtol)
    # Eight anchors are too few to start picks nearer than the prior mean is.
    if make is published:
        assert warm.lower_bounds_[0] > cold.lower_bounds_[0]
    assert warm.lower_bounds_[0] != cold.lower_bounds_[0]
    assert warm.lower_bounds_[0] < warm.lower_bound_


def test_many_rows_start_warm():
    """Above the threshold as it is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(learning.WARM_START + 1000, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=len(X)) > 0).astype(int)
    warm = published(3).fit(X, y)
    cold = published(3, solver="anderson", tol=1e-8, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(warm.metric_.mean, cold.metric_.mean, rtol=SAME_FIT)
    assert warm.lower_bounds_[0] > cold.lower_bounds_[0]


# What a fit must not depend on.


def probabilities(make, X, y, queries, **parameters):
    return make(8, **parameters).fit(X, y).predict_proba(queries)


@pytest.fixture(scope="module")
def queries(blobs):
    rng = np.random.default_rng(1)
    return blobs[0][:30] + rng.normal(size=(30, 4))


@both
@pytest.mark.parametrize("parameters", [{}, {"rescale": False, "prior_mean": 0.5}])
def test_order_of_rows_does_not_matter(make, blobs, queries, parameters):
    X, y = blobs
    order = np.random.default_rng(2).permutation(len(X))
    here, there = (
        make(8, **parameters).fit(X, y),
        make(8, **parameters).fit(X[order], y[order]),
    )
    np.testing.assert_allclose(there.metric_.mean, here.metric_.mean, rtol=SAME_FIT)
    assert_same_covariance(there.metric_.covariance, here.metric_.covariance, ROUNDING)
    np.testing.assert_allclose(
        there.predict_proba(queries), here.predict_proba(queries), rtol=0, atol=SAME_PROBABILITY
    )
    np.testing.assert_array_equal(order[there.kneighbors(queries)[1]], here.kneighbors(queries)[1])


@both
def test_names_of_labels_do_not_matter(make, blobs, queries):
    X, y = blobs
    names = np.array(["c", "a", "b"])  # sorted otherwise than 0, 1, 2
    renamed = make(8).fit(X, names[y])
    expected = make(8).fit(X, y)
    np.testing.assert_array_equal(renamed.classes_, ["a", "b", "c"])
    # Sums over classes are in another order, and nothing else is: not a digit as published.
    exact = make is published
    assert_same_sum(renamed.metric_.mean, expected.metric_.mean, 0 if exact else ROUNDING)
    np.testing.assert_allclose(
        renamed.predict_proba(queries)[:, [2, 0, 1]],
        expected.predict_proba(queries),
        rtol=0,
        atol=0 if exact else SAME_PROBABILITY,
    )
    np.testing.assert_array_equal(renamed.predict(queries), names[expected.predict(queries)])


def as_published(n_neighbors):
    return BayesianNCA.as_published(n_neighbors=n_neighbors)


def around_a_sphere(n_neighbors):
    """Return the default but for the centre: spreads of columns change as axes are turned."""
    return BayesianNCA(n_neighbors, prior_center="euclidean")


@pytest.mark.parametrize("shift", [30.0, 1e6])
@pytest.mark.parametrize(
    ("make", "turned"),
    [(as_published, True), (published, True), (around_a_sphere, True), (BayesianNCA, False)],
)
def test_rotating_and_shifting_rows_does_not_matter(blobs, queries, make, turned, shift):
    X, y = blobs
    rotation = np.eye(4)
    if turned:
        rotation, _ = np.linalg.qr(np.random.default_rng(3).normal(size=(4, 4)))
    here, there = make(8).fit(X, y), make(8).fit(X @ rotation + shift, y)
    if here.metric_.full == 0:
        np.testing.assert_allclose(there.metric_.mean, here.metric_.mean, rtol=SAME_FIT)
    np.testing.assert_allclose(
        rotation @ there.get_mahalanobis_matrix() @ rotation.T,
        here.get_mahalanobis_matrix(),
        atol=SAME_FIT,
    )
    np.testing.assert_allclose(
        there.predict_proba(queries @ rotation + shift),
        here.predict_proba(queries),
        rtol=0,
        atol=SAME_PROBABILITY,
    )


@pytest.mark.parametrize(
    ("make", "vote"),
    [
        (published, "posterior"),
        (published, "softmax"),
        (published, "distance"),
        (published, "uniform"),
        (BayesianNCA, "posterior"),
        (BayesianNCA, "smooth"),
    ],
)
@pytest.mark.parametrize("factor", [1e-20, 1e-3, 1e3, 1e20])
def test_unit_of_the_rows_does_not_matter(blobs, queries, factor, make, vote):
    X, y = blobs
    expected = probabilities(make, X, y, queries, vote=vote)
    found = probabilities(make, X * factor, y, queries * factor, vote=vote)
    np.testing.assert_allclose(found, expected, rtol=0, atol=SAME_PROBABILITY)


@pytest.mark.parametrize("factor", [1e-3, 10.0])
def test_unit_of_the_rows_matters_to_the_published_prior(blobs, queries, factor):
    X, y = blobs
    model = BayesianNCA.as_published(n_neighbors=8, solver="newton")
    expected = model.fit(X, y).predict_proba(queries)
    found = model.fit(X * factor, y).predict_proba(queries * factor)
    assert np.abs(found - expected).max() > 0.1


@both
@pytest.mark.parametrize("n_neighbors", [8, None])
@pytest.mark.parametrize("block_size", [1, 7, 64, 10_000])
def test_block_size_does_not_matter(make, blobs, block_size, n_neighbors):
    expected = make(n_neighbors).fit(*blobs)
    model = make(n_neighbors, block_size=block_size).fit(*blobs)
    assert_same_sum(model.metric_.mean, expected.metric_.mean, SAME_FIT)
    assert_same_covariance(model.metric_.covariance, expected.metric_.covariance, ROUNDING)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # 20 steps show it
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_neighbors", [6, None])
@pytest.mark.parametrize("solver", SOLVERS)
def test_number_of_threads_changes_no_bit(n_neighbors, solver, dtype):
    X, y = rows_and_labels(300, 4, 3, 9)
    X = X.astype(dtype)
    alone, together = (
        published(n_neighbors, solver=solver, block_size=8, max_iter=20, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(together.metric_.mean, alone.metric_.mean)
    np.testing.assert_array_equal(together.metric_.covariance, alone.metric_.covariance)
    np.testing.assert_array_equal(together.lower_bounds_, alone.lower_bounds_)
    np.testing.assert_array_equal(together.predict_proba(X), alone.predict_proba(X))
    for mine, theirs in zip(together.kneighbors(X), alone.kneighbors(X), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_neighbors", [6, None])
def test_number_of_threads_changes_no_bit_of_what_settles_itself(n_neighbors, dtype):
    """With three in ten labels wrong, so that all are looked at a second time."""
    rng = np.random.default_rng(9)
    truth = rng.integers(0, 3, 120)
    X = (rng.normal(size=(120, 4)) * [1, 2, 0.5, 1] + 6 * np.eye(4)[truth]).astype(dtype)
    y = np.where(rng.random(120) < 0.3, (truth + rng.integers(1, 3, 120)) % 3, truth)
    alone, together, again = (
        BayesianNCA(n_neighbors, block_size=8, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2, 2)
    )
    for other in (together, again, together.fit(X, y)):
        np.testing.assert_array_equal(other.metric_.mean, alone.metric_.mean)
        np.testing.assert_array_equal(other.metric_.covariance, alone.metric_.covariance)
        np.testing.assert_array_equal(other.label_posterior_, alone.label_posterior_)
        np.testing.assert_array_equal(other.predict_proba(X), alone.predict_proba(X))
        assert other.choices_ == alone.choices_
        assert other.label_noise_ == alone.label_noise_ > 0.05


@both
def test_single_precision_rows_give_nearly_the_same_model(make, blobs, queries):
    X, y = blobs
    expected, model = make(8).fit(X, y), make(8).fit(X.astype(np.float32), y)
    scale = np.sqrt(np.diag(expected.metric_.covariance))
    assert (np.abs(model.metric_.mean - expected.metric_.mean) < FLOAT32_FIT * scale).all()
    np.testing.assert_allclose(
        model.predict_proba(queries.astype(np.float32)),
        expected.predict_proba(queries),
        atol=FLOAT32_FIT,
    )


# Weights of rows, and copies.


WEIGHTS = np.array([1, 3, 2, 1, 4, 1, 2, 1, 1, 5, 1, 1, 2, 1, 3])


@pytest.mark.parametrize("solver", SOLVERS)
def test_integer_weights_repeat_the_terms_of_their_anchors(solver):
    X, y, k = CASES["lopsided"]
    data = oracle.problem(X, y, k)
    repeated = oracle.Problem(
        np.repeat(data.features, WEIGHTS, axis=0),
        np.repeat(data.agree, WEIGHTS, axis=0),
        np.ones(WEIGHTS.sum()),
    )
    m, V = oracle.algorithm_1(repeated, np.full(3, 0.1), 0.01 * np.eye(3))
    model = BayesianNCA.as_published(
        n_neighbors=k, prior_variance=0.01, solver=solver, tol=1e-13, max_iter=10_000
    ).fit(X, y, sample_weight=WEIGHTS)
    np.testing.assert_allclose(model.metric_.mean, m, rtol=ORACLE["float64"])
    assert_same_covariance(model.metric_.covariance, V, ORACLE["float64"])


@pytest.mark.parametrize("k", [4, None])
def test_kept_rows_of_weight_zero_are_neighbors_but_no_anchors(k):
    X, y, _ = CASES["K = n - 1"]
    weights = np.where(np.arange(11) % 4 == 0, 0.0, 0.5)
    data = oracle.problem(X, y, k, weights=weights)
    m, V = oracle.algorithm_1(data, np.full(3, 0.1), 0.01 * np.eye(3))
    model = BayesianNCA.as_published(n_neighbors=k, prior_variance=0.01, tol=1e-13, max_iter=10_000)
    model.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.metric_.mean, m, rtol=ORACLE["float64"])
    assert_same_covariance(model.metric_.covariance, V, ORACLE["float64"])
    assert 0 in model.kneighbors(X[:1], 1, return_distance=False)


@both
@pytest.mark.parametrize("k", [4, "auto", None])
def test_merged_copies_count_as_weights(make, k):
    X, y, _ = CASES["lopsided"]
    places = np.random.default_rng(4).permutation(np.repeat(np.arange(15), WEIGHTS))
    weighted = make(k, duplicates="merge").fit(X, y, sample_weight=WEIGHTS)
    repeated = make(k, duplicates="merge").fit(X[places], y[places])
    assert repeated.scale_ == pytest.approx(weighted.scale_, rel=ROUNDING)
    assert repeated.n_neighbors_ == weighted.n_neighbors_
    np.testing.assert_allclose(repeated.metric_.mean, weighted.metric_.mean, rtol=SAME_FIT)
    assert_same_covariance(repeated.metric_.covariance, weighted.metric_.covariance, ROUNDING)
    np.testing.assert_allclose(
        repeated.predict_proba(X), weighted.predict_proba(X), rtol=0, atol=SAME_PROBABILITY
    )
    if make is not published:
        np.testing.assert_allclose(
            repeated.label_posterior_,
            weighted.label_posterior_[places],
            rtol=0,
            atol=SAME_PROBABILITY,
        )
    # Neighbours are named by a row that was passed: the first copy of the same row.
    found = repeated.kneighbors(X + 0.1, 5, return_distance=False)
    np.testing.assert_array_equal(places[found], weighted.kneighbors(X + 0.1, 5)[1])
    assert all(i == np.flatnonzero(places == places[i])[0] for i in found.ravel())


@both
def test_equal_rows_with_different_labels_are_not_merged(make):
    X, y, _ = CASES["lopsided"]
    model = make(4).fit(np.vstack([X, X[:2]]), np.concatenate([y, y[:2] + 1]))
    found = model.kneighbors(X[:2], 2)
    np.testing.assert_array_equal(found[1], [[0, 15], [1, 16]])
    assert not found[0].any()


def test_kept_copies_crowd_the_neighborhoods():
    """Why merging is the default: with three copies of each row, K = 2 sees nothing but copies."""
    X, y, _ = CASES["lopsided"]
    X, y = np.tile(X, (3, 1)), np.tile(y, 3)
    model = BayesianNCA.as_published(n_neighbors=2).fit(X, y)
    np.testing.assert_allclose(model.metric_.mean, 0.1)  # the prior: nothing was learned
    merged = BayesianNCA.as_published(n_neighbors=2, duplicates="merge").fit(X, y)
    assert np.abs(merged.metric_.mean - 0.1).max() > 1e-3


@both
@pytest.mark.parametrize("sparse", [False, True])
def test_merged_rows_of_weight_zero_are_left_out(make, sparse):
    import scipy.sparse

    X, y, _ = CASES["lopsided"]
    used = np.arange(15) % 4 > 0
    rows = scipy.sparse.csr_matrix(X) if sparse else X
    model = make(4).fit(rows, y, sample_weight=2.0 * used)
    expected = make(4).fit(X[used], y[used], sample_weight=np.full(used.sum(), 2.0))
    np.testing.assert_allclose(model.metric_.mean, expected.metric_.mean, rtol=SAME_FIT)
    found = model.kneighbors(X, 3, return_distance=False)
    np.testing.assert_array_equal(
        found, np.flatnonzero(used)[expected.kneighbors(X, 3, return_distance=False)]
    )


# Words where something gave way.


@both
def test_a_neighborhood_larger_than_the_data_shrinks_with_a_warning(make, blobs):
    X, y = blobs
    with pytest.warns(
        NeighborhoodWarning, match="n_neighbors=80 is more than the 79 other"
    ) as seen:
        model = make(80).fit(X, y)
    assert seen[0].filename == __file__
    assert model.n_neighbors_ == 79
    expected = make(79).fit(X, y)
    np.testing.assert_array_equal(model.metric_.mean, expected.metric_.mean)


@both
@pytest.mark.parametrize(
    ("n_neighbors", "n", "used"), [("auto", 80, 20), ("auto", 10, 9), (None, 10, 9)]
)
def test_neighborhoods_left_to_us_need_no_warning(make, blobs, n_neighbors, n, used):
    X, y = blobs
    with warnings.catch_warnings():
        warnings.simplefilter("error", NeighborhoodWarning)
        assert make(n_neighbors).fit(X[:n], y[:n]).n_neighbors_ == used


@both
def test_asking_for_all_neighbors_by_number_or_by_none_is_the_same(make, blobs):
    by_number, by_none = make(79).fit(*blobs), make(None).fit(*blobs)
    assert by_none.scale_ == pytest.approx(by_number.scale_, rel=ROUNDING)
    assert_same_sum(by_none.metric_.mean, by_number.metric_.mean, SAME_FIT)
    # Metrics that were only tried stop early: they differ by more than an optimum does.
    np.testing.assert_allclose(
        by_none.predict_proba(blobs[0]),
        by_number.predict_proba(blobs[0]),
        rtol=0,
        atol=10 * SAME_PROBABILITY,
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("variance", [1e-6, 0.3])
def test_projection_is_warned_about_when_and_only_when_weights_are_negative(seed, variance):
    X, y = rows_and_labels(20, 3, 2, seed)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = BayesianNCA.as_published(
            n_neighbors=4, prior_variance=variance, solver="newton"
        ).fit(X, y)
    negative = (model.metric_.mean < 0).sum()
    words = [str(w.message) for w in seen if issubclass(w.category, ProjectionWarning)]
    assert len(words) == (negative > 0)
    assert model.metric_.is_projected == bool(negative)
    if negative:
        assert words[0].startswith(f"{negative} of the weights of the posterior mean are negative;")
        assert seen[0].filename == __file__


def test_both_outcomes_of_the_projection_test_occur():
    tight, loose = (
        fit("class of one", "published", prior_variance=variance, solver="newton").metric_
        for variance in (1e-6, 0.3)
    )
    assert not tight.is_projected
    assert loose.is_projected


@pytest.mark.parametrize("variance", ["auto", 3.0])
def test_projection_is_warned_about_only_where_the_variance_was_asked_for(variance):
    """One that was chosen was chosen by metrics so projected.

    Classes take turns along the long axis: the nearer a neighbour, the likelier of the other class.
    """
    rng = np.random.default_rng(0)
    X, y = np.column_stack([np.arange(40.0), 0.1 * rng.normal(size=40)]), np.arange(40) % 2
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = BayesianNCA(4, prior_mean=0.5, prior_variance=variance).fit(X, y)
    assert model.metric_.is_projected
    words = [w for w in seen if issubclass(w.category, ProjectionWarning)]
    assert len(words) == (variance != "auto")
    assert all(w.filename == __file__ for w in words)


def test_negative_weights_stay_in_the_posterior_and_leave_the_metric():
    X = CASES["class of one"][0]
    model = fit("class of one", "published", prior_variance=0.3, solver="newton")
    axes, mean = model.metric_.directions, model.metric_.mean
    worst = int(mean.argmin())
    assert mean[worst] < 0
    pair = np.stack([X[0], X[0] + axes[:, worst]])[None]
    np.testing.assert_allclose(model.pair_distance(pair), mean[worst], rtol=1e-7)
    projected = (axes * np.maximum(mean, 0)) @ axes.T
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), projected, atol=1e-14)
    moved = model.transform(pair[0])
    np.testing.assert_allclose(moved[0], moved[1], rtol=0, atol=1e-7)


# Memory.


def peak_of(fit):
    tracemalloc.start()
    try:
        fit()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@both
def test_features_of_all_neighborhoods_are_never_in_memory_at_once(make):
    n, K, p = 10_000, 20, 40
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)) * np.geomspace(3, 0.3, p)
    y = (X[:, 0] > 0).astype(int)
    # What grows with n are copies of the rows (3 MB each: scores, scaled scores, what search works
    # on, embedding) and the lists (2 MB); blocks are a few MB whatever n.  Features would be 64.
    settled = {"prior_center": "scaled", "prior_variance": 0.3, "label_noise": 0.0}
    model = make(K, tol=1e-2, n_jobs=1, **(settled | {"vote": "softmax"}))
    assert peak_of(lambda: model.fit(X, y)) < 0.45 * n * K * p * 8


def test_all_other_rows_as_neighbors_need_no_square_array():
    n = 2500
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3)) * [3.0, 1.0, 0.3]
    y = (X[:, 0] > 0).astype(int)
    model = published(None, tol=1e-1, n_jobs=1)
    assert peak_of(lambda: model.fit(X, y)) < 0.7 * n * n * 8


@pytest.mark.parametrize("n_neighbors", ["auto", None])
def test_smooth_votes_of_many_rows_need_no_square_array(n_neighbors, monkeypatch):
    """With fewer rows to choose on and fewer landmarks, as their squares are there for any n."""
    monkeypatch.setattr(selection, "CHOICE_ROWS", 100)
    monkeypatch.setattr(votes, "EXACT_ROWS", 200)
    monkeypatch.setattr(votes, "LANDMARKS", 100)
    n = 1500
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3)) * [3.0, 1.0, 0.3]
    y = (X[:, 0] > 0).astype(int)
    model = BayesianNCA(n_neighbors, tol=1e-1, max_iter=10, n_jobs=1)
    assert peak_of(lambda: model.fit(X, y).predict_proba(X)) < 0.7 * n * n * 8
    assert model.score(X, y) > 0.95
    assert model.label_posterior_.shape == (n, 2)
