"""Hypothesis draws the same examples every time; small data and one browser for several files."""

from __future__ import annotations

import os

import numpy as np
import pytest
from browser import Browser, find_chromium
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


@pytest.fixture(scope="session")
def _chromium(tmp_path_factory):
    """Start the browser once; where there is none its tests are skipped, unless CI is set."""
    if find_chromium() is None:
        reason = "no Chromium; on Debian: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(f"CI is set, and there is {reason}")
        pytest.skip(f"There is {reason}")
    started = Browser(tmp_path_factory.mktemp("browser"))
    yield started
    started.close()


@pytest.fixture
def browser(_chromium):
    """One page, with nothing of the test before."""
    _chromium.media()
    _chromium.errors.clear()
    _chromium.requests.clear()
    return _chromium
