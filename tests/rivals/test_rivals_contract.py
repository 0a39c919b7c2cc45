"""What all rivals owe: scikit-learn's checks, one interface, and errors that say what is wrong."""

from __future__ import annotations

import ast
import inspect
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tolerances import FLOAT32_FIT, ROUNDING

from bnca import rivals
from bnca.rivals import BML, LMNN, NCA, NCMML, PCAMetric, SupervisedBML

# What is said about a fit has its own tests; here data are random, tiny, or separable.
pytestmark = pytest.mark.filterwarnings(
    "ignore::bnca.ProjectionWarning",
    "ignore::bnca.NeighborhoodWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
    # scikit-learn 1.6 passes an option that SciPy 1.17 says it will drop.
    "ignore:scipy.optimize. The `disp`:DeprecationWarning",
)

LABELLED = [PCAMetric, NCA, NCMML, LMNN, SupervisedBML]
"""Those that learn from labelled rows; BML learns from pairs, and has tests of its own."""

ITERATIVE = [NCA, NCMML, LMNN, SupervisedBML, BML]

# scikit-learn has no checks for pairs of rows, which are three-dimensional.
SETTINGS = [
    *[rival() for rival in LABELLED],
    NCA(vote="softmax", n_voters=None),
    NCMML(n_centroids=2, vote="distance"),
]

every = pytest.mark.parametrize("rival", LABELLED)

ROWS = np.random.default_rng(0).normal(size=(12, 3)) * [1.0, 2.0, 3.0]
LABELS = np.arange(12) % 3


def checks_of(estimators):
    """`parametrize_with_checks` with a list: pytest 9 warns of scikit-learn 1.6's generator."""
    mark = parametrize_with_checks(estimators)
    names, checks = mark.args
    return pytest.mark.parametrize(names, list(checks), **mark.kwargs)


@checks_of(SETTINGS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# The package.


def test_public_names_are_there_and_sorted():
    assert rivals.__all__ == sorted(c.__name__ for c in [*LABELLED, BML])
    for name in rivals.__all__:
        assert getattr(rivals, name).__name__ == name


PRINT_NEW_PACKAGES = """
import sys, sklearn.base, sklearn.neighbors
before = set(sys.modules)
import bnca.rivals
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(new - set(sys.stdlib_module_names)))
print(sorted(m for m in set(sys.modules) - before if m in ("sklearn.cluster", "sklearn.svm")))
"""


def test_importing_rivals_imports_nothing_that_neighbors_do_not():
    done = subprocess.run(
        [sys.executable, "-c", PRINT_NEW_PACKAGES], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["['bnca']", "[]"]


# Parameters.


@pytest.mark.parametrize("rival", [*LABELLED, BML])
def test_defaults_in_the_docstring_are_those_of_the_signature(rival):
    signature = inspect.signature(rival.__init__).parameters
    text = rival.__doc__.replace("\\\n", "")
    for name, parameter in list(signature.items())[1:]:
        entry = text.partition(f"\n    {name} : ")[2].partition("default=")[2]
        assert entry, name
        assert ast.literal_eval(entry.partition("\n")[0]) == parameter.default, name


@pytest.mark.parametrize("rival", [*LABELLED, BML])
def test_at_most_one_parameter_goes_by_position(rival):
    kinds = [p.kind for p in inspect.signature(rival).parameters.values()]
    assert set(kinds[1:]) == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("rival", ITERATIVE)
def test_who_searches_can_be_watched(rival):
    names = set(inspect.signature(rival).parameters)
    assert {"max_iter", "tol", "verbose", "callback"} <= names


@every
@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_components", 0),
        ("n_components", 2.5),
        ("vote", "loudest"),
        ("n_voters", 0),
        ("n_voters", "all"),
        ("n_jobs", "all"),
        ("random_state", "seed"),
        ("max_iter", 0),
        ("tol", -0.001),
        ("verbose", "loud"),
        ("callback", "print"),
        ("init", "best"),
        ("warm_start", "yes"),
        ("regularization", -1.0),
        ("n_centroids", 0),
        ("whiten", "much"),
    ],
)
def test_parameters_out_of_range_are_named(rival, parameter, value):
    if parameter not in inspect.signature(rival).parameters:
        with pytest.raises(TypeError, match=parameter):
            rival(**{parameter: value})
        return
    with pytest.raises(ValueError, match=f"{parameter}.*{rival.__name__}.* Got {value!r}"):
        rival(**{parameter: value}).fit(ROWS, LABELS)


