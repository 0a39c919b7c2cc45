"""How close is close enough, and why, once for all tests."""

from __future__ import annotations

import numpy as np

ORACLE = {"float64": 1e-8, "float32": 2e-3}
"""Relative, posterior moments against the naive loops.

float64: the fixed points of both stop at a relative step of 1e-13 or less, a linear rate of 0.99
costs two digits, and inverting a curvature of condition 1e3 costs three more.
float32: features carry 6e-8 each; differences of distances of tens, and the same condition
numbers, take three to four digits.  Sums themselves are kept in float64.
"""

SUMS = {"float64": 1e-11, "float32": 2e-4}
"""Relative to the largest term, one sum over anchors against the same sum in another order.

A few thousand terms of one sign lose at most thousands of roundings, in practice tens; in float32
the products of features themselves are single.
"""

ROUNDING = 1e-9
"""Relative, two exact ways to the same number in float64, a handful of operations each."""

SAME_FIT = 1e-6
"""Relative, posterior means of two fits that differ in the order of sums, or in a rotation.

Newton stops below a step of 1e-6 and is then far closer than that, as it converges quadratically.
"""

SAME_PROBABILITY = 1e-5
"""Absolute, class probabilities of two such fits: their exponentials are single precision."""

FLOAT32_FIT = 1e-2
"""Relative to the largest, distances and weights of a float32 fit against the float64 one."""

CURVED = 1e-5
"""Relative, derivatives by central differences with the steps below.

The error is step² · third derivative + rounding / step, at its best near ∛eps² = 4e-11, and
features of size 10 raise the third derivative a thousandfold or more.
"""

STEP = float(np.cbrt(np.finfo(np.float64).eps))
"""Step of central differences in float64, for arguments of size one."""

NEVER_FALLS = 1e-12
"""Relative to its size, how much rounding alone may lower a bound summed over a few anchors."""


def monte_carlo(std, n, sigmas=5.0):
    """Largest gap between an expectation and the mean of n draws: five standard errors.

    Seeds are fixed, so this fails for a wrong formula and never for bad luck.
    """
    return sigmas * np.asarray(std) / np.sqrt(n)


def assert_same_covariance(actual, desired, rtol):
    """Entries agree relative to the two standard deviations they belong to.

    Weights of lopsided data differ by orders of magnitude, so neither one absolute tolerance nor a
    relative one (entries may be zero by symmetry) would do.
    """
    scale = np.sqrt(np.diag(desired))
    np.testing.assert_allclose(
        actual / np.outer(scale, scale), desired / np.outer(scale, scale), rtol=0, atol=rtol
    )


def assert_same_sum(actual, desired, rtol):
    """Arrays agree relative to the largest entry of the one they should be."""
    np.testing.assert_allclose(actual, desired, rtol=0, atol=rtol * np.abs(desired).max())
