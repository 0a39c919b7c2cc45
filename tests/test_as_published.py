"""What `BayesianNCA.as_published` gives, digit by digit: defaults may change, this may not.

The numbers were computed once by the code that agrees with naive loops over the paper's equations
(`test_bayesian_nca.py`).  If one of them moves, the published method is no longer what is fitted.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from bnca import BayesianNCA

DIGITS = 1e-10
"""Relative: sums of a few thousand terms in another order lose four digits of sixteen at most."""

SINGLE = 1e-5
"""Absolute: the exponentials behind averaged votes are single precision."""

MEAN = [0.12441991329161133, 0.09538003211802738, 0.0995153920482592, 0.09957397271407663]
DIAGONAL = [0.0003729325180066085, 0.000577387122342144, 0.0006907173788949792, 0.0009731910845187]
COVARIANCE_SUM = 0.002648378972269156
FIRST_BOUND, LAST_BOUND = -3880.2268918840773, -3879.872368355246
STEPS = 21

VERSICOLOR = {
    70: 0.59900987,
    72: 0.64950624,
    83: 0.49684669,
    106: 0.75119671,
    119: 0.64495796,
    133: 0.59729795,
    138: 0.64621993,
}
"""P(versicolor) of rows between two species, where averaging has something to say."""


@pytest.fixture(scope="module")
def published():
    X, y = load_iris(return_X_y=True)
    return BayesianNCA.as_published().fit(X[::2], y[::2])


def test_posterior_keeps_its_digits(published):
    metric = published.metric_
    np.testing.assert_allclose(metric.mean, MEAN, rtol=DIGITS)
    np.testing.assert_allclose(np.diag(metric.covariance), DIAGONAL, rtol=DIGITS)
    np.testing.assert_allclose(metric.covariance.sum(), COVARIANCE_SUM, rtol=DIGITS)


def test_the_way_there_keeps_its_digits(published):
    assert published.converged_
    assert published.n_iter_ == STEPS
    assert published.n_neighbors_ == 20
    assert published.scale_ == 1
    np.testing.assert_allclose(published.lower_bounds_[0], FIRST_BOUND, rtol=DIGITS)
    np.testing.assert_allclose(published.lower_bound_, LAST_BOUND, rtol=DIGITS)


def test_axes_are_the_principal_ones(published):
    X = load_iris().data[::2]
    _, axes = np.linalg.eigh(np.cov(X.T))
    found = published.metric_.directions
    np.testing.assert_allclose(np.abs(np.einsum("ij,ij->j", found, axes[:, ::-1])), 1, rtol=DIGITS)


def test_probabilities_keep_theirs(published):
    found = published.predict_proba(load_iris().data[list(VERSICOLOR)])
    versicolor = np.array(list(VERSICOLOR.values()))
    expected = np.column_stack([np.zeros_like(versicolor), versicolor, 1 - versicolor])
    np.testing.assert_allclose(found, expected, rtol=0, atol=SINGLE)