@every
def test_fitting_leaves_parameters_and_data_as_they_were(rival, blobs):
    X, y = blobs[0].copy(), blobs[1].copy()
    model = rival()
    before = model.get_params()
    model.fit(X, y)
    model.predict_proba(X)
    assert model.get_params() == before
    np.testing.assert_array_equal(X, blobs[0])
    np.testing.assert_array_equal(y, blobs[1])


@every
def test_fitting_again_forgets_the_first_fit(rival, blobs):
    X, y = blobs
    model = rival().fit(X[:, :2], y % 2).fit(X, y)
    assert model.n_features_in_ == 4
    assert model.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(model.predict_proba(X), rival().fit(X, y).predict_proba(X))


# Rows and labels.


def with_entry(value):
    X = ROWS.copy()
    X[4, 1] = value
    return X


@every
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
def test_rows_and_labels_that_cannot_be_learned_from(rival, X, y, match):
    error = TypeError if "real number" in match else ValueError
    with pytest.raises(error, match=match):
        rival().fit(X, y)


@every
@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes", "maybe"]),
        np.array(["no", "yes", "maybe"], dtype=object),
        np.array([-5, 1_000_000, 3]),
        np.array([1.0, 2.0, 7.0]),
    ],
    ids=["strings", "objects", "integers", "whole floats"],
)
def test_labels_of_every_kind(rival, blobs, labels):
    X, y = blobs[0], labels[blobs[1]]
    model = rival().fit(X, pd.Series(y))
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    assert set(model.predict(X)) <= set(labels.tolist())
    assert model.score(X, y) > 0.6
    # Columns of the probabilities follow the sorted labels.
    order = np.argsort(labels)
    plain = rival().fit(X, blobs[1])
    if (np.sort(labels) == labels).all():
        np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X)[:, order])
    np.testing.assert_array_equal(
        model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X)
    )


@every
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_with_names_go_in_and_come_out(rival, blobs, library):
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[library]
    frame = make(dict(zip(["height", "width", "age", "mass"], blobs[0].T, strict=True)))
    model = rival(n_components=2).fit(frame, blobs[1])
    # scikit-learn 1.6 cannot read the names of polars 2.
    named = getattr(StandardScaler().fit(frame), "feature_names_in_", None)
    assert library == "polars" or list(named) == ["height", "width", "age", "mass"]
    np.testing.assert_array_equal(getattr(model, "feature_names_in_", None), named)
    out = model.set_output(transform=library).transform(frame)
    assert isinstance(out, make)
    assert list(out.columns) == [f"{rival.__name__.lower()}{i}" for i in range(2)]
    plain = rival(n_components=2).fit(*blobs)
    # A table is laid out by columns, so sums are taken in another order.
    np.testing.assert_allclose(out.to_numpy(), plain.transform(blobs[0]), rtol=0, atol=1e-8)
    for method in ("transform", "predict", "predict_proba", "kneighbors"):
        if named is not None:
            with pytest.raises(ValueError, match="feature names should match"):
                getattr(model, method)(frame[["mass", "age", "width", "height"]])


# One interface.


