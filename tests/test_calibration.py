"""Simulation-based calibration: labels drawn from the model, and the truth among the posterior.

Anchors pick a row of a reference whose labels are fixed, so their labels are independent given the
weights and the likelihood is that of the simulator.  Over draws from prior and model the rank of
the truth in the posterior is uniform where the posterior means what it says.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import chisquare

from bnca.core.anchors import Anchors
from bnca.learning import Learning, posterior, prior_of

SIMULATIONS = 250
BINS = 10
FLIPPED = 0.1
PICKS = Learning(
    6,
    full=2,
    prior_mean=2.0,
    prior_variance=0.5,
    likelihood="picks",
    curvature="exact",
    flip_rate=FLIPPED,
    tol=1e-5,
    n_jobs=1,
)
PRODUCT = replace(PICKS, likelihood="product", curvature="bohning")
REFERENCE, ANCHORS, CLASSES = 30, 250, 3


def world():
    """Scores of reference rows and anchors, labels of the reference, and six neighbours each."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [14, 10, 6])
    scores = rng.normal(size=(REFERENCE + ANCHORS, 3)) * [0.9, 0.6, 0.4]
    scores[:REFERENCE, 0] += labels - 0.7
    anchors = np.arange(REFERENCE, REFERENCE + ANCHORS)
    squared = ((scores[anchors, None] - scores[None, :REFERENCE]) ** 2).sum(axis=2)
    return scores, labels, anchors, np.argsort(squared, axis=1)[:, :6]


def naive_features(u):
    """Products of the first two coordinates and the square of the third, for weights of γ."""
    return np.array([u[0] ** 2, np.sqrt(2) * u[0] * u[1], u[1] ** 2, u[2] ** 2])


def drawn_labels(weights, features, labels, lists, rng):
    """Label of each anchor: that of the neighbour it picks, and now and then another."""
    pick = np.exp(-(features @ weights))
    total = pick.cumsum(axis=1)
    chosen = (total < total[:, -1:] * rng.random((len(pick), 1))).sum(axis=1)
    truth = labels[lists[np.arange(len(lists)), chosen]]
    other = (truth + rng.integers(1, CLASSES, len(truth))) % CLASSES
    return np.where(rng.random(len(truth)) < FLIPPED, other, truth)


@cache
def simulated():
    """True weights, and what picks and the published product make of labels drawn with them."""
    scores, labels, anchors, lists = world()
    features = np.array(
        [[naive_features(scores[i] - scores[t]) for t in lists[i - REFERENCE]] for i in anchors]
    )
    rng = np.random.default_rng(1)
    truths, picks, products = [], [], []
    for _ in range(SIMULATIONS):
        truth = np.array([2.0, 0.0, 2.0, 2.0]) + np.sqrt(0.5) * rng.normal(size=4)
        given = drawn_labels(truth, features, labels, lists, rng)
        agree = (labels[lists] == given[:, None]).astype(float)
        codes = np.concatenate([labels, given])
        base = Anchors(scores, codes, anchors, lists, np.ones(ANCHORS), agree, full=2)
        flips = (1 - FLIPPED, FLIPPED / (CLASSES - 1))
        prior = prior_of(PICKS, 3, 2)
        truths.append(truth)
        picks.append(posterior(replace(base, flips=flips), prior, PICKS))
        products.append(posterior(base, prior, PRODUCT))
    return np.array(truths), picks, products


def off(truths, found, scale=1.0):
    """Gap to the truth, in standard deviations: of each weight, two distances and their mean."""
    u = np.array([[0.5, 0.2, -0.1], [0.1, -0.9, 0.6]])
    distances = np.array([naive_features(row) for row in u])
    asked = np.vstack([np.eye(4), distances, distances.mean(axis=0)])
    gaps = [asked @ (t - f.mean) for t, f in zip(truths, found, strict=True)]
    spread = [np.sqrt(np.einsum("ij,jk,ik->i", asked, f.covariance, asked)) for f in found]
    return np.array(gaps) / (scale * np.array(spread))


def least_p(z):
    """The least p-value, over what is asked for, of uniform ranks."""
    ranks = np.minimum((BINS * ndtr(z)).astype(int), BINS - 1)
    return min(chisquare(np.bincount(r, minlength=BINS)).pvalue for r in ranks.T)


def covered(z):
    return (np.abs(z) < 1.6449).mean(axis=0)


def test_ranks_of_the_truth_are_uniform():
    truths, picks, _ = simulated()
    assert all(found.converged for found in picks)
    assert least_p(off(truths, picks)) > 0.01


def test_nine_in_ten_intervals_hold_the_truth():
    truths, picks, _ = simulated()
    assert abs(covered(off(truths, picks)).mean() - 0.9) < 0.02


def test_labels_teach_something():
    """Else the prior itself would pass for a calibrated posterior."""
    _, picks, _ = simulated()
    narrowed = [np.sqrt(np.diag(found.covariance) / 0.5) for found in picks]
    assert (np.mean(narrowed, axis=0) < 0.85).all()


@pytest.mark.parametrize("scale", [0.75, 1.33])
def test_intervals_that_are_a_third_off_would_be_found_out(scale):
    truths, picks, _ = simulated()
    z = off(truths, picks, scale)
    assert least_p(z) < 1e-3
    assert abs(covered(z).mean() - 0.9) > 0.03


def test_published_intervals_do_not_hold():
    truths, _, products = simulated()
    assert covered(off(truths, products)).max() < 0.6
