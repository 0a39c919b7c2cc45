"""Entries of a text file: what stands for nothing, and which of the rest are numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from bnca.core.arrays import Doubles

MISSING = frozenset({"", "?", "na", "n/a", "#n/a", "nan", "null", "<na>"})
"""Entries that stand for nothing, in lower case."""

DATE = re.compile(r"\d{4}-\d\d?-\d\d?([T ].*)?|\d\d?([./])\d\d?\2(\d{4}|\d\d)([T ].*)?")
COMMA_NUMBER = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)?,\d+([eE][+-]?\d+)?")
GROUPED_NUMBER = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
WITH_UNIT = re.compile(r"[$€£]\s*([\d.,+-]+)|([\d.,+-]+)\s*[%$€£]")


def as_text(values: pd.Series[Any]) -> pd.Series[Any]:
    """Entries as stripped text, missing ones as None; whole floats without their point."""
    import pandas as pd

    if pd.api.types.is_float_dtype(values.dtype):
        numbers = values.astype("float64")
        if np.isfinite(numbers.dropna()).all() and (numbers.dropna() % 1 == 0).all():
            values = numbers.astype("Int64")
    text = values.astype(object)
    out = [v if isinstance(v, str) or not pd.api.types.is_scalar(v) else _said(v) for v in text]
    stripped = [None if v is None else str(v).strip() for v in out]
    cleaned = [None if v is None or v.lower() in MISSING else v for v in stripped]
    return pd.Series(cleaned, dtype=object)


def as_numbers(text: pd.Series[Any]) -> Doubles:
    """Numbers from text, nan where it is none.

    Signs of per cent and of currencies are left out.  Commas are decimal ones, unless all of them
    cut off groups of three digits, as in 1,250.
    """
    import pandas as pd

    text = text.map(_without_unit, na_action="ignore")
    with_commas = [v for v in text.dropna() if "," in v]
    if with_commas and all(GROUPED_NUMBER.fullmatch(v) for v in with_commas):
        text = text.map(lambda v: v.replace(",", ""), na_action="ignore")
    elif any(COMMA_NUMBER.fullmatch(v) for v in with_commas):
        text = text.map(lambda v: v.replace(".", "").replace(",", "."), na_action="ignore")
    # int("1_000") and float("nan") are Python's, not a table's; pandas takes neither "_" nor words.
    numbers = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def are_dates(text: pd.Series[Any]) -> bool:
    """Whether all entries that are there are dates."""
    present = text.dropna()
    return bool(len(present)) and all(DATE.fullmatch(v) for v in present)


def _said(value: Any) -> str | None:
    import pandas as pd

    return None if pd.isna(value) else str(value)


def _without_unit(text: str) -> str:
    found = WITH_UNIT.fullmatch(text)
    return (found[1] or found[2]) if found else text
