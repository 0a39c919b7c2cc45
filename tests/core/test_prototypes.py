from __future__ import annotations

import numpy as np
import oracle_beyond
import pytest
from tolerances import ROUNDING, SAME_FIT, STEP, assert_same_sum

from bnca.core import prototypes
from bnca.core.prototypes import Slopes, learn_slopes, left_out
from bnca.core.smoothing import NEVER, softmax

STOPPED = 5e-3
"""Absolute, probabilities where the search ends: steps are a thousandth of the slopes then, and a
slow direction has a few such steps to go."""

FALLEN = 1e-2
"""Gradient where the search ends, of that where it starts: ten times the step that ends it."""


def overlapping(n, q, n_classes, *, seed=0, soft=False):
    """Rows off-centre, classes and weights unequal, columns of unequal scale."""
    rng = np.random.default_rng(seed)
    codes = np.minimum(rng.geometric(0.5, n) - 1, n_classes - 1)
    codes[: 2 * n_classes] = np.repeat(np.arange(n_classes), 2)
    middle = rng.normal(size=(n_classes, q))
    rows = (middle[codes] + rng.normal(size=(n, q))) * np.geomspace(2, 0.5, q) + 3
    labels = np.eye(n_classes)[codes]
    if soft:
        labels = (labels + rng.dirichlet(np.ones(n_classes), n)) / 2
    return rows, labels, rng.choice([0.5, 1.0, 3.0], n)


def centered(votes):
    """Votes less what is common to all classes, which no probability depends on."""
    return votes - votes.mean(axis=1, keepdims=True)


@pytest.fixture
def patient(monkeypatch):
    """A search that goes on until it is there."""
    monkeypatch.setattr(prototypes, "STEPS", 3000)
    monkeypatch.setattr(prototypes, "TOLERANCE", 1e-7)


SHAPES = [(16, 2, 3), (12, 3, 2), (6, 8, 2)]
"""Rows, columns and classes; the last has more columns than rows."""


# The optimum.


@pytest.mark.parametrize("penalty", [0.1, 8.0])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.usefixtures("patient")
def test_votes_are_those_of_least_loss(shape, soft, penalty):
    rows, labels, weights = overlapping(*shape, soft=soft)
    found = learn_slopes(rows, labels, weights, penalty)
    slopes, offsets = oracle_beyond.learned_linear_votes(rows, labels, weights, penalty)
    np.testing.assert_allclose(
        centered(found.say(rows)), centered(rows @ slopes + offsets), rtol=0, atol=2e-3
    )
    loss = oracle_beyond.linear_votes_loss(*found, rows, labels, weights, penalty)
    least = oracle_beyond.linear_votes_loss(slopes, offsets, rows, labels, weights, penalty)
    assert loss <= least * (1 + SAME_FIT)


