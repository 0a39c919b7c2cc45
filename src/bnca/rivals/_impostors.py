"""Impostors: the pairs of rows that LMNN pushes apart, found exactly, and what they add up to.

Rows are sorted by class, and a block of them is held against the rows of all *later* classes by
single-precision matrix products, which finds the impostors of both sides at once without an (n, n)
array.  Whoever could be one, given the rounding of such a product, is measured again from
differences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse

from bnca.blocks import cut, map_runs
from bnca.rivals._targets import margin_of, squared_distances

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from bnca.core.arrays import Doubles, Floats, Integers
    from bnca.rivals._targets import Margin, Triples

BLOCK_ROWS = 512
"""Rows of a block, whose pairs are measured and added up together."""

TILE_ROWS, TILE_COLUMNS = 256, 1024
"""Products made at a time: they stay in cache."""

CHUNK_PAIRS = 1 << 18
"""About how many pairs wait before they are measured and added up; memory grows with it."""


class Draw(NamedTuple):
    """A share of all pairs of rows, drawn at random and the same under every map.

    Attributes
    ----------
    share : float
        Probability of each pair.
    seed : int
        Which are drawn.
    """

    share: float
    seed: int


class Pairs(NamedTuple):
    """Pairs of rows of two classes, first < second."""

    first: npt.NDArray[np.integer]
    second: npt.NDArray[np.integer]


class Sums:
    """What pairs add up to.

    Attributes
    ----------
    hinge : float
        Σ max(0, 1 + d²(i, j) - d²(i, l)).
    cross : (r, r) float64
        Σ m_ab z_a z_bᵀ over pairs, m_ab being the number of active triples that part a and b.
    degree : (n,) float64
        Σ_b m_ab.
    uses : (n, K) intp
        Number of active triples that each target takes part in.
    kept : list of Pairs or None
        The pairs themselves; None where they were not wanted, or too many.
    """

    def __init__(self, data: Triples, room: int = 0) -> None:
        r = data.rows.shape[1]
        self.hinge = 0.0
        self.cross: Doubles = np.zeros((r, r))
        self.degree: Doubles = np.zeros(len(data.rows))
        self.uses: Integers = np.zeros(data.targets.shape, dtype=np.intp)
        self.kept: list[Pairs] | None = [] if room else None
        self.room = room

    def keep(self, pairs: Pairs) -> None:
        """Keep pairs for later, or none at all where they become too many."""
        if self.kept is not None:
            self.kept.append(Pairs(*(side.astype(np.int32) for side in pairs)))
            if sum(len(part.first) for part in self.kept) > self.room:
                self.kept = None

    def add(self, data: Triples, margin: Margin, pairs: Pairs) -> None:
        """Measure pairs and add what those within a margin contribute."""
        n = len(data.rows)
        squared = squared_distances(margin.images, pairs.first, pairs.second)
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
        if len(some):
            first, second, times = pairs.first[some], pairs.second[some], times[some]
            self.degree += np.bincount(first, times, n) + np.bincount(second, times, n)
            start, stop = int(first.min()), int(first.max()) + 1
            weights = scipy.sparse.csr_matrix(
                (times.astype(data.rows.dtype), (first - start, second)), shape=(stop - start, n)
            )
            self.cross += data.rows[start:stop].T @ (weights @ data.rows)

    def merge(self, other: Sums) -> None:
        """Add another's sums to these."""
        self.hinge += other.hinge
        self.cross += other.cross
        self.degree += other.degree
        self.uses += other.uses
        both = self.kept is not None and other.kept is not None
        self.kept = self.kept + other.kept if both else None  # type: ignore[operator]


def read(data: Triples, margin: Margin, kept: list[Pairs], n_jobs: int | None) -> Sums:
    """Sum over pairs that were kept."""

    def work(run: Sequence[slice]) -> Sums:
        sums = Sums(data)
        for part in run:
            for pairs in kept[part]:
                sums.add(data, margin, pairs)
        return sums

    return _total(map_runs(work, cut(len(kept), 1), n_jobs), data)


