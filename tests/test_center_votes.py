"""Votes of learned class centres: those that are numbered above the vote of class means."""

from __future__ import annotations

import numpy as np
import oracle_beyond
import pytest
from tolerances import ROUNDING, SAME_FIT, assert_same_sum

from bnca import votes as module
from bnca.core import prototypes, smoothing
from bnca.votes import MEANS, N_VOTES, PENALTIES, Doubt, LandmarkVotes, Rows, Votes

LEARNED = range(MEANS + 1, N_VOTES)
BOTH = pytest.mark.parametrize("kind", [Votes, LandmarkVotes])
EACH = pytest.mark.parametrize("vote", LEARNED)


def labelled(n=40, *, d=3, n_classes=3, seed=0, apart=1.0):
    """Rows of overlapping classes of unequal size, some of them weighing more."""
    rng = np.random.default_rng(seed)
    codes = np.minimum(rng.geometric(0.5, n) - 1, n_classes - 1)
    codes[: 2 * n_classes] = np.repeat(np.arange(n_classes), 2)
    middle = rng.normal(size=(n_classes, d)) * apart
    X = (middle[codes] + rng.normal(size=(n, d))) * np.geomspace(2, 0.5, d)
    return Rows(X, np.eye(d), codes, rng.choice([1.0, 1.0, 2.0], n), n_classes)


def say(voice, queries):
    return voice.say(oracle_beyond.distances(queries, voice.points))


def centered(votes):
    """Votes less what is common to all classes, which no probability depends on."""
    return votes - votes.mean(axis=1, keepdims=True)


@pytest.fixture(autouse=True)
def few_landmarks(monkeypatch):
    monkeypatch.setattr(module, "LANDMARKS", 10)


@pytest.fixture
def patient(monkeypatch):
    """A search that goes on until it is there."""
    monkeypatch.setattr(prototypes, "STEPS", 3000)
    monkeypatch.setattr(prototypes, "TOLERANCE", 1e-7)


def test_each_penalty_is_a_vote_after_that_of_class_means():
    assert len(LEARNED) == len(PENALTIES)
    assert sorted(PENALTIES) == list(PENALTIES)


@BOTH
@EACH
@pytest.mark.usefixtures("patient")
def test_vote_is_the_linear_one_of_least_loss_for_rows_in_units_of_distance(kind, vote):
    rows = labelled(24, d=2)
    votes = kind(rows, np.eye(2))
    if kind is Votes:
        unit = oracle_beyond.typical_distance(rows.coordinates, smoothing.NEAR)
        np.testing.assert_allclose(votes.unit, unit, rtol=ROUNDING)
    root = np.sqrt(votes.unit)
    slopes, offsets = oracle_beyond.learned_linear_votes(
        rows.coordinates / root, rows.labels, rows.weights, PENALTIES[vote - MEANS - 1]
    )
    queries = rows.coordinates[:5] + 0.4
    expected = queries / root @ slopes + offsets
    voice = votes.voice(vote)
    assert voice.points.shape == (3, 2)
    np.testing.assert_allclose(centered(say(voice, queries)), centered(expected), rtol=0, atol=2e-3)


@BOTH
@EACH
@pytest.mark.usefixtures("patient")
def test_votes_left_out_are_about_those_of_a_refit_without_the_row(kind, vote):
    """First order, and in the unit that all rows have together."""
    rows = labelled(30)
    votes = kind(rows, np.eye(3))
    scaled = rows.coordinates / np.sqrt(votes.unit)
    penalty = PENALTIES[vote - MEANS - 1]
    refitted = np.zeros((30, 3))
    for i in range(30):
        rest = rows.take(np.delete(np.arange(30), i))
        learned = prototypes.learn_slopes(
            rest.coordinates / np.sqrt(votes.unit), rest.labels, rest.weights, penalty
        )
        refitted[i] = learned.say(scaled[i])
    everything = prototypes.learn_slopes(scaled, rows.labels, rows.weights, penalty)
    said, found, expected = (
        smoothing.softmax(v, 1.0) for v in (everything.say(scaled), votes.left_out(vote), refitted)
    )
    moved = np.sqrt(np.mean((expected - said) ** 2))
    assert np.sqrt(np.mean((found - expected) ** 2)) < 0.5 * moved
    own = rows.codes[:, None]
    assert (np.take_along_axis(found - said, own, 1) < 0).all()


