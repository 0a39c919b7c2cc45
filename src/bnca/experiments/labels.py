"""The column that holds the classes: found by its name, and looked at before anything is learned.

What cannot be told apart by classes is an `InputError` that says why and what to try.
"""

from __future__ import annotations

from difflib import get_close_matches
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bnca.exceptions import InputError
from bnca.experiments.entries import are_dates, as_numbers, as_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from bnca.core.arrays import Doubles, Integers

LEAST = 5
"""Rows that a class must have: to be learned from, tuned on and tested on."""

USUAL = ("label", "class", "target", "species", "category", "outcome", "diagnosis", "y", "type")
"""Names that columns of labels often have."""

NAMED = 12
"""Names or classes that a message lists; of longer lists it says how many more there are."""


class Labels(NamedTuple):
    """Classes of the rows that are used.

    Attributes
    ----------
    rows : (n,)
        Positions of those rows in the table.
    y : (n,)
        Class codes, 0 .. n_classes - 1.
    class_names : tuple of str
        Name of each class.
    notes : list of str
        What a person has to know.
    """

    rows: Integers
    y: Integers
    class_names: tuple[str, ...]
    notes: list[str]


def find_column(names: Sequence[str], wanted: str, option: str) -> str:
    """Name of a column as the table has it; where there is none, say which ones are like it.

    Parameters
    ----------
    names : sequence of str
        All columns.
    wanted : str
        What was asked for; capitals and spaces around it do not matter where no other is meant.
    option : str
        Where it was asked for, such as "--label".

    Returns
    -------
    str
        One of the names.
    """
    if wanted in names:
        return wanted
    plain = {name.casefold(): name for name in names}
    alike = [name for name in names if name.casefold() == wanted.strip().casefold()]
    if len(alike) == 1:
        return alike[0]
    close = get_close_matches(wanted.strip().casefold(), plain, n=3, cutoff=0.6)
    advice = f" Is it {' or '.join(repr(plain[c]) for c in close)}?" if close else ""
    raise InputError(
        f"{option}: there is no column {wanted!r}.{advice} The columns are {listed(names)}."
    )


def usual_label(names: Sequence[str]) -> str | None:
    """Name of the column that most likely holds labels, if any looks like it."""
    plain = {name.casefold(): name for name in reversed(names)}
    return next((plain[usual] for usual in USUAL if usual in plain), None)


def listed(names: Sequence[str]) -> str:
    """Names in a sentence, not too many of them."""
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def read_labels(values: pd.Series[Any], name: str, bins: int | None = None) -> Labels:
    """Classes from a column.

    Parameters
    ----------
    values : Series
        The column.
    name : str
        Its name, for messages.
    bins : int or None
        Cut numbers into that many classes of about equally many rows; None takes values as classes.

    Returns
    -------
    Labels
        Without rows that have no label, and without classes of less than `LEAST` rows.
    """
    text = as_text(values)
    known = np.flatnonzero(text.notna())
    if not len(known):
        raise InputError(f"--label: the column {name!r} is empty.")
    notes = []
    if len(known) < len(text):
        notes.append(f"{len(text) - len(known):,} rows without a label are left out.")
    present = text.iloc[known]
    if bins is not None:
        codes, names = _cut(as_numbers(present), name, bins)
    else:
        _refuse_what_is_no_class(present, name)
        found, codes = np.unique(present.to_numpy(dtype=str), return_inverse=True)
        names = _in_order(found.tolist())
        codes = np.array([names.index(label) for label in found])[codes]
    counts = np.bincount(codes, minlength=len(names))
    small = np.flatnonzero(counts < LEAST)
    if len(small):
        said = listed([f"{names[c]!r} ({counts[c]})" for c in small])
        left_out = f"classes of fewer than {LEAST} rows: {said}"
        if len(names) - len(small) < 2:
            raise InputError(
                f"--label: of the classes in {name!r}, {len(names) - len(small)} "
                f"{'has' if len(names) - len(small) == 1 else 'have'} {LEAST} rows or more, and "
                f"two are needed to compare anything. Too small are {said}."
            )
        notes.append(f"Left out are {counts[small].sum():,} rows of {left_out}.")
    kept = counts >= LEAST
    code = np.cumsum(kept) - 1
    stays = kept[codes]
    return Labels(
        known[stays],
        code[codes[stays]].astype(np.intp),
        tuple(n for n, keep in zip(names, kept, strict=True) if keep),
        notes,
    )


def _refuse_what_is_no_class(present: pd.Series[Any], name: str) -> None:
    """Refuse one value, numbers to predict, dates, and names of rows."""
    n, distinct = len(present), present.nunique()
    if distinct == 1:
        raise InputError(
            f"--label: the column {name!r} holds nothing but {present.iloc[0]!r}; there is nothing "
            "to tell apart."
        )
    numbers = as_numbers(present)
    if np.isfinite(numbers).all():
        whole = not np.any(numbers % 1)
        if distinct > 20 and n / distinct < (5 if whole else 10):
            raise InputError(
                f"--label: the column {name!r} holds {distinct:,} different numbers in {n:,} rows, "
                f"from {numbers.min():g} to {numbers.max():g}: it looks like a number to predict, "
                "and classes are compared here. --bins 3 cuts it into three classes: low, middle "
                "and high."
            )
    elif distinct > 20 and are_dates(present):
        raise InputError(f"--label: the column {name!r} holds dates, which are no classes.")
    elif distinct > 20 and n / distinct < 2:
        raise InputError(
            f"--label: the column {name!r} holds {distinct:,} different values in {n:,} rows: "
            "they look like names or ids of rows, not like classes."
        )


def _cut(numbers: Doubles, name: str, bins: int) -> tuple[Integers, list[str]]:
    """Classes of about equally many rows, by size."""
    if not np.isfinite(numbers).all():
        raise InputError(
            f"--bins: the column {name!r} must hold numbers only; "
            f"{np.count_nonzero(~np.isfinite(numbers)):,} entries are none."
        )
    edges = np.unique(np.quantile(numbers, np.arange(1, bins) / bins))
    edges = edges[edges < numbers.max()]
    if not len(edges):
        raise InputError(f"--bins: the column {name!r} holds nearly nothing but one number.")
    ends = [f"{edge:.6g}" for edge in edges]
    middle = [f"over {a} to {b}" for a, b in pairwise(ends)]
    names = [f"up to {ends[0]}", *middle, f"over {ends[-1]}"]
    return np.searchsorted(edges, numbers, side="left"), names


def _in_order(names: list[str]) -> list[str]:
    """Names in the order that a person expects: numbers by size, words by letters."""
    try:
        return sorted(names, key=lambda name: (float(name), name))
    except ValueError:
        return sorted(names, key=lambda name: (name.casefold(), name))
