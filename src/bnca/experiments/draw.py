"""Training and test rows of a cell, the same for every method that is compared on it."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles, Integers
    from bnca.datasets import Dataset
    from bnca.experiments.spec import Cell, DataSpec


class Draw(NamedTuple):
    """What a cell learns from and is tested on.

    Attributes
    ----------
    X, X_test : (n, d), (m, d)
        Rows, preprocessed.
    given : (n,)
        Training labels as the methods see them, some of them wrong.
    y_test : (m,)
        True labels of the test rows.
    train, test : (n,), (m,)
        Positions of the rows in the data set.
    flipped : (n,) bool
        Where the given label is wrong on purpose.
    """

    X: Doubles
    X_test: Doubles
    given: Integers
    y_test: Integers
    train: Integers
    test: Integers
    flipped: np.ndarray[Any, np.dtype[np.bool_]]


def draw(cell: Cell, data: Dataset) -> Draw:
    """Rows of a cell: they depend on data set, size, noise and seed, not on methods or tables.

    Within a seed, rows of a smaller size are part of a larger one, and labels that are wrong at
    little noise are wrong at more.
    """
    experiment = cell.experiment
    train, test = split(
        data,
        experiment.data,
        size=cell.size,
        reserve=max(experiment.sizes),
        n_test=experiment.n_test,
        rng=_generator(data.name, "split", cell.seed),
    )
    y = data.y[train]
    given = flip(y, cell.noise, _generator(data.name, "noise", cell.seed))
    X, X_test = prepare(data.X[train], data.X[test], experiment.data)
    return Draw(X, X_test, given, data.y[test], train, test, given != y)


def split(
    data: Dataset,
    spec: DataSpec,
    *,
    size: int,
    reserve: int,
    n_test: int,
    rng: np.random.Generator,
) -> tuple[Integers, Integers]:
    """Positions of `size` training rows of each class and of test rows, at random.

    Test rows are drawn first, so they have the classes in their natural shares, as far as each
    class keeps `reserve` rows to train on.
    """
    order = rng.permutation(len(data.y))
    classes = np.unique(data.y)
    if spec.n_classes is not None:
        classes = rng.permutation(classes)[: spec.n_classes]
        order = order[np.isin(data.y[order], classes)]
    if spec.rows_per_class is not None:
        order = order[_rank(data.y[order]) < spec.rows_per_class]
    if spec.published_split:
        if data.is_test is None:
            raise ValueError(f"{data.name} has no published test part (no array is_test).")
        held_out = data.is_test[order]
        test, rest = order[held_out][:n_test], order[~held_out]
    else:
        # From the end of each class, `reserve` rows are not for testing.
        free = _rank(data.y[order[::-1]])[::-1] >= reserve
        chosen = np.flatnonzero(free)[:n_test]
        test, rest = order[chosen], np.delete(order, chosen)
    taken = rest[_rank(data.y[rest]) < size]
    counts = np.array([np.count_nonzero(data.y[taken] == c) for c in classes])
    if counts.min() < size or not len(test):
        raise ValueError(
            f"{data.name} has {counts.min()} rows of class "
            f"{data.class_names[classes[counts.argmin()]]} to train on and {len(test)} to test; "
            f"{size} of each class are asked for, and some to test."
        )
    return taken, test


def _rank(y: Integers) -> Integers:
    """How many entries before each one have the same value."""
    order = np.argsort(y, kind="stable")
    _, start, count = np.unique(y[order], return_index=True, return_counts=True)
    out = np.empty_like(order)
    out[order] = np.arange(len(y)) - np.repeat(start, count)
    return out


def flip(y: Integers, share: float, rng: np.random.Generator) -> Integers:
    """Replace a share of the labels by another class, every other class being as likely."""
    classes = np.unique(y)
    out = y.copy()
    chosen = rng.permutation(len(y))[: round(share * len(y))]
    for i in chosen:
        out[i] = rng.choice(classes[classes != y[i]])
    return out


def prepare(train: Any, test: Any, spec: DataSpec) -> tuple[Doubles, Doubles]:
    """Preprocess rows as `spec` says; all that is fitted is fitted on training rows.

    Last, all features are divided by one number, which makes the mean squared distance between
    training rows 4: NCA's objective has a scale, and this one suits.
    """
    X, X_test = np.asarray(train, dtype=np.float64), np.asarray(test, dtype=np.float64)
    if spec.rows == "l1":
        X, X_test = _sum_to_one(X), _sum_to_one(X_test)
    if spec.columns == "z-score":
        center, spread = X.mean(axis=0), X.std(axis=0)
        spread[spread == 0] = 1
        X, X_test = (X - center) / spread, (X_test - center) / spread
    if spec.n_components is not None and spec.n_components < X.shape[1]:
        pca = PCA(min(spec.n_components, len(X) - 1), svd_solver="full").fit(X)
        X, X_test = pca.transform(X), pca.transform(X_test)
    unit = float(np.sqrt(X.var(axis=0).sum() / 2)) or 1.0
    return X / unit, X_test / unit


def _sum_to_one(X: Doubles) -> Doubles:
    total = np.abs(X).sum(axis=1, keepdims=True)
    return np.asarray(X / np.where(total == 0, 1, total))


def _generator(name: str, purpose: str, seed: int) -> np.random.Generator:
    """Return a generator of its own for each data set, purpose and seed, the same everywhere."""
    return np.random.default_rng([zlib.crc32(f"{name}/{purpose}".encode()), seed])
