"""Bad input, each by its text: which argument, what arrived, what is accepted."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from models import both, published
from sklearn.exceptions import NotFittedError

from bnca import BayesianNCA
from bnca.validation import gaussian_prior, training_rows

# Labels here are random, so some learned weights are negative; that warning has its own tests.
pytestmark = pytest.mark.filterwarnings("ignore::bnca.ProjectionWarning")

ROWS = np.random.default_rng(0).normal(size=(12, 3)) * [1.0, 2.0, 3.0]
LABELS = np.arange(12) % 3


def with_entry(value):
    X = ROWS.copy()
    X[4, 1] = value
    return X


@pytest.fixture(scope="module", params=[published, BayesianNCA], ids=["published", "default"])
def fitted(request):
    return request.param(n_neighbors=4).fit(ROWS, LABELS)


# Rows and labels.


@both
@pytest.mark.parametrize(
    ("X", "y", "match"),
    [
        (with_entry(np.nan), LABELS, "Input X contains NaN"),
        (with_entry(np.inf), LABELS, "Input X contains infinity"),
        (with_entry(-np.inf), LABELS, "Input X contains infinity"),
        (ROWS[:1], LABELS[:1], "minimum of 2 is required"),
        (ROWS[:0], LABELS[:0], "Found array with 0 sample"),
        (ROWS[:, :0], LABELS, r"Found array with 0 feature\(s\)"),
        (ROWS[:, 0], LABELS, "Expected 2D array, got 1D array instead"),
        (ROWS[None], LABELS, "Found array with dim 3"),
        (ROWS, LABELS[:5], "inconsistent numbers of samples"),
        (ROWS, np.arange(12), r"number of samples \(12\) must be more than the number of classes"),
        (ROWS[:3], LABELS[:3], r"number of samples \(3\) .* number of classes \(3\)"),
        (ROWS, ROWS[:, 0], "Unknown label type: continuous"),
        (ROWS, np.where(LABELS == 1, np.nan, LABELS), "Input y contains NaN"),
        (ROWS, None, "requires y to be passed, but the target y is None"),
        (ROWS, np.column_stack([LABELS, LABELS]), "y should be a 1d array"),
        (ROWS.astype(complex), LABELS, "Complex data not supported"),
        (np.full((12, 3), "far"), LABELS, "could not convert string to float"),
        (np.full((12, 3), {}, dtype=object), LABELS, "must be a string or a real number"),
    ],
)
def test_rows_and_labels_that_cannot_be_learned_from(make, X, y, match):
    error = TypeError if "real number" in match else ValueError
    with pytest.raises(error, match=match):
        make().fit(X, y)


@both
def test_as_many_classes_as_rows_after_merging_is_named_too(make):
    X = np.repeat(ROWS[:3], 2, axis=0)
    with pytest.raises(ValueError, match=r"number of samples \(3\) .* number of classes \(3\)"):
        make().fit(X, np.repeat([0, 1, 2], 2))


@both
def test_one_distinct_row_is_not_enough(make):
    with pytest.raises(ValueError, match=r"1 distinct row of positive weight.* minimum of 2"):
        make().fit(np.ones((5, 2)), np.zeros(5))


@both
@pytest.mark.parametrize(
    ("sample_weight", "match"),
    [
        (
            np.where(LABELS == 0, -0.5, 1.0),
            "sample_weight must not be negative; the smallest is -0.5",
        ),
        (np.zeros(12), "sample_weight is zero for every row|at least one non-zero number"),
        (np.ones(5), r"sample_weight.shape == \(5,\), expected \(12,\)"),
        (np.full(12, np.nan), "sample_weight contains NaN"),
        (np.full(12, np.inf), "sample_weight contains infinity"),
        (np.ones((12, 2)), "Sample weights must be 1D array or scalar"),
    ],
)
@pytest.mark.parametrize("duplicates", ["merge", "keep"])
def test_weights_that_make_no_sense(make, sample_weight, match, duplicates):
    with pytest.raises(ValueError, match=match):
        make(duplicates=duplicates).fit(ROWS, LABELS, sample_weight)


# Parameters.


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"n_neighbors": 0}, r"'n_neighbors' parameter .* Got 0"),
        ({"n_neighbors": -3}, r"'n_neighbors' parameter .* Got -3"),
        ({"n_neighbors": 2.5}, r"'n_neighbors' parameter .* Got 2.5"),
        ({"n_neighbors": "many"}, r"'n_neighbors' parameter .*'auto'.* Got 'many'"),
        ({"basis": "diagonal"}, r"'basis' parameter .*'eigen'.* Got 'diagonal'"),
        ({"n_components": 0}, r"'n_components' parameter .* Got 0"),
        ({"prior_mean": None}, "'prior_mean' parameter"),
        ({"prior_variance": None}, "'prior_variance' parameter"),
        ({"prior_variance": "narrow"}, r"'prior_variance' parameter .*'auto'.* Got 'narrow'"),
        ({"prior_center": "cosine"}, r"'prior_center' parameter .*'ledoit-wolf'.* Got 'cosine'"),
        ({"prior_center": 0.0}, r"'prior_center' parameter .*\(0.0, 1.0\].* Got 0.0"),
        ({"prior_center": 1.5}, r"'prior_center' parameter .*\(0.0, 1.0\].* Got 1.5"),
        ({"prior_center": -0.1}, r"'prior_center' parameter .* Got -0.1"),
        ({"prior_center": np.nan}, r"'prior_center' parameter .* Got nan"),
        ({"prior_center": None}, r"'prior_center' parameter .* Got None"),
        ({"likelihood": "votes"}, r"'likelihood' parameter .*'picks'.* Got 'votes'"),
        ({"curvature": "gauss"}, r"'curvature' parameter .*'bohning'.* Got 'gauss'"),
        ({"label_noise": 1.0}, r"'label_noise' parameter .*\[0.0, 1.0\).* Got 1.0"),
        ({"label_noise": -0.1}, r"'label_noise' parameter .* Got -0.1"),
        ({"label_noise": np.nan}, r"'label_noise' parameter .* Got nan"),
        ({"label_noise": "some"}, r"'label_noise' parameter .*'auto'.* Got 'some'"),
        ({"label_noise": None}, r"'label_noise' parameter .* Got None"),
        ({"rescale": "yes"}, "'rescale' parameter"),
        ({"solver": "lbfgs"}, r"'solver' parameter .* Got 'lbfgs'"),
        ({"max_iter": 0}, r"'max_iter' parameter .* Got 0"),
        ({"tol": -1e-3}, r"'tol' parameter .* Got -0.001"),
        ({"vote": "loudest"}, r"'vote' parameter .*'smooth'.* Got 'loudest'"),
        ({"n_voters": 0}, r"'n_voters' parameter .* Got 0"),
        ({"n_samples": 0}, r"'n_samples' parameter .* Got 0"),
        ({"duplicates": "drop"}, r"'duplicates' parameter .* Got 'drop'"),
        ({"block_size": 0}, r"'block_size' parameter .* Got 0"),
        ({"n_jobs": "all"}, r"'n_jobs' parameter .* Got 'all'"),
        ({"random_state": "seed"}, r"'random_state' parameter .* Got 'seed'"),
    ],
)
def test_parameters_out_of_range_are_named(parameters, match):
    with pytest.raises(ValueError, match=match):
        BayesianNCA(**parameters).fit(ROWS, LABELS)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        *(
            (
                {"curvature": name},
                rf"curvature='{name}' needs likelihood='product', whose bound .*'exact' or 'auto'",
            )
            for name in ("bohning", "votes", "tempered")
        ),
        *(
            (
                {"solver": name},
                rf"solver='{name}' needs likelihood='product', .* it must be 'newton'",
            )
            for name in ("published", "anderson")
        ),
    ],
)
def test_parameters_that_do_not_go_together_are_named(parameters, match):
    with pytest.raises(ValueError, match=match):
        BayesianNCA(**parameters).fit(ROWS, LABELS)
    model = BayesianNCA(4, likelihood="product", max_iter=1000, **parameters).fit(ROWS, LABELS)
    assert model.converged_


@pytest.mark.parametrize(
    ("mean", "variance", "match"),
    [
        (np.ones(2), 1.0, r"prior_mean must be .* shape \(3,\).* 3 weights; got shape \(2,\)"),
        (np.ones((3, 3)), 1.0, r"prior_mean must be .* got shape \(3, 3\)"),
        (np.nan, 1.0, "prior_mean must be finite; got nan"),
        (["a", "b", "c"], 1.0, "prior_mean must hold numbers"),
        (1.0, 0.0, "prior_variance must be positive; got 0"),
        (1.0, -2.0, "prior_variance must be positive; got -2"),
        (1.0, [1.0, 0.0, 2.0], "prior_variance must be positive; got 0"),
        (1.0, [1.0, -3.0, 2.0], "prior_variance must be positive; got -3"),
        (1.0, np.ones(4), r"prior_variance must be .* 3 weights; got shape \(4,\)"),
        (1.0, np.eye(2), r"prior_variance must be .* got shape \(2, 2\)"),
        (1.0, np.inf, "prior_variance must be finite; got inf"),
        (1.0, "wide", "prior_variance"),
        (1.0, np.diag([1.0, 1.0, -1.0]), "positive definite; its smallest eigenvalue is -1"),
        (1.0, np.diag([1.0, 1.0, 0.0]), "positive definite; its smallest eigenvalue is 0"),
        (1.0, np.eye(3) + np.triu(np.ones((3, 3)), 1) / 9, "must be symmetric"),
    ],
)
def test_priors_that_are_none(mean, variance, match):
    with pytest.raises(ValueError, match=match):
        published(prior_mean=mean, prior_variance=variance).fit(ROWS, LABELS)


def test_prior_lengths_count_the_weights_that_there_are():
    """Two columns are copies, so there are three weights, not five."""
    X = np.column_stack([ROWS, ROWS[:, :2]])
    with pytest.raises(ValueError, match=r"for each of the 3 weights; got shape \(5,\)"):
        published(prior_mean=np.ones(5)).fit(X, LABELS)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"prior_mean": np.ones(3)}, r"prior_mean must be .* the 6 weights; got shape \(3,\)"),
        ({"prior_mean": np.nan}, r"prior_mean must be finite; got nan\."),
        ({"prior_mean": [np.inf] * 6}, "prior_mean must be finite; got "),
        ({"prior_variance": np.ones(3)}, r"of shape \(6, 6\) for the 6 weights; got shape \(3,\)"),
        ({"prior_variance": [1.0] * 5 + [0]}, "prior_variance must be positive; got 0"),
        ({"prior_variance": np.inf}, "prior_variance must be finite; got inf"),
        ({"prior_variance": -np.eye(6)}, "positive definite; its smallest eigenvalue is -1"),
    ],
)
def test_priors_of_a_full_matrix_count_its_products(parameters, match):
    """Three columns have six products of two."""
    X = np.column_stack([ROWS, ROWS[:, :2]])
    with pytest.raises(ValueError, match=match):
        BayesianNCA(n_neighbors=4, **parameters).fit(X, LABELS)
    good = BayesianNCA(4, prior_mean=np.ones(6), prior_variance=np.full(6, 0.1)).fit(X, LABELS)
    assert good.metric_.mean.shape == (6,)


@pytest.mark.parametrize(
    ("variance", "precision"),
    [
        (0.25, np.diag([4.0, 4.0])),
        ([0.5, 0.25], np.diag([2.0, 4.0])),
        ([[2.0, 1.0], [1.0, 1.0]], [[1.0, -1.0], [-1.0, 2.0]]),
    ],
)
def test_priors_come_as_a_number_a_diagonal_or_a_matrix(variance, precision):
    prior = gaussian_prior(3, variance, 2)
    np.testing.assert_array_equal(prior.mean, [3.0, 3.0])
    np.testing.assert_allclose(prior.precision, precision, rtol=1e-12)
    np.testing.assert_array_equal(gaussian_prior([1, 2], variance, 2).mean, [1.0, 2.0])


# Queries.


METHODS = ["transform", "predict", "predict_proba", "kneighbors"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("X", "match"),
    [
        (ROWS[:, :2], "X has 2 features, but BayesianNCA is expecting 3 features"),
        (np.column_stack([ROWS, ROWS]), "X has 6 features, but BayesianNCA is expecting 3"),
        (ROWS[0], "Expected 2D array, got 1D array instead"),
        (with_entry(np.nan), "Input X contains NaN"),
        (with_entry(np.inf), "Input X contains infinity"),
        (ROWS.astype(complex), "Complex data not supported"),
        (np.full((2, 3), "far"), "could not convert string to float"),
    ],
)
def test_queries_that_do_not_fit(fitted, method, X, match):
    with pytest.raises(ValueError, match=match):
        getattr(fitted, method)(X)


@pytest.mark.parametrize(
    ("method", "size"),
    [("pair_distance", 2), ("pair_score", 2), ("pair_proba", 2), ("triplet_proba", 3)],
)
def test_tuples_of_rows_have_three_axes(fitted, method, size):
    name = "pairs" if size == 2 else "triplets"
    good = ROWS.reshape(-1, 2, 3)[:, :1].repeat(size, axis=1)
    assert getattr(fitted, method)(good).shape == (6,)
    for bad in (ROWS, good[:, :1], good[:, :, :2], good[0, 0], np.concatenate([good] * 2, axis=1)):
        match = rf"{name} must have shape \(n, {size}, 3\).*got shape \({bad.shape[0]}.*np.stack"
        with pytest.raises(ValueError, match=match):
            getattr(fitted, method)(bad)
    with pytest.raises(ValueError, match=f"{name} contains NaN"):
        getattr(fitted, method)(np.full((1, size, 3), np.nan))
    with pytest.raises(ValueError, match="Complex data not supported"):
        getattr(fitted, method)(good.astype(complex))


@pytest.mark.parametrize(
    ("X", "asked", "match"),
    [
        (ROWS, 13, "n_neighbors = 13 and 12 training rows can be neighbours. Ask for 12 or fewer"),
        (None, 12, "n_neighbors = 12 and 11 training rows can be neighbours"),
        (ROWS, 0, "n_neighbors must be an integer of at least 1; got 0"),
        (ROWS, -1, "n_neighbors must be an integer of at least 1; got -1"),
        (ROWS, 2.0, "n_neighbors must be an integer of at least 1; got 2.0"),
        (ROWS, True, "n_neighbors must be an integer of at least 1; got True"),
    ],
)
def test_neighbors_that_are_not_there(fitted, X, asked, match):
    with pytest.raises(ValueError, match=match):
        fitted.kneighbors(X, asked)


@both
def test_more_voters_than_rows_are_refused_by_name(make):
    model = make(n_neighbors=4, n_voters=13).fit(ROWS, LABELS)
    with pytest.raises(ValueError, match=r"n_voters.*13"):
        model.predict(ROWS)


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("transform", (ROWS,)),
        ("predict", (ROWS,)),
        ("predict_proba", (ROWS,)),
        ("score", (ROWS, LABELS)),
        ("kneighbors", ()),
        ("kneighbors", (ROWS,)),
        ("pair_distance", (ROWS[None, :2],)),
        ("pair_score", (ROWS[None, :2],)),
        ("pair_proba", (ROWS[None, :2],)),
        ("triplet_proba", (ROWS[None, :3],)),
        ("get_mahalanobis_matrix", ()),
        ("get_metric", ()),
        ("get_feature_names_out", ()),
    ],
)
def test_nothing_works_before_fit(method, arguments):
    with pytest.raises(NotFittedError, match="This BayesianNCA instance is not fitted yet"):
        getattr(BayesianNCA(), method)(*arguments)


# What good input becomes.


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.csr_array])
def test_rows_equal_in_features_and_label_are_merged_and_their_weights_add_up(container):
    X = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0], [1.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    y = np.array(["a", "a", "a", "b", "a", "b"])
    weight = np.array([1.0, 2.0, 0.5, 4.0, 8.0, 0.0])
    rows = training_rows(BayesianNCA(), container(X), y, weight, merge=True)
    np.testing.assert_array_equal(rows.origin, [0, 1, 3])
    np.testing.assert_array_equal(rows.weights, [1.5, 10.0, 4.0])
    np.testing.assert_array_equal(rows.classes, ["a", "b"])
    np.testing.assert_array_equal(rows.codes, [0, 0, 1])
    dense = rows.X if isinstance(rows.X, np.ndarray) else rows.X.toarray()
    np.testing.assert_array_equal(dense, [[1, 0], [2, 0], [1, 0]])


def test_sparse_rows_are_equal_however_they_are_stored():
    """Unsorted indices, a stored zero, and an entry in two parts."""
    data = [5.0, 3.0, 3.0, 5.0, 0.0, 2.0, 1.0, 5.0]
    indices = [2, 0, 0, 2, 1, 0, 0, 2]
    X = scipy.sparse.csr_matrix((data, indices, [0, 2, 5, 8]), shape=(3, 3))
    X = scipy.sparse.vstack([X, scipy.sparse.csr_matrix([[1.0, 0.0, 0.0]])], format="csr")
    rows = training_rows(BayesianNCA(), X, np.zeros(4), merge=True)
    np.testing.assert_array_equal(rows.origin, [0, 3])
    np.testing.assert_array_equal(rows.weights, [3.0, 1.0])


def test_kept_rows_are_as_they_came():
    X = np.repeat(ROWS[:3], 2, axis=0)
    rows = training_rows(BayesianNCA(), X, [0, 0, 1, 1, 0, 1], np.arange(6.0))
    np.testing.assert_array_equal(rows.X, X)
    np.testing.assert_array_equal(rows.weights, np.arange(6.0))
    np.testing.assert_array_equal(rows.origin, np.arange(6))


def test_single_precision_stays_and_integers_become_double():
    assert training_rows(BayesianNCA(), ROWS.astype(np.float32), LABELS).X.dtype == np.float32
    assert training_rows(BayesianNCA(), np.arange(24).reshape(12, 2), LABELS).X.dtype == np.float64
