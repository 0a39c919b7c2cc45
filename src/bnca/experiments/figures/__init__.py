"""What the paper's figures, and the claim on retrieval, are drawn from: studies of tidy rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bnca.experiments.figures import axes, curvature, curves, digits, flips, prior, retrieval

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bnca.experiments.spec import Study

__all__ = ["STUDIES", "quick", "studies"]


def _of(module_studies: Callable[[int], list[Study]], table: str) -> Callable[[int], list[Study]]:
    def some(repeats: int = 30) -> list[Study]:
        return [study for study in module_studies(repeats) if study.table == table]

    return some


STUDIES: Mapping[str, Callable[[int], list[Study]]] = {
    "figure1": axes.studies,
    "figure2": flips.studies,
    "figure3": _of(digits.studies, "figure3"),
    "figure4": _of(digits.studies, "figure4"),
    "figure5": _of(digits.studies, "figure5"),
    "figure6": curves.studies,
    "figure7": prior.studies,
    "curvature": curvature.studies,
    "retrieval": retrieval.studies,
}
"""Each figure's studies by its name, as functions of the number of repeats."""


def studies(repeats: int = 30) -> list[Study]:
    """Every study, figure by figure."""
    return [study for of_figure in STUDIES.values() for study in of_figure(repeats)]


def quick(repeats: int = 10) -> list[Study]:
    """Every figure from sets that need neither data folder nor network."""
    modules = (axes, flips, digits, curves, prior, curvature, retrieval)
    return [study for module in modules for study in module.quick(repeats)]
