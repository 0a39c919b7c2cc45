"""Numbers behind docs/decisions: negative weights, copies of rows, solvers, where neighbours are.

    python benchmarks/policies.py --data-dir FOLDER [--part negative copies]

Sets that are not in FOLDER (or BNCA_DATA) are skipped; scikit-learn's digits are always there.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from bnca import BayesianNCA, ProjectionWarning
from bnca.core.features import Directions, eigen_features, scores
from bnca.core.predictive import averaged_neighbor_probabilities, class_probabilities
from bnca.neighbors import nearest

warnings.simplefilter("ignore", ProjectionWarning)

SETS = ("balance_scale", "ionosphere", "mnist", "usps", "umist_faces", "caltech10_effnet")


def load(folder):
    """Name, rows and labels of each set at hand."""
    yield "digits", *load_digits(return_X_y=True)
    for name in SETS:
        path = None if folder is None else Path(folder) / f"{name}.npz"
        if path is None or not path.exists():
            print(f"skipped: {name}.npz is not in the data folder")
            continue
        with np.load(path) as file:
            X = file["X"].reshape(len(file["y"]), -1).astype(np.float64)
            yield name, X, file["y"]


def draw(X, y, per_class, noise, seed):
    """Train on a few rows per class, part of their labels wrong; test on 500 others."""
    rng = np.random.default_rng(seed)
    classes = np.unique(y)
    train = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:per_class] for c in classes])
    test = rng.permutation(np.setdiff1d(np.arange(len(y)), train))[:500]
    given = y[train].copy()
    wrong = rng.random(len(given)) < noise
    given[wrong] = (given[wrong] + rng.integers(1, len(classes), wrong.sum())) % len(classes)
    return X[train], given, X[test], y[test]


def probabilities(model, B, draws, candidates=None):
    """Average of the votes over given draws, of the model's own nearest rows or of others."""
    if candidates is None:
        candidates = nearest(model._embedding, model.n_neighbors_, model._embed(B)).indices
    queries = scores(B, Directions(model.metric_.directions, model._center))
    features = eigen_features(model._coordinates[candidates] - queries[:, None])
    votes = averaged_neighbor_probabilities(features, draws)
    return class_probabilities(votes, model._codes[candidates], len(model.classes_))


def report(title, rows):
    """Mean accuracy and log loss of each policy, over seeds."""
    for policy, values in rows.items():
        accuracy, loss = np.mean(values, axis=0)
        print(f"  {title:34s} {policy:34s} accuracy {100 * accuracy:5.2f} %   log loss {loss:.4f}")


def score(P, truth):
    """Accuracy and log loss."""
    floored = np.maximum(P, 1e-3)
    floored /= floored.sum(axis=1, keepdims=True)
    return (P.argmax(1) == truth).mean(), log_loss(truth, floored, labels=np.arange(P.shape[1]))


def negative(folder, seeds):
    """What negative weights do to votes; the prior is wide, so that there are some."""
    for name, X, y in load(folder):
        for noise in (0.0, 0.3):
            rows, count = {}, []
            for seed in range(seeds):
                A, a, B, b = draw(X, y, 20, noise, seed)
                model = BayesianNCA(prior_variance=10.0).fit(A, a)
                metric, rng = model.metric_, np.random.default_rng(0)
                raw = metric.sample(100, rng, project=False)
                count.append(np.mean(metric.mean < 0))
                for policy, weights in {
                    "mean, as it is": metric.mean[None],
                    "mean, negative weights at zero": np.maximum(metric.mean, 0)[None],
                    "draws, as they are": raw,
                    "draws, negative weights at zero": np.maximum(raw, 0),
                    "draws, absolute values": np.abs(raw),
                }.items():
                    rows.setdefault(policy, []).append(score(probabilities(model, B, weights), b))
            report(f"{name}, noise {noise:.0%}, {np.mean(count):.0%} negative", rows)


def copies(folder, seeds):
    """Merging copies of training rows or keeping them: every third row is there three times."""
    for name, X, y in load(folder):
        rows = {}
        for seed in range(seeds):
            A, a, B, b = draw(X, y, 20, 0.0, seed)
            A, a = np.vstack([A, A[::3], A[::3]]), np.concatenate([a, a[::3], a[::3]])
            for policy in ("merge", "keep"):
                model = BayesianNCA(duplicates=policy).fit(A, a)
                rows.setdefault(policy, []).append(score(model.predict_proba(B), b))
        report(name, rows)


def candidates(folder, seeds):
    """Voters nearest in the learned metric, or nearest in the starting space (K = 20)."""
    for name, X, y in load(folder):
        for noise in (0.0, 0.3):
            rows = {}
            for seed in range(seeds):
                A, a, B, b = draw(X, y, 20, noise, seed)
                model = BayesianNCA().fit(A, a)
                draws = model.metric_.sample(100, np.random.default_rng(0))
                queries = scores(B, Directions(model.metric_.directions, model._center))
                start = nearest(model._coordinates, model.n_neighbors_, queries).indices
                for policy, chosen in {"learned metric": None, "starting space": start}.items():
                    P = probabilities(model, B, draws, chosen)
                    rows.setdefault(policy, []).append(score(P, b))
            report(f"{name}, noise {noise:.0%}", rows)


def solvers(folder, seeds):
    """Steps to a relative change of 1e-6, and how far the end is from the tightest bound."""
    del seeds
    for name, X, y in load(folder):
        A, a, *_ = draw(X, y, 30, 0.0, 0)
        fits = {
            solver: BayesianNCA(solver=solver, max_iter=20000).fit(A, a)
            for solver in ("newton", "anderson", "published")
        }
        best = max(fit.lower_bound_ for fit in fits.values())
        for solver, fit in fits.items():
            print(
                f"  {name:18s} {solver:10s} {fit.n_iter_:6d} steps   "
                f"below the best bound by {best - fit.lower_bound_:.1e}"
            )


def prior(folder, seeds):
    """Prior mean and variance, in units of the data, over all sets and noise levels at hand."""
    rows = {}
    for _, X, y in load(folder):
        for per_class, noise in ((10, 0.0), (10, 0.3), (30, 0.0)):
            for seed in range(seeds):
                A, a, B, b = draw(X, y, per_class, noise, seed)
                for mean in (1.0, 4.0, 10.0):
                    for variance in (0.01, 0.1, 1.0, 10.0):
                        model = BayesianNCA(prior_mean=mean, prior_variance=variance).fit(A, a)
                        policy = f"mean {mean:g}, variance {variance:g}"
                        rows.setdefault(policy, []).append(score(model.predict_proba(B), b))
    report("all", rows)


PARTS = {
    "prior": prior,
    "negative": negative,
    "copies": copies,
    "candidates": candidates,
    "solvers": solvers,
}


def main():
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", default=os.environ.get("BNCA_DATA"))
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    for name in options.part:
        print(f"\n{name}: {PARTS[name].__doc__.splitlines()[0]}")
        PARTS[name](options.data_dir, options.seeds)


if __name__ == "__main__":
    main()
