"""Numbers behind docs/decisions/0008: whether intervals mean what they say.

    python benchmarks/intervals.py --data-dir FOLDER [--parts nuts simulated] [--seeds 2]

"nuts" holds posterior standard deviations on real labels against those of the No-U-Turn sampler, on
the same likelihood and prior; "simulated" draws weights from the prior and labels from the model,
and asks how often 90 % intervals cover the truth and whether its ranks are uniform.  Sets that are
not in FOLDER (or BNCA_DATA) are skipped.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass, replace

import numpy as np
from nuts import effective_size, r_hat, sample
from scipy.special import ndtr
from scipy.stats import chisquare
from sklearn.exceptions import ConvergenceWarning

from bnca import BayesianNCA, ProjectionWarning
from bnca.core.anchors import Anchors
from bnca.core.features import products
from bnca.core.solve import inverse
from bnca.datasets import MissingData, load
from bnca.learning import Learning, evaluator, posterior, prior_of, problem

warnings.simplefilter("ignore", ProjectionWarning)

SETS = {"balance_scale": 30, "wine": 20, "ionosphere": 30, "usps": 10, "digits": 10}
"""Training rows for each class."""

Z90 = 1.6448536269514722
"""Half the width of a 90 % interval, in standard deviations."""

PAIRS = 300

ANCHORS = 100


def rows_of(name, folder):
    """Rows, columns that never vary left out; those of tables scaled, pixels as they come."""
    data = load(name, folder)
    X = data.X.reshape(len(data.y), -1).astype(np.float64)
    X = X[:, X.std(axis=0) > 0]
    return (X if X.shape[1] >= 60 else X / X.std(axis=0)), data.y


def some(y, per_class, rng):
    return np.concatenate(
        [rng.permutation(np.flatnonzero(y == c))[:per_class] for c in np.unique(y)]
    )


def pair_features(coordinates, full, rng):
    pairs = rng.integers(0, len(coordinates), (PAIRS, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return products(coordinates[pairs[:, 0]] - coordinates[pairs[:, 1]], full)


def stds(covariance, features):
    """Standard deviations of distances, and of weights."""
    spread = features @ np.linalg.cholesky(covariance)
    return np.sqrt((spread**2).sum(axis=1)), np.sqrt(np.diag(covariance))


def log_posterior(anchors, prior, how):
    """Logarithm of the density, and its gradient."""
    evaluate = evaluator(anchors, how)

    def at(weights):
        sums = evaluate(weights, "none")
        gap = weights - prior.mean
        pull = prior.precision @ gap
        return -sums.loss - gap @ pull / 2, -sums.slope - pull

    return at


# Against the sampler.


def against_nuts(folder, seeds, names):
    """Ratio of our standard deviations to those of NUTS: median [least, largest]."""
    makers = {
        "default": lambda: BayesianNCA(n_jobs=1),
        "default, prior variance 3": lambda: BayesianNCA(prior_variance=3.0, n_jobs=1),
        "as published": lambda: BayesianNCA.as_published(n_components=30, n_jobs=1),
        "published, prior of 0006": lambda: BayesianNCA.as_published(
            n_components=30, rescale=True, prior_mean=4.0, prior_variance=0.1, n_jobs=1
        ),
    }
    for title, make in makers.items():
        print(f"\n{title}: standard deviation over that of NUTS")
        print(f"  {'':15s} {'p':>4s} {'distances':>18s} {'weights':>18s}", end="")
        print("  within 25 %  inverse Hessian    mean - mode in sd   NUTS: R-hat, size, diverged")
        for name in names:
            try:
                X, y = rows_of(name, folder)
            except MissingData as error:
                print(f"  skipped: {error}")
                continue
            for seed in range(seeds):
                train = some(y, SETS[name], np.random.default_rng(seed))
                print(f"  {name:15s} {nuts_row(make().fit(X[train], y[train]), seed)}", flush=True)


def nuts_row(model, seed):
    how, coordinates = model._learning, model._coordinates
    codes = model._codes
    anchors, prior, unit = problem(coordinates, codes, np.ones(len(codes)), how, model._truth)
    mean, covariance = model.metric_.mean * unit, model.metric_.covariance * unit**2
    laplace = inverse(evaluator(anchors, how)(mean, "exact"), prior)
    rng = np.random.default_rng(seed)
    draws = sample(log_posterior(anchors, prior, how), mean, laplace, rng, warmup=150, draws=250)
    features = pair_features(coordinates / np.sqrt(unit), anchors.full, rng)
    true = stds(np.cov(draws.flat.T), features)
    ours, plain = stds(covariance, features), stds(laplace, features)
    ratio = [a / b for a, b in zip(ours, true, strict=True)]
    near = [np.mean(np.abs(r - 1) < 0.25) for r in ratio]
    shift = features @ (draws.flat.mean(axis=0) - mean) / true[0]
    return (
        f"{len(mean):4d} {spread_of(ratio[0])} {spread_of(ratio[1])} "
        f"{100 * near[0]:4.0f} {100 * near[1]:4.0f} % {spread_of(plain[0] / true[0])} "
        f"{spread_of(shift)}  {r_hat(draws.values).max():.3f} "
        f"{effective_size(draws.values).min():5.0f} {draws.divergences:3d}"
    )


def spread_of(values):
    return f"{np.median(values):5.2f} [{values.min():4.2f}, {values.max():4.2f}]"


# Labels drawn from the model.


@dataclass
class World:
    """Anchors, and reference rows of fixed labels that they pick their neighbours from.

    Labels of anchors are independent given the weights, so the likelihood that they are drawn from
    is exactly the one that is maximised.
    """

    coordinates: np.ndarray
    labels: np.ndarray  # of the reference rows, which come first
    lists: np.ndarray
    full: int

    @classmethod
    def of(cls, X, y, reference, how, rng):
        """Some rows of each class as reference, and as many others as anchors."""
        first = some(y, reference, rng)
        rest = rng.permutation(np.setdiff1d(np.arange(len(y)), first))[:ANCHORS]
        rows = X[np.concatenate([first, rest])]
        left, strength, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
        kept = min(40, int(np.sum(strength > 1e-9 * strength[0])))
        coordinates = left[:, :kept] * strength[:kept]
        gaps = coordinates[len(first) :, None] - coordinates[None, : len(first)]
        squared = (gaps**2).sum(axis=2)
        lists = np.argsort(squared, axis=1)[:, : how.n_neighbors]
        unit = np.median(np.take_along_axis(squared, lists, axis=1).mean(axis=1))
        labels = np.unique(y[first], return_inverse=True)[1]
        return cls(coordinates / np.sqrt(unit), labels, lists, min(how.full, kept))

    @property
    def anchors(self):
        """Which rows are anchors."""
        return np.arange(len(self.labels), len(self.coordinates))

    def features(self):
        """Features of their neighbours."""
        gaps = self.coordinates[self.lists] - self.coordinates[self.anchors][:, None]
        return products(gaps, self.full)

    def draw(self, weights, features, how, rng):
        """Labels of the anchors, and what a learner is given."""
        squared = features @ weights
        pick = np.exp(squared.min(axis=1, keepdims=True) - squared)
        total = pick.cumsum(axis=1)
        chosen = (total < total[:, -1:] * rng.random((len(pick), 1))).sum(axis=1)
        labels = self.labels[self.lists[np.arange(len(pick)), chosen]]
        n_classes = int(self.labels.max()) + 1
        wrong = rng.random(len(labels)) < how.flip_rate
        labels = np.where(
            wrong, (labels + rng.integers(1, n_classes, len(labels))) % n_classes, labels
        )
        flips = (1 - how.flip_rate, how.flip_rate / (n_classes - 1))
        return Anchors(
            self.coordinates,
            np.concatenate([self.labels, labels]),
            self.anchors,
            self.lists,
            np.ones(len(labels)),
            (self.labels[self.lists] == labels[:, None]).astype(np.float64),
            full=self.full,
            flips=flips if how.likelihood == "picks" else None,
        )


def ours(anchors, prior, how):
    """The way of the estimator."""
    found = posterior(anchors, prior, how)
    return found.mean, found.covariance


def laplace(anchors, prior, how):
    """The inverse Hessian alone."""
    found = posterior(anchors, prior, replace(how, tol=2e-4))
    return found.mean, found.covariance


def expected(anchors, prior, how):
    """The inverse of the Hessian's average over the posterior, as a variational Gaussian has it."""
    mean, covariance = laplace(anchors, prior, how)
    evaluate = evaluator(anchors, how)
    normal = np.random.default_rng(0).standard_normal((8, len(mean)))
    for _ in range(3):
        steps = normal @ np.linalg.cholesky(covariance).T
        sums = [evaluate(mean + sign * s, "exact") for s in steps for sign in (1, -1)]
        covariance = inverse(sum(sums[1:], sums[0]) * (1 / len(sums)), prior)
    return mean, covariance


