"""LMNN: its objective against naive loops over triples, its search, and the estimator."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from rivals import oracle_lmnn
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from tolerances import FLOAT32_FIT, ROUNDING, SUMS, assert_same_sum

from bnca import NeighborhoodWarning
from bnca.rivals import LMNN, _impostors, _large_margin, _targets, lmnn
from bnca.rivals._impostors import Draw, count_pairs, search
from bnca.rivals._large_margin import Objective, best_scale, start_map
from bnca.rivals._lbfgs import Value, minimize
from bnca.rivals._targets import margin_of, slack_needed, triples

small_classes = pytest.mark.filterwarnings("ignore::bnca.NeighborhoodWarning")

NEAR_OPTIMUM = 1e-3
"""Relative, the loss where this search ends at tol=1e-6 against scipy's at its tightest.

In full (square) maps f has no local optima, and gains shrink slowly towards the end.
"""

OTHER_KINKS = 2e-2
"""Relative to the largest entry, maps of two searches that differ by rounding.

They meet the kinks of f in another order, and tol=1e-4 ends them before they meet again.
"""


def problem(seed, sizes=(13, 7, 2, 1), width=4, dtype=np.float64):
    """Rows of lopsided classes in no order, sorted triples, and a map to few dimensions."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = (rng.normal(size=(len(y), width)) * rng.choice([0.3, 1.0, 2.0], width)).astype(dtype)
    X[:, 0] += y
    L = rng.normal(size=(int(rng.integers(1, width + 1)), width)) / 2
    return X, y, L


@pytest.fixture
def tiny_blocks(monkeypatch):
    """Blocks, tiles and chunks that a few rows do not fit in."""
    monkeypatch.setattr(_impostors, "BLOCK_ROWS", 5)
    monkeypatch.setattr(_impostors, "TILE_ROWS", 3)
    monkeypatch.setattr(_impostors, "TILE_COLUMNS", 4)
    monkeypatch.setattr(_impostors, "CHUNK_PAIRS", 3)
    monkeypatch.setattr(_targets, "GATHER_NUMBERS", 7)


# Target neighbours.


def test_target_neighbors_are_those_of_a_loop():
    X, y, _ = problem(0)
    data = triples(X, y, 3)
    order = np.argsort(y, kind="stable")
    np.testing.assert_array_equal(data.rows, X[order])
    np.testing.assert_array_equal(data.ends, [13] * 13 + [20] * 7 + [22] * 2 + [23])
    expected = oracle_lmnn.target_neighbors(X, y, 3)
    for position, i in enumerate(order):
        found = order[data.targets[position][data.has_target[position]]]
        assert list(found) == expected[i]
        spare = data.targets[position][~data.has_target[position]]
        assert (spare == position).all()


def test_no_more_places_than_the_largest_class_can_fill():
    X, y, _ = problem(0, sizes=(3, 2))
    assert triples(X, y, 50).targets.shape == (5, 2)