@pytest.mark.parametrize("penalty", [1.0, 8.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_search_ends_near_enough_to_the_optimum(shape, penalty):
    """With a small penalty and few rows it may not: then steps end by their number."""
    rows, labels, weights = overlapping(*shape)
    found = learn_slopes(rows, labels, weights, penalty)
    best = oracle_beyond.learned_linear_votes(rows, labels, weights, penalty)
    np.testing.assert_allclose(
        softmax(found.say(rows), 1.0),
        softmax(Slopes(*best).say(rows), 1.0),
        rtol=0,
        atol=STOPPED,
    )


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_gradient_is_nearly_zero_where_the_search_ends(shape, soft):
    rows, labels, weights = overlapping(*shape, soft=soft)
    rows = rows - weights @ rows / weights.sum()  # else slopes and offsets pull on each other
    split = rows.shape[1] * labels.shape[1]

    def loss(at):
        slopes = at[:split].reshape(rows.shape[1], -1)
        return oracle_beyond.linear_votes_loss(slopes, at[split:], rows, labels, weights, 1.0)

    found = learn_slopes(rows, labels, weights, 1.0)
    start = np.concatenate([np.zeros(split), np.log(weights @ labels / weights.sum())])
    end = np.concatenate([found.slopes.ravel(), found.offsets])
    before = np.abs(oracle_beyond.gradient(loss, start, STEP)).max()
    assert np.abs(oracle_beyond.gradient(loss, end, STEP)).max() < FALLEN * before


@pytest.mark.parametrize("shape", [(30, 5, 3), (40, 10, 3)])
def test_steps_suffice_where_the_loss_is_flat(shape):
    """With a small penalty, nearly all of what there is to gain is gained in time."""
    rows, labels, weights = overlapping(*shape)

    def loss(learned):
        return oracle_beyond.linear_votes_loss(*learned, rows, labels, weights, 0.1)

    found = loss(learn_slopes(rows, labels, weights, 0.1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prototypes, "STEPS", 3000)
        patch.setattr(prototypes, "TOLERANCE", 1e-7)
        least = loss(learn_slopes(rows, labels, weights, 0.1))
    shares = weights @ labels / weights.sum()
    start = loss(Slopes(np.zeros((shape[1], 3)), np.log(shares)))
    assert found - least < 1e-3 * (start - least)


def test_a_larger_penalty_leaves_smaller_slopes_and_in_the_end_shares_of_classes():
    rows, labels, weights = overlapping(16, 3, 3)
    sizes = [
        np.abs(learn_slopes(rows, labels, weights, penalty).slopes).max()
        for penalty in (0.1, 1.0, 8.0, 1e9)
    ]
    assert sizes == sorted(sizes, reverse=True)
    said = softmax(learn_slopes(rows, labels, weights, 1e9).say(rows), 1.0)
    shares = weights @ labels / weights.sum()
    np.testing.assert_allclose(said, np.tile(shares, (16, 1)), rtol=0, atol=SAME_FIT)


# What may not matter.


def test_weights_are_repetition():
    rows, labels, _ = overlapping(14, 3, 3)
    times = np.random.default_rng(1).integers(1, 4, 14)
    weighed = learn_slopes(rows, labels, times.astype(float), 1.0)
    again = np.repeat(np.arange(14), times)
    repeated = learn_slopes(rows[again], labels[again], np.ones(len(again)), 1.0)
    assert_same_sum(repeated.say(rows), weighed.say(rows), ROUNDING)


def test_a_shared_label_is_as_a_row_of_each_class_that_weighs_its_share():
    rows, labels, weights = overlapping(12, 2, 3, soft=True)
    shared = learn_slopes(rows, labels, weights, 1.0)
    split = learn_slopes(
        np.repeat(rows, 3, axis=0),
        np.tile(np.eye(3), (12, 1)),
        (labels * weights[:, None]).ravel(),
        1.0,
    )
    assert_same_sum(split.say(rows), shared.say(rows), ROUNDING)


def test_neither_order_nor_rotation_nor_place_of_the_rows_matters():
    rows, labels, weights = overlapping(15, 4, 3)
    expected = learn_slopes(rows, labels, weights, 1.0).say(rows)
    rng = np.random.default_rng(1)
    order = rng.permutation(15)
    shuffled = learn_slopes(rows[order], labels[order], weights[order], 1.0)
    assert_same_sum(shuffled.say(rows), expected, SAME_FIT)
    axes, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    turned = rows @ axes
    assert_same_sum(learn_slopes(turned, labels, weights, 1.0).say(turned), expected, SAME_FIT)
    moved = rows + np.array([5.0, -20.0, 0.0, 7.0])
    assert_same_sum(learn_slopes(moved, labels, weights, 1.0).say(moved), expected, SAME_FIT)


def test_names_of_classes_do_not_matter():
    rows, labels, weights = overlapping(15, 4, 3)
    expected = learn_slopes(rows, labels, weights, 1.0).say(rows)
    renamed = learn_slopes(rows, labels[:, [2, 0, 1]], weights, 1.0).say(rows)
    assert_same_sum(renamed, expected[:, [2, 0, 1]], SAME_FIT)


# Classes that are missing, or alone.


def test_a_class_without_rows_is_never_voted_for_and_changes_no_other():
    rows, labels, weights = overlapping(16, 3, 3)
    more = np.insert(labels, 1, 0.0, axis=1)
    found, without = (learn_slopes(rows, y, weights, 1.0) for y in (more, labels))
    said = found.say(rows)
    np.testing.assert_allclose(said[:, 1], NEVER, rtol=ROUNDING)
    assert softmax(said, 1.0)[:, 1].max() < 1e-30
    assert_same_sum(said[:, [0, 2, 3]], without.say(rows), SAME_FIT)


def test_one_class_has_nothing_to_tell_apart():
    rows, _, weights = overlapping(8, 3, 2)
    labels = np.ones((8, 1))
    found = learn_slopes(rows, labels, weights, 1.0)
    np.testing.assert_array_equal(found.say(rows), np.zeros((8, 1)))
    np.testing.assert_array_equal(left_out(rows, labels, weights, 1.0, found), np.zeros((8, 1)))


def test_rows_that_are_all_the_same_leave_the_shares_of_classes():
    labels = np.eye(2)[[0, 0, 0, 1]]
    found = learn_slopes(np.ones((4, 3)), labels, np.array([1.0, 1.0, 1.0, 2.0]), 1.0)
    np.testing.assert_allclose(softmax(found.say(np.ones((1, 3))), 1.0), [[0.6, 0.4]], rtol=1e-9)


# Centres.


@pytest.mark.parametrize("scale", [0.01, 2.0, 50.0])
def test_centers_say_the_same_but_for_what_all_classes_have_in_common(scale):
    rows, labels, weights = overlapping(16, 3, 3)
    learned = learn_slopes(rows, np.insert(labels, 1, 0.0, axis=1), weights, 1.0)
    points, offsets = learned.centers(scale)
    squared = oracle_beyond.distances(rows, points)
    expected = learned.say(rows) - scale * (rows**2).sum(axis=1, keepdims=True)
    assert_same_sum(offsets - scale * squared, expected, ROUNDING)


# Leaving a row out.


def refitted(rows, labels, weights, penalty):
    """Votes for each row by a search that never saw it."""
    out = np.zeros(labels.shape)
    for i in range(len(rows)):
        rest = np.arange(len(rows)) != i
        out[i] = learn_slopes(rows[rest], labels[rest], weights[rest], penalty).say(rows[i])
    return out


@pytest.mark.parametrize("penalty", [1.0, 8.0])
@pytest.mark.parametrize("shape", [(30, 2, 3), (16, 6, 2), (10, 20, 2)])
@pytest.mark.usefixtures("patient")
def test_leaving_a_row_out_moves_its_probabilities_as_a_refit_does(shape, penalty):
    """First order: two thirds of the way at least, in the mean square over rows and classes."""
    rows, labels, weights = overlapping(*shape)
    learned = learn_slopes(rows, labels, weights, penalty)
    said = softmax(learned.say(rows), 1.0)
    found = softmax(left_out(rows, labels, weights, penalty, learned), 1.0)
    expected = softmax(refitted(rows, labels, weights, penalty), 1.0)
    moved = np.sqrt(np.mean((expected - said) ** 2))
    assert np.sqrt(np.mean((found - expected) ** 2)) < 0.4 * moved
    own = labels.argmax(axis=1)[:, None]
    assert (np.take_along_axis(found - said, own, 1) < 0).all()
    assert (np.take_along_axis(expected - said, own, 1) < 0).all()


@pytest.mark.usefixtures("patient")
def test_leaving_out_a_row_of_little_weight_is_exact_for_two_classes():
    """The mean curvature is then the only one; a small penalty cannot hold the offsets back."""
    rows, labels, weights = overlapping(24, 2, 2, soft=True)
    weights[::3] = 1e-3
    learned = learn_slopes(rows, labels, weights, 0.01)
    found = centered(left_out(rows, labels, weights, 0.01, learned) - learned.say(rows))
    expected = centered(refitted(rows, labels, weights, 0.01) - learned.say(rows))
    assert_same_sum(found[::3], expected[::3], 0.02)


def test_leaving_out_a_row_that_does_not_count_changes_nothing():
    rows, labels, weights = overlapping(16, 3, 3)
    weights[[2, 9]] = 0
    learned = learn_slopes(rows, labels, weights, 1.0)
    found = left_out(rows, labels, weights, 1.0, learned)
    np.testing.assert_array_equal(found[[2, 9]], learned.say(rows)[[2, 9]])
    assert (found != learned.say(rows)).any(axis=1).sum() == 14


def test_a_row_that_tells_all_about_itself_has_votes_all_the_same():
    rows, labels, weights = overlapping(16, 3, 3)
    rows[0] = [1e5, 0.0, 0.0]
    learned = Slopes(np.zeros((3, 3)), np.zeros(3))
    found = left_out(rows, labels, weights, 1e-9, learned)
    # With three classes as probable as each other the curvature is a third, so that h is three at
    # most, and the label is two thirds away from what is said.
    most = 3 / (1 - prototypes.MOST_OWN) * 2 / 3
    assert -most * (1 + ROUNDING) < found[0] @ labels[0] < -0.9 * most
