"""Pictures: a display keeps arrays, and only `plot` draws them (Matplotlib, extra "app")."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bnca.experiments.metrics import KEPT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bnca.report.comparison import Standing

COLORS = {
    "KNN": "#4d5359",
    "PCA": "#8c564b",
    "NCA": "#0072b2",
    "NCMML": "#b8860b",
    "LMNN": "#009e73",
    "BML": "#56b4e9",
    "BNCA": "#cc79a7",
    "BNCA+": "#d55e00",
    "logistic": "#7a6fbf",
    "SVM": "#2f6b4f",
}
"""A colour for each method, the same in all pictures; those drawn together differ in lightness."""

MARKERS = dict(zip(COLORS, "osDv^P<*Xh", strict=True))

SHOWN = ("BNCA+", "BNCA", "KNN")
"""Curves that are drawn in colour whoever is best; at most two others are."""


@dataclass(frozen=True, eq=False)
class ComparisonDisplay:
    """Accuracy of several methods, and how it grows as uncertain predictions are dropped.

    Attributes
    ----------
    standings : sequence of Standing
        What `bnca.report.comparison.standings` returns.
    title : str
        One line above the picture.
    """

    standings: Sequence[Standing]
    title: str

    def plot(self) -> Any:
        """Draw both parts; return the Matplotlib figure."""
        figure = _figure(9.6, self._height())
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.15])
        figure.suptitle(self.title, fontsize=11)
        self.draw_accuracy(left)
        self.draw_kept(right)
        return figure

    def save(self, path: Path) -> None:
        """Write the picture; the format is that of the file's ending."""
        self.plot().savefig(path, dpi=150)

    def svg(self, part: str) -> str:
        """Draw one part alone, "accuracy" or "kept", as SVG."""
        figure = _figure(6.8, self._height() if part == "accuracy" else 3.8)
        axes = figure.subplots()
        (self.draw_accuracy if part == "accuracy" else self.draw_kept)(axes)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
        return file.getvalue()

    def draw_accuracy(self, axes: Any) -> None:
        """Mean accuracy with its interval, the best on top."""
        present = self._present()
        for place, s in enumerate(present):
            mean = 100 * s.accuracy.mean
            color = COLORS[s.method]
            axes.plot(mean, -place, marker=MARKERS[s.method], color=color, markersize=7)
            if s.accuracy.low is not None and s.accuracy.high is not None:
                ends = [100 * s.accuracy.low, 100 * s.accuracy.high]
                axes.plot(ends, [-place] * 2, marker="|", color=color)
            axes.annotate(
                f"{mean:.1f}",
                (mean, -place),
                xytext=(0, 6),
                textcoords="offset points",
                ha="center",
                fontsize=8,
                color=color,
            )
        axes.set_yticks([-p for p in range(len(present))], [s.method for s in present])
        axes.set_ylim(-len(present) + 0.4, 0.8)
        axes.set_xlabel("test accuracy, % (95 % interval)")
        axes.margins(x=0.1)
        _plain(axes)

    def draw_kept(self, axes: Any) -> None:
        """Accuracy on the predictions that a method is most certain of."""
        dropped = 100 * (1 - np.array(KEPT))
        colored = self.colored()
        for s in reversed(self._present()):
            curve = 100 * s.kept_accuracy
            if s.method in colored:
                color, marker = COLORS[s.method], MARKERS[s.method]
                axes.plot(dropped, curve, color=color, marker=marker, markevery=3, label=s.method)
            else:
                axes.plot(dropped, curve, color="#c9ccd1", linewidth=1, zorder=1)
        axes.set_xlabel("least certain predictions dropped, %")
        axes.set_ylabel("accuracy on the rest, %")
        rest = len(self._present()) - len(colored)
        axes.legend(
            frameon=False,
            fontsize=8,
            title="grey: the others" if rest else None,
            title_fontsize=8,
            reverse=True,
        )
        _plain(axes)

    def colored(self) -> list[str]:
        """Methods that are drawn in colour: the two most accurate, and those of `SHOWN`."""
        names = [s.method for s in self._present()]
        return list(dict.fromkeys([*names[:2], *(name for name in SHOWN if name in names)]))

    def _present(self) -> list[Standing]:
        return [s for s in self.standings if s.n_splits]

    def _height(self) -> float:
        return max(3.2, 1.2 + 0.36 * len(self._present()))


def _figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