@every
def test_everything_agrees_on_the_distance(rival, blobs):
    X, y = blobs
    model = rival().fit(X, y)
    assert is_classifier(model)
    moved = model.transform(X)
    np.testing.assert_allclose(moved, X @ model.components_.T, rtol=ROUNDING)
    distance, index = model.kneighbors(X + 0.1, 4)
    expected = NearestNeighbors(n_neighbors=4).fit(moved).kneighbors(model.transform(X + 0.1))
    np.testing.assert_array_equal(index, expected[1])
    np.testing.assert_allclose(distance, expected[0], rtol=1e-7)
    among = model.kneighbors(n_neighbors=3, return_distance=False)
    assert (among != np.arange(80)[:, None]).all()
    gap = np.linalg.norm(moved[:10] - moved[10:20], axis=1)
    A, function = model.get_mahalanobis_matrix(), model.get_metric()
    for i in range(10):
        np.testing.assert_allclose(function(X[i], X[10 + i]), gap[i], rtol=ROUNDING)
        np.testing.assert_allclose((X[i] - X[10 + i]) @ A @ (X[i] - X[10 + i]), gap[i] ** 2)
    pairs = np.stack([X[:10], X[10:20]], axis=1)
    # A posterior mean with negative weights reports distances unprojected.
    if not (hasattr(model, "metric_") and model.metric_.is_projected):
        np.testing.assert_allclose(model.pair_distance(pairs, squared=False), gap, rtol=1e-7)
        np.testing.assert_allclose(model.pair_score(pairs), -(gap**2), rtol=1e-7)


@every
def test_probabilities_are_probabilities(rival, blobs):
    X, y = blobs
    model = rival().fit(X[:70], y[:70])
    out = model.predict_proba(X[70:])
    assert out.shape == (10, 3)
    assert out.dtype == np.float64
    assert (out >= 0).all()
    np.testing.assert_allclose(out.sum(axis=1), 1, rtol=ROUNDING)
    assert model.predict_proba(X[70:71]).shape == (1, 3)


@every
@pytest.mark.parametrize("container", [scipy.sparse.csr_matrix, scipy.sparse.csc_array])
@pytest.mark.parametrize("shape", [(60, 8), (30, 50)])
def test_sparse_rows_are_taken_and_change_little(rival, container, shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape) * np.geomspace(3, 0.5, shape[1])
    X[rng.random(shape) < 0.6] = 0
    y = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
    sparse = rival().fit(container(X), y)
    out = sparse.transform(container(X))
    assert isinstance(out, np.ndarray)
    np.testing.assert_allclose(out, sparse.transform(X), rtol=0, atol=ROUNDING)
    np.testing.assert_array_equal(sparse.predict(container(X)), sparse.predict(X))
    # Searches may end a little apart; who is whose neighbour is nearly the same.
    dense = rival().fit(X, y)
    mine, theirs = (m.kneighbors(n_neighbors=1, return_distance=False) for m in (sparse, dense))
    assert (mine == theirs).mean() > 0.9


@every
@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_matrix])
def test_single_precision_in_single_precision_out(rival, blobs, container):
    single = container(blobs[0].astype(np.float32))
    model = rival().fit(single, blobs[1])
    assert model.components_.dtype == np.float32
    assert model.transform(single).dtype == np.float32
    assert model.transform(container(blobs[0])).dtype == np.float64
    double = rival().fit(container(blobs[0]), blobs[1])
    gap = np.abs(model.get_mahalanobis_matrix() - double.get_mahalanobis_matrix()).max()
    assert gap < FLOAT32_FIT * np.abs(double.get_mahalanobis_matrix()).max()


@every
def test_a_pickled_model_is_the_same_model(rival, blobs):
    model = rival().fit(*blobs)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(blobs[0]), model.predict_proba(blobs[0]))
    np.testing.assert_array_equal(again.kneighbors()[1], model.kneighbors()[1])


