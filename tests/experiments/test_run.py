"""The runner: each unit once, whatever happens in between, and never rows of other code."""

import csv
import json

import pandas as pd
import pytest
from trials import EXPERIMENT, IRIS, STUDY, methods

from bnca.experiments import run as module
from bnca.experiments.run import TIMES, run, units
from bnca.experiments.spec import DataSpec, Experiment, Method, Study
from bnca.experiments.store import Store, rows_to_csv, rows_to_parquet
from bnca.rivals import PCAMetric


def broken():
    return [Method("PCA", PCAMetric(), {"n_components": [-1]}), methods()[1]]


def failing(part, data, place):
    raise RuntimeError("out of luck")


def untimed(rows):
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    return folder, run([EXPERIMENT, STUDY], folder, n_jobs=1)


def test_rows_have_all_columns(first):
    _, results = first
    assert not results.skipped
    row = results.rows[0]
    assert row["method"] == "PCA"
    assert row["n_train"] == 15
    assert row["n_pool"] == 150
    assert 0.5 < row["accuracy"] <= 1
    assert row["fit_seconds"] > 0
    assert json.loads(row["chosen"])["n_voters"] in {1, 3}
    assert {"bnca", "code", "numpy", "cpu", "seed", "finished"} <= set(row)
    assert len(results.rows) == 2 * 2 * 2 + 2 * 2


def test_methods_have_codes_of_their_own(first):
    codes = {row.get("method"): row["code"] for row in first[1].rows}
    assert len(set(codes.values())) == 3


def test_what_is_kept_is_not_computed_again(first):
    folder, results = first
    size = Store(folder).path.stat().st_size
    told = []
    again = run([EXPERIMENT, STUDY], folder, n_jobs=1, progress=lambda *a: told.append(a))
    assert again.rows == results.rows
    assert Store(folder).path.stat().st_size == size
    assert [done for done, *_ in told] == list(range(1, 11))
    assert {(total, reason) for _, total, _, reason in told} == {(10, None)}


def test_results_do_not_depend_on_the_number_of_processes(first, tmp_path):
    assert untimed(run([EXPERIMENT, STUDY], tmp_path, n_jobs=2).rows) == untimed(first[1].rows)


def test_methods_may_run_one_after_the_other(first, tmp_path):
    alone = run([EXPERIMENT], tmp_path, only=["NCM"], n_jobs=1).rows
    assert {row["method"] for row in alone} == {"NCM"}
    both = run([EXPERIMENT], tmp_path, n_jobs=1).rows
    assert untimed(both) == untimed(first[1].rows)[:8]
    assert [row for row in both if row["method"] == "NCM"] == alone


def test_rows_of_other_code_are_not_used(first, monkeypatch):
    folder, results = first
    lines = Store(folder).path.read_text().count("\n")
    real = module.code_version
    monkeypatch.setattr(
        module, "code_version", lambda root: "new" if root is PCAMetric else real(root)
    )
    told = run([EXPERIMENT], folder, n_jobs=1, compute=False)
    assert {row["method"] for row in told.rows} == {"NCM"}
    assert {s.unit.method.name for s in told.skipped} == {"PCA"}
    new = run([EXPERIMENT], folder, n_jobs=1).rows
    assert {row["code"] for row in new if row["method"] == "PCA"} == {"new"}
    assert [r for r in new if r["method"] == "NCM"] == [
        r for r in results.rows if r.get("method") == "NCM"
    ]
    assert Store(folder).path.read_text().count("\n") == lines + 4
    monkeypatch.undo()
    assert run([EXPERIMENT, STUDY], folder, n_jobs=1).rows == results.rows


def test_torn_line_is_as_if_never_written(first, tmp_path):
    folder, results = first
    text = Store(folder).path.read_bytes().split(b"\n")
    store = Store(tmp_path)
    store.path.write_bytes(b"\n".join(text[:2]) + b"\n" + text[2][: len(text[2]) // 2])
    assert len(store.read()) == 2
    assert untimed(run([EXPERIMENT, STUDY], tmp_path, n_jobs=1).rows) == untimed(results.rows)
    assert len(store.read()) == 10


def test_failure_of_one_method_is_a_row_with_its_reason(tmp_path):
    experiment = Experiment("table1/iris", IRIS, (5,), 30, broken, seeds=(0,))
    pca, ncm = run([experiment], tmp_path, n_jobs=1).rows
    assert "n_components" in pca["reason"]
    assert pca["accuracy"] is None
    assert ncm["reason"] == ""
    assert ncm["accuracy"] > 0.5


def test_what_cannot_run_is_skipped_with_its_reason(tmp_path):
    missing = Experiment("table1/no", DataSpec("no", "No"), (5,), 30, methods, seeds=(0,))
    greedy = Experiment("table1/iris", IRIS, (60,), 30, methods, seeds=(0,))
    unlucky = Study("figure1/iris", IRIS, failing, seeds=(0,))
    results = run([missing, greedy, unlucky], tmp_path, n_jobs=1)
    assert not results.rows
    reasons = module.experiment_reasons(results.skipped)
    assert "There is no data set 'no'" in reasons["table1/no"]
    assert "60 of each class are asked for" in reasons["table1/iris"]
    assert reasons["figure1/iris"] == "RuntimeError: out of luck"


def test_units_can_be_restricted():
    assert len(units([EXPERIMENT, STUDY])) == 10
    assert {u.method.name for u in units([EXPERIMENT], ["NCM"])} == {"NCM"}


def test_tables_of_rows(first, tmp_path):
    rows = first[1].rows
    rows_to_csv(rows, tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(rows)
    assert float(lines[0]["accuracy"]) == rows[0]["accuracy"]
    rows_to_parquet(rows, tmp_path / "rows.parquet")
    table = pd.read_parquet(tmp_path / "rows.parquet")
    assert table["accuracy"][0] == rows[0]["accuracy"]
    assert list(table["experiment"]) == [row["experiment"] for row in rows]
