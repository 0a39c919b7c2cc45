"""What all figures share: a paper's size, colours that everybody can tell apart, how they are kept.

Colours are those of Okabe and Ito (2008); no figure tells by colour alone.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from bnca.files import replacing
from bnca.report.statistics import mean_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from bnca.core.arrays import Doubles

WIDTH = 7.0
"""Inches: both columns of a paper."""

COLORS = {
    "PCA": "#666666",
    "equal weights": "#666666",
    "NCA": "#0072b2",
    "NCA, to the end": "#56b4e9",
    "NCM": "#e69f00",
    "LMNN": "#009e73",
    "BML": "#cc79a7",
    "BNCA": "#d55e00",
    "BNCA+": "#000000",
    "mean": "#0072b2",
    "mean and std": "#d55e00",
    "distance": "#0072b2",
    "std": "#009e73",
    "both": "#d55e00",
    "comparison": "#cc79a7",
}
"""A colour for each name that is drawn."""

MARKERS = {"NCA": "s", "BNCA": "o", "BNCA+": "*", "NCM": "D", "LMNN": "v", "BML": "P", "PCA": "x"}

SETTINGS: Any = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "font.size": 8,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "pdf.fonttype": 42,  # journals refuse the other kind
    "svg.hashsalt": "bnca",  # the same rows, the same file
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
}


def new_figure(height: float, width: float = WIDTH, layout: Any = "constrained") -> Any:
    """Return an empty figure of a paper's width."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout=layout)


def grid(figure: Any, n: int, columns: int, **options: Any) -> list[Any]:
    """Axes for n panels, so many in a row; those left over are hidden."""
    columns = min(columns, n)
    lines = -(-n // columns)
    found: list[Any] = figure.subplots(lines, columns, squeeze=False, **options).ravel().tolist()
    for axes in found[n:]:
        axes.set_visible(False)
    return found[:n]


def interval(values: Doubles, overlap: float = 0.0) -> tuple[float, float, float]:
    """Mean and ends of its interval, both the mean where one repeat says nothing."""
    mean, low, high = mean_interval(values, overlap)
    return mean, mean if low is None else low, mean if high is None else high


def band(
    axes: Any,
    x: Sequence[float],
    columns: Sequence[Doubles],
    name: str,
    overlap: float,
    **style: Any,
) -> None:
    """Draw a line of means over repeats, with its band."""
    points = np.array([interval(column, overlap) for column in columns])
    color = style.pop("color", COLORS.get(name, "#000000"))
    axes.fill_between(x, points[:, 1], points[:, 2], color=color, alpha=0.15, linewidth=0)
    axes.plot(x, points[:, 0], color=color, **style)


def save(
    draw: Callable[[Sequence[Mapping[str, Any]]], tuple[Any, str] | None],
    rows: Sequence[Mapping[str, Any]],
    folder: Path,
    name: str,
) -> tuple[str, str] | None:
    """Draw rows; write SVG and PDF, the same for the same rows.

    Returns
    -------
    svg, alternative : str
        The picture, and what it shows in words; None where there is nothing to draw.
    """
    import matplotlib as mpl

    file = io.StringIO()
    with mpl.rc_context(SETTINGS):
        drawn = draw(rows)
        if drawn is None:
            return None
        figure, said = drawn
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, format="svg", metadata={"Date": None})
        with replacing(folder / f"{name}.pdf") as new:
            figure.savefig(new, format="pdf", metadata={"CreationDate": None})
    with replacing(folder / f"{name}.svg") as new:
        new.write_text(file.getvalue(), encoding="utf-8")
    return file.getvalue(), said
