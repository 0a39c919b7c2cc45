"""A person's table from its file: CSV of any sensible kind, or Parquet (pandas, extra "app").

Whatever cannot be read is an `InputError` that says what arrived and what to try.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

from bnca.exceptions import InputError

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

SEPARATORS = (",", ";", "\t", "|", " ")
"""Tried in this order; the one that cuts the lines into most columns, all alike, is taken."""

SEPARATOR_NAMES = {"\t": "tab", " ": "space", ",": "comma", ";": "semicolon", "|": "bar"}

SEEN_LINES = 100
"""Lines that the choice of a separator looks at."""

KINDS = "CSV or TSV (also compressed by gzip), or Parquet"


def read_table(
    path: Path, *, separator: str | None = None, encoding: str = "utf-8"
) -> pd.DataFrame:
    """Read a table; columns of a text file stay text.

    Parameters
    ----------
    path : Path
        CSV with any of `SEPARATORS`, gzip or not, or Parquet.  What the file holds decides, and
        not how its name ends.
    separator : str or None
        Of a text file; None finds out.
    encoding : str
        Of a text file.

    Returns
    -------
    DataFrame
        With at least one row, and the columns' names as text.
    """
    content = _content(path)
    if content.startswith(b"PAR1"):
        frame = _parquet(path)
    else:
        frame = _text_table(path, _text(path, content, encoding), separator)
    frame.columns = [str(name).strip() for name in frame.columns]
    _refuse_equal_names(path, list(frame.columns))
    if not len(frame):
        raise InputError(f"{path}: the table has names of columns, but no rows.")
    return frame


def _refuse_equal_names(path: Path, names: list[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        raise InputError(
            f"{path}: more than one column is called {twice[0]!r}; rename them, so that each can "
            "be told apart."
        )


def _content(path: Path) -> bytes:
    if not path.exists():
        raise InputError(f"there is no file {path}{_neighbours(path)}")
    if path.is_dir():
        raise InputError(f"{path} is a folder; a table is one file: {KINDS}.")
    try:
        content = path.read_bytes()
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if not content.strip():
        raise InputError(f"{path} is empty; a table has a line of names and then rows.")
    if content.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise InputError(
            f"{path} looks like an Excel workbook or another archive; save the sheet as CSV."
        )
    return content


def _neighbours(path: Path) -> str:
    """Say which files of a similar name there are."""
    from difflib import get_close_matches

    if not path.parent.is_dir():
        return f": there is no folder {path.parent} either."
    close = get_close_matches(path.name, [p.name for p in path.parent.iterdir() if p.is_file()])
    return f"; is it {' or '.join(close)}?" if close else "."


def _parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_parquet(path).reset_index(drop=True)
    except (OSError, ValueError) as error:  # pyarrow's errors are of these kinds
        raise InputError(f"{path} cannot be read as Parquet: {error}") from error


def _text(path: Path, content: bytes, encoding: str) -> str:
    try:
        text = content.decode(encoding)
    except LookupError as error:
        raise InputError(
            f"--encoding: there is no encoding {encoding!r}; try utf-8, cp1252 or utf-16."
        ) from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        raise InputError(
            f"{path} is not {encoding.upper()} text: line {line} has the byte "
            f"0x{content[error.start]:02x}. Try --encoding {'utf-16' if wide else 'cp1252'}, "
            "or save it as UTF-8."
        ) from error
    if "\0" in text:
        raise InputError(f"{path} is no text, nor Parquet. A table is {KINDS}.")
    return text.removeprefix("\ufeff")


def _text_table(path: Path, text: str, separator: str | None) -> pd.DataFrame:
    import pandas as pd

    separator = _separator(text) if separator is None else separator
    options: dict[str, Any] = {"skipinitialspace": True} if separator == " " else {}
    _refuse_bad_lines(path, text, separator)
    try:
        # As text: numbers with decimal commas, and codes such as 007, are looked at later.
        return pd.read_csv(
            io.StringIO(text),
            sep=separator,
            dtype=str,
            keep_default_na=False,
            index_col=False,
            engine="c",
            **options,
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read as a table cut by {name_of(separator)}: {error}. "
            "Try --separator."
        ) from error


def name_of(separator: str) -> str:
    """Name of a separator in a sentence."""
    return SEPARATOR_NAMES.get(separator, repr(separator))


def _separator(text: str) -> str:
    """Find the separator by which most lines have the same number of columns, and several."""
    best, most = ",", 1
    for separator in SEPARATORS:
        rows = csv.reader(
            io.StringIO(text[: 1 << 20]), delimiter=separator, skipinitialspace=separator == " "
        )
        try:
            widths = [len(row) for row in islice(rows, SEEN_LINES) if row]
        except csv.Error:
            continue
        width, count = Counter(widths).most_common(1)[0] if widths else (1, 0)
        if width > most and count >= 0.9 * len(widths) and widths[0] == width:
            best, most = separator, width
            if separator in ",;\t":  # those cut tables; the others are tried for want of them
                continue
    return best


def _refuse_bad_lines(path: Path, text: str, separator: str) -> None:
    """Name the first line that is longer than the line of names, or names that come twice.

    pandas would drop what is over.
    """
    width = None
    rows = csv.reader(
        io.StringIO(text), delimiter=separator, skipinitialspace=separator == " ", strict=False
    )
    try:
        for row in rows:
            if width is None:
                width = len(row) or None
                # pandas would give the second one another name.
                _refuse_equal_names(path, [name.strip() for name in row])
            elif len(row) > width and any(row[width:]):
                raise InputError(
                    f"{path}: line {rows.line_num} has {len(row)} values where the first line "
                    f"names {width} columns (cut by {name_of(separator)}). Put quotes around "
                    "values that hold the separator, or try --separator."
                )
    except csv.Error as error:
        raise InputError(f"{path}: line {rows.line_num} cannot be read: {error}.") from error
