"""Tune, fit and score methods on many splits of the same rows, part of their labels made wrong.

A split and a method make a task of their own.  Each is done on one thread, so its result does not
depend on how many processes share the work, nor on which of them does it.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
import warnings
from dataclasses import replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from bnca.blocks import thread_count
from bnca.experiments.code import code_version
from bnca.experiments.contenders import contenders
from bnca.experiments.draw import flip
from bnca.experiments.everyday import WithProbabilities
from bnca.experiments.metrics import METRICS, kept_accuracy, predicted
from bnca.experiments.plan import split
from bnca.experiments.problem import prepare
from bnca.experiments.store import Store, provenance
from bnca.experiments.tuning import choose, quiet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from bnca.core.arrays import Doubles, Integers
    from bnca.experiments.plan import Plan
    from bnca.experiments.problem import Problem
    from bnca.experiments.spec import Method

PATIENCE = 3.0
"""Seconds of work from which on other processes are started; that takes about as long."""


class Row(NamedTuple):
    """One method on one split; `kept_accuracy` goes with `bnca.experiments.metrics.KEPT`.

    Numbers are nan where the method failed, and `reason` says why.  `majority` is the accuracy of
    always answering the most frequent class.  `wrong_found` is the share of the labels made wrong
    that the method holds for wrong, `right_doubted` that of the others; None where it tells none.
    """

    method: str
    seed: int
    accuracy: float
    log_loss: float
    calibration_error: float
    fit_seconds: float
    tune_seconds: float
    kept_accuracy: tuple[float, ...]
    chosen: Mapping[str, Any]
    majority: float
    wrong_found: float | None = None
    right_doubted: float | None = None
    reason: str = ""
    warnings: str = ""


def run(
    problem: Problem, plan: Plan, folder: Path | None = None, *, n_jobs: int | None = None
) -> Iterator[Row]:
    """Rows of the comparison as they are finished, so that a caller can show progress.

    Parameters
    ----------
    problem : Problem
        Rows and classes.
    plan : Plan
        What `bnca.experiments.plan.plan` returns.
    folder : Path or None
        Where rows are kept as they are finished; those that are there already come first, and are
        not computed again.
    n_jobs : int or None
        Processes; None and -1 take every core.  Work of a few seconds is done by one.

    Yields
    ------
    Row
        In any order; `in_order` sorts them.
    """
    tasks = [(name, seed) for seed in plan.seeds for name in plan.methods]
    if folder is None:
        yield from _computed(problem, plan, tasks, n_jobs)
        return
    store = Store(folder)
    kept = store.read()
    described = _description(problem, plan)
    keys = {task: _key(described, *task) for task in tasks}
    for task in tasks:
        if keys[task] in kept:
            yield _from_record(kept[keys[task]])
    left = [task for task in tasks if keys[task] not in kept]
    for row in _computed(problem, plan, left, n_jobs):
        record = {**row._asdict(), **provenance()}
        store.append({"key": keys[row.method, row.seed], "rows": [record]})
        yield row


def in_order(rows: Sequence[Row], plan: Plan) -> list[Row]:
    """Rows split by split, whoever was finished first."""
    place = {name: i for i, name in enumerate(plan.methods)}
    return sorted(rows, key=lambda row: (row.seed, place[row.method]))


def measure(problem: Problem, plan: Plan, name: str, seed: int) -> Row:
    """Tune, fit and score one method on one split."""
    train, test = split(problem.y, plan, seed)
    given = flip(problem.y[train], plan.noise, np.random.default_rng(seed))
    majority = float(np.mean(problem.y[test] == np.bincount(problem.y).argmax()))
    try:
        with threadpool_limits(limits=1), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            X, X_test = prepare(problem, train, test, plan.components)
            method = _one_thread(_methods()[name])
            truth = problem.y[train]
            found = _measure(method, (X, given, truth), (X_test, problem.y[test]), seed)
    except Exception as error:  # noqa: BLE001 - one method's failure is a result, not the run's end
        nothing = (float("nan"),) * 5
        reason = f"{type(error).__name__}: {error}"
        return Row(name, seed, *nothing, (), {}, majority, reason=reason)
    said = ", ".join(sorted({w.category.__name__ for w in caught}))
    return found._replace(majority=majority, warnings=said)


@cache
def _methods() -> Mapping[str, Method]:
    return {method.name: method for method in contenders()}


def _one_thread(method: Method) -> Method:
    learner = clone(method.learner)
    if "n_jobs" in learner.get_params(deep=False):
        learner.set_params(n_jobs=1)
    return replace(method, learner=learner)


def _measure(
    method: Method,
    learn: tuple[Doubles, Integers, Integers],
    judge: tuple[Doubles, Integers],
    seed: int,
) -> Row:
    X, given, truth = learn
    started = time.perf_counter()
    with quiet():
        to_choose = method.fits or method.votes or method.steps
        setting = choose(method, X, given, seed=seed) if to_choose else {}
        tuned = time.perf_counter()
        best = clone(method.learner).set_params(**setting)
        best = best if hasattr(best, "predict_proba") else WithProbabilities(best)
        best.fit(X, given)
        fitted = time.perf_counter()
        said = predicted(best.predict_proba(judge[0]), best.classes_, judge[1])
    return Row(
        method.name,
        seed,
        METRICS["accuracy"](said),
        METRICS["log_loss"](said),
        METRICS["calibration_error"](said),
        fitted - tuned,
        tuned - started,
        kept_accuracy(said.top, said.correct),
        setting,
        float("nan"),
        *_doubts(best, given, truth),
    )


def _doubts(learner: Any, given: Integers, truth: Integers) -> tuple[float | None, float | None]:
    """Share of wrong labels that a learner holds for wrong, and of right ones."""
    posterior = getattr(learner, "label_posterior_", None)
    wrong = given != truth
    if posterior is None or not wrong.any():
        return None, None
    doubted = learner.classes_[posterior.argmax(axis=1)] != given
    return float(doubted[wrong].mean()), float(doubted[~wrong].mean())


def _computed(
    problem: Problem, plan: Plan, tasks: list[tuple[str, int]], n_jobs: int | None
) -> Iterator[Row]:
    """Rows of tasks as they are finished, by this process alone as long as that is quicker."""
    tasks = list(tasks)
    workers = min(thread_count(n_jobs), len(tasks))
    until = time.perf_counter() + PATIENCE
    while tasks and (workers == 1 or time.perf_counter() < until):
        yield measure(problem, plan, *tasks.pop(0))
    if not tasks:
        return
    with parallel_config(backend="loky", inner_max_num_threads=1):
        pool = Parallel(n_jobs=workers, return_as="generator_unordered", pre_dispatch="2*n_jobs")
        yield from pool(delayed(_work)(problem, plan, *task, os.getpid()) for task in tasks)


def _work(problem: Problem, plan: Plan, name: str, seed: int, parent: int) -> Row:
    """Do a task in a process of the pool."""
    _leave_interruption_to(parent)
    return measure(problem, plan, name, seed)


@lru_cache(maxsize=1)
def _leave_interruption_to(parent: int) -> None:
    """Ctrl-C reaches all processes; one is enough to end the work, and tells it once."""
    if os.getpid() != parent:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _description(problem: Problem, plan: Plan) -> dict[str, Any]:
    """All that decides the results of any task, but for the code, the method and the seed."""
    digest = hashlib.sha256()
    for array in (problem.X, problem.blocks, problem.y):
        digest.update(f"{array.shape} {array.dtype}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return {
        "rows": digest.hexdigest(),
        "standardize": problem.standardize,
        "n_train": plan.n_train,
        "n_test": plan.n_test,
        "noise": plan.noise,
        "components": plan.components,
    }


def _key(described: Mapping[str, Any], name: str, seed: int) -> str:
    """Name of a task's row: a hash of all that decides it, the code included."""
    about = {
        **described,
        "code": code_version(measure),
        "method": _methods()[name].description(),
        "seed": seed,
    }
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:32]


def _from_record(record: Mapping[str, Any]) -> Row:
    (found,) = record["rows"]
    values = {name: found[name] for name in Row._fields}
    return Row(**(values | {"kept_accuracy": tuple(found["kept_accuracy"])}))
