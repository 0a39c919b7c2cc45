"""Time of one fit of every rival on a small table, with its accuracy beside.

300 rows of digits in 30 principal coordinates, all else at its default; accuracy is each rival's
own classifier on the rows left over.  The first fit, which loads libraries, is not counted.  The
aim is under a second each; NCA is scikit-learn's, and takes what it takes.

    python benchmarks/rivals_small.py [--repeats 7]
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from bnca import BayesianNCA
from bnca.rivals import BML, LMNN, NCA, NCMML, PCAMetric, SupervisedBML

ROWS, WIDTH = 300, 30

PAIRS = 2_000
"""What BML is given: it learns from pairs, and is scored on pairs."""


def table(seed):
    """Training rows, test rows and their labels, from principal axes of the training rows."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, train_size=ROWS, stratify=y, random_state=seed)
    pca = PCA(WIDTH).fit(X)
    # NCA alone has a unit of its own: with distances of tens its gradient is flat from the start.
    unit = np.sqrt(pca.explained_variance_.sum() / 2)
    return pca.transform(X) / unit, pca.transform(X_test) / unit, y, y_test


def pairs_of(X, y, seed):
    """Pairs of rows, half of them of one class, and +1 or -1 for each."""
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, len(X), (2, 40 * PAIRS))
    same = (y[left] == y[right]) & (left != right)
    kept = np.concatenate([np.flatnonzero(same)[: PAIRS // 2], np.flatnonzero(~same)[: PAIRS // 2]])
    return X[np.column_stack([left, right])[kept]], np.where(same[kept], 1, -1)


def measure(model, train, test, repeats):
    """Seconds of each fit, accuracy of the last, and the names of its warnings."""
    seconds = []
    for _ in range(repeats + 1):
        fresh = clone(model)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            start = time.perf_counter()
            fresh.fit(*train)
            seconds.append(time.perf_counter() - start)
    said = sorted({w.category.__name__ for w in caught})
    return seconds[1:], 100 * fresh.score(*test), said


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    X, X_test, y, y_test = table(arguments.seed)
    rows = (X, y), (X_test, y_test)
    pairs = pairs_of(X, y, 0), pairs_of(X_test, y_test, 1)
    print(f"{ROWS} rows, {WIDTH} columns, {len(np.unique(y))} classes")
    print(f"{'':15s} {'median':>9s} {'fastest':>9s} {'accuracy':>9s}")
    for model in (PCAMetric(), NCA(), NCMML(), LMNN(), SupervisedBML(), BML(), BayesianNCA()):
        train, test = pairs if isinstance(model, BML) else rows
        seconds, accuracy, said = measure(model, train, test, arguments.repeats)
        name = type(model).__name__
        kind = f" of {2 * (PAIRS // 2)} pairs" if isinstance(model, BML) else ""
        print(
            f"{name:15s} {np.median(seconds):7.3f} s {min(seconds):7.3f} s {accuracy:8.1f} %"
            f"{kind}  {' '.join(said)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
