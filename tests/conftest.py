"""Hypothesis draws the same examples every time; small data shared by several files."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "bnca",
    derandomize=True,  # a test that fails once fails always
    database=None,
    deadline=None,  # the first fit of a process loads BLAS
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],  # other work shares the cores
)
settings.load_profile("bnca")


@pytest.fixture(scope="session")
def blobs():
    """Three overlapping classes of unequal size on four columns of unequal scale, off-centre."""
    rng = np.random.default_rng(7)
    y = np.repeat([0, 1, 2], [40, 25, 15])
    centers = np.array([[0.0, 0.0, 1.0, 0.0], [2.0, 1.0, 0.0, 0.0], [0.0, 3.0, 0.0, 1.0]])
    X = (centers[y] + rng.normal(size=(80, 4))) * [1.0, 3.0, 0.5, 2.0] + [5.0, 0.0, -2.0, 1.0]
    order = rng.permutation(80)
    return X[order], y[order]
