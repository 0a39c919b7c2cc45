"""`bnca compare` as a person types it."""

import csv
import json
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

from bnca import cli

QUICK = ["--repeats", "5", "--methods", "KNN,NCMML,BNCA+"]
FILES = {"compare.html", "compare.png", "compare.csv", "compare.json", "cells"}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Wines with a category, holes, an id, a constant and a label here and there missing."""
    frame = load_wine(as_frame=True).data.iloc[:, :6]
    rng = np.random.default_rng(0)
    kind = np.array(["barolo", "grignolino", "<b>barbera</b>"])[load_wine().target]
    frame.insert(0, "bottle id", rng.permutation(10_000)[: len(frame)])
    frame["ash"] = frame["ash"].mask(rng.random(len(frame)) < 0.1)
    frame["cellar"] = rng.choice(["north", "south", "east"], len(frame))
    frame["country"] = "Italy"
    frame["grape"] = kind
    frame.loc[5, "grape"] = None
    path = tmp_path_factory.mktemp("table") / "wines.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def out(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare") / "new" / "folder"
    assert cli.main(["compare", str(table), "--label", "grape", "--out", str(folder), *QUICK]) == 0
    return folder


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    """Run with arguments; exit status, what was printed, what was complained."""

    def call(*arguments, columns=100):
        monkeypatch.setenv("COLUMNS", str(columns))
        status = cli.main(["compare", *map(str, arguments), "--out", str(tmp_path / "out")])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


def test_folder_holds_report_picture_and_rows(out):
    assert {path.name for path in out.iterdir()} >= FILES
    assert (out / "compare.png").read_bytes().startswith(b"\x89PNG")
    with (out / "compare.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["seed"], row["method"]) for row in rows[:4]] == [
        ("0", "KNN"),
        ("0", "NCMML"),
        ("0", "BNCA+"),
        ("1", "KNN"),
    ]
    assert all(0.5 < float(row["accuracy"]) <= 1 and row["numpy"] for row in rows)


def test_json_says_the_same_as_the_rows(out):
    summary = json.loads((out / "compare.json").read_text(encoding="utf-8"))
    with (out / "compare.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for method in summary["table"]["rows"]:
        own = [float(row["accuracy"]) for row in rows if row["method"] == method["label"]]
        assert method["values"]["accuracy"]["sort"] == pytest.approx(100 * np.mean(own))
    assert summary["command"].startswith("bnca compare wines.csv --label grape --repeats 5")
    assert summary["data"]["Columns"]["country"] == "not used: all its values are the same"


@pytest.mark.parametrize("columns", [80, 120])
def test_terminal_says_what_was_done_and_who_is_best(table, run, columns):
    status, printed, _ = run(table, "--label", "grape", *QUICK, columns=columns)
    assert status == 0
    # Paths stay whole, so that a terminal can open them.
    lines = [line for line in printed.splitlines() if not line.startswith("Written:")]
    assert max(map(len, lines)) <= columns
    for words in (
        "177 rows, 3 classes: <b>barbera</b> (48), barolo (58), grignolino (71)",
        "9 columns: 6 numbers, 1 category, 2 not used",
        "bottle id: not used",
        "country: not used, all its values are the same",
        "1 rows without a label are left out",
        "5 random splits: 124 training rows; 53 test rows",
        "is the most accurate:",
        "Always answering the most frequent class",
        "compare.html",
    ):
        assert words in printed
    table_lines = [line for line in printed.splitlines() if "±" in line]
    assert len(table_lines) == 4  # three methods and the legend


def test_report_in_a_browser(out, browser):
    browser.open(out / "compare.html")
    assert browser.errors == []
    assert all(url.startswith(("file:", "data:")) for url in browser.requests)
    assert "wines.csv" in browser.run("document.title")
    methods = "[...document.querySelectorAll('.methods tbody th')].map(h => h.innerText)"
    assert sorted(browser.run(methods)) == ["BNCA+", "KNN", "NCMML"]
    browser.click("table.methods thead th:first-child button")
    assert browser.run(methods) == ["BNCA+", "KNN", "NCMML"]
    labels = browser.run(
        "[...document.querySelectorAll('figure svg')].map(s => s.getAttribute('aria-label'))"
    )
    assert len(labels) == 2
    assert all("BNCA+" in label for label in labels)
    # A class whose name is markup stays text.
    assert browser.run("document.querySelectorAll('dd b').length") == 0
    browser.resize(390)
    assert browser.run("document.documentElement.scrollWidth") <= 390


def test_second_run_takes_what_is_kept(table, out, capsys, monkeypatch):
    monkeypatch.setattr("bnca.experiments.compare._computed", lambda *_: iter(()))
    before = (out / "compare.csv").read_text(encoding="utf-8")
    assert cli.main(["compare", str(table), "--label", "grape", "--out", str(out), *QUICK]) == 0
    assert (out / "compare.csv").read_text(encoding="utf-8") == before


def test_failure_to_write_leaves_the_old_report(table, out, monkeypatch, capsys):
    before = (out / "compare.html").read_bytes()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    assert cli.main(["compare", str(table), "--label", "grape", "--out", str(out), *QUICK]) == 1
    assert "No space left" in capsys.readouterr().err
    assert (out / "compare.html").read_bytes() == before
    assert {path.name for path in out.iterdir()} == FILES


def test_built_in_rows_need_no_table(run):
    status, printed, _ = run("--size", "60", "--repeats", "2", "--methods", "knn,pca")
    assert status == 0
    assert "60 training rows, 30 % of their labels wrong" in printed
    assert "2 splits say too little about chance" in printed
    assert "±" not in printed


def test_columns_of_no_use_are_told_from_a_coin(tmp_path, run):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=100), "kind": ["yes"] * 70 + ["no"] * 30})
    frame.to_csv(tmp_path / "coin.csv", index=False)
    _, printed, _ = run(tmp_path / "coin.csv", "--label", "kind", *QUICK)
    assert "these columns hardly tell the classes" in " ".join(printed.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--label", "grapes"], "Is it 'grape'?"),
        ([], "--label must name the column that holds the classes"),
        (["--label", "alcohol"], "--bins 3"),
        (["--label", "grape", "--methods", "forest"], "no method 'forest'"),
        (["--label", "grape", "--drop", "ashes"], "Is it 'ash'?"),
        (["--label", "grape", "--size", "177"], "Try from 6 to 174"),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(table, run, arguments, words, tmp_path):
    status, printed, complaint = run(table, *arguments)
    assert (status, printed) == (2, "")
    assert words in complaint
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--label", "kind"], "--label goes with a table of yours"),
        (["--raw"], "--raw goes with a table of yours"),
        (["nowhere.csv", "--label", "x"], "there is no file nowhere.csv"),
    ],
)
def test_options_that_do_not_go_together(run, arguments, words):
    status, _, complaint = run(*arguments)
    assert status == 2
    assert words in complaint


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--noise", "1.5"], "must be from 0 to 0.9"),
        (["--size", "0"], "a share below 1; got 0"),
        (["--size", "2.5"], "a share below 1; got 2.5"),
        (["--repeats", "x"], "invalid"),
    ],
)
def test_bad_arguments_are_explained(arguments, word, capsys):
    with pytest.raises(SystemExit) as error:
        cli.main(["compare", *arguments])
    assert error.value.code == 2
    assert word in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["rich", "matplotlib", "pandas"])
def test_missing_extra_is_named(missing, monkeypatch, capsys, tmp_path, table):
    for name in [m for m in sys.modules if m.split(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    arguments = ["compare", str(table), "--label", "grape", "--out", str(tmp_path)]
    assert cli.main(arguments) == 1
    assert 'pip install "bnca[app]"' in capsys.readouterr().err


def test_folder_that_is_a_file_is_refused(tmp_path, capsys):
    taken = tmp_path / "taken"
    taken.write_text("mine")
    assert cli.main(["compare", "--out", str(taken)]) == 1
    assert "taken" in capsys.readouterr().err
    assert taken.read_text() == "mine"
