"""What methods are compared on: the rows and classes of a person's table, or of a built-in set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bnca.datasets import load
from bnca.exceptions import InputError
from bnca.experiments.columns import Column, encode
from bnca.experiments.draw import prepare as common_steps
from bnca.experiments.labels import find_column, listed, read_labels
from bnca.experiments.spec import DataSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from bnca.core.arrays import Doubles, Integers
    from bnca.experiments.columns import Encoded

COMPONENTS = 50
"""Principal components that wide tables are reduced to, unless told otherwise."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows with classes.

    Attributes
    ----------
    title : str
        What it is called in sentences.
    X : (n, d)
        Numbers, nan where one is missing.
    blocks : (d,)
        Columns of X that belong together, as they are one category, have the same number.
    y : (n,)
        Class codes, 0 .. n_classes - 1.
    rows : (n,)
        Where each row stands in the table, from 0.
    class_names : tuple of str
        Name of each class.
    columns : list of Column
        What became of each column of the table.
    notes : list of str
        What a person has to know.
    standardize : bool
        Whether each column is centred and divided by its spread.
    """

    title: str
    X: Doubles
    blocks: Integers
    y: Integers
    rows: Integers
    class_names: tuple[str, ...]
    columns: list[Column]
    notes: list[str]
    standardize: bool


class Choices(NamedTuple):
    """What a person says of the columns of a table.

    Attributes
    ----------
    label : str
        The column that holds the classes.
    bins : int or None
        Number of classes to cut a column of numbers into.
    use : sequence of str
        Columns to use, and no others; empty takes all that can be used.
    drop : sequence of str
        Columns to leave out.
    categories : sequence of str
        Columns whose numbers are codes.
    standardize : bool
        Whether each column is centred and divided by its spread.
    """

    label: str
    bins: int | None = None
    use: Sequence[str] = ()
    drop: Sequence[str] = ()
    categories: Sequence[str] = ()
    standardize: bool = True


def built_in() -> Problem:
    """scikit-learn's digits: pixels have a unit in common, so they stay as they are."""
    data = load("digits")
    X = np.asarray(data.X, dtype=np.float64)
    return Problem(
        "scikit-learn's digits",
        X,
        np.arange(X.shape[1]),
        data.y,
        np.arange(len(data.y)),
        data.class_names,
        [Column(name, "number", "") for name in data.feature_names or ()],
        [],
        standardize=False,
    )


def from_table(frame: pd.DataFrame, choices: Choices, title: str) -> Problem:
    """Rows and classes from a table.

    Parameters
    ----------
    frame : DataFrame
        What `bnca.experiments.table.read_table` returns.
    choices : Choices
        Which columns are what.
    title : str
        What the table is called.

    Returns
    -------
    Problem
        Rows with a label, columns with something to learn from.
    """
    names = list(frame.columns)
    label = find_column(names, choices.label, "--label")
    labels = read_labels(frame[label], label, choices.bins)
    use, drop, categories = (
        [find_column(names, name, option) for name in asked]
        for asked, option in (
            (choices.use, "--use"),
            (choices.drop, "--drop"),
            (choices.categories, "--category"),
        )
    )
    if label in {*use, *drop}:
        raise InputError(f"{label!r} is the column of labels; name other columns to use or drop.")
    taken = [n for n in names if n != label and n not in drop and (not use or n in use)]
    rows = frame[taken].iloc[labels.rows].reset_index(drop=True)
    encoded = encode(rows, categories=categories, wanted=use)
    _refuse_nothing(encoded, label)
    asked = [Column(n, "dropped", "not asked for") for n in names if n not in {*taken, label}]
    return Problem(
        title,
        encoded.X,
        encoded.blocks,
        labels.y,
        labels.rows,
        labels.class_names,
        [*encoded.columns, *asked],
        [*labels.notes, *_suspicions(rows, encoded, labels.y)],
        choices.standardize,
    )


def prepare(problem: Problem, train: Integers, test: Integers, components: int) -> list[Doubles]:
    """Training and test rows as the methods get them; all that is fitted is fitted on training.

    Medians stand in for missing numbers.  A standardised category weighs as much as one number,
    however many levels it has.  More columns than `components` are reduced to so many principal
    components; 0 keeps all.
    """
    X, X_test = problem.X[train], problem.X[test]
    center = np.array([np.median(c[np.isfinite(c)]) if np.isfinite(c).any() else 0 for c in X.T])
    X, X_test = (np.where(np.isfinite(Z), Z, center) for Z in (X, X_test))
    if problem.standardize:
        largest = np.abs(X).max(axis=0)
        X, X_test = (Z / np.where(largest > 0, largest, 1) for Z in (X, X_test))  # squares may fit
        X_test = X_test - X.mean(axis=0)
        X = X - X.mean(axis=0)
        variance = np.zeros(problem.blocks.max() + 1)
        np.add.at(variance, problem.blocks, X.var(axis=0))
        spread = np.sqrt(np.where(variance > 1e-24, variance, 1))[problem.blocks]
        X, X_test = X / spread, X_test / spread
    spec = DataSpec(problem.title, problem.title, n_components=components or None)
    return list(common_steps(X, X_test, spec))


def _refuse_nothing(encoded: Encoded, label: str) -> None:
    if encoded.X.shape[1]:
        return
    said = listed([f"{c.name} ({c.note})" for c in encoded.columns]) or "there is no other"
    raise InputError(f"no column is left to learn {label!r} from: {said}.")


def _suspicions(rows: pd.DataFrame, encoded: Encoded, y: Integers) -> list[str]:
    """What makes a comparison too easy: copies of rows, and columns that give the label away."""
    out = []
    _, counts = np.unique(
        np.column_stack([np.nan_to_num(encoded.X), y]), axis=0, return_counts=True
    )
    copies = int((counts - 1).sum())
    if copies >= 0.02 * len(y):
        out.append(
            f"{copies:,} rows are copies of others: a copy of a training row may be tested on, "
            "which makes every accuracy look better than it is."
        )
    telling = [c.name for c in encoded.columns if c.kind != "dropped" and _tells(rows[c.name], y)]
    out += [
        f"The column {name!r} alone tells the class of every row. If it is another form of the "
        f"label, leave it out: --drop {name!r}."
        for name in telling
    ]
    return out


def _tells(values: pd.Series[object], y: Integers) -> bool:
    """Whether each of a few values goes with one class only."""
    known = values.notna()
    n_values, n_classes = int(values.nunique()), len(np.unique(y))
    if not known.all() or not n_classes <= n_values <= max(20, n_classes):
        return False
    classes = {(value, int(k)) for value, k in zip(values.astype(str), y, strict=True)}
    return len(classes) == n_values and len(y) >= 5 * n_values
