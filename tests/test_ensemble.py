from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import oracle_beyond
import pytest
from tolerances import ROUNDING

from bnca import ensemble as module
from bnca import votes as votes_module
from bnca.core import smoothing
from bnca.core.averaging import FLIP_RATES, Weighed
from bnca.ensemble import Ensemble, Speaker, gather
from bnca.learning import Learning
from bnca.selection import Choice, Start, Way, choose, metric_map
from bnca.votes import MEANS, RIDGES, WIDTHS, Doubt, Rows, Voice, Votes

HOW = Learning(5, likelihood="picks", curvature="exact", flip_rate=0.1, n_jobs=1)


def labelled(n=60, *, d=3, seed=0, flip_rate=0.0, apart=2.5):
    """Three overlapping classes of unequal size on columns of unequal scale, some labels wrong."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n) % 5 % 3)
    X = rng.normal(size=(n, d))
    X[:, 0] += apart * truth
    X *= np.geomspace(2, 0.5, d)
    wrong = rng.random(n) < flip_rate
    codes = np.where(wrong, (truth + 1) % 3, truth)
    return Rows(X - X.mean(axis=0), np.eye(d), codes, np.ones(n), 3), truth


def mixed(*starts):
    """A choice made by hand: several votes and temperatures in more than one metric."""
    starts = starts or (Start("euclidean"), Start("scaled"))
    ways = tuple(
        Way(start, vote, doubt)
        for start in starts
        for vote, doubt in (
            (MEANS // 2, None),
            (MEANS, None),
            (1, Doubt(0.2, 2.5)),
        )
    )
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(2 * len(ways))).reshape(-1, 2)
    shares[0, 1] = 0
    shares /= shares.sum()
    temperatures = rng.choice([0.6, 1.5, 9.0], shares.shape)
    weighed = Weighed(shares, temperatures, np.zeros(len(ways)), 0.1)
    return Choice(ways, weighed, starts[0], np.empty(0), {})


def test_probabilities_are_the_weighted_mean_of_what_the_ways_say():
    rows, _ = labelled()
    choice = mixed()
    queries = rows.coordinates[:7] + 0.3
    expected = np.zeros((7, 3))
    for way, shares, temperatures in zip(
        choice.ways, choice.weighed.shares, choice.weighed.temperatures, strict=True
    ):
        L = metric_map(rows, way.start, HOW)
        voice = Votes(rows, L).voice(way.vote, way.doubt)
        votes = voice.say(oracle_beyond.distances(queries @ L, voice.points))
        for share, temperature in zip(shares, temperatures, strict=True):
            for i, row in enumerate(votes):
                expected[i] += share * oracle_beyond.soft(row, temperature)
    found = gather(rows, choice, HOW).probabilities(queries, 1)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_one_smoothed_vote_is_kernel_ridge_regression():
    rows, _ = labelled()
    vote = MEANS // 2
    way = Way(Start("euclidean"), vote)
    weighed = Weighed(np.ones((1, 1)), np.full((1, 1), 2.5), np.zeros(1), 0.0)
    ensemble = gather(rows, Choice((way,), weighed, way.start, np.empty(0), {}), HOW)
    queries = rows.coordinates[:5] + 0.3
    share = rows.labels.mean(axis=0)
    unit = oracle_beyond.typical_distance(rows.coordinates, smoothing.NEAR)
    votes = share + oracle_beyond.kernel_ridge(
        rows.coordinates,
        rows.labels - share,
        rows.weights,
        queries,
        width=WIDTHS[vote // len(RIDGES)] * unit,
        ridge=RIDGES[vote % len(RIDGES)],
    )
    expected = [oracle_beyond.soft(row, 2.5) for row in votes]
    np.testing.assert_allclose(ensemble.probabilities(queries, 1), expected, rtol=1e-7)


def test_probabilities_sum_to_one_far_and_near():
    rows, _ = labelled(flip_rate=0.2)
    choice = choose(rows, HOW, ("euclidean", "scaled"), (0.3,), FLIP_RATES)
    ensemble = gather(rows, choice, HOW)
    for size in (0.0, 1.0, 1e3, 1e8):
        found = ensemble.probabilities(size * rows.coordinates, 1)
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=ROUNDING)
        assert (found >= 0).all()
    assert ensemble.probabilities(rows.coordinates[:0], 1).shape == (0, 3)


def test_true_classes_of_mislabelled_rows_are_found():
    rows, truth = labelled(150, flip_rate=0.2, apart=4.0)
    choice = choose(rows, HOW, ("euclidean", "scaled"), (0.3,), FLIP_RATES)
    found = gather(rows, choice, HOW).probabilities(rows.coordinates, 1).argmax(axis=1)
    assert np.mean(found == truth) > 0.9 > np.mean(rows.codes == truth)


@pytest.mark.parametrize("numbers", [1, 500, 1 << 19])
def test_blocks_of_queries_do_not_show(numbers, monkeypatch):
    rows, _ = labelled()
    ensemble = gather(rows, mixed(), HOW)
    queries = np.random.default_rng(1).normal(size=(100, 3)) * 2
    expected = ensemble.probabilities(queries, 1)
    monkeypatch.setattr(module, "BLOCK_NUMBERS", numbers)
    np.testing.assert_allclose(ensemble.probabilities(queries, 1), expected, rtol=1e-7)


def test_a_query_is_told_the_same_alone_and_among_others():
    rows, _ = labelled()
    ensemble = gather(rows, mixed(), HOW)
    queries = np.random.default_rng(1).normal(size=(20, 3)) * 2
    together = ensemble.probabilities(queries, 1)
    alone = np.vstack([ensemble.probabilities(q[None], 1) for q in queries])
    np.testing.assert_allclose(alone, together, rtol=1e-7)


def test_threads_do_not_show(monkeypatch):
    rows, _ = labelled()
    alone, together = gather(rows, mixed(), HOW), gather(rows, mixed(), replace(HOW, n_jobs=3))
    queries = np.random.default_rng(1).normal(size=(300, 3)) * 2
    monkeypatch.setattr(module, "BLOCK_NUMBERS", 600)  # enough blocks for threads
    expected = alone.probabilities(queries, 1)
    np.testing.assert_array_equal(alone.probabilities(queries, 3), expected)
    np.testing.assert_array_equal(together.probabilities(queries, 3), expected)


def test_order_of_training_rows_does_not_show():
    rows, _ = labelled()
    moved = np.random.default_rng(2).permutation(60)
    queries = rows.coordinates + 0.3
    here = gather(rows, mixed(), HOW).probabilities(queries, 1)
    there = gather(rows.take(moved), mixed(), HOW).probabilities(queries, 1)
    np.testing.assert_allclose(there, here, rtol=1e-6)


def test_each_metric_is_learned_once_however_many_votes_are_in_it(monkeypatch):
    rows, _ = labelled()
    made = []

    def count(rows, start, how):
        made.append(start)
        return metric_map(rows, start, how)

    monkeypatch.setattr(module, "metric_map", count)
    ensemble = gather(rows, mixed(Start("euclidean", 0.3), Start("scaled")), HOW)
    assert sorted(made, key=str) == sorted({Start("euclidean", 0.3), Start("scaled")}, key=str)
    assert len(ensemble.maps) == 2
    assert [len(speakers) for speakers in ensemble.speakers] == [3, 3]
    # A share of nothing is not listened to.
    assert [len(s.shares) for s in ensemble.speakers[0]] == [1, 2, 2]


def test_many_rows_speak_through_landmarks(monkeypatch):
    monkeypatch.setattr(votes_module, "EXACT_ROWS", 100)
    monkeypatch.setattr(votes_module, "LANDMARKS", 60)
    rows, _ = labelled(200)
    few = gather(rows, mixed(), HOW)
    widths = {len(s.voice.points) for speakers in few.speakers for s in speakers}
    assert widths == {60, 3}
    monkeypatch.setattr(votes_module, "EXACT_ROWS", 200)
    exact = gather(rows, mixed(), HOW)
    assert {len(s.voice.points) for s in exact.speakers[0]} == {200, 3}
    queries = rows.coordinates + 0.1
    gap = few.probabilities(queries, 1) - exact.probabilities(queries, 1)
    assert np.sqrt(np.mean(gap**2)) < 0.1


def test_memory_does_not_grow_with_the_square_of_queries():
    n = 20_000
    rng = np.random.default_rng(0)
    voice = Voice(rng.normal(size=(1000, 5)), 4.0, rng.normal(size=(1000, 3)), np.full(3, 1 / 3))
    ensemble = Ensemble((np.eye(5),), ((Speaker(voice, (1.0,), (2.0,)),),), 3)
    queries = rng.normal(size=(n, 5))
    tracemalloc.start()
    try:
        ensemble.probabilities(queries, 2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Several arrays of a block's distances for each of two threads; all at once would be 160 MB.
    assert peak < 2 * 5 * 8 * module.BLOCK_NUMBERS + 16 * queries.nbytes
    assert peak < 8 * n * 1000 / 2
