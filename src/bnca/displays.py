"""Pictures: a display keeps arrays, and only `plot` draws them (Matplotlib, extra "app")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bnca.experiments.compare import KEPT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bnca.experiments.compare import Summary

COLORS = ("#6c757d", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's palette, which colour-blind people can tell apart, after a neutral grey."""

MARKERS = "osD^vPX"


@dataclass(frozen=True, eq=False)
class ComparisonDisplay:
    """Accuracy of several methods, and how it grows as uncertain predictions are dropped.

    Attributes
    ----------
    summaries : sequence of Summary
        What `bnca.experiments.compare.summarize` returns.
    title : str
        One line above the picture.
    """

    summaries: Sequence[Summary]
    title: str

    def plot(self) -> Any:
        """Draw; return the Matplotlib figure."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.25])
        figure.suptitle(self.title, fontsize=11)
        for place, summary in enumerate(self.summaries):
            color, marker = COLORS[place % len(COLORS)], MARKERS[place % len(MARKERS)]
            half = 100 * np.nan_to_num(summary.accuracy_half)
            left.errorbar(
                100 * summary.accuracy,
                -place,
                xerr=half,
                fmt=marker,
                color=color,
                capsize=4,
                markersize=8,
            )
            left.annotate(
                f"{100 * summary.accuracy:.1f}",
                (100 * summary.accuracy, -place),
                xytext=(0, 9),
                textcoords="offset points",
                ha="center",
                color=color,
            )
            dropped = 100 * (1 - np.array(KEPT))
            right.plot(
                dropped,
                100 * summary.kept_accuracy,
                color=color,
                marker=marker,
                markevery=3,
                label=summary.method,
            )
        left.set_yticks(
            [-p for p in range(len(self.summaries))], [s.method for s in self.summaries]
        )
        left.set_ylim(-len(self.summaries) + 0.4, 0.6)
        left.set_xlabel("test accuracy, % (95 % interval)")
        left.margins(x=0.15)
        right.set_xlabel("least certain predictions dropped, %")
        right.set_ylabel("accuracy on the rest, %")
        right.legend(frameon=False)
        for axes in (left, right):
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(alpha=0.25)
        return figure

    def save(self, path: Path) -> None:
        """Write the picture; the format is that of the file's ending."""
        self.plot().savefig(path, dpi=150)
