"""What the default settles by itself: the share of wrong labels, true labels, and its metric."""

from __future__ import annotations

import numpy as np
import pytest
from models import published
from sklearn.datasets import load_digits, load_iris
from tolerances import ROUNDING

from bnca import BayesianNCA, selection
from bnca.core import centers
from bnca.selection import center_map
from bnca.votes import Rows

# Labels here are partly wrong, so a learned weight may be negative; that warning has its own tests.
pytestmark = pytest.mark.filterwarnings("ignore::bnca.ProjectionWarning")


def assert_distributions(probabilities, shape):
    assert probabilities.shape == shape
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)


# Labels that may be wrong.


def flipped(y, share, seed):
    """Labels of which a share was replaced, each by any of the other classes."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(len(y)) < share
    classes = y.max() + 1
    return np.where(wrong, (y + rng.integers(1, classes, len(y))) % classes, y), wrong


def test_clean_labels_are_believed():
    X, y = load_iris(return_X_y=True)
    model = BayesianNCA().fit(X, y)
    assert 0 <= model.label_noise_ < 0.02
    assert_distributions(model.label_posterior_, (150, 3))
    assert (model.label_posterior_[np.arange(150), y] > 0.9).mean() > 0.95


def test_the_share_of_wrong_labels_is_found_and_so_are_they():
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:400], truth[:400]
    given, wrong = flipped(truth, 0.3, 0)
    model = BayesianNCA().fit(X, given)
    assert abs(model.label_noise_ - 0.3) < 0.08
    found = model.label_posterior_
    assert_distributions(found, (400, 10))
    assert (found.argmax(axis=1) == truth).mean() > 0.9
    believed = found[np.arange(400), given]
    assert np.median(believed[~wrong]) > 0.95
    assert np.median(believed[wrong]) < 0.05


def test_a_share_that_is_given_is_taken(blobs):
    model = BayesianNCA(8, label_noise=0.25).fit(*blobs)
    assert model.label_noise_ == 0.25
    # Given labels are all contradicted now and then.
    assert model.label_posterior_[np.arange(80), blobs[1]].max() < 1
    assert BayesianNCA(8, label_noise=0.0).fit(*blobs).label_noise_ == 0


@pytest.mark.parametrize("duplicates", ["merge", "keep"])
def test_copies_and_rows_of_weight_zero_have_true_labels_too(blobs, duplicates):
    X, y = np.vstack([blobs[0], blobs[0][:9]]), np.concatenate([blobs[1], blobs[1][:9]])
    weights = np.where(np.arange(89) % 7 == 3, 0.0, 1.0)
    model = BayesianNCA(8, duplicates=duplicates).fit(X, y, weights)
    found = model.label_posterior_
    assert_distributions(found, (89, 3))
    if duplicates == "merge":
        both_count = np.flatnonzero((weights[:9] > 0) & (weights[80:] > 0))
        np.testing.assert_array_equal(found[80 + both_count], found[both_count])
    # Of a row whose label does not count, all others say what they say of any row.
    silent = weights == 0
    np.testing.assert_allclose(found[silent], model.predict_proba(X[silent]), rtol=0, atol=ROUNDING)
    other = y.copy()
    other[silent] = (y[silent] + 1) % 3
    again = BayesianNCA(8, duplicates=duplicates).fit(X, other, weights)
    if duplicates == "merge":
        np.testing.assert_array_equal(again.label_posterior_, found)


def test_rows_that_were_not_needed_to_choose_on_have_true_labels(blobs, monkeypatch):
    monkeypatch.setattr(selection, "CHOICE_ROWS", 50)
    model = BayesianNCA(8).fit(*blobs)
    assert_distributions(model.label_posterior_, (80, 3))
    assert (model.label_posterior_.argmax(axis=1) == blobs[1]).mean() > 0.7


# Metrics.


def test_choices_are_told_best_first(blobs):
    choices = BayesianNCA(8).fit(*blobs).choices_
    losses = [choice["held_out_loss"] for choice in choices]
    assert losses == sorted(losses)
    assert 0 < losses[0] < losses[-1] < np.log(3) * 2
    assert all(choice.keys() == {"center", "variance", "held_out_loss"} for choice in choices)
    centers_ = {choice["center"] for choice in choices if choice["variance"] is None}
    assert centers_ == {"euclidean", "scaled", 0.3, "ledoit-wolf"}
    assert {choice["variance"] for choice in choices} == {None, 0.3, 3.0}


def test_only_what_was_left_open_is_chosen(blobs):
    model = BayesianNCA(8, prior_center="scaled", prior_variance=0.7).fit(*blobs)
    assert {choice["center"] for choice in model.choices_} == {"scaled"}
    assert {choice["variance"] for choice in model.choices_} == {None, "given"}
    settled = {"prior_center": "scaled", "prior_variance": 0.7, "label_noise": 0.0}
    assert BayesianNCA(8, **settled, vote="uniform").fit(*blobs).choices_ == []


def test_one_class_leaves_nothing_to_choose(blobs):
    model = BayesianNCA(8).fit(blobs[0], np.full(80, "only"))
    assert model.choices_ == []
    assert model.label_noise_ == 0
    assert not hasattr(model, "label_posterior_")
    np.testing.assert_array_equal(model.predict_proba(blobs[0][:2]), [[1.0], [1.0]])
    assert set(model.predict(blobs[0])) == {"only"}


@pytest.mark.parametrize("center", ["auto", "euclidean", "scaled", 0.3, "ledoit-wolf"])
@pytest.mark.parametrize("basis", ["leading", "full", "eigen"])
def test_n_components_is_the_width_of_what_comes_out(blobs, center, basis):
    X = np.column_stack([blobs[0], blobs[0][:, ::-1] ** 2])
    model = BayesianNCA(8, basis=basis, n_components=3, prior_center=center).fit(X, blobs[1])
    assert model.transform(X).shape == (80, 3)
    assert model.components_.shape == (3, 8)


def test_scaled_columns_take_no_more_coordinates_than_there_are_axes():
    """And distances are those of the rows along the axes, each column divided by its spread."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 50)) * np.geomspace(4, 0.2, 50)
    axes = np.linalg.svd(X, full_matrices=False)[2][:6].T
    codes = rng.integers(0, 2, 30)
    rows = Rows(X @ axes, axes, codes, np.ones(30), 2)
    found = center_map(rows, "scaled")
    assert found.shape == (6, 6)
    wide = centers.scaled_map(rows.coordinates, np.eye(2)[codes], axes)
    assert wide.shape == (6, 50)
    np.testing.assert_allclose(found @ found.T, wide @ wide.T, rtol=ROUNDING, atol=ROUNDING)


