"""The paper's figures, each drawn from rows by a function of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from bnca.report.drawings import curves, images, overview, planes, probabilities

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Rows = Sequence[Mapping[str, Any]]

__all__ = ["DRAWINGS", "Drawing"]


class Drawing(NamedTuple):
    """How a figure is drawn and described.

    Attributes
    ----------
    id : str
        Name of the figure.
    tables : tuple of str
        Whose rows it needs.
    title, caption : str
        Above and below it.
    draw : callable
        ``draw(rows)`` returns a Matplotlib figure and what it shows in words, for those who do not
        see it; None where the rows hold nothing to draw.
    """

    id: str
    tables: tuple[str, ...]
    title: str
    caption: str
    draw: Callable[[Rows], tuple[Any, str] | None]


BAND = (
    "Means over seeds; bands and bars are 95 % confidence intervals, corrected for rows that "
    "repeats share."
)

DRAWINGS = (
    Drawing(
        "leads",
        ("table1", "table2"),
        "Lead of BNCA in every cell",
        "Lead of the published method over each other method in Tables 1 and 2, in points of "
        "accuracy, with 95 % confidence intervals, corrected for rows that repeats share.",
        overview.draw_leads,
    ),
    Drawing(
        "figure1",
        ("figure1",),
        "Figure 1: rescaled axes",
        "One query and its neighbours in the plane of the two leading axes, before and after "
        "learning, on a common scale; then, for each set, mean distance to same-class neighbours "
        f"over that to the others, on test rows. {BAND}",
        planes.draw_axes,
    ),
    Drawing(
        "figure2",
        ("figure2",),
        "Figure 2: wrong labels",
        "Training images with the labels that methods are given at 30 % noise; those with a wrong "
        "one are framed and crossed.",
        images.draw_flips,
    ),
    Drawing(
        "figure3",
        ("figure3",),
        "Figure 3: normal and difficult digits",
        "Normal digits are drawn at random, difficult ones are those on which an expert hesitates "
        "most.",
        images.draw_digits,
    ),
    Drawing(
        "figure4",
        ("figure4",),
        "Figure 4: what NCA and BNCA say about single digits",
        "Probability of each digit; the true one is hatched under a triangle, and bold in the "
        "ranked list of answers of more than 0.01, of which the first six are named.",
        probabilities.draw_bars,
    ),
    Drawing(
        "figure5",
        ("figure5",),
        "Figure 5: modified mean average precision",
        f"With tau = 0.01, on normal and on difficult digits. {BAND}",
        probabilities.draw_precision,
    ),
    Drawing(
        "figure6",
        ("figure6",),
        "Figure 6: learning curves at 30 % noise",
        "Accuracy of 5-NN from step to step, on training rows by the labels given (leave one out) "
        f"and on test rows by the true ones. {BAND}",
        curves.draw_learning,
    ),
    Drawing(
        "figure7",
        ("figure7",),
        "Figure 7: the width of the prior",
        "Accuracy against log10 of sigma, V0 = sigma I, with the published prior mean on features "
        f"as they are, and with a prior in units of the data. {BAND}",
        curves.draw_prior,
    ),
    Drawing(
        "retrieval",
        ("retrieval",),
        "Retrieval by mean and uncertainty",
        "Left: mAP@k of three rankings, for people who were not learned from. Right: share of "
        f"right nearest pictures, as the least certain queries are dropped. {BAND}",
        curves.draw_retrieval,
    ),
)
"""In the order of the page."""
