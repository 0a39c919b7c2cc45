"""Intervals, tests and ranks against SciPy's, naive loops, and simulations with fixed seeds."""

import numpy as np
import pytest
from scipy import stats
from tolerances import ROUNDING

from bnca.report.statistics import (
    finite,
    holm,
    mean_interval,
    overlap,
    paired_test,
    rank_interval,
    ratio_interval,
)

VALUES = np.array([0.61, 0.7, 0.66, 0.74, 0.59, 0.8, 0.71])


def nadeau_bengio(x, correlation):
    """Mean and standard error as Nadeau and Bengio have them, term by term."""
    mean = sum(x) / len(x)
    variance = sum((value - mean) ** 2 for value in x) / (len(x) - 1)
    return mean, ((1 / len(x) + correlation / (1 - correlation)) * variance) ** 0.5


def equicorrelated(rng, n, repeats, correlation):
    """Draws of so many repeats, any two of which have that correlation; mean zero."""
    common = rng.normal(size=(n, 1)) * np.sqrt(correlation)
    return common + rng.normal(size=(n, repeats)) * np.sqrt(1 - correlation)


def test_interval_without_overlap_is_students():
    low, high = stats.t.interval(0.95, len(VALUES) - 1, VALUES.mean(), stats.sem(VALUES))
    assert mean_interval(VALUES) == pytest.approx((VALUES.mean(), low, high), rel=ROUNDING)


@pytest.mark.parametrize("correlation", [0.1, 0.5, 0.9])
def test_interval_and_test_allow_for_overlap(correlation):
    mean, error = nadeau_bengio(VALUES.tolist(), correlation)
    half = error * stats.t.ppf(0.975, len(VALUES) - 1)
    found = mean_interval(VALUES, correlation)
    assert found == pytest.approx((mean, mean - half, mean + half), rel=ROUNDING)
    p = stats.t.sf((mean - 0.65) / error, len(VALUES) - 1)
    assert paired_test(VALUES - 0.65, correlation) == pytest.approx(p, rel=ROUNDING)


def test_correction_is_that_of_the_paper_where_rows_are_used_up():
    """With all rows in training or test, rho/(1 - rho) is n_test/n_train."""
    rho = overlap(70, 30, None)
    assert rho / (1 - rho) == pytest.approx(30 / 70)
    assert overlap(70, 30, 100) == rho
    assert overlap(30, 100, 625) == 100 / 625
    assert overlap(30, 100, 100) == 0.9


def test_intervals_of_few_values():
    assert mean_interval([0.7]) == (0.7, None, None)
    assert mean_interval([0.7, np.nan]) == (0.7, None, None)
    same = mean_interval([0.7, 0.7, 0.7])  # their variance is not exactly zero
    assert same.low == same.mean == same.high == pytest.approx(0.7)
    nothing = mean_interval([np.nan])
    assert np.isnan(nothing.mean)
    assert nothing[1:] == (None, None)
    assert finite([1, np.nan, np.inf, 2]).tolist() == [1, 2]


def test_ratios_are_geometric():
    a, b = np.array([1.0, 2, 4, 3]), np.array([2.0, 5, 6, 9])
    logs = np.log(a / b)
    low, high = stats.t.interval(0.95, 3, logs.mean(), stats.sem(logs))
    expected = np.exp([logs.mean(), low, high])
    assert ratio_interval(a, b) == pytest.approx(tuple(expected), rel=ROUNDING)
    assert ratio_interval([3.0], [2.0]) == (pytest.approx(1.5), None, None)


def test_paired_test_is_scipys():
    first, second = VALUES, VALUES[::-1] ** 2
    expected = stats.ttest_rel(first, second, alternative="greater").pvalue
    assert paired_test(first - second) == pytest.approx(expected, rel=ROUNDING)
    assert paired_test(second - first) == pytest.approx(1 - expected, rel=ROUNDING)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([], 1),
        ([0.3], 1),
        ([0, 0, 0], 1),
        ([0.2, 0.2], 0),
        ([0.7, 0.7, 0.7], 0),
        ([-0.2, -0.2], 1),
        ([np.nan, 0.3], 1),
    ],
)
def test_paired_test_of_what_has_no_spread(differences, p):
    assert paired_test(differences) == p


def naive_holm(p):
    """By the definition: the k-th smallest is multiplied by how many are left, and never falls."""
    out, largest = [0.0] * len(p), 0.0
    left = list(range(len(p)))
    while left:
        least = min(left, key=lambda i: p[i])
        largest = max(largest, min(1.0, p[least] * len(left)))
        out[least] = largest
        left.remove(least)
    return out


@pytest.mark.parametrize(
    "p", [[], [0.04], [0.01, 0.04, 0.03, 0.005], [0.2, 0.2, 0.9, 0.01], [0.5] * 3]
)
def test_holm(p):
    assert holm(p).tolist() == pytest.approx(naive_holm(p))


def test_holm_of_a_textbook():
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_intervals_cover_as_often_as_they_say(correlation):
    rng = np.random.default_rng(1)
    draws = equicorrelated(rng, 4000, 10, correlation)
    found = [mean_interval(x, correlation) for x in draws]
    covered = np.mean([low <= 0 <= high for _, low, high in found])
    # Five standard errors of a share of 0.95 among 4000 are 0.017.
    assert covered == pytest.approx(0.95, abs=0.017)
    wrong = np.mean([paired_test(x, correlation) < 0.05 for x in draws])
    assert wrong == pytest.approx(0.05, abs=0.017)


def test_plain_intervals_cover_too_seldom_where_rows_are_shared():
    draws = equicorrelated(np.random.default_rng(2), 500, 10, 0.3)
    plain = np.mean([low <= 0 <= high for _, low, high in map(mean_interval, draws)])
    assert plain < 0.75


def test_ranks_of_methods_that_are_told_apart():
    wobble = 0.01 * np.array([1, -1, 1, -1, 1, -1])
    values = {"worst": 0.5 + wobble, "mine": 0.7 - wobble, "best": 0.9 + wobble}
    assert rank_interval(values, "mine") == (2, 2, 2, 3)
    assert rank_interval(values, "best") == (1, 1, 1, 3)
    assert rank_interval(values, "worst") == (3, 3, 3, 3)


def test_ranks_of_methods_that_are_not():
    values = {"a": VALUES, "b": VALUES[::-1], "c": VALUES - 0.3}
    assert rank_interval(values, "a") == (1.5, 1, 2, 3)
    one = {name: x[:1] for name, x in values.items()}
    assert rank_interval(one, "c") == (3, 1, 3, 3)
    holes = {**values, "d": np.full(len(VALUES), np.nan)}
    assert rank_interval(holes, "a").of == 3
    assert rank_interval({"a": VALUES}, "a") == (1, 1, 1, 1)


def test_ranks_are_wider_where_rows_are_shared():
    shift = 0.08 + 0.05 * np.array([1, -1, 1, -1, 1, -1, 0])
    values = {"a": VALUES, "b": VALUES - shift}
    assert rank_interval(values, "a")[1:3] == (1, 1)
    assert rank_interval(values, "a", 0.8)[1:3] == (1, 2)


def test_ranges_cover_the_rank_of_the_true_means():
    rng = np.random.default_rng(3)
    means = {"a": 0.0, "b": 0.05, "c": 0.3, "mine": 0.1}
    covered = 0
    for _ in range(400):
        values = {name: mean + 0.2 * rng.normal(size=8) for name, mean in means.items()}
        rank = rank_interval(values, "mine")
        covered += rank.low <= 2 <= rank.high
    assert covered / 400 >= 0.95
