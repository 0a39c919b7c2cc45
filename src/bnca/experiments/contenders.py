"""The methods that `bnca compare` compares, each with what cross-validation chooses for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bnca.exceptions import InputError
from bnca.experiments.everyday import everyday
from bnca.experiments.paper import methods
from bnca.experiments.spec import Method

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MEANINGS: Mapping[str, str] = {
    "KNN": "nearest neighbours by plain distance",
    "PCA": "nearest neighbours on principal components",
    "NCA": "neighbourhood component analysis",
    "NCMML": "nearest class mean under a learned distance",
    "LMNN": "large margin nearest neighbours",
    "BML": "Bayesian metric learning from pairs",
    "BNCA": "Bayesian neighbourhood component analysis as published, its prior tuned",
    "BNCA+": "BayesianNCA() with no setting touched: it settles everything by itself",
    "logistic": "logistic regression",
    "SVM": "support vector machine with an RBF kernel",
}
"""What each method is, in the order of tables; the first is what others are measured by."""

MOST_PAIRS = 50_000
"""Pairs that BML learns from; all pairs of a thousand rows are ten times as many."""


def contenders() -> list[Method]:
    """All methods, in the order of `MEANINGS`: those of the paper, and some beside."""
    from bnca.rivals import PCAMetric

    by_name = {method.name: method for method in methods()}
    pca = by_name.pop("PCA")
    bml = by_name["BML"]
    bml.learner.set_params(n_pairs=MOST_PAIRS)
    by_name |= {
        "KNN": Method("KNN", PCAMetric(), votes=pca.votes),
        "PCA": replace(pca, fits={"n_components": [2, 3, 5, 10, 20, 30]}),
        "NCMML": replace(by_name.pop("NCM"), name="NCMML"),
        **{method.name: method for method in everyday()},
    }
    return [by_name[name] for name in MEANINGS]


def chosen_names(asked: Sequence[str] | None) -> tuple[str, ...]:
    """Names of methods, in the order of `MEANINGS`, or say that there is no such method.

    Parameters
    ----------
    asked : sequence of str or None
        In any order, in small letters or capitals; None and nothing take all.

    Returns
    -------
    tuple of str
        Each once.
    """
    if not asked:
        return tuple(MEANINGS)
    plain = {name.casefold(): name for name in MEANINGS}
    strange = [name for name in asked if name.casefold() not in plain]
    if strange:
        raise InputError(
            f"--methods: there is no method {strange[0]!r}; there are {', '.join(MEANINGS)}."
        )
    wanted = {plain[name.casefold()] for name in asked}
    return tuple(name for name in MEANINGS if name in wanted)
