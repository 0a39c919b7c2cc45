from __future__ import annotations

import numpy as np
import oracle_beyond
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import ROUNDING

from bnca.core import averaging
from bnca.core.averaging import Weighed, averaged, weigh


@st.composite
def ballots(draw):
    """Votes of a few ways on a few rows, labels, weights, flip rates and a prior of ways."""
    c, n, n_classes = draw(st.integers(1, 4)), draw(st.integers(2, 15)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    codes = rng.integers(0, n_classes, n)
    skill = rng.choice([0.0, 0.5, 1.0, 3.0], c)[:, None, None]
    votes = rng.normal(size=(c, n, n_classes)) + skill * np.eye(n_classes)[codes]
    flip_rates = draw(st.sampled_from([(0.0,), (0.25,), (0.0, 0.1, 0.4), averaging.FLIP_RATES]))
    log_prior = rng.normal(size=(c, len(flip_rates)))
    return votes, codes, rng.choice([0.5, 1.0, 3.0], n), flip_rates, log_prior


def outcome(case):
    votes, codes, weights, flip_rates, log_prior = case
    return weigh(votes, codes, weights, flip_rates=flip_rates, log_prior=log_prior)


def expected_outcome(case):
    return oracle_beyond.shares(
        *case,
        temperatures=averaging.TEMPERATURES,
        power=averaging.POWER,
        least=averaging.LEAST,
        negligible=averaging.NEGLIGIBLE,
    )


@given(ballots())
def test_shares_temperatures_losses_and_flip_rate_are_those_of_the_loop(case):
    found = outcome(case)
    shares, temperatures, losses, flip_rate = expected_outcome(case)
    np.testing.assert_allclose(found.shares, shares, rtol=0, atol=1e-8)
    same = found.temperatures == temperatures
    for c, e in np.argwhere(~same):  # two temperatures may do equally well, but for rounding
        found_loss, least = (
            oracle_beyond.foretold_loss(
                case[0][c],
                *case[1:3],
                temperature=temperature,
                flip_rate=case[3][e],
                least=averaging.LEAST,
            )
            for temperature in (found.temperatures[c, e], temperatures[c, e])
        )
        np.testing.assert_allclose(found_loss, least, rtol=ROUNDING)
    np.testing.assert_allclose(found.losses, losses, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_allclose(found.flip_rate, flip_rate, rtol=0, atol=1e-8)


@given(ballots())
def test_shares_sum_to_one_and_none_is_negligible(case):
    found = outcome(case)
    np.testing.assert_allclose(found.shares.sum(), 1, rtol=ROUNDING)
    some = found.shares[found.shares > 0]
    assert some.min() >= averaging.NEGLIGIBLE * some.max()
    flip_rates = case[3]
    assert min(flip_rates) - ROUNDING <= found.flip_rate <= max(flip_rates) + ROUNDING
    assert set(found.temperatures.ravel()) <= set(averaging.TEMPERATURES)


@given(ballots())
def test_weights_are_so_many_copies_of_the_row(case):
    votes, codes, weights, flip_rates, log_prior = case
    copies = np.repeat(np.arange(len(codes)), (2 * weights).astype(int))
    ones = np.full(len(copies), 0.5)
    again = outcome((votes[:, copies], codes[copies], ones, flip_rates, log_prior))
    np.testing.assert_allclose(again.shares, outcome(case).shares, rtol=0, atol=1e-8)


@given(ballots(), st.integers(0, 2**32 - 1))
def test_order_of_rows_of_classes_and_of_ways_does_not_matter(case, seed):
    votes, codes, weights, flip_rates, log_prior = case
    rng = np.random.default_rng(seed)
    ways, rows, names = (rng.permutation(size) for size in votes.shape)
    renamed = np.argsort(names)[codes]  # class k has the votes of column `names[k]`
    moved = votes[ways][:, rows][:, :, names]
    again = outcome((moved, renamed[rows], weights[rows], flip_rates, log_prior[ways]))
    found = outcome(case)
    np.testing.assert_allclose(again.shares, found.shares[ways], rtol=0, atol=1e-8)
    np.testing.assert_allclose(again.losses, found.losses[ways], rtol=ROUNDING, atol=ROUNDING)


@given(ballots(), st.floats(-3, 3))
def test_a_number_added_to_all_votes_of_a_row_or_to_the_prior_changes_nothing(case, number):
    votes, codes, weights, flip_rates, log_prior = case
    shift = number * np.arange(votes.shape[1])[:, None]
    again = outcome((votes + shift, codes, weights, flip_rates, log_prior + number))
    np.testing.assert_allclose(again.shares, outcome(case).shares, rtol=0, atol=1e-7)


@given(ballots())
def test_average_is_that_of_the_loop_and_sums_to_one(case):
    votes = case[0]
    found = averaged(votes, outcome(case))
    shares, temperatures, *_ = expected_outcome(case)
    expected = oracle_beyond.average(votes, shares, temperatures)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=ROUNDING)


def test_ways_without_a_share_are_not_asked():
    votes = np.array([[[1.0, 0.0]], [[np.nan, np.nan]]])
    weighed = Weighed(np.array([[1.0], [0.0]]), np.ones((2, 1)), np.zeros(2), 0.0)
    np.testing.assert_allclose(averaged(votes, weighed)[0], oracle_beyond.soft([1.0, 0.0], 1.0))


# What weighing is for.


def simulated(n, *, skill, flip_rate, n_classes=3, seed=0):
    """Votes of a way that is right but for noise, and labels of which some are wrong."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n)
    votes = skill * np.eye(n_classes)[truth] + rng.normal(size=(n, n_classes)) * 0.2
    wrong = rng.random(n) < flip_rate
    codes = np.where(wrong, (truth + rng.integers(1, n_classes, n)) % n_classes, truth)
    return votes, codes


def weigh_evenly(votes, codes, flip_rates=averaging.FLIP_RATES):
    log_prior = np.zeros((len(votes), len(flip_rates)))
    return weigh(votes, codes, np.ones(len(codes)), flip_rates=flip_rates, log_prior=log_prior)


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("flip_rate", [0.0, 0.1, 0.3])
def test_a_way_that_is_surely_right_tells_how_many_labels_are_wrong(flip_rate, n_classes):
    # Sure even at the lowest temperature: at 0.3 a margin of 4 would look like a rate of 0.2.
    votes, codes = simulated(2000, skill=40.0, flip_rate=flip_rate, n_classes=n_classes)
    found = weigh_evenly(votes[None], codes)
    # A step of the grid, and three standard errors of a share of 2000 rows.
    rates = np.array(averaging.FLIP_RATES)
    step = np.diff(rates[rates <= 0.35]).max()
    assert abs(found.flip_rate - flip_rate) < step / 2 + 3 * np.sqrt(0.25 / 2000)


def test_a_way_that_is_merely_uncertain_is_not_taken_for_noise():
    """Labels drawn from softmax(f) are as uncertain as the votes say, and none is wrong."""
    rng = np.random.default_rng(0)
    votes = rng.normal(size=(4000, 3)) * 3
    p = np.exp(votes) / np.exp(votes).sum(axis=1, keepdims=True)
    codes = (p.cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1)
    found = weigh_evenly(votes[None], codes)
    assert found.flip_rate < 0.03
    best = found.temperatures[0, found.shares[0].argmax()]
    nearest = min(averaging.TEMPERATURES, key=lambda t: abs(np.log(t)))
    assert best == nearest


def test_the_better_way_weighs_more():
    good, codes = simulated(100, skill=1.0, flip_rate=0.1, seed=1)
    bad = good + np.random.default_rng(2).normal(size=good.shape)
    found = weigh_evenly(np.stack([bad, good]), codes)
    assert found.losses[1] < found.losses[0]
    assert found.shares[1].sum() > found.shares[0].sum()


def test_equal_ways_share_evenly_and_the_prior_decides_between_them():
    votes, codes = simulated(50, skill=1.0, flip_rate=0.1)
    both = np.stack([votes, votes])
    shares = weigh_evenly(both, codes).shares.sum(axis=1)
    np.testing.assert_allclose(shares, 0.5, rtol=ROUNDING)
    prior = np.log([[1.0], [3.0]])
    found = weigh(both, codes, np.ones(50), flip_rates=(0.1,), log_prior=prior)
    np.testing.assert_allclose(found.shares[:, 0], [0.25, 0.75], rtol=ROUNDING)


def test_more_rows_decide_more_sharply():
    good, codes = simulated(40, skill=0.6, flip_rate=0.1, seed=1)
    bad = good + np.random.default_rng(2).normal(size=good.shape) * 0.3
    both = np.stack([bad, good])
    log_prior = np.zeros((2, 1))
    shares = [
        weigh(both, codes, np.full(40, w), flip_rates=(0.1,), log_prior=log_prior).shares[1, 0]
        for w in (0.03, 0.1, 0.3)
    ]
    assert 0.5 < shares[0] < shares[1] < shares[2] <= 1


def test_one_row_cannot_veto_a_way():
    """A way that is right on all rows but one, of which it is certain, still beats guessing."""
    votes, codes = simulated(100, skill=50.0, flip_rate=0.0)
    codes[0] = (codes[0] + 1) % 3
    found = weigh_evenly(np.stack([votes, np.zeros_like(votes)]), codes, (0.0,))
    assert np.isfinite(found.losses).all()
    assert found.shares[0, 0] > 0.99


def test_votes_of_any_size_are_weighed():
    votes, codes = simulated(50, skill=1e6, flip_rate=0.2)
    found = weigh_evenly(np.stack([votes, -1e3 * votes]), codes)
    assert np.isfinite(found.shares).all()
    assert found.shares[0].sum() > 0.99


def test_a_single_class_is_certain():
    found = weigh_evenly(np.zeros((1, 5, 1)), np.zeros(5, dtype=int), (0.0,))
    np.testing.assert_allclose(found.losses, 0, atol=ROUNDING)
