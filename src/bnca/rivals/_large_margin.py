"""The objective of LMNN, and where to start the search for its least value.

With squared distances d² under the map L, T(i) the nearest rows of row i's own class and l any row
of another class, the objective is

    f(L) = (1 - w) Σ_i Σ_{j ∈ T(i)} d²(i, j) + w Σ_i Σ_j Σ_l max(0, 1 + d²(i, j) - d²(i, l)).

Both sums are sums over pairs of rows, so the gradient is 2 L S with S = Σ a_ab (z_a - z_b)(z_a -
z_b)ᵀ, where a_ab is the weight of a pair: that of a target neighbour, less w for each active triple
that parts the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg

from bnca.blocks import cut, map_runs
from bnca.rivals._impostors import read, search
from bnca.rivals._lbfgs import Value
from bnca.rivals._targets import margin_of, slack_needed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bnca.core.arrays import Doubles, Integers
    from bnca.rivals._impostors import Draw, Pairs, Sums
    from bnca.rivals._targets import Margin, Triples

KEEP_FROM = 4_000
"""Rows from which pairs are kept; among fewer, a search costs no more than reading them."""

KEPT_PER_ROW = 64
"""Pairs kept for each row at most; where there are more, every value takes a search."""

AHEAD = 4.0
"""Pairs are kept for about so many moves like the last one."""

NARROWEST, WIDEST = 0.02, 0.2
"""How much wider than the margin's radius pairs are kept, at least and at most."""


class Objective:
    """f and its gradient as a function of L, always in full.

    Pairs found within a somewhat wider margin serve the next calls too, for as long as it can be
    proved, from how far each row has moved since, that no other pair can have become active.

    Parameters
    ----------
    data : Triples
        Rows and targets.
    push : float
        w, in (0, 1].
    n_jobs : int or None
        Threads; the values do not depend on it.
    draw : Draw or None
        Which pairs may be impostors, each counting 1 / share times; None is all of them.

    Attributes
    ----------
    n_searches : int
        How many calls took a search through all rows.
    """

    def __init__(
        self, data: Triples, push: float, *, n_jobs: int | None = None, draw: Draw | None = None
    ) -> None:
        self.data = data
        self.push = push
        self.n_jobs = n_jobs
        self.draw = draw
        self.n_searches = 0
        self._searched: Margin | None = None
        self._kept: list[Pairs] | None = None
        self._slack = 0.0
        self._calls = 0

    def __call__(self, L: Doubles) -> Value:
        """Value at L."""
        margin = margin_of(self.data, L, self.n_jobs)
        return self._assemble(L, margin, self._pairs(margin))

    def _pairs(self, margin: Margin) -> Sums:
        """Sum over all active pairs, from those kept if that is proved to be enough."""
        if len(self.data.rows) < KEEP_FROM:
            self.n_searches += 1
            return search(self.data, margin, self.n_jobs, draw=self.draw)
        needed = np.inf if self._searched is None else slack_needed(self._searched, margin)
        self._calls += 1
        if self._kept is not None and needed <= self._slack:
            return read(self.data, margin, self._kept, self.n_jobs)
        slack = max(NARROWEST, AHEAD * needed / self._calls)
        room = KEPT_PER_ROW * len(self.data.rows) if slack <= WIDEST else 0
        slack = slack if room else 0.0
        sums = search(self.data, margin, self.n_jobs, draw=self.draw, slack=slack, room=room)
        self.n_searches += 1
        self._searched, self._kept, self._slack, self._calls = margin, sums.kept, slack, 0
        return sums

    def _assemble(self, L: Doubles, margin: Margin, sums: Sums) -> Value:
        """Put f and its gradient together; 2 L S with S = H + Hᵀ, half of each pair in H."""
        rows, targets = self.data.rows, self.data.targets
        pull = 1 - self.push
        push = self.push if self.draw is None else self.push / self.draw.share
        weights = pull + push * sums.uses
        degree = weights.sum(axis=1) - push * sums.degree
        degree += np.bincount(targets.ravel(), weights.ravel(), len(degree))

        def work(run: Sequence[slice]) -> Doubles:
            half = np.zeros((rows.shape[1], rows.shape[1]))
            for part in run:
                near = rows[part] * (degree[part, None] / 2).astype(rows.dtype)
                for place, weight in enumerate(weights[part].astype(rows.dtype).T):
                    near -= rows[targets[part, place]] * weight[:, None]
                half += rows[part].T @ near
            return half

        half = push * sums.cross
        for block in map_runs(work, cut(len(rows), 1024), self.n_jobs):
            half += block
        loss = pull * float(margin.pulls.sum()) + push * sums.hinge
        return Value(loss, 2 * L @ (half + half.T), int(sums.uses.sum()))


