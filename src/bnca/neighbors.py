"""Who is near whom: exact nearest rows, the same every time.

Candidates come from single-precision matrix products; whoever could be among the k nearest, given
the rounding error of such a product, is then measured again in double precision.  So the answer is
exact, and costs little more than one matrix product.

Equal distances are settled by row number.  Two distances count as equal when they agree to single
precision: rotating rows into principal axes disturbs exact ties (grids, counts, repeated rows) in
the last digits of a double, and which of two tied rows is taken must not depend on that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bnca.blocks import cut, map_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bnca.core.arrays import Doubles, Floats, Integers

BLOCK_BYTES = 4 << 20
"""Memory for one block of single-precision products: small enough to stay in cache."""

GROUPS_PER_NEIGHBOR = 6
"""Groups of columns for each neighbour wanted; more groups, tighter candidate lists."""


class Neighbors(NamedTuple):
    """Nearest rows of each query, nearest first.

    Attributes
    ----------
    indices : (q, k) intp
        Row numbers.
    squared_distances : (q, k) float64
        Squared Euclidean distances.
    """

    indices: Integers
    squared_distances: Doubles


def nearest(
    rows: Doubles, k: int, queries: Doubles | None = None, *, n_jobs: int | None = None
) -> Neighbors:
    """Return the k rows nearest to each query in Euclidean distance.

    Parameters
    ----------
    rows : (n, r) float64
        Rows to choose from.
    k : int
        How many; at most n, or n - 1 without queries.
    queries : (q, r) float64 or None
        Rows to find neighbours for.  None asks for the neighbours of every row among the others:
        a row is never its own neighbour, though an equal row may be.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    Neighbors
        Nearest first; among equals, the lower row number first.
    """
    n = len(rows)
    among_themselves = queries is None
    center = rows.mean(axis=0)
    centred = rows - center
    asked = centred if queries is None else queries - center
    # One product gives |r|² - 2 q·r, which orders rows as |q - r|² does.  Scaled into (-1, 1) so
    # that single precision neither overflows nor loses tiny data.
    scale = max(float(np.abs(centred).max(initial=0)), float(np.abs(asked).max(initial=0))) or 1.0
    single = (centred / scale).astype(np.float32)
    table = np.empty((rows.shape[1] + 1, n), dtype=np.float32)
    table[:-1] = -2 * single.T
    table[-1] = np.einsum("ij,ij->i", single, single)
    lookup = np.empty((len(asked), rows.shape[1] + 1), dtype=np.float32)
    lookup[:, :-1] = asked / scale
    lookup[:, -1] = 1
    # Below this, a distance is rounding of the scores: equal rows must be at distance zero.
    floor = (64 * np.finfo(np.float64).eps * scale) ** 2 * rows.shape[1]

    indices = np.empty((len(asked), k), dtype=np.intp)
    squared = np.empty((len(asked), k))
    size = max(1, min(len(asked), BLOCK_BYTES // (4 * n)))

    def work(run: Sequence[slice]) -> None:
        room = np.empty((size, n), dtype=np.float32)
        for block in run:
            products = room[: block.stop - block.start]
            np.matmul(lookup[block], table, out=products)
            if among_themselves:
                products[np.arange(len(products)), np.arange(block.start, block.stop)] = np.inf
            row, column = _candidates(products, lookup[block], k)
            distances = _squared_distances(asked[block], centred, row, column)
            distances[distances <= floor] = 0
            order = _smallest(distances / scale**2, row, len(products), k)
            indices[block] = column[order]
            squared[block] = distances[order]

    if len(asked):
        map_runs(work, cut(len(asked), size), n_jobs)
    return Neighbors(indices, squared)


def _candidates(products: Floats, lookup: Floats, k: int) -> tuple[Integers, Integers]:
    """Pairs (query, row) that may be among the k nearest, by query and then by row number.

    The k-th smallest of the minima of k or more disjoint groups of columns is a ceiling on the k-th
    smallest of all, found in one sweep; partitioning every row of products costs many times that.
    """
    b, n = products.shape
    minima = products
    while (size := min(8, minima.shape[1] // (GROUPS_PER_NEIGHBOR * k))) > 1:
        groups = minima.shape[1] // size
        minima = minima[:, : size * groups].reshape(b, size, groups).min(axis=1)
    ceiling = np.partition(minima, k - 1, axis=1)[:, k - 1].astype(np.float64)
    # Error of a product of length m is at most m·u·Σ|terms|; whoever passes the ceiling has norm
    # at most 2|q| + √ceiling.  Twice, once for each of two products that are compared.
    norm = np.sqrt(np.einsum("ij,ij->i", lookup[:, :-1], lookup[:, :-1], dtype=np.float64))
    reach = 2 * norm + np.sqrt(np.maximum(ceiling, 0)) + 1e-6
    unit = np.finfo(np.float32).eps * (lookup.shape[1] + 4)
    ceiling += 2 * unit * (2 * norm * reach + reach**2)
    limit = np.nextafter(ceiling.astype(np.float32), np.float32(np.inf))
    # A row that was struck out is at infinity, and stays out when all the others are taken.
    limit = np.minimum(limit, np.finfo(np.float32).max)
    found = np.flatnonzero(products <= limit[:, None])
    row = found // n
    return row, found - row * n


def _squared_distances(queries: Doubles, rows: Doubles, row: Integers, column: Integers) -> Doubles:
    """Squared distances of listed pairs, a bounded number at a time."""
    out = np.empty(len(row))
    for part in cut(len(row), max(1, (1 << 17) // rows.shape[1])):
        gap = rows[column[part]]
        gap -= queries[row[part]]
        np.einsum("ij,ij->i", gap, gap, out=out[part])
    return out


def _smallest(distances: Doubles, row: Integers, n_rows: int, k: int) -> Integers:
    """Positions of the k smallest of each row in a list sorted by row; earlier wins a tie."""
    counts = np.bincount(row, minlength=n_rows)
    starts = np.cumsum(counts) - counts
    width = int(counts.max())
    keys = np.full((n_rows, width), np.inf, dtype=np.float32)
    keys[row, np.arange(len(row)) - starts[row]] = distances
    order = np.argsort(keys, axis=1, kind="stable")[:, :k]
    return np.asarray(order + starts[:, None])
