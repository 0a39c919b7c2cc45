from __future__ import annotations

import numpy as np
import oracle
import pytest
from tolerances import SUMS, assert_same_sum

from bnca.blocks import Room, cut, sum_blocks
from bnca.core.anchors import Anchors

MEAN = np.array([0.3, -0.1])


def small(k=3, *, seed=0):
    """Rows in two columns, labels with a class of one, neighbour lists and weights with a zero."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(9, 2)) * [1.0, 3.0]
    codes = np.array([0, 0, 1, 1, 1, 0, 2, 1, 0])
    weights = np.array([1.0, 2.0, 1.0, 0.0, 1.0, 1.0, 5.0, 1.0, 0.5])
    lists = None if k is None else oracle.neighbor_lists(rows, k)
    return rows, codes, lists, weights


def scratch(anchors, n=9):
    """Memory for the features of all anchors, full of what the last block may have left."""
    k = n - 1 if anchors.neighbors is None else anchors.neighbors.shape[1]
    return np.full(n * k * anchors.scores.shape[1], np.nan, dtype=anchors.scores.dtype)


@pytest.mark.parametrize("k", [1, 3, 8, None])
def test_anchors_have_weight_and_a_friend_among_their_neighbors(k):
    rows, codes, lists, weights = small(k)
    found = Anchors.informative(rows, codes, lists, weights)
    expected = []
    for i in range(9):
        others = [t for t in range(9) if t != i] if lists is None else lists[i]
        if weights[i] > 0 and any(codes[t] == codes[i] for t in others):
            expected.append(i)
    assert 6 not in expected  # a class of one
    assert 3 not in expected  # weight zero
    np.testing.assert_array_equal(found.rows, expected)
    np.testing.assert_array_equal(found.weights, weights[expected])
    assert len(found) == len(expected)
    if lists is not None:
        np.testing.assert_array_equal(found.neighbors, lists[expected])


@pytest.mark.parametrize("k", [1, 3, 8, None])
def test_a_block_has_features_agreements_and_weights_of_its_anchors(k):
    rows, codes, lists, weights = small(k)
    anchors = Anchors.informative(rows, codes, lists, weights)
    features, agree, counts = anchors.block(slice(1, 3), scratch(anchors))
    for b, i in enumerate(anchors.rows[1:3]):
        others = [t for t in range(9) if t != i] if lists is None else lists[i]
        for c, t in enumerate(others):
            np.testing.assert_allclose(features[b, c], (rows[i] - rows[t]) ** 2, rtol=1e-14)
            assert agree[b, c] == (codes[i] == codes[t])
        assert counts[b] == weights[i]
    assert features.shape == (2, k or 8, 2)


def test_features_have_the_precision_of_the_scores_and_agreements_are_double():
    rows, codes, lists, weights = small()
    anchors = Anchors.informative(rows.astype(np.float32), codes, lists, weights)
    block = anchors.block(slice(0, 2), scratch(anchors))
    assert block.features.dtype == np.float32
    assert block.agree.dtype == np.float64


@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("kind", ["bohning", "exact", "none"])
def test_blocks_of_any_size_add_up_to_the_naive_sums(k, kind):
    rows, codes, lists, weights = small(k)
    anchors = Anchors.informative(rows, codes, lists, weights)
    others = [[t for t in range(9) if t != i] for i in range(9)] if lists is None else lists
    features = [[(rows[i] - rows[t]) ** 2 for t in others[i]] for i in range(9)]
    agree = [[float(codes[i] == codes[t]) for t in others[i]] for i in range(9)]
    naive = oracle.Problem(np.array(features), np.array(agree), weights)
    curvature = {
        "bohning": oracle.curvature(naive),
        "exact": oracle.hessian(naive, MEAN),
        "none": np.zeros((2, 2)),
    }[kind]
    for size in (1, 2, 5, 100):
        total = sum_blocks(
            lambda part, room: anchors.statistics(part, MEAN, kind, room),
            cut(len(anchors), size),
            1,
            Room(scratch(anchors).size, np.dtype(np.float64)),
        )
        assert_same_sum(total.curvature, curvature, SUMS["float64"])
        if kind == "bohning":  # the curvature of the bound does not depend on where it is expanded
            assert total.loss == 0
            assert not total.slope.any()
        else:
            loss = oracle.negative_bound(naive, MEAN)
            np.testing.assert_allclose(total.loss, loss, rtol=SUMS["float64"])
            assert_same_sum(total.slope, oracle.slope(naive, MEAN), SUMS["float64"])


@pytest.mark.parametrize("k", [3, None])
def test_every_third_anchor_stands_for_all(k):
    rows, codes, lists, weights = small(k)
    whole = Anchors.informative(rows, codes, lists, weights)
    part = whole.every(3)
    np.testing.assert_array_equal(part.rows, whole.rows[::3])
    np.testing.assert_allclose(part.weights.sum(), whole.weights.sum())
    ratio = part.weights / whole.weights[::3]
    np.testing.assert_allclose(ratio, ratio[0])
    if k is None:
        assert part.neighbors is None
    else:
        np.testing.assert_array_equal(part.neighbors, whole.neighbors[::3])
