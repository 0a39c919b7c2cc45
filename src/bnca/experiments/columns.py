"""Columns of a person's table: what kind each one is, and what numbers are made of it.

Nothing here looks at labels, and nothing is fitted: medians, means and spreads are those of the
training rows, see `bnca.experiments.draw.prepare`.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bnca.experiments.entries import are_dates, as_numbers, as_text

if TYPE_CHECKING:
    from collections.abc import Collection

    import pandas as pd

    from bnca.core.arrays import Doubles, Integers

MOST_LEVELS = 30
"""Levels of a category; rarer ones than the most frequent are taken together."""

MARKED = 0.05
"""From this share of missing numbers on, a column of its own tells which ones are missing."""

ALMOST = 0.9
"""Share of entries that makes a column of numbers, or one of values that never come twice."""

ID_NAME = re.compile(r"(.*[^a-z])?(id|uuid|guid|key|index|row|nr|no)([^a-z].*)?", re.IGNORECASE)
CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Column(NamedTuple):
    """What became of a column.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"number", "category", "dropped"}
        How it is used.
    note : str
        What a person has to know, or nothing.
    """

    name: str
    kind: str
    note: str


class Encoded(NamedTuple):
    """A table as numbers.

    Attributes
    ----------
    X : (n, d)
        Numbers, nan where one is missing.
    names : tuple of str
        Name of each column of X.
    blocks : (d,)
        Columns of X that belong together, as they are one category, have the same number.
    columns : list of Column
        What became of each column of the table.
    """

    X: Doubles
    names: tuple[str, ...]
    blocks: Integers
    columns: list[Column]


class _Part(NamedTuple):
    """Columns of X that one column of the table becomes, several blocks perhaps."""

    arrays: list[Doubles]
    names: list[str]
    kind: str
    note: str


def encode(
    frame: pd.DataFrame,
    *,
    categories: Collection[str] = (),
    wanted: Collection[str] = (),
) -> Encoded:
    """Numbers from all columns of a table that can be used.

    Parameters
    ----------
    frame : DataFrame
        Columns of any kind, without the labels.
    categories : collection of str
        Columns whose numbers are codes, such as postal codes.
    wanted : collection of str
        Columns to use even where their values look like ids.

    Returns
    -------
    Encoded
        Numbers, and what became of each column.
    """
    arrays: list[Doubles] = []
    names: list[str] = []
    blocks: list[int] = []
    columns: list[Column] = []
    for name in frame.columns:
        part = _part(name, frame[name], as_codes=name in categories, is_wanted=name in wanted)
        columns.append(Column(name, part.kind, part.note))
        for array, title in zip(part.arrays, part.names, strict=True):
            start = blocks[-1] + 1 if blocks else 0
            wide = array.reshape(len(frame), -1)
            arrays.append(wide)
            blocks += [start] * wide.shape[1]
            names += (
                [title] if wide.shape[1] == 1 else [f"{title}, {i}" for i in range(wide.shape[1])]
            )
    X = np.concatenate(arrays, axis=1) if arrays else np.empty((len(frame), 0))
    return Encoded(X, tuple(names), np.array(blocks, dtype=np.intp), columns)


def _part(name: str, values: pd.Series[Any], *, as_codes: bool, is_wanted: bool) -> _Part:
    """Numbers of one column, or why there are none."""
    import pandas as pd
    from pandas.api import types

    if as_codes:
        return _category(name, as_text(values), is_wanted=True)
    if types.is_numeric_dtype(values.dtype) and not types.is_complex_dtype(values.dtype):
        # Booleans count as numbers, 0 and 1.
        numbers = values.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan)
        infinite = int(np.isinf(numbers).sum())
        finite = np.where(np.isinf(numbers), np.nan, numbers)
        return _number(name, finite, infinite, is_wanted=is_wanted)
    reason = _unusable(values)
    if reason:
        return _dropped(reason)
    simple = pd.to_numeric(values.astype(object), errors="coerce").to_numpy(dtype=np.float64)
    if np.isfinite(simple).all():  # far quicker than entry by entry, and the rule
        return _number(name, simple, 0, is_wanted=is_wanted)
    return _from_text(name, as_text(values), is_wanted=is_wanted)


def _unusable(values: pd.Series[Any]) -> str:
    """Why entries are neither numbers nor words; nothing where they are."""
    import pandas as pd
    from pandas.api import types

    if types.is_datetime64_any_dtype(values.dtype) or types.is_timedelta64_dtype(values.dtype):
        return "dates are not used"
    words = types.is_object_dtype(values.dtype) or types.is_string_dtype(values.dtype)
    if not words and not isinstance(values.dtype, pd.CategoricalDtype):
        return f"values of the kind {values.dtype} are not used"
    if any(isinstance(v, (list, dict, set, tuple, bytes, np.ndarray)) for v in values):
        return "it holds lists or other things that are neither numbers nor words"
    return ""


def _from_text(name: str, text: pd.Series[Any], *, is_wanted: bool) -> _Part:
    """Numbers where nearly all entries are some, a category where not."""
    present = int(text.notna().sum())
    numbers = as_numbers(text)
    known = int(np.isfinite(numbers).sum())
    if present and known >= ALMOST * present:
        return _number(name, numbers, present - known, is_wanted=is_wanted)
    if are_dates(text):
        return _dropped("dates are not used")
    return _category(name, text, is_wanted=is_wanted)


def _number(name: str, numbers: Doubles, strange: int, *, is_wanted: bool) -> _Part:
    """Use numbers as they are; `strange` entries were no finite numbers, and count as missing."""
    present = numbers[np.isfinite(numbers)]
    if not len(present):
        return _dropped("it is empty")
    missing = len(numbers) - len(present)
    if np.ptp(present) == 0 and missing < MARKED * len(numbers):
        return _dropped("all its values are the same")
    reason = "" if is_wanted or missing else _numbering(name, numbers)
    if reason:
        return _dropped(reason)
    notes = [f"{strange} entries are no numbers, and count as missing"] if strange else []
    if not missing and not is_wanted and _are_distinct(numbers):
        notes.append(f"all its values differ; if it is an id, --drop {shlex.quote(name)}")
    arrays, names = [numbers], [name]
    if missing >= MARKED * len(numbers):
        arrays.append((~np.isfinite(numbers)).astype(np.float64))
        names.append(f"{name} is missing")
        notes.append(f"{missing} missing: the median stands in, and a column marks them")
    elif missing:
        notes.append(f"{missing} missing: the median stands in")
    return _Part(arrays, names, "number", "; ".join(notes))


def _numbering(name: str, numbers: Doubles) -> str:
    """Why numbers look like names of rows; nothing where they do not."""
    if not _are_distinct(numbers):
        return ""
    if np.ptp(numbers) < 1.05 * len(numbers):  # rows without a label may have been left out
        return "it only counts the rows"
    words = CAMEL_CASE.sub("_", name)
    return (
        "by its name and its values, all different, it is an id" if ID_NAME.fullmatch(words) else ""
    )


def _are_distinct(numbers: Doubles) -> bool:
    """Whether enough whole numbers are all different."""
    return (
        len(numbers) >= 20 and not np.any(numbers % 1) and len(np.unique(numbers)) == len(numbers)
    )


def _category(name: str, text: pd.Series[Any], *, is_wanted: bool) -> _Part:
    """One column for each level; a missing entry is a level of its own."""
    counts = text.value_counts()
    if not len(counts):
        return _dropped("it is empty")
    missing = int(text.isna().sum())
    if len(counts) == 1 and not missing:
        return _dropped("all its values are the same")
    if len(counts) > 0.5 * counts.sum() and counts.sum() >= 20 and not is_wanted:
        return _dropped("nearly every row has a value of its own, like a name or an id")
    notes = []
    levels = sorted(counts.index)
    if len(levels) > MOST_LEVELS:
        order = sorted(levels, key=lambda level: (-counts[level], level))
        levels = sorted(order[: MOST_LEVELS - 1])
        if counts[levels].sum() < 0.5 * counts.sum() and not is_wanted:
            return _dropped(f"{len(counts)} different values are too many for a category")
        notes.append(
            f"{len(counts)} levels: the {len(levels)} most frequent, and all others together"
        )
    code = {level: i for i, level in enumerate(levels)}
    other = len(levels)
    codes = np.array([-1 if v is None else code.get(v, other) for v in text])
    present = np.unique(codes)
    if missing:
        notes.append(f"{missing} missing: a level of their own")
    hot = (codes[:, None] == present).astype(np.float64)
    # Two levels are told apart by one column.
    array = hot[:, 1:] if len(present) == 2 else hot
    return _Part([array], [name], "category", "; ".join(notes) or f"{len(present)} levels")


def _dropped(reason: str) -> _Part:
    return _Part([], [], "dropped", reason)
