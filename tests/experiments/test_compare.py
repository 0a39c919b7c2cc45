import numpy as np
import pytest
from sklearn.datasets import load_iris

from bnca.experiments import compare


def row(method, seed, accuracy):
    curve = tuple(accuracy + 0 * k for k in compare.KEPT)
    return compare.Row(method, seed, accuracy, 1.0, 0.1, 0.5, curve, "")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.9])
def test_flip_changes_exactly_that_share_to_other_classes(share):
    y = np.repeat([3, 5, 9], [50, 30, 20])
    flipped = compare.flip(y, share, np.random.default_rng(0))
    assert (flipped != y).sum() == round(share * 100)
    assert set(flipped) <= {3, 5, 9}


def test_flip_is_uniform_over_the_other_classes():
    y = np.zeros(3000, dtype=int)
    y[:3] = [1, 2, 3]
    flipped = compare.flip(y, 0.9, np.random.default_rng(1))
    counts = np.bincount(flipped[3:], minlength=4)[1:]
    assert counts.min() > 0.9 * counts.mean()


def test_calibration_error_by_hand():
    stated = np.array([0.9, 0.9, 0.6, 0.6])
    right = np.array([1.0, 0.0, 1.0, 1.0])
    # Two bins: {0.6, 0.6} all right, {0.9, 0.9} half right.
    assert compare.calibration_error(stated, right, bins=2) == pytest.approx((0.4 + 0.4) / 2)


def test_kept_accuracy_drops_the_least_certain_first():
    stated = np.linspace(0.5, 1, 100)
    right = (np.arange(100) >= 50).astype(float)
    curve = compare.kept_accuracy(stated, right)
    assert curve[0] == 0.5
    assert curve[compare.KEPT.index(0.5)] == 1
    assert curve[-1] == 1


def test_summary_by_hand():
    rows = [row("a", 0, 0.5), row("b", 0, 0.7), row("a", 1, 0.7), row("b", 1, 0.8)]
    a, b = compare.summarize(rows)
    assert (a.method, b.method) == ("a", "b")
    assert a.accuracy == pytest.approx(0.6)
    assert b.lead == pytest.approx(0.15)
    # Student's t with one degree of freedom: 12.706 times the standard error.
    assert b.lead_half == pytest.approx(12.7062 * 0.05, rel=1e-4)
    assert a.lead == a.lead_half == 0


def test_one_split_has_no_interval():
    (only,) = compare.summarize([row("a", 0, 0.5)])
    assert np.isnan(only.accuracy_half)


def test_choice_is_the_best_of_the_grid_by_cross_validation():
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    X = np.column_stack([X, 50 * rng.normal(size=(150, 1))])  # a useless column drowns the rest
    method = compare.Method(
        "pca", compare.PCAMetric(), {"whiten": [False, True]}, {"n_voters": [1, 7]}
    )
    chosen = compare.choose(method, X, y)
    assert chosen["whiten"] is True
    assert set(chosen) == {"whiten", "n_voters"}


def test_runs_repeat_to_the_last_digit():
    X, y = load_iris(return_X_y=True)
    first, second = (
        [
            (r.method, r.seed, r.accuracy, r.log_loss, r.chosen)
            for r in compare.run(X, y, n_train=45, noise=0.2, seeds=[3])
        ]
        for _ in range(2)
    )
    assert first == second
    assert [r[0] for r in first] == ["KNN", "NCA", "BayesianNCA"]
    assert all(r[2] > 0.5 for r in first)
