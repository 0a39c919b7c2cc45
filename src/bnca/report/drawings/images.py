"""Figures 2 and 3: rows of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bnca.report.drawings.style import new_figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Mapping[str, Any]

WRONG = "#d55e00"


def draw_flips(rows: Sequence[Row]) -> tuple[Any, str]:
    """Figure 2: images by the label that they are given, the wrong ones marked."""
    lines: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        lines.setdefault((row["title"], row["given_name"]), []).append(row)
    columns = max(len(line) for line in lines.values())
    # An engine would make room beside the first image for half the width of its title.
    figure = new_figure(0.6 * len(lines) + 0.1, layout="none")
    figure.subplots_adjust(0.005, 0.02, 0.995, 1 - 0.22 / figure.get_figheight(), 0.08, 0.6)
    panels = figure.subplots(len(lines), columns, squeeze=False)
    for line, (key, found) in zip(panels, lines.items(), strict=True):
        for axes in line:
            axes.set_axis_off()
            axes.set_anchor("SW")
        for axes, row in zip(line, found, strict=False):
            _image(axes, row)
            if row["flipped"]:
                _cross(axes, row)
        line[0].set_title(f"{key[0]}: given as “{key[1]}”", loc="left", fontsize=7, pad=3)
    wrong = sum(bool(row["flipped"]) for row in rows)
    said = "; ".join(f"{title} given as {name}" for title, name in lines)
    return figure, f"Rows of small images: {said}. {wrong} of {len(rows)} are crossed as wrong."


def draw_digits(rows: Sequence[Row]) -> tuple[Any, str]:
    """Figure 3: normal digits, then difficult ones."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    figure = new_figure(1.6)
    for part, (group, found) in zip(
        np.atleast_1d(figure.subfigures(1, len(groups))), groups.items(), strict=True
    ):
        part.suptitle(group, fontsize=8)
        for axes in (panels := part.subplots(4, -(-len(found) // 4)).ravel()):
            axes.set_axis_off()
        for axes, row in zip(panels, found, strict=False):
            _image(axes, row)
    counts = " and ".join(f"{len(found)} {group} digits" for group, found in groups.items())
    return figure, f"Small images of {counts} of {rows[0]['title']}."


def _image(axes: Any, row: Row) -> None:
    image = np.reshape(row["image"], (row["height"], row["width"]))
    axes.imshow(image, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    axes.set_axis_off()


def _cross(axes: Any, row: Row) -> None:
    height, width = row["height"] - 0.5, row["width"] - 0.5
    axes.plot([-0.5, width, width, -0.5, -0.5], [-0.5, -0.5, height, height, -0.5], color=WRONG)
    axes.plot([-0.5, width], [-0.5, height], color=WRONG, linewidth=0.8)