# The objective.


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("push", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_objective_is_that_of_a_loop(seed, push, dtype, tiny_blocks):
    X, y, L = problem(seed, dtype=dtype)
    expected = oracle_lmnn.loss(L, X, y, oracle_lmnn.target_neighbors(X, y, 3), push)
    found = Objective(triples(X, y, 3), push)(L)
    assert found.n_active == expected.n_active > 0
    np.testing.assert_allclose(found.loss, expected.value, rtol=SUMS[dtype])
    assert_same_sum(found.gradient, expected.gradient, SUMS[dtype])


def test_objective_in_ordinary_blocks_is_that_in_small_ones(monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 9, 1500)
    data = triples(rng.normal(size=(1500, 5)) + y[:, None] / 4, y, 3)
    with monkeypatch.context() as patch:
        patch.setattr(_impostors, "BLOCK_ROWS", 70)
        patch.setattr(_impostors, "TILE_ROWS", 33)
        patch.setattr(_impostors, "TILE_COLUMNS", 50)
        patch.setattr(_impostors, "CHUNK_PAIRS", 1000)
        tiny = Objective(data, 0.5)(np.eye(5))
    plain = Objective(data, 0.5)(np.eye(5))
    assert plain.n_active == tiny.n_active
    np.testing.assert_allclose(plain.loss, tiny.loss, rtol=SUMS["float64"])
    assert_same_sum(plain.gradient, tiny.gradient, SUMS["float64"])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gradient_is_the_slope_of_the_objective(dtype):
    """Central differences; step ∛eps for the third derivative (zero here) against rounding."""
    X, y, L = problem(4, dtype=dtype)
    objective = Objective(triples(X, y, 3), 0.4)
    step = float(np.cbrt(np.finfo(dtype).eps)) / 4
    targets = oracle_lmnn.target_neighbors(X, y, 3)
    reach = 8 * step * np.abs(L).max() * np.abs(X - X.mean(0)).sum(1).max() ** 2
    if dtype == "float64":
        assert oracle_lmnn.loss(L, X, y, targets, 0.4).to_kink > reach
    gradient = objective(L).gradient
    slope = np.zeros(L.shape)
    for place in np.ndindex(L.shape):
        nudge = np.zeros(L.shape)
        nudge[place] = step
        slope[place] = (objective(L + nudge).loss - objective(L - nudge).loss) / (2 * step)
    # float32: images carry eps each, over a step of ∛eps, and some kinks lie within the step.
    assert_same_sum(slope, gradient, {"float64": 1e-8, "float32": 1e-2}[dtype])


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1.0, 1e4, 1e12])
@pytest.mark.parametrize("outlier", [1.0, 1e5])
@small_classes
def test_no_impostor_is_missed_at_any_scale(scale, outlier, tiny_blocks):
    """Distances are found by single-precision products: rounding there must hide nobody."""
    X, y, L = problem(1)
    X[np.flatnonzero(y == 0)[0]] *= outlier
    X = X * scale + 3 * scale
    targets = oracle_lmnn.target_neighbors(X, y, 2)
    for factor in (1e-3, 0.3, 1.0, 10.0):
        expected = oracle_lmnn.loss(factor * L / scale, X, y, targets, 0.5)
        found = Objective(triples(X - X.mean(0), y, 2), 0.5)(factor * L / scale)
        assert found.n_active == expected.n_active
        np.testing.assert_allclose(found.loss, expected.value, rtol=1e-6)


def test_rows_that_all_fall_on_one_point_are_all_impostors():
    X, y, L = problem(2)
    found = Objective(triples(X, y, 3), 0.5)(0 * L)
    every = sum(
        len(near) * np.count_nonzero(y != y[i])
        for i, near in enumerate(oracle_lmnn.target_neighbors(X, y, 3))
    )
    assert found.n_active == every
    np.testing.assert_allclose(found.loss, every / 2)
    np.testing.assert_array_equal(found.gradient, 0)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_any_number_of_threads_gives_the_same_numbers(n_jobs):
    rng = np.random.default_rng(5)
    y = rng.integers(0, 4, 3000)
    data = triples(rng.normal(size=(3000, 6)), y, 3)
    one, many = (
        Objective(data, 0.5, n_jobs=1)(np.eye(6)),
        Objective(data, 0.5, n_jobs=n_jobs)(np.eye(6)),
    )
    assert one.loss == many.loss
    np.testing.assert_array_equal(one.gradient, many.gradient)


# Pairs that are kept between calls.


def path(L, steps, seed=0):
    """A walk of maps: long steps, then shorter and shorter ones."""
    rng = np.random.default_rng(seed)
    maps = [L]
    for length in steps:
        maps.append(maps[-1] + length * rng.normal(size=L.shape))
    return maps


WALK = (0.3, 0.1, 1e-2, 3e-3, 2e-3, 1e-3, 1e-3, 1e-3, 1e-3, 0.2, 1e-3, 1e-3, 1e-3)


