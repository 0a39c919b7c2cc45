"""Comparisons that go beyond the paper: more sets, labels that people gave, everyday tools.

The cells of Tables 1 and 2 are the same records as in the paper's tables, so their rows are shared.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF

from bnca.experiments.draw import Draw, prepare, split
from bnca.experiments.everyday import everyday
from bnca.experiments.measure import measure_drawn
from bnca.experiments.paper import CALTECH_EFFNET, NOISE, methods, table1, table2
from bnca.experiments.spec import VOTERS, Cell, DataSpec, Experiment, Method, Study

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bnca.core.arrays import Doubles, Integers
    from bnca.datasets import Dataset
    from bnca.experiments.spec import Part

MOST_GP_ROWS = 400
"""Training rows of the largest cells that the Gaussian process takes part in: its cost is cubic."""

USPS = DataSpec("usps", "USPS", n_components=50, published_split=True)
TREC = DataSpec("trec_minilm", "TREC (MiniLM)", n_components=50, published_split=True)
TREC_RANDOM = DataSpec(
    "trec_minilm",
    "TREC (MiniLM), random rows",
    n_components=50,
    remark="The published test questions have other shares of classes than the rest.",
)
BANKING = DataSpec(
    "banking77_minilm",
    "Banking77 (MiniLM)",
    n_components=50,
    published_split=True,
    n_classes=20,
    remark="20 of 77 intents, drawn anew for each seed.",
)
CIFAR = DataSpec("cifar10n_effnet20k", "CIFAR-10N", n_components=50)

EMBEDDINGS = (
    ("caltech-effnet", CALTECH_EFFNET),
    ("usps", USPS),
    ("trec", TREC),
    ("trec-random", TREC_RANDOM),
    ("banking", BANKING),
)
"""Sets beside those of the paper: 10 and 30 rows of each class, 0 to 30 % noise."""

HUMAN = {"random": "y_random1", "worst": "y_worst"}
"""Labels that people gave: of one person, and the worst of three."""

HUMAN_SIZE, HUMAN_TEST = 100, 1000


class LabelsOnly(ClassifierMixin, BaseEstimator):
    """A classifier that states no probabilities: those here are 0 and 1.

    Parameters
    ----------
    classifier : estimator
        Not fitted.
    """

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: Doubles, y: Integers) -> Self:
        """Fit the classifier."""
        self.classifier_ = clone(self.classifier).fit(X, y)
        self.classes_ = self.classifier_.classes_
        return self

    def predict(self, X: Doubles) -> Any:
        """Return its labels."""
        return self.classifier_.predict(X)

    def predict_proba(self, X: Doubles) -> Doubles:
        """Return one for each predicted class."""
        said = np.searchsorted(self.classes_, self.predict(X))
        return np.asarray(np.eye(len(self.classes_))[said])


def learned() -> list[Method]:
    """Methods of the tables, and plain nearest neighbours: all votes, or weighted by distance."""
    from bnca.rivals import PCAMetric

    votes: dict[str, Sequence[Any]] = {"n_voters": VOTERS, "vote": ["uniform", "distance"]}
    weighted = votes | {"vote": ["distance"]}
    return [
        Method("KNN", PCAMetric(), votes=votes),
        Method("KNN by distance", PCAMetric(), votes=weighted),
        *methods(),
    ]


def tools() -> list[Method]:
    """What a person would reach for instead of a metric, tuned; GP where it can be afforded."""
    logistic, svm = everyday()
    grid = {f"classifier__{key}": values for key, values in svm.fits.items()}
    forest = RandomForestClassifier(100, random_state=0)
    lda = LinearDiscriminantAnalysis(solver="lsqr")
    return [
        logistic,
        Method("SVM", LabelsOnly(svm.learner), grid),
        Method("forest", forest, {"min_samples_leaf": [1, 3]}),
        Method("LDA", lda, {"shrinkage": ["auto", 0.1, 0.3, 0.6, 0.9]}),
    ]


def processes() -> list[Method]:
    """Gaussian process classification; amplitude and length are chosen like the settings of all."""
    kernels = [a * RBF(length) for length in (1.0, 2.0, 0.5) for a in (4.0, 30.0)]
    gp = GaussianProcessClassifier(optimizer=None)
    return [Method("GP", gp, {"kernel": kernels})]


def all_methods() -> list[Method]:
    """Everything that is compared where it can be afforded."""
    return [*learned(), *tools(), *processes()]


def affordable() -> list[Method]:
    """Everything but the Gaussian process."""
    return [*learned(), *tools()]


def accuracy(repeats: int = 30, human_repeats: int | None = None) -> list[Experiment | Study]:
    """Cells of Tables 1 and 2, of embeddings and of labels that people gave, with all methods.

    Parameters
    ----------
    repeats : int, default=30
        Number of seeds.
    human_repeats : int or None, default=None
        That of labels that people gave, which take longest; None is `repeats`.
    """
    seeds = tuple(range(repeats))
    out: list[Experiment | Study] = [_with_all(e) for e in (*table1(repeats), *table2(repeats))]
    for name, data in EMBEDDINGS:
        wide = 30 * (data.n_classes or 10) > MOST_GP_ROWS
        chosen = affordable if wide else all_methods
        out.append(Experiment(f"beyond/{name}", data, (10, 30), 300, chosen, NOISE, seeds=seeds))
    for name, labels in HUMAN.items():
        settings = {"labels": labels}
        chosen_seeds = seeds if human_repeats is None else tuple(range(human_repeats))
        out.append(Study(f"beyond/cifar-{name}", CIFAR, human, chosen_seeds, settings))
    return out


def _with_all(experiment: Experiment) -> Experiment:
    return Experiment(
        experiment.id,
        experiment.data,
        experiment.sizes,
        experiment.n_test,
        all_methods,
        experiment.noise,
        experiment.seeds,
    )


def human(part: Part, data: Dataset, place: Path | None) -> list[dict[str, Any]]:  # noqa: ARG001
    """Rows of one seed where the given training labels are those of people."""
    study = part.experiment
    key = zlib.crc32(f"{data.name}/people".encode())
    train, test = split(
        data,
        study.data,
        size=HUMAN_SIZE,
        reserve=HUMAN_SIZE,
        n_test=HUMAN_TEST,
        rng=np.random.default_rng([key, part.seed]),
    )
    given = data.extras[study.settings["labels"]][train].astype(np.intp)
    X, X_test = prepare(data.X[train], data.X[test], study.data)
    drawn = Draw(X, X_test, given, data.y[test], train, test, given != data.y[train])
    share = float(np.mean(drawn.flipped))
    cell = Cell(
        Experiment(study.id, study.data, (HUMAN_SIZE,), HUMAN_TEST, affordable),
        HUMAN_SIZE,
        round(share, 3),
        part.seed,
    )
    return measure_drawn(cell, affordable(), drawn)
