"""Experiments as data: what is compared, on which rows, how it is tuned and scored.

A new table is a new record; nothing here computes.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from bnca.base import MetricLearner
    from bnca.datasets import Dataset

VOTERS = [1, 3, 5, 9, 15, 25]
"""Numbers of voting neighbours that every method chooses from."""


@dataclass(frozen=True, eq=False)
class Method:
    """A method and the settings that cross-validation chooses from.

    Attributes
    ----------
    name : str
        How it is called in tables.
    learner : MetricLearner
        Not fitted; what is fixed about it is set.
    fits : mapping
        Settings that need a fit of their own, each with the values to try.
    votes : mapping
        Settings of the vote, tried on one and the same fit.
    steps : sequence of int
        Values of max_iter to try, all on the way of one fit.  For learners that call back with
        their map after each step, and have no votes but those of the nearest rows.
    """

    name: str
    learner: MetricLearner
    fits: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    votes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    steps: Sequence[int] = ()

    def description(self) -> dict[str, Any]:
        """All that decides what the method does, as JSON has it."""
        parameters = self.learner.get_params(deep=False)
        return {
            "name": self.name,
            "learner": type(self.learner).__name__,
            "parameters": {key: repr(value) for key, value in sorted(parameters.items())},
            "fits": {key: [repr(v) for v in values] for key, values in self.fits.items()},
            "votes": {key: [repr(v) for v in values] for key, values in self.votes.items()},
            "steps": list(self.steps),
        }


@dataclass(frozen=True)
class DataSpec:
    """A data set as an experiment uses it.  What is fitted is fitted on training rows only.

    Attributes
    ----------
    name : str
        Name in `bnca.datasets.REGISTRY`, or of a file in the data folder.
    title : str
        How it is called in tables; the paper's name where the paper has it.
    rows : {"raw", "l1"}
        Whether each row is first divided by the sum of its absolute values.
    columns : {"raw", "z-score"}
        Whether each column is then centred and divided by its standard deviation.
    n_components : int or None
        How many principal components are then taken; None leaves the columns.
    published_split : bool
        Whether test rows come from the published test part and training rows from the rest.
    n_classes : int or None
        Each seed draws that many classes; None takes all.
    rows_per_class : int or None
        Each seed draws that many rows of a class, or all where there are fewer.
    remark : str
        What a reader has to know.
    """

    name: str
    title: str
    rows: str = "raw"
    columns: str = "raw"
    n_components: int | None = None
    published_split: bool = False
    n_classes: int | None = None
    rows_per_class: int | None = None
    remark: str = ""


@dataclass(frozen=True, eq=False)
class Experiment:
    """One data set at several sizes and noise levels: some rows of a table.

    Attributes
    ----------
    id : str
        Its name, such as "table1/balance".
    data : DataSpec
        The rows.
    sizes : tuple of int
        Training rows of each class.  A smaller training set is part of a larger one, and all have
        the same test rows.
    n_test : int
        Test rows; all that are left where those are fewer.
    methods : callable
        ``methods()`` returns the methods to compare.
    noise : tuple of float
        Shares of training labels that are made wrong; test labels stay as they are.
    seeds : tuple of int
        One repeat each.
    metrics : tuple of str
        Names in `bnca.experiments.metrics.METRICS`, a column each.
    folds : int
        Of the cross-validation that chooses settings.
    fit_repeats : int
        How often the fit with the chosen settings is timed; the median counts.
    alone : bool
        Whether its cells run one at a time while nothing else runs: for times to be compared.
    """

    id: str
    data: DataSpec
    sizes: tuple[int, ...]
    n_test: int
    methods: Callable[[], Sequence[Method]]
    noise: tuple[float, ...] = (0.0,)
    seeds: tuple[int, ...] = tuple(range(30))
    metrics: tuple[str, ...] = (
        "accuracy",
        "log_loss",
        "scaled_log_loss",
        "calibration_error",
        "kept_accuracy",
    )
    folds: int = 3
    fit_repeats: int = 1
    alone: bool = False

    @property
    def table(self) -> str:
        """The part of the name before the stroke."""
        return self.id.partition("/")[0]

    def cells(self) -> Iterator[Cell]:
        """All cells, seed by seed, so that an interrupted run has every cell equally often."""
        for seed in self.seeds:
            for size in self.sizes:
                for noise in self.noise:
                    yield Cell(self, size, noise, seed)


@dataclass(frozen=True, eq=False)
class Study:
    """Something that is no comparison of tuned methods: a figure, or a claim of its own.

    Attributes
    ----------
    id : str
        Its name, such as "figure6/mnist".
    data : DataSpec
        The rows.
    work : callable
        ``work(part, data, place)`` returns the rows of one seed, without the columns that all rows
        have (`bnca.experiments.run` adds those).  A function of a module, so that processes can
        hand it on; `place` is the data folder or None.
    seeds : tuple of int
        One repeat each.
    settings : mapping
        What `work` needs to know, as JSON has it.
    alone : bool
        As in `Experiment`.
    """

    id: str
    data: DataSpec
    work: Callable[[Part, Dataset, Path | None], list[dict[str, Any]]]
    seeds: tuple[int, ...] = tuple(range(30))
    settings: Mapping[str, Any] = field(default_factory=dict)
    alone: bool = False

    @property
    def table(self) -> str:
        """The part of the name before the stroke."""
        return self.id.partition("/")[0]

    def cells(self) -> Iterator[Part]:
        """One part a seed."""
        for seed in self.seeds:
            yield Part(self, seed)


class Part(NamedTuple):
    """One seed of a study, as a `Cell` is one draw of an experiment."""

    experiment: Study
    seed: int

    def description(self) -> str:
        """All that decides the results, the code aside, as JSON text."""
        study = self.experiment
        return json.dumps(
            {
                "id": study.id,
                "data": asdict(study.data),
                "work": f"{study.work.__module__}.{study.work.__qualname__}",
                "settings": dict(study.settings),
                "seed": self.seed,
                "alone": study.alone,
            },
            sort_keys=True,
        )


class Cell(NamedTuple):
    """One draw of training and test rows, on which all methods are compared."""

    experiment: Experiment
    size: int
    noise: float
    seed: int

    def description(self) -> str:
        """All that decides the results, method and code aside, as JSON text."""
        e = self.experiment
        return json.dumps(
            {
                "id": e.id,
                "data": asdict(e.data),
                "size": self.size,
                "largest_size": max(e.sizes),  # it decides which rows are left for the test
                "n_test": e.n_test,
                "noise": self.noise,
                "seed": self.seed,
                "metrics": e.metrics,
                "folds": e.folds,
                "fit_repeats": e.fit_repeats,
                "alone": e.alone,
            },
            sort_keys=True,
        )
