"""The public contract: scikit-learn's checks, tables in and out, pipelines, sparse, imports."""

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
from joblib import parallel_backend
from models import both
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tolerances import FLOAT32_FIT, SAME_FIT, SAME_PROBABILITY, assert_same_sum

import bnca
from bnca import BayesianNCA

# Data of scikit-learn's checks are random or separable: negative weights and slow published steps
# are expected there, and a warning is not what those checks are about.
quiet = pytest.mark.filterwarnings(
    "ignore::bnca.ProjectionWarning", "ignore::bnca.NeighborhoodWarning"
)


def checks_of(estimator, **kwargs):
    """`parametrize_with_checks` with a list: pytest 9 warns of scikit-learn 1.6's generator."""
    mark = parametrize_with_checks([estimator], **kwargs)
    names, checks = mark.args
    return pytest.mark.parametrize(names, list(checks), **mark.kwargs)


@quiet
@checks_of(BayesianNCA())
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def what_as_published_does_otherwise(_estimator):
    """Copies of a row are each other's nearest neighbours, as published, so they cannot count as a
    weight: with duplicates="merge", the default, they do.
    """
    reason = "the paper keeps duplicates, which crowd each other's neighbourhoods"
    return dict.fromkeys(
        [
            "check_sample_weight_equivalence_on_dense_data",
            "check_sample_weight_equivalence_on_sparse_data",
        ],
        reason,
    )


@quiet
# Its plain iteration is slow, and some of these data sets have large raw units.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@checks_of(BayesianNCA.as_published(), expected_failed_checks=what_as_published_does_otherwise)
def test_scikit_learn_checks_as_published(estimator, check):
    check(estimator)


# Parameters.


def test_defaults_in_the_docstring_are_those_of_the_signature():
    signature = inspect.signature(BayesianNCA.__init__).parameters
    for name, parameter in list(signature.items())[1:]:
        lines = [x for x in BayesianNCA.__doc__.splitlines() if x.startswith(f"    {name} : ")]
        assert len(lines) == 1, name
        assert ast.literal_eval(lines[0].partition("default=")[2]) == parameter.default, name


def test_only_the_neighborhood_size_goes_by_position():
    kinds = [p.kind for p in inspect.signature(BayesianNCA).parameters.values()]
    assert kinds[0] is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert set(kinds[1:]) == {inspect.Parameter.KEYWORD_ONLY}


def test_as_published_has_the_settings_of_the_paper_and_takes_others():
    parameters = BayesianNCA.as_published(n_neighbors=7, tol=1e-3, solver="newton").get_params()
    assert parameters["prior_mean"] == 0.1
    assert parameters["prior_variance"] == 0.001
    assert parameters["rescale"] is False
    assert parameters["duplicates"] == "keep"
    assert parameters["basis"] == "eigen"
    assert parameters["vote"] == "posterior"
    assert (parameters["n_neighbors"], parameters["tol"]) == (7, 1e-3)
    assert parameters["solver"] == "newton"
    assert BayesianNCA.as_published().solver == "published"
    with pytest.raises(TypeError, match="k"):
        BayesianNCA.as_published(k=3)


def test_clone_and_repr_show_what_was_set():
    prior = np.array([1.0, 2.0])
    model = clone(BayesianNCA(3, prior_mean=prior, vote="uniform"))
    np.testing.assert_array_equal(model.prior_mean, prior)
    assert "n_neighbors=3" in repr(model)
    assert "vote='uniform'" in repr(model)
    assert is_classifier(model)


@both
@quiet
def test_fitting_leaves_parameters_and_data_as_they_were(make, blobs):
    X, y = blobs[0].copy(), blobs[1].copy()
    weights = np.ones(len(X))
    model = make()
    before = model.get_params()
    model.fit(X, y, weights)
    model.predict_proba(X)
    assert model.get_params() == before
    np.testing.assert_array_equal(X, blobs[0])
    np.testing.assert_array_equal(y, blobs[1])
    assert (weights == 1).all()


@both
@quiet
def test_fitting_again_forgets_the_first_fit(make, blobs):
    X, y = blobs
    model = make(8).fit(X[:, :2], y % 2).fit(X, y)
    fresh = make(8).fit(X, y)
    assert model.n_features_in_ == 4
    np.testing.assert_array_equal(model.predict_proba(X), fresh.predict_proba(X))


@quiet
def test_fitting_again_forgets_what_was_chosen(blobs):
    model = BayesianNCA(8).fit(*blobs)
    assert model.choices_
    settled = {"prior_center": "euclidean", "prior_variance": 0.3, "label_noise": 0.0}
    model.set_params(vote="softmax", **settled).fit(*blobs)
    assert model.choices_ == []
    assert model.label_noise_ == 0
    assert not hasattr(model, "label_posterior_")


