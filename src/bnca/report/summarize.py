"""What rows say, as a dictionary that JSON can hold: verdicts, tables, what was skipped.

Nothing is computed here but from rows; the page only shows what stands here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bnca.experiments.published import CAPTIONS, REFERENCE, TABLES
from bnca.experiments.store import provenance
from bnca.report.cells import SPECS, CellRows, cells
from bnca.report.claims.catalogue import CLAIMS
from bnca.report.claims.verdicts import Evidence
from bnca.report.statistics import (
    LEVEL,
    finite,
    holm,
    mean_interval,
    paired_test,
    rank_interval,
    ratio_interval,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from bnca.core.arrays import Doubles

TITLE = "Bayesian Neighbourhood Component Analysis, reproduced"

OURS = "BNCA"
"""The published method, whose rank is stated."""

VALUES = {"table1": ("accuracy", 100.0), "table2": ("accuracy", 100.0)}
"""What a table shows, and by what it is multiplied; others show seconds."""


@dataclass(frozen=True, eq=False)
class Made:
    """How rows were made.

    Attributes
    ----------
    command : str
        As typed.
    quick : bool
        Whether it was the small version.
    asked : collection of str or None
        Names of claims that were asked for; None is all.
    """

    command: str
    quick: bool = False
    asked: Collection[str] | None = field(default=None)


def summarize(
    rows: Sequence[Mapping[str, Any]], skipped: Mapping[str, str], made: Made
) -> dict[str, Any]:
    """All that the page says, without its pictures.

    Parameters
    ----------
    rows : sequence of mapping
        Tidy rows.
    skipped : mapping of str to str
        Experiment to the reason why it has no rows, or not all.
    made : Made
        How.

    Returns
    -------
    dict
        Numbers, text and lists of them; None where a number is not known.
    """
    _refuse_mixed(rows)
    evidence = Evidence(rows, skipped)
    suffix = " --quick" if made.quick else ""
    claims = [c for c in CLAIMS if made.asked is None or c.id in made.asked]
    failed = {
        f"{row['experiment']}, {row['method']}": row["reason"] for row in rows if row.get("reason")
    }
    summary: dict[str, Any] = {
        "title": TITLE,
        "command": made.command,
        "made": max((str(row["finished"]) for row in rows), default=""),
        "quick": made.quick,
        "rows": len(rows),
        "versions": _versions(rows),
        "code versions": _codes(rows),
        "machine": {
            key: ", ".join(sorted({str(row[key]) for row in rows if key in row}))
            for key in ("system", "cores", "cpu")
        },
        "claims": [_with(claim.record(evidence), suffix) for claim in claims],
        "tables": [
            _table(name, found, suffix) for name in CAPTIONS if (found := cells(rows, name))
        ],
        "skipped": [
            {"experiment": name, "reason": reason} for name, reason in {**skipped, **failed}.items()
        ],
        "references": [REFERENCE],
    }
    return {key: _plain(value) for key, value in summary.items()}


def _with(claim: Mapping[str, Any], suffix: str) -> dict[str, Any]:
    return {**claim, "command": f"{claim['command']}{suffix}"}


def _refuse_mixed(rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise where a method's rows in one table are of different code versions."""
    seen: dict[tuple[Any, ...], str] = {}
    for row in rows:
        key = (row["experiment"], row["method"] if "size" in row and "method" in row else None)
        if seen.setdefault(key, row["code"]) != row["code"]:
            raise ValueError(f"Rows of {key[0]} are of different code versions.")


def _versions(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    names = [name for name in provenance() if name not in {"system", "cores", "cpu"}]
    return {
        name: ", ".join(sorted({str(row[name]) for row in rows if name in row})) for name in names
    }


def _codes(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Code version of each method of the tables, and of each figure."""
    out: dict[str, dict[str, None]] = {}
    for row in rows:
        name = row["method"] if row["table"] in CAPTIONS else row["table"]
        out.setdefault(str(name), {})[row["code"]] = None
    return {name: ", ".join(codes) for name, codes in out.items()}


def _table(name: str, found: Sequence[CellRows], suffix: str) -> dict[str, Any]:
    title, caption = CAPTIONS[name]
    value, factor = VALUES.get(name, ("fit_cpu_seconds", 1.0))
    methods = list(dict.fromkeys(m for cell in found for m in cell.values[value]))
    return {
        "id": name,
        "title": title,
        "caption": caption,
        "command": f"bnca reproduce {name}{suffix}",
        "unit": "%" if name in VALUES else "s",
        "columns": methods,
        "rows": [_row(cell, value, factor, methods, name) for cell in found],
    }


def _row(
    cell: CellRows, value: str, factor: float, methods: Sequence[str], name: str
) -> dict[str, Any]:
    measured = cell.measured(value, methods)
    values = {method: factor * x for method, x in measured.items()}
    sign = 1 if name in VALUES else -1
    standing = _standing({method: sign * x for method, x in values.items()}, cell.overlap)
    published = TABLES.get(name, {}).get(cell.key, {})
    remark = SPECS[cell.title].remark if cell.title in SPECS else ""
    rivals = {m: x for m, x in values.items() if m in {*published, OURS} or not published}
    rivals = {m: sign * x for m, x in rivals.items() if m != "BNCA+"}
    ranked = OURS in rivals and len(rivals) > 1
    return {
        "label": cell.title,
        "cell": cell.label,
        "size": cell.size,
        "noise": cell.noise,
        "seeds": len(cell.seeds),
        "cells": {
            m: _cell(values.get(m), published.get(m), standing.get(m, ""), cell, name)
            for m in methods
        },
        "rank": {"method": OURS, **rank_interval(rivals, OURS, cell.overlap)._asdict()}
        if ranked
        else None,
        "remark": remark,
    }


def _cell(
    values: Doubles | None, published: Any, standing: str, cell: CellRows, name: str
) -> dict[str, Any]:
    paper = None if published is None else published.mean
    if values is None:
        return {"mean": None, "low": None, "high": None, "published": paper, "difference": None}
    interval = (
        mean_interval(values, cell.overlap)
        if name in VALUES
        else ratio_interval(values, np.ones_like(values))  # seconds: geometric, so never below zero
    )
    # Seconds of another machine and another language are shown, but their difference says nothing.
    difference = interval.mean - paper if paper is not None and name in VALUES else None
    return {
        **interval._asdict(),
        "published": paper,
        "difference": difference,
        "repeats": len(finite(values)),
        "best": standing == "best",
        "tied": standing == "tied",
    }


def _standing(values: Mapping[str, Doubles], overlap: float) -> dict[str, str]:
    """Which method is best, and which are not shown to be behind it."""
    if len(values) < 2:
        return {}
    best = max(values, key=lambda m: float(finite(values[m]).mean()))
    others = [m for m in values if m != best]
    p = holm([paired_test(values[best] - values[m], overlap) for m in others])
    tied = {m: "tied" for m, one in zip(others, p, strict=True) if one >= LEVEL}
    return {best: "best", **tied}


def _plain(value: Any) -> Any:
    """What JSON has: no numbers of NumPy, None for what is no number."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
