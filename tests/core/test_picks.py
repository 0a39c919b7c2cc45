from __future__ import annotations

import numpy as np
import oracle
import oracle_beyond
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import anchor_blocks
from tolerances import CURVED, ROUNDING, STEP, SUMS, assert_same_sum

from bnca.blocks import Room, cut, sum_blocks
from bnca.core.anchors import Anchors
from bnca.core.picks import LEAST, expand_picks

# Second differences of a loss divide its rounding by the square of a step: eps^(1/4) suits them.
SECOND_STEP = float(np.finfo(np.float64).eps ** 0.25)
SECOND_CURVED = 1e-4

FLIPS = ((0.0, 2), (0.1, 2), (0.3, 4), (0.75, 4))
"""Flip rates and numbers of classes; the last says that labels tell nothing."""


def probabilities(flip_rate, n_classes):
    return 1 - flip_rate, flip_rate / (n_classes - 1)


def statistics(features, agree, weights, mean, flips, *, hessian=True):
    """`expand_picks` on copies: it overwrites what it is given."""
    return expand_picks(
        features.copy(), agree, weights, mean, flips=probabilities(*flips), hessian=hessian
    )


def fixed_block(seed=0, b=6, K=5, p=3):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(b, K, p)) ** 2 * [0.1, 1.0, 3.0]
    agree = rng.integers(0, 2, (b, K)).astype(np.float64)
    agree[:, 0] = 1  # everybody has a friend: without flips the loss would be infinite
    return features, agree, rng.choice([0.5, 1.0, 3.0], b), rng.normal(size=p) * 0.3


def friendly(block):
    """A block whose anchors all have a friend."""
    features, agree, weights, mean = block
    agree = agree.copy()
    agree[:, 0] = 1
    return features, agree, weights, mean


@pytest.mark.parametrize("flips", FLIPS)
@pytest.mark.parametrize("soft", [False, True])
@given(st.data())
def test_loss_is_that_of_the_naive_loop(flips, soft, data):
    block = friendly(data.draw(anchor_blocks(soft=soft)))
    found = statistics(*block, flips, hessian=False).loss
    expected = oracle_beyond.picks_loss(*block, flips, LEAST)
    np.testing.assert_allclose(found, expected, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("flips", FLIPS[1:])  # the floor of an impossible pick has no slope
@given(anchor_blocks(soft=True))
def test_slope_is_the_derivative_of_the_naive_loss(flips, block):
    features, agree, weights, mean = friendly(block)
    found = statistics(features, agree, weights, mean, flips, hessian=False).slope
    expected = oracle_beyond.gradient(
        lambda m: oracle_beyond.picks_loss(features, agree, weights, m, flips), mean, STEP
    )
    size = 1 + np.abs(features).max() ** 2 * weights.sum()
    np.testing.assert_allclose(found, expected, rtol=0, atol=CURVED * size)


@pytest.mark.parametrize("flips", FLIPS)
@pytest.mark.parametrize("seed", range(4))
def test_hessian_is_the_second_derivative_of_the_naive_loss(flips, seed):
    features, agree, weights, mean = fixed_block(seed)
    if seed % 2:  # doubtful labels
        agree = np.random.default_rng(seed).random(agree.shape)
    found = statistics(features, agree, weights, mean, flips).curvature
    expected = oracle_beyond.second_derivatives(
        lambda m: oracle_beyond.picks_loss(features, agree, weights, m, flips), mean, SECOND_STEP
    )
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=SECOND_CURVED * (1 + np.abs(expected).max())
    )


@pytest.mark.parametrize("flips", FLIPS[1:])  # the floor of an impossible pick has no slope
@given(anchor_blocks(soft=True))
def test_hessian_is_the_derivative_of_the_slope_and_symmetric(flips, block):
    features, agree, weights, mean = friendly(block)
    found = statistics(features, agree, weights, mean, flips).curvature
    columns = [
        statistics(features, agree, weights, mean + STEP * direction, flips, hessian=False).slope
        - statistics(features, agree, weights, mean - STEP * direction, flips, hessian=False).slope
        for direction in np.eye(len(mean))
    ]
    size = 1 + np.abs(features).max() ** 3 * weights.sum()
    np.testing.assert_allclose(np.array(columns) / (2 * STEP), found, rtol=0, atol=CURVED * size)
    np.testing.assert_allclose(found, found.T, rtol=0, atol=SUMS["float64"] * size)