@pytest.mark.filterwarnings("error")
def test_a_default_fit_says_nothing(blobs, capsys):
    BayesianNCA().fit(*blobs).predict(blobs[0])
    assert capsys.readouterr() == ("", "")


# Tables and names.


@both
@quiet
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_go_in_and_come_out(make, blobs, library):
    X, y = blobs
    table = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[library]
    frame = table(dict(zip(["height", "width", "age", "mass"], X.T, strict=True)))
    model = make(8, n_components=3).fit(frame, y)
    plain = make(8, n_components=3).fit(X, y)
    # scikit-learn 1.6 cannot read the names of polars 2.
    named = getattr(StandardScaler().fit(frame), "feature_names_in_", None)
    assert library == "polars" or list(named) == ["height", "width", "age", "mass"]
    np.testing.assert_array_equal(getattr(model, "feature_names_in_", None), named)
    np.testing.assert_array_equal(model.predict_proba(frame), plain.predict_proba(X))
    out = model.set_output(transform=library).transform(frame)
    assert isinstance(out, table)
    assert list(out.columns) == ["bayesiannca0", "bayesiannca1", "bayesiannca2"]
    assert list(out.columns) == list(model.get_feature_names_out())
    np.testing.assert_array_equal(out.to_numpy(), plain.transform(X))
    assert isinstance(model.fit_transform(frame, y), table)


@both
@quiet
def test_columns_in_another_order_are_refused(make, blobs):
    frame = pd.DataFrame(blobs[0], columns=list("abcd"))
    model = make(8).fit(frame, blobs[1])
    for method in ("transform", "predict", "predict_proba", "kneighbors"):
        with pytest.raises(ValueError, match="feature names should match"):
            getattr(model, method)(frame[list("dcba")])


@both
@quiet
@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes", "maybe"]),
        np.array(["no", "yes", "maybe"], dtype=object),
        np.array([-5, 1_000_000, 3]),
        np.array([False, True, True]),
        np.array([1.0, 2.0, 7.0]),
    ],
    ids=["strings", "objects", "integers", "booleans", "whole floats"],
)
@pytest.mark.parametrize("container", [np.asarray, list, pd.Series])
def test_labels_of_every_kind(make, blobs, labels, container):
    X, y = blobs[0], labels[blobs[1]]
    model = make(8).fit(X, container(y))
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    assert set(model.predict(X)) <= set(labels.tolist())
    assert model.score(X, y) > 0.5


@both
@quiet
def test_lists_of_lists_are_rows(make, blobs):
    X, y = blobs
    listed, plain = make(8).fit(X.tolist(), y.tolist()), make(8).fit(X, y)
    np.testing.assert_array_equal(listed.predict_proba(X.tolist()), plain.predict_proba(X))


# Inside scikit-learn.


@both
@quiet
def test_grid_search_over_a_pipeline(make):
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), make()),
        {"bayesiannca__n_neighbors": [3, 10], "bayesiannca__prior_variance": [0.1, 10.0]},
        cv=3,
        scoring="neg_log_loss",
    ).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(X).shape == (150,)
    assert (search.predict(X) == y).mean() > 0.9


@both
@quiet
def test_a_step_of_a_pipeline_hands_on_transformed_rows(make, blobs):
    from sklearn.neighbors import KNeighborsClassifier

    X, y = blobs
    model = make_pipeline(make(8), KNeighborsClassifier(5)).fit(X, y)
    own = make(8, vote="uniform", n_voters=5).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), own.predict_proba(X), rtol=1e-7)


@both
@quiet
def test_sample_weight_is_routed(make, blobs):
    X, y = blobs
    weights = np.random.default_rng(0).integers(0, 4, len(X)).astype(np.float64)
    expected = make(8).fit(X, y, weights)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(make(8).set_fit_request(sample_weight=True))
        routed.fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(routed[-1].metric_.mean, expected.metric_.mean)
        search = GridSearchCV(
            make(8).set_fit_request(sample_weight=True).set_score_request(sample_weight=True),
            {"n_neighbors": [8]},
            cv=3,
        ).fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(search.best_estimator_.metric_.mean, expected.metric_.mean)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
            make_pipeline(make(8)).fit(X, y, sample_weight=weights)
        ignoring = make_pipeline(make(8).set_fit_request(sample_weight=False))
        with pytest.raises(TypeError, match="sample_weight"):
            ignoring.fit(X, y, sample_weight=weights)


