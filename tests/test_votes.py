from __future__ import annotations

import tracemalloc

import numpy as np
import oracle_beyond
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import ROUNDING

from bnca import votes as module
from bnca.core import smoothing
from bnca.core.smoothing import NEVER
from bnca.votes import MEANS, RIDGES, WIDTHS, Doubt, LandmarkVotes, Rows, Votes, votes_of

WHISKER = 2e-3
"""What a diagonal larger by 1e-8 does to a vote where the kernels of landmarks all but coincide."""

EVERY_VOTE = range(MEANS + 1)
SOME_VOTES = (0, MEANS // 2, MEANS - 1, MEANS)


def labelled(n, *, d=2, n_classes=3, seed=0, apart=1.5):
    """Rows of overlapping classes of unequal size, some of them weighing more."""
    rng = np.random.default_rng(seed)
    codes = np.minimum(rng.geometric(0.5, n) - 1, n_classes - 1)
    codes[:n_classes] = np.arange(n_classes)
    middle = rng.normal(size=(n_classes, d)) * apart
    X = (middle[codes] + rng.normal(size=(n, d))) * np.geomspace(2, 0.5, d)
    return Rows(X, np.eye(d), codes, rng.choice([1.0, 1.0, 2.0], n), n_classes)


@st.composite
def few_rows(draw):
    n, n_classes = draw(st.integers(4, 14)), draw(st.integers(2, 3))
    seed = draw(st.integers(0, 2**32 - 1))
    return labelled(n, d=draw(st.integers(1, 3)), n_classes=n_classes, seed=seed)


def setting(vote):
    """Width and ridge of a smoothed vote."""
    return WIDTHS[vote // len(RIDGES)], RIDGES[vote % len(RIDGES)]


def expected_votes(rows, labels, queries, vote):
    """What a vote says, by the loops."""
    unit = oracle_beyond.typical_distance(rows.coordinates, smoothing.NEAR)
    if vote == MEANS:
        weighed = labels * rows.weights[:, None]
        means = oracle_beyond.means_of_classes(rows.coordinates, weighed)
        return -smoothing.MEAN_SCALE * oracle_beyond.distances(queries, means) / unit
    width, ridge = setting(vote)
    share = sum(w * y for w, y in zip(rows.weights, labels, strict=True)) / rows.weights.sum()
    return share + oracle_beyond.kernel_ridge(
        rows.coordinates, labels - share, rows.weights, queries, width=width * unit, ridge=ridge
    )


def say(voice, queries):
    return voice.say(smoothing.squared_distances(queries, voice.points))


# Every row votes.


@given(few_rows())
def test_every_vote_says_what_the_loops_say(rows):
    queries = rows.coordinates[:3] + 0.4
    votes = Votes(rows, np.eye(rows.coordinates.shape[1]))
    for vote in SOME_VOTES:
        expected = expected_votes(rows, rows.labels, queries, vote)
        atol = 1e-7 * (1 + np.abs(expected).max())
        np.testing.assert_allclose(say(votes.voice(vote), queries), expected, rtol=0, atol=atol)


@given(few_rows())
def test_votes_left_out_are_those_of_a_refit_without_the_row(rows):
    unit = oracle_beyond.typical_distance(rows.coordinates, smoothing.NEAR)
    share = rows.weights @ rows.labels / rows.weights.sum()
    votes = Votes(rows, np.eye(rows.coordinates.shape[1]))
    for vote in SOME_VOTES[:-1]:
        width, ridge = setting(vote)
        expected = share + oracle_beyond.kernel_ridge_left_out(
            rows.coordinates, rows.labels - share, rows.weights, width=width * unit, ridge=ridge
        )
        np.testing.assert_allclose(votes.left_out(vote), expected, rtol=0, atol=1e-7)
    weighed = rows.labels * rows.weights[:, None]
    expected = oracle_beyond.mean_votes_left_out(
        rows.coordinates, weighed, unit, smoothing.MEAN_SCALE
    )
    company = (rows.labels.sum(axis=0) > 1)[rows.codes]  # others of its class remain
    np.testing.assert_allclose(
        votes.left_out(MEANS)[company], expected[company], rtol=1e-7, atol=1e-7
    )


def test_votes_are_in_the_metric():
    rows = labelled(20)
    L = np.array([[2.0, 0.3, 0.0], [0.0, 1.0, -1.0]])
    moved = Rows(rows.coordinates @ L, np.eye(3), rows.codes, rows.weights, rows.n_classes)
    for vote in SOME_VOTES:
        np.testing.assert_allclose(
            Votes(rows, L).left_out(vote), Votes(moved, np.eye(3)).left_out(vote), rtol=1e-7
        )


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_votes_do_not_depend_on_the_unit_of_the_rows(size):
    rows = labelled(20)
    here, there = Votes(rows, np.eye(2)), Votes(rows, size * np.eye(2))
    queries = rows.coordinates + 0.3
    for vote in SOME_VOTES:
        np.testing.assert_allclose(
            say(there.voice(vote), size * queries), say(here.voice(vote), queries), rtol=1e-6
        )


def test_votes_may_be_asked_for_in_any_order():
    rows = labelled(20)
    votes = Votes(rows, np.eye(2))
    for vote in [*EVERY_VOTE, *reversed(EVERY_VOTE)]:
        fresh = Votes(rows, np.eye(2))
        np.testing.assert_array_equal(votes.left_out(vote), fresh.left_out(vote))
        kept, new = votes.voice(vote), fresh.voice(vote)
        np.testing.assert_array_equal(kept.coefficients, new.coefficients)


def test_votes_are_numbered_by_widths_and_then_ridges():
    assert len(WIDTHS) * len(RIDGES) == MEANS
    assert sorted(WIDTHS) == list(WIDTHS)
    assert sorted(RIDGES) == list(RIDGES)
    votes = Votes(labelled(20), np.eye(2))
    found = [votes.voice(vote).width / votes.unit for vote in EVERY_VOTE]
    expected = [width for width in WIDTHS for _ in RIDGES]
    np.testing.assert_allclose(found, [*expected, np.inf])


def test_a_class_without_rows_is_never_voted_for():
    rows = labelled(20)
    more = Rows(rows.coordinates, rows.axes, rows.codes, rows.weights, rows.n_classes + 1)
    votes = Votes(more, np.eye(2))
    found = say(votes.voice(MEANS), rows.coordinates)
    assert (found[:, -1] <= NEVER).all()
    assert (smoothing.softmax(found, 1.0)[:, -1] < 1e-12).all()
    smooth = say(votes.voice(0), rows.coordinates)
    np.testing.assert_allclose(smooth[:, -1], 0, atol=ROUNDING)


@given(few_rows())
def test_smoothed_votes_sum_to_one(rows):
    votes = Votes(rows, np.eye(rows.coordinates.shape[1]))
    for vote in SOME_VOTES[:-1]:
        found = say(votes.voice(vote), rows.coordinates + 1.0)
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-7)


# Doubtful labels.


@pytest.mark.parametrize("vote", SOME_VOTES)
def test_doubtful_labels_become_what_bayes_rule_makes_of_the_others_votes(vote):
    rows = labelled(25)
    doubt = Doubt(0.3, 2.5)
    votes = Votes(rows, np.eye(2))
    truth = np.array(
        [
            oracle_beyond.true_labels(oracle_beyond.soft(said, 2.5), code, 0.3)
            for said, code in zip(votes.left_out(vote), rows.codes, strict=True)
        ]
    )
    np.testing.assert_allclose(votes.probable(vote, doubt), truth, rtol=0, atol=ROUNDING)
    queries = rows.coordinates + 0.3
    expected = expected_votes(rows, truth, queries, vote)
    found = say(votes.voice(vote, doubt), queries)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_without_flips_doubt_changes_nothing():
    rows = labelled(25)
    votes = Votes(rows, np.eye(2))
    for vote in SOME_VOTES:
        np.testing.assert_array_equal(votes.probable(vote, Doubt(0.0, 1.0)), rows.labels)
        sure, doubtful = votes.voice(vote), votes.voice(vote, Doubt(0.0, 1.0))
        np.testing.assert_array_equal(doubtful.coefficients, sure.coefficients)


def test_a_label_amid_another_class_is_doubted():
    rows = labelled(60, n_classes=2, apart=6.0)
    codes = rows.codes.copy()
    wrong = np.flatnonzero(codes == 0)[5]
    codes[wrong] = 1
    doubted = Rows(rows.coordinates, rows.axes, codes, rows.weights, 2)
    known = Votes(doubted, np.eye(2)).probable(MEANS // 2, Doubt(0.1, 4.0))
    assert known[wrong, 0] > 0.5
    others = np.delete(np.arange(60), wrong)
    assert (known[others, codes[others]] > 0.5).all()


# Landmarks.


def test_many_rows_vote_by_way_of_landmarks(monkeypatch):
    monkeypatch.setattr(module, "EXACT_ROWS", 20)
    monkeypatch.setattr(module, "LANDMARKS", 10)
    assert type(votes_of(labelled(20), np.eye(2))) is Votes
    assert type(votes_of(labelled(21), np.eye(2))) is LandmarkVotes


def test_there_are_fewer_landmarks_than_rows_that_need_them():
    assert module.LANDMARKS <= module.EXACT_ROWS


@pytest.mark.parametrize("vote", EVERY_VOTE)
def test_landmarks_that_are_all_rows_vote_exactly(vote, monkeypatch):
    rows = labelled(60)
    monkeypatch.setattr(module, "LANDMARKS", 60)
    monkeypatch.setattr(module, "BLOCK_ROWS", 17)
    exact, found = Votes(rows, np.eye(2)), LandmarkVotes(rows, np.eye(2))
    np.testing.assert_allclose(found.unit, exact.unit, rtol=ROUNDING)
    queries = rows.coordinates + 0.2
    # Not to the last digits: a whisker is added to the diagonal, lest landmarks coincide.
    np.testing.assert_allclose(
        say(found.voice(vote), queries), say(exact.voice(vote), queries), rtol=0, atol=WHISKER
    )
    np.testing.assert_allclose(found.left_out(vote), exact.left_out(vote), rtol=0, atol=WHISKER)


@pytest.mark.parametrize("vote", SOME_VOTES[:-1])
def test_landmarks_vote_as_the_loops_do_with_and_without_a_row(vote, monkeypatch):
    rows = labelled(36)
    monkeypatch.setattr(module, "LANDMARKS", 8)
    votes = LandmarkVotes(rows, np.eye(2))
    width, ridge = setting(vote)
    found = {"voice": say(votes.voice(vote), rows.coordinates), "left out": votes.left_out(vote)}
    share = rows.weights @ rows.labels / rows.weights.sum()

    def expected(kept, queries):
        return share + oracle_beyond.landmark_ridge(
            rows.coordinates[kept],
            rows.labels[kept] - share,
            rows.weights[kept],
            queries,
            landmarks=votes.voice(vote).points,
            width=width * votes.unit,
            ridge=ridge,
        )

    everyone = np.arange(36)
    everything = expected(everyone, rows.coordinates)
    np.testing.assert_allclose(found["voice"], everything, rtol=0, atol=WHISKER)
    for i in everyone:
        without = expected(np.delete(everyone, i), rows.coordinates[i : i + 1])[0]
        np.testing.assert_allclose(found["left out"][i], without, rtol=0, atol=WHISKER)


def test_few_landmarks_say_nearly_what_all_rows_say_where_kernels_are_wide(monkeypatch):
    rows = labelled(400)
    monkeypatch.setattr(module, "LANDMARKS", 130)
    exact, found = Votes(rows, np.eye(2)), LandmarkVotes(rows, np.eye(2))
    np.testing.assert_allclose(found.unit, exact.unit, rtol=0.1)  # asked of a sample
    queries = rows.coordinates + np.random.default_rng(1).normal(size=(400, 2)) * 0.3
    for vote in (MEANS - len(RIDGES), MEANS - 1):  # the widest kernel
        gaps = say(found.voice(vote), queries) - say(exact.voice(vote), queries)
        assert np.sqrt(np.mean(gaps**2)) < 0.05
    scale = found.unit / exact.unit
    np.testing.assert_allclose(
        say(found.voice(MEANS), queries) * scale, say(exact.voice(MEANS), queries), rtol=1e-7
    )


def test_landmarks_that_coincide_are_allowed(monkeypatch):
    rows = labelled(50)
    X = rows.coordinates.copy()
    X[::2] = X[0]
    monkeypatch.setattr(module, "LANDMARKS", 25)
    same = Rows(X, rows.axes, rows.codes, rows.weights, rows.n_classes)
    found = LandmarkVotes(same, np.eye(2))
    for vote in SOME_VOTES:
        assert np.isfinite(found.left_out(vote)).all()
        assert np.isfinite(say(found.voice(vote), X)).all()


def test_blocks_of_rows_do_not_show_in_landmark_votes(monkeypatch):
    rows = labelled(300)
    monkeypatch.setattr(module, "LANDMARKS", 40)
    whole = LandmarkVotes(rows, np.eye(2))
    monkeypatch.setattr(module, "BLOCK_ROWS", 7)
    parts = LandmarkVotes(rows, np.eye(2))
    vote = MEANS // 2
    np.testing.assert_allclose(parts.left_out(vote), whole.left_out(vote), rtol=0, atol=1e-7)


def test_no_array_of_the_square_of_the_rows_is_made(monkeypatch):
    n = 20_000
    rows = labelled(n, d=5)
    monkeypatch.setattr(module, "LANDMARKS", 150)  # fewer than usual: this test is to be quick
    tracemalloc.start()
    try:
        votes = votes_of(rows, np.eye(5))
        for vote in (MEANS // 2, MEANS):
            voice = votes.voice(vote, Doubt(0.1, 1.0))
            assert len(voice.points) <= 150
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(votes, LandmarkVotes)
    assert peak < 8 * n**2 / 50


def test_some_of_the_rows_keep_what_is_theirs():
    rows = labelled(10)
    some = rows.take(np.array([7, 2]))
    np.testing.assert_array_equal(some.coordinates, rows.coordinates[[7, 2]])
    np.testing.assert_array_equal(some.codes, rows.codes[[7, 2]])
    np.testing.assert_array_equal(some.weights, rows.weights[[7, 2]])
    np.testing.assert_array_equal(some.labels, rows.labels[[7, 2]])
    assert some.n_classes == rows.n_classes
    np.testing.assert_array_equal(rows.labels.argmax(axis=1), rows.codes)
    np.testing.assert_array_equal(rows.labels.sum(axis=1), 1)
