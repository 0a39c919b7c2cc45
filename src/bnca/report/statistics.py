"""Means, differences and ranks over repeats, with intervals that say what they cover.

Repeats of an experiment draw their rows from one finite data set, so they share rows and are more
alike than independent repeats would be.  Student's interval takes them for independent: it covers
the mean of all repeats that this data set allows, which is no statement about other rows of the
same kind.  Here each variance is corrected for the rows that repeats share, as Nadeau and Bengio
(Machine Learning 52, 2003) do: with J repeats of correlation rho, the mean has the variance
(1/J + rho/(1 - rho)) S², where S² is the variance seen.  The correlation is estimated by the share
of test rows that two repeats have in common; where training and test rows use up the data set
this is their correction as they give it.  Intervals and tests then speak of a new data set from
the same source.  With ``overlap=0`` they are Student's.

Methods are compared by repeats, on the same rows, with a t test of the differences.  It is
preferred to a sign-flip or rank test as those have no such correction, and as their least p-value
for five repeats is 0.03.  Differences of accuracies are means over test rows, so that they are
near enough to normal for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from bnca.core.arrays import Doubles

LEVEL = 0.05
"""Of the tests; intervals cover one minus it."""


class Interval(NamedTuple):
    """A mean and the ends of its 95 % confidence interval, None where one repeat says nothing."""

    mean: float
    low: float | None
    high: float | None


class Rank(NamedTuple):
    """A rank (1 is best; equals share the mean of their places) and a range that covers it."""

    rank: float
    low: int
    high: int
    of: int


def overlap(n_train: float, n_test: float, n_pool: float | None) -> float:
    """Correlation between two repeats, by the share of test rows that they have in common.

    Parameters
    ----------
    n_train, n_test : float
        Rows of one repeat.
    n_pool : float or None
        Rows that test rows are drawn from; None where this is not known, and then there are taken
        to be no others than those of one repeat, so that the correction is Nadeau and Bengio's.

    Returns
    -------
    float
        Below 1; 0.9 at most, as repeats on the very same test rows say little about others.
    """
    return float(min(n_test / (n_train + n_test if n_pool is None else n_pool), 0.9))


def finite(values: ArrayLike) -> Doubles:
    """Values that are numbers."""
    array = np.asarray(values, dtype=np.float64)
    return array[np.isfinite(array)]


def mean_interval(values: ArrayLike, overlap: float = 0.0) -> Interval:
    """Mean over repeats with its confidence interval; see the head of this file.

    Parameters
    ----------
    values : (J,)
        One a repeat; those that are no numbers are left out.
    overlap : float
        Correlation between two repeats.

    Returns
    -------
    Interval
        A mean of nan where no value is left.
    """
    x = finite(values)
    if not len(x):
        return Interval(float("nan"), None, None)
    mean = float(x.mean())
    if len(x) == 1:
        return Interval(mean, None, None)
    half = _standard_error(x, overlap) * float(stdtrit(len(x) - 1, 1 - LEVEL / 2))
    return Interval(mean, mean - half, mean + half)


def ratio_interval(numerators: ArrayLike, denominators: ArrayLike) -> Interval:
    """Geometric mean of ratios of positive numbers over repeats, with Student's interval."""
    ratios = np.log(np.divide(numerators, denominators))
    mean, low, high = mean_interval(ratios)
    return Interval(
        float(np.exp(mean)),
        None if low is None else float(np.exp(low)),
        None if high is None else float(np.exp(high)),
    )


def paired_test(differences: ArrayLike, overlap: float = 0.0) -> float:
    """One-tailed p-value of "the mean difference is zero or less".

    A small one says that the mean is positive.  Without two values, or where all are zero, it is 1.

    Parameters
    ----------
    differences : (J,)
        One a repeat; those that are no numbers are left out.
    overlap : float
        Correlation between two repeats.

    Returns
    -------
    float
        From 0 to 1.
    """
    x = finite(differences)
    if len(x) < 2 or not x.any():
        return 1.0
    error = _standard_error(x, overlap)
    if error == 0:
        return 0.0 if x[0] > 0 else 1.0
    return float(stdtr(len(x) - 1, -x.mean() / error))


def holm(p: ArrayLike) -> Doubles:
    """Adjust p-values by Holm's method: those below a level hold together at that level."""
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    out = np.empty_like(p)
    out[order] = np.minimum(stepped, 1)
    return out


def rank_interval(values: Mapping[str, Doubles], name: str, overlap: float = 0.0) -> Rank:
    """Rank of one method's mean among all, the highest first, with a range that covers it.

    The range counts the methods that are significantly better, and those that are not
    significantly worse, by paired tests of both directions, adjusted together by Holm's method. It
    covers the rank of the true means in at least 95 % of cases.  (Ranks in bootstrap samples have
    no such guarantee: where methods are nearly tied, they cover too seldom.)

    Parameters
    ----------
    values : mapping of str to (J,)
        Values by method, aligned by repeat.
    name : str
        Whose rank.
    overlap : float
        Correlation between two repeats.

    Returns
    -------
    Rank
        Among the methods that have a number for at least one repeat; a single repeat excludes no
        rank.
    """
    present = {key: x for key, x in values.items() if len(finite(x))}
    mine = present.pop(name)
    leads = [mine - x for x in present.values()]
    means = np.array([finite(lead).mean() if len(finite(lead)) else 0.0 for lead in leads])
    adjusted = holm(
        [paired_test(sign * lead, overlap) for sign in (1, -1) for lead in leads]
    ).reshape(2, -1)
    behind, ahead = (adjusted < LEVEL).sum(axis=1)
    rank = 1 + float((means < 0).sum() + (means == 0).sum() / 2)
    return Rank(rank, 1 + int(ahead), 1 + len(leads) - int(behind), 1 + len(leads))


def _standard_error(x: Doubles, overlap: float) -> float:
    """Standard error of the mean of values of which any two have the correlation `overlap`."""
    if np.ptp(x) == 0:  # a variance of equal numbers need not be exactly zero
        return 0.0
    return float(np.sqrt(x.var(ddof=1) * (1 / len(x) + overlap / (1 - overlap))))
