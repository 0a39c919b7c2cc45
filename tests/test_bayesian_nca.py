from __future__ import annotations

import tracemalloc
import warnings
from functools import cache

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
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
)

from bnca import BayesianNCA, NeighborhoodWarning, ProjectionWarning
from bnca import bayesian_nca as module

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
    model = BayesianNCA(k, prior_mean=2.0, prior_variance=0.5, tol=1e-13).fit(X, y)
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
        solver: BayesianNCA(8, solver=solver, tol=1e-8, max_iter=20_000).fit(*blobs)
        for solver in SOLVERS
    }
    for model in models.values():
        np.testing.assert_allclose(model.metric_.mean, models["newton"].metric_.mean, rtol=SAME_FIT)
        np.testing.assert_array_equal(model.metric_.covariance, models["newton"].metric_.covariance)
    steps = {solver: model.n_iter_ for solver, model in models.items()}
    assert steps["newton"] <= steps["anderson"] < steps["published"] / 2


@pytest.mark.parametrize("verbose", [0, 1])
@pytest.mark.parametrize("solver", SOLVERS)
def test_too_few_steps_are_warned_about_however_quiet(blobs, solver, verbose, capsys):
    model = BayesianNCA(8, solver=solver, max_iter=1, tol=1e-9, verbose=verbose)
    with pytest.warns(ConvergenceWarning, match=r"did not converge in max_iter=1 steps.*Increase"):
        model.fit(*blobs)
    assert not model.converged_
    assert model.n_iter_ == 1
    printed = capsys.readouterr().out
    assert ("step    1" in printed) == bool(verbose)
    assert verbose or not printed


def test_warm_start_ends_at_the_same_optimum(blobs, monkeypatch):
    cold = BayesianNCA(8).fit(*blobs)
    monkeypatch.setattr(module, "WARM_START", 50)
    warm = BayesianNCA(8).fit(*blobs)
    np.testing.assert_allclose(warm.metric_.mean, cold.metric_.mean, rtol=SAME_FIT)
    np.testing.assert_array_equal(warm.metric_.covariance, cold.metric_.covariance)
    assert warm.lower_bounds_[0] > cold.lower_bounds_[0]
    assert warm.lower_bounds_[0] < warm.lower_bound_


