"""What each part of the default is worth: the numbers behind docs/decisions/0011.

    python benchmarks/defaults.py [--data-dir FOLDER] [--seeds 3] [--sets digits wine ...]
                                  [--variations default ...]

Each variation is `BayesianNCA()` with one part taken out or changed, on the same draws: a few rows
of each class, 0 or 30 % of the training labels wrong, test labels clean.  Printed are accuracy, log
loss and the estimated share of wrong labels, in means over sets and seeds, then accuracies set by
set.  Sets that are not in FOLDER (or BNCA_DATA) are skipped.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from unittest.mock import patch

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from bnca import BayesianNCA, bayesian_nca, selection
from bnca.core import averaging
from bnca.datasets import MissingData, load
from bnca.experiments.beyond import TREC
from bnca.experiments.draw import draw
from bnca.experiments.metrics import METRICS, predicted
from bnca.experiments.paper import BALANCE, CALTECH_SURF, MNIST, UMIST
from bnca.experiments.spec import DataSpec, Experiment
from bnca.votes import MEANS, N_VOTES

SETS = (
    (DataSpec("digits", "Digits", n_components=30), 20),
    (DataSpec("wine", "Wine", columns="z-score"), 20),
    (DataSpec("breast_cancer", "Cancer", columns="z-score"), 20),
    (BALANCE, 20),
    (MNIST, 20),
    (replace(UMIST, title="UMIST"), 10),
    (replace(CALTECH_SURF, title="SURF"), 20),
    (replace(TREC, title="TREC"), 20),
)
"""Sets and training rows of each class."""

NOISE = (0.0, 0.3)
SMOOTHED = list(range(MEANS))
LEARNED = list(range(MEANS + 1, N_VOTES))


class Outcome(NamedTuple):
    """What one fit came to."""

    accuracy: float
    log_loss: float
    flip_rate: float
    seconds: float


def silent(votes, stack):
    """Take votes out: they weigh nothing, and no metric is preferred for their sake."""
    held_out, prior = selection._held_out, selection._vote_prior

    def without_votes(*arguments):
        said = held_out(*arguments)
        said.reshape(-1, N_VOTES, *said.shape[1:])[:, votes] = 0
        return said

    def without_prior():
        log_prior = prior()
        log_prior[votes] = -np.inf
        return log_prior

    stack.enter_context(patch.object(selection, "_held_out", without_votes))
    stack.enter_context(patch.object(selection, "_vote_prior", without_prior))


def centers_alone(stack):
    """Let no metric vote that was learned around a centre; the one that is reported stays."""
    choose = bayesian_nca.choose

    def chosen(rows, how, centers, variances, flip_rates):
        choice = choose(rows, how, centers, (), flip_rates)
        return choice._replace(best=choice.best._replace(variance=variances[0]))

    stack.enter_context(patch.object(bayesian_nca, "choose", chosen))


def constant(module, name, value, stack):
    """Give a constant of a module another value."""
    stack.enter_context(patch.object(module, name, value))


VARIATIONS = {
    "default": ({}, None),
    "no learned class centres": ({}, partial(silent, LEARNED)),
    "no class means": ({}, partial(silent, [MEANS])),
    "no smoothed votes": ({}, partial(silent, SMOOTHED)),
    "smoothed votes only": ({}, partial(silent, [MEANS, *LEARNED])),
    "only the Euclidean centre": ({"prior_center": "euclidean"}, None),
    "no learned metrics": ({}, centers_alone),
    "no second look": ({}, partial(constant, selection, "DOUBTFUL", np.inf)),
    "labels taken as given": ({"label_noise": 0.0}, None),
    "power 0.5 of the likelihood": ({}, partial(constant, averaging, "POWER", 0.5)),
    'vote="posterior"': ({"vote": "posterior"}, None),
    "one weight for each axis": ({"basis": "eigen", "likelihood": "picks"}, None),
    "basis eigen (published model)": ({"basis": "eigen"}, None),
    "basis full": ({"basis": "full"}, None),
}
"""Parameters, and what is patched, by name."""


def outcome(drawn, parameters, change):
    """Fit and score one variation."""
    with ExitStack() as stack:
        if change is not None:
            change(stack)
        start = time.process_time()
        model = BayesianNCA(n_jobs=1, **parameters).fit(drawn.X, drawn.given)
        seconds = time.process_time() - start
    said = predicted(model.predict_proba(drawn.X_test), model.classes_, drawn.y_test)
    scores = METRICS["accuracy"](said), METRICS["log_loss"](said)
    return Outcome(100 * scores[0], scores[1], 100 * model.label_noise_, seconds)


def measure(names, sets, seeds, data_dir):
    """Outcomes of all variations, by set, noise and seed."""
    found = {}
    for spec, size in SETS:
        if spec.name not in sets:
            continue
        try:
            data = load(spec.name, data_dir)
        except MissingData as reason:
            print(f"skipped: {reason}")
            continue
        experiment = Experiment(
            f"defaults/{spec.title}", spec, (size,), 300, list, NOISE, tuple(range(seeds))
        )
        for cell in experiment.cells():
            drawn = draw(cell, data)
            found[spec.title, cell.noise, cell.seed] = [
                outcome(drawn, *VARIATIONS[name]) for name in names
            ]
        print(f"{spec.title}: done", flush=True)
    return found


def show(names, found):
    """Print means, and differences from the first variation with their standard errors."""
    keys = list(found)
    values = np.array([found[key] for key in keys])  # (draws, variations, fields)
    for noise in NOISE:
        here = values[[key[1] == noise for key in keys]]
        print(f"\n{noise:.0%} of the labels wrong, {len(here)} draws")
        print(f"{'':30s} accuracy   (difference)      log loss   (difference)    flips  seconds")
        for at, name in enumerate(names):
            mean = here[:, at].mean(axis=0)
            gaps = here[:, at, :2] - here[:, 0, :2]
            gap, error = gaps.mean(axis=0), gaps.std(axis=0, ddof=1) / np.sqrt(len(gaps))
            print(
                f"{name:30s}{mean[0]:8.1f}   {gap[0]:+5.1f} ± {error[0]:.1f} {mean[1]:14.3f}   "
                f"{gap[1]:+.3f} ± {error[1]:.3f} {mean[2]:7.1f} {mean[3]:8.2f}"
            )
    print("\nAccuracy by set, 0 % / 30 %")
    titles = list(dict.fromkeys(key[0] for key in keys))
    print(f"{'':30s}" + "".join(f"{title:>12s}" for title in titles))
    for at, name in enumerate(names):
        cells = [
            " / ".join(
                f"{values[[k[:2] == (title, noise) for k in keys], at, 0].mean():.1f}"
                for noise in NOISE
            )
            for title in titles
        ]
        print(f"{name:30s}" + "".join(f"{cell:>12s}" for cell in cells))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data-dir", default=None)
    parser.add_argument("--seeds", type=int, default=3)
    known = [spec.name for spec, _ in SETS]
    parser.add_argument("--sets", nargs="+", choices=known, default=known)
    parser.add_argument("--variations", nargs="+", choices=VARIATIONS, default=list(VARIATIONS))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # searches that end early are part of what is measured
    names = arguments.variations
    show(names, measure(names, arguments.sets, arguments.seeds, arguments.data_dir))


if __name__ == "__main__":
    main()
