"""What `bnca compare` does with a problem: which rows are split how, which methods take part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.model_selection import train_test_split

from bnca.exceptions import InputError
from bnca.experiments.contenders import chosen_names
from bnca.experiments.problem import COMPONENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bnca.core.arrays import Integers
    from bnca.experiments.problem import Problem

MOST_TRAIN, MOST_TEST = 1_000, 5_000
"""Rows that are trained and tested on at most, unless more training rows are asked for."""

TRAIN_SHARE = 0.7
"""Share of the rows to train on, unless told otherwise."""

TEST_SHARE = 0.3
"""Share of the rows to test on, at most: splits that share most test rows repeat each other."""


@dataclass(frozen=True)
class Plan:
    """What is done with a problem.

    Attributes
    ----------
    n_train, n_test : int
        Rows of each split.
    noise : float
        Share of training labels that are made wrong; test labels stay as they are.
    seeds : tuple of int
        One split each.
    methods : tuple of str
        Names of `bnca.experiments.contenders.MEANINGS`, in their order.
    components : int
        Wider tables are reduced to so many principal components; 0 keeps all columns.
    """

    n_train: int
    n_test: int
    noise: float
    seeds: tuple[int, ...]
    methods: tuple[str, ...]
    components: int = COMPONENTS


def plan(
    problem: Problem,
    *,
    size: float | None = None,
    noise: float = 0.0,
    seeds: Sequence[int] = tuple(range(10)),
    methods: Sequence[str] | None = None,
    components: int = COMPONENTS,
) -> Plan:
    """Settle what is done, or say why it cannot be.

    Parameters
    ----------
    problem : Problem
        Rows and classes.
    size : float or None
        Training rows, or their share where it is below 1; None takes `TRAIN_SHARE` of the rows,
        `MOST_TRAIN` at most.
    noise : float
        Share of training labels to make wrong.
    seeds : sequence of int
        One split each.
    methods : sequence of str or None
        Names, in any order and in small letters or capitals; None takes all.
    components : int
        As in `Plan`.

    Returns
    -------
    Plan
        With numbers of rows that leave each class a chance to be trained and tested on.
    """
    n, n_classes = len(problem.y), len(problem.class_names)
    if size is None:
        n_train = min(round(TRAIN_SHARE * n), MOST_TRAIN)
    else:
        n_train = round(size * n) if size < 1 else int(size)
    least = 2 * n_classes
    if not least <= n_train <= n - n_classes:
        room = f"from {least:,} to {n - n_classes:,}" if least <= n - n_classes else "more rows"
        raise InputError(
            f"--size: {n_train:,} of {n:,} rows cannot be trained on: {n_classes} classes need "
            f"two training rows and one test row each. Try {room}, or fewer classes."
        )
    return Plan(
        n_train,
        min(n - n_train, max(round(TEST_SHARE * n), n_classes), MOST_TEST),
        noise,
        tuple(seeds),
        chosen_names(methods),
        components,
    )


def split(y: Integers, plan: Plan, seed: int) -> tuple[Integers, Integers]:
    """Positions of training and test rows, the classes having their natural shares in both."""
    train, test = train_test_split(
        np.arange(len(y)),
        train_size=plan.n_train,
        test_size=plan.n_test,
        stratify=y,
        random_state=seed,
    )
    return train, test
