"""Numbers behind the decisions on LMNN, NCMML and BML in docs/decisions.

    python benchmarks/rival_policies.py --data-dir FOLDER [--part starts kept drawn pull prior]

    starts   LMNN: what rescaling the start is worth, and other starts
    kept     LMNN: keeping pairs of a widened margin against searching each time
    drawn    LMNN: a random share of the impostors against all of them
    pull     NCMML: how strongly the map is held to its start, accuracy under cross-validation
    prior    BML: width of the prior, and whether weights and threshold are held independent

Sets that are not in FOLDER (or BNCA_DATA) are skipped; scikit-learn's digits are always there.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid

from bnca.rivals import LMNN, NCMML, SupervisedBML, _large_margin

MEANS_SETS = ("digits", "optdigits", "usps", "wine", "spambase", "ionosphere", "umist_faces")
PAIR_SETS = ("digits", "usps", "umist_faces", "balance_scale", "ionosphere", "spambase")
STANDARDIZED = ("balance_scale", "ionosphere", "spambase")


def load(name, folder, most=10_000):
    """Rows and labels, or None where they are not at hand."""
    if name == "digits":
        return load_digits(return_X_y=True)
    path = None if folder is None else Path(folder) / f"{name}.npz"
    if path is None or not path.exists():
        print(f"  skipped: {name}.npz is not in the data folder")
        return None
    with np.load(path, allow_pickle=False) as file:
        X, y = file["X"].reshape(len(file["y"]), -1).astype(np.float32), file["y"]
    kept = np.random.default_rng(0).permutation(len(y))[:most]
    return X[kept].astype(np.float64), y[kept]


def scores(X, y, n, dims, seed):
    """Principal scores, of unit scale, of n rows and of up to 2,000 others, with their labels."""
    order = np.random.default_rng(seed).permutation(len(X))
    A, B = X[order[:n]], X[order[n : n + 2000]]
    center = A.mean(axis=0)
    axes = np.linalg.eigh((A - center).T @ (A - center))[1][:, ::-1][:, :dims]
    A, B = (A - center) @ axes, (B - center) @ axes
    unit = np.sqrt((A**2).sum(axis=1).mean() / 2)
    return A / unit, y[order[:n]], B / unit, y[order[n : n + 2000]]


def nearest_accuracy(model, A, y, B, truth):
    """Per cent that 5 nearest rows under the model's map put right."""
    voters = KNeighborsClassifier(5).fit(model.transform(A), y)
    return 100 * voters.score(model.transform(B), truth)


def line(label, values, names):
    """Means of columns with their standard errors over seeds."""
    values = np.asarray(values, dtype=np.float64)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0 * values[0]
    cells = (
        f"{name} {mean:9.2f} ± {e:.2f}"
        for name, mean, e in zip(names, values.mean(axis=0), error, strict=True)
    )
    print(f"  {label:46s} {'   '.join(cells)}", flush=True)


def timed(model, A, y):
    """Seconds of a fit."""
    start = time.perf_counter()
    model.fit(A, y)
    return time.perf_counter() - start