def with_curvature(curvature):
    """The way of the estimator with another curvature."""
    return lambda anchors, prior, how: ours(anchors, prior, replace(how, curvature=curvature))


def simulated(folder, simulations, names, *, tried):
    """Coverage of 90 % intervals, in %, and p-values of the ranks of the truth being uniform."""
    picks = Learning(20, 12, likelihood="picks", curvature="exact", n_jobs=1)
    published = Learning(20, prior_variance=0.1, n_jobs=1)
    cells = [
        (f"picks, V0 = {v}, {100 * e:.0f} % flipped", replace(picks, prior_variance=v, flip_rate=e))
        for v in (0.3, 3.0)
        for e in (0.0, 0.1)
    ]
    print(
        f"\nLabels of {ANCHORS} anchors drawn given 10 or 15 labelled reference rows of each class"
    )
    for name in names:
        try:
            X, y = rows_of(name, folder)
        except MissingData as error:
            print(f"  skipped: {error}")
            continue
        for title, how in [*cells, ("product, V0 = 0.1", published)]:
            ways = {"published": ours} if how is published else {"default": ours}
            if tried and how is not published:
                ways |= {"inverse Hessian": laplace, "expected Hessian": expected}
            elif tried:
                ways |= {c: with_curvature(c) for c in ("exact", "votes", "tempered")}
            start = time.perf_counter()
            reference = 15 if len(np.unique(y)) < 5 else 10
            world = World.of(X, y, reference, how, np.random.default_rng(0))
            for way, row in coverage(world, how, ways, simulations).items():
                print(f"  {name:15s} {title:30s} {way:16s} {row}", flush=True)
            print(f"  {'':15s} {time.perf_counter() - start:.0f} s", flush=True)


