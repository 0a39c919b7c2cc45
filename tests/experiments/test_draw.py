from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bnca.datasets import Dataset, load
from bnca.experiments import draw as module
from bnca.experiments.draw import draw, flip, prepare, split
from bnca.experiments.spec import Cell, DataSpec, Experiment

PLAIN = DataSpec("digits", "Digits")


def cell(spec=PLAIN, *, size=10, noise=0.0, seed=0, sizes=(10, 20, 30), n_test=100):
    return Cell(Experiment("t/x", spec, sizes, n_test, list, (noise,)), size, noise, seed)


@pytest.fixture(scope="module")
def digits():
    return load("digits")


@pytest.fixture(scope="module")
def cancer():
    return load("breast_cancer")


def test_counts_and_no_row_twice(digits):
    drawn = draw(cell(size=20), digits)
    assert (np.bincount(digits.y[drawn.train]) == 20).all()
    assert len(drawn.test) == 100
    rows = np.concatenate([drawn.train, drawn.test])
    assert len(np.unique(rows)) == len(rows)
    np.testing.assert_array_equal(drawn.y_test, digits.y[drawn.test])
    np.testing.assert_array_equal(drawn.given, digits.y[drawn.train])
    assert not drawn.flipped.any()


def test_rows_do_not_depend_on_methods_or_on_the_table(digits):
    one = draw(cell(), digits)
    other = Experiment("another/name", PLAIN, (10, 30), 100, lambda: [1], (0.0, 0.3), folds=9)
    two = draw(Cell(other, 10, 0.0, 0), digits)
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(one.X_test, two.X_test)


def test_seeds_differ(digits):
    drawn = [draw(cell(seed=seed), digits) for seed in (0, 1)]
    assert len(np.intersect1d(drawn[0].test, drawn[1].test)) < 50
    assert set(drawn[0].train) != set(drawn[1].train)


def test_sizes_are_nested_and_share_the_test_rows(digits):
    small, middle, large = (draw(cell(size=size), digits) for size in (10, 20, 30))
    assert set(small.train) < set(middle.train) < set(large.train)
    np.testing.assert_array_equal(small.test, large.test)


def test_noise_is_nested_exact_and_spares_the_test(digits):
    drawn = [draw(cell(size=30, noise=noise), digits) for noise in (0.0, 0.1, 0.2, 0.3)]
    for a, b in pairwise(drawn):
        assert (b.flipped >= a.flipped).all()
        np.testing.assert_array_equal(b.given[a.flipped], a.given[a.flipped])
        np.testing.assert_array_equal(a.X, b.X)
    for share, d in zip((0.0, 0.1, 0.2, 0.3), drawn, strict=True):
        assert d.flipped.sum() == round(share * 300)
        np.testing.assert_array_equal(d.flipped, d.given != digits.y[d.train])
        np.testing.assert_array_equal(d.y_test, digits.y[d.test])


@given(
    share=st.floats(0, 1),
    counts=st.lists(st.integers(1, 20), min_size=2, max_size=5),
    seed=st.integers(0, 99),
)
def test_flip_counts(share, counts, seed):
    y = np.repeat(np.arange(len(counts)), counts)
    out = flip(y, share, np.random.default_rng(seed))
    assert (out != y).sum() == round(share * len(y))
    assert set(out) <= set(y)


@pytest.mark.parametrize("columns", ["raw", "z-score"])
@pytest.mark.parametrize("rows", ["raw", "l1"])
@pytest.mark.parametrize("n_components", [None, 5])
def test_nothing_is_fitted_on_test_rows(cancer, columns, rows, n_components):
    spec = DataSpec("x", "X", rows, columns, n_components)
    train, test = cancer.X[:50], cancer.X[50:90]
    X, first = prepare(train, test, spec)
    X_again, second = prepare(train, test[:7] * 1.0, spec)
    np.testing.assert_array_equal(X, X_again)
    np.testing.assert_allclose(first[:7], second, rtol=1e-9, atol=1e-12)
    assert first.shape[1] == (n_components or 30)
    # Rows that come to the training set and to the test set are treated alike.
    np.testing.assert_allclose(prepare(train, train, spec)[1], X, rtol=1e-9, atol=1e-9)