def test_kept_pairs_give_the_same_values_as_a_search(monkeypatch):
    monkeypatch.setattr(_large_margin, "KEEP_FROM", 0)
    rng = np.random.default_rng(3)
    y = rng.integers(0, 5, 300)
    data = triples(rng.normal(size=(300, 4)) + y[:, None] / 3, y, 3)
    keeping = Objective(data, 0.5)
    for L in path(4 * np.eye(4), WALK):
        fresh = Objective(data, 0.5)(L)
        kept = keeping(L)
        assert kept.n_active == fresh.n_active
        np.testing.assert_allclose(kept.loss, fresh.loss, rtol=SUMS["float64"])
        assert_same_sum(kept.gradient, fresh.gradient, SUMS["float64"])
    assert 3 < keeping.n_searches < len(WALK) - 3


def test_too_many_pairs_are_not_kept(monkeypatch):
    monkeypatch.setattr(_large_margin, "KEEP_FROM", 0)
    monkeypatch.setattr(_large_margin, "KEPT_PER_ROW", 1)
    rng = np.random.default_rng(3)
    y = rng.integers(0, 5, 300)
    data = triples(rng.normal(size=(300, 4)), y, 3)
    keeping = Objective(data, 0.5)
    for L in path(4 * np.eye(4), WALK):
        assert keeping(L).n_active == Objective(data, 0.5)(L).n_active
    assert keeping.n_searches == len(WALK) + 1


def test_few_rows_are_searched_each_time():
    X, y, L = problem(0)
    objective = Objective(triples(X, y, 3), 0.5)
    for _ in range(3):
        objective(L)
    assert objective.n_searches == 3


@given(st.integers(0, 10**6), st.sampled_from([1e-3, 0.03, 0.1, 0.5]), st.booleans())
def test_no_pair_beyond_the_slack_needed_becomes_active(seed, length, one_row_moves):
    X, y, L = problem(seed, width=2)
    rng = np.random.default_rng(seed)
    if one_row_moves:  # an outlier along an axis that is stretched: it alone moves far
        X[rng.integers(len(X)), 1] *= 30
    data = triples(X - X.mean(axis=0), y, 2)
    now = L + length * rng.normal(size=L.shape)
    before, after = margin_of(data, L, 1), margin_of(data, now, 1)
    slack = slack_needed(before, after)
    codes = np.sort(y)
    for a in range(len(X)):
        for b in range(a + 1, len(X)):
            if codes[a] == codes[b]:
                continue
            was = np.linalg.norm(before.images[a] - before.images[b])
            active = np.sum((after.images[a] - after.images[b]) ** 2) < max(after.top[[a, b]])
            if active:
                assert was < (1 + slack) * np.sqrt(max(before.top[[a, b]]))


def test_a_wider_margin_keeps_the_pairs_within_it(tiny_blocks):
    X, y, L = problem(6)
    data = triples(X, y, 3)
    margin = margin_of(data, L, 1)
    kept = search(data, margin, 1, slack=0.3, room=10_000).kept
    pairs = sorted((int(a), int(b)) for part in kept for a, b in zip(*part, strict=True))
    codes = np.sort(y)
    expected = [
        (a, b)
        for a in range(len(X))
        for b in range(a + 1, len(X))
        if codes[a] != codes[b]
        and np.sum((margin.images[a] - margin.images[b]) ** 2)
        < 1.3**2 * max(margin.top[a], margin.top[b])
    ]
    assert pairs == expected
    assert search(data, margin, 1, slack=0.3).kept is None


# A draw of pairs.


def test_a_drawn_share_of_pairs_stands_for_all():
    X, y, L = problem(8, sizes=(60, 40, 30))
    data = triples(X, y, 3)
    whole = Objective(data, 1.0)(L).loss
    losses = [Objective(data, 1.0, draw=Draw(0.3, seed))(L).loss for seed in range(60)]
    assert len(set(losses)) == 60
    error = np.std(losses) / np.sqrt(60)
    assert error < 0.02 * whole
    assert abs(np.mean(losses) - whole) < 4 * error