def coverage(world, how, ways, simulations):
    rng = np.random.default_rng(1)
    prior = prior_of(how, world.coordinates.shape[1], world.full)
    root = np.linalg.cholesky(np.linalg.inv(prior.precision))
    features, pairs = world.features(), pair_features(world.coordinates, world.full, rng)
    before = stds(root @ root.T, pairs)
    found = {way: [] for way in ways}
    for _ in range(simulations):
        truth = prior.mean + root @ rng.standard_normal(len(prior.mean))
        anchors = world.draw(truth, features, how, rng)
        for way, solver in ways.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                mean, covariance = solver(anchors, prior, how)
            std = stds(covariance, pairs)
            off = (pairs @ (truth - mean) / std[0], (truth - mean) / std[1])
            narrowed = [np.mean(s / b) for s, b in zip(std, before, strict=True)]
            inside = [np.mean(np.abs(z) < Z90) for z in off]
            # The typical distance, one distance and one weight have a rank each.
            typical = pairs.mean(axis=0)
            gap = typical @ (truth - mean) / np.sqrt(typical @ covariance @ typical)
            found[way].append([*inside, *narrowed, gap, off[0][0], off[1][0]])
    return {way: row_of(np.array(values)) for way, values in found.items()}


def row_of(values):
    mean, error = values.mean(axis=0), values.std(axis=0) / np.sqrt(len(values))
    ranks = [chisquare(np.bincount((10 * ndtr(z)).astype(int).clip(0, 9), minlength=10)).pvalue
             for z in values[:, 4:].T]  # fmt: skip
    return (
        f"distances {100 * mean[0]:5.1f} ± {100 * error[0]:.1f}  "
        f"weights {100 * mean[1]:5.1f} ± {100 * error[1]:.1f}  "
        f"sd / prior's {mean[2]:.2f} {mean[3]:.2f}  "
        f"ranks p = {ranks[0]:.3f} {ranks[1]:.3f} {ranks[2]:.3f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="folder of .npz files; or set BNCA_DATA")
    parts = ["nuts", "simulated"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--seeds", type=int, default=1, help="training sets of each data set")
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--tried", action="store_true", help="what was not chosen, too")
    given = parser.parse_args()
    if "nuts" in given.parts:
        against_nuts(given.data_dir, given.seeds, given.sets)
    if "simulated" in given.parts:
        simulated(given.data_dir, given.simulations, given.sets, tried=given.tried)


if __name__ == "__main__":
    main()
