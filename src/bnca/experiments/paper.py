"""The paper's tables as records, and a small version of them that needs no data folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from bnca.experiments.spec import VOTERS, DataSpec, Experiment, Method

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bnca.bayesian_nca import BayesianNCA

    Grid: TypeAlias = dict[str, Sequence[Any]]

NOISE = (0.0, 0.1, 0.2, 0.3)
"""Shares of wrong training labels in Table 2."""

STEPS = (1, 3, 10, 30, 100)
"""How far NCA and LMNN may go: cross-validation decides, as going on overfits."""


def published_model(**overrides: Any) -> BayesianNCA:
    """Return the published method with a data-scaled prior, every setting that matters stated.

    Defaults may change; what the paper is reproduced with must not.
    """
    from bnca.bayesian_nca import BayesianNCA

    settings: dict[str, Any] = {
        "n_neighbors": 20,
        "basis": "eigen",
        "n_components": None,
        "prior_center": "euclidean",
        "prior_mean": 4.0,
        "prior_variance": 0.1,
        "likelihood": "product",
        "curvature": "bohning",
        "label_noise": 0.0,
        "rescale": True,
        "solver": "newton",
        "max_iter": 100,
        "tol": 1e-6,
        "vote": "posterior",
        "n_voters": None,
        "n_samples": 100,
        "duplicates": "merge",
        "n_jobs": 1,
        "random_state": 0,
    }
    return BayesianNCA(**(settings | overrides))


def methods() -> list[Method]:
    """Methods of the tables: the paper's six, then our own as it comes, with nothing tuned."""
    from bnca.bayesian_nca import BayesianNCA

    return [*paper_methods(), Method("BNCA+", BayesianNCA())]


def paper_methods() -> list[Method]:
    """The six methods of the paper, each with what cross-validation chooses.

    All vote by nearest training rows but NCM, which has a classifier of its own.
    """
    from bnca.rivals import LMNN, NCA, NCMML, PCAMetric, SupervisedBML

    plain: Grid = {"n_voters": VOTERS, "vote": ["uniform", "distance"]}
    averaged: Grid = {"n_voters": VOTERS, "vote": ["posterior", "distance"]}
    return [
        Method("PCA", PCAMetric(), {"n_components": [None, 3, 10, 20, 30]}, plain),
        # Below the number of classes NCA starts from the discriminant directions, else from PCA.
        Method("NCA", NCA(init="auto"), {"n_components": [None, 2, 9, 19]}, plain, STEPS),
        Method("NCM", NCMML(), {"regularization": [2.0, 20.0, 200.0, 2000.0]}),
        Method("LMNN", LMNN(), {"n_neighbors": [1, 3, 5]}, plain, STEPS),
        Method("BML", SupervisedBML(), {"prior_variance": [0.03, 0.3, 3.0]}, averaged),
        Method(
            "BNCA",
            published_model(),
            {
                "n_neighbors": [5, 10, 20],
                "prior_mean": [1.0, 4.0],
                "prior_variance": [0.01, 0.1, 1.0],
            },
            averaged,
        ),
    ]


BALANCE = DataSpec("balance_scale", "Balance", columns="z-score")
IONOSPHERE = DataSpec("ionosphere", "Ionosphere", columns="z-score")
SPAMBASE = DataSpec("spambase", "Spambase", columns="z-score")

CALTECH_SURF = DataSpec(
    "caltech10_surf",
    "Caltech-10 (SURF)",
    rows="l1",
    columns="z-score",
    n_components=50,
    remark="Stands in for the paper's Caltech-10: Office-Caltech images, features of its time.",
)
CALTECH_EFFNET = DataSpec(
    "caltech10_effnet",
    "Caltech-10 (EfficientNet)",
    columns="z-score",
    n_components=50,
    remark="Stands in for the paper's Caltech-10: Office-Caltech images, features of today.",
)
MNIST = DataSpec("mnist", "MNIST", n_components=50, published_split=True)
UMIST = DataSpec(
    "umist_faces",
    "FRGC-2 (UMIST)",
    n_components=50,
    rows_per_class=20,
    remark="Stands in for FRGC-2: 20 people, 20 images of each (19 of one).",
)
YALE = DataSpec(
    "yaleb_faces",
    "FRGC-2 (Yale B)",
    n_components=50,
    n_classes=20,
    rows_per_class=20,
    remark="Stands in for FRGC-2: 20 of 38 people, drawn anew for each seed, 20 images of each.",
)

PICTURES = (
    ("caltech-surf", CALTECH_SURF, 30, 300),
    ("caltech-effnet", CALTECH_EFFNET, 30, 300),
    ("mnist", MNIST, 30, 300),
    ("frgc-umist", UMIST, 10, 200),
    ("frgc-yaleb", YALE, 10, 200),
)
"""Sets of Tables 2 and 3: name, record, training rows of each class, test rows."""


def table1(repeats: int = 30) -> list[Experiment]:
    """Few training rows: three tables, 10, 20 and 30 rows of each class, 100 test rows."""
    sets = (("balance", BALANCE), ("ionosphere", IONOSPHERE), ("spambase", SPAMBASE))
    return [
        Experiment(f"table1/{name}", data, (10, 20, 30), 100, methods, seeds=tuple(range(repeats)))
        for name, data in sets
    ]


def table2(repeats: int = 30) -> list[Experiment]:
    """Wrong training labels: 0 to 30 % of them, on pictures; test labels stay clean."""
    return [
        Experiment(
            f"table2/{name}", data, (size,), n_test, methods, NOISE, seeds=tuple(range(repeats))
        )
        for name, data, size, n_test in PICTURES
    ]


def table3(repeats: int = 10) -> list[Experiment]:
    """Times of the fit alone, on Table 2's sets without noise, one cell at a time."""
    return [
        Experiment(
            f"table3/{name}",
            data,
            (size,),
            n_test,
            methods,
            seeds=tuple(range(repeats)),
            fit_repeats=3,
            alone=True,
        )
        for name, data, size, n_test in PICTURES
    ]


def quick(repeats: int = 10) -> list[Experiment]:
    """Small tables of the same shape, from what needs neither data folder nor network."""
    seeds = tuple(range(repeats))
    wine = DataSpec("wine", "Wine", columns="z-score")
    cancer = DataSpec("breast_cancer", "Breast cancer", columns="z-score")
    digits = DataSpec("digits", "Digits", n_components=30)
    return [
        Experiment("table1/balance", BALANCE, (10, 20, 30), 100, methods, seeds=seeds),
        Experiment("table1/wine", wine, (10, 20), 100, methods, seeds=seeds),
        Experiment("table1/cancer", cancer, (10, 20, 30), 100, methods, seeds=seeds),
        Experiment("table2/digits", digits, (30,), 300, methods, (0.0, 0.3), seeds=seeds),
        Experiment(
            "table3/digits",
            digits,
            (30,),
            300,
            methods,
            seeds=seeds[:2],
            fit_repeats=3,
            alone=True,
        ),
    ]


TABLES: Mapping[str, Callable[[], Sequence[Experiment]]] = {
    "table1": table1,
    "table2": table2,
    "table3": table3,
    "quick": quick,
}
"""What can be asked for by name."""
