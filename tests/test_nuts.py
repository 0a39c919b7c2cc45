"""The sampler that intervals are held against is itself held against densities that are known."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
from scipy.special import digamma, polygamma
from tolerances import monte_carlo

COVARIANCE = np.array([[2.0, 0.9, 0.0], [0.9, 0.5, -0.1], [0.0, -0.1, 9.0]])
PRECISION = np.linalg.inv(COVARIANCE)
MEAN = np.array([1.0, -2.0, 30.0])


@pytest.fixture(scope="module")
def nuts():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
        return importlib.import_module("nuts")


def gaussian(x):
    pull = PRECISION @ (x - MEAN)
    return -(x - MEAN) @ pull / 2, -pull


def log_gamma(x):
    """Logarithms of gamma variables of shape 2: skewed, with known moments."""
    return (2 * x - np.exp(x)).sum(), 2 - np.exp(x)


@pytest.mark.parametrize("mass", [COVARIANCE, np.diag([1.0, 1.0, 4.0])])
def test_a_gaussian_comes_out_whatever_the_mass(nuts, mass):
    draws = nuts.sample(gaussian, np.zeros(3), mass, np.random.default_rng(0), draws=400)
    assert draws.values.shape == (4, 400, 3)
    assert draws.divergences == 0
    assert (nuts.r_hat(draws.values) < 1.02).all()
    size = nuts.effective_size(draws.values)
    assert (size > 300).all()
    std = np.sqrt(np.diag(COVARIANCE))
    assert (np.abs(draws.flat.mean(axis=0) - MEAN) < monte_carlo(std, size, 4)).all()
    scaled = np.cov(draws.flat.T) / np.outer(std, std)
    expected = COVARIANCE / np.outer(std, std)
    np.testing.assert_allclose(scaled, expected, atol=monte_carlo(np.sqrt(2), size.min(), 4))


def test_a_skewed_density_comes_out_skewed(nuts):
    draws = nuts.sample(
        log_gamma, np.full(3, np.log(2)), np.eye(3) / 2, np.random.default_rng(1), draws=800
    )
    x = draws.flat
    mean, variance, third = digamma(2), polygamma(1, 2), polygamma(2, 2)
    size = nuts.effective_size(draws.values).min() / 2  # squares are less independent
    assert (np.abs(x.mean(axis=0) - mean) < monte_carlo(variance**0.5, size, 4)).all()
    assert abs(x.var() / variance - 1) < monte_carlo(1.8, 3 * size, 4)
    skewness = ((x - mean) ** 3).mean()
    assert abs(skewness / third - 1) < 0.3
    # Gaussian draws of the same mean and variance would have no third moment at all.
    assert skewness < -0.25


def test_effective_size_of_an_autoregression_is_the_known_one(nuts):
    rng = np.random.default_rng(2)
    values = np.zeros((4, 2000, 2))
    for i in range(1, 2000):
        values[:, i] = np.array([0.8, 0.0]) * values[:, i - 1] + rng.normal(size=(4, 2))
    slow, fast = nuts.effective_size(values)
    np.testing.assert_allclose(slow, 8000 * (1 - 0.8) / (1 + 0.8), rtol=0.25)
    np.testing.assert_allclose(fast, 8000, rtol=0.15)


def test_chains_that_disagree_are_told(nuts):
    values = np.random.default_rng(3).normal(size=(4, 500, 2))
    values[0, :, 1] += 1.0
    values[:, :250, 0] -= 0.5  # drift within each chain
    assert (nuts.r_hat(values) > 1.03).all()


def test_a_path_that_leaves_the_density_is_counted(nuts):
    def cliff(x):
        # Flat, and a wall that the gradient does not announce.
        return (0.0 if abs(x[0]) < 1 else -1e9), np.zeros(1)

    draws = nuts.sample(
        cliff, np.zeros(1), np.eye(1) / 100, np.random.default_rng(4), warmup=20, draws=50
    )
    assert draws.divergences > 0
    assert (np.abs(draws.flat) < 1).all()
