import os
import signal

import numpy as np
import pytest
from endings import SIGNALS, ended

from bnca.experiments import compare
from bnca.experiments.contenders import MEANINGS, contenders
from bnca.experiments.plan import plan
from bnca.experiments.problem import Choices, built_in, from_table
from bnca.experiments.store import Store

TIMES = ("fit_seconds", "tune_seconds")


@pytest.fixture(scope="module")
def digits():
    return built_in()


@pytest.fixture(scope="module")
def settled(digits):
    return plan(digits, size=60, noise=0.2, seeds=[0, 1], methods=["KNN", "PCA", "NCMML"])


@pytest.fixture(scope="module")
def rows(digits, settled):
    return compare.in_order(list(compare.run(digits, settled, n_jobs=1)), settled)


def without_times(rows):
    return [row._replace(**dict.fromkeys(TIMES, 0)) for row in rows]


def test_contenders_are_the_methods_that_are_explained():
    assert tuple(method.name for method in contenders()) == tuple(MEANINGS)


def test_every_method_works_with_all_that_is_tuned(digits):
    every = plan(digits, size=60, seeds=[0])
    rows = list(compare.run(digits, every, n_jobs=1))
    assert [row.reason for row in rows] == [""] * len(MEANINGS)
    assert all(row.accuracy > 0.6 for row in rows)
    assert all(row.chosen for row in rows if row.method != "BNCA+")
    assert next(row for row in rows if row.method == "BNCA+").chosen == {}


def test_rows_by_split_and_method(rows, settled):
    assert [(row.seed, row.method) for row in rows] == [
        (seed, name) for seed in (0, 1) for name in settled.methods
    ]
    assert all(row.majority == pytest.approx(0.1, abs=0.01) for row in rows)
    assert all(len(row.kept_accuracy) == 19 for row in rows)


def test_processes_make_no_difference(digits, settled, rows, monkeypatch):
    monkeypatch.setattr(compare, "PATIENCE", 0.0)
    again = compare.in_order(list(compare.run(digits, settled, n_jobs=2)), settled)
    assert without_times(again) == without_times(rows)


def test_kept_rows_are_not_computed_again(digits, settled, rows, tmp_path, monkeypatch):
    first = list(compare.run(digits, settled, tmp_path, n_jobs=1))
    monkeypatch.setattr(compare, "_computed", lambda *_: iter(()))
    assert list(compare.run(digits, settled, tmp_path)) == first
    assert without_times(first) == without_times(rows)


def test_other_rows_are_other_results(digits, settled, tmp_path):
    list(compare.run(digits, settled, tmp_path, n_jobs=1))
    n = len(Store(tmp_path).read())
    changed = built_in()
    changed.X[0, 0] += 1
    list(compare.run(changed, settled, tmp_path, n_jobs=1))
    noisier = plan(digits, size=60, noise=0.3, seeds=[0], methods=["KNN"])
    list(compare.run(digits, noisier, tmp_path, n_jobs=1))
    assert len(Store(tmp_path).read()) == 2 * n + 1


def test_failure_of_a_method_is_a_row_with_its_reason(digits, monkeypatch):
    def fail(*args, **kwargs):
        raise FloatingPointError("too much")

    monkeypatch.setattr("bnca.rivals.ncmml.NCMML.fit", fail)
    settled = plan(digits, size=60, seeds=[0], methods=["KNN", "NCMML"])
    fine, failed = compare.run(digits, settled, n_jobs=1)
    assert fine.accuracy > 0.5
    assert failed.reason == "FloatingPointError: too much"
    assert np.isnan(failed.accuracy)


def test_smallest_table_that_is_allowed():
    import pandas as pd

    rng = np.random.default_rng(0)
    kind = np.repeat(["a", "b"], 5)
    frame = pd.DataFrame({"x": rng.normal(size=10) + 3 * (kind == "a"), "kind": kind})
    problem = from_table(frame, Choices("kind"), "tiny")
    rows = list(compare.run(problem, plan(problem, seeds=[0], noise=0.2), n_jobs=1))
    assert [row.reason for row in rows] == [""] * len(MEANINGS)


SCRIPT = """
import sys
from pathlib import Path
from bnca import cli
cli.main(["compare", "--size", "150", "--repeats", "6", "--jobs", "2", "--out", sys.argv[1]])
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX has them")
@pytest.mark.parametrize("sent", SIGNALS)
def test_ended_run_goes_on_from_there(tmp_path, sent):
    store = tmp_path / "cells"
    printed, _ = ended(SCRIPT, tmp_path, store, after=4, sent=sent)
    kept = Store(store).read()
    assert 5 <= len(kept) < 60
    if sent == signal.SIGINT:
        assert "results are kept" in printed
        assert "Traceback" not in printed
    problem = built_in()
    same = plan(problem, size=150, noise=0.3, seeds=[0], methods=["KNN"])
    row = next(compare.run(problem, same, store))
    assert row == compare._from_record(next(iter(kept.values())))
    assert not (tmp_path / "compare.html").exists()