@BOTH
@EACH
def test_votes_are_in_the_metric_and_in_no_unit(kind, vote):
    rows = labelled()
    L = np.array([[2.0, 0.3, 0.0], [0.0, 1.0, -1.0], [0.5, 0.0, 0.2]])
    moved = Rows(rows.coordinates @ L, np.eye(3), rows.codes, rows.weights, 3)
    here, there = kind(rows, 1e5 * L), kind(moved, np.eye(3))
    assert_same_sum(here.left_out(vote), there.left_out(vote), SAME_FIT)
    assert_same_sum(
        say(here.voice(vote), 1e5 * moved.coordinates),
        say(there.voice(vote), moved.coordinates),
        SAME_FIT,
    )


@BOTH
@EACH
def test_neither_order_nor_rotation_of_the_rows_matters(kind, vote):
    rows = labelled()
    rng = np.random.default_rng(1)
    order = rng.permutation(40)
    axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    votes, shuffled, turned = (
        kind(rows, np.eye(3)),
        kind(rows.take(order), np.eye(3)),
        kind(rows, axes),
    )
    expected = votes.left_out(vote)
    assert_same_sum(shuffled.left_out(vote), expected[order], SAME_FIT)
    assert_same_sum(turned.left_out(vote), expected, SAME_FIT)
    assert_same_sum(
        say(turned.voice(vote), rows.coordinates @ axes),
        say(votes.voice(vote), rows.coordinates),
        SAME_FIT,
    )


@EACH
def test_landmarks_take_no_part(vote):
    """Only the unit is asked of a sample where there are many rows, here of all."""
    rows = labelled()
    exact, found = Votes(rows, np.eye(3)), LandmarkVotes(rows, np.eye(3))
    assert_same_sum(found.left_out(vote), exact.left_out(vote), SAME_FIT)
    one, other = (say(v.voice(vote), rows.coordinates) for v in (exact, found))
    assert_same_sum(other, one, SAME_FIT)


@BOTH
@EACH
def test_doubtful_labels_are_learned_from_as_far_as_they_are_believed(kind, vote):
    rows = labelled()
    doubt = Doubt(0.3, 2.0)
    votes = kind(rows, np.eye(3))
    truth = np.array(
        [
            oracle_beyond.true_labels(oracle_beyond.soft(said, 2.0), code, 0.3)
            for said, code in zip(votes.left_out(vote), rows.codes, strict=True)
        ]
    )
    np.testing.assert_allclose(votes.probable(vote, doubt), truth, rtol=0, atol=ROUNDING)
    scaled = rows.coordinates / np.sqrt(votes.unit)
    penalty = PENALTIES[vote - MEANS - 1]
    expected = prototypes.learn_slopes(scaled, truth, rows.weights, penalty).say(scaled)
    found = say(votes.voice(vote, doubt), rows.coordinates)
    assert_same_sum(centered(found), centered(expected), SAME_FIT)
    sure, certain = votes.voice(vote), votes.voice(vote, Doubt(0.0, 1.0))
    np.testing.assert_array_equal(certain.points, sure.points)


@BOTH
@EACH
def test_a_label_amid_another_class_is_doubted(kind, vote):
    rows = labelled(60, n_classes=2, apart=3.0)
    codes = rows.codes.copy()
    wrong = np.flatnonzero(codes == 0)[5]
    codes[wrong] = 1
    doubted = Rows(rows.coordinates, rows.axes, codes, np.ones(60), 2)
    known = kind(doubted, np.eye(3)).probable(vote, Doubt(0.1, 2.0))
    assert known[wrong, 0] > 0.5
    others = np.delete(np.arange(60), wrong)
    assert (known[others, codes[others]] > 0.5).mean() > 0.9


@BOTH
@EACH
def test_a_class_without_rows_is_never_voted_for(kind, vote):
    rows = labelled()
    more = Rows(rows.coordinates, rows.axes, rows.codes, rows.weights, 4)
    votes = kind(more, np.eye(3))
    for said in (say(votes.voice(vote), rows.coordinates), votes.left_out(vote)):
        assert (smoothing.softmax(said, 1.0)[:, 3] < 1e-12).all()
