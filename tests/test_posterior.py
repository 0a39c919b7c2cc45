"""Votes averaged over the posterior; intervals and comparisons of pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracle
import pytest
from models import both, published
from scipy.special import ndtr
from sklearn.base import clone
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


def pair_feature(metric, x, other):
    """Eq. 10, or where the basis is full all products of two coordinates, with √2 if two differ."""
    if metric.full == 0:
        return oracle.pair_feature(metric.directions, x, other)
    u = [float(axis @ (x - other)) for axis in metric.directions.T]
    out = [
        u[a] * u[b] * (1 if a == b else 2**0.5)
        for a in range(metric.full)
        for b in range(a, metric.full)
    ]
    return np.array(out + [c**2 for c in u[metric.full :]])


def voters_of(model, X, queries):
    k = model.n_voters or model.n_neighbors_
    return oracle.neighbor_lists(model.transform(X), k, model.transform(queries))


def by_hand(model, X, y, queries, draws):
    """Posterior average of eq. likli1 over the voters of each query, by naive loops."""
    out = []
    for query, nearest in zip(queries, voters_of(model, X, queries), strict=True):
        features = [pair_feature(model.metric_, query, X[t]) for t in nearest]
        out.append(oracle.averaged_class_probabilities(features, y[nearest], 3, draws))
    return np.array(out)


def plug_in_by_hand(model, X, y, queries):
    """Eq. likli1 with the projected mean metric, by naive loops."""
    A = model.get_mahalanobis_matrix()
    out = []
    for query, nearest in zip(queries, voters_of(model, X, queries), strict=True):
        squared = [[(query - X[t]) @ A @ (query - X[t])] for t in nearest]
        out.append(oracle.class_probabilities(squared, y[nearest], 3, np.ones(1)))
    return np.array(out)


def eigenvalues_of(model, draws):
    """Eigenvalues of the matrices that draws of the weights stand for."""
    full = model.metric_.full
    if full == 0:
        return draws
    out = []
    for draw in draws:
        matrix, entries = np.zeros((full, full)), iter(draw)
        for a in range(full):
            for b in range(a, full):
                matrix[a, b] = matrix[b, a] = next(entries) / (1 if a == b else 2**0.5)
        out.append([*np.linalg.eigvalsh(matrix), *entries])
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


@both
@pytest.mark.parametrize("parameters", PARAMETERS.values(), ids=PARAMETERS)
def test_probabilities_are_averages_over_draws(blobs, queries, parameters, make, drawn):
    model = loosened(make(8, **({"vote": "posterior"} | parameters)).fit(*blobs))
    found = model.predict_proba(queries)
    draws = np.vstack(drawn)
    assert len(draws) == parameters.get("n_samples", model.n_samples)
    assert (eigenvalues_of(model, draws) > -ROUNDING).all()  # each draw is a metric
    expected = by_hand(model, *blobs, queries, draws)
    np.testing.assert_allclose(found, expected, rtol=0, atol=SAME_PROBABILITY)
    # And not those of the mean, so that the comparison means something.
    plug_in = plug_in_by_hand(model, *blobs, queries)
    assert np.abs(found - plug_in).max() > 0.01


def test_draws_come_from_the_posterior(blobs, queries, drawn):
    model = loosened(published(8, n_samples=20_000, n_voters=2).fit(*blobs), 0.3)
    model.predict_proba(queries[:1])
    std = np.sqrt(np.diag(model.metric_.covariance))
    assert (model.metric_.mean > 5 * std).all()  # no draw is projected
    gap = drawn[0].mean(axis=0) - model.metric_.mean
    assert (np.abs(gap) < 5 * std / np.sqrt(20_000)).all()
    np.testing.assert_allclose(drawn[0].std(axis=0), std, rtol=0.03)


@both
def test_probabilities_tend_to_the_plug_in_as_the_posterior_narrows(make, blobs, queries):
    model = make(8, vote="posterior").fit(*blobs)
    plug_in = make(8, vote="softmax").fit(*blobs).predict_proba(queries)
    gaps = [
        np.abs(
            loosened(make(8, vote="posterior").fit(*blobs), factor).predict_proba(queries) - plug_in
        ).max()
        for factor in (30, 1, 0.03, 0.001)
    ]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[3] < SAME_PROBABILITY
    model.metric_ = replace(model.metric_, covariance=np.zeros_like(model.metric_.covariance))
    np.testing.assert_allclose(model.predict_proba(queries), plug_in, rtol=0, atol=SAME_PROBABILITY)


@both
@pytest.mark.parametrize("parameters", [{}, {"n_voters": 3}, {"prior_variance": 100.0}])
def test_softmax_vote_is_the_class_probability_of_the_mean_metric(blobs, queries, make, parameters):
    """Eq. likli1 over the nearest rows, weights of the mean projected."""
    model = make(8, vote="softmax", **parameters).fit(*blobs)
    expected = plug_in_by_hand(model, *blobs, queries)
    np.testing.assert_allclose(model.predict_proba(queries), expected, rtol=0, atol=ROUNDING)


VOTES = [(published, vote) for vote in ("posterior", "softmax", "distance", "uniform")]
VOTES += [(BayesianNCA, vote) for vote in ("posterior", "distance", "smooth")]


@pytest.mark.parametrize(("make", "vote"), VOTES)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_sum_to_one(blobs, queries, make, vote, n_jobs):
    probabilities = make(8, vote=vote, n_jobs=n_jobs).fit(*blobs).predict_proba(queries)
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-14)


@both
def test_same_seed_same_probabilities(make, blobs, queries):
    model = loosened(make(8, vote="posterior", random_state=3).fit(*blobs))
    first = model.predict_proba(queries)
    np.testing.assert_array_equal(model.predict_proba(queries), first)
    np.testing.assert_array_equal(
        loosened(make(8, vote="posterior", random_state=3).fit(*blobs)).predict_proba(queries),
        first,
    )
    other = loosened(make(8, vote="posterior", random_state=4).fit(*blobs)).predict_proba(queries)
    assert (other != first).any()


@both
def test_a_generator_moves_on_between_calls(make, blobs, queries):
    model = loosened(make(8, vote="posterior", random_state=np.random.RandomState(0)).fit(*blobs))
    assert (model.predict_proba(queries) != model.predict_proba(queries)).any()


@both
def test_a_query_is_answered_the_same_alone_or_among_others(make, blobs, queries):
    model = loosened(make(8).fit(*blobs))
    together = model.predict_proba(np.tile(queries, (40, 1)))
    alone = np.vstack([model.predict_proba(query[None]) for query in queries])
    np.testing.assert_allclose(together, np.tile(alone, (40, 1)), rtol=0, atol=SAME_PROBABILITY)


@pytest.mark.parametrize(("make", "vote"), VOTES)
@pytest.mark.parametrize("far", [1e6, 1e12, 1e100])
def test_queries_far_away_have_probabilities(blobs, make, vote, far):
    model = make(8, vote=vote).fit(*blobs)
    probabilities = model.predict_proba(np.array([[far, 0, 0, 0], [0, -far, far, 0]]))
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)


# Pairs and triplets.


@pytest.fixture(scope="module", params=[published, BayesianNCA], ids=["published", "default"])
def fitted(request, blobs):
    return request.param(8).fit(*blobs)


@pytest.fixture(scope="module")
def pairs(blobs):
    return np.stack([blobs[0][:20], blobs[0][20:40]], axis=1)


def test_pair_distance_has_the_moments_of_the_paper(fitted, pairs):
    metric = fitted.metric_
    expected = []
    for x, y in pairs:
        w = pair_feature(metric, x, y)
        expected.append((w @ metric.mean, np.sqrt(w @ metric.covariance @ w)))
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
        model = clone(fitted).fit(blobs[0] * factor, blobs[1])
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
