"""Run experiments: every cell once, on all cores, interrupted at any point and taken up again."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
import warnings
from datetime import UTC, datetime
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from bnca.blocks import thread_count
from bnca.datasets import Dataset, MissingData, data_folder, load
from bnca.experiments.draw import draw
from bnca.experiments.metrics import METRICS, predicted
from bnca.experiments.spec import Cell, Part
from bnca.experiments.store import Store, TidyRow, code_version, provenance
from bnca.experiments.tuning import choose

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from bnca.experiments.draw import Draw
    from bnca.experiments.spec import DataSpec, Experiment, Method, Study

TIMES = ("fit_seconds", "tune_seconds", "predict_seconds", "finished")
"""Columns that differ from run to run; all others are the same each time, machine aside."""


class Skipped(NamedTuple):
    """A cell that has no rows.

    Attributes
    ----------
    cell : Cell or Part
        Which.
    reason : str
        Why, in a sentence.
    """

    cell: Cell | Part
    reason: str


class Results(NamedTuple):
    """What a run gave.

    Attributes
    ----------
    rows : list of dict
        A row for each cell and method, in the order of the experiments, whoever finished first.
    skipped : list of Skipped
        Cells without rows.
    """

    rows: list[TidyRow]
    skipped: list[Skipped]


class Progress(Protocol):
    """What is told of each cell: how many are done, of how many, which, and if skipped, why."""

    def __call__(self, done: int, total: int, cell: Cell | Part, reason: str | None, /) -> None:
        """Hear of one cell."""


def run(
    experiments: Sequence[Experiment | Study],
    folder: Path,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    allow_download: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Results:
    """Rows of all cells: those in the folder as they are, the others computed and kept there.

    Parameters
    ----------
    experiments : sequence of Experiment or Study
        What to run.
    folder : Path
        Where finished cells are kept.  Those of other code versions are left alone and not read.
    data_dir : path, default=None
        Data folder, as for `bnca.datasets.load`.
    allow_download : bool, default=False
        Whether a missing set may be fetched.
    n_jobs : int or None, default=None
        Processes, of one thread each; None and -1 take every core.  Results do not depend on it.
    progress : callable or None, default=None
        Called as ``progress(done, total, cell, reason)`` after each cell, and once for each that
        was there already or has to be skipped; `reason` is None except for those.

    Returns
    -------
    Results
        Rows, and cells that were skipped.
    """
    store = Store(folder)
    cells: list[Cell | Part] = [c for experiment in experiments for c in experiment.cells()]
    keys = {id(cell): cell_key(cell) for cell in cells}
    place = data_folder(data_dir)
    sets = _Sets(place, allow_download=allow_download)
    kept = store.read()
    reasons: dict[int, str] = {}
    pending: list[Cell | Part] = []
    done = 0

    def tell(cell: Cell | Part, reason: str | None = None) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, len(cells), cell, reason)

    for cell in cells:
        name = cell.experiment.data.name
        record = kept.get(keys[id(cell)])
        # A set that is no longer at hand does not undo what was computed from it.
        if record is not None and sets.checksum(name) in {None, record["data_checksum"]}:
            tell(cell)
        elif sets.checksum(name) is None:
            reasons[id(cell)] = sets.reason(name)
            tell(cell, reasons[id(cell)])
        else:
            kept.pop(keys[id(cell)], None)
            pending.append(cell)

    for cell, outcome in _outcomes(pending, place, allow_download, n_jobs):
        if isinstance(outcome, str):
            reasons[id(cell)] = outcome
            tell(cell, outcome)
            continue
        if any(row["code"] != code_version() for row in outcome):
            msg = "The package's source changed while it ran. Start again: what is kept is kept."
            raise RuntimeError(msg)
        key = keys[id(cell)]
        checksum = sets.checksum(cell.experiment.data.name)
        record = {"key": key, "code": code_version(), "data_checksum": checksum, "rows": outcome}
        store.append(record)
        kept[key] = record
        tell(cell)

    rows = [row for cell in cells for row in kept.get(keys[id(cell)], {"rows": []})["rows"]]
    return Results(rows, [Skipped(c, reasons[id(c)]) for c in cells if id(c) in reasons])


def cell_key(cell: Cell | Part) -> str:
    """Name of a cell's results: a hash of all that decides them, the code included."""
    text = f"{code_version()} {cell.description()}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def run_cell(cell: Cell | Part, data: Dataset, place: Path | None = None) -> list[TidyRow]:
    """Rows of one unit of work, with the columns that all rows have; one thread."""
    experiment = cell.experiment
    first = {
        "table": experiment.table,
        "experiment": experiment.id,
        "data": data.name,
        "title": experiment.data.title,
        "seed": cell.seed,
        "n_pool": _pool(experiment.data, data),
    }
    with threadpool_limits(limits=1):
        if isinstance(cell, Part):
            rows = cell.experiment.work(cell, data, place)
        else:
            drawn = draw(cell, data)
            rows = [_row(cell, method, drawn) for method in cell.experiment.methods()]
    last = {
        "data_source": data.source,
        "as_expected": data.as_expected,
        **provenance(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return [{**first, **row, **last} for row in rows]


def _pool(spec: DataSpec, data: Dataset) -> int:
    """Rows that test rows are drawn from: repeats are the more alike, the fewer there are."""
    if spec.published_split and data.is_test is not None:
        return int(data.is_test.sum())
    return len(data.y)


def _row(cell: Cell, method: Method, drawn: Draw) -> TidyRow:
    """Tune, fit and score a method on one draw."""
    experiment = cell.experiment
    row: TidyRow = {
        "size": cell.size,
        "noise": cell.noise,
        "n_train": len(drawn.X),
        "n_test": len(drawn.X_test),
        "method": method.name,
    }
    nothing = dict.fromkeys((*experiment.metrics, "fit_seconds", "tune_seconds", "predict_seconds"))
    try:
        found: Mapping[str, Any] = {"reason": "", **_measure(cell, method, drawn)}
    except Exception as error:  # noqa: BLE001 - one method's failure is a result, not the run's end
        found = {"reason": f"{type(error).__name__}: {error}", "chosen": "", "warnings": ""}
    return {**row, **nothing, **found}


def _measure(cell: Cell, method: Method, drawn: Draw) -> dict[str, Any]:
    """Columns of a row that the method decides."""
    experiment = cell.experiment
    parameters = method.learner.get_params(deep=False)
    one_thread = {"n_jobs": 1} if "n_jobs" in parameters else {}
    learner = clone(method.learner).set_params(**one_thread)
    tuned = type(method)(method.name, learner, method.fits, method.votes, method.steps)
    start = time.perf_counter()
    setting = choose(tuned, drawn.X, drawn.given, folds=experiment.folds, seed=cell.seed)
    tune_seconds = time.perf_counter() - start
    seconds = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(experiment.fit_repeats):
            best = clone(learner).set_params(**setting)
            start = time.perf_counter()
            best.fit(drawn.X, drawn.given)
            seconds.append(time.perf_counter() - start)
    start = time.perf_counter()
    probabilities = best.predict_proba(drawn.X_test)
    predict_seconds = time.perf_counter() - start
    said = predicted(probabilities, best.classes_, drawn.y_test)
    return {
        **{name: METRICS[name](said) for name in experiment.metrics},
        "fit_seconds": median(seconds),
        "tune_seconds": tune_seconds,
        "predict_seconds": predict_seconds,
        "chosen": json.dumps(setting),
        "warnings": ", ".join(sorted({w.category.__name__ for w in caught})),
    }


class _Sets:
    """Data sets of a run, looked up once each: their checksums, or why they are missing."""

    def __init__(self, place: Path | None, *, allow_download: bool) -> None:
        self._place, self._allow_download = place, allow_download
        self._found: dict[str, tuple[str | None, str]] = {}

    def checksum(self, name: str) -> str | None:
        return self._look(name)[0]

    def reason(self, name: str) -> str:
        return self._look(name)[1]

    def _look(self, name: str) -> tuple[str | None, str]:
        if name not in self._found:
            try:
                self._found[name] = (_load(name, self._place, self._allow_download).checksum, "")
            except MissingData as error:
                self._found[name] = (None, str(error))
        return self._found[name]


@lru_cache(maxsize=2)
def _load(name: str, place: Path | None, allow_download: bool) -> Dataset:
    """Load a set once for all cells that a process has of it."""
    return load(name, place, allow_download=allow_download)


def _outcomes(
    cells: Sequence[Cell | Part],
    place: Path | None,
    allow_download: bool,
    n_jobs: int | None,
) -> Iterator[tuple[Cell | Part, list[TidyRow] | str]]:
    """Cells with their rows, or with the reason why there are none, as they are finished."""
    together = [cell for cell in cells if not cell.experiment.alone]
    alone = [cell for cell in cells if cell.experiment.alone]
    workers = min(thread_count(n_jobs), len(together))
    if workers > 1:
        with parallel_config(backend="loky", inner_max_num_threads=1):
            pool = Parallel(
                n_jobs=workers, return_as="generator_unordered", pre_dispatch="2*n_jobs"
            )
            jobs = (
                delayed(_work)(i, cell, place, allow_download, os.getpid())
                for i, cell in enumerate(together)
            )
            for i, outcome in pool(jobs):
                yield together[i], outcome
    else:
        alone = [*together, *alone]
    for cell in alone:
        yield cell, _attempt(cell, place, allow_download)


def _attempt(cell: Cell | Part, place: Path | None, allow_download: bool) -> list[TidyRow] | str:
    try:
        return run_cell(cell, _load(cell.experiment.data.name, place, allow_download), place)
    except (MissingData, ValueError) as error:  # too few rows for the sizes asked for, mostly
        return str(error)
    except Exception as error:  # noqa: BLE001 - one cell's failure is a result, not the run's end
        return f"{type(error).__name__}: {error}"


def _work(
    i: int,
    cell: Cell | Part,
    place: Path | None,
    allow_download: bool,
    parent: int,
) -> tuple[int, list[TidyRow] | str]:
    """Do one cell in a process of the pool."""
    _end_with(parent)
    return i, _attempt(cell, place, allow_download)


@lru_cache(maxsize=1)
def _end_with(parent: int) -> None:
    """End this process soon after its parent, even if that was killed and could not say so."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
