"""Check that NCMML does not fall behind the plain nearest class mean it starts from.

5-fold cross-validation, everything at its default, features as they come.  Prints accuracy of both
in per cent, their difference, and the time of one fit.

    python benchmarks/ncmml.py [--data-dir DIR] [--sets digits wine ...]

Sets other than scikit-learn's digits are read from --data-dir, or from BNCA_DATA: `NAME.npz` with
X and y.  One that is missing is skipped, with the reason.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import NearestCentroid

from bnca.rivals import NCMML

PROMISED = ("digits", "optdigits", "usps", "wine", "spambase")
"""Sets on which NCMML may lose at most MARGIN to the plain nearest mean."""

OTHERS = ("ionosphere", "balance_scale", "umist_faces", "caltech10_effnet", "trec_minilm")

MARGIN = 1.0


def load(name, folder):
    """Rows and labels, or why there are none."""
    if name == "digits":
        return load_digits(return_X_y=True), ""
    if folder is None:
        return None, "neither --data-dir nor BNCA_DATA names a folder"
    path = Path(folder) / f"{name}.npz"
    if not path.exists():
        return None, f"no file {path.name} in the data folder"
    with np.load(path, allow_pickle=False) as file:
        return (file["X"].astype(np.float64), file["y"]), ""


def measure(model, X, y, folds):
    """Mean accuracy in per cent, median seconds of a fit, and warnings by name."""
    accuracy, seconds, said = [], [], set()
    for train, test in folds:
        fresh = clone(model)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            start = time.perf_counter()
            fresh.fit(X[train], y[train])
            seconds.append(time.perf_counter() - start)
        said |= {w.category.__name__ for w in caught}
        accuracy.append(fresh.score(X[test], y[test]))
    return 100 * np.mean(accuracy), np.median(seconds), sorted(said)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data-dir", default=os.environ.get("BNCA_DATA"))
    parser.add_argument("--sets", nargs="+", default=[*PROMISED, *OTHERS])
    arguments = parser.parse_args()
    print(
        f"{'set':18s} {'rows':>6s} {'width':>6s} {'plain':>7s} {'NCMML':>7s} {'gain':>6s}      fit"
    )
    behind = []
    for name in arguments.sets:
        found, reason = load(name, arguments.data_dir)
        if found is None:
            print(f"{name:18s} skipped: {reason}")
            continue
        X, y = found
        folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
        plain, _, _ = measure(NearestCentroid(), X, y, folds)
        learned, seconds, said = measure(NCMML(), X, y, folds)
        print(
            f"{name:18s} {len(X):6d} {X.shape[1]:6d} {plain:7.2f} {learned:7.2f} "
            f"{learned - plain:+6.2f} {seconds:6.2f} s  {' '.join(said)}",
            flush=True,
        )
        if name in PROMISED and learned < plain - MARGIN:
            behind.append(name)
    if behind:
        msg = f"NCMML is more than {MARGIN} point behind on: {', '.join(behind)}"
        raise SystemExit(msg)


if __name__ == "__main__":
    main()