def test_a_draw_is_the_same_under_every_map(tiny_blocks):
    """Else the objective would change under the search."""
    X, y, L = problem(8, sizes=(20, 12))
    data = triples(X, y, 3)
    drawn = [
        {
            (int(a), int(b))
            for part in search(data, margin_of(data, c * L, 1), 1, draw=draw, room=10**6).kept
            for a, b in zip(*part, strict=True)
        }
        for c in (1e-3, 1.0)
        for draw in (Draw(0.5, 1),)
    ]
    everyone, impostors = drawn  # under the first map all pairs are impostors
    assert 0.3 < len(everyone) / 240 < 0.7
    whole = search(data, margin_of(data, L, 1), 1, room=10**6).kept
    pairs = {(int(a), int(b)) for part in whole for a, b in zip(*part, strict=True)}
    assert impostors == everyone & pairs
    assert 0 < len(impostors) < len(everyone)


def test_pairs_are_counted(tiny_blocks):
    X, y, L = problem(3)
    targets = oracle_lmnn.target_neighbors(X, y, 3)
    assert count_pairs(triples(X, y, 3), L, 1) == len(oracle_lmnn.active_pairs(L, X, y, targets))


# Where to start.


@pytest.mark.parametrize("push", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_best_scale_makes_the_objective_least(seed, push):
    X, y, L = problem(seed)
    data = triples(X, y, 3)
    objective = Objective(data, push)
    c = best_scale(data, L, push) / 0.9  # which it keeps away from the kink
    least = objective(np.sqrt(c) * L).loss
    for factor in np.geomspace(1e-2, 1e2, 60):
        assert least <= objective(np.sqrt(factor * c) * L).loss * (1 + ROUNDING)


def test_best_scale_of_a_sample_is_near_that_of_all():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 5000)
    data = triples(rng.normal(size=(5000, 3)) + 1.5 * y[:, None], y, 3)
    objective = Objective(data, 0.5)
    c = best_scale(data, np.eye(3), 0.5)
    grid = [objective(np.sqrt(f * c) * np.eye(3)).loss for f in np.geomspace(0.1, 10, 41)]
    assert objective(np.sqrt(c) * np.eye(3)).loss < 1.3 * min(grid)
    assert min(grid[0], grid[-1]) > 2 * min(grid)


def test_rows_that_nothing_parts_still_have_a_scale():
    y = np.array([0, 0, 1, 1])
    assert best_scale(triples(np.zeros((4, 1)), y, 1), np.eye(1), 0.5) == 1
    # Impostors so far from all that the first sum always wins.
    assert best_scale(triples(np.ones((4, 1)) * [[0], [9], [0], [9]], y, 1), np.eye(1), 0.1) > 0


def test_lda_start_puts_the_direction_that_parts_classes_first():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], 30)
    rows = rng.normal(size=(90, 3)) * [10, 1, 1]
    rows[:, 1] += 5 * (y == 1)
    rows[:, 2] += 20 * (y == 2)
    rows -= rows.mean(axis=0)
    L = start_map("lda", rows, y, axes=np.eye(3), q=2, rng=np.random.RandomState(0))
    share = np.abs(L) / np.linalg.norm(L, axis=1, keepdims=True)
    assert share[0, 2] > 0.95
    assert share[1, 1] > 0.95


# The search.


def quadratic(L):
    target = np.array([[1.0, -2.0, 3.0]])
    weight = np.array([[1.0, 10.0, 100.0]])
    return Value(float((weight * (L - target) ** 2).sum()) + 5, 2 * weight * (L - target), 0)


def test_search_finds_the_least_value():
    found = minimize(quadratic, np.ones((1, 3)), max_iter=100, tol=1e-9)
    np.testing.assert_allclose(found.L, [[1, -2, 3]], atol=1e-3)
    assert found.ended == "tol"
    assert found.loss == quadratic(found.L).loss
    assert found.n_iter < 20


def test_search_ends_at_a_kink():
    """|x - 1| + y² from (3, 2): the slope along x never becomes small."""

    def kinked(L):
        x, y = L[0]
        return Value(1 + abs(x - 1) + y**2, np.array([[np.sign(x - 1), 2 * y]]), 0)

    found = minimize(kinked, np.array([[3.0, 2.0]]), max_iter=200, tol=1e-8)
    np.testing.assert_allclose(found.L, [[1, 0]], atol=1e-3)