def best_scale(data: Triples, L: Doubles, push: float) -> float:
    """Return the c for which f(√c L) is least, judged by a sample of anchors and other rows.

    f is convex and piecewise linear in c, with slope (1 - w) Σ d²(i, j) - w Σ (d²(i, l) - d²(i, j))
    over triples of which 1 / c exceeds the gap in brackets: the answer is 1 / gap for the gap at
    which the running sum over gaps, sorted, balances the first term.
    """
    n = len(data.rows)
    images = data.rows.astype(np.float64) @ L.T
    owners = np.flatnonzero(data.has_target.any(axis=1))
    anchors = owners[np.linspace(0, len(owners) - 1, min(len(owners), 128)).astype(np.intp)]
    others = np.linspace(0, n - 1, min(n, 2048)).astype(np.intp)
    pulls = ((images[anchors, None] - images[data.targets[anchors]]) ** 2).sum(axis=2)
    square = np.einsum("ij,ij->i", images, images)
    far = square[anchors, None] + square[others] - 2 * images[anchors] @ images[others].T
    rival = data.ends[anchors, None] != data.ends[others]
    triple = rival[:, :, None] & data.has_target[anchors, None, :]
    gaps = np.sort((far[:, :, None] - pulls[:, None, :])[triple])
    balance = np.cumsum(gaps) * (push * n / len(others)) - (1 - push) * pulls.sum()
    past = np.flatnonzero((balance >= 0) & (gaps > 0))
    if len(past):
        # Not quite there: at a kink of f the slope on one side says nothing about the other.
        return float(0.9 / gaps[past[0]])
    # Even all triples together do not outweigh the first sum: any unit will do.
    typical = float(far[rival].mean()) if rival.any() else 0.0
    return 1 / typical if typical > 0 else 1.0


def start_map(
    init: str,
    rows: Doubles,
    codes: Integers,
    *,
    axes: Doubles,
    q: int,
    rng: np.random.RandomState,
) -> Doubles:
    """Map of the rows' coordinates that the search starts from.

    Parameters
    ----------
    init : {"pca", "lda", "identity", "random"}
        Leading principal axes; directions along which classes differ most relative to how rows
        differ within them; leading features; or standard normal numbers.
    rows : (n, r)
        Coordinates along the principal axes, centred.
    codes : (n,)
        Class of each row.
    axes : (n_features, r)
        The principal axes.
    q : int
        Number of directions.
    rng : RandomState
        For "random".

    Returns
    -------
    (q, r) float64
        The map.
    """
    r = rows.shape[1]
    if init == "pca":
        return np.eye(q, r)
    if init == "identity":
        return np.array(axes[:q])
    if init == "random":
        return np.asarray(rng.standard_normal((q, len(axes))) @ axes)
    sizes = np.bincount(codes)
    means = np.zeros((len(sizes), r))
    np.add.at(means, codes, rows)
    means /= sizes[:, None]
    within = rows - means[codes]
    scatter = within.T @ within
    # A little of the identity, as there may be more directions than rows to tell their spread from.
    scatter[np.diag_indices(r)] += 1e-3 * np.trace(rows.T @ rows) / r
    between = (means.T * sizes) @ means
    vectors = scipy.linalg.eigh(between, scatter, subset_by_index=(r - min(q, r), r - 1))[1]
    return np.asarray(vectors[:, ::-1].T * np.sqrt(len(rows)))
