"""Labelled pairs of rows, given or made from labelled rows, ready to be cut into blocks.

Whether two rows are of one class is decided by a margin, the threshold less the squared distance:
η = μ - γᵀw, linear in θ = (γ, μ) with features φ = (-w, 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bnca.core.features import eigen_features

if TYPE_CHECKING:
    import numpy.typing as npt

    from bnca.core.arrays import Doubles, Floats, Integers

BLOCK_NUMBERS = 1 << 17
"""Feature values in a block of pairs: they stay in cache."""

MIN_ROWS = 512
"""A block has at least this many pairs: thin matrix products are slow."""


class PairBlock(NamedTuple):
    """A few labelled pairs.

    Attributes
    ----------
    features : (b, p + 1)
        φ = (-w, 1), in the precision of the scores.
    sign : (b,) float64
        y, +1 for pairs of one class and -1 for others.
    weights : (b,) float64
        How often each pair counts.
    """

    features: Floats
    sign: Doubles
    weights: Doubles


@dataclass(frozen=True, eq=False)
class GivenPairs:
    """Pairs that a person has labelled.

    Attributes
    ----------
    differences : (n, p + 1)
        Scores of one row less those of the other, as `with_room` leaves them.
    sign, weights : (n,)
        As in `PairBlock`.
    """

    differences: Floats
    sign: Doubles
    weights: Doubles

    def __len__(self) -> int:
        return len(self.sign)

    @property
    def table(self) -> Floats:
        """What features are made from, as wide as they are and of their dtype."""
        return self.differences

    def block(self, part: slice, scratch: Floats) -> PairBlock:
        """Features (written to scratch), labels and weights of a range of pairs."""
        differences = self.differences[part]
        features = scratch[: differences.size].reshape(differences.shape)
        features[:] = differences
        return PairBlock(margin_features(features), self.sign[part], self.weights[part])

    def every(self, step: int) -> GivenPairs:
        """Return about each step-th pair, standing for all."""
        kept = _spread(len(self), step)
        weights = self.weights[kept]
        return GivenPairs(
            self.differences[kept],
            self.sign[kept],
            weights * (self.weights.sum() / weights.sum()),
        )


@dataclass(frozen=True, eq=False)
class RowPairs:
    """Pairs of labelled rows: all of them, never written out, or some.

    Attributes
    ----------
    scores : (n, p + 1)
        Coordinates of the rows as `with_room` leaves them, in the precision features are to have.
    codes : (n,)
        Class of each row.
    weights : (n,)
        How often each row counts; a pair counts as often as the product says.
    numbers : (m,) or None
        Which pairs, as `members` numbers them; None stands for all.
    boost : float
        Factor on the weight of each pair.
    """

    scores: Floats
    codes: Integers
    weights: Doubles
    numbers: Integers | None = None
    boost: float = 1.0

    def __len__(self) -> int:
        n = len(self.codes)
        return n * (n - 1) // 2 if self.numbers is None else len(self.numbers)

    @property
    def table(self) -> Floats:
        """What features are made from, as wide as they are and of their dtype."""
        return self.scores

    def block(self, part: slice, scratch: Floats) -> PairBlock:
        """Features (written to scratch, twice their size), labels and weights of a range."""
        numbers = np.arange(part.start, part.stop) if self.numbers is None else self.numbers[part]
        first, second = members(numbers, len(self.codes))
        left, right = scratch[: 2 * len(first) * self.scores.shape[1]].reshape(2, len(first), -1)
        # mode="clip" spares a copy: with "raise" NumPy buffers the whole output.
        np.take(self.scores, first, axis=0, out=left, mode="clip")
        np.take(self.scores, second, axis=0, out=right, mode="clip")
        left -= right
        return PairBlock(
            margin_features(left),
            np.where(self.codes[first] == self.codes[second], 1.0, -1.0),
            self.weights[first] * self.weights[second] * self.boost,
        )

    def every(self, step: int) -> RowPairs:
        """Return about each step-th pair, standing for all."""
        numbers = _spread(len(self), step)
        boost = self.boost * len(self) / len(numbers)
        if self.numbers is not None:
            numbers = self.numbers[numbers]
        return RowPairs(self.scores, self.codes, self.weights, numbers, boost)


PairSource = GivenPairs | RowPairs


def members(numbers: Integers, n: int) -> tuple[Integers, Integers]:
    """Rows of the pairs numbered 0 .. n (n - 1) / 2 - 1, each unordered pair once.

    Number k is row k mod n and the row 1 + ⌊k / n⌋ places after it, in a circle: any range of
    numbers takes all rows about equally often.
    """
    first = numbers % n
    return first, (first + 1 + numbers // n) % n


def with_room(scores: Doubles) -> Doubles:
    """Scores (n, p) with one more column, where `margin_features` writes the 1 of φ."""
    return np.column_stack([scores, np.zeros(len(scores))])


def margin_features(differences: Floats) -> Floats:
    """Return φ = (-w, 1) of differences of scores with room, written over the input."""
    features = eigen_features(differences)
    np.negative(features, out=features)
    features[:, -1] = 1
    return features


def block_rows(width: int) -> int:
    """How many pairs of `width` features make a block."""
    return max(MIN_ROWS, BLOCK_NUMBERS // width)


class Rates(NamedTuple):
    """What each threshold on squared distances would do; both rates go from one end to the other.

    Attributes
    ----------
    cuts : (k,) float64
        Thresholds, rising: below all distances, midway between neighbouring ones, above all.
    found : (k,) float64
        Share of alike pairs at or below (true positive rate).
    kept_out : (k,) float64
        Share of other pairs above (true negative rate).
    """

    cuts: Doubles
    found: Doubles
    kept_out: Doubles


def rates(squared: Doubles, alike: npt.NDArray[np.bool_]) -> Rates:
    """Return the rates of all thresholds that tell pairs apart, for squared distances (n,)."""
    values, group = np.unique(squared, return_inverse=True)
    found = np.cumsum(np.bincount(group, alike, minlength=len(values)))
    passed = np.cumsum(np.bincount(group, ~alike, minlength=len(values)))
    # Midway: distances computed again, in another order, still fall on the same side.
    middle = (values[:-1] + values[1:]) / 2
    margin = (values[-1] - values[0]) / 2 or 1.0
    return Rates(
        np.concatenate([[values[0] - margin], middle, [values[-1] + margin]]),
        np.append(0.0, found) / found[-1],
        1 - np.append(0.0, passed) / passed[-1],
    )


def _spread(n: int, step: int) -> Integers:
    """One number at random from each run of `step` numbers below n, the same every time.

    Each step-th number would meet the same rows again and again.
    """
    starts = np.arange(0, n, step)
    ends = np.minimum(starts + step, n)
    return np.random.default_rng(0).integers(starts, ends)