@both
@quiet
def test_models_fitted_in_threads_at_once_are_the_same_models(make):
    X, y = load_iris(return_X_y=True)
    alone = cross_validate(make(8), X, y, scoring="neg_log_loss")
    with parallel_backend("threading", n_jobs=3):
        together = cross_validate(make(8), X, y, scoring="neg_log_loss")
    np.testing.assert_array_equal(alone["test_score"], together["test_score"])


@both
@quiet
def test_a_pickled_model_is_the_same_model(make, blobs):
    X, y = blobs
    model = make(8).fit(X, y)
    model.predict_proba(X)  # fills caches, which must not be in the way
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    for mine, theirs in zip(again.kneighbors(X), model.kneighbors(X), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    pairs = X[:10].reshape(5, 2, 4)
    np.testing.assert_array_equal(
        again.pair_distance(pairs, return_std=True), model.pair_distance(pairs, return_std=True)
    )


# Sparse rows and single precision.


@both
@quiet
@pytest.mark.parametrize("container", [scipy.sparse.csr_matrix, scipy.sparse.csc_array])
@pytest.mark.parametrize("shape", [(60, 8), (20, 50)])
def test_sparse_rows_equal_dense_ones(make, container, shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape) * np.geomspace(3, 0.5, shape[1])
    X[rng.random(shape) < 0.6] = 0
    y = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
    dense, sparse = make(6).fit(X, y), make(6).fit(container(X), y)
    assert_same_sum(sparse.metric_.mean, dense.metric_.mean, SAME_FIT)
    for queries in (X, container(X)):
        np.testing.assert_allclose(
            sparse.predict_proba(queries), dense.predict_proba(X), rtol=0, atol=SAME_PROBABILITY
        )
        np.testing.assert_array_equal(sparse.kneighbors(queries)[1], dense.kneighbors(X)[1])
        out = sparse.transform(queries)
        assert isinstance(out, np.ndarray)
        np.testing.assert_allclose(
            out @ out.T, dense.transform(X) @ dense.transform(X).T, rtol=0, atol=1e-6
        )


@both
@quiet
@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_matrix])
def test_single_precision_in_single_precision_out(make, blobs, container):
    X, y = blobs
    single = container(X.astype(np.float32))
    model = make(8).fit(single, y)
    double = make(8).fit(X, y)
    assert model.transform(single).dtype == np.float32
    assert double.transform(X).dtype == np.float64
    assert double.transform(X.astype(np.float32)).dtype == np.float32
    assert model.metric_.mean.dtype == model.metric_.covariance.dtype == np.float64
    out, expected = model.transform(single), double.transform(X)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(np.abs(out), np.abs(expected), rtol=0, atol=FLOAT32_FIT * scale)
    np.testing.assert_allclose(
        model.predict_proba(single), double.predict_proba(X), rtol=0, atol=FLOAT32_FIT
    )


@both
@quiet
def test_single_precision_sparse_rows_have_no_axes_of_rounding(make):
    """Twenty columns of rank four: an axis made of rounding errors would be one too many."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.integers(0, 5, (30, 4)), 5, axis=1).astype(np.float32) + np.float32(0.1)
    y = rng.integers(0, 2, 30)
    dense = make(5).fit(X, y)
    sparse = make(5).fit(scipy.sparse.csr_matrix(X), y)
    assert dense.metric_.directions.shape == sparse.metric_.directions.shape == (20, 4)


# The package.


def test_public_names_are_there():
    for name in bnca.__all__:
        assert hasattr(bnca, name)


PRINT_NEW_PACKAGES = """
import sys, sklearn.base, sklearn.neighbors
before = set(sys.modules)
import bnca
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(new - set(sys.stdlib_module_names)))
loaded = [n for n in ("matplotlib", "rich", "polars", "scipy.stats", "pandas") if n in sys.modules]
print(sorted(name for name in loaded if name not in before))
"""


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()


def test_importing_bnca_imports_nothing_that_scikit_learn_has_not():
    """scikit-learn itself may import pandas or scipy.stats where they are installed."""
    assert run(PRINT_NEW_PACKAGES) == ["['bnca']", "[]"]


WITHOUT_EXTRAS = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in {"pandas", "polars", "matplotlib", "rich", "pyarrow", "dask", "faiss"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import numpy as np
from bnca import BayesianNCA
X = np.random.default_rng(0).normal(size=(20, 2))
print(BayesianNCA(4, prior_variance=1e-3).fit(X, np.arange(20) % 2).predict(X).shape)
"""


def test_everything_works_without_the_extras():
    assert run(WITHOUT_EXTRAS) == ["(20,)"]
