"""Columns of a person's table: what kind each one is, and what numbers are made of it.

Nothing here looks at labels, and nothing is fitted: medians, means and spreads are those of the
training rows, see `bnca.experiments.draw.prepare`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from bnca.core.arrays import Doubles, Integers

MISSING = frozenset({"", "?", "na", "n/a", "#n/a", "nan", "null", "<na>"})
"""Entries of a text file that stand for nothing, in lower case."""

MOST_LEVELS = 30
"""Levels of a category; rarer ones than the most frequent are taken together."""

MARKED = 0.05
"""From this share of missing numbers on, that a number is missing is told as a column of its own."""

ALMOST = 0.9
"""Share of entries that makes a column of numbers, or one of values that never come twice."""

DATE = re.compile(r"\d{4}-\d\d?-\d\d?([T ].*)?|\d\d?([./])\d\d?\2(\d{4}|\d\d)([T ].*)?")
COMMA_NUMBER = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)?,\d+([eE][+-]?\d+)?")


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


def encode(frame: pd.DataFrame) -> Encoded:
    """Numbers from all columns of a table that can be used."""
    arrays: list[Doubles] = []
    names: list[str] = []
    blocks: list[int] = []
    columns: list[Column] = []
    for name in frame.columns:
        part = _part(name, frame[name])
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


def as_text(values: pd.Series[Any]) -> pd.Series[Any]:
    """Entries as stripped text, missing ones as None; whole floats without their point."""
    import pandas as pd

    if pd.api.types.is_float_dtype(values.dtype):
        numbers = values.astype("float64")
        if (numbers.dropna() % 1 == 0).all():
            values = numbers.astype("Int64")
    text = values.astype(object)
    out = [None if pd.isna(v) else str(v).strip() for v in text]
    return pd.Series([None if v is None or v.lower() in MISSING else v for v in out], dtype=object)


def as_numbers(text: pd.Series[Any]) -> Doubles:
    """Numbers from text, nan where it is none; with decimal commas where they are the custom."""
    import pandas as pd

    present = text.dropna()
    if present.map(lambda v: bool(COMMA_NUMBER.fullmatch(v))).any():
        text = text.map(lambda v: v.replace(".", "").replace(",", "."), na_action="ignore")
    # int("1_000") and float("nan") are Python's, not a table's; pandas takes neither "_" nor words.
    numbers = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _part(name: str, values: pd.Series[Any]) -> _Part:
    from pandas.api import types

    if types.is_bool_dtype(values.dtype):
        numbers = values.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan)
        return _number(name, numbers, 0)
    if types.is_numeric_dtype(values.dtype) and not types.is_complex_dtype(values.dtype):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        infinite = int(np.isinf(numbers).sum())
        return _number(name, np.where(np.isinf(numbers), np.nan, numbers), infinite)
    if types.is_datetime64_any_dtype(values.dtype) or types.is_timedelta64_dtype(values.dtype):
        return _dropped("dates are not used")
    if not (
        types.is_object_dtype(values.dtype)
        or types.is_string_dtype(values.dtype)
        or isinstance(values.dtype, _categorical())
    ):
        return _dropped(f"values of the kind {values.dtype} are not used")
    if any(isinstance(v, (list, dict, set, tuple, bytes, np.ndarray)) for v in values):
        return _dropped("it holds lists or other things that are neither numbers nor words")
    text = as_text(values)
    present = text.dropna()
    if not len(present):
        return _dropped("it is empty")
    numbers = as_numbers(text)
    known = np.count_nonzero(np.isfinite(numbers))
    if known >= ALMOST * len(present):
        return _number(name, numbers, len(present) - known)
    if present.map(lambda v: bool(DATE.fullmatch(v))).all():
        return _dropped("dates are not used")
    return _category(name, text)


def _categorical() -> Any:
    import pandas as pd

    return pd.CategoricalDtype


def _number(name: str, numbers: Doubles, strange: int) -> _Part:
    """Use numbers as they are; `strange` entries were no finite numbers, and count as missing."""
    present = numbers[np.isfinite(numbers)]
    if not len(present):
        return _dropped("it is empty")
    missing = len(numbers) - len(present)
    if np.ptp(present) == 0 and missing < MARKED * len(numbers):
        return _dropped("all its values are the same")
    if not missing and len(numbers) >= 20 and np.all(np.diff(numbers) == 1):
        return _dropped("it only counts the rows")
    notes = [f"{strange} entries are no numbers, and count as missing"] if strange else []
    arrays, names = [numbers], [name]
    if missing >= MARKED * len(numbers):
        arrays.append((~np.isfinite(numbers)).astype(np.float64))
        names.append(f"{name} is missing")
        notes.append(f"{missing} missing: the median stands in, and a column marks them")
    elif missing:
        notes.append(f"{missing} missing: the median stands in")
    return _Part(arrays, names, "number", "; ".join(notes))


def _category(name: str, text: pd.Series[Any]) -> _Part:
    """One column for each level; a missing entry is a level of its own."""
    counts = text.value_counts()
    missing = int(text.isna().sum())
    if len(counts) == 1 and not missing:
        return _dropped("all its values are the same")
    if len(counts) > 0.5 * counts.sum() and counts.sum() >= 20:
        return _dropped("nearly every row has a value of its own, like a name or an id")
    notes = []
    levels = sorted(counts.index)
    if len(levels) > MOST_LEVELS:
        order = sorted(levels, key=lambda level: (-counts[level], level))
        levels = sorted(order[: MOST_LEVELS - 1])
        if counts[levels].sum() < 0.5 * counts.sum():
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
