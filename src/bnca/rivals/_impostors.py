"""The objective of LMNN over labelled rows, with every impostor found, a block at a time.

Row i has target neighbours j ∈ T(i), its nearest rows of its own class.  With squared distances
d² under a linear map L, a row l of another class is an *impostor* where it comes within the margin,
d²(i, l) < 1 + d²(i, j), and the objective is

    f(L) = (1 - w) Σ_i Σ_j d²(i, j) + w Σ_i Σ_j Σ_l max(0, 1 + d²(i, j) - d²(i, l)).

Its gradient is 2 L S, with S = Σ a_ab (z_a - z_b)(z_a - z_b)ᵀ over pairs of rows and a_ab from the
number of active triples that a pair takes part in.  The sum over l never needs an (n, n) array:
rows are sorted by class, and a block of them is held against the rows of all *later* classes by
single-precision matrix products, which finds the impostors of both sides at once.  Whoever could be
one, given the rounding of such a product, is measured again from differences.

`Objective` also keeps the pairs found within a somewhat wider margin for as long as it can prove,
from how far each row has moved since, that no other pair can have become active.  So every value
and every gradient is that of the full objective, whether it took a search or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse

from bnca.blocks import cut, map_runs
from bnca.neighbors import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from bnca.core.arrays import Doubles, Floats, Integers

BLOCK_ROWS = 256
"""Rows of a block: a tile of this many rows and TILE_COLUMNS columns stays in cache."""

TILE_COLUMNS = 1024
"""Columns of a tile."""

CHUNK_PAIRS = 1 << 18
"""About how many pairs wait before they are measured and added up; memory grows with it."""

GATHER_NUMBERS = 1 << 16
"""Coordinates gathered at a time to measure pairs: they stay in cache."""

KEEP_FROM = 4_000
"""Rows from which pairs are kept; among fewer, a search costs no more than reading them."""

KEPT_PER_ROW = 200
"""Pairs kept for each row at most; where there are more, every value takes a search."""

AHEAD = 4.0
"""Pairs are kept for about so many moves like the last one."""

NARROWEST, WIDEST = 0.02, 0.2
"""Range of the widening of the margin within which pairs are kept, relative to its radius."""


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
        the places left over, which adds nothing to the first sum.
    has_target : (n, K) bool
        Which places are taken.
    """

    rows: Floats
    ends: Integers
    targets: Integers
    has_target: npt.NDArray[np.bool_]


class Value(NamedTuple):
    """The objective at a map: f(L), its gradient (q, r), and how many triples are active."""

    loss: float
    gradient: Doubles
    n_active: int


class Draw(NamedTuple):
    """A share of all pairs of rows, drawn at random and the same at every map.

    Attributes
    ----------
    share : float
        Probability of each pair; those drawn count 1 / share times.
    seed : int
        Which are drawn.
    """

    share: float
    seed: int


class _Margin(NamedTuple):
    """Images of the rows under a map, and how far the margin of each reaches.

    Attributes
    ----------
    images : (n, q)
        z Lᵀ.
    reach : (n, K) float64
        1 + d²(i, j), or -inf where a place is not taken.
    top : (n,) float64
        The largest of them, or -inf for a row without targets.
    """

    images: Floats
    reach: Doubles
    top: Doubles


class _Pairs(NamedTuple):
    """Pairs of rows of two classes, first < second."""

    first: Integers
    second: Integers


class _Kept(NamedTuple):
    """Margins at the last search, and the pairs within (1 + slack) times their radius."""

    margin: _Margin | None
    slack: float
    pairs: list[_Pairs] | None


