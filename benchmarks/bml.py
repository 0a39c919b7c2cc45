"""Measure BML: time of a fit on all pairs, and what actively chosen pairs are worth.

Time.  All pairs of n rows of digits or of a set in the data folder, on the leading principal
components; both solvers, with the lower bound they end at and the accuracy of 5-NN on other rows.

Pairs.  From 20 random pairs on, `query` picks batches of 20 out of a pool of random pairs until 200
are labelled.  Against fits to 20 .. 1,200 random pairs, on rows that were in no pair: the share of
pairs called right by the learned threshold, the area under the ROC curve, and the accuracy of 5-NN
in the learned metric.  Means and standard errors over seeds; differences are taken seed by seed.

    python benchmarks/bml.py [--data-dir DIR] [--only time|pairs] [--sets usps ...] [--seeds 10]

Sets are read from --data-dir, or from BNCA_DATA: `NAME.npz` with X and y.  One that is missing is
skipped, with the reason.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

from bnca.core.pairs import members
from bnca.rivals import BML, SupervisedBML

SETS = (
    "usps",
    "optdigits",
    "caltech10_effnet",
    "umist_faces",
    "balance_scale",
    "wine",
    "spambase",
    "trec_minilm",
)

STANDARDIZED = ("wine", "ionosphere", "spambase", "optdigits")
"""Sets whose columns have units of their own."""

TIMED = (("usps", 300, 30), ("usps", 300, 50), ("umist_faces", 300, 50), ("usps", 3000, 50))

STRATEGIES = ("reduction", "information", "entropy")
RANDOM = (20, 100, 200, 300, 400, 600, 900, 1200)
START, BATCH, BUDGET, POOL = 20, 20, 200, 4000
TRAIN, TEST, TEST_PAIRS, AXES = 300, 600, 20_000, 30
MEASURES = ("accuracy", "AUC", "5-NN")


class Rows(NamedTuple):
    """Rows pairs are made of, and rows to measure on."""

    train: np.ndarray
    train_y: np.ndarray
    test: np.ndarray
    test_y: np.ndarray


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
        X, y = file["X"], file["y"]
    if len(y) > 10_000:  # as good as all of them, and quick to turn into numbers
        kept = np.random.default_rng(0).permutation(len(y))[:10_000]
        X, y = X[kept], y[kept]
    X = X.reshape(len(y), -1).astype(np.float64)
    if name in STANDARDIZED:
        X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-12)
    return (X, y), ""


def split(X, y, seed, n_train, n_test):
    order = np.random.default_rng(seed).permutation(len(y))
    n_train = min(n_train, int(0.6 * len(y)))
    train, test = order[:n_train], order[n_train : n_train + n_test]
    return Rows(X[train], y[train], X[test], y[test])


def nearest_accuracy(rows, move):
    voters = KNeighborsClassifier(5).fit(move(rows.train), rows.train_y)
    return voters.score(move(rows.test), rows.test_y)


def time_fits(arguments):
    print(
        f"{'all pairs of':24s} {'axes':>4s} {'solver':>9s}     seconds          "
        "steps    lower bound  5-NN"
    )
    for name, n, axes in TIMED:
        found, reason = load(name, arguments.data_dir)
        if found is None:
            print(f"{name} n={n}: skipped: {reason}")
            continue
        rows = split(*found, seed=0, n_train=n, n_test=1000)
        pca = PCA(axes, random_state=0).fit(rows.train)
        rows = rows._replace(train=pca.transform(rows.train), test=pca.transform(rows.test))
        for solver in ("newton", "published"):
            if n > 1000 and solver == "published":
                continue
            seconds = []
            for _ in range(5 if n <= 1000 else 1):
                start = time.perf_counter()
                model = SupervisedBML(solver=solver, max_iter=1000).fit(rows.train, rows.train_y)
                seconds.append(time.perf_counter() - start)
            accuracy = nearest_accuracy(rows, model.transform)
            print(
                f"{name + f' n={n} ({model.n_pairs_})':24s} {axes:4d} {solver:>9s} "
                f"{min(seconds):6.3f} .. {max(seconds):6.3f}     {model.n_iter_:5d} "
                f"{model.lower_bound_:14.4f} {100 * accuracy:5.1f}",
                flush=True,
            )


def alike(y, first, second):
    return np.where(y[first] == y[second], 1, -1)


class Course:
    """One seed of one set: the order in which random pairs come, and what they are judged on."""

    def __init__(self, X, y, seed):
        self.rows = split(X, y, seed, TRAIN, TEST)
        rng = np.random.default_rng(1000 + seed)
        first, second = self._pairs(rng, len(self.rows.train), max(*RANDOM, START + POOL))
        self.y = alike(self.rows.train_y, first, second)
        self.pairs = self.rows.train[np.column_stack([first, second])]
        # A threshold needs pairs of both kinds to begin with.
        for kind in (-1, 1):
            where = np.flatnonzero(self.y == kind)[0]
            if where >= START:
                self.y[[START - 1, where]] = self.y[[where, START - 1]]
                self.pairs[[START - 1, where]] = self.pairs[[where, START - 1]]
        first, second = self._pairs(rng, len(self.rows.test), TEST_PAIRS)
        self.test_y = alike(self.rows.test_y, first, second)
        self.test_pairs = self.rows.test[np.column_stack([first, second])]

    @staticmethod
    def _pairs(rng, n, most):
        total = n * (n - 1) // 2
        return members(rng.permutation(total)[:most], n)

    def fit(self, kept):
        """Return BML of some of the pairs."""
        return BML(n_components=AXES).fit(self.pairs[kept], self.y[kept], rows=self.rows.train)

    def judge(self, model):
        """Return what is measured, on held-out rows."""
        return (
            float(np.mean(model.predict(self.test_pairs) == self.test_y)),
            model.score(self.test_pairs, self.test_y),
            nearest_accuracy(self.rows, model.transform),
        )

    def euclidean(self):
        """Return the same for calling all pairs alike or all different, and for plain distance."""
        gap = np.linalg.norm(self.test_pairs[:, 0] - self.test_pairs[:, 1], axis=1)
        always = max(np.mean(self.test_y == 1), np.mean(self.test_y == -1))
        return always, roc_auc_score(self.test_y, -gap), nearest_accuracy(self.rows, np.asarray)

    def random(self, n):
        """Return what so many random pairs reach."""
        return self.judge(self.fit(np.arange(min(n, len(self.y)))))

    def active(self, strategy):
        """Return what BUDGET chosen pairs reach."""
        known = list(range(START))
        pool = np.arange(START, min(START + POOL, len(self.y)))
        while len(known) < BUDGET:
            asked = self.fit(known).query(self.pairs[pool], BATCH, strategy=strategy)
            known += pool[asked].tolist()
            pool = np.delete(pool, asked)
        return self.judge(self.fit(known))


def mean_and_error(values):
    values = 100 * np.asarray(values)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0 * values[0]
    return values.mean(axis=0), error


def worth(curve, value):
    """How many random pairs reach a value, read off the rising curve of means."""
    sizes, means = np.array(RANDOM, dtype=float), np.maximum.accumulate(curve)
    if value > means[-1]:
        return f">{RANDOM[-1]}"
    at = int(np.searchsorted(means, value))
    if at == 0:
        return f"<={RANDOM[0]}"
    share = (value - means[at - 1]) / (means[at] - means[at - 1])
    return f"{np.exp(np.log(sizes[at - 1]) + share * np.log(sizes[at] / sizes[at - 1])):.0f}"


def run(X, y, seeds):
    """Results of all seeds, by what was done."""
    results = {}
    for seed in range(seeds):
        course = Course(X, y, seed)
        results.setdefault("one answer, Euclid", []).append(course.euclidean())
        for n in RANDOM:
            results.setdefault(f"random {n}", []).append(course.random(n))
        for strategy in STRATEGIES:
            results.setdefault(f"{strategy} {BUDGET}", []).append(course.active(strategy))
    return results


def show(results, seeds_of_600):
    """Print a table; return the mean gain of each strategy over 600 random pairs."""
    print(
        " " * 20 + "".join(f"{m:>16s}" for m in MEASURES) + "   less random 600 (worth in random)"
    )
    curves = np.array([mean_and_error(results[f"random {n}"])[0] for n in RANDOM])
    gains = {}
    for label, values in results.items():
        mean, error = mean_and_error(values)
        cells = (f"   {m:6.2f} ± {e:4.2f}" for m, e in zip(mean, error, strict=True))
        line = f"{label:20s}" + "".join(cells)
        strategy = label.split()[0]
        if strategy in STRATEGIES:
            gains[strategy], spread = mean_and_error(np.subtract(values, seeds_of_600))
            cells = (
                f"{g:+.2f} ± {s:.2f} ({worth(curve, m)})"
                for g, s, curve, m in zip(gains[strategy], spread, curves.T, mean, strict=True)
            )
            line += "   " + "  ".join(cells)
        print(line, flush=True)
    return gains


def compare_pairs(arguments):
    reached = {(measure, strategy): [] for measure in MEASURES for strategy in STRATEGIES}
    for name in arguments.sets or SETS:
        found, reason = load(name, arguments.data_dir)
        if found is None:
            print(f"{name}: skipped: {reason}")
            continue
        print(f"\n{name}, {arguments.seeds} seeds")
        results = run(*found, arguments.seeds)
        for strategy, gain in show(results, results["random 600"]).items():
            for measure, g in zip(MEASURES, gain, strict=True):
                if g >= 0:
                    reached[measure, strategy].append(name)
    print(f"\n{BUDGET} chosen pairs at least as good as 600 random ones, by mean over seeds:")
    for (measure, strategy), names in reached.items():
        print(f"{measure:9s} {strategy:12s} {len(names)} sets: {', '.join(names)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data-dir", default=os.environ.get("BNCA_DATA"))
    parser.add_argument("--only", choices=["time", "pairs"])
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    # Negative weights and their projection are part of what is measured.
    warnings.simplefilter("ignore")
    if arguments.only != "pairs":
        time_fits(arguments)
    if arguments.only != "time":
        compare_pairs(arguments)


if __name__ == "__main__":
    main()
