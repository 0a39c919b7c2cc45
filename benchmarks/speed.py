"""What a fit and a prediction cost, each as a ratio to something everybody can run.

    python benchmarks/speed.py --data-dir FOLDER            every part
    python benchmarks/speed.py --data-dir FOLDER --part nca graph

FOLDER holds mnist.npz (arrays X, y); BNCA_DATA is used where --data-dir is not given.  Without it,
the parts that need MNIST are skipped.  The two sides of each ratio alternate within one run, and
the median is printed with the lowest and highest: only ratios mean anything on a busy machine.

On a machine that others use too, --clock cpu counts the processor time of all threads instead of
the time that passes; it is what both sides cost, but says nothing of how well threads are used.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import (
    KNeighborsClassifier,
    NearestNeighbors,
    NeighborhoodComponentsAnalysis,
)

from bnca import BayesianNCA, ProjectionWarning
from bnca.blocks import cut
from bnca.core.anchors import Anchors
from bnca.neighbors import nearest

warnings.simplefilter("ignore", ProjectionWarning)


def published(n_neighbors="auto", **settings):
    """The published model, with priors in units of the data and the fastest solver."""
    return BayesianNCA(n_neighbors, basis="eigen", **settings)


BLOCK_NUMBERS = 1 << 18
"""Feature values in a block of one pass, as in a fit."""

CLOCKS = {"wall": "perf_counter", "cpu": "process_time"}
clock = "perf_counter"
"""Function of the module time that is read; main sets it."""


def seconds(function, repeats=1):
    """Time of each of several calls."""
    now = getattr(time, clock)
    taken = []
    for _ in range(repeats):
        start = now()
        function()
        taken.append(now() - start)
    return taken


def spread(values, digits=1):
    """Median, with the lowest and highest."""
    low, mid, high = np.min(values), np.median(values), np.max(values)
    return f"{mid:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def verdict(ok):
    """One word beside each target."""
    return "met" if ok else "MISSED"


class Mnist:
    """PCA scores of a seeded sample of MNIST: unit scale, as for every method here."""

    def __init__(self, path, dims=50):
        with np.load(path) as file:
            X, y = file["X"].reshape(len(file["y"]), -1).astype(np.float32), file["y"]
        order = np.random.default_rng(0).permutation(len(X))
        self.X, self.y, self.dims = X[order], y[order], dims

    def split(self, n):
        """Take n rows to learn from, up to 5,000 others to test on."""
        train, test = self.X[:n], self.X[n : n + 5000]
        center = train.mean(0)
        scatter = (train - center).T @ (train - center)
        axes = np.linalg.eigh(scatter)[1][:, ::-1][:, : self.dims]
        A, B = ((part - center) @ axes for part in (train, test))
        unit = np.sqrt((A**2).sum(1).mean() / 2)
        A, B = (np.asarray(part / unit, dtype=np.float64) for part in (A, B))
        return A, self.y[:n], B, self.y[n : n + 5000]


def against_nca(mnist, repeats):
    """A fit beside scikit-learn's NCA (50 iterations at most, from the identity)."""
    for n, target in ((1000, None), (3000, 60), (10000, 200)):
        A, y, B, truth = mnist.split(n)
        published().fit(A, y)
        before = seconds(lambda: published().fit(A, y), repeats)
        nca = NeighborhoodComponentsAnalysis(init="identity", max_iter=50, random_state=0)
        (slow,) = seconds(lambda: nca.fit(A, y))
        after = seconds(lambda: published().fit(A, y), repeats)
        model = published().fit(A, y)
        accuracy = [
            KNeighborsClassifier(5).fit(m.transform(A), y).score(m.transform(B), truth)
            for m in (model, nca)
        ]
        ratio = slow / np.median(before + after)
        goal = "" if target is None else f"   target {target}: {verdict(ratio >= target)}"
        print(
            f"n = {n:6d}   NCA {slow:7.2f} s   BayesianNCA {spread(np.array(before + after), 3)} s"
            f"   {ratio:5.0f} times{goal}"
        )
        print(
            f"             5-NN accuracy {accuracy[1]:.4f} (NCA) {accuracy[0]:.4f} (BayesianNCA)"
            f"   target NCA - 0.005: {verdict(accuracy[0] >= accuracy[1] - 0.005)}"
        )