def test_search_that_can_get_no_lower_says_so():
    found = minimize(
        lambda L: Value(1.0, np.ones_like(L), 0), np.ones((1, 2)), max_iter=9, tol=1e-4
    )
    assert found.ended == "stuck"
    assert found.n_iter == 0


def test_search_at_a_flat_point_is_over():
    found = minimize(quadratic, np.array([[1.0, -2.0, 3.0]]), max_iter=9, tol=1e-4)
    assert (found.ended, found.n_iter) == ("tol", 0)


def test_search_stops_after_max_iter_or_when_told():
    assert minimize(quadratic, np.ones((1, 3)), max_iter=2, tol=0).ended == "max_iter"
    seen = []

    def watch(step, L, value):
        seen.append((step, value.loss == quadratic(L).loss))
        if step == 3:
            raise StopIteration

    found = minimize(quadratic, np.ones((1, 3)), max_iter=9, tol=0, callback=watch)
    assert seen == [(1, True), (2, True), (3, True)]
    assert (found.ended, found.n_iter) == ("callback", 3)


@pytest.mark.parametrize("seed", range(3))
def test_search_ends_as_low_as_that_of_scipy(seed):
    X, y, _ = problem(seed, sizes=(30, 20, 10))
    L = np.eye(4) * 2
    targets = oracle_lmnn.target_neighbors(X, y, 3)
    objective = Objective(triples(X, y, 3), 0.5)
    found = minimize(objective, L, max_iter=500, tol=1e-6)

    def function(x):
        value = objective(x.reshape(L.shape))
        return value.loss, value.gradient.ravel()

    theirs = scipy.optimize.minimize(
        function, L.ravel(), jac=True, method="L-BFGS-B", options={"ftol": 1e-12, "gtol": 0}
    )
    assert found.loss < theirs.fun * (1 + NEAR_OPTIMUM)
    np.testing.assert_allclose(oracle_lmnn.loss(found.L, X, y, targets, 0.5).value, found.loss)
    assert found.loss < 0.9 * objective(L).loss


# The estimator.


@pytest.fixture(scope="module")
def noisy():
    """Two columns that part three classes of 60, 40 and 20, and four of twice as much noise."""
    rng = np.random.default_rng(11)
    y = rng.permutation(np.repeat([0, 1, 2], [60, 40, 20]))
    X = rng.normal(size=(120, 6)) * [1, 1, 4, 4, 4, 4]
    X[:, 0] += 4 * (y == 1)
    X[:, 1] += 4 * (y == 2)
    return X + 7, y


def checks_of(estimator):
    """`parametrize_with_checks` with a list: pytest 9 warns of scikit-learn 1.6's generator."""
    mark = parametrize_with_checks([estimator])
    names, checks = mark.args
    return pytest.mark.parametrize(names, list(checks), **mark.kwargs)


# Some of the data there have classes of two or three rows.
@small_classes
@checks_of(LMNN())
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_learned_distance_ignores_noise(noisy):
    X, y = noisy
    model = LMNN().fit(X[::2], y[::2])
    plain = KNeighborsClassifier(3).fit(X[::2], y[::2]).score(X[1::2], y[1::2])
    assert model.score(X[1::2], y[1::2]) > plain + 0.1
    assert model.converged_
    weights = np.sqrt(np.diag(model.get_mahalanobis_matrix()))
    assert weights[:2].min() > 1.5 * weights[2:].max()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_loss_is_that_of_a_loop_at_the_components(noisy, dtype):
    X, y = noisy[0].astype(dtype), noisy[1]
    model = LMNN(2, n_components=3, push_loss_weight=0.3).fit(X, y)
    targets = oracle_lmnn.target_neighbors(X, y, 2)
    expected = oracle_lmnn.loss(model.components_, X, y, targets, 0.3).value
    assert model.components_.shape == (3, 6)
    np.testing.assert_allclose(
        model.loss_, expected, rtol={"float64": 1e-9, "float32": 1e-4}[dtype]
    )


