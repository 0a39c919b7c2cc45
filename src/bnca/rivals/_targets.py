"""Target neighbours, and how far the margin around each row reaches under a map.

Row i has target neighbours j ∈ T(i), its nearest rows of its own class.  A row l of another class
is an impostor of i and j where it comes within the margin, d²(i, l) < 1 + d²(i, j).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bnca.blocks import cut, map_runs
from bnca.neighbors import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from bnca.core.arrays import Doubles, Floats, Integers

GATHER_NUMBERS = 1 << 16
"""Coordinates gathered at a time to measure pairs: they stay in cache."""


@dataclass(frozen=True, eq=False)
class Triples:
    """Rows sorted by class, and the target neighbours of each.

    Attributes
    ----------
    rows : (n, r)
        Coordinates z, in the precision that pairs are to be measured in.
    ends : (n,)
        Position after the last row of each row's own class.
    targets : (n, K)
        Positions of the target neighbours.  A row of a class with fewer than K others has itself in
        the places left over, at distance zero.
    has_target : (n, K) bool
        Which places are taken.
    """

    rows: Floats
    ends: Integers
    targets: Integers
    has_target: npt.NDArray[np.bool_]


class Margin(NamedTuple):
    """Images of the rows under a map, and how far the margin of each reaches.

    Attributes
    ----------
    images : (n, q)
        z Lᵀ.
    pulls : (n, K) float64
        d²(i, j), zero where a place is not taken.
    reach : (n, K) float64
        1 + d²(i, j), or -inf where a place is not taken.
    top : (n,) float64
        The largest of them, or -inf for a row without targets.
    """

    images: Floats
    pulls: Doubles
    reach: Doubles
    top: Doubles


def triples(rows: Floats, codes: Integers, k: int, *, n_jobs: int | None = None) -> Triples:
    """Sort rows by class and find the k nearest of its own class to each, or all where fewer.

    Parameters
    ----------
    rows : (n, r)
        Coordinates.
    codes : (n,)
        Class of each row, 0 .. n_classes - 1; at least one class has two rows.
    k : int
        K.
    n_jobs : int or None
        Threads.

    Returns
    -------
    Triples
        Sorted rows and their targets.
    """
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    stops = np.cumsum(sizes)
    width = min(k, int(sizes.max()) - 1)
    targets = np.repeat(np.arange(len(rows))[:, None], width, axis=1)
    has_target = np.zeros(targets.shape, dtype=np.bool_)
    ordered = rows[order]
    for stop, size in zip(stops, sizes, strict=True):
        found = min(width, size - 1)
        if found > 0:
            own = slice(stop - size, stop)
            inside = ordered[own].astype(np.float64)
            targets[own, :found] = nearest(inside, found, n_jobs=n_jobs).indices + own.start
            has_target[own, :found] = True
    return Triples(ordered, np.repeat(stops, sizes), targets, has_target)


def margin_of(data: Triples, L: Doubles, n_jobs: int | None) -> Margin:
    """Map the rows and measure their target neighbours."""
    n, k = data.targets.shape
    single = L.T.astype(data.rows.dtype)
    images = np.empty((n, len(L)), dtype=data.rows.dtype)
    pulls = np.empty((n, k))

    def embed(run: Sequence[slice]) -> None:
        for part in run:
            np.matmul(data.rows[part], single, out=images[part])

    def measure(run: Sequence[slice]) -> None:
        for part in run:
            own = np.arange(part.start, part.stop)
            for place in range(k):
                pulls[part, place] = squared_distances(images, own, data.targets[part, place])

    for work in (embed, measure):
        map_runs(work, cut(n, 2048), n_jobs)
    reach = np.where(data.has_target, 1 + pulls, -np.inf)
    return Margin(images, pulls, reach, reach.max(axis=1))


def squared_distances(
    images: Floats, first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]
) -> Doubles:
    """Squared distances of listed pairs of rows, a bounded number at a time."""
    out = np.empty(len(first))
    for part in cut(len(out), max(1, GATHER_NUMBERS // images.shape[1])):
        gap = images[second[part]]
        gap -= images[first[part]]
        out[part] = np.einsum("ij,ij->i", gap, gap)
    return out


def slack_needed(before: Margin, now: Margin) -> float:
    """How much wider than its radius each margin must have been searched to miss no pair now.

    A pair further apart than (1 + slack) times the larger of its two radii √top has since come
    closer by no more than both of its rows have moved.
    """
    moved = np.linalg.norm((now.images - before.images).astype(np.float64), axis=1)
    some = np.isfinite(before.top)
    reached = np.sqrt(now.top[some]) + moved[some] + moved.max()
    # The last term covers the rounding of images and distances in single precision.
    return float((reached / np.sqrt(before.top[some])).max() - 1 + 1e-5)