def test_the_basis_of_the_paper_means_its_model(blobs):
    """All that is left open is then settled as published, in units of the data."""
    X, y = blobs
    plain = BayesianNCA(8, basis="eigen").fit(X, y)
    stated = published(n_neighbors=8, n_jobs=None).fit(X, y)
    np.testing.assert_array_equal(plain.metric_.mean, stated.metric_.mean)
    np.testing.assert_array_equal(plain.metric_.covariance, stated.metric_.covariance)
    np.testing.assert_array_equal(plain.predict_proba(X), stated.predict_proba(X))
    assert plain.label_noise_ == 0
    assert not plain.choices_


def test_the_basis_of_the_paper_can_have_what_came_later(blobs):
    model = BayesianNCA(8, basis="eigen", likelihood="picks").fit(*blobs)
    assert model.choices_
    assert model.metric_.full == 0


def test_a_smooth_vote_is_not_to_be_had_from_a_fit_without_it(blobs):
    model = BayesianNCA(8, vote="softmax", prior_center="euclidean", prior_variance=0.3)
    model.set_params(label_noise=0.0).fit(*blobs)
    with pytest.raises(ValueError, match="vote='smooth' learns in fit"):
        model.set_params(vote="smooth").predict(blobs[0])


def test_flip_rates_of_pairs_of_classes_are_rates(blobs):
    model = BayesianNCA(8).fit(*blobs)
    assert model.label_flips_.shape == (3, 3)
    np.testing.assert_allclose(model.label_flips_.sum(axis=1), 1)
    assert (np.diag(model.label_flips_) > 0.5).all()
    again = model.set_params(prior_center="euclidean", prior_variance=0.3, label_noise=0.0)
    assert not hasattr(again.set_params(vote="softmax").fit(*blobs), "label_flips_")
