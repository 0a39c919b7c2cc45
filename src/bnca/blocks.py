"""Cut a range of rows into blocks; map a pure function over them and add up what it returns.

Where the cuts fall, and the order in which the results are added, depend on the number of rows and
the block size alone.  Threads only decide who computes what, and BLAS is held to one thread inside
a block, so any number of threads gives the same sums to the last digit.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future
    from contextlib import AbstractContextManager

    from bnca.core.arrays import Floats

FEW = 8
"""Fewer blocks than this are done without threads: starting those would take longer."""

RUNS = 32
"""Blocks are grouped into at most this many runs, each summed by one thread from left to right.

It is independent of the number of threads.
"""


class Room(NamedTuple):
    """Scratch memory that a block needs: how many numbers, and of which dtype."""

    size: int
    dtype: np.dtype[Any]


class Addable(Protocol):
    """Anything with +."""

    def __add__(self, other: Self, /) -> Self: ...


S = TypeVar("S", bound=Addable)
R = TypeVar("R")


def thread_count(n_jobs: int | None) -> int:
    """How many threads to use.

    None takes every core this process may run on, or OMP_NUM_THREADS where that is set (as joblib
    sets it for its workers), which is how scikit-learn's own threaded code behaves.  Negative
    numbers count back from the cores, as in scikit-learn: -1 is all of them.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    cores = cores or 1
    if n_jobs is None:
        stated = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
        return min(cores, int(stated)) if stated.isdigit() and int(stated) > 0 else cores
    return max(1, cores + 1 + n_jobs) if n_jobs < 0 else n_jobs


def cut(n: int, size: int) -> list[slice]:
    """Slices of at most `size` that cover range(n) in order."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def map_runs(
    work: Callable[[Sequence[slice]], R], blocks: Sequence[slice], n_jobs: int | None
) -> list[R]:
    """Results of `work` on each run of consecutive blocks, in order."""
    return list(_each_run(work, blocks, n_jobs))


def _each_run(
    work: Callable[[Sequence[slice]], R], blocks: Sequence[slice], n_jobs: int | None
) -> Iterator[R]:
    """Yield results in order, with few of them waiting at once: they may be large."""
    edges = np.linspace(0, len(blocks), min(RUNS, len(blocks)) + 1).astype(int)
    runs = [blocks[a:b] for a, b in pairwise(edges)]
    threads = 1 if len(runs) < FEW else min(thread_count(n_jobs), len(runs))
    with _controller().limit(limits=1, user_api="blas"):
        if threads <= 1:
            for run in runs:
                yield work(run)
            return
        with ThreadPoolExecutor(threads) as pool:
            waiting: deque[Future[R]] = deque()
            for run in runs:
                waiting.append(pool.submit(work, run))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Hold BLAS to one thread: how it cuts a product would show in the last digit of a sum."""
    limiter: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limiter


def sum_blocks(
    function: Callable[[slice, Floats], S],
    blocks: Sequence[slice],
    n_jobs: int | None,
    room: Room,
) -> S:
    """Sum of `function` over blocks, the same to the last digit for any number of threads.

    Parameters
    ----------
    function : callable
        ``function(block, scratch)`` returns what is to be added; it may write to `scratch`, a flat
        array that the next block uses again.
    blocks : sequence of slice
        What `cut` returns; not empty.
    n_jobs : int or None
        Number of threads.
    room : Room
        Size and dtype of the scratch arrays.  Fresh memory for every block would cost more than the
        arithmetic on it.

    Returns
    -------
    S
        The sum.
    """

    def run_sum(run: Sequence[slice]) -> S:
        scratch = np.empty(room.size, dtype=room.dtype)
        total = function(run[0], scratch)
        for block in run[1:]:
            total = total + function(block, scratch)
        return total

    results = _each_run(run_sum, blocks, n_jobs)
    total = next(results)
    for part in results:
        total = total + part
    return total


@cache
def _controller() -> ThreadpoolController:
    """Look up the loaded BLAS once: that look costs more than a small fit."""
    return ThreadpoolController()
