import csv
import sys

import pytest

from bnca import __version__, cli

SMALL = ["compare", "--train", "60", "--repeats", "2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("compare") / "new" / "folder"
    assert cli.main([*SMALL, "--out", str(out)]) == 0
    return out


def test_compare_leaves_a_picture_and_a_table(folder):
    assert (folder / "compare.png").read_bytes().startswith(b"\x89PNG")
    with (folder / "compare.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(r["seed"], r["method"]) for r in rows] == [
        (seed, method) for seed in "01" for method in ("KNN", "NCA", "BayesianNCA")
    ]
    assert all(0.5 < float(r["accuracy"]) <= 1 for r in rows)
    assert not [p for p in folder.iterdir() if p.name.startswith("tmp")]


def test_compare_prints_table_verdict_and_files(folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    cli.main([*SMALL, "--repeats", "1", "--out", str(folder)])
    printed = capsys.readouterr().out
    for word in ("KNN", "NCA", "BayesianNCA", "accuracy", "Most accurate:", "compare.png"):
        assert word in printed
    assert "more repeats" in printed  # one split says nothing about chance


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["compare", "--noise", "1.5"], "must be from 0 to 0.9"),
        (["compare", "--train", "5"], "must be from 30 to 1500"),
        (["compare", "--repeats", "x"], "invalid"),
        (["nothing"], "invalid choice"),
    ],
)
def test_bad_arguments_are_explained(arguments, word, capsys):
    with pytest.raises(SystemExit) as error:
        cli.main(arguments)
    assert error.value.code == 2
    assert word in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["rich", "matplotlib"])
def test_missing_extra_is_named(missing, monkeypatch, capsys, tmp_path):
    for name in [m for m in sys.modules if m.split(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    assert cli.main([*SMALL, "--repeats", "1", "--out", str(tmp_path)]) == 1
    assert 'pip install "bnca[app]"' in capsys.readouterr().err


def test_folder_that_is_a_file_is_refused(tmp_path, capsys):
    taken = tmp_path / "taken"
    taken.write_text("mine")
    assert cli.main([*SMALL, "--out", str(taken)]) == 1
    assert "taken" in capsys.readouterr().err
    assert taken.read_text() == "mine"


def test_interruption_ends_politely(monkeypatch, capsys, tmp_path):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("bnca.experiments.compare.run", stop)
    assert cli.main([*SMALL, "--out", str(tmp_path)]) == 130
    assert "Interrupted" in capsys.readouterr().err


def test_version_and_help(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert __version__ in capsys.readouterr().out
    assert cli.main([]) == 0
    assert "compare" in capsys.readouterr().out
