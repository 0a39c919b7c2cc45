"""Figure 1: neighbours of one query before and after learning, and how near same classes are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bnca.report.claims.series import series
from bnca.report.claims.verdicts import Evidence
from bnca.report.drawings.style import COLORS, interval, new_figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Mapping[str, Any]

ROLES = {
    "other": ("other class", "x", "#0072b2"),
    "same": ("same class", "o", "#d55e00"),
    "query": ("query", "*", "#000000"),
}

WHEN = ("before", "after")

TIGHT: Mapping[str, float] = {"handletextpad": 0.1, "columnspacing": 0.8, "borderaxespad": 0}
"""Legends below their panels, no wider than these."""


def draw_axes(rows: Sequence[Row]) -> tuple[Any, str]:
    """Two planes and the ratios of distances."""
    found = series(Evidence(rows), "figure1", kind="ratio")
    points = [row for row in rows if row.get("kind") == "neighbor"]
    first = points[0]["title"] if points else ""
    points = [row for row in points if row["title"] == first]
    ends = [[row[f"{x}_{when}"] for x in "xy"] for row in points for when in WHEN]
    figure = new_figure(2.8)
    before, after, ratios = figure.subplots(1, 3, width_ratios=[1, 1, 1.25])
    for axes, when in ((before, WHEN[0]), (after, WHEN[1])):
        for role, (said, marker, color) in ROLES.items():
            chosen = [row for row in points if row["role"] == role]
            axes.scatter(
                [row[f"x_{when}"] for row in chosen],
                [row[f"y_{when}"] for row in chosen],
                marker=marker,
                color=color,
                label=said,
                s=36 if role == "query" else 14,
                linewidths=0.9,
            )
        if ends:  # both planes show the same part
            axes.update_datalim(ends)
        axes.set_aspect("equal", "datalim")
        axes.set_title(f"{first}, {when}")
        axes.set_xlabel("axis 1")
    before.set_ylabel("axis 2")
    before.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, **TIGHT)
    places = np.arange(len(found))[::-1]
    for when, color, marker, shift in (
        ("before", COLORS["PCA"], "s", 0.12),
        ("after", COLORS["BNCA"], "o", -0.12),
    ):
        values = [interval(one.of(f"ratio_{when}", where="test"), one.overlap) for one in found]
        mean, low, high = np.transpose(values)
        ratios.errorbar(
            mean,
            places + shift,
            xerr=[(mean - low).tolist(), (high - mean).tolist()],
            fmt=marker,
            color=color,
            label=when,
            linewidth=1,
        )
    ratios.set_yticks(places, [one.title for one in found])
    ratios.set_title("distance, same class / others")
    ratios.axvline(1, color="#999999", linewidth=0.7)
    ratios.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, **TIGHT)
    said = "; ".join(
        f"{one.title} {np.nanmean(one.of('ratio_before', where='test')):.2f} before, "
        f"{np.nanmean(one.of('ratio_after', where='test')):.2f} after"
        for one in found
    )
    return figure, (
        f"Neighbours of one row of {first} before and after rescaling, and ratios of mean "
        f"distances, same class over others: {said}."
    )
