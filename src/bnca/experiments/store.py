"""Finished units of work on disk, a line each; who made them; and tables of their rows.

A line is written and synced as a whole when its unit is finished.  A process may be killed at any
point: at worst the last line is torn, which is as if its unit had never run.
"""

from __future__ import annotations

import csv
import json
import os
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import bnca
from bnca.blocks import thread_count
from bnca.experiments.code import LIBRARIES
from bnca.files import replacing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TidyRow: TypeAlias = dict[str, Any]
"""One method on one cell: column name to number or text."""


@cache
def provenance() -> Mapping[str, Any]:
    """Versions and machine, as columns of every row."""
    return {
        "bnca": bnca.__version__,
        "python": platform.python_version(),
        **{library.replace("-", "_"): version(library) for library in LIBRARIES},
        "system": platform.system(),
        "cores": thread_count(-1),
        "cpu": _cpu_model(),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not a Linux
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


class Store:
    """Finished units of work in a folder: those of all code versions, each under its own key.

    Parameters
    ----------
    folder : Path
        Made where it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "cells.jsonl"

    def read(self) -> dict[str, dict[str, Any]]:
        """Records by key; the last of equal keys, as data may have changed; no torn line."""
        out: dict[str, dict[str, Any]] = {}
        if not self.path.exists():
            return out
        with self.path.open("rb") as file:
            for line in file:
                try:
                    record = json.loads(line)
                except ValueError:  # torn
                    continue
                if isinstance(record, dict) and "key" in record:
                    out[str(record["key"])] = record
        return out

    def append(self, record: Mapping[str, Any]) -> None:
        """Write a record as a line, and return when the disk has it."""
        line = json.dumps(record, allow_nan=True).encode() + b"\n"
        new = not self.path.exists()
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            size = os.fstat(handle).st_size
            if size and not self._ends_with_newline(size):
                line = b"\n" + line  # a torn line before it must not swallow this one
            while line:
                line = line[os.write(handle, line) :]
            os.fsync(handle)
        finally:
            os.close(handle)
        if new:
            _sync_folder(self.path.parent)

    def _ends_with_newline(self, size: int) -> bool:
        with self.path.open("rb") as file:
            file.seek(size - 1)
            return file.read(1) == b"\n"


def _sync_folder(folder: Path) -> None:
    """Make sure that a new file is still there after a power cut."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def columns(rows: Sequence[TidyRow]) -> list[str]:
    """Names of all columns, in order of appearance."""
    return list(dict.fromkeys(name for row in rows for name in row))


def rows_to_csv(rows: Sequence[TidyRow], path: Path) -> None:
    """Write rows as CSV; an old file is replaced only by a whole new one."""
    with replacing(path) as new, new.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns(rows))
        writer.writeheader()
        writer.writerows(rows)


def rows_to_parquet(rows: Sequence[TidyRow], path: Path) -> None:
    """Write rows as Parquet; an old file is replaced only by a whole new one.

    It needs pandas and pyarrow, which the extra ``app`` installs.
    """
    import pandas as pd

    with replacing(path) as new:
        pd.DataFrame(list(rows), columns=columns(rows)).to_parquet(new, engine="pyarrow")