def against_graph(mnist, repeats):
    """A whole fit beside the exact neighbour graph alone, at 60,000 rows; peak memory."""
    A, y, *_ = mnist.split(60000)
    k = 20
    sums, ours, theirs = [], [], []
    for _ in range(repeats):
        ours += seconds(lambda: nearest(A, k))
        sums += seconds(lambda: published(k).fit(A, y))
        theirs += seconds(
            lambda: NearestNeighbors(n_neighbors=k, algorithm="brute").fit(A).kneighbors()
        )
    print(f"n = 60,000   fit {spread(sums, 2)} s")
    for name, graph in (("our exact graph", ours), ("scikit-learn's brute force", theirs)):
        ratio = np.array(sums) / np.array(graph)
        print(
            f"             {name} {spread(graph, 2)} s   fit / graph {spread(ratio, 2)}"
            f"   target 1.4: {verdict(np.median(ratio) <= 1.4)}"
        )


PEAK = """
import resource
from pathlib import Path
def peak():
    # The kernel's own mark: what getrusage gives a new process starts at its parent's peak.
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
"""


def memory(mnist):
    """Peak memory of a process of its own that fits 60,000 rows."""
    A, y, *_ = mnist.split(60000)
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"bnca-speed-{os.getpid()}.npz"
    np.savez(path, A=A, y=y)
    script = (
        f"{PEAK}\n"
        "import sys, numpy as np\n"
        "from speed import published\n"
        "z = np.load(sys.argv[1]); A, y = z['A'], z['y']\n"
        "before = peak()\n"
        "published(20).fit(A, y)\n"
        "print(before, peak())\n"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", script, str(path)],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        path.unlink()
    before, peak = map(float, done.stdout.split())
    print(
        f"n = 60,000   peak memory {peak:.2f} GB, {before:.2f} GB of it before the fit   "
        f"target 2: {verdict(peak < 2)}"
    )


def one_pass(mnist, repeats):
    """One pass of the update beside NumPy reading the same differences once.

    The bound: NumPy gathers the neighbours' rows and subtracts the anchors' rows into a buffer it
    has already, in blocks of the same size, on one thread.  A pass must do that too, then square
    the differences, form distances, exponentials, sums and the slope.
    """
    A, y, *_ = mnist.split(10000)
    k = 20
    lists = nearest(A, k).indices
    anchors = Anchors.informative(A, np.unique(y, return_inverse=True)[1], lists, np.ones(len(A)))
    size = BLOCK_NUMBERS // (k * A.shape[1])
    blocks = cut(len(anchors), size)
    scratch = np.empty(size * k * A.shape[1])
    mean = np.full(A.shape[1], 0.5)

    def read():
        for part in blocks:
            rows = anchors.neighbors[part]
            room = scratch[: rows.size * A.shape[1]].reshape(*rows.shape, -1)
            np.take(A, rows, axis=0, out=room, mode="clip")
            room -= A[anchors.rows[part], None]

    def update():
        for part in blocks:
            anchors.statistics(part, mean, "none", scratch)

    read(), update()
    pairs = [(seconds(read)[0], seconds(update)[0]) for _ in range(4 * repeats)]
    ratio = [b / a for a, b in pairs]
    print(
        f"n = 10,000, one thread   read {spread([1e3 * a for a, _ in pairs])} ms   "
        f"update {spread([1e3 * b for _, b in pairs])} ms   ratio {spread(ratio, 2)}   "
        f"target 2: {verdict(np.median(ratio) <= 2)}"
    )


def importing(repeats):
    """Import time beside that of sklearn.neighbors, each in a fresh interpreter."""

    def start(module):
        script = f"from time import {clock} as now; t = now(); import {module}; print(now() - t)"
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        return float(done.stdout)

    start("bnca"), start("sklearn.neighbors")
    pairs = [(start("bnca"), start("sklearn.neighbors")) for _ in range(4 * repeats)]
    ratio = [a / b for a, b in pairs]
    print(
        f"import bnca {spread([1e3 * a for a, _ in pairs], 0)} ms   sklearn.neighbors "
        f"{spread([1e3 * b for _, b in pairs], 0)} ms   ratio {spread(ratio, 2)}   "
        f"target 1.15: {verdict(np.median(ratio) <= 1.15)}"
    )


def small(repeats):
    """A fit of 100 rows and 10 columns beside KNeighborsClassifier's fit and one predict."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:100, 20:30], y[:100]

    def plain():
        KNeighborsClassifier().fit(X, y).predict(X[:1])

    def ours():
        published().fit(X, y)

    plain(), ours()
    pairs = [(seconds(plain)[0], seconds(ours)[0]) for _ in range(20 * repeats)]
    ratio = [b / a for a, b in pairs]
    print(
        f"n = 100, d = 10   KNN {1e3 * np.median([a for a, _ in pairs]):.2f} ms   "
        f"BayesianNCA {1e3 * np.median([b for _, b in pairs]):.2f} ms   ratio {spread(ratio)}   "
        f"target 10: {verdict(np.median(ratio) < 10)}"
    )


def drawing(mnist, repeats):
    """Predicting 10,000 rows with 100 posterior draws beside the plug-in."""
    rows = np.concatenate(mnist.split(10000)[2:3] * 2)
    for n in (1000, 3000, 10000):
        A, y, *_ = mnist.split(n)
        model = published(n_samples=100).fit(A, y)

        def predict(vote, model=model):
            model.set_params(vote=vote).predict_proba(rows)

        predict("softmax"), predict("posterior")
        pairs = [
            (*seconds(lambda: predict("softmax")), *seconds(lambda: predict("posterior")))
            for _ in range(2 * repeats)
        ]
        ratio = [b / a for a, b in pairs]
        print(
            f"{len(rows)} rows, {n} training rows   plug-in "
            f"{spread([1e3 * a for a, _ in pairs], 0)} ms   100 draws "
            f"{spread([1e3 * b for _, b in pairs], 0)} ms   ratio {spread(ratio, 2)}   "
            f"target 3: {verdict(np.median(ratio) <= 3)}"
        )


def default(mnist, repeats):
    """The default fit with everything chosen, beside one fit of the metric that it settles on."""
    for n, target in ((300, 1.0), (3000, None), (10000, 15.0)):
        A, y, B, truth = mnist.split(n)
        model = BayesianNCA().fit(A, y)
        chosen = model.choices_[0]["center"]
        one = BayesianNCA(
            prior_center=chosen, prior_variance=3.0, label_noise=model.label_noise_, vote="softmax"
        )
        one.fit(A, y)
        times = min(repeats, 2 if n > 5000 else repeats)
        pairs = [
            (*seconds(lambda: BayesianNCA().fit(A, y)), *seconds(lambda: one.fit(A, y)))
            for _ in range(times)
        ]
        whole, single = (np.array(side) for side in zip(*pairs, strict=True))
        goal = "" if target is None else f"   target {target:g}: {verdict(whole.max() < target)}"
        print(
            f"n = {n:6d}, d = {A.shape[1]}   default fit {spread(whole, 2)} s{goal}   one fit "
            f"{spread(single, 3)} s   ratio {spread(whole / single)}   accuracy "
            f"{model.score(B, truth):.4f}"
        )


PARTS = {
    "nca": against_nca,
    "graph": against_graph,
    "memory": memory,
    "pass": one_pass,
    "import": importing,
    "small": small,
    "draws": drawing,
    "default": default,
}


def main():
    """Run the parts asked for."""
    global clock  # noqa: PLW0603 - one setting of the whole run
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("BNCA_DATA"))
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    options = parser.parse_args()
    clock = CLOCKS[options.clock]
    path = None if options.data_dir is None else Path(options.data_dir) / "mnist.npz"
    mnist = Mnist(path) if path is not None and path.exists() else None
    for name in options.part:
        function = PARTS[name]
        needs = function.__code__.co_varnames[: function.__code__.co_argcount]
        print(f"\n{name}: {function.__doc__.splitlines()[0]}")
        if "mnist" in needs and mnist is None:
            print("skipped: mnist.npz is not in the data folder (--data-dir or BNCA_DATA)")
            continue
        given = {"mnist": mnist, "repeats": options.repeats}
        function(**{key: given[key] for key in needs})


if __name__ == "__main__":
    main()
