"""Rows of tables as cells: the values of each method, aligned by repeat, ready to be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bnca.experiments.paper import BALANCE, IONOSPHERE, PICTURES, SPAMBASE
from bnca.report.statistics import overlap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bnca.core.arrays import Doubles

SPECS = {
    spec.title: spec
    for spec in (BALANCE, IONOSPHERE, SPAMBASE, *(spec for _, spec, *_ in PICTURES))
}
"""The paper's data sets, and those that stand in for them, by title."""


@dataclass(frozen=True, eq=False)
class CellRows:
    """All repeats of one cell of a table.

    Attributes
    ----------
    table, experiment, title : str
        As in the rows.
    paper : str or None
        The paper's name of the data set, or of the one that it stands in for; None for others.
    size : int
        Training rows of each class.
    noise : float
        Share of wrong training labels.
    seeds : tuple of int
        Repeats, in order.
    overlap : float
        Correlation between two repeats; see `bnca.report.statistics`.
    values : mapping
        Metric to method to a value for each repeat, nan where there is none.
    """

    table: str
    experiment: str
    title: str
    paper: str | None
    size: int
    noise: float
    seeds: tuple[int, ...]
    overlap: float
    values: Mapping[str, Mapping[str, Doubles]]

    @property
    def key(self) -> tuple[str, int]:
        """The cell's key in the published table, see `bnca.experiments.published.TABLES`."""
        keys = {"table1": self.size, "table2": round(100 * self.noise)}
        return str(self.paper), keys.get(self.table, 0)

    @property
    def label(self) -> str:
        """The cell's name in sentences."""
        if self.table == "table1":
            return f"{self.title}, {self.size} per class"
        return (
            f"{self.title}, {100 * self.noise:.0f} % noise"
            if self.table == "table2"
            else self.title
        )

    def measured(self, metric: str, methods: Sequence[str]) -> dict[str, Doubles]:
        """Those of the methods that have a number for at least one repeat."""
        found = self.values.get(metric, {})
        return {m: found[m] for m in methods if m in found and np.isfinite(found[m]).any()}


METRICS = ("accuracy", "log_loss", "calibration_error", "fit_seconds", "fit_cpu_seconds")


def paper_name(title: str) -> str | None:
    """The paper's name of a data set or of what it stands in for; None for sets of our own."""
    return title.partition(" (")[0] if title in SPECS else None


def is_stand_in(title: str) -> bool:
    """Whether a set replaces one of the paper's that is not to be had."""
    return title in SPECS and title != paper_name(title)


def cells(rows: Sequence[Mapping[str, Any]], table: str) -> list[CellRows]:
    """Cells of one table in order of appearance."""
    grouped: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row.get("table") == table and "method" in row:
            key = (row["experiment"], row["size"], row["noise"])
            grouped.setdefault(key, []).append(row)
    # The cells of one data set belong together, smaller sizes and less noise first.
    order = {name: i for i, name in enumerate(dict.fromkeys(key[0] for key in grouped))}
    keys = sorted(grouped, key=lambda key: (order[key[0]], *key[1:]))
    return [_cell(grouped[key]) for key in keys]


def number(value: Any) -> float:
    """A number as rows have it, where None and text that is no number stand for nothing."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def aligned(
    rows: Sequence[Mapping[str, Any]], value: str, by: str, seeds: Sequence[int]
) -> dict[str, Doubles]:
    """Values of one column by another, an entry for each seed; nan where there is no row."""
    place = {seed: i for i, seed in enumerate(seeds)}
    out: dict[str, Doubles] = {}
    for row in rows:
        line = out.setdefault(str(row[by]), np.full(len(seeds), np.nan))
        line[place[row["seed"]]] = number(row.get(value))
    return out


def shared(rows: Sequence[Mapping[str, Any]]) -> float:
    """Correlation between repeats that rows of one experiment tell of."""
    train, test, pool = (_mean(rows, name) for name in ("n_train", "n_test", "n_pool"))
    return overlap(train or 0.0, test, pool) if test else 0.0


def _mean(rows: Sequence[Mapping[str, Any]], name: str) -> float | None:
    found = [float(row[name]) for row in rows if row.get(name) is not None]
    return sum(found) / len(found) if found else None


def _cell(rows: Sequence[Mapping[str, Any]]) -> CellRows:
    first = rows[0]
    seeds = tuple(sorted({row["seed"] for row in rows}))
    return CellRows(
        table=first["table"],
        experiment=first["experiment"],
        title=first["title"],
        paper=paper_name(first["title"]),
        size=first["size"],
        noise=first["noise"],
        seeds=seeds,
        overlap=shared(rows),
        values={metric: aligned(rows, metric, "method", seeds) for metric in METRICS},
    )