def test_without_flips_or_doubt_it_is_the_likelihood_of_the_paper():
    features, agree, weights, mean = fixed_block()
    data = oracle.Problem(features, agree, weights)
    found = statistics(features, agree, weights, mean, (0.0, 2)).loss
    np.testing.assert_allclose(found, -oracle.log_likelihood(data, mean), rtol=ROUNDING)


def test_the_loss_is_not_convex():
    """Why the solver may not rely on a bound: a friend far away, an enemy further."""
    features = np.array([[[0.0], [1.0], [3.0]]])
    agree = np.array([[0.0, 1.0, 0.0]])
    curvature = [
        statistics(features, agree, np.ones(1), np.array([m]), (0.1, 2)).curvature[0, 0]
        for m in (-2.0, 0.0, 2.0, 4.0)
    ]
    assert min(curvature) < 0 < max(curvature)


def test_single_precision_features_give_the_same_sums_in_double():
    features, agree, weights, mean = fixed_block()
    found = statistics(features.astype(np.float32), agree, weights, mean, (0.1, 3))
    expected = statistics(features, agree, weights, mean, (0.1, 3))
    assert {found.slope.dtype, found.curvature.dtype} == {np.dtype(np.float64)}
    np.testing.assert_allclose(found.loss, expected.loss, rtol=SUMS["float32"])
    assert_same_sum(found.slope, expected.slope, SUMS["float32"])
    assert_same_sum(found.curvature, expected.curvature, SUMS["float32"])


def test_without_the_hessian_loss_and_slope_are_the_same_and_features_survive():
    features, agree, weights, mean = fixed_block()
    given_features = features.copy()
    flips = probabilities(0.1, 3)
    found = expand_picks(given_features, agree, weights, mean, flips=flips, hessian=False)
    expected = statistics(features, agree, weights, mean, (0.1, 3))
    assert found.loss == expected.loss
    np.testing.assert_array_equal(found.slope, expected.slope)
    assert not found.curvature.any()
    np.testing.assert_array_equal(given_features, features)


@given(anchor_blocks(soft=True))
def test_only_contrasts_within_an_anchor_count(block):
    features, agree, weights, mean = friendly(block)
    shift = np.arange(1.0, 1 + features.shape[0] * features.shape[2])
    moved = features + shift.reshape(features.shape[0], 1, features.shape[2])
    atol = 10 * SUMS["float64"] * (1 + np.abs(moved).max() ** 2 * weights.sum())
    here = statistics(features, agree, weights, mean, (0.2, 3))
    there = statistics(moved, agree, weights, mean, (0.2, 3))
    np.testing.assert_allclose(there.loss, here.loss, rtol=0, atol=atol)
    np.testing.assert_allclose(there.slope, here.slope, rtol=0, atol=atol)
    np.testing.assert_allclose(there.curvature, here.curvature, rtol=0, atol=atol)


def test_labels_that_tell_nothing_teach_nothing():
    found = statistics(*fixed_block(), (0.75, 4))
    assert np.abs(found.slope).max() <= ROUNDING
    assert np.abs(found.curvature).max() <= ROUNDING


@pytest.mark.parametrize("size", [1e-12, 1e4, 1e8])
def test_no_size_of_features_overflows(size):
    features, agree, weights, mean = fixed_block()
    for flips in FLIPS:
        found = statistics(features * size, agree, weights, mean, flips)
        assert np.isfinite(found.loss)
        assert np.isfinite(found.slope).all()
        assert np.isfinite(found.curvature).all()


# Structure.


