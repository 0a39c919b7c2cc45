from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from bnca.blocks import RUNS, Room, cut, map_runs, sum_blocks, thread_count

NO_ROOM = Room(1, np.dtype(np.float64))


def add_up(function, blocks, n_jobs):
    return sum_blocks(lambda block, _scratch: function(block), blocks, n_jobs, NO_ROOM)


@given(st.integers(0, 100), st.integers(1, 120))
def test_blocks_cover_the_range_in_order_and_none_is_too_large(n, size):
    blocks = cut(n, size)
    np.testing.assert_array_equal(
        np.concatenate([np.arange(n)[block] for block in blocks] or [np.arange(0)]), np.arange(n)
    )
    assert all(0 < block.stop - block.start <= size for block in blocks)


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, RUNS - 1, RUNS, RUNS + 1, 10 * RUNS + 3])
def test_runs_are_consecutive_and_come_back_in_order(n, n_jobs):
    results = map_runs(lambda run: [block.start for block in run], cut(n, 1), n_jobs)
    assert [start for run in results for start in run] == list(range(n))
    assert len(results) == min(n, RUNS)


class Wording(str):
    """Text adds with +, and shows in which order it was added."""

    __slots__ = ()

    def __add__(self, other):
        return Wording(f"({self}+{other})")


@pytest.mark.parametrize("n", [1, 7, RUNS, 3 * RUNS])
def test_sums_are_bracketed_the_same_by_any_number_of_threads(n):
    def name(block):
        return Wording(block.start)

    alone = add_up(name, cut(n, 1), 1)
    assert alone == add_up(name, cut(n, 1), 2) == add_up(name, cut(n, 1), 7)
    assert [
        int(part) for part in alone.strip("()").replace("(", "").replace(")", "").split("+")
    ] == (list(range(n)))


def test_sums_of_floats_have_the_same_bits_with_any_number_of_threads():
    numbers = np.random.default_rng(0).normal(size=1000) * np.geomspace(1e-8, 1e8, 1000)
    sums = {
        add_up(lambda block: float(numbers[block].sum()), cut(1000, 3), n_jobs)
        for n_jobs in (1, 2, 3, 8)
    }
    assert len(sums) == 1


def test_threads_do_not_share_scratch():
    """Each block writes its own number and reads it back after another thread had time to write."""
    meet = threading.Barrier(2, timeout=5)

    def work(block, scratch):
        scratch[:] = block.start
        meet.wait()
        assert (scratch == block.start).all()
        assert scratch.dtype == np.float32
        return 0

    assert sum_blocks(work, cut(RUNS, 1), 2, Room(5, np.dtype(np.float32))) == 0


class Counted:
    """Something to add up that knows how many of its kind there are at once."""

    alive = most = 0

    def __init__(self):
        type(self).alive += 1
        type(self).most = max(type(self).most, type(self).alive)

    def __del__(self):
        type(self).alive -= 1

    def __add__(self, other):
        return type(self)()


@pytest.mark.parametrize(("n_jobs", "most"), [(1, 4), (2, 9)])
def test_few_partial_sums_wait_at_once(n_jobs, most):
    """They may be large: 32 matrices of 2,000 weights would be a gigabyte."""
    Counted.alive = Counted.most = 0
    sum_blocks(lambda _block, _scratch: Counted(), cut(RUNS, 1), n_jobs, Room(1, np.dtype(float)))
    assert 2 <= Counted.most <= most


def test_work_is_done_on_as_many_threads_as_asked_for():
    meet = threading.Barrier(2, timeout=5)  # breaks unless two threads are there at once
    names = map_runs(lambda _run: (meet.wait(), threading.get_ident())[1], cut(RUNS, 1), 2)
    assert len(set(names)) == 2
    alone = map_runs(lambda _run: threading.get_ident(), cut(RUNS, 1), 1)
    assert set(alone) == {threading.get_ident()}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blas_is_held_to_one_thread_inside_and_let_go_after(n_jobs):
    def blas():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):  # whatever the machine or its environment says
        assert blas() == {2}
        inside = map_runs(lambda _run: blas(), cut(RUNS, 1), n_jobs)
        assert inside == [{1}] * RUNS
        assert blas() == {2}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_a_block_reaches_the_caller(n_jobs):
    def fail(_run):
        msg = "no such row"
        raise KeyError(msg)

    with pytest.raises(KeyError, match="no such row"):
        map_runs(fail, cut(4, 1), n_jobs)


def test_number_of_threads_follows_scikit_learn(monkeypatch):
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert thread_count(None) == cores
    assert thread_count(-1) == cores
    assert thread_count(-cores - 5) == 1
    assert thread_count(3) == 3
    for stated, expected in (("1", 1), ("1,2", 1), ("", cores), ("none", cores), ("0", cores)):
        monkeypatch.setenv("OMP_NUM_THREADS", stated)
        assert thread_count(None) == expected
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert thread_count(2) == 2  # what is asked for goes before what the environment says