def test_training_rows_are_four_apart_in_squared_distance(cancer):
    X, _ = prepare(cancer.X[:50], cancer.X[50:60], DataSpec("x", "X", columns="z-score"))
    squared = np.square(X[:, None] - X).sum(axis=2)
    assert squared.mean() == pytest.approx(4)


def test_z_score_by_hand():
    train = np.array([[1.0, 5.0], [3.0, 5.0]])
    X, X_test = prepare(train, [[5.0, 6.0]], DataSpec("x", "X", columns="z-score"))
    # First column: mean 2, deviation 1; the second is constant.  Then the common unit √(1 / 2).
    np.testing.assert_allclose(X * np.sqrt(1 / 2), [[-1, 0], [1, 0]])
    np.testing.assert_allclose(X_test * np.sqrt(1 / 2), [[3, 1]])


def test_rows_that_sum_to_nothing_stay():
    X, X_test = prepare([[0.0, 0.0], [1.0, 3.0]], [[2.0, 2.0]], DataSpec("x", "X", rows="l1"))
    np.testing.assert_allclose(X[0], 0)
    np.testing.assert_allclose(X_test[0] / X[1], [2, 2 / 3])


def test_fewer_rows_than_components(cancer):
    X, X_test = prepare(cancer.X[:6], cancer.X[6:9], DataSpec("x", "X", n_components=20))
    assert X.shape == (6, 5)
    assert X_test.shape == (3, 5)


def published(n=60):
    y = np.arange(n) % 3
    X = np.random.default_rng(0).normal(size=(n, 2))
    return Dataset("parted", X, y, ("a", "b", "c"), is_test=np.arange(n) >= n - 20)


def test_published_test_rows_are_kept_apart():
    spec = DataSpec("parted", "Parted", published_split=True)
    for seed in range(5):
        drawn = draw(cell(spec, seed=seed, size=5, sizes=(5,), n_test=10), published())
        assert (drawn.train < 40).all()
        assert (drawn.test >= 40).all()
        assert len(drawn.test) == 10


def test_set_without_a_published_split_is_refused(digits):
    spec = DataSpec("digits", "Digits", published_split=True)
    with pytest.raises(ValueError, match="digits has no published test part"):
        draw(cell(spec), digits)


def test_classes_and_rows_of_each_are_drawn_anew(digits):
    spec = DataSpec("digits", "Digits", n_classes=4, rows_per_class=20)
    drawn = [draw(cell(spec, seed=s, size=10, sizes=(10,), n_test=999), digits) for s in range(4)]
    sets = [frozenset(d.y_test) for d in drawn]
    assert {len(s) for s in sets} == {4}
    assert len(set(sets)) > 1
    for d in drawn:
        assert len(d.test) == 40  # 20 rows of each of 4 classes, 10 of them to train on
        assert (np.unique(digits.y[d.train], return_counts=True)[1] == 10).all()


def test_small_classes_keep_the_rows_they_need():
    y = np.repeat([0, 1], [100, 12])
    data = Dataset("lopsided", np.arange(112.0)[:, None], y, ("many", "few"))
    for seed in range(5):
        train, test = split(
            data, PLAIN, size=10, reserve=10, n_test=50, rng=np.random.default_rng(seed)
        )
        assert (np.bincount(y[train]) == 10).all()
        assert len(test) == 50
        assert np.count_nonzero(y[test]) <= 2


def test_too_few_rows_are_refused_with_numbers():
    data = Dataset("tiny", np.zeros((10, 1)), np.repeat([0, 1], [6, 4]), ("many", "few"))
    with pytest.raises(ValueError, match="tiny has 4 rows of class few to train on and 1 to test"):
        draw(cell(size=5, sizes=(5,)), data)
    with pytest.raises(ValueError, match="and 0 to test"):
        draw(cell(size=4, sizes=(6,)), data)


def test_rank_counts_earlier_equals():
    np.testing.assert_array_equal(module._rank(np.array([5, 3, 5, 5, 3])), [0, 0, 1, 2, 1])
