"""Nearest class mean metric learning against naive loops, and against the plain nearest mean."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from rivals import oracle_ncmml as oracle
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from tolerances import CURVED, FLOAT32_FIT, NEVER_FALLS, ROUNDING, STEP

from bnca import NeighborhoodWarning
from bnca.core import features
from bnca.rivals import NCMML, _class_means
from bnca.rivals._class_means import Means, best_multiple, feature_scales, log_likelihood

SAME_SEARCH = 1e-4
"""Relative, distances after two searches that differ by rounding and end at tol=1e-9."""

SEVERAL = 3


@pytest.fixture(scope="module")
def problem():
    """Rows of three classes of unequal size, one to three means each, and a map of low rank."""
    rng = np.random.default_rng(11)
    codes = np.repeat([0, 1, 2], [9, 5, 3])
    rows = rng.normal(size=(17, 4)) * [1.0, 2.0, 0.5, 1.0] + codes[:, None] * [1.0, 0.0, 0.5, 0.0]
    owners = np.array([0, 0, 1, 2, 2, 2])
    means = Means(rng.normal(size=(6, 4)) + owners[:, None] * [1.0, 0.0, 0.5, 0.0], owners)
    return rng.normal(size=(2, 4)), rows, codes, means


@pytest.fixture
def two_moons_of_means():
    """The first class on both sides of the second: its one mean sits in the middle of that."""
    rng = np.random.default_rng(2)
    X = np.vstack([rng.normal([x, 0.0], 0.5, (20, 2)) for x in (-4.0, 4.0, 0.0)])
    return X, np.repeat(["out", "out", "in"], 20)


def distances(model, X):
    moved = X @ model.components_.T
    return np.linalg.norm(moved[:, None] - moved[None], axis=-1)


# The objective.


def test_value_and_gradient_are_those_of_the_loops(problem):
    components, rows, codes, means = problem
    value, gradient = log_likelihood(*problem)
    np.testing.assert_allclose(
        value, oracle.log_likelihood(components, rows, codes, *means), rtol=ROUNDING
    )
    np.testing.assert_allclose(
        gradient, oracle.gradient(components, rows, codes, *means), rtol=0, atol=ROUNDING
    )


def test_one_mean_a_class_is_a_case_of_several(problem):
    components, rows, codes, means = problem
    single = Means(means.centers[[0, 2, 5]], means.owners[[0, 2, 5]])
    value, gradient = log_likelihood(components, rows, codes, single)
    np.testing.assert_allclose(
        value, oracle.log_likelihood(components, rows, codes, *single), rtol=ROUNDING
    )
    np.testing.assert_allclose(
        gradient, oracle.gradient(components, rows, codes, *single), rtol=0, atol=ROUNDING
    )


def test_gradient_is_the_slope_of_the_value(problem):
    components, *rest = problem
    _, gradient = log_likelihood(components, *rest)
    slopes = np.empty_like(components)
    for place in np.ndindex(components.shape):
        move = np.zeros_like(components)
        move[place] = STEP
        ahead, behind = (log_likelihood(components + sign * move, *rest)[0] for sign in (1, -1))
        slopes[place] = (ahead - behind) / (2 * STEP)
    np.testing.assert_allclose(slopes, gradient, rtol=0, atol=CURVED * np.abs(gradient).max())


def test_rows_far_from_all_means_still_have_a_likelihood(problem):
    """Probabilities of 1e-1000000 have logarithms; the loops would say log 0."""
    components, rows, codes, means = problem
    value, gradient = log_likelihood(1e3 * components, rows, codes, means)
    squared = ((rows[:, None] - means.centers) @ (1e3 * components).T) ** 2
    logits = -squared.sum(axis=-1) / 2
    own = np.where(codes[:, None] == means.owners, logits, -np.inf).max(axis=1)
    np.testing.assert_allclose(value, (own - logits.max(axis=1)).mean(), rtol=ROUNDING)
    assert value < -1e5
    assert np.isfinite(gradient).all()


def test_blocks_and_threads_change_nothing(problem, monkeypatch):
    components, rows, codes, means = problem
    whole = log_likelihood(components, rows, codes, means)
    monkeypatch.setattr(_class_means, "BLOCK_NUMBERS", 12)  # two rows a block
    parts = [log_likelihood(components, rows, codes, means, n_jobs=n) for n in (1, 2, 3)]
    np.testing.assert_allclose(parts[0][0], whole[0], rtol=ROUNDING)
    np.testing.assert_allclose(parts[0][1], whole[1], rtol=0, atol=ROUNDING)
    for value, gradient in parts[1:]:
        assert value == parts[0][0]
        np.testing.assert_array_equal(gradient, parts[0][1])


# The multiple to start from.


def test_the_multiple_is_the_most_likely_one(problem):
    """With the one observation more that its docstring speaks of."""
    start, rows, codes, means = problem
    squared = (((rows[:, None] - means.centers) @ start.T) ** 2).sum(axis=-1)
    squared[codes[:, None] != means.owners] = np.inf
    spread = squared.min(axis=1).mean() / 2

    def value(s):
        fit = oracle.log_likelihood(np.sqrt(s) * start, rows, codes, *means)
        return len(rows) * fit + np.log(s) - s * spread

    best = best_multiple(start, rows, codes, means)
    grid = best * np.geomspace(1e-2, 1e2, 401)
    assert abs(np.log(grid[np.argmax([value(s) for s in grid])] / best)) < 0.03


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_multiple_has_the_inverse_unit_of_squared_distance(problem, unit):
    start, rows, codes, means = problem
    scaled = Means(unit * means.centers, means.owners)
    np.testing.assert_allclose(
        unit**2 * best_multiple(start, unit * rows, codes, scaled),
        best_multiple(start, rows, codes, means),
        rtol=1e-3,  # the search stops at a relative step of 1e-4
    )


def test_separable_classes_do_not_ask_for_infinity():
    rows = np.array([[0.0], [0.1], [5.0], [5.1]])
    means = Means(np.array([[0.05], [5.05]]), np.array([0, 1]))
    assert 1 < best_multiple(np.eye(1), rows, np.array([0, 0, 1, 1]), means) < 1e3


def test_rows_that_sit_on_their_means_have_a_multiple():
    rows = np.array([[0.0], [0.0], [2.0], [2.0]])
    means = Means(np.array([[0.0], [2.0]]), np.array([0, 1]))
    assert 0.1 < best_multiple(np.eye(1), rows, np.array([0, 0, 1, 1]), means) < 100
    same = Means(np.zeros((1, 1)), np.array([0]))
    assert np.isfinite(best_multiple(np.eye(1), np.zeros((3, 1)), np.zeros(3, int), same))


# Units of the features.


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_matrix])
def test_scales_add_a_tenth_of_the_median_variance(container):
    """Variances 1, 4, 100 and none: the median is of those that vary."""
    base = np.tile([[-1.0], [1.0]], (5, 1))
    X = base * [1.0, 2.0, 10.0, 0.0] + [0.0, 3.0, 0.0, 1e8 + 0.1]
    np.testing.assert_allclose(feature_scales(container(X)) ** 2, [1.4, 4.4, 100.4, 0.4], rtol=1e-6)


def test_scales_of_rows_that_do_not_vary_are_one():
    np.testing.assert_array_equal(feature_scales(np.full((4, 2), 3.3)), [1.0, 1.0])


def test_scales_of_many_rows_are_taken_in_parts():
    """Of two features the lower variance is the median."""
    X = np.random.default_rng(0).normal(size=(9000, 2)) * [1.0, 30.0] + 5
    variance = X.var(axis=0)
    np.testing.assert_allclose(
        feature_scales(X) ** 2, variance + variance.min() / 10, rtol=ROUNDING
    )


# What is learned.


def test_held_tightly_it_is_the_plain_nearest_mean(blobs):
    """Features of unequal scale: the start must be Euclidean in their own units."""
    X, y = blobs
    model = NCMML(regularization=1e12).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), NearestCentroid().fit(X, y).predict(X))
    np.testing.assert_allclose(
        model.get_mahalanobis_matrix(), model.scale_ * np.eye(4), rtol=0, atol=1e-6 * model.scale_
    )


def test_held_tightly_in_fewer_dimensions_it_is_the_nearest_mean_along_principal_axes(blobs):
    from sklearn.decomposition import PCA

    X, y = blobs
    model = NCMML(2, regularization=1e12).fit(X, y)
    axes = PCA(2).fit(X).components_
    np.testing.assert_allclose(
        model.get_mahalanobis_matrix(),
        model.scale_ * axes.T @ axes,
        rtol=0,
        atol=1e-6 * model.scale_,
    )
    assert model.components_.shape == (2, 4)


def test_the_objective_is_the_one_of_the_docstring(blobs):
    """From a given map, so that W⁰ is known; in the units of X."""
    X, y = blobs
    start = np.array([[0.5, 0.1, 0.0, 0.0], [0.0, 0.2, 0.9, 0.1], [0.0, 0.0, 0.0, 0.4]])
    model = NCMML(init=start, regularization=7.0).fit(X, y)
    means = np.array([X[y == c].mean(axis=0) for c in range(3)])
    moved = (model.components_ - start) * feature_scales(X)
    fit = oracle.log_likelihood(model.components_, X, y, means, [0, 1, 2])
    np.testing.assert_allclose(
        model.objective_, fit - 7.0 / 2 * (moved**2).sum() / len(X), rtol=ROUNDING
    )
    assert model.scale_ == 1
    np.testing.assert_allclose(
        model.objectives_[0], oracle.log_likelihood(start, X, y, means, [0, 1, 2]), rtol=ROUNDING
    )


def test_the_end_is_a_maximum(blobs):
    """Central differences of the objective above, at the map that was found."""
    X, y = blobs
    start = np.eye(2, 4) / 2
    model = NCMML(init=start, tol=1e-10, max_iter=1000).fit(X, y)
    means = Means(np.array([X[y == c].mean(axis=0) for c in range(3)]), np.arange(3))
    scales = feature_scales(X)
    _, gradient = log_likelihood(model.components_, X, y, means)
    pull = 20.0 / len(X) * (model.components_ - start) * scales**2
    assert np.abs((gradient - pull) / scales).max() < 1e-6
    assert np.abs(pull / scales).max() > 1e-3


def test_the_objective_never_falls(blobs):
    model = NCMML().fit(*blobs)
    steps = np.diff(model.objectives_)
    assert len(steps) == model.n_iter_ > 3
    assert (steps >= -NEVER_FALLS * np.abs(model.objectives_[:-1])).all()
    assert model.objectives_[-1] == model.objective_ > model.objectives_[0]


def test_less_regularization_fits_the_labels_better(blobs):
    X, y = blobs

    def fit(strength):
        model = NCMML(regularization=strength, max_iter=1000).fit(X, y)
        return np.log(model.predict_proba(X)[np.arange(80), y]).mean()

    assert fit(0.1) > fit(10.0) > fit(1000.0)


@pytest.mark.parametrize("unit", [1e-5, 1e4])
def test_the_unit_of_the_table_does_not_matter(blobs, unit):
    X, y = blobs
    np.testing.assert_allclose(
        NCMML(tol=1e-9, max_iter=1000).fit(unit * X, y).predict_proba(unit * X),
        NCMML(tol=1e-9, max_iter=1000).fit(X, y).predict_proba(X),
        rtol=0,
        atol=SAME_SEARCH,
    )


# Some pixels are the same in all rows of a digit, which has NearestCentroid worried.
@pytest.mark.filterwarnings("ignore:self.within_class_std_dev_")
@pytest.mark.parametrize(
    ("load", "gain"),
    [(load_digits, 0.05), (load_wine, 0.15)],
    ids=["one unit for all features", "units of their own"],
)
def test_it_does_not_fall_behind_the_plain_nearest_mean(load, gain):
    """A published implementation loses 9 points on these digits."""
    X, y = load(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    learned = cross_val_score(NCMML(), X, y, cv=folds).mean()
    assert learned > cross_val_score(NearestCentroid(), X, y, cv=folds).mean() + gain


@pytest.mark.parametrize("regularization", [20.0, 1e12])
@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_matrix])
def test_what_new_rows_have_outside_the_span_of_the_training_rows_is_left_out(
    regularization, container
):
    """Fewer rows than columns of unequal scale: a skew projection would bring it back in."""
    rng = np.random.default_rng(0)
    y = np.arange(324) % 3
    X = rng.normal(size=(324, 200))
    X[:, :3] += 12 * np.eye(3)[y]
    train, test = slice(24), slice(24, None)
    model = NCMML(regularization=regularization).fit(container(X[train]), y[train])
    plain = NearestCentroid().fit(X[train], y[train])
    assert model.components_.shape == (23, 200)
    np.testing.assert_array_equal(model.predict(X[test]), plain.predict(X[test]))
    weak = np.where(np.arange(200) < 3, X / 5, X)
    model = NCMML(regularization=1e12).fit(container(weak[train]), y[train])
    plain.fit(weak[train], y[train])
    np.testing.assert_array_equal(model.predict(weak[test]), plain.predict(weak[test]))


def test_discriminant_directions_can_be_the_start():
    X, y = load_wine(return_X_y=True)
    model = NCMML(init="lda").fit(X[::2], y[::2])
    assert model.components_.shape == (2, 13)
    assert model.score(X[1::2], y[1::2]) > 0.95
    assert NCMML(1, init="lda").fit(X, y).components_.shape == (1, 13)


# Prediction.


@pytest.mark.parametrize("size", [1 << 18, 9])
def test_probabilities_are_those_of_the_loops(blobs, size, monkeypatch):
    from bnca.rivals import ncmml

    monkeypatch.setattr(ncmml, "BLOCK_NUMBERS", size)
    X, y = blobs
    model = NCMML(2).fit(X, np.array(["a", "b", "c"])[y])
    means = np.array([X[y == c].mean(axis=0) for c in range(3)])
    np.testing.assert_allclose(model.means_, means)
    assert model.mean_labels_.tolist() == ["a", "b", "c"]
    queries = X[:20] + 0.5
    expected = oracle.predict_proba(model.components_, queries, means, [0, 1, 2], 3)
    np.testing.assert_allclose(model.predict_proba(queries), expected, rtol=0, atol=ROUNDING)
    assert model.predict(queries).tolist() == np.array(["a", "b", "c"])[expected.argmax(1)].tolist()


@pytest.mark.parametrize("vote", ["uniform", "distance"])
def test_training_rows_may_vote_instead(blobs, vote):
    X, y = blobs
    model = NCMML(vote=vote, n_voters=7).fit(X, y)
    plain = KNeighborsClassifier(7, weights=vote).fit(model.transform(X), y)
    queries = X + 0.2
    np.testing.assert_allclose(
        model.predict_proba(queries), plain.predict_proba(model.transform(queries)), rtol=1e-7
    )
    distance, index = model.kneighbors(queries, 4)
    expected = plain.kneighbors(model.transform(queries), 4)
    np.testing.assert_array_equal(index, expected[1])
    np.testing.assert_allclose(distance, expected[0], rtol=1e-7)


# Several means a class.


def test_two_means_see_both_sides(two_moons_of_means):
    X, y = two_moons_of_means
    assert NCMML().fit(X, y).score(X, y) < 0.9
    model = NCMML(n_centroids=2).fit(X, y)
    assert model.score(X, y) == 1
    assert model.mean_labels_.tolist() == ["in", "in", "out", "out"]
    np.testing.assert_allclose(
        np.sort(model.means_[2:, 0]), [X[:20, 0].mean(), X[20:40, 0].mean()], rtol=ROUNDING
    )
    expected = oracle.predict_proba(model.components_, X, model.means_, np.array([0, 0, 1, 1]), 2)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=0, atol=ROUNDING)


def test_centroids_are_seeded():
    X, y = np.random.default_rng(0).normal(size=(200, 5)), np.arange(200) % 2
    fits = [NCMML(n_centroids=7, random_state=seed).fit(X, y).means_ for seed in (0, 0, 1)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert not np.array_equal(fits[0], fits[2])


def test_classes_of_few_rows_have_fewer_means(blobs):
    X = np.vstack([blobs[0][:10], np.zeros((2, 4)), np.ones((5, 4))])
    y = np.repeat(["many", "two", "same"], [10, 2, 5])
    X[11] = 9.0
    with pytest.warns(NeighborhoodWarning, match=r"fewer means: same \(1\), two \(2\)") as caught:
        model = NCMML(n_centroids=3).fit(X, y)
    assert caught[0].filename == __file__
    assert model.mean_labels_.tolist() == ["many"] * SEVERAL + ["same"] + ["two"] * 2


# Classes that come later.


@pytest.fixture
def known(blobs):
    """Fitted without the class in the middle of the alphabet."""
    X, y = blobs
    labels = np.array(["apple", "mango", "plum"])[y]
    return NCMML().fit(X[y != 1], labels[y != 1])


def test_a_new_class_is_recognised_by_its_mean(known, blobs):
    X, y = blobs
    components = known.components_.copy()
    new = X[y == 1][:5]
    assert known.add_classes(new, ["mango"] * 5) is known
    np.testing.assert_array_equal(known.components_, components)
    assert known.classes_.tolist() == known.mean_labels_.tolist() == ["apple", "mango", "plum"]
    means = np.array([X[y == 0].mean(axis=0), new.mean(axis=0), X[y == 2].mean(axis=0)])
    np.testing.assert_allclose(known.means_, means)
    expected = oracle.predict_proba(components, X, means, [0, 1, 2], 3)
    np.testing.assert_allclose(known.predict_proba(X), expected, rtol=0, atol=ROUNDING)
    assert known.predict(X)[expected.argmax(1) == 1].tolist() == ["mango"] * int(
        (expected.argmax(1) == 1).sum()
    )


def test_rows_of_new_classes_are_neighbors_after_the_others(known, blobs):
    X, y = blobs
    before = int((y != 1).sum())
    known.add_classes(X[y == 1], np.full(int((y == 1).sum()), "mango"))
    distance, index = known.kneighbors(X[y == 1], 1)
    np.testing.assert_array_equal(index[:, 0], before + np.arange(len(index)))
    assert (distance == 0).all()
    _, index = known.kneighbors(X[y == 2], 1)
    np.testing.assert_array_equal(index[:, 0], np.flatnonzero(y[y != 1] == 2))
    known.set_params(vote="uniform", n_voters=1)
    assert known.predict(X).tolist() == np.array(["apple", "mango", "plum"])[y].tolist()


def test_several_classes_one_row_each_and_once_more(known, blobs):
    known.add_classes(blobs[0][:2] + 50, ["zucchini", "aubergine"])
    known.add_classes(scipy.sparse.csr_matrix(blobs[0][:1] - 50), ["kiwi"])
    assert known.classes_.tolist() == ["apple", "aubergine", "kiwi", "plum", "zucchini"]
    np.testing.assert_array_equal(known.means_[[4, 1]], blobs[0][:2] + 50)
    assert known.predict(blobs[0][:1] - 49).tolist() == ["kiwi"]
    assert known.kneighbors(blobs[0][:1] - 50, 1)[1].tolist() == [[57]]


def test_new_classes_have_several_means_too(two_moons_of_means):
    X, y = two_moons_of_means
    model = NCMML(n_centroids=2).fit(X, y)
    above = X + np.array([0.0, 30.0])
    model.add_classes(above, np.where(y == "in", "above in", "above out"))
    assert model.mean_labels_.tolist() == np.repeat(model.classes_, 2).tolist()
    assert model.predict(above).tolist() == np.char.add("above ", y).tolist()
    with pytest.warns(NeighborhoodWarning, match=r"far \(1\)") as caught:
        model.add_classes([[99.0, 99.0]], ["far"])
    assert caught[0].filename == __file__


def test_numbers_stay_numbers(blobs):
    X, y = blobs
    model = NCMML().fit(X[y != 1], y[y != 1]).add_classes(X[y == 1], y[y == 1])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(X, y) > 0.75


@pytest.mark.parametrize(
    ("X", "y", "match"),
    [
        (np.ones((2, 4)), ["plum", "kiwi"], r"new classes only; y holds \['plum'\], known already"),
        (np.ones((2, 4)), [3, 4], "labels of another kind .*text to text and numbers to numbers"),
        (np.ones((2, 3)), ["kiwi", "kiwi"], "X has 3 features, but NCMML is expecting 4"),
        (np.full((2, 4), np.nan), ["kiwi", "kiwi"], "Input X contains NaN"),
        (np.ones((2, 4)), ["kiwi"], "inconsistent numbers of samples"),
        (np.ones((0, 4)), [], "Found array with 0 sample"),
        (np.ones((2, 4)), [0.5, 1.7], "Unknown label type: continuous"),
    ],
)
def test_rows_that_cannot_be_new_classes(known, X, y, match):
    means = known.means_.copy()
    with pytest.raises(ValueError, match=match):
        known.add_classes(X, y)
    np.testing.assert_array_equal(known.means_, means)


def test_classes_can_be_added_to_a_fit_only():
    with pytest.raises(NotFittedError, match="NCMML instance is not fitted yet"):
        NCMML().add_classes(np.ones((2, 4)), ["kiwi", "kiwi"])


# How the search ends, and who watches.


@pytest.mark.parametrize("verbose", [0, 1])
def test_no_convergence_is_said_whatever_the_verbosity(blobs, verbose, capsys):
    with pytest.warns(ConvergenceWarning, match=r"after 2 steps .* \(now 2\)") as caught:
        model = NCMML(max_iter=2, verbose=verbose).fit(*blobs)
    assert [w.filename for w in caught] == [__file__]
    assert not model.converged_
    lines = capsys.readouterr().out.splitlines()
    assert (
        lines
        == [f"[NCMML] step {step:4d}   objective {model.objectives_[step]:.6f}" for step in (1, 2)][
            : 2 * verbose
        ]
    )


def test_the_callback_sees_each_step(blobs):
    seen = []

    def watch(step, components, objective):
        seen.append((step, components.copy(), objective))
        components[:] = 0  # a copy: the search must not be disturbed

    model = NCMML(2, callback=watch).fit(*blobs)
    assert [step for step, _, _ in seen] == list(range(1, model.n_iter_ + 1))
    np.testing.assert_array_equal([value for _, _, value in seen], model.objectives_[1:])
    np.testing.assert_allclose(seen[-1][1], model.components_, rtol=ROUNDING)
    np.testing.assert_array_equal(model.components_, NCMML(2).fit(*blobs).components_)


def test_a_start_that_is_the_optimum_counts_as_one_step():
    X = np.array([[0.0], [0.1], [90.0], [90.1]])
    model = NCMML().fit(X, [0, 0, 1, 1])
    assert model.converged_
    assert model.n_iter_ == 1


def test_threads_change_nothing():
    X, y = load_digits(return_X_y=True)
    fits = [NCMML(n_jobs=n, max_iter=30, tol=1e-3).fit(X, y) for n in (1, 2)]
    np.testing.assert_array_equal(fits[0].components_, fits[1].components_)


# Rows of other kinds.


@pytest.mark.parametrize("container", [scipy.sparse.csr_matrix, scipy.sparse.csc_array])
@pytest.mark.parametrize("shape", [(60, 8), (20, 50)])
@pytest.mark.parametrize("n_centroids", [1, 2])
def test_sparse_rows_equal_dense_ones(container, shape, n_centroids):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape) * np.geomspace(3, 0.5, shape[1])
    X[rng.random(shape) < 0.6] = 0
    y = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
    settings = {"n_centroids": n_centroids, "tol": 1e-9, "max_iter": 1000}
    dense, sparse = NCMML(**settings).fit(X, y), NCMML(**settings).fit(container(X), y)
    np.testing.assert_allclose(sparse.means_, dense.means_, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(
        distances(sparse, X), distances(dense, X), rtol=0, atol=10 * SAME_SEARCH
    )
    np.testing.assert_allclose(
        sparse.predict_proba(container(X)), dense.predict_proba(X), rtol=0, atol=SAME_SEARCH
    )


def test_large_sparse_rows_are_reduced_to_their_leading_axes(monkeypatch, blobs):
    X, y = blobs
    monkeypatch.setattr(features, "DENSE_SIDE", 2)
    model = NCMML(2, init="lda").fit(scipy.sparse.csr_matrix(X), y)
    assert model.components_.shape == (2, 4)
    axes = features.eigen_directions(X / feature_scales(X), 2).axes / feature_scales(X)[:, None]
    # Every row of the map is made of those two axes.
    made, *_ = np.linalg.lstsq(axes, model.components_.T, rcond=None)
    np.testing.assert_allclose(axes @ made, model.components_.T, rtol=0, atol=1e-6)
    monkeypatch.undo()
    other = NCMML(2, init="lda").fit(scipy.sparse.csr_matrix(X), y)
    assert np.abs(other.components_ - model.components_).max() > 0.01


def test_single_precision_rows_are_learned_from_in_double(blobs):
    X, y = blobs[0].astype(np.float32), blobs[1]
    single, double = NCMML().fit(X, y), NCMML().fit(X.astype(np.float64), y)
    assert single.components_.dtype == single.means_.dtype == np.float32
    assert single.transform(X).dtype == np.float32
    np.testing.assert_allclose(
        single.predict_proba(X), double.predict_proba(X), rtol=0, atol=FLOAT32_FIT / 10
    )


def test_columns_and_rows_that_do_not_vary(blobs):
    X, y = blobs
    constant = np.column_stack([X, np.full(80, 4.0)])
    np.testing.assert_allclose(
        NCMML().fit(constant, y).predict_proba(constant),
        NCMML().fit(X, y).predict_proba(X),
        rtol=0,
        atol=1e-6,
    )
    model = NCMML().fit(np.full((4, 2), 3.0), [0, 0, 1, 1])
    np.testing.assert_allclose(model.predict_proba([[3.0, 3.0]]), [[0.5, 0.5]])


def test_features_of_wildly_different_units_all_count():
    """A clock in seconds beside a share: a variance 1e18 times less decides the class."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = np.column_stack([1.6e9 + 1e6 * rng.normal(size=60), y * 1e-2 + 1e-3 * rng.normal(size=60)])
    assert NearestCentroid().fit(X, y).score(X, y) < 0.7
    assert NCMML().fit(X, y).score(X, y) > 0.9


# What does not fit.


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"n_components": 5}, "n_components must be at most the number of features, 4; got 5"),
        ({"init": np.eye(3)}, r"init must have shape \(n_components, 4\); got shape \(3, 3\)"),
        ({"init": np.ones(4)}, r"init must have shape \(n_components, 4\); got shape \(4,\)"),
        (
            {"init": np.eye(4), "n_components": 2},
            r"init must have shape \(2, 4\); got shape \(4, 4\)",
        ),
        ({"init": np.full((1, 4), np.inf)}, "contains infinity"),
    ],
)
def test_starts_that_do_not_fit(blobs, parameters, match):
    with pytest.raises(ValueError, match=match):
        NCMML(**parameters).fit(*blobs)


def test_discriminants_need_two_classes(blobs):
    with pytest.raises(ValueError, match='init="lda" needs rows of at least two classes'):
        NCMML(init="lda").fit(blobs[0], np.zeros(80))