class _Sums:
    """What pairs add up to.

    Attributes
    ----------
    hinge : float
        Σ max(0, 1 + d²(i, j) - d²(i, l)).
    cross : (r, r) float64
        Σ m_ab z_a z_bᵀ over pairs, m_ab being how many active triples part a and b.
    degree : (n,) float64
        Σ_b m_ab.
    uses : (n, K) intp
        How many active triples each target takes part in.
    kept : list of _Pairs
        Pairs to be kept, where that was asked for.
    """

    def __init__(self, data: Triples) -> None:
        r = data.rows.shape[1]
        self.hinge = 0.0
        self.cross: Doubles = np.zeros((r, r))
        self.degree: Doubles = np.zeros(len(data.rows))
        self.uses: Integers = np.zeros(data.targets.shape, dtype=np.intp)
        self.kept: list[_Pairs] = []

    def add(self, data: Triples, margin: _Margin, pairs: _Pairs) -> None:
        """Measure pairs and add what those within a margin contribute."""
        n = len(data.rows)
        squared = _squared_distances(margin.images, pairs.first, pairs.second)
        times = np.zeros(len(squared))
        for side in pairs:
            inside = np.flatnonzero(squared < margin.top[side])
            owner = side[inside]
            gaps = margin.reach[owner] - squared[inside, None]
            active = gaps > 0
            self.hinge += float(gaps[active].sum())
            times[inside] += active.sum(axis=1)
            for place, column in enumerate(active.T):
                self.uses[:, place] += np.bincount(owner[column], minlength=n)
        some = np.flatnonzero(times)
        if not len(some):
            return
        first, second, times = pairs.first[some], pairs.second[some], times[some]
        self.degree += np.bincount(first, times, n) + np.bincount(second, times, n)
        start, stop = int(first.min()), int(first.max()) + 1
        weights = scipy.sparse.csr_matrix(
            (times.astype(data.rows.dtype), (first - start, second)), shape=(stop - start, n)
        )
        self.cross += data.rows[start:stop].T @ (weights @ data.rows)

    def merge(self, other: _Sums) -> None:
        """Add another's sums to these."""
        self.hinge += other.hinge
        self.cross += other.cross
        self.degree += other.degree
        self.uses += other.uses
        self.kept += other.kept


class Objective:
    """f and its gradient as a function of L; remembers pairs from one call to the next.

    Parameters
    ----------
    data : Triples
        Rows and targets.
    push : float
        w, the weight of the second sum, in (0, 1].
    n_jobs : int or None
        Threads; the values do not depend on it.
    draw : Draw or None
        Which pairs may be impostors; None is all of them.

    Attributes
    ----------
    n_searches : int
        How many calls so far took a search through all rows.
    """

    def __init__(
        self, data: Triples, push: float, *, n_jobs: int | None = None, draw: Draw | None = None
    ) -> None:
        self.data = data
        self.push = push
        self.n_jobs = n_jobs
        self.draw = draw
        self.n_searches = 0
        self._kept = _Kept(None, 0.0, None)
        self._calls = 0

    def __call__(self, L: Doubles) -> Value:
        """Value at L."""
        data = self.data
        margin = _margin(data, L, self.n_jobs)
        needed = _slack_needed(self._kept.margin, margin)
        self._calls += 1
        if self._kept.pairs is not None and needed <= self._kept.slack:
            sums = _read(data, margin, self._kept.pairs, self.n_jobs)
        else:
            slack = max(NARROWEST, AHEAD * needed / self._calls)
            keep = slack <= WIDEST and len(data.rows) >= KEEP_FROM
            sums = _search(data, margin, slack if keep else None, self.draw, self.n_jobs)
            room = KEPT_PER_ROW * len(data.rows)
            fits = keep and sum(len(pairs.first) for pairs in sums.kept) <= room
            self._kept = _Kept(margin, slack, sums.kept if fits else None)
            self._calls = 0
            self.n_searches += 1
        return _assemble(data, L, margin, sums, self.push, self.draw, self.n_jobs)


def triples(rows: Floats, codes: Integers, k: int, *, n_jobs: int | None = None) -> Triples:
    """Sort rows by class and find the k nearest of its own class to each, or all where fewer."""
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