def search(
    data: Triples,
    margin: Margin,
    n_jobs: int | None,
    *,
    draw: Draw | None = None,
    slack: float = 0.0,
    room: int = 0,
) -> Sums:
    """Find every pair within a margin of either row, and sum over them.

    Parameters
    ----------
    data, margin
        Rows, and their images.
    n_jobs : int or None
        Threads.
    draw : Draw or None
        Which pairs to leave out.
    slack : float
        By how much, relative to its radius, each margin is widened.  Pairs in the wider margin add
        nothing to the sums, but may be kept.
    room : int
        About how many pairs may be kept.

    Returns
    -------
    Sums
        Their sums.
    """
    tables = _Tables.of(margin, slack)

    def work(run: Sequence[slice]) -> Sums:
        sums = Sums(data, room // 4)  # no run has more than about a quarter of all pairs
        waiting: list[Pairs] = []
        spare = np.empty((TILE_ROWS, TILE_COLUMNS), dtype=np.float32)
        for block in run:
            for tile in _tiles(block, data):
                pairs = tables.within(*tile, data.ends, spare)
                waiting.append(pairs if draw is None else _drawn(pairs, draw))
                if sum(len(part.first) for part in waiting) > CHUNK_PAIRS:
                    _flush(waiting, data, margin, sums)
        _flush(waiting, data, margin, sums)
        return sums

    return _total(map_runs(work, cut(len(data.rows), BLOCK_ROWS), n_jobs), data)


def count_pairs(data: Triples, L: Doubles, n_jobs: int | None) -> int:
    """Return about how many pairs of rows have one within a margin of the other."""
    tables = _Tables.of(margin_of(data, L, n_jobs), 0.0)

    def work(run: Sequence[slice]) -> int:
        spare = np.empty((TILE_ROWS, TILE_COLUMNS), dtype=np.float32)
        tiles = [tile for block in run for tile in _tiles(block, data)]
        return sum(len(tables.within(*tile, data.ends, spare).first) for tile in tiles)

    return sum(map_runs(work, cut(len(data.rows), BLOCK_ROWS), n_jobs))


class _Tables(NamedTuple):
    """Factors whose product is d² of any two rows, and up to where a pair counts, per row."""

    left: Floats
    right: Floats
    limit: Floats

    @classmethod
    def of(cls, margin: Margin, slack: float) -> _Tables:
        images = margin.images
        # Scaled into (-1, 1) so that single precision neither overflows nor loses tiny data.
        scale = float(np.abs(images).max()) or 1.0
        single = (images / scale).astype(np.float32)
        square = np.einsum("ij,ij->i", single, single)
        one = np.ones_like(square)
        left = np.column_stack([single, one, square])
        right = np.vstack([-2 * single.T, square, one])
        reach = margin.top * ((1 + slack) / scale) ** 2
        # Error of a product of length m is at most m·u·Σ|terms|, and whoever is within reach has a
        # norm of at most |z| + √reach.
        width = 2 * np.sqrt(square.astype(np.float64)) + np.sqrt(np.maximum(reach, 0))
        reach += np.finfo(np.float32).eps * (left.shape[1] + 4) * width**2
        # Capped where single precision ends: no product gets there.
        limit = np.nextafter(np.minimum(reach, 1e38).astype(np.float32), np.float32(np.inf))
        return cls(left, right, limit)

    def within(self, block: slice, columns: slice, ends: Integers, spare: Floats) -> Pairs:
        """Pairs of a block of rows and a range of later ones that are near enough to either."""
        tile = spare[: block.stop - block.start, : columns.stop - columns.start]
        np.matmul(self.left[block], self.right[:, columns], out=tile)
        near = tile < self.limit[block, None]
        near |= tile < self.limit[columns]
        if columns.start < ends[block.stop - 1]:  # the block's last classes reach in here
            near &= np.arange(columns.start, columns.stop) >= ends[block, None]
        found = np.flatnonzero(near)
        row = found // near.shape[1]
        return Pairs(row + block.start, found - row * near.shape[1] + columns.start)


def _tiles(block: slice, data: Triples) -> list[tuple[slice, slice]]:
    """Cut a block of rows, and for each part the rows of later classes, into tiles."""
    n = len(data.rows)
    return [
        (slice(row, min(row + TILE_ROWS, block.stop)), slice(start, min(start + TILE_COLUMNS, n)))
        for row in range(block.start, block.stop, TILE_ROWS)
        for start in range(int(data.ends[row]), n, TILE_COLUMNS)
    ]


def _drawn(pairs: Pairs, draw: Draw) -> Pairs:
    """Leave out the pairs that were not drawn; a hash of its rows decides for each."""
    mixed = pairs.first.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed += pairs.second.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed += np.uint64(draw.seed * 0x165667B19E3779F9 % 2**64)
    for shift in (np.uint64(31), np.uint64(29)):
        mixed ^= mixed >> shift
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
    chosen = (mixed >> np.uint64(11)) < draw.share * 2.0**53
    return Pairs(pairs.first[chosen], pairs.second[chosen])


def _flush(waiting: list[Pairs], data: Triples, margin: Margin, sums: Sums) -> None:
    """Add up the pairs that wait."""
    if not waiting:  # rows of the last class have no later one to be held against
        return
    pairs = Pairs(*(np.concatenate(side) for side in zip(*waiting, strict=True)))
    waiting.clear()
    sums.keep(pairs)
    sums.add(data, margin, pairs)


def _total(parts: list[Sums], data: Triples) -> Sums:
    if not parts:
        return Sums(data)
    total, *rest = parts
    for part in rest:
        total.merge(part)
    return total
