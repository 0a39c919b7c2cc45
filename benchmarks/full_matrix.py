"""Numbers behind docs/decisions: metrics with negative eigenvalues, and how to go about wide data.

    python benchmarks/full_matrix.py [--data-dir FOLDER] [--part semidefinite wide memory]

Parts: "semidefinite" compares what to do with a posterior mean that is no metric; "wide" compares
bases, rounds that look for neighbours again, and directions between classes, on many columns;
"estimator" compares bases in the whole estimator; "memory" fits the full matrix of 60 coordinates
to 2,000 rows.  Sets that are not in FOLDER (or BNCA_DATA) are skipped; scikit-learn's digits and
wine are always there.  Seconds are those of the processor, on one thread.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
import warnings
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_digits, load_wine

from bnca import BayesianNCA
from bnca.core import centers
from bnca.core.anchors import Anchors
from bnca.core.features import eigen_directions, pack, scores, unpack
from bnca.core.metric import BayesianMetric, eigenvalues
from bnca.core.smoothing import squared_distances
from bnca.core.solve import rough_optimum
from bnca.learning import Learning, evaluator, neighborhoods, problem
from bnca.neighbors import nearest
from bnca.votes import MEANS, Rows, Votes

SMALL = ("balance_scale", "ionosphere", "usps", "umist_faces", "caltech10_effnet", "trec_minilm")
WIDE = ("usps", "mnist", "umist_faces", "caltech10_effnet", "trec_minilm")

STANDARDIZED = ("wine", "ionosphere")
"""Sets whose columns have units of their own."""

TEST = 500
NEIGHBORS = 20
LEADING, LEADING_COORDINATES = 12, 64
SMOOTH_VOTE = MEANS // 2
"""A vote of middling width and ridge."""

MEASURES = ("5-NN", "1/d", "smooth", "log loss")


def load(name, folder):
    """Rows and labels, or None after a word on why there are none."""
    if name in {"digits", "wine"}:
        X, y = {"digits": load_digits, "wine": load_wine}[name](return_X_y=True)
    else:
        path = None if folder is None else Path(folder) / f"{name}.npz"
        if path is None or not path.exists():
            print(f"skipped: {name}.npz is not in the data folder")
            return None
        with np.load(path, allow_pickle=False) as file:
            X, y = file["X"], file["y"]
    if len(y) > 10_000:  # as good as all of them, and quick to turn into numbers
        kept = np.random.default_rng(0).permutation(len(y))[:10_000]
        X, y = X[kept], y[kept]
    X = X.reshape(len(y), -1).astype(np.float64)
    if name in STANDARDIZED:
        X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-12)
    return X, y


def draw(X, y, per_class, noise, seed):
    """Train on a few rows per class (half of them at most), part of their labels wrong."""
    rng = np.random.default_rng(seed)
    classes, y = np.unique(y, return_inverse=True)
    train = []
    for c in range(len(classes)):
        own = rng.permutation(np.flatnonzero(y == c))
        train.append(own[: min(per_class, (len(own) + 1) // 2)])
    train = np.concatenate(train)
    test = rng.permutation(np.setdiff1d(np.arange(len(y)), train))[:TEST]
    given = y[train].copy()
    wrong = rng.random(len(given)) < noise
    given[wrong] = (given[wrong] + rng.integers(1, len(classes), wrong.sum())) % len(classes)
    return X[train], given, X[test], y[test]


class Problem:
    """Training and test rows in principal coordinates."""

    def __init__(self, A, a, B, b, n_components=200):
        directions = eigen_directions(A, n_components)
        self.train, self.test = scores(A, directions), scores(B, directions)
        self.codes, self.truth = a, b
        self.n_classes = int(max(a.max(), b.max())) + 1
        ones = np.ones(len(a))
        self.rows = Rows(self.train, directions.axes, a, ones, self.n_classes)

    def telling_first(self):
        """Rotation to the coordinates of the basis "leading"."""
        rotation = centers.discriminating_first(self.train, self.rows.labels)
        return rotation[:, :LEADING_COORDINATES]

    def score(self, L, unit):
        """5-NN, 1/d vote of 20 and smoothed vote, and log loss of exp(-d²) over 20."""
        train, test = self.train @ L, self.test @ L
        squared = squared_distances(test, train)
        labels = np.eye(self.n_classes)[self.codes]
        order = np.argsort(squared, axis=1, kind="stable")[:, :NEIGHBORS]
        near = np.take_along_axis(squared, order, axis=1)

        def hits(votes):
            return float((votes.argmax(axis=1) == self.truth).mean())

        few = labels[order[:, :5]].sum(axis=1) + 1e-6 * labels[order[:, 0]]
        inverse = (labels[order] / np.sqrt(near + 1e-12)[:, :, None]).sum(axis=1)
        smooth = Votes(self.rows, L).voice(SMOOTH_VOTE)
        said = smooth.say(squared_distances(test, smooth.points))
        picks = np.exp((near[:, :1] - near) / unit)
        P = (labels[order] * picks[:, :, None]).sum(axis=1)
        P = np.maximum(P / P.sum(axis=1, keepdims=True), 1e-3)
        P /= P.sum(axis=1, keepdims=True)
        loss = -float(np.log(P[np.arange(len(P)), self.truth]).mean())
        return np.array([hits(few), hits(inverse), hits(said), loss])


def settings(variance, noise, full, tol=1e-3):
    """Picks around Euclidean distance; the flip rate is known."""
    return Learning(
        NEIGHBORS,
        full=full,
        prior_variance=variance,
        likelihood="picks",
        flip_rate=noise,
        curvature="exact",
        n_jobs=1,
        tol=tol,
    )


def as_map(weights, full, policy="clip"):
    """L with A = L Lᵀ for the matrix that weights stand for, made a metric in some way."""
    turn = np.eye(len(weights))
    values = weights
    if full > 1:
        block, side = np.linalg.eigh(unpack(weights, full))
        rest = weights[full * (full + 1) // 2 :]
        values = np.concatenate([block, rest])
        turn = np.eye(len(values))
        turn[:full, :full] = side
    values = np.abs(values) if policy == "absolute" else np.maximum(values, 0)
    return turn * np.sqrt(values)


def pulled_back(weights, prior_mean, full):
    """Move the mean towards a prior mean c·I until no eigenvalue is negative."""
    least, level = eigenvalues(weights, full).min(), eigenvalues(prior_mean, full)[0]
    share = max(0.0, -least / (level - least))
    return weights + share * (prior_mean - weights)


def constrained(evaluate, prior, weights, full):
    """Optimum among metrics: L-BFGS on factors, A = F Fᵀ and squares, from the clipped mean."""
    count = full * (full + 1) // 2
    values, turn = np.linalg.eigh(unpack(weights, full))
    # A factor that is zero has no slope: start a little inside.
    inside = 1e-2 * eigenvalues(prior.mean, full)[0]
    factor = turn * np.sqrt(np.maximum(values, inside))
    start = np.concatenate([factor.ravel(), np.sqrt(np.maximum(weights[count:], inside))])

    def weights_of(z):
        F = z[: full**2].reshape(full, full)
        return np.concatenate([pack(F @ F.T, full), z[full**2 :] ** 2])

    def objective(z):
        m = weights_of(z)
        sums = evaluate(m, "none")
        gap = m - prior.mean
        pull = prior.precision @ gap
        slope = sums.slope + pull
        F = z[: full**2].reshape(full, full)
        along = 2 * unpack(slope, full) @ F
        return (
            sums.loss + float(gap @ pull) / 2,
            np.concatenate([along.ravel(), 2 * slope[count:] * z[full**2 :]]),
        )

    options = {"maxiter": 60, "ftol": 1e-7}
    return weights_of(minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x)


POLICIES = ("clip", "pull back", "absolute", "constrain")


def one_semidefinite(case, basis, variance, noise):
    """Scores of each policy, how many eigenvalues are negative, and seconds."""
    if basis == "leading":
        rotation, full = case.telling_first(), LEADING
    else:
        rotation, full = np.eye(case.train.shape[1])[:, :20], 20
    coordinates = case.train @ rotation
    full = min(full, coordinates.shape[1])
    how = settings(variance, noise, full).within(len(coordinates))
    start = time.process_time()
    anchors, prior, unit = problem(coordinates, case.codes, case.rows.weights, how)
    evaluate = evaluator(anchors, how)
    mean = rough_optimum(evaluate, prior, tol=how.tol, bounded=False)
    seconds = time.process_time() - start
    share = np.mean(eigenvalues(mean, full) < 0)
    start = time.process_time()
    held = constrained(evaluate, prior, mean, full)
    further = time.process_time() - start
    maps = {
        "clip": as_map(mean, full),
        "pull back": as_map(pulled_back(mean, prior.mean, full), full),
        "absolute": as_map(mean, full, "absolute"),
        "constrain": as_map(held, full),
    }
    measured = np.array([case.score(rotation @ maps[policy], unit) for policy in POLICIES])
    return measured, share, seconds, further


def semidefinite(options):
    """What to do with a mean that is no metric: clip, pull back, absolute values, constrain."""
    total = {}
    for name in ("digits", "wine", *SMALL):
        found = load(name, options.data_dir)
        if found is None:
            continue
        for basis in ("leading", "full"):
            for variance in (3.0, 30.0):
                measured, shares, times = [], [], []
                for per_class in (10, 30):
                    for noise in (0.0, 0.3):
                        for seed in range(options.seeds):
                            case = Problem(*draw(*found, per_class, noise, seed))
                            values, share, *seconds = one_semidefinite(case, basis, variance, noise)
                            measured.append(values)
                            shares.append(share)
                            times.append(seconds)
                            total.setdefault((basis, variance, noise), []).append(values)
                print(
                    f"{name:17s} {basis:8s} variance {variance:4g}: {np.mean(shares):4.0%} negative"
                    f" (most {max(shares):.0%}), seconds {np.mean(times, axis=0).round(2)}"
                )
                show(np.array(measured))
    for (basis, variance, noise), values in total.items():
        print(f"all sets, {basis}, variance {variance:g}, noise {noise:.0%}")
        show(np.array(values))


def show(measured):
    """Mean of each policy; differences to the first, with standard errors over fits."""
    for at, policy in enumerate(POLICIES):
        line(policy, measured[:, at], measured[:, 0] if at else None)


def line(label, values, reference):
    """Print one row of measures."""
    scale = np.array([100, 100, 100, 1])
    text = "".join(
        f"{m} {v:6.3f}  " if m == "log loss" else f"{m} {v:5.1f}  "
        for m, v in zip(MEASURES, values.mean(axis=0) * scale, strict=True)
    )
    if reference is not None:
        gap = (values - reference) * scale
        error = gap.std(axis=0, ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else gap[0] * np.nan
        cells = zip(gap.mean(axis=0), error, strict=True)
        text += " | less first: " + "  ".join(f"{g:+.2f} ± {e:.2f}" for g, e in cells)
    print(f"    {label:22s} {text}", flush=True)


def with_neighbors(anchors, lists):
    """The same question asked of other neighbours."""
    weights = np.ones(len(anchors.scores))
    other = Anchors.informative(anchors.scores, anchors.codes, lists, weights)
    return replace(other, full=anchors.full, flips=anchors.flips)


def learned_map(case, rotation, full, how, rounds=0):
    """L and unit of a metric, neighbours looked for again in the learned metric."""
    coordinates = case.train @ rotation
    how = replace(how, full=min(full, coordinates.shape[1]))
    anchors, prior, unit = problem(coordinates, case.codes, case.rows.weights, how)
    mean = rough_optimum(evaluator(anchors, how), prior, bounded=False)
    for _ in range(rounds):
        L = as_map(mean, anchors.full)
        lists = nearest(coordinates @ L, NEIGHBORS, n_jobs=1).indices
        again = evaluator(with_neighbors(anchors, lists), how)
        mean = rough_optimum(again, prior, bounded=False)
    return rotation @ as_map(mean, anchors.full), unit


def dictionary_map(case, how):
    """Weights for the coordinates, and for directions that divide two classes, prior mean 0."""
    rotation = case.telling_first()
    coordinates = case.train @ rotation
    _, _, unit = problem(coordinates, case.codes, case.rows.weights, how)
    shrunk = centers.shrunk_map(coordinates, case.rows.labels, 0.3)
    means = centers.class_means(coordinates, case.rows.labels)
    first, second = np.triu_indices(len(means), 1)
    apart = (means[first] - means[second]) @ shrunk @ shrunk.T
    apart /= np.linalg.norm(apart, axis=1, keepdims=True) + 1e-300
    stack = np.hstack([np.eye(coordinates.shape[1]), apart[:: -(-len(apart) // 60)].T])
    count = stack.shape[1]
    level = np.where(np.arange(count) < coordinates.shape[1], how.prior_mean, 0.0)
    wide = replace(how, full=0, prior_mean=level)
    anchors, prior, _ = problem(
        coordinates @ stack / np.sqrt(unit),
        case.codes,
        case.rows.weights,
        replace(wide, rescale=False),
    )
    anchors = with_neighbors(anchors, nearest(coordinates, NEIGHBORS, n_jobs=1).indices)
    mean = rough_optimum(evaluator(anchors, wide), prior, bounded=False)
    return rotation @ stack @ as_map(mean, 0), unit


def wide_ways(case, how, slow):
    """Every way to learn on wide data, by name."""
    leading = case.telling_first()
    axes = np.eye(case.train.shape[1])
    unit = neighborhoods(case.train, NEIGHBORS, n_jobs=1)[1]
    ways = {
        "leading": lambda: learned_map(case, leading, LEADING, how),
        "Euclidean": lambda: (axes * np.sqrt(how.prior_mean), unit),
        "eigen": lambda: learned_map(case, axes, 0, how),
        "full 20": lambda: learned_map(case, axes[:, :20], 20, how),
        "full 20, telling": lambda: learned_map(case, leading[:, :20], 20, how),
        "1 round": lambda: learned_map(case, leading, LEADING, how, 1),
        "2 rounds": lambda: learned_map(case, leading, LEADING, how, 2),
        "dictionary": lambda: dictionary_map(case, how),
    }
    if slow >= 1:
        ways["full 40"] = lambda: learned_map(case, axes[:, :40], 40, how)
    if slow >= 2:
        ways["full 60"] = lambda: learned_map(case, axes[:, :60], 60, how)
    return ways


def wide(options):
    """Bases, rounds and a dictionary, on many columns; one metric, learned around Euclidean."""
    total, spent = {}, {}
    for name in ("digits", *WIDE):
        found = load(name, options.data_dir)
        if found is None:
            continue
        here, times = {}, {}
        for per_class in (10, 30):
            for noise in (0.0, 0.3):
                for seed in range(options.seeds):
                    slow = (seed < 1) + (per_class == 10 and seed < 2)
                    case = Problem(*draw(*found, per_class, noise, seed))
                    for variance in (0.3, 3.0) if per_class == 10 else (3.0,):
                        how = settings(variance, noise, 0)
                        ways = wide_ways(case, how, slow if variance == 3.0 else 0)
                        for label, way in ways.items():
                            start = time.process_time()
                            L, unit = way()
                            seconds = time.process_time() - start
                            key = (name, per_class, noise, seed, variance)
                            here.setdefault(label, {})[key] = case.score(L, unit)
                            times.setdefault(label, []).append(seconds)
        print(name, found[0].shape)
        compare(here, times)
        for label, cells in here.items():
            total.setdefault(label, {}).update(cells)
            spent.setdefault(label, []).extend(times[label])
    for noise in (0.0, 0.3):
        print(f"all sets, noise {noise:.0%}")
        kept = {way: {k: v for k, v in c.items() if k[2] == noise} for way, c in total.items()}
        compare(kept, spent)
    print("all sets")
    compare(total, spent)


def compare(cells, times):
    """Print each way, beside the first of them on the same cells."""
    first = next(iter(cells.values()))
    for label, values in cells.items():
        own = np.array(list(values.values()))
        reference = np.array([first[key] for key in values])
        line(f"{label} ({np.mean(times[label]):.2f} s)", own, reference)


class Absolute(BayesianMetric):
    """A metric whose negative eigenvalues count as if they were positive."""

    def components(self):
        """Return L, axes scaled by √|m_l|."""
        values, axes = self._spectrum(self.mean)
        return (axes * np.sqrt(np.abs(values))).T


class PulledBack(BayesianMetric):
    """A metric whose mean is moved towards a multiple of the identity until it is a metric."""

    def components(self):
        """Return L of that mean; all eigenvalues go the same part of the way to their average."""
        values, axes = self._spectrum(self.mean)
        least, level = min(values.min(), 0), values.mean()
        values = (
            values + least / (least - level) * (level - values) if least < 0 < level else values
        )
        return (axes * np.sqrt(np.maximum(values, 0))).T


VARIANTS = {
    "leading 12": {},
    "leading 20": {"LEADING": 20},
    "full 20": {"basis": "full", "n_components": 20},
    "eigen": {"basis": "eigen", "n_components": 200},
    "absolute": {"metric": Absolute},
    "pull back": {"metric": PulledBack},
}


def variant(basis="leading", n_components=None, LEADING=LEADING, metric=BayesianMetric):
    """Return an estimator, and what is to be different while it fits."""
    model = BayesianNCA(basis=basis, n_components=n_components, likelihood="picks", n_jobs=1)
    return model, (
        mock.patch("bnca.bayesian_nca.LEADING", LEADING),
        mock.patch("bnca.selection.BayesianMetric", metric),
    )


def estimator(options):
    """Bases, and what to do with a mean that is no metric, in the whole estimator."""
    total = {}
    for name in ("digits", *WIDE):
        found = load(name, options.data_dir)
        if found is None:
            continue
        here = {}
        for per_class, noise in ((10, 0.0), (10, 0.3), (30, 0.0), (30, 0.3)):
            for seed in range(options.seeds if per_class == 10 else 1):
                A, a, B, b = draw(*found, per_class, noise, seed)
                for label, different in VARIANTS.items():
                    model, (first, second) = variant(**different)
                    start = time.process_time()
                    with first, second:
                        model.fit(A, a)
                    seconds = time.process_time() - start
                    P = model.predict_proba(B)
                    column = np.searchsorted(model.classes_, b)
                    loss = -np.log(np.maximum(P[np.arange(len(b)), column], 1e-6)).mean()
                    value = (100 * (P.argmax(axis=1) == column).mean(), loss, seconds)
                    key = (name, per_class, noise, seed)
                    here.setdefault(label, {})[key] = value
        print(name)
        show_estimators(here)
        for label, values in here.items():
            total.setdefault(label, {}).update(values)
    print("all sets")
    show_estimators(total)


def show_estimators(here):
    """Mean accuracy, log loss and seconds, and the difference to the first on the same cells."""
    first = next(iter(here.values()))
    for label, values in here.items():
        accuracy, loss, seconds = np.mean(list(values.values()), axis=0)
        gap = np.array([np.subtract(value, first[key])[:2] for key, value in values.items()])
        error = gap.std(axis=0, ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else gap[0] * np.nan
        print(
            f"    {label:12s} accuracy {accuracy:5.2f} ({gap[:, 0].mean():+.2f} ± {error[0]:.2f})  "
            f"log loss {loss:.3f} ({gap[:, 1].mean():+.3f} ± {error[1]:.3f})  {seconds:.2f} s",
            flush=True,
        )


def memory(options):
    """Time and peak memory of the full matrix of 60 coordinates (1,830 weights), 2,000 rows."""
    name = "mnist"
    found = load(name, options.data_dir)
    if found is None:
        name, found = "digits", load("digits", None)
    X, y = found[0][:2000].astype(np.float32), found[1][:2000]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = BayesianNCA(
        basis="full",
        n_components=60,
        prior_center="euclidean",
        prior_variance=3.0,
        label_noise=0.0,
        vote="distance",
        n_jobs=1,
        tol=1e-3,
    )
    start, spent = time.perf_counter(), time.process_time()
    model.fit(X, y)
    seconds, spent = time.perf_counter() - start, time.process_time() - spent
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    p = len(model.metric_.mean)
    print(
        f"  {name}, {len(y)} rows, {p} weights: {seconds:.0f} s ({spent:.0f} s of processor), "
        f"{model.n_iter_} steps; peak memory {before / 1024:.0f} MB before, "
        f"{after / 1024:.0f} MB after (the kernel counts kilobytes); features in one array would "
        f"be {len(y) * NEIGHBORS * p * X.itemsize / 2**20:.0f} MB"
    )


PARTS = {"semidefinite": semidefinite, "wide": wide, "estimator": estimator, "memory": memory}


def main():
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data-dir", default=os.environ.get("BNCA_DATA"))
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    # Negative eigenvalues, and searches that end early, are part of what is measured.
    warnings.simplefilter("ignore")
    for part in options.part:
        print(f"\n{part}: {PARTS[part].__doc__.splitlines()[0]}", flush=True)
        PARTS[part](options)


if __name__ == "__main__":
    main()
