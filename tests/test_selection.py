from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracle_beyond
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import ROUNDING

from bnca import selection as module
from bnca.core import averaging, smoothing
from bnca.learning import Learning
from bnca.selection import (
    CHOICE_ROWS,
    DOUBTFUL,
    FOLDS,
    GIVEN,
    Start,
    Way,
    center_map,
    choose,
    in_parallel,
    metric_map,
    turned,
)
from bnca.votes import MEANS, N_VOTES, RIDGES, WIDTHS, Doubt, Rows

HOW = Learning(5, likelihood="picks", curvature="exact", flip_rate=0.1, n_jobs=1)
CENTERS = ("euclidean", "scaled", 0.3, "ledoit-wolf")


def clusters(n, *, flip_rate=0.0, n_classes=3, apart=6.0, seed=0, d=3):
    """Rows of clusters of unequal size and scale, labels of which some are wrong, and the truth."""
    rng = np.random.default_rng(seed)
    truth = np.sort(np.minimum(rng.geometric(0.45, n) - 1, n_classes - 1))
    truth[:n_classes] = np.arange(n_classes)
    middle = np.zeros((n_classes, d))
    middle[np.arange(n_classes), np.arange(n_classes) % d] = apart
    X = (middle[truth] + rng.normal(size=(n, d))) * np.geomspace(2, 0.5, d)
    wrong = rng.random(n) < flip_rate
    codes = np.where(wrong, (truth + rng.integers(1, n_classes, n)) % n_classes, truth)
    order = rng.permutation(n)
    X -= X.mean(axis=0)
    return Rows(X[order], np.eye(d), codes[order], np.ones(n), n_classes), truth[order]


def decide(rows, *, how=HOW, centers=CENTERS, variances=(), flip_rates=averaging.FLIP_RATES):
    return choose(rows, how, centers, variances, flip_rates)


# Folds.


@given(st.integers(2, 60), st.integers(1, 6))
def test_folds_part_the_rows(n, count):
    folds = module._folds(n, count)
    assert len(folds) == min(n, count)
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(n))