def test_statistics_of_a_union_are_the_sum():
    features, agree, weights, mean = fixed_block()
    whole = statistics(features, agree, weights, mean, (0.1, 3))
    parts = [slice(0, 1), slice(1, 4), slice(4, 6)]
    first, second, third = (
        statistics(features[s], agree[s], weights[s], mean, (0.1, 3)) for s in parts
    )
    total = first + second + third
    np.testing.assert_allclose(total.loss, whole.loss, rtol=SUMS["float64"])
    assert_same_sum(total.slope, whole.slope, SUMS["float64"])
    assert_same_sum(total.curvature, whole.curvature, SUMS["float64"])


@pytest.mark.parametrize("times", [2, 3])
def test_a_weight_is_so_many_copies_of_the_anchor(times):
    features, agree, weights, mean = fixed_block()
    weighed = weights.copy()
    weighed[2] *= times
    extra = [2] * (times - 1)
    rows = [*range(6), *extra]
    found = statistics(features, agree, weighed, mean, (0.1, 3))
    expected = statistics(features[rows], agree[rows], weights[rows], mean, (0.1, 3))
    np.testing.assert_allclose(found.loss, expected.loss, rtol=SUMS["float64"])
    assert_same_sum(found.slope, expected.slope, SUMS["float64"])
    assert_same_sum(found.curvature, expected.curvature, SUMS["float64"])


def doubtful_anchors(k, *, full, truth):
    """Anchors of nine rows in three columns whose labels may be wrong."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(9, 3)) * [1.0, 2.0, 0.5]
    codes = np.array([0, 0, 1, 1, 1, 0, 2, 1, 0])
    weights = np.array([1.0, 2.0, 1.0, 0.0, 1.0, 1.0, 5.0, 1.0, 0.5])
    lists = None if k is None else oracle.neighbor_lists(rows, k)
    known = rng.dirichlet(np.ones(3), 9) if truth else None
    made = Anchors.informative(rows, codes, lists, weights, known)
    flips = probabilities(0.2, 3)
    return (
        rows,
        lists,
        known,
        Anchors(
            made.scores,
            made.codes,
            made.rows,
            made.neighbors,
            made.weights,
            made.agree,
            full=full,
            flips=flips,
            truth=made.truth,
        ),
    )


@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("full", [0, 2, 3])
@pytest.mark.parametrize("truth", [False, True])
def test_blocks_of_any_size_add_up_to_the_naive_loss_whatever_scratch_held(k, full, truth):
    rows, lists, known, anchors = doubtful_anchors(k, full=full, truth=truth)
    codes = anchors.codes
    others = [[t for t in range(9) if t != i] for i in range(9)] if lists is None else lists
    if truth:
        assert 6 in anchors.rows  # a class of one, but any neighbour may be of it in truth
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(3, 3))
    matrix = matrix @ matrix.T / 3
    mean = [matrix[a, a] for a in range(full, 3)]
    pairs = [(a, b) for a in range(full) for b in range(a, full)]
    mean = np.array([matrix[a, b] * (1 if a == b else np.sqrt(2)) for a, b in pairs] + mean)
    loss = 0.0
    for i, weight in zip(anchors.rows, anchors.weights, strict=True):
        d = [oracle_beyond.quadratic_form(matrix, full, rows[i] - rows[t]) for t in others[i]]
        agree = [known[t, codes[i]] if truth else float(codes[t] == codes[i]) for t in others[i]]
        # With the distance as the one feature, and its weight one, the loss is that of the loop.
        loss += oracle_beyond.picks_loss(
            np.array([d])[..., None], [agree], [weight], np.ones(1), (0.2, 3)
        )
    expected = None
    for size in (1, 2, 5, 100):
        for kind in ("exact", "none"):
            room = Room(9 * 8 * 3, np.dtype(np.float64))

            def work(part, scratch, kind=kind):
                scratch[:] = np.nan
                return anchors.statistics(part, mean, kind, scratch)

            total = sum_blocks(work, cut(len(anchors), size), 1, room)
            expected = expected or total
            np.testing.assert_allclose(total.loss, loss, rtol=ROUNDING)
            assert_same_sum(total.slope, expected.slope, SUMS["float64"])
            if kind == "exact":
                assert_same_sum(total.curvature, expected.curvature, SUMS["float64"])