def test_units_do_not_matter(noisy):
    X, y = noisy
    model, scaled = LMNN().fit(X, y), LMNN().fit(X * 1024, y)
    np.testing.assert_allclose(scaled.components_ * 1024, model.components_, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(scaled.predict(X * 1024), model.predict(X))


def test_without_rescaling_the_search_starts_at_euclidean_distance(noisy):
    X, y = noisy
    seen = []
    model = LMNN(rescale=False, callback=lambda *step: seen.append(step)).fit(X, y)
    targets = oracle_lmnn.target_neighbors(X, y, 3)
    start = oracle_lmnn.loss(np.eye(6), X, y, targets, 0.5).value
    assert model.loss_ < seen[0][2] < start
    with pytest.warns(ConvergenceWarning):
        first = LMNN(rescale=False, max_iter=1, tol=0).fit(X, y)
    np.testing.assert_allclose(first.components_, seen[0][1])


@pytest.mark.parametrize("n_components", [None, 1, 2, 4])
@pytest.mark.parametrize("init", ["auto", "pca", "lda", "identity", "random"])
def test_every_start_is_searched_from(noisy, init, n_components):
    X, y = noisy
    losses = []
    model = LMNN(
        init=init, n_components=n_components, tol=1e-3, callback=lambda *s: losses.append(s[2])
    ).fit(X, y)
    assert model.components_.shape == (n_components or 6, 6)
    assert np.all(np.diff(losses) < 0)
    assert model.loss_ == losses[-1]
    assert len(losses) == model.n_iter_ > 2


def test_auto_is_lda_for_fewer_directions_than_classes(noisy):
    X, y = noisy
    for n_components, same in ((2, "lda"), (3, "pca"), (None, "pca")):
        settings = {"n_components": n_components, "max_iter": 20, "tol": 1e-2}
        np.testing.assert_array_equal(
            LMNN(**settings).fit(X, y).components_,
            LMNN(init=same, **settings).fit(X, y).components_,
        )


def test_random_starts_are_those_of_the_seed(noisy):
    maps = [
        LMNN(init="random", tol=1e-2, random_state=seed).fit(*noisy).components_
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(maps[0], maps[1])
    assert np.abs(maps[0] - maps[2]).max() > 1e-3


def test_a_given_map_is_the_start_as_it_is(noisy):
    X, y = noisy
    start = np.diag([1.0, 1.0, 0.1, 0.1, 0.1, 0.1])[:5]
    with pytest.warns(ConvergenceWarning):
        model = LMNN(init=start, max_iter=1, tol=0).fit(X, y)
    targets = oracle_lmnn.target_neighbors(X, y, 3)
    slope = oracle_lmnn.loss(start, X, y, targets, 0.5).gradient
    moved = model.components_ - start
    # The first step goes down the gradient.
    cosine = -np.vdot(moved, slope) / np.linalg.norm(moved) / np.linalg.norm(slope)
    np.testing.assert_allclose(cosine, 1)


def test_warm_start_goes_on_from_the_last_map(noisy):
    X, y = noisy
    with pytest.warns(ConvergenceWarning):
        model = LMNN(warm_start=True, max_iter=10, tol=1e-6).fit(X, y)
    first = model.loss_
    losses = []
    model.set_params(max_iter=500, tol=1e-4, callback=lambda *s: losses.append(s[2])).fit(X, y)
    assert losses[0] < first
    again = clone(model).fit(X, y)
    assert model.n_iter_ < again.n_iter_
    with pytest.raises(ValueError, match=r"last fit \(warm_start\) must have shape .* = 5; got"):
        model.fit(X[:, :5], y)


def test_no_convergence_is_said_whatever_the_verbosity(noisy, capsys):
    for verbose in (0, 1):
        with pytest.warns(ConvergenceWarning, match="in max_iter=3 steps") as caught:
            model = LMNN(max_iter=3, verbose=verbose).fit(*noisy)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert (model.n_iter_, model.converged_) == (3, False)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 4 * verbose
        assert all(line.startswith("[LMNN] ") for line in lines)
    assert "120 rows, K = 3" in lines[0]
    assert f"objective {model.loss_:.6e}" in lines[-1]


def test_callback_sees_components_and_may_stop(noisy):
    seen = []

    def watch(step, components, objective):
        seen.append((step, objective))
        if step == 4:
            watch.last = components
            raise StopIteration

    model = LMNN(callback=watch).fit(*noisy)
    assert [step for step, _ in seen] == [1, 2, 3, 4]
    assert (model.n_iter_, model.converged_, model.loss_) == (4, False, seen[-1][1])
    np.testing.assert_array_equal(model.components_, watch.last)


def test_small_classes_have_fewer_targets_and_a_warning(noisy):
    X, y = noisy[0], noisy[1].copy()
    y[:3] = [7, 8, 8]
    with pytest.warns(
        NeighborhoodWarning, match="other rows of 2 of 5 classes, the .* 1 "
    ) as caught:
        model = LMNN().fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    targets = oracle_lmnn.target_neighbors(X, y, 3)
    assert [len(near) for near in targets[:3]] == [0, 1, 1] or len(targets[0]) == 0
    expected = oracle_lmnn.loss(model.components_, X, y, targets, 0.5).value
    np.testing.assert_allclose(model.loss_, expected)
    assert model.predict(X[:1] + 1e-9) == [7]


def test_a_class_of_exactly_k_plus_one_rows_is_large_enough(noisy):
    keep = np.concatenate([np.flatnonzero(noisy[1] == c)[:4] for c in range(3)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", NeighborhoodWarning)
        LMNN(3).fit(noisy[0][keep], noisy[1][keep])


def test_one_class_keeps_its_start(noisy):
    model = LMNN(rescale=False).fit(noisy[0], np.zeros(120))
    assert model.n_iter_ == 0
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), np.eye(6), atol=1e-12)
    assert (model.predict(noisy[0]) == 0).all()


def test_few_impostors_are_drawn_and_all_are_taken_where_they_fit(noisy):
    X, y = noisy
    full = LMNN().fit(X, y)
    plenty = LMNN(max_impostors=10**6).fit(X, y)
    np.testing.assert_array_equal(plenty.components_, full.components_)
    drawn = [LMNN(max_impostors=200, random_state=seed).fit(X, y) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(drawn[0].components_, drawn[1].components_)
    assert np.abs(drawn[0].components_ - drawn[2].components_).max() > 1e-6
    targets = oracle_lmnn.target_neighbors(X, y, 3)
    start = oracle_lmnn.loss(np.eye(6), X, y, targets, 0.5).value
    for model in drawn:
        # Of a share of the pairs, it learns most of what there is to learn.
        value = oracle_lmnn.loss(model.components_, X, y, targets, 0.5).value
        assert full.loss_ < value < min(2 * full.loss_, start)


def test_threads_and_order_of_rows_change_nothing(noisy):
    X, y = noisy
    model = LMNN(n_jobs=1).fit(X, y)
    np.testing.assert_array_equal(LMNN(n_jobs=2).fit(X, y).components_, model.components_)
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = LMNN().fit(X[order], y[order])
    assert_same_sum(shuffled.get_mahalanobis_matrix(), model.get_mahalanobis_matrix(), OTHER_KINKS)


def test_single_precision_in_single_precision_out(noisy):
    X, y = noisy
    single, double = LMNN().fit(X.astype(np.float32), y), LMNN().fit(X, y)
    assert single.components_.dtype == single.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.loss_, double.loss_, rtol=FLOAT32_FIT)


@pytest.mark.parametrize("container", [scipy.sparse.csr_matrix, scipy.sparse.csc_array])
def test_sparse_rows_equal_dense_ones(noisy, container):
    X, y = noisy[0].copy(), noisy[1]
    X[np.abs(X - 7) < 0.4] = 0
    dense, sparse = LMNN().fit(X, y), LMNN().fit(container(X), y)
    np.testing.assert_allclose(sparse.components_, dense.components_, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(sparse.predict(container(X)), dense.predict(X))


def test_wide_rows_have_as_many_directions_as_they_vary_in():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 6)
    X = rng.normal(size=(18, 40)) + 2 * y[:, None]
    assert LMNN().fit(X, y).components_.shape == (17, 40)


@pytest.mark.parametrize("random_labels", [False, True])
def test_memory_does_not_grow_with_the_square(random_labels):
    n = 6000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    y = rng.integers(0, 2, n) if random_labels else (X[:, 0] > 0).astype(int)
    model = LMNN(n_jobs=1, max_iter=2, tol=1.0)
    tracemalloc.start()
    model.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # One (n, n) array of doubles is 288 MB; labels at random make impostors of most near rows.
    assert peak < 0.1 * n * n * 8


def test_labels_may_be_words_and_columns_have_names(noisy):
    X, y = noisy
    words = np.array(["ant", "bee", "cat"])[y]
    table = pd.DataFrame(X, columns=list("abcdef"))
    model = LMNN(n_components=2).fit(table, words)
    assert list(model.feature_names_in_) == list("abcdef")
    assert list(model.get_feature_names_out()) == ["lmnn0", "lmnn1"]
    plain = LMNN(n_components=2).fit(X, y)
    np.testing.assert_array_equal(
        model.predict(table), np.array(["ant", "bee", "cat"])[plain.predict(X)]
    )


def test_votes_are_those_of_neighbors_in_the_learned_space(noisy):
    X, y = noisy
    model = LMNN(2, vote="uniform").fit(X, y)
    assert model.n_neighbors_ == 2
    plain = KNeighborsClassifier(2).fit(model.transform(X), y)
    np.testing.assert_allclose(
        model.predict_proba(X + 0.1), plain.predict_proba(model.transform(X + 0.1))
    )
    wider = model.set_params(n_voters=9)
    plain = KNeighborsClassifier(9).fit(model.transform(X), y)
    np.testing.assert_allclose(
        wider.predict_proba(X + 0.1), plain.predict_proba(model.transform(X + 0.1))
    )


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"n_neighbors": 0}, "'n_neighbors' parameter of LMNN must be an int in the range"),
        ({"n_components": 7}, "n_components must be at most the number of features, 6; got 7"),
        ({"init": "euclidean"}, "'init' parameter of LMNN must be a str among"),
        ({"init": np.eye(5)}, r"init must have shape .* n_features = 6; got shape \(5, 5\)"),
        ({"init": np.ones((7, 6))}, r"n_components = 1 to 6 .* got shape \(7, 6\)"),
        ({"init": np.eye(6), "n_components": 2}, r"n_components = 2 and .* got shape \(6, 6\)"),
        ({"init": np.full((2, 6), np.nan)}, "Input init contains NaN"),
        ({"push_loss_weight": 0}, "'push_loss_weight' parameter of LMNN must be a float in"),
        ({"push_loss_weight": 1.5}, "'push_loss_weight' parameter of LMNN must be a float in"),
        ({"max_impostors": 0}, "'max_impostors' parameter of LMNN must be an int in the range"),
        ({"callback": 3}, "'callback' parameter of LMNN must be a callable or None"),
        ({"vote": "posterior"}, "'vote' parameter of LMNN must be a str among"),
    ],
)
def test_parameters_that_do_not_fit(noisy, parameters, match):
    with pytest.raises(ValueError, match=match):
        LMNN(**parameters).fit(*noisy)


def test_rows_that_do_not_fit(noisy, monkeypatch):
    X, y = noisy
    with pytest.raises(ValueError, match="Input X contains NaN"):
        LMNN().fit(np.where(X > 9, np.nan, X), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        LMNN().fit(X, y[:-1])
    with pytest.raises(ValueError, match="must be more than the number of classes"):
        LMNN().fit(X[:3], [0, 1, 2])
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        LMNN().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="X has 5 features, but LMNN is expecting 6"):
        LMNN(tol=0.1).fit(X, y).predict(X[:, :5])
    monkeypatch.setattr(lmnn, "DENSE_SIDE", 5)
    with pytest.raises(ValueError, match="more than 5 dense directions"):
        LMNN().fit(scipy.sparse.csr_matrix(X), y)


def test_iris():
    X, y = load_iris(return_X_y=True)
    assert LMNN().fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.94
