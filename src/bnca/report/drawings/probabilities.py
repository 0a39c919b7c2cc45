"""Figures 4 and 5: what methods say about digits, and how well they rank the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bnca.report.claims.series import series
from bnca.report.claims.verdicts import Evidence
from bnca.report.drawings.style import COLORS, interval, new_figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Mapping[str, Any]

METHODS = ("NCA", "NCA, to the end", "BNCA", "BNCA+")
SHOWN = ("NCA, to the end", "BNCA")
"""Methods of Figure 4: the paper's NCA is not stopped early."""

LISTED = 6
"""Answers that Figure 4 names at most."""

CARETDOWN = 7
"""Matplotlib's marker whose tip points down to its place."""


def draw_bars(rows: Sequence[Row]) -> tuple[Any, str]:
    """Figure 4: probability bars of both methods for single digits."""
    digits = [row for row in rows if row.get("kind") == "digit"]
    groups = list(dict.fromkeys(row["group"] for row in digits))
    figure = new_figure(1.95 * len(groups))
    told = []
    for part, group in zip(np.atleast_1d(figure.subfigures(len(groups), 1)), groups, strict=True):
        shown = [row for row in digits if row["group"] == group]
        positions = list(dict.fromkeys(row["position"] for row in shown))
        part.suptitle(group, fontsize=8)
        panels = part.subplots(3, len(positions), squeeze=False, sharey="row")
        for column, position in zip(panels.T, positions, strict=True):
            of_digit = {row["method"]: row for row in shown if row["position"] == position}
            _picture(column[0], of_digit[SHOWN[0]])
            for axes, method in zip(column[1:], SHOWN, strict=True):
                _bars(axes, of_digit[method])
        for line, method in zip(panels[1:], ("NCA", "BNCA"), strict=True):
            line[0].set_ylabel(method)
        tops = [f"{m} {np.mean([r['top'] for r in shown if r['method'] == m]):.2f}" for m in SHOWN]
        told.append(f"on {group} digits the highest bars are, on average, {' and '.join(tops)}")
    return figure, f"Bars of the probability of each digit; {'; '.join(told)}."


def _picture(axes: Any, row: Row) -> None:
    image = np.reshape(row["image"], (row["height"], row["width"]))
    axes.imshow(image, cmap="gray_r", interpolation="nearest")
    axes.set_axis_off()


def _bars(axes: Any, row: Row) -> None:
    p = row["probabilities"]
    color = COLORS["BNCA" if row["method"] == "BNCA" else "NCA"]
    bars = axes.bar(range(len(p)), p, color=color, width=0.85)
    bars[row["truth"]].set(hatch="//////", edgecolor="black", linewidth=0.6)
    axes.plot(row["truth"], p[row["truth"]] + 0.03, marker=CARETDOWN, color="black", markersize=3.5)
    axes.set_ylim(0, 1.55)
    axes.set_yticks([0, 1])
    axes.set_xticks(range(0, len(p), 3))
    axes.tick_params(labelsize=5.5, length=2, pad=1)
    ranking = row["ranking"][:LISTED]
    step = 0.16
    for place, digit in enumerate(ranking):
        axes.text(
            0.04 + step * place,
            0.99,
            str(digit),
            transform=axes.transAxes,
            va="top",
            fontsize=6,
            weight="bold" if digit == row["truth"] else "normal",
        )


def draw_precision(rows: Sequence[Row]) -> tuple[Any, str]:
    """Figure 5: bars with intervals, one panel for each group."""
    found = series(Evidence(rows), "figure5", kind="summary")
    groups = ("normal", "difficult")
    figure = new_figure(2.2, 5.2)
    told = []
    for axes, group in zip(figure.subplots(1, 2), groups, strict=True):
        one = found[0]
        names = [m for m in METHODS if np.isfinite(one.of("accuracy", method=m, group=group)).any()]
        for place, name in enumerate(names):
            values = 100 * one.of("modified_map", method=name, group=group)
            mean, low, high = interval(values, one.overlap)
            axes.bar(place, mean, color=COLORS[name], width=0.7)
            axes.errorbar(
                place, mean, yerr=[[mean - low], [high - mean]], color="#444444", capsize=3
            )
            axes.text(place, high + 1.5, f"{mean:.1f}", ha="center", fontsize=7)
            told.append(f"{group}, {name}: {mean:.1f}")
        axes.set_xticks(
            range(len(names)), [name.replace(", to", ",\nto") for name in names], fontsize=6.5
        )
        axes.set_title(f"{one.title}, {group}")
        axes.set_ylim(0, 108)
        axes.set_yticks(range(0, 101, 20))
    figure.axes[0].set_ylabel("modified MAP, %")
    return figure, f"Bars of modified mean average precision in %. {'; '.join(told)}."