def test_many_rows_start_warm():
    """Above the threshold as it is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(module.WARM_START + 1000, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=len(X)) > 0).astype(int)
    warm = BayesianNCA(3).fit(X, y)
    cold = BayesianNCA(3, solver="anderson", tol=1e-8, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(warm.metric_.mean, cold.metric_.mean, rtol=SAME_FIT)
    assert warm.lower_bounds_[0] > cold.lower_bounds_[0]


# What a fit must not depend on.


def probabilities(X, y, queries, **parameters):
    return BayesianNCA(8, **parameters).fit(X, y).predict_proba(queries)


@pytest.fixture(scope="module")
def queries(blobs):
    rng = np.random.default_rng(1)
    return blobs[0][:30] + rng.normal(size=(30, 4))


@pytest.mark.parametrize("parameters", [{}, {"rescale": False, "prior_mean": 0.5}])
def test_order_of_rows_does_not_matter(blobs, queries, parameters):
    X, y = blobs
    order = np.random.default_rng(2).permutation(len(X))
    here, there = (
        BayesianNCA(8, **parameters).fit(X, y),
        BayesianNCA(8, **parameters).fit(X[order], y[order]),
    )
    np.testing.assert_allclose(there.metric_.mean, here.metric_.mean, rtol=SAME_FIT)
    assert_same_covariance(there.metric_.covariance, here.metric_.covariance, ROUNDING)
    np.testing.assert_allclose(
        there.predict_proba(queries), here.predict_proba(queries), rtol=0, atol=SAME_PROBABILITY
    )
    np.testing.assert_array_equal(order[there.kneighbors(queries)[1]], here.kneighbors(queries)[1])


def test_names_of_labels_do_not_matter(blobs, queries):
    X, y = blobs
    names = np.array(["c", "a", "b"])  # sorted otherwise than 0, 1, 2
    renamed = BayesianNCA(8).fit(X, names[y])
    expected = BayesianNCA(8).fit(X, y)
    np.testing.assert_array_equal(renamed.classes_, ["a", "b", "c"])
    np.testing.assert_array_equal(renamed.metric_.mean, expected.metric_.mean)
    np.testing.assert_array_equal(
        renamed.predict_proba(queries)[:, [2, 0, 1]], expected.predict_proba(queries)
    )
    np.testing.assert_array_equal(renamed.predict(queries), names[expected.predict(queries)])


@pytest.mark.parametrize("shift", [30.0, 1e6])
@pytest.mark.parametrize("published", [False, True])
def test_rotating_and_shifting_rows_does_not_matter(blobs, queries, published, shift):
    X, y = blobs
    rotation, _ = np.linalg.qr(np.random.default_rng(3).normal(size=(4, 4)))

    def model():
        return BayesianNCA.as_published(n_neighbors=8) if published else BayesianNCA(8)

    here, there = model().fit(X, y), model().fit(X @ rotation + shift, y)
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


@pytest.mark.parametrize("vote", ["posterior", "softmax", "distance", "uniform"])
@pytest.mark.parametrize("factor", [1e-20, 1e-3, 1e3, 1e20])
def test_unit_of_the_rows_does_not_matter(blobs, queries, factor, vote):
    X, y = blobs
    expected = probabilities(X, y, queries, vote=vote)
    found = probabilities(X * factor, y, queries * factor, vote=vote)
    np.testing.assert_allclose(found, expected, rtol=0, atol=SAME_PROBABILITY)


@pytest.mark.parametrize("factor", [1e-3, 10.0])
def test_unit_of_the_rows_matters_to_the_published_prior(blobs, queries, factor):
    X, y = blobs
    model = BayesianNCA.as_published(n_neighbors=8, solver="newton")
    expected = model.fit(X, y).predict_proba(queries)
    found = model.fit(X * factor, y).predict_proba(queries * factor)
    assert np.abs(found - expected).max() > 0.1


@pytest.mark.parametrize("n_neighbors", [8, None])
@pytest.mark.parametrize("block_size", [1, 7, 64, 10_000])
def test_block_size_does_not_matter(blobs, block_size, n_neighbors):
    expected = BayesianNCA(n_neighbors).fit(*blobs)
    model = BayesianNCA(n_neighbors, block_size=block_size).fit(*blobs)
    np.testing.assert_allclose(model.metric_.mean, expected.metric_.mean, rtol=SAME_FIT)
    assert_same_covariance(model.metric_.covariance, expected.metric_.covariance, ROUNDING)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # 20 steps show it
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_neighbors", [6, None])
@pytest.mark.parametrize("solver", SOLVERS)
def test_number_of_threads_changes_no_bit(n_neighbors, solver, dtype):
    X, y = rows_and_labels(300, 4, 3, 9)
    X = X.astype(dtype)
    alone, together = (
        BayesianNCA(n_neighbors, solver=solver, block_size=8, max_iter=20, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(together.metric_.mean, alone.metric_.mean)
    np.testing.assert_array_equal(together.metric_.covariance, alone.metric_.covariance)
    np.testing.assert_array_equal(together.lower_bounds_, alone.lower_bounds_)
    np.testing.assert_array_equal(together.predict_proba(X), alone.predict_proba(X))
    for mine, theirs in zip(together.kneighbors(X), alone.kneighbors(X), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_single_precision_rows_give_nearly_the_same_model(blobs, queries):
    X, y = blobs
    expected, model = BayesianNCA(8).fit(X, y), BayesianNCA(8).fit(X.astype(np.float32), y)
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


@pytest.mark.parametrize("k", [4, "auto", None])
def test_merged_copies_count_as_weights(k):
    X, y, _ = CASES["lopsided"]
    places = np.random.default_rng(4).permutation(np.repeat(np.arange(15), WEIGHTS))
    weighted = BayesianNCA(k, duplicates="merge").fit(X, y, sample_weight=WEIGHTS)
    repeated = BayesianNCA(k, duplicates="merge").fit(X[places], y[places])
    assert repeated.scale_ == pytest.approx(weighted.scale_, rel=ROUNDING)
    assert repeated.n_neighbors_ == weighted.n_neighbors_
    np.testing.assert_allclose(repeated.metric_.mean, weighted.metric_.mean, rtol=SAME_FIT)
    assert_same_covariance(repeated.metric_.covariance, weighted.metric_.covariance, ROUNDING)
    np.testing.assert_allclose(
        repeated.predict_proba(X), weighted.predict_proba(X), rtol=0, atol=SAME_PROBABILITY
    )
    # Neighbours are named by a row that was passed: the first copy of the same row.
    found = repeated.kneighbors(X + 0.1, 5, return_distance=False)
    np.testing.assert_array_equal(places[found], weighted.kneighbors(X + 0.1, 5)[1])
    assert all(i == np.flatnonzero(places == places[i])[0] for i in found.ravel())


def test_equal_rows_with_different_labels_are_not_merged():
    X, y, _ = CASES["lopsided"]
    model = BayesianNCA(4).fit(np.vstack([X, X[:2]]), np.concatenate([y, y[:2] + 1]))
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


@pytest.mark.parametrize("sparse", [False, True])
def test_merged_rows_of_weight_zero_are_left_out(sparse):
    import scipy.sparse

    X, y, _ = CASES["lopsided"]
    used = np.arange(15) % 4 > 0
    rows = scipy.sparse.csr_matrix(X) if sparse else X
    model = BayesianNCA(4).fit(rows, y, sample_weight=2.0 * used)
    expected = BayesianNCA(4).fit(X[used], y[used], sample_weight=np.full(used.sum(), 2.0))
    np.testing.assert_allclose(model.metric_.mean, expected.metric_.mean, rtol=SAME_FIT)
    found = model.kneighbors(X, 3, return_distance=False)
    np.testing.assert_array_equal(
        found, np.flatnonzero(used)[expected.kneighbors(X, 3, return_distance=False)]
    )


# Words where something gave way.


def test_a_neighborhood_larger_than_the_data_shrinks_with_a_warning(blobs):
    X, y = blobs
    with pytest.warns(
        NeighborhoodWarning, match="n_neighbors=80 is more than the 79 other"
    ) as seen:
        model = BayesianNCA(80).fit(X, y)
    assert seen[0].filename == __file__
    assert model.n_neighbors_ == 79
    expected = BayesianNCA(79).fit(X, y)
    np.testing.assert_array_equal(model.metric_.mean, expected.metric_.mean)


@pytest.mark.parametrize(
    ("n_neighbors", "n", "used"), [("auto", 80, 20), ("auto", 10, 9), (None, 10, 9)]
)
def test_neighborhoods_left_to_us_need_no_warning(blobs, n_neighbors, n, used):
    X, y = blobs
    with warnings.catch_warnings():
        warnings.simplefilter("error", NeighborhoodWarning)
        assert BayesianNCA(n_neighbors).fit(X[:n], y[:n]).n_neighbors_ == used


def test_asking_for_all_neighbors_by_number_or_by_none_is_the_same(blobs):
    by_number, by_none = BayesianNCA(79).fit(*blobs), BayesianNCA(None).fit(*blobs)
    assert by_none.scale_ == pytest.approx(by_number.scale_, rel=ROUNDING)
    np.testing.assert_allclose(by_none.metric_.mean, by_number.metric_.mean, rtol=SAME_FIT)


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
        assert words[0].startswith(f"{negative} of 3 weights of the posterior mean are negative")
        assert seen[0].filename == __file__


def test_both_outcomes_of_the_projection_test_occur():
    tight, loose = (
        fit("class of one", "published", prior_variance=variance, solver="newton").metric_
        for variance in (1e-6, 0.3)
    )
    assert not tight.is_projected
    assert loose.is_projected


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


def test_features_of_all_neighborhoods_are_never_in_memory_at_once():
    n, K, p = 10_000, 20, 40
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)) * np.geomspace(3, 0.3, p)
    y = (X[:, 0] > 0).astype(int)
    # What grows with n are copies of the rows (3 MB each: scores, scaled scores, what search works
    # on, embedding) and the lists (2 MB); blocks are a few MB whatever n.  Features would be 64.
    model = BayesianNCA(K, tol=1e-2, n_jobs=1)
    assert peak_of(lambda: model.fit(X, y)) < 0.45 * n * K * p * 8


def test_all_other_rows_as_neighbors_need_no_square_array():
    n = 2500
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3)) * [3.0, 1.0, 0.3]
    y = (X[:, 0] > 0).astype(int)
    model = BayesianNCA(None, tol=1e-1, n_jobs=1)
    assert peak_of(lambda: model.fit(X, y)) < 0.7 * n * n * 8
