import numpy as np
import pytest

from bnca.experiments.compare import Row
from bnca.experiments.metrics import KEPT
from bnca.experiments.plan import Plan
from bnca.report.comparison import duration, headline, remarks, standings


def rows(**accuracies):
    """A row for each method and split."""
    return [
        Row(name, seed, a, 1 - a, 0.1, 0.5, 1.0, (a,) * len(KEPT), {"k": 3}, 0.4)
        for name, own in accuracies.items()
        for seed, a in enumerate(own)
    ]


def made(found):
    names = tuple(dict.fromkeys(row.method for row in found))
    return Plan(70, 30, 0.0, tuple(range(max(row.seed for row in found) + 1)), names)


def test_best_tied_and_worse():
    wobble = 0.01 * np.array([1, -1, 1, -1, 1, -1, 1, -1])
    found = rows(a=0.5 + wobble, b=0.9 + wobble, c=0.9 - 0.001 - wobble)
    b, c, a = standings(found, made(found), 100)
    assert [(s.method, s.standing) for s in (a, b, c)] == [("a", ""), ("b", "best"), ("c", "tied")]
    assert b.accuracy.mean == pytest.approx(0.9)
    assert b.lead.mean == pytest.approx(0.4)
    assert a.lead is None
    assert "b is the most accurate: 90.0 %" in headline([b, c, a], "a")
    assert "Not told apart from it: c." in headline([b, c, a], "a")
    assert "It leads a by 40.0 points" in headline([b, c, a], "a")


def test_intervals_allow_for_shared_rows():
    values = np.array([0.5, 0.6, 0.55, 0.65, 0.7])
    found = rows(a=values)
    (only,) = standings(found, made(found), 100)
    # Nadeau and Bengio: variance times 1/J + n_test/n_train, here the whole table is used.
    half = 2.7764451 * values.std(ddof=1) * np.sqrt(1 / 5 + 30 / 70)
    assert only.accuracy.high - only.accuracy.mean == pytest.approx(half)


def test_intervals_end_where_shares_do():
    found = rows(a=[1.0, 0.9, 1.0, 1.0, 1.0])
    (only,) = standings(found, made(found), 100)
    assert only.accuracy.high == 1
    assert only.accuracy.low < 0.98
    assert only.log_loss.low == 0


@pytest.mark.parametrize(("n", "words"), [(1, "One split says"), (4, "4 splits say")])
def test_few_splits_claim_nothing(n, words):
    found = rows(a=[0.5] * n, b=[0.9] * n)
    best, other = standings(found, made(found), 100)
    assert best.accuracy.low is None
    assert other.standing == ""
    assert words in headline([best, other], "a")


def test_failures_are_told_and_never_best():
    found = rows(a=[0.5, 0.6, 0.5, 0.6, 0.5], b=[np.nan] * 5)
    found = [r if r.method == "a" else r._replace(reason="ValueError: no") for r in found]
    a, b = standings(found, made(found), 100)
    assert (a.method, b.n_splits, b.standing) == ("a", 0, "")
    assert "b has no result for 5 of 5 splits: ValueError: no" in remarks([a, b], made(found))
    nothing = standings([r._replace(reason="x") for r in found], made(found), 100)
    assert headline(nothing, "a") == "No method gave a result."


def test_no_better_than_the_most_frequent_class():
    found = rows(a=[0.4, 0.41, 0.39, 0.4, 0.4])
    assert "hardly tell the classes" in remarks(standings(found, made(found), 100), made(found))[0]


def test_settings_chosen_most_often():
    found = rows(a=[0.5] * 5)
    found[0] = found[0]._replace(chosen={"k": 0.5})
    (only,) = standings(found, made(found), 100)
    assert only.chosen == "k=3 (4 of 5 splits)"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0"), (0.0012, "1.2 ms"), (0.24, "240 ms"), (1.24, "1.2 s"), (75, "75 s")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text
