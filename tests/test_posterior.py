"""Votes averaged over the posterior; intervals and comparisons of pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracle
import pytest
from scipy.special import ndtr
from tolerances import ROUNDING, SAME_PROBABILITY

from bnca import BayesianMetric, BayesianNCA, DistanceEstimate

# Labels overlap, so a learned weight may be negative; that warning has its own tests.
pytestmark = pytest.mark.filterwarnings("ignore::bnca.ProjectionWarning")

PARAMETERS = {
    "default": {},
    "doubtful": {"prior_mean": 0.5, "prior_variance": 10.0, "n_voters": 12},
    "one draw": {"n_samples": 1},
}


def loosened(model, factor=30.0):
    """The same model, much less sure of itself: averaging then matters."""
    wide = model.metric_.covariance * factor**2
    model.metric_ = replace(model.metric_, covariance=wide)
    return model


@pytest.fixture(scope="module")
def queries(blobs):
    return blobs[0][:15] + np.random.default_rng(1).normal(size=(15, 4)) * [1, 3, 0.5, 2]


def by_hand(model, X, y, queries, draws):
    """Posterior average of eq. likli1 over the voters of each query, by naive loops."""
    k = model.n_voters or model.n_neighbors_
    voters = oracle.neighbor_lists(model.transform(X), k, model.transform(queries))
    axes = model.metric_.directions
    out = []
    for query, nearest in zip(queries, voters, strict=True):
        features = [oracle.pair_feature(axes, query, X[t]) for t in nearest]
        out.append(oracle.averaged_class_probabilities(features, y[nearest], 3, draws))
    return np.array(out)


@pytest.fixture
def drawn(monkeypatch):
    """Every array of weights that a metric has drawn, as `predict_proba` got them."""
    arrays = []
    sample = BayesianMetric.sample

    def recorded(self, *args, **kwargs):
        arrays.append(sample(self, *args, **kwargs))
        return arrays[-1]

    monkeypatch.setattr(BayesianMetric, "sample", recorded)
    return arrays


@pytest.mark.parametrize("parameters", PARAMETERS.values(), ids=PARAMETERS)
def test_probabilities_are_averages_over_draws(blobs, queries, parameters, drawn):
    model = loosened(BayesianNCA(8, **parameters).fit(*blobs))
    found = model.predict_proba(queries)
    draws = np.vstack(drawn)
    assert len(draws) == parameters.get("n_samples", model.n_samples)
    assert (draws >= 0).all()  # each draw is a metric
    expected = by_hand(model, *blobs, queries, draws)
    np.testing.assert_allclose(found, expected, rtol=0, atol=SAME_PROBABILITY)
    # And not those of the mean, so that the comparison means something.
    plug_in = by_hand(model, *blobs, queries, np.maximum(model.metric_.mean, 0)[None])
    assert np.abs(found - plug_in).max() > 0.01


def test_draws_come_from_the_posterior(blobs, queries, drawn):
    model = loosened(BayesianNCA(8, n_samples=20_000, n_voters=2).fit(*blobs), 0.3)
    model.predict_proba(queries[:1])
    std = np.sqrt(np.diag(model.metric_.covariance))
    assert (model.metric_.mean > 5 * std).all()  # no draw is projected
    gap = drawn[0].mean(axis=0) - model.metric_.mean
    assert (np.abs(gap) < 5 * std / np.sqrt(20_000)).all()
    np.testing.assert_allclose(drawn[0].std(axis=0), std, rtol=0.03)


def test_probabilities_tend_to_the_plug_in_as_the_posterior_narrows(blobs, queries):
    model = BayesianNCA(8).fit(*blobs)
    plug_in = BayesianNCA(8, vote="softmax").fit(*blobs).predict_proba(queries)
    gaps = [
        np.abs(loosened(BayesianNCA(8).fit(*blobs), factor).predict_proba(queries) - plug_in).max()
        for factor in (30, 1, 0.03, 0.001)
    ]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[3] < SAME_PROBABILITY
    model.metric_ = replace(model.metric_, covariance=np.zeros_like(model.metric_.covariance))
    np.testing.assert_allclose(model.predict_proba(queries), plug_in, rtol=0, atol=SAME_PROBABILITY)


@pytest.mark.parametrize("parameters", [{}, {"n_voters": 3}, {"prior_variance": 100.0}])
def test_softmax_vote_is_the_class_probability_of_the_mean_metric(blobs, queries, parameters):
    """Eq. likli1 over the nearest rows, weights of the mean projected."""
    model = BayesianNCA(8, vote="softmax", **parameters).fit(*blobs)
    expected = by_hand(model, *blobs, queries, np.maximum(model.metric_.mean, 0)[None])
    np.testing.assert_allclose(model.predict_proba(queries), expected, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("vote", ["posterior", "softmax", "distance", "uniform"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_sum_to_one(blobs, queries, vote, n_jobs):
    probabilities = BayesianNCA(8, vote=vote, n_jobs=n_jobs).fit(*blobs).predict_proba(queries)
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-14)


def test_same_seed_same_probabilities(blobs, queries):
    model = loosened(BayesianNCA(8, random_state=3).fit(*blobs))
    first = model.predict_proba(queries)
    np.testing.assert_array_equal(model.predict_proba(queries), first)
    np.testing.assert_array_equal(
        loosened(BayesianNCA(8, random_state=3).fit(*blobs)).predict_proba(queries), first
    )
    other = loosened(BayesianNCA(8, random_state=4).fit(*blobs)).predict_proba(queries)
    assert (other != first).any()


def test_a_generator_moves_on_between_calls(blobs, queries):
    model = loosened(BayesianNCA(8, random_state=np.random.RandomState(0)).fit(*blobs))
    assert (model.predict_proba(queries) != model.predict_proba(queries)).any()


def test_a_query_is_answered_the_same_alone_or_among_others(blobs, queries):
    model = loosened(BayesianNCA(8).fit(*blobs))
    together = model.predict_proba(np.tile(queries, (40, 1)))
    alone = np.vstack([model.predict_proba(query[None]) for query in queries])
    np.testing.assert_allclose(together, np.tile(alone, (40, 1)), rtol=0, atol=SAME_PROBABILITY)


@pytest.mark.parametrize("vote", ["posterior", "softmax", "distance", "uniform"])
@pytest.mark.parametrize("far", [1e6, 1e12, 1e100])
def test_queries_far_away_have_probabilities(blobs, vote, far):
    model = BayesianNCA(8, vote=vote).fit(*blobs)
    probabilities = model.predict_proba(np.array([[far, 0, 0, 0], [0, -far, far, 0]]))
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)


# Pairs and triplets.


@pytest.fixture(scope="module")
def fitted(blobs):
    return BayesianNCA(8).fit(*blobs)


@pytest.fixture(scope="module")
def pairs(blobs):
    return np.stack([blobs[0][:20], blobs[0][20:40]], axis=1)


def test_pair_distance_has_the_moments_of_the_paper(fitted, pairs):
    metric = fitted.metric_
    expected = [
        oracle.distance_moments(metric.directions, x, y, metric.mean, metric.covariance)
        for x, y in pairs
    ]
    found = fitted.pair_distance(pairs, return_std=True)
    assert isinstance(found, DistanceEstimate)
    np.testing.assert_allclose(np.transpose(found), expected, rtol=ROUNDING)
    np.testing.assert_array_equal(fitted.pair_distance(pairs), found.mean)


def test_pair_distance_not_squared_carries_its_deviation_over(fitted, pairs):
    squared = fitted.pair_distance(pairs, return_std=True)
    plain = fitted.pair_distance(pairs, return_std=True, squared=False)
    np.testing.assert_allclose(plain.mean**2, squared.mean, rtol=ROUNDING)
    np.testing.assert_allclose(2 * plain.mean * plain.std, squared.std, rtol=ROUNDING)
    np.testing.assert_array_equal(fitted.pair_distance(pairs, squared=False), plain.mean)
    equal = fitted.pair_distance(pairs[:, [0, 0]], return_std=True, squared=False)
    assert not equal.mean.any()
    assert not equal.std.any()


def test_pair_distance_of_a_negative_weight_is_zero_once_not_squared(fitted, pairs):
    metric = replace(fitted.metric_, mean=-np.abs(fitted.metric_.mean))
    model = BayesianNCA(8)
    model.__dict__.update(fitted.__dict__ | {"metric_": metric})
    assert (model.pair_distance(pairs) < 0).all()
    assert not model.pair_distance(pairs, squared=False).any()


def test_pair_probability_averages_the_link_over_the_posterior(fitted, pairs):
    mean, std = fitted.pair_distance(pairs, return_std=True)
    link = fitted.pair_link_
    expected = ndtr((link.intercept - link.slope * mean) / np.sqrt(1 + (link.slope * std) ** 2))
    np.testing.assert_allclose(fitted.pair_proba(pairs), expected, rtol=ROUNDING)


def test_pair_probability_falls_with_distance_and_is_right_on_average(fitted, blobs):
    X, y = blobs
    first, second = np.triu_indices(80, 1)
    probability = fitted.pair_proba(np.stack([X[first], X[second]], axis=1))
    same = y[first] == y[second]
    assert fitted.pair_link_.slope > 0
    # 4,096 random pairs of 3,160: a rate of a half is known to 0.008, and in-sample to the fit.
    assert abs(probability.mean() - same.mean()) < 0.04
    assert probability[same].mean() > probability[~same].mean() + 0.1


def test_pair_probability_does_not_depend_on_the_unit(blobs, fitted, pairs):
    for factor in (1e-3, 1e3):
        model = BayesianNCA(8).fit(blobs[0] * factor, blobs[1])
        np.testing.assert_allclose(
            model.pair_proba(pairs * factor), fitted.pair_proba(pairs), rtol=0, atol=1e-6
        )


def test_triplet_probability_is_that_of_the_metric(fitted, blobs):
    a, b, c = blobs[0][:75].reshape(3, 25, 4)
    found = fitted.triplet_proba(np.stack([a, b, c], axis=1))
    np.testing.assert_array_equal(found, fitted.metric_.closer(a, b, c))
    nearer = fitted.pair_distance(np.stack([a, b], axis=1)) < fitted.pair_distance(
        np.stack([a, c], axis=1)
    )
    np.testing.assert_array_equal(found > 0.5, nearer)


def test_lists_of_lists_will_do(fitted, pairs):
    np.testing.assert_array_equal(fitted.pair_proba(pairs.tolist()), fitted.pair_proba(pairs))
    np.testing.assert_array_equal(fitted.pair_distance(pairs.tolist()), fitted.pair_distance(pairs))
