"""Rows of studies as series over repeats, ready to be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bnca.report.cells import number, shared
from bnca.report.statistics import overlap

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
        Correlation between two repeats, by the test rows, or people, that they share.
    train_overlap : float
        The same by training rows, for what is measured on these.
    """

    title: str
    rows: Sequence[Mapping[str, Any]]
    seeds: tuple[int, ...]
    overlap: float
    train_overlap: float

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
        out.append(Series(str(rows[0]["title"]), rows, seeds, *_overlaps(rows)))
    return out


def _overlaps(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Correlations between repeats by test and by training rows, or by people who are drawn."""
    people = [number(rows[0].get(f"n_people_{use}")) for use in ("test", "train", "tune")]
    if np.isfinite(people).all():
        return overlap(0, people[0], sum(people)), overlap(0, people[1], sum(people))
    n_train, n_pool = (number(rows[0].get(name)) for name in ("n_train", "n_pool"))
    return shared(rows), overlap(0, n_train, n_pool) if n_train and n_pool else 0.0


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
