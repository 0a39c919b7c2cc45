"""Run experiments: every unit once, on all cores, interrupted at any point and taken up again."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from joblib import Parallel, delayed, parallel_config

from bnca.blocks import thread_count
from bnca.datasets import Dataset, MissingData, data_folder, load
from bnca.experiments.code import code_version
from bnca.experiments.measure import SECONDS, measure_cell, measure_part, pool_size
from bnca.experiments.spec import Cell, Method, Part
from bnca.experiments.store import Store, TidyRow, provenance

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from bnca.experiments.spec import Experiment, Study

TIMES = (*SECONDS, "finished")
"""Columns that differ from run to run; all others are the same each time, machine aside."""


class Unit(NamedTuple):
    """What is computed and kept as one: a method on a draw, or a part of a study.

    Attributes
    ----------
    cell : Cell or Part
        The draw.
    method : Method or None
        None for a part of a study.
    """

    cell: Cell | Part
    method: Method | None

    @property
    def code(self) -> str:
        """Code version of all that decides its rows."""
        root: Any = None
        if isinstance(self.cell, Part):
            root = self.cell.experiment.work
        elif self.method is not None:
            root = type(self.method.learner)
        return code_version(root)

    @property
    def key(self) -> str:
        """Name of its results: a hash of all that decides them, the code included."""
        said = "" if self.method is None else self.method.description()
        text = f"{self.code} {self.cell.description()} {said}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]


class Skipped(NamedTuple):
    """A unit that has no rows.

    Attributes
    ----------
    unit : Unit
        Which.
    reason : str
        Why, in a sentence.
    """

    unit: Unit
    reason: str


class Results(NamedTuple):
    """What a run gave.

    Attributes
    ----------
    rows : list of dict
        Rows of all units, in the order of the experiments, whoever finished first.
    skipped : list of Skipped
        Units without rows.
    """

    rows: list[TidyRow]
    skipped: list[Skipped]


class Progress(Protocol):
    """What is told of each unit: how many are done, of how many, which, and if skipped, why."""

    def __call__(self, done: int, total: int, unit: Unit, reason: str | None, /) -> None:
        """Hear of one unit."""


def units(
    experiments: Sequence[Experiment | Study], only: Collection[str] | None = None
) -> list[Unit]:
    """All units of some experiments, in their order.

    Parameters
    ----------
    experiments : sequence of Experiment or Study
        Which.
    only : collection of str or None
        Names of methods; those of experiments that are not among them are left out.
    """
    out: list[Unit] = []
    for experiment in experiments:
        methods: list[Method | None] = [None]
        if hasattr(experiment, "methods"):
            methods = [m for m in experiment.methods() if only is None or m.name in only]
        out += [Unit(cell, method) for cell in experiment.cells() for method in methods]
    return out


def run(
    experiments: Sequence[Experiment | Study],
    folder: Path,
    *,
    only: Collection[str] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    allow_download: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    compute: bool = True,
) -> Results:
    """Rows of all units: those in the folder as they are, the others computed and kept there.

    Units are computed seed by seed, so that an interrupted run has each experiment equally often.

    Parameters
    ----------
    experiments : sequence of Experiment or Study
        What to run.
    folder : Path
        Where finished units are kept.  Those of other code versions are left alone and not used.
    only : collection of str or None, default=None
        Names of the methods to run; None is all of them.
    data_dir : path, default=None
        Data folder, as for `bnca.datasets.load`.
    allow_download : bool, default=False
        Whether a missing set may be fetched.
    n_jobs : int or None, default=None
        Processes, of one thread each; None and -1 take every core.  Results do not depend on it.
    progress : callable or None, default=None
        Called as ``progress(done, total, unit, reason)`` after each unit, and once for each that
        was there already or has to be skipped; `reason` is None except for those.
    compute : bool, default=True
        False only gathers what is there; the rest is skipped.

    Returns
    -------
    Results
        Rows, and units that were skipped.
    """
    store, place = Store(folder), data_folder(data_dir)
    wanted = units(experiments, only)
    keys = [unit.key for unit in wanted]
    sets = _Sets(place, allow_download=allow_download)
    kept = store.read()
    reasons: dict[int, str] = {}
    pending: list[int] = []
    done = 0

    def tell(i: int, reason: str | None = None) -> None:
        nonlocal done
        done += 1
        if reason is not None:
            reasons[i] = reason
        if progress is not None:
            progress(done, len(wanted), wanted[i], reason)

    for i, unit in enumerate(wanted):
        name = unit.cell.experiment.data.name
        record = kept.get(keys[i])
        # A set that is no longer at hand does not undo what was computed from it.
        if record is not None and sets.checksum(name) in {None, record["data_checksum"]}:
            tell(i)
            continue
        kept.pop(keys[i], None)
        if sets.checksum(name) is None or not compute:
            tell(i, sets.reason(name) or "It was not asked to run.")
        else:
            pending.append(i)

    for i, outcome in _outcomes(wanted, pending, place, allow_download, n_jobs):
        if isinstance(outcome, str):
            tell(i, outcome)
            continue
        _refuse_mixed(wanted[i], outcome)
        checksum = sets.checksum(wanted[i].cell.experiment.data.name)
        kept[keys[i]] = {"key": keys[i], "data_checksum": checksum, "rows": outcome}
        store.append(kept[keys[i]])
        tell(i)

    rows = [row for key in keys for row in kept.get(key, {"rows": []})["rows"]]
    return Results(rows, [Skipped(wanted[i], reason) for i, reason in sorted(reasons.items())])


def _refuse_mixed(unit: Unit, rows: Sequence[TidyRow]) -> None:
    """Raise where a process of the pool has read other source files than this one."""
    if any(row["code"] != unit.code for row in rows):
        msg = "The package's source changed while it ran. Start again: what is kept is kept."
        raise RuntimeError(msg)


def run_units(
    cell: Cell | Part, methods: Sequence[Method], data: Dataset, place: Path | None = None
) -> list[list[TidyRow]]:
    """Rows of a part of a study, or of each method on a draw, with the columns that all have."""
    experiment = cell.experiment
    first = {
        "table": experiment.table,
        "experiment": experiment.id,
        "data": data.name,
        "title": experiment.data.title,
        "seed": cell.seed,
        "n_pool": pool_size(experiment.data, data),
    }
    if isinstance(cell, Part):
        found = [(Unit(cell, None), measure_part(cell, data, place))]
    else:
        measured = measure_cell(cell, methods, data)
        pairs = zip(methods, measured, strict=True)
        found = [(Unit(cell, method), [row]) for method, row in pairs]
    last = {
        "data_source": data.source,
        "as_expected": data.as_expected,
        **provenance(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return [[{**first, **row, "code": u.code, **last} for row in rows] for u, rows in found]


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


@lru_cache(maxsize=16)
def _load(name: str, place: Path | None, allow_download: bool) -> Dataset:
    """Load a set once for all units that a process has of it."""
    return load(name, place, allow_download=allow_download)


class _Job(NamedTuple):
    """Units of one draw, done together so that the draw is made once."""

    places: list[int]
    cell: Cell | Part
    methods: list[Method]


def _jobs(wanted: Sequence[Unit], pending: Sequence[int]) -> list[_Job]:
    """Pending units by draw, seed by seed."""
    grouped: dict[int, _Job] = {}
    for i in pending:
        cell, method = wanted[i]
        job = grouped.setdefault(id(cell), _Job([], cell, []))
        job.places.append(i)
        job.methods.extend([] if method is None else [method])
    return sorted(grouped.values(), key=lambda job: job.cell.seed)


def _outcomes(
    wanted: Sequence[Unit],
    pending: Sequence[int],
    place: Path | None,
    allow_download: bool,
    n_jobs: int | None,
) -> Iterator[tuple[int, list[TidyRow] | str]]:
    """Units with their rows, or with the reason why there are none, as they are finished."""
    jobs = _jobs(wanted, pending)
    together = [job for job in jobs if not job.cell.experiment.alone]
    alone = [job for job in jobs if job.cell.experiment.alone]
    workers = min(thread_count(n_jobs), len(together))
    if workers > 1:
        with parallel_config(backend="loky", inner_max_num_threads=1):
            pool = Parallel(
                n_jobs=workers, return_as="generator_unordered", pre_dispatch="2*n_jobs"
            )
            calls = (delayed(_work)(job, place, allow_download, os.getpid()) for job in together)
            for places, outcome in pool(calls):
                yield from _each(places, outcome)
    else:
        alone = [*together, *alone]
    for job in alone:
        yield from _each(job.places, _attempt(job, place, allow_download))


def _each(
    places: Sequence[int], outcome: list[list[TidyRow]] | str
) -> Iterator[tuple[int, list[TidyRow] | str]]:
    for n, i in enumerate(places):
        yield i, outcome if isinstance(outcome, str) else outcome[n]


def _attempt(job: _Job, place: Path | None, allow_download: bool) -> list[list[TidyRow]] | str:
    try:
        data = _load(job.cell.experiment.data.name, place, allow_download)
        return run_units(job.cell, job.methods, data, place)
    except (MissingData, ValueError) as error:  # too few rows for the sizes asked for, mostly
        return str(error)
    except Exception as error:  # noqa: BLE001 - one draw's failure is a result, not the run's end
        return f"{type(error).__name__}: {error}"


def _work(
    job: _Job, place: Path | None, allow_download: bool, parent: int
) -> tuple[list[int], list[list[TidyRow]] | str]:
    """Do one job in a process of the pool."""
    _end_with(parent)
    return job.places, _attempt(job, place, allow_download)


@lru_cache(maxsize=1)
def _end_with(parent: int) -> None:
    """End this process soon after its parent, even if that was killed and could not say so.

    An interrupt from the keyboard reaches all processes at once; only the parent answers to it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def experiment_reasons(skipped: Sequence[Skipped]) -> dict[str, str]:
    """Experiment to the reasons why some of its units have no rows."""
    found: dict[str, dict[str, Any]] = {}
    for unit, reason in skipped:
        found.setdefault(unit.cell.experiment.id, {})[reason] = None
    return {name: " ".join(reasons) for name, reasons in found.items()}