@given(st.integers(6, 60), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_folds_have_their_share_of_every_class(n, n_classes, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    rows = Rows(rng.normal(size=(n, 2)), np.eye(2), codes, np.ones(n), n_classes)
    order = module._content_order(rows)
    for fold in module._folds(n, FOLDS):
        held = np.bincount(codes[order[fold]], minlength=n_classes)
        fair = np.bincount(codes, minlength=n_classes) / min(n, FOLDS)
        assert (np.abs(held - fair) < 1).all()


@given(st.integers(1, 50), st.integers(1, 60))
def test_a_sample_is_evenly_spread_and_no_row_comes_twice(n, most):
    order = np.random.default_rng(n).permutation(n)
    found = module._spread_out(order, most)
    assert len(found) == min(n, most)
    places = np.argsort(order)[found]
    assert (np.diff(places) > 0).all()
    assert len(places) < 2 or np.ptp(np.diff(places)) <= 1


@given(st.integers(0, 2**32 - 1))
def test_order_depends_on_what_rows_are_and_not_on_where_they_stand(seed):
    rng = np.random.default_rng(seed)
    rows, _ = clusters(30, seed=seed % 1000)
    moved = rng.permutation(30)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    names = rng.permutation(3)
    other = Rows(
        7.0 * rows.coordinates[moved] @ turn,
        turn,
        names[rows.codes[moved]],
        rows.weights[moved],
        3,
    )
    np.testing.assert_array_equal(module._content_order(rows), moved[module._content_order(other)])


# Votes held out.


def spoilt(rows, row):
    """The same rows, one of them with another label."""
    codes = rows.codes.copy()
    codes[row] = (codes[row] + 1) % rows.n_classes
    return replace(rows, codes=codes)


@pytest.mark.parametrize("start", [Start("ledoit-wolf"), Start("scaled"), Start("euclidean", 0.3)])
def test_what_is_said_of_a_row_does_not_depend_on_its_label(start):
    rows, _ = clusters(40, apart=2.0)
    folds = module._folds(40, 4)
    doubt = Doubt(0.2, 2.5)
    ways = [
        Way(start, vote, d) for vote in (0, MEANS - 1, MEANS, N_VOTES - 1) for d in (None, doubt)
    ]
    said = module._held_out_again(rows, folds, ways, HOW, 1)
    again = module._held_out_again(spoilt(rows, 7), folds, ways, HOW, 1)
    mates = next(fold for fold in folds if 7 in fold)
    np.testing.assert_array_equal(again[:, mates], said[:, mates])
    others = np.setdiff1d(np.arange(40), mates)
    assert (again[:, others] != said[:, others]).any(axis=(1, 2)).all()


def test_what_is_said_of_a_row_is_what_a_model_of_the_other_folds_says():
    rows, _ = clusters(30, apart=2.0)
    folds = module._folds(30, 3)
    votes = module._held_out(rows, folds, [Start("euclidean")], HOW, 1)
    assert votes.shape == (N_VOTES, 30, 3)
    vote = MEANS // 2
    width, ridge = WIDTHS[vote // len(RIDGES)], RIDGES[vote % len(RIDGES)]
    for fold in folds:
        train = rows.take(np.setdiff1d(np.arange(30), fold))
        unit = oracle_beyond.typical_distance(train.coordinates, smoothing.NEAR)
        share = train.labels.mean(axis=0)
        expected = share + oracle_beyond.kernel_ridge(
            train.coordinates,
            train.labels - share,
            train.weights,
            rows.coordinates[fold],
            width=width * unit,
            ridge=ridge,
        )
        np.testing.assert_allclose(votes[vote, fold], expected, rtol=0, atol=1e-8)


def test_threads_do_not_show():
    rows, _ = clusters(40, apart=2.0)
    starts = [Start("euclidean"), Start("scaled", 0.3)]
    alone = module._held_out(rows, module._folds(40, 4), starts, HOW, 1)
    together = module._held_out(rows, module._folds(40, 4), starts, HOW, 4)
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("threads", [1, 3])
def test_all_tasks_are_done_and_errors_reach_the_caller(threads):
    done = np.zeros(5)

    def work(task):
        done[task] += 1

    in_parallel(work, list(range(5)), threads)
    np.testing.assert_array_equal(done, 1)
    with pytest.raises(IndexError):
        in_parallel(work, [0, 9], threads)


# Metrics.


def test_centers_by_their_names():
    rows, _ = clusters(60)
    labels = rows.labels * rows.weights[:, None]
    np.testing.assert_array_equal(center_map(rows, "euclidean"), np.eye(3))
    L = center_map(rows, 0.3)
    expected = oracle_beyond.shrunk_metric(rows.coordinates, labels, 0.3)
    np.testing.assert_allclose(L @ L.T, expected, rtol=1e-8, atol=1e-8)
    variance = np.diag(oracle_beyond.within_scatter(rows.coordinates, labels))
    L = center_map(rows, "scaled")
    metric = L @ L.T
    np.testing.assert_allclose(metric, np.diag(np.diag(metric)), atol=ROUNDING)
    assert (np.argsort(np.diag(metric)) == np.argsort(-variance)).all()


def test_scaled_center_of_few_axes_among_many_columns_has_as_many_coordinates():
    rows, _ = clusters(60)
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(10, 3)))[0]
    L = center_map(replace(rows, axes=axes), "scaled")
    assert L.shape[1] <= 10
    within = oracle_beyond.within_scatter(rows.coordinates @ axes.T, rows.labels)
    variance = np.diag(within)
    floor = module.centers.SPREAD_FLOOR * variance.mean()
    expected = axes.T @ np.diag(1 / (variance + floor)) @ axes
    np.testing.assert_allclose(L @ L.T, expected, rtol=1e-8, atol=1e-8)


def test_probable_labels_take_the_place_of_given_ones():
    rows, truth = clusters(60, flip_rate=0.3)
    known = np.eye(3)[truth]
    found = center_map(rows, "ledoit-wolf", known)
    expected = center_map(replace(rows, codes=truth), "ledoit-wolf")
    np.testing.assert_allclose(found, expected, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("center", CENTERS)
def test_a_metric_held_at_its_prior_is_its_center(center):
    rows, _ = clusters(40, apart=1.5)
    fixed = metric_map(rows, Start(center), HOW)
    how = replace(HOW, prior_variance=1e-10)
    found = metric_map(rows, Start(center, GIVEN), how)
    ratio = (found @ found.T) / np.trace(found @ found.T)
    expected = (fixed @ fixed.T) / np.trace(fixed @ fixed.T)
    np.testing.assert_allclose(ratio, expected, rtol=0, atol=1e-6)
    # A variance of its own goes before the given one.
    learned = metric_map(rows, Start(center, 3.0), how)
    moved = (learned @ learned.T) / np.trace(learned @ learned.T)
    assert np.abs(moved - expected).max() > 1e-3


def test_leading_coordinates_are_those_in_which_classes_differ():
    rows, _ = clusters(60)
    np.testing.assert_array_equal(turned(rows, np.eye(3), HOW), np.eye(3))
    some = turned(rows, np.eye(3), replace(HOW, coordinates=2))
    assert some.shape == (3, 2)
    np.testing.assert_allclose(some.T @ some, np.eye(2), atol=ROUNDING)
    L = metric_map(rows, Start("euclidean", 0.3), replace(HOW, coordinates=2, full=2))
    assert L.shape[0] == 3
    assert np.linalg.matrix_rank(L) <= 2


# Choices.


@pytest.mark.parametrize("rates", [(0.0,), (0.3,), (0.0, 0.1), averaging.FLIP_RATES])
def test_prior_says_that_labels_are_clean_as_often_as_not(rates):
    found = np.exp(module._flip_prior(rates))
    np.testing.assert_allclose(found.sum(), 1, rtol=ROUNDING)
    if len(rates) > 1:
        np.testing.assert_allclose(found[np.array(rates) == 0], 0.5, rtol=ROUNDING)


@pytest.mark.parametrize("flip_rate", [0.0, 0.1, 0.2])
def test_the_share_of_wrong_labels_is_found(flip_rate):
    rows, truth = clusters(300, flip_rate=flip_rate, seed=3)
    choice = decide(rows, centers=("euclidean", "ledoit-wolf"))
    actual = np.mean(rows.codes != truth)
    # Two standard errors of such a share, and half a step between the rates that are tried.
    assert abs(choice.weighed.flip_rate - actual) < 2 * np.sqrt(0.25 / 300) + 0.025
    assert np.mean(choice.clean.argmax(axis=1) == truth) > 0.97
    doubted = [way.doubt is not None for way in choice.ways]
    if flip_rate == 0:
        assert choice.weighed.flip_rate <= DOUBTFUL
        assert not any(doubted)


def test_the_share_of_wrong_labels_is_not_overstated_where_rows_cannot_tell():
    """All rows of two far clusters are equally sure: votes may be unsure, or labels wrong."""
    rows, truth = clusters(300, flip_rate=0.35, n_classes=2)
    choice = decide(rows, centers=("euclidean",))
    assert DOUBTFUL < choice.weighed.flip_rate < np.mean(rows.codes != truth) + 0.025
    assert np.mean(choice.clean.argmax(axis=1) == truth) > 0.95


def test_a_flip_rate_that_was_given_is_kept():
    rows, _ = clusters(80, flip_rate=0.2)
    for rate in (0.0, 0.2):
        choice = decide(rows, flip_rates=(rate,), centers=("euclidean",))
        np.testing.assert_allclose(choice.weighed.flip_rate, rate, rtol=ROUNDING)
        assert choice.weighed.shares.shape[1] == 1


def test_ways_that_are_kept_are_few_and_their_shares_sum_to_one():
    rows, _ = clusters(200, flip_rate=0.1, apart=2.5)
    choice = decide(rows, variances=(0.3, 3.0))
    tried = len(choice.losses) * (MEANS + 1)
    weighed = choice.weighed
    assert len(choice.ways) == len(weighed.shares) == len(weighed.temperatures)
    assert len(choice.ways) < tried
    assert weighed.shares.any(axis=1).all()
    np.testing.assert_allclose(weighed.shares.sum(), 1, rtol=ROUNDING)
    assert len(set(choice.ways)) == len(choice.ways)
    np.testing.assert_allclose(choice.clean.sum(axis=1), 1, rtol=ROUNDING)


def test_a_useless_metric_has_no_say_beside_a_good_one():
    """Classes differ along a direction of so little scatter that Euclidean distance is blind."""
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.arange(200) % 2)
    X = rng.normal(size=(200, 3)) * [30.0, 30.0, 0.1]
    X[:, 2] += codes
    rows = Rows(X - X.mean(axis=0), np.eye(3), codes, np.ones(200), 2)
    choice = decide(rows, centers=("euclidean", "scaled"))
    assert choice.losses[Start("scaled")] < choice.losses[Start("euclidean")]
    assert choice.best == Start("scaled")
    # Votes of a centre for each class may stretch that direction; those of near rows cannot.
    assert {way.start for way in choice.ways if way.vote < MEANS} <= {Start("scaled")}


def test_best_is_a_metric_that_is_learned_where_there_are_such():
    rows, _ = clusters(80, apart=2.0)
    choice = decide(rows, variances=(0.3, 3.0))
    learned = {s: loss for s, loss in choice.losses.items() if s.variance is not None}
    assert {start.variance for start in learned} <= {0.3, 3.0}
    assert choice.best == min(learned, key=learned.get)
    assert {start.center for start in choice.losses if start.variance is None} == set(CENTERS)


def test_order_of_rows_does_not_matter():
    rows, _ = clusters(90, flip_rate=0.15, apart=2.5)
    moved = np.random.default_rng(1).permutation(90)
    here = decide(rows, variances=(0.3,))
    there = decide(rows.take(moved), variances=(0.3,))
    np.testing.assert_array_equal(there.weighed.shares, here.weighed.shares)
    np.testing.assert_array_equal(there.clean, here.clean[moved])
    assert there.ways == here.ways
    assert there.losses == here.losses


def test_names_of_classes_do_not_matter():
    rows, _ = clusters(90, flip_rate=0.15, apart=2.5)
    names = np.array([2, 0, 1])
    here = decide(rows, variances=(0.3,))
    there = decide(replace(rows, codes=names[rows.codes]), variances=(0.3,))
    assert [(way.start, way.vote) for way in there.ways] == [
        (way.start, way.vote) for way in here.ways
    ]
    np.testing.assert_allclose(there.weighed.shares, here.weighed.shares, rtol=0, atol=1e-6)
    np.testing.assert_allclose(there.clean[:, names], here.clean, rtol=0, atol=1e-6)


def test_rotation_and_unit_of_the_rows_do_not_matter():
    rows, _ = clusters(90, flip_rate=0.15, apart=2.5)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    other = replace(rows, coordinates=5 * rows.coordinates @ turn, axes=turn)
    here = decide(rows, centers=("euclidean", 0.3, "ledoit-wolf"))
    there = decide(other, centers=("euclidean", 0.3, "ledoit-wolf"))
    np.testing.assert_allclose(there.clean, here.clean, rtol=0, atol=1e-6)
    np.testing.assert_allclose(there.weighed.flip_rate, here.weighed.flip_rate, atol=1e-6)


def test_threads_do_not_show_in_a_choice():
    rows, _ = clusters(60, flip_rate=0.15, apart=2.5)
    alone = decide(rows, variances=(0.3,))
    together = decide(rows, how=replace(HOW, n_jobs=3), variances=(0.3,))
    np.testing.assert_array_equal(together.clean, alone.clean)
    assert together.ways == alone.ways


@pytest.mark.parametrize("most", [40, 1000])
def test_no_more_rows_are_looked_at_than_allowed(most, monkeypatch):
    monkeypatch.setattr(module, "CHOICE_ROWS", most)
    rows, _ = clusters(130)
    seen = []
    held_out = module._held_out_again

    def look(sample, *others):
        seen.append(len(sample.codes))
        return held_out(sample, *others)

    monkeypatch.setattr(module, "_held_out_again", look)
    choice = decide(rows, centers=("euclidean",))
    assert set(seen) == {min(most, 130)}
    spoken = ~np.isnan(choice.clean).any(axis=1)
    assert spoken.sum() == min(most, 130)
    assert set(rows.codes[spoken]) == set(rows.codes)


def test_choices_are_made_on_a_bounded_number_of_rows():
    assert CHOICE_ROWS <= 5000  # each fold solves systems of this size


@pytest.mark.parametrize("codes", [[0, 0, 1], [0, 1, 2, 0], [0, 0, 0, 0, 1], [0, 1, 0, 1, 1, 0]])
@pytest.mark.parametrize("variances", [(), (0.3,)])
def test_few_rows_and_classes_of_one_row_are_chosen_on(codes, variances):
    n = len(codes)
    X = np.random.default_rng(0).normal(size=(n, 2))
    rows = Rows(X, np.eye(2), np.array(codes), np.ones(n), max(codes) + 1)
    choice = decide(rows, variances=variances)
    np.testing.assert_allclose(choice.clean.sum(axis=1), 1, rtol=ROUNDING)