@every
def test_the_same_seed_gives_the_same_fit_on_any_number_of_threads(rival, blobs):
    fits = [rival(n_jobs=n).fit(*blobs) for n in (1, 2, None)]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].components_, other.components_)
        np.testing.assert_array_equal(
            fits[0].predict_proba(blobs[0]), other.predict_proba(blobs[0])
        )


@every
def test_inside_a_pipeline_and_a_grid_search(rival, blobs):
    model = make_pipeline(StandardScaler(), clone(rival()))
    name = f"{rival.__name__.lower()}__n_components"
    search = GridSearchCV(model, {name: [1, 3]}, cv=3, error_score="raise").fit(*blobs)
    assert search.best_estimator_.score(*blobs) > 0.6


@pytest.mark.parametrize("rival", [SupervisedBML, BML])
def test_sample_weight_is_routed(rival, blobs):
    X, y = blobs
    if rival is BML:
        left, right = np.random.default_rng(0).integers(0, len(X), (2, 120))
        X, y = X[np.column_stack([left, right])], np.where(y[left] == y[right], 1, -1)
    weights = np.random.default_rng(0).integers(1, 4, len(X)).astype(np.float64)
    expected = rival().fit(X, y, weights)
    assert not np.allclose(expected.margin_mean_, rival().fit(X, y).margin_mean_)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(rival().set_fit_request(sample_weight=True))
        routed.fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(routed[-1].margin_mean_, expected.margin_mean_)
        search = GridSearchCV(
            rival().set_fit_request(sample_weight=True).set_score_request(sample_weight=True),
            {"max_iter": [100]},
            cv=3,
            error_score="raise",
        ).fit(X, y, sample_weight=weights)
        best = search.best_estimator_
        np.testing.assert_array_equal(best.margin_mean_, expected.margin_mean_)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
            make_pipeline(rival()).fit(X, y, sample_weight=weights)


# Queries.


METHODS = ["transform", "predict", "predict_proba", "kneighbors"]


@every
def test_nothing_can_be_asked_before_fit(rival):
    for method in METHODS:
        with pytest.raises(NotFittedError, match=f"This {rival.__name__} instance is not fitted"):
            getattr(rival(), method)(ROWS)
    for method in ("get_mahalanobis_matrix", "get_metric", "get_feature_names_out"):
        with pytest.raises(NotFittedError, match="is not fitted"):
            getattr(rival(), method)()
    for method in ("pair_distance", "pair_score"):
        with pytest.raises(NotFittedError, match="is not fitted"):
            getattr(rival(), method)(ROWS.reshape(6, 2, 3))


@every
def test_queries_that_do_not_fit(rival):
    model = rival().fit(ROWS, LABELS)
    width = f"X has 2 features, but {rival.__name__} is expecting 3 features"
    for X, match in [
        (ROWS[:, :2], width),
        (scipy.sparse.csr_matrix(ROWS[:, :2]), width),
        (ROWS[0], "Expected 2D array, got 1D array instead"),
        (with_entry(np.nan), "Input X contains NaN"),
        (with_entry(np.inf), "Input X contains infinity"),
        (ROWS.astype(complex), "Complex data not supported"),
        (np.full((2, 3), "far"), "could not convert string to float"),
    ]:
        for method in METHODS:
            with pytest.raises(ValueError, match=match):
                getattr(model, method)(X)
    with pytest.raises(ValueError, match=r"pairs must have shape \(n, 2, 3\).*\(12, 3\)"):
        model.pair_distance(ROWS)
    with pytest.raises(ValueError, match="Input pairs contains NaN"):
        model.pair_score(with_entry(np.nan).reshape(6, 2, 3))


@every
def test_neighbors_that_are_not_there(rival):
    model = rival().fit(ROWS, LABELS)
    with pytest.raises(ValueError, match=r"n_neighbors = 13 and 12 training rows"):
        model.kneighbors(ROWS, 13)
    with pytest.raises(ValueError, match=r"n_neighbors must be an integer of at least 1; got 0"):
        model.kneighbors(ROWS, 0)
