"""Rows of studies as series over repeats, ready to be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bnca.report.cells import number, shared

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bnca.core.arrays import Doubles
    from bnca.report.claims.verdicts import Evidence


class Series(NamedTuple):
    """Rows of one study.

    Attributes
    ----------
    title : str
        Name of its data set.
    rows : sequence of mapping
        All of them.
    seeds : tuple of int
        Repeats, in order.
    overlap : float
        Correlation between two repeats.
    """

    title: str
    rows: Sequence[Mapping[str, Any]]
    seeds: tuple[int, ...]
    overlap: float

    def of(self, value: str, **wanted: Any) -> Doubles:
        """One column by repeat, from the rows that have the wanted entries; nan where none has."""
        out = np.full(len(self.seeds), np.nan)
        place = {seed: i for i, seed in enumerate(self.seeds)}
        for row in self.rows:
            if all(row.get(key) == entry for key, entry in wanted.items()):
                out[place[row["seed"]]] = number(row.get(value))
        return out

    def entries(self, name: str) -> list[Any]:
        """Different entries of a column, sorted."""
        return sorted({row[name] for row in self.rows if row.get(name) is not None})


def series(evidence: Evidence, table: str, **wanted: Any) -> list[Series]:
    """Each study of a table, with those of its rows that have the wanted entries."""
    out = []
    for rows in evidence.study(table, **wanted).values():
        seeds = tuple(sorted({row["seed"] for row in rows}))
        overlap = shared(rows) if any(row.get("n_test") for row in rows) else 0.0
        out.append(Series(str(rows[0]["title"]), rows, seeds, overlap))
    return out


def all_seeds(found: Iterable[Series]) -> set[int]:
    """Repeats of any of them."""
    return {seed for one in found for seed in one.seeds}


def best_of_others(values: Doubles) -> Doubles:
    """For each repeat its value in the column that is best on average over the other repeats.

    The largest of several means is too large by chance; this choice has not seen its own repeat.

    Parameters
    ----------
    values : (J, S)
        Repeats, and what is chosen from.

    Returns
    -------
    (J,)
        Of a single repeat, its first value.
    """
    J = len(values)
    others = (values.sum(axis=0) - values) / max(J - 1, 1)
    return np.asarray(values[np.arange(J), others.argmax(axis=1)])
