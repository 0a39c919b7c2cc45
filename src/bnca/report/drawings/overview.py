"""One picture of Tables 1 and 2: BNCA's lead over each other method, cell by cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bnca.report.cells import cells
from bnca.report.drawings.style import COLORS, MARKERS, interval, new_figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bnca.report.cells import CellRows

    Row = Mapping[str, Any]

OTHERS = ("PCA", "NCA", "NCM", "LMNN", "BML", "BNCA+")


def draw_leads(rows: Sequence[Row]) -> tuple[Any, str] | None:
    """Differences of accuracy with their intervals; to the right BNCA is ahead.

    Nothing where no cell has both BNCA and NCA.
    """
    found = [
        cell
        for table in ("table1", "table2")
        for cell in cells(rows, table)
        if len(cell.measured("accuracy", ("BNCA", "NCA"))) == 2
    ]
    if not found:
        return None
    figure = new_figure(0.24 * len(found) + 0.9, 5.8)
    axes = figure.subplots()
    ahead = 0
    for place, cell in enumerate(reversed(found)):
        leads = _leads(cell)
        if place % 2:
            axes.axhspan(place - 0.5, place + 0.5, color="#f0f0f0", linewidth=0)
        ahead += all(lead[0] > 0 for name, lead in leads.items() if name != "BNCA+")
        for n, (name, (mean, low, high)) in enumerate(leads.items()):
            y = place + 0.36 - 0.72 * n / max(len(OTHERS) - 1, 1)
            axes.plot([low, high], [y, y], color=COLORS[name], linewidth=0.9)
            axes.plot(mean, y, MARKERS[name], color=COLORS[name], markersize=3)
    for name in OTHERS:
        axes.plot([], [], MARKERS[name], color=COLORS[name], label=name)
    axes.axvline(0, color="#444444", linewidth=0.8)
    axes.set_yticks(range(len(found)), [cell.label for cell in reversed(found)])
    axes.set_ylim(-0.5, len(found) - 0.5)
    axes.set_xlabel("lead of BNCA over each other method, in points of accuracy")
    figure.legend(loc="outside lower center", ncols=6)
    return figure, (
        f"Leads of BNCA in {len(found)} cells; its mean is above that of all five rivals in "
        f"{ahead}."
    )


def _leads(cell: CellRows) -> dict[str, tuple[float, float, float]]:
    values = cell.measured("accuracy", ("BNCA", *OTHERS))
    return {
        name: interval(100 * (values["BNCA"] - x), cell.overlap)
        for name, x in values.items()
        if name != "BNCA" and np.isfinite(x).any()
    }
