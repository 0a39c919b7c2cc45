"""Figures 6 and 7, and retrieval: lines of means over seeds with bands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bnca.report.claims.series import series
from bnca.report.claims.verdicts import Evidence
from bnca.report.drawings.style import COLORS, MARKERS, band, grid, new_figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bnca.report.claims.series import Series

    Row = Mapping[str, Any]


def draw_learning(rows: Sequence[Row]) -> tuple[Any, str]:
    """Figure 6: accuracy on training and test rows against the step."""
    found = series(Evidence(rows), "figure6", kind="curve")
    figure = new_figure(2.1 * -(-len(found) // 3) + 0.4)
    panels = grid(figure, len(found), 3, sharex=True)
    told = []
    for axes, one in zip(panels, found, strict=True):
        steps = one.entries("step")
        for method in ("NCA", "BNCA"):
            for value, line in (("train_accuracy", "--"), ("test_accuracy", "-")):
                columns = [100 * one.of(value, method=method, step=step) for step in steps]
                style = {"linestyle": line, "marker": MARKERS[method], "markersize": 2.5}
                label = f"{method}, {value.partition('_')[0]}"
                overlap = one.train_overlap if value == "train_accuracy" else one.overlap
                band(axes, steps, columns, method, overlap, label=label, **style)
                means = [float(np.nanmean(column)) for column in columns]
            ends = f"{max(means):.1f} at best, {means[-1]:.1f} at the end"
            told.append(f"{one.title}, {method}: test {ends}")
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xticks([0, 1, 10, 100], ["0", "1", "10", "100"])
        axes.set_title(one.title)
    for axes in panels[-3:]:
        axes.set_xlabel("step")
        axes.tick_params(labelbottom=True)  # also where the panel below is hidden
    for axes in panels[::3]:
        axes.set_ylabel("accuracy, %")
    _legend(figure, panels[0], 4)
    return figure, f"Accuracy in % from step to step. {'; '.join(told)}."


def draw_prior(rows: Sequence[Row]) -> tuple[Any, str]:
    """Figure 7: accuracy against the width of the prior."""
    found = series(Evidence(rows), "figure7")
    figure = new_figure(2.4)
    shown = [(one, noise) for one in found for noise in one.entries("noise")]
    panels = grid(figure, len(shown), 4)
    told = []
    for axes, (one, noise) in zip(panels, shown, strict=True):
        for scale, label, marker, line, color in (
            ("raw", "m0 = 0.1, as published", "o", "-", COLORS["BNCA"]),
            ("data", "in units of the data", "s", "--", COLORS["NCA"]),
        ):
            powers = one.entries("log10_sigma")
            columns = [
                100 * one.of("accuracy", kind="sweep", scale=scale, log10_sigma=p, noise=noise)
                for p in powers
            ]
            style = {"color": color, "linestyle": line, "marker": marker}
            band(axes, powers, columns, "", one.overlap, label=label, **style)
            means = [float(np.nanmean(column)) for column in columns]
            told.append(
                f"{one.title}, {100 * noise:.0f} % noise, {label}: {means[0]:.1f} at 1e-4, "
                f"{max(means):.1f} at best, {means[-1]:.1f} at 1e4"
            )
        plain = 100 * float(np.nanmean(one.of("accuracy", kind="baseline", noise=noise)))
        axes.axhline(plain, color=COLORS["PCA"], linestyle=":", label="equal weights")
        axes.set_title(f"{one.title.replace(' (', chr(10) + '(')}\n{100 * noise:.0f} % noise")
        axes.set_xlabel("log10 σ")
        axes.set_xticks([-4, -2, 0, 2, 4])
    panels[0].set_ylabel("accuracy, %")
    _legend(figure, panels[0], 3)
    return figure, f"Accuracy in % against the width of the prior. {'; '.join(told)}."


def draw_retrieval(rows: Sequence[Row]) -> tuple[Any, str]:
    """C14: what rankings find, and what certainty is worth."""
    found = series(Evidence(rows), "retrieval")
    figure = new_figure(1.9 * len(found) + 0.3)
    panels = figure.subplots(len(found), 2, squeeze=False)
    told = []
    for line, one in zip(panels, found, strict=True):
        told.append(_rankings(line[0], one))
        for name, marker in (("distance", "s"), ("std", "v"), ("both", "o"), ("comparison", "P")):
            shares = sorted(one.entries("kept"), reverse=True)
            columns = [100 * one.of("accuracy", certainty=name, kept=k) for k in shares]
            x = [100 * (1 - k) for k in shares]
            style = {"marker": marker, "markevery": 3}
            band(line[1], x, columns, name, one.overlap, label=f"by {name}", **style)
        line[1].set_title(one.title)
        line[1].set_ylabel("right, %")
    for axes in panels.flat:
        axes.set_ylim(top=min(axes.get_ylim()[1], 101))
    for axes, width in zip(panels[-1], (3, 2), strict=True):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.3), ncols=width)
    panels[-1][0].set_xlabel("k")
    panels[-1][1].set_xlabel("queries dropped, %")
    return figure, f"Retrieval of faces. {'; '.join(told)}."


def _rankings(axes: Any, one: Series) -> str:
    said = []
    ks = one.entries("k")
    for name, marker, line in (
        ("equal weights", "x", ":"),
        ("mean", "s", "--"),
        ("mean and std", "o", "-"),
    ):
        columns = [100 * one.of("map", ranking=name, k=k) for k in ks]
        band(axes, ks, columns, name, one.overlap, label=name, marker=marker, linestyle=line)
        said.append(f"{name} {float(np.nanmean(columns[ks.index(10)])):.1f}")
    axes.set_xticks(ks)
    axes.set_title(one.title)
    axes.set_ylabel("mAP@k, %")
    return f"{one.title}, mAP@10: {', '.join(said)}"


def _legend(figure: Any, axes: Any, columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)
