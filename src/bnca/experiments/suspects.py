"""Labels of a person's own table that may be wrong, by a learner that reckons with wrong labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from bnca.bayesian_nca import BayesianNCA
from bnca.experiments.problem import prepare
from bnca.experiments.tuning import quiet

if TYPE_CHECKING:
    from bnca.core.arrays import Integers
    from bnca.experiments.problem import Problem

MOST_ROWS = 3_000
"""Rows of larger tables that are looked at, drawn at random."""


class Suspect(NamedTuple):
    """A label that is more likely wrong than right.

    Attributes
    ----------
    row : int
        Where it stands in the table, from 0.
    given, likely : str
        The class that the table says, and the most probable one.
    probability : float
        That the class which the table says is the true one.
    """

    row: int
    given: str
    likely: str
    probability: float


class Suspects(NamedTuple):
    """What is to be said of the labels of a table.

    Attributes
    ----------
    found : list of Suspect
        The least probable labels first.
    n_rows : int
        How many were looked at.
    """

    found: list[Suspect]
    n_rows: int


def suspects(problem: Problem, components: int) -> Suspects | None:
    """Find labels that are more likely wrong than right.

    Parameters
    ----------
    problem : Problem
        Rows and classes; its labels are taken as they are, none is made wrong.
    components : int
        As in `bnca.experiments.plan.Plan`.

    Returns
    -------
    Suspects or None
        None where the learner as it comes has no probabilities of true labels.
    """
    rows = _looked_at(problem)
    X, _ = prepare(problem, rows, rows[:1], components)
    with quiet():
        model = BayesianNCA().fit(X, problem.y[rows])
    probability = getattr(model, "label_posterior_", None)
    if probability is None or probability.shape != (len(rows), len(problem.class_names)):
        return None
    given = problem.y[rows]
    of_given = probability[np.arange(len(rows)), given]
    likely = probability.argmax(axis=1)
    doubtful = np.flatnonzero((likely != given) & (of_given < 0.5))
    order = doubtful[np.argsort(of_given[doubtful], kind="stable")]
    names = problem.class_names
    found = [
        Suspect(int(problem.rows[rows[i]]), names[given[i]], names[likely[i]], float(of_given[i]))
        for i in order
    ]
    return Suspects(found, len(rows))


def _looked_at(problem: Problem) -> Integers:
    everything = np.arange(len(problem.y))
    if len(everything) <= MOST_ROWS:
        return everything
    some, _ = train_test_split(everything, train_size=MOST_ROWS, stratify=problem.y, random_state=0)
    return np.sort(some)
