"""Hypothesis strategies for small, deliberately awkward, labelled data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st


class LabelledRows(NamedTuple):
    """Rows, labels, and a neighbourhood size that fits them (None: all other rows)."""

    X: np.ndarray
    y: np.ndarray
    n_neighbors: int | None


COLUMN_SCALES = (0.2, 1.0, 1.5, 4.0)
"""Lopsided, but not so much that an axis is rounding next to another."""


@st.composite
def labelled_rows(draw, *, max_rows=11, max_width=3, duplicates=True):
    """Gaussian or gridded columns of unequal scale, odd class sizes, maybe copies and constants."""
    n = draw(st.integers(4, max_rows))
    width = draw(st.integers(1, max_width))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, width))
    if draw(st.booleans()):
        X = np.round(X * 2)
    X *= draw(st.lists(st.sampled_from(COLUMN_SCALES), min_size=width, max_size=width))
    X += draw(st.sampled_from([0.0, 10.0]))
    if draw(st.booleans()):
        X = np.column_stack([X, np.full(n, 3.0)])
    if duplicates:
        for _ in range(draw(st.integers(0, n // 3))):
            X[rng.integers(n)] = X[rng.integers(n)]
    # A grid may come out as one point; a metric needs two.
    X[0, 0] += 1.0
    n_classes = draw(st.integers(1, min(4, n - 1)))
    y = rng.integers(0, n_classes, n)
    y[:2] = 0  # at least one pair of rows shares a class
    return LabelledRows(X, y, draw(st.sampled_from([1, 2, n // 2, n - 1, None])))


SCALES = (1e-20, 1e-3, 1.0, 3.0, 1e15)
"""From tiny to huge, where single precision would underflow or overflow."""


@st.composite
def tied_rows(draw):
    """Points of a small grid, many of them equal or equally far apart, at any scale and offset."""
    n = draw(st.integers(2, 40))
    width = draw(st.integers(1, 4))
    side = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    grid = rng.integers(-side, side + 1, (n, width)).astype(np.float64)
    return grid, draw(st.sampled_from(SCALES)), draw(st.integers(1, n - 1))


@st.composite
def loose_rows(draw):
    """Rows without ties whose columns differ in scale, some with an outlier a million times off."""
    n = draw(st.integers(2, 40))
    width = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, width)) * 10.0 ** rng.integers(-2, 2, width)
    if draw(st.booleans()):
        X[rng.integers(n)] *= 1e6
    return X, draw(st.sampled_from(SCALES)), draw(st.integers(1, n - 1))


@st.composite
def anchor_blocks(draw, *, soft=False):
    """Features (b, K, p), agreements (0 or 1, or between) and weights of a few anchors, and a mean.

    Features are what squares of differences are: positive, skewed, of unequal scale.
    """
    b, K, p = draw(st.integers(1, 5)), draw(st.integers(1, 6)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.lists(st.sampled_from([0.1, 1.0, 5.0]), min_size=p, max_size=p))
    features = rng.normal(size=(b, K, p)) ** 2 * scale
    agree = rng.random((b, K)) if soft else rng.integers(0, 2, (b, K)).astype(np.float64)
    weights = rng.choice([0.5, 1.0, 3.0], b)
    mean = rng.normal(size=p) * draw(st.sampled_from([0.0, 0.3, 2.0]))
    return features, agree, weights, mean