def mnist(folder, n, seed, dims=50):
    """Scores of n rows of MNIST, or of digits where that is all there is."""
    found = load("mnist", folder, 20_000) or load_digits(return_X_y=True)
    return scores(*found, min(n, len(found[0]) // 2), min(dims, found[0].shape[1]), seed)


def starts(folder, seeds):
    """Start of LMNN's search: seconds, steps, the objective in thousands, 5-NN accuracy."""
    for n in (300, 1000, 3000):
        for label, settings in {
            "pca, rescaled (default)": {},
            "pca, as it is, rows of unit spread": {"rescale": False},
            "pca, as it is, rows 100 times larger": {"rescale": False, "unit": 100},
            "lda, rescaled": {"init": "lda", "n_components": None},
            "random, rescaled": {"init": "random"},
            "pca, 10 steps": {"max_iter": 10},
        }.items():
            values = []
            for seed in range(seeds):
                A, y, B, truth = mnist(folder, n, seed)
                chosen = dict(settings)
                unit = chosen.pop("unit", 1)
                model = LMNN(**chosen)
                seconds = timed(model, unit * A, y)
                accuracy = nearest_accuracy(model, unit * A, y, unit * B, truth)
                values.append([seconds, model.n_iter_, model.loss_ / 1e3, accuracy])
            line(f"{n} rows, {label}", values, ("s", "steps", "f", "%"))


def kept(folder, seeds):
    """Keep pairs between steps, or search each time: seconds, share of values by a search."""
    default = _large_margin.KEEP_FROM
    for n in (5000, 10_000):
        for label, start in (("kept", 0), ("searched each time", 10**9)):
            values = []
            for seed in range(min(seeds, 2)):
                A, y, *_ = mnist(folder, n, seed)
                _large_margin.KEEP_FROM = start
                made = []
                plain = _large_margin.Objective.__init__

                def record(self, *args, plain=plain, made=made, **kwargs):
                    plain(self, *args, **kwargs)
                    made.append(self)

                _large_margin.Objective.__init__ = record
                try:
                    model = LMNN()
                    seconds = timed(model, A, y)
                finally:
                    _large_margin.Objective.__init__ = plain
                    _large_margin.KEEP_FROM = default
                values.append([seconds, model.n_iter_, made[0].n_searches, model.loss_ / 1e3])
            line(f"{n} rows, {label}", values, ("s", "steps", "searches", "f"))


def drawn(folder, seeds):
    """Draw impostors at random: seconds, steps, the objective in full, 5-NN accuracy."""
    for n in (1000, 3000):
        for share in (None, 30_000, 10_000, 3000):
            values = []
            for seed in range(seeds):
                A, y, B, truth = mnist(folder, n, seed)
                model = LMNN(max_impostors=share, random_state=seed)
                seconds = timed(model, A, y)
                full = LMNN(init=model.components_, max_iter=1, tol=1e9).fit(A, y)
                accuracy = nearest_accuracy(model, A, y, B, truth)
                values.append([seconds, model.n_iter_, full.loss_ / 1e3, accuracy])
            line(f"{n} rows, {share or 'all'} pairs", values, ("s", "steps", "f", "%"))


def pull(folder, seeds):
    """5-fold accuracy of NCMML for several strengths, less that of the plain nearest mean."""
    del seeds
    for name in MEANS_SETS:
        found = load(name, folder)
        if found is None:
            continue
        X, y = found
        folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
        plain = np.mean([NearestCentroid().fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds])
        cells = []
        for strength in (0.0, 2.0, 20.0, 200.0):
            model = NCMML(regularization=strength)
            own = np.mean([model.fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds])
            cells.append(f"{strength:g}: {100 * (own - plain):+.2f}")
        print(f"  {name:14s} plain {100 * plain:.2f}   " + "   ".join(cells), flush=True)


def prior(folder, seeds):
    """Accuracy of BML on 300 rows for several prior variances, factorised or not."""
    for name in PAIR_SETS:
        found = load(name, folder)
        if found is None:
            continue
        X, y = found
        if name in STANDARDIZED:
            X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-12)
        for factorized in (False, True):
            for variance in (0.03, 0.3, 3.0, 30.0):
                values = []
                for seed in range(seeds):
                    n = min(300, len(X) // 2)
                    A, a, B, b = scores(X, y, n, min(30, X.shape[1]), seed)
                    model = SupervisedBML(prior_variance=variance, factorized=factorized).fit(A, a)
                    values.append([nearest_accuracy(model, A, a, B, b), 100 * model.score(B, b)])
                label = f"{name}, variance {variance:g}" + (", factorised" if factorized else "")
                line(label, values, ("5-NN %", "own vote %"))


PARTS = {"starts": starts, "kept": kept, "drawn": drawn, "pull": pull, "prior": prior}


def main():
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", default=os.environ.get("BNCA_DATA"))
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    # Early ends and negative weights are part of what is compared.
    warnings.simplefilter("ignore")
    for name in options.part:
        print(f"\n{name}: {PARTS[name].__doc__.splitlines()[0]}")
        PARTS[name](options.data_dir, options.seeds)


if __name__ == "__main__":
    main()
